# SPDX-License-Identifier: MIT
"""Combines the elements of an array into the targets that their indexes name."""

from __future__ import annotations

import ctypes
import numbers
from typing import NamedTuple

from . import _abi
from ._arrays import View, take, take_beside
from ._errors import check, failed
from ._library import lib
from ._reduce import mode_number
from ._select import key_view
from ._types import FLOATS, SIZES, dtype_name, type_code
from ._typing import Array, ArrayLike, DType, Mode
from ._values import fits, holds, is_empty_list, pack, plain, sum_code

_OPS = {
    "add": _abi.CUA_SCATTER_ADD,
    "min": _abi.CUA_SCATTER_MIN,
    "max": _abi.CUA_SCATTER_MAX,
    "mean": _abi.CUA_SCATTER_MEAN,
}
_MOST_WIDTH = 4096


def integers(view, name, given):
    """The view of integers; other elements are an error. An empty list is empty integers."""
    if is_empty_list(given):
        return view.converted(_abi.CUA_I64)
    if view.code > _abi.CUA_U64 or view.is_bool():
        kind = "bool" if view.is_bool() else dtype_name(view.code)
        raise TypeError("%s is %s, not integers" % (name, kind))
    return view


def index_view(view, name, given):
    """The view of indexes, of a type of indexes of the library."""
    return key_view(integers(view, name, given))


def _new_code(op, code, dtype):
    """The type of new targets."""
    if dtype is not None:
        return type_code(dtype)
    if code in FLOATS or op in ("min", "max"):
        return code
    if op == "mean":
        return _abi.CUA_F64
    return sum_code(code)


def _product(shape):
    count = 1
    for length in shape:
        count *= length
    return count


def _is_number(x):
    return isinstance(x, (int, float)) or getattr(x, "shape", None) == ()


def _number_code(x, dtype):
    """The type of the elements that a number stands for."""
    if dtype is not None:
        return type_code(dtype)
    if hasattr(x, "dtype"):
        return take(x).code
    return _abi.CUA_I64 if isinstance(x, int) else _abi.CUA_F64


def _filled(beside, shape, code, x):
    """The view of a new array with a number in every element, of the kind of another array."""
    number = plain(x)
    if code not in FLOATS and not fits(number, code):
        raise TypeError("x=%r is not a value of %s" % (number, dtype_name(code)))
    array, address = beside.empty(shape, code)
    n = _product(shape)
    if n:
        context = beside.context()
        check(lib.cua_fill(context.handle, address, n, SIZES[code], pack([number], code)), "x")
    return View(beside.kind, array, address, code, n, shape, beside.device, beside.stream)


def _combinable(op, x, code):
    """The view of elements of a type that the library combines into targets of a type."""
    if max(x.code, code) > _abi.CUA_F64 or (op == "mean" and x.code not in FLOATS):
        return x
    if x.code in FLOATS and holds(code, x.code):
        return x
    if holds(code, x.code):
        return x.converted(code)
    names = dtype_name(x.code), dtype_name(code)
    raise TypeError("x is %s, and %s does not hold all its values: convert x with astype" % names)


class _Targets(NamedTuple):
    array: Array
    address: int
    code: int
    rows: int


def _call(context, options, op, targets, index, x):
    """Combines rows into targets; the options count the skipped indexes."""
    options.struct_size = ctypes.sizeof(options)
    options.result_type = targets.code
    options.width = _product(x.shape[len(index.shape) :])
    if options.width > _MOST_WIDTH:
        raise ValueError("rows of %d elements are wider than %d" % (options.width, _MOST_WIDTH))
    if not options.width:
        return
    status = lib.cua_scatter(
        context.handle,
        ctypes.byref(options),
        _OPS[op],
        index.code,
        x.code,
        index.n,
        index.ptr,
        x.ptr,
        targets.rows,
        targets.address,
    )
    if status:
        names = op, dtype_name(x.code), dtype_name(targets.code)
        raise failed(status, "scatter %s of %s into %s" % names)


