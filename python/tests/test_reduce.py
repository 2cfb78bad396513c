# SPDX-License-Identifier: MIT
"""Reductions against numpy and, in mode "exact", against fractions."""

import array
import ctypes
import math
import mmap
import os
import threading
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
COMPLEX = "c8 c16".split()
MODES = ["fast", "fixed", "exact"]


def floats(dtype):
    width = 8 * numpy.dtype(dtype).itemsize
    least = float(numpy.finfo(dtype).smallest_subnormal)
    special = st.sampled_from([0.0, -0.0, least, -least, 1.0, float(numpy.finfo(dtype).max)])
    return special | st.floats(width=width)


def elements(dtype):
    dtype = numpy.dtype(dtype)
    if dtype.kind == "f":
        return floats(dtype)
    if dtype == bool:
        return st.booleans()
    info = numpy.iinfo(dtype)
    return st.integers(info.min, info.max) | st.sampled_from([0, 1, info.max])


def drawn(data, dtype, **sizes):
    return numpy.array(data.draw(st.lists(elements(dtype), **sizes)), dtype)


def exact(numbers, dtype, scale=1):
    """The sum of numbers of Python or fractions, times the scale, rounded once."""
    special = [v for v in numbers if isinstance(v, float) and not math.isfinite(v)]
    if special:
        return math.fsum(special) if len(set(special)) == 1 else math.nan
    return rounded(sum(map(Fraction, numbers), Fraction(0)) * scale, dtype)


def product(a, b):
    """A product as a fraction, or as a float that is not finite."""
    if math.isfinite(a) and math.isfinite(b):
        return Fraction(a) * Fraction(b)
    return a * b


@given(data=st.data(), dtype=st.sampled_from(FLOATS))
def test_exact_sums(data, dtype):
    x, y = drawn(data, dtype, max_size=12), None
    y = numpy.array([data.draw(floats(dtype)) for _ in x], dtype)
    a, b = [float(v) for v in x], [float(v) for v in y]
    order = numpy.array(data.draw(st.permutations(range(len(a)))), int)
    for result in FLOATS[FLOATS.index(dtype) :]:
        name = numpy.dtype(result).name
        want = numpy.array(exact(a, result), result)
        same(cuatomic.sum(x, mode="exact", dtype=name), want)
        same(cuatomic.sum(x[order], mode="exact", dtype=name), want)
        products = [product(*pair) for pair in zip(a, b)]
        want = numpy.array(exact(products, result), result)
        same(cuatomic.dot(x, y, mode="exact", dtype=name), want)
        same(cuatomic.vdot(x, y, mode="exact", dtype=name), want)
        mean = exact(a, result, Fraction(1, len(a))) if a else math.nan
        same(cuatomic.mean(x, mode="exact", dtype=name), numpy.array(mean, result))


@given(data=st.data(), dtype=st.sampled_from(FLOATS), ddof=st.sampled_from([0, 1]))
def test_exact_mean_var_norm(data, dtype, ddof):
    x = drawn(data, dtype, max_size=12)
    numbers = [float(v) for v in x]
    n = len(numbers)
    mean, var = cuatomic.mean_var(x, ddof=ddof, mode="exact")
    if not all(map(math.isfinite, numbers)):
        assert math.isnan(var)
        assert numpy.isnan(mean) or mean in numbers
    elif n:
        parts = [Fraction(v) for v in numbers]
        center = sum(parts) / n
        same(mean, numpy.array(rounded(center, dtype), dtype))
        squares = sum((v - center) ** 2 for v in parts)
        want = rounded(squares / (n - ddof), dtype) if n > ddof else math.nan
        same(var, numpy.array(want, dtype))
    else:
        assert math.isnan(mean) and math.isnan(var)
    same(cuatomic.var(x, ddof=ddof, mode="exact"), var)
    norm = float(cuatomic.norm(x, mode="exact"))
    if any(v != v for v in numbers):
        assert math.isnan(norm)
    elif any(map(math.isinf, numbers)):
        assert norm == math.inf
    else:
        check_root(norm, sum(Fraction(v) ** 2 for v in numbers), dtype)


def check_root(root, square, dtype):
    """That a float is the root of a fraction, rounded to nearest."""
    with numpy.errstate(over="ignore"):
        up = float(numpy.nextafter(numpy.array(root, dtype), numpy.array(math.inf, dtype)))
    if math.isinf(root):
        info = numpy.finfo(dtype)
        most = Fraction(float(info.max))
        assert square >= (most + most * Fraction(float(info.epsneg)) / 2) ** 2 * Fraction(99, 100)
        return
    if not math.isinf(up):
        assert square <= ((Fraction(root) + Fraction(up)) / 2) ** 2
    down = float(numpy.nextafter(numpy.array(root, dtype), numpy.array(-math.inf, dtype)))
    if root:
        assert square >= ((Fraction(root) + Fraction(down)) / 2) ** 2


