#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ThreadSanitizer proves that the orders in the headers are needed and sufficient. Every lock and
# atomic of tsan_threads.c is clean. Each order weakened below, in a copy of a header, is a data
# race, and so is a plain access in place of an atomic.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}"

export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# build INCLUDE
build() {
  # CC is a list of words
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O1 -g -w -fsanitize=thread -I"$1" -I"$top_builddir/include" \
    -o "$tmp/threads" "$top_srcdir/tests/tsan_threads.c" -lpthread
}
# run CASE: exit status 66 for a race
run() {
  TSAN_OPTIONS="exitcode=66 halt_on_error=1" timeout 120 "$tmp/threads" "$1" >"$tmp/log" 2>&1
}

echo 'int main(void) { return 0; }' >"$tmp/empty.c"
# shellcheck disable=SC2086
if ! $CC -fsanitize=thread -o "$tmp/empty" "$tmp/empty.c" >"$tmp/log" 2>&1 || ! "$tmp/empty" >>"$tmp/log" 2>&1; then
  echo "skipped: $CC has no ThreadSanitizer here: $(head -n 1 "$tmp/log")"
  exit 77
fi

build "$top_srcdir/include" || exit 1
for name in spinlock ticketlock mcslock write read seqlock semaphore store32 store64 store8 \
  exchange add loop user cells; do
  rc=0
  run $name || rc=$?
  if [ $rc != 0 ]; then
    echo "FAIL: $name: exit $rc"
    cat "$tmp/log"
    failed=1
  fi
done

# planted NAME CASE HEADER SED
planted() {
  local header=include/cuatomic/$3.h rc=0
  rm -rf "$tmp/include" && cp -R "$top_srcdir/include" "$tmp/include" && chmod -R u+w "$tmp/include" &&
    sed "$4" "$top_srcdir/$header" >"$tmp/$header" || exit 1
  if cmp -s "$top_srcdir/$header" "$tmp/$header"; then
    echo "FAIL: $1: there is nothing to edit in $3.h"
    failed=1
  elif ! build "$tmp/include"; then
    echo "FAIL: $1: does not compile"
    failed=1
  else
    run "$2" || rc=$?
    if [ $rc = 66 ] && grep -q 'WARNING: ThreadSanitizer: data race' "$tmp/log"; then
      echo "found: $1, by $2"
    else
      echo "FAIL: $1, by $2: not found, exit $rc"
      cat "$tmp/log"
      failed=1
    fi
  fi
}

planted 'a spinlock without acquire' spinlock spinlock '/_cas(/,/^}/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'a spinlock without release' spinlock spinlock 's/&l->word, 0, CUA_RELEASE/\&l->word, 0, CUA_RELAXED/'
planted 'a ticket lock without acquire' ticketlock ticketlock \
  '/void cua_ticketlock_lock_scope(/,/^}/s/cua_port_acquire_b32.*//'
planted 'a ticket trylock without acquire' ticketlock ticketlock \
  '/_trylock_scope(/,/^}/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'a ticket unlock without release' ticketlock ticketlock \
  's/&l->owner, 1, CUA_RELEASE/\&l->owner, 1, CUA_RELAXED/'
planted 'a queue without acquire' mcslock mcslock 's/cua_port_acquire_b32(&node->waiting.*//'
planted 'a queue joined without acquire' mcslock mcslock \
  's/(uint64_t)(uintptr_t)node, CUA_ACQ_REL/(uint64_t)(uintptr_t)node, CUA_RELEASE/'
planted 'a queue without release' mcslock mcslock 's/waiting, 0, CUA_RELEASE/waiting, 0, CUA_RELAXED/'
planted 'an end of the queue without release' mcslock mcslock \
  's/(uint64_t)(uintptr_t)node, 0, CUA_RELEASE/(uint64_t)(uintptr_t)node, 0, CUA_RELAXED/'
planted 'a write lock without acquire' write rwlock 's/&l->writers_out, CUA_ACQUIRE/\&l->writers_out, CUA_RELAXED/'
planted 'a write unlock without release' write rwlock \
  's/~CUA__RWLOCK_PRESENT, CUA_RELEASE/~CUA__RWLOCK_PRESENT, CUA_RELAXED/; s/&l->writers_out, 1, CUA_RELEASE/\&l->writers_out, 1, CUA_RELAXED/'
planted 'a read lock without acquire' read rwlock 's/CUA__RWLOCK_READER, CUA_ACQUIRE/CUA__RWLOCK_READER, CUA_RELAXED/'
planted 'a read unlock without release' read rwlock 's/CUA__RWLOCK_READER, CUA_RELEASE/CUA__RWLOCK_READER, CUA_RELAXED/'
planted 'a seqlock without acquire' seqlock seqlock 's/seen + 1, CUA_ACQUIRE/seen + 1, CUA_RELAXED/'
planted 'a seqlock without release' seqlock seqlock 's/odd + 1, CUA_RELEASE/odd + 1, CUA_RELAXED/'
planted 'a semaphore without acquire' semaphore semaphore 's/seen - 1, CUA_ACQUIRE/seen - 1, CUA_RELAXED/'
planted 'a semaphore without release' semaphore semaphore 's/&s->count, 1, CUA_RELEASE/\&s->count, 1, CUA_RELAXED/'
for name in store32 store64 store8; do
  planted 'loads without acquire' $name port/port_host 's/\(CUA__LOAD_##bits, \)__ATOMIC_ACQUIRE/\1__ATOMIC_RELAXED/'
  planted 'stores without release' $name port/port_host 's/\(CUA__STORE_##bits, \)__ATOMIC_RELEASE/\1__ATOMIC_RELAXED/'
done
for name in exchange loop; do
  planted 'changes without acquire' $name port/port_host 's/S(__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)/S(__ATOMIC_RELAXED, __ATOMIC_RELAXED)/'
done
planted 'sums without acquire' add port/port_host 's/\(CUA__FETCH_##op(bits, \)__ATOMIC_ACQUIRE/\1__ATOMIC_RELAXED/'
planted 'operations of the user without acquire' user atomic 's/order == CUA_ACQUIRE ? CUA_ACQUIRE/order == CUA_ACQUIRE ? CUA_RELAXED/'
for name in exchange loop user; do
  planted 'changes without release' $name port/port_host 's/S(__ATOMIC_RELEASE, /S(__ATOMIC_RELAXED, /'
done
planted 'sums without release' add port/port_host 's/\(CUA__FETCH_##op(bits, \)__ATOMIC_RELEASE/\1__ATOMIC_RELAXED/'
planted 'a plain addition to a cell' cells exact_cell \
  's/= (int64_t)cua_port_fetch_add_u64(word, .*/= (int64_t)*word; *word += (uint64_t)v;/'
planted 'a plain flag of a cell' cells exact_cell 's/cua_port_or_b64(last, flags, .*/*last |= flags;/'
exit "$failed"
