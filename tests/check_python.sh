#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tests of the Python package, with the modules of the sources and the library of this build.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${PYTHON:?}" "${SANITIZER_FLAGS?}"

skip() {
  echo "skipped: $*"
  exit 77
}
library=$(cd "$top_builddir" && pwd)/lib/.libs/libcuatomic.so.0
python=$(cd "$top_srcdir" && pwd)/python
[ "$PYTHON" != : ] || skip "no Python"
[ -z "$SANITIZER_FLAGS" ] || skip "Python cannot load a library with a sanitizer"
[ -f "$library" ] || skip "no shared library in this build"
"$PYTHON" -c 'import hypothesis, numpy, pytest' 2>/dev/null || skip "no pytest, hypothesis or numpy for $PYTHON"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
# the sources may be read-only
export PYTHONDONTWRITEBYTECODE=1
CUATOMIC_LIBRARY=$library PYTHONPATH=$python "$PYTHON" -m pytest -q -p no:cacheprovider "$python/tests"
