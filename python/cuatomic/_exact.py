# SPDX-License-Identifier: MIT
"""Exact sums as integers, and results of them that are rounded once."""

import ctypes
import math

from . import _abi
from ._errors import check
from ._library import lib

POINT = 2176
"""Digit 0 of a struct cua_exact has the weight 2 ** -POINT."""

_FORMATS = {
    # bits of precision, exponent of the least subnormal, exponent above the largest number
    _abi.CUA_F16: (11, -24, 16),
    _abi.CUA_BF16: (8, -133, 128),
    _abi.CUA_F32: (24, -149, 128),
    _abi.CUA_F64: (53, -1074, 1024),
}


def rounded(numerator, denominator, code):
    """numerator / denominator, rounded once to nearest even, as a float of the type's values."""
    precision, least, above = _FORMATS[code]
    sign = -1.0 if numerator < 0 else 1.0
    numerator = abs(numerator)
    if not numerator:
        return 0.0
    # 2 ** exponent is at most twice the quotient
    exponent = numerator.bit_length() - denominator.bit_length()
    unit = max(exponent - precision, least)
    while True:
        scaled = numerator << max(-unit, 0), denominator << max(unit, 0)
        whole, rest = divmod(*scaled)
        if whole < 1 << precision:
            break
        unit += 1
    twice = 2 * rest - scaled[1]
    if twice > 0 or (twice == 0 and whole & 1):
        whole += 1
    if whole.bit_length() + unit > above:
        return sign * math.inf
    return sign * math.ldexp(whole, unit)


def square_root(numerator, point, code):
    """The square root of numerator / 2 ** point, for an even point, rounded once."""
    shift = max(256 - numerator.bit_length(), 0)
    shift += shift & 1
    root = math.isqrt(numerator << shift)
    sticky = root * root != numerator << shift
    return rounded(2 * root + sticky, 2 << ((point + shift) // 2), code)


class Exact:
    """A sum of the library as an integer of the weight 2 ** -POINT, and its special elements."""

    def __init__(self):
        self._sum = _abi.cua_exact()

    def add(self, context, view, factor=None):
        """Adds the elements of a view, or their products with those of another."""
        arguments = context.handle, view.code, view.n, view.ptr
        if factor is None:
            check(lib.cua_exact_sum(*arguments, ctypes.byref(self._sum)), "exact sum")
        else:
            check(lib.cua_exact_dot(*arguments, factor.ptr, ctypes.byref(self._sum)), "exact dot")
        return self

    @property
    def special(self):
        """nan or an infinity if the elements have it, else 0."""
        flags = self._sum.flags
        if not flags:
            return 0.0
        return {2: math.inf, 4: -math.inf}.get(flags, math.nan)

    @property
    def integer(self):
        return sum(digit << 32 * i for i, digit in enumerate(self._sum.digit))
