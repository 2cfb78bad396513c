#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The suites of the CUDA backend on a model of four GPUs (cuda_model/cuda_model.h), without CUDA and without a GPU.
# Then each of seven orders between streams is removed, and the tests of builds in parts must fail. `make check-deep`
# removes all of them in turn, another run a single order by the seed.
#
# The script compiles the CUDA backend as C++. This takes minutes, so it is part of `make check-deep`, but not of its
# quick form. CUA_TEST_MODEL=1 runs it always.
set -u

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${CXX?}" "${MAKE:?}" "${PKG_CONFIG?}" "${SANITIZER_FLAGS?}" \
  "${CUDA_SUITES?}"

if [ "${CUA_TEST_MODEL:-0}" = 0 ] && { [ "${CUA_TEST_DEEP:-0}" = 0 ] || [ "${CUA_TEST_QUICK:-0}" != 0 ]; }; then
  echo "skipped: CUA_TEST_MODEL is not set"
  exit 77
fi
if [ -n "$SANITIZER_FLAGS" ]; then
  echo "skipped: the sanitizers do not follow coroutines"
  exit 77
fi
if [ -z "$CXX" ] || ! echo 'int main() { if constexpr (true) return 0; }' | $CXX -std=c++17 -x c++ -o /dev/null - 2>/dev/null; then
  echo "skipped: there is no C++17 compiler"
  exit 77
fi
if ! flags=$("${PKG_CONFIG:-pkg-config}" --cflags --libs check); then
  echo "skipped: pkg-config does not know the check library"
  exit 77
fi
# check_sharded_parts has all tests of check_sharded_map. The model has no NVRTC and no NCCL.
suites=
for suite in ${CUDA_SUITES//_cuda/}; do
  case $suite in
  check_sharded_map | check_nvrtc | check_group_nccl) ;;
  # the longest suites start first
  check_sharded_parts | check_hashmap | check_hashmap_build) suites="$suite $suites" ;;
  *) suites+=" $suite" ;;
  esac
