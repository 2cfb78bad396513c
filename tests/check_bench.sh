#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cuatomic bench: its records, its table, JSON and CSV, the comparison of two files, signals, progress and refusals.
# The benchmarks are scripts that write records with fixed samples, so no result depends on the machine's speed. Rows
# of the CPU are only counted.
set -uo pipefail

# shellcheck source=tests/cli_runs.sh
. "${top_srcdir:?}/tests/cli_runs.sh"
# SIGQUIT must leave no file
ulimit -c 0
unset CUATOMIC_BENCH_RECORDS CUATOMIC_BENCH_FILTER CUATOMIC_BENCH_SECONDS CUATOMIC_BENCH_SUMMARY CUATOMIC_BENCH_SIZE CUATOMIC_DATA_DIR CUDA_VISIBLE_DEVICES
exec </dev/null

# refused STATUS NAME ARGUMENT...: bench ends with this status and a single line on stderr, and prints nothing.
refused() {
  local expected=$1 what=$2
  shift 2
  runs "$expected" "$what" "$cuatomic" bench "$@" && one_line "$what"
}

# ---- programs that write records ----

mkdir "$tmp/programs"
export CUATOMIC_BENCH_DIR=$tmp/programs
# program NAME: from the script on standard input. "row CASE WAY KIND SAMPLE..." writes a row.
program() {
  {
    cat <<'END'
#!/bin/sh
record() {
  line=$1
  shift
  for field; do line="$line	$field"; done
  printf '%s\n' "$line" >&"$CUATOMIC_BENCH_RECORDS"
}
row() {
  case=$1 way=$2 kind=$3
  shift 3
  record %row "$case" "$way" "$kind" GB/s "a note" converged "$@"
}
END
    cat
  } >"$CUATOMIC_BENCH_DIR/bench-$1"
  chmod +x "$CUATOMIC_BENCH_DIR/bench-$1"
}

program scatter <<'END'
echo "a line of text"
record %head program scatter
record %head device 'A "GPU"'
record %head driver 580.1
record %head versions v
record %plan 6
record %columns GB/s "the note"
record %case first
row first limit ceiling 10 10 10 10 10 10 10 10 10
row first "peer A" peer 4 4 4 4 4 4 4 4 4
row first "peer, \"B\"" peer 5 5 5 5 5 5 5 5 5
row first ours ours 6 6.25 6.5 6 7 8 6.5 6.125 0.1
record %case second
row second none ours
row second 'a\\b\tc\nx' ours 1 2
END

runs 0 "table" "$cuatomic" bench -b cuda scatter
[ ! -s "$tmp/err" ] || fail "table: something on stderr"
[ "$(grep -c '^case  ' "$tmp/out")" = 1 ] || fail "table: not one head"
says out "table" '^a line of text$'
says out "table" '^case +way +GB/s +\(least to most\) +x peer +of ceiling +runs +the note$'
says out "table" '^first +limit +10\.00 \(10\.00 to 10\.00\) +- +1\.000 +9 converged +a note$'
says out "table" '^first +peer A +4\.000 .*\) +1\.00 +0\.400 '
says out "table" '^first +peer, "B" +5\.000 .*\) +1\.00 +0\.500 '
says out "table" '^first +ours +6\.250 \(0\.1000 to 8\.000\) +1\.25 +0\.625 +9 converged, noisy +a note$'
says out "table" '^second +none +- not available '
[ "$(grep -c '^first\|^second' "$tmp/out")" = 6 ] || fail "table: not each row once"

# without a standard output, no file gets its number
runs 1 "no standard output" sh -c '"$0" bench -b cuda --json="$1" scatter >&-' "$cuatomic" "$tmp/closed.json"
says err "no standard output" 'standard output'
[ "$(head -c 1 "$tmp/closed.json")" = '{' ] || fail "no standard output: text in the file"
program reduce <<'END'
record %head program reduce
record %columns GB/s "the note"
record %case first
row first ours ours 6 6 6
printf '%%row\tfirst' >&"$CUATOMIC_BENCH_RECORDS"
END
runs 1 "a record that is not whole" "$cuatomic" bench -b cuda reduce
says err "a record that is not whole" '^cuatomic: bench reduce: the last record is not whole$'

# ---- JSON and CSV ----

check_json='
import json, sys
def refuse(name):
    raise ValueError(name)
with open(sys.argv[1], encoding="utf-8") as f:
    d = json.load(f, parse_constant=refuse)
rows = {(r["case"], r["way"]): r for r in d["rows"]}
assert d["schema"] == 1 and d["complete"] is True and d["version"]
assert len(d["date"]) == 20 and d["date"][-1] == "Z", d["date"]
m = d["machine"]
assert m["gpu"] == "A \"GPU\"" and m["driver"] == "580.1", m
assert m["cpu"] and m["cores"] >= 1 and m["memory"] > 1e6 and m["os"], m
assert len(d["rows"]) == 6
ours = rows["first", "ours"]
assert ours["samples"] == [6, 6.25, 6.5, 6, 7, 8, 6.5, 6.125, 0.1]
assert (ours["low"], ours["median"], ours["high"]) == (6, 6.25, 7)
assert ours["ceiling_share"] == 0.625 and ours["peer_ratio"] == 1.25
assert ours["noisy"] is True and ours["reason"] == "converged"
assert (ours["bench"], ours["kind"], ours["unit"], ours["note"]) == ("scatter", "ours", "GB/s", "a note")
assert rows["first", "limit"]["peer_ratio"] is None and rows["first", "limit"]["noisy"] is False
assert rows["first", "peer A"]["peer_ratio"] == 0.8
none = rows["second", "none"]
assert none["samples"] == [] and none["median"] is None and none["reason"] is None
odd = rows["second", "a\\b\tc\nx"]
assert odd["samples"] == [1, 2] and odd["median"] == 1.5 and odd["ceiling_share"] is None
'
runs 0 "JSON" "$cuatomic" bench -b cuda scatter --json="$tmp/a.json" --csv="$tmp/a.csv"
says out "JSON beside the table" '^first +ours '
python_says "JSON" "$tmp/a.json" <<<"$check_json"
runs 0 "JSON on stdout" "$cuatomic" bench -b cuda scatter --json
cp "$tmp/out" "$tmp/b.json"
python_says "JSON on stdout" "$tmp/b.json" <<<"$check_json"
runs 0 "JSON to -" "$cuatomic" bench -b cuda scatter --json=-
cp "$tmp/out" "$tmp/b.json"
python_says "JSON to -" "$tmp/b.json" <<<"$check_json"
check_csv='
import csv, sys
with open(sys.argv[1], newline="", encoding="utf-8") as f:
    text = f.read()
assert text.count("\r\n") == 7, text
rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
assert len(rows) == 6
assert [r["way"] for r in rows] == ["limit", "peer A", "peer, \"B\"", "ours", "none", "a\\b\tc\nx"]
ours = rows[3]
assert [float(v) for v in ours["samples"].split()] == [6, 6.25, 6.5, 6, 7, 8, 6.5, 6.125, 0.1]
assert float(ours["peer_ratio"]) == 1.25 and ours["noisy"] == "true" and float(ours["high"]) == 7
assert rows[4]["median"] == "" and rows[4]["samples"] == "" and rows[0]["peer_ratio"] == ""
assert all(None not in r for r in rows)
'
python_says "CSV" "$tmp/a.csv" <<<"$check_csv"
runs 0 "CSV on stdout" "$cuatomic" bench -b cuda scatter --csv
cp "$tmp/out" "$tmp/b.csv"
cmp "$tmp/a.csv" "$tmp/b.csv" || fail "CSV: file and standard output differ"

