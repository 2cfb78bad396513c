#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command cuatomic: its output, its refusals and its exit statuses. The demonstration verifies
# every row on files of all kinds, every benchmark runs, and both notice a wrong result.
set -uo pipefail

# shellcheck source=tests/cli_runs.sh
. "${top_srcdir:?}/tests/cli_runs.sh"
rows=17

# demo NAME ARGUMENT...: every row is there and verified, and stderr is empty.
demo() {
  local what=$1
  shift
  runs 0 "demo of $what" "$cuatomic" demo "$@" || return
  [ ! -s "$tmp/err" ] || fail "demo of $what: something on stderr"
  [ "$(grep -c ' yes$' "$tmp/out")" = $rows ] || fail "demo of $what: not $rows rows verified"
  ! grep -q ' NO$' "$tmp/out" || fail "demo of $what: a row says NO"
  says out "demo of $what" "^$rows results verified on the "
}
# group RANKS NAME ARGUMENT...: every row of a group is there and verified, and nothing is left in TMPDIR.
group_rows=7
group() {
  local ranks=$1 what="group of $1, $2" where="on 1 rank( and on $1 ranks)?"
  shift 2
  mkdir -p "$tmp/saves"
  runs 0 "$what" env TMPDIR="$tmp/saves" "$cuatomic" demo --group="$ranks" "$@" || return
  [ ! -s "$tmp/err" ] || fail "$what: something on stderr"
  [ "$(grep -c ' yes$' "$tmp/out")" = $group_rows ] || fail "$what: not $group_rows rows verified"
  ! grep -q ' NO$' "$tmp/out" || fail "$what: a row says NO"
  says out "$what" "^$group_rows results verified $where\$"
  if [ "$ranks" = 1 ]; then
    says out "$what" '^part +result +1 rank +verified$'
  else
    says out "$what" "^part +result +1 rank +$ranks ranks +verified\$"
  fi
  rmdir "$tmp/saves" || fail "$what: files are left: $(ls -A "$tmp/saves")"
}
# described NAME BEGIN END ROWS: between these lines cuatomic(1) describes each row of the last demo, and no other.
described() {
  local rows=$4
  sed -n "/^$2/,/^$3/p" "$top_srcdir/doc/cuatomic.1" |
    sed -n '/^\.TP/{n;p;}' | sed -E 's/^\.BR? //; s/ *", " */\n/g' |
    tr -d '"' | sort >"$tmp/described"
  sed '1,/^part /d' "$tmp/out" | sed -n '/^$/q; s/^\(.\{20\}\).*/\1/p' | sed 's/ *$//' | sort >"$tmp/shown"
  diff "$tmp/described" "$tmp/shown" >"$tmp/diff" && [ "$(wc -l <"$tmp/shown")" = $rows ] ||
    fail "$1: rows of cuatomic(1) and of the demo differ: $(cat "$tmp/diff")"
}
row() { # row PART RESULT: of the last demo
  says out "row '$1'" "^$1 +$2 "
}

# ---- --help and --version ----

major=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"/\1/p' \
  "$top_builddir/include/cuatomic/version.h")
[ -n "$major" ] || fail "no version in cuatomic/version.h"
for option in --version -V; do
  runs 0 "$option" "$cuatomic" $option
  [ "$(cat "$tmp/out")" = "cuatomic $major" ] || fail "$option: not the version of the headers"
done
for option in --help -h help "demo --help"; do
  # shellcheck disable=SC2086 # two words
  runs 0 "$option" "$cuatomic" $option
  says out "$option" '^usage: cuatomic demo'
  [ ! -s "$tmp/err" ] || fail "$option: something on stderr"
done

runs 0 "info" "$cuatomic" info
says out info "^cuatomic $major\$"
says out info '^CPU backend$'
says out info '^    threads: +[1-9][0-9]*$'
says out info '^CUDA backend$'
says out info '^  (no device: .+|device 0: .+)$'
if grep -q '^  device 0: .' <(sed '1,/^CUDA backend/d' "$tmp/out"); then
  says out info '^    PCI id: +[0-9a-f]+:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$'
  says out info '^    UUID: +[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  says out info '^    driver: +[^ ]+, for CUDA up to [1-9][0-9]+\.[0-9]+$'
  says out info '^    CUDA runtime: +[1-9][0-9]+\.[0-9]+$'
fi
runs 0 "info --atomics" "$cuatomic" info --atomics
says out "info --atomics" '^    u32 +(N +){6}'
says out "info --atomics" '^    f32 +N +N +N +N +32 +32 +32 +32 +32 +32 +\. +\.'
says out "info --atomics" '^    N native; 8 to 128: '
runs 0 "info without a GPU" env CUDA_VISIBLE_DEVICES= "$cuatomic" info
if grep -q '^  architectures built: *[0-9]' "$tmp/out"; then
  says out "info without a GPU" '^  no device: (no CUDA driver is installed|the CUDA driver [a-z ]+)$'
