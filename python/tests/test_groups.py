# SPDX-License-Identifier: MIT
"""unique, group_by, reduce_by_key and segments against numpy and exact sums."""

import array
import copy
import itertools
import math
import pickle
import statistics
from fractions import Fraction

import numpy
import pytest
from conftest import QUICK
from hypothesis import given
from hypothesis import strategies as st
from test_scatter import rounded, same

import cuatomic

INTS = "i1 u1 i2 u2 i4 u4 i8 u8".split()
FLOATS = "f2 f4 f8".split()
DTYPES = ["?"] + INTS + FLOATS


def keys_of(data, dtype, **sizes):
    numbers = [0, 1, 7, 100]
    dtype = numpy.dtype(dtype)
    if dtype.kind in "if":
        numbers.append(-3)
    if dtype.kind == "f":
        numbers += [math.nan, -0.0, 0.5, -math.inf]
    return numpy.array(data.draw(st.lists(st.sampled_from(numbers), **sizes)), dtype)


def canonical(key):
    """Keys that are equal in a group by, as equal objects."""
    key = key.item()
    return "nan" if key != key else key


def groups_of(keys):
    """The rows of each group, in the order of the first rows."""
    found = {}
    for row, key in enumerate(keys):
        found.setdefault(canonical(key), []).append(row)
    return list(found.values())


def sort_groups(keys, groups):
    """The groups in ascending order of keys, NaN last."""

    def order(rows):
        key = keys[rows[0]].item()
        return (key != key, 0 if key != key else key)

    return sorted(groups, key=order)


@given(data=st.data(), dtype=st.sampled_from(DTYPES), ascending=st.booleans())
def test_unique(data, dtype, ascending):
    x = keys_of(data, dtype, max_size=40)
    groups = groups_of(x)
    if ascending:
        groups = sort_groups(x, groups)
    firsts = [rows[0] for rows in groups]
    values, indices, inverse, counts = cuatomic.unique(x, True, True, True, sorted=ascending)
    assert values.dtype == x.dtype and values.tobytes() == x[firsts].tobytes()
    assert indices.tolist() == firsts
    assert counts.tolist() == [len(rows) for rows in groups]
    assert [inverse[row] for rows in groups for row in rows] == [
        number for number, rows in enumerate(groups) for _ in rows
    ]
    assert indices.dtype == inverse.dtype == counts.dtype == numpy.int64
    if ascending:
        for mine, other in zip((values, indices, inverse, counts), numpy.unique(x, 1, 1, 1)):
            assert numpy.array_equal(mine, other, equal_nan=mine.dtype.kind == "f")


def test_unique_results():
    x = numpy.array([[3, 1], [3, 2]])
    assert cuatomic.unique(x).tolist() == [1, 2, 3]
    for flags in itertools.product((False, True), repeat=3):
        result = cuatomic.unique(x, *flags)
        names = [n for n, flag in zip(("indices", "inverse", "counts"), flags) if flag]
        if names:
            assert result._fields == ("values", *names)
            assert pickle.loads(pickle.dumps(result))._fields == result._fields
            assert copy.copy(result)._fields == result._fields
    result = cuatomic.unique(x, return_counts=True)
    assert result._fields == ("values", "counts") and result.counts.tolist() == [1, 1, 2]
    inverse = cuatomic.unique(x, return_inverse=True).inverse
    assert inverse.tolist() == [[2, 0], [2, 1]]
    assert cuatomic.unique([2.5, 1, 2.5]).tolist() == [1, 2.5]
    assert cuatomic.unique(array.array("h", [4, 2, 4])) == array.array("h", [2, 4])
    assert type(cuatomic.unique(b"abca")) is array.array
    assert cuatomic.unique(7).tolist() == [7]
    with pytest.raises(TypeError):
        cuatomic.unique(x.astype(complex))


