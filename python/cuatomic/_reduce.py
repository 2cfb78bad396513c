# SPDX-License-Identifier: MIT
"""Reductions of an array to a number."""

from __future__ import annotations

import ctypes
import math

from . import _abi
from ._arrays import take, take_each, take_output
from ._context import device_name
from ._errors import failed
from ._exact import POINT, Exact, rounded, square_root
from ._library import lib
from ._types import FLOATS, SIGNED, SIZES, UNSIGNED, dtype_name, type_code
from ._typing import Array, ArrayLike, DType, Mode

MODES = {
    "fast": _abi.CUA_REDUCE_FAST,
    "fixed": _abi.CUA_REDUCE_FIXED,
    "exact": _abi.CUA_REDUCE_EXACT,
}
WIDER = {
    _abi.CUA_I8: _abi.CUA_I32,
    _abi.CUA_I16: _abi.CUA_I32,
    _abi.CUA_U8: _abi.CUA_U32,
    _abi.CUA_U16: _abi.CUA_U32,
}
_MEANS = (_abi.CUA_REDUCE_MEAN, _abi.CUA_REDUCE_VARIANCE, _abi.CUA_REDUCE_VARIANCE_SAMPLE)
_PLACES = (_abi.CUA_REDUCE_ARGMIN, _abi.CUA_REDUCE_ARGMAX, _abi.CUA_REDUCE_COUNT)
_EXTREMES = (_abi.CUA_REDUCE_MIN, _abi.CUA_REDUCE_MAX)
_options: dict = {}


def mode_number(mode, known=("fast", "fixed", "exact")):
    """The number of a mode."""
    if mode not in known:
        raise ValueError("mode %r: choose %s" % (mode, " or ".join(map(repr, known))))
    return MODES[mode]


def _result_code(op, code):
    if op in _PLACES:
        return _abi.CUA_I64
    if op in _EXTREMES:
        return code
    if code in SIGNED or code in UNSIGNED:
        if op in _MEANS:
            return _abi.CUA_F64
        return _abi.CUA_I64 if code in SIGNED else _abi.CUA_U64
    return code


def _plan(op, code, mode, dtype):
    """(options, result type) of a reduction."""
    number = mode_number(mode)
    result = _result_code(op, code)
    is_float = code >= _abi.CUA_F16
    options = _abi.cua_reduce_options()
    options.struct_size = ctypes.sizeof(options)
    # integers have the same result in every mode
    options.mode = number if is_float or op in _MEANS else _abi.CUA_REDUCE_AUTO
    if dtype is not None and type_code(dtype) != result:
        if not is_float and op not in _MEANS:
            raise TypeError(
                "the result of %s is %s, not %s" % (dtype_name(code), dtype_name(result), dtype)
            )
        options.result_type = result = type_code(dtype)
    return options, ctypes.byref(options), result


def _reduce(name, op, x, y, mode, dtype, out=None, like=None):
    try:
        options, reference, result = _options[op, x.code, mode, dtype]
    except (KeyError, TypeError):
        made = _plan(op, x.code, mode, dtype)
        options, reference, result = made
        if dtype is None or isinstance(dtype, str):
            _options[op, x.code, mode, dtype] = made
    context = x.context()
    if out is None:
        array, address = x.kind.empty((), result, x.device)
    else:
        array, address = out, _output(out, x, result)
    status = lib.cua_reduce(
        context._handle, reference, op, x.code, x.n, x.ptr, None if y is None else y.ptr, address
    )
    if status:
        raise failed(status, "%s of %s" % (name, dtype_name(x.code)))
    if out is None:
        return x.result(context, array, like)
    x.finish(context)
    return out


def _output(out, x, result):
    view = take_output(out)
    if view.code != result or view.n != 1 or view.device != x.device:
        raise ValueError(
            "out is %d elements of %s on %s, not one of %s on %s"
            % (
                view.n,
                dtype_name(view.code),
                device_name(view.device),
                dtype_name(result),
                device_name(x.device),
            )
        )
    return view.ptr


def _real(x):
    """The view of an argument whose type has reductions: small integers become 32 bits wide."""
    view = take(x)
    if view.code not in WIDER:
        return view
    # sums of bool are signed, as numpy's
    return view.converted(_abi.CUA_I32 if view.is_bool() else WIDER[view.code])


