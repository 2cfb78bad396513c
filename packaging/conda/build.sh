#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library, the command and their documents, for the outputs of recipe.yaml.
set -euo pipefail

options=(--prefix="$PREFIX" --libdir="$PREFIX/lib" --without-mpi --without-libcuckoo --without-tbb --with-jansson)
if [ "${cuda_compiler_version:-None}" = None ]; then
  options+=(--without-cuda)
else
  options+=(--with-cuda --with-cuda-arch=all-major --with-cudart=shared)
fi
if [ "${CONDA_BUILD_CROSS_COMPILATION:-0}" = 1 ]; then
  options+=(--host="$HOST" --build="$BUILD")
fi
./configure "${options[@]}" || {
  cat config.log
  exit 1
}
make -j"${CPU_COUNT:-1}"
if [ "${CONDA_BUILD_CROSS_COMPILATION:-0}" != 1 ]; then
  CUA_TEST_QUICK=1 make -j"${CPU_COUNT:-1}" check || {
    cat tests/test-suite.log
    exit 1
  }
fi
make install
rm -f "$PREFIX"/lib/libcuatomic*.la
