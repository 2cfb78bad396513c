# SPDX-License-Identifier: MIT
"""cuatomic.numba: kernels of Numba that use the map, locks, append buffers and sums.

Without a GPU, the tests compile the source and the kernels, but do not link or run them.
"""

import ctypes
import os

import numpy
import pytest

pytest.importorskip("numba")
from numba import cuda  # noqa: E402

if not hasattr(cuda, "CUSource"):
    pytest.skip("no numba-cuda", allow_module_level=True)

try:
    import cuatomic.numba as cn  # noqa: E402
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

THREADS, BLOCKS = 256, 120
N = THREADS * BLOCKS


def _has_gpu():
    try:
        return cuda.is_available()
    except Exception:
        return False


needs_gpu = pytest.mark.skipif(
    not _has_gpu() and not os.environ.get("CUA_REQUIRE_GPU"), reason="no GPU for Numba"
)

PAIRS = [(k, v) for k in ("u32", "u64") for v in ("u32", "u64")]
TYPES = {"u32": "uint32", "u64": "uint64"}


def fill_kernel(k, v):
    """Thread i inserts key i % keys with 3 * key, and adds 1 to its value."""
    insert, add = (getattr(cn, "map_%s_%s_%s" % (f, k, v)) for f in ("insert", "add"))

    def fill(view, keys, counts):
        i = cuda.grid(1)
        key = i % keys
        result = insert(view, key, 3 * key)
        if result == cn.INSERTED:
            cuda.atomic.add(counts, 0, 1)
        elif result != cn.EXISTS:
            cuda.atomic.add(counts, 1, 1)
        if add(view, key, 1) != cn.EXISTS:
            cuda.atomic.add(counts, 1, 1)

    return fill


def find_kernel(k, v):
    """Every thread looks up its number; wrong answers are counted."""
    find, contains, erase = (
        getattr(cn, "map_%s_%s_%s" % (f, k, v)) for f in ("find", "contains", "erase")
    )

    def look(view, keys, times, counts):
        i = cuda.grid(1)
        wanted = 3 * i + times if i < keys else 7
        if find(view, i, 7) != wanted or contains(view, i) != (i < keys):
            cuda.atomic.add(counts, 1, 1)
        if i % 2 == 1 and erase(view, i) != (i < keys):
            cuda.atomic.add(counts, 1, 1)

    return look


def count_under_lock(locks, counts, rounds):
    lock = cn.address(locks, 0)
    for _ in range(rounds):
        done = False
        while not done:
            if cn.spinlock_trylock(lock):
                counts[0] += 1
                cn.spinlock_unlock(lock)
                done = True


def count_waiting(locks, counts):
    if cuda.threadIdx.x == 0:
        lock = cn.address(locks, cuda.blockIdx.x % 2)
        cn.spinlock_lock(lock)
        counts[cuda.blockIdx.x % 2] += 1
        cn.spinlock_unlock(lock)


def push_thirds(view, counts):
    i = cuda.grid(1)
    if i % 3 == 0 and cn.append_push_u64(view, i):
        cuda.atomic.add(counts, 0, 1)


def add_up(sums, cells, counts):
    i = cuda.grid(1)
    cn.atomic_add_cas_f64(cn.address(sums, i % 2), 0.5)
    large = -9007199254740992.0 if i % 2 else 9007199254740992.0
    if not cn.exact_add_f64(cells, 0, large) or not cn.exact_add_f64(cells, 0, float(i)):
        cuda.atomic.add(counts, 0, 1)


COUNTS = "int64[:]"
KERNELS = [(fill_kernel(k, v), ("uint64", "int64", COUNTS)) for k, v in PAIRS]
KERNELS += [(find_kernel(k, v), ("uint64", "int64", "int64", COUNTS)) for k, v in PAIRS]
KERNELS += [
    (count_under_lock, ("uint32[:]", COUNTS, "int64")),
    (count_waiting, ("uint32[:]", COUNTS)),
    (push_thirds, ("uint64", COUNTS)),
    (add_up, ("float64[:]", "uint64", COUNTS)),
]


# ---- without a GPU ----


def test_source_has_no_include_of_cuatomic():
    text = cn.source()
    assert "#include <cuatomic" not in text
    assert text.count("#ifndef CUATOMIC_HASHMAP_H\n") == 1


def _nvrtc():
    """libnvrtc, without Numba: Numba's own calls need a driver."""
    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    for name in filter(None, [os.environ.get("CUA_NVRTC")] + names):
        for folder in ("", "/usr/local/cuda/lib64/"):
            try:
                return ctypes.CDLL(folder + name)
            except OSError:
                pass
    try:
        from cuda import pathfinder

        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    except Exception:
        pytest.skip("no libnvrtc")


