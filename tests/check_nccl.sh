#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The search for NCCL: the order of copies, and the reasons why a copy cannot be used. Needs neither a GPU nor NCCL.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${SANITIZER_FLAGS?}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
passed=0

cat >"$tmp/problem.c" <<'EOF'
/* Prints the reason; then loads the library of each argument and prints the reason again. */
#include <dlfcn.h>
#include <stdio.h>
#include <cuatomic.h>

int main(int argc, char **argv)
{
	if (argc < 2 || *argv[1])
		puts(cua_group_nccl_problem());
	for (int i = 1; i < argc; i++) {
		if (*argv[i] && !dlopen(argv[i], RTLD_NOW | RTLD_LOCAL))
			return 2;
		if (*argv[i])
			puts(cua_group_nccl_problem());
	}
	return 0;
}
EOF

# double FOLDER FLAG...: a libnccl.so.2 without NCCL
double() {
  local folder=$tmp/$1
  shift
  mkdir -p "$folder"
  # the compiler may hold options
  # shellcheck disable=SC2086
  $CC -std=gnu11 -pthread -shared -fPIC -Wl,-soname,libnccl.so.2 "$@" "$top_srcdir/tests/fake_nccl.c" \
    -o "$folder/libnccl.so.2"
}

# program NAME SOURCE...: links with the library of the build folder, and exports its functions
program() {
  local name=$1 objects=() source
  shift
  for source; do
    # shellcheck disable=SC2086
    $CC -std=gnu11 -pthread $SANITIZER_FLAGS -I"$top_srcdir/include" -I"$top_builddir/include" -c "$source" \
      -o "$tmp/$name-$(basename "$source" .c).o" || return 1
    objects+=("$tmp/$name-$(basename "$source" .c).o")
  done
  # shellcheck disable=SC2086
  "$top_builddir/libtool" --silent --tag=CC --mode=link $CC -pthread $SANITIZER_FLAGS -export-dynamic -no-install \
    -o "$tmp/$name" "${objects[@]}" "$top_builddir/lib/libcuatomic.la"
}

if ! { double good && double oldest -DFAKE_NCCL_VERSION=21400 && double old -DFAKE_NCCL_VERSION=21399 &&
  double older -DFAKE_NCCL_VERSION=2804 && double new -DFAKE_NCCL_VERSION=30000 &&
  double lacking -DncclAllReduce=ncclOther && program problem "$tmp/problem.c" &&
  program own "$tmp/problem.c" "$top_srcdir/tests/fake_nccl.c"; }; then
  echo "FAILED: the programs do not compile"
  exit 1
fi
mkdir "$tmp/empty"
: >"$tmp/empty/libnccl.so.2"

# expect TEXT FOLDER PROGRAM [ARGUMENT...]: the output, if the loader begins with the folder
expect() {
  local expected=$1 folder=$tmp/$2 name=$3 got
  shift 3
  got=$(LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$tmp/$name" "$@" | tr '\n' '|')
  if [ "$got" = "$expected" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name in $(basename "$folder"), arguments $*: \"$got\", expected \"$expected\""
  fi
}

older="libnccl.so.2 is older than NCCL 2.14|"
expect "|" good problem
expect "|" oldest problem
expect "libnccl.so.2 cannot be loaded|" empty problem
expect "$older" old problem
expect "$older" older problem
expect "libnccl.so.2 is not of NCCL 2|" new problem
expect "libnccl.so.2 lacks a function that this library needs|" lacking problem
# functions of the program come before a library that is not loaded
expect "|" old own
# a loaded library comes first, at any path
expect "|" old problem "" "$tmp/good/libnccl.so.2"
expect "$older" good problem "" "$tmp/old/libnccl.so.2"
# the next call tries again; after a success it does not
expect "$older|" old problem "$tmp/good/libnccl.so.2"
expect "||" good problem "$tmp/old/libnccl.so.2"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