# The schema has each member of the file, and no other.
python_says "schema" "$top_srcdir/doc/bench-schema.json" "$tmp/a.json" <<'END'
import json, sys
schema, data = (json.load(open(name)) for name in sys.argv[1:])
def check(s, v, where):
    types = s.get("type", [])
    names = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
             "null": type(None)}
    types = [types] if isinstance(types, str) else types
    assert not types or any(isinstance(v, names[t]) and (t == "boolean" or not isinstance(v, bool)) for t in types), where
    assert "const" not in s or v == s["const"], where
    assert "enum" not in s or v in s["enum"], where
    assert "minimum" not in s or v is None or v >= s["minimum"], where
    if isinstance(v, dict):
        assert set(v) == set(s["required"]) == set(s["properties"]), (where, set(v) ^ set(s["properties"]))
        for name in v:
            check(s["properties"][name], v[name], where + "." + name)
    if isinstance(v, list):
        for item in v:
            check(s["items"], item, where + "[]")
assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
check(schema, data, "file")
END

# Of times, the least is the best.
program reduce <<'END'
record %columns ns ""
record %case wait
for way in 'limit ceiling 2' 'limit2 ceiling 1' 'peer1 peer 8' 'peer2 peer 4' 'us ours 2' 'none ours'; do
  set -- $way
  record %row wait "$1" "$2" ns "" samples ${3:+$3}
done
END
runs 0 "times" "$cuatomic" bench -b cuda reduce --json="$tmp/b.json" --csv="$tmp/b.csv"
says out "times" '^wait +limit +2\.000 .*\) \* +- +1\.000 '
says out "times" '^wait +limit2 +1\.000 .*\) \* +- +1\.000 '
says out "times" '^wait +peer1 +8\.000 .*\) \* +1\.00 +0\.125 '
says out "times" '^wait +us +2\.000 .*\) \* +2\.00 +0\.500 '
python_says "times" "$tmp/b.json" "$tmp/b.csv" <<'END'
import csv, json, sys
rows = [(r["way"], r["ceiling_share"], r["peer_ratio"]) for r in json.load(open(sys.argv[1]))["rows"]]
assert rows == [("limit", 0.5, None), ("limit2", 1, None), ("peer1", 0.125, 0.5), ("peer2", 0.25, 1), ("us", 0.5, 2),
                ("none", None, None)], rows
rows = list(csv.DictReader(open(sys.argv[2], newline="")))
assert rows[4]["peer_ratio"] == "2" and rows[0]["ceiling_share"] == "0.5"
END

# The state of the machine belongs to the next row.
program reduce <<'END'
record %columns GB/s "the note"
record %state 1980 2619.5 "power cap"
row c slow ours 1 1 1 1 1 1 1 1 1
row c unknown ours 1
record %state 0 2619 ""
row c none ours 1
record %state 1980 0
row c half ours 1
record %state 1 1 lost
record %case d
END
runs 0 "state" "$cuatomic" bench -b cuda reduce --json="$tmp/b.json" --csv="$tmp/b.csv"
says out "state" '^c +slow .* 9 converged, power cap +a note$'
says out "state" '^c +unknown .* 1 converged +a note$'
python_says "state" "$tmp/b.json" "$tmp/b.csv" <<'END'
import csv, json, sys
rows = [(r["way"], r["sm_mhz"], r["memory_mhz"], r["throttle"]) for r in json.load(open(sys.argv[1]))["rows"]]
assert rows == [("slow", 1980, 2619.5, "power cap"), ("unknown", None, None, None), ("none", None, 2619, ""),
                ("half", 1980, None, None)], rows
rows = [(r["way"], r["sm_mhz"], r["memory_mhz"], r["throttle"]) for r in csv.DictReader(open(sys.argv[2], newline=""))]
assert rows == [("slow", "1980", "2619.5", "power cap"), ("unknown", "", "", ""), ("none", "", "2619", ""),
                ("half", "1980", "", "")], rows
END

# Numbers keep their bits, and text that is not UTF-8 is replaced.
program reduce <<'END'
record %columns GB/s ""
row "$(printf 'bad \377 \342\202\254 \001')" way ours 0.1 1e-300 123456789.12345678
END
runs 0 "bits" "$cuatomic" bench -b cuda reduce --json
cp "$tmp/out" "$tmp/b.json"
python_says "bits" "$tmp/b.json" <<'END'
import json, sys
row, = json.load(open(sys.argv[1], encoding="utf-8"))["rows"]
assert row["samples"] == [0.1, 1e-300, 123456789.12345678]
assert row["case"] == "bad \ufffd \u20ac \x01", row["case"]
END

# ---- files ----

refused 1 "a missing folder" -b cuda scatter --json="$tmp/missing/a.json"
says err "a missing folder" "^cuatomic: $tmp/missing/a.json\.?[^ ]*: No such file or directory\$"
refused 1 "a folder as file" -b cuda scatter --csv="$tmp"
refused 2 "an empty file name" -b cuda scatter --json=
refused 2 "one file" -b cuda scatter --json="$tmp/x" --csv="$tmp/x"
refused 2 "one stdout" -b cuda scatter --json --csv
refused 2 "one new file of two paths" -b cuda scatter --json="$tmp/x" --csv="$tmp/./x"
(cd "$tmp" && failed=0 && refused 2 "one new file, relative" -b cuda scatter --json=x --csv=./x && [ "$failed" = 0 ]) ||
  fail "one new file, relative"
touch "$tmp/x"
ln -s x "$tmp/y"
refused 2 "one file of two names" -b cuda scatter --json="$tmp/x" --csv="$tmp/y"
refused 2 "one device" -b cuda scatter --json=/dev/null --csv=/dev/../dev/null
refused 2 "one pipe" -b cuda scatter --json --csv=/dev/stdout
says err "one pipe" "options '--json' and '--csv' name a single file"
rm "$tmp/x" "$tmp/y"
refused 2 "a list as JSON" --list --json="$tmp/x"
refused 2 "a list as CSV" --list --csv
refused 2 "an ambiguous option" --c="$tmp/x" scatter
says err "an ambiguous option" "option '--c' is ambiguous: --csv or --compare"
refused 2 "a value of an option without one" --list=yes
says err "a value of an option without one" "option '--list' has no value"
echo old >"$tmp/old.json"
chmod 640 "$tmp/old.json"
ln -s old.json "$tmp/link.json"
runs 0 "a link" "$cuatomic" bench -b cuda scatter --json="$tmp/link.json"
python_says "a link" "$tmp/old.json" <<<"$check_json"
[ -L "$tmp/link.json" ] || fail "a link: it is no link any more"
[ "$(stat -c %a "$tmp/old.json")" = 640 ] || fail "a link: other permissions"
runs 0 "a device" "$cuatomic" bench -b cuda scatter --json=/dev/null
[ -c /dev/null ] || fail "a device: it was replaced"
if [ -e /dev/full ]; then
  runs 1 "a full device" "$cuatomic" bench -b cuda scatter --json=/dev/full
  says err "a full device" '^cuatomic: /dev/full: No space left on device$'
fi
! compgen -G "$tmp/*.json.??????" >/dev/null || fail "temporary files are left"

# ---- failures ----

