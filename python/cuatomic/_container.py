# SPDX-License-Identifier: MIT
"""The base of containers: their context and lock, and the checks of their arguments."""

from __future__ import annotations

import array
import ctypes
import functools
import math
import numbers
import threading
from typing import Any, Callable, TypeVar, cast

from . import _abi
from . import _arrays
from ._arrays import View, numpy_kind, take
from ._context import CPU, Context, device_name, device_number
from ._errors import Error, check, failed
from ._library import lib
from ._types import ARRAY_LETTERS, FLOATS, KEYS, SIZES, dtype_name, type_code
from ._values import holds

_WORDS = {4: _abi.CUA_U32, 8: _abi.CUA_U64}
_CHOICE = "int32, uint32, int64, uint64, float32 or float64"


def element_code(dtype, what):
    """The element type of keys or values."""
    try:
        code = type_code(dtype)
    except Exception:
        raise TypeError(
            "%s is not an element type of %s: choose %s" % (_shown(dtype), what, _CHOICE)
        ) from None
    if code not in KEYS:
        raise TypeError("%s of %s are not supported: choose %s" % (what, dtype_name(code), _CHOICE))
    return code


def _shown(x):
    """The text of a wrong argument in an error: no array of many lines."""
    return repr(x) if isinstance(x, (str, type, numbers.Number)) else "a %s" % type(x).__name__


_Init = TypeVar("_Init", bound=Callable[..., None])


def dtype_first(init: _Init) -> _Init:
    """Decorates ``__init__``: a first argument that is no element type, such as a dict, raises a
    TypeError that names the class methods for data, even if other arguments are missing."""

    @functools.wraps(init)
    def checked(self: Any, *arguments: Any, **options: Any) -> None:
        if arguments:
            try:
                element_code(arguments[0], "keys")
            except TypeError as error:
                if isinstance(arguments[0], (str, type)):
                    raise
                raise TypeError("%s; data: see %s" % (error, self._makers)) from None
        init(self, *arguments, **options)

    return cast(_Init, checked)


def word_type(code):
    """The library's type for all types of the same size."""
    return _WORDS[SIZES[code]]


def is_number(x):
    """Whether x is a single number of Python or numpy, not an array."""
    return isinstance(x, numbers.Real)


def host_array(values, code, what):
    """Python's numbers as an array.array; integers keep their values, floats are rounded."""
    try:
        return array.array(ARRAY_LETTERS[code], values)
    except OverflowError:
        raise ValueError("%s: a number is outside %s" % (what, dtype_name(code))) from None
    except TypeError as error:
        raise TypeError("%s of %s: %s" % (what, dtype_name(code), error)) from None


def zeros(n, code):
    """An array.array of n zeros."""
    return array.array(ARRAY_LETTERS[code], bytes(n * SIZES[code]))


def _whole(number):
    """The int that is equal to a number, or None."""
    try:
        whole = int(number)
    except (OverflowError, ValueError):
        return None
    return whole if whole == number else None


def _conversion(kind, code):
    """The method of an array that converts its elements."""
    if isinstance(kind, _arrays._Torch):
        return "to(torch.%s)" % dtype_name(code)
    return "astype(%r)" % dtype_name(code)


def count(number, what, least=1):
    """A Python int from `least` to 2**64 - 1."""
    try:
        value = number.__index__()
    except AttributeError:
        raise TypeError("%s is not an integer: %r" % (what, number)) from None
    if not least <= value < 1 << 64:
        raise ValueError("%s=%d: choose %d to 2**64 - 1" % (what, value, least))
    return value


def _default_kind(number):
    """The kind of arrays that a call without array arguments returns."""
    if number == CPU:
        try:
            return numpy_kind()
        except ImportError:
            return _arrays._Buffers()
    try:
        return _arrays._Cupy()
    except ImportError:
        return _arrays._Interface()


def as_host_result(host):
    """An array.array as an array of numpy, if numpy can be imported."""
    try:
        return numpy_kind().numpy.array(host)
    except ImportError:
        return host


class _Lock(type(threading.RLock())):  # type: ignore[misc]
    """A lock of calls. A call inside a call of the same thread raises Error.

    Signal handlers and destructors make such calls. With a plain lock they would wait forever.
    """

    owner = "container"

    def __enter__(self):
        if self._is_owned():
            raise Error(
                "the %s is in use by a call of this thread: "
                "a signal handler or a destructor called it meanwhile" % self.owner
            )
        try:
            return self.acquire()
        except BaseException:
            # a signal handler may raise after acquire
            if self._is_owned():
                self.release()
            raise


