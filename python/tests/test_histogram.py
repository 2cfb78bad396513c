# SPDX-License-Identifier: MIT
"""histogram and bincount against numpy and a model of the rules of the library."""

import array
import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy
import pytest
from conftest import QUICK
from hypothesis import example, given
from hypothesis import strategies as st
from test_scatter import rounded, same

import cuatomic

INTS = "i1 u1 i2 u2 i4 u4 i8 u8".split()
FLOATS = "f2 f4 f8".split()
DTYPES = ["?"] + INTS + FLOATS


def elements(dtype):
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return st.booleans()
    if dtype.kind == "f":
        special = st.sampled_from([0.0, -0.0, math.nan, 1.0, 2.0, 0.5])
        return special | st.floats(-100, 100, width=8 * dtype.itemsize)
    info = numpy.iinfo(dtype)
    small = st.integers(max(info.min, -9), min(info.max, 9))
    return small | st.integers(info.min, info.max)


def drawn(data, dtype, **sizes):
    return numpy.array(data.draw(st.lists(elements(dtype), **sizes)), dtype)


def even_bin(x, bins, lower, upper):
    """The bin of an element, or a side: the rule of cuatomic/histogram.h, closed."""
    if x != x:
        return "nan"
    if x < lower:
        return "below"
    if x > upper:
        return "above"
    if all(isinstance(v, int) for v in (x, lower, upper)):
        number = (x - lower) * bins // (upper - lower)
    else:
        x, lower, upper = float(x), float(lower), float(upper)
        width = upper - lower
        h = 0.5 if math.isinf(width) else 2.0**128 if width < 2.0**-900 else 1.0
        number = math.floor((x * h - lower * h) * (bins / (upper * h - lower * h)))
    return min(number, bins - 1)


def edge_bin(x, edges):
    """The bin of an element between edges, as numpy's."""
    if x != x:
        return "nan"
    if x < edges[0]:
        return "below"
    if x > edges[-1]:
        return "above"
    number = max(i for i, edge in enumerate(edges) if edge <= x)
    return min(number, len(edges) - 2)


def check_counts(got, places, bins):
    assert got.counts.tolist() == [places.count(i) for i in range(bins)]
    assert got.outside[:3] == tuple(places.count(name) for name in ("below", "above", "nan"))
    assert got.outside.refused == 0


@given(data=st.data(), dtype=st.sampled_from(DTYPES), bins=st.integers(1, 9))
def test_even(data, dtype, bins):
    x = drawn(data, dtype, max_size=30)
    whole = data.draw(st.booleans())
    number = st.integers(-20, 20) if whole else st.floats(-20, 20)
    lower, upper = sorted(data.draw(st.tuples(number, number)))
    if lower < upper < lower + 1e-6:
        upper = lower + 1
    got = cuatomic.histogram(x, bins, (lower, upper), outside=True)
    if lower == upper:
        lower, upper = lower - 0.5, upper + 0.5
    numbers = x.astype(int).tolist() if dtype == "?" else x.tolist()
    check_counts(got, [even_bin(v, bins, lower, upper) for v in numbers], bins)
    assert got.counts.dtype == numpy.int64 and got.edges.dtype == numpy.float64
    same(got.edges, numpy.linspace(lower, upper, bins + 1))


@given(data=st.data(), dtype=st.sampled_from(DTYPES), bins=st.integers(1, 9))
def test_default_range(data, dtype, bins):
    x = drawn(data, dtype, max_size=30)
    check_default_range(x[x == x], bins)


@pytest.mark.parametrize("upper", [1.1125369292536007e-308, 2.0**-901, 2.0**-899, 8e307])
def test_default_range_of_narrow_and_wide_elements(upper):
    check_default_range(numpy.array([0.0, upper / 3, upper]), 2)
    check_default_range(numpy.array([-upper, 0.0, upper]), 3)


@pytest.mark.parametrize("dtype", ["i8", "u8", "f8"])
@pytest.mark.parametrize("number", [2**52 - 1, 2**52 + 1, 2**52 + 2, 2**53, 2**60, 10**16])
def test_default_range_of_large_elements(dtype, number):
    check_default_range(numpy.array([number] * 2, dtype), 1)


