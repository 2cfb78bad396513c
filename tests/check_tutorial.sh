#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Follow doc/tutorial.md: its commands (```sh) run in order in an empty folder, with an installed copy of the library, and
# print the text below them (```text). Without nvcc, the CUDA programs are left out; without a GPU, they are compiled only.
set -euo pipefail

: "${top_srcdir:?}" "${docdir:?}" "${AWK:?}"
# shellcheck source=tests/installed_copy.sh
. "$top_srcdir/tests/installed_copy.sh"
if [ ! -f "$root$libdir/libcuatomic.so" ]; then
  echo "skipped: no shared library"
  exit 77
fi
fail() {
  echo "FAILED: tutorial.md: $*"
  exit 1
}

mkdir "$tmp/blocks" "$tmp/user"
tutorial=$root$docdir/tutorial.md
cp "$tutorial" "$tmp/user"

# N.sh is a block of commands, N.text its output.
$AWK -v dir="$tmp/blocks" '
	/^```sh$/ { file = dir "/" ++n ".sh"; next }
	/^```text$/ { file = dir "/" n ".text"; next }
	/^```/ { file = ""; next }
	file != "" { print >file }' "$tutorial"
blocks=$(ls "$tmp/blocks"/*.sh | wc -l)
names=$(sed -n 's/^`\([a-z]*\.[a-z]*\)`:$/\1/p' "$tutorial")

# Each listing has a name and is compiled, and each program is run and its output compared.
[ "$(grep -cE '^```(c|cuda)$' "$tutorial")" = "$(grep -cE '^`[a-z.]+`(, continued)?:$' "$tutorial")" ] ||
  fail "a listing has no name"
for chapter in 1 2 3 4 5 6; do
  sed -n "/^## $chapter\. /,/^## /p" "$tutorial" | grep '^cc ' >/dev/null || fail "chapter $chapter has no C program"
done
for name in $names; do
  case $name in
  *.c) grep -q "^cc $name " "$tmp/blocks"/*.sh || fail "no command compiles $name" ;;
  *.cu) grep -q "^nvcc -arch=native $name " "$tmp/blocks"/*.sh || fail "no command compiles $name" ;;
  esac
done
for block in "$tmp/blocks"/*.sh; do
  if grep -q '^n*cc ' "$block"; then
    grep -q '^\./' "$block" || fail "the program is not run: $(cat "$block")"
    [ -s "${block%.sh}.text" ] || fail "no output follows $(cat "$block")"
  fi
done

# The variables that the documents name for a prefix of one's own reach the programs.
mkdir "$tmp/home"
ln -s "$root$prefix" "$tmp/home/cuatomic"
for document in "$tutorial" "$root$docdir/examples/README.md"; do
  [ "$pkgconfigdir" = "$prefix/lib/pkgconfig" ] || break
  # shellcheck disable=SC2016 # expanded by the other shell
  (HOME=$tmp/home && unset PKG_CONFIG_PATH LD_LIBRARY_PATH && eval "$(grep '_PATH=.*cuatomic' "$document")" &&
    sh -c 'test -f "$PKG_CONFIG_PATH/cuatomic.pc" && test -f "$LD_LIBRARY_PATH/libcuatomic.so.0"') ||
    fail "${document##*doc/} does not name the folders of an installation"
done

nvcc+=(-Xcompiler '-Wall,-Wextra' -Werror all-warnings)
user_commands
nvcc() { build "${nvcc[@]}" "${@:2}" >&2; } # the architectures of this build instead of -arch=native
awk() { $AWK "$@"; }
read -ra flags < <(pc --cflags --libs cuatomic)

# Why no GPU can run programs here, or nothing.
echo '#include <stdio.h>
#include <cuatomic.h>
int main(void) { puts(cua_device_problem(CUA_BACKEND_CUDA, 0)); return 0; }' >"$tmp/problem.c"
cc "$tmp/problem.c" "${flags[@]}" -o "$tmp/problem"
problem=$("$tmp/problem")

compared=0
for ((n = 1; n <= blocks; n++)); do
  block=$tmp/blocks/$n.sh
  expected=$tmp/blocks/$n.text
  if grep -q '^nvcc ' "$block"; then
    [ -n "$NVCC" ] || continue
    if [ -n "$problem" ]; then
      sed -i '/^nvcc /!d' "$block"
      rm "$expected"
    fi
  fi
  # set -e has no effect in a condition
  set +e
  # shellcheck disable=SC1090 # a block of the tutorial
  (set -e && cd "$tmp/user" && . "$block") >"$tmp/out"
  rc=$?
  set -e
  [ $rc = 0 ] || fail "these commands fail: $(cat "$block")"
  if [ -f "$expected" ]; then
    diff "$expected" "$tmp/out" || fail "< is the text of the tutorial, > the output of $(cat "$block")"
    compared=$((compared + 1))
  fi
done
for name in $names; do
  [ -s "$tmp/user/$name" ] || fail "the command at the beginning does not write $name"
done
[ "$compared" -ge 6 ] || fail "only $compared outputs are compared"
echo "$blocks blocks of commands, $compared outputs as in the tutorial"
[ -z "$NVCC" ] && echo "left out: the CUDA programs, because there is no nvcc"
[ -z "$NVCC" ] || [ -z "$problem" ] || echo "compiled only: the CUDA programs ($problem)"
