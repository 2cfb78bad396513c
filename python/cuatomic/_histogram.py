# SPDX-License-Identifier: MIT
"""Counts of elements in bins."""

from __future__ import annotations

import array
import ctypes
import math
import numbers
import operator
from typing import NamedTuple

from . import _abi
from ._arrays import numpy_kind, take, take_all
from ._context import CPU
from ._errors import check, failed
from ._library import lib
from ._reduce import WIDER, mode_number
from ._scatter import index_view, integers
from ._select import flat, key_view
from ._types import FLOATS, SIZES, dtype_name
from ._typing import Array, ArrayLike, Mode
from ._values import (
    ceiling,
    double,
    fits,
    from_numbers,
    is_list,
    numbers_of,
    pack,
    plain,
    raw_bytes,
    sum_code,
    unpack,
)


class Outside(NamedTuple):
    """The numbers of elements that `histogram` does not count."""

    below: int
    above: int
    nan: int
    refused: int
    """Elements in a bin whose weight is NaN or exceeds the limit."""


class Histogram(NamedTuple):
    """The result of `histogram`."""

    counts: Array
    edges: Array


class HistogramOutside(NamedTuple):
    """The result of `histogram` with ``outside=True``."""

    counts: Array
    edges: Array
    outside: Outside


class BincountOutside(NamedTuple):
    """The result of `bincount` with ``outside=True``."""

    counts: Array
    outside: int


def extremes(view, context):
    """(least, greatest) element as Python numbers; the call waits."""
    view = key_view(view)
    found = []
    for op in (_abi.CUA_REDUCE_MIN, _abi.CUA_REDUCE_MAX):
        host = ctypes.create_string_buffer(SIZES[view.code])
        status = lib.cua_reduce(context.handle, None, op, view.code, view.n, view.ptr, None, host)
        if status:
            raise failed(status, "extremes of %s" % dtype_name(view.code))
        found += unpack(host.raw, view.code)
    return found


_MOST_BINS = 1 << 31
_MOST_EDGES = 65537

# ---- weights ----


def _set_weights(options, weights, context, limit):
    """Sets the weights of the options; returns the type of the counts."""
    options.weights = weights.ptr
    options.weight_type = weights.code
    if weights.code not in FLOATS:
        return sum_code(weights.code)
    if limit is None:
        limit = 0.0
        if weights.n:
            low, high = extremes(weights, context)
            # NaN if all weights are
            limit = max(abs(low), abs(high)) if low == low else 0.0
        if math.isinf(limit):
            raise ValueError("a weight is infinite")
    else:
        limit = double(plain(limit))
        if not 0 < limit < math.inf:
            raise ValueError("weight_limit=%r is not a positive number" % limit)
    # all weights 0 need a limit too; 0 would be the default of the library
    options.weight_limit = limit or 1.0
    return _abi.CUA_F64


def _weights_view(weights):
    if weights is None:
        return None
    if weights.code > _abi.CUA_F64:
        raise TypeError("weights of %s are not supported" % dtype_name(weights.code))
    if weights.code in FLOATS:
        return key_view(weights)
    return weights.converted(WIDER.get(weights.code, weights.code))


# ---- bins ----


class _Bins:
    """Bins of the elements of a view."""

    def _call(self, function, context, options, *rest):
        view = self.view
        return function(
            context.handle, ctypes.byref(options), view.code, view.n, view.ptr, self.bins, *rest
        )


class _Even(_Bins):
    """Even bins between two limits."""

    def __init__(self, view, context, bins, limits):
        lower, upper = _limits(view, context, limits)
        self.bins, self.lower, self.upper = bins, lower, upper
        self.closed = 1
        # limits that are no integers, or too large, need elements of floats
        code = view.code
        whole = _abi.CUA_U64 if code == _abi.CUA_U64 else _abi.CUA_I64
        if code not in FLOATS and fits(lower, whole) and fits(upper, whole):
            self.view, self._code = view, whole
        else:
            self.view = view if code in FLOATS else view.converted(_abi.CUA_F64)
            self._code = _abi.CUA_F64
            if not float(lower) < float(upper):
                raise ValueError("range: %r and %r are the same float64" % (lower, upper))

    def count(self, context, options, address):
        lower, upper = pack([self.lower], self._code), pack([self.upper], self._code)
        return self._call(lib.cua_histogram_even, context, options, lower, upper, address)

    def edges(self, context):
        view, size = self.view, SIZES[_abi.CUA_F64] * (self.bins + 1)
        array, address = view.empty((self.bins + 1,), _abi.CUA_F64)
        doubles = ctypes.c_double * (self.bins + 1)
        host = doubles.from_address(address) if view.device == CPU else doubles()
        _space(host, float(self.lower), float(self.upper))
        if view.device != CPU:
            check(lib.cua_copy(context.handle, address, host, size), "copy")
        return view.result(context, array)

    def widths(self, context, edges):
        if not hasattr(edges, "__sub__"):
            numbers = [b - a for a, b in zip(edges, edges[1:])]
            return from_numbers(self.view, context, numbers, _abi.CUA_F64)[0]
        return edges[1:] - edges[:-1]


