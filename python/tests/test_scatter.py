# SPDX-License-Identifier: MIT
"""scatter and scatter_add against exact sums."""

import array
import math
from fractions import Fraction

import numpy
import pytest
from conftest import QUICK
from hypothesis import given
from hypothesis import strategies as st

import cuatomic

INTS = "i1 u1 i2 u2 i4 u4 i8 u8".split()
FLOATS = "f2 f4 f8".split()


def bits(x):
    return numpy.asarray(x).tobytes()


def same(got, expected):
    """The same bits, or both NaN."""
    got, expected = numpy.asarray(got), numpy.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if got.dtype.kind == "f":
        nan = numpy.isnan(expected)
        assert (numpy.isnan(got) == nan).all()
        got, expected = numpy.where(nan, 0, got), numpy.where(nan, 0, expected)
    assert bits(got) == bits(expected), "%r, not %r" % (got, expected)


def rounded(fraction, dtype):
    """A fraction as a float of a type, rounded once."""
    info = numpy.finfo(dtype)
    low = max(int(info.minexp) - int(info.nmant), -1074)
    exponent = low
    if fraction:
        a, b = abs(fraction.numerator), fraction.denominator
        exponent = max(low, a.bit_length() - b.bit_length() - int(info.nmant) - 1)
        while abs(fraction) / Fraction(2) ** exponent >= 2 ** (info.nmant + 1):
            exponent += 1
    # round() of a fraction rounds halves to even
    units = round(fraction / Fraction(2) ** exponent)
    if abs(units) * Fraction(2) ** exponent > Fraction(float(info.max)):
        return math.inf if fraction > 0 else -math.inf
    return math.copysign(math.ldexp(float(units), exponent), -1 if fraction < 0 else 1)


def exact_add(out, index, x):
    """The contract of scatter_add: each sum rounded once, in Python's fractions."""
    out = out.copy()
    for target in range(len(out)):
        rows = [i for i, number in enumerate(index.tolist()) if number == target]
        for column in numpy.ndindex(out.shape[1:]):
            place = (target,) + column
            values = [float(out[place])] + [float(x[(i,) + column]) for i in rows]
            if not rows:
                continue
            special = [v for v in values if not math.isfinite(v)]
            if special:
                out[place] = sum(special)
                continue
            total = sum(map(Fraction, values))
            if total or float(out[place]):
                out[place] = rounded(total, out.dtype)
    return out


def floats(dtype):
    width = 8 * numpy.dtype(dtype).itemsize
    some = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1000.0, 6e-8])
    return some | st.floats(width=width)


@given(data=st.data(), dtype=st.sampled_from(FLOATS), index_type=st.sampled_from(INTS))
def test_add_is_exact(data, dtype, index_type):
    targets = data.draw(st.integers(0, 5))
    width = data.draw(st.integers(1, 3))
    index = numpy.array(data.draw(st.lists(st.integers(0, 6), max_size=12)), index_type)
    x = numpy.array([[data.draw(floats(dtype)) for _ in range(width)] for _ in index], dtype)
    x = x.reshape(-1, width)
    out = numpy.array([data.draw(floats(dtype)) for _ in range(targets * width)], dtype)
    out = out.reshape(targets, width)
    expected = exact_add(out, index, x)
    order = numpy.array(data.draw(st.permutations(range(len(index)))), int)
    for mode in ("exact", "fixed"):
        mine = out.copy()
        assert cuatomic.scatter_add(mine, index, x, mode=mode) is mine
        same(mine, expected)
        mine = out.copy()
        cuatomic.scatter_add(mine, index[order], x[order], mode=mode)
        same(mine, expected)


