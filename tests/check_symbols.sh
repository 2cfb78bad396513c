#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library exports exactly the symbols of lib/libcuatomic.symbols, each with the version of its
# release. It needs only libraries that a program without CUDA or C++ has. No product is fused with
# a sum in the fixed tree, for any vector width.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CUDART_LIBS?}" "${SANITIZER_FLAGS?}" \
  "${AWK:?}"

list=$top_srcdir/lib/libcuatomic.symbols
so=$top_builddir/lib/.libs/libcuatomic.so
archive=$top_builddir/lib/.libs/libcuatomic.a
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

export LC_ALL=C
symbols() { $AWK -f "$top_srcdir/lib/symbols.awk" "$@"; }
if ! symbols -v form=list "$list" >"$tmp/versions"; then
  exit 1
fi
for node in $(cut -d ' ' -f 2 "$tmp/versions" | uniq); do
  if ! sed -n "s/ $node\$//p" "$tmp/versions" | sort -c -u; then
    echo "the symbols of $node in lib/libcuatomic.symbols are not sorted"
    failed=1
  fi
done
cut -d ' ' -f 1 "$tmp/versions" | sort -u >"$tmp/listed"

# The generator refuses a list with a symbol in no node, or in two nodes.
refuses() { # refuses WHAT LINE...
  local what=$1
  shift
  printf '%s\n' "$@" >"$tmp/bad"
  if symbols "$tmp/bad" >/dev/null 2>&1; then
    echo "lib/symbols.awk takes a list with $what"
    failed=1
  fi
}
refuses "a symbol without a node" cua_a CUATOMIC_0.1: cua_b
refuses "a symbol in two nodes" CUATOMIC_0.1: cua_a CUATOMIC_0.2: cua_a
refuses "a symbol twice in a node" CUATOMIC_0.1: cua_a cua_a
refuses "a node twice" CUATOMIC_0.1: cua_a CUATOMIC_0.2: cua_b CUATOMIC_0.1: cua_c
refuses "an empty node" CUATOMIC_0.1: CUATOMIC_0.2: cua_a
refuses "no node" '# nothing'
refuses "something else" CUATOMIC_0.1: cua_a 'cua_b;'
printf '%s\n' CUATOMIC_0.1: cua_a CUATOMIC_0.2: cua_b cua_c >"$tmp/good"
if [ "$(symbols "$tmp/good" | tr '\n' ' ')" != \
  'CUATOMIC_0.1 { global: cua_a; local: *; }; CUATOMIC_0.2 { global: cua_b; cua_c; } CUATOMIC_0.1; ' ]; then
  echo "lib/symbols.awk makes of two nodes:"
  symbols "$tmp/good"
  failed=1
fi

# No node is of a release that is still to come, and the Debian package names them all.
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$top_builddir/include/cuatomic/version.h")
for node in $(cut -d ' ' -f 2 "$tmp/versions" | uniq); do
  release=${node#CUATOMIC_}
  if [ "$(printf '%s\n' "$release" "$version" | sort -V | head -n 1)" != "$release" ]; then
    echo "$node is a node of a release after $version"
    failed=1
  fi
  debian=$top_srcdir/debian/libcuatomic0.symbols
  if [ -f "$debian" ] && ! grep -qxF -e " (symver)$node $release.0" "$debian"; then
    echo "debian/libcuatomic0.symbols does not have $node"
    failed=1
  fi
done

# The attribute must agree with the list too: a call left out of the list
# would otherwise be missed, because the version script hides it.  Objects for
# link-time optimization do not show it.
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

nm -D --defined-only --with-symbol-versions "$so" | awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | sort -u \
  >"$tmp/exported"
sort -u "$tmp/versions" >"$tmp/versioned"
if ! diff "$tmp/versioned" "$tmp/exported" >"$tmp/diff"; then
  echo "< listed but not exported by libcuatomic.so in this version; > exported but not listed:"
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

mpi=$top_builddir/mpi/.libs/libcuatomic-mpi.so
if [ -f "$mpi" ]; then
  symbols -v form=list "$top_srcdir/mpi/libcuatomic-mpi.symbols" | sort -u >"$tmp/versioned"
  nm -D --defined-only --with-symbol-versions "$mpi" | awk '$2 != "A" { sub(/@@?/, " ", $3); print $3 }' | sort -u \
    >"$tmp/exported"
  if ! diff "$tmp/versioned" "$tmp/exported"; then
    echo "libcuatomic-mpi.so does not export the symbols of mpi/libcuatomic-mpi.symbols"
    failed=1
  fi
  soname=$(readelf -dW "$mpi" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p')
  if [ "$soname" != libcuatomic-mpi.so.0 ] || ! readelf -dW "$mpi" | grep 'NEEDED.*\[libcuatomic.so.0\]' >/dev/null; then
    echo "libcuatomic-mpi.so has the soname $soname, or does not need libcuatomic"
    failed=1
  fi
fi

[ "$failed" = 0 ] || exit 1
echo "$(wc -l <"$tmp/listed") symbols; needed: $(tr '\n' ' ' <"$tmp/needed")"
