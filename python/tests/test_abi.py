# SPDX-License-Identifier: MIT
"""_abi.py against the headers: as text, and as a C compiler sees them.

The headers are in the folder that CUATOMIC_HEADERS names, or beside the package in the source tree.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuatomic import _abi
from cuatomic._library import _TYPES, lib

PYTHON = Path(__file__).resolve().parent.parent
HEADERS = Path(os.environ.get("CUATOMIC_HEADERS") or PYTHON.parent / "include")
STRUCTS = [
    value
    for value in vars(_abi).values()
    if isinstance(value, type) and value is not ctypes.Structure and hasattr(value, "_fields_")
]
ENUMERATORS = {name: value for name, value in vars(_abi).items() if name.startswith("CUA_")}

needs_headers = pytest.mark.skipif(
    not (HEADERS / "cuatomic").is_dir(), reason="no headers in %s" % HEADERS
)


@needs_headers
@pytest.mark.skipif(not (PYTHON / "abi.py").exists(), reason="no abi.py")
def test_abi_is_that_of_the_headers():
    made = subprocess.run(
        [sys.executable, str(PYTHON / "abi.py"), str(HEADERS)], capture_output=True, check=True
    )
    assert made.stdout == Path(_abi.__file__).read_bytes()


def test_there_is_much():
    assert len(STRUCTS) > 25 and len(ENUMERATORS) > 100 and len(_abi.PROTOTYPES) > 100


def test_the_library_has_all_functions():
    missing = [name for name in _abi.PROTOTYPES if not hasattr(lib, name)]
    assert not missing


def test_prototypes_have_types():
    for name, prototype in _abi.PROTOTYPES.items():
        assert set(prototype) <= set(_TYPES) and "-" not in prototype[1:], name


def _program():
    """A C program that prints each size, offset and enumerator as Python sees it."""
    lines = [
        "#include <stddef.h>",
        "#include <stdio.h>",
        "#include <cuatomic.h>",
        "int main(void)",
        "{",
    ]
    for struct in STRUCTS:
        name = struct.__name__
        lines.append('\tprintf("%s %%zu\\n", sizeof(struct %s));' % (name, name))
        for field, *_ in struct._fields_:
            place = "offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s)" % (
                name,
                field,
                name,
                field,
            )
            lines.append('\tprintf("%s.%s %%zu %%zu\\n", %s);' % (name, field, place))
    for name in ENUMERATORS:
        lines.append('\tprintf("%s %%lld\\n", (long long)%s);' % (name, name))
    return "\n".join(lines + ["\treturn 0;", "}", ""])


def _expected():
    lines = []
    for struct in STRUCTS:
        name = struct.__name__
        lines.append("%s %d" % (name, ctypes.sizeof(struct)))
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            lines.append("%s.%s %d %d" % (name, field, place.offset, place.size))
    return lines + ["%s %d" % pair for pair in ENUMERATORS.items()]


def _headers_of_compiler(tmp_path):
    """The folders of the headers; cuatomic/version.h is made by configure."""
    folders = [HEADERS]
    if not (HEADERS / "cuatomic" / "version.h").exists():
        text = (HEADERS / "cuatomic" / "version.h.in").read_text(encoding="utf-8")
        made = tmp_path / "cuatomic"
        made.mkdir()
        for word in set(text.split("@")[1::2]):
            text = text.replace("@%s@" % word, "0")
        (made / "version.h").write_text(text, encoding="utf-8")
        folders.append(tmp_path)
    return ["-I%s" % folder for folder in folders]


@needs_headers
def test_layouts_are_those_of_a_compiler(tmp_path):
    compiler = os.environ.get("CC", "cc").split()
    if not shutil.which(compiler[0]):
        pytest.skip("no C compiler")
    source, program = tmp_path / "abi.c", tmp_path / "abi"
    source.write_text(_program(), encoding="utf-8")
    command = compiler + _headers_of_compiler(tmp_path) + [str(source), "-o", str(program), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert not built.returncode, built.stderr[-2000:]
    output = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert output.stdout.splitlines() == _expected()
