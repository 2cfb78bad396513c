#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The ABI is compatible with the baseline in tests/abi, by abidiff of libabigail: the functions of libcuatomic and
# libcuatomic-mpi with the types that they reach (libcuatomic.abi, libcuatomic-mpi.abi), and the types that inline
# functions compile into programs (types.abi). An added function or enumerator passes with a note, and so does a new
# member at the end of a struct with struct_size.
#
# usage: check_abi.sh [--update]     --update renews the baseline (make update-abi)
#
# CHECK_ABI_BASELINE   another folder of the baseline [tests/abi]
# CHECK_ABI_INCLUDE    other headers for the types [include]
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${SANITIZER_FLAGS?}" "${AWK:?}"

top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
baseline=${CHECK_ABI_BASELINE:-$top_srcdir/tests/abi}
include=${CHECK_ABI_INCLUDE:-$top_srcdir/include}
update=
[ "${1-}" != --update ] || update=yes
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

skip() {
  echo "skipped: $*"
  exit 77
}
if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
  skip "no abidw and abidiff (Debian: abigail-tools, Fedora: libabigail)"
fi
compiler=$(echo '__x86_64__ __LP64__ __CUDACC__' | $CC -E -P - 2>/dev/null)
[ "$compiler" = "1 1 __CUDACC__" ] || skip "the baseline is of x86-64"

# ---- the present ABI ----

# dump FILE NAME: the ABI of the public headers in FILE, as $tmp/new/NAME.abi
mkdir "$tmp/new"
dump() {
  abidw --headers-dir "$include" --headers-dir "$top_builddir/include" --headers-dir "$top_srcdir/mpi" \
    --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
    --no-parameter-names --type-id-style hash --out-file "$tmp/new/$2.abi" "$1" || return 1
  # the folder of the sources and the language are not ABI, and compilers differ in the language
  sed -i -E "/<abi-instr /{s:path='[^']*/(lib|cuda|mpi)/:path='\1/:; s:language='[^']*':language='LANG_C11':}" \
    "$tmp/new/$2.abi"
}
has_debug() { readelf -SW "$1" 2>/dev/null | grep '\.debug_info' >/dev/null; }

$AWK -f "$top_srcdir/tests/abi/probe.awk" "$include"/cuatomic/*.h "$include"/cuatomic/*/*.h >"$tmp/probe.c"
$AWK -v form=suppress -f "$top_srcdir/tests/abi/probe.awk" "$include"/cuatomic/*.h "$include"/cuatomic/*/*.h >"$tmp/suppressions"
n=$(grep -c cuatomic_abi_ "$tmp/probe.c")
if [ "$n" -lt 60 ]; then
  echo "FAILED: only $n types were found in the headers"
  exit 1
fi
# shellcheck disable=SC2086 # a command with its options
if ! (cd "$tmp" && $CC -std=gnu11 -g -O0 -fPIC -shared -I"$include" -I"$top_builddir/include" probe.c -o types.so) ||
  ! dump "$tmp/types.so" types; then
  echo "FAILED: the ABI of the types of the headers"
  exit 1
fi
notes=()
for name in libcuatomic libcuatomic-mpi; do
  case $name in libcuatomic) so=$top_builddir/lib/.libs/$name.so ;; *) so=$top_builddir/mpi/.libs/$name.so ;; esac
  if [ ! -f "$so" ]; then
    notes+=("$name.so: not in this build")
  elif [ -n "$SANITIZER_FLAGS" ]; then
    notes+=("$name.so: built with a sanitizer")
  elif ! has_debug "$so"; then
    notes+=("$name.so: no debug information")
  elif ! dump "$so" "$name"; then
    echo "FAILED: the ABI of $so"
    exit 1
  elif [ $name = libcuatomic-mpi ] && ! grep ompi_communicator_t "$tmp/new/$name.abi" >/dev/null; then
    notes+=("$name.so: the baseline is of Open MPI")
    rm "$tmp/new/$name.abi"
  fi
done
version=$(abidiff --version | grep -oE '[0-9]+\.[0-9]+' | head -n 1)

if [ -n "$update" ]; then
  for name in types libcuatomic libcuatomic-mpi; do
    if [ ! -f "$tmp/new/$name.abi" ]; then
      printf '%s\n' "FAILED: no ABI of $name, so the baseline remains:" "${notes[@]}"
      exit 1
    fi
  done
  cp "$tmp"/new/*.abi "$baseline/"
  echo "$version" >"$baseline/version"
  exit 0
fi

# ---- compared ----

# Another release of libabigail may find differences in a baseline that it did not write. So the bit of a change (4)
# counts only with the release that wrote the baseline. The bit of an incompatible change (8) always counts.
bad=8
[ "$version" != "$(cat "$baseline/version")" ] || bad=12
failed=0
for new in "$tmp"/new/*.abi; do
  name=$(basename "$new" .abi)
  old=$baseline/$name.abi
  rc=0
  abidiff --no-show-locs --no-added-syms --suppressions "$tmp/suppressions" "$old" "$new" >"$tmp/diff" 2>&1 || rc=$?
  if [ $((rc & 3)) != 0 ] || [ $((rc & bad)) != 0 ]; then
    cat "$tmp/diff"
    echo "FAILED: the ABI of $name is not compatible with $old (abidiff: $rc)"
    failed=1
    continue
  fi
  if [ $rc != 0 ]; then
    notes+=("$name: libabigail $version reads a baseline of $(cat "$baseline/version") with differences")
    continue
  fi
  # additions, enumerators and new members at the end are for the next baseline
  rc=0
  abidiff --no-show-locs "$old" "$new" >"$tmp/diff" 2>&1 || rc=$?
  if ! cmp -s "$old" "$new" && [ $((rc & 12)) != 0 ]; then
    notes+=("$name: has compatible additions; the next release renews the baseline (make update-abi)")
    cat "$tmp/diff"
  fi
done
[ ${#notes[@]} = 0 ] || printf '%s\n' "${notes[@]}"
[ $failed = 0 ] || exit 1
echo "compared: $(basename -a -s .abi "$tmp"/new/*.abi | tr '\n' ' ')with $n types of the headers"
