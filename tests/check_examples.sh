#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples as a user builds them: their installed sources, by the installed Makefile, against the installed library.
# Runs the commands of each README and compares the output, and compares the programs with independent results.
# check_group_by_example.sh and check_kmer_count.sh test these two programs.
#
# CUA_REQUIRE_GPU   a machine without a GPU is an error
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${NVCC?}" "${NVCC_GENCODE?}" "${SANITIZER_FLAGS?}" "${PKG_CONFIG?}" \
  "${MAKE:?}" "${prefix?}" "${libdir:?}" "${docdir:?}" "${includedir?}" "${pkgconfigdir?}" "${AWK:?}" "${PYTHON:?}"

if [ -z "$PKG_CONFIG" ] || ! command -v "${PKG_CONFIG%% *}" >/dev/null; then
  echo "skipped: no pkg-config"
  exit 77
fi

# shellcheck source=/dev/null
. "$top_srcdir/tests/example_runs.sh"
# shellcheck source=tests/install_lock.sh
. "$top_srcdir/tests/install_lock.sh"

export LC_ALL=C
source=$(cd "$top_srcdir" && pwd)
folder=$(cd "$top_builddir/examples" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
seed=${CUA_TEST_SEED:-$(($(date +%s) % 1000000))}
touch stdout stderr

# ---- build ----

unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
# the programs in CUDA by the C compiler
if ! locked $MAKE -C "$folder/.." examples examples_nvcc= EXAMPLES_CFLAGS=-O1 >log 2>&1 ||
  grep 'warning:' log | grep -v '^libtool:'; then
  cat log
  echo "FAILED: make examples"
  exit 1
fi
programs=$folder/programs
installed=$folder/installed
libraries=$installed$libdir
static=
[ -f "$libraries/libcuatomic.so" ] || static=--static
export PKG_CONFIG_PATH=$installed$pkgconfigdir
pc="$PKG_CONFIG $static --define-variable=prefix=$installed$prefix --define-variable=libdir=$libraries"
pc="$pc --define-variable=includedir=$installed$includedir"
read -ra flags < <($pc --cflags cuatomic)
read -ra libs < <($pc --libs cuatomic)
# shellcheck disable=SC2054,SC2206 # words, and a comma of the linker's
cc=($CC $SANITIZER_FLAGS -std=gnu11 -Wl,-rpath,"$libraries")

# in the second folder, the programs in CUDA by nvcc
cuda_programs=
if [ -n "$NVCC" ]; then
  cuda_programs=$tmp/cuda
  cp -r "$programs" "$cuda_programs"
  names="assembly bfs dot neighbours word-count"
  [ -z "${CUA_TEST_QUICK-}" ] || [ -n "${CUA_REQUIRE_GPU-}" ] || names="bfs word-count"
  $MAKE -C "$cuda_programs" clean >log
  # with the flags that make chooses
  if ! env -u NVCCFLAGS $MAKE -C "$cuda_programs" PKG_CONFIG="$pc" NVCC="$NVCC" CUDA=yes dot >log 2>&1; then
    cat log
    echo "FAILED: make without NVCCFLAGS"
    exit 1
  fi
  rm "$cuda_programs/dot/dot"
  # shellcheck disable=SC2086 # words
  if ! $MAKE -C "$cuda_programs" PKG_CONFIG="$pc" NVCC="$NVCC" CUDA=yes \
    NVCCFLAGS="$NVCC_GENCODE -Wno-deprecated-gpu-targets -Xlinker -rpath=$libraries" $names >log 2>&1; then
    cat log
    echo "FAILED: the programs in CUDA"
    exit 1
  fi
fi

# arch_of STATUS: the -arch of make's commands if nvcc ends with this status for -arch=native
arch_of() {
  printf '#!/bin/sh\nexit %s\n' "$1" >nvcc
  chmod +x nvcc
  env -u NVCCFLAGS $MAKE -n -B -C "$programs" PKG_CONFIG="$pc" NVCC="$tmp/nvcc" CUDA=yes dot | grep -o -- '-arch=[a-z0-9_]*'
}
[ "$(arch_of 0)" = -arch=native ] || fail "make: not for the GPU of the machine"
[ "$(arch_of 1)" = -arch=sm_75 ] || fail "make without a GPU: the default of nvcc may be too old"

# has NAME: whether the example was built; its library may be missing
has() { [ -x "$programs/$1/$1" ]; }
# on BACKEND NAME ARGUMENT...: runs a program on a backend
on() {
  local backend=$1 name=$2 path=$programs/$2/$2
  shift 2
  if [ "$backend" = cuda ] && [ -f "$cuda_programs/$name/$name.cu" ]; then
    path=$cuda_programs/$name/$name
  fi
  # a limit, because a search without its set would not end
  timeout 120 "$path" -b "$backend" "$@"
}

backends=cpu
if on cuda log-dedup </dev/null >stdout 2>stderr; then
  backends="cpu cuda"
elif [ -n "${CUA_REQUIRE_GPU-}" ]; then
  fail "no GPU"
fi
echo "backends: $backends, seed $seed"

# equal NAME EXPECTED PROGRAM ARGUMENT...: the program prints this file, on each backend. Input is our own.
equal() {
  local what=$1 expected=$2 backend
  shift 2
  cat >input
  for backend in $backends; do
    ends 0 "$what, $backend" on "$backend" "$@" <input && same "$what, $backend" "$expected" stdout
  done
}
# prints NAME LINE PROGRAM ARGUMENT...: the program's last line, on each backend
prints() {
  local what=$1 line=$2 backend
  shift 2
  for backend in $backends; do
    ends 0 "$what, $backend" on "$backend" "$@" || continue
    [ "$(tail -n 1 stdout)" = "$line" ] || fail "$what, $backend: the last line is not: $line"
  done
}
# error STATUS NAME PATTERN PROGRAM ARGUMENT...
error() {
  local status=$1 what=$2 pattern=$3 name=$4
  shift 4
  ends "$status" "$what" "$programs/$name/$name" "$@" && one_error "$what" "$name" "$pattern"
}
# full PROGRAM ARGUMENT...: a device without space as stdout
full() {
  local path=$programs/$1/$1 name=$1
  shift
  ends 1 "$name: full" sh -c '"$0" "$@" >/dev/full' "$path" "$@" &&
    one_error "$name: full" "$name" "standard output: No space"
}
# errors PROGRAM ARGUMENT...: the errors of every program with options. The last argument is replaced by a file.
errors() {
  local name=$1
  shift
  error 2 "$name: unknown backend" "-b tpu: choose cpu" "$name" -b tpu
  error 1 "$name: missing file" "$tmp/missing: No such file" "$name" "$tmp/missing" "$@"
  error 1 "$name: folder" "$tmp: .*directory" "$name" "$tmp" "$@"
  CUDA_VISIBLE_DEVICES='' ends 1 "$name: no GPU" "$programs/$name/$name" -b cuda "$good" "$@"
  grep -q "^$name: CUDA: " stderr || fail "$name: no GPU: no such message"
  full "$name" "$good" "$@"
}

# ---- the commands and outputs of each README ----

# The README again, with the output of its commands in a folder.
readme_again() {
  local folder=$1 block=text line
  while IFS= read -r line; do
    case $block/$line in
    text/'```sh') block=shell ;;
    text/'```console') block=console ;;
    text/'```'*) block=other ;;
    */'```') block=text ;;
    shell/*) (cd "$folder" && PKG_CONFIG=$pc bash -c "${line/make/$MAKE}") >log 2>&1 </dev/null || cat log ;;
    'console/$ '*)
      printf '%s\n' "$line"
      (cd "$folder" && bash -c "${line#\$ }") 2>&1 </dev/null
      continue
      ;;
    console/*) continue ;;
    esac
    printf '%s\n' "$line"
  done <"$folder/README.md"
}
for readme in "$programs"/*/README.md; do
  name=$(basename "$(dirname "$readme")")
  has "$name" || {
    echo "$name was not built"
    continue
  }
  cp "$readme" stderr
  CUDA_VISIBLE_DEVICES='' readme_again "$programs/$name" >stdout
  same "$name/README.md" "$readme" stdout
  passed=$((passed + 1))