def _limits(view, context, limits):
    """(lower, upper) as numpy.histogram chooses them."""
    if limits is not None:
        lower, upper = (plain(limit) for limit in limits)
        if not (math.isfinite(double(lower)) and math.isfinite(double(upper))):
            raise ValueError("range [%r, %r] is not finite" % (lower, upper))
        if lower > upper:
            raise ValueError("range: the upper limit is below the lower limit")
    elif not view.n:
        lower, upper = 0, 1
    else:
        lower, upper = extremes(view, context)
        if not (math.isfinite(lower) and math.isfinite(upper)):
            raise ValueError("the extremes of x, %r and %r, are no range" % (lower, upper))
    if lower == upper:
        lower, upper = lower - 0.5, upper + 0.5
        if not lower < upper:
            raise ValueError(
                "Too many bins for data range: float64 has no limits around %r" % lower
            )
    return lower, upper


_FEW = 1 << 12
"""The number of bins from which numpy computes the edges."""


def _space(edges, lower, upper):
    """Writes the limits of even bins, as numpy.linspace, into a ctypes array of double."""
    bins = len(edges) - 1
    scale = 2 if math.isinf(upper - lower) else 1
    start = lower / scale
    width = upper / scale - start
    # the width of a bin may underflow
    divisor, step = (1, width / bins) if width / bins else (bins, width)
    numpy = None
    if bins >= _FEW:
        try:
            numpy = numpy_kind().numpy
        except ImportError:
            pass
    if numpy:
        numbers = numpy.frombuffer(edges)
        # parts, because numpy.arange needs memory too
        for i in range(0, bins + 1, _FEW):
            part = numbers[i : i + _FEW]
            part[:] = numpy.arange(i, i + len(part), dtype=float)
        numbers /= divisor
        numbers *= step
        numbers += start
        numbers *= scale
    else:
        for i in range(bins):
            edges[i] = (i / divisor * step + start) * scale
    edges[bins] = upper
    if scale > 1:
        edges[0] = lower


class _Edges(_Bins):
    """Bins between edges."""

    def __init__(self, view, context, bins):
        self._given = bins
        if is_list(bins):
            _check_edges(len(bins))
            self._numbers = numbers_of(bins)
            self._code = _list_code(self._numbers)
        else:
            edges = take(bins)
            flat(edges, "bins")
            _check_edges(edges.n)
            self._code = edges.code
            self._numbers = unpack(raw_bytes(edges.context(), edges), edges.code)
        numbers = self._numbers
        if any(not a <= b for a, b in zip(numbers, numbers[1:])):
            raise ValueError("bins: the edges do not ascend")
        self.bins = len(numbers) - 1
        if view.code not in FLOATS and any(ceiling(n, view.code) is None for n in numbers):
            view = view.converted(_abi.CUA_F64)
        self.view = view
        # x is at least an edge if it is at least the edge rounded up to the type of x
        self._packed = pack([ceiling(number, view.code) for number in numbers], view.code)
        self.closed = int(fits(numbers[-1], view.code))

    def count(self, context, options, address):
        return self._call(lib.cua_histogram_edges, context, options, self._packed, address)

    def edges(self, context):
        if not is_list(self._given):
            return self._given
        array, _ = from_numbers(self.view, context, self._numbers, self._code)
        return self.view.result(context, array)

    def widths(self, context, edges):
        numbers = [double(b - a) for a, b in zip(self._numbers, self._numbers[1:])]
        array, _ = from_numbers(self.view, context, numbers, _abi.CUA_F64)
        return self.view.result(context, array)


def _check_edges(n):
    if not 2 <= n <= _MOST_EDGES:
        raise ValueError("bins: %d edges are not 2 to %d" % (n, _MOST_EDGES))


def _list_code(numbers):
    """The type of a list of edges: an integer type that has all of them, or float64."""
    if all(isinstance(number, int) for number in numbers):
        for code in (_abi.CUA_I64, _abi.CUA_U64):
            if all(fits(number, code) for number in numbers):
                return code
    return _abi.CUA_F64


