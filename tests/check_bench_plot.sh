#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cuatomic bench --from and --plot: rows that are read from a file, and their plots. The rows are fixed, so no result
# depends on the machine's speed.
set -uo pipefail

# shellcheck source=tests/cli_runs.sh
. "${top_srcdir:?}/tests/cli_runs.sh"
unset CUATOMIC_BENCH_RECORDS CUATOMIC_BENCH_FILTER CUATOMIC_BENCH_SECONDS CUATOMIC_GNUPLOT
exec </dev/null

# refused STATUS NAME ARGUMENT...: bench ends with this status and one line on stderr, and prints nothing.
refused() {
  local expected=$1 what=$2
  shift 2
  runs "$expected" "$what" "$cuatomic" bench "$@" && one_line "$what"
}
end() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] || exit 1
  exit "$1"
}

# ---- usage ----

for option in --seconds=1 --size=64M --device=0 --quick --backend=cpu --backend=auto --threads=2; do
  refused 2 "--from $option" --from="$tmp/a.json" $option
  says err "--from $option" "option '--from' runs no benchmark"
done
refused 2 "--from --list" --from="$tmp/a.json" --list
refused 2 "--from --compare" --from="$tmp/a.json" --compare a b
refused 2 "--from --threshold" --from="$tmp/a.json" --threshold=3
refused 2 "--from without a name" --from=
refused 2 "--from of an unknown benchmark" --from="$tmp/a.json" everything
refused 2 "--from with an argument" --from="$tmp/a.json" locks candidates
for name in plot plot.pdf plot.SVG .svg svg '' plot.svg.; do
  refused 2 "--plot=$name" -b cpu locks --plot="$name"
  says err "--plot=$name" "'$name' is not the name of a plot"
done
refused 2 "--plot and --list" --plot="$tmp/a.svg" --list
refused 2 "--plot and --compare" --plot="$tmp/a.svg" --compare a b
CUATOMIC_GNUPLOT=/bin/cat refused 2 "--plot and --json" -b cpu locks --plot="$tmp/a.svg" --json="$tmp/a.svg"
CUATOMIC_GNUPLOT=/bin/cat refused 2 "--plot and --csv" -b cpu locks --plot="$tmp/a.svg" --csv="$tmp/./a.svg"
says err "--plot and --csv" "option '--plot' needs a file of its own"

# gnuplot is looked for before anything is measured
mkdir "$tmp/programs" "$tmp/empty"
export CUATOMIC_BENCH_DIR=$tmp/programs
printf '#!/bin/sh\n: >"%s"\n' "$tmp/measured" >"$tmp/programs/bench-scatter"
chmod +x "$tmp/programs/bench-scatter"
mkdir "$tmp/bin"
# the programs of libtool's script
for program in basename cat dirname expr grep ls rm sed; do
  ln -s "$(command -v $program)" "$tmp/bin/$program"
done
runs 1 "no gnuplot" env PATH="$tmp/bin" "$cuatomic" bench -b cuda scatter --plot="$tmp/a.svg" && one_line "no gnuplot"
says err "no gnuplot" '^cuatomic: gnuplot was not found; .*needs the program gnuplot$'
for program in "$tmp/nothing" "$tmp/empty" nothing; do
  CUATOMIC_GNUPLOT=$program refused 1 "gnuplot is $program" -b cuda scatter --plot="$tmp/a.svg"
  says err "gnuplot is $program" "^cuatomic: $program was not found; "
done
[ ! -e "$tmp/measured" ] || fail "no gnuplot: something was measured"
[ ! -e "$tmp/a.svg" ] || fail "no gnuplot: a file"

