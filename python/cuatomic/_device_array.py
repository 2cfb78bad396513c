# SPDX-License-Identifier: MIT
"""Arrays in the memory of a CUDA device, for libraries that make none."""

import ctypes
import os
import struct
import threading

from . import _abi
from ._context import Context, device_name
from ._errors import check
from ._library import lib
from ._types import LETTERS, SIZES, dtype_name

INTERFACE_CODES = {
    "b1": _abi.CUA_U8,
    "i1": _abi.CUA_I8,
    "u1": _abi.CUA_U8,
    "i2": _abi.CUA_I16,
    "u2": _abi.CUA_U16,
    "i4": _abi.CUA_I32,
    "u4": _abi.CUA_U32,
    "i8": _abi.CUA_I64,
    "u8": _abi.CUA_U64,
    "f2": _abi.CUA_F16,
    "f4": _abi.CUA_F32,
    "f8": _abi.CUA_F64,
    "c8": _abi.CUA_COMPLEX_F32,
    "c16": _abi.CUA_COMPLEX_F64,
}
_TYPESTRS = {code: typestr for typestr, code in INTERFACE_CODES.items() if typestr != "b1"}


def count_of(shape):
    """The number of elements of a shape, which another library may have made."""
    count = 1
    for length in shape:
        if length < 0:
            raise ValueError("the shape %r has a negative length" % (tuple(shape),))
        count *= length
    if count >= 1 << 62:
        raise ValueError("the shape %r has too many elements" % (tuple(shape),))
    return count


class _Memory:
    """The memory of a device. Arrays may be freed in any thread, and a context is for one thread at
    a time, so a lock protects this context."""

    _all: dict = {}
    _lock = threading.Lock()

    def __init__(self, number):
        self.context = Context(device_name(number))
        # the collector may free an array while this thread allocates another
        self.lock = threading.RLock()
        self._free = lib.cua_free

    @classmethod
    def of(cls, number):
        with cls._lock:
            memory = cls._all.get(number)
            if memory is None or not memory.context._alive:
                memory = cls._all[number] = cls(number)
            return memory

    def allocate(self, count, size):
        pointer = ctypes.c_void_p()
        with self.lock:
            status = lib.cua_alloc(self.context._handle, count, size, ctypes.byref(pointer))
        check(status, "DeviceArray")
        return pointer.value

    def free(self, pointer):
        if self.context._alive and self.context._handle:
            with self.lock:
                self._free(self.context._handle, pointer)

    def write(self, pointer, source):
        with self.lock:
            status = lib.cua_copy(self.context._handle, pointer, source, len(source))
        check(status, "DeviceArray")

    def synchronize(self):
        with self.lock:
            status = lib.cua_context_synchronize(self.context._handle)
        check(status, "DeviceArray")


def _forget_parent():
    """The memory of the parent is not that of a child process."""
    _Memory._all, _Memory._lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_forget_parent)


class DeviceArray:
    """Memory on a CUDA device, as results for arrays of a library that makes none.

    It has ``__cuda_array_interface__`` and ``__dlpack__``, so other libraries take it without a
    copy. Calls return it; programs do not make it.

    Attributes
    ----------
    shape : tuple of int
    dtype : str
        The numpy name of the element type.
    device : str
    ptr : int
        The address of the first element.
    """

    def __init__(self, shape, code, device):
        self.shape = tuple(shape)
        self._code = code
        self._is_bool = False
        self.device = device_name(device)
        self._number = device
        self._memory = _Memory.of(device)
        self.ptr = self._memory.allocate(max(count_of(self.shape), 1), SIZES[code])

    def __del__(self):
        pointer, self.ptr = getattr(self, "ptr", None), None
        if pointer:
            self._memory.free(pointer)

    def __reduce_ex__(self, protocol):
        raise TypeError("a DeviceArray cannot be copied or pickled")

    @property
    def dtype(self):
        return "bool" if self._is_bool else dtype_name(self._code)

    def _head(self, n, context):
        """The first n rows, in less memory if they are less than half of the array."""
        before, self.shape = self.shape[0], (n,) + self.shape[1:]
        if 2 * n >= before:
            return self
        part = DeviceArray(self.shape, self._code, self._number)
        size = count_of(self.shape) * SIZES[self._code]
        check(lib.cua_copy(context._handle, part.ptr, self.ptr, size), "DeviceArray")
        return part

    def _write(self, number):
        """Stores a number in an array of one element."""
        if self._code == _abi.CUA_BF16:
            # such a number is a float whose lower half is 0
            source = struct.pack("<f", number)[2:]
        else:
            source = struct.pack("<" + LETTERS[self._code], number)
        self._memory.write(self.ptr, source)

    @property
    def __cuda_array_interface__(self):
        if self._code not in _TYPESTRS:
            raise AttributeError("the interface has no type %s" % self.dtype)
        order = "|" if SIZES[self._code] == 1 else "<"
        return {
            "shape": self.shape,
            "typestr": "|b1" if self._is_bool else order + _TYPESTRS[self._code],
            "data": (self.ptr, False),
            "version": 3,
            "strides": None,
            # the legacy default stream: calls in other streams have waited
            "stream": 1,
        }

    def __dlpack_device__(self):
        return (2, self._number)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from . import _dlpack

        if copy or (dl_device not in (None, self.__dlpack_device__())):
            raise BufferError("a DeviceArray gives no copy of itself")
        self._memory.synchronize()
        return _dlpack.capsule_of(self, self._code)

    def __repr__(self):
        return "DeviceArray(shape=%r, dtype=%s, device=%s)" % (self.shape, self.dtype, self.device)
