# SPDX-License-Identifier: MIT
"""Array arguments: where their memory is, and new arrays of the same kind.

A *kind* is a family of array types. `take` finds the kind of an argument by its type and gives a
`View`. A kind makes arrays of results too, so that results are of the kind of the arguments.
"""

import ctypes
import operator
import struct
import sys

from . import _abi
from ._context import CPU, context_for, device_name, thread_context
from ._device_array import INTERFACE_CODES, DeviceArray, count_of
from ._errors import check
from ._library import lib
from ._types import ARRAY_LETTERS, CODES, NAMES, SIZES, dtype_name


class View:
    """The memory of an array argument.

    `array` keeps the memory alive, and is contiguous. `code` is the element type. `stream` is the
    stream in which the array's library works.
    """

    __slots__ = ("kind", "array", "ptr", "code", "n", "shape", "device", "stream")

    def __init__(self, kind, array, ptr, code, n, shape, device, stream):
        self.kind = kind
        self.array = array
        self.ptr = ptr
        self.code = code
        self.n = n
        self.shape = shape
        self.device = device
        self.stream = stream

    def context(self):
        """The context for a call with this array."""
        context = context_for(self.device, self.stream)
        if context._own_stream and context._stream != self.stream:
            self.kind.wait(self)
        return context

    def empty(self, shape, code):
        """A new array of this kind on the same device, and its address."""
        return self.kind.empty(shape, code, self.device)

    def finish(self, context):
        """Waits if the call used a stream that the array's library does not know."""
        if context._own_stream and context._stream != self.stream:
            context.synchronize()

    def result(self, context, array, like=None):
        """What a call returns for an array that it has written; an array of no dimension becomes a
        scalar, if the kind has them. It has the dtype of the view `like`, if that is given."""
        if context._own_stream:
            self.finish(context)
        return self._made(context, array, like)

    def rows(self, context, array, n, like=None):
        """As `result`, the first n rows alone."""
        if context._own_stream:
            self.finish(context)
        return self._made(context, self.kind.head(array, n, context), like)

    def _made(self, context, array, like):
        if like is not None:
            array = self.kind.as_like(array, like)
        return self.kind.result(array, context)

    def is_bool(self):
        return self.kind.is_bool(self)

    def converted(self, code):
        """The same elements as another type."""
        return self if code == self.code else self.kind.convert(self, code)


class Kind:
    """A family of array types."""

    def wait(self, view):
        """Waits for the work of the array's library."""

    def result(self, array, context):
        return array

    def stream_owner(self, device):
        """The object whose end would destroy the current stream, or None."""

    def as_bool(self, array):
        """An array of 0 and 1 of uint8 as bools, if the kind has them."""
        return array

    def is_bool(self, view):
        return False

    def is_lazy(self, device):
        """Whether a new array uses no memory until a call writes to it."""
        return device == CPU

    def head(self, array, n, context):
        """The first n rows; a copy of them if they are less than half of the array."""
        return array if len(array) == n else self.part(array[:n], 2 * n < len(array))

    def part(self, part, copy):
        return part.copy() if copy else part

    def sorts(self, code):
        """Whether the array's library sorts and gathers this type on a GPU."""
        return False

    def as_like(self, array, like):
        """An array that a call has written, with the dtype of an argument."""
        view = self.take(array)
        if view.code != like.code:
            array = view.converted(like.code).array
        return self.as_bool(array) if like.is_bool() else array

    def unwritable(self, view, x):
        """Why a call cannot write the argument x, or None."""
        return None if view.array is x else "the array is not contiguous"


# ---- numpy ----


