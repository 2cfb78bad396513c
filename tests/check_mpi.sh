#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Groups of 1 to 5 MPI processes on this machine: the results of a single context, also if messages are cut into pieces;
# errors that all ranks return; ranks that do not answer, and ranks that die.
#
# CUA_TEST_SEED   of the random calls
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${MPICC?}" "${MPIRUN?}" "${CC:?}" "${SANITIZER_FLAGS?}"

if [ ! -f "$top_builddir/mpi/libcuatomic-mpi.la" ]; then
  echo "skipped: configure found no MPI"
  exit 77
fi
if [ -z "$MPIRUN" ]; then
  echo "skipped: no command that starts MPI programs"
  exit 77
fi
if [ -n "$SANITIZER_FLAGS" ]; then
  echo "skipped: MPI itself is not clean under sanitizers"
  exit 77
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
passed=0
seed=${CUA_TEST_SEED:-$(date +%s)}
echo "CUA_TEST_SEED=$seed"

export OMPI_CC=$CC MPICH_CC=$CC TMPDIR=$tmp
# shellcheck source=tests/mpi_env.sh
. "$top_srcdir/tests/mpi_env.sh"

# build NAME SOURCE FLAG...: links with the libraries of the build folder
build() {
  local name=$1 source=$2
  shift 2
  # the compilers may hold options
  # shellcheck disable=SC2086
  $MPICC -std=gnu11 -O1 -Wall -Wextra -Werror -I"$top_srcdir/mpi" -I"$top_srcdir/include" -I"$top_builddir/include" \
    "$@" -c "$source" -o "$tmp/$name.o" &&
    "$top_builddir/libtool" --silent --tag=CC --mode=link $MPICC -no-install -o "$tmp/$name" "$tmp/$name.o" \
      "$top_builddir/mpi/libcuatomic-mpi.la" "$top_builddir/lib/libcuatomic.la"
}
if ! build ranks "$top_srcdir/tests/mpi_ranks.c"; then
  echo "FAILED: mpi_ranks.c does not compile"
  exit 1
fi
# the transport itself, with messages of 1000 bytes at most
printf '#define PIECE ((size_t)1000)\n#include "mpi_group.c"\n#include "mpi_ranks.c"\n' >"$tmp/pieces.c"
if ! build pieces "$tmp/pieces.c" -I"$top_srcdir/tests"; then
  echo "FAILED: mpi_group.c does not compile in pieces"
  exit 1
fi
# messages of host memory by the function for memory of a GPU
printf '#define TAKES_DEVICE 1\n#define EXCHANGE exchange_device\n#include "mpi_group.c"\n#include "mpi_ranks.c"\n' \
  >"$tmp/device.c"
if ! build device "$tmp/device.c" -I"$top_srcdir/tests" -Wno-unused-function; then
  echo "FAILED: mpi_group.c does not compile for memory of a GPU"
  exit 1
fi

# run N PROGRAM ARGUMENT...
run() {
  local n=$1
  shift
  # shellcheck disable=SC2086
  timeout 200 $MPIRUN -n "$n" "$@" >"$tmp/log" 2>&1 </dev/null
}
# expect N PROGRAM ARGUMENT...: all processes end well
expect() {
  if run "$@"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $*"
    cat "$tmp/log"
    failed=$((failed + 1))
  fi
}
cd "$tmp" || exit 1
if ! run 1 ./ranks errors; then
  if grep -iE 'not enough slots|unable to|not found|no permission' "$tmp/log" >/dev/null; then
    echo "skipped: $MPIRUN does not start a process here: $(grep -m 1 . "$tmp/log")"
    exit 77
  fi
fi
for n in 1 2 3 4 5; do
  expect $n ./ranks results "$seed"
  expect $n ./ranks errors
done
expect 4 ./pieces results "$seed"
expect 3 ./device results "$seed"
expect 3 ./ranks away

# Open MPI goes on without a rank that died, if it is told to.
if $MPIRUN --version 2>&1 | grep 'Open MPI' >/dev/null; then
  run 3 --enable-recovery ./ranks dead
  for rank in 0 1; do
    if grep -x "rank $rank goes on" "$tmp/log" >/dev/null; then
      passed=$((passed + 1))
    else
      echo "FAILED: rank $rank after the death of another"
      cat "$tmp/log"
      failed=$((failed + 1))
    fi
  done
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