program group <<'END'
record %columns GB/s ""
row case done ours 1 1 1
echo "cuatomic bench: group: a wrong result" >&2
exit 1
END
runs 1 "a failure" "$cuatomic" bench -b cuda group scatter --json="$tmp/b.json"
[ "$(cat "$tmp/err")" = "cuatomic bench: group: a wrong result" ] || fail "a failure: another line on stderr"
says out "a failure" '^case +done '
says out "a failure" '^first +ours '
python_says "a failure" "$tmp/b.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] is False and len(d["rows"]) == 7 and d["rows"][0]["way"] == "done"
END
program group <<'END'
kill -9 $$
END
refused 1 "a killed program" -b cuda group
says err "a killed program" 'group: the benchmark was ended by signal 9 \('
program group <<'END'
echo "cuatomic bench: group takes no argument '$1'" >&2
exit 2
END
runs 2 "an argument of the program" "$cuatomic" bench -b cuda group nonsense scatter
[ "$(cat "$tmp/err")" = "cuatomic bench: group takes no argument 'nonsense'" ] || fail "an argument: another line"
[ ! -s "$tmp/out" ] || fail "an argument of the program: something on stdout"
for record in '%row	case' '%row	c	w	nobody	GB/s		converged	1' '%row	c	w	ours	GB/s		never	1' \
  '%row	c	w	ours	GB/s		converged	nan' '%row	c	w	ours	GB/s		converged	1x' '%plan	many' '%skip	1' '%state	1' \
  '%state	-1	1' '%state	1	nan' '%state	1	2	x	y'; do
  program group <<<"printf '%s\n' '$record'; exec sleep 60"
  refused 1 "malformed: $record" -b cuda group
  says err "malformed: $record" 'bench group: the benchmark wrote a malformed record$'
done
program group <<'END'
record %columns GB/s ""
i=0
while [ $i -lt 102 ]; do set -- "$@" 1; i=$((i + 1)); done
row case many ours "$@"
END
refused 1 "too many samples" -b cuda group
# text may look like a record or be long
program group <<'END'
printf '%s\n' '%rows are text'
head -c 100000 /dev/zero | tr '\0' x
printf '\nlast line'
END
runs 0 "text" "$cuatomic" bench -b cuda group
says out "text" '^%rows are text$'
says out "text" '^last line$'
[ "$(tr -dc x <"$tmp/out" | wc -c)" = 100001 ] || fail "text: characters are missing"

program group <<'END'
record %plan 3
record %columns GB/s ""
row case one ours 1 1 1
record %skip
END
runs 1 "rows that are missing" "$cuatomic" bench -b cuda group --json="$tmp/b.json"
[ "$(cat "$tmp/err")" = "cuatomic: bench group: the benchmark wrote 2 of 3 rows" ] || fail "rows that are missing: stderr"
python_says "rows that are missing" "$tmp/b.json" <<'END'
import json, sys
assert json.load(open(sys.argv[1]))["complete"] is False
END
for status in 1 2; do
  program group <<<"exit $status"
  refused $status "a silent failure $status" -b cuda group
  says err "a silent failure $status" "^cuatomic: bench group: the benchmark failed with status $status\$"
done
# Standard error has whole lines; another process may keep it open.
program group <<'END'
printf 'first\nsecond' >&2
sleep 60 &
echo $! >"$0.pid"
exit 1
END
runs 1 "a process that is left" timeout 20 "$cuatomic" bench -b cuda group
[ "$(cat "$tmp/err")" = $'first\nsecond' ] && [ "$(wc -l <"$tmp/err")" = 2 ] || fail "a process that is left: stderr"
kill "$(cat "$tmp/programs/bench-group.pid")"
program group <<'END'
record %columns GB/s ""
row case one ours 1 1 1
END
if (ulimit -n 1500) 2>/dev/null; then
  # shellcheck disable=SC2016 # expands in the other shell
  runs 0 "many descriptors" bash -c 'ulimit -n 1500
    for ((i = 10; i < 1200; i++)); do eval "exec $i</dev/null"; done
    exec "$0" bench -b cuda group' "$cuatomic"
  says out "many descriptors" '^case +one '
fi

# ---- names, filter, list, device, seconds ----

runs 0 "two names" "$cuatomic" bench -b cuda reduce scatter scatter
[ "$(grep -c '^first +ours\|^first  *ours' "$tmp/out")" = 2 ] || fail "two names: not two tables"
program locks <<'END'
echo "$# $*"
END
program textbook <<'END'
echo "$# $* $CUDA_VISIBLE_DEVICES $CUATOMIC_BENCH_SECONDS $CUATOMIC_BENCH_FILTER $CUATOMIC_BENCH_SIZE"
END
runs 0 "arguments" "$cuatomic" bench -b cuda locks candidates 'a b' textbook -q
says out "arguments" '^3 --quick candidates a b$'
says out "arguments" '^1 --quick  *$'
refused 2 "no name" bench
refused 2 "an unknown name" -b cuda everything scatter
refused 2 "an unknown name on the CPU" -b cpu locks everything
refused 1 "a GPU only" -b cpu locks scatter
refused 1 "no program" -b cuda scatter atomics

runs 0 "filter" "$cuatomic" bench -b cuda scatter --filter='^scatter/first/(ours|peer A)$' --json="$tmp/b.json"
[ "$(grep -c '^first' "$tmp/out")" = 2 ] || fail "filter: not two rows"
python_says "filter" "$tmp/b.json" <<'END'
import json, sys
assert [r["way"] for r in json.load(open(sys.argv[1]))["rows"]] == ["peer A", "ours"]
END
runs 1 "no match" "$cuatomic" bench -b cuda scatter --filter=nothing
says err "no match" "^cuatomic: bench: no row matches 'nothing'\$"
refused 2 "a bad filter" -b cuda scatter --filter='a(b'
says err "a bad filter" "'a\(b' is not a regular expression: "
runs 0 "filter on the CPU" "$cuatomic" bench -b cpu -t 1 -q locks reduce --filter='one thread/sem_t|sum f32/.*FAST'
[ "$(grep -c ' 9 samples' "$tmp/out")" = 2 ] || fail "filter on the CPU: not two rows"
runs 0 "planned rows that are skipped" "$planted" bench -b cpu -t 1 -q locks atomics append histogram reduce hashmap \
  --filter='one thread/sem_t'

runs 0 "list" "$cuatomic" bench --list
cut -d ' ' -f 1 "$tmp/out" >"$tmp/names"
runs 0 "list of names" "$cuatomic" bench --list locks scatter
[ "$(cut -d ' ' -f 1 "$tmp/out" | tr '\n' ' ')" = "locks scatter " ] || fail "list of names: other names"

runs 0 "device" "$cuatomic" bench --device=3 textbook --seconds=2.5 --filter=
says out "device" '^0  3 2\.5  $'
runs 0 "device of a list" env CUDA_VISIBLE_DEVICES=4,GPU-55,6 "$cuatomic" bench --device=1 textbook
says out "device of a list" '^0  GPU-55   $'
CUDA_VISIBLE_DEVICES=4 refused 1 "a hidden device" --device=1 textbook
refused 2 "a device of the CPU" -b cpu --device=0 locks
for n in '' -1 x 1x 1000; do
  refused 2 "device '$n'" --device="$n" textbook
done
for n in 0 -1 '' x 1x inf nan 0x10 1e3 90000 0.0000001; do
  refused 2 "seconds '$n'" --seconds="$n" -b cuda scatter
