# SPDX-License-Identifier: MIT
"""The library that the package loads, its version, and its headers."""

import os
import re
import subprocess
import sys

import cuatomic


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", cuatomic.__version__)
    assert cuatomic.info().version == cuatomic.__version__


def test_info():
    info = cuatomic.info()
    assert (info.problem == "") == bool(info.devices)
    assert info.library


def test_wrong_library():
    for wrong in ("/nonexistent.so", os.__file__):
        done = run("import cuatomic", CUATOMIC_LIBRARY=wrong)
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1 and last.startswith("ImportError: cuatomic: "), done.stderr


def test_headers():
    try:
        folder = cuatomic.get_include()
    except FileNotFoundError as error:
        assert "cuatomic.h" in str(error)
    else:
        assert os.path.exists(os.path.join(folder, "cuatomic", "hashmap.h"))
