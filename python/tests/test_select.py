# SPDX-License-Identifier: MIT
"""select, partition, isin and join against numpy."""

import array
import math
import operator

import numpy
import pytest
from conftest import QUICK
from hypothesis import given
from hypothesis import strategies as st

import cuatomic

DTYPES = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8".split()
COMPARES = {
    "<": numpy.less,
    "<=": numpy.less_equal,
    "==": numpy.equal,
    "!=": numpy.not_equal,
    ">=": numpy.greater_equal,
    ">": numpy.greater,
}


def made(data, dtype):
    """A small array of a dtype with many equal elements, and NaN and -0 of floats."""
    dtype = numpy.dtype(dtype)
    numbers = [0, 1, 2, 100]
    if dtype.kind in "if":
        numbers.append(-3)
    if dtype.kind == "f":
        numbers += [numpy.nan, -0.0, 0.5, numpy.inf, -numpy.inf]
    return numpy.array(data.draw(st.lists(st.sampled_from(numbers), max_size=40)), dtype)


@given(data=st.data(), dtype=st.sampled_from(DTYPES), compare=st.sampled_from(list(COMPARES)))
def test_select_compare(data, dtype, compare):
    x = made(data, dtype)
    value = data.draw(st.sampled_from([0, 1, 2, 100]))
    if dtype == "?":
        value = bool(value)
    keep = COMPARES[compare](x, value)
    values, indexes = cuatomic.select(x, compare, value, indexes=True)
    assert values.dtype == x.dtype and values.tobytes() == x[keep].tobytes()
    assert indexes.dtype == numpy.int64
    assert indexes.tolist() == numpy.flatnonzero(keep).tolist()


@given(
    data=st.data(),
    dtype=st.sampled_from([d for d in DTYPES if d[0] in "iu"]),
    compare=st.sampled_from(list(COMPARES)),
    value=st.integers(-(2**66), 2**66)
    | st.floats()
    | st.sampled_from([7.5, -0.5, 255.5, 2.0**63, 2.0**64, -(2.0**63), 2**2000])
    | st.integers(-3, 3),
)
def test_select_of_any_value(data, dtype, compare, value):
    info = numpy.iinfo(dtype)
    near = [math.floor(value) + d for d in (-1, 0, 1)] if math.isfinite(float_of(value)) else []
    numbers = [info.min, info.min + 1, 0, 7, 8, info.max - 1, info.max] + near
    numbers = [number for number in numbers if info.min <= number <= info.max]
    x = numpy.array(numbers, dtype)
    # Python compares integers with floats exactly
    expected = [n for n in numbers if getattr(operator, NAMES[compare])(n, value)]
    assert cuatomic.select(x, compare, value).tolist() == expected


NAMES = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">=": "ge", ">": "gt"}