else
  says out "info without a GPU" '^  no device: this library was built without CUDA$'
fi

# ---- refused arguments ----

runs 2 "no command" "$cuatomic" && one_line "no command"
runs 2 "unknown command" "$cuatomic" demonstrate && one_line "unknown command"
runs 2 "unknown option" "$cuatomic" --frobnicate && one_line "unknown option"
runs 2 "unknown option of demo" "$cuatomic" demo --frobnicate && one_line "unknown option of demo"
says err "unknown option of demo" "'--frobnicate'"
runs 2 "unknown letter" "$cuatomic" demo -x && one_line "unknown letter"
says err "unknown letter" "'-x'"
runs 2 "unknown backend" "$cuatomic" demo --backend=tpu && one_line "unknown backend"
runs 2 "no backend" "$cuatomic" demo --backend && one_line "no backend"
for n in 0 1025 -1 two 1x '' 99999999999999999999; do
  runs 2 "threads '$n'" "$cuatomic" demo "--threads=$n" && one_line "threads '$n'"
done
runs 2 "unknown benchmark" "$cuatomic" bench everything && one_line "unknown benchmark"
runs 2 "unknown option of bench" "$cuatomic" bench locks --loud && one_line "unknown option of bench"
runs 2 "unknown backend of bench" "$cuatomic" bench -b tpu locks && one_line "unknown backend of bench"
runs 2 "no threads of bench" "$cuatomic" bench locks -t 0 && one_line "no threads of bench"
runs 2 "an argument of bench" "$cuatomic" bench -b cpu locks candidates && one_line "an argument of bench"
says err "an argument of bench" "'candidates'"
runs 2 "an argument without a GPU" env CUDA_VISIBLE_DEVICES= "$cuatomic" bench hashmap extra &&
  one_line "an argument without a GPU"
says err "an argument without a GPU" "'extra'"
runs 1 "textbook on the CPU" "$cuatomic" bench textbook -b cpu && one_line "textbook on the CPU"
runs 2 "two files" "$cuatomic" demo a b && one_line "two files"
runs 2 "an argument of info" "$cuatomic" info x && one_line "an argument of info"
runs 2 "an option of info" "$cuatomic" info --quick && one_line "an option of info"

runs 1 "missing file" "$cuatomic" demo "$tmp/missing" && one_line "missing file"
says err "missing file" "^cuatomic: $tmp/missing: No such file or directory\$"
runs 1 "folder" "$cuatomic" demo "$tmp" && one_line "folder"
says err "folder" "^cuatomic: $tmp: Is a directory\$"
mkdir "$tmp/two lines"
runs 1 "name with a newline" "$cuatomic" demo "$tmp/two"$'\n'"lines" && one_line "name with a newline"
if [ "$(id -u)" != 0 ]; then
  echo secret >"$tmp/secret"
  chmod 000 "$tmp/secret"
  runs 1 "unreadable file" "$cuatomic" demo "$tmp/secret" && one_line "unreadable file"
  says err "unreadable file" 'Permission denied$'
elif [ -r /proc/self/mem ]; then
  # root may read every file of a disk, but not the start of this file
  runs 1 "unreadable file" "$cuatomic" demo /proc/self/mem && one_line "unreadable file"
fi
if [ -e /dev/full ]; then
  rc=0
  "$cuatomic" --help >/dev/full 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "output that cannot be written: exit status $rc"
  says err "output that cannot be written" '^cuatomic: standard output: '
fi
runs 1 "cuda without a GPU" env CUDA_VISIBLE_DEVICES= "$cuatomic" demo --backend=cuda /dev/null &&
  one_line "cuda without a GPU"

# ---- the benchmarks ----

runs 0 "list of benchmarks" "$cuatomic" bench --list
cp "$tmp/out" "$tmp/benchmarks"
for name in append atomics copy fill group group-by hashmap histogram latency launch locks malloc peer random read reduce \
  scatter textbook write; do
  says out "list of benchmarks" "^$name +[a-z]"
done

# Each row is printed as soon as it is measured, through a pipe too: the second row waits until we
# close its input, after the first row was read. Only a failure reaches the time limit.
coproc held { BENCH_HOLD=pthread_mutex "$planted" bench locks -q -b cpu -t 1 2>"$tmp/err"; }
held_pid=$!
found=
while IFS= read -r -t 120 -u "${held[0]}" line; do
  case $line in *"ceiling: one thread"*) found=yes; break ;; esac
done
: >"$tmp/out"
if [ "$found" = yes ]; then
  passed=$((passed + 1))
else
  fail "bench: the first row does not come before the second is measured"
fi
# shellcheck disable=SC1083,SC2093 # it closes the descriptor
exec {held[1]}>&-
cat <&"${held[0]}" >"$tmp/out"
wait "$held_pid" || fail "bench with a row that waited"
says out "bench with a row that waited" "^[^ ].* cua_spinlock_lock, unlock +[0-9.]+ "