def test_many_groups(rng):
    n = 20000 if QUICK else 1000000
    for x in (rng.permutation(n), rng.integers(0, 5, n), rng.integers(0, n // 3, n)):
        got = cuatomic.unique(x, True, True, True)
        for mine, other in zip(got, numpy.unique(x, True, True, True)):
            same(mine, other)
        keys, results = cuatomic.group_by(x, {"n": "count", "s": ("sum", x)}, order="sorted")
        same(keys, got.values)
        same(results["n"], got.counts)
        same(results["s"], got.counts * got.values)
        runs = cuatomic.reduce_by_key(numpy.sort(x), numpy.ones(n, "i4"))
        same(runs.keys, got.values)
        same(runs.results, got.counts)
        assert len(got.values) > n // 2 or got.values.base is None


def test_more_groups_than_guessed_in_buffers():
    # the first capacity of buffers is at most an eighth of the rows
    n = 40000
    x = array.array("i", range(n))
    got = cuatomic.unique(x, return_index=True, return_inverse=True)
    assert got.values == x and got.indices.tolist() == got.inverse.tolist() == list(range(n))
    got = cuatomic.group_by(x, {"n": "count", "s": ("sum", x)})
    assert got.keys == x and got.results["n"].tolist() == [1] * n
    assert got.results["s"].tolist() == list(range(n))
    runs = cuatomic.reduce_by_key(x, x, "max")
    assert runs.keys == x and runs.results == x


def exact_sum(values, dtype):
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    return rounded(sum(map(Fraction, values), Fraction(0)), dtype)


def expected_aggregate(op, values, ddof=0):
    """A result of group_by for the valid values of a group, as its doc says."""
    dtype = values.dtype
    numbers = [v.item() for v in values]
    if op == "count":
        return len(values)
    if op in ("first", "last"):
        return numbers[-(op == "last")] if numbers else 0
    if op in ("min", "max"):
        pick = min if op == "min" else max
        real = [v for v in numbers if v == v]
        if numbers and not real:
            return math.nan
        if not real:
            if dtype.kind == "f":
                return math.inf if op == "min" else -math.inf
            info = numpy.iinfo(dtype)
            return info.max if op == "min" else info.min
        # -0 is less than +0
        return pick(real, key=lambda v: (v, math.copysign(1, v)))
    if op == "sum":
        return exact_sum(numbers, dtype) if dtype.kind == "f" else sum(numbers)
    if not numbers:
        return math.nan
    if op == "mean":
        return exact_sum([float(v) for v in numbers], "f8") / len(numbers)
    if len(numbers) <= ddof or not all(map(math.isfinite, numbers)):
        return math.nan
    spread = statistics.variance if ddof else statistics.pvariance
    return float(spread([Fraction(v) for v in numbers]))


@given(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    value_type=st.sampled_from(DTYPES),
    order=st.sampled_from(["first", "sorted", "any"]),
    masks=st.sampled_from(["none", "bool", "bits"]),
)
def test_group_by(data, dtype, value_type, order, masks):
    keys = keys_of(data, dtype, max_size=24)
    n = len(keys)
    values = keys_of(data, value_type, min_size=n, max_size=n)
    valid = numpy.array([data.draw(st.booleans()) for _ in range(n)], bool)
    mask = {"none": None, "bool": valid, "bits": numpy.packbits(valid, bitorder="little")}[masks]
    if masks == "none":
        valid[:] = True
    wanted = {
        op: (op, values, mask)
        for op in ("count", "sum", "min", "max", "mean", "var", "first", "last")
    }
    wanted["all"] = "count"
    wanted["sample"] = cuatomic.Aggregate("var", values, mask, ddof=1)
    got = cuatomic.group_by(keys, wanted, order=order)
    groups = groups_of(keys)
    if order == "sorted":
        groups = sort_groups(keys, groups)
    elif order == "any":
        place = {canonical(key): number for number, key in enumerate(got.keys)}
        groups.sort(key=lambda rows: place[canonical(keys[rows[0]])])
    assert got.keys.dtype == keys.dtype
    assert got.keys.tobytes() == keys[[rows[0] for rows in groups]].tobytes()
    for name, results in got.results.items():
        op = {"all": "count", "sample": "var"}.get(name, name)
        chosen = [[r for r in rows if valid[r] or name == "all"] for rows in groups]
        column = values
        if op in ("min", "max") and values.dtype == bool:
            column = values.view("u1")
        expected = [expected_aggregate(op, column[rows], name == "sample") for rows in chosen]
        assert results.dtype == result_type(op, column.dtype)
        if op == "var":
            assert numpy.allclose(results, expected, rtol=1e-13, atol=0, equal_nan=True)
        else:
            same(results, numpy.array(expected, results.dtype))


def result_type(op, dtype):
    if op == "count":
        return numpy.dtype("i8")
    if op == "var" or (op == "mean" and dtype.kind != "f"):
        return numpy.dtype("f8")
    if op == "sum" and dtype.kind != "f":
        return numpy.dtype("i8" if dtype.kind == "i" else "u8")
    return dtype


def test_group_by_exact(rng):
    n = 10000 if QUICK else 300000
    keys = rng.integers(0, 100, n)
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20, n)
    order = rng.permutation(n)
    first = cuatomic.group_by(keys, {"s": ("sum", x)}, order="sorted")
    second = cuatomic.group_by(keys[order], {"s": ("sum", x[order])}, order="sorted")
    expected = [math.fsum(x[keys == key]) for key in first.keys]
    same(first.results["s"], numpy.array(expected))
    same(second.results["s"], numpy.array(expected))
    fast = cuatomic.group_by(keys, {"s": ("sum", x)}, order="sorted", mode="fast")
    assert numpy.allclose(fast.results["s"], expected, rtol=1e-6, atol=1e7)


def test_group_by_forms(xp):
    keys = xp.asarray(numpy.array([7, 3, 7], "i4"))
    values = xp.asarray(numpy.array([1, 2, 4], "f4"))
    got = cuatomic.group_by(keys, {"n": "count", "first": ("sum", values), "values": ("max", keys)})
    assert xp.check(got.keys).tolist() == [7, 3]
    assert xp.check(got.results["n"]).tolist() == [2, 1]
    same(xp.check(got.results["first"]), numpy.array([5, 2], "f4"))
    same(xp.check(got.results["values"]), numpy.array([7, 3], "i4"))
    flags = xp.asarray(numpy.array([True, False, True]))
    got = cuatomic.group_by(flags, {"any": ("max", flags), "x": ("sum", values, flags)})
    assert xp.check(got.keys).dtype == bool and xp.numpy(got.keys).tolist() == [True, False]
    assert xp.check(got.results["any"]).tolist() == [1, 0]
    same(xp.check(got.results["x"]), numpy.array([5, 0], "f4"))
    got = cuatomic.unique(keys, return_inverse=True)
    assert xp.check(got.inverse).tolist() == [1, 0, 1]
    runs = cuatomic.reduce_by_key(keys, values)
    assert xp.check(runs.keys).tolist() == [7, 3, 7]
    offsets = xp.asarray(numpy.array([0, 0, 3]))
    same(xp.check(cuatomic.segmented_sum(values, offsets)), numpy.array([0, 7], "f4"))


def test_group_by_dtype_and_lists():
    got = cuatomic.group_by(
        [1, 1], {"s": cuatomic.Aggregate("sum", numpy.array([6e4, 6e4], "f2"), dtype="float32")}
    )
    half = float(numpy.float16(6e4))
    same(got.results["s"], numpy.array([2 * half], "f4"))
    got = cuatomic.group_by(
        array.array("i", [5, 5]), {"s": ("sum", array.array("d", [1, 2])), "v": ("sum", b"ab")}
    )
    assert got.keys == array.array("i", [5]) and got.results["s"] == array.array("d", [3])
    assert cuatomic.group_by([2.5, 1], {}).results == {}
    got = cuatomic.group_by([], {"n": "count", "m": ("min", [])})
    assert len(got.keys) == len(got.results["n"]) == len(got.results["m"]) == 0


@given(
    data=st.data(),
    dtype=st.sampled_from(["?"] + INTS),
    value_type=st.sampled_from(DTYPES),
    op=st.sampled_from(["sum", "min", "max"]),
    mode=st.sampled_from(["fast", "fixed"]),
)
def test_reduce_by_key(data, dtype, value_type, op, mode):
    keys = keys_of(data, dtype, max_size=24)
    n = len(keys)
    # sums of these floats are exact
    values = keys_of(data, value_type, min_size=n, max_size=n)
    starts = [i for i in range(n) if not i or keys[i] != keys[i - 1]] + [n]
    got = cuatomic.reduce_by_key(keys, values, op, mode=mode)
    assert got.keys.dtype == keys.dtype and got.keys.tolist() == keys[starts[:-1]].tolist()
    parts = [values[a:b] for a, b in zip(starts, starts[1:])]
    expected = [expected_aggregate(op, part) for part in parts]
    same(got.results, numpy.array(expected, result_type(op, values.dtype)))


@given(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    index_type=st.sampled_from(INTS),
    op=st.sampled_from(["sum", "min", "max"]),
    mode=st.sampled_from(["fast", "fixed"]),
)
def test_segments(data, dtype, index_type, op, mode):
    x = keys_of(data, dtype, max_size=24)
    offsets = sorted(data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=8)))
    got = cuatomic.segmented_reduce(x, numpy.array(offsets, index_type), op, mode=mode)
    wide = x
    if op != "sum" and x.dtype.kind != "f" and x.dtype.itemsize < 4:
        wide = x.astype("i4")
    parts = [wide[a:b] for a, b in zip(offsets, offsets[1:])]
    expected = [expected_aggregate(op, part) for part in parts]
    same(got, numpy.array(expected, result_type(op, wide.dtype)))
    if op == "sum":
        same(cuatomic.segmented_sum(x, offsets, mode=mode), got)