def _address(array):
    """The address of a numpy array; from_buffer is four times as fast as `array.ctypes`."""
    try:
        return ctypes.addressof(_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


_char = ctypes.c_char


class _Numpy(Kind):
    def __init__(self):
        import numpy

        self.numpy = numpy
        self.codes = {}
        self.dtypes = {}
        for code, name in NAMES.items():
            if code == _abi.CUA_BF16:
                continue
            self.dtypes[code] = dtype = numpy.dtype(name)
            self.codes[dtype] = code
        self.bool = numpy.dtype(bool)
        self.codes[self.bool] = _abi.CUA_U8

    def code_of(self, dtype):
        try:
            return self.codes[dtype]
        except KeyError:
            pass
        if dtype.name == "bfloat16":
            # of the package ml_dtypes; numpy has none
            self.codes[dtype] = _abi.CUA_BF16
            self.dtypes[_abi.CUA_BF16] = dtype
            return _abi.CUA_BF16
        raise TypeError("arrays of dtype %s are not supported" % dtype.str.replace("|O", "object"))

    def dtype_of(self, code):
        try:
            return self.dtypes[code]
        except KeyError:
            raise TypeError("numpy has no dtype %s without ml_dtypes" % dtype_name(code)) from None

    def take(self, x):
        flags = x.flags
        if not (flags.c_contiguous and flags.aligned):
            x = self.numpy.require(x, requirements="CA")
        try:
            code = self.codes[x.dtype]
        except KeyError:
            code = self.code_of(x.dtype)
        return View(self, x, _address(x) if x.size else 0, code, x.size, x.shape, CPU, 0)

    def as_bool(self, array):
        return array.view(self.bool)

    def is_bool(self, view):
        return view.array.dtype == self.bool

    def unwritable(self, view, x):
        if view.array is not x:
            return "not a numpy array that is contiguous and aligned"
        return None if x.flags.writeable else "the array is read-only"

    def empty(self, shape, code, device):
        array = self.numpy.empty(shape, self.dtype_of(code))
        return array, _address(array) if array.size else 0

    def result(self, array, context):
        return array if array.shape else array[()]

    def convert(self, view, code):
        return self.take(view.array.astype(self.dtype_of(code)))

    def from_number(self, number, code, device):
        return self.dtype_of(code).type(number)

    def take_like(self, x):
        """Anything that numpy makes an array of."""
        numpy = self.numpy
        if isinstance(x, numpy.ma.MaskedArray):
            raise TypeError("masked arrays are not supported: pass x.compressed()")
        return self.take(numpy.asarray(x))


class _NumpyLike(Kind):
    """Arguments that numpy converts: lists, numbers, subclasses of its arrays."""

    def take(self, x):
        return numpy_kind().take_like(x)


# ---- other objects with a buffer ----


class _Buffer(ctypes.Structure):
    """Py_buffer of the C API."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _buffer_address(memory):
    buffer = _Buffer()
    api = ctypes.pythonapi
    if api.PyObject_GetBuffer(ctypes.py_object(memory), ctypes.byref(buffer), 0):
        raise BufferError("the object gives no simple buffer")
    address = buffer.buf
    api.PyBuffer_Release(ctypes.byref(buffer))
    return address or 0


_FORMATS = {
    "c": _abi.CUA_U8,
    "?": _abi.CUA_U8,
    "e": _abi.CUA_F16,
    "f": _abi.CUA_F32,
    "d": _abi.CUA_F64,
    "Zf": _abi.CUA_COMPLEX_F32,
    "Zd": _abi.CUA_COMPLEX_F64,
}
for _letter in "bhilqBHILQ":
    _prefix = "int" if _letter.islower() else "uint"
    _FORMATS[_letter] = CODES["%s%d" % (_prefix, 8 * struct.calcsize(_letter))]


_NATIVE = "<" if sys.byteorder == "little" else ">"


class _Buffers(Kind):
    """bytes, bytearray, memoryview, array.array, mmap, ctypes arrays; results are array.array."""

    def take(self, x):
        memory = memoryview(x)
        if not memory.c_contiguous:
            memory = memoryview(memory.tobytes()).cast(memory.format)
        code = _FORMATS.get(memory.format.lstrip("@=" + _NATIVE))
        # "<l" has 4 bytes, and "l" the size of the machine's long
        if code is None or memory.itemsize != SIZES[code]:
            raise TypeError("buffers of format %r are not supported" % memory.format)
        n = memory.nbytes // memory.itemsize
        address = _buffer_address(memory) if n else 0
        return View(self, memory, address, code, n, memory.shape, CPU, 0)

    def is_bool(self, view):
        return view.array.format.endswith("?")

    def unwritable(self, view, x):
        if view.array.readonly:
            return "the buffer is read-only"
        return None if memoryview(x).c_contiguous else "the buffer is not contiguous"

    def empty(self, shape, code, device):
        if code not in ARRAY_LETTERS:
            raise TypeError("buffers have no type %s: pass a numpy array" % dtype_name(code))
        import array

        count = count_of(shape)
        made = array.array(ARRAY_LETTERS[code], bytes(count * SIZES[code]))
        address = made.buffer_info()[0] if count else 0
        return (made if shape else _Scalar(made)), address

    def result(self, array, context):
        return array.array[0] if type(array) is _Scalar else array

    def convert(self, view, code):
        import array

        letter = view.array.format[-1]
        elements = view.array.cast("B").cast("B" if letter == "c" else letter)
        return self.take(array.array(ARRAY_LETTERS[code], elements))

    def from_number(self, number, code, device):
        return number

    def part(self, part, copy):
        return part

    def is_lazy(self, device):
        return False

    def as_like(self, array, like):
        if type(array) is _Scalar:
            return array
        view = self.take(array)
        return array if view.code == like.code else view.converted(like.code).array.obj

    def as_bool(self, array):
        return array


class _Scalar:
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


# ---- CuPy ----


class _Cupy(Kind):
    def __init__(self):
        import cupy

        self.cupy = cupy
        self.codes = numpy_kind().codes
        if not hasattr(cupy.ndarray, "_c_contiguous"):
            self.is_contiguous = operator.attrgetter("flags.c_contiguous")
        self.current_stream = cupy.cuda.get_current_stream
        self.current_device = cupy.cuda.runtime.getDevice

    # faster than x.flags
    is_contiguous = operator.attrgetter("_c_contiguous")

    def take(self, x):
        if not self.is_contiguous(x):
            x = self._on(x.data.device_id, self.cupy.ascontiguousarray, x)
        data = x.data
        device = data.device_id
        n = x.size
        try:
            code = self.codes[x.dtype]
        except KeyError:
            code = numpy_kind().code_of(x.dtype)
        return View(
            self, x, data.ptr if n else 0, code, n, x.shape, device, self.current_stream(device).ptr
        )

    def stream_owner(self, device):
        return self.current_stream(device)

    def as_bool(self, array):
        return array.view(bool)

    def is_bool(self, view):
        return view.array.dtype == bool

    def wait(self, view):
        self.current_stream(view.device).synchronize()

    def _on(self, device, make, *arguments):
        if self.current_device() == device:
            return make(*arguments)
        with self.cupy.cuda.Device(device):
            return make(*arguments)

    def empty(self, shape, code, device):
        array = self._on(device, self.cupy.empty, shape, numpy_kind().dtype_of(code))
        return array, array.data.ptr

    def convert(self, view, code):
        return self.take(self._on(view.device, view.array.astype, numpy_kind().dtype_of(code)))

    def from_number(self, number, code, device):
        return self._on(device, self.cupy.asarray, number, numpy_kind().dtype_of(code))

    def part(self, part, copy):
        return self._on(part.data.device_id, part.copy) if copy else part

    def sorts(self, code):
        return True

    def sort(self, array):
        return self._on(array.data.device_id, self.cupy.sort, array)

    def argsort(self, array):
        return self._on(array.data.device_id, self.cupy.argsort, array)

    def gather(self, array, index):
        return self._on(array.data.device_id, array.take, index)


# ---- PyTorch ----


class _Devices(dict):
    """PyTorch's device of each number; faster than its name."""

    def __init__(self, torch):
        self._torch = torch

    def __missing__(self, number):
        device = self[number] = self._torch.device(device_name(number))
        return device


class _Torch(Kind):
    def __init__(self):
        import torch

        self.torch = torch
        self.dtypes = {}
        for code, name in NAMES.items():
            dtype = getattr(torch, name, None)
            if dtype is not None:
                self.dtypes[code] = dtype
        self.codes = {dtype: code for code, dtype in self.dtypes.items()}
        self.codes[torch.bool] = _abi.CUA_U8
        self.devices = _Devices(torch)
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def stream(self, device):
        if self.raw_stream:
            return self.raw_stream(device)
        return self.torch.cuda.current_stream(device).cuda_stream

    def take(self, x):
        if x.requires_grad:
            raise ValueError(
                "the tensor requires a gradient, which the call would lose: pass x.detach()"
            )
        if x.is_cuda:
            device = x.get_device()
            stream = self.stream(device)
        elif x.device.type == "cpu" and x.layout == self.torch.strided:
            device, stream = CPU, 0
        else:
            raise ValueError("tensors of %s, %s are not supported" % (x.device, x.layout))
        code = self.codes.get(x.dtype)
        if code is None:
            raise TypeError("tensors of %s are not supported" % x.dtype)
        if not x.is_contiguous():
            x = x.contiguous()
        if code >= _abi.CUA_COMPLEX_F32 or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        n = x.numel()
        return View(self, x, x.data_ptr() if n else 0, code, n, x.shape, device, stream)

    def as_bool(self, array):
        return array.view(self.torch.bool)

    def is_bool(self, view):
        return view.array.dtype == self.torch.bool

    def wait(self, view):
        if view.device != CPU:
            self.torch.cuda.current_stream(view.device).synchronize()

    def part(self, part, copy):
        return part.clone() if copy else part

    def dtype_of(self, code):
        try:
            return self.dtypes[code]
        except KeyError:
            raise TypeError("this PyTorch has no dtype %s" % dtype_name(code)) from None

    def empty(self, shape, code, device):
        array = self.torch.empty(shape, dtype=self.dtype_of(code), device=self.devices[device])
        return array, array.data_ptr()

    def convert(self, view, code):
        return self.take(view.array.to(self.dtype_of(code)))

    def from_number(self, number, code, device):
        return self.torch.tensor(number, dtype=self.dtype_of(code), device=self.devices[device])

    def sorts(self, code):
        return code not in (_abi.CUA_U16, _abi.CUA_U32, _abi.CUA_U64)

    def sort(self, array):
        return array.sort().values

    def argsort(self, array):
        return array.argsort()

    def gather(self, array, index):
        return array[index]


# ---- the CUDA array interface and DLPack ----


def _is_contiguous(shape, strides, size):
    """Whether strides, in the units of `size`, are those of an array without gaps."""
    if strides is None or 0 in shape:
        return True
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != size:
            return False
        size *= length
    return True


def _pointer_device(address):
    """The device of an address in CUDA memory."""
    info = _abi.cua_pointer_info()
    info.struct_size = ctypes.sizeof(info)
    context = context_for(0, 0)
    check(lib.cua_pointer_query(context.handle, address, ctypes.byref(info)), "pointer")
    return max(info.device, 0)


class _Interface(Kind):
    """Arrays with __cuda_array_interface__: of Numba, Warp, or any other library."""

    def __init__(self, make=None):
        self.make = make

    def take(self, x):
        interface = x.__cuda_array_interface__
        typestr = interface["typestr"]
        code = INTERFACE_CODES.get(typestr[1:]) if typestr[0] in "|<" else None
        if code is None:
            raise TypeError("arrays of type %s are not supported" % typestr)
        if interface.get("mask") is not None:
            raise TypeError("masked arrays are not supported")
        shape = tuple(interface["shape"])
        if not _is_contiguous(shape, interface.get("strides"), SIZES[code]):
            raise ValueError("the array is not contiguous")
        n = count_of(shape)
        address = interface["data"][0] if n else 0
        device = _pointer_device(address) if n else 0
        stream = interface.get("stream")
        if stream == 0:
            raise ValueError("the stream 0 of __cuda_array_interface__ is ambiguous")
        view = View(
            self, x, address, code, n, shape, device, 0 if stream in (None, 1) else int(stream)
        )
        return view

    def is_bool(self, view):
        return view.array.__cuda_array_interface__["typestr"][1:] == "b1"

    def unwritable(self, view, x):
        return "the array is read-only" if x.__cuda_array_interface__["data"][1] else None

    def wait(self, view):
        thread_context(view.device, view.stream).synchronize()

    def empty(self, shape, code, device):
        array = DeviceArray(shape, code, device)
        return array, array.ptr

    def result(self, array, context):
        if context._stream > 1:
            context.synchronize()
        return self.make(array) if self.make else array

    def convert(self, view, code):
        raise TypeError(
            "arrays of %s are not supported: convert to %s"
            % (dtype_name(view.code), dtype_name(code))
        )

    def head(self, array, n, context):
        return array._head(n, context)

    def as_bool(self, array):
        array._is_bool = True
        return array

    def from_number(self, number, code, device):
        array = DeviceArray((), code, device)
        array._write(number)
        return self.result(array, context_for(device, 0))


class _Dlpack(Kind):
    """Arrays with __dlpack__ alone, and those of JAX. They name no stream, so results wait."""

    def __init__(self, make=None):
        self.make = make
        self._numpy = None

    def take(self, x):
        from . import _dlpack

        where, number = x.__dlpack_device__()
        if where in _dlpack.HOST:
            return self._host(x)
        if where not in _dlpack.CUDA:
            raise ValueError("arrays on devices of DLPack's type %d are not supported" % where)
        capsule = x.__dlpack__(stream=1)
        address, code, shape, strides, is_bool = _dlpack.tensor_of(capsule)
        if not _is_contiguous(shape, strides, 1):
            raise ValueError("the array is not contiguous")
        n = count_of(shape)
        return View(self, (x, capsule, is_bool), address if n else 0, code, n, shape, number, 0)

    def _host(self, x):
        view = numpy_kind().take(numpy_kind().numpy.from_dlpack(x))
        if self.make:
            self._numpy = self._numpy or _NumpyOf(self.make)
            view.kind = self._numpy
        return view

    def is_bool(self, view):
        return view.array[2]

    def unwritable(self, view, x):
        return "arrays of this library cannot be written"

    wait = _Interface.wait
    empty = _Interface.empty
    head = _Interface.head
    as_bool = _Interface.as_bool
    convert = _Interface.convert
    from_number = _Interface.from_number

    def result(self, array, context):
        context.synchronize()
        return self.make(array) if self.make else array


class _NumpyOf(_Numpy):
    """Arrays of another library on the CPU, which shares memory with numpy."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def result(self, array, context):
        return self.make(array)

    def from_number(self, number, code, device):
        return self.make(self.numpy.asarray(number, self.dtype_of(code)))


# ---- kinds by type ----

_kinds: dict = {}
_numpy = None


def numpy_kind():
    """The kind of numpy's arrays; imports numpy."""
    global _numpy
    if _numpy is None:
        try:
            _numpy = _Numpy()
        except ImportError:
            raise ImportError("numpy is needed for this argument") from None
    return _numpy


def _jax_result(array):
    import jax

    return (
        jax.dlpack.from_dlpack(array)
        if isinstance(array, DeviceArray)
        else jax.numpy.asarray(array)
    )


def _numba_result(array):
    from numba import cuda

    return cuda.as_cuda_array(array)


def _warp_result(array):
    import warp

    return warp.from_dlpack(array)


def _library_of(cls):
    """The name of the known library that defines the type or a base of it, or ""."""
    for base in cls.__mro__:
        name = (base.__module__ or "").partition(".")[0]
        if name in ("numpy", "cupy", "torch", "jax", "jaxlib", "numba", "warp"):
            return name
    return ""


# Types that are the same kind whatever the object. Other types are examined in each call: an array
# may have an interface only if it is in the memory of a device.
_PLAIN = (bytes, bytearray, memoryview, list, tuple, int, float, complex, DeviceArray)


def _find_kind(x):
    cls = type(x)
    library = _library_of(cls)
    if library == "numpy":
        kind = numpy_kind() if cls is numpy_kind().numpy.ndarray else _NumpyLike()
    elif library == "cupy" and hasattr(x, "data"):
        kind = _Cupy()
    elif library == "torch" and hasattr(x, "data_ptr"):
        kind = _Torch()
    elif library in ("jax", "jaxlib") and hasattr(x, "__dlpack__"):
        kind = _Dlpack(_jax_result)
    elif library == "numba" and hasattr(x, "__cuda_array_interface__"):
        kind = _Interface(_numba_result)
    elif library == "warp" and hasattr(x, "__dlpack__"):
        kind = _Dlpack(_warp_result)
    elif hasattr(x, "__cuda_array_interface__"):
        kind = _Interface()
    elif _has_buffer(x):
        kind = _Buffers()
    elif hasattr(cls, "__dlpack__"):
        kind = _Dlpack()
    elif hasattr(cls, "__array__") or isinstance(x, (list, tuple, range, int, float, complex)):
        kind = _NumpyLike()
    else:
        raise TypeError(
            "%s is not an array: it has no buffer, __cuda_array_interface__ or __dlpack__"
            % cls.__name__
        )
    if library or cls in _PLAIN or cls.__module__ == "array":
        _kinds[cls] = kind
    return kind


def _has_buffer(x):
    try:
        memoryview(x).release()
    except TypeError:
        return False
    except BufferError:
        return True
    return True


def take(x):
    """The View of an array argument."""
    try:
        kind = _kinds[type(x)]
    except KeyError:
        kind = _find_kind(x)
    return kind.take(x)


def take_all(first, **others):
    """Views of arguments that must be on the same device; None stays None."""
    views = [take(first)]
    for name, x in others.items():
        views.append(None if x is None else take_beside(views[0], x, name))
    return views


def take_each(first, **others):
    """As `take_all`, but None is an error."""
    view = take(first)
    return [view] + [take_beside(view, x, name) for name, x in others.items()]


def take_beside(first, x, name):
    """The View of an array that must be on the device of the view `first`."""
    view = take(x)
    if view.device != first.device:
        raise ValueError(
            "%s is on %s, the first array on %s"
            % (name, device_name(view.device), device_name(first.device))
        )
    if view.stream != first.stream:
        view.kind.wait(view)
    return view


def take_output(x, name="out"):
    """The View of an array that a call writes: contiguous, writable, and not a copy."""
    view = take(x)
    problem = view.kind.unwritable(view, x)
    if problem:
        raise ValueError("%s: %s" % (name, problem))
    return view
