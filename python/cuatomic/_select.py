# SPDX-License-Identifier: MIT
"""Elements that a condition selects, membership, and joins."""

from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

from . import _abi
from ._arrays import take, take_each
from ._errors import failed
from ._library import lib
from ._types import FLOATS, KEYS, dtype_name
from ._typing import Array, ArrayLike
from ._values import (
    fits,
    from_numbers,
    holds,
    int_range,
    is_list,
    numbers_of,
    pack,
    plain,
)

_COMPARES = {
    "<": _abi.CUA_LT,
    "<=": _abi.CUA_LE,
    "==": _abi.CUA_EQ,
    "!=": _abi.CUA_NE,
    ">=": _abi.CUA_GE,
    ">": _abi.CUA_GT,
}
_KEY_TYPES = {
    _abi.CUA_I8: _abi.CUA_I32,
    _abi.CUA_I16: _abi.CUA_I32,
    # older versions of PyTorch lack U32
    _abi.CUA_U8: _abi.CUA_I32,
    _abi.CUA_U16: _abi.CUA_I32,
    _abi.CUA_F16: _abi.CUA_F32,
    _abi.CUA_BF16: _abi.CUA_F32,
}
_HOWS = {"inner": _abi.CUA_JOIN_INNER, "left": _abi.CUA_JOIN_LEFT}


class Selected(NamedTuple):
    """The result of `select` with ``indexes=True``."""

    values: Array
    indexes: Array


class Partitioned(NamedTuple):
    """The result of `partition`."""

    values: Array
    count: int  # type: ignore[assignment]


class Joined(NamedTuple):
    """The result of `join`."""

    left: Array
    right: Array


def flat(view, name):
    """The view of a 1-D array; another shape is an error."""
    if len(view.shape) != 1:
        raise ValueError("%s has %d dimensions, not 1" % (name, len(view.shape)))
    return view


def _comparison(condition, value, code):
    """(number of the comparison, value) for elements of a type."""
    number = plain(value)
    if code > _abi.CUA_F64:
        raise TypeError("elements of %s are not compared" % dtype_name(code))
    if code not in FLOATS:
        condition, number = _whole_comparison(condition, number, code)
    return _COMPARES[condition], pack([number], code)


def _whole_comparison(condition, number, code):
    """The comparison with an element of a type of integers that is true for the same elements."""
    least, greatest = int_range(code)
    never, always = ("<", least), (">=", least)
    if condition in ("==", "!="):
        if fits(number, code):
            return condition, int(number)
        return never if condition == "==" else always
    if number != number:
        return never
    is_upper = condition in ("<", "<=")
    if number > greatest:
        return always if is_upper else never
    if number < least:
        return never if is_upper else always
    return condition, (math.ceil if condition in ("<", ">=") else math.floor)(number)


def _condition(x, condition, value):
    """(views to keep, flags or None, number of the comparison, value or None)."""
    if isinstance(condition, str):
        if condition not in _COMPARES:
            known = " ".join(_COMPARES)
            raise ValueError("condition %r: choose flags or one of %s" % (condition, known))
        if value is None:
            raise TypeError("the condition %r needs a value" % condition)
        view = take(x)
        return (view, None, *_comparison(condition, value, view.code))
    if value is not None:
        raise TypeError("a value is for a condition like '<', not for flags")
    view, flags = take_each(x, condition=condition)
    if flags.code != _abi.CUA_U8:
        raise TypeError("flags are bool, not %s" % dtype_name(flags.code))
    if flags.shape != view.shape:
        raise ValueError("x has the shape %r, flags %r" % (tuple(view.shape), tuple(flags.shape)))
    return view, flags, 0, None


def _filter(x, condition, value, ordered, indexes, partition):
    view, flags, compare, number = _condition(x, condition, value)
    context = view.context()
    options = _abi.cua_filter_options(
        ctypes.sizeof(_abi.cua_filter_options), bool(ordered), partition
    )
    values, address = view.empty((view.n,), view.code)
    places = None
    if flags is not None:
        options.flags = flags.ptr
    if indexes:
        places, options.indexes = view.empty((view.n,), _abi.CUA_I64)
        options.index_type = _abi.CUA_U64
    count = ctypes.c_uint64()
    status = 0
    if view.n:
        status = lib.cua_filter_array(
            context.handle,
            ctypes.byref(options),
            view.code,
            view.n,
            view.ptr,
            compare,
            number,
            view.n,
            address,
            ctypes.byref(count),
        )
    if status:
        raise failed(
            status, "%s of %s" % ("partition" if partition else "select", dtype_name(view.code))
        )
    kept = view.n if partition else count.value
    values = view.rows(context, values, kept, view)
    return values, None if places is None else view.rows(context, places, kept), count.value


def select(
    x: ArrayLike,
    condition: str | ArrayLike,
    value: object = None,
    *,
    ordered: bool = True,
    indexes: bool = False,
) -> Array | Selected:
    """The elements that flags or a comparison select: ``x[flags]``, or ``x[x < value]``.

    Parameters
    ----------
    x : array of any shape
        The elements, in the order of the flat array.
    condition : array of bool of the shape of x, or {"<", "<=", "==", "!=", ">=", ">"}
        Flags, or how an element compares with the value. Bytes are flags too: 0 rejects.
    value : number
        The right side of the comparison. Integers are compared with it exactly, also with a
        fraction or an infinity. For floats it is rounded to the type of x.
    ordered : bool
        False: the selected elements may have any order, and another in each call.
    indexes : bool
        Also return the indexes of the selected elements in the flat array.

    Returns
    -------
    array, or a named tuple (values, indexes)
        Indexes are int64.

    Raises
    ------
    ValueError
        The shapes differ, or the condition is not known.

    Notes
    -----
    NaN compares as in Python: only "!=" is true. -0 equals 0.

    See Also
    --------
    partition, isin
    """
    values, places, _ = _filter(x, condition, value, ordered, indexes, 0)
    return Selected(values, places) if indexes else values