done
for n in 1:1 0123:123 4K:4096 3M:3145728 65536G:70368744177664 70368744177664:70368744177664; do
  runs 0 "size ${n%:*}" "$cuatomic" bench -b cuda --size="${n%:*}" textbook
  says out "size ${n%:*}" "^0 +${n#*:}\$"
done
for n in '' 0 0K -1 K x 1x 1KB 1k 1e3 1.5G ' 1' +1 65537G 70368744177665 67108865M 18446744073709551617 99999999999999999999G; do
  refused 2 "size '$n'" --size="$n" -b cuda scatter
done
runs 0 "no size" env CUATOMIC_BENCH_SIZE=7 "$cuatomic" bench -b cuda textbook
says out "no size" '^0 *$'
runs 0 "little time" "$cuatomic" bench -b cpu -t 1 locks --seconds=0.01 --filter='one thread/sem_t' --json
cp "$tmp/out" "$tmp/b.json"
python_says "little time" "$tmp/b.json" <<'END'
import json, sys
row, = json.load(open(sys.argv[1]))["rows"]
assert 3 <= len(row["samples"]) and row["reason"] in ("time limit", "converged"), row
END

# A second program gets the time that the first left.
program maps <<'END'
record %head program hashmap
record %columns M/s ""
row insert cua_hashmap ours 1
echo "$CUATOMIC_BENCH_SECONDS" >"$0.seconds"
END
runs 0 "the time of a second program" "$cuatomic" bench -b cpu -t 1 -q hashmap --seconds=1000 \
  --filter='update, one key/cua_hashmap, one|insert/'
awk '$1 > 0 && $1 < 1000 - 0.001 { found = 1 } END { exit !found }' "$tmp/programs/bench-maps.seconds" ||
  fail "the time of a second program: $(cat "$tmp/programs/bench-maps.seconds") s"
runs 0 "no time for a second program" "$cuatomic" bench -b cpu -t 1 -q hashmap --seconds=0.000001 --filter=insert/
[ "$(cat "$tmp/programs/bench-maps.seconds")" = 1e-06 ] || fail "no time for a second program: it has time"
rm "$tmp/programs/bench-maps" "$tmp/programs/bench-maps.seconds"
runs 0 "little time for a table" "$cuatomic" bench -b cpu -t 1 hashmap --seconds=0.01 \
  --filter='4\+4, 0.5, find hits/cua_hashmap, one'
says out "little time for a table" ' 3 time limit *$'

# ---- the summary ----

mkdir "$tmp/summary"
CUATOMIC_BENCH_DIR=$tmp/summary
# benchmarks that share a program pass their names as its first argument
{ grep -vx 'copy\|fill\|latency\|read\|write' "$tmp/names" && echo stream; } >"$tmp/program_names"
while read -r name; do
  program "$name" <<'END'