class Container:
    """An object of the library with a context of its own.

    Any Python thread may call it. A lock orders the calls, as a context is for a single thread.
    """

    _makers: str
    _has_values = True

    @classmethod
    def _of_arrays(cls, arrays, dtypes, capacity, options):
        """An empty container on the device of arrays, with their types and room for them."""
        views = [take(array) for array in arrays]
        types = [
            dtype_name(view.code) if dtype is None else dtype for view, dtype in zip(views, dtypes)
        ]
        capacity = cls._capacity_for(views[0].n) if capacity is None else capacity
        return cls(*types, capacity, **{"device": device_name(views[0].device), **options})

    def _start(self, device, destroy):
        self._handle = None
        self._destroy = destroy
        self._lock = _Lock()
        self._lock.owner = self._name()
        self._number = device_number(device)
        self._context = Context(device_name(self._number))
        # __del__ ends it: of two objects in a garbage cycle either may be finalized first
        self._context._owned = True
        self._kind = None

    def _set_types(self, key_dtype, value_dtype):
        if self._has_values and value_dtype is None:
            raise TypeError("a %s has values: a HashSet has none" % self._name())
        self._key_code = element_code(key_dtype, "keys")
        self._value_code = (
            _abi.CUA_NONE if value_dtype is None else element_code(value_dtype, "values")
        )

    def _name(self):
        return type(self).__name__

    def __del__(self):
        context = getattr(self, "_context", None)
        if context is None or not context._alive:
            return
        handle, self._handle = self._handle, None
        context._leave_stream()
        if handle:
            self._destroy(handle)
        context._end()

    def close(self) -> None:
        """Frees the memory. Later calls raise ValueError. A ``with`` block closes at its end."""
        if not self._handle:
            return
        self._live()
        with self._lock:
            self.__del__()

    def __enter__(self):
        self._live()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol):
        raise TypeError("a %s cannot be copied or pickled" % self._name())

    def _live(self):
        """The handle, of an open container in the process that made it."""
        if not self._handle:
            raise ValueError("the %s is closed" % self._name())
        if not self._context._alive:
            raise Error("the %s belongs to the parent process" % self._name())
        return self._handle

    @property
    def device(self) -> str:
        """str: ``"cpu"`` or ``"cuda:N"``."""
        return device_name(self._number)

    @property
    def key_dtype(self) -> str:
        """str: the element type of the keys, such as ``"int64"``."""
        return dtype_name(self._key_code)

    # ---- calls ----

    def _enter(self, like):
        """The context of the thread for a call with the View `like`."""
        self._live()
        return None if like is None else like.context()

    def _ready(self, like, context):
        """The handle, with the stream of `context`; the lock is held."""
        handle = self._live()
        if context is not None:
            self._context._follow(context, like.kind.stream_owner(self._number))
        return handle

    def _finish(self, like, context):
        """Waits for a call in a stream that does not order the memory of its arguments."""
        if context is not None and context._own_stream and context._stream != like.stream:
            check(lib.cua_context_synchronize(self._context.handle), "synchronize")

    def _call(self, what, like, function, *arguments):
        """A call of the library, in the stream of the View `like`."""
        context = self._enter(like)
        with self._lock:
            status = function(self._ready(like, context), *arguments)
            self._finish(like, context)
        if status:
            raise failed(status, what)

    def _number_of(self, what, function):
        """A count of the container."""
        result = ctypes.c_uint64()
        self._call(what, None, function, ctypes.byref(result))
        return result.value

    # ---- arguments and results ----

    def _like(self, like=None):
        """A View without elements of the kind of arrays of `like`, or of the default kind."""
        if like is not None:
            view = take(like)
            if view.device != self._number:
                raise self._elsewhere("like", view)
            return View(view.kind, None, 0, view.code, 0, (0,), view.device, view.stream)
        if self._kind is None:
            self._kind = _default_kind(self._number)
        stream = 0
        if self._number != CPU and hasattr(self._kind, "current_stream"):
            stream = self._kind.current_stream(self._number).ptr
        return View(self._kind, None, 0, _abi.CUA_NONE, 0, (0,), self._number, stream)

    def _elsewhere(self, what, view):
        return ValueError(
            "%s: the array is on %s, the %s on %s"
            % (what, device_name(view.device), self._name(), self.device)
        )

    def _uploaded(self, host, code, like):
        """The numbers of an array.array as a View of the kind of `like`."""
        n = len(host)
        made, address = like.empty((n,), code)
        context = like.context()
        size = n * SIZES[code]
        if n and self._number == CPU:
            ctypes.memmove(address, host.buffer_info()[0], size)
        elif n:
            check(lib.cua_copy(context.handle, address, host.buffer_info()[0], size), "copy")
        return View(like.kind, made, address, code, n, (n,), self._number, like.stream)

    def _downloaded(self, view, address, code, n):
        """The n numbers at an address of the device, as an array.array."""
        host = zeros(n, code)
        if n:
            check(
                lib.cua_copy(
                    view.context().handle, host.buffer_info()[0], address, n * SIZES[code]
                ),
                "copy",
            )
        return host

    def _array(self, x, code, what):
        """The View of a 1-D argument with elements of the type `code`."""
        if isinstance(x, (list, tuple, range)):
            return self._uploaded(host_array(x, code, what), code, self._like())
        view = take(x)
        if len(view.shape) != 1:
            raise ValueError("%s have the shape %r: pass a 1-D array" % (what, tuple(view.shape)))
        if view.device != self._number:
            raise self._elsewhere(what, view)
        if view.code == code:
            return view
        if not holds(code, view.code):
            raise TypeError(
                "%s are %s, those of the %s %s: convert them with %s"
                % (
                    what,
                    dtype_name(view.code),
                    self._name(),
                    dtype_name(code),
                    _conversion(view.kind, code),
                )
            )
        return view.converted(code)

    def _keys(self, keys):
        return self._array(keys, self._key_code, "keys")

    def _value(self, values, keys, what="values"):
        return self._beside(values, self._value_code, what, keys)

    def _beside(self, x, code, what, keys):
        """As _array, or a single number for all keys. The result has as many elements as `keys`."""
        if is_number(x):
            return self._filled(x, code, what, keys)
        view = self._array(x, code, what)
        if view.n != keys.n:
            raise ValueError("there are %d keys and %d %s" % (keys.n, view.n, what))
        if view.stream != keys.stream:
            view.kind.wait(view)
        return view

    def _scalar_like(self):
        """A View without elements of the kind for single numbers, in the stream in use."""
        kind = _arrays._Buffers() if self._number == CPU else _arrays._Interface()
        stream = self._context._stream
        return View(kind, None, 0, _abi.CUA_NONE, 0, (0,), self._number, stream)

    def _host_key(self, key):
        """An array.array of a single key, or None for a number that is no key."""
        if not is_number(key):
            raise TypeError("%r is not a number: pass arrays to the methods" % type(key).__name__)
        is_float = self._key_code in FLOATS
        if not is_float and not hasattr(key, "__index__"):
            key = _whole(key)
            if key is None:
                return None
        try:
            host = host_array([key], self._key_code, "key")
        except ValueError:
            return None
        # array.array makes an infinity of a number outside float32
        if is_float and math.isinf(host[0]) and not math.isinf(key):
            return None
        return host

    def _one(self, key):
        """The View of a single key, or None for a number that is no key."""
        host = self._host_key(key)
        if host is None:
            return None
        return self._uploaded(host, self._key_code, self._scalar_like())

    def _new_key(self, key):
        """The View of a single key for a call that inserts it."""
        k = self._one(key)
        if k is not None:
            return k
        if self._key_code in FLOATS or hasattr(key, "__index__"):
            raise ValueError("key: %r is outside %s" % (key, self.key_dtype))
        raise TypeError("key: %r is not an integer, as keys of %s are" % (key, self.key_dtype))

    def _filled(self, number, code, what, like):
        """A new array of the length of `like`, all of a number."""
        host = host_array([number], code, what)
        made, address = like.empty((like.n,), code)
        if like.n:
            check(
                lib.cua_fill(
                    like.context().handle, address, like.n, SIZES[code], host.buffer_info()[0]
                ),
                what,
            )
        return View(like.kind, made, address, code, like.n, (like.n,), self._number, like.stream)

    def _copied(self, view):
        """A new array with the elements of a View."""
        made, address = view.empty((view.n,), view.code)
        if view.n:
            check(
                lib.cua_copy(view.context().handle, address, view.ptr, view.n * SIZES[view.code]),
                "copy",
            )
        return View(
            view.kind, made, address, view.code, view.n, view.shape, view.device, view.stream
        )

    def _bytes(self, like, wanted=True):
        """(array, address) of uint8 for each element of `like`; (None, None) if not wanted."""
        return like.empty((like.n,), _abi.CUA_U8) if wanted else (None, None)

    def _result(self, like, made):
        return like.result(like.context(), made)

    def _bools(self, like, made):
        return like.result(like.context(), like.kind.as_bool(made))

    def _pairs(self, what, like, size, retrieve, codes):
        """(n, new arrays with their addresses) of all pairs. `size` counts them.

        `codes` are the element types; CUA_NONE makes no array.
        """
        context = self._enter(like)
        total = ctypes.c_uint64()
        with self._lock:
            handle = self._ready(like, context)
            check(size(handle, ctypes.byref(total)), what)
            while True:
                n = total.value
                made = [(None, None) if c == _abi.CUA_NONE else like.empty((n,), c) for c in codes]
                addresses = [address for _, address in made]
                check(retrieve(handle, n, *addresses, ctypes.byref(total)), what)
                # a kernel may have written meanwhile
                if total.value == n:
                    return n, made

    def _results(self, like, made):
        return [None if array is None else self._result(like, array) for array, _ in made]