@given(data=st.data(), dtype=st.sampled_from(INTS))
def test_integers(data, dtype):
    info = numpy.iinfo(dtype)
    number = st.integers(info.min, info.max)
    index = numpy.array(data.draw(st.lists(st.integers(-2, 5), max_size=20)), "i4")
    x = numpy.array([data.draw(number) for _ in index], dtype)
    inside = (index >= 0) & (index < 4)
    start = numpy.array([data.draw(number) for _ in range(4)], dtype)
    for mode in ("exact", "fast"):
        expected, out = start.copy(), start.copy()
        numpy.add.at(expected, index[inside], x[inside])
        got, skipped = cuatomic.scatter_add(out, index, x, mode=mode, skipped=True)
        assert got is out and skipped == (~inside).sum()
        same(out, expected)
    wide = numpy.zeros(4, "i8" if info.min else "u8")
    numpy.add.at(wide, index[inside], x[inside])
    same(cuatomic.scatter_add(4, index, x), wide)
    for op, ufunc in (("min", numpy.minimum), ("max", numpy.maximum)):
        expected, out = start.copy(), start.copy()
        ufunc.at(expected, index[inside], x[inside])
        same(cuatomic.scatter(out, index, x, op), expected)
        expected[:] = info.max if op == "min" else info.min
        ufunc.at(expected, index[inside], x[inside])
        same(cuatomic.scatter(4, index, x, op), expected)
        same(cuatomic.scatter(out, index, x, op, overwrite=True), expected)


def test_floats_min_max_mean():
    nan, inf = math.nan, math.inf
    index = numpy.array([0, 0, 1, 1, 2, 3, 3])
    x = numpy.array([1, nan, -0.0, 0.0, nan, 2, 3])
    same(cuatomic.scatter(5, index, x, "min"), numpy.array([1, -0.0, nan, 2, inf]))
    same(cuatomic.scatter(5, index, x, "max"), numpy.array([1, 0.0, nan, 3, -inf]))
    same(cuatomic.scatter(5, index, x, "mean"), numpy.array([nan, 0, nan, 2.5, nan]))
    out = numpy.arange(5.0)
    cuatomic.scatter(out, numpy.array([1, 1]), numpy.array([1.0, 4.0]), "mean")
    same(out, numpy.array([0, 2.5, 2, 3, 4]))
    got = cuatomic.scatter(2, numpy.array([1, 1]), numpy.array([1, 4], "u1"), "mean")
    same(got, numpy.array([nan, 2.5]))


def test_add_rules():
    out = numpy.array([-0.0, -0.0, 1.0])
    cuatomic.scatter_add(out, numpy.array([1, 2, 2]), numpy.array([0.0, -1.0, 0.0]))
    same(out, numpy.array([-0.0, -0.0, 0.0]))
    out = numpy.array([7.0, 8.0])
    cuatomic.scatter(out, numpy.array([1]), numpy.array([0.5]), overwrite=True)
    same(out, numpy.array([0.0, 0.5]))
    # the same sum in any order: 1e308 + 1e308 - 1e308 does not overflow
    x = numpy.array([1e308, 1e308, -1e308, 5e-324])
    same(cuatomic.scatter_add(1, numpy.zeros(4, int), x), numpy.array([1e308]))
    wide = numpy.zeros(1)
    cuatomic.scatter_add(wide, numpy.zeros(3, int), numpy.array([6e4, 6e4, 6e-8], "f2"))
    half = [float(v) for v in numpy.array([6e4, 6e4, 6e-8], "f2")]
    same(wide, numpy.array([math.fsum(half)]))
    got = cuatomic.scatter_add(
        1, numpy.zeros(2, int), numpy.array([6e4, 6e4], "f2"), dtype="float32"
    )
    same(got, numpy.array([2 * half[0]], "f4"))


def test_kinds(xp, rng):
    index = rng.integers(0, 9, (5, 4))
    x = rng.standard_normal((5, 4, 3)).astype("f4")
    expected = exact_add(numpy.zeros((8, 3), "f4"), index.ravel(), x.reshape(-1, 3))
    out = xp.asarray(numpy.zeros((8, 3), "f4"))
    assert cuatomic.scatter_add(out, xp.asarray(index), xp.asarray(x)) is out
    same(xp.numpy(out), expected)
    new, skipped = cuatomic.scatter_add(8, xp.asarray(index), xp.asarray(x), skipped=True)
    same(xp.check(new), expected)
    assert skipped == (index > 7).sum()