case $0 in
*/bench-random | */bench-stream) seen=${0%/*}/bench-$1.seen && shift ;;
*) seen=$0.seen ;;
esac
echo "${CUATOMIC_BENCH_SECONDS:-none} $# $*" >"$seen"
record %head device 'A GPU'
record %head driver 580.1
record %head versions 'driver 580.1, cuatomic 9'
echo "text for the table"
record %columns GB/s ""
row "filter 50 %, 512 Mi" "ceiling: copies, persistent blocks" ceiling 10 10 10 10 10 10
record %state 1979.6 2619 "power cap"
row "filter 50 %, 512 Mi" cua_filter_array ours 5 5 5 5 5 6
row "filter 50 %, 64 Ki, stream" cua_filter_array ours 5 5 5 5 5 6
row "filter 50 %, 512 Mi" "cua_filter_array, ordered" ours
row "to 1 Mi, uniform" "native atomic additions" peer 1 2
row other way ours 1
END
done <"$tmp/program_names"
runs 0 "summary" "$cuatomic" bench -b cuda
[ ! -s "$tmp/err" ] || fail "summary: something on stderr"
says out "summary" '^machine   .*, [0-9]+ CPUs, [0-9.]+ GiB, .'
says out "summary" '^date      20..-..-..T..:..:..Z$'
grep -v '^machine \|^date ' "$tmp/out" >"$tmp/lines"
cat >"$tmp/expected" <<'END'
GPU       A GPU, driver 580.1
versions  driver 580.1, cuatomic 9

bench     case                        way                                         median unit  interval of ceiling  state
append    filter 50 %, 512 Mi         ceiling: copies, persistent blocks           10.00 GB/s     0.0 %      1.000
append    filter 50 %, 512 Mi         cua_filter_array                             5.000 GB/s    20.0 %      0.500  1980 MHz, power cap, noisy
append    filter 50 %, 512 Mi         cua_filter_array, ordered                        - GB/s         -          -  not available
scatter   to 1 Mi, uniform            native atomic additions                      1.500 GB/s         -          -  few runs
END
diff "$tmp/expected" "$tmp/lines" || fail "summary: other rows"
# The benchmarks share the time; the last benchmark gets the rest.
shares() { # shares NAME SECONDS
  cat "$tmp/summary/bench-append.seen" "$tmp/summary/bench-scatter.seen" >"$tmp/shares"
  awk -v most="$2" -v n="$(find "$tmp/summary" -name '*.seen' | wc -l)" '
    NR == 1 { sum = $1 * n } NR == 2 { last = $1 }
    END { exit !(sum <= most && sum > 0.9 * most && last <= most && last > most / n) }' "$tmp/shares" ||
    fail "$1: time limits"
}
shares "summary" 55
[ -e "$tmp/summary/bench-copy.seen" ] && [ -e "$tmp/summary/bench-latency.seen" ] || fail "summary: a benchmark is missing"
[ ! -e "$tmp/summary/bench-textbook.seen" ] || fail "summary: a benchmark without rows of the summary runs"
runs 0 "summary with options" "$cuatomic" bench -b cuda -q --seconds=7 --filter='^scatter/|ceiling' --json="$tmp/b.json" \
  --csv="$tmp/b.csv"
[ "$(grep -c '^append\|^scatter' "$tmp/out")" = 2 ] || fail "summary with options: not two rows"
shares "summary with options" 7
grep -q ' 1 --quick$' "$tmp/summary/bench-append.seen" || fail "summary with options: it is not quick"
python_says "summary with options" "$tmp/b.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] is True
assert [(r["bench"], r["kind"], r["ceiling_share"]) for r in d["rows"]] == [("append", "ceiling", 1), ("scatter", "peer", None)]
END
runs 1 "summary without a row" "$cuatomic" bench -b cuda --filter=nothing
says err "summary without a row" "no row matches 'nothing'"
runs 0 "summary as CSV" "$cuatomic" bench -b cuda --csv
[ "$(wc -l <"$tmp/out")" = 5 ] || fail "summary as CSV: not four rows"
rm "$tmp/summary/bench-atomics"
program histogram <<<'echo "cuatomic bench: histogram: a wrong result" >&2; exit 2'
runs 1 "summary with failures" "$cuatomic" bench -b cuda --json="$tmp/b.json"
says err "summary with failures" "^cuatomic: $tmp/summary/bench-atomics: No such file or directory"
says err "summary with failures" '^cuatomic bench: histogram: a wrong result$'
says out "summary with failures" '^scatter '
[ "$(tail -n 1 "$tmp/out" | sed 's/of [0-9]*/of N/')" = "incomplete: 2 of N benchmarks failed" ] ||
  fail "summary with failures: last line"
python_says "summary with failures" "$tmp/b.json" <<'END'
import json, sys
assert json.load(open(sys.argv[1]))["complete"] is False
END
(export CUATOMIC_BENCH_DIR=$tmp/empty && mkdir -p "$tmp/empty" && failed=0 &&
  refused 1 "summary without programs" -b cuda && [ "$failed" = 0 ]) || fail "summary without programs"
CUATOMIC_BENCH_DIR=$tmp/programs
runs 0 "summary on the CPU" "$cuatomic" bench -b cpu -t 1 -q
says out "summary on the CPU" '^GPU       not used$'
says out "summary on the CPU" '^versions  cuatomic [0-9.]+$'
for name in append atomics hashmap histogram locks reduce; do
  says out "summary on the CPU" "^$name .* ceiling: .* (1\\.000|0\\.[0-9]+)( |\$)"
  says out "summary on the CPU" "^$name .* cua_"
  [ "$(grep -c "^$name " "$tmp/out")" -le 6 ] || fail "summary on the CPU: too many rows of $name"
done

# ---- the machine, on the CPU ----

# The test program also checks that a benchmark has as many rows as it announced.
check_rows='
import json, sys
name, threads, size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
d = json.load(open(sys.argv[1]))
assert d["complete"] is True
rows = {}
for r in d["rows"]:
    assert r["bench"] == name and (len(r["samples"]) == 9 or not r["samples"]), r
    assert all(v > 0 for v in r["samples"]), r
    rows.setdefault(r["case"], []).append((r["way"], r["kind"]))
assert len(d["rows"]) == len(set((r["case"], r["way"]) for r in d["rows"]))
units = {"random": "G/s", "latency": "ns", "launch": "us"}
assert {r["unit"] for r in d["rows"]} == {units.get(name, "GB/s")}
def of_bytes(n):
    return "%d byte%s" % (n, "" if n == 1 else "s")
footprints = ["16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"]
footprints = [(f, "ours") for i, f in enumerate(footprints) if 4 ** i << 14 <= size]
if name in ("read", "write", "copy"):
    what = {"read": "loads", "write": "stores", "copy": "copy"}[name]
    ways = [("ceiling: vector %s, all threads" % what, "ceiling")]
    for t in ["1 thread"] + ["%d threads" % threads] * (threads > 1):
        ways += [("%s, unroll %d" % (t, u), "ours") for u in (1, 4, 16)]
    expected = {a + ", " + of_bytes(n): ways
                for a in ("aligned", "offset", "strided") for n in (1, 2, 4, 8, 16, 32)}
elif name == "fill":
    ceiling, loop = ("ceiling: vector stores, all threads", "ceiling"), ("loop of stores", "peer")
    ways = [ceiling, loop, ("cua_fill", "ours")]
    expected = {"1-D, " + of_bytes(n): ways for n in (2, 4, 8, 16)}
    expected["1-D, 1 byte"] = [ceiling, ("memset", "peer"), loop, ("cua_fill", "ours")]
    for case in ("2-D, 1000 x 1000", "3-D, 100 x 100 x 100"):
        expected[case] = [ceiling, loop, ("cua_fill_pitched", "ours")]
elif name == "random":
    expected = {c: [("ceiling: loads in 4 KiB", "ceiling")] + footprints for c in ("load 8 bytes", "store 8 bytes", "CAS 32 bits", "CAS 64 bits",
                                        "CAS 128 bits", "add 32 bits")}
elif name == "latency":
    expected = {"load by footprint": [("ceiling: 4 KiB", "ceiling")] + footprints,
                "atomics": [("ceiling: load, relaxed", "ceiling")] + [(w, "ours") for w in (
                    "load, relaxed", "load, acquire", "store, release", "exchange, acq_rel", "add, relaxed",
                    "add, seq_cst", "CAS 32 bits, acq_rel", "CAS 64 bits, acq_rel", "CAS 128 bits, acq_rel")],
                "fences": [("ceiling: load, relaxed", "ceiling"), ("acq_rel", "ours"), ("seq_cst", "ours")]}
else:
    expected = {"host": [("pthread_create and join", "peer"),
                         ("mutex and condition variable, there and back", "peer")],
                "call": [("cua_reduce of 1 element", "ours"), ("cua_reduce of 65536 elements", "ours"),
                         ("cua_fill of 1 byte", "ours")]}
assert rows == expected, (rows, expected)
if name in ("read", "write", "copy", "fill"):
    for case in rows:
        ceiling, = (r for r in d["rows"] if r["case"] == case and r["kind"] == "ceiling")
        wide = case[:3] in ("2-D", "3-D")
        same = [r for r in d["rows"] if r["kind"] == "ceiling" and (r["case"][:3] in ("2-D", "3-D")) == wide]
        assert all(r["samples"] == ceiling["samples"] for r in same), case
'
for name in read write copy fill random latency launch; do
  for threads in 1 2; do
    runs 0 "rows of $name, $threads" "$planted" bench "$name" -q -b cpu -t $threads --json="$tmp/rows.json"
    [ ! -s "$tmp/err" ] || fail "rows of $name, $threads: something on stderr"
    python_says "rows of $name, $threads" "$tmp/rows.json" "$name" $threads $((1 << 20)) <<<"$check_rows"
  done
done
# More threads than pieces of the array, and footprints up to the size.
for name in read write copy fill; do
  runs 0 "a small $name" "$planted" bench "$name" -q -b cpu -t 5 --size=150000 \
    --filter='/(1-D|aligned), (1 byte|16 bytes)/' --json="$tmp/rows.json"
  python_says "a small $name" "$tmp/rows.json" <<'END'
import json, sys
assert len(json.load(open(sys.argv[1]))["rows"]) in (7, 14)
END
done
for name in random latency; do
  runs 0 "$name up to 4 MiB" "$planted" bench "$name" -q -b cpu -t 2 --size=5000000 --json="$tmp/rows.json"
  python_says "$name up to 4 MiB" "$tmp/rows.json" "$name" 2 5000000 <<<"$check_rows"
done
runs 0 "filter of a machine" "$planted" bench -q -b cpu -t 1 read write copy fill random latency launch \
  --filter='(strided, 32 bytes|2-D.*)/(1 thread, unroll 16|cua_fill_pitched)|/1 MiB|of 1 byte' --json="$tmp/rows.json"
python_says "filter of a machine" "$tmp/rows.json" <<'END'
import json, sys
rows = [r["bench"] for r in json.load(open(sys.argv[1]))["rows"]]
assert rows == ["read", "write", "copy", "fill"] + ["random"] * 6 + ["latency", "launch"], rows
END
# The test program falsifies the result of a row by 1.
for row in read:'ceiling: vector loads, all threads' read:'1 thread, unroll 16' write:'ceiling: vector stores, all threads' \
  write:'2 threads, unroll 1' copy:'ceiling: vector copy, all threads' copy:'2 threads, unroll 4' \
  fill:memset fill:'loop of stores' fill:cua_fill fill:cua_fill_pitched random:'16 KiB' random:'1 MiB' latency:'64 KiB' \
  latency:'load, acquire' latency:'exchange, acq_rel' latency:'CAS 64 bits, acq_rel' latency:seq_cst \
  launch:'pthread_create and join' launch:'mutex and condition variable, there and back' \
  launch:'cua_reduce of 65536 elements' launch:'cua_fill of 1 byte'; do
  way=${row#*:}
  runs 1 "planted: $row" env BENCH_PLANT="$way" "$planted" bench "${row%%:*}" -q -b cpu -t 2 --filter="/$way" || continue
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "planted: $row: not one line on stderr"
  says err "planted: $row" "^cuatomic: bench ${row%%:*}: .*, $way: the result is [0-9]+, not [0-9]+\$"
done

# Benchmarks that share a GPU program pass their names.
for row in read:stream write:stream copy:stream fill:stream random:random latency:random; do
  program "${row#*:}" <<<'echo "$0 $# $*"'
  runs 0 "the program of ${row%:*}" "$cuatomic" bench -b cuda -q "${row%:*}" more
  says out "the program of ${row%:*}" "/bench-${row#*:} 3 ${row%:*} --quick more\$"
done
for name in launch malloc peer; do
  program $name <<<'echo "$0 $# $*"'
  runs 0 "the program of $name" "$cuatomic" bench -b cuda $name
  says out "the program of $name" "/bench-$name 0 \$"
done
refused 1 "malloc on the CPU" -b cpu malloc
refused 1 "peer on the CPU" -b cpu peer

# ---- a program that is started by hand ----

maps=$(cd "$top_builddir/bench" && pwd)/bench-maps
if [ -x "$maps" ]; then
  runs 2 "a bad descriptor" env CUATOMIC_BENCH_RECORDS=x "$maps" --quick --threads=1
  for n in 0 1x 65537G; do
    runs 2 "a bad size by hand" env CUATOMIC_BENCH_SIZE=$n "$maps" --quick --threads=1
  done
  runs 2 "a bad summary by hand" env CUATOMIC_BENCH_SUMMARY='(' "$maps" --quick --threads=1
  runs 2 "a bad filter by hand" env CUATOMIC_BENCH_FILTER='(' "$maps" --quick --threads=1
  runs 0 "records by hand" env CUATOMIC_BENCH_RECORDS=1 "$maps" --quick --threads=1
  says out "records by hand" '^%row	insert, 1 thread	cua_hashmap	ours	M/s		samples	[0-9.e+]+	'
  runs 0 "little time by hand" env CUATOMIC_BENCH_SECONDS=0.001 CUATOMIC_BENCH_RECORDS=1 "$maps" --quick --threads=1
  says out "little time by hand" '^%row	find hits, 1 thread	cua_hashmap	ours	M/s		time limit(	[0-9.e+]+){3}$'
fi

# ---- signals ----

# The first row is finished, then the benchmark waits for its input. The input stays open.
if env --default-signal=INT true 2>/dev/null; then
  for signal in INT:130 QUIT:131 TERM:143 HUP:129; do
    mkfifo "$tmp/input" "$tmp/output"
    env --default-signal=INT,QUIT,TERM,HUP BENCH_HOLD=pthread_mutex "$planted" bench locks -q -b cpu -t 1 \
      --json="$tmp/stopped.json" --csv="$tmp/stopped.csv" <"$tmp/input" >"$tmp/output" 2>"$tmp/err" &
    pid=$!
    exec 8>"$tmp/input" 9<"$tmp/output"
    while IFS= read -r -t 120 -u 9 line; do
      case $line in *"ceiling: one thread"*) break ;; esac
    done
    kill -"${signal%:*}" $pid
    rc=0
    wait $pid || rc=$?
    exec 8>&- 9<&-
    rm "$tmp/input" "$tmp/output"
    [ $rc = "${signal#*:}" ] || fail "$signal: exit status $rc"
    [ "$(cat "$tmp/err")" = "cuatomic: bench: stopped after 1 row" ] || fail "$signal: another line on stderr"
    python_says "$signal" "$tmp/stopped.json" "$tmp/stopped.csv" <<'END'
import csv, json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] is False and [r["kind"] for r in d["rows"]] == ["ceiling"]
assert len(list(csv.DictReader(open(sys.argv[2], newline="")))) == 1
END
    rm -f "$tmp"/stopped.*
  done
  # a program that does not end on SIGTERM is killed
  program group <<'END'