def _compile(text, *options):
    """The status of NVRTC, its log and the PTX."""
    nvrtc = _nvrtc()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"cuatomic.cu", 0, None, None
    )
    assert made == 0
    given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), given)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value + 1)
    if status == 0:
        nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode().strip(), ptx.value.decode()


FUNCTIONS = [
    "cua_numba_" + name.replace("map_", "", 1)
    for name in cn.__all__
    if name.startswith(("map_", "spinlock_", "append_push_", "atomic_", "exact_add_"))
]


@pytest.mark.parametrize("arch", ["compute_80", "compute_90"])
def test_source_compiles(arch):
    status, log, ptx = _compile(cn.source(), "-arch=" + arch, "-rdc=true")
    assert status == 0 and log == ""
    assert len(FUNCTIONS) == 33
    for name in FUNCTIONS:
        assert ptx.count(") " + name + "(") == 1, name


@pytest.mark.parametrize("kernel, arguments", KERNELS)
def test_kernels_compile(kernel, arguments):
    from numba import types

    signature = types.void(*[getattr(types, a, None) or _array(types, a) for a in arguments])
    try:
        ptx, _ = cuda.compile_ptx(kernel, signature, cc=(9, 0))
    except (ImportError, OSError) as error:
        pytest.skip("no NVVM: %s" % error)
    assert "cua_numba_" in ptx


def _array(types, text):
    return types.Array(getattr(types, text[:-3]), 1, "C")


# ---- with a GPU ----


def zeros(n, dtype):
    return cuda.to_device(numpy.zeros(n, dtype))


@needs_gpu
@pytest.mark.parametrize("k, v", PAIRS)
def test_map(k, v):
    import cuatomic

    keys = N // 4
    m = cuatomic.HashMap(TYPES[k], TYPES[v], keys + keys // 4, device="cuda")
    view = cn.DeviceView(m)
    counts = zeros(2, "int64")
    cuda.jit(fill_kernel(k, v))[BLOCKS, THREADS](view.address, keys, counts)
    assert counts.copy_to_host().tolist() == [keys, 0]
    assert len(m) == keys
    cuda.jit(find_kernel(k, v))[BLOCKS, THREADS](view.address, keys, 4, counts)
    assert counts.copy_to_host().tolist() == [keys, 0]
    assert len(m) == keys // 2


@needs_gpu
@pytest.mark.parametrize("rounds", [1, 3])
def test_lock(rounds):
    locks, counts = zeros(1, "uint32"), zeros(1, "int64")
    cuda.jit(count_under_lock)[BLOCKS, THREADS](locks, counts, rounds)
    assert counts.copy_to_host().tolist() == [N * rounds]
    assert locks.copy_to_host().tolist() == [0]


@needs_gpu
def test_lock_waits():
    locks, counts = zeros(2, "uint32"), zeros(2, "int64")
    cuda.jit(count_waiting)[BLOCKS, THREADS](locks, counts)
    assert counts.copy_to_host().tolist() == [BLOCKS // 2, BLOCKS // 2]


@needs_gpu
@pytest.mark.parametrize("room", [N // 3, N // 3 - 5])
def test_append(room):
    items, cursor, counts = zeros(room, "uint64"), zeros(1, "uint64"), zeros(1, "int64")
    view = cn.append_view(items, cursor)
    cuda.jit(push_thirds)[BLOCKS, THREADS](view.address, counts)
    assert cursor.copy_to_host().tolist() == [N // 3]
    assert counts.copy_to_host().tolist() == [room]
    pushed = items.copy_to_host()
    assert len(set(pushed.tolist())) == room and not (pushed % 3).any() and pushed.max() < N


@needs_gpu
def test_sums():
    sums, words, counts = zeros(2, "float64"), zeros(3, "uint64"), zeros(1, "int64")
    cells = cn.exact_cells(words, "float64", -20)
    cuda.jit(add_up)[BLOCKS, THREADS](sums, cells.address, counts)
    assert sums.copy_to_host().tolist() == [N / 4, N / 4]
    assert counts.copy_to_host().tolist() == [0]
    total = sum(
        (int(w) >> (5 if i == 2 else 0)) * 2 ** (56 * i)
        for i, w in enumerate(words.copy_to_host().view("int64"))
    )
    assert total == (N * (N - 1) // 2) << 20


@needs_gpu
def test_arguments():
    with pytest.raises(TypeError):
        cn.append_view(numpy.zeros(4), zeros(1, "uint64"))
    with pytest.raises(TypeError):
        cn.append_view(zeros(4, "uint64"), zeros(2, "uint64"))
    with pytest.raises(TypeError):
        cn.exact_cells(zeros(4, "uint64"), "float64")