def test_large(rng):
    n, targets = (20000, 50) if QUICK else (1000000, 1000)
    index = rng.integers(0, targets, n)
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)
    got = cuatomic.scatter_add(targets, index, x)
    order = numpy.argsort(index, kind="stable")
    ends = numpy.searchsorted(index[order], numpy.arange(targets + 1))
    parts = [math.fsum(x[order[a:b]]) for a, b in zip(ends, ends[1:])]
    same(got, numpy.array(parts))
    shuffled = rng.permutation(n)
    with cuatomic.Context("cpu", threads=3):
        same(cuatomic.scatter_add(targets, index[shuffled], x[shuffled]), got)
    fast = cuatomic.scatter_add(targets, index, x, mode="fast")
    assert numpy.allclose(fast, got, rtol=1e-9, atol=1e20)


@pytest.mark.parametrize(
    "wide, narrow",
    [
        ("f4", "?"),
        ("f4", "i1"),
        ("f4", "u2"),
        ("f8", "i4"),
        ("f8", "u4"),
        ("f2", "u1"),
        ("i8", "u4"),
        ("i4", "u1"),
        ("f8", "f4"),
    ],
)
@pytest.mark.parametrize("op", ["add", "max", "mean"])
def test_narrow_elements(wide, narrow, op):
    if op == "mean" and wide[0] == "i":
        return
    top = 1 if narrow == "?" else numpy.finfo(narrow).max if narrow[0] == "f" else None
    top = numpy.iinfo(narrow).max if top is None else top
    x = numpy.array([top, 0, 1], narrow)
    index = numpy.array([0, 1, 1])
    out = cuatomic.scatter(numpy.zeros(2, wide), index, x, op)
    same(out, numpy.array([top, 0.5 if op == "mean" else 1]).astype(wide))
    name = numpy.dtype(wide).name
    same(cuatomic.scatter(2, index, x, op, dtype=name), out)


@pytest.mark.parametrize(
    "wide, narrow",
    [("f4", "i4"), ("f4", "i8"), ("f8", "i8"), ("f4", "f8"), ("i4", "f4"), ("u8", "i4")],
)
def test_wide_elements(wide, narrow):
    out, index, x = numpy.zeros(2, wide), numpy.array([1]), numpy.ones(1, narrow)
    with pytest.raises(TypeError, match="convert x with astype"):
        cuatomic.scatter_add(out, index, x)
    cuatomic.scatter_add(out, index, x.astype(wide))
    assert out.tolist() == [0, 1]


def test_numbers(xp):
    index = numpy.array([1, 1, 0])
    places = xp.asarray(index)
    for dtype in ("i4", "i8", "f2", "f4", "f8"):
        out = xp.asarray(numpy.zeros((2, 2), dtype))
        for number in (2, numpy.int8(2), 2.0, numpy.float32(2)):
            cuatomic.scatter_add(out, places, number)
        same(xp.numpy(out), numpy.array([[8, 8], [16, 16]], dtype))
    same(xp.check(cuatomic.scatter_add(2, places, 1)), numpy.array([1, 2]))
    same(xp.check(cuatomic.scatter_add(2, places, 0.5)), numpy.array([0.5, 1]))
    same(xp.check(cuatomic.scatter_add(2, places, 0.1, dtype="float32")), F4[:2] * F4[2:])
    scalar = xp.asarray(numpy.array(3, "f4"))
    same(xp.check(cuatomic.scatter_add(2, places, scalar)), numpy.array([3, 6], "f4"))
    out = xp.asarray(numpy.ones(2, "f4"))
    same(xp.numpy(cuatomic.scatter(out, places, 0.1, "min")), F4[2:].repeat(2))
    buffer = array.array("i", [0, 0])
    assert cuatomic.scatter_add(buffer, array.array("i", [1, 1]), 3) == array.array("i", [0, 6])
    same(cuatomic.scatter_add(2, [], 1), numpy.zeros(2, int))
    same(cuatomic.scatter_add(2, [], []), numpy.zeros(2))
    for number in (0.5, 2**40, math.nan):
        with pytest.raises(TypeError, match="is not a value of int32"):
            cuatomic.scatter_add(numpy.zeros(2, "i4"), index, number)