@given(data=st.data(), dtype=st.sampled_from(["?"] + INTS), mode=st.sampled_from(MODES))
def test_integers(data, dtype, mode):
    x = drawn(data, dtype, max_size=30)
    y = numpy.array([data.draw(elements(dtype)) for _ in x], dtype)
    kind = "u8" if x.dtype.kind == "u" else "i8"
    wide, other = x.astype(kind), y.astype(kind)
    same(cuatomic.sum(x, mode=mode), wide.sum(dtype=kind))
    same(cuatomic.prod(x, mode=mode), wide.prod(dtype=kind))
    same(cuatomic.dot(x, y, mode=mode), (wide * other).sum(dtype=kind))
    same(cuatomic.vdot(x, y, mode=mode), (wide * other).sum(dtype=kind))
    same(cuatomic.count_nonzero(x), numpy.int64(numpy.count_nonzero(x)))
    if len(x):
        same(cuatomic.min(x), x.min())
        same(cuatomic.max(x), x.max())
        same(cuatomic.argmin(x), numpy.int64(x.argmin()))
        same(cuatomic.argmax(x), numpy.int64(x.argmax()))
    if mode == "exact" and x.dtype.itemsize == 8:
        return
    numbers = x.astype(object) * 1
    mean, var = cuatomic.mean_var(x, ddof=1, mode=mode)
    same(cuatomic.var(x, ddof=1, mode=mode), var)
    same(cuatomic.mean(x, mode=mode), mean)
    assert mean.dtype == numpy.float64
    if not len(x):
        assert math.isnan(mean) and math.isnan(var)
        return
    center = Fraction(int(sum(numbers)), len(x))
    assert mean == float(center) or (mode != "exact" and math.isclose(mean, center))
    squares = sum((Fraction(int(v)) - center) ** 2 for v in numbers)
    if len(x) > 1:
        want = float(squares / (len(x) - 1))
        assert var == want or (mode != "exact" and math.isclose(var, want, rel_tol=1e-9))


@given(data=st.data(), dtype=st.sampled_from(FLOATS))
def test_extremes_of_floats(data, dtype):
    x = drawn(data, dtype, min_size=1, max_size=20)
    numbers = x[~numpy.isnan(x)]
    same(cuatomic.count_nonzero(x), numpy.int64(numpy.count_nonzero(x)))
    if not len(numbers):
        assert numpy.isnan(cuatomic.min(x)) and numpy.isnan(cuatomic.max(x))
        assert cuatomic.argmin(x) == cuatomic.argmax(x) == 0
        return
    # -0 is less than +0
    keys = [(float(v), math.copysign(1, v)) for v in numbers]
    for function, place, pick in (
        (cuatomic.min, cuatomic.argmin, min),
        (cuatomic.max, cuatomic.argmax, max),
    ):
        value = numbers[keys.index(pick(keys))]
        same(function(x), value)
        first = [i for i, v in enumerate(x) if v.tobytes() == value.tobytes()][0]
        same(place(x), numpy.int64(first))


@pytest.mark.parametrize("mode", ["fast", "fixed"])
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_sums_of_floats(rng, dtype, mode):
    """Sums are close to the true sum, in any number of threads for "fixed"."""
    n = 3000 if QUICK else 100000
    x = rng.standard_normal(n)
    y = rng.standard_normal(n)
    if dtype in COMPLEX:
        x, y = x + 1j * rng.standard_normal(n), y - 1j * y[::-1]
    x, y = x.astype(dtype), y.astype(dtype)
    wide, other = x.astype("c16"), y.astype("c16")
    # a sum of random signs is much smaller than its terms
    sizes, products = abs(wide).sum(), abs(wide * other).sum()
    same_type = x.dtype
    functions = [
        (lambda: cuatomic.sum(x, mode=mode), wide.sum(), sizes),
        (lambda: cuatomic.dot(x, y, mode=mode), (wide * other).sum(), products),
        (lambda: cuatomic.vdot(x, y, mode=mode), numpy.vdot(wide, other), products),
    ]
    if dtype in FLOATS:
        functions += [
            (lambda: cuatomic.norm(x, mode=mode), math.sqrt(math.fsum(abs(wide) ** 2)), 0),
            (lambda: cuatomic.mean(x, mode=mode), wide.mean(), sizes / n),
            (lambda: cuatomic.var(x, mode=mode), wide.var(), 0),
            (lambda: cuatomic.var(x, mode=mode, ddof=1), wide.var(ddof=1), 0),
            (lambda: cuatomic.prod(x[:9], mode=mode), wide[:9].prod(), 0),
        ]
    for function, want, terms in functions:
        got = function()
        assert got.dtype == same_type
        assert abs(got - want) <= 64 * numpy.finfo(dtype).eps * max(abs(want), terms)
        same(abs(function()), abs(got))
        if mode == "fixed":
            with cuatomic.Context("cpu", threads=3):
                same(abs(function()), abs(got))