done
for name in sum dot assembly; do
  error 2 "$name: argument" "usage: $name" "$name" unexpected
  full "$name"
done
if [ "$backends" != cpu ]; then
  for name in sum dot assembly; do
    path=$cuda_programs/$name/$name
    [ -x "$path" ] || path=$programs/$name/$name
    ends 0 "$name on the GPU" "$path"
  done
fi

# texts: real ones, and bytes that are no text
cat "$source"/NEWS "$source"/LICENSE "$source"/doc/*.md "$source"/NEWS >real
head -c 50000 "$programs/sum/sum" >binary
printf 'no newline\nno newline' >unfinished
: >empty
printf '\n\n\n' >newlines
"$AWK" 'BEGIN { for (i = 0; i < 300000; i++) printf "x"; print ""; for (i = 0; i < 300000; i++) printf "x"; print "y" }' >long
texts="real unfinished empty newlines long"
good=$tmp/unfinished

# ---- log-dedup ----

build_weak() {
  "${cc[@]}" "${flags[@]}" -DWEAK_SEEDS=3 -O1 "$programs/log-dedup/log-dedup.c" "${libs[@]}" -o weak
}
check_log_dedup() {
  local text options
  for text in $texts; do
    "$AWK" '!seen[$0]++' $text >expected
    equal "log-dedup $text" expected log-dedup $text </dev/null
    equal "log-dedup <$text" expected log-dedup -s 1000 <$text
    ends 0 "log-dedup, equal hashes, $text" ./weak -b cpu -s 5000 $text && same "equal hashes, $text" expected stdout
    "$AWK" '!n[$0]++ { line[++k] = $0 } END { for (i = 1; i <= k; i++) printf "%7d %s\n", n[line[i]], line[i] }' $text >expected
    equal "log-dedup -c $text" expected log-dedup -c $text </dev/null
    "$AWK" '{ key = $0; gsub(/[0-9]+/, "\n", key) } !seen[key]++' $text >expected
    equal "log-dedup -n $text" expected log-dedup -n -s 7000 $text </dev/null
    "$AWK" '{ key = $0; sub(/^[ \t]*[^ \t]*[ \t]*[^ \t]*/, "", key) } !seen[key]++' $text >expected
    equal "log-dedup -f 2 $text" expected log-dedup -f 2 $text </dev/null
  done
  # no byte of a line is equal to a number
  printf 'a 1\na #\na \0\na 22\na #\n' >marks
  printf 'a 1\na #\na \0\n' >expected
  equal "log-dedup -n: bytes" expected log-dedup -n marks </dev/null
  # awk may not accept NUL: Python is the model of binary lines
  if [ "$PYTHON" != : ]; then
    "$PYTHON" -c 'import sys
