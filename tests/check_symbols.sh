#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library exports what lib/libcuatomic.symbols lists and nothing else, and
# needs no library that a program without CUDA or C++ would not have. No product
# is fused with a sum in the fixed tree, for no width of vectors.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CUDART_LIBS?}" "${SANITIZER_FLAGS?}"

list=$top_srcdir/lib/libcuatomic.symbols
so=$top_builddir/lib/.libs/libcuatomic.so
archive=$top_builddir/lib/.libs/libcuatomic.a
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

export LC_ALL=C
sed -e '/^#/d' -e '/^$/d' "$list" >"$tmp/list"
if ! sort -c -u "$tmp/list"; then
  echo "lib/libcuatomic.symbols is not sorted, or has a name twice"
  failed=1
fi
sort -u "$tmp/list" >"$tmp/listed"

# The attribute must agree with the list too: a call left out of the list
# would otherwise be missed, because the version script hides it.  Objects for
# link-time optimization tell nothing of it.
if [ -f "$archive" ] && ! readelf -SW "$archive" 2>/dev/null | grep '\.gnu\.lto_' >/dev/null; then
  readelf -sW "$archive" 2>/dev/null |
    awk '$5 ~ /GLOBAL|WEAK/ && $6 == "DEFAULT" && $7 != "UND" && $8 ~ /^cua_/ { print $8 }' |
    sort -u >"$tmp/archive"
  if ! diff "$tmp/listed" "$tmp/archive" >"$tmp/diff"; then
    echo "< listed but not marked CUA_API in libcuatomic.a; > marked but not listed:"
    grep '^[<>]' "$tmp/diff"
    failed=1
  fi
fi

for object in "$top_builddir"/lib/.libs/cpu_tree.o "$top_builddir"/lib/cpu_tree.o; do
  if [ -f "$object" ] && command -v objdump >/dev/null &&
    objdump -d --no-show-raw-insn "$object" | grep -wE 'v?fn?m(add|sub|la|ls)[0-9a-z]*' >"$tmp/fused"; then
    echo "$object fuses products with sums:"
    head -n 5 "$tmp/fused"
    failed=1
  fi
done

if [ ! -f "$so" ]; then
  [ "$failed" = 0 ] || exit 1
  echo "skipped: no shared library in this build"
  exit 77
fi

nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/exported"
if ! diff "$tmp/listed" "$tmp/exported" >"$tmp/diff"; then
  echo "< listed but not exported by libcuatomic.so; > exported but not listed:"
  grep '^[<>]' "$tmp/diff"
  failed=1
fi

readelf -dW "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' >"$tmp/needed"
while read -r name; do
  case $name in
  libstdc++* | libatomic* | libgomp* | libcuda.so* | libgcc_s*) ;;
  libcudart*)
    case $CUDART_LIBS in
    *-lcudart_static*) ;;
    *-lcudart*) continue ;;
    esac
    ;;
  *) continue ;;
  esac
  # a sanitizer brings in its own
  [ -z "$SANITIZER_FLAGS" ] || continue
  echo "libcuatomic.so needs $name"
  failed=1
done <"$tmp/needed"

soname=$(readelf -dW "$so" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p')
if [ "$soname" != libcuatomic.so.0 ]; then
  echo "libcuatomic.so has the soname $soname"
  failed=1
fi

[ "$failed" = 0 ] || exit 1
echo "$(wc -l <"$tmp/listed") symbols; needed: $(tr '\n' ' ' <"$tmp/needed")"