def float_of(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf


@given(data=st.data(), dtype=st.sampled_from(DTYPES + ["c8", "c16"]))
def test_flags(data, dtype):
    x = numpy.array(data.draw(st.lists(st.integers(0, 1), max_size=40)), dtype)
    flags = numpy.array([data.draw(st.booleans()) for _ in x], bool)
    assert cuatomic.select(x, flags).tobytes() == x[flags].tobytes()
    values, count = cuatomic.partition(x, flags)
    assert count == flags.sum()
    assert values.tobytes() == numpy.concatenate([x[flags], x[~flags]]).tobytes()


def test_kinds(xp, rng):
    x = rng.integers(-50, 50, 1000).astype("i4")
    flags = rng.integers(0, 2, 1000).astype(bool)
    got = xp.check(cuatomic.select(xp.asarray(x), xp.asarray(flags)))
    assert got.tolist() == x[flags].tolist()
    values, indexes = cuatomic.select(xp.asarray(x), ">", 48, indexes=True)
    assert xp.check(values).tolist() == x[x > 48].tolist()
    assert xp.check(indexes).tolist() == numpy.flatnonzero(x > 48).tolist()
    values, count = cuatomic.partition(xp.asarray(x), "<", 3)
    assert xp.check(values).tolist() == x[x < 3].tolist() + x[x >= 3].tolist()
    assert count == (x < 3).sum()
    assert xp.check(cuatomic.select(xp.asarray(flags), "==", True)).dtype == bool
    got = xp.check(cuatomic.isin(xp.asarray(x), xp.asarray(x[:20])))
    assert got.dtype == bool and got.tolist() == numpy.isin(x, x[:20]).tolist()
    left, right = cuatomic.join(xp.asarray(x[:50]), xp.asarray(x[50:70]))
    assert pairs(xp.check(left), xp.check(right)) == pairs_of(x[:50], x[50:70])


def test_large(rng):
    n = 100000 if QUICK else 1000000
    x = rng.standard_normal(n)
    for threshold in (-9, 0, 3):
        assert cuatomic.select(x, "<", threshold).tobytes() == x[x < threshold].tobytes()
        loose, places = cuatomic.select(x, "<", threshold, ordered=False, indexes=True)
        assert x[places].tobytes() == loose.tobytes()
        assert numpy.sort(loose).tobytes() == numpy.sort(x[x < threshold]).tobytes()
    few = cuatomic.select(x, ">", 4)
    assert few.base is None, "a small result keeps the memory of a large one"
    loose, count = cuatomic.partition(x, "<", 1, ordered=False)
    assert (loose[:count] < 1).all() and (loose[count:] >= 1).all()
    assert numpy.sort(loose).tobytes() == numpy.sort(x).tobytes()


def test_select_shapes():
    x = numpy.arange(12).reshape(3, 4)
    assert cuatomic.select(x.T, x.T % 2 == 0).tolist() == x.T[x.T % 2 == 0].tolist()
    assert cuatomic.select(x[:, ::2], "<", 6).tolist() == [0, 2, 4]
    assert cuatomic.select([3, 1, 2], [True, False, True]).tolist() == [3, 2]
    got = cuatomic.select(array.array("d", [1, 5, 2]), "<", 3)
    assert got == array.array("d", [1, 2])
    assert cuatomic.select(b"abcb", "==", ord("b")) == array.array("B", b"bb")


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 0.1, numpy.nan, 3], ml_dtypes.bfloat16)
    assert cuatomic.select(x, "==", 0.1).tolist() == [x[1]]
    assert cuatomic.isin(x, [0.1, numpy.nan]).tolist() == [False, False, True, False]
    assert cuatomic.isin(x, x[1:2].astype("f4")).tolist() == [False, True, False, False]


def test_values_of_floats_are_rounded():
    for dtype in ("f2", "f4", "f8"):
        x = numpy.array([0.1, 1e4, 7], dtype)
        assert cuatomic.select(x, "==", 0.1).tolist() == [x[0]]
        assert cuatomic.select(x, ">", 1e300).size == 0
    assert cuatomic.select(numpy.arange(3.0), "<", numpy.float32(1)).tolist() == [0]


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda x: cuatomic.select(x, "=", 1)),
        (TypeError, lambda x: cuatomic.select(x, "<")),
        (TypeError, lambda x: cuatomic.select(x, x > 1, 1)),
        (TypeError, lambda x: cuatomic.select(x, x)),
        (ValueError, lambda x: cuatomic.select(x, x[1:] > 1)),
        (TypeError, lambda x: cuatomic.select(x, "<", 1j)),
        (TypeError, lambda x: cuatomic.select(x, "<", "a")),
        (TypeError, lambda x: cuatomic.select(x.astype("c8"), "<", 1)),
        (TypeError, lambda x: cuatomic.select(x.astype(object), "<", 1)),
        (TypeError, lambda x: cuatomic.select(x.astype(">i4"), "<", 1)),
        (TypeError, lambda x: cuatomic.isin(x.astype("u8"), x.astype("i8"))),
        (TypeError, lambda x: cuatomic.isin(x.astype("i8"), x.astype("f4"))),
        (TypeError, lambda x: cuatomic.isin(x, x.astype("c8"))),
        (TypeError, lambda x: cuatomic.isin(x, ["a"])),
        (TypeError, lambda x: cuatomic.isin(x, None)),
        (TypeError, lambda x: cuatomic.join(x, None)),
        (TypeError, lambda x: cuatomic.select(x, None)),
        (TypeError, lambda x: cuatomic.isin(x.astype("c8"), [1])),
        (TypeError, lambda x: cuatomic.isin(x.astype("c8"), x.astype("c8"))),
        (ValueError, lambda x: cuatomic.join(x, x, how="outer")),
        (TypeError, lambda x: cuatomic.join(x, x.astype("f4"))),
        (ValueError, lambda x: cuatomic.join(x.reshape(1, -1), x)),
        (ValueError, lambda x: cuatomic.join(x, x.reshape(1, -1))),
    ],
)
def test_errors(error, call):
    with pytest.raises(error):
        call(numpy.arange(4, dtype="i4"))