def _bins_of(view, context, bins, limits):
    if isinstance(bins, str):
        raise TypeError("bins=%r: names of rules are not supported" % bins)
    is_number = isinstance(bins, numbers.Number) or hasattr(bins, "__index__")
    if not (is_number or hasattr(bins, "shape")) or getattr(bins, "shape", ()):
        return _Edges(view, context, bins)
    try:
        # numpy's bool, which was an index before numpy 2
        if isinstance(bins, bool) or type(bins).__name__.startswith("bool"):
            raise TypeError
        bins = operator.index(bins)
    except TypeError:
        raise TypeError("bins=%r is neither an integer nor edges" % (bins,)) from None
    if not 1 <= bins <= _MOST_BINS:
        raise ValueError("bins=%d: choose 1 to 2**31" % bins)
    return _Even(view, context, bins, limits)


def _density(chosen, context, counts, edges):
    """The counts by their sum and by the width of their bins."""
    if hasattr(counts, "__truediv__"):
        counts = take(counts).converted(_abi.CUA_F64).array
        return counts / chosen.widths(context, edges) / counts.sum()
    if not isinstance(counts, array.array):
        raise TypeError("density: a %s has no arithmetic" % type(counts).__name__)
    total = float(sum(counts))
    pairs = zip(counts, chosen.widths(context, edges))
    quotients = [_quotient(_quotient(count, width), total) for count, width in pairs]
    made, _ = from_numbers(chosen.view, context, quotients, _abi.CUA_F64)
    return chosen.view.result(context, made)


def _quotient(a, b):
    """a / b as floats have it."""
    if b:
        return a / b
    return math.nan if a != a or not a else math.copysign(math.inf, a)


def histogram(
    x: ArrayLike,
    bins: int | ArrayLike = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
    *,
    weight_limit: float | None = None,
    outside: bool = False,
) -> Histogram | HistogramOutside:
    """The number of elements, or the sum of their weights, in each bin, like ``numpy.histogram``.

    Parameters
    ----------
    x : array of any shape
        Integers, floats or bool.
    bins : int, or ascending edges
        A number of even bins, at most 2**31, or 2 to 65537 edges. A bin is closed below and open
        above; the last bin is closed.
    range : (lower, upper), optional
        The limits of even bins. The default is the least and the greatest element. The call waits
        for these.
    density : bool
        Divide each count by the sum of all counts and by the width of its bin, so the integral over
        the bins is 1. The quotients are float64. Arrays of libraries without arithmetic, such as
        `DeviceArray`, have none.
    weights : array of the shape of x, optional
        Integers or floats.
    weight_limit : float, optional
        The maximum of the magnitudes of float weights. The default is found by a further pass.
        The call waits for its result.
    outside : bool
        Also return the numbers of elements that are not counted.

    Returns
    -------
    named tuple (counts, edges) or (counts, edges, outside)
        Counts are int64. Sums of weights are int64, uint64 or float64. Edges of even bins are
        float64. outside is a named tuple of int (below, above, nan, refused).

    Raises
    ------
    ValueError
        Edges descend, x has an infinite element and no range, a weight is infinite or NaN and
        there is no weight_limit, or equal elements are so large that float64 has no limits around
        them.

    Notes
    -----
    Even bins follow the rule of the library, not the rounded edges. With integer limits an integer
    x is in bin floor((x - lower) * bins / (upper - lower)), exactly. A float x is in bin
    floor((x - lower) * (bins / (upper - lower))), in double precision. numpy moves an element at an
    edge that its linspace has rounded to the other bin. Bins between given edges are as
    numpy's.

    If an edge or a limit is no value of an integer type of x, elements of 64 bits are rounded to
    float64.

    NaN elements are in no bin. In the default range numpy refuses them.

    A float weight is rounded to a multiple of a unit, the least power of two that is at least
    ``weight_limit * x.size / 2**62``. The sum of the rounded weights is exact, so it depends on no
    order, and is rounded once. Elements are refused if their weight is
    NaN or exceeds weight_limit.

    See Also
    --------
    bincount
    """
    if hasattr(density, "__len__"):
        raise TypeError("density is a bool, not an array of weights")
    view, weight = take_all(x, weights=weights)
    if weight is not None and tuple(weight.shape) != tuple(view.shape):
        raise ValueError(
            "x has the shape %r, weights %r" % (tuple(view.shape), tuple(weight.shape))
        )
    context = view.context()
    if view.code not in FLOATS and view.code > _abi.CUA_U64:
        raise TypeError("a histogram of %s is not supported" % dtype_name(view.code))
    chosen = _bins_of(view, context, bins, range)
    options = _abi.cua_histogram_options(ctypes.sizeof(_abi.cua_histogram_options))
    options.closed = chosen.closed
    code, refusal = _abi.CUA_I64, False
    weight = _weights_view(weight)
    if weight is not None:
        code = _set_weights(options, weight, context, weight_limit)
        refusal = code == _abi.CUA_F64 and weight_limit is None
    sides = (ctypes.c_uint64 * 4)()
    if outside or refusal:
        options.outside = ctypes.addressof(sides)
    counts, address = view.empty((chosen.bins,), code)
    status = chosen.count(context, options, address)
    if status:
        raise failed(status, "histogram of %s" % dtype_name(view.code))
    if refusal and sides[3]:
        raise ValueError("a weight is NaN")
    result = view.result(context, counts), chosen.edges(context)
    if density:
        result = _density(chosen, context, *result), result[1]
    return HistogramOutside(*result, Outside(*sides)) if outside else Histogram(*result)