# a program in place of gnuplot, from the script on standard input
fake() {
  cat - >"$tmp/gnuplot"
  chmod +x "$tmp/gnuplot"
}
export CUATOMIC_GNUPLOT=$tmp/gnuplot
cat >"$tmp/programs/bench-scatter" <<'END'
#!/bin/sh
printf '%%columns\tGB/s\t\n%%row\tfirst\tours\tours\tGB/s\t\tconverged\t1\t2\t3\n' >&"$CUATOMIC_BENCH_RECORDS"
END
plot_fails() { # plot_fails NAME PATTERN: the plot of the row fails with one line, and leaves no file
  runs 1 "$1" "$cuatomic" bench -b cuda scatter --plot="$tmp/a.svg" --csv="$tmp/kept.csv"
  says err "$1" "^cuatomic: $tmp/a.svg: $2\$"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$1: not one line on stderr"
  says out "$1" '^first +ours +2\.000 '
  [ "$(wc -l <"$tmp/kept.csv")" = 2 ] || fail "$1: the rows were not kept"
  ! compgen -G "$tmp/a.svg*" >/dev/null || fail "$1: a file is left"
}
fake <<'END'
#!/bin/sh
printf 'half a plot'
printf '\nplot x\n     ^\n   line 7: \033 broken\n\n' >&2
exit 3
END
plot_fails "gnuplot fails" 'gnuplot failed with status 3: line 7: \? broken'
fake <<<'#!/bin/sh
kill -9 $$'
plot_fails "gnuplot is killed" 'gnuplot was ended by signal 9 \(Killed\)'
fake <<<'#!/bin/sh'
plot_fails "gnuplot does nothing" 'gnuplot wrote nothing'
# gnuplot ignores a full disk
fake <<<'#!/bin/sh
echo "<svg> and more than the last bytes </"'
plot_fails "gnuplot writes a part" 'gnuplot could not write the whole picture'
fake <<<'#!/nonexistent/interpreter'
plot_fails "gnuplot does not start" 'gnuplot failed with status 127: No such file or directory'
fake <<<'#!/bin/sh
cat
echo "</svg>"'
echo old >"$tmp/old.svg"
runs 0 "a script" "$cuatomic" bench -b cuda scatter --plot="$tmp/old.svg"
grep -q '^set terminal svg ' "$tmp/old.svg" || fail "a script: it was not the input of gnuplot"
runs 1 "a missing folder" "$cuatomic" bench -b cuda scatter --plot="$tmp/missing/a.svg" && one_line "a missing folder"
says err "a missing folder" "^cuatomic: $tmp/missing/a.svg: No such file or directory\$"
if [ "$(id -u)" != 0 ]; then
  chmod a-w "$tmp/empty"
  runs 1 "a read-only folder" "$cuatomic" bench -b cuda scatter --plot="$tmp/empty/a.svg" && one_line "a read-only folder"
  says err "a read-only folder" ": Permission denied\$"
fi
cp "$tmp/programs/bench-scatter" "$tmp/programs/bench-group"
printf '#!/bin/sh\necho "a wrong result" >&2\nexit 1\n' >"$tmp/programs/bench-group"
runs 1 "a run that fails without rows" "$cuatomic" bench -b cuda group --plot="$tmp/a.svg"
[ "$(cat "$tmp/err")" = "a wrong result" ] || fail "a run that fails without rows: another line on stderr"
! compgen -G "$tmp/a.svg*" >/dev/null || fail "a run that fails without rows: a file"
runs 1 "a run that fails with rows" "$cuatomic" bench -b cuda group scatter --plot="$tmp/part.svg"
[ -s "$tmp/part.svg" ] || fail "a run that fails with rows: no file"
# a signal stops gnuplot
if env --default-signal=TERM true 2>/dev/null; then
  fake <<<"#!/bin/sh
: >'$tmp/started'
exec sleep 60"
  env --default-signal=TERM "$cuatomic" bench -b cuda scatter --plot="$tmp/a.svg" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  for ((i = 0; i < 600; i++)); do
    [ ! -e "$tmp/started" ] || break
    sleep 0.1
  done
  kill -TERM $pid
  rc=0
  wait $pid || rc=$?
  [ $rc = 143 ] || fail "a signal: exit status $rc"
  ! compgen -G "$tmp/a.svg*" >/dev/null || fail "a signal: a file is left"
fi
unset CUATOMIC_GNUPLOT

refused 1 "a missing file" --from="$tmp/missing.json"

if ! grep -q '^#define HAVE_JANSSON 1' "$top_builddir/config.h"; then
  says err "no reader" "^cuatomic: $tmp/missing.json: this build has no JSON reader"
  echo "this build has no jansson: files are not read"
  end 77
fi
says err "a missing file" "^cuatomic: $tmp/missing.json: .*No such file or directory"
if ! python=$(command -v python3); then
  echo "python3 was not found: no file is made"
  end 77
fi
# python_says NAME ARGUMENT...: the program on standard input succeeds.
python_says() {
  local what=$1
  shift
  if "$python" - "$@" >"$tmp/out" 2>"$tmp/err"; then
    passed=$((passed + 1))
  else
    fail "$what: the second program disagrees"
  fi
}

