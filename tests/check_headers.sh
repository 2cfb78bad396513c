#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every public header compiles alone, in every language it is for, without a
# warning, also with CUA_LOCK_DEBUG; two translation units that include all of
# them link together; every struct with a struct_size has its initializer; and
# CUA_LOCK_DEBUG changes no size and no signature. C++ code that leaves a section in any way unlocks.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${CXX?}" "${NVCC?}" "${CUDART_LIBS?}" \
  "${SANITIZER_FLAGS?}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
include=(-I"$top_srcdir/include" -I"$top_builddir/include")
warnings=(-Wall -Wextra -Wpedantic -Werror)
failed=0
count=0

# cuatomic/port/ is reached through cuatomic/port.h only, and a template header only through its users.
headers=$(cd "$top_srcdir/include" && find cuatomic.h cuatomic cuatomic/detail -maxdepth 1 -name '*.h' ! -name '*.tmpl.h' | LC_ALL=C sort -u)
case $headers in
*cuatomic/version.h*) ;;
*) headers="$headers cuatomic/version.h" ;;
esac

# try NAME COMMAND...
try() {
  local what=$1
  shift
  count=$((count + 1))
  if ! "$@" >"$tmp/log" 2>&1 || [ -s "$tmp/log" ]; then
    echo "FAILED: $what"
    echo "  $*"
    cat "$tmp/log"
    failed=$((failed + 1))
  fi
}

# The compilers may hold options.
read -ra nvcc <<<"$NVCC"
cuda_arch=
if [ -n "$NVCC" ]; then
  # The oldest architecture the headers are for, or the oldest nvcc has.
  cuda_arch=$("${nvcc[@]}" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n |
    while read -r n; do [ "$n" -lt 70 ] || { echo "$n"; break; }; done)
fi
nvcc+=(-arch="sm_$cuda_arch" -Wno-deprecated-gpu-targets)
nvcc_strict=("${nvcc[@]}" -Werror=all-warnings -Xcompiler=-Wall -Xcompiler=-Wextra -Xcompiler=-Werror)

# try_fast_math NAME COMMAND...: headers with arithmetic refuse -ffast-math, the others accept it.
try_fast_math() {
  local what=$1
  shift
  count=$((count + 1))
  if "$@" -ffast-math -c -o "$tmp/alone.o" >"$tmp/log" 2>&1; then
    "$@" -ffast-math -E -o - | grep 'cua_port_[a-z0-9_]*(' >/dev/null || return
  elif grep 'cuatomic: -ffast-math' "$tmp/log" >/dev/null; then
    return
  fi
  echo "FAILED: $what with -ffast-math is neither refused nor harmless"
  cat "$tmp/log"
  failed=$((failed + 1))
}

printf '#include <stddef.h>\n' >"$tmp/all.h"
for h in $headers; do
  # Twice, for the include guard.
  printf '#include <%s>\n#include <%s>\nextern int unit_not_empty;\n' "$h" "$h" >"$tmp/alone.c"
  cp "$tmp/alone.c" "$tmp/alone.cc"
  cp "$tmp/alone.c" "$tmp/alone.cu"
  printf '#include <%s>\n' "$h" >>"$tmp/all.h"
  # shellcheck disable=SC2086 # CC and CXX may hold options
  for debug in '' -DCUA_LOCK_DEBUG; do
    try "$h as C11 $debug" $CC -std=c11 $debug "${warnings[@]}" "${include[@]}" -c "$tmp/alone.c" -o "$tmp/alone.o"
    [ -z "$CXX" ] || try "$h as C++17 $debug" $CXX -std=c++17 $debug "${warnings[@]}" "${include[@]}" -c "$tmp/alone.cc" -o "$tmp/alone.o"
  done
  [ -z "$NVCC" ] || try "$h as CUDA" "${nvcc_strict[@]}" "${include[@]}" -c "$tmp/alone.cu" -o "$tmp/alone.o"
  # shellcheck disable=SC2086
  try_fast_math "$h as C11" $CC -std=c11 "${include[@]}" "$tmp/alone.c"
  # shellcheck disable=SC2086
  [ -z "$CXX" ] || try_fast_math "$h as C++17" $CXX -std=c++17 "${include[@]}" "$tmp/alone.cc"
done

printf '#include "all.h"\nint second(void) { return 0; }\n' >"$tmp/second.c"
cat >"$tmp/first.c" <<'END'
#include "all.h"
#ifdef __cplusplus
extern "C"
#endif
int second(void);
int main(void) { return second(); }
END
sed 's/^int second/extern "C" int second/' "$tmp/second.c" >"$tmp/second.cc"
sed -i 's/^extern "C" int second/extern "C" int second(void);\n&/' "$tmp/second.cc"
cp "$tmp/first.c" "$tmp/first.cc"
cp "$tmp/first.c" "$tmp/first.cu"
cp "$tmp/second.cc" "$tmp/second.cu"

# The inline functions may call the library, as a user's unit would.
libraries=()
for lib in "$top_builddir"/lib/.libs/libcuatomic.so "$top_builddir"/lib/.libs/libcuatomic.a; do
  [ ! -f "$lib" ] || { libraries=("$lib"); break; }