def _not_negative(number, name):
    number = operator.index(number)
    if number < 0:
        raise ValueError("%s=%d is negative" % (name, number))
    if number >> 48:
        raise ValueError("%s=%d is more than memory can hold" % (name, number))
    return number


def _length(view, context, minlength, length):
    """The number of counts."""
    if length is not None:
        return _not_negative(length, "length")
    minlength = _not_negative(minlength, "minlength")
    if not view.n:
        return minlength
    least, greatest = extremes(view, context)
    if least < 0:
        raise ValueError("x has a negative element: %d" % least)
    return max(minlength, greatest + 1)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    mode: Mode = "exact",
    outside: bool = False,
) -> Array | BincountOutside:
    """The number of elements of each value, or the sum of their weights, like ``numpy.bincount``.

    Parameters
    ----------
    x : 1-D array
        Integers that are not negative, or bool.
    weights : array of the shape of x, optional
        Integers or floats.
    minlength : int
        The least number of counts. There are at least ``max(x) + 1`` counts, and the call waits
        for this maximum.
    length : int, optional
        The number of counts. Elements that are negative or at least the length are not counted.
    mode : {"exact", "fast", "fixed"}
        As in `scatter_add`: whether sums of float weights are exact.
    outside : bool
        Also return the number of elements that are not counted. The call waits for it.

    Returns
    -------
    counts, or a named tuple (counts, outside)
        Counts are int64. Sums of weights are int64, uint64 or float64.

    Raises
    ------
    ValueError
        An element is negative and there is no length.
    """
    view, weight = take_all(x, weights=weights)
    flat(view, "x")
    if weight is not None and tuple(weight.shape) != tuple(view.shape):
        raise ValueError("x has %d elements, weights have the shape %r" % (view.n, weight.shape))
    if not view.is_bool():
        view = integers(view, "x", x)
    mode = mode_number(mode)
    context = view.context()
    length = _length(view, context, minlength, length)
    if weight is None and length > _MOST_BINS:
        raise ValueError("%d counts are more than 2**31" % length)
    if weight is None:
        code = _abi.CUA_I64
    else:
        weight = _weights_view(weight)
        code = _abi.CUA_F64 if weight.code in FLOATS else sum_code(weight.code)
    counts, address = view.empty((length,), code)
    skipped = ctypes.c_uint64()
    if not length:
        skipped.value = view.n
    elif weight is None:
        skipped.value = _count(view, context, length, address, outside)
    else:
        _sum(view, context, weight, mode, (length, address, code), skipped if outside else None)
    counts = view.result(context, counts)
    return BincountOutside(counts, skipped.value) if outside else counts


def _count(view, context, length, address, outside):
    """Counts by a histogram with a bin for each number; the number of elements in no bin."""
    options = _abi.cua_histogram_options(ctypes.sizeof(_abi.cua_histogram_options))
    sides = (ctypes.c_uint64 * 4)()
    if outside:
        options.outside = ctypes.addressof(sides)
    code = _abi.CUA_U64 if view.code == _abi.CUA_U64 else _abi.CUA_I64
    status = lib.cua_histogram_even(
        context.handle,
        ctypes.byref(options),
        view.code,
        view.n,
        view.ptr,
        length,
        pack([0], code),
        pack([length], code),
        address,
    )
    check(status, "bincount of %s" % dtype_name(view.code))
    return sides[0] + sides[1]


def _sum(view, context, weight, mode, targets, skipped):
    """Sums weights by a scatter."""
    length, address, code = targets
    index = key_view(view) if view.is_bool() else index_view(view, "x", view)
    options = _abi.cua_scatter_options(
        ctypes.sizeof(_abi.cua_scatter_options), mode, code, overwrite=1
    )
    if skipped is not None:
        options.skipped = ctypes.addressof(skipped)
    status = lib.cua_scatter(
        context.handle,
        ctypes.byref(options),
        _abi.CUA_SCATTER_ADD,
        index.code,
        weight.code,
        index.n,
        index.ptr,
        weight.ptr,
        length,
        address,
    )
    check(status, "bincount of %s" % dtype_name(view.code))
