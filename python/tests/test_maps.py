# SPDX-License-Identifier: MIT
"""Hash maps and sets against Python's dict."""

import array
import copy
import fractions
import gc
import inspect
import os
import pickle
import platform
import subprocess
import sys
import threading

import numpy
import pytest

import cuatomic
from conftest import QUICK
from cuatomic import HashMap, HashSet, MapResult

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402

DTYPES = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
LARGE = 100_000 if QUICK else 1_000_000


def bits(x):
    """The elements as Python's integers of their bits."""
    x = numpy.asarray(x)
    return x.view("u%d" % x.dtype.itemsize).tolist()


def numbers(rng, n, dtype, distinct=40):
    """Few different numbers, with special ones, so that batches have duplicates."""
    dtype = numpy.dtype(dtype)
    if dtype.kind == "f":
        special = numpy.array([0.0, -0.0, numpy.nan, -numpy.nan, numpy.inf, -numpy.inf], dtype)
    else:
        limits = numpy.iinfo(dtype)
        special = numpy.array([0, 1, limits.max, limits.min, limits.max - 1], dtype)
    usual = rng.integers(0, distinct, n).astype(dtype)
    if dtype.kind != "u":
        usual -= dtype.type(distinct // 2)
    return numpy.where(rng.random(n) < 0.2, rng.choice(special, n), usual).astype(dtype)


class Model:
    """A map and a dict of the bits of its keys, changed by the same operations."""

    def __init__(self, xp, key_dtype, value_dtype, **options):
        self.xp = xp
        self.map = HashMap(key_dtype, value_dtype, 16, device=xp.device, **options)
        self.value_dtype = numpy.dtype(value_dtype)
        self.dict = {}

    def values_of(self, keys, otherwise=None):
        word = "u%d" % self.value_dtype.itemsize
        if otherwise is None:
            otherwise = numpy.zeros(len(keys), self.value_dtype)
        got = [self.dict.get(k, o) for k, o in zip(bits(keys), bits(otherwise))]
        return numpy.array(got, word).tolist()

    def insert(self, keys, values):
        before = dict(self.dict)
        results = self.xp.check(self.map.insert(self.give(keys), self.give(values), results=True))
        there = bits(self.xp.check(self.map.find(self.give(keys))[0]))
        offered = {}
        for k, v in zip(bits(keys), bits(values)):
            offered.setdefault(k, set()).add(v)
        new = [k for k, r in zip(bits(keys), results) if r == MapResult.INSERTED]
        assert sorted(new) == sorted(set(offered) - set(before))
        for k, v in zip(bits(keys), there):
            assert v in offered[k] if k not in before else v == before[k]
            self.dict[k] = v

    def assign(self, keys, values):
        results = self.xp.check(self.map.assign(self.give(keys), self.give(values), results=True))
        there = bits(self.xp.check(self.map.find(self.give(keys))[0]))
        offered = {}
        for k, v in zip(bits(keys), bits(values)):
            offered.setdefault(k, set()).add(v)
        assert (results == MapResult.INSERTED).sum() == len(set(offered) - set(self.dict))
        for k, v in zip(bits(keys), there):
            assert v in offered[k]
            self.dict[k] = v

    def insert_or_get(self, keys, values):
        got = bits(self.xp.check(self.map.insert_or_get(self.give(keys), self.give(values))))
        for k, v in zip(bits(keys), got):
            if k in self.dict:
                assert v == self.dict[k]
            assert v in bits(values) or k in self.dict
            self.dict[k] = v

    def exchange(self, keys, values):
        _, first = numpy.unique(numpy.array(bits(keys)), return_index=True)
        keys, values = keys[first], values[first]
        got, results = self.map.exchange(
            self.give(keys), self.give(values), default=7, results=True
        )
        seven = numpy.full(len(keys), 7, self.value_dtype)
        assert bits(self.xp.check(got)) == self.values_of(keys, seven)
        wanted = [2 if k in self.dict else 1 for k in bits(keys)]
        assert self.xp.check(results).tolist() == wanted
        self.dict.update(zip(bits(keys), bits(values)))

    def compare_exchange(self, keys, values):
        _, first = numpy.unique(numpy.array(bits(keys)), return_index=True)
        keys, values = keys[first], values[first]
        expected = numpy.array(self.values_of(keys), "u%d" % values.itemsize).view(values.dtype)
        expected[::2] = values[::2]
        passed = self.give(expected)
        got, results = self.map.compare_exchange(self.give(keys), passed, self.give(values))
        assert bits(self.xp.numpy(passed)) == bits(expected)
        wanted, seen = [], []
        for k, e, v in zip(bits(keys), bits(expected), bits(values)):
            there = self.dict.get(k)
            wanted.append(0 if there is None else 2 if there == e else 4)
            seen.append(e if there is None else there)
            if there == e:
                self.dict[k] = v
        assert self.xp.check(results).tolist() == wanted
        assert bits(self.xp.check(got)) == seen

    def update(self, keys, values):
        if self.value_dtype.kind == "f":
            return self.assign(keys, values)
        self.map.update(self.give(keys), self.give(values), "add")
        mask = (1 << 8 * self.value_dtype.itemsize) - 1
        for k, v in zip(bits(keys), bits(values)):
            self.dict[k] = (self.dict.get(k, 0) + v) & mask

    def erase(self, keys, values):
        erased = self.xp.check(self.map.erase(self.give(keys)))
        assert erased.dtype == bool
        gone = [k for k, e in zip(bits(keys), erased) if e]
        assert sorted(gone) == sorted(set(bits(keys)) & set(self.dict))
        for k in gone:
            del self.dict[k]

    def build(self, keys, values):
        self.map.build(self.give(keys), self.give(values))
        self.dict = {}
        self.agree(only=len(set(bits(keys))))
        k, v = self.pairs()
        self.dict = dict(zip(k, v))
        assert set(self.dict) == set(bits(keys))
        assert all(v in bits(values) for v in self.dict.values())

    def resize(self, keys, values):
        self.map.resize(max(len(self.dict), 1))

    def clear(self, keys, values):
        self.map.clear()
        self.dict = {}

    def give(self, x):
        return self.xp.asarray(x)

    def pairs(self):
        k, v = self.map.items(like=self.give(numpy.zeros(1, self.map.key_dtype)))
        return bits(self.xp.check(k)), bits(self.xp.check(v))

    def agree(self, keys=None, only=None):
        assert len(self.map) == (len(self.dict) if only is None else only)
        if only is not None:
            return
        k, v = self.pairs()
        assert dict(zip(k, v)) == self.dict and len(k) == len(self.dict)
        if keys is not None:
            values, found = self.map.find(self.give(keys))
            assert bits(self.xp.check(values)) == self.values_of(keys)
            wanted = [k in self.dict for k in bits(keys)]
            assert self.xp.check(found).tolist() == wanted
            assert self.xp.check(self.map.contains(self.give(keys))).tolist() == wanted


OPERATIONS = [
    "insert",
    "assign",
    "insert_or_get",
    "exchange",
    "compare_exchange",
    "update",
    "erase",
    "build",
    "resize",
    "clear",
]


def run(model, rng, names, sizes=(0, 1, 5, 60)):
    for name in names:
        n = int(rng.choice(sizes))
        keys = numbers(rng, n, model.map.key_dtype)
        values = numbers(rng, n, model.value_dtype)
        getattr(model, name)(keys, values)
        model.agree(numbers(rng, 30, model.map.key_dtype))


@pytest.mark.parametrize("value_dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("key_dtype", ["int32", "int64", "float32", "float64"])
def test_random_operations(xp, rng, key_dtype, value_dtype):
    model = Model(xp, key_dtype, value_dtype)
    weights = numpy.array([4, 4, 4, 4, 4, 4, 4, 1, 1, 0.5])
    run(model, rng, rng.choice(OPERATIONS, 40 if QUICK else 100, p=weights / weights.sum()))


@hypothesis.given(
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.lists(st.sampled_from(OPERATIONS), max_size=12),
    st.integers(0, 2**32),
    st.sampled_from(["seeded", "keyed"]),
    st.booleans(),
)
def test_operations(key_dtype, value_dtype, names, seed, hash, portable):
    xp = NUMPY
    model = Model(xp, key_dtype, value_dtype, hash=hash, portable=portable)
    run(model, numpy.random.default_rng(seed), names)


class NUMPY:
    device = "cpu"
    asarray = staticmethod(numpy.asarray)
    numpy = staticmethod(numpy.asarray)

    @staticmethod
    def check(x):
        assert isinstance(x, numpy.ndarray)
        return x


def test_large(xp, rng):
    keys = rng.integers(-(2**62), 2**62, LARGE)
    m = HashMap("int64", "float64", 10, device=xp.device)
    m.insert(xp.asarray(keys), xp.asarray(keys.astype("f8")))
    assert len(m) == len(numpy.unique(keys))
    values, found = m.find(xp.asarray(keys))
    assert xp.numpy(found).all()
    assert (xp.numpy(values) == keys.astype("f8")).all()
    assert not xp.numpy(m.contains(xp.asarray(-keys[keys != 0]))).all()
    k, v = m.items(sorted=True, like=values)
    assert (xp.check(k) == numpy.unique(keys)).all()
    assert (xp.check(v) == numpy.unique(keys).astype("f8")).all()
    assert xp.numpy(m.erase(xp.asarray(keys[:1000]))).all()
    assert len(m) == len(numpy.unique(keys)) - 1000


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64"])
def test_updates(rng, op, dtype):
    keys = rng.integers(0, 50, 500)
    values = numbers(rng, 500, dtype)
    m = HashMap("int64", dtype, 8, device="cpu")
    if dtype[0] == "i" and op in ("min", "max"):
        with pytest.raises(TypeError, match="unsigned"):
            m.update(keys, values, op)
        assert len(m) == 0
        return
    function = {
        "add": numpy.add,
        "min": numpy.minimum,
        "max": numpy.maximum,
        "and": numpy.bitwise_and,
        "or": numpy.bitwise_or,
        "xor": numpy.bitwise_xor,
    }[op]
    assert m.update(keys, values, op) is None
    assert m.update([77], [3], op, results=True).tolist() == [MapResult.INSERTED]
    assert m.update([77, 77], 5, op, results=True).tolist() == [MapResult.EXISTS] * 2
    got = m.find(numpy.arange(50), default=0)
    for key in range(50):
        mine = values[keys == key]
        if len(mine):
            assert got[key] == function.reduce(mine, dtype=dtype), key
    with numpy.errstate(over="ignore"):
        wanted = function.reduce(numpy.array([3, 5, 5], dtype), dtype=dtype)
    assert m[77] == wanted


def test_counts_words(xp):
    m = HashMap("int64", "int32", 1, device=xp.device)
    m.update(xp.asarray(numpy.array([3, 1, 3, 3])), 1)
    assert m[3] == 3 and m[1] == 1
    m.update(xp.asarray(numpy.array([3], "i8")), -4)
    assert m[3] == -1
    empty = xp.asarray(numpy.array([], "i8"))
    m.update(empty, 1)
    assert xp.numpy(m.contains(empty)).tolist() == []


def test_numbers(xp):
    m = HashMap("int64", "float32", 10, device=xp.device)
    m[-3] = 1.5
    m[numpy.int64(8)] = 2
    assert -3 in m and 4 not in m and 1 << 70 not in m
    assert m[-3] == 1.5 and type(m[-3]) is float
    assert m.get(8) == 2.0 and m.get(9) is None and m.get(9, 3) == 3 and m.get(1 << 70, 4) == 4
    assert sorted(m) == [-3, 8] and {k: m[k] for k in m} == {-3: 1.5, 8: 2.0}
    assert m and len(m) == 2
    del m[-3]
    for key in (-3, 1 << 70):
        with pytest.raises(KeyError):
            m[key]
        with pytest.raises(KeyError):
            del m[key]
    del m[8]
    assert not m and list(m) == []
    keys = xp.asarray(numpy.arange(5))
    m[keys] = xp.asarray(numpy.arange(5).astype("f4"))
    m[keys[:2]] = 9
    assert xp.check(m[keys]).tolist() == [9, 9, 2, 3, 4]
    with pytest.raises(KeyError, match="1 of 2"):
        m[xp.asarray(numpy.array([4, 5]))]


def test_keys_are_bits():
    m = HashMap("float64", "int32", 4, device="cpu")
    nan = float("nan")
    m.insert([0.0, -0.0, nan, nan], [1, 2, 3, 3])
    assert len(m) == 3
    assert m[0.0] == 1 and m[-0.0] == 2 and m[nan] == 3
    assert m.contains([numpy.inf, nan]).tolist() == [False, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorted(dtype, rng):
    keys = numpy.unique(numbers(rng, 300, dtype, 1000))
    if keys.dtype.kind == "f":
        keys = numpy.concatenate((keys[keys < 0], [-0.0], keys[keys >= 0])).astype(dtype)
        keys[numpy.flatnonzero(keys == 0)] = [-0.0, 0.0]
    for some in (keys, keys[keys >= 1], keys[keys < 0], keys[:0]):
        m = HashMap.from_arrays(some, some, capacity=4)
        k, v = m.items(sorted=True)
        assert bits(k) == bits(v) == bits(some)
        assert bits(m.keys(sorted=True)) == bits(some)
        s = HashSet.from_array(some, capacity=4)
        assert bits(s.keys(sorted=True)) == bits(some)
        assert sorted(s) == some.tolist()


def test_sorted_nan():
    nan = numpy.array([numpy.nan, -numpy.nan, -1, 1, -numpy.inf, numpy.inf])
    s = HashSet.from_array(nan)
    assert bits(s.keys(sorted=True)) == bits(nan[[1, 4, 2, 3, 5, 0]])


def test_from_arrays(xp):
    keys = xp.asarray(numpy.array([5, 6, 5]))
    m = HashMap.from_arrays(keys, xp.asarray(numpy.array([1, 2, 1], "f4")))
    assert m.device == xp.device and m.key_dtype == "int64" and m.value_dtype == "float32"
    assert len(m) == 2 and m[5] == 1 and m.capacity >= 3
    m = HashMap.from_arrays(keys, 4, value_dtype="int32", grow=False, capacity=50)
    assert m.capacity >= 50 and m[6] == 4
    s = HashSet.from_array(keys)
    assert len(s) == 2 and s.device == xp.device
    assert len(HashSet.from_array(xp.asarray(numpy.array([], "i4")))) == 0


def test_set(xp, rng):
    s = HashSet("int32", 4, device=xp.device)
    model = set()
    for _ in range(20):
        some = numbers(rng, 50, "int32", 100)
        results = xp.check(s.add(xp.asarray(some), results=True))
        assert (results == MapResult.INSERTED).sum() == len(set(some.tolist()) - model)
        model |= set(some.tolist())
        some = numbers(rng, 20, "int32", 100)
        erased = xp.check(s.erase(xp.asarray(some)))
        assert set(some[erased].tolist()) == set(some.tolist()) & model
        model -= set(some.tolist())
        assert (
            sorted(s)
            == sorted(model)
            == xp.check(s.keys(sorted=True, like=xp.asarray(some))).tolist()
        )
        assert sorted(s.copy_to_host().tolist()) == sorted(model)
    s.add(1234)
    assert 1234 in s and 1235 not in s and "HashSet of int32" in repr(s)
    other = HashSet.from_array(xp.asarray(numpy.array([7, 1234, 99999], "i4")))
    s.update(other, xp.asarray(numpy.array([5, 6], "i4")), 8)
    s.merge(HashSet.from_array(xp.asarray(numpy.array([-9], "i4"))))
    assert set(s) == model | {7, 1234, 99999, 5, 6, 8, -9}
    s.build(xp.asarray(numpy.array([1, 1], "i4")))
    assert list(s) == [1]
    with pytest.raises(ValueError, match="outside int32"):
        s.add(1 << 40)


# ---- full maps ----


def test_full(xp):
    m = HashMap("int64", "int32", 9, device=xp.device, grow=False, rejects=4)
    slots = m.capacity
    keys = xp.asarray(numpy.arange(slots + 6))
    values = xp.asarray(numpy.arange(slots + 6).astype("i4"))
    with pytest.raises(cuatomic.FullError, match="insert: 6 of %d" % (slots + 6)) as raised:
        m.insert(keys, values)
    assert raised.value.rejected == 6 and raised.value.status == "CUA_ERROR_FULL"
    assert len(m) == slots
    k, v = m.items(like=keys)
    there = set(xp.numpy(k).tolist())
    rejected = m.rejected(like=keys)
    assert rejected.total == 6 and len(rejected.keys) == 4
    assert (xp.check(rejected.keys) == xp.check(rejected.values)).all()
    assert not there & set(xp.numpy(rejected.keys).tolist())
    # an error is of its call alone, and results say the same without an error
    m.insert(k, v)
    results = xp.check(m.insert(keys, values, results=True))
    assert (results == MapResult.FULL).sum() == 6
    m.assign(k, v)
    m.update(k, 1)
    with pytest.raises(cuatomic.FullError, match="6 of"):
        m.update(keys, 1)
    with pytest.raises(cuatomic.FullError, match="6 of"):
        m.exchange(keys, values)
    with pytest.raises(cuatomic.FullError, match="^24 found no slot"):
        m.check()
    with pytest.raises(cuatomic.FullError, match="build: 6 of"):
        m.build(keys, values)
    assert m.rejected_total == 6 == m.statistics().rejected
    m.clear()
    m.check()
    m.insert(k, v)
    assert m.rejected(like=keys).total == 0 and len(m.rejected(like=keys).keys) == 0


def test_full_single():
    m = HashMap("uint32", "uint32", 7, device="cpu", grow=False)
    m.insert(numpy.arange(1, m.capacity + 1, dtype="u4"), 1)
    with pytest.raises(cuatomic.FullError):
        m[1000] = 1
    m[1] = 5
    assert m.get(1000) is None and m[1] == 5
    s = HashSet("uint32", 7, device="cpu", grow=False, rejects=10)
    with pytest.raises(cuatomic.FullError, match="add: 3 of"):
        s.add(numpy.arange(1, s.capacity + 4, dtype="u4"))
    rejected = s.rejected()
    assert rejected.total == 3 and len(rejected.keys) == 3
    assert sorted(s.keys().tolist() + rejected.keys.tolist()) == list(range(1, s.capacity + 4))


def test_full_view():
    """Rejections by other users of the view are not those of a call."""
    m = HashMap("uint32", "uint32", 7, device="cpu", grow=False)
    full = numpy.arange(1, m.capacity + 1, dtype="u4")
    m.insert(full, 1)
    assert m.device_view.n_buckets == 1
    m.insert(full, 1)
    other = numpy.array([99], "u4")
    at = other.ctypes.data
    assert not cuatomic._maps.lib.cua_hashmap_insert_n(m._handle, 1, at, at, None)
    assert m.rejected_total == 1
    m.insert(full, 1)
    with pytest.raises(cuatomic.FullError, match="1 of 1"):
        m.insert(other, 1)


def test_check_later():
    m = HashMap("uint32", "uint32", 7, device="cpu", grow=False, check_full=False)
    m.insert(numpy.arange(1, m.capacity + 2, dtype="u4"), 1)
    with pytest.raises(cuatomic.FullError) as raised:
        m.check()
    assert raised.value.rejected == 1


def test_growth():
    m = HashMap("int32", "int32", 1, device="cpu", grow=50)
    first = m.capacity
    m.insert(numpy.arange(1000, dtype="i4"), 1)
    assert m.capacity > first and m.statistics().load <= 0.5
    m = HashMap("int32", "int32", 10, device="cpu", max_bytes=10000)
    with pytest.raises(cuatomic.FullError, match="max_bytes") as raised:
        m.insert(numpy.arange(100000, dtype="i4"), 1, results=True)
    assert raised.value.results.tolist() == [MapResult.FULL] * 100000
    with pytest.raises(cuatomic.FullError, match="max_bytes"):
        m.insert(numpy.arange(100000, dtype="i4"), 1)
    m.insert(numpy.arange(10, dtype="i4"), 1)
    assert len(m) == 10


def test_resize():
    m = HashMap("int32", "int32", 10, device="cpu")
    m.insert(numpy.arange(100, dtype="i4"), 1)
    m.resize(5000)
    assert m.capacity >= 5000 and len(m) == 100
    m.resize(100)
    assert m.capacity < 200 and len(m) == 100
    with pytest.raises(cuatomic.ArgumentError, match=r"resize\(99\)"):
        m.resize(99)
    assert len(m) == 100


def test_no_erase():
    m = HashMap("uint32", "uint32", 10, device="cpu", no_erase=True)
    m.update([1, 1], 2)
    assert m[1] == 4
    with pytest.raises(cuatomic.Error, match="erase"):
        m.erase([1])
    assert m[1] == 4


# ---- merge ----


@pytest.mark.parametrize("how", ["keep", "replace", "add", "min", "max", "xor"])
def test_merge(xp, how):
    a = HashMap("int64", "uint64", 4, device=xp.device)
    b = HashMap("int64", "uint64", 4, device=xp.device)
    a.insert([1, 2, 3], [10, 20, 30])
    b.insert([2, 3, 4], [5, 100, 7])
    a.merge(b, how)
    both = {
        "keep": lambda x, y: x,
        "replace": lambda x, y: y,
        "add": lambda x, y: x + y,
        "min": min,
        "max": max,
        "xor": lambda x, y: x ^ y,
    }[how]
    assert dict(zip(*(x.tolist() for x in a.copy_to_host()))) == {
        1: 10,
        2: both(20, 5),
        3: both(30, 100),
        4: 7,
    }
    assert len(b) == 3


def test_merge_errors():
    a = HashMap("int64", "int64", 4, device="cpu")
    with pytest.raises(ValueError, match="same"):
        a.merge(a)
    with pytest.raises(ValueError, match="how"):
        a.merge(HashMap("int64", "int64", 4, device="cpu"), "sum")
    with pytest.raises(TypeError, match="unsigned"):
        a.merge(HashMap("int64", "int64", 4, device="cpu"), "min")
    for other in (
        HashMap("int64", "int32", 4, device="cpu"),
        HashSet("int64", 4, device="cpu"),
        {},
    ):
        with pytest.raises(TypeError, match="merge"):
            a.merge(other)
    with pytest.raises(TypeError, match="merge"):
        HashSet("int64", 4, device="cpu").merge(a)


# ---- files ----


@pytest.mark.parametrize("key_dtype,value_dtype", [("int32", "float64"), ("float64", "int32")])
def test_files(xp, rng, tmp_path, key_dtype, value_dtype):
    keys, values = numbers(rng, 500, key_dtype, 300), numbers(rng, 500, value_dtype, 300)
    m = HashMap(key_dtype, value_dtype, 10, device=xp.device)
    m.insert(xp.asarray(keys), xp.asarray(values))
    wanted = sorted(zip(*map(bits, m.copy_to_host())))
    types = dict(key_dtype=key_dtype, value_dtype=value_dtype)
    for path in (tmp_path / "a.map", str(tmp_path / "b.map"), os.fsencode(str(tmp_path / "ü"))):
        m.save(path)
        for device in ("cpu", xp.device):
            loaded = HashMap.load(path, device, **types)
            assert sorted(zip(*map(bits, loaded.copy_to_host()))) == wanted
            assert loaded.key_dtype == key_dtype and loaded.value_dtype == value_dtype
            assert loaded.device == device
    plain = HashMap.load(path, "cpu", max_bytes=1 << 20, rejects=3)
    assert plain.key_dtype == "uint%d" % (8 * keys.itemsize)
    assert plain.value_dtype == "uint%d" % (8 * values.itemsize)
    with pytest.raises(TypeError, match="unlike"):
        HashMap.load(path, "cpu", value_dtype={4: "int64", 8: "int32"}[values.itemsize])
    with pytest.raises(cuatomic.ArgumentError):
        HashMap.load(path, "cpu", max_bytes=100)
    with pytest.raises(TypeError, match="unlike"):
        HashMap.load(path, "cpu", key_dtype={4: "int64", 8: "int32"}[keys.itemsize])
    with pytest.raises(TypeError, match="map, not a set"):
        HashSet.load(path, "cpu")
    with pytest.raises(TypeError):
        HashMap.load(path, "cpu", growth=3)
    s = HashSet.from_array(xp.asarray(keys))
    s.save(path)
    loaded = HashSet.load(path, xp.device, dtype=key_dtype)
    assert sorted(bits(loaded.copy_to_host())) == sorted(bits(s.copy_to_host()))
    with pytest.raises(TypeError, match="set, not a map"):
        HashMap.load(path, "cpu")


def test_file_errors(tmp_path):
    m = HashMap("int32", "int32", 4, device="cpu")
    missing = str(tmp_path / "missing" / "x.map")
    for call in (m.save, lambda path: HashMap.load(path, "cpu")):
        with pytest.raises(FileNotFoundError, match="missing") as raised:
            call(missing)
        assert raised.value.filename == missing and raised.value.errno == 2
        assert isinstance(raised.value, cuatomic.SystemError)
        assert raised.value.status == "CUA_ERROR_SYSTEM"
        with pytest.raises(OSError) as raised:
            call(tmp_path)
        assert not isinstance(raised.value, FileNotFoundError)
        with pytest.raises(ValueError, match="NUL"):
            call("a\0b")
        with pytest.raises(TypeError):
            call(None)


def test_hostile_files(tmp_path, rng):
    path = tmp_path / "good.map"
    HashMap.from_arrays(numpy.arange(40), numpy.arange(40) * 3).save(path)
    good = path.read_bytes()
    bad = tmp_path / "bad.map"
    changed = [good[:n] for n in list(range(0, 100, 7)) + [len(good) - 1]] + [good + b"\0"]
    for at in range(0, len(good), 1 if len(good) < 200 else 3):
        flipped = bytearray(good)
        flipped[at] ^= 1 << rng.integers(8)
        changed.append(bytes(flipped))
    changed.append(bytes(rng.integers(0, 256, 500, dtype="u1")))
    for content in changed:
        bad.write_bytes(content)
        for options in ({}, {"max_bytes": 1 << 20}):
            with pytest.raises(cuatomic.CorruptError, match="bad.map: the file is not consistent"):
                HashMap.load(bad, "cpu", **options)
    with pytest.raises(
        cuatomic.CorruptError, match="bad.map: the file is not consistent"
    ) as raised:
        HashSet.load(bad, "cpu")
    assert raised.value.status == "CUA_ERROR_CORRUPT"


# ---- arguments ----


def test_dtypes_of_arguments():
    m = HashMap("int64", "float64", 10, device="cpu")
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"):
        m.assign(numpy.array([1], dtype), numpy.array([1], dtype))
    assert len(m) == 1
    for dtype in ("uint64", "float32", "float64", "complex64"):
        with pytest.raises(TypeError, match="keys are %s" % dtype):
            m.contains(numpy.array([1], dtype))
    for dtype in ("int64", "uint64", "complex64"):
        with pytest.raises(TypeError, match="values are %s" % dtype):
            m.insert([1], numpy.array([1], dtype))
    with pytest.raises(TypeError):
        m.contains(numpy.array([1], object))
    for dtype in ("int8", "int32", "int64"):
        with pytest.raises(TypeError, match="keys are %s" % dtype):
            HashMap("uint64", "int32", 9, device="cpu").contains(numpy.array([1], dtype))
    with pytest.raises(TypeError, match=">i8"):
        m.contains(numpy.array([1], ">i8"))
    big = numpy.arange(6)
    m.assign(big[::2], numpy.arange(6.0)[::-2])
    assert m.find([0, 2, 4]).values.tolist() == [5, 3, 1]
    assert m.contains(range(3)).tolist() == [True, True, True]
    assert m.contains(memoryview(array.array("q", [0, 9]))).tolist() == [1, 0]
    assert isinstance(m.contains(array.array("q", [0, 9])), array.array)
    assert m.find(array.array("q", [0, 9])) == (array.array("d", [5, 0]), array.array("B", [1, 0]))
    readonly = numpy.arange(3)
    readonly.flags.writeable = False
    assert m.contains(readonly).all()


@pytest.mark.parametrize(
    "error,match,call",
    [
        (ValueError, "1-D", lambda m: m.find(numpy.zeros((2, 2), "i8"))),
        (ValueError, "1-D", lambda m: m.find(numpy.int64(3))),
        (ValueError, "1-D", lambda m: m.find(numpy.array(3))),
        (ValueError, "1-D", lambda m: m.insert([1], numpy.zeros((1, 1)))),
        (ValueError, "2 keys and 1 values", lambda m: m.insert([1, 2], [1])),
        (ValueError, "2 keys and 3 values", lambda m: m.update([1, 2], [1, 2, 3], "xor")),
        (ValueError, "outside int64", lambda m: m.find([1 << 63])),
        (ValueError, "outside int64", lambda m: m.find([1 << 90])),
        (TypeError, "int64", lambda m: m.find([1.5])),
        (TypeError, "keys", lambda m: m.find(["a"])),
        (TypeError, "keys", lambda m: m.find([[1], [2]])),
        (TypeError, "not an array", lambda m: m.find(None)),
        (KeyError, "1.5", lambda m: m[1.5]),
        (TypeError, "1.5 is not an integer", lambda m: m.__setitem__(1.5, 1)),
        (TypeError, "astype\\('int64'\\)", lambda m: m.find(numpy.zeros(2))),
        (TypeError, "astype\\('uint64'\\)", lambda m: m.insert([1, 2], numpy.zeros(2))),
        (TypeError, "str", lambda m: m.pop("a")),
        (TypeError, "at most one", lambda m: m.pop(1, 2, 3)),
        (KeyError, "9", lambda m: m.pop(9)),
        (KeyError, "1.5", lambda m: m.pop(1.5)),
        (TypeError, "complex", lambda m: 1j in m),
        (TypeError, "NoneType", lambda m: None in m),
        (TypeError, "str", lambda m: "a" in m),
        (TypeError, "ndarray", lambda m: numpy.arange(3) in m),
        (TypeError, "list", lambda m: m.__delitem__([1])),
        (TypeError, "str", lambda m: m.insert([1], "a")),
        (TypeError, "default", lambda m: m.find([1], default=1j)),
        (ValueError, "outside int64", lambda m: m.__setitem__(1 << 63, 1)),
        (TypeError, "single key", lambda m: m.__setitem__(1, [1])),
        (ValueError, "op 'sum'", lambda m: m.update([1], 1, "sum")),
        (ValueError, "op \\['add'\\]", lambda m: m.update([1], 1, ["add"])),
        (ValueError, "uint64|outside|value", lambda m: m.update([1], -1)),
        (ValueError, "capacity=0", lambda m: m.resize(0)),
        (TypeError, "capacity", lambda m: m.resize(1.5)),
        (ValueError, "capacity=-1", lambda m: m.resize(-1)),
        (ValueError, "capacity", lambda m: HashMap("int64", "int64", 0, device="cpu")),
        (ValueError, "capacity", lambda m: HashMap("int64", "int64", 1 << 64, device="cpu")),
        (ValueError, "capacity", lambda m: HashMap("int64", "int64", 1 << 62, device="cpu")),
        (TypeError, "float16", lambda m: HashMap("float16", "int64", 9, device="cpu")),
        (TypeError, "int8", lambda m: HashMap("int64", "int8", 9, device="cpu")),
        (TypeError, "'str'.*int32, uint32.*float64$", lambda m: HashMap("str", "int64", 9)),
        (TypeError, "'str'.*int32, uint32.*float64$", lambda m: HashMap("int64", "str", 9)),
        (TypeError, "float16.*int32, uint32.*float64", lambda m: HashMap("int64", "float16", 9)),
        (TypeError, "a dict is no.*keys.*from_dict", lambda m: HashMap({1: 2})),
        (TypeError, "a list is no.*keys.*from_arrays", lambda m: HashMap([1], [2])),
        (TypeError, "a ndarray is no.*from_arrays", lambda m: HashMap(numpy.zeros((99, 99)), "i4")),
        (TypeError, "100 is no.*keys", lambda m: HashMap(100, "int64", "int64")),
        (TypeError, "a NoneType is no.*keys", lambda m: HashMap(None, "int64", 9)),
        (TypeError, "a dict is no.*values", lambda m: HashMap("int64", {1: 2}, 9)),
        (TypeError, "HashSet", lambda m: HashMap("int64", None, 9)),
        (TypeError, "a list is no.*from_array", lambda m: HashSet([1, 2])),
        (TypeError, "a set is no.*from_array", lambda m: HashSet({1, 2}, 9)),
        (TypeError, "list", lambda m: HashMap.from_dict([(1, 2)], "int64", "int64")),
        (TypeError, "int64", lambda m: HashMap.from_dict({"a": 2}, "int64", "int64")),
        (ValueError, "outside", lambda m: HashMap.from_dict({1 << 40: 2}, "int32", "int64")),
        (TypeError, "int64", lambda m: HashMap.from_dict({1: 2.5}, "int64", "int64")),
        (ValueError, "grow=96", lambda m: HashMap("int64", "int64", 9, device="cpu", grow=96)),
        (ValueError, "hash", lambda m: HashMap("int64", "int64", 9, device="cpu", hash="sip")),
        (ValueError, "seed=0", lambda m: HashMap("int64", "int64", 9, device="cpu", seed=0)),
        (ValueError, "seed", lambda m: HashMap("int64", "int64", 9, device="cpu", seed=1 << 64)),
        (TypeError, "seed", lambda m: HashMap("int64", "int64", 9, device="cpu", seed="a")),
        (ValueError, "max_probes", lambda m: HashMap("int64", "int64", 9, max_probes=31)),
        (ValueError, "rejects", lambda m: HashMap("int64", "int64", 9, rejects=-1)),
        (ValueError, "max_bytes", lambda m: HashMap("int64", "int64", 9, max_bytes=0)),
        (ValueError, "device", lambda m: HashMap("int64", "int64", 9, device="tpu")),
        (cuatomic.DeviceError, "cuda:77", lambda m: HashMap("int64", "int64", 9, device=77)),
        (TypeError, "HashMap cannot be pickled", lambda m: pickle.dumps(m)),
        (TypeError, "HashSet cannot be pickled", lambda m: pickle.dumps(HashSet("int64", 9))),
    ],
)
def test_errors(error, match, call):
    m = HashMap("int64", "uint64", 10, device="cpu")
    m.insert([1, 2, 3], 5)
    with pytest.raises(error, match=match) as raised:
        call(m)
    assert "\n" not in str(raised.value)
    assert sorted(m) == [1, 2, 3] and m[1] == 5


def test_float_updates():
    m = HashMap("int64", "float32", 10, device="cpu")
    for op in ("add", "max", "xor"):
        with pytest.raises(TypeError, match="float32"):
            m.update([1], 1.0, op)


def test_other_device(xp):
    if xp.device == "cpu":
        pytest.skip("a single device")
    m = HashMap("int64", "int64", 10, device=xp.device)
    with pytest.raises(ValueError, match="on cpu, the HashMap on cuda:0"):
        m.find(numpy.arange(3))
    with pytest.raises(ValueError, match="values"):
        m.insert(xp.asarray(numpy.arange(3)), numpy.arange(3))
    with pytest.raises(ValueError, match="like"):
        m.items(like=numpy.arange(3))
    with pytest.raises(ValueError, match="merge"):
        m.merge(HashMap("int64", "int64", 10, device="cpu"))
    host = HashMap("int64", "int64", 10, device="cpu")
    with pytest.raises(ValueError, match="on cuda:0, the HashMap on cpu"):
        host.find(xp.asarray(numpy.arange(3)))


def test_streams(xp):
    """A map follows the current stream of the arrays' library."""
    if xp.name != "cupy":
        pytest.skip("for CuPy")
    import cupy

    m = HashMap("int64", "int64", 10, device=xp.device)
    for i in range(20):
        with cupy.cuda.Stream(non_blocking=True):
            keys = cupy.arange(i * 1000, (i + 1) * 1000)
            m.insert(keys, keys * 2)
            assert m._context._stream == cupy.cuda.get_current_stream().ptr
    keys = cupy.arange(20000)
    values, found = m.find(keys)
    assert bool(found.all()) and bool((values == keys * 2).all())
    stream = cupy.cuda.Stream(non_blocking=True)
    with cuatomic.Context(xp.device, stream=stream):
        values, found = m.find(keys)
        assert m._context._stream == stream.ptr
    assert bool((values == keys * 2).all())
    assert isinstance(m.keys(), cupy.ndarray)


def test_threads_of_context():
    m = HashMap("int64", "int64", 10, device="cpu")
    with cuatomic.Context("cpu", threads=3):
        m.insert([1], 1)
        assert m._context.threads == 3
    m.insert([1], 1)
    assert m._context.threads == cuatomic.Context("cpu").threads


def test_like():
    m = HashMap.from_arrays(numpy.arange(3), numpy.arange(3))
    assert isinstance(m.keys(), numpy.ndarray)
    k, v = m.items(like=array.array("q"))
    assert isinstance(k, array.array) and sorted(k) == [0, 1, 2] == sorted(v)
    assert isinstance(m.copy_to_host().keys, numpy.ndarray)
    assert sorted(m.values(like=[]).tolist()) == [0, 1, 2]
    with pytest.raises(TypeError):
        m.items(like=object())


def test_device_view():
    m = HashMap("int32", "float64", 100, device="cpu", hash="keyed", seed=(5 << 64) + 7)
    view = m.device_view
    assert (view.key_size, view.value_size, view.hash) == (4, 8, 1)
    assert (view.seed, view.seed_high) == (7, 5)
    assert view.buckets and view.n_buckets
    assert HashMap("int32", "int32", 9, device="cpu", seed=9).device_view.seed == 9
    a, b = (HashMap("int32", "int32", 9, device="cpu").device_view.seed for _ in range(2))
    assert a != b or os.environ.get("CUATOMIC_HASH_SEED")


def test_statistics():
    m = HashMap("int32", "int32", 100, device="cpu")
    m.insert(numpy.arange(60, dtype="i4"), 1)
    m.erase(numpy.arange(10, dtype="i4"))
    s = m.statistics()
    assert s.keys == 50 == sum(s.probes) and s.slots == m.capacity
    assert s.load == 50 / s.slots and s.free + s.erased + s.keys in range(s.slots, s.slots + 3)


# ---- life ----


def test_close():
    with HashMap("int64", "int64", 10, device="cpu") as m:
        m.insert([1], 1)
        assert "int64" in repr(m)
    assert repr(m) == "<closed HashMap>"
    m.close()
    calls = [
        lambda: m.insert([1], 1),
        lambda: m.find([1]),
        lambda: m.find([]),
        lambda: len(m),
        lambda: list(m),
        lambda: m[1],
        lambda: 1 in m,
        lambda: m.items(),
        lambda: m.clear(),
        lambda: m.save("x"),
        lambda: m.device_view,
        lambda: m.capacity,
        lambda: m.check(),
        lambda: m.rejected(),
        lambda: m.copy_to_host(),
        lambda: m.__enter__(),
        lambda: HashMap("int64", "int64", 10, device="cpu").merge(m),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()


def test_garbage_cycle():
    """A map that refers to itself is destroyed before its context."""
    for _ in range(20):
        m = HashMap("int64", "int64", 1000, device="cpu")
        m.insert(range(100), 1)
        m.self = m
        m.context = m._context
        del m
        gc.collect()
    m = HashMap("int64", "int64", 1000, device="cpu")
    m._context.__del__()
    m.insert([1], 2)
    assert m[1] == 2


def test_fork():
    m = HashMap("int64", "int64", 10, device="cpu")
    m.insert([1], 1)
    child = os.fork()
    if not child:
        code = 1
        try:
            with pytest.raises(cuatomic.Error, match="parent"):
                m.find([1])
            with pytest.raises(cuatomic.Error, match="parent"):
                m.close()
            del m
            HashMap("int64", "int64", 10, device="cpu").insert([1], 1)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert m[1] == 1


def test_threads():
    """Threads that write and read one map."""
    m = HashMap("int64", "int64", 10, device="cpu")
    problems = []

    def work(t):
        try:
            rng = numpy.random.default_rng(t)
            keys = numpy.arange(100) + 1000 * t
            for _ in range(50):
                m.update(rng.integers(-20, 0, 100), 1)
                m.assign(keys, keys + t)
                assert (m.find(keys).values == keys + t).all()
                assert m[1000 * t] == 1001 * t
                m.erase(keys[::2])
                assert m.contains(keys).sum() == 50
                len(m)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    keys, values = m.items()
    assert values[keys < 0].sum() == 6 * 50 * 100
    assert len(m) == 6 * 50 + 20


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.insert([1], 1),
        lambda m: m.update([1], 1),
        lambda m: m.find([1]),
        lambda m: m.compare_exchange([1], 1, 1),
        lambda m: m.items(),
        lambda m: m.copy_to_host(),
        lambda m: m.rejected(),
        lambda m: m.check(),
        lambda m: m.save(os.devnull),
        lambda m: m.clear(),
        lambda m: m.close(),
        len,
    ],
)
def test_lock(call):
    """Calls wait for the calls of other threads."""
    m = HashMap("int64", "int64", 10, device="cpu")

    def work():
        try:
            call(m)
        except OSError:
            pass

    thread = threading.Thread(target=work)
    with m._lock:
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join()


def test_threads_merge_both_ways():
    a = HashMap.from_arrays(numpy.arange(100), numpy.arange(100))
    b = HashMap.from_arrays(numpy.arange(50, 150), numpy.arange(50, 150))
    threads = [
        threading.Thread(target=lambda x=x, y=y: [x.merge(y) for _ in range(50)])
        for x, y in ((a, b), (b, a))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(a) == len(b) == 150


def test_without_numpy():
    code = """
import sys
sys.modules["numpy"] = None
import array, cuatomic
m = cuatomic.HashMap("int64", "float32", 10, device="cpu")
m.insert([1, -2, 3], [1, 2, 3])
assert m[-2] == 2 and 3 in m
keys, values = m.items(sorted=True)
assert keys == array.array("q", [-2, 1, 3]) and values == array.array("f", [2, 1, 3])
assert m.find(array.array("q", [3, 4]), default=9) == array.array("f", [3, 9])
assert sorted(m.copy_to_host().keys) == [-2, 1, 3]
assert cuatomic.HashSet.from_array(array.array("i", [4, 4])).keys() == array.array("i", [4])
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- like a dict and a set ----


def pairs_of(m):
    return dict(zip(*(x.tolist() for x in m.copy_to_host())))


@pytest.mark.parametrize("value_dtype", ["int32", "float64"])
@pytest.mark.parametrize("key_dtype", DTYPES)
def test_from_dict(xp, key_dtype, value_dtype):
    pairs = {3: 1, 0: 5, 100: -2}
    m = HashMap.from_dict(pairs, key_dtype, value_dtype, device=xp.device)
    assert pairs_of(m) == pairs and (m.key_dtype, m.value_dtype) == (key_dtype, value_dtype)
    assert m.device == xp.device
    m = HashMap.from_dict(pairs, key_dtype, value_dtype, 500, device=xp.device, grow=False)
    assert pairs_of(m) == pairs and m.capacity >= 500
    assert len(HashMap.from_dict({}, key_dtype, value_dtype, device=xp.device)) == 0


def test_pop(xp):
    m = HashMap.from_dict({3: 1.5, -7: 2.5}, "int64", "float32", device=xp.device)
    assert m.pop(3) == 1.5 and 3 not in m and len(m) == 1
    assert m.pop(3, None) is None and m.pop(1 << 70, "x") == "x" and m.pop(0.5, 4) == 4
    assert m.pop(-7.0, 9) == 2.5 and not m
    for key in (3, 1 << 70, 0.5):
        with pytest.raises(KeyError):
            m.pop(key)
    m = HashMap("int64", "int64", 10, device=xp.device, no_erase=True)
    m[1] = 2
    with pytest.raises(cuatomic.Error, match="pop"):
        m.pop(1)
    assert m[1] == 2


@pytest.mark.parametrize("make", [lambda m: m.copy(), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("n", [0, 1, 200, 5000])
def test_copy(xp, make, n):
    keys = xp.asarray(numpy.arange(n, dtype="i4") - 5)
    for options in ({}, {"grow": False, "hash": "keyed", "seed": 1 << 90}, {"no_erase": True}):
        m = HashMap("int32", "float64", 3 * n + 1, device=xp.device, **options)
        m.insert(keys, 1.5)
        other = make(m)
        assert type(other) is HashMap and other.device == m.device
        assert (other.key_dtype, other.value_dtype) == ("int32", "float64")
        assert pairs_of(other) == pairs_of(m) and len(other) == n
        assert other.capacity == m.capacity
        view, seen = m.device_view, other.device_view
        assert (seen.hash, seen.no_erase) == (view.hash, view.no_erase)
        assert "seed" not in options or (seen.seed, seen.seed_high) == (view.seed, view.seed_high)
        other[1000000] = 2
        assert 1000000 not in m and len(m) == n
    s = HashSet("int32", n + 1, device=xp.device)
    s.add(keys)
    other = make(s)
    assert type(other) is HashSet and set(other) == set(s) and len(other) == n
    other.add(1000000)
    assert 1000000 not in s


@pytest.mark.parametrize("key_dtype", ["int32", "int64"])
@pytest.mark.parametrize("value_dtype", ["int32", "int64"])
def test_copy_full(key_dtype, value_dtype):
    """A copy of a full map that cannot grow has all its pairs, in the same memory."""
    for capacity in (1, 7, 8, 60, 511, 513, 5000, 70000):
        m = HashMap(key_dtype, value_dtype, capacity, device="cpu", grow=False)
        m.insert(numpy.arange(m.capacity, dtype=key_dtype), 3)
        other = m.copy()
        assert pairs_of(other) == pairs_of(m) and other.capacity == m.capacity
        with pytest.raises(cuatomic.FullError):
            other.insert(numpy.arange(m.capacity + 3, dtype=key_dtype), 3)


def test_copy_options(tmp_path):
    m = HashMap("int32", "int32", 7, device="cpu", grow=False, check_full=False, rejects=4)
    m.insert(numpy.arange(1, m.capacity + 3, dtype="i4"), 1)
    other = m.copy()
    assert other.rejected_total == 0
    other.insert(numpy.arange(1, m.capacity + 3, dtype="i4"), 1)
    assert other.rejected_total == 2 == len(other.rejected().keys)
    path = tmp_path / "x"
    HashMap("int32", "int32", 7, device="cpu", hash="keyed", max_probes=40, no_erase=True).save(
        path
    )
    view = HashMap.load(path, "cpu").copy().device_view
    assert (view.hash, view.max_probes, view.no_erase) == (1, 40, 1)
    view = HashMap.load(path, "cpu", hash="keyed", seed=1 << 70).copy().device_view
    assert (view.hash, view.seed_high) == (1, 64)


def test_remove(xp):
    s = HashSet("int32", 9, device=xp.device)
    s.add([1, 2, 3])
    assert s.discard(2) is None and s.discard(2) is None and set(s) == {1, 3}
    for key in (1 << 50, 1.5):
        assert s.discard(key) is None
        with pytest.raises(KeyError):
            s.remove(key)
    assert s.remove(3) is None and set(s) == {1}
    with pytest.raises(KeyError, match="3"):
        s.remove(3)
    for call in (s.discard, s.remove, s.add):
        with pytest.raises(TypeError):
            call("a")
    with pytest.raises(TypeError, match="1.5 is not an integer"):
        s.add(1.5)
    with pytest.raises(TypeError, match="pass arrays"):
        s.discard([1])
    assert set(s) == {1}


INFINITY = float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
def test_membership(dtype):
    """Numbers that are no keys are absent, as in a dict."""
    m = HashMap.from_dict({2: 1}, dtype, "int64", device="cpu")
    s = HashSet(dtype, 4, device="cpu")
    s.add(2)
    for c in (m, s):
        for key in (2, 2.0, numpy.float32(2), numpy.uint8(2), fractions.Fraction(2)):
            assert key in c
        nan = float("nan")
        for key in (1.5, fractions.Fraction(5, 2), -1, INFINITY, nan, 1e300, 1 << 64, 10**400):
            assert key not in c and -key not in c
        for key in ("2", None, b"2", (2,), 2j):
            with pytest.raises(TypeError, match="not a number"):
                key in c
    assert m[2.0] == 1 and m.get(2.5) is None
    m[3.0] = 4
    assert m[3] == 4


def test_membership_of_infinity():
    """A number outside float32 is not its infinity."""
    s = HashSet("float32", 4, device="cpu")
    s.add([INFINITY])
    assert INFINITY in s and -INFINITY not in s and 1e300 not in s and 10**39 not in s
    with pytest.raises(ValueError, match="outside float32"):
        s.add(1e300)
    s.add(0.1)
    assert 0.1 in s


def test_torch_conversion(xp):
    if not xp.name.startswith("torch"):
        pytest.skip("for PyTorch")
    m = HashMap("int64", "int64", 4, device=xp.device)
    with pytest.raises(TypeError, match=r"to\(torch.int64\)"):
        m.find(xp.asarray(numpy.zeros(3)))


def test_signatures():
    """help() shows the parameters."""
    of_map = dict(inspect.signature(HashMap).parameters)
    of_set = dict(inspect.signature(HashSet).parameters)
    assert list(of_map)[:3] == ["key_dtype", "value_dtype", "capacity"]
    assert list(of_set)[:2] == ["dtype", "capacity"]
    options = inspect.signature(cuatomic._maps._options).parameters
    for name, parameter in options.items():
        assert of_map[name].default == of_set[name].default == parameter.default
    assert list(of_map)[3:] == list(of_set)[2:]
    assert set(of_set) == {"dtype", "capacity", "device", "check_full"} | set(options)


@pytest.mark.parametrize("make", [HashSet, lambda *a, **b: HashMap("int32", *a, **b)])
def test_options(make):
    """Each option has its effect on maps and sets."""
    options = {"hash": "keyed", "seed": 1 << 70, "max_probes": 40, "no_erase": True}
    view = make("int32", 9, device="cpu", **options).device_view
    assert (view.hash, view.seed, view.seed_high) == (1, 0, 64)
    assert (view.max_probes, view.no_erase) == (40, 1)
    with pytest.raises(cuatomic.ArgumentError, match="capacity 1000"):
        make("int32", 1000, device="cpu", max_bytes=100)
    c = make("int32", 1, device="cpu", grow=False, rejects=2, check_full=False)
    keys = numpy.arange(1, c.capacity + 4, dtype="i4")
    c.insert(keys, 1) if isinstance(c, HashMap) else c.add(keys)
    assert c.rejected_total == 3 and len(c.rejected().keys) == 2


def test_portable():
    if sys.maxsize < 1 << 32 or platform.machine() not in ("x86_64", "AMD64", "aarch64", "arm64"):
        pytest.skip("no CAS of 128 bits")
    layouts = {
        HashMap("int64", "int64", 9, device="cpu", portable=portable).copy().device_view.layout
        for portable in (False, True)
    }
    assert len(layouts) == 2


def test_loop_over_items():
    m = HashMap.from_dict({1: 10, 2: 20, 3: 30}, "int64", "int64", device="cpu")
    assert {k: v for k, v in zip(*m.items())} == {1: 10, 2: 20, 3: 30}


# ---- calls inside calls ----


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.insert([1], 1),
        lambda m: m.find([1]),
        lambda m: m.pop(1, 0),
        lambda m: m.items(),
        lambda m: m.copy_to_host(),
        lambda m: m.rejected(),
        lambda m: m.copy(),
        lambda m: m.save(os.devnull),
        lambda m: m.clear(),
        lambda m: m.close(),
        lambda m: 1 in m,
        list,
        len,
    ],
)
def test_nested(call):
    """A call of the thread that is inside a call raises; the map stays usable."""
    m = HashMap("int64", "int64", 10, device="cpu")
    m[1] = 2
    with m._lock:
        with pytest.raises(cuatomic.Error, match="HashMap is in use") as raised:
            call(m)
    assert "\n" not in str(raised.value)
    assert m[1] == 2 and len(m) == 1


def test_nested_in_destructor():
    """The collector may run a destructor inside a call: it calls for memory of the results."""
    m = HashMap.from_dict({1: 2}, "int64", "int64", device="cpu")
    problems = []

    class Nested:
        def __del__(self):
            try:
                len(m)
            except cuatomic.Error as error:
                problems.append(error)

    view = m._like()

    class Collecting:
        code, n, stream, device = view.code, 0, 0, -1
        context, result, kind = view.context, view.result, view.kind

        def empty(self, *arguments):
            Nested()
            return view.empty(*arguments)

    m._like = lambda like: Collecting()
    keys, values = m.items()
    assert keys.tolist() == [1] and values.tolist() == [2]
    assert len(problems) == 2 and "destructor" in str(problems[0])
    assert len(m) == 1


def test_nested_in_signal_handler():
    """The handler's call raises or succeeds, and never waits."""
    code = """
import signal, sys
import cuatomic
m = cuatomic.HashMap("int64", "int64", 10, device="cpu")
keys = list(range(3000))
raised = succeeded = escaped = 0
quiet = True
def handler(*_):
    global raised, succeeded
    try:
        len(m)
        succeeded += 1
    except cuatomic.Error:
        raised += 1
        if not quiet:
            raise
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while raised < 5:
    m.update(keys, 1)
    list(m)
quiet = False
while escaped < 20:
    try:
        m.update(keys, 1)
        list(m)
    except cuatomic.Error:
        escaped += 1
signal.setitimer(signal.ITIMER_REAL, 0)
m.update(keys, 1)
assert len(m) == 3000
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


class Interrupt(Exception):
    pass


def test_interrupted_lock():
    """An exception of a signal handler after acquire does not leave the lock locked."""
    m = HashMap("int64", "int64", 10, device="cpu")
    acquire = m._lock.acquire

    def interrupted():
        acquire()
        raise Interrupt

    m._lock.acquire = interrupted
    with pytest.raises(Interrupt):
        len(m)
    del m._lock.acquire
    assert not m._lock._is_owned() and len(m) == 0


def test_interrupted_insert():
    """Rejections of an interrupted call are not those of the next one."""
    m = HashMap("uint32", "uint32", 7, device="cpu", grow=False)
    full = numpy.arange(1, m.capacity + 1, dtype="u4")
    m.insert(full, 1)

    def interrupted(*_):
        raise Interrupt

    m._finish = interrupted
    with pytest.raises(Interrupt):
        m.insert(numpy.array([1000, 1001], "u4"), 1)
    del m._finish
    assert m.rejected_total == 2
    m.insert(full, 1)


# ---- empty arrays ----

EMPTY_CALLS = """
import array
from cuatomic import HashMap, HashSet, MultiMap
k, v = array.array("q"), array.array("d")
m, s = HashMap("int64", "float64", 9, device="cpu"), HashSet("int64", 9, device="cpu")
n = HashMap("int64", "int64", 9, device="cpu")
mm = MultiMap("int64", "float64", 9, device="cpu")
calls = {
    "insert": lambda: m.insert(k, v, results=True),
    "insert one": lambda: m.insert(k, 1.0, results=True),
    "assign": lambda: m.assign(k, v, results=True),
    "build": lambda: m.build(k, v, results=True),
    "insert_or_get": lambda: m.insert_or_get(k, v),
    "insert_or_get results": lambda: m.insert_or_get(k, v, results=True),
    "exchange": lambda: m.exchange(k, v),
    "exchange results": lambda: m.exchange(k, v, results=True),
    "compare_exchange": lambda: m.compare_exchange(k, v, v),
    "update": lambda: n.update(k, k, results=True),
    "update one": lambda: n.update(k, 1, results=True),
    "find": lambda: m.find(k),
    "find default": lambda: m.find(k, default=3),
    "contains": lambda: m.contains(k),
    "erase": lambda: m.erase(k),
    "getitem": lambda: m[k],
    "items": lambda: m.items(like=k),
    "items sorted": lambda: m.items(sorted=True, like=k),
    "keys": lambda: m.keys(like=k),
    "values": lambda: m.values(like=k),
    "rejected": lambda: m.rejected(like=k)[:2],
    "set add": lambda: s.add(k, results=True),
    "set build": lambda: s.build(k, results=True),
    "set contains": lambda: s.contains(k),
    "set erase": lambda: s.erase(k),
    "set keys": lambda: s.keys(like=k),
    "set rejected": lambda: s.rejected(like=k).keys,
    "multimap insert": lambda: mm.insert(k, v, results=True),
    "multimap erase": lambda: mm.erase(k),
    "multimap count": lambda: mm.count(k),
    "multimap retrieve": lambda: mm.retrieve(k).values,
    "multimap items": lambda: mm.items(like=k),
}
containers = m, s, n, mm
"""
_EMPTY = {}
exec(EMPTY_CALLS, _EMPTY)


@pytest.mark.parametrize("name", list(_EMPTY["calls"]))
def test_empty_buffers(name):
    """Results for empty arrays of the module array are empty."""
    got = _EMPTY["calls"][name]()
    for x in got if isinstance(got, tuple) else (got,):
        assert isinstance(x, array.array) and len(x) == 0, (name, x)
    assert not any(map(len, _EMPTY["containers"]))


def test_empty_without_numpy():
    code = """
import sys
sys.modules["numpy"] = None
%s
for name, call in calls.items():
    got = call()
    for x in got if isinstance(got, tuple) else (got,):
        assert isinstance(x, array.array) and len(x) == 0, (name, x)
assert list(mm.retrieve(k).offsets) == [0]
assert m.keys() == m.items().values == s.keys() == m.copy_to_host().keys == array.array("q")
assert s.copy_to_host() == m.values() == mm.items().keys == array.array("q")
for made in (m.copy(), s.copy(), HashMap.from_arrays(k, v), HashSet.from_array(k),
             MultiMap.from_arrays(k, v), HashMap.from_dict({}, "int64", "int64", device="cpu")):
    assert len(made) == 0 and not made
m[1], s2 = 2.5, s.copy()
s2.add(4)
assert m.pop(1) == 2.5 and m.copy().get(1) is None and list(s2.copy()) == [4]
assert list(HashMap.from_dict({1: 2}, "int64", "int64", device="cpu").items().values) == [2]
""" % EMPTY_CALLS
    subprocess.run([sys.executable, "-c", code], check=True)
