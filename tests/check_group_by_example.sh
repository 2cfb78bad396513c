#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The example group-by: its tables against a model in awk, on CSV in every form, and against its own serial reference; its
# errors, and that these print no table.
#
# CUA_TEST_SEED   of the made-up rows
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}"

# shellcheck source=/dev/null
. "$top_srcdir/tests/example_runs.sh"

folder=$(cd "$top_builddir/examples/group-by" && pwd)
group_by=$folder/group-by
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"/\1/p' "$top_builddir/include/cuatomic/version.h")
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
head_line=key,count,sum,mean,min,max,variance

# runs STATUS NAME ARGUMENT...: group-by ends with this status. Input is our own.
runs() {
  local expected=$1 what=$2
  shift 2
  ends "$expected" "$what" "$group_by" "$@"
}

# error STATUS NAME PATTERN ARGUMENT...: a single line on stderr like PATTERN, and nothing on stdout.
error() {
  local status=$1 what=$2 pattern=$3
  shift 3
  runs "$status" "$what" "$@" || return
  one_error "$what" group-by "$pattern"
}
# table NAME INPUT LINE...: the rows of the CSV text INPUT have these groups.
table() {
  local what=$1 input=$2
  shift 2
  # shellcheck disable=SC2059 # escapes
  printf "$input" >input.csv
  printf '%s\n' "$head_line" "$@" >expected
  runs 0 "$what" -d cpu --check key value input.csv && same "$what" expected stdout
}

devices=cpu
if "$group_by" -d cuda a a <<<a >/dev/null 2>&1; then
  devices="cpu cuda"
fi

# ---- made-up rows, in every form ----

seed=${CUA_TEST_SEED:-$(($(date +%s) % 1000000))}
echo "seed $seed, devices: $devices"
# lines 'KEY VALUE' of integers, so that sums in awk are exact; '-' is an empty value
awk -v seed="$seed" 'BEGIN {
    srand(seed)
    for (i = 0; i < 20000; i++)
      print "k" int(exp(rand() * 8)) ".", rand() < 0.1 ? "-" : int(rand() * 2000) - 1000
  }' >rows
# the model: variances are rounded
awk 'BEGIN { FS = " " }
  { n[$1] += 0 }
  $2 == "-" { next }
  {
    n[$1]++
    sum[$1] += $2
    squares[$1] += $2 * $2
    if (n[$1] == 1 || $2 < least[$1]) least[$1] = $2
    if (n[$1] == 1 || $2 > most[$1]) most[$1] = $2
  }
  END {
    for (k in n) {
      c = n[k]
      s = sum[k] + 0
      if (c == 0) print k ",0,0,,,,"
      else if (c == 1) printf "%s,1,%d,%.12g,%d,%d,\n", k, s, s, least[k], most[k]
      else printf "%s,%d,%d,%.12g,%d,%d,%.9g\n", k, c, s, s / c, least[k], most[k], (squares[k] - s * s / c) / (c - 1)
    }
  }' rows | sort -t , -k 1,1 >model
# like_model: the table on stdout in the form of the model
like_model() {
  tail -n +2 stdout | awk -F , -v OFS=, '{
      if ($4 != "") $4 = sprintf("%.12g", $4)
      if ($7 != "") $7 = sprintf("%.9g", $7)
      print
    }' >got
  same "$1" model got
}
awk 'BEGIN { print "n,key,value" } { print NR "," $1 "," ($2 == "-" ? "" : $2) }' rows >plain.csv
awk -v q='"' 'BEGIN { print q "value" q ",n," q "key" q }
  { print q ($2 == "-" ? "" : " " $2 " ") q "," q "a,\n" q q q "," q $1 q }' rows >quoted.csv
{ printf '\357\273\277' && sed 's/$/\r/' plain.csv; } >crlf.csv
head -c -1 plain.csv >unended.csv
awk '{ print } NR % 3 == 0 { print "" }' plain.csv >lines.csv
for device in $devices; do
  for form in plain quoted crlf unended lines; do
    runs 0 "$form, $device" --device=$device --check key value $form.csv
    grep -q '^group-by: checked: .* of 20000 rows are equal' stderr || fail "$form, $device: nothing about the check"
    like_model "$form, $device"
  done
  cp stdout table
  for threads in 1 3; do
    runs 0 "$threads threads, $device" -d $device -t $threads key value - <plain.csv
    same "$threads threads, $device" table stdout
  done
  # keys that share hashes get other hashes
  "$folder/group-by-weak" -d $device --check key value quoted.csv >stdout 2>stderr || fail "weak hashes, $device"
  same "weak hashes, $device" table stdout
