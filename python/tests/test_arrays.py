# SPDX-License-Identifier: MIT
"""Arguments of every kind: their memory, checks, streams and results."""

import array
import copy
import ctypes
import gc
import mmap
import pickle
import subprocess
import sys
import threading

import numpy
import pytest

import cuatomic
from cuatomic import _dlpack
from cuatomic._arrays import DeviceArray, take, take_output
from cuatomic._device_array import count_of
from cuatomic._types import type_code


class OnlyDlpack:
    """An array of a library that has nothing but DLPack."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


class OnlyInterface:
    """An array of a library that has nothing but the CUDA array interface."""

    def __init__(self, inner, **changes):
        self.inner = inner
        self.changes = changes

    @property
    def __cuda_array_interface__(self):
        return {**self.inner.__cuda_array_interface__, **self.changes}


def gpu(name):
    """A library of GPU arrays, or a skip."""
    if not cuatomic.info().devices:
        pytest.skip("no GPU")
    return pytest.importorskip(name)


def test_import_needs_no_numpy():
    code = "import sys, cuatomic; assert 'numpy' not in sys.modules; print(cuatomic.sum(b'abc'))"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
        == b"294\n"
    )


@pytest.mark.parametrize(
    "x",
    [
        array.array("d", [1, 2, 4]),
        array.array("b", [1, 2, 4]),
        array.array("Q", [1, 2, 4]),
        b"\1\2\4",
        bytearray(b"\1\2\4"),
        memoryview(b"\1\0\2\0\4\0")[::2],
        memoryview(array.array("i", [1, 0, 2, 0, 4]))[::2],
        (ctypes.c_float * 3)(1, 2, 4),
        [1, 2, 4],
        (1.0, 2.0, 4.0),
        range(7, 8),
        numpy.array([[1, 2], [4, 0]])[:, ::-1],
        numpy.array([1, 2, 4], "float16"),
        numpy.array([1, 2, 4], "uint8"),
        numpy.float64(7),
        OnlyDlpack(numpy.array([1.0, 2.0, 4.0])),
    ],
    ids=lambda x: type(x).__name__,
)
def test_kinds_of_the_cpu(x):
    assert cuatomic.sum(x) == 7


def test_mmap():
    with mmap.mmap(-1, 8) as memory:
        memory[:3] = b"\1\2\4"
        assert cuatomic.sum(memory) == 7


def test_buffers_have_results_without_numpy():
    total = cuatomic.sum(array.array("f", [1, 2]))
    assert type(total) is float and total == 3.0
    assert type(cuatomic.argmax(b"abc")) is int


def test_unaligned_and_strided_numpy():
    raw = numpy.zeros(4 * 10 + 1, "uint8")
    x = raw[1:].view("float32")
    x[:] = 1
    assert not x.flags.aligned
    assert cuatomic.sum(x) == 10
    assert cuatomic.sum(numpy.ones((6, 6))[::2, ::3]) == 6
    assert cuatomic.sum(numpy.broadcast_to(numpy.float64(2), (5, 5))) == 50


def test_read_only_numpy():
    x = numpy.arange(4.0)
    x.flags.writeable = False
    assert cuatomic.sum(x) == 6
    with pytest.raises(ValueError, match="read-only"):
        take_output(x)


@pytest.mark.parametrize(
    "x, error",
    [
        (numpy.array([1, 2], ">i4"), TypeError),
        (numpy.array(["a"]), TypeError),
        (numpy.array([None]), TypeError),
        (numpy.array([1], "datetime64[s]"), TypeError),
        (numpy.ma.array([1, 2], mask=[0, 1]), TypeError),
        ("text", TypeError),
        (None, TypeError),
        (object(), TypeError),
        ({1: 2}, TypeError),
    ],
    ids=str,
)
def test_refused_arguments(x, error):
    with pytest.raises(error) as caught:
        cuatomic.sum(x)
    assert str(caught.value).count("\n") == 0 and str(caught.value)


@pytest.mark.parametrize("x", [numpy.ones(6)[::2], numpy.ones((3, 3)).T[:2], [1, 2], b"abc"])
def test_refused_outputs(x):
    with pytest.raises(ValueError):
        take_output(x)


def test_outputs_are_not_copies():
    for x in (numpy.ones(3), array.array("f", [1]), bytearray(2)):
        assert take_output(x).ptr == take(x).ptr


def test_dtypes():
    assert type_code("float32") == type_code(numpy.float32) == type_code(numpy.dtype("f4"))
    assert type_code(float) == type_code("float64")
    for wrong in ("float80", numpy.dtype("U3"), None, 3):
        with pytest.raises(TypeError):
            type_code(wrong)


def test_errors_name_the_status():
    with pytest.raises(cuatomic.Error) as caught:
        cuatomic.Context("cuda:77")
    assert caught.value.status in ("CUA_ERROR_NO_DEVICE", "CUA_ERROR_NOT_BUILT")
    for wrong in ("gpu", "cuda:x", "cpu:1", -1, True, 1.5):
        with pytest.raises((ValueError, TypeError)):
            cuatomic.Context(wrong)
    with pytest.raises(ValueError):
        cuatomic.Context("cpu", stream=1)
    with pytest.raises(cuatomic.ArgumentError):
        cuatomic.Context("cpu", threads=5000)


def test_contexts():
    x = numpy.arange(1000.0)
    with cuatomic.Context("cpu", threads=2) as context:
        assert context.threads == 2
        assert cuatomic.sum(x) == 499500
        with cuatomic.Context("cpu", threads=1):
            assert cuatomic.sum(x) == 499500
        context.reserve(1 << 20)
        context.synchronize()
    assert "cpu" in repr(context)


def test_threads():
    x = numpy.arange(100000.0)
    results = []

    def run():
        for _ in range(20):
            results.append(cuatomic.sum(x))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [x.sum()] * 80


# ---- on a GPU ----


def test_gpu_kinds():
    cupy = gpu("cupy")
    x = cupy.arange(1000, dtype="float32")
    assert isinstance(cuatomic.sum(x), cupy.ndarray)
    assert float(cuatomic.sum(x[::2])) == 249500
    assert float(cuatomic.sum(x.reshape(10, 100).T)) == 499500
    assert float(cuatomic.sum(x[:0])) == 0
    for other in (OnlyInterface(x), OnlyDlpack(x)):
        total = cuatomic.sum(other)
        assert isinstance(total, DeviceArray) and total.shape == ()
        assert float(cupy.asarray(total)) == 499500
        assert float(cupy.from_dlpack(total)) == 499500
    assert float(cupy.asarray(cuatomic.norm(OnlyInterface(x), mode="exact"))) == pytest.approx(
        float(cupy.linalg.norm(x)), rel=1e-5
    )


def test_gpu_refused():
    cupy = gpu("cupy")
    x = cupy.arange(10, dtype="float32")
    with pytest.raises(ValueError, match="contiguous"):
        cuatomic.sum(OnlyInterface(x[::2]))
    with pytest.raises(TypeError, match="masked"):
        cuatomic.sum(OnlyInterface(x, mask=x))
    with pytest.raises(ValueError, match="ambiguous"):
        cuatomic.sum(OnlyInterface(x, stream=0))
    with pytest.raises(TypeError):
        cuatomic.sum(OnlyInterface(x, typestr=">f4"))
    with pytest.raises(ValueError, match="is on cpu"):
        cuatomic.dot(x, numpy.ones(10, "float32"))
    host = OnlyInterface(x, data=(numpy.zeros(10, "float32").ctypes.data, False))
    try:
        cuatomic.sum(host)
    except cuatomic.ArgumentError as error:
        assert error.status == "CUA_ERROR_MEMORY_KIND"
    with pytest.raises(ValueError, match="contiguous"):
        take_output(x[::2])
    with pytest.raises(ValueError, match="read-only"):
        take_output(OnlyInterface(x, data=(x.data.ptr, True)))


def test_gpu_streams():
    """A call in CuPy's current stream follows the work that was queued there before."""
    cupy = gpu("cupy")
    x = cupy.zeros(1 << 20, "float32")
    big = cupy.ones((4096, 4096), "float32")
    cupy.cuda.Device().synchronize()
    for _ in range(40):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            y = big @ big
            y = y @ big
            x[:] = y[0, 0]
            total = cuatomic.sum(x)
            want = float(y[0, 0]) * x.size
            assert float(total) == want
        handle = stream.ptr
        x.fill(1)
        cupy.cuda.Device().synchronize()
        with cuatomic.Context("cuda:0", stream=stream):
            assert float(cuatomic.sum(x)) == x.size
        with cuatomic.Context("cuda:0", stream=handle):
            assert float(cuatomic.sum(x)) == x.size


