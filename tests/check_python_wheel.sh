#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make python-wheel`. The wheel has all modules and all headers, its tag is true for its library, and a second build
# has the same bits. pip installs it into an empty venv without a network. There the package loads the library of the wheel,
# without numpy and without CUDA. The tests of the package pass. WHEEL_LD is as for make (HACKING.md, "Python wheel").
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${PYTHON:?}" "${SANITIZER_FLAGS?}" "${CUDART_LIBS?}" "${CC:?}" "${MAKE:?}"

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*"
  exit 1
}
builddir=$(cd "$top_builddir" && pwd)
srcdir=$(cd "$top_srcdir" && pwd)
[ "$PYTHON" != : ] || skip "no Python"
[ -z "$SANITIZER_FLAGS" ] || skip "Python cannot load a library with a sanitizer"
[ -f "$builddir/lib/.libs/libcuatomic.so.0" ] || skip "no shared library in this build"
"$PYTHON" - 2>/dev/null <<'END' || skip "no setuptools, wheel or venv for $PYTHON"
import ensurepip, setuptools, venv
try:
    import setuptools.command.bdist_wheel
except ImportError:
    import wheel.bdist_wheel
END

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PYTHONPATH
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$builddir/include/cuatomic/version.h")

# build DIR: the wheel in $tmp/DIR
build() { $MAKE -C "$builddir" python-wheel WHEEL_DIR="$tmp/$1" WHEEL_LD="${WHEEL_LD-}" >"$tmp/log" 2>&1; }

case $CUDART_LIBS in
'' | *-lcudart_static*) ;;
*)
  ! build shared || fail "a wheel whose library needs libcudart.so"
  grep 'must not need libcudart' "$tmp/log" || fail "$(tail -n 5 "$tmp/log")"
  exit 0
  ;;
esac

build first || fail "make python-wheel: $(tail -n 20 "$tmp/log")"
wheel=$(echo "$tmp"/first/*.whl)
name=${wheel##*/}
# times in a wheel are even seconds
sleep 2
(umask 077 && TZ=Asia/Tokyo build second) || fail "make python-wheel, again: $(tail -n 20 "$tmp/log")"
cmp "$wheel" "$tmp/second/$name" || fail "two wheels of a build differ"