def test_large_exact(rng):
    n = 20000 if QUICK else 1000000
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-100, 100, n)
    want = math.fsum(x)
    assert cuatomic.sum(x, mode="exact") == want
    assert cuatomic.sum(x[::-1], mode="exact") == want
    with cuatomic.Context("cpu", threads=5) as context:
        assert context.threads == 5
        assert cuatomic.sum(rng.permutation(x), mode="exact") == want
    half = rng.standard_normal(n).astype("f4")
    assert cuatomic.dot(half, half, mode="exact", dtype="float64") == math.fsum(
        half.astype("f8") ** 2
    )


def test_special_values():
    inf, nan = math.inf, math.nan
    f = numpy.array
    same(cuatomic.sum(f([-0.0, -0.0]), mode="exact"), f(0.0))
    same(cuatomic.sum(f([inf, 1.0]), mode="exact"), f(inf))
    assert math.isnan(cuatomic.sum(f([inf, -inf]), mode="exact"))
    assert math.isnan(cuatomic.mean(f([1, nan]), mode="exact"))
    same(cuatomic.mean(f([inf, 1.0]), mode="exact"), f(inf))
    same(cuatomic.sum(f([1e308, 1e308, -1e308]), mode="exact"), f(1e308))
    same(cuatomic.mean(f([1.7e308, 1.7e308]), mode="exact"), f(1.7e308))
    same(cuatomic.norm(f([3e300, 4e300])), f(5e300))
    assert math.isclose(cuatomic.norm(f([3e-320, 4e-320])), 5e-320, rel_tol=1e-3)
    same(cuatomic.norm(f([5e-324] * 4), mode="exact"), f(1e-323))
    same(cuatomic.min(f([nan, 2.0, -0.0, 0.0])), f(-0.0))
    same(cuatomic.max(f([-0.0, nan, 0.0])), f(0.0))
    for mode in ("fast", "fixed"):
        assert math.isnan(cuatomic.sum(f([nan, 1.0]), mode=mode))
        assert cuatomic.sum(f([1e308, 1e308]), mode=mode) == inf


def test_complex():
    x, y = numpy.array([1 + 2j, 3 - 1j]), numpy.array([2j, 1 + 1j])
    assert cuatomic.sum(x) == x.sum() and cuatomic.dot(x, y) == (x * y).sum()
    assert cuatomic.vdot(x, y) == numpy.vdot(x, y)
    wide = cuatomic.vdot(x.astype("c8"), y.astype("c8"), dtype="complex128")
    assert wide.dtype == numpy.complex128 and wide == numpy.vdot(x, y)


def test_empty():
    x = numpy.zeros(0, "f4")
    for mode in MODES:
        same(cuatomic.sum(x, mode=mode), numpy.float32(0))
        same(cuatomic.dot(x, x, mode=mode), numpy.float32(0))
        same(cuatomic.norm(x, mode=mode), numpy.float32(0))
        assert math.isnan(cuatomic.mean(x, mode=mode)) and math.isnan(cuatomic.var(x, mode=mode))
    assert cuatomic.prod(x) == 1 and cuatomic.count_nonzero(x) == 0
    for function in (cuatomic.min, cuatomic.max, cuatomic.argmin, cuatomic.argmax):
        with pytest.raises(ValueError):
            function(x)