# table NAME CASE WAY...: the last benchmark has each row once, and exactly 1 peer is the best.
table() {
  local what=$1 case=$2 way
  shift 2
  says out "$what" '^case +way +(M|GB)/s +\(least to most\) +x peer +of ceiling'
  for way; do
    [ "$(grep -Ec "^$case +$way +[0-9.e-]+ \([0-9.e-]+ to [0-9.e-]+\) +[0-9.-]+ +[0-9.]+" "$tmp/out")" = 1 ] ||
      fail "$what: not one row '$case', '$way'"
  done
  grep -Eq "^$case .*\) +1\.00 " "$tmp/out" || fail "$what: $case has no best peer"
}

for threads in 1 3; do
  if runs 0 "bench locks, $threads" "$cuatomic" bench locks --quick -b cpu -t $threads; then
    [ ! -s "$tmp/err" ] || fail "bench locks: something on stderr"
    for case in "one thread" "all threads, $threads"; do
      table "bench locks, $threads" "$case" "ceiling: one thread that never waits" pthread_mutex \
        pthread_spinlock "pthread_rwlock, writers" "sem_t, of 1" "cua_spinlock_lock, unlock" \
        "cua_ticketlock_lock, unlock" "cua_mcslock_lock, unlock" "cua_rwlock_write_lock, unlock" \
        "cua_semaphore_lock, unlock, of 1"
    done
  fi
done
if runs 0 "bench atomics" env CUDA_VISIBLE_DEVICES= "$cuatomic" bench atomics -q -t 2; then
  [ ! -s "$tmp/err" ] || fail "bench atomics: something on stderr"
  says out "bench atomics" '^no GPU \(.+\), so on the CPU$'
  says out "bench atomics" '^atomics: .*, 2 threads; cuatomic '
  for case in "one address" "4 Ki addresses"; do
    table "bench atomics" "$case: u32 add" __atomic_fetch_add pthread_mutex cua_atomic_add_u32
    table "bench atomics" "$case: f32 add" "loop of __atomic_compare_exchange" pthread_mutex \
      cua_atomic_add_f32 cua_atomic_fetch_add_cas_f32
    table "bench atomics" "$case: f64 mul" "loop of __atomic_compare_exchange" pthread_mutex \
      cua_atomic_fetch_mul_f64
    table "bench atomics" "$case: u32 max" "loop of __atomic_compare_exchange" pthread_mutex \
      cua_atomic_max_u32
    table "bench atomics" "$case: user, u64" "loop of __atomic_compare_exchange" pthread_mutex \
      CUA_DEFINE_ATOMIC
  done
fi

for threads in 1 3; do
  if runs 0 "bench append, $threads" "$cuatomic" bench append --quick -b cpu -t $threads; then
    [ ! -s "$tmp/err" ] || fail "bench append: something on stderr"
    for case in "f32, 10 % kept" "f32, 50 % kept" "f32, 90 % kept" "f32, indexes of 50 %" \
      "f32, partition, 50 %" "f32, 50 % by flags" "u8, 50 % kept" "u16, 50 % kept" "u64, 50 % kept"; do
      table "bench append, $threads" "$case" "ceiling: memcpy, all threads" \
        "a loop, one thread" "cua_filter_array in order, one thread" \
        "cua_filter_array in order, all threads" "cua_filter_array, all threads"
    done
    says out "bench append, $threads" "^f32, 50 % by flags +cua_filter_append, all threads +[0-9.e-]+ \("
  fi
done

for threads in 1 3; do
  # without the second program
  if runs 0 "bench hashmap, $threads" env CUATOMIC_BENCH_DIR="$tmp" \
    "$cuatomic" bench hashmap --quick -b cpu -t $threads; then
    [ ! -s "$tmp/err" ] || fail "bench hashmap: something on stderr"
    for shape in "4\+4, 0.8" "8\+8, 0.8" "4\+4, 0.5"; do
      for op in insert "find hits" "find misses" "erase half" "insert that half"; do
        ceiling=additions
        [ "${op%% *}" != find ] || ceiling=reads
        table "bench hashmap, $threads" "$shape, $op" "ceiling: random $ceiling, all threads" \
          "linear probing, one thread" "cua_hashmap, one thread" "cua_hashmap, all threads"
      done
    done
    for case in uniform "zipf 1.0" "one key"; do
      table "bench hashmap, $threads" "update, $case" "ceiling: random additions, all threads" \
        "linear probing, one thread" "cua_hashmap, one thread" "cua_hashmap, all threads"
    done
  fi
done

for threads in 1 3; do
  if runs 0 "bench histogram, $threads" "$cuatomic" bench histogram --quick -b cpu -t $threads; then
    [ ! -s "$tmp/err" ] || fail "bench histogram: something on stderr"
    for case in "u8 256, uniform" "u8 256, constant" "u8 256, zipf 1.5" "u8 256, sorted" \
      "u8 256, clustered" "letters, uniform" "u32 256, clustered" "u32 4096, uniform" \
      "u32 65536, zipf 1.5" "f32 256, uniform" "f32 256 edges, zipf 1.5"; do
      table "bench histogram, $threads" "$case" "ceiling: vector loads, all threads" \
        "a loop, one thread" "cua_histogram, one thread" "cua_histogram, all threads"
    done
  fi