done
export LC_ALL=C
source=$(cd "$top_srcdir" && pwd)
build=$(cd "$top_builddir" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# The folder of the model is first, for its config.h and cuda_runtime_api.h.
cat >"$tmp/Makefile" <<EOF
includes = -I$source/tests/cuda_model -I$build -I$source/include -I$build/include -I$source/lib -I$source/tests
options = -w -ffp-contract=off \$(includes)
sources = \$(wildcard $source/lib/*.c $source/lib/*/*.c)
cuda = \$(notdir \$(patsubst %.cu,%.o,\$(wildcard $source/cuda/*.cu)))
host = \$(notdir \$(sources:.c=.o))
library = \$(cuda) \$(host) common.o hashmap_pairs.o hashmap_words.o thread_transport.o
programs = check_sharded_map $suites
vpath %.c \$(sort \$(dir \$(sources))) $source/tests
vpath %.cu $source/cuda

all: \$(programs)
check_sharded_parts: library := \$(filter-out sharded_direct.o,\$(library))
\$(programs): %: %.o \$(library) libcuda.so.1
	\$(CXX) -o \$@ \$< \$(library) -Wl,--no-as-needed ./libcuda.so.1 -Wl,--as-needed -Wl,--disable-new-dtags,-rpath,$tmp $flags -lpthread -lm -ldl
\$(programs:=.o): %.o: %.c
	\$(CC) -std=gnu11 -O2 \$(options) -DTEST_CUDA=1 -DTEST_MODEL=1 -c -o \$@ \$<
\$(cuda): %.o: %.cu
	\$(CXX) -std=c++17 -O1 -fno-strict-aliasing \$(options) -I$source/cuda \\
	  -DCUA_PORT_HEADER='"cuda_model/port_model.h"' -include cuda_model/cuda_model.h \\
	  -include cuda_model/small_limits.h -x c++ -c -o \$@ \$<
# the library asks a loaded driver for addresses
libcuda.so.1: $source/tests/cuda_model/cuda_model.cc
	\$(CXX) -std=c++17 -O2 \$(options) -fPIC -shared -Wl,-soname,\$@ -o \$@ \$<
%.o: %.c
	\$(CC) -std=gnu11 -O2 \$(options) -c -o \$@ \$<
EOF

# These programs have their own make.
unset MAKEFLAGS MFLAGS MAKELEVEL
make_programs() {
  "$MAKE" -s -C "$tmp" -j"$(nproc)" CC="$CC" CXX="$CXX" "$@" >"$tmp/log" 2>&1 || {
    cat "$tmp/log"
    exit 1
  }
}

# run SUITE: small sizes; for suites that are slow at small sizes, the sizes of instrumented runs
run() {
  local tool=
  case $1 in check_fixed | check_group | check_group_by | check_segment) tool=model ;; esac
  CUA_REQUIRE_GPU=1 CUA_TEST_QUICK=1 CUA_TEST_TOOL=$tool "$tmp/$1"
}
# suite SUITE: suites run at the same time, and their outputs are not mixed
suite() {
  local rc=0
  run "$1" >"$tmp/$1.log" 2>&1 || rc=$?
  {
    flock 9
    echo "$1 on a model of GPUs: exit status $rc after $SECONDS s"
    grep -v CUA_TEST_SEED= "$tmp/$1.log"
  } 9>"$tmp/lock"
  return $rc
}
export -f run suite
export tmp

# the seed of the suites and of the model's orders
export CUA_TEST_SEED=${CUA_TEST_SEED:-$(date +%s)}
echo "CUA_TEST_SEED=$CUA_TEST_SEED"
make_programs all
# shellcheck disable=SC2086 # a word for each suite
printf '%s\n' $suites | xargs -P "$(nproc)" -I{} bash -c 'suite {}' || failed=1

# parts SEED: builds in parts, for an edited sharded_direct.c
parts() {
  CK_FORK=no CK_RUN_CASE=parts CUA_TEST_SEED=$1 run check_sharded_map >"$tmp/log" 2>&1
}
for seed in 1 2 3 4; do
  parts $seed || {
    cat "$tmp/log"
    failed=1
  }
done

# planted ERROR SED: an edit of sharded_direct.c, found by some of 40 seeds
number=0
planted() {
  local seed
  number=$((number + 1))
  [ "${CUA_TEST_DEEP:-0}" != 0 ] || [ $((CUA_TEST_SEED % 7 + 1)) = $number ] || return 0
  sed "$2" "$source/lib/group/sharded_direct.c" >"$tmp/sharded_direct.c"
  if cmp -s "$source/lib/group/sharded_direct.c" "$tmp/sharded_direct.c"; then
    echo "FAIL: $1: there is nothing to edit"
    failed=1
    return
  fi
  rm -f "$tmp/sharded_direct.o" "$tmp/check_sharded_map"
  make_programs check_sharded_map
  for ((seed = 1; seed <= 40; seed++)); do
    if ! parts "$seed"; then
      echo "found: $1: seed $seed"
      return
    fi
  done
  echo "FAIL: $1: not found"
  failed=1
}
planted 'owners that do not wait for the keys of a find' \
  '/^static enum cua_status find_part/,/^}/{0,/status = order(g, g);/s/order(g, g)/CUA_OK/;}'
planted 'ranks that do not wait for the answers of a find' \
  '/find_regions(g->contexts/,/^}/s/order(g, g)/CUA_OK/'
planted 'copies that do not wait for the scatters' 's/status = order(g, side);/status = CUA_OK;/'
planted 'copies of a second part that do not wait for its scatters' 's/order(m->group, m->side)/CUA_OK/'
planted 'tables that do not wait for the copies of unit 0' \
  '/direct_scatter_own/,/direct_pull/s/follow(side, g)/CUA_OK/'
planted 'tables that do not wait for later copies' \
  '/unit + 1 < d->units/,/direct_pull/s/follow(side, g)/CUA_OK/'
planted 'copies that do not wait for room' 's/follow(m->group, m->side)/CUA_OK/'
exit $failed
