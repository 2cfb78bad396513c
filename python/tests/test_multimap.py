# SPDX-License-Identifier: MIT
"""Multimaps against Python's dict of lists."""

import copy
import pickle
import threading

import numpy
import pytest

import cuatomic
from conftest import QUICK
from cuatomic import MapResult, MultiMap
from test_maps import NUMPY, bits, numbers

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402


def agree(xp, m, model, keys):
    """That the map and a dict of lists of values, the newest first, have the same pairs.

    A list has a set of values for each call, as values of a call have no order.
    """
    k, v = m.items(like=xp.asarray(keys))
    got = sorted(zip(bits(xp.check(k)), bits(xp.check(v))))
    assert got == sorted((k, v) for k, calls in model.items() for call in calls for v in call)
    assert len(m) == len(got) and m.distinct_keys == len(model)
    wanted = [sum(map(len, model.get(k, []))) for k in bits(keys)]
    counts = xp.check(m.count(xp.asarray(keys)))
    assert counts.dtype == "int64" and counts.tolist() == wanted
    offsets, values = m.retrieve(xp.asarray(keys))
    offsets, values = xp.check(offsets), bits(xp.check(values))
    assert offsets.dtype == "int64"
    assert offsets.tolist() == [0] + numpy.cumsum(wanted, dtype=int).tolist()
    assert len(values) == sum(wanted)
    for key, at in zip(bits(keys), offsets.tolist()):
        for call in model.get(key, []):
            assert sorted(values[at : at + len(call)]) == sorted(call)
            at += len(call)


def run(xp, rng, key_dtype, value_dtype, steps, **options):
    m = MultiMap(key_dtype, value_dtype, 200, device=xp.device, **options)
    model = {}
    for step in steps:
        keys = numbers(rng, int(rng.choice([0, 1, 10, 50])), key_dtype)
        room = 200 - sum(len(call) for calls in model.values() for call in calls)
        if step == "insert":
            keys = keys[:room]
            values = numbers(rng, len(keys), value_dtype)
            assert m.insert(xp.asarray(keys), xp.asarray(values)) is None
            new = {}
            for k, v in zip(bits(keys), bits(values)):
                new.setdefault(k, []).append(v)
            for k, call in new.items():
                model.setdefault(k, []).insert(0, call)
        elif step == "erase":
            removed = xp.check(m.erase(xp.asarray(keys)))
            sums = {}
            for k, r in zip(bits(keys), removed.tolist()):
                sums[k] = sums.get(k, 0) + r
            for k, r in sums.items():
                assert r == sum(map(len, model.pop(k, [])))
        elif step == "reclaim":
            m.reclaim()
        else:
            m.clear()
            model = {}
        agree(xp, m, model, numbers(rng, 30, key_dtype))


@pytest.mark.parametrize("value_dtype", ["int32", "float64"])
@pytest.mark.parametrize("key_dtype", ["int32", "int64", "float32"])
def test_random_operations(xp, rng, key_dtype, value_dtype):
    steps = rng.choice(
        ["insert", "erase", "reclaim", "clear"], 40 if QUICK else 150, p=[0.5, 0.44, 0.03, 0.03]
    )
    run(xp, rng, key_dtype, value_dtype, steps)


@hypothesis.given(
    st.sampled_from(["uint32", "int64", "float64"]),
    st.sampled_from(["int32", "uint64", "float32"]),
    st.lists(st.sampled_from(["insert", "insert", "erase", "reclaim", "clear"]), max_size=12),
    st.integers(0, 2**32),
    st.sampled_from([None, 8]),
)
def test_operations(key_dtype, value_dtype, steps, seed, link_size):
    rng = numpy.random.default_rng(seed)
    run(NUMPY, rng, key_dtype, value_dtype, steps, link_size=link_size, hash="keyed", seed=77)


