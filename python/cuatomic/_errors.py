# SPDX-License-Identifier: MIT
"""Errors of the library as exceptions."""

import errno
import os

from . import _abi
from ._library import lib


class Error(RuntimeError):
    """A call of the library failed.

    Attributes
    ----------
    status : str
        The name of the status, for example ``"CUA_ERROR_FULL"``.
    """

    status = "CUA_ERROR_UNKNOWN"


class ArgumentError(Error, ValueError):
    """An argument is outside its range, overlaps another or is memory of another device."""


class ElementTypeError(Error, TypeError):
    """The call does not offer this element type."""


class OutOfMemoryError(Error, MemoryError):
    """The memory of the host or of the device is exhausted."""


class DeviceError(Error):
    """No device is usable, or CUDA failed."""


class FullError(Error):
    """A container has no room for some of the elements.

    Attributes
    ----------
    rejected : int
        The number of pairs that found no room, if it is known; else 0.
    """

    rejected = 0


class CorruptError(Error):
    """A file or an object is not consistent."""


class SystemError_(Error, OSError):
    """The operating system refused a file or another resource."""

    __str__ = Error.__str__

    def __reduce__(self):
        members = self.errno, self.strerror, self.filename
        return _system_error, (type(self), self.args, members, self.__dict__)


def _system_error(cls, args, members, attributes):
    """An unpickled error. An OSError stores these members outside its `__dict__`."""
    error = cls(*args)
    error.errno, error.strerror, error.filename = members
    error.__dict__.update(attributes)
    return error


class MissingFileError(SystemError_, FileNotFoundError):
    """A file or a folder does not exist."""


class NoPermissionError(SystemError_, PermissionError):
    """The file or its folder may not be used."""


# the public name, by which pickle finds the class
SystemError_.__name__ = SystemError_.__qualname__ = "SystemError"
SystemError_.__module__ = "cuatomic"

_CLASSES = {
    _abi.CUA_ERROR_NULL: ArgumentError,
    _abi.CUA_ERROR_VALUE: ArgumentError,
    _abi.CUA_ERROR_TYPE: ElementTypeError,
    _abi.CUA_ERROR_SIZE: ArgumentError,
    _abi.CUA_ERROR_ALIGNMENT: ArgumentError,
    _abi.CUA_ERROR_OVERLAP: ArgumentError,
    _abi.CUA_ERROR_MEMORY_KIND: ArgumentError,
    _abi.CUA_ERROR_NO_MEMORY: OutOfMemoryError,
    _abi.CUA_ERROR_NO_DEVICE: DeviceError,
    _abi.CUA_ERROR_CUDA: DeviceError,
    _abi.CUA_ERROR_FULL: FullError,
    _abi.CUA_ERROR_SYSTEM: SystemError_,
    _abi.CUA_ERROR_CORRUPT: CorruptError,
    _abi.CUA_ERROR_NOT_BUILT: DeviceError,
}


def failed(status, what=""):
    """The exception of a status; `what` names the call or the file."""
    text = lib.cua_strerror(status).decode()
    error = _CLASSES.get(status, Error)((what + ": " if what else "") + text)
    error.status = lib.cua_status_name(status).decode()
    return error


def check(status, what=""):
    """Raises the exception of a status that is not CUA_OK."""
    if status:
        raise failed(status, what)


def file_failed(status, number, path):
    """The exception of a call with a file; `number` is the errno after the call."""
    if status != _abi.CUA_ERROR_SYSTEM:
        return failed(status, os.fsdecode(path))
    classes = {
        errno.ENOENT: MissingFileError,
        errno.EACCES: NoPermissionError,
        errno.EPERM: NoPermissionError,
    }
    error = classes.get(number, SystemError_)("%s: %s" % (os.fsdecode(path), os.strerror(number)))
    error.status = lib.cua_status_name(status).decode()
    error.errno = number
    error.strerror = os.strerror(number)
    error.filename = path
    return error