@given(data=st.data(), dtype=st.sampled_from(DTYPES), invert=st.booleans())
def test_isin(data, dtype, invert):
    x, values = made(data, dtype), made(data, dtype)
    expected = numpy.isin(x, values)
    if x.dtype.kind == "f":
        expected |= numpy.isnan(x) & numpy.isnan(values).any()
    assert (cuatomic.isin(x, values, invert=invert) == (expected ^ invert)).all()
    # as a list the values are the same
    assert (cuatomic.isin(x, values.tolist(), invert=invert) == (expected ^ invert)).all()


def test_isin_lists():
    x = numpy.arange(6, dtype="u1").reshape(2, 3)
    got = cuatomic.isin(x, [2.5, -1, 300, 4])
    assert got.tolist() == [[False] * 3, [False, True, False]]
    assert cuatomic.isin(x, []).sum() == 0 and cuatomic.isin(x, set(), invert=True).all()
    assert cuatomic.isin(x, range(2)).sum() == 2 and cuatomic.isin(x, 3).sum() == 1
    assert cuatomic.isin(x, numpy.arange(2, dtype="i2")).sum() == 2
    assert cuatomic.isin([], [1]).size == 0
    assert cuatomic.isin([1, 2, 3], (3, 1)).tolist() == [True, False, True]
    assert cuatomic.isin([True, False], [1]).tolist() == [True, False]
    assert cuatomic.isin(x, numpy.float64(2)).sum() == 1


@given(data=st.data(), types=st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)))
def test_isin_of_two_types(data, types):
    x, values = (made(data, dtype) for dtype in types)
    held = [item for item in values.tolist() if item == item]
    expected = [item in held or (item != item and len(held) < len(values)) for item in x.tolist()]
    kinds = {x.dtype.kind, values.dtype.kind}
    names = {a.dtype.str[1:] for a in (x, values)}
    # uint64 with signed integers, and integers of 64 bits with floats, have no common type
    lossy = (kinds >= {"i", "u"} and "u8" in names) or ("f" in kinds and names & {"i8", "u8"})
    if lossy and len(values):
        with pytest.raises(TypeError, match="no type holds both"):
            cuatomic.isin(x, values)
    else:
        assert cuatomic.isin(x, values).tolist() == expected
    # numbers are compared exactly with elements of any type
    assert cuatomic.isin(x, values.tolist()).tolist() == expected


def test_isin_is_exact():
    x = numpy.array([2**53, 2**53 + 1])
    assert cuatomic.isin(x, numpy.array([2**30], "i4")).tolist() == [False, False]
    assert cuatomic.isin(x, [float(2**53)]).tolist() == [True, False]
    wide = numpy.array([2**24, 2**24 + 1], "i4")
    assert cuatomic.isin(wide, numpy.array([2**24], "f4")).tolist() == [True, False]
    assert cuatomic.isin(wide, numpy.array([2**32 + 2**24])).tolist() == [False, False]
    for dtype in ("f2", "f4", "f8"):
        x = numpy.array([0.1, 0.5, numpy.inf], dtype)
        values = [0.1, 0.5, 1e300, 2**2000]
        assert cuatomic.isin(x, values).tolist() == [number in values for number in x.tolist()]
        assert cuatomic.isin(x, [float(x[0])])[0]


def pairs(left, right):
    return list(zip(left.tolist(), right.tolist()))


def pairs_of(left, right, how="inner"):
    def equal(a, b):
        return a == b or (a != a and b != b)

    out = []
    for i, a in enumerate(left):
        found = [(i, j) for j, b in enumerate(right) if equal(a, b)]
        out += found or ([(i, -1)] if how == "left" else [])
    return out


@given(data=st.data(), dtype=st.sampled_from(DTYPES), how=st.sampled_from(["inner", "left"]))
def test_join(data, dtype, how):
    left, right = made(data, dtype), made(data, dtype)
    got = cuatomic.join(left, right, how=how)
    assert got.left.dtype == got.right.dtype == numpy.int64
    assert pairs(*got) == pairs_of(left, right, how)


def test_join_many_pairs():
    left, right = numpy.zeros(300, "u8"), numpy.zeros(200, "u8")
    got = cuatomic.join(left, right)
    assert got.left.tolist() == numpy.repeat(numpy.arange(300), 200).tolist()
    assert got.right.tolist() == numpy.tile(numpy.arange(200), 300).tolist()
    assert len(cuatomic.join(left, right + numpy.uint64(1)).left) == 0