done
# shellcheck disable=SC2002 # a pipe, a few bytes at a time
cat crlf.csv | dd bs=7 2>/dev/null | "$group_by" -d cpu key value >stdout 2>stderr
same "pipe" table stdout

# sums of floats depend on the values alone
awk -v seed="$seed" 'BEGIN {
    srand(seed + 1)
    for (i = 0; i < 5000; i++)
      printf "%d,%.17fe%d\n", rand() * 9, rand() - 0.5, rand() * 600 - 300
  }' >floats
for order in cat tac "sort -t , -k 2"; do
  { echo key,value && $order floats; } >floats.csv
  for device in $devices; do
    runs 0 "floats, $order, $device" -d "$device" --check key value floats.csv
    [ "$order" != cat ] || [ "$device" != cpu ] || cp stdout table
    same "floats, $order, $device" table stdout
  done
done

# ---- single tables ----

table "nothing" 'key,value\n'
table "nothing, without a newline" 'key,value'
table "one row" 'key,value\na,1' a,1,1,1,1,1,
table "exact" 'key,value\na,1e308\na,1e308\na,1\na,-1e308\na,-1e308\n' a,5,1,0.2,-1e+308,1e+308,inf
table "no value" 'value,key\n,a\n"",b\n"  ",a\n' a,0,0,,,, b,0,0,,,,
table "empty key" 'key,value\n,1\n"",2\n' ,2,3,1.5,1,2,0.5
table "keys to quote" 'key,value\n"a,b",1\n"q""q",2\n"x\ny",3\n"r\r",4\n a ,5\n' \
  ' a ,1,5,5,5,5,' '"a,b",1,1,1,1,1,' '"q""q",1,2,2,2,2,' $'"r\r",1,4,4,4,4,' $'"x\ny",1,3,3,3,3,'
table "not finite" 'key,value\na,inf\na,-inf\nb,nan\nc,NaN\nc,1\nz,-Infinity\n' \
  a,2,nan,nan,-inf,inf,nan b,1,nan,nan,nan,nan, c,2,nan,nan,1,1,nan z,1,-inf,-inf,-inf,-inf,
table "order of bytes" 'key,value\nb,1\naa,1\na,1\n\303\244,1\nB,1\n' B,1,1,1,1,1, a,1,1,1,1,1, aa,1,1,1,1,1, \
  b,1,1,1,1,1, $'\303\244,1,1,1,1,1,'
table "a long field" "key,value\n$(printf '%0300000d' 0),1\n" "$(printf '%0300000d' 0),1,1,1,1,1,"
printf 'key\n2\n\n1\n2\n' >single.csv
printf '%s\n' $head_line ,0,0,,,, 1,1,1,1,1,1, 2,2,4,2,2,2,0 >expected
runs 0 "one column" -d cpu -c key key single.csv && same "one column" expected stdout
printf 'key,value\n1e1,1\n-0,2\n10,3\n+0.0,4\nnan,5\n -2 ,6\n0.1,7\n9007199254740991,8\ninf,9\n' >numbers.csv
printf '%s\n' $head_line -2,1,6,6,6,6, -0,2,6,3,2,4,2 0.1,1,7,7,7,7, 10,2,4,2,1,3,2 9007199254740991,1,8,8,8,8, \
  inf,1,9,9,9,9, nan,1,5,5,5,5, >expected
for device in $devices; do
  runs 0 "numbers, $device" -d $device -n -c key value numbers.csv && same "numbers, $device" expected stdout
done

# ---- --help and --version ----

for option in --version -V; do
  runs 0 $option $option
  [ "$(cat stdout)" = "group-by (cuatomic) $version" ] || fail "$option: not the version of the headers"
done
for option in --help -h; do
  runs 0 $option $option
  grep -q '^usage: group-by ' stdout || fail "$option: no usage"
  [ ! -s stderr ] || fail "$option: something on stderr"
done

# ---- errors ----

error 2 "no column" "the names of two columns" plain.csv
error 2 "two files" "more than one FILE: 'b'" key value a b
error 2 "unknown option" "unknown option '--frobnicate'" --frobnicate key value
error 2 "unknown letter" "unknown option '-x'" -nx key value
error 2 "value of none" "option '--check' takes no value" --check=2 key value
error 2 "no value" "option '-t' needs a value" key value -t
error 2 "unknown device" "unknown device 'tpu'" -d tpu key value
for number in 0 -1 x 1x '' 1025 99999999999999999999; do
  error 2 "threads '$number'" "'$number' is not a number of threads" -t "$number" key value