done

# shellcheck disable=SC2086
for unit in first second; do
  try "all headers as C11, $unit unit" $CC -std=c11 "${warnings[@]}" "${include[@]}" -I"$tmp" -c "$tmp/$unit.c" -o "$tmp/$unit.c.o"
  [ -z "$CXX" ] || try "all headers as C++17, $unit unit" $CXX -std=c++17 "${warnings[@]}" "${include[@]}" -I"$tmp" -c "$tmp/$unit.cc" -o "$tmp/$unit.cc.o"
  [ -z "$NVCC" ] || try "all headers as CUDA, $unit unit" "${nvcc_strict[@]}" "${include[@]}" -I"$tmp" -c "$tmp/$unit.cu" -o "$tmp/$unit.cu.o"
done
[ -z "$NVCC" ] || try "all headers as CUDA -DCUA_LOCK_DEBUG" "${nvcc_strict[@]}" -DCUA_LOCK_DEBUG "${include[@]}" -I"$tmp" -c "$tmp/first.cu" -o "$tmp/debug.cu.o"
# shellcheck disable=SC2086
{
  try "two C units link" $CC $SANITIZER_FLAGS "$tmp/first.c.o" "$tmp/second.c.o" "${libraries[@]}" $CUDART_LIBS -lpthread -lm -o "$tmp/both"
  if [ -n "$CXX" ]; then
    try "two C++ units link" $CXX $SANITIZER_FLAGS "$tmp/first.cc.o" "$tmp/second.cc.o" "${libraries[@]}" $CUDART_LIBS -lpthread -lm -o "$tmp/both"
  fi
  if [ -n "$NVCC" ]; then
    try "two CUDA units link" "${nvcc[@]}" "$tmp/first.cu.o" "$tmp/second.cu.o" "${libraries[@]}" -o "$tmp/both"
    [ -z "$CXX" ] || try "a CUDA and a C++ unit link" "${nvcc[@]}" "$tmp/first.cu.o" "$tmp/second.cc.o" "${libraries[@]}" -o "$tmp/both"
  fi
}

# ---- initializers: the struct's size, and 0 in every other member ----

