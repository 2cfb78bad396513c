#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ci/gpu-check without a GPU: nvidia-smi, configure, make and the suites are small scripts. The table and the reports
# must have each result, and a report must be valid whatever a log contains.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${PYTHON:?}"

if [ "$PYTHON" = : ]; then
  echo "skipped: no Python"
  exit 77
fi
ci=$(cd "$top_srcdir/ci" && pwd)
schema=$(cd "$(dirname "$0")" && pwd)/junit.rng
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
mkdir -p "$tree/ci" "$tmp/bin"
mkdir "$tree"/{cuda,include,lib,m4,python,tests,tools}
cp "$ci/gpu-check" "$ci/gpu-report" "$tree/ci/"
: >"$tree/configure.ac"
fail() {
  echo "FAILED: $*"
  cat "$tmp/out" 2>/dev/null || :
  exit 1
}

cat >"$tmp/bin/nvidia-smi" <<'SCRIPT'
#!/bin/sh
case "$*" in
*topo*) exit 1 ;;
*compute_cap*) echo 'Imaginary <GPU> & "friends", 9.0, 600.1' ;;
*) echo 'Imaginary GPU' ;;
esac
SCRIPT
# The configured tree: a makefile that names the suites, and the suites.
cat >"$tree/configure" <<'SCRIPT'
#!/bin/sh
[ ! -e "${0%/*}/broken" ] || { echo "configure: error: <broken> & \"gone\""; exit 3; }
: >config.status
mkdir -p tests tools
printf 'all:\n' >Makefile
printf 'gpu-suites:\n\t@echo check_good check_bad check_long check_group_nccl\ndebug-suites:\n\t@echo check_good-G\ncheck_%%: ;\n' >tests/Makefile
cat >tools/cuatomic <<'END'
#!/bin/sh
[ "$1" != info ] || printf 'cuatomic\nCUDA backend\n  device 0: Imaginary GPU\n'
END
echo 'echo fine' >tests/check_good
cat >tests/check_bad <<'END'
printf 'first\n  <b>&amp; "quoted" ]]> \033[31mred\033[0m nul\000bell\007 \001\n'
printf 'bad utf-8: \377\376 cut \303, good: \303\244, no character: \357\277\277\n\ttab\r\n'
exit 3
END
echo 'echo starts; [ ! -e "$GPU_TEST_MARK" ] || echo $$ >"$GPU_TEST_MARK.started"; sleep 30' >tests/check_long
echo 'echo "skipped: no NCCL"; exit 77' >tests/check_group_nccl
for f in tests/check_*; do sed -i '1i #!/bin/sh' "$f"; done
chmod +x tools/cuatomic tests/check_*
SCRIPT
chmod +x "$tmp/bin/nvidia-smi" "$tree/configure"

# Reads a report of either format, and prints a line for each result.
cat >"$tmp/read.py" <<'SCRIPT'
import re
import sys
import xml.etree.ElementTree as ET

junit, tap = sys.argv[1:3]
rows = []
root = ET.parse(junit).getroot()
assert root.tag == "testsuites"
for group in root:
    cases = group.findall("testcase")
    kinds = [next((c.tag for c in case if c.tag != "system-out"), "passed") for case in cases]
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(group.get(name)) == kinds.count(kind), (name, group.attrib)
    assert int(group.get("tests")) == len(cases)
    assert float(group.get("time")) == sum(float(case.get("time")) for case in cases)
    for case, kind in zip(cases, kinds):
        message = "" if kind == "passed" else case.find(kind).get("message")
        rows.append((group.get("name"), case.get("name"), kind, message))
for name in ("tests", "failures", "errors"):
    assert int(root.get(name)) == sum(int(group.get(name)) for group in root), name

lines = open(tap, encoding="utf-8").read().split("\n")
assert lines[0] == "TAP version 13" and lines[1] == "1..%d" % len(rows), lines[:2]
assert not re.search("[\0-\10\13-\37]", "".join(lines))
results = [re.fullmatch(r"(ok|not ok) (\d+) - (\S+) (\S+)( # SKIP .*)?", line) for line in lines]
results = [match for match in results if match]
assert [int(match[2]) for match in results] == list(range(1, len(rows) + 1))
for match, (way, suite, kind, message) in zip(results, rows):
    assert (match[3], match[4]) == (way, suite)
    assert (match[1] == "ok") == (kind in ("passed", "skipped")), match[0]
    assert bool(match[5]) == (kind == "skipped"), match[0]
    print(way, suite, kind, message)
try:
    import yaml
except ImportError:
    pass
