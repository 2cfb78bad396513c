# SPDX-License-Identifier: MIT
"""DLPack's tensors, read and made by ctypes."""

import ctypes

from . import _abi

HOST = (1, 3)
CUDA = (2, 13)
_NAME = b"dltensor"
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

_TYPES = {
    (_INT, 8): _abi.CUA_I8,
    (_UINT, 8): _abi.CUA_U8,
    (_BOOL, 8): _abi.CUA_U8,
    (_INT, 16): _abi.CUA_I16,
    (_UINT, 16): _abi.CUA_U16,
    (_INT, 32): _abi.CUA_I32,
    (_UINT, 32): _abi.CUA_U32,
    (_INT, 64): _abi.CUA_I64,
    (_UINT, 64): _abi.CUA_U64,
    (_FLOAT, 16): _abi.CUA_F16,
    (_BFLOAT, 16): _abi.CUA_BF16,
    (_FLOAT, 32): _abi.CUA_F32,
    (_FLOAT, 64): _abi.CUA_F64,
    (_COMPLEX, 64): _abi.CUA_COMPLEX_F32,
    (_COMPLEX, 128): _abi.CUA_COMPLEX_F64,
}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_api = ctypes.pythonapi
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)


def tensor_of(capsule):
    """(address, element type, shape, strides in elements or None, is bool) of an unused capsule."""
    managed = ctypes.cast(_get(capsule, _NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    code = _TYPES.get((tensor.type_code, tensor.bits)) if tensor.lanes == 1 else None
    if code is None:
        raise TypeError(
            "elements of DLPack's type %d with %d bits are not supported"
            % (tensor.type_code, tensor.bits)
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    return address, code, shape, strides, tensor.type_code == _BOOL


# Exported tensors by the address of their struct, until their deleter runs.
_exported: dict = {}


@_Deleter
def _release(address, pop=_exported.pop):
    pop(address, None)


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_get_raw = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy_capsule(raw, is_valid=_is_valid, get=_get_raw, name=_NAME, pop=_exported.pop):
    """The destructor of a capsule. A capsule that a consumer has taken has another name."""
    if is_valid(raw, name):
        pop(get(raw, name), None)


# Consumers may call both while the interpreter exits, after this module is gone.
for _thunk in (_release, _destroy_capsule):
    _api.Py_IncRef(ctypes.py_object(_thunk))


def capsule_of(array, code):
    """A capsule of a DeviceArray, which keeps the array alive."""
    kind, bits = next(
        key
        for key, value in _TYPES.items()
        if value == code and (key[0] == _BOOL) == array._is_bool
    )
    managed = _Managed()
    ndim = len(array.shape)
    shape = (ctypes.c_int64 * max(ndim, 1))(*array.shape)
    tensor = managed.tensor
    tensor.data = array.ptr
    tensor.device_type, tensor.device_id = array.__dlpack_device__()
    tensor.ndim = ndim
    tensor.type_code, tensor.bits, tensor.lanes = kind, bits, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_release, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, array)
    return _new(address, _NAME, ctypes.cast(_destroy_capsule, ctypes.c_void_p))