@pytest.mark.parametrize("inner", [False, True])
def test_gpu_stream_of_an_interface(inner):
    """A call in another stream waits for the stream that the interface of an array names."""
    cupy = gpu("cupy")
    x = cupy.zeros(1 << 20, "float32")
    big = cupy.ones((4096, 4096), "float32")
    cupy.cuda.Device().synchronize()
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    for i in range(1, 20):
        with first:
            y = big @ big
            x[:] = (y @ big)[0, 0] * 0 + i
        named = OnlyInterface(x, stream=first.ptr)
        with cuatomic.Context("cuda:0", stream=second):
            # the array decides the stream of the call, or is the second argument
            ones = cupy.ones(1 << 20, "float32") if inner else None
            total = cuatomic.dot(ones, named) if inner else cuatomic.sum(named)
        assert float(cupy.asarray(total)) == i * float(1 << 20)


def test_gpu_streams_that_are_gone():
    """Contexts of streams that no longer exist are destroyed without harm."""
    cupy = gpu("cupy")
    x = cupy.ones(1000, "float32")
    cupy.cuda.Device().synchronize()
    alive = []
    for i in range(80):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            assert float(cuatomic.sum(x)) == 1000
        alive = (alive + [stream])[-5:]
        if i % 16 == 0:
            gc.collect()


