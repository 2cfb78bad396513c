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

end 0
