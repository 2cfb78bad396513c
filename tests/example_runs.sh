#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sourced by the tests of the examples: runs a program and compares its output. The files stdout and stderr are in the
# working folder.
failed=0
passed=0

fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$*"
  printf '  stdout: %s\n' "$(head -c 1000 stdout)"
  printf '  stderr: %s\n' "$(head -c 1000 stderr)"
}

# ends STATUS NAME PROGRAM ARGUMENT...: the program ends with this status. Input is our own.
ends() {
  local expected=$1 what=$2 rc=0
  shift 2
  "$@" >stdout 2>stderr || rc=$?
  if [ "$rc" = "$expected" ]; then
    passed=$((passed + 1))
    return 0
  fi
  fail "$what: exit status $rc, not $expected"
  return 1
}

same() { # same NAME EXPECTED GOT
  if ! cmp -s "$2" "$3"; then
    fail "$1: differs from the expected output"
    diff "$2" "$3" | head -n 5
  fi
}

# one_error NAME PROGRAM PATTERN: a single line on stderr like PATTERN, and nothing on stdout.
one_error() {
  [ ! -s stdout ] || fail "$1: something on stdout"
  if [ "$(wc -l <stderr)" != 1 ] || ! grep -Eq -- "^$2: $3" stderr; then
    fail "$1: not one line on stderr like: $3"
  fi
}

# Prints the summary with the caller's seed. True if no test failed.
all_passed() {
  echo "$passed runs as expected, $failed failures, seed ${seed:?}"
  [ "$failed" = 0 ]
}
