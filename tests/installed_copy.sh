#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sourced by the tests of an installed copy. Installs the build below $root, in the folder $tmp, and sets the variables and
# functions that build a program against the copy: pc, cc, nvcc, LD_LIBRARY_PATH.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${NVCC?}" "${NVCC_GENCODE?}" "${SANITIZER_FLAGS?}" \
  "${PKG_CONFIG?}" "${MAKE:?}" "${prefix?}" "${libdir:?}" "${includedir?}" "${pkgconfigdir?}"

if [ -z "$PKG_CONFIG" ] || ! command -v "${PKG_CONFIG%% *}" >/dev/null; then
  echo "skipped: no pkg-config"
  exit 77
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
builddir=$(cd "$top_builddir" && pwd)

# The inner make does not belong to the job pool of the outer make.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
# shellcheck source=tests/install_lock.sh
. "$top_srcdir/tests/install_lock.sh"
# make_copy TARGET: install or uninstall.
make_copy() {
  if ! locked $MAKE -C "$builddir" "$1" DESTDIR="$root" >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    echo "FAILED: make $1"
    exit 1
  fi
}
make_copy install

export PKG_CONFIG_PATH=$root$pkgconfigdir
# pc OPTIONS... MODULE: pkg-config with the folders of the copy.
pc() {
  "$PKG_CONFIG" --define-variable=prefix="$root$prefix" \
    --define-variable=libdir="${pc_libdir:-$root$libdir}" \
    --define-variable=includedir="$root$includedir" "$@"
}

say() { echo "== $*"; }
build() {
  say "$*"
  "$@"
}

read -ra cc <<<"$CC $SANITIZER_FLAGS"
read -ra nvcc <<<"$NVCC $NVCC_GENCODE -Wno-deprecated-gpu-targets"

# For programs that are linked with the copy, and the installed commands.
LD_LIBRARY_PATH=$root$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# Makes the commands of a document call the programs of this build.
user_commands() {
  cc[0]=$(type -P "${cc[0]}")
  PKG_CONFIG=$(type -P "$PKG_CONFIG")
  [ -z "$NVCC" ] || nvcc[0]=$(type -P "${nvcc[0]}")
  cc() { build "${cc[@]}" -Wall -Wextra -Werror "$@" >&2; }
  nvcc() { build "${nvcc[@]}" "$@" >&2; }
  pkg-config() { pc "$@"; }
}