trap '' TERM
record %columns GB/s ""
row case done ours 1 1 1
while :; do sleep 1; done
END
  mkfifo "$tmp/output"
  env --default-signal=TERM "$cuatomic" bench -b cuda group >"$tmp/output" 2>"$tmp/err" &
  pid=$!
  exec 9<"$tmp/output"
  while IFS= read -r -t 120 -u 9 line; do
    case $line in *" done "*) break ;; esac
  done
  kill -TERM $pid
  rc=0
  wait $pid || rc=$?
  exec 9<&-
  [ $rc = 143 ] || fail "a program without SIGTERM: exit status $rc"
  # A reader that has stalled does not delay the end: first the table, then a file is written.
  program group <<'END'
trap 'exit 1' TERM
record %columns GB/s ""
i=0
while [ $i -lt 3000 ]; do
  row case one ours 1 1 1 1 1 1 1 1 1
  i=$((i + 1))
done
while :; do sleep 0.1; done
END
  for stalled in table file; do
    if [ $stalled = table ]; then
      env --default-signal=TERM "$cuatomic" bench -b cuda group --json="$tmp/stalled.json" >"$tmp/output" 2>"$tmp/err" &
    else
      env --default-signal=TERM "$cuatomic" bench -b cuda group --json="$tmp/output" >"$tmp/out" 2>"$tmp/err" &
    fi
    pid=$!
    exec 9<"$tmp/output"
    sleep 1.5
    kill -TERM $pid
    for ((i = 0; i < 100; i++)); do
      kill -0 $pid 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL $pid 2>/dev/null
    rc=0
    wait $pid || rc=$?
    exec 9<&-
    [ $rc = 143 ] || fail "a stalled reader of the $stalled: exit status $rc"
    says err "a stalled reader of the $stalled" '^cuatomic: bench: stopped after [0-9]+ rows$'
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "a stalled reader of the $stalled: not one line on stderr"
  done
  python_says "a stalled reader" "$tmp/stalled.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] is False and len(d["rows"]) > 100
END
  # A reader that closes the pipe ends the benchmark.
  program group <<'END'
record %columns GB/s ""
while :; do
  row case one ours 1 1 1
  sleep 0.1
done
END
  env --default-signal=PIPE "$cuatomic" bench -b cuda group --json="$tmp/pipe.json" 2>"$tmp/err" | head -n 3 >"$tmp/out"
  rc=${PIPESTATUS[0]}
  [ "$rc" = 141 ] && [ ! -s "$tmp/err" ] || fail "a closed pipe: exit status $rc"
  python_says "a closed pipe" "$tmp/pipe.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["complete"] is False and d["rows"]
END
  ! compgen -G "$tmp/*.json.??????" >/dev/null || fail "a closed pipe: temporary files are left"
else
  echo "env has no --default-signal: the signals are not tested"
fi

# A table that cannot be written ends the benchmark.
program hashmap <<'END'
record %columns GB/s ""
while :; do
  row case one ours 1 1 1
  sleep 0.1
done
END
if [ -e /dev/full ]; then
  rc=0
  "$cuatomic" bench -b cuda hashmap >/dev/full 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "a full output: exit status $rc"
  says err "a full output" '^cuatomic: standard output: No space left on device$'
fi

# ---- progress ----

# Outside a terminal there is none: the tests above have an empty stderr.
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
  program group <<'END'