def check_default_range(x, bins):
    numbers = x.astype(int).tolist() if x.dtype == bool else x.tolist()
    lower, upper = (min(numbers), max(numbers)) if numbers else (0, 1)
    if lower == upper:
        lower, upper = lower - 0.5, upper + 0.5
    if lower == upper:
        with pytest.raises(ValueError, match="Too many bins for data range"):
            cuatomic.histogram(x, bins)
        return
    got = cuatomic.histogram(x, bins)
    places = [even_bin(v, bins, lower, upper) for v in numbers]
    assert got.counts.tolist() == [places.count(i) for i in range(bins)]
    if x.dtype != bool:
        expected = numpy.histogram_bin_edges(x.astype("f8"), bins)
        assert numpy.allclose(got.edges, expected, rtol=1e-15, atol=0)


@given(
    numbers=st.lists(
        st.integers(-3, 3)
        | st.integers(2**63 - 2, 2**63 + 2)
        | st.integers(-(2**65), 2**65)
        | st.sampled_from([2**64 - 1, 2**64, 2**2000, -(2**2000), 1.5, 1e30]),
        min_size=2,
        max_size=6,
    ),
    dtype=st.sampled_from(["i4", "i8", "u8", "f4", "f8"]),
)
@example(numbers=[0, 2**63], dtype="f8")
@example(numbers=[0, 2**64], dtype="u8")
@example(numbers=[-1, 2**63], dtype="i8")
@example(numbers=[-(2**2000), 2**2000], dtype="f8")
def test_lists_of_edges(numbers, dtype):
    numbers.sort()
    x = numpy.array([0, 1, 3], dtype)
    got = cuatomic.histogram(x, numbers, outside=True)
    check_counts(got, [edge_bin(v, numbers) for v in x.tolist()], len(numbers) - 1)
    whole = all(isinstance(number, int) for number in numbers)
    kind = "f8"
    if whole and numbers[-1] < 2**64 and numbers[0] >= 0:
        kind = "u8"
    if whole and numbers[-1] < 2**63 and numbers[0] >= -(2**63):
        kind = "i8"
    infinite = [n if abs(n) != 2**2000 else math.inf if n > 0 else -math.inf for n in numbers]
    same(got.edges, numpy.array(infinite, kind))


@given(data=st.data(), dtype=st.sampled_from(DTYPES), edge_type=st.sampled_from(INTS + FLOATS))
def test_edges(data, dtype, edge_type):
    x = drawn(data, dtype, max_size=30)
    edges = drawn(data, edge_type, min_size=2, max_size=6)
    edges = numpy.sort(numpy.where(edges == edges, edges, 3)).astype(edge_type)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        # elements that the rule may round to float64
        x = x[(x > -(2**52)) & (x < 2**52)] if x.dtype.kind == "i" else x[x < 2**52]
    got = cuatomic.histogram(x, edges, outside=True)
    numbers = x.astype(int).tolist() if dtype == "?" else x.tolist()
    check_counts(got, [edge_bin(v, edges.tolist()) for v in numbers], len(edges) - 1)
    assert got.edges is edges
    if dtype != "?" and (x == x).all():
        assert got.counts.tolist() == numpy.histogram(x, edges)[0].tolist()
    again = cuatomic.histogram(x, edges.tolist())
    assert again.counts.tolist() == got.counts.tolist()
    assert again.edges.tolist() == edges.tolist()


def test_edges_between_floats():
    x = numpy.array([0.1, 0.2, 0.3], "f4")
    for edges in (
        [0.1, 0.2, 0.3],
        [float(v) for v in x],
        [-math.inf, 0.2, math.inf],
        [0, 1, 1e300],
    ):
        edges = numpy.array(edges)
        assert cuatomic.histogram(x, edges).counts.tolist() == numpy.histogram(x, edges)[0].tolist()
    # the float nearest to 0.7 is below it, that of -0.7 above
    for dtype in ("f2", "f4"):
        x = numpy.array([0.7, -0.7, 0], dtype)
        for edges in ([-1, -0.7, 0.7, 1], [-0.7, 0.7], [0.7, 1], [-0.7, 0, 5e-324, 1e-320]):
            want = numpy.histogram(x.astype("f8"), edges)[0].tolist()
            assert cuatomic.histogram(x, edges).counts.tolist() == want
    x = numpy.array([0, 2**63, 2**64 - 1], "u8")
    assert cuatomic.histogram(x, [0, 1, 2**63, 2.0**70]).counts.tolist() == [1, 0, 2]