def test_complex_segments():
    x = numpy.array([1 + 2j, 3, 1j])
    assert cuatomic.segmented_sum(x, [0, 2, 3]).tolist() == [4 + 2j, 1j]
    got = cuatomic.reduce_by_key([1, 1, 2], x.astype("c8"))
    assert got.results.dtype == numpy.complex64 and got.results.tolist() == [4 + 2j, 1j]


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 3, 1], ml_dtypes.bfloat16)
    assert cuatomic.unique(x).dtype == x.dtype and cuatomic.unique(x).tolist() == [1, 3]
    got = cuatomic.group_by(x, {"s": ("sum", x), "m": ("mean", x), "f": ("first", x)})
    assert got.results["s"].tolist() == [2, 3] and got.results["m"].dtype == x.dtype
    assert cuatomic.segmented_reduce(x, [0, 3], "max").tolist() == [3]


KEYS, VALUES = numpy.array([1, 2, 1]), numpy.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "wanted",
    [None, 3, b"count", (), ("sum", VALUES, None, 0, None, 1), {"sum": 1}, VALUES, (None, VALUES)]
    + [(["sum"], VALUES), ("sum", VALUES, None, None), ("var", VALUES, None, 1.0)],
)
def test_malformed_aggregates(wanted):
    match = "total: .*(is neither|is no str|is no integer)"
    with pytest.raises(TypeError, match=match):
        cuatomic.group_by(KEYS, {"total": wanted})


