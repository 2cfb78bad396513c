# SPDX-License-Identifier: MIT
"""Contexts: the device, the stream and the workspace of calls."""

from __future__ import annotations

import ctypes
import operator
import os
import threading
import weakref

from . import _abi
from ._errors import Error, check, failed
from ._library import lib
from ._typing import DeviceLike

CPU = -1
"""The number that stands for the CPU where others are numbers of CUDA devices."""

_MOST_CONTEXTS = 32
_local = threading.local()
_process = os.getpid()


def _forked():
    """Contexts of the parent have threads and devices that a child process does not have."""
    global _process
    _process = os.getpid()
    stack = getattr(_local, "stack", [])
    _local.__dict__.clear()
    _local.stack = stack


os.register_at_fork(after_in_child=_forked)


def device_number(device):
    """The number of a device: CPU, or that of a CUDA device.

    Parameters
    ----------
    device : "cpu", "cuda", "cuda:N", int or None
        None is the first CUDA device if there is one, else the CPU.
    """
    if device is None:
        return 0 if device_count() else CPU
    if isinstance(device, bool):
        raise TypeError("a device is 'cpu', 'cuda:N' or a number, not %r" % device)
    if hasattr(device, "__index__"):
        number = device.__index__()
        if not 0 <= number < 1 << 31:
            raise ValueError("device %d: numbers of devices start at 0" % number)
        return number
    name, _, number = str(device).partition(":")
    if name == "cpu" and number in ("", "0"):
        return CPU
    if name == "cuda" and (not number or number.isdecimal()):
        return device_number(int(number or 0))
    raise ValueError("%r: a device is 'cpu', 'cuda:N' or a number" % (device,))


def device_name(number):
    """ "cpu" or "cuda:N"."""
    return "cpu" if number == CPU else "cuda:%d" % number


def device_count():
    """The number of usable CUDA devices; 0 without a driver, or in a library without CUDA."""
    count = ctypes.c_int()
    lib.cua_device_count(_abi.CUA_BACKEND_CUDA, ctypes.byref(count))
    return count.value