# ---- rows of a file ----

# file NAME: the rows that the lines of Python on standard input add by row(bench, case, way, kind, unit, sample...)
file() {
  {
    cat <<'END'
import json, statistics, sys
rows = []
machine = {"cpu": "A CPU", "cores": 4, "memory": 2.5e9, "os": "An OS", "gpu": "A GPU", "driver": "580.1"}
def row(bench, case, way, kind, unit, *samples, note="", state=(None, None, None)):
    low, high = (min(samples), max(samples)) if samples else (None, None)
    rows.append({"bench": bench, "case": case, "way": way, "kind": kind, "unit": unit, "note": note,
                 "median": statistics.median(samples) if samples else None, "low": low, "high": high,
                 "ceiling_share": None, "peer_ratio": None, "reason": "samples" if samples else None,
                 "noisy": len(samples) >= 6 and high - low > 0.05 * statistics.median(samples),
                 **dict(zip(("sm_mhz", "memory_mhz", "throttle"), state)), "samples": samples})
END
    cat
    cat <<'END'
json.dump({"schema": 1, "version": "0.1.0", "date": "2026-11-21T10:20:30Z", "complete": False, "machine": machine,
           "rows": rows}, open(sys.argv[1], "w"))
END
  } >"$tmp/file.py"
  "$python" "$tmp/file.py" "$tmp/$1" 2>"$tmp/err" || fail "$1 was not made"
}

file a.json <<'END'
row("locks", "one", "limit", "ceiling", "M/s", 10, 10, 10)
row("locks", "one", "peer \"A\"", "peer", "M/s", 4, 4, 5, 5, 6, 6, note="a\u20ac note")
row("locks", "one", "ours\n", "ours", "M/s", 0.1, 8.125, 6.3, 7, 1e-300)
row("locks", "two", "none", "ours", "M/s")
row("reduce", "two", "ours", "ours", "GB/s", 3, state=(1980, 2619.5, "power cap, heat"))
row("reduce", "two", "peer", "peer", "us", 4, state=(1755.25, None, ""))
row("reduce", "two", "peer", "peer", "us", 5)
row("reduce", "two", "ours", "ours", "us", 10)
END
runs 0 "round trip" "$cuatomic" bench --from="$tmp/a.json" --json="$tmp/b.json" --csv="$tmp/b.csv"
python_says "round trip" "$tmp/a.json" "$tmp/b.json" "$tmp/b.csv" <<'END'
import csv, json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:3])
for name in "schema", "version", "date", "complete", "machine":
    assert a[name] == b[name], name
ratios = [(r.pop("ceiling_share"), r.pop("peer_ratio")) for r in b["rows"]]
for r in a["rows"]:
    del r["ceiling_share"], r["peer_ratio"]
assert a["rows"] == b["rows"]
assert ratios[:4] == [(1, None), (0.5, 1), (0.63, 1.26), (None, None)], ratios
# a way that returns begins a case
assert ratios[4:] == [(None, None), (None, 1), (None, 1), (None, 0.5)], ratios
assert [r["throttle"] for r in csv.DictReader(open(sys.argv[3], newline=""))][4:6] == ["power cap, heat", ""]
assert [r["way"] for r in csv.DictReader(open(sys.argv[3], newline=""))] == [r["way"] for r in a["rows"]]
END
# a file of an older version has no clocks
"$python" -c 'import json, sys
d = json.load(open(sys.argv[1]))
for r in d["rows"]:
    del r["sm_mhz"], r["memory_mhz"], r["throttle"]
