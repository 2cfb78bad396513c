#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang compiles the headers and kernels as CUDA without a warning, both passes. It needs a clang that knows the CUDA
# headers of this machine.
#   CUA_CLANG          the compiler [clang, or clang-N]
#   CUA_CLANG_CUDA     the folder of CUDA [$CUDA_HOME, $CUDA_PATH, /usr/local/cuda]
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
count=0

# compiles CLANG CUDA FILE OPTION...: silently, or leaves the reason in the log. Another CUDA may be in /usr/local.
compiles() {
  local clang=$1 cuda=$2 file=$3
  shift 3
  "$clang" -x cuda --cuda-path="$cuda" -isystem "$cuda/include" -std=c++17 -nocudalib -O1 -Wall -Wextra \
    -Wno-unknown-cuda-version -I"$top_srcdir/include" -I"$top_builddir/include" "$@" -S -o "$tmp/out" "$file" \
    >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ]
}

# Sets clang and cuda to the first pair that compiles a kernel with an instruction of sm_70.
find_pair() {
  local known
  known=$(echo clang clang-{22..14})
  for clang in ${CUA_CLANG:-$known}; do
    command -v "$clang" >/dev/null || continue
    for cuda in ${CUA_CLANG_CUDA:-${CUDA_HOME-} ${CUDA_PATH-} /usr/local/cuda}; do
      ! compiles "$clang" "$cuda" "$tmp/probe.cu" --cuda-gpu-arch=sm_70 --cuda-device-only || return 0
    done
  done
  return 1
}

printf '__global__ void probe(unsigned *mask) { __syncwarp(*mask); }\n' >"$tmp/probe.cu"
if ! find_pair; then
  echo "skipped: no clang that compiles for this CUDA"
  exit 77
fi
printf '#include <cuatomic.h>\n' >"$tmp/all.cu"
cp "$top_srcdir/tests/nvrtc_kernels.cu" "$tmp/kernels.cu"
for arch in 70 80 90; do
  compiles "$clang" "$cuda" "$tmp/probe.cu" --cuda-gpu-arch=sm_$arch --cuda-device-only || continue
  for file in all kernels; do
    for option in --cuda-device-only --cuda-host-only '--cuda-device-only -DCUA_LOCK_DEBUG'; do
      count=$((count + 1))
      # shellcheck disable=SC2086
      compiles "$clang" "$cuda" "$tmp/$file.cu" --cuda-gpu-arch=sm_$arch $option && continue
      echo "FAILED: $file, sm_$arch, $option"
      cat "$tmp/log"
      failed=$((failed + 1))
    done
  done
done
echo "$("$clang" --version | head -n 1) with $cuda: $count compiled, $failed failed"
[ "$failed" = 0 ]
