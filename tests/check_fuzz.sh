#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The fuzz targets of tests/fuzz. Each runs with the plain driver. If configure found clang with
# libFuzzer, each also runs for CUA_FUZZ_SECONDS, CUA_DEEP_SECONDS or 60 seconds.
# tests/fuzz/driver.c reads CUA_TEST_SEED and CUA_FUZZ_RUNS. CUA_FUZZ_TARGETS selects targets.
set -euo pipefail
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}"
: "${CUA_FUZZ_SECONDS:=${CUA_DEEP_SECONDS:-60}}" "${MAKE:=make}"
top_srcdir=$(cd "$top_srcdir" && pwd)
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# the targets write repeatedly, so their files are kept in memory
mkdir "$work/tmp"
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
  rmdir "$work/tmp"
  shm=$(mktemp -d /dev/shm/cuatomic-fuzz.XXXXXX)
  trap 'rm -rf "$work" "$shm"' EXIT
  ln -s "$shm" "$work/tmp"
fi
export TMPDIR=$work/tmp
export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS-}"

# jobs of the make that runs this script are not known here
MAKEFLAGS='' "$MAKE" --no-print-directory -j"${CUA_FUZZ_JOBS:-1}" fuzz-programs

failed=0
# keep TARGET: saves the input that ended a program, and prints it for readers of the log.
keep() {
  failed=1
  local f
  for f in fuzz-failed crash-* leak-* oom-* timeout-*; do
    [ -f "$f" ] || continue
    cp "$f" "$here/fuzz-failed-$1"
    echo "FAILED: $1; its input is in $here/fuzz-failed-$1:"
    od -A d -t x1 "$f" | head -n 64
    rm -f "$f"
  done
}

cd "$work"
ran=0
for target in ${CUA_FUZZ_TARGETS-load ops reads}; do
  [ -x "$here/fuzz/fuzz_$target" ] || continue
  ran=$((ran + 1))
  "$here/fuzz/fuzz_$target" "$top_srcdir/tests/fuzz/seeds/$target" || keep "$target"
  [ -x "$here/fuzz/libfuzzer_$target" ] || continue
  mkdir "found-$target"
  # longer inputs find no more: small inputs suffice
  "$here/fuzz/libfuzzer_$target" -max_total_time="$CUA_FUZZ_SECONDS" -max_len=1024 -timeout=600 \
    -seed="${CUA_TEST_SEED-1}" -print_final_stats=1 "found-$target" \
    "$top_srcdir/tests/fuzz/seeds/$target" >"$target.log" 2>&1 || {
    cat "$target.log"
    keep "$target"
  }
  grep -E 'stat::number_of_executed_units|INITED|DONE' "$target.log" | sed "s/^/$target: /" || :
done
[ "$ran" -gt 0 ] || { echo "no target was built" && exit 1; }
exit "$failed"