json.dump(d, sys.stdout)' "$tmp/a.json" >"$tmp/old.json"
runs 0 "a file without clocks" "$cuatomic" bench --from="$tmp/old.json" --filter='^reduce' --csv
says out "a file without clocks" '^reduce,two,ours,ours,GB/s,,3,3,3,,,samples,false,,,,3'
runs 0 "second round trip" "$cuatomic" bench --from="$tmp/b.json" --json
cmp "$tmp/out" "$tmp/b.json" || fail "second round trip: the files differ"
runs 0 "table" "$cuatomic" bench --from="$tmp/a.json"
[ ! -s "$tmp/err" ] || fail "table: something on stderr"
says out "table" '^A GPU, driver 580\.1; cuatomic 0\.1\.0, 2026-11-21T10:20:30Z; rows are missing$'
says out "table" '^case +way +M/s .* runs +note$'
says out "table" '^case +way +GB/s .* runs *$'
says out "table" '^one +peer "A" +5\.000 \(4\.000 to 6\.000\) \* +1\.00 +0\.500 +6 samples, noisy +a€ note$'
says out "table" '^one +ours\? +6\.300 '
says out "table" '^two +none +- not available '
[ "$(grep -c . "$tmp/out")" = 12 ] || fail "table: not 12 lines"
runs 0 "a name" "$cuatomic" bench --from="$tmp/a.json" reduce
[ "$(grep -c '^two ' "$tmp/out")" = 4 ] && [ "$(grep -c '^one ' "$tmp/out")" = 0 ] || fail "a name: other rows"
runs 0 "filter of a file" "$cuatomic" bench --from="$tmp/a.json" --filter='^locks/one/(limit|ours)' --json
cp "$tmp/out" "$tmp/c.json"
python_says "filter of a file" "$tmp/c.json" <<'END'
import json, sys
assert [(r["way"], r["peer_ratio"]) for r in json.load(open(sys.argv[1]))["rows"]] == [("limit", None), ("ours\n", None)]
END
refused 1 "no row matches" --from="$tmp/a.json" --filter=nothing --json="$tmp/none.json"
says err "no row matches" "^cuatomic: $tmp/a.json: no row matches 'nothing'\$"
[ ! -e "$tmp/none.json" ] || fail "no row matches: a file"
refused 1 "no row of a name" --from="$tmp/a.json" append

# a file in place of the run, compared with a reference
runs 0 "from and against" "$cuatomic" bench --from="$tmp/a.json" --against="$tmp/b.json" locks
says out "from and against" '^one +limit +10\.00 '
says out "from and against" '^SAME +\+0\.0 % +10\.00 +10\.00 +M/s +locks/one/limit$'
says out "from and against" "^0 of 4 rows are at least 5 % slower than in $tmp/b\.json\$"
"$python" -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["machine"]["gpu"] = "B"
for r in d["rows"]:
    for name in "median", "low", "high":
        r[name] = r[name] and r[name] * 4
json.dump(d, sys.stdout)' "$tmp/b.json" >"$tmp/fast.json"
runs 1 "from, slower" "$cuatomic" bench --from="$tmp/a.json" --against="$tmp/fast.json" --json="$tmp/d.json"
says out "from, slower" '^SLOWER +-75\.0 % .* locks/one/peer "A"$'
says err "from, slower" "^cuatomic: $tmp/fast\.json: its GPU is 'B', $tmp/a\.json is of 'A GPU'\$"
cmp "$tmp/b.json" "$tmp/d.json" || fail "from, slower: the files differ"
refused 1 "from and no reference" --from="$tmp/a.json" --against="$tmp/missing.json" --json="$tmp/none.json"
[ ! -e "$tmp/none.json" ] || fail "from and no reference: a file"

# a file of the command itself
runs 0 "a run" "$cuatomic" bench -b cpu -t 1 -q locks --filter='one thread/(pthread_spin|ceil)' --json="$tmp/run.json"
runs 0 "a run, again" "$cuatomic" bench --from="$tmp/run.json" --json
cmp "$tmp/out" "$tmp/run.json" || fail "a run, again: the files differ"

from_refused() { # from_refused NAME PATTERN: the file on standard input
  cat >"$tmp/bad.json"
  refused 1 "from, $1" --from="$tmp/bad.json" --csv="$tmp/bad.csv"
  says err "from, $1" "^cuatomic: $tmp/bad.json: $2"
  [ ! -e "$tmp/bad.csv" ] || fail "from, $1: a file"
}
from_refused "no JSON" 'line 1: ' <<<'hello'
from_refused "an array" 'not a file of cuatomic bench --json$' <<<'[]'
from_refused "another schema" 'the schema is not 1$' <<<'{"schema": 2, "rows": []}'
from_refused "no rows" 'no rows$' <<<'{"schema": 1}'
from_refused "no machine" 'no version, date or machine$' <<<'{"schema": 1, "version": "1", "date": "d", "rows": []}'
# edited LINE-OF-PYTHON: a.json after the line, which changes the second row or the document
edited() {
  "$python" -c "import json, sys
d = json.load(open(sys.argv[1]))
row = d['rows'][1]
$1
json.dump(d, sys.stdout)" "$tmp/a.json"
}
while read -r line; do
  from_refused "$line" 'row 2 is malformed$' < <(edited "$line")
