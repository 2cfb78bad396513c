# SPDX-License-Identifier: MIT
# Makes the chart and the table of figures of README.md from results of `cuatomic bench --json`:
#
#     awk -v make=chart -f front-page.awk hashmap-peers.json >hashmap-peers.svg
#     awk -v make=table -f front-page.awk hashmap-peers.json ../bench/reference/H200.json
#
# Each row of the files is on a line of its own. Of each group of ways, the fastest counts.

function field(name,    at) {
  at = "\"" name "\": "
  if (!match($0, at "(\"[^\"]*\"|[-0-9.e+]+)"))
    return ""
  at = substr($0, RSTART + length(at), RLENGTH - length(at))
  gsub(/"/, "", at)
  return at
}

# The library of a way, as the front page names it.
function library(way) {
  if (field("kind") == "ours")
    return "cuatomic"
  if (way ~ /^cuCollections/)
    return "cuCollections"
  if (way ~ /^BGHT/)
    return "BGHT"
  if (way ~ /^(cub::|CUB)/)
    return "CUB"
  return way ~ /^native/ ? "atomicAdd" : ""
}

/"way":/ {
  row = field("bench") "/" field("case")
  way = field("way")
  who = library(way)
  if (who == "" || way ~ / in a kernel/)
    next
  if (who == "cuatomic" && row ~ /^reduce/ && way !~ /EXACT/)
    next
  value = field("median") + 0
  if (value > best[row, who])
    best[row, who] = value
}
/"gpu": / && machine == "" { machine = field("gpu") }

function fail(why) {
  print "front-page: " why >"/dev/stderr"
  failed = 1
  exit 1
}
# The best value, in 10^9 operations or 10^9 bytes a second.
function figure(row, who, scale) {
  if (!((row, who) in best))
    fail("no result of " who " for " row)
  return best[row, who] / scale
}
function digits(x) { return sprintf(x < 100 ? "%.1f" : "%.0f", x) }

# ---- the table ----

function line(what, row, peer_row, peer, unit, scale,    ours, theirs) {
  ours = figure(row, "cuatomic", scale)
  theirs = figure(peer_row, peer, scale)
  printf "| %s | %s %s | %s: %s | %.2g |\n", what, digits(ours), unit, peer, digits(theirs), ours / theirs
}
function table() {
  print "| " machine " | cuatomic | peer | times |"
  print "|---|---|---|---|"
  line("build a map of 100 M pairs of 4 + 4 bytes, load 0.8 (peer: insert)", "hashmap/4+4, 0.8, build", "hashmap/4+4, 0.8, insert",
       "cuCollections", "G pairs/s", 1000)
  line("find 100 M absent keys, load 0.9", "hashmap/4+4, 0.9, find misses", "hashmap/4+4, 0.9, find misses", "BGHT",
       "G keys/s", 1000)
  line("histogram of u32, 4096 bins, uniform", "histogram/u32 4096, uniform", "histogram/u32 4096, uniform", "CUB",
       "GB/s", 1)
  line("exact sum of 1 Gi floats (peer: any order)", "reduce/sum f32, 1 Gi", "reduce/sum f32, 1 Gi", "CUB", "GB/s", 1)
  line("exact scatter-add of f32 to 96 Mi targets (peer: any order)", "scatter/to 96 Mi, uniform",
       "scatter/to 96 Mi, uniform", "atomicAdd", "G/s", 1)
}

# ---- the chart ----

function text(x, y, anchor, more, words) {
  printf "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more, words
}
function bar(who, value, fill,    bold) {
  bold = who == "cuatomic" ? " font-weight=\"bold\"" : ""
  text(left - 8, y + 15, "end", bold, who)
  printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\" fill=\"%s\"/>\n", left, y + 1, value * wide / most, fill
  text(left + value * wide / most + 8, y + 15, "start", bold, digits(value))
  y += 22
}
function bars(title, row, peer_row,    who) {
  y += 26
  text(16, y - 4, "start", " font-weight=\"bold\"", title)
  y += 4
  bar("cuatomic", figure(row, "cuatomic", 1000), "#0072b2")
  bar("cuCollections", figure(peer_row, "cuCollections", 1000), "#e69f00")
  bar("BGHT", figure(peer_row, "BGHT", 1000), "#999999")
}
function chart() {
  left = 130; wide = 520; most = 50; y = 36
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 472\" width=\"720\" height=\"472\" " \
        "font-family=\"sans-serif\" font-size=\"14\" fill=\"#222\">"
  print "<title>Speed of hash maps on an " machine "</title>"
  print "<rect width=\"720\" height=\"472\" fill=\"#fff\"/>"
  text(16, 28, "start", " font-size=\"17\"", "Hash maps of 100 million pairs of 4 + 4 bytes, load 0.8: G pairs/s")
  bars("fill an empty map", "hashmap/4+4, 0.8, build", "hashmap/4+4, 0.8, insert")
  bars("insert into a map", "hashmap/4+4, 0.8, insert", "hashmap/4+4, 0.8, insert")
  bars("find keys that are there", "hashmap/4+4, 0.8, find hits", "hashmap/4+4, 0.8, find hits")
  bars("find keys that are absent", "hashmap/4+4, 0.8, find misses", "hashmap/4+4, 0.8, find misses")
  text(16, y + 34, "start", " font-size=\"12\"", \
       machine ", one run, medians; of each peer the best of its variants. Bulk calls; longer is better.")
  print "</svg>"
}

END {
  if (failed)
    exit 1
  if (make == "chart")
    chart()
  else
    table()
  if (failed)
    exit 1
}