else:
    blocks = re.findall(r"^  ---\n(.*?)^  \.\.\.$", "\n".join(lines), re.M | re.S)
    assert len(blocks) == len(rows)
    for block, (way, suite, kind, message) in zip(blocks, rows):
        values = yaml.safe_load(block)
        assert values["seconds"] >= 0
        assert kind in ("passed", "skipped") or values["message"] == message, values
    log = [yaml.safe_load(block)["log"].split("\n", 1)[1].rstrip("\n") for block, row in zip(blocks, rows) if row[1] == "check_bad"]
    failure = [case.find("failure").text for case in root.iter("testcase") if case.get("name") == "check_bad"]
    assert log == failure, (log, failure)
if len(sys.argv) > 3:
    failure = root.find(".//testcase[@name='check_bad']/failure").text
    for part in ('  <b>&amp; "quoted" ]]> red nulbell \n', "good: \xe4, no character: \n\ttab"):
        assert part in failure, (part, failure)
    values = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert values["gpu"] == 'Imaginary <GPU> & "friends", 9.0, 600.1', values
SCRIPT
# reports_are LINES [logs]: reads both reports, and compares their results
reports_are() {
  "$PYTHON" "$tmp/read.py" "$tmp/junit.xml" "$tmp/report.tap" ${2+"$2"} >"$tmp/rows" || fail "a report is wrong"
  printf '%s\n' "$1" | diff - "$tmp/rows" || fail "the reports have other results"
  if command -v xmllint >/dev/null; then
    xmllint --noout --relaxng "$schema" "$tmp/junit.xml" 2>"$tmp/out" || fail "the schema refuses the report"
  fi
}
gpu_check() { # gpu_check [VARIABLE=VALUE...]: becomes the script; the report files are relative to the current folder
  cd "$tmp" && exec env PATH="$tmp/bin:$PATH" GPU_CHECK_JUNIT=junit.xml GPU_CHECK_TAP=report.tap GPU_CHECK_JOBS=2 \
    GPU_CHECK_BUILD="$tmp/build" GPU_TEST_MARK="$tmp/mark" MAKEFLAGS= "$@" "$tree/ci/gpu-check" >"$tmp/out" 2>&1
}

# passed, failed, timeout and skipped
rc=0
(gpu_check GPU_CHECK_TIMEOUT=1 GPU_CHECK_WAYS='quick demo') || rc=$?
[ $rc = 1 ] || fail "exit $rc instead of 1"
grep -q '^2 passed, 2 failed, 1 skipped$' "$tmp/out" || fail "the last line is wrong"
reports_are 'quick check_good passed 
quick check_bad failure exit status 3
quick check_long failure timed out
quick check_group_nccl skipped a single GPU needs no NCCL
demo all passed ' logs

# a run that is stopped: the suites that have not finished are missing, and the next run runs these alone
: >"$tmp/mark"
rm -f "$tmp/junit.xml" "$tmp/report.tap"
(gpu_check GPU_CHECK_WAYS=full GPU_CHECK_SUITES='check_good check_long check_group_nccl' GPU_CHECK_JOBS=1) &
run=$!
for _ in $(seq 100); do
  [ ! -s "$tmp/mark.started" ] || break
  sleep 0.1
done
kill -TERM $run
rc=0
wait $run || rc=$?
[ $rc = 143 ] || fail "exit $rc instead of 143"
for _ in $(seq 50); do
  kill -0 "$(cat "$tmp/mark.started")" 2>/dev/null || break
  sleep 0.1
done
! kill -0 "$(cat "$tmp/mark.started")" 2>/dev/null || fail "the suite that was stopped still runs"
reports_are 'full check_good passed 
full check_long error the run ended before this suite
full check_group_nccl error the run ended before this suite'
rc=0
(gpu_check GPU_CHECK_WAYS=full GPU_CHECK_SUITES='check_good check_group_nccl') || rc=$?
[ $rc = 0 ] || fail "exit $rc after the run that was stopped"
! grep -q 'full check_good: exit' "$tmp/out" || fail "a suite that has passed ran again"
reports_are 'full check_good passed 
full check_group_nccl skipped a single GPU needs no NCCL'

# a build that fails is in the reports too
: >"$tree/broken"
rm -rf "$tmp/build" "$tmp/junit.xml" "$tmp/report.tap"
rc=0
(gpu_check) || rc=$?
[ $rc = 1 ] || fail "exit $rc instead of 1 after a failed configure"
reports_are 'build configure failure exit status 3'
grep -qF '&lt;broken&gt; &amp; &quot;gone&quot;' "$tmp/junit.xml" || fail "the report lacks the log of configure"

# without the variables there is no report
rm -f "$tmp/junit.xml" "$tmp/report.tap" "$tree/broken"
(gpu_check GPU_CHECK_SUITES=check_good GPU_CHECK_JUNIT= GPU_CHECK_TAP=) || fail "a good run without reports"
[ ! -e "$tmp/junit.xml" ] && [ ! -e "$tmp/report.tap" ] && [ ! -e "$tmp/.tmp" ] || fail "there are reports"