done <<'END'
row["median"] = 5.001
row["median"] = None
row["samples"] = []
row["samples"] = None
row["samples"][0] = "4"
row["samples"][0] = -4
row["samples"] = [5] * 102
row["samples"] = [1e300]; row["median"] = 1e300
row["reason"] = "never"
row["reason"] = None
row["kind"] = "other"
row["sm_mhz"] = -1
row["memory_mhz"] = "2619"
row["throttle"] = 0
row["bench"] = 1
del row["note"]
d["rows"][1] = 7
END

# ---- plots ----

echo '{"schema": 1, "version": "1", "date": "d", "complete": true, "machine": {"os": "o"}, "rows": []}' >"$tmp/none.json"
CUATOMIC_GNUPLOT=/bin/cat refused 1 "a plot of no rows" --from="$tmp/none.json" --plot="$tmp/none.svg"
says err "a plot of no rows" "^cuatomic: $tmp/none.svg: there is no row to plot\$"
[ ! -e "$tmp/none.svg" ] || fail "a plot of no rows: a file"
file many.json <<'END'
for i in range(4001):
    row("reduce", "c%d" % (i // 10), "w%d" % i, "ours", "GB/s", 1)
END
CUATOMIC_GNUPLOT=/bin/cat runs 1 "too many rows" "$cuatomic" bench --from="$tmp/many.json" --plot="$tmp/many.svg"
says err "too many rows" "^cuatomic: $tmp/many.svg: there are too many rows for a plot; "
CUATOMIC_GNUPLOT=/bin/cat runs 1 "a high plot" "$cuatomic" bench --from="$tmp/many.json" --plot="$tmp/many.svg" \
  --filter='/c[0-2]'
says err "a high plot" "^cuatomic: $tmp/many.svg: the plot is too high; "

if ! command -v gnuplot >/dev/null; then
  echo "gnuplot was not found: nothing is drawn"
  end 77
fi

# drawn NAME: the plot of NAME.json, quietly, as SVG
drawn() {
  runs 0 "plot of $1" "$cuatomic" bench --from="$tmp/$1.json" --plot="$tmp/$1.svg" "${@:2}"
  [ ! -s "$tmp/err" ] || fail "plot of $1: something on stderr"
}

# the rows of the summary, which is also a file
runs 0 "plot of the summary" "$cuatomic" bench -b cpu -q --seconds=1 --plot="$tmp/summary.svg" --json="$tmp/summary.json"
[ ! -s "$tmp/err" ] || fail "plot of the summary: something on stderr"
says out "plot of the summary" '^machine '
for name in append atomics copy fill hashmap histogram latency launch locks read reduce write; do
  says out "plot of the summary" "^$name "
  grep -q ">${name}[ <:,]" "$tmp/summary.svg" || fail "plot of the summary: no $name"
done
cat >"$tmp/svg.py" <<'END'
import re, sys, xml.etree.ElementTree
SVG = "{http://www.w3.org/2000/svg}"
root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
texts = [t.text.strip() for t in root.iter(SVG + "text") if t.text and t.text.strip()]
paths = [p for p in root.iter(SVG + "path") if p.get("class") != "gridline"]
dashed = [p for p in paths if p.get("stroke-dasharray")]
plots = [g for g in root.iter(SVG + "g") if re.match("gnuplot_plot_", g.get("id") or "")]
height = float(root.get("height"))
def pairs(text):
    return [tuple(map(float, xy.split(","))) for xy in re.findall(r"[ML]\s*([-\d.]+,[-\d.]+)", text)]
def points(p):
    return pairs(p.get("d"))
# the lines of the data, without whiskers, axes and key
def lines(n):
    runs = ["M" + run for p in paths for run in p.get("d").split("M")[1:] if p.get("stroke") and "Z" not in run]
    return [pairs(run) for run in runs if len(pairs(run)) >= n and pairs(run)[0][0] > 50]
def has(*wanted):
    for text in wanted:
        assert text in texts, (text, texts)
def lacks(*unwanted):
    for text in unwanted:
        assert text not in texts, text
assert root.get("width") == "900"
END
shows() { # shows NAME: the statements on standard input hold for NAME.svg
  cat "$tmp/svg.py" - >"$tmp/shows.py"
  if "$python" "$tmp/shows.py" "$tmp/$1.svg" >"$tmp/out" 2>"$tmp/err"; then
    passed=$((passed + 1))
  else
    fail "plot of $1: other contents"
  fi
}

file cells.json <<'END'
for case, bytes in ("aligned", 1), ("aligned", 4), ("strided", 4):
    for unroll in 1, 2, 8:
        for block in 128, 256:
            plural = "s" if bytes > 1 else ""
            row("read", f"{case}, {bytes} byte{plural}", f"block {block}, unroll {unroll}", "ours", "GB/s",
                *[100.5 * bytes * unroll + block] * 3)
row("copy", "aligned, 8 bytes", "1 thread, unroll 1", "ours", "GB/s", 77)
row("copy", "aligned, 8 bytes", "2 threads, unroll 1", "ours", "GB/s", 55)
row("copy", "aligned, 8 bytes", "2 threads, unroll 2", "ours", "GB/s")
row("copy", "aligned, 8 bytes", "memcpy", "peer", "GB/s", 33)
for bytes in 4, 8:
    row("write", f"aligned, {bytes} bytes", "ceiling: best of 16 bytes", "ceiling", "GB/s", 600 + bytes)
    row("write", f"offset, {bytes} bytes", "ceiling: best of 16 bytes", "ceiling", "GB/s", 600)
    row("write", f"strided, {bytes} bytes", "ceiling: best of 16 bytes", "ceiling", "GB/s", 500)
    row("write", f"strided, {bytes} bytes", "block 64, unroll 4", "ours", "GB/s", 123)
    for unroll in 1, 2:
        row("write", f"aligned, {bytes} bytes", f"block 32, unroll {unroll}", "ours", "GB/s", 20 * unroll)
        row("write", f"offset, {bytes} bytes", f"block 32, unroll {unroll}", "ours", "GB/s", 30 * unroll)
END
drawn cells
shows cells <<'END'
has("read: A GPU", "copy: A GPU", "cuatomic 0.1.0, 2026-11-21T10:20:30Z", "aligned", "strided", "unroll", "operand, bytes",
    "GB/s", "1", "2", "4", "8")
# the best of the blocks
has("356.5", "457.0", "1060", "658.0", "3472", "77.00", "memcpy", "33.00", "peer")
lacks("228.5", "55.00", "128", "256")
# the ceiling above the cells; cells of a single column are bars
has("ceiling: best of 16 bytes, 604.0 to 608.0", "ceiling: best of 16 bytes, 600.0", "strided, 4 bytes", "strided, 8 bytes",
    "block 64, unroll 4")
assert texts.count("500.0") == 2 and texts.count("ceiling: best of 16 bytes") == 2
lacks("block 32, unroll 1")
assert texts.count("operand, bytes") == 5 and texts.count("658.0") == 2
END

file lines.json <<'END'
sizes = "16 KiB", "256 KiB", "4 MiB", "64 MiB", "4 GiB"
for size in reversed(sizes):
    row("random", "load 8 bytes", size, "ours", "G/s", 10, 11, 12)
    row("random", "CAS 64 bits", size, "ours", "G/s", 2, 2, 2)
row("random", "load 8 bytes", "ceiling: reads", "ceiling", "G/s", 30)
for size in sizes:
    row("latency", "load by footprint", size, "ours", "ns", *[len(size) * 100, 700, 705, 710, 715, 900])
row("latency", "atomics", "add u32, global, gpu", "ours", "ns", 500, 501, 502)
row("latency", "fences", "system", "ours", "ns", 900)
for way in "1 address", "32 addresses", "1 Ki addresses", "1 Mi addresses":
    row("atomics", "add u32, global, gpu", way, "ours", "M/s", 1000)
    row("atomics", "CAS u64, global, gpu", way, "ours", "M/s", 20)
    row("atomics", "add u32, shared", way, "ours", "M/s", 50)
    row("atomics", "max u32, shared", way, "ours", "M/s", 40)
row("atomics", "add u32, shared", "ceiling: a", "ceiling", "M/s", 90)
row("atomics", "max u32, shared", "ceiling: a", "ceiling", "M/s", 90)
row("atomics", "add u32, global, gpu", "ceiling: b", "ceiling", "M/s", 2000)
row("atomics", "CAS u64, global, gpu", "ceiling: b", "ceiling", "M/s", 2500)
row("atomics", "add u32, global, gpu", "none", "peer", "M/s")
END
drawn lines
shows lines <<'END'
has("random: A GPU", "G/s", "footprint", "16 KiB", "256 KiB", "4 MiB", "64 MiB", "4 GiB", "load 8 bytes", "CAS 64 bits",
    "load 8 bytes: reads", "2", "5", "10", "20")
has("latency: A GPU", "load by footprint", "ns", "add u32, global, gpu", "501.0", "fences", "system", "900.0", "cuatomic")
has("atomics: A GPU", "addresses", "M/s", "1", "32", "1 Ki", "1 Mi", "none", "not available")
# a panel for each memory; a ceiling of several lines is a single line
has("global, gpu", "CAS u64", "shared", "max u32", "add u32: b", "CAS u64: b")
assert texts.count("ceiling: a") == 1 and texts.count("add u32") == 2, texts
# in order, though the file is not
ours = [line for line in lines(4) if len(line) in (4, 5)]
assert [len(line) for line in ours] == [5, 5, 5, 4, 4, 4, 4], ours
assert all(line == sorted(line) for line in ours)
# many points are not beside each other
assert [x for x, y in ours[0]] == [x for x, y in ours[1]]
# log 2: equal distances of x; the order of the values, upwards
for line in ours[:1]:
    d = [b[0] - a[0] for a, b in zip(line, line[1:])]
    assert abs(d[0] - d[1]) < 0.1 and abs(d[0] - d[2]) < 0.1 and abs(d[3] - 1.5 * d[0]) < 0.1, d
assert ours[1][0][1] > ours[0][0][1] and ours[4][0][1] > ours[3][0][1]
# a ceiling is a dashed line from side to side
level = [p for p in dashed if len(points(p)) == 2 and points(p)[0][1] == points(p)[1][1]]
long = [p for p in level if points(p)[1][0] - points(p)[0][0] > 400]
assert len(long) == 4 and points(long[0])[0][1] < ours[0][0][1], level
# whiskers: the interval of the latency from 500 to 900 ns spans more than that of the random loads
def whiskers(line):
    x = line[0][0]
    return max((abs(a[1] - b[1]) for p in paths for a, b in zip(points(p), points(p)[1:])
                if abs(a[0] - x) < 0.02 and abs(b[0] - x) < 0.02 and abs(a[1] - line[0][1]) < 150), default=0)
assert whiskers(ours[2]) > 20, whiskers(ours[2])
END

file locks.json <<'END'
for case in "one thread", "all threads, 132 x 256", "a thread a block, 132 x 1", "one block, shared memory":
    row("locks", case, "ceiling: one thread that never waits", "ceiling", "M/s", 5)
    for way in range(13):
        row("locks", case, f"lock {way}", "peer" if way == 0 else "ours", "M/s", 1 + way)
for load in 0.5, 0.8:
    row("hashmap", f"4+4, {load}, find hits", "ceiling: reads", "ceiling", "M/s", 37)
    row("hashmap", f"4+4, {load}, find hits", "find_n", "ours", "M/s", 30)
    row("hashmap", f"8+8, {load}, find hits", "find_n", "ours", "M/s", 20)
row("hashmap", "8+8, 0.8, build", "build_n", "ours", "M/s", 20)
row("hashmap", "add, zipf 1.0", "update_n", "ours", "M/s", 10)
for unit in "GB/s", "us":
    row("reduce", "sum f32", "reads", "ceiling", unit, 100)
    row("reduce", "sum f32", "cub", "peer", unit, 80)
    row("reduce", "sum f32", "cua_reduce", "ours", unit, 70, 75, 80, 85, 90, 60)
END
drawn locks
shows locks <<'END'
has("locks: A GPU", "threads that contend", "1", "132", "33792", "lines 1 to 12 of 14", "lines 13 to 14 of 14",
    "ceiling: one thread that never waits", "lock 0", "lock 12", "one block, shared memory", "M/s")
has("hashmap: A GPU", "find hits", "load factor", "0.5", "0.8", "4+4: find_n", "8+8: find_n", "4+4: ceiling: reads",
    "8+8, 0.8, build", "build_n", "add, zipf 1.0", "update_n")
has("reduce: A GPU", "sum f32", "GB/s", "us", "ceiling", "peer", "cuatomic", "77.50", "cub")
ours = [line for line in lines(3) if len(line) == 3]
assert len(ours) == 14
# few points are beside each other, in the order of the key and of the contenders
for line, after in zip(ours[:11], ours[1:12]):
    for k in range(3):
        assert 1 < after[k][0] - line[k][0] < 5, (line, after)
assert all(ours[11][k][0] < ours[0][k + 1][0] for k in range(2))
# the ceilings of the bars: locks in a block, two of the reductions
upright = [p for p in dashed if len(points(p)) == 2 and points(p)[0][0] == points(p)[1][0]]
assert len(upright) == 3, len(upright)
assert texts.count("sum f32") == 2
END

# the name of the CPU without a GPU, and a file in place of another
file cpu.json <<'END'
machine["gpu"] = None
row("locks", "one thread", "mutex", "peer", "M/s", 1, 2, 3)
row("locks", "all threads, 4", "spin", "peer", "M/s")
END
echo old >"$tmp/cpu.svg"
drawn cpu locks --filter='one thread'
shows cpu <<'END'
has("locks: A CPU", "one thread", "mutex", "2.000")
END
drawn cpu --filter=spin
shows cpu <<'END'
has("spin", "not available")
END
runs 0 "PNG" "$cuatomic" bench --from="$tmp/lines.json" --plot="$tmp/lines.png"
[ ! -s "$tmp/err" ] || fail "PNG: something on stderr"
python_says "PNG" "$tmp/lines.png" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
width, height = struct.unpack(">II", data[16:24])
assert width == 900 and height > 900, (width, height)
END
runs 0 "a plot of a run" "$cuatomic" bench -b cuda scatter --plot="$tmp/run.svg"
shows run <<'END'
has("first", "ours", "2.000", "GB/s")
END

# Names are never evaluated, and every name is drawn as it is.
file hostile.json <<END
import os
owned = "$tmp/owned"
bad = ["\`touch %s\`" % owned, "\"; system(\"touch %s\"); #" % owned, "'; system('touch %s'); #" % owned, "@owned", "\$(touch %s)" % owned,
       "a\nsystem 'touch %s'\n" % owned, "!touch %s" % owned, "END\n!touch %s\n" % owned, "\\\\", "\\\\\"", "%s %n %d %%", "{/Symbol a}^2_3", "<b>&bogus;&amp;",
       "\ufffe\uffff\u009b\x7f\x01", "\u20ac \U0001f600", "]]>", "x" * 1000, "", "   ", "\u20ac" * 500]
for text in bad:
    machine["gpu"] = bad[len(rows) % len(bad)]
    for n in 1, 2:
        row("random", text, "%d KiB" % n, "ours", "G/s", n, 1e-300, 1e299)
        row("hashmap", "%s, 0.%d, %s" % (text, n, text), text, "ours", text, n)
        row("locks", "all threads, %d" % n, text, "peer", "M/s", n)
        row("read", text + ", 4 bytes", "block 1, unroll %d" % n, "ours", text, n)
    row(text, text, text, "ours", text, 1, note=text)
    row(text, text, text, "ceiling", text, 0, 0)
    row("random", text, text, "ceiling", "G/s", 3)
machine["gpu"] = bad[0]
END
drawn hostile
shows hostile <<'END'
tmp = sys.argv[1].rsplit("/", 1)[0]
has("random: `touch %s/owned`" % tmp if len(tmp) < 30 else texts[0], "@owned", "{/Symbol a}^2_3", "<b>&bogus;&amp;", "%s %n %d %%", "]]?",
    "\\", "\u20ac \U0001f600", "x" * 41 + "...", "?????")
END
for ((k = 0; k < 20; k++)); do
  "$python" - "$tmp/hostile.json" "$tmp/part.json" $k <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
d["machine"]["gpu"] = d["version"] = d["date"] = d["rows"][11 * int(sys.argv[3])]["case"]
d["rows"] = d["rows"][:20]
json.dump(d, open(sys.argv[2], "w"))
END
  drawn part
  shows part </dev/null
done
runs 0 "hostile PNG" "$cuatomic" bench --from="$tmp/hostile.json" --plot="$tmp/hostile.png"
[ ! -e "$tmp/owned" ] || fail "hostile names: a command was executed"
(cd "$tmp" && ! compgen -G '*.svg.??????' >/dev/null) || fail "temporary files are left"

end 0