def unit_of(limit, n):
    """The unit of float weights: see cuatomic/histogram.h."""
    exponent = -1022
    while Fraction(limit) > Fraction(2) ** exponent * Fraction(2**62, n):
        exponent += 1
    return Fraction(2) ** exponent


@given(data=st.data(), dtype=st.sampled_from(FLOATS), limited=st.booleans())
def test_float_weights(data, dtype, limited):
    x = drawn(data, "i4", max_size=20) % 4
    number = st.sampled_from([1e-5, 1.0, -3.0]) | st.floats(
        -1024, 1024, width=8 * numpy.dtype(dtype).itemsize
    )
    weights = numpy.array([data.draw(number) for _ in x], dtype)
    limit = data.draw(st.floats(0.5, 2000)) if limited else None
    got = cuatomic.histogram(x, 4, (0, 4), weights=weights, weight_limit=limit, outside=True)
    numbers = [float(v) for v in weights]
    top = limit or max(map(abs, numbers), default=1) or 1
    sums, refused = [Fraction(0)] * 4, 0
    for place, weight in zip(x.tolist(), numbers):
        if abs(weight) > top:
            refused += 1
        else:
            unit = unit_of(top, len(x))
            sums[place] += round(Fraction(weight) / unit) * unit
    same(got.counts, numpy.array([rounded(v, "f8") for v in sums]))
    assert got.outside == (0, 0, 0, refused)
    if not limited:
        other = numpy.histogram(x, 4, (0, 4), weights=weights.astype("f8"))[0]
        assert numpy.allclose(got.counts, other, atol=1e-9)


@given(data=st.data(), dtype=st.sampled_from(["?"] + INTS))
def test_integer_weights(data, dtype):
    x = drawn(data, "f8", max_size=20)
    weights = numpy.array([data.draw(elements(dtype)) for _ in x], dtype)
    got = cuatomic.histogram(x, [-1, 0, 1, 2.5], weights=weights)
    kind = "i8" if weights.dtype.kind == "i" else "u8"
    expected = numpy.zeros(3, kind)
    for number, weight in zip(x.tolist(), weights.astype(kind)):
        place = edge_bin(number, [-1, 0, 1, 2.5])
        if isinstance(place, int):
            expected[place : place + 1] += weight
    same(got.counts, expected)


def test_kinds(xp, rng):
    x = rng.integers(-50, 50, 2000).astype("i2")
    counts, edges = cuatomic.histogram(xp.asarray(x), 10, (-50, 50))
    assert xp.check(counts).tolist() == numpy.histogram(x, 10, (-50, 50))[0].tolist()
    same(xp.check(edges), numpy.linspace(-50, 50, 11))
    weights = rng.standard_normal(2000)
    given_edges = xp.asarray(numpy.array([-50.0, 0.5, 49.0]))
    got = cuatomic.histogram(xp.asarray(x), given_edges, weights=xp.asarray(weights))
    expected = numpy.histogram(x, [-50, 0.5, 49], weights=weights)[0]
    assert numpy.allclose(xp.check(got.counts), expected, rtol=1e-12)
    assert got.edges is given_edges
    x = abs(x)
    assert xp.check(cuatomic.bincount(xp.asarray(x))).tolist() == numpy.bincount(x).tolist()
    got = xp.check(cuatomic.bincount(xp.asarray(x), xp.asarray(weights)))
    same(got, numpy.array([math.fsum(weights[x == i]) for i in range(max(x) + 1)]))


def test_large(rng):
    n = 50000 if QUICK else 1000000
    x = rng.standard_normal(n)
    got, edges = cuatomic.histogram(x, 1000)
    expected, other = numpy.histogram(x, 1000)
    assert abs(got - expected).max() <= 2 and got.sum() == n
    same(edges, other)
    edges = numpy.linspace(-3, 3, 20001)
    assert (cuatomic.histogram(x, edges).counts == numpy.histogram(x, edges)[0]).all()
    assert len(cuatomic.histogram(x, 100000).edges) == 100001
    weights = rng.standard_normal(n)
    order = rng.permutation(n)
    a = cuatomic.histogram(x, 50, (-3, 3), weights=weights)
    b = cuatomic.histogram(x[order], 50, (-3, 3), weights=weights[order])
    same(a.counts, b.counts)
    assert numpy.allclose(a.counts, numpy.histogram(x, 50, (-3, 3), weights=weights)[0])


