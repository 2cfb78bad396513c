# SPDX-License-Identifier: MIT
"""The programs in README.md and doc/python.md, and the examples, run; results are as described."""

import copy
import importlib
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import cuatomic

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "doc" / "python.md"
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))


def blocks():
    found = []
    for path in (ROOT / "README.md", DOC):
        if path.exists():
            found += re.findall(
                r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S
            )
    return found


PRINTED = re.compile(r"^print\(.*\) +# (.*)$")


def spaces(text):
    """A text whose numbers have single spaces between them."""
    return re.sub(r"\s+(?=[\])])|(?<=[\[(])\s+", "", " ".join(text.split()))


class Printer:
    """A print function that compares results with the comment after its call."""

    def __init__(self, block):
        self.lines = block.split("\n")
        self.compared = 0

    def __call__(self, *values):
        line = self.lines[sys._getframe(1).f_lineno - 1]
        comment = PRINTED.match(line)
        if comment:
            assert spaces(" ".join(map(str, values))) == spaces(comment[1]), line
            self.compared += 1


def test_printer():
    """Results that differ from the comment are an error."""
    printer = Printer('print("[3 7]", 2.50)  # [3 7] 2.5\nprint(1)     # 2\n')
    program = compile("\n".join(printer.lines), "block", "exec")
    with pytest.raises(AssertionError, match="# 2"):
        exec(program, {"print": printer})
    assert printer.compared == 1
    assert sum(bool(PRINTED.match(line)) for block in blocks() for line in block.split("\n")) >= 3


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.split("\n")[0])
def test_block(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "numba" in block:
        if not cuatomic.info().devices:
            pytest.skip("no GPU")
        try:
            importlib.import_module("cuatomic.numba")
        except ImportError as error:
            pytest.skip(str(error))
    if "cupy" in block and not cuatomic.info().devices:
        # the first program also runs with numpy
        if "RawModule" in block:
            pytest.skip("no GPU")
        block = block.replace("cupy", "numpy").replace("cuda:0", "cpu").replace("_000)", "_0)")
    names = {"cuatomic": cuatomic, "x": numpy.arange(10.0)}
    if "device_x" in block:
        if cuatomic.info().devices:
            cupy = pytest.importorskip("cupy")
            names.update(device_x=cupy.arange(10.0), stream=cupy.cuda.Stream())
        else:
            block = block[: block.index('with cuatomic.Context("cuda:0"')]
    printer = names["print"] = Printer(block)
    exec(compile(block, str(DOC), "exec"), names)
    assert printer.compared == sum(map(bool, map(PRINTED.match, printer.lines)))
    if "total" in names:
        assert float(names["total"]) == 45
    if "count" in names:
        assert names["table"][7] == 100
    if "counter" in names:
        assert int(names["counter"][0]) == 64 * 256


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path):
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert done.returncode in (0, 77), done.stdout + done.stderr
    if done.returncode == 77:
        pytest.skip(done.stdout.strip() or done.stderr.strip())


def test_every_function_is_described():
    """Public names have a docstring, and doc/python.md names the functions."""
    if not DOC.exists():
        pytest.skip("no doc/python.md")
    text = DOC.read_text(encoding="utf-8")
    for name in cuatomic.__all__:
        thing = getattr(cuatomic, name)
        assert thing.__doc__ and thing.__doc__.strip(), name
        # a function's docstring describes its named tuple
        assert hasattr(thing, "_fields") or re.search(r"\b%s\b" % name, text), (
            "doc/python.md does not name %s" % name
        )


def classes(base):
    """Subclasses of a class in all modules of the package."""
    found = set()
    for module in pkgutil.iter_modules(cuatomic.__path__):
        # Numba may be missing
        if module.name != "numba":
            names = vars(importlib.import_module("cuatomic." + module.name))
            found |= {c for c in names.values() if isinstance(c, type) and issubclass(c, base)}
    return sorted((c for c in found if c.__module__.startswith("cuatomic")), key=str)


@pytest.mark.parametrize("cls", [c for c in classes(tuple) if hasattr(c, "_fields")])
def test_result_is_picklable(cls):
    made = cls(*range(len(cls._fields)))
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert type(again) is cls and again == made


@pytest.mark.parametrize("cls", classes(cuatomic.Error))
def test_error_is_picklable(cls):
    made = cls("a text")
    made.status, made.note = "CUA_ERROR_FULL", [1]
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert type(again) is cls and str(again) == "a text"
        assert vars(again) == vars(made)


def test_file_error_is_picklable(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        cuatomic.HashMap.load(tmp_path / "none")
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    for name in ("errno", "strerror", "filename", "status"):
        assert getattr(again, name) == getattr(error, name), name
    assert again.errno and again.filename