def stream_handle(stream):
    """The handle of a stream: of an int, of an object with ``__cuda_stream__``, ``ptr`` (CuPy),
    ``cuda_stream`` (PyTorch) or ``handle`` (Numba), or 0, the legacy default stream, for None."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        made = stream.__cuda_stream__
        version, handle = made() if callable(made) else made
        if version != 0:
            raise ValueError("__cuda_stream__: version %r is not known" % (version,))
        return int(handle)
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name) or 0)
    if hasattr(stream, "handle"):
        handle = stream.handle
        return int(getattr(handle, "value", handle) or 0)
    if hasattr(stream, "__index__"):
        return stream.__index__()
    raise TypeError("%r is not a CUDA stream" % (stream,))


class Context:
    """A device, a stream and a workspace for calls.

    Calls need no context: each thread has one for each device and stream that its arrays use. A
    context of your own sets the number of threads of the CPU, or names a stream. It is in effect
    inside its ``with`` block, for arrays of its device, and in the thread that entered the block.

    Parameters
    ----------
    device : "cpu", "cuda", "cuda:N", int or None
        None is the first CUDA device if there is one, else the CPU.
    stream : optional
        A CUDA stream: of CuPy, PyTorch or Numba, an object with ``__cuda_stream__``, or the handle
        as an int. Without it, calls use the current stream of the arrays' library.
    threads : int, optional
        The threads of the CPU, 1 to 1024. 0 is one for each logical CPU.

    Raises
    ------
    DeviceError
        There is no such device, or the library was built without CUDA.

    Notes
    -----
    A context is for one thread at a time. In the block of another thread, or of a child process, a
    context with the same settings takes its place. Asynchronous tasks of a thread share the block.

    In a stream that is not the current stream of the arrays' library, each call waits, so that
    memory of the library is not used too early.
    """

    _handle = 0
    _stream = 0
    _owned = False

    def __init__(
        self, device: DeviceLike = None, *, stream: object = None, threads: int = 0
    ) -> None:
        number = device_number(device)
        if number == CPU and stream is not None:
            raise ValueError("the CPU has no streams")
        if number != CPU and threads:
            raise ValueError("only the CPU has a number of threads")
        if threads:
            threads = _unsigned(threads, 32)
        first_stream = stream_handle(stream)
        handle = ctypes.c_void_p()
        backend = _abi.CUA_BACKEND_CPU if number == CPU else _abi.CUA_BACKEND_CUDA
        status = lib.cua_context_create(backend, max(number, 0), ctypes.byref(handle))
        if status:
            problem = lib.cua_device_problem(backend, max(number, 0)).decode()
            error = failed(status, device_name(number))
            if problem:
                error.args = ("%s: %s" % (device_name(number), problem),)
            raise error
        self._process = _process
        self._destroy = lib.cua_context_destroy
        self._set_stream_of = lib.cua_context_set_stream
        self._number = number
        self._own_stream = stream is not None
        self._stream_object = stream
        self._handle = handle.value or 0
        self._thread = threading.get_ident()
        self._set_stream(first_stream)
        self._threads = 0
        if threads:
            self._threads = threads
            check(
                lib.cua_context_set_threads(self._handle, threads),
                "threads=%r" % threads,
            )

    def _set_stream(self, stream):
        self._stream = stream
        # 1 is CUDA's other handle of the legacy default stream
        if stream > 1:
            check(lib.cua_context_set_stream(self._handle, stream), "stream")

    def _follow(self, other, owner=None):
        """Takes the stream and the number of threads of another context of the device. Work in the
        former stream has finished then, so later calls follow it. `owner` keeps the stream alive.
        """
        if other._stream != self._stream:
            check(lib.cua_context_synchronize(self.handle), "synchronize")
            stream = other._stream if other._stream > 1 else None
            check(lib.cua_context_set_stream(self._handle, stream), "stream")
            self._stream = other._stream
            self._stream_object = other._stream_object or owner
        if other._threads != self._threads:
            check(lib.cua_context_set_threads(self.handle, other._threads), "threads")
            self._threads = other._threads

    @property
    def _alive(self):
        """Whether this process made the context."""
        return self._process == _process

    def _leave_stream(self):
        """Returns to the default stream, before objects of the context are destroyed."""
        # a stream of the caller may be gone; freeing memory waits for its work
        if self._handle and self._number != CPU and self._stream > 1:
            self._set_stream_of(self._handle, None)
            self._stream = 0

    def _end(self):
        """Destroys the context."""
        if self._handle and self._process == _process:
            self._leave_stream()
            handle, self._handle = self._handle, 0
            self._destroy(handle)

    def __del__(self):
        if not self._owned:
            self._end()

    @property
    def handle(self) -> int:
        """int: the address of the ``struct cua_context``, for other code that calls the library."""
        if self._process != _process:
            raise Error("this context belongs to the parent process")
        return self._handle

    @property
    def device(self) -> str:
        """str: ``"cpu"`` or ``"cuda:N"``."""
        return device_name(self._number)

    @property
    def threads(self) -> int:
        """int: the number of threads of the CPU."""
        return lib.cua_context_threads(self.handle)

    def synchronize(self) -> None:
        """Waits until all calls in the stream have finished."""
        self._check_thread()
        check(lib.cua_context_synchronize(self.handle), "synchronize")

    def reserve(self, size: int) -> None:
        """Enlarges the workspace to at least `size` bytes, so that later calls need not."""
        self._check_thread()
        check(lib.cua_context_reserve(self.handle, _unsigned(size)), "reserve")

    def _check_thread(self):
        if self._thread != threading.get_ident() and not self._owned:
            raise Error("this context belongs to the thread that made it")

    def _here(self):
        """This context, or in another thread or process one with the same settings."""
        if self._thread == threading.get_ident() and self._process == _process:
            return self
        twins = _local.__dict__.setdefault("twins", weakref.WeakKeyDictionary())
        if self not in twins:
            twins[self] = Context(self.device, stream=self._stream_object, threads=self._threads)
        return twins[self]

    def __reduce_ex__(self, protocol):
        raise TypeError("a Context cannot be copied or pickled")

    def __enter__(self) -> Context:
        _stack().append(self)
        _local.resolved = {}
        return self

    def __exit__(self, *_: object) -> None:
        stack = _stack()
        for i in reversed(range(len(stack))):
            if stack[i] is self:
                del stack[i]
                break
        _local.resolved = {}

    def __repr__(self):
        stream = ", stream=0x%x" % self._stream if self._own_stream else ""
        return "Context(%r%s)" % (self.device, stream)


def _unsigned(number, bits=64):
    value = operator.index(number)
    if not 0 <= value < 1 << bits:
        raise ValueError("%d is outside 0 to 2**%d - 1" % (value, bits))
    return value


def _stack():
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def context_for(number, stream):
    """The context of a call on device `number` whose arrays' library uses `stream`."""
    try:
        return _local.resolved[number, stream]
    except (AttributeError, KeyError):
        context = _local.__dict__.setdefault("resolved", {})[number, stream] = _find(number, stream)
        return context


def _find(number, stream):
    for context in reversed(_stack()):
        if context._number == number and (number == CPU or context._own_stream):
            return context._here()
    return thread_context(number, stream)


def thread_context(number, stream):
    """The context of this thread for a device and a stream, whatever block it is in."""
    contexts = _local.__dict__.setdefault("contexts", {})
    if (number, stream) not in contexts:
        if len(contexts) >= _MOST_CONTEXTS:
            del contexts[next(iter(contexts))]
            _local.resolved = {}
        context = Context(device_name(number))
        context._set_stream(stream)
        contexts[number, stream] = context
    return contexts[number, stream]


def free_workspaces() -> None:
    """Frees the workspaces of the calling thread.

    Each device and stream has a workspace, which grows to the size that calls need and is kept for
    later calls. The function waits for the calls that use them. Contexts and maps of the caller
    keep theirs.
    """
    _local.resolved = {}
    _local.contexts = {}
