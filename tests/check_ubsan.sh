#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library has no undefined behaviour that clang's sanitizer detects. It detects more than gcc's,
# for example arithmetic on NULL. All of the CPU backend is compiled with it and runs the scenarios
# of check_injection.c.
#
# CLANG  the compiler [clang]
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${PKG_CONFIG?}" "${SANITIZER_FLAGS?}"

if [ -n "$SANITIZER_FLAGS" ]; then
  echo "skipped: this build has a sanitizer"
  exit 77
fi
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
clang=${CLANG:-clang}
ubsan=(-fsanitize=undefined -fno-sanitize-recover=undefined)

echo 'int main(void) { return 0; }' >"$tmp/empty.c"
if ! "$clang" "${ubsan[@]}" -o "$tmp/empty" "$tmp/empty.c" >"$tmp/log" 2>&1 || ! "$tmp/empty" >>"$tmp/log" 2>&1; then
  echo "skipped: $clang has no sanitizer for undefined behaviour here: $(head -n 1 "$tmp/log")"
  exit 77
fi
if ! flags=$("${PKG_CONFIG:-pkg-config}" --cflags --libs check); then
  echo "skipped: pkg-config does not know the check library"
  exit 77
fi

# Always without CUDA, and in parallel on all processors.
mkdir "$tmp/objects"
sed 's/^#define CUA_HAVE_CUDA .*/#define CUA_HAVE_CUDA 0/' "$top_builddir/config.h" >"$tmp/config.h"
compile() {
  "$clang" -std=gnu11 -O0 -g1 -w "${ubsan[@]}" -DHAVE_CONFIG_H -I"$tmp" -I"$top_srcdir/include" \
    -I"$top_builddir/include" -I"$top_srcdir/lib" -c -o "$1" "$2"
}
running=0
for source in "$top_srcdir"/lib/*.c "$top_srcdir"/lib/*/*.c; do
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || exit 1
    running=$((running - 1))
  fi
  compile "$tmp/objects/$(basename "$source" .c).o" "$source" &
  running=$((running + 1))
done
for ((; running; running--)); do
  wait -n || exit 1
done
wrapped=$(sed -n -e 's/.*[ *]__wrap_\([a-z_]*\)(.*/\1/p' -e 's/^FILE_CALL([a-z_]*, \([a-z]*\),.*/\1/p' \
  -e 's/^SERIOUS_CALL([a-z_]*, \([a-z]*\),.*/\1/p' "$top_srcdir/tests/check_injection.c" | sort -u |
  sed 's/^/-Wl,--wrap=/')
# Lists of words.
# shellcheck disable=SC2086
"$clang" -std=gnu11 -O0 -g1 -w "${ubsan[@]}" -I"$top_srcdir/include" -I"$top_builddir/include" $wrapped \
  -o "$tmp/calls" "$top_srcdir/tests/check_injection.c" "$top_srcdir/tests/common.c" "$tmp"/objects/*.o \
  $flags -lpthread -lm || exit 1
UBSAN_OPTIONS=print_stacktrace=1 "$tmp/calls"