t = open("binary", "rb").read()
t = t[:-1] if t.endswith(b"\n") else t
sys.stdout.buffer.write(b"".join(l + b"\n" for l in dict.fromkeys(t.split(b"\n"))))' >expected
    equal "log-dedup binary" expected log-dedup binary </dev/null
  fi
  "$AWK" -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 60000; i++) print "line", int(rand() * 30000) }' >many
  "$AWK" '!seen[$0]++' many >expected
  equal "log-dedup: growth" expected log-dedup -s 100000 many </dev/null
  errors log-dedup
  for options in "-f x" "-s 0" "-z" "a b"; do
    # shellcheck disable=SC2086 # words
    ends 2 "log-dedup $options" "$programs/log-dedup/log-dedup" $options
  done
}
if build_weak; then check_log_dedup; else fail "log-dedup: -DWEAK_SEEDS"; fi

# ---- word-count ----

count_words() { tr -cs 'A-Za-z0-9\200-\377' '\n' | grep -a . | sort | uniq -c | sort -k 1,1nr -k 2,2; }
check_word_count() {
  local text
  for text in $texts binary; do
    count_words <$text >expected
    equal "word-count $text" expected word-count -n 0 $text </dev/null
    equal "word-count <$text" expected word-count -n 0 -s 3000 <$text
    tr A-Z a-z <$text | count_words >expected
    equal "word-count -i $text" expected word-count -n 0 -i -s 100000 - <$text
  done
  cat unfinished newlines real | count_words | head -n 5 >expected
  equal "word-count: files" expected word-count -n 5 unfinished newlines real </dev/null
  printf 'Gr\303\266\303\237e f\303\274r Gr\303\266\303\237e' >utf8
  printf '      2 Gr\303\266\303\237e\n      1 f\303\274r\n' >expected
  equal "word-count: UTF-8" expected word-count utf8 </dev/null
  errors word-count
  error 2 "word-count -n x" "'x' is not a number" word-count -n x
  error 2 "word-count -n: too great" "'99999999999999999999999' is not a" word-count -n 99999999999999999999999 empty
}
check_word_count

# ---- equalize ----