done

for threads in 1 3; do
  if runs 0 "bench reduce, $threads" "$cuatomic" bench reduce --quick -b cpu -t $threads; then
    [ ! -s "$tmp/err" ] || fail "bench reduce: something on stderr"
    for type in f32 f64 "i32 to i64" i64; do
      for case in "sum $type" "dot $type"; do
        table "bench reduce, $threads" "$case" "ceiling: vector loads, all threads" \
          "a loop, one thread" "cua_reduce, FAST" "cua_reduce, FIXED"
      done
    done
    for case in "min f32" "argmin f32" "variance f32"; do
      table "bench reduce, $threads" "$case" "ceiling: vector loads, all threads" \
        "a loop, one thread" "cua_reduce, FAST" "cua_reduce, FIXED"
    done
    for type in f16 bf16; do
      for mode in FAST FIXED; do
        says out "bench reduce, $threads" "^sum $type to f32 +cua_reduce, $mode +[0-9.e-]+ \("
        says out "bench reduce, $threads" "^dot $type to f32 +cua_reduce, $mode +[0-9.e-]+ \("
      done
    done
    # an unavailable way has no figures, and ends nothing
    for case in "sum f32" "dot f64" "sum bf16 to f32"; do
      says out "bench reduce, $threads" "^$case +cua_reduce, EXACT +([0-9.e-]+ \(|- not available )"
    done
  fi
done

# The test program also checks that each benchmark has as many rows as it announced.
for name in append atomics hashmap histogram locks reduce; do
  runs 0 "rows of $name" env CUATOMIC_BENCH_DIR="$tmp" "$planted" bench "$name" -q -b cpu -t 2
  [ ! -s "$tmp/err" ] || fail "rows of $name: something on stderr"
done