record %plan 2
record %columns GB/s ""
row case one ours 1 1 1
row case two ours 1 1 1
END
  TERM=xterm script -qec "'$cuatomic' bench -b cuda group 2>&1 >/dev/null" /dev/null >"$tmp/out" 2>"$tmp/err" </dev/null
  tr '\r' '\n' <"$tmp/out" >"$tmp/lines"
  grep -q 'group: 1 of 2 rows, [0-9]* s, about [0-9]* s remain' "$tmp/lines" || fail "progress: no remaining time"
  [ "$(tail -c 4 "$tmp/out")" = $'\r\033[K' ] || fail "progress: the terminal is not clean"
  TERM=dumb script -qec "'$cuatomic' bench -b cuda group 2>&1 >/dev/null" /dev/null >"$tmp/out" 2>"$tmp/err" </dev/null
  [ ! -s "$tmp/out" ] || fail "progress: something on a dumb terminal"
  # the line fits the terminal, and lines of the program are whole
  program group <<'END'
record %plan 1
echo "a long line of the program on standard error" >&2
record %columns GB/s ""
row case one ours 1 1 1
END
  TERM=xterm script -qec "stty cols 20; '$cuatomic' bench -b cuda group 2>&1 >/dev/null" /dev/null >"$tmp/out" \
    2>"$tmp/err" </dev/null
  sed 's/\r/\n/g; s/\x1b\[K//g' "$tmp/out" >"$tmp/lines"
  grep -qx 'group: 1 of 1 rows,' "$tmp/lines" || fail "progress: it is not cut to 19 characters"
  grep -qx 'a long line of the program on standard error' "$tmp/lines" || fail "progress: a line is not whole"
  passed=$((passed + 1))
else
  echo "script was not found: the progress is not tested"
fi

# ---- the comparison ----

# file NAME ROW...: a file with the rows "WAY MEDIAN LOW HIGH UNIT", or "WAY null null null UNIT".
file() {
  local name=$1 separator="" row
  shift
  {
    printf '{"schema": 1, "rows": ['
    for row; do
      # shellcheck disable=SC2086 # words
      set -- $row
      printf '%s{"bench": "b", "case": "c", "way": "%s", "median": %s, "low": %s, "high": %s, "unit": "%s"}' \
        "$separator" "$1" "$2" "$3" "$4" "$5"
      separator=,
    done
    printf ']}\n'
  } >"$tmp/$name"
}
file before.json 'equal 100 99 101 M/s' 'near 100 99.9 100.1 M/s' 'faster 100 99 101 M/s' 'wide 100 80 120 M/s' \
  'gone 1 1 1 M/s' 'none null null null M/s' 'lost 5 5 5 M/s' 'time 10 9.9 10.1 ns' 'twice 1 1 1 M/s' 'twice 2 2 2 M/s'
file after.json 'equal 100.5 99 102 M/s' 'near 97 96.9 97.1 M/s' 'faster 110 109 111 M/s' 'wide 90 75 110 M/s' \
  'new 1 1 1 M/s' 'none null null null M/s' 'lost null null null M/s' 'time 8 7.9 8.1 ns' 'twice 1 1 1 M/s' \
  'twice 2 2 2 M/s'
if grep -q '^#define HAVE_JANSSON 1' "$top_builddir/config.h"; then
  runs 0 "compare" "$cuatomic" bench --compare "$tmp/before.json" "$tmp/after.json"
  [ ! -s "$tmp/err" ] || fail "compare: something on stderr"
  for row in 'SAME +\+0\.5 % .*equal' 'SAME +-3\.0 % .*near' 'FASTER +\+10\.0 % .*faster' 'UNCLEAR +-10\.0 % .*wide' \
    'FASTER +-20\.0 % .*time' 'SAME +\+0\.0 % +1\.000 +1\.000 M/s +b/c/twice' 'SAME +\+0\.0 % +2\.000 +2\.000 M/s +b/c/twice'; do
    says out "compare" "^$row\$"
  done
  says out "compare" "^only in $tmp/before.json: b/c/gone\$"
  says out "compare" "^only in $tmp/after.json: b/c/new\$"
  says out "compare" "^not available in $tmp/after.json: b/c/lost\$"
  says out "compare" '^4 SAME, 2 FASTER, 0 SLOWER, 1 UNCLEAR$'
  silent out "compare" 'b/c/none'
  sed 's/"schema": 1, /&"options": "--quick", /' "$tmp/before.json" >"$tmp/quick.json"
  runs 0 "compare other options" "$cuatomic" bench --compare "$tmp/quick.json" "$tmp/before.json"
  [ ! -s "$tmp/err" ] || fail "compare other options: a file without options is compared"
  sed 's/"schema": 1, /&"options": "", /' "$tmp/before.json" >"$tmp/normal.json"
  runs 0 "compare other options" "$cuatomic" bench --compare "$tmp/quick.json" "$tmp/normal.json"
  [ "$(cat "$tmp/err")" = "cuatomic: $tmp/quick.json has the options '--quick', and $tmp/normal.json ''" ] ||
    fail "compare other options: no warning"
  runs 1 "slower" "$cuatomic" bench --compare "$tmp/after.json" "$tmp/before.json"
  says out "slower" '^SLOWER +-9\.1 % .*faster$'
  says out "slower" '^SLOWER +\+25\.0 % .*time$'
  runs 1 "a small threshold" "$cuatomic" bench --threshold=2.5 --compare "$tmp/before.json" "$tmp/after.json"
  says out "a small threshold" '^SLOWER +-3\.0 % .*near$'
  runs 0 "a large threshold" "$cuatomic" bench --threshold 30 --compare "$tmp/after.json" "$tmp/before.json"
  runs 0 "compare a file of bench" "$cuatomic" bench --compare "$tmp/a.json" "$tmp/a.json"
  says out "compare a file of bench" '^SAME +\+0\.0 % +10\.00 +10\.00 GB/s +scatter/first/limit$'

  # Fewer than six samples have no interval.
  few() { # few NAME COMPLETE SAMPLES MEDIAN-OF-A
    printf '{"schema": 1, "complete": %s, "rows": [' "$2"
    printf '{"bench": "b", "case": "c", "way": "a", "median": %s, "low": %s, "high": %s, "unit": "M/s", "samples": %s},' \
      "$4" "$4" "$4" "$3"
    printf '{"bench": "b", "case": "c", "way": "same", "median": 5, "low": 4, "high": 6, "unit": "M/s", "samples": %s}]}' \
      "$3"
  } >"$tmp/$1.json"
  few five true '[1, 1, 1, 1, 1]' 10
  few fewer false '[1, 1, 1]' 2
  few six true '[1, 1, 1, 1, 1, 1]' 2
  runs 0 "few samples" "$cuatomic" bench --compare "$tmp/five.json" "$tmp/fewer.json"
  says out "few samples" '^UNCLEAR +-80\.0 % .*b/c/a$'
  says out "few samples" '^SAME +\+0\.0 % .*b/c/same$'
  [ "$(cat "$tmp/err")" = "cuatomic: $tmp/fewer.json: the run was not complete, so rows are missing" ] ||
    fail "few samples: stderr"
  runs 0 "few samples before" "$cuatomic" bench --compare "$tmp/five.json" "$tmp/six.json"
  says out "few samples before" '^1 SAME, 0 FASTER, 0 SLOWER, 1 UNCLEAR$'
  few ten true '[1, 1, 1, 1, 1, 1]' 10
  runs 1 "enough samples" "$cuatomic" bench --compare "$tmp/ten.json" "$tmp/six.json"
  says out "enough samples" '^SLOWER +-80\.0 % .*b/c/a$'
  # extreme values
  file large.json 'x 1e300 1e300 1e300 M/s' 'y 1e-300 1e-300 1e-300 M/s' 'z 1e-300 1e-300 1e-300 M/s' 't 1e-300 1e-300 1e-300 ns'
  file small.json 'x 1e-300 1e-300 1e-300 M/s' 'y 1e300 1e300 1e300 M/s' 'z 2e-300 2e-300 2e-300 M/s' 't 1e300 1e300 1e300 ns'
  runs 1 "extreme values" "$cuatomic" bench --threshold=1000 --compare "$tmp/large.json" "$tmp/small.json"
  says out "extreme values" '^SAME +-100\.0 % 1\.000e\+300 1\.000e-300 M/s +b/c/x$'
  says out "extreme values" '^FASTER +>\+99999 % 1\.000e-300 1\.000e\+300 M/s +b/c/y$'
  says out "extreme values" '^SAME +\+100\.0 % 1\.000e-300 2\.000e-300 M/s +b/c/z$'
  says out "extreme values" '^SLOWER +>\+99999 % 1\.000e-300 1\.000e\+300 ns +b/c/t$'
  refused 1 "an overflow" --compare "$tmp/before.json" <(echo '{"schema": 1, "rows": [{"median": 1e999}]}')

  # A run is compared with a reference.
  program group <<'END'
