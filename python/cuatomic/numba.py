# SPDX-License-Identifier: MIT
"""Functions of cuatomic for kernels of Numba.

A kernel passes addresses, numbers of 64 bits: `address` is the address of an element of an array,
and `DeviceView.address` is the address of a map, a buffer or cells. The object must exist until the
kernel has finished.

For K in u32, u64 and V in u32, u64, the types of the map's keys and values:

=============================================  ====================================================
``map_insert_K_V(view, key, value)``           inserts an absent key; `INSERTED`, `EXISTS`, `FULL`
``map_assign_K_V(view, key, value)``           sets the value of a key, or inserts it; the same
``map_add_K_V(view, key, value)``              adds to the value of a key, or inserts it; the same
``map_find_K_V(view, key, otherwise)``         the value of a key, or `otherwise`
``map_contains_K_V(view, key)``                1 or 0
``map_erase_K_V(view, key)``                   1, or 0 if the key was absent
``spinlock_trylock(lock)``                     1 if the lane holds the lock now, else 0; never waits
``spinlock_lock(lock)``                        waits until the lane holds the lock
``spinlock_unlock(lock)``                      releases the lock
``append_push_u32(view, item)``, ``_u64``      1, or 0 if the buffer is full
``atomic_add_cas_f32(address, v)``, ``_f64``   the former value; a sum in any order
``exact_add_f32(view, cell, v)``, ``_f64``     1, or 0 if the element is lost
=============================================  ====================================================

A lock is a ``uint32`` of device memory, 0 if it is free. Lanes of a warp that want the same lock
should not wait inside `spinlock_lock`, but retry::

    done = False
    while not done:
        if spinlock_trylock(lock):
            ...
            spinlock_unlock(lock)
            done = True

The map counts with signed keys and values too: the bits are the same. Numba needs the package
numba-cuda; its release 0.30 needs a numpy before 2.5.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from typing import List, Optional, Set

import numpy
from numba import cuda

try:
    from numba.cuda import cgutils, types
    from numba.cuda.core.errors import TypingError
    from numba.cuda.extending import intrinsic
except ImportError:
    from numba.core import cgutils, types
    from numba.core.errors import TypingError
    from numba.core.extending import intrinsic

from llvmlite import ir

from . import _abi

if not hasattr(cuda, "CUSource"):
    raise ImportError("cuatomic.numba: this Numba cannot link CUDA sources; install numba-cuda")
try:
    # numba-cuda 0.30 loads the module when it compiles the first kernel; numpy 2.5 lacks a name
    importlib.import_module("numba.cuda.np.arrayobj")
except ModuleNotFoundError:
    pass
except AttributeError as error:
    raise ImportError(
        "cuatomic.numba: this numba-cuda does not support numpy %s: %s" % (numpy.__version__, error)
    ) from None

__all__ = [
    "DeviceView",
    "EXISTS",
    "FULL",
    "INSERTED",
    "UNSUPPORTED",
    "address",
    "append_view",
    "exact_cells",
    "source",
]

_INCLUDE = re.compile(r"\s*#\s*include\s*[<\"](cuatomic[^>\"]*)[>\"]")
_CONDITION = re.compile(r"\s*#\s*(if|endif)")


def _expand(folder: str, name: str, seen: Set[str], lines: List[str]) -> None:
    """Appends a header, with the headers of cuatomic that it includes."""
    depth = -1 if name.endswith(".h") and not name.endswith(".tmpl.h") else 0
    with open(os.path.join(folder, name), encoding="utf-8") as text:
        for line in text:
            found = _INCLUDE.match(line)
            condition = _CONDITION.match(line)
            if condition:
                depth += 1 if condition.group(1) == "if" else -1
            if not found:
                lines.append(line)
            elif found.group(1).endswith(".tmpl.h"):
                _expand(folder, found.group(1), seen, lines)
            elif found.group(1) not in seen:
                # The compiler may skip a conditional part, so its headers do not count as seen.
                there = seen if depth == 0 else set(seen)
                there.add(found.group(1))
                _expand(folder, found.group(1), there, lines)
    lines.append("\n")


def source(include: Optional[str] = None) -> str:
    """The CUDA source of all functions, with the headers inside.

    NVRTC compiles it without any folder of headers, because Numba has no option for such a folder
    that leaves the user's configuration unchanged.

    Parameters
    ----------
    include : str, optional
        The folder of cuatomic.h. By default that of `cuatomic.get_include`.
    """
    if include is None:
        from cuatomic import get_include

        include = get_include()
    lines: List[str] = []
    seen: Set[str] = set()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numba_functions.cu")
    with open(path, encoding="utf-8") as text:
        for line in text:
            found = _INCLUDE.match(line)
            if not found:
                lines.append(line)
            elif found.group(1) not in seen:
                seen.add(found.group(1))
                _expand(include, found.group(1), seen, lines)
    return "".join(lines)


_code = cuda.CUSource(source(), name="cuatomic.cu")


def _declare(name: str, result: str, *arguments: str):
    signature = "%s(%s)" % (result, ", ".join(arguments))
    globals()[name] = cuda.declare_device(
        "cua_numba_" + name.replace("map_", "", 1), signature, link=_code
    )
    __all__.append(name)


for _k, _key in (("u32", "uint32"), ("u64", "uint64")):
    for _v, _value in (("u32", "uint32"), ("u64", "uint64")):
        _kind = "_%s_%s" % (_k, _v)
        for _operation in ("insert", "assign", "add"):
            _declare("map_" + _operation + _kind, "int32", "uint64", _key, _value)
        _declare("map_find" + _kind, _value, "uint64", _key, _value)
        _declare("map_contains" + _kind, "int32", "uint64", _key)
        _declare("map_erase" + _kind, "int32", "uint64", _key)
    _declare("append_push_" + _k, "int32", "uint64", _key)
for _operation in ("trylock", "lock", "unlock"):
    _declare("spinlock_" + _operation, "int32", "uint64")
for _t, _float in (("f32", "float32"), ("f64", "float64")):
    _declare("atomic_add_cas_" + _t, _float, "uint64", _float)
    _declare("exact_add_" + _t, "int32", "uint64", "uint64", _float)

#: Results of the writes to a map.
INSERTED, EXISTS, FULL = 1, 2, 3
#: The result of a write if the map has other sizes, or pairs of 16 bytes that need CUDA 12.4.
UNSUPPORTED = 5


@intrinsic
def address(typingctx, array, index):
    """In a kernel: the address of an element of a 1-D array, in any memory, as a ``uint64``."""
    if not isinstance(array, types.Array) or array.ndim != 1:
        raise TypingError("cuatomic.numba.address: the first argument is a 1-D array")
    if not isinstance(index, types.Integer):
        raise TypingError("cuatomic.numba.address: the index is an integer")

    def codegen(context, builder, signature, args):
        made = context.make_array(array)(context, builder, args[0])
        at = context.cast(builder, args[1], index, types.intp)
        element = cgutils.get_item_pointer(context, builder, array, made, [at], wraparound=False)
        return builder.ptrtoint(element, ir.IntType(64))

    return types.uint64(array, index), codegen


class DeviceView:
    """A view in device memory, for kernels of Numba.

    Parameters
    ----------
    view : object
        A `HashMap` or any object with a ``device_view``, or a view itself: a ctypes structure. The
        view of a map is valid until the map grows, is resized or is closed.
    """

    def __init__(self, view: object) -> None:
        self._owner = view
        bits = bytes(getattr(view, "device_view", view))
        self._memory = cuda.to_device(numpy.frombuffer(bits, numpy.uint8))

    @property
    def address(self) -> int:
        """int: the address of the view, the argument ``view`` of the functions."""
        return self._memory.__cuda_array_interface__["data"][0]


class _ExactCells(ctypes.Structure):
    _fields_ = [
        ("cell", ctypes.c_uint64),
        ("cells", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("spills", _abi.cua_append_view),
        ("unit", ctypes.c_int32),
        ("layout", ctypes.c_uint32),
    ]


def _device_array(array: object, what: str):
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError("cuatomic.numba: %s is not an array of a GPU" % what)
    return interface["data"][0], int(numpy.prod(interface["shape"])), interface["typestr"]


def append_view(items: object, cursor: object) -> DeviceView:
    """An append buffer of two arrays of the device.

    Parameters
    ----------
    items : 1-D array of items of 4 or 8 bytes
        The buffer; its length is the capacity.
    cursor : array of a uint64
        The number of pushed items, stored or not. A kernel begins with 0.
    """
    at, n, kind = _device_array(items, "items")
    counter, one, counter_kind = _device_array(cursor, "cursor")
    if one != 1 or counter_kind[1:] != "u8":
        raise TypeError("cuatomic.numba: cursor is an array of a single uint64")
    view = _abi.cua_append_view(at, counter, n, numpy.dtype(kind).itemsize, 1, 0)
    made = DeviceView(view)
    made._owner = (items, cursor)
    return made


def exact_cells(cells: object, dtype: str = "float64", unit: Optional[int] = None) -> DeviceView:
    """Exact cells, sums that do not depend on the order of the additions.

    Parameters
    ----------
    cells : array of uint64
        Zeros: 3 numbers a cell for float64, 2 for float32.
    dtype : str
        float64 or float32.
    unit : int, optional
        The power of two of the lowest bit; by default -110, or -60 for float32.
    """
    at, n, kind = _device_array(cells, "cells")
    words, usual = {"float64": (3, -110), "float32": (2, -60)}[numpy.dtype(dtype).name]
    if kind[1:] != "u8" or n % words:
        raise TypeError("cuatomic.numba: cells is an array of %d uint64 for each cell" % words)
    view = _ExactCells(
        at, n // words, 0, _abi.cua_append_view(), usual if unit is None else unit, 1
    )
    made = DeviceView(view)
    made._owner = cells
    return made