F4 = numpy.array([1, 2, 0.1], "f4")


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 2**-8, 2**-8], ml_dtypes.bfloat16)
    got = cuatomic.scatter_add(1, numpy.zeros(3, int), x)
    assert got.dtype == x.dtype and float(got[0]) == 1 + 2**-7


def test_empty():
    none = numpy.zeros(0, int)
    same(cuatomic.scatter_add(3, none, numpy.zeros(0)), numpy.zeros(3))
    same(cuatomic.scatter_add(0, numpy.array([1]), numpy.array([1.0])), numpy.zeros(0))
    out = numpy.ones((2, 0))
    assert cuatomic.scatter_add(out, numpy.array([1]), numpy.zeros((1, 0))) is out
    out = numpy.ones(2)
    cuatomic.scatter_add(out, none, numpy.zeros(0))
    same(out, numpy.ones(2))
    assert cuatomic.scatter_add(numpy.int64(2), [0, 1, 1], [1, 2, 3]).tolist() == [1, 5]
    buffer = array.array("d", [0, 1])
    cuatomic.scatter_add(buffer, array.array("i", [1, 1]), array.array("d", [2, 3]))
    assert buffer == array.array("d", [0, 6])


def read_only():
    out = numpy.zeros(4)
    out.flags.writeable = False
    return out


INDEX, X = numpy.array([0, 1]), numpy.array([1.0, 2.0])


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda: cuatomic.scatter(numpy.zeros(4), INDEX, X, "sum")),
        (ValueError, lambda: cuatomic.scatter_add(numpy.zeros(4), INDEX, X, mode="best")),
        (ValueError, lambda: cuatomic.scatter_add(read_only(), INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(numpy.zeros(8)[::2], INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add([0.0, 0.0], INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(bytes(8), INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(numpy.zeros(()), INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(numpy.zeros((4, 2)), INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(numpy.zeros(4), INDEX, X[:1])),
        (ValueError, lambda: cuatomic.scatter_add(4, INDEX, X[:1])),
        (ValueError, lambda: cuatomic.scatter_add(-1, INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(2**64 + 4, array.array("i", [0]), 1)),
        (ValueError, lambda: cuatomic.scatter_add(X, INDEX, X)),
        (ValueError, lambda: cuatomic.scatter_add(4, INDEX, numpy.zeros((2, 4097)))),
        (TypeError, lambda: cuatomic.scatter_add(4, X, X)),
        (TypeError, lambda: cuatomic.scatter_add(4, INDEX > 0, X)),
        (TypeError, lambda: cuatomic.scatter_add(numpy.zeros(4, bool), INDEX, INDEX > 0)),
        (TypeError, lambda: cuatomic.scatter_add(numpy.zeros(4, "f4"), INDEX, X)),
        (TypeError, lambda: cuatomic.scatter_add(numpy.zeros(4, "u8"), INDEX, INDEX)),
        (TypeError, lambda: cuatomic.scatter_add(4, INDEX, X.astype("c16"))),
        (TypeError, lambda: cuatomic.scatter_add(numpy.zeros(4), INDEX, X, dtype="f8")),
        (TypeError, lambda: cuatomic.scatter_add(4, INDEX, X, dtype="float1")),
        (TypeError, lambda: cuatomic.scatter_add("4", INDEX, X)),
        (TypeError, lambda: cuatomic.scatter_add(None, INDEX, X)),
        (TypeError, lambda: cuatomic.scatter_add(4, None, X)),
        (TypeError, lambda: cuatomic.scatter_add(4, INDEX, None)),
    ],
)
def test_errors(error, call):
    with pytest.raises(error):
        call()