sized=$(awk '/^\tsize_t struct_size;/ { print name } { name = $2 }' "$top_srcdir"/include/cuatomic/*.h)
count=$((count + 1))
if [ "$(wc -l <<<"$sized")" -lt 11 ]; then
  echo "FAILED: fewer structs with a struct_size than there are: $sized"
  failed=$((failed + 1))
fi
{
  printf '#include "all.h"\n#include <cuatomic/lock_debug.h>\n#include <stdio.h>\n'
  for name in $sized; do
    printf 'static const struct %s constant_%s = %s_INIT;\n' "$name" "$name" "${name^^}"
  done
  printf 'static int nonzero(const void *p, size_t n)\n{\n'
  printf '  const unsigned char *bytes = (const unsigned char *)p;\n  size_t i, found = 0;\n'
  printf '  for (i = sizeof(size_t); i < n; i++)\n    found += bytes[i] != 0;\n  return found != 0;\n}\n'
  printf 'int main(void)\n{\n  int wrong = 0;\n'
  for name in $sized; do
    printf '  {\n    struct %s local = %s_INIT;\n' "$name" "${name^^}"
    printf '    if (local.struct_size != sizeof(local) || constant_%s.struct_size != sizeof(local) ||\n' "$name"
    printf '        nonzero(&constant_%s, sizeof(local))) {\n      puts("%s");\n      wrong = 1;\n    }\n  }\n' "$name" "$name"
  done
  printf '  return wrong;\n}\n'
} >"$tmp/sized.c"
cp "$tmp/sized.c" "$tmp/sized.cc"
cp "$tmp/sized.c" "$tmp/sized.cu"
# shellcheck disable=SC2086
{
  try "initializers as C11" $CC $SANITIZER_FLAGS -std=c11 "${warnings[@]}" "${include[@]}" -I"$tmp" "$tmp/sized.c" "${libraries[@]}" $CUDART_LIBS -lpthread -lm -o "$tmp/sized"
  try "initializers as C11, run" "$tmp/sized"
  if [ -n "$CXX" ]; then
    try "initializers as C++17" $CXX $SANITIZER_FLAGS -std=c++17 "${warnings[@]}" "${include[@]}" -I"$tmp" "$tmp/sized.cc" "${libraries[@]}" $CUDART_LIBS -lpthread -lm -o "$tmp/sized.c++"
    try "initializers as C++17, run" "$tmp/sized.c++"
  fi
}
[ -z "$NVCC" ] || try "initializers as CUDA" "${nvcc_strict[@]}" "${include[@]}" -I"$tmp" -c "$tmp/sized.cu" -o "$tmp/sized.cu.o"

# ---- the sections of the locks as C++: every jump and an exception leave the lock free ----

cat >"$tmp/exits.cc" <<'END'
#include <cstdio>
#include "section_exits.h"

#define THROWS(SECTION)                                                                            \
  try {                                                                                            \
    SECTION                                                                                        \
    throw 1;                                                                                       \
  } catch (int) {                                                                                  \
    thrown++;                                                                                      \
  }                                                                                                \
  held += section_locked(&l) != 0

int main()
{
  struct cua_mcslock_node node;
  struct cua_stripes stripes;
  struct section_locks l;
  int wrong = 0, thrown = 0, held = 0;

  section_init(&l);
  for (int kind = 0; kind < SECTION_KINDS; kind++)
    for (int how = 0; how < SECTION_EXITS; how++) {
      wrong += !section_left((section_exit)how, section_leave(&l, (section_kind)kind, &node, 1, (section_exit)how));
      held += section_locked(&l) != 0;
    }
  if (cua_stripes_init(&l.stripe, 1, &stripes))
    return 2;
  THROWS(CUA_WITH_LOCK (&l.group.spin));
  THROWS(CUA_WITH_TICKETLOCK (&l.group.ticket));
  THROWS(CUA_WITH_MCSLOCK (&l.group.mcs, &node));
  THROWS(CUA_WITH_READ_LOCK (&l.group.rw));
  THROWS(CUA_WITH_WRITE_LOCK (&l.group.rw));
  THROWS(CUA_WITH_SEQLOCK (&l.group.seq));
  THROWS(CUA_WITH_SEMAPHORE (&l.group.semaphore));
  THROWS(CUA_WITH_STRIPE (&stripes, &l));
  THROWS(CUA_WITH_LOCK_WARP (&l.group.spin, 1));
  if (wrong || held || thrown != SECTION_KINDS) {
    std::printf("%d wrong, %d held, %d thrown\n", wrong, held, thrown);
    return 1;
  }
}
END
if [ -n "$CXX" ]; then
  for option in -O0 -O2 -DCUA_LOCK_DEBUG; do
    # shellcheck disable=SC2086
    try "sections as C++17 $option" $CXX $SANITIZER_FLAGS -std=c++17 $option "${warnings[@]}" "${include[@]}" -I"$top_srcdir/tests" "$tmp/exits.cc" "${libraries[@]}" $CUDART_LIBS -lpthread -lm -o "$tmp/exits"
    try "sections as C++17 $option, run" "$tmp/exits"
  done
fi

# ---- CUA_LOCK_DEBUG: no size, no layout and no signature differs ----

# The structs and functions of the locks, as the headers have them.
lock_headers='combine detail/section mcslock rwlock semaphore seqlock spinlock ticketlock'
paths=()
for h in $lock_headers; do paths+=("$top_srcdir/include/cuatomic/$h.h"); done
structs=$(cat "${paths[@]}" | sed -n 's/^struct \(cua_[a-z_]*\|cua__[a-z_]*\) {$/\1/p' | sort -u)
structs="$structs cua_backoff cua_lock_debug cua_lock_record cua_lock_verdict cua_hang_report"
functions=$(cat "${paths[@]}" | tr '\n\t' '  ' | grep -o 'CUA_F[NORCE]* [^({;]*(' |
  sed -n 's/.*[ *]\(cua_[a-z0-9_]*\|cua__[a-z0-9_]*\)($/\1/p' | sort -u)

# shapes OPTION...: sizes, alignments and, as C++ mangles them, types.
shapes() {
  # shellcheck disable=SC2086
  $CXX -std=c++17 -w "$@" "${include[@]}" -I"$tmp" -c "$tmp/shapes.cc" -o "$tmp/shapes.o" &&
    nm -S "$tmp/shapes.o" | awk '$4 ~ /_of_/ { print $4, $3 == "T" ? "" : $2 }' | sort
}
if [ -n "$CXX" ]; then
  {
    printf '#include "all.h"\n#include <cuatomic/lock_debug.h>\n'
    for name in $structs; do
      printf 'char size_of_%s[sizeof(struct %s)], align_of_%s[alignof(struct %s)];\n' \
        "$name" "$name" "$name" "$name"
    done
    for name in $functions; do
      printf 'struct type_of_%s {}; void f(type_of_%s, decltype(&%s)) {}\n' "$name" "$name" "$name"
    done
  } >"$tmp/shapes.cc"
  count=$((count + 1))
  n=$(printf '%s\n' $structs $structs $functions | wc -l)
  if [ "$n" -lt 100 ] || ! shapes >"$tmp/shapes" || ! shapes -DCUA_LOCK_DEBUG >"$tmp/shapes.debug" ||
    [ "$(wc -l <"$tmp/shapes")" != "$n" ] || ! cmp -s "$tmp/shapes" "$tmp/shapes.debug"; then
    echo "FAILED: CUA_LOCK_DEBUG changes a size or a signature (of $n)"
    diff "$tmp/shapes" "$tmp/shapes.debug"
    failed=$((failed + 1))
  fi
fi

[ -n "$CXX" ] || echo "not tested as C++: no C++ compiler"
[ -n "$NVCC" ] || echo "not tested as CUDA: no nvcc in this build"
echo "$count compiled or linked, $failed failed${cuda_arch:+, CUDA for sm_$cuda_arch}"
[ "$failed" = 0 ]