def scatter(
    out: ArrayLike | int,
    index: ArrayLike,
    x: ArrayLike,
    op: str = "add",
    *,
    mode: Mode = "exact",
    overwrite: bool = False,
    skipped: bool = False,
    dtype: DType = None,
) -> Array | tuple[Array, int]:
    """Combines each row of x into the row of out that its index names, with the same bits always.

    Parameters
    ----------
    out : array of shape (m, ...), or int
        The targets, written in place. A number m of rows makes a new array.
    index : array of integers
        The numbers of rows of out. A row whose index is negative or at least m is skipped.
    x : array of the shape ``index.shape + out.shape[1:]``, or a number
        Rows of at most 4096 elements. A number stands for an array of equal elements.
    op : {"add", "min", "max", "mean"}
    mode : {"exact", "fast", "fixed"}
        "exact", and "fixed" is the same: each sum of floats is the true sum of the old value and
        the elements, rounded once, so it depends on no order. "fast": sums may differ from run to
        run in their last bits.
    overwrite : bool
        Whether the old values of out are ignored and every target is written: without elements 0
        for "add", nan for "mean", the greatest value of the type for "min" and the least for "max".
        A new array is always written so.
    skipped : bool
        Also return the number of skipped indexes. The call waits for it.
    dtype : optional
        The type of a new array. The default is that of x; int64 or uint64 for sums and float64 for
        means of integers.

    Returns
    -------
    out, or (out, number of skipped indexes)

    Raises
    ------
    TypeError
        An index is no integer, or the type of out does not hold all values of the type of x.
    ValueError
        The shapes do not fit, or out is not contiguous, read-only or overlaps another array.

    Notes
    -----
    Sums of integers are modulo the range of the type of out. "min" and "max" ignore NaN. A mean
    replaces the old value of its target, unless the target has no elements.

    Examples
    --------
    >>> cuatomic.scatter_add(4, np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 4., 0.])
    """
    if op not in _OPS:
        raise ValueError("op=%r: choose %s" % (op, " or ".join(map(repr, _OPS))))
    options = _abi.cua_scatter_options(mode=mode_number(mode), overwrite=bool(overwrite))
    count = ctypes.c_uint64()
    if skipped:
        options.skipped = ctypes.addressof(count)
    if isinstance(out, numbers.Integral) and not isinstance(out, bool):
        out = _scatter_new(out, index, x, op, options, dtype)
    else:
        if dtype is not None:
            raise TypeError("dtype is for a new array: out is one already")
        _scatter_into(out, index, x, op, options)
    return (out, count.value) if skipped else out


def _scatter_into(out, index, x, op, options):
    targets = take(out)
    problem = targets.kind.unwritable(targets, out)
    if problem:
        raise ValueError("out: " + problem)
    if targets.is_bool():
        raise TypeError("out is bool, not numbers")
    if not targets.shape:
        raise ValueError("out has no dimension")
    places = index_view(take_beside(targets, index, "index"), "index", index)
    needed = tuple(places.shape) + tuple(targets.shape[1:])
    if _is_number(x):
        values = _filled(targets, needed, targets.code, x)
    else:
        values = take_beside(targets, x, "x")
        if tuple(values.shape) != needed:
            raise ValueError("x has the shape %r, not %r" % (tuple(values.shape), needed))
        values = _combinable(op, values, targets.code)
    context = targets.context()
    made = _Targets(targets.array, targets.ptr, targets.code, targets.shape[0])
    _call(context, options, op, made, places, values)
    targets.result(context, targets.array)


def _scatter_new(targets, index, x, op, options, dtype):
    targets = int(targets)
    if targets < 0:
        raise ValueError("out=%d: the number of rows is negative" % targets)
    if targets >> 48:
        raise ValueError("out=%d: more rows than memory can hold" % targets)
    if _is_number(x):
        places = index_view(take(index), "index", index)
        values = _filled(places, tuple(places.shape), _number_code(x, dtype), x)
    else:
        values = take(x)
        places = index_view(take_beside(values, index, "index"), "index", index)
    shape, rows = tuple(values.shape), tuple(places.shape)
    if shape[: len(rows)] != rows:
        raise ValueError("index has the shape %r, x %r" % (rows, shape))
    code = _new_code(op, values.code, dtype)
    values = _combinable(op, values, code)
    out, address = values.empty((targets,) + shape[len(rows) :], code)
    options.overwrite = 1
    context = values.context()
    _call(context, options, op, _Targets(out, address, code, targets), places, values)
    return values.result(context, out)


def scatter_add(
    out: ArrayLike | int,
    index: ArrayLike,
    x: ArrayLike,
    *,
    mode: Mode = "exact",
    skipped: bool = False,
    dtype: DType = None,
) -> Array | tuple[Array, int]:
    """``out[index[i]] += x[i]`` for each i: `scatter` with the operation "add".

    The result has the same bits always, on a GPU too. numpy has ``add.at``, PyTorch
    ``index_add_``. Uses are the gradient of an embedding, the deposit of particles on a grid, and
    the assembly of finite elements.
    """
    return scatter(out, index, x, "add", mode=mode, skipped=skipped, dtype=dtype)