echo "== the files of $name"
mkdir "$tmp/unpacked"
"$PYTHON" -m zipfile -e "$wheel" "$tmp/unpacked"
info=cuatomic-$version.dist-info
{
  (cd "$srcdir/python" && ls cuatomic/*.py cuatomic/*.cu)
  (cd "$srcdir/include" && find . -name '*.h' | sed 's:^\./:cuatomic/include/:')
  printf '%s\n' cuatomic/include/cuatomic/version.h cuatomic/lib/libcuatomic.so.0 cuatomic/py.typed \
    "$info/LICENSE" "$info/METADATA" "$info/RECORD" "$info/WHEEL" "$info/top_level.txt"
} | sort -u >"$tmp/expected"
# newer versions of setuptools have a folder of licenses
(cd "$tmp/unpacked" && find . -type f | sed 's:^\./::; s:dist-info/licenses/:dist-info/:') | sort >"$tmp/found"
diff "$tmp/expected" "$tmp/found" || fail "< missing in the wheel; > unexpected there"
diff -r -x version.h "$srcdir/include" "$tmp/unpacked/cuatomic/include" | grep -v '\.in$\|: Makefile' &&
  fail "the headers of the wheel are not those of the sources"

echo "== its tag"
library=$tmp/unpacked/cuatomic/lib/libcuatomic.so.0
# true_tag NAME LIBRARY: the library needs no version of the C library above that of the tag
true_tag() {
  local tag needed
  tag=$(sed -n 's/.*-py3-none-manylinux_\(2_[0-9]*\)_[a-z0-9_]*\.whl$/\1/p' <<<"$1" | tr _ .)
  needed=$(readelf -VW "$2" | sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -V | tail -n 1)
  echo "manylinux $tag, needs $needed"
  [ -n "$tag" ] && [ -n "$needed" ] && [ "$(printf '%s\n' "$tag" "$needed" | sort -V | tail -n 1)" = "$tag" ]
}
true_tag "$name" "$library" || fail "the tag of $name is false"
! true_tag "cuatomic-$version-py3-none-manylinux_2_5_x86_64.whl" "$library" || fail "this check takes a false tag"
grep -qx "Tag: ${name#"cuatomic-$version-"}" <<<"$(sed 's/^Tag: .*/&.whl/' "$tmp/unpacked/$info/WHEEL")" ||
  fail "the file WHEEL has another tag"
grep -qx 'Root-Is-Purelib: false' "$tmp/unpacked/$info/WHEEL" || fail "the wheel says that it has only Python files"
if auditwheel --version >/dev/null 2>&1; then
  # below manylinux_2_17 there are names of years; the oldest tag of a wheel is manylinux_2_28
  auditwheel show "$wheel" | tr '\n' ' ' >"$tmp/audit"
  audited=$(grep -oE 'platform tag: "manylinux_2_[0-9]+' "$tmp/audit" | head -n 1 | grep -oE '[0-9]+$') ||
    fail "auditwheel: $(cat "$tmp/audit")"
  tag=$(sed -n 's/.*manylinux_2_\([0-9]*\)_.*/\1/p' <<<"$name")
  echo "auditwheel: manylinux_2_$audited"
  [ "$audited" -le "$tag" ] || fail "the tag is below that of auditwheel"
fi
if readelf -SW "$library" | grep -E ' \.(symtab|debug_info)'; then
  fail "the library is not stripped"
fi

echo "== its library"
# a folder as of a build, for the tests of a library
form=$tmp/form
mkdir -p "$form/lib/.libs" "$form/include/cuatomic"
cp "$library" "$form/lib/.libs/libcuatomic.so.0"
ln -s libcuatomic.so.0 "$form/lib/.libs/libcuatomic.so"
cp "$builddir/include/cuatomic/version.h" "$form/include/cuatomic/"
top_builddir=$form "$BASH" "$srcdir/tests/check_symbols.sh" || fail "the symbols of the wheel's library"
readelf -lW "$library" | grep GNU_RELRO >/dev/null || fail "the library is linked without -z relro"
# WHEEL_LD must link constructors and the static pthread_atfork, otherwise a fork after dlclose crashes
if [ -x check_unload ]; then
  rc=0
  top_builddir=$form ./check_unload || rc=$?
  # the CUDA runtime stays loaded, so check_unload skips its tests
  [ $rc = 0 ] || [ $rc = 77 ] || fail "the library does not unload"
fi

echo "== a venv"
"$PYTHON" -m venv "$tmp/venv"
"$tmp/venv/bin/pip" --isolated --disable-pip-version-check install -q --no-index "$wheel"
clean=(env -i PATH=/usr/bin:/bin HOME="$tmp" PYTHONDONTWRITEBYTECODE=1)
cd "$tmp"
"${clean[@]}" "$tmp/venv/bin/python" - "$version" <<'END'
import ctypes
import importlib.metadata
import importlib.util
import os
import sys

assert importlib.util.find_spec("numpy") is None, "numpy is in the venv"
import cuatomic

folder = os.path.dirname(cuatomic.__file__)
assert folder.startswith(os.path.realpath(sys.prefix)) or folder.startswith(sys.prefix), folder
with open("/proc/self/maps") as maps:
    mapped = {line.split(maxsplit=5)[5].strip() for line in maps if "libcuatomic" in line}
inside = os.path.join(folder, "lib", "libcuatomic.so.0")
assert {os.path.realpath(name) for name in mapped} == {os.path.realpath(inside)}, mapped
library = ctypes.CDLL(inside)
library.cua_version.restype = ctypes.c_char_p
assert library.cua_version().decode() == sys.argv[1], "the version of the library"
assert importlib.metadata.version("cuatomic") == sys.argv[1], "the version of the package"
assert cuatomic.get_include() == os.path.join(folder, "include"), cuatomic.get_include()
END
include=$("${clean[@]}" "$tmp/venv/bin/python" -c 'import cuatomic; print(cuatomic.get_include())')
$CC -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -I"$include" -x c - <<<'#include <cuatomic.h>'
least=$(for _ in 1 2 3 4 5; do
  "${clean[@]}" "$tmp/venv/bin/python" -c '
import time
start = time.perf_counter()
import cuatomic
print("%.1f" % ((time.perf_counter() - start) * 1e3))'
done | sort -n | head -n 1)
echo "import cuatomic: $least ms"
[ "${least%.*}" -lt 1000 ] || fail "the import takes more than a second"

if "$PYTHON" -c 'import hypothesis, numpy, pytest' 2>/dev/null; then
  echo "== the tests of the package"
  site=$("$tmp/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  # check_python.sh runs the usual sizes; cuatomic is imported before pytest adds folders of the sources to the path
  CUA_TEST_QUICK=1 PYTHONPATH=$site "$PYTHON" - "$site" "$srcdir/python/tests" <<'END'
import sys
import cuatomic
import pytest

assert cuatomic.__file__.startswith(sys.argv[1]), cuatomic.__file__
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2]]))
END
fi
