# SPDX-License-Identifier: MIT
"""Distinct keys, and reductions of the rows of each key, run or segment."""

from __future__ import annotations

import collections.abc
import ctypes
import operator
from typing import Mapping, NamedTuple

from . import _abi
from ._arrays import take, take_beside, take_each
from ._context import CPU
from ._errors import failed
from ._library import lib
from ._reduce import WIDER, mode_number
from ._scatter import index_view
from ._select import flat, key_view
from ._types import FLOATS, dtype_name, type_code
from ._typing import Array, ArrayLike, DType, Mode
from ._values import sum_code

_ORDERS = {
    "first": _abi.CUA_KEY_ORDER_FIRST,
    "sorted": _abi.CUA_KEY_ORDER_SORTED,
    "any": _abi.CUA_KEY_ORDER_ANY,
}
_AGGREGATES = {
    "count": _abi.CUA_AGGREGATE_COUNT,
    "sum": _abi.CUA_AGGREGATE_SUM,
    "min": _abi.CUA_AGGREGATE_MIN,
    "max": _abi.CUA_AGGREGATE_MAX,
    "mean": _abi.CUA_AGGREGATE_MEAN,
    "var": _abi.CUA_AGGREGATE_VARIANCE,
    "first": _abi.CUA_AGGREGATE_FIRST,
    "last": _abi.CUA_AGGREGATE_LAST,
}
_OPS = {"sum": _abi.CUA_REDUCE_SUM, "min": _abi.CUA_REDUCE_MIN, "max": _abi.CUA_REDUCE_MAX}
_SMALL = 1 << 14