def partition(
    x: ArrayLike, condition: str | ArrayLike, value: object = None, *, ordered: bool = True
) -> Partitioned:
    """Moves the elements that flags or a comparison select before all other elements.

    Parameters
    ----------
    x, condition, value
        As in `select`.
    ordered : bool
        Whether the selected and the other elements each keep their order.

    Returns
    -------
    named tuple (values, count)
        ``values[:count]`` are the selected elements. count is an int.
    """
    values, _, count = _filter(x, condition, value, ordered, False, 1)
    return Partitioned(values, count)


def key_view(view):
    """The view of elements that become 32 bits wide if they have less."""
    return view.converted(_KEY_TYPES.get(view.code, view.code))


def _key_pair(a, b, names):
    """Views of two arrays of keys. After small types are widened, the types are the same."""
    given, other = take_each(a, **{names[1]: b})
    x, y = key_view(given), key_view(other)
    if x.code != y.code:
        kinds = dtype_name(given.code), dtype_name(other.code)
        raise TypeError("%s is %s, %s is %s" % (names[0], kinds[0], names[1], kinds[1]))
    return x, y


def _members(x, values):
    """Views of elements and of values as keys of a type that holds both."""
    given, other = take_each(x, values=values)
    for code in (_KEY_TYPES.get(given.code, given.code),) + KEYS:
        if holds(code, given.code) and (holds(code, other.code) or not other.n):
            return given.converted(code), other.converted(code)
    raise TypeError(
        "x is %s, values are %s, and no type holds both: convert values with astype"
        % (dtype_name(given.code), dtype_name(other.code))
    )


def isin(x: ArrayLike, values: ArrayLike, *, invert: bool = False) -> Array:
    """Whether each element of x is among the values, like ``numpy.isin``.

    Parameters
    ----------
    x : array of any shape
        Integers, floats or bool.
    values : array, or a list, tuple, range or set of numbers
        An array of another type than x is converted, or x is, if that rounds no element. A number
        that the type of x does not hold exactly equals no element.
    invert : bool
        Whether the elements that are not among the values are found.

    Returns
    -------
    array of bool of the shape of x

    Raises
    ------
    TypeError
        No type holds the elements of both arrays, for example int64 and uint64.

    Notes
    -----
    Unlike with ``numpy.isin``, all NaN are equal. -0 equals 0.
    """
    if is_list(values):
        keys = take(x)
        kept = keys.code
        context = keys.context()
        keys = key_view(keys)
        numbers = [number for number in numbers_of(values) if fits(number, kept)]
        array, address = from_numbers(keys, context, numbers, keys.code)
        count = len(numbers)
    else:
        keys, array = _members(x, values)
        address, count = array.ptr, array.n
        context = keys.context()
    options = _abi.cua_is_in_options(ctypes.sizeof(_abi.cua_is_in_options), bool(invert))
    out, place = keys.empty(keys.shape, _abi.CUA_U8)
    status = lib.cua_is_in(
        context.handle,
        ctypes.byref(options),
        keys.code,
        keys.n,
        keys.ptr,
        count,
        address if count else None,
        place,
    )
    if status:
        raise failed(status, "isin of %s" % dtype_name(keys.code))
    return keys.result(context, keys.kind.as_bool(out))


def join(left: ArrayLike, right: ArrayLike, *, how: str = "inner") -> Joined:
    """The pairs of rows with equal keys in two arrays.

    Parameters
    ----------
    left, right : 1-D arrays of the same type
        Keys: integers, floats or bool. The right array should be the smaller.
    how : {"inner", "left"}
        "left": a row of the left array without a match is in a pair with the right row -1.

    Returns
    -------
    named tuple (left, right)
        ``left[i]`` and ``right[i]`` are the row numbers of pair i, int64. Pairs are in the order of
        the left row, then of the right row.

    Notes
    -----
    -0 equals 0, and all NaN are equal.

    Examples
    --------
    >>> cuatomic.join(np.array([5, 8, 5]), np.array([7, 5]))
    Joined(left=array([0, 2]), right=array([1, 1]))
    """
    if how not in _HOWS:
        raise ValueError("how=%r: choose %s" % (how, " or ".join(map(repr, _HOWS))))
    x, y = _key_pair(left, right, ("left", "right"))
    flat(x, "left")
    flat(y, "right")
    context = x.context()
    options = _abi.cua_join_options(ctypes.sizeof(_abi.cua_join_options), _HOWS[how], _abi.CUA_U64)
    pairs = ctypes.c_uint64(x.n)
    capacity = -1
    while capacity < pairs.value:
        capacity = pairs.value
        lefts, left_address = x.empty((capacity,), _abi.CUA_I64)
        rights, right_address = x.empty((capacity,), _abi.CUA_I64)
        status = lib.cua_join(
            context.handle,
            ctypes.byref(options),
            x.code,
            x.n,
            x.ptr,
            y.n,
            y.ptr,
            capacity,
            left_address,
            right_address,
            ctypes.byref(pairs),
        )
        if status:
            raise failed(status, "join of %s" % dtype_name(x.code))
    return Joined(x.rows(context, lefts, pairs.value), x.rows(context, rights, pairs.value))