# The test program falsifies the result of one way by 1, or by as much as is visible.
for name in locks:'cua_ticketlock_lock, unlock' locks:'pthread_mutex' \
  atomics:cua_atomic_add_u32 atomics:cua_atomic_add_f32 atomics:cua_atomic_fetch_mul_f64 \
  atomics:cua_atomic_max_u32 atomics:CUA_DEFINE_ATOMIC \
  append:'ceiling: memcpy, all threads' append:'f32, 10 % kept, a loop, one thread' \
  append:'f32, partition, 50 %, cua_filter_array in order, one thread' \
  append:'u8, 50 % kept, cua_filter_array, all threads' \
  append:'f32, 50 % by flags, cua_filter_append, all threads' \
  hashmap:'ceiling: random reads, all threads' hashmap:'ceiling: random additions, all threads' \
  hashmap:'4+4, 0.8, insert, linear probing, one thread' hashmap:'4+4, 0.8, insert, cua_hashmap, all threads' \
  hashmap:'8+8, 0.8, find hits, cua_hashmap, one thread' hashmap:'8+8, 0.8, find misses, cua_hashmap, all threads' \
  hashmap:'4+4, 0.5, erase half, linear probing, one thread' \
  hashmap:'8+8, 0.8, insert that half, cua_hashmap, all threads' \
  hashmap:'update, uniform, cua_hashmap, all threads' hashmap:'update, one key, cua_hashmap, one thread' \
  histogram:'ceiling: vector loads, all threads' histogram:'u8 256, zipf 1.5, a loop, one thread' \
  histogram:'letters, uniform, cua_histogram, one thread' \
  histogram:'u32 4096, uniform, cua_histogram, all threads' \
  histogram:'f32 256 edges, uniform, cua_histogram, all threads' \
  reduce:'ceiling: vector loads, all threads' reduce:'sum f32, a loop, one thread' \
  reduce:'sum f32, cua_reduce, FAST' reduce:'min f32, cua_reduce, FIXED' reduce:'argmin f32, cua_reduce, FAST' \
  reduce:'variance f32, cua_reduce, FIXED' reduce:'dot f64, cua_reduce, FAST' \
  reduce:'dot i32 to i64, cua_reduce, FIXED' reduce:'sum i64, a loop, one thread' \
  reduce:'dot f16 to f32, cua_reduce, FAST' reduce:'sum bf16 to f32, cua_reduce, FIXED'; do
  way=${name#*:}
  runs 1 "planted: $way" env BENCH_PLANT="$way" "$planted" bench "${name%%:*}" -q -b cpu -t 2 || continue
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "planted: $way: not one line on stderr"
  says err "planted: $way" "^cuatomic: bench ${name%%:*}: .*${way//+/\\+}: the result is [0-9.e+-]+, not [0-9.e+-]+\$"
done

# A program of a GPU gets the arguments. An exit status above 2 is a failure with a line.
mkdir "$tmp/programs"
printf '#!/bin/sh\necho "$0" "$@"\nexit 7\n' >"$tmp/programs/bench-locks"
chmod +x "$tmp/programs/bench-locks"
runs 1 "the program of a benchmark" env CUATOMIC_BENCH_DIR="$tmp/programs" \
  "$cuatomic" bench --backend=cuda locks --quick candidates 'a b'
says out "the program of a benchmark" "^$tmp/programs/bench-locks --quick candidates a b\$"
says err "the program of a benchmark" '^cuatomic: bench locks: the benchmark failed with status 7$'
runs 1 "no program" env CUATOMIC_BENCH_DIR="$tmp/programs" "$cuatomic" bench -b cuda atomics &&
  one_line "no program"
says err "no program" "$tmp/programs/bench-atomics: No such file"
if "$cuatomic" info | grep -q 'built without CUDA$'; then
  says err "no program, no CUDA" '; no GPU \(this library was built without CUDA\)$'
  runs 1 "a build without CUDA" env -u CUATOMIC_BENCH_DIR "$cuatomic" bench -b cuda hashmap &&
    one_line "a build without CUDA"
  says err "a build without CUDA" '^cuatomic: CUDA backend: this build has none$'
fi

# A second program runs after the first table is printed.
printf '#!/bin/sh\necho "$0" "$@"\nexit 7\n' >"$tmp/programs/bench-maps"
chmod +x "$tmp/programs/bench-maps"
runs 1 "the program that goes on" env CUATOMIC_BENCH_DIR="$tmp/programs" "$cuatomic" bench hashmap -q -b cpu -t 2
says out "the program that goes on" "^$tmp/programs/bench-maps --threads=2 --quick\$"

# The programs of this build.
programs=$(cd "$top_builddir/bench" && pwd)
if [ -x "$programs/bench-maps" ]; then
  runs 0 "bench-maps --help" "$programs/bench-maps" --help
  says out "bench-maps --help" '^usage: bench-maps '
  for argument in nonsense --threads=0 --threads=x; do
    runs 2 "bench-maps $argument" "$programs/bench-maps" $argument && one_line "bench-maps $argument"
  done
  if runs 0 "bench hashmap with peers" env CUATOMIC_BENCH_DIR="$programs" \
    "$cuatomic" bench hashmap -q -b cpu -t 2; then
    [ ! -s "$tmp/err" ] || fail "bench hashmap with peers: something on stderr"
    has_row() {
      for case in insert "find hits" "find misses"; do
        for threads in "1 thread" "2 threads"; do
          says out "bench hashmap with peers" \
            "^$case, $threads +$1 +[0-9.e-]+ \([0-9.]+ to [0-9.]+\) \* +[0-9.]+ "
        done
      done
    }
    has_row "cua_hashmap, a key a call"
    has_row cua_hashmap
    if grep -q '^#define HAVE_LIBCUCKOO 1' "$top_builddir/config.h"; then
      has_row libcuckoo
      has_row "libcuckoo, large pages"
    fi
    grep -q '^#define HAVE_TBB 1' "$top_builddir/config.h" && has_row oneTBB
  fi
fi
while read -r name _; do
  [ -x "$programs/bench-$name" ] || continue
  runs 1 "bench $name without a GPU" env CUATOMIC_BENCH_DIR="$programs" CUDA_VISIBLE_DEVICES= \
    "$cuatomic" bench -b cuda "$name" && says err "bench $name without a GPU" 'no CUDA device$'
  runs 2 "argument of bench $name" env CUATOMIC_BENCH_DIR="$programs" \
    "$cuatomic" bench -b cuda "$name" nonsense && says err "argument of bench $name" "'nonsense'"
  if "$cuatomic" demo --backend=cuda /dev/null >/dev/null 2>&1; then
    runs 0 "bench $name on the GPU" env CUATOMIC_BENCH_DIR="$programs" "$cuatomic" bench -q "$name"
    says out "bench $name on the GPU" '^case +way +(M|G|GB)/s '
    # the limit of a group is a multiple of its peer
    [ "$name" = group ] || says out "bench $name on the GPU" 'ceiling: .* 1\.000'
  fi
done <"$tmp/benchmarks"

# ---- the demonstration ----

# Only the first file runs on the GPU, all others on the CPU alone: the GPU has its own suites, and
# starting CUDA for each file would take long.
demo "the default"
says out "the default" '^file: '
described "the default" 'The table has a row for each part:' 'The times are wall time' $rows
group 2 "the default"
described "the default group" 'This table has a row for each part of a group:' '\.SS cuatomic bench' $group_rows
export CUDA_VISIBLE_DEVICES=

demo "the default, on the CPU" --backend=cpu --threads=3
says out "the default, on the CPU" ', 3 threads$'
says out "the default, on the CPU" '^GPU:  not used$'

: >"$tmp/empty"
demo "an empty file" "$tmp/empty"
row sum 0
row min inf
row max -inf
row 'filter' '0 bytes <= 32'
row 'hash map' '0 different words'
row 'multimap' '0 positions of words'
row 'chained table' '0 positions of words'

printf x >"$tmp/one"
demo "one byte" "$tmp/one"
row sum 120
row dot 0
row max 120
row 'hash map' '1 different words'
printf ' ' >"$tmp/space"
cp "$tmp/space" "$tmp/two"$'\n\033lines'
demo "a name with a newline" -t1 "$tmp/two"$'\n\033lines'
says out "a name with a newline" '^file: .*two\?.*lines, 1 byte$'
demo "one space" -t1 "$tmp/space"
row 'filter' '1 bytes <= 32'
row 'hash map' '0 different words'

# words, and results known without the reference
printf 'the cat and\tthe dog\nand\v\f\r the end' >"$tmp/words"
demo "a few words" "$tmp/words"
row 'sum' 2729
row 'dot' 212114
row 'min' 9
row 'max' 116
row 'sums of segments' '2729 in all segments'
row 'sums of runs' '34 runs of equal bytes'
row 'filter' '10 bytes <= 32'
row 'filter, in order' '10 bytes <= 32'
row 'histograms' '34 bytes'
row 'fill and copy' '34 elements'
row 'hash map' '5 different words'
row 'multimap' '8 positions of words'
row 'chained table' '8 positions of words'

head -c 3000000 /dev/urandom >"$tmp/binary"
demo "a binary file" "$tmp/binary"
row 'histograms' '3000000 bytes'
row 'fill and copy' '3000000 elements'

# A piece has 4194304 bytes: a word that is longer is cut, others are not.
head -c 5000000 /dev/zero >"$tmp/zeros"
demo "zeros" "$tmp/zeros"
row sum 0
row 'sums of runs' '2 runs of equal bytes'
row 'multimap' '2 positions of words'
yes again | head -c 6999996 >"$tmp/repeated"
demo "one word again and again" "$tmp/repeated"
row 'hash map' '2 different words'
row 'multimap' '1166666 positions of words'
row 'sums of runs' '6999996 runs of equal bytes'
row 'min' 10
row 'max' 110

seq 1 300000 >"$tmp/distinct"
demo "all words different" "$tmp/distinct"
row 'hash map' '300000 different words'
row 'chained table' '300000 positions of words'

runs 0 "a pipe" bash -c "cat '$tmp/words' | '$cuatomic' demo -"
row 'multimap' '8 positions of words'
says out "a pipe" '^file: standard input, 34 bytes$'
mkfifo "$tmp/fifo"
cat "$tmp/words" >"$tmp/fifo" &
runs 0 "a FIFO" "$cuatomic" demo "$tmp/fifo"
row 'multimap' '8 positions of words'
wait
mkdir "$tmp/folder"
cp "$tmp/words" "$tmp/folder/-words"
runs 0 "a name like an option" bash -c "cd '$tmp/folder' && '$cuatomic' demo -- -words"
row 'multimap' '8 positions of words'

# ---- the demonstration of groups ----

for ranks in 1 2 3 7 64; do
  group $ranks "a few words" -t 2 "$tmp/words"
  row 'sum, exact' 272.900
  row 'sum, fixed' 272.900
  row 'histogram' '34 bytes'
  row 'map, build' '5 different words'
  row 'map, update' '8 words'
  row 'map, find' '5 words found'
  row 'map, save and load' '5 different words'
done
group 3 "an empty file" -b cpu "$tmp/empty"
says out "a group, an empty file" '^GPU:  not used$'
row 'sum, exact' 0.000
row 'map, build' '0 different words'
group 5 "one byte" "$tmp/one"
row 'sum, exact' 12.000
row 'sum, fixed' 12.000
group 3 "one space" -t1 "$tmp/space"
row 'map, save and load' '0 different words'
# two pieces
group 3 "one word again and again" "$tmp/repeated"
row 'map, build' '2 different words'
row 'map, update' '1166666 words'
group 4 "a binary file" "$tmp/binary"
row 'histogram' '3000000 bytes'
group 2 "all words different" "$tmp/distinct"
row 'map, find' '300000 words found'
runs 0 "a group, a pipe" bash -c "'$cuatomic' demo -g 2 - <'$tmp/words'"
row 'map, update' '8 words'

for n in 0 -1 65 two 2x '' 99999999999999999999; do
  runs 2 "group '$n'" "$cuatomic" demo --group "$n" "$tmp/words" && one_line "group '$n'"
  says err "group '$n'" "^cuatomic: '$n' is not a number of ranks \\(1 to 64\\); see cuatomic --help\$"
done
runs 2 "no group" "$cuatomic" demo "$tmp/words" --group && one_line "no group"
runs 2 "a group of bench" "$cuatomic" bench --group=2 locks && one_line "a group of bench"
runs 2 "a letter of demo" "$cuatomic" bench -g 2 locks && one_line "a letter of demo"
runs 1 "a group of GPUs without a GPU" "$cuatomic" demo -g 2 -b cuda "$tmp/words" &&
  one_line "a group of GPUs without a GPU"
says err "a group of GPUs without a GPU" '^cuatomic: CUDA backend: .'
runs 1 "a group without a folder" env TMPDIR="$tmp/missing" "$cuatomic" demo -g 2 "$tmp/words"
says err "a group without a folder" "^cuatomic: a folder in $tmp/missing: No such file or directory\$"

# ---- planted wrong results ----

# The test program's reference is wrong by 1 in the named check. Only the row of this check fails;
# the other rows stay verified.
plant() { # plant ROW CHECK
  runs 1 "planted: $2" env DEMO_PLANT="$2" "$planted" demo "$tmp/words" || return
  says out "planted: $2" "^$1 .* NO\$"
  says out "planted: $2" "^1 of $rows results WRONG"
  says err "planted: $2" "^cuatomic: $1, CPU: $2 is "
  [ "$(grep -c ' yes$' "$tmp/out")" = $((rows - 1)) ] ||
    fail "planted: $2: not all other rows are verified"
}
runs 0 "the test program" "$planted" demo "$tmp/words"
for part in 'sum' 'sum, by an atomic' 'sum, under a lock' 'sum, locks in order' 'dot' \
  'dot, exact' 'min' 'max'; do
  plant "$part" "$part"
done
plant 'sums of segments' 'sum of a segment'
plant 'sums of runs' 'byte of a run'
plant 'sums of runs' 'sum of a run'
plant 'sums of runs' 'number of runs'
plant 'filter' 'count of a kept byte'
plant 'filter, in order' 'byte kept in order'
plant 'filter, in order' 'number kept in order'
plant 'histograms' 'count of a byte'
plant 'histograms' 'count of sixteen bytes'
plant 'fill and copy' 'number of elements filled'
plant 'hash map' 'word found'
plant 'hash map' 'count of a word'
plant 'hash map' 'number of keys'
plant 'multimap' 'first position of a word'
plant 'multimap' 'position of a word'
plant 'multimap' 'number of positions'
plant 'chained table' 'state of the table'
plant 'chained table' 'number of right words'
plant_group() { # plant_group ROW CHECK
  runs 1 "planted: $2" env DEMO_PLANT="$2" TMPDIR="$tmp" "$planted" demo -g 3 -b cpu -t 1 "$tmp/words" || return
  says out "planted: $2" "^$1 .* NO\$"
  says out "planted: $2" "^1 of $group_rows results WRONG on 1 rank and on 3 ranks\$"
  says err "planted: $2" "^cuatomic: $1, 1 rank: $2 is "
  [ "$(grep -c ' yes$' "$tmp/out")" = $((group_rows - 1)) ] ||
    fail "planted: $2: not all other rows are verified"
  ! compgen -G "$tmp/cuatomic-demo-*" >/dev/null || fail "planted: $2: a folder is left"
}
plant_group 'sum, exact' 'exact sum'
plant_group 'sum, fixed' 'fixed sum'
plant_group 'sum, fixed' 'whether the fixed sum is near the exact sum'
plant_group 'histogram' 'count of a byte'
plant_group 'map, build' 'number of words inserted'
plant_group 'map, build' 'number of keys'
plant_group 'map, update' 'number of words counted'
plant_group 'map, find' 'word found'
plant_group 'map, find' 'count of a word'
plant_group 'map, find' 'number of words found'
plant_group 'map, save and load' 'word found in the loaded map'
plant_group 'map, save and load' 'count of a word in the loaded map'
plant_group 'map, save and load' 'number of keys loaded'
# each check in the source is in the lists above; the first 8 of a device, 2 sums and 4 finds are by a single call
checks=$(grep -Ec 'verify(_result)?\(d, ("|part->name)' "$top_srcdir/tools/demo_parts.c")
[ "$checks" = 19 ] || fail "the tool has $checks checks; bring this list up to date"
checks=$(grep -Ec 'demo_verify(_result)?\(d, ' "$top_srcdir/tools/demo_group.c")
[ "$checks" = 10 ] || fail "the group has $checks checks; bring this list up to date"

# Without licence texts the default is the README of cuatomic, in a folder above the
# program or where it is installed; this build need not be in either place.
rc=0
"$planted" demo >"$tmp/out" 2>"$tmp/err" || rc=$?
if [ $rc = 0 ]; then
  passed=$((passed + 1))
  says out "the other default" '^file: .*README.md, '
else
  runs 1 "no default" "$planted" demo && one_line "no default"
  says err "no default" 'there is no default file here'
fi

# ---- completion ----

# The words that Bash would offer for the line given.
complete_line() {
  (
    # shellcheck source=/dev/null
    source "$top_srcdir/tools/cuatomic.bash"
    COMP_WORDS=("$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _cuatomic
    printf '%s\n' "${COMPREPLY[@]}"
  ) 2>"$tmp/err" | sort | tr '\n' ' '
}
completes() { # completes EXPECTED WORD...
  local expected=$1 got
  shift
  got=$(complete_line "$@")
  if [ "$got" = "$expected " ]; then
    passed=$((passed + 1))
  else
    fail "completion of '$*': '$got', not '$expected'"
  fi
  [ ! -s "$tmp/err" ] || fail "completion of '$*': something on stderr"
}
completes '--help --version bench demo help info' cuatomic ''
completes 'info' cuatomic i
completes '--backend= --group= --help --threads=' cuatomic demo --
completes '' cuatomic demo --group = ''
completes "$tmp/binary" cuatomic demo --group=3 "$tmp/bin"
completes 'auto cpu cuda' cuatomic demo --backend = ''
completes 'auto cpu cuda' cuatomic demo --backend =
completes 'cuda' cuatomic demo --backend = cu
completes 'cpu' cuatomic demo -b cp
completes "$tmp/binary" cuatomic demo "$tmp/bin"
completes '--atomics --help --json' cuatomic info ''
completes '--help' cuatomic help ''
completes "$(cut -d ' ' -f 1 "$tmp/benchmarks" | tr '\n' ' ' | sed 's/ $//')" cuatomic bench ''
completes 'latency launch locks' cuatomic bench --quick l
completes '--against= --backend= --compare --csv --device= --filter= --from= --help --json --list --plot= --quick --seconds= --size= --threads= --threshold=' \
  cuatomic bench --
completes '--json' cuatomic bench locks --j
completes "$tmp/binary" cuatomic bench locks --json = "$tmp/bin"
completes "$tmp/binary" cuatomic bench --from = "$tmp/bin"
completes "$tmp/binary" cuatomic bench --plot = "$tmp/bin"
completes "$tmp/binary" cuatomic bench --compare "$tmp/bin"
completes "$tmp/binary" cuatomic bench --against = "$tmp/bin"
completes 'latency launch locks' cuatomic bench --json l
completes '' cuatomic bench --filter = lo
completes 'cpu' cuatomic bench --backend = cp
[ "$(complete_line cuatomic bench '')" = "$(cut -d ' ' -f 1 "$tmp/benchmarks" | tr '\n' ' ')" ] ||
  fail "completion of bench: not the list of the command"
if command -v fish >/dev/null; then
  fish_line() { # fish_line LINE: the words that fish would offer
    fish -N -c "source '$top_srcdir/tools/cuatomic.fish'; complete -C '$1'" 2>"$tmp/err" </dev/null |
      cut -f 1 | sort | tr '\n' ' '
  }
  offers() { # offers EXPECTED LINE
    local got
    got=$(HOME=$tmp fish_line "$2")
    if [ "$got" = "$1 " ] && [ ! -s "$tmp/err" ]; then
      passed=$((passed + 1))
    else
      fail "fish: completion of '$2': '$got', not '$1'"
    fi
  }
  offers 'bench demo help info' 'cuatomic '
  offers "$(cut -d ' ' -f 1 "$tmp/benchmarks" | tr '\n' ' ' | sed 's/ $//')" 'cuatomic bench '
  offers '--group' 'cuatomic demo --gr'
  offers '--atomics' 'cuatomic info --at'
  offers '--backend=auto --backend=cpu --backend=cuda' 'cuatomic bench --backend='
  offers "$tmp/binary" "cuatomic demo $tmp/bin"
  offers "$tmp/binary" "cuatomic bench --compare $tmp/bin"
fi
if command -v zsh >/dev/null; then
  mkdir "$tmp/zsh" && cp "$top_srcdir/tools/cuatomic.zsh" "$tmp/zsh/_cuatomic"
  HOME=$tmp zsh -f "$top_srcdir/tests/complete.zsh" "$tmp/zsh" 'cuatomic be' 'cuatomic bench lo' 'cuatomic bench --qu' \
    'cuatomic demo -b cu' 'cuatomic bench locks --jso' 'cuatomic bench --filter=lo' 'cuatomic info --he' \
    "cuatomic bench --compare $tmp/bina" >"$tmp/out" 2>"$tmp/err" </dev/null
  printf '%s\n' 'cuatomic bench ' 'cuatomic bench locks ' 'cuatomic bench --quick ' 'cuatomic demo -b cuda ' \
    'cuatomic bench locks --json=' 'cuatomic bench --filter=lo' 'cuatomic info --help ' \
    "cuatomic bench --compare $tmp/binary" >"$tmp/expected"
  # a file name that is complete has a space after it in some versions
  if sed "s/binary \$/binary/" "$tmp/out" | cmp -s - "$tmp/expected"; then
    passed=$((passed + 1))
  else
    fail "zsh: completion"
  fi
  [ "$(sed -n "s/.*benchmark:(\([a-z -]*\)).*/\1/p" "$top_srcdir/tools/cuatomic.zsh" | tr ' ' '\n')" = \
    "$(cut -d ' ' -f 1 "$tmp/benchmarks")" ] || fail "zsh: not the benchmarks of the command"
fi
# the command accepts each offered word
for command in $(complete_line cuatomic ''); do
  [ "$command" = demo ] || runs 0 "completed: $command" "$cuatomic" "$command"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