def test_kinds(xp, rng):
    for dtype in ("i1", "i4", "f4", "f8", "?"):
        x = rng.integers(0, 2 if dtype == "?" else 100, (30, 5)).astype(dtype)
        mine = xp.asarray(x)
        wide = x.astype("f8" if x.dtype.kind == "f" else "i8")
        assert xp.check(cuatomic.sum(mine)) == wide.sum()
        assert xp.check(cuatomic.sum(mine, mode="exact")) == wide.sum()
        assert xp.check(cuatomic.dot(mine, mine)) == (wide * wide).sum()
        assert xp.check(cuatomic.mean(mine)) == pytest.approx(wide.mean())
        assert xp.check(cuatomic.var(mine)) == pytest.approx(wide.var())
        assert xp.check(cuatomic.argmax(mine)) == x.argmax()
        assert xp.check(cuatomic.count_nonzero(mine)) == numpy.count_nonzero(x)
        for function, want in ((cuatomic.min, x.min()), (cuatomic.max, x.max())):
            got = xp.check(function(mine))
            assert got == want and got.dtype == x.dtype
    x = rng.standard_normal((40, 3))
    assert xp.check(cuatomic.sum(xp.asarray(x).T, mode="exact")) == math.fsum(x.ravel())
    want = math.sqrt(math.fsum(x.ravel() ** 2))
    assert xp.check(cuatomic.norm(xp.asarray(x), mode="exact")) == pytest.approx(want, rel=1e-15)


def test_views(rng):
    x = rng.standard_normal((20, 10))
    for view in (x[::2], x[:, 3], x.T, x[::-1, ::-3], x[:0], x[5, 5]):
        assert cuatomic.sum(view, mode="exact") == math.fsum(view.ravel())
    unaligned = numpy.frombuffer(b"\0" + x.tobytes(), "f8", offset=1)
    assert cuatomic.sum(unaligned, mode="exact") == math.fsum(x.ravel())
    read_only = x.copy()
    read_only.flags.writeable = False
    assert cuatomic.sum(read_only, mode="exact") == math.fsum(x.ravel())


def test_buffers():
    assert cuatomic.sum(b"abc") == cuatomic.sum(bytearray(b"abc")) == 294
    assert cuatomic.sum(memoryview(b"abcd")[::2]) == ord("a") + ord("c")
    assert cuatomic.sum(memoryview(b"abc").cast("c")) == 294
    for code in "bBhHiIlLqQfd":
        x = array.array(code, [3, 1, 2])
        assert cuatomic.sum(x) == 6 and cuatomic.argmin(x) == 1
        for got, want in ((cuatomic.min(x), 1), (cuatomic.max(x), 3)):
            assert got == want and isinstance(got, type(x[0]))
        if code in "bBhHiIfd":
            assert cuatomic.mean(x, mode="exact") == 2
    assert cuatomic.sum(array.array("d", [0.1] * 10), mode="exact") == math.fsum([0.1] * 10)
    assert cuatomic.norm(array.array("d", [3, 4]), mode="exact") == 5
    assert cuatomic.sum((ctypes.c_int16 * 3)(1, 2, -4)) == -1
    assert cuatomic.max((ctypes.c_double * 2)(1, 2)) == 2
    with mmap.mmap(-1, 16) as memory:
        memory[:3] = b"\1\2\3"
        assert cuatomic.sum(memory) == 6
    assert cuatomic.sum(array.array("d")) == 0


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_lists():
    assert cuatomic.sum([1, 2, 3]) == 6 and cuatomic.sum((1, 2.5)) == 3.5
    assert cuatomic.sum(range(5)) == 10 and cuatomic.sum(7) == 7 and cuatomic.sum([]) == 0
    assert cuatomic.sum([[1, 2], [3, 4]]) == 10
    assert cuatomic.sum(numpy.matrix([[1, 2]])) == 3 and cuatomic.sum(numpy.int8(-3)) == -3


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 2**-8, 2**-8, -3], ml_dtypes.bfloat16)
    for mode in MODES:
        got = cuatomic.sum(x[:3], mode=mode)
        assert got.dtype == x.dtype and float(got) == 1 + 2**-7
    assert cuatomic.sum(x, mode="exact", dtype="float32") == numpy.float32(-2 + 2**-7)
    assert float(cuatomic.min(x)) == -3 and cuatomic.min(x).dtype == x.dtype
    assert cuatomic.sum(x, mode="exact", dtype=ml_dtypes.bfloat16).dtype == x.dtype
    mean = cuatomic.mean(x, mode="exact")
    assert mean.dtype == x.dtype and mean == numpy.array((-2 + 2**-7) / 4, x.dtype)


def test_dtype_forms():
    x = numpy.array([1, 2], "f4")
    for dtype in ("float64", numpy.float64, numpy.dtype("f8"), float):
        assert cuatomic.sum(x, dtype=dtype).dtype == numpy.float64
    assert cuatomic.sum(numpy.array([1, 2], "i4"), dtype=numpy.int64) == 3


