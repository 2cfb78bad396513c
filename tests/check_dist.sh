#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make dist` twice gives the same bits: they depend on no clock, umask, user or order of a folder. And a release
# has the licence, and the same version in each file that names it. ci/reproducible compares the archives of two clones.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${MAKE:?}"

if ! tar --version 2>/dev/null | grep GNU >/dev/null; then
  echo "skipped: make dist sorts with GNU tar"
  exit 77
fi
export LC_ALL=C
builddir=$(cd "$top_builddir" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$builddir/include/cuatomic/version.h")

# names FILE VERSION: the version that the file begins with. debian/ is not in a release.
names() {
  if [ -f "$top_srcdir/$1" ] && [ "$2" != "$version" ]; then
    echo "FAILED: $1 has the version '$2', configure.ac has $version"
    exit 1
  fi
}
names NEWS "$(sed -n '1s/^cuatomic //p' "$top_srcdir/NEWS")"
names rpm/cuatomic.spec "$(sed -n 's/^Version: *//p' "$top_srcdir/rpm/cuatomic.spec")"
names rpm/cuatomic.spec "$(sed -n '/^%changelog/{n;s/.* - \(.*\)-[0-9]*$/\1/p;}' "$top_srcdir/rpm/cuatomic.spec")"
if [ -f "$top_srcdir/CITATION.cff" ]; then
  names CITATION.cff "$(sed -n 's/^version: *"\{0,1\}\([^"]*\).*/\1/p' "$top_srcdir/CITATION.cff")"
fi
if [ -f "$top_srcdir/debian/changelog" ]; then
  names debian/changelog "$(sed -n '1s/^cuatomic (\(.*\)-[^-]*) .*/\1/p' "$top_srcdir/debian/changelog")"
  debian=$(sed -n 's/^ -- .*>  //p' "$top_srcdir/debian/changelog" | head -n 1)
  rpm=$(sed -n '/^%changelog/{n;s/^\* \(.*20[0-9][0-9]\) .*/\1/p;}' "$top_srcdir/rpm/cuatomic.spec")
  if [ "$(date -u -d "$debian" +%F)" != "$(date -u -d "$rpm" +%F)" ]; then
    echo "FAILED: debian/changelog has the date $debian, rpm/cuatomic.spec has $rpm"
    exit 1
  fi
fi

archive=$builddir/cuatomic-$version.tar.gz
kept=
[ ! -e "$archive" ] || { kept=yes; cp -p "$archive" "$tmp/kept"; }
# dist UMASK OPTION...: the archive as $tmp/UMASK
dist() {
  local mask=$1
  shift
  if ! (umask "$mask" && $MAKE -C "$builddir" dist-gzip "$@") >"$tmp/log" 2>&1; then
    tail -n 20 "$tmp/log"
    echo "FAILED: make dist under umask $mask"
    exit 1
  fi
  mv "$archive" "$tmp/$mask"
}
dist 022
dist 077
[ -z "$kept" ] || mv "$tmp/kept" "$archive"
if ! cmp "$tmp/022" "$tmp/077"; then
  diff <(tar --utc --full-time -tvf "$tmp/022") <(tar --utc --full-time -tvf "$tmp/077") | head -n 10
  echo "FAILED: two archives of the same sources differ"
  exit 1
fi

tar --utc --full-time --numeric-owner -tvf "$tmp/022" >"$tmp/list"
if [ "$(awk '{ print $2, $4, $5 }' "$tmp/list" | sort -u | wc -l)" != 1 ] ||
  [ "$(awk '{ print $2 }' "$tmp/list" | sort -u)" != 0/0 ]; then
  awk '{ print $2, $4, $5 }' "$tmp/list" | sort | uniq -c | sort -rn | head -n 5
  echo "FAILED: members with several times, or not of root"
  exit 1
fi
if awk '{ print $1 }' "$tmp/list" | sort -u | grep -vxE '(-r(w-r--r--|wxr-xr-x)|drwxr-xr-x)'; then
  echo "FAILED: members with other permissions"
  exit 1
fi
# a folder comes before its content, and names are in order
if ! tar -tf "$tmp/022" | sed 's:/$::; s:/:\x01:g' | sort -c; then
  echo "FAILED: the members are not in the order of their names"
  exit 1
fi
# the head of a gzip file: no name, no time
if [ "$(od -An -tx1 -j3 -N5 "$tmp/022" | tr -d ' ')" != 0000000000 ]; then
  echo "FAILED: the archive has the time of its packing"
  exit 1
fi
if ! tar -tf "$tmp/022" | grep -xF "cuatomic-$version/LICENSE" >/dev/null; then
  echo "FAILED: no LICENSE"
  exit 1
fi
# SOURCE_DATE_EPOCH is the time of all members
dist 027 SOURCE_DATE_EPOCH=1000000000
if tar --utc --full-time -tvf "$tmp/027" | grep -v ' 2001-09-09 01:46:40 ' | head -n 3 | grep .; then
  echo "FAILED: members whose time is not SOURCE_DATE_EPOCH"
  exit 1
fi
echo "$(wc -l <"$tmp/list") members, of $(awk 'NR == 1 { print $4, $5 }' "$tmp/list")"