@pytest.mark.parametrize("ddof", [-1, 2**32, 2**32 + 1, 10**30])
def test_ddof_has_32_bits(ddof):
    with pytest.raises(ValueError, match="ddof"):
        cuatomic.group_by(KEYS, {"v": cuatomic.Aggregate("var", VALUES, ddof=ddof)})
    got = cuatomic.group_by(KEYS, {"v": cuatomic.Aggregate("var", VALUES, ddof=2**32 - 1)})
    assert numpy.isnan(got.results["v"]).all()
    got = cuatomic.group_by(KEYS, {"v": cuatomic.Aggregate("var", VALUES, ddof=numpy.int64(1))})
    assert got.results["v"][0] == 2


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": "counts"})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES[:2])})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES.reshape(1, 3))})),
        (ValueError, lambda: cuatomic.group_by(KEYS.reshape(1, 3), {})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {}, order="last")),
        (ValueError, lambda: cuatomic.group_by(KEYS, {}, mode="best")),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES, VALUES > 1, -1)})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES, None, 1)})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES, KEYS)})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES, b"ab")})),
        (ValueError, lambda: cuatomic.group_by(KEYS, {str(i): "count" for i in range(65)})),
        (TypeError, lambda: cuatomic.group_by(KEYS, {"a": "sum"})),
        (TypeError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES.astype("c16"))})),
        (TypeError, lambda: cuatomic.group_by(KEYS, {"a": None})),
        (TypeError, lambda: cuatomic.group_by(KEYS, ["count"])),
        (TypeError, lambda: cuatomic.group_by(None, {})),
        (TypeError, lambda: cuatomic.reduce_by_key(KEYS, None)),
        (TypeError, lambda: cuatomic.segmented_sum(VALUES, None)),
        (TypeError, lambda: cuatomic.group_by(KEYS, {"a": ("sum", VALUES, None, 0, "float32")})),
        (TypeError, lambda: cuatomic.group_by(VALUES.astype("c16"), {})),
        (TypeError, lambda: cuatomic.group_by(VALUES.astype(object), {})),
        (ValueError, lambda: cuatomic.reduce_by_key(KEYS, VALUES[:2])),
        (ValueError, lambda: cuatomic.reduce_by_key(KEYS.reshape(3, 1), VALUES)),
        (ValueError, lambda: cuatomic.reduce_by_key(KEYS, VALUES, "mean")),
        (ValueError, lambda: cuatomic.reduce_by_key(KEYS, VALUES, mode="exact")),
        (TypeError, lambda: cuatomic.reduce_by_key(VALUES, VALUES)),
        (TypeError, lambda: cuatomic.reduce_by_key(KEYS, VALUES.astype("c16"), "min")),
        (ValueError, lambda: cuatomic.segmented_sum(VALUES, [])),
        (ValueError, lambda: cuatomic.segmented_sum(VALUES, [[0]])),
        (ValueError, lambda: cuatomic.segmented_sum(VALUES.reshape(1, 3), [0, 1])),
        (ValueError, lambda: cuatomic.segmented_reduce(VALUES, [0, 1], "prod")),
        (TypeError, lambda: cuatomic.segmented_sum(VALUES, [0.0, 1.0])),
    ],
)
def test_errors(error, call):
    with pytest.raises(error):
        call()
