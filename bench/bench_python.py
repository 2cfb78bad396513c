#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of the Python package beside CuPy and PyTorch, on a GPU in the same run.

Usage: bench_python.py [--quick] [--json FILE]

Every result is compared with that of the peer. A row is the median of 7 runs between CUDA
events; runs of both alternate. The last rows are the host time of a call on small arrays.
"""

import argparse
import itertools
import json
import statistics
import sys
import time

import cupy
import cupyx
import numpy
import torch

import cuatomic
from cuatomic import _abi
from cuatomic._library import lib

RUNS = 7


def elapsed(function):
    """Milliseconds of a call on the GPU."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    result = function()
    stop.record()
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop), result


def compare(ours, peer, same):
    """The times of both, after a comparison of their results."""
    mine, theirs = ours(), peer()
    cupy.cuda.Device().synchronize()
    torch.cuda.synchronize()
    if not same(mine, theirs):
        raise SystemExit("the results differ")
    del mine, theirs
    times = [], []
    for _ in range(RUNS):
        for list_, function in zip(times, (ours, peer)):
            milliseconds, result = elapsed(function)
            list_.append(milliseconds)
            del result
    return [sorted(list_) for list_ in times]


def host_time(function, calls=2000):
    """Microseconds of host time of a call, the least of 5 rounds."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
        cupy.cuda.Device().synchronize()
    return best * 1e6


def close(a, b):
    a, b = float(a), float(b)
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1)


def equal(a, b):
    return bool((cupy.asarray(a) == cupy.asarray(b)).all())


def all_close(a, b):
    return bool(cupy.allclose(cupy.asarray(a), cupy.asarray(b), rtol=1e-3, atol=1e-3))


# Each generator yields (name, peer's name, elements, our call, the peer's, whether results agree).


def reductions(scale):
    n = (1 << 30) // scale
    x = cupy.random.random(n, dtype=cupy.float32)
    t = torch.as_tensor(x, device="cuda")
    for mode in ("fast", "fixed", "exact"):
        yield (
            "sum f32, %s" % mode,
            "cupy.sum",
            n,
            lambda m=mode: cuatomic.sum(x, mode=m),
            lambda: cupy.sum(x),
            close,
        )
    yield (
        "sum f32, exact",
        "torch.sum",
        n,
        lambda: cuatomic.sum(t, mode="exact"),
        lambda: torch.sum(t),
        close,
    )
    yield "argmax f32", "cupy.argmax", n, lambda: cuatomic.argmax(x), lambda: cupy.argmax(x), equal
    yield "var f32", "cupy.var", n, lambda: cuatomic.var(x), lambda: cupy.var(x), close


def bins(scale):
    n = (1 << 27) // scale
    x = cupy.random.random(n, dtype=cupy.float32)
    index = cupy.random.randint(0, 1000, n, dtype=cupy.int32)
    yield (
        "histogram f32, 256 bins",
        "cupy.histogram",
        n,
        lambda: cuatomic.histogram(x, 256, (0.0, 1.0))[0],
        lambda: cupy.histogram(x, 256, (0.0, 1.0))[0],
        lambda a, b: int(cupy.abs(cupy.asarray(a) - b).sum()) <= n // 1000,
    )
    yield (
        "select x > 0.5",
        "x[x > 0.5]",
        n,
        lambda: cuatomic.select(x, ">", 0.5),
        lambda: x[x > 0.5],
        equal,
    )
    yield (
        "bincount, 1000 bins",
        "cupy.bincount",
        n,
        lambda: cuatomic.bincount(index, minlength=1000),
        lambda: cupy.bincount(index, minlength=1000),
        equal,
    )
    yield (
        "bincount, f32 weights, exact",
        "cupy.bincount",
        n,
        lambda: cuatomic.bincount(index, x, minlength=1000),
        lambda: cupy.bincount(index, x, minlength=1000),
        all_close,
    )


def scatters(scale):
    n, targets = (1 << 27) // scale, (1 << 20) // scale
    x = cupy.random.random(n, dtype=cupy.float32)
    index = cupy.random.randint(0, targets, n, dtype=cupy.int32)
    out, other = cupy.zeros(targets, cupy.float32), cupy.zeros(targets, cupy.float32)
    t_index = torch.as_tensor(index.astype(cupy.int64), device="cuda")
    t_x, t_out = torch.as_tensor(x, device="cuda"), torch.as_tensor(other, device="cuda")

    def ours():
        out.fill(0)
        return cuatomic.scatter_add(out, index, x)

    def by_cupy():
        other.fill(0)
        cupyx.scatter_add(other, index, x)
        return other

    def by_torch():
        torch.use_deterministic_algorithms(True)
        try:
            return t_out.zero_().index_add_(0, t_index, t_x)
        finally:
            torch.use_deterministic_algorithms(False)

    name = "scatter_add f32, 1 Mi targets, exact"
    yield name, "cupyx.scatter_add", n, ours, by_cupy, all_close
    yield name, "torch index_add_, deterministic", n, ours, by_torch, all_close


def keys(scale):
    n = (1 << 27) // scale
    x = cupy.random.randint(0, 1 << 20, n, dtype=cupy.int32)
    t = torch.as_tensor(x, device="cuda")
    some, chosen = x[: n // 8], x[-(1 << 20) // scale :]
    yield "unique i32, 1 Mi distinct", "cupy.unique", n, lambda: cuatomic.unique(
        x
    ), lambda: cupy.unique(x), equal
    yield (
        "unique i32, counts",
        "torch.unique",
        n,
        lambda: cuatomic.unique(t, return_counts=True)[1],
        lambda: torch.unique(t, return_counts=True)[1],
        equal,
    )
    values = cupy.random.random(n, dtype=cupy.float32)
    t_values = torch.as_tensor(values, device="cuda")

    def sums_by_torch():
        groups, inverse = torch.unique(t, return_inverse=True)
        sums = torch.zeros(groups.numel(), device="cuda")
        return sums.index_add_(0, inverse, t_values)

    yield (
        "group_by, sums of f32, sorted, exact",
        "torch.unique, index_add_",
        n,
        lambda: cuatomic.group_by(x, {"sum": ("sum", values)}, order="sorted").results["sum"],
        sums_by_torch,
        all_close,
    )
    yield (
        "isin i32, 1 Mi in the set",
        "cupy.isin",
        n // 8,
        lambda: cuatomic.isin(some, chosen),
        lambda: cupy.isin(some, chosen),
        equal,
    )


FAMILIES = reductions, bins, scatters, keys


def maps(scale):
    """Rates of a hash map; CuPy and PyTorch have none."""
    n = (100 << 20) // scale
    keys = cupy.random.permutation(n).astype(cupy.uint32)
    values = keys ^ cupy.uint32(0x5555)
    table = cuatomic.HashMap("uint32", "uint32", int(n / 0.8), device="cuda:0", grow=False)
    out = []
    for name, function, prepare in (
        ("HashMap build", lambda: table.build(keys, values), lambda: None),
        ("HashMap insert", lambda: table.insert(keys, values), table.clear),
        ("HashMap find", lambda: table.find(keys), lambda: None),
    ):
        times = []
        for _ in range(RUNS):
            prepare()
            times.append(elapsed(function)[0])
        out.append((name, n, sorted(times)))
    found, is_there = table.find(keys)
    if not (bool(is_there.all()) and equal(found, values)):
        raise SystemExit("the map differs")
    return out


def overhead():
    """Host microseconds of a call on small arrays: ours, the C function alone, CuPy's."""
    x = cupy.ones(8, cupy.float32)
    result = cupy.zeros((), cupy.float32)
    context = cuatomic.Context("cuda:0")
    call = lib.cua_reduce
    arguments = (
        context.handle,
        None,
        _abi.CUA_REDUCE_SUM,
        _abi.CUA_F32,
        8,
        x.data.ptr,
        None,
        result.data.ptr,
    )
    y = numpy.ones(8, numpy.float32)
    y_result = numpy.zeros((), numpy.float32)
    cpu = cuatomic.Context("cpu")
    y_arguments = (
        cpu.handle,
        None,
        _abi.CUA_REDUCE_SUM,
        _abi.CUA_F32,
        8,
        y.ctypes.data,
        None,
        y_result.ctypes.data,
    )
    t, t_result = torch.ones(8, device="cuda"), torch.ones((), device="cuda")
    return {
        "sum of 8, CuPy": host_time(lambda: cuatomic.sum(x)),
        "sum of 8, PyTorch": host_time(lambda: cuatomic.sum(t)),
        "sum of 8, numpy": host_time(lambda: cuatomic.sum(y)),
        "sum of 8, CuPy, out=": host_time(lambda: cuatomic.sum(x, out=result)),
        "sum of 8, PyTorch, out=": host_time(lambda: cuatomic.sum(t, out=t_result)),
        "cupy.empty": host_time(lambda: cupy.empty((), cupy.float32)),
        "torch.empty": host_time(lambda: torch.empty((), device="cuda")),
        "C call, GPU": host_time(lambda: call(*arguments)),
        "C call, CPU": host_time(lambda: call(*y_arguments)),
        "cupy.sum": host_time(lambda: cupy.sum(x)),
        "torch.sum": host_time(lambda: torch.sum(t)),
        "numpy.sum": host_time(lambda: numpy.sum(y)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="arrays of a 64th of the size")
    parser.add_argument("--json", metavar="FILE", help="also write the times to a file")
    options = parser.parse_args()
    scale = 64 if options.quick else 1
    cupy.random.seed(20261128)
    record = {"device": cuatomic.info().devices[0]._asdict(), "rows": [], "overhead_us": overhead()}
    print("%-38s %-32s %10s %10s %7s" % ("cuatomic", "peer", "ms", "peer ms", "ratio"))
    for name, peer_name, n, ours, peer, same in itertools.chain(
        *(family(scale) for family in FAMILIES)
    ):
        try:
            mine, theirs = compare(ours, peer, same)
        except (cupy.cuda.memory.OutOfMemoryError, torch.OutOfMemoryError) as error:
            print("%-38s %-32s %s" % (name, peer_name, str(error).splitlines()[0]))
            continue
        middle = statistics.median(mine), statistics.median(theirs)
        print("%-38s %-32s %10.3f %10.3f %7.2f" % (name, peer_name, *middle, middle[1] / middle[0]))
        sys.stdout.flush()
        record["rows"].append(
            {"name": name, "peer": peer_name, "n": n, "ms": mine, "peer_ms": theirs}
        )
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
    for name, n, times in maps(scale):
        print(
            "%-38s %-32s %10.3f %18.1f G/s"
            % (name, "", statistics.median(times), n / statistics.median(times) / 1e6)
        )
        record["rows"].append({"name": name, "n": n, "ms": times})
    for name, microseconds in record["overhead_us"].items():
        print("%-38s %41.2f us" % (name, microseconds))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