def test_gpu_torch_stream():
    torch = gpu("torch")
    x = torch.zeros(1 << 20, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        y = torch.ones((4096, 4096), device="cuda") @ torch.ones((4096, 4096), device="cuda")
        x += y[0, 0]
        assert float(cuatomic.sum(x)) == 4096.0 * (1 << 20)
    with pytest.raises(ValueError, match="detach"):
        cuatomic.sum(torch.ones(3, device="cuda", requires_grad=True))
    z = torch.tensor([1 + 2j, 3j], device="cuda").conj()
    assert complex(cuatomic.sum(z)) == 1 - 5j
    assert float(cuatomic.sum(torch.ones(10, dtype=torch.bfloat16, device="cuda"))) == 10


def test_gpu_torch_graph():
    """A call with a result on the device can be captured in a graph."""
    torch = gpu("torch")
    x = torch.ones(1 << 16, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        cuatomic.sum(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = cuatomic.sum(x)
    x.fill_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert float(total) == 2 * (1 << 16)


def test_gpu_jax():
    jax = gpu("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    x = jax.numpy.arange(1000, dtype="float32")
    total = cuatomic.sum(x)
    assert isinstance(total, jax.Array) and float(total) == 499500
    with pytest.raises(ValueError, match="cannot be written"):
        take_output(x)


def test_jax_cpu():
    jax = pytest.importorskip("jax")
    x = jax.device_put(jax.numpy.arange(1000, dtype="float32"), jax.devices("cpu")[0])
    total = cuatomic.sum(x)
    assert isinstance(total, jax.Array) and float(total) == 499500


def test_gpu_numba():
    gpu("numba")
    from numba import cuda

    x = cuda.to_device(numpy.arange(1000, dtype="float32"))
    total = cuatomic.sum(x)
    assert float(total.copy_to_host()) == 499500


def two_devices():
    cupy = gpu("cupy")
    if len(cuatomic.info().devices) < 2:
        pytest.skip("one GPU")
    return cupy


def test_gpu_two_devices():
    cupy = two_devices()
    with cupy.cuda.Device(1):
        y = cupy.ones(100, "float32")
    total = cuatomic.sum(y)
    assert total.device.id == 1
    with cupy.cuda.Device(1):
        assert float(total) == 100
    with pytest.raises(ValueError, match="cuda:0"):
        cuatomic.dot(y, cupy.ones(100, "float32"))


def test_gpu_other_device(rng):
    """Calls on arrays of a device that is not the current device of CuPy or PyTorch."""
    cupy = two_devices()
    torch = gpu("torch")
    x = rng.random(100000, dtype="float32")
    k = (x * 1000).astype("int32")
    for wrap, back in (
        (lambda a: torch.from_numpy(a).to("cuda:1"), lambda a: a.cpu().numpy()),
        (lambda a: _on_second(cupy, a), lambda a: cupy.asnumpy(a)),
    ):
        on = wrap(x), wrap(k)
        with cupy.cuda.Device(1):
            cupy.cuda.Device(1).synchronize()
        results = []
        for a, i in (on, (x, k)):
            unique = cuatomic.unique(i, return_counts=True, return_inverse=True)
            groups = cuatomic.group_by(i, {"sum": ("sum", a)}, order="sorted")
            table = cuatomic.HashMap("int32", "int32", 5000, device="cpu" if a is x else "cuda:1")
            table.update(i, 1, op="add")
            found = table.find(i[:100])
            results.append(
                [
                    *unique,
                    groups.keys,
                    groups.results["sum"],
                    *cuatomic.histogram(a, 10, (0, 1)),
                    cuatomic.select(a, ">", 0.5),
                    cuatomic.bincount(i, a),
                    cuatomic.sum(a[::2], mode="exact"),
                    cuatomic.norm(a, mode="exact"),
                    cuatomic.isin(i, i[:10]),
                    found.values,
                    found.found,
                ]
            )
        for one, other in zip(*results):
            assert "1" in str(one.device)
            with cupy.cuda.Device(1):
                one = back(one)
            assert one.dtype == other.dtype and (one == other).all()


def _on_second(cupy, a):
    with cupy.cuda.Device(1):
        return cupy.asarray(a)


def test_dlpack_export():
    cupy = gpu("cupy")
    total = cuatomic.sum(OnlyInterface(cupy.ones(10, "float32")))
    before = len(_dlpack._exported)
    unused = total.__dlpack__()
    assert len(_dlpack._exported) == before + 1
    del unused
    assert len(_dlpack._exported) == before
    taken = cupy.from_dlpack(total)
    del total
    gc.collect()
    assert float(taken) == 10
    del taken
    gc.collect()
    assert len(_dlpack._exported) == before


def test_out():
    x = numpy.arange(5, dtype="float32")
    out = numpy.zeros((), "float32")
    assert cuatomic.sum(x, out=out) is out and out == 10
    assert cuatomic.dot(x, x, out=out[None]) == 30
    total = array.array("f", [0])
    cuatomic.sum(x, out=total)
    assert total[0] == 10
    for wrong in (numpy.zeros((), "float64"), numpy.zeros(2, "float32"), [0.0], bytes(4)):
        with pytest.raises(ValueError):
            cuatomic.sum(x, out=wrong)


def test_gpu_out():
    cupy = gpu("cupy")
    x = cupy.arange(5, dtype="float32")
    out = cupy.zeros((), "float32")
    assert cuatomic.sum(x, out=out) is out and float(out) == 10
    with pytest.raises(ValueError, match="cpu"):
        cuatomic.sum(x, out=numpy.zeros((), "float32"))


def test_free_workspaces():
    x = numpy.arange(1000.0)
    assert cuatomic.sum(x) == 499500
    cuatomic.free_workspaces()
    assert cuatomic.sum(x) == 499500
    own = cuatomic.Context("cpu")
    with own:
        cuatomic.free_workspaces()
        assert cuatomic.sum(x) == 499500


def test_gpu_threads():
    """Threads with streams of their own call at the same time."""
    cupy = gpu("cupy")
    wrong = []

    def run(number):
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True):
            for i in range(50):
                x = cupy.full(10000 + i, number, "float32")
                if float(cuatomic.sum(x)) != number * (10000 + i):
                    wrong.append((number, i))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    cuatomic.free_workspaces()


def test_gpu_capture_refuses_to_wait():
    """A call that has to wait fails in a capture, and the next call outside works."""
    cupy = gpu("cupy")
    x = cupy.ones(1000, "float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        cuatomic.sum(x)
        stream.synchronize()
        stream.begin_capture()
        with pytest.raises(cuatomic.Error) as caught:
            cuatomic.norm(x, mode="exact")
        stream.end_capture()
        assert caught.value.status == "CUA_ERROR_CAPTURE"
        assert float(cuatomic.sum(x)) == 1000


# ---- contexts in threads, copies, forks ----


def test_context_of_several_threads():
    """Threads that enter the same context have a context each."""
    context = cuatomic.Context("cpu", threads=2)
    x = numpy.arange(100000) % 1000
    wrong = []

    def run():
        for _ in range(30):
            with context:
                if len(cuatomic.unique(x)) != 1000 or cuatomic.sum(x) != x.sum():
                    wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    errors = []

    def misuse():
        for call in (context.synchronize, lambda: context.reserve(1)):
            try:
                call()
            except cuatomic.Error as error:
                errors.append(str(error))

    thread = threading.Thread(target=misuse)
    thread.start()
    thread.join()
    assert len(errors) == 2 and "thread" in errors[0]


def test_nested_contexts():
    one, two = cuatomic.Context("cpu", threads=1), cuatomic.Context("cpu", threads=2)
    x = numpy.arange(10.0)
    with one:
        with two:
            with one:
                assert take(x).context() is one
            assert take(x).context() is two
        assert take(x).context() is one
    assert take(x).context() not in (one, two)


def test_fork_inside_a_context():
    code = """
import os, cuatomic
with cuatomic.Context("cpu", threads=1) as context:
    assert cuatomic.sum(b"abc") == 294
    child = os.fork()
    assert cuatomic.sum(b"abc") == 294
    if not child:
        from cuatomic._arrays import take
        inside = take(b"a").context()
        assert inside is not context and inside.threads == 1
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_copies_are_refused():
    for thing in (cuatomic.Context("cpu"),):
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                function(thing)


def test_numbers_are_not_truncated():
    for wrong in (1 << 32 | 1, -1, 1 << 70):
        with pytest.raises(ValueError):
            cuatomic.Context("cpu", threads=wrong)
    for wrong in ("4", 2.0):
        with pytest.raises(TypeError):
            cuatomic.Context("cpu", threads=wrong)
    for wrong in (1 << 31, 1 << 32, "cuda:%d" % (1 << 32)):
        with pytest.raises(ValueError):
            cuatomic.Context(wrong)
    with pytest.raises(TypeError):
        cuatomic.Context("cpu").reserve(1.0)


def test_shapes_of_interfaces():
    for wrong in ((-2, -5), (1 << 70,)):
        with pytest.raises(ValueError, match="shape"):
            count_of(wrong)
    assert count_of(()) == 1 and count_of((3, 0)) == 0


def test_formats_of_a_standard_size():
    """The l of a buffer has the size of the machine's long, unless a prefix sets its size to 4."""
    testbuffer = pytest.importorskip("_testbuffer")
    assert cuatomic.sum(testbuffer.ndarray([1] * 4, shape=[4], format="l")) == 4
    for letter in "<l", "=L", ">i":
        with pytest.raises(TypeError, match="format"):
            cuatomic.sum(testbuffer.ndarray([1] * 4, shape=[4], format=letter))


def test_empty_buffers():
    """Results without elements have none."""
    empty = array.array("q")
    assert len(cuatomic.isin(empty, [1])) == 0
    assert cuatomic.sum(empty) == 0
    assert len(cuatomic.unique(empty)) == 0
    assert len(cuatomic.select(empty, ">", 0)) == 0


@pytest.mark.parametrize("where", ["numpy", "cycle", "unused", "array"])
def test_end_of_the_interpreter(where):
    """A DeviceArray or its tensor that is alive when the interpreter exits does no harm."""
    code = """
import sys, numpy, cuatomic
from cuatomic import _abi
array = cuatomic.DeviceArray((4,), _abi.CUA_F64, -1)
cuatomic.DeviceArray.__dlpack_device__ = lambda self: (1, 0)
taken = numpy.from_dlpack(array)
assert taken.shape == (4,)
where = sys.argv[1]
if where == "numpy":
    numpy.keep = taken
elif where == "cycle":
    cycle = [taken]
    cycle.append(cycle)
    numpy.keep = cycle
elif where == "unused":
    numpy.keep = array.__dlpack__()
else:
    numpy.keep = array
del array, taken
"""
    command = [sys.executable, "-c", code, where]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done


def test_device_arrays_in_threads():
    """Arrays that other threads drop are freed under the lock of their memory."""
    arrays = [DeviceArray((100,), type_code("float64"), -1) for _ in range(200)]
    part = DeviceArray((8,), type_code("float64"), -1)._head(3, cuatomic.Context("cpu"))
    assert part.shape == (3,)
    with pytest.raises(TypeError, match="copied"):
        copy.copy(part)

    def drop():
        while arrays:
            try:
                arrays.pop()
            except IndexError:
                pass

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_dtypes_of_numpy_texts():
    assert type_code("f8") == type_code("float64") and type_code("i4") == type_code("int32")
    for wrong in (">i8", numpy.dtype(">i8"), "foo.float64"):
        with pytest.raises(TypeError):
            type_code(wrong)