def _pair(x, y):
    a, b = take_each(x, y=y)
    if a.shape != b.shape:
        raise ValueError("x has the shape %r, y %r" % (tuple(a.shape), tuple(b.shape)))
    code = _abi.CUA_I32 if a.is_bool() and b.is_bool() else WIDER.get(a.code, a.code)
    if a.code != b.code and WIDER.get(b.code, b.code) != code:
        raise TypeError("x is %s, y is %s" % (dtype_name(a.code), dtype_name(b.code)))
    return a.converted(code), b.converted(code)


def sum(x: ArrayLike, *, mode: Mode = "fast", dtype: DType = None, out: Array = None) -> Array:
    """The sum of all elements.

    Parameters
    ----------
    x : array of any shape
        Integers, floats or complex numbers.
    mode : {"fast", "fixed", "exact"}
        The guarantee for the bits of a float sum. "fast": the same bits while the device, the
        length and the address are the same. "fixed": the same bits on every device and on the CPU.
        "exact": the true sum, rounded once, whatever the order of the elements.
    dtype : optional
        A wider type of the result. A sum of integers has 64 bits and is modulo 2**64.
    out : array of a single element, optional
        Receives the result. Its type is that of the result, and its device that of x. So a call
        on a GPU allocates nothing.

    Returns
    -------
    scalar
        A numpy scalar; an array of shape () for arrays on a GPU and for PyTorch.

    See Also
    --------
    numpy.sum, segmented_sum
    """
    return _reduce("sum", _abi.CUA_REDUCE_SUM, _real(x), None, mode, dtype, out)


def prod(x: ArrayLike, *, mode: Mode = "fast", dtype: DType = None, out: Array = None) -> Array:
    """The product of all elements. Parameters as in `sum`; there is no mode "exact"."""
    view = _real(x)
    if view.code >= _abi.CUA_F16:
        mode_number(mode, ("fast", "fixed"))
    return _reduce("prod", _abi.CUA_REDUCE_PRODUCT, view, None, mode, dtype, out)


def dot(
    x: ArrayLike,
    y: ArrayLike,
    *,
    mode: Mode = "fast",
    dtype: DType = None,
    out: Array = None,
) -> Array:
    """The sum of the products of the elements of two arrays of the same shape and type.

    Parameters as in `sum`. The products of "exact" are not rounded.
    """
    a, b = _pair(x, y)
    return _reduce("dot", _abi.CUA_REDUCE_DOT, a, b, mode, dtype, out)


def vdot(
    x: ArrayLike,
    y: ArrayLike,
    *,
    mode: Mode = "fast",
    dtype: DType = None,
    out: Array = None,
) -> Array:
    """As `dot`, of the complex conjugates of the elements of x."""
    a, b = _pair(x, y)
    return _reduce("vdot", _abi.CUA_REDUCE_DOT_CONJ, a, b, mode, dtype, out)


def norm(x: ArrayLike, *, mode: Mode = "fast", dtype: DType = None) -> Array:
    """The square root of the sum of the squares of all elements, which are floats.

    Parameters as in `sum`. It neither overflows nor underflows. In mode "exact" it is the true
    norm, rounded once; the call waits.
    """
    view = take(x)
    if mode != "exact":
        return _reduce("norm", _abi.CUA_REDUCE_NORM2, view, None, mode, dtype)
    result = _float_result(view, dtype)
    squares = Exact().add(view.context(), view, view)
    value = squares.special or square_root(squares.integer, POINT, result)
    return view.kind.from_number(value, result, view.device)


def _float_result(view, dtype):
    if view.code not in FLOATS:
        raise TypeError("mode 'exact' is for floats, not for %s" % dtype_name(view.code))
    code = view.code if dtype is None else type_code(dtype)
    if code not in FLOATS or SIZES[code] < SIZES[view.code]:
        raise TypeError("the result of %s cannot be %s" % (dtype_name(view.code), dtype))
    return code


def _exact_view(x, dtype):
    """(view of floats, type of the results) for exact means."""
    view = _real(x)
    if view.code in WIDER.values():
        view = view.converted(_abi.CUA_F64)
    return view, _float_result(view, dtype)


def _exact_mean(view, result):
    """(sum, mean): the sum as an integer, and its mean, rounded once."""
    total = Exact().add(view.context(), view)
    if not view.n:
        return 0, math.nan
    return total.integer, total.special or rounded(total.integer, view.n << POINT, result)