F, N, C = numpy.array([1.0, 2.0]), numpy.array([1, 2]), numpy.array([1j, 2])


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda: cuatomic.sum(F, mode="best")),
        (ValueError, lambda: cuatomic.sum(N, mode=["exact"])),
        (ValueError, lambda: cuatomic.mean(F, mode=None)),
        (ValueError, lambda: cuatomic.var(F, ddof=2)),
        (ValueError, lambda: cuatomic.mean_var(F, ddof=-1)),
        (ValueError, lambda: cuatomic.dot(F, F[:1])),
        (ValueError, lambda: cuatomic.dot(F, F.reshape(1, 2))),
        (ValueError, lambda: cuatomic.sum([[1, 2], [3]])),
        (TypeError, lambda: cuatomic.dot(F, N)),
        (TypeError, lambda: cuatomic.dot(F, None)),
        (TypeError, lambda: cuatomic.sum(F, dtype="float32")),
        (TypeError, lambda: cuatomic.sum(F, dtype="float80")),
        (TypeError, lambda: cuatomic.sum(N, dtype="float64")),
        (TypeError, lambda: cuatomic.mean(F.astype("f4"), mode="exact", dtype="float16")),
        (TypeError, lambda: cuatomic.mean(N, mode="exact")),
        (TypeError, lambda: cuatomic.norm(N)),
        (TypeError, lambda: cuatomic.norm(C, mode="exact")),
        (TypeError, lambda: cuatomic.min(C)),
        (TypeError, lambda: cuatomic.mean(C)),
        (TypeError, lambda: cuatomic.prod(C)),
        (ValueError, lambda: cuatomic.prod(F, mode="exact")),
        (cuatomic.Error, lambda: cuatomic.sum(C, mode="exact")),
        (TypeError, lambda: cuatomic.sum(None)),
        (TypeError, lambda: cuatomic.sum("abc")),
        (TypeError, lambda: cuatomic.sum({1, 2})),
        (TypeError, lambda: cuatomic.sum(object())),
        (TypeError, lambda: cuatomic.sum(F.astype(">f8"))),
        (TypeError, lambda: cuatomic.sum(F.astype(object))),
        (TypeError, lambda: cuatomic.sum(numpy.array(["a"]))),
        (TypeError, lambda: cuatomic.sum(numpy.array(["2020-01-01"], "M8[D]"))),
        (TypeError, lambda: cuatomic.sum(numpy.ma.array([1, 2], mask=[0, 1]))),
        (ValueError, lambda: cuatomic.Context("gpu")),
        (ValueError, lambda: cuatomic.Context("cpu", stream=1)),
        (ValueError, lambda: cuatomic.Context("cpu", threads=5000)),
    ],
)
def test_errors(error, call):
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value)


def in_threads(count, work):
    """Runs work(i) in threads, and raises the first error."""
    failures = []

    def run(i):
        try:
            work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads(rng):
    x = rng.standard_normal((8, 5000))
    wants = [math.fsum(row) for row in x]

    def work(i):
        for _ in range(20):
            assert cuatomic.sum(x[i], mode="exact") == wants[i]
            assert cuatomic.argmax(x[i]) == x[i].argmax()

    in_threads(8, work)


def test_contexts_belong_to_threads():
    from cuatomic._context import CPU, context_for

    with cuatomic.Context("cpu", threads=2) as outer:
        assert context_for(CPU, 0) is outer
        with cuatomic.Context("cpu", threads=1) as inner:
            assert context_for(CPU, 0) is inner and inner.threads == 1
            assert cuatomic.sum([1, 2]) == 3
        assert context_for(CPU, 0) is outer

        def work(i):
            mine = context_for(CPU, 0)
            assert mine is not outer and mine is context_for(CPU, 0)
            assert mine.threads == len(os.sched_getaffinity(0))
            seen.append(mine)

        seen = []
        in_threads(3, work)
        assert len({id(context) for context in seen}) == 3
    default = context_for(CPU, 0)
    assert default is not outer and default is context_for(CPU, 0)
    with pytest.raises(KeyError):
        with outer:
            raise KeyError
    assert context_for(CPU, 0) is default
    assert outer.device == "cpu" and outer.threads == 2 and repr(outer) == "Context('cpu')"
    outer.reserve(1 << 16)
    outer.synchronize()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_child(rng):
    x = rng.standard_normal(200000)
    want = math.fsum(x)
    mine = cuatomic.Context("cpu", threads=3)
    with mine:
        assert cuatomic.sum(x, mode="exact") == want
        child = os.fork()
        if not child:
            status = 1
            try:
                # the context of the parent is not in effect, and refuses calls
                good = cuatomic.sum(x, mode="exact") == want
                good = good and cuatomic.sum(x, mode="exact") == want
                try:
                    mine.synchronize()
                except cuatomic.Error:
                    status = 0 if good else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert cuatomic.sum(x, mode="exact") == want
