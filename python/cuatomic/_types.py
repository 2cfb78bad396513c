# SPDX-License-Identifier: MIT
"""Element types: numbers of the library, names of numpy, and sizes."""

import struct
import sys

from . import _abi
from ._library import lib

NAMES = {
    _abi.CUA_I8: "int8",
    _abi.CUA_U8: "uint8",
    _abi.CUA_I16: "int16",
    _abi.CUA_U16: "uint16",
    _abi.CUA_I32: "int32",
    _abi.CUA_U32: "uint32",
    _abi.CUA_I64: "int64",
    _abi.CUA_U64: "uint64",
    _abi.CUA_F16: "float16",
    _abi.CUA_BF16: "bfloat16",
    _abi.CUA_F32: "float32",
    _abi.CUA_F64: "float64",
    _abi.CUA_COMPLEX_F32: "complex64",
    _abi.CUA_COMPLEX_F64: "complex128",
}
CODES = {name: code for code, name in NAMES.items()}
SIGNED = (_abi.CUA_I8, _abi.CUA_I16, _abi.CUA_I32, _abi.CUA_I64)
UNSIGNED = (_abi.CUA_U8, _abi.CUA_U16, _abi.CUA_U32, _abi.CUA_U64)
FLOATS = (_abi.CUA_F16, _abi.CUA_BF16, _abi.CUA_F32, _abi.CUA_F64)
# the types of keys, the narrowest first
KEYS = (
    _abi.CUA_I32,
    _abi.CUA_U32,
    _abi.CUA_I64,
    _abi.CUA_U64,
    _abi.CUA_F32,
    _abi.CUA_F64,
)
SIZES = {code: lib.cua_type_size(code) for code in NAMES}
# the letters of array.array, and those of struct
ARRAY_LETTERS = {_abi.CUA_F32: "f", _abi.CUA_F64: "d"}
for _letter in "bhilqBHILQ":
    _prefix = "int" if _letter.islower() else "uint"
    ARRAY_LETTERS[CODES["%s%d" % (_prefix, 8 * struct.calcsize(_letter))]] = _letter
LETTERS = {**ARRAY_LETTERS, _abi.CUA_F16: "e"}


def dtype_name(code):
    """The numpy name of an element type, "float32"."""
    return NAMES.get(code, "none")


def type_code(dtype):
    """The element type of a dtype: its name, or an object of numpy, ml_dtypes or PyTorch."""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = {int: "int64", float: "float64", complex: "complex128"}.get(dtype, dtype.__name__)
    else:
        # PyTorch's dtypes have no name, and the text "torch.float32"
        name = getattr(dtype, "name", None) or str(dtype).replace("torch.", "")
    if not getattr(dtype, "isnative", True):
        raise TypeError("%r: its bytes have another order than those of this machine" % (dtype,))
    if name not in CODES and isinstance(dtype, str) and "numpy" in sys.modules:
        name = _numpy_name(dtype)
    if name not in CODES:
        raise TypeError("%r is not an element type" % (dtype,))
    return CODES[name]


def _numpy_name(text):
    """The name of a dtype that numpy knows by another text, "f8"."""
    try:
        dtype = sys.modules["numpy"].dtype(text)
    except TypeError:
        return text
    return dtype.name if dtype.isnative else text
