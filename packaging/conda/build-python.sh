#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Python module alone, which is the same for every machine.
set -euo pipefail

./configure --prefix="$PREFIX" --libdir="$PREFIX/lib" --without-cuda --without-mpi --without-libcuckoo --without-tbb \
  --without-jansson --enable-python PYTHON="$PYTHON" am_cv_python_pythondir="$SP_DIR"
make -C python install
