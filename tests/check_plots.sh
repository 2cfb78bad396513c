#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# doc/groups-scaling.svg is the plot of doc/groups-scaling.txt, and the script refuses input that it cannot draw.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${AWK:?}"

export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0
fail() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}
plot() { $AWK -f "$top_srcdir/doc/scaling-plot.awk" "$1" 2>"$tmp/err"; }

if plot "$top_srcdir/doc/groups-scaling.txt" >"$tmp/plot.svg" &&
  cmp -s "$tmp/plot.svg" "$top_srcdir/doc/groups-scaling.svg"; then
  passed=$((passed + 1))
else
  cat "$tmp/err"
  fail "doc/groups-scaling.svg is not the plot of groups-scaling.txt; \`make -C doc plots\` draws it again"
fi

# refused WHY LINE...: whether the script ends with this message
refused() {
  local why=$1
  shift
  printf '%b\n' "$@" >"$tmp/input"
  if plot "$tmp/input" >/dev/null || ! grep -qF -e "$why" "$tmp/err"; then
    fail "input that has to be refused: $why"
  else
    passed=$((passed + 1))
  fi
}
head=('machine\tm' 'GPUs\t1\t2' 'panel\tp')
refused "integers that increase" 'GPUs\t2\t1'
refused 'comes after "GPUs" and "panel"' 'find\t1'
refused "the line has not 2 numbers" "${head[@]}" 'find\t1'
refused '"x" is not a number' "${head[@]}" 'find\t1\tx'
refused "no panel, or no machine" "${head[0]}"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