record %head device 'A GPU'
record %columns M/s ""
row c equal ours 100 100 100 100 100 100
row c slow ours 90 90 90 90 90 90
row c new ours 1 1 1 1 1 1
record %row c few ours GB/s "" samples 1 2
END
  reference() { # reference GPU-AS-JSON SLOW
    printf '{"schema": 1, "machine": {"gpu": %s}, "rows": [' "$1"
    printf '{"bench": "group", "case": "c", "way": "%s", "median": %s, "low": %s, "high": %s, "unit": "GB/s"},' \
      equal 100 99 101 slow "$2" "$2" "$2" gone 1 1 1
    printf '{"bench": "group", "case": "c", "way": "few", "median": 9, "low": 9, "high": 9, "unit": "GB/s"}]}\n'
  }
  mkdir "$tmp/data"
  export CUATOMIC_DATA_DIR=$tmp/data
  reference '"A GPU"' 100 >"$tmp/data/REF.json"
  runs 1 "against" "$cuatomic" bench -b cuda group --against=REF
  [ ! -s "$tmp/err" ] || fail "against: something on stderr"
  says out "against" '^c +new '
  sed -n '/^verdict/,$p' "$tmp/out" >"$tmp/lines"
  cat >"$tmp/expected" <<END
verdict      change    before     after unit   row
SAME         +0.0 %     100.0     100.0 GB/s   group/c/equal
SLOWER      -10.0 %     100.0     90.00 GB/s   group/c/slow
UNCLEAR     -83.3 %     9.000     1.500 GB/s   group/c/few
rows without a row in $tmp/data/REF.json: 1
1 of 3 rows are at least 5 % slower than in $tmp/data/REF.json
END
  diff "$tmp/expected" "$tmp/lines" || fail "against: other verdicts"
  runs 0 "against, a large threshold" "$cuatomic" bench -b cuda group --against="$tmp/data/REF.json" --threshold=20 \
    --json="$tmp/b.json"
  says out "against, a large threshold" "^0 of 3 rows are at least 20 % slower than in $tmp/data/REF.json\$"
  runs 1 "against, in the folder" sh -c 'cd "$1" && shift && exec "$@"' - "$tmp/data" "$cuatomic" bench -b cuda group \
    --against=REF.json
  says out "against, in the folder" '^1 of 3 rows .* than in REF\.json$'
  runs 0 "against itself" "$cuatomic" bench -b cuda group --against="$tmp/b.json"
  says out "against itself" '^0 of 4 rows '
  reference '"B"' 90 >"$tmp/data/B.json"
  runs 0 "against another GPU" "$cuatomic" bench -b cuda group --against=B
  [ "$(cat "$tmp/err")" = "cuatomic: $tmp/data/B.json: its GPU is 'B', this run is of 'A GPU'" ] ||
    fail "against another GPU: stderr"
  reference null 90 >"$tmp/data/B.json"
  runs 0 "against a CPU" "$cuatomic" bench -b cuda group --against=B
  says err "against a CPU" "B.json: its GPU is none, this run is of 'A GPU'\$"
  runs 1 "against no row in common" "$cuatomic" bench -b cuda scatter --against=B
  says err "against no row in common" 'B\.json and this run have no row in common$'
  refused 1 "against a missing name" -b cuda group --against=MISSING
  says err "against a missing name" "^cuatomic: $tmp/data/MISSING.json: .*No such file"
  refused 1 "against a missing file" -b cuda group --against="$tmp/missing.json"
  echo '{' >"$tmp/data/BAD.json"
  refused 1 "against a malformed file" -b cuda group --against=BAD
  refused 2 "against nothing" -b cuda group --against=
  refused 2 "against, JSON on stdout" -b cuda group --against=REF --json
  refused 2 "against and compare" --against=REF --compare a b
  program group <<'END'
record %head device 'A GPU'
record %columns M/s ""
row c slow ours 90 90 90 90 90 90
exit 3
END
  runs 1 "against, a failure" "$cuatomic" bench -b cuda group --against=REF --threshold=50
  says out "against, a failure" '^0 of 1 rows '

  echo '{"schema": 1, "rows": []}' >"$tmp/none.json"
  runs 1 "no row in common" "$cuatomic" bench --compare "$tmp/none.json" "$tmp/after.json"
  says err "no row in common" "^cuatomic: $tmp/none.json and $tmp/after.json have no row in common\$"
  compare_refused() { # compare_refused NAME TEXT-OF-FILE PATTERN
    printf '%s' "$2" >"$tmp/bad.json"
    refused 1 "compare, $1" --compare "$tmp/bad.json" "$tmp/after.json"
    says err "compare, $1" "^cuatomic: $tmp/bad.json: $3"
    refused 1 "compare with $1" --compare "$tmp/before.json" "$tmp/bad.json"
  }
  compare_refused "no JSON" 'hello' 'line 1: '
  compare_refused "an empty file" '' 'line 1: '
  compare_refused "a truncated file" '{"schema": 1, "rows": [' 'line 1: '
  compare_refused "an array" '[]' 'not a file of cuatomic bench --json$'
  compare_refused "another schema" '{"schema": 2, "rows": []}' 'the schema is not 1$'
  compare_refused "no rows" '{"schema": 1}' 'no rows$'
  compare_refused "a bad row" '{"schema": 1, "rows": [{"bench": 1}]}' 'row 1 is malformed$'
  compare_refused "a bad interval" \
    '{"schema": 1, "rows": [{"bench": "b", "case": "c", "way": "w", "unit": "u", "median": 1, "low": 2, "high": 3}]}' \
    'row 1 is malformed$'
  refused 1 "compare, a missing file" --compare "$tmp/missing" "$tmp/after.json"
  says err "compare, a missing file" "^cuatomic: $tmp/missing: .*No such file or directory"
else
  refused 1 "compare without a reader" --compare "$tmp/before.json" "$tmp/after.json"
  says err "compare without a reader" 'this build has no JSON reader'
  refused 1 "against without a reader" -b cuda scatter --against="$tmp/before.json"
  says err "against without a reader" "^cuatomic: $tmp/before.json: this build has no JSON reader"
fi
refused 2 "compare one file" --compare "$tmp/before.json"
refused 2 "compare three files" --compare a b c
refused 2 "compare and run" --compare a b --json
refused 2 "a threshold alone" --threshold=5 -b cuda scatter
for n in '' -1 x inf 1001; do
  refused 2 "threshold '$n'" --threshold="$n" --compare a b
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
