#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The example kmer-count: its counts against a model in awk, on made-up sequences in every form that files have, and
# against jellyfish on real reads, where both are installed; its errors, and that these leave no file.
#
# CUA_TEST_SEED   of the made-up sequences
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${ZLIB_LIBS?}"

if [ -z "$ZLIB_LIBS" ]; then
  echo "skipped: kmer-count was not built (zlib not found)"
  exit 77
fi

# shellcheck source=/dev/null
. "$top_srcdir/tests/example_runs.sh"

kmer_count=$(cd "$top_builddir/examples/kmer-count" && pwd)/kmer-count
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"/\1/p' "$top_builddir/include/cuatomic/version.h")
export LC_ALL=C
# the permissions expected below
umask 022
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
mkdir in out
# runs STATUS NAME ARGUMENT...: kmer-count ends with this status. Input is our own.
runs() {
  local expected=$1 what=$2
  shift 2
  ends "$expected" "$what" "$kmer_count" "$@"
}

empty_out() { # empty_out WHAT: nothing is left where outputs go
  [ -z "$(ls -A out)" ] || fail "$1: left $(ls -A out)"
  rm -rf out
  mkdir out
}
# error STATUS NAME PATTERN ARGUMENT...: a single line on stderr like PATTERN, nothing on stdout,
# and no file.
error() {
  local status=$1 what=$2 pattern=$3
  shift 3
  runs "$status" "$what" -d out/dump -o out/histogram "$@" || return
  one_error "$what" kmer-count "$pattern"
  empty_out "$what"
}

# ---- the model ----

# model K CANONICAL FILE: the dump for sequences, one on each line
model() {
  awk -v k="$1" -v canonical="$2" '
    function complement(s,   i, t) {
      t = ""
      for (i = length(s); i; i--)
        t = t other[substr(s, i, 1)]
      return t
    }
    BEGIN { other["A"] = "T"; other["C"] = "G"; other["G"] = "C"; other["T"] = "A" }
    {
      $0 = toupper($0)
      for (i = 1; i + k - 1 <= length($0); i++) {
        word = substr($0, i, k)
        if (word ~ /[^ACGT]/)
          continue
        if (canonical) {
          reverse = complement(word)
          if (reverse < word)
            word = reverse
        }
        count[word]++
      }
    }
    END { for (word in count) print word, count[word] }' "$3" | sort
}
# histogram HIGH: of the dump on stdin
histogram() {
  awk -v high="$1" '{ n[$2 > high ? high + 1 : $2]++ } END { for (count in n) print count, n[count] }' | sort -n
}

# ---- made-up sequences, in every form ----

seed=${CUA_TEST_SEED:-$(($(date +%s) % 1000000))}
echo "seed $seed"
awk -v seed="$seed" 'BEGIN {
    srand(seed)
    for (n = 0; n < 60; n++) {
      line = ""
      for (i = int(rand() * 120); i > 0; i--)
        line = line (rand() < 0.97 ? substr("ACGTacgt", int(rand() * 8) + 1, 1) : substr("NnRyX", int(rand() * 5) + 1, 1))
      print line
      if (n % 7 == 0)
        print ""
      if (n % 5 == 0)
        print line
    }
    for (i = 0; i < 40; i++)
      printf "A"
    print "\nACGTACGTACGTACGTACGTACGTACGTACGTACGT"
  }' >sequences

# fasta WIDTH, fastq WIDTH: the sequences in lines of at most so many letters
fasta() {
  awk -v width="$1" '{
    print ">" NR " any title > @ +"
    for (i = 1; i <= length($0); i += width)
      print substr($0, i, width)
  }' sequences
}
fastq() {
  awk -v width="$1" '
    BEGIN {
      # the quality may begin with any character, also @ + and >.
      quality = "@+>!~"
      while (length(quality) < 200)
        quality = quality "I"
    }
    {
      print "@" NR " any title > @ +"
      if ($0 == "")
        print ""
      for (i = 1; i <= length($0); i += width)
        print substr($0, i, width)
      print "+" (NR % 2 ? "" : NR)
      if ($0 == "")
        print ""
      for (i = 1; i <= length($0); i += width)
        print substr(quality, 1, length(substr($0, i, width)))
    }' sequences
}
crlf() { sed 's/$/\r/'; }