def _exact_mean_var(view, ddof, result):
    """(mean, variance), each of the true sums and rounded once."""
    n = view.n
    s, mean = _exact_mean(view, result)
    squares = Exact().add(view.context(), view, view)
    if n <= ddof or squares.special:
        return mean, math.nan
    spread = n * (squares.integer << POINT) - s * s
    return mean, rounded(spread, n * (n - ddof) << 2 * POINT, result)


def mean_var(
    x: ArrayLike, *, ddof: int = 0, mode: Mode = "fast", dtype: DType = None
) -> tuple[Array, Array]:
    """The mean and the variance of all elements.

    Parameters
    ----------
    x : array of any shape
        Integers or floats.
    ddof : {0, 1}
        The squared distances from the mean are divided by the number of elements minus ddof.
    mode : {"fast", "fixed", "exact"}
        As in `sum`. "exact": the true mean and variance, each rounded once, of floats and of
        integers of at most 32 bits; the call waits.
    dtype : optional
        A wider type of the results. Means of integers are float64.

    Returns
    -------
    (mean, variance)
        nan for no elements.
    """
    if ddof not in (0, 1):
        raise ValueError("ddof=%r: choose 0 or 1" % (ddof,))
    if mode == "exact":
        view, result = _exact_view(x, dtype)
        make = view.kind.from_number
        average, variance = _exact_mean_var(view, ddof, result)
        return make(average, result, view.device), make(variance, result, view.device)
    view = _real(x)
    op = _abi.CUA_REDUCE_VARIANCE_SAMPLE if ddof else _abi.CUA_REDUCE_VARIANCE
    return (
        _reduce("mean", _abi.CUA_REDUCE_MEAN, view, None, mode, dtype),
        _reduce("variance", op, view, None, mode, dtype),
    )


def mean(x: ArrayLike, *, mode: Mode = "fast", dtype: DType = None) -> Array:
    """The mean of all elements, as the first result of `mean_var`."""
    if mode == "exact":
        view, result = _exact_view(x, dtype)
        return view.kind.from_number(_exact_mean(view, result)[1], result, view.device)
    return _reduce("mean", _abi.CUA_REDUCE_MEAN, _real(x), None, mode, dtype)


def var(x: ArrayLike, *, ddof: int = 0, mode: Mode = "fast", dtype: DType = None) -> Array:
    """The variance of all elements, as the second result of `mean_var`."""
    if ddof not in (0, 1):
        raise ValueError("ddof=%r: choose 0 or 1" % (ddof,))
    if mode == "exact":
        return mean_var(x, ddof=ddof, mode=mode, dtype=dtype)[1]
    op = _abi.CUA_REDUCE_VARIANCE_SAMPLE if ddof else _abi.CUA_REDUCE_VARIANCE
    return _reduce("variance", op, _real(x), None, mode, dtype)


def _extreme(name, op, x):
    view = take(x)
    if not view.n:
        raise ValueError("%s of no elements" % name)
    wide = view.converted(WIDER.get(view.code, view.code))
    like = None if wide is view or op in _PLACES else view
    return _reduce(name, op, wide, None, "fast", None, like=like)


def min(x: ArrayLike) -> Array:
    """The least element. NaN is ignored, as by ``numpy.nanmin``; -0 is less than +0."""
    return _extreme("min", _abi.CUA_REDUCE_MIN, x)


def max(x: ArrayLike) -> Array:
    """The greatest element. NaN is ignored, as by ``numpy.nanmax``; -0 is less than +0."""
    return _extreme("max", _abi.CUA_REDUCE_MAX, x)


def argmin(x: ArrayLike) -> Array:
    """The index of the first least element of the flat array, as int64.

    NaN is ignored. If all elements are NaN, the index is 0.
    """
    return _extreme("argmin", _abi.CUA_REDUCE_ARGMIN, x)


def argmax(x: ArrayLike) -> Array:
    """The index of the first greatest element of the flat array, as int64.

    NaN is ignored. If all elements are NaN, the index is 0.
    """
    return _extreme("argmax", _abi.CUA_REDUCE_ARGMAX, x)


def count_nonzero(x: ArrayLike) -> Array:
    """The number of elements that are not zero, as int64."""
    return _reduce("count_nonzero", _abi.CUA_REDUCE_COUNT, _real(x), None, "fast", None)
