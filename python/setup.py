# SPDX-License-Identifier: MIT
"""The platform tag of the wheel, computed from the library in it.

All other metadata is in pyproject.toml.
"""

import glob
import re
import subprocess

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
# The libraries that every manylinux machine has, as far as libcuatomic can need them.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread)|ld-linux-(x86-64|aarch64))\.so\.\d+")
OLDEST = 28


def platform_tag(library):
    """The oldest manylinux platform on which the library loads, from manylinux_2_28 on."""
    command = ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", library]
    elf = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    machine = MACHINES[re.search(r"Machine: +(.*)", elf).group(1)]
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", elf):
        if not SYSTEM.fullmatch(name):
            raise SystemExit("cuatomic: the library of a wheel must not need %s" % name)
    newest = OLDEST
    for version in re.findall(r"Name: (\S+) +Flags: \S+ +Version: ", elf):
        release = re.fullmatch(r"GLIBC_2\.(\d+)(\.\d+)?", version)
        if not release:
            raise SystemExit("cuatomic: the library of a wheel must not need %s" % version)
        newest = max(newest, int(release.group(1)))
    return "manylinux_2_%d_%s" % (newest, machine)


class WithLibrary(Distribution):
    """A distribution that is not of Python files alone."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """A wheel for each Python 3, as its library uses no interface of Python."""

    def get_tag(self):
        return "py3", "none", platform_tag(glob.glob("cuatomic/lib/libcuatomic.so.*")[0])


setup(distclass=WithLibrary, cmdclass={"bdist_wheel": Wheel})