def test_many_bins():
    bins = 1 << 20
    for lower, upper in ((-3.7, 0.1), (0, 5e-324), (-1.7e308, 1.7e308)):
        cuatomic.histogram([0.0], bins, (lower, upper))
        tracemalloc.start()
        got = cuatomic.histogram(numpy.zeros(1), bins, (lower, upper))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # counts and edges
        assert peak < 20 * bins
        if upper < 1e308:
            same(got.edges, numpy.linspace(lower, upper, bins + 1))
        assert got.edges[0] == lower and got.edges[-1] == upper
        assert (numpy.diff(got.edges) >= 0).all()
    for bins in (3, 5000):
        same(
            cuatomic.histogram([0.0], bins, (0, 5e-324)).edges, numpy.linspace(0, 5e-324, bins + 1)
        )


def test_many_edges():
    tracemalloc.start()
    for edges in (range(1 << 20), numpy.zeros(1 << 20, "u1"), [0]):
        with pytest.raises(ValueError, match="edges are not 2 to 65537"):
            cuatomic.histogram(X, edges)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_many_bins_without_numpy():
    program = """
import array, sys, tracemalloc
sys.modules["numpy"] = None
import cuatomic
tracemalloc.start()
got = cuatomic.histogram(array.array("d", [1, 2]), 5000, (-0.3, 7))
assert tracemalloc.get_traced_memory()[1] < 40 * 5000
print(got.counts.tolist(), got.edges.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    counts = numpy.histogram([1, 2], 5000, (-0.3, 7))[0].tolist()
    edges = numpy.linspace(-0.3, 7, 5001).tolist()
    assert done.stdout.strip() == "%s %s" % (counts, edges)


@given(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    weight_type=st.sampled_from([None] + DTYPES),
    bins=st.sampled_from([1, 4, [-3, 0, 1, 60], [-0.5, 0.5, 2.0]]),
)
def test_density(data, dtype, weight_type, bins):
    x = drawn(data, dtype, min_size=1, max_size=20)
    x = numpy.where(x == x, x, 1).astype(dtype)
    weights = None
    if weight_type:
        weights = numpy.array([data.draw(st.integers(0, 9)) for _ in x]).astype(weight_type)
    limits = (-2, 9)
    plain = cuatomic.histogram(x, bins, limits, weights=weights)
    with numpy.errstate(all="ignore"):
        got = cuatomic.histogram(x, bins, limits, True, weights)
        expected = plain.counts / numpy.diff(plain.edges) / plain.counts.sum()
    same(got.counts, expected)
    same(got.edges, plain.edges)
    if dtype != "?" and weight_type != "?":
        with numpy.errstate(all="ignore"):
            other = numpy.histogram(x, bins, limits, True, weights)[0]
        if (plain.counts == numpy.histogram(x, bins, limits, weights=weights)[0]).all():
            assert numpy.allclose(got.counts, other, equal_nan=True)
    # buffers have no arithmetic
    if dtype in ("i4", "f8"):
        mine = array.array("i" if dtype == "i4" else "d", x.tolist())
        again = cuatomic.histogram(mine, bins, limits, density=True).counts
        with numpy.errstate(all="ignore"):
            same(again, cuatomic.histogram(x, bins, limits, density=True).counts)


def test_density_forms(xp):
    x = xp.asarray(numpy.array([1, 2, 2, 9], "i4"))
    counts, edges, outside = cuatomic.histogram(x, 2, (0, 4), density=True, outside=True)
    same(xp.check(counts), numpy.array([1 / 6, 1 / 3]))
    assert outside.above == 1
    edges = xp.asarray(numpy.array([0, 2, 10], "i4"))
    same(xp.check(cuatomic.histogram(x, edges, density=True).counts), numpy.array([0.125, 3 / 32]))
    with pytest.raises(TypeError, match="object has no arithmetic"):
        cuatomic._histogram._density(None, None, object(), None)


def test_forms():
    assert cuatomic.histogram([1, 2, 2, 5], 4).counts.tolist() == [1, 2, 0, 1]
    x = numpy.arange(12).reshape(3, 4)[:, ::2]
    assert cuatomic.histogram(x, 2, weights=x).counts.tolist() == [6, 24]
    got = cuatomic.histogram(array.array("d", [1, 2, 4]), 3)
    assert got.counts == array.array("q", [1, 1, 1])
    assert got.edges == array.array("d", [1, 2, 3, 4])
    assert cuatomic.histogram(b"abca", [97, 98, 100]).counts == array.array("q", [2, 2])
    wide = numpy.array([-1.7e308, 1e307, 1.7e308])
    got = cuatomic.histogram(wide, 2)
    assert got.counts.tolist() == [1, 2] and got.edges[1] == 0
    assert cuatomic.histogram(numpy.zeros(3), 2, weights=numpy.zeros(3)).counts.tolist() == [0, 0]
    assert cuatomic.histogram([], 2, weights=[]).counts.tolist() == [0, 0]
    nan = numpy.array([0.5, math.nan])
    assert cuatomic.histogram(nan, 1, outside=True).outside.nan == 1
    got = cuatomic.histogram([1, 1], 1, weights=nan, weight_limit=1, outside=True)
    assert got.outside.refused == 1 and got.counts.tolist() == [0.5]


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([0.1, 1, 2, 3], ml_dtypes.bfloat16)
    edges = [0.1, 1, 3]
    expected = numpy.histogram(x.astype("f4"), edges)[0]
    assert cuatomic.histogram(x, edges).counts.tolist() == expected.tolist()
    assert cuatomic.histogram(x, 3, (0, 3), weights=x).counts.tolist() == [float(x[0]), 1, 5]


@given(data=st.data(), dtype=st.sampled_from(["?"] + INTS), weight_type=st.sampled_from(DTYPES))
def test_bincount(data, dtype, weight_type):
    numbers = data.draw(st.lists(st.integers(-3 if dtype[0] == "i" else 0, 9), max_size=20))
    x = numpy.array(numbers, dtype)
    numbers = x.astype(int).tolist()
    weights = drawn(data, weight_type, min_size=len(x), max_size=len(x))
    length = data.draw(st.integers(0, 12))
    inside = [0 <= number < length for number in numbers]
    counts, outside = cuatomic.bincount(x, length=length, outside=True)
    assert counts.tolist() == [numbers.count(i) for i in range(length)]
    assert counts.dtype == numpy.int64 and outside == inside.count(False)
    sums, outside = cuatomic.bincount(x, weights, length=length, outside=True)
    assert outside == inside.count(False)
    parts = [[w.item() for v, w in zip(numbers, weights) if v == i] for i in range(length)]
    if weights.dtype.kind == "f":
        same(sums, numpy.array([math.fsum(part) for part in parts], "f8"))
    else:
        kind = "i8" if weights.dtype.kind == "i" else "u8"
        same(sums, numpy.array([sum(part) % 2**64 for part in parts], "u8").astype(kind))
    if numbers and min(numbers) < 0:
        with pytest.raises(ValueError):
            cuatomic.bincount(x)
        return
    expected = numpy.bincount(numpy.array(numbers, int), minlength=length)
    same(cuatomic.bincount(x, minlength=length), expected)
    assert len(cuatomic.bincount(x, weights, length)) == len(expected)


def test_bincount_large(rng):
    n = 50000 if QUICK else 1000000
    x = rng.integers(0, 5000, n).astype("u4")
    weights = rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20, n)
    assert (cuatomic.bincount(x) == numpy.bincount(x)).all()
    got = cuatomic.bincount(x, weights)
    order = numpy.argsort(x, kind="stable")
    ends = numpy.searchsorted(x[order], numpy.arange(5001))
    parts = [math.fsum(weights[order[a:b]]) for a, b in zip(ends, ends[1:])]
    same(got, numpy.array(parts)[: len(got)])
    fast = cuatomic.bincount(x, weights, mode="fast")
    assert numpy.allclose(fast, got, rtol=1e-6, atol=1e9)
    assert cuatomic.bincount(array.array("i", [1, 1])) == array.array("q", [0, 2])


def test_bincount_of_nothing():
    same(cuatomic.bincount([]), numpy.bincount([]))
    same(cuatomic.bincount((), minlength=2), numpy.zeros(2, "i8"))
    same(cuatomic.bincount([], [], 3), numpy.zeros(3))
    assert cuatomic.bincount([], length=2, outside=True).outside == 0


def test_bincount_does_not_convert(monkeypatch):
    x = numpy.array([3, 1, 3], "u1")
    kind = cuatomic._arrays.numpy_kind()
    monkeypatch.setattr(type(kind), "convert", lambda *arguments: pytest.fail("converted"))
    assert cuatomic.bincount(x, length=4).tolist() == [0, 1, 0, 2]


X = numpy.array([1.0, 2.0, 3.0])
N = numpy.array([1, 2, 3])


@pytest.mark.parametrize(
    "bins", [5.0, numpy.float32(5), numpy.array(5.0), True, numpy.bool_(1), 5j, math.nan]
)
def test_bins_of_another_type(bins):
    with pytest.raises(TypeError, match="is neither an integer nor edges"):
        cuatomic.histogram(X, bins)


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda: cuatomic.histogram(X, 0)),
        (ValueError, lambda: cuatomic.histogram(X, -1)),
        (ValueError, lambda: cuatomic.histogram(X, 2**40)),
        (TypeError, lambda: cuatomic.histogram(X, "auto")),
        (ValueError, lambda: cuatomic.histogram(X, 2, (2**53, 2**53 + 1))),
        (ValueError, lambda: cuatomic.histogram(X, 2, (0, 2**2000))),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X, weight_limit=2**2000)),
        (TypeError, lambda: cuatomic.histogram(X, 2, None, X)),
        (ValueError, lambda: cuatomic.bincount(N, length=2**31 + 1)),
        (ValueError, lambda: cuatomic.histogram(X, [1])),
        (ValueError, lambda: cuatomic.histogram(X, [2, 1])),
        (ValueError, lambda: cuatomic.histogram(X, [1, math.nan])),
        (TypeError, lambda: cuatomic.histogram(X, [[1, 2]] * 2)),
        (ValueError, lambda: cuatomic.histogram(X, numpy.zeros((2, 2)))),
        (TypeError, lambda: cuatomic.histogram(X, X.astype("c16"))),
        (ValueError, lambda: cuatomic.histogram(X, list(range(65538)))),
        (ValueError, lambda: cuatomic.histogram(X, 2, (2, 1))),
        (ValueError, lambda: cuatomic.histogram(X, 2, (0, math.inf))),
        (ValueError, lambda: cuatomic.histogram(X / 0, 2)),
        (ValueError, lambda: cuatomic.histogram(X * math.nan, 2)),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X[:2])),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X / 0)),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X * math.nan)),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X, weight_limit=0)),
        (ValueError, lambda: cuatomic.histogram(X, 2, weights=X, weight_limit=math.nan)),
        (TypeError, lambda: cuatomic.histogram(X, 2, weights=X.astype("c16"))),
        (TypeError, lambda: cuatomic.histogram(X.astype("c16"), 2)),
        (TypeError, lambda: cuatomic.histogram(X.astype(object), 2)),
        (ValueError, lambda: cuatomic.bincount(-N)),
        (ValueError, lambda: cuatomic.bincount(N, minlength=-1)),
        (ValueError, lambda: cuatomic.bincount(N, length=-1)),
        (ValueError, lambda: cuatomic.bincount(N, X[:2])),
        (ValueError, lambda: cuatomic.bincount(N.reshape(1, 3))),
        (ValueError, lambda: cuatomic.bincount(N, mode="best")),
        (TypeError, lambda: cuatomic.bincount(X)),
        (TypeError, lambda: cuatomic.bincount(N, X.astype("c16"))),
        (TypeError, lambda: cuatomic.bincount(N, minlength=1.5)),
        (ValueError, lambda: cuatomic.bincount(N, minlength=10**30)),
    ],
)
def test_errors(error, call):
    with numpy.errstate(all="ignore"), pytest.raises(error):
        call()