fasta 1000 >in/line.fa
fasta 7 >in/lines.fa
fasta 7 | crlf >in/crlf.fa
fasta 7 | sed -e '1s/^/\n\n/' -e 's/^[^>]*$/ &\t\n/' >in/blanks.fa
printf '%s' "$(fasta 7)" >in/no-newline.fa
fasta 7 | tr 'NnRyX' '\-*..-' >in/gaps.fa
fastq 1000 >in/line.fq
fastq 1000 | crlf >in/crlf.fq
fastq 1000 | sed 's/^@[0-9].*/\n&/' >in/blanks.fq
fastq 40 >in/lines.fq
printf '%s' "$(fastq 1000)" >in/no-newline.fq
gzip -c in/lines.fa >in/lines.fa.gz
gzip -c in/line.fq >in/line.fq.gz
gzip -c in/line.fq >in/no-such-ending
# several members, an empty one among them, followed by zeros
{
  head -n 5 in/lines.fa | gzip -c
  gzip -c </dev/null
  tail -n +6 in/lines.fa | gzip -1 -c
  head -c 1000 /dev/zero
} >in/members.fa.gz
# larger than any buffer
{
  fasta 61
  awk 'BEGIN { for (i = 0; i < 200000; i++) printf i % 61 ? "n" : "\n"; print "" }'
} >in/long.fa

# A GPU that is requested by name must exist.
backends=cpu
if [ -n "${CUA_REQUIRE_GPU-}" ] || "$kmer_count" -b cuda - </dev/null >/dev/null 2>&1; then
  backends="cpu cuda"
fi

