# SPDX-License-Identifier: MIT
"""Python numbers as elements of a type, and elements as Python numbers."""

import ctypes
import math
import struct

from . import _abi
from ._errors import check
from ._exact import rounded
from ._library import lib
from ._types import FLOATS, LETTERS, SIZES, dtype_name


def plain(value):
    """The Python number of a number of any library, for example an array of shape ()."""
    item = getattr(value, "item", None)
    number = item() if item else value
    if not isinstance(number, (int, float)):
        raise TypeError("%r is not a real number" % (value,))
    return number


def double(number):
    """The nearest float64 of a number; infinite beyond its range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def int_range(code):
    """(least, greatest) of an integer type."""
    bits = 8 * SIZES[code]
    if LETTERS[code].isupper():
        return 0, (1 << bits) - 1
    return -1 << (bits - 1), (1 << (bits - 1)) - 1


def sum_code(code):
    """The type of 64 bits for sums of integers of a type."""
    if code not in LETTERS:
        raise TypeError("sums of %s are not supported" % dtype_name(code))
    return _abi.CUA_I64 if int_range(code)[0] else _abi.CUA_U64


def nearest(number, code):
    """The float of a type that is nearest to a number."""
    if number == 0 or number != number or number in (math.inf, -math.inf):
        return float(number)
    return rounded(*number.as_integer_ratio(), code)


def fits(number, code):
    """Whether a number is an element of the type."""
    if code in FLOATS:
        return number != number or nearest(number, code) == number
    if code not in LETTERS:
        return False
    least, greatest = int_range(code)
    return least <= number <= greatest and number == int(number)


def holds(wide, narrow):
    """Whether every element of the type `narrow` is one of the type `wide`."""
    if wide == narrow:
        return True
    if max(wide, narrow) > _abi.CUA_F64 or narrow in FLOATS:
        return wide in FLOATS and narrow in FLOATS and SIZES[wide] > SIZES[narrow]
    return all(fits(number, wide) for number in int_range(narrow))


def pack(numbers, code):
    """A ctypes buffer of numbers: integers that fit, or floats, rounded to the type."""
    if code == _abi.CUA_F64:
        numbers = [double(number) for number in numbers]
    elif code in FLOATS:
        numbers = [nearest(number, code) for number in numbers]
    else:
        numbers = [int(number) for number in numbers]
    if code == _abi.CUA_BF16:
        raw = struct.pack("=%df" % len(numbers), *numbers)
        words = struct.unpack("=%dI" % len(numbers), raw)
        raw = struct.pack("=%dH" % len(numbers), *(word >> 16 for word in words))
    else:
        raw = struct.pack("=%d%s" % (len(numbers), LETTERS[code]), *numbers)
    return ctypes.create_string_buffer(raw, max(len(raw), 1))


def unpack(raw, code):
    """The Python numbers of elements."""
    count = len(raw) // SIZES[code]
    if code == _abi.CUA_BF16:
        words = struct.unpack("=%dH" % count, raw)
        raw = struct.pack("=%dI" % count, *(word << 16 for word in words))
        code = _abi.CUA_F32
    if code not in LETTERS:
        raise TypeError("elements of %s are not real numbers" % dtype_name(code))
    return list(struct.unpack("=%d%s" % (count, LETTERS[code]), raw))


def raw_bytes(context, view):
    """The bytes of an array, on the host. The call waits."""
    size = view.n * SIZES[view.code]
    host = ctypes.create_string_buffer(max(size, 1))
    check(lib.cua_copy(context.handle, host, view.ptr, size), "copy")
    return host.raw[:size]


def from_numbers(view, context, numbers, code):
    """(array, address) of numbers, as a new array of the view's kind."""
    array, address = view.empty((len(numbers),), code)
    if len(numbers):
        source = pack(numbers, code)
        size = len(numbers) * SIZES[code]
        check(lib.cua_copy(context.handle, address, source, size), "copy")
    return array, address


def is_list(x):
    """Whether an argument is numbers without an array."""
    return isinstance(x, (list, tuple, range, set, frozenset, int, float))


def is_empty_list(x):
    """Whether an argument is a list without numbers; numpy makes floats of it."""
    return isinstance(x, (list, tuple)) and not x


def numbers_of(x):
    """The Python numbers of such an argument."""
    return [plain(x)] if isinstance(x, (int, float)) else [plain(number) for number in x]


def ceiling(number, code):
    """The least element of a type that is at least the number, or None."""
    if code not in FLOATS:
        if number in (math.inf, -math.inf):
            return None if number > 0 else int_range(code)[0]
        least, greatest = int_range(code)
        number = math.ceil(number)
        return None if number > greatest else max(number, least)
    value = nearest(number, code)
    return value if value >= number else _next_up(value, code)


def _next_up(value, code):
    """The next greater float of a type."""
    raw = pack([value], code).raw
    bits = int.from_bytes(raw, _ORDER)
    sign = 1 << (8 * len(raw) - 1)
    if value == 0:
        bits = 1
    elif bits & sign:
        bits -= 1
    else:
        bits += 1
    return unpack(bits.to_bytes(len(raw), _ORDER), code)[0]


_ORDER = "little" if struct.pack("=H", 1) == b"\1\0" else "big"
