#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The recipes for rpm, Spack and conda-forge, and the samples for CI systems, agree with the tree: version, licence,
# dependencies, options of configure, and commands. recipes.py has the comparisons.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${PYTHON:?}"

if [ "$PYTHON" = : ] || ! "$PYTHON" -c 'import yaml' 2>/dev/null; then
  echo "skipped: no Python with the module yaml"
  exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "$top_srcdir"
./configure --help >/dev/null
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$here/recipes.py"