check_equalize() {
  local picture each backend
  mkdir png
  "$PYTHON" "$source/tests/equalize_model.py" make png || fail "equalize_model.py"
  "$programs/equalize/equalize" -s png/sample.png
  "$programs/equalize/equalize" -s -g png/sample-grey.png
  for picture in png/*.png; do
    for each in "" -e; do
      for backend in $backends; do
        # shellcheck disable=SC2086 # words
        ends 0 "equalize $each $picture, $backend" on "$backend" equalize -c $each $picture out.png || continue
        [ $picture != png/deep.png ] || continue
        # shellcheck disable=SC2086 # words
        "$PYTHON" "$source/tests/equalize_model.py" check $each $picture out.png ||
          fail "equalize $each $picture, $backend"
      done
    done
  done
  errors equalize out.png
  head -c 3000 png/sample.png >cut.png
  error 1 "equalize: truncated" "cut.png: read beyond end" equalize cut.png out.png
  error 1 "equalize: no PNG" "real: not a PNG file" equalize real out.png
  error 1 "equalize: empty" "empty: not a PNG file" equalize empty out.png
  # stdout has the description of the picture
  ends 1 "equalize: no folder" "$programs/equalize/equalize" png/one.png none/out.png
  grep -q '^equalize: none/out.png: No such file' stderr || fail "equalize: no folder: no such message"
  ends 2 "equalize: one name" "$programs/equalize/equalize" png/one.png
}
if has equalize && [ "$PYTHON" != : ]; then
  good=$programs/equalize/fog.png
  check_equalize
fi

# ---- neighbours ----

# the pairs of all particles, by floats; the cutoff is not close to a distance of the lattice
all_pairs() {
  "$AWK" -v r="$1" '
    function apart(a, b) { a -= b; return a > 0.5 ? a - 1 : a < -0.5 ? a + 1 : a }
    { x[NR] = $1; y[NR] = $2; z[NR] = $3 }
    END {
      for (i = 1; i <= NR; i++)
        for (j = i + 1; j <= NR; j++)
          if (apart(x[i], x[j]) ^ 2 + apart(y[i], y[j]) ^ 2 + apart(z[i], z[j]) ^ 2 < r * r)
            print i, j
    }'
}
check_neighbours() {
  local r
  "$AWK" -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 600; i++) print rand(), rand(), rand() }' >gas
  for r in 0.03 0.1 0.26 0.34 0.5; do
    all_pairs $r <gas >expected
    equal "neighbours -r $r" expected neighbours -l -r $r gas </dev/null
    equal "neighbours -r $r -s 1" expected neighbours -l -r $r -s 1 gas </dev/null
  done
  "$AWK" -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 4000; i++) print rand() / 9, rand(), rand() }' >slab
  prints "neighbours: slab" "the same pairs as by a loop over all pairs" neighbours -c -r 0.06 slab
  for r in 0.5 0.2; do
    printf '0 0 0\n0.999999 0 0.999999\n0.5 0.5 0.5\n' >corner
    all_pairs $r <corner >expected
    equal "neighbours: corner, $r" expected neighbours -l -r $r corner </dev/null
  done
  : >expected
  equal "neighbours: empty" expected neighbours -l empty </dev/null
  echo 0.5 0.5 0.5 >one
  equal "neighbours: one" expected neighbours -l one </dev/null
  errors neighbours
  error 1 "neighbours: text" "real: line 1: not three numbers" neighbours real
  error 1 "neighbours: two numbers" "-: line 1: not three numbers" neighbours - <<<"0.1 0.2"
  # readers that ignore line ends find 2 particles, or lose vertex 3
  error 1 "neighbours: four numbers" "-: line 1: not three numbers" neighbours - <<<$'0.1 0.2 0.3 0.9\n0.5 0.6'
  error 1 "neighbours: line 3" "-: line 3: not three numbers" neighbours - <<<$'0.1 0.2 0.3\n\n0.5 0.6\n0.7'
  error 1 "neighbours: outside" "-: line 1: a coordinate is not in" neighbours - <<<"0.5 1 0"
  error 1 "neighbours: NaN" "-: line 1: a coordinate is not in" neighbours - <<<"nan 0 0"
  error 2 "neighbours -r 0.6" "'0.6' is not a number" neighbours -r 0.6 gas
  error 2 "neighbours -s 0.5" "'0.5' is not a number" neighbours -s 0.5 gas
  error 2 "neighbours: no file" "usage: " neighbours
}
good=$tmp/gas
check_neighbours

# ---- bfs ----

levels() { # levels SOURCE: lines 'VERTEX LEVEL', as by bfs -l; names are strings to awk
  "$AWK" -v source="$1" '
    { next_of[$1] = next_of[$1] " " $2 }
    END {
      level[source] = 0
      queue[++n] = source
      for (i = 1; i <= n; i++) {
        k = split(next_of[queue[i]], to, " ")
        for (j = 1; j <= k; j++)
          if (!(to[j] in level)) {
            level[to[j]] = level[queue[i]] + 1
            queue[++n] = to[j]
          }
      }
      for (i = 1; i <= n; i++)
        print queue[i], level[queue[i]]
    }' | sort -k 2,2n -k 1,1n
}
check_bfs() {
  # names of 64 bits, which awk keeps as text
  "$AWK" -v seed="$seed" 'BEGIN {
      srand(seed)
      for (i = 0; i < 30000; i++)
        print "18446744073" 10000000 + int(rand() * 12000), "18446744073" 10000000 + int(rand() * 12000)
    }' >edges
  read -r first _ <edges
  levels "$first" <edges >expected
  equal "bfs" expected bfs -l edges </dev/null
  { cat edges && "$AWK" '{ print $2, $1 }' edges; } | levels "$first" >expected
  equal "bfs -u" expected bfs -l -u edges </dev/null
  prints "bfs -c" "the same levels as by a serial search" bfs -c -u edges
  "$AWK" 'BEGIN { for (i = 0; i < 3000; i++) print i, i + 1; for (i = 0; i < 3000; i++) print 3000, i + 5000 }' >chain
  levels 0 <chain >expected
  equal "bfs: chain" expected bfs -l chain </dev/null
  printf '18446744073709551615 0\r\n\n0\t18446744073709551615 \n 0 0\n0 1' >extremes
  printf '18446744073709551615 0\n0 1\n1 2\n' >expected
  equal "bfs: extremes" expected bfs -l extremes </dev/null
  echo 77 0 >expected
  equal "bfs: alone" expected bfs -l -s 77 edges </dev/null
  errors bfs
  error 1 "bfs: text" "real: line 1: not two numbers" bfs real
  error 1 "bfs: empty" "empty: no edges" bfs empty
  error 1 "bfs: one number" "-: line 1: not two numbers" bfs - <<<"1"
  error 1 "bfs: three numbers" "-: line 1: not two numbers" bfs - <<<$'1 2 7\n2 3 7'
  error 1 "bfs: line 3" "-: line 3: not two numbers" bfs - <<<$'1 2\n\n3\n4'
  error 1 "bfs: negative" "-: line 1: not two numbers" bfs - <<<"1 -2"
  error 1 "bfs: too great" "-: line 1: not two numbers" bfs - <<<"1 18446744073709551616"
  error 2 "bfs -s x" "'x' is not the name" bfs -s x edges
  error 2 "bfs: no file" "usage: " bfs
}
good=$tmp/chain
check_bfs

# ---- make examples PREFIX ----

# prefixed FOLDER: an installation whose libraries are in this folder builds sum
prefixed() {
  local built=$tmp/prefix/$1
  rm -rf prefix
  mkdir -p "$built/pkgconfig" prefix/share/doc/cuatomic
  cp -P "$libraries"/libcuatomic.* "$built"
  cp -r "$installed$docdir/examples" prefix/share/doc/cuatomic
  sed -e "s,^libdir=.*,libdir=$built," -e "s,^includedir=.*,includedir=$installed$includedir," \
    "$installed$pkgconfigdir/cuatomic.pc" >"$built/pkgconfig/cuatomic.pc"
  if PKG_CONFIG_PATH='' locked $MAKE -C "$folder" programs EXAMPLES=sum \
    PREFIX="$(realpath --relative-to="$folder/.." prefix)" >stdout 2>stderr; then
    ends 0 "PREFIX with $1" "$programs/sum/sum"
  else
    fail "PREFIX with $1"
  fi
}
check_prefix() {
  mv "$programs" kept
  prefixed lib
  prefixed lib64
  prefixed lib/x86_64-linux-gnu
  mkdir -p none
  ends 2 "PREFIX without a library" $MAKE -C "$folder" programs PREFIX="$tmp/none"
  grep -q "^$tmp/none has no cuatomic.pc" stderr || fail "PREFIX without a library: no such message"
  rm -rf "$programs"
  mv kept "$programs"
}
check_prefix

all_passed
