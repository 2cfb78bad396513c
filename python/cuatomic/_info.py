# SPDX-License-Identifier: MIT
"""What the library is and which devices it can use."""

import ctypes
import os
from typing import List, NamedTuple

from . import _abi
from ._context import device_count
from ._errors import check
from ._library import lib


class Device(NamedTuple):
    """A CUDA device."""

    number: int
    name: str
    compute_capability: str
    multiprocessors: int
    memory: int
    driver: str


class Info(NamedTuple):
    """What `info` returns."""

    version: str
    library: str
    """The path or the name of the loaded library."""
    architectures: str
    """The GPU architectures built in; "" for a library without CUDA."""
    devices: List[Device]
    """The CUDA devices that it can use."""
    problem: str
    """Why there is no CUDA device; "" if there is one."""


def info() -> Info:
    """The version, the loaded library and the devices.

    Returns
    -------
    Info
        A named tuple (version, library, architectures, devices, problem).
    """
    devices = []
    for number in range(device_count()):
        found = _abi.cua_device_info()
        found.struct_size = ctypes.sizeof(found)
        check(
            lib.cua_device_query(_abi.CUA_BACKEND_CUDA, number, ctypes.byref(found)),
            "cuda:%d" % number,
        )
        devices.append(
            Device(
                number,
                found.name.decode(),
                "%d.%d" % (found.compute_major, found.compute_minor),
                found.processors,
                found.memory_bytes,
                found.driver.decode(),
            )
        )
    return Info(
        lib.cua_version().decode(),
        lib.path,
        lib.cua_cuda_architectures().decode(),
        devices,
        "" if devices else lib.cua_device_problem(_abi.CUA_BACKEND_CUDA, 0).decode(),
    )


def get_include() -> str:
    """The folder of the headers ``cuatomic.h`` and ``cuatomic/``, for a compiler or NVRTC.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        The headers are not installed, for example without the distribution's package
        libcuatomic-dev.
    """
    folders = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")]
    try:
        from ._config import INCLUDE_DIR

        folders.append(INCLUDE_DIR)
    except ImportError:
        pass
    folders += [os.environ.get("CUATOMIC_INCLUDE", ""), "/usr/include", "/usr/local/include"]
    for folder in folders:
        if folder and os.path.exists(os.path.join(folder, "cuatomic.h")):
            return folder
    raise FileNotFoundError("cuatomic.h is in none of: " + ", ".join(filter(None, folders)))