lengths="1 2 5 16 30 31"
[ -z "${CUA_TEST_QUICK-}" ] || lengths="5 31"
for k in $lengths; do
  model "$k" 1 sequences >model
  histogram 10000 <model >model.histogram
  [ -s model ] || fail "the model counted nothing"
  for file in in/*; do
    runs 0 "$file, k = $k" -b cpu -k "$k" -d dump -o histogram "$file" || continue
    same "$file, k = $k" model dump
    same "histogram of $file, k = $k" model.histogram histogram
    [ ! -s stdout ] && [ ! -s stderr ] || fail "$file, k = $k: output on the terminal"
  done
  for backend in $backends; do
    runs 0 "growing, $backend" -b "$backend" -k "$k" --capacity=1 -v -d dump in/lines.fa in/line.fq.gz
    # a bucket may hold all there are, of short k-mers
    [ "$k" -lt 5 ] || grep -q 'the table grew [1-9][0-9]* times' stderr || fail "growing, $backend: it did not"
    awk '{ print $1, $2 * 2 }' model >model.twice
    same "growing, $backend, k = $k" model.twice dump
  done
  # by several ranks: the bytes of a single context, also from files of little or nothing
  for backend in $backends; do
    for ranks in 1 2 3 5; do
      runs 0 "$ranks ranks, $backend" -b "$backend" -r $ranks -k "$k" -d dump -o histogram in/lines.fa
      same "$ranks ranks, $backend, k = $k" model dump
      same "histogram of $ranks ranks, $backend, k = $k" model.histogram histogram
      runs 0 "growing, $ranks ranks, $backend" -b "$backend" --ranks=$ranks -t 1 -k "$k" --capacity=1 -d dump \
        in/lines.fa in/line.fq.gz
      same "growing, $ranks ranks, $backend, k = $k" model.twice dump
    done
  done
  model "$k" 0 sequences >model
  runs 0 "not canonical, k = $k" -k "$k" --no-canonical -d dump -b cpu in/line.fa
  same "not canonical, k = $k" model dump
done

model 21 1 sequences >model
histogram 10000 <model >model.histogram
histogram 2 <model >model.2
for file in in/lines.fa in/line.fq.gz; do
  "$kmer_count" - <"$file" >stdout 2>stderr
  same "standard input, $file" model.histogram stdout
  # shellcheck disable=SC2002 # a pipe, a few bytes at a time
  cat "$file" | dd bs=7 2>/dev/null | "$kmer_count" -d - - >stdout 2>stderr
  same "pipe, $file" model stdout
done
runs 0 "several files" -d dump -t 1 in/lines.fa - in/line.fq <in/crlf.fq
awk '{ print $1, $2 * 3 }' model >model.thrice
same "several files" model.thrice dump
runs 0 "high" --high 2 in/lines.fa
same "high" model.2 stdout
# the ends of two files next to each other are no k-mer
printf '>a\nACGTA' >left.fa
printf '>b\nCCCCC' >right.fa
runs 0 "two ends" -k 10 -d - left.fa right.fa
[ ! -s stdout ] || fail "two ends: a k-mer across files"

: >nothing
printf '\n\r\n' >lines
printf '>' >title.fa
printf '>a\n\n>b\n>c\nNNNN\n>d' >empty.fa
printf '@a\n\n+\n\n@b\n+\n@c\n\n+\n' >empty.fq
gzip -c nothing >nothing.gz
printf '>a\nACGT\n' >single.fa
for ranks in 1 3; do
  for file in nothing lines title.fa empty.fa empty.fq nothing.gz; do
    runs 0 "$file, $ranks ranks" -r $ranks -k 4 -d dump -o histogram $file
    [ ! -s dump ] && [ ! -s histogram ] || fail "$file, $ranks ranks: k-mers of nothing"
  done
  runs 0 "a single k-mer, $ranks ranks" -r $ranks -k 4 -d - single.fa
  [ "$(cat stdout)" = "ACGT 1" ] || fail "a single k-mer, $ranks ranks: not ACGT 1"
done

# ---- many k-mers: several batches, and growth between them ----

# a batch is of 1048576
times=$((1200000 / $(model 21 1 sequences | awk '{ n += $2 } END { print n }') + 1))
for _ in $(seq $times); do
  cat in/lines.fa
done >many.fa
model 21 1 sequences | awk -v times=$times '{ print $1, $2 * times }' >model
for backend in $backends; do
  # a quarter of the slots, since the map rounds them up
  runs 0 "many, $backend" -b "$backend" --capacity $(($(wc -l <model) / 4)) -v -d dump many.fa
  grep -q 'the table grew [1-9][0-9]* times' stderr || fail "many: a map with a quarter of the slots did not grow"
  awk '/ k-mers, / && $2 > 1048576 { ok = 1 } END { exit !ok }' stderr || fail "many: not more than a batch"
  same "many, $backend" model dump
  for ranks in 2 3 5; do
    runs 0 "many, $ranks ranks, $backend" -b "$backend" -r $ranks --capacity 1 -d dump <many.fa -
    same "many, $ranks ranks, $backend" model dump
  done
done

# ---- many different k-mers: the shards of several ranks grow ----

awk 'BEGIN {
    srand(1)
    print ">a"
    for (i = 0; i < 4000; i++) {
      line = ""
      for (j = 0; j < 60; j++)
        line = line substr("ACGT", int(rand() * 4) + 1, 1)
      print line
    }
  }' >different.fa
for backend in $backends; do
  runs 0 "different" -b "$backend" -d dump -o histogram different.fa
  for ranks in 2 5; do
    runs 0 "different, $ranks ranks, $backend" -b "$backend" -r $ranks --capacity 1000 -v -d dump.ranks \
      -o histogram.ranks different.fa
    grep -q 'the table grew [1-9][0-9]* times' stderr || fail "different, $ranks ranks, $backend: it did not grow"
    same "different, $ranks ranks, $backend" dump dump.ranks
    same "histogram of different, $ranks ranks, $backend" histogram histogram.ranks
  done
done

# ---- outputs ----

runs 0 "outputs" -d out/dump -o out/histogram in/line.fa
[ "$(ls -A out | tr '\n' ' ')" = "dump histogram " ] || fail "outputs: not two files but $(ls -A out)"
umask 027
ln -s dump out/link
chmod 600 out/histogram
runs 0 "outputs again" -d out/link -o out/histogram in/line.fa
[ -L out/link ] && [ "$(stat -c %a out/dump out/histogram | tr '\n' ' ')" = "644 600 " ] ||
  fail "outputs again: a link or permissions were lost: $(ls -l out)"
rm -rf out/*
runs 0 "permissions" -d out/dump in/line.fa
[ "$(stat -c %a out/dump)" = 640 ] || fail "permissions: $(stat -c %a out/dump), not what umask says"
umask 022
rm -rf out/*
mkdir out/folder
ln -s folder/second out/link
ln -s ../target out/folder/second
for _ in 1 2; do
  runs 0 "a link to nothing" -d out/link in/line.fa
  [ "$(readlink out/link out/folder/second | tr '\n' ' ')" = "folder/second ../target " ] && [ -s out/target ] ||
    fail "a link to nothing: $(ls -l out out/folder)"
done
rm -rf out/*
ln -s link out/link
runs 1 "a loop of links" -d out/link in/line.fa
grep -q '^kmer-count: out/link: Too many levels' stderr && [ -L out/link ] || fail "a loop of links: $(ls -l out)"
rm -f out/*
long=$(printf '%0255d' 0)
runs 0 "a long name" -d "out/$long" in/line.fa
[ "$(ls -A out)" = "$long" ] && [ -s "out/$long" ] || fail "a long name: $(ls -A out)"
rm -f out/*
runs 0 "outputs once more" -d out/dump in/line.fa
mkfifo pipe
cat pipe >piped &
runs 0 "a pipe as output" -d pipe -o histogram in/line.fa
wait $!
same "a pipe as output" out/dump piped
[ -p pipe ] || fail "a pipe as output: it was replaced"
cp out/dump before
runs 1 "an error keeps the former file" -d out/dump in/line.fa nothing missing
same "an error keeps the former file" before out/dump
rm -f out/*

# begin: kmer-count writes out/dump and waits for a pipe; sets pid, once its temporary file is there
begin() {
  "$kmer_count" -d out/dump pipe >stdout 2>stderr &
  pid=$!
  for _ in $(seq 300); do
    [ -z "$(find out -name '*kmer-count*')" ] || break
    sleep 0.1
  done
  [ -n "$(find out -name '*kmer-count*')" ] || fail "$1: no temporary file was seen"
}
# a signal ends it like any program, and no file remains.
begin "a signal"
mode=$(stat -c %a out/.kmer-count-*.tmp)
[ "$mode" = 600 ] || fail "a temporary file: its mode is $mode, not 600"
kill -TERM $pid
rc=0
wait $pid 2>/dev/null || rc=$?
[ $rc = 143 ] || fail "a signal: exit status $rc, not 143"
empty_out "a signal"

# the next run removes the files of a killed process, but not the files that a live process is
# writing
begin "killed"
runs 0 "beside one that lives" -d out/other in/line.fa
[ "$(find out -name '.kmer-count-*.tmp' | wc -l)" = 1 ] || fail "beside one that lives: $(ls -A out)"
kill -KILL $pid
{ wait $pid; } 2>/dev/null
runs 0 "after a kill" -d out/other in/line.fa
[ "$(ls -A out)" = other ] || fail "after a kill: $(ls -A out)"
rm -f out/*

# file size limit: an error like a full disk, and no file is left
rc=0
(
  ulimit -f 1
  exec "$kmer_count" -d out/dump in/long.fa >stdout 2>stderr
) || rc=$?
[ $rc = 1 ] && grep -q '^kmer-count: out/dump: File too large' stderr || fail "a file size limit: exit status $rc"
empty_out "a file size limit"

# ---- a folder for all, with files of another user ----

# other COMMAND...: as another user
other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
if [ "$(id -u)" = 0 ] && other true 2>/dev/null; then
  chmod 711 "$tmp"
  mkdir shared
  chmod 1777 shared
  other ln -s ../victim shared/link
  other ln -s ../absent shared/dangling
  other touch shared/file
  other chmod 4766 shared/file
  echo before >victim
  for link in shared/link shared/dangling; do
    runs 1 "a link of another user's, $link" -d $link in/line.fa
    grep -q "^kmer-count: $link: Permission denied" stderr || fail "a link of another user's, $link: no such message"
    [ "$(cat victim)" = before ] && [ ! -e absent ] || fail "a link of another user's, $link: it was followed"
  done
  runs 0 "a file of another user's" -d shared/file in/line.fa
  [ "$(stat -c '%a %u' shared/file)" = "644 0" ] ||
    fail "a file of another user's: $(stat -c 'mode %a of user %u' shared/file)"
  ln -s ../victim shared/own
  runs 0 "an own link" -d shared/own in/line.fa
  [ "$(cat victim)" != before ] && [ -L shared/own ] || fail "an own link: not followed"
  [ "$(find shared -name '.kmer-count*')" = "" ] || fail "a folder for all: $(ls -A shared)"
else
  echo "not root, or no setpriv(1): nothing was tried with files of another user"
fi

# ---- --help and --version, and the progress bar ----

for option in --version -V; do
  runs 0 $option $option
  [ "$(cat stdout)" = "kmer-count (cuatomic) $version" ] || fail "$option: not the version of the headers"
done
for option in --help -h; do
  runs 0 $option $option
  grep -q '^usage: kmer-count ' stdout || fail "$option: no usage"
  [ ! -s stderr ] || fail "$option: something on stderr"
done
# script(1) opens a pty for the terminal
if script -qefc true typescript >script.log 2>&1 </dev/null; then
  script -qefc "'$kmer_count' -k 5 -o histogram in/long.fa" typescript >stdout 2>stderr </dev/null
  grep -q '\[#*\.*\] *[0-9]*% of [0-9.]* MiB' stdout || fail "progress: no bar on a terminal"
  script -qefc "cat in/long.fa | '$kmer_count' -k 5 -o histogram -" typescript >stdout 2>stderr </dev/null
  ! grep -q '%' stdout || fail "progress: a bar for standard input"
else
  echo "no terminal here, so the progress bar was not checked: $(tail -n 1 script.log)"
fi

# ---- errors ----

error 2 "no file" "no FILE given"
error 2 "unknown option" "unknown option '--frobnicate'" --frobnicate in/line.fa
error 2 "ambiguous option" "option '--h' is ambiguous: 3 options" --h in/line.fa
error 2 "value of none" "option '--verbose' takes no value" --verbose=2 in/line.fa
error 2 "unknown letter" "unknown option '-x'" -x in/line.fa
error 2 "no value" "option '-k' needs a value" in/line.fa -k
error 2 "unknown backend" "unknown backend 'tpu'" -b tpu in/line.fa
for number in 0 -1 x 1x '' 99999999999999999999; do
  error 2 "threads '$number'" "'$number' is not a number of threads" -t "$number" in/line.fa
  error 2 "ranks '$number'" "'$number' is not a number of ranks \\(1 to 64\\)" -r "$number" in/line.fa
  error 2 "capacity '$number'" "'$number' is not a number of k-mers" --capacity "$number" in/line.fa
  error 2 "high '$number'" "'$number' is not a count" --high "$number" in/line.fa
done
error 2 "no length" "'x' is not a length" -k x in/line.fa
error 2 "standard input twice" "standard input can" - -
error 2 "two outputs in one file" "histogram and dump cannot" -o out/dump in/line.fa
error 2 "two names of one file" "histogram and dump cannot" -o out/../out/both -d out/both in/line.fa
ln -s out/both both
error 2 "a link to one file" "histogram and dump cannot" -o both -d out/both in/line.fa
for k in 0 32 33 64 -1; do
  error 2 "k = $k" "'$k' is not a length of k-mers \\(1 to 31\\)" -k "$k" in/line.fa
done
error 2 "an output that is read" "'in/line.fa' is also an input" -o in/line.fa in/lines.fa in/line.fa
error 2 "65 ranks" "'65' is not a number of ranks" --ranks 65 in/line.fa
error 1 "no memory" "table of k-mers: " --capacity 18446744073709551615 in/line.fa
error 1 "no memory of ranks" "table of k-mers: " -r 2 --capacity 18446744073709551615 in/line.fa
CUDA_VISIBLE_DEVICES='' error 1 "no GPU" "CUDA: (no usable CUDA device|this library was built without CUDA)" -b cuda in/line.fa
CUDA_VISIBLE_DEVICES='' error 1 "no GPU for ranks" "CUDA: (no usable CUDA device|this library was built without CUDA)" \
  -b cuda -r 2 in/line.fa

error 1 "missing file" "missing: No such file or directory" in/line.fa missing
error 1 "folder" "in: Is a directory" in
error 1 "name with a newline" "two\\?lines: No such file" $'two\nlines'
error 1 "folder of outputs" "none/dump: No such file or directory" -d none/dump in/line.fa
error 1 "a folder as output" "in: Is a directory" -d in in/line.fa
if [ -e /dev/full ]; then
  error 1 "full device" "/dev/full: No space left" -o /dev/full in/line.fa
  rc=0
  "$kmer_count" in/line.fa >/dev/full 2>stderr || rc=$?
  [ $rc = 1 ] && grep -q '^kmer-count: standard output: No space' stderr || fail "full standard output"
fi

# bad NAME PATTERN: standard input becomes a file that is refused with this message
bad() {
  cat >"$1"
  error 1 "$1" "$1: $2" -k 3 in/line.fa "$1"
}
printf 'ACGT\n' | bad letters "neither FASTA nor FASTQ"
printf '\0' | bad zero "neither FASTA nor FASTQ"
printf ' >a\nACGT\n' | bad indented "neither FASTA nor FASTQ"
printf '\037' | bad half-magic "neither FASTA nor FASTQ"
printf '>a\nACGT\nAC1T\n' | bad digit.fa "line 3: '1' in a sequence"
printf '>a\nAC>GT\n' | bad mark.fa "line 2: '>' in a sequence"
printf '>a\nAC\0GT\n' | bad zero.fa "line 2: byte 0x00 in a sequence"
printf '>a\nAC\rGT\n' | bad return.fa "line 2: byte 0x0d in a line"
printf '>a\nACGT\n@b\nAC\n+\nII\n' | bad mixed.fa "line 3: '@' in a sequence"
printf '@a\nACGT\n+\nIIII\n>b\nACGT\n' | bad mixed.fq "line 5: a record has to begin with '@'"
printf '@a\nAC GT\n+\nIIIII\n' | bad blank.fq "line 2: byte 0x20 in a sequence"
printf '@a\nACGT\n+\nI\tII\n' | bad tab.fq "line 4: byte 0x09 in a quality"
printf '@a\nACGT\n+\nI\377II\n' | bad byte.fq "line 4: byte 0xff in a quality"
printf '@a\nACGT\n+\nIII\n@b\nA\n+\nI\n' | bad short.fq "line 4: a sequence of 4 letters has 3 characters of quality"
printf '@a\nACGT\n+\nIIIII\n' | bad long.fq "line 4: a sequence of 4 letters has more than 4 characters of quality"
printf '@a\nAC\nGT\n+\nII\nIII\n' | bad lines.fq "line 6: a sequence of 4 letters has more than 4 "
for text in '@a' '@a\n' '@a\nACGT' '@a\nACGT\n' '@a\nACGT\n+' '@a\nACGT\n+\n' '@a\nACGT\n+\nIII' '@a\nAC\nGT\n+\nII\n' \
  '@z\n\n+\n\n@a\nA'; do
  # shellcheck disable=SC2059 # escapes
  printf "$text" | bad truncated.fq "truncated FASTQ"
done
size=$(stat -c %s in/line.fq.gz)
for cut in 2 9 12 $((size / 2)) $((size - 8)) $((size - 1)); do
  head -c "$cut" in/line.fq.gz | bad truncated.gz "broken gzip: it ends early"
done
{ head -c $((size - 8)) in/line.fq.gz && printf '\0\0\0\0' && tail -c 4 in/line.fq.gz; } |
  bad checksum.gz "broken gzip: incorrect data check"
{ head -c 30 in/line.fq.gz && head -c 3000 /dev/zero; } | bad broken.gz "broken gzip: "
{ cat in/line.fq.gz && echo more; } | bad more.gz "broken gzip: other bytes follow its end"
{ cat in/line.fq.gz && printf '\0\0more'; } | bad padded.gz "broken gzip: other bytes follow its end"

# ---- real reads: the same counts as other programs ----

reads=/usr/share/doc/bowtie2/examples/reads
if command -v jellyfish >/dev/null && [ -f $reads/longreads.fq.gz ]; then
  for file in $reads/longreads.fq.gz $reads/reads_1.fq.gz $reads/reads_2.fq.gz; do
    gzip -dc "$file"
  done >reads.fq
  lengths="5 21 31"
  [ -z "${CUA_TEST_QUICK-}" ] || lengths=21
  for k in $lengths; do
    jellyfish count -m "$k" -C -s 4M -c 16 -o mers.jf reads.fq
    jellyfish dump -c mers.jf | sort >peer
    jellyfish histo mers.jf >peer.histogram
    [ "$(wc -l <peer)" -gt 500 ] || fail "jellyfish counted nothing"
    for backend in $backends; do
      runs 0 "reads, k = $k" -b "$backend" -k "$k" -d dump -o histogram $reads/*.fq.gz
      same "jellyfish, k = $k, $backend" peer dump
      same "jellyfish histo, k = $k, $backend" peer.histogram histogram
    done
    echo "k = $k: $(wc -l <dump) k-mers, compared with $(jellyfish --version) on: $backends"
  done
else
  echo "no jellyfish, or no bowtie2-examples: not compared on real reads"
fi

all_passed
