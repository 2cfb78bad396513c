# SPDX-License-Identifier: MIT
"""Finds and loads libcuatomic, and gives its functions their types."""

import ctypes
import os

from . import _abi

_TYPES = {
    "-": None,
    "s": ctypes.c_char_p,
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "I": ctypes.c_uint,
    "L": ctypes.c_uint32,
    "N": ctypes.c_size_t,
    "Q": ctypes.c_uint64,
    "d": ctypes.c_double,
}


def _load():
    """The library: $CUATOMIC_LIBRARY, the one in the package, or the system's."""
    named = os.environ.get("CUATOMIC_LIBRARY")
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", _abi.SONAME)
    path = named or (inside if os.path.exists(inside) else _abi.SONAME)
    try:
        return path, ctypes.CDLL(path)
    except OSError as error:
        hint = "" if named else "; the environment variable CUATOMIC_LIBRARY names another file"
        raise ImportError("cuatomic: %s%s" % (error, hint)) from None


class _Library:
    """The functions of the library, each bound when it is first used."""

    def __init__(self):
        self.path, self._cdll = _load()

    def __getattr__(self, name):
        try:
            prototype = _abi.PROTOTYPES[name]
        except KeyError:
            raise AttributeError(name) from None
        try:
            function = getattr(self._cdll, name)
        except AttributeError:
            raise AttributeError("%s has no %s: another version" % (self.path, name)) from None
        function.restype = _TYPES[prototype[0]]
        function.argtypes = [_TYPES[letter] for letter in prototype[1:]]
        setattr(self, name, function)
        return function

    def with_errno(self, name):
        """The function `name`, after whose call ctypes.get_errno() is the errno of the call."""
        function = getattr(self, name)
        prototype = ctypes.CFUNCTYPE(function.restype, *function.argtypes, use_errno=True)
        return prototype((name, self._cdll))


lib = _Library()