def test_large(xp, rng):
    n = 50_000 if QUICK else 500_000
    keys = rng.integers(0, n // 3, n)
    m = MultiMap.from_arrays(xp.asarray(keys), xp.asarray(numpy.arange(n)))
    assert len(m) == n and m.capacity == n and m.device == xp.device
    some = numpy.unique(keys)[:1000]
    offsets, values = map(xp.check, m.retrieve(xp.asarray(some)))
    order = numpy.argsort(keys, kind="stable")
    for i in range(0, 1000, 50):
        mine = numpy.sort(values[offsets[i] : offsets[i + 1]])
        assert mine.tolist() == sorted(order[keys[order] == some[i]].tolist())


def test_numbers(xp):
    m = MultiMap("int64", "int32", 10, device=xp.device)
    m.insert([-4], 7)
    m.insert([-4, 5], 8)
    assert -4 in m and 6 not in m and 1 << 70 not in m and m and len(m) == 2 + 1
    for key in (6, 1 << 70):
        with pytest.raises(KeyError):
            m[key]
    values = m[-4]
    if xp.device == "cpu":
        assert values.tolist() == [8, 7]
    offsets, values = m.retrieve(xp.asarray(numpy.array([-4, -4, 9])))
    assert xp.check(offsets).tolist() == [0, 2, 4, 4]
    assert xp.check(values).tolist() == [8, 7, 8, 7]


def test_full(xp):
    m = MultiMap("int64", "int32", 10, device=xp.device)
    keys = xp.asarray(numpy.arange(14))
    with pytest.raises(cuatomic.FullError, match="4 of 14 pairs") as raised:
        m.insert(keys, 1)
    assert raised.value.rejected == 4 and len(m) == 10
    results = xp.check(m.insert(keys, 1, results=True))
    assert results.tolist() == [MapResult.FULL] * 14
    m.insert(keys[:0], 1)
    with pytest.raises(cuatomic.FullError):
        m.check()
    m.clear()
    m.check()
    results = xp.check(m.insert(keys, 1, results=True))
    assert sorted(results.tolist()) == [MapResult.INSERTED] * 10 + [MapResult.FULL] * 4


def test_full_keys():
    m = MultiMap("int32", "int32", 100, 7, device="cpu")
    with pytest.raises(cuatomic.FullError):
        m.insert(numpy.arange(1, 101, dtype="i4"), 1)
    assert len(m) == m.distinct_keys < 100
    m = MultiMap("int32", "int32", 5, device="cpu", check_full=False)
    m.insert(range(10), 1)
    with pytest.raises(cuatomic.FullError):
        m.check()


def test_erased_room():
    """Inserts reuse the room of erased pairs, but not while kernels may have cursors."""
    m = MultiMap("int32", "int32", 10, device="cpu")
    for i in range(20):
        m.insert(range(10), i)
        assert m.erase(range(10)).tolist() == [1] * 10
    m.reclaim()
    m.device_view
    m.insert(range(10), 1)
    m.erase(range(10))
    with pytest.raises(cuatomic.FullError):
        m.insert([1], 1)
    m.reclaim()
    m.insert(range(10), 1)
    assert len(m) == 10


@pytest.mark.parametrize(
    "error,match,call",
    [
        (ValueError, "1-D", lambda m: m.retrieve(numpy.zeros((2, 2), "i8"))),
        (ValueError, "2 keys and 1 values", lambda m: m.insert([1, 2], [1])),
        (TypeError, "keys are uint64", lambda m: m.count(numpy.zeros(2, "u8"))),
        (TypeError, "int64", lambda m: m.erase([0.5])),
        (TypeError, "not iterable", lambda m: iter(m)),
        (TypeError, "retrieve", lambda m: m[[1]]),
        (TypeError, "str", lambda m: "a" in m),
        (KeyError, "1.5", lambda m: m[1.5]),
        (TypeError, "astype\\('int64'\\)", lambda m: m.count(numpy.zeros(2))),
        (TypeError, "a dict is no.*from_arrays", lambda m: MultiMap({1: 2})),
        (TypeError, "'str'.*float64", lambda m: MultiMap("int64", "str", 9)),
        (TypeError, "values", lambda m: MultiMap("int64", None, 9, device="cpu")),
        (TypeError, "int8", lambda m: MultiMap("int64", "int8", 9, device="cpu")),
        (ValueError, "capacity", lambda m: MultiMap("int64", "int64", 0, device="cpu")),
        (ValueError, "keys_capacity", lambda m: MultiMap("int64", "int64", 1, 0, device="cpu")),
        (ValueError, "capacity", lambda m: MultiMap("int64", "int64", 1 << 63, device="cpu")),
        (ValueError, "link_size", lambda m: MultiMap("int64", "int64", 1, link_size=4)),
        (ValueError, "hash", lambda m: MultiMap("int64", "int64", 1, hash="x")),
        (ValueError, "seed", lambda m: MultiMap("int64", "int64", 1, seed=-1)),
        (TypeError, "MultiMap cannot be copied or pickled", lambda m: copy.copy(m)),
        (TypeError, "MultiMap cannot be copied or pickled", lambda m: copy.deepcopy(m)),
        (TypeError, "MultiMap cannot be copied or pickled", lambda m: pickle.dumps(m)),
    ],
)
def test_errors(error, match, call):
    m = MultiMap("int64", "uint64", 10, device="cpu")
    m.insert([1, 2, 2], 5)
    with pytest.raises(error, match=match) as raised:
        call(m)
    assert "\n" not in str(raised.value)
    assert len(m) == 3 and m.count([2]).tolist() == [2]


def test_numbers_that_are_no_keys():
    m = MultiMap("int64", "uint64", 10, device="cpu")
    m.insert([2], 5)
    for key in (1.5, 1 << 64, -(1 << 64), float("inf"), float("nan")):
        assert key not in m
        with pytest.raises(KeyError):
            m[key]
    assert 2.0 in m and m[2.0].tolist() == [5]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.insert([1], 1),
        lambda m: m.retrieve([1]),
        lambda m: m.erase([1]),
        lambda m: m.count([1]),
        lambda m: m.items(),
        lambda m: m.reclaim(),
        lambda m: m.clear(),
        lambda m: m.close(),
        len,
    ],
)
def test_nested(call):
    """A call of the thread that is inside a call raises; the map stays usable."""
    m = MultiMap("int64", "int64", 10, device="cpu")
    m.insert([1], 1)
    with m._lock:
        with pytest.raises(cuatomic.Error, match="MultiMap is in use"):
            call(m)
    assert m[1].tolist() == [1]


def test_close():
    with MultiMap("int64", "int64", 10, device="cpu") as m:
        assert m.device_view.capacity == 10 and "MultiMap of int64 to int64" in repr(m)
    assert repr(m) == "<closed MultiMap>"
    for call in (
        lambda: m.insert([1], 1),
        lambda: m.retrieve([1]),
        lambda: m.erase([]),
        lambda: m.count([1]),
        lambda: m.clear(),
        lambda: m.reclaim(),
        lambda: m.check(),
        lambda: m.items(),
        lambda: len(m),
        lambda: 1 in m,
        lambda: m[1],
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_threads():
    m = MultiMap("int64", "int64", 10_000, device="cpu")
    problems = []

    def work(t):
        try:
            keys = numpy.arange(100) + 1000 * t
            for i in range(60):
                m.insert(keys, i)
                m.insert(keys[:1] * 0 - 1, i)
                assert m.retrieve(keys).values.tolist() == [i] * 100
                assert m.erase(keys).tolist() == [1] * 100
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(m) == 300 and sorted(m[-1].tolist()) == sorted(list(range(60)) * 5)
