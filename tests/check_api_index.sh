#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# doc/api-index has the name, the header line and the manual page of each public function and macro, as the
# preprocessor finds them. Each function has a page, and none has the name of a struct, union or enum: C++ users
# then need not write `struct`.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}"

export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# shellcheck disable=SC2086 # a command with its flags
if ! $CC -dM -E -x c /dev/null | grep -w __SIZEOF_INT128__ >/dev/null; then
  echo "skipped: without 128-bit integers the headers have fewer names"
  exit 77
fi
# shellcheck disable=SC2086
if ! sh "$top_srcdir/doc/api-index.sh" index "$top_srcdir/doc" "$top_srcdir/include" $CC -I"$top_srcdir/include" \
  -I"$top_builddir/include" >"$tmp/index" 2>"$tmp/err"; then
  sed 's/^/FAILED: /' "$tmp/err"
  failed=1
fi
n=$(grep -c '^[Cc]' "$tmp/index")
if [ "$n" -lt 1000 ]; then
  echo "FAILED: only $n names were found in the headers"
  failed=1
fi
if ! diff -N "$top_srcdir/doc/api-index" "$tmp/index" >"$tmp/diff"; then
  grep '^[<>]' "$tmp/diff" | head -n 10
  echo "FAILED: doc/api-index (<) differs from the headers (>) in $(grep -c '^[<>]' "$tmp/diff") lines;" \
    "\`make -C doc update-api-index\` in the build folder renews it"
  failed=1
fi

echo "$n public functions and macros"
[ $failed = 0 ]