def _guess(view):
    """The first capacity for an unknown number of groups."""
    if view.kind.is_lazy(view.device):
        return view.n
    return min(view.n, max(_SMALL, view.n // 8))


class _Retry:
    """Capacities until all groups fit."""

    def __init__(self, view):
        self.count = ctypes.c_uint64(_guess(view))
        self._most = view.n

    def __iter__(self):
        capacity = -1
        while capacity < self.count.value:
            capacity = min(self.count.value, self._most)
            yield capacity


def _sorts(view, is_sorted):
    """Whether the array's library sorts the groups. That is faster than a call in the order of the
    keys, because order "any" is, and there are fewer groups than rows."""
    return is_sorted and view.device != CPU and view.kind.sorts(view.code)


def _sorted_groups(view, arrays, likes):
    """The keys, arrays[0], in ascending order, the elements of the other arrays in the order of
    their keys, and the rank of each key."""
    kind = view.kind
    index = kind.argsort(arrays[0])
    arrays = [kind.gather(array, index) for array in arrays]
    return _like(kind, arrays, likes), kind.argsort(index)


def _rows(view, context, arrays, likes, n):
    return [view.rows(context, array, n, like) for array, like in zip(arrays, likes)]


def _like(kind, arrays, likes):
    return [
        array if like is None else kind.as_like(array, like) for array, like in zip(arrays, likes)
    ]


# ---- unique ----


class UniqueIndex(NamedTuple):
    """The result of `unique` with ``return_index=True``."""

    values: Array
    indices: Array


class UniqueInverse(NamedTuple):
    """The result of `unique` with ``return_inverse=True``."""

    values: Array
    inverse: Array


class UniqueCounts(NamedTuple):
    """The result of `unique` with ``return_counts=True``."""

    values: Array
    counts: Array


class UniqueIndexInverse(NamedTuple):
    """The result of `unique` with ``return_index=True`` and ``return_inverse=True``."""

    values: Array
    indices: Array
    inverse: Array


class UniqueIndexCounts(NamedTuple):
    """The result of `unique` with ``return_index=True`` and ``return_counts=True``."""

    values: Array
    indices: Array
    counts: Array


class UniqueInverseCounts(NamedTuple):
    """The result of `unique` with ``return_inverse=True`` and ``return_counts=True``."""

    values: Array
    inverse: Array
    counts: Array


class UniqueAll(NamedTuple):
    """The result of `unique` with all of its arrays."""

    values: Array
    indices: Array
    inverse: Array
    counts: Array


_UNIQUE = {
    cls._fields: cls
    for cls in (
        UniqueIndex,
        UniqueInverse,
        UniqueCounts,
        UniqueIndexInverse,
        UniqueIndexCounts,
        UniqueInverseCounts,
        UniqueAll,
    )
}


def unique(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements of an array, like ``numpy.unique``.

    Parameters
    ----------
    x : array of any shape
        Integers, floats or bool.
    return_index : bool
        Also return the index in the flat array of the first element of each value.
    return_inverse : bool
        Also return, in the shape of x, the index of each element's value.
    return_counts : bool
        Also return the number of elements of each value.
    sorted : bool
        True: ascending values, NaN last. False: the order of their first elements, and faster.

    Returns
    -------
    values, or a named tuple of the requested members of (values, indices, inverse, counts)
        All but the values are int64.

    Notes
    -----
    -0 equals 0, and all NaN are equal. A value has the bits of its first element.

    Examples
    --------
    >>> values, counts = cuatomic.unique(np.array([3, 1, 3]), return_counts=True)
    >>> values, counts
    (array([1, 3]), array([1, 2]))
    """
    given = take(x)
    view = key_view(given)
    context = view.context()
    options = _abi.cua_unique_options(
        ctypes.sizeof(_abi.cua_unique_options), _ORDERS["sorted" if sorted else "first"]
    )
    sorts = _sorts(view, sorted)
    if sorts:
        options.order = _abi.CUA_KEY_ORDER_ANY
    retry = _Retry(view)
    made = {}
    for capacity in retry:
        made["values"], address = view.empty((capacity,), view.code)
        if return_index:
            made["indices"], options.first = view.empty((capacity,), _abi.CUA_I64)
        if return_inverse:
            made["inverse"], options.inverse = view.empty(view.shape, _abi.CUA_I64)
        if return_counts:
            made["counts"], options.counts = view.empty((capacity,), _abi.CUA_I64)
        status = lib.cua_unique(
            context.handle,
            ctypes.byref(options),
            view.code,
            view.n,
            view.ptr,
            capacity,
            address,
            ctypes.byref(retry.count),
        )
        if status:
            raise failed(status, "unique of %s" % dtype_name(given.code))
    inverse = made.pop("inverse", None)
    likes = [given if name == "values" else None for name in made]
    if not sorts:
        arrays = _rows(view, context, made.values(), likes, retry.count.value)
    else:
        arrays = _rows(view, context, made.values(), [None] * len(made), retry.count.value)
        if len(arrays) == 1 and not return_inverse:
            arrays = _like(view.kind, [view.kind.sort(arrays[0])], likes)
        else:
            arrays, rank = _sorted_groups(view, arrays, likes)
            inverse = view.kind.gather(rank, inverse) if return_inverse else None
    made.update(zip(list(made), arrays))
    if return_inverse:
        made["inverse"] = view.result(context, inverse)
    names = [name for name in ("values", "indices", "inverse", "counts") if name in made]
    if len(names) == 1:
        return made["values"]
    return _UNIQUE[tuple(names)](*(made[name] for name in names))


# ---- group by ----


class Aggregate(NamedTuple):
    """An aggregate of `group_by`; a tuple of its first members may stand for it.

    Parameters
    ----------
    op : {"count", "sum", "min", "max", "mean", "var", "first", "last"}
    values : 1-D array
        A value for each key; ignored by "count".
    valid : array, optional
        The mask of valid values: a bool for each value, or an Arrow bitmap of uint8. Bit ``i % 8``
        of byte ``i // 8`` of a bitmap is for value i.
    ddof : int
        For "var": the squared distances from the mean are divided by the count minus ddof.
    dtype : optional
        A wider type of the results of "sum", "min", "max" and "mean".
    """

    op: str
    values: ArrayLike = None
    valid: ArrayLike = None
    ddof: int = 0
    dtype: DType = None


class GroupBy(NamedTuple):
    """The result of `group_by`: the keys of the groups, and the arrays of results by name."""

    keys: Array
    results: dict[str, Array]


def _result_code(op, code, dtype):
    if op == "count":
        return _abi.CUA_I64
    if dtype is not None:
        return type_code(dtype)
    if op == "sum" and code not in FLOATS:
        return sum_code(code)
    if op == "var" or (op == "mean" and code not in FLOATS):
        return _abi.CUA_F64
    return code


def _aggregate_of(name, wanted):
    """The Aggregate that an argument stands for."""
    if isinstance(wanted, str):
        wanted = (wanted,)
    if not (isinstance(wanted, (tuple, list)) and 1 <= len(wanted) <= len(Aggregate._fields)):
        raise TypeError(
            '%s: %.60r is neither "count" nor (op, values, valid, ddof, dtype)' % (name, wanted)
        )
    wanted = Aggregate(*wanted)
    if not isinstance(wanted.op, str):
        raise TypeError("%s: the operation %.60r is no str" % (name, wanted.op))
    if wanted.op not in _AGGREGATES:
        known = ", ".join(_AGGREGATES)
        raise ValueError("%s: operation %r: choose one of %s" % (name, wanted.op, known))
    try:
        ddof = operator.index(wanted.ddof)
    except TypeError:
        raise TypeError("%s: ddof=%.60r is no integer" % (name, wanted.ddof)) from None
    if not 0 <= ddof < 1 << 32:
        raise ValueError("%s: ddof=%d is not 0 to 2**32 - 1" % (name, ddof))
    return wanted._replace(ddof=ddof)


class _Column:
    """An aggregate with its arrays."""

    def __init__(self, name, wanted, keys):
        wanted = _aggregate_of(name, wanted)
        self.op = wanted.op
        self._name = name
        self.values = self._valid = None
        self.struct = _abi.cua_aggregate(_AGGREGATES[self.op], ddof=wanted.ddof)
        if self.op != "count":
            self._take_values(wanted.values, keys)
        if wanted.valid is not None:
            self._take_valid(wanted.valid, keys)
        code = _abi.CUA_NONE if self.values is None else self.values.code
        self.code = _result_code(self.op, code, wanted.dtype)
        self.struct.result_type = _abi.CUA_U64 if self.op == "count" else self.code
        # the minimum of no bool is no bool
        self.like = self.values if self.op in ("first", "last") else None

    def _take_values(self, values, keys):
        if values is None:
            raise TypeError("%s: %r needs values" % (self._name, self.op))
        self.values = take_beside(keys, values, self._name)
        if tuple(self.values.shape) != tuple(keys.shape):
            raise ValueError(
                "%s has the shape %r, keys %r"
                % (self._name, tuple(self.values.shape), tuple(keys.shape))
            )
        if self.values.code > _abi.CUA_F64 and self.op not in ("first", "last"):
            raise TypeError(
                "%s: %s of %s is not supported"
                % (self._name, self.op, dtype_name(self.values.code))
            )
        self.struct.type = self.values.code
        self.struct.values = self.values.ptr

    def _take_valid(self, valid, keys):
        view = self._valid = take_beside(keys, valid, "valid")
        bits = not view.is_bool()
        length = (keys.n + 7) // 8 if bits else keys.n
        if view.code != _abi.CUA_U8 or tuple(view.shape) != (length,):
            raise ValueError(
                "%s: valid is neither %d bool nor a bitmap of %d uint8"
                % (self._name, keys.n, (keys.n + 7) // 8)
            )
        self.struct.valid = view.ptr
        self.struct.valid_bits = bits


def group_by(
    keys: ArrayLike,
    aggregates: Mapping[str, str | tuple | Aggregate],
    *,
    order: str = "first",
    mode: Mode = "exact",
) -> GroupBy:
    """Combines the values of the rows with the same key.

    Parameters
    ----------
    keys : 1-D array
        Integers, floats or bool.
    aggregates : mapping of names
        To "count", or to tuples (op, values), (op, values, valid) and so on: the members of an
        `Aggregate`. At most 64.
    order : {"first", "sorted", "any"}
        The order of the groups: of their first rows; of ascending keys, NaN last; or any. "any"
        may be faster, and may differ from run to run.
    mode : {"exact", "fast", "fixed"}
        "exact", and "fixed" is the same: sums of floats are exact and rounded once. "fast": sums
        may differ from run to run in their last bits.

    Returns
    -------
    named tuple (keys, results)
        The keys of the groups, and a dict of the arrays of results.

    Raises
    ------
    ValueError
        The shapes differ, or an operation or order is not known.
    TypeError
        The keys or values have a type without this operation, or an aggregate is malformed.

    Notes
    -----
    A result depends on the valid values of its group alone, not on the device. Only "first" and
    "last" depend on the order of rows. -0 equals 0 as a key, and all NaN are equal. A key has the
    bits of its first row.

    Counts are int64. Sums of integers are int64 or uint64, modulo 2**64. Means of integers and
    variances are float64. "min" and "max" ignore NaN, and are uint8 for bool. A group without valid
    values has the count and the sum 0, the mean and the variance nan, and zeros for "first" and
    "last". Its "min" is the greatest and its "max" the least value of the type.

    Examples
    --------
    >>> keys, results = cuatomic.group_by(
    ...     np.array([7, 3, 7]), {"n": "count", "total": ("sum", np.array([1.0, 2.0, 4.0]))}
    ... )
    >>> keys, results["n"], results["total"]
    (array([7, 3]), array([2, 1]), array([5., 2.]))
    """
    if order not in _ORDERS:
        raise ValueError("order=%r: choose one of %s" % (order, ", ".join(_ORDERS)))
    if not isinstance(aggregates, collections.abc.Mapping):
        raise TypeError("aggregates are a mapping of names, not %s" % type(aggregates).__name__)
    given = flat(take(keys), "keys")
    view = key_view(given)
    columns = {name: _Column(name, wanted, view) for name, wanted in aggregates.items()}
    if len(columns) > 64:
        raise ValueError("%d aggregates are more than 64" % len(columns))
    options = _abi.cua_group_by_options(
        ctypes.sizeof(_abi.cua_group_by_options), mode_number(mode), _ORDERS[order]
    )
    sorts = _sorts(view, order == "sorted")
    if sorts:
        options.order = _abi.CUA_KEY_ORDER_ANY
    context = view.context()
    retry = _Retry(view)
    for capacity in retry:
        found, address = view.empty((capacity,), view.code)
        made = {}
        for name, column in columns.items():
            made[name], column.struct.out = view.empty((capacity,), column.code)
        structs = (_abi.cua_aggregate * max(len(columns), 1))(
            *(column.struct for column in columns.values())
        )
        status = lib.cua_group_by(
            context.handle,
            ctypes.byref(options),
            view.code,
            view.n,
            view.ptr,
            structs,
            len(columns),
            capacity,
            address,
            ctypes.byref(retry.count),
        )
        if status:
            raise failed(status, "group_by of %s" % dtype_name(given.code))
    likes = [given] + [column.like for column in columns.values()]
    arrays = [found, *made.values()]
    if sorts:
        arrays = _rows(view, context, arrays, [None] * len(arrays), retry.count.value)
        arrays, _ = _sorted_groups(view, arrays, likes)
    else:
        arrays = _rows(view, context, arrays, likes, retry.count.value)
    return GroupBy(arrays[0], dict(zip(made, arrays[1:])))


# ---- runs and segments ----


class ReducedByKey(NamedTuple):
    """The result of `reduce_by_key`."""

    keys: Array
    results: Array


def _segment_plan(op, mode, x):
    """(number of the operation, options, view of elements, type of the results)."""
    if op not in _OPS:
        raise ValueError("op=%r: choose %s" % (op, " or ".join(map(repr, _OPS))))
    options = _abi.cua_segment_options(
        ctypes.sizeof(_abi.cua_segment_options), mode_number(mode, ("fast", "fixed"))
    )
    view = x.converted(WIDER.get(x.code, x.code)) if op == "sum" else key_view(x)
    code = view.code
    if op == "sum" and code < _abi.CUA_F16:
        code = sum_code(code)
    return _OPS[op], options, view, code


def reduce_by_key(
    keys: ArrayLike, values: ArrayLike, op: str = "sum", *, mode: Mode = "fast"
) -> ReducedByKey:
    """Reduces each run of equal neighbouring keys.

    Parameters
    ----------
    keys : 1-D array
        Integers or bool. Sorted keys have a run for each key.
    values : array of the shape of keys
        Integers, floats or bool; complex numbers for sums.
    op : {"sum", "min", "max"}
    mode : {"fast", "fixed"}
        The guarantee for the bits of a float sum, as in `sum`. `group_by` has exact sums.

    Returns
    -------
    named tuple (keys, results)
        The key and the result of each run, in the order of the runs.
    """
    given, x = take_each(keys, values=values)
    flat(given, "keys")
    if tuple(x.shape) != tuple(given.shape):
        raise ValueError("keys have the shape %r, values %r" % (tuple(given.shape), tuple(x.shape)))
    if given.code in FLOATS:
        raise TypeError("keys of runs are integers, not %s" % dtype_name(given.code))
    view = key_view(given)
    number, options, values, code = _segment_plan(op, mode, x)
    context = view.context()
    retry = _Retry(view)
    for capacity in retry:
        found, address = view.empty((capacity,), view.code)
        results, results_address = view.empty((capacity,), code)
        status = lib.cua_reduce_by_key(
            context.handle,
            ctypes.byref(options),
            number,
            view.code,
            values.code,
            view.n,
            view.ptr,
            values.ptr,
            capacity,
            address,
            results_address,
            ctypes.byref(retry.count),
        )
        if status:
            raise failed(status, "reduce_by_key of %s" % dtype_name(x.code))
    runs = retry.count.value
    like = None if op == "sum" else x
    return ReducedByKey(
        view.rows(context, found, runs, given), view.rows(context, results, runs, like)
    )


def segmented_reduce(
    x: ArrayLike, offsets: ArrayLike, op: str = "sum", *, mode: Mode = "fast"
) -> Array:
    """Reduces each segment of an array.

    Parameters
    ----------
    x : 1-D array
        Integers, floats or bool; complex numbers for sums.
    offsets : array of ascending integers
        Segment i is ``x[offsets[i]:offsets[i + 1]]``, so there is an offset more than segments. An
        offset above the length counts as the length. If offsets do not ascend, the results are
        unspecified.
    op : {"sum", "min", "max"}
    mode : {"fast", "fixed"}
        The guarantee for the bits of a float sum, as in `sum`.

    Returns
    -------
    array
        Sums of integers are int64 or uint64. An empty segment has the sum 0, as its minimum the
        greatest and as its maximum the least value of the type. "min" and "max" ignore NaN,
        and are int32 for bool and for integers of 8 and 16 bits.

    Notes
    -----
    Unlike ``numpy.add.reduceat``, an empty segment is empty, and the last offset ends the last
    segment.
    """
    given, places = take_each(x, offsets=offsets)
    flat(given, "x")
    flat(places, "offsets")
    if not places.n:
        raise ValueError("offsets are empty: there is one more than segments")
    places = index_view(places, "offsets", offsets)
    if places.code not in (_abi.CUA_I64, _abi.CUA_U64):
        places = places.converted(_abi.CUA_I64)
    number, options, view, code = _segment_plan(op, mode, given)
    context = view.context()
    results, address = view.empty((places.n - 1,), code)
    status = lib.cua_segmented_reduce(
        context.handle,
        ctypes.byref(options),
        number,
        view.code,
        view.n,
        view.ptr,
        places.n - 1,
        places.ptr,
        address,
    )
    if status:
        raise failed(status, "segmented %s of %s" % (op, dtype_name(given.code)))
    like = given if op != "sum" and given.code in FLOATS else None
    return view.rows(context, results, places.n - 1, like)


def segmented_sum(x: ArrayLike, offsets: ArrayLike, *, mode: Mode = "fast") -> Array:
    """The sum of each segment of an array: `segmented_reduce` with the operation "sum"."""
    return segmented_reduce(x, offsets, "sum", mode=mode)
