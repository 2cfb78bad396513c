#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sourced by the tests of the command cuatomic: runs it, and looks at its output in the folder $tmp.
#
# CUATOMIC, CUATOMIC_PLANTED   the programs, if not from this build

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}"

cuatomic=${CUATOMIC:-$top_builddir/tools/cuatomic}
planted=${CUATOMIC_PLANTED:-$top_builddir/tests/demo_planted}
cuatomic=$(cd "$(dirname "$cuatomic")" && pwd)/$(basename "$cuatomic")
planted=$(cd "$(dirname "$planted")" && pwd)/$(basename "$planted")
export LC_ALL=C
tmp=$(mktemp -d)
trap 'chmod -R u+rw "$tmp"; rm -rf "$tmp"' EXIT
failed=0
passed=0

fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$*"
  printf '  stdout: %s\n' "$(head -c 4000 "$tmp/out")"
  printf '  stderr: %s\n' "$(head -c 4000 "$tmp/err")"
}

# runs STATUS NAME COMMAND...: the command ends with this status. Input is our own.
runs() {
  local expected=$1 what=$2 rc=0
  shift 2
  "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  if [ "$rc" = "$expected" ]; then
    passed=$((passed + 1))
    return 0
  fi
  fail "$what: exit status $rc, not $expected"
  return 1
}
says() { # says FILE NAME PATTERN
  grep -Eq -- "$3" "$tmp/$1" || fail "$2: std$1 has no line like: $3"
}
silent() { # silent FILE NAME PATTERN
  ! grep -Eq -- "$3" "$tmp/$1" || fail "$2: std$1 has a line like: $3"
}
one_line() { # one_line NAME: an error is one line on stderr and nothing on stdout
  if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -q '^cuatomic: ' "$tmp/err"; then
    fail "$1: not one line on stderr"
  fi
  [ ! -s "$tmp/out" ] || fail "$1: something on stdout"
}
python=$(command -v python3) || echo "python3 was not found: JSON and CSV are not read by a second program"
# python_says NAME: the program on standard input, with the arguments after NAME, succeeds.
python_says() {
  local what=$1
  shift
  if [ -z "$python" ]; then
    cat >/dev/null
    return
  fi
  if "$python" - "$@" >"$tmp/out" 2>"$tmp/err"; then
    passed=$((passed + 1))
  else
    fail "$what: the second program disagrees"
  fi
}
