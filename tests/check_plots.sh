#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# doc/groups-scaling.svg is the plot of doc/groups-scaling.txt, and the script refuses input that it cannot draw. The chart
# and the table of README.md are made from the results in the tree.
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

front_page() { $AWK -v make="$1" -f "$top_srcdir/doc/front-page.awk" "${@:2}" 2>"$tmp/err"; }
peers=$top_srcdir/doc/hashmap-peers.json
reference=$top_srcdir/bench/reference/H200.json
if front_page chart "$peers" >"$tmp/chart.svg" && cmp -s "$tmp/chart.svg" "$top_srcdir/doc/hashmap-peers.svg"; then
  passed=$((passed + 1))
else
  cat "$tmp/err"
  fail "doc/hashmap-peers.svg is not the chart of hashmap-peers.json; \`make -C doc plots\` draws it again"
fi
if front_page table "$peers" "$reference" >"$tmp/table" &&
  diff "$tmp/table" <(sed -n '/^| NVIDIA H200 | cuatomic | peer/,/^$/{/./p;}' "$top_srcdir/README.md"); then
  passed=$((passed + 1))
else
  cat "$tmp/err"
  fail "README.md has another table than \`make -C doc plots\` prints"
fi
if front_page table "$peers" >/dev/null || ! grep -qF "no result of cuatomic for histogram/" "$tmp/err"; then
  fail "a table without the results of the histogram"
else
  passed=$((passed + 1))
fi
# the claim of the first lines: the least and the greatest of the chart's ratios
range=$($AWK -F '[<>]' '
  $3 ~ /^[0-9.]+$/ { v[n++ % 3] = $3; if (n % 3 == 0) { r = v[0] / (v[1] > v[2] ? v[1] : v[2])
    if (!least || r < least) least = r; if (r > most) most = r } }
  END { printf "%.1f to %.1f", least, most }' "$tmp/chart.svg")
if grep -q "hash map, $range times as fast as its peers\*\* in bulk calls" "$top_srcdir/README.md"; then
  passed=$((passed + 1))
else
  fail "README.md does not claim $range times, the ratios of its chart"
fi
if [ "$(wc -l <"$top_srcdir/README.md")" -le 200 ]; then
  passed=$((passed + 1))
else
  fail "README.md has more than 200 lines"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