done
CUDA_VISIBLE_DEVICES='' error 1 "no GPU" "CUDA: (no usable CUDA device|this library was built without CUDA)" \
  -d cuda key value plain.csv

error 1 "missing file" "missing: No such file or directory" key value missing
error 1 "folder" ".: Is a directory" key value .
error 1 "name with a newline" "two\\?lines: No such file" key value $'two\nlines'
error 1 "empty file" "standard input: no header line" key value </dev/null
error 1 "no key" "plain.csv: no column has the name 'k'" k value plain.csv
error 1 "no value" "plain.csv: no column has the name 'v\\?'" key $'v\n' plain.csv
if [ -e /dev/full ]; then
  rc=0
  "$group_by" -d cpu key value plain.csv >/dev/full 2>stderr || rc=$?
  [ $rc = 1 ] && grep -q '^group-by: standard output: No space' stderr || fail "full standard output"
fi
# sanitizers reserve more than that
if [ -z "${SANITIZER_FLAGS-}" ]; then
  rc=0
  (
    ulimit -v 600000
    head -c 2000000000 /dev/zero | tr '\0' x | { printf 'key,value\n' && cat; } |
      "$group_by" -d cpu key value >stdout 2>stderr
  ) || rc=$?
  [ $rc = 1 ] && [ "$(cat stderr)" = "group-by: out of memory" ] && [ ! -s stdout ] || fail "a field beyond memory: exit status $rc"
fi

# bad NAME TEXT PATTERN [OPTION...]: the rows are refused with this message.
bad() {
  local what=$1 text=$2 pattern=$3
  shift 3
  # shellcheck disable=SC2059 # escapes
  printf "$text" >bad.csv
  error 1 "$what" "bad.csv: $pattern" "$@" key value bad.csv
}
bad "same names" 'key,value,key\n' "line 1: two columns have the name 'key'"
bad "few fields" 'key,value\na,1\nb\n' "line 3: 1 fields, but the header has 2"
bad "many fields" 'key,value\n\na,1,\n' "line 3: 3 fields, but the header has 2"
bad "quotes of nothing" 'key,value\n""\n' "line 2: 1 fields"
bad "no number" 'key,value\na,1\na,x\n' "line 3: 'x' is not a number"
bad "hexadecimal" 'key,value\na,0x10\n' "line 2: '0x10' is not a number"
bad "two numbers" 'key,value\na,1 2\n' "line 2: '1 2' is not a number"
bad "two points" 'key,value\na,1.2.3\n' "line 2: '1.2.3' is not a number"
bad "not a number" 'key,value\na,nan(1)\n' "line 2: 'nan\\(1\\)' is not a number"
bad "sign" 'key,value\na,-\n' "line 2: '-' is not a number"
bad "large" 'key,value\na,1e309\n' "line 2: '1e309' is too large"
bad "newline in a number" 'key,value\na,1\n"b\nb","1\n2"\n' "line 3: '1\\?2' is not a number"
bad "open quotes" 'key,value\na,1\n"a\n\n,1\n' "line 3: a quoted field does not end"
bad "one quote" 'key,value\na,"' "line 2: a quoted field does not end"
bad "quotes inside" 'key,value\na"a",1\n' "line 2: '\"' inside a field"
bad "behind quotes" 'key,value\n"a"b,1\n' "line 2: byte 0x62 behind a quoted field"
bad "behind quoted lines" 'key,value\n"a\n\n"\001,1\n' "line 4: byte 0x01 behind"
bad "carriage return" 'key,value\na\rb,1\n' "line 2: a carriage return"
bad "last carriage return" 'key,value\na,1\r' "line 2: a carriage return"
bad "zero" 'key,value\na\0b,1\n' "line 2: byte 0x00 in a field"
bad "zero in quotes" 'key,"va\0lue"\n' "line 1: byte 0x00 in a field"
bad "zero elsewhere" 'key,value,c\na,1,\0\n' "line 2: byte 0x00 in a field"
bad "text" 'key,value\n1,1\na,1\n' "line 3: 'a' is not a number" --numbers
bad "empty number" 'key,value\n1,1\n,1\n' "line 3: a key is empty" --numbers
bad "long integer" 'key,value\n9007199254740992,1\n' "line 2: '9007199254740992' is not below 2\\^53" --numbers
head -c 100000 /dev/urandom >random
"$group_by" -d cpu key value random >stdout 2>stderr
[ $? = 1 ] && [ "$(wc -l <stderr)" = 1 ] && [ ! -s stdout ] || fail "random bytes"

all_passed
