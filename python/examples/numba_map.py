#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts words of a text in a kernel of Numba: the map is cuatomic's, the kernel is Python."""

import sys

import cuatomic

try:
    import numpy
    from numba import cuda

    import cuatomic.numba as cn
except ImportError as error:
    print("numba_map: skipped, %s" % error)
    sys.exit(77)
if not cuatomic.info().devices:
    print("numba_map: skipped, %s" % cuatomic.info().problem)
    sys.exit(77)


@cuda.jit
def count(view, words, rejected):
    i = cuda.grid(1)
    if i < words.size and cn.map_add_u32_u32(view, words[i], 1) == cn.FULL:
        cuda.atomic.add(rejected, 0, 1)


def main():
    words = numpy.random.default_rng(1).zipf(1.5, 1_000_000).clip(max=100_000).astype("uint32")
    counts = cuatomic.HashMap("uint32", "uint32", 200_000, device="cuda")
    view = cn.DeviceView(counts)
    rejected = cuda.to_device(numpy.zeros(1, "int64"))
    count[(words.size + 255) // 256, 256](view.address, cuda.to_device(words), rejected)
    cuda.synchronize()
    keys, values = counts.copy_to_host()
    print("%d words, %d different" % (numpy.sum(values), len(keys)))
    for i in numpy.argsort(values)[::-1][:5]:
        print("%8d of word %d" % (values[i], keys[i]))
    assert numpy.sum(values) == words.size and rejected.copy_to_host()[0] == 0


if __name__ == "__main__":
    main()
