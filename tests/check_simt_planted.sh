#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whether the SIMT checker's cases can fail: each error below, planted into a copy
# of a header, must be found. A header is one of include/cuatomic or of lib.
#
# As many at once as there are processors.
#
# CUA_TEST_QUICK=1   skips all of it, which takes minutes
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${PKG_CONFIG?}" "${SANITIZER_FLAGS?}"

if [ -n "$SANITIZER_FLAGS" ]; then
  echo "skipped: the sanitizers do not follow coroutines"
  exit 77
fi
if [ "${CUA_TEST_QUICK:-0}" != 0 ]; then
  echo "skipped: CUA_TEST_QUICK is set"
  exit 77
fi
if ! flags=$("${PKG_CONFIG:-pkg-config}" --cflags --libs check); then
  echo "skipped: pkg-config does not know the check library"
  exit 77
fi
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
jobs=$(nproc)
running=0
number=0

# A public header, or one of the library's own that has kernels.
file_of() {
  if [ -f "$top_srcdir/include/cuatomic/$1.h" ]; then echo "include/cuatomic/$1.h"; else echo "lib/$1.h"; fi
}

# build DIR HEADER SED MODULE: the cases of MODULE over a copy of the headers with HEADER edited.
build() {
  mkdir "$1" "$1/lib" && cp -R "$top_srcdir/include" "$1/include" && cp "$top_srcdir"/lib/*.h "$1/lib" || return
  chmod -R u+w "$1/include" "$1/lib"
  sed "$3" "$top_srcdir/$(file_of "$2")" >"$1/$(file_of "$2")" || return
  # CC and the flags of the library are lists of words
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O1 -w -ffp-contract=off -DCUA_PORT_HEADER='"simt/port_simt.h"' \
    -I"$1/include" -I"$top_builddir/include" -I"$top_srcdir/tests" -I"$1" \
    -DSIMT_SUITES="SIMT_SUITE($4)" -o "$1/simt" "$top_srcdir/tests/check_simt.c" \
    "$top_srcdir/tests/simt_$4.c" "$tmp/simt.o" "$tmp/types.o" $flags -lpthread -lm
}

# find_it DIR WHAT HEADER SED MODULE: the case of MODULE must fail, not crash or hang.
find_it() {
  if ! build "$1" "$3" "$4" "$5" 2>&1; then
    echo "FAIL: $2: does not compile"
  elif cmp -s "$top_srcdir/$(file_of "$3")" "$1/$(file_of "$3")"; then
    echo "FAIL: $2: there is nothing to edit in $3.h"
  elif CUA_TEST_SEED=1 timeout 240 "$1/simt" >"$1/log" 2>&1; then
    echo "FAIL: $2: not found"
  elif ! grep -q 'Failures: [1-9][0-9]*, Errors: 0' "$1/log"; then
    echo "FAIL: $2: not found, but"
    cat "$1/log"
  else
    echo "found: $2: $(sed -n 's/.*lanes: //p' "$1/log" | tail -n 1)"
  fi
}

# planted WHAT HEADER SED [MODULE]: the same of the case of this header, or of MODULE, beside others.
planted() {
  number=$((number + 1))
  if [ "$running" -ge "$jobs" ]; then
    wait -n
    running=$((running - 1))
  fi
  {
    find_it "$tmp/$number" "$1" "$2" "$3" "${4:-$2}" >"$tmp/$number.told"
    cat "$tmp/$number.told"
    rm -rf "${tmp:?}/$number"
  } &
  running=$((running + 1))
}

# shellcheck disable=SC2086
$CC -std=gnu11 -O2 -w -I"$top_srcdir/tests" -c -o "$tmp/simt.o" "$top_srcdir/tests/simt/simt.c" || exit 1
# shellcheck disable=SC2086
$CC -std=gnu11 -O2 -w -I"$top_srcdir/include" -c -o "$tmp/types.o" "$top_srcdir/lib/types.c" || exit 1

planted 'a find without its second look at the state' hashmap \
  's/ != state)$/ != state \&\& 0)/'
planted 'a claim that does not advance the version' hashmap \
  's/ + CUA__HASHMAP_PHASE + 1;$/;/'
planted 'an insert that does not store the reach' hashmap \
  's/if (free_distance >= reach)$/if (0)/'
planted 'a write that gives the lock back too early' hashmap \
  's/result = cua__hashmap_write_locked/cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);&/'
planted 'an erase that gives the lock back too early' hashmap \
  's/result = cua__hashmap_erase_locked/cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);&/'
planted 'a claimed slot that says at once it holds a key' hashmap \
  's/state | CUA__HASHMAP_BUSY, CUA_ACQUIRE/state | CUA__HASHMAP_USED, CUA_ACQUIRE/'
planted 'values stored without release' hashmap \
  's/v, CUA_RELEASE, CUA__HASHMAP_AT/v, CUA_RELAXED, CUA__HASHMAP_AT/'
planted 'values loaded without acquire' hashmap \
  's/\(v = cua__hashmap_load(.*\)CUA_ACQUIRE/\1CUA_RELAXED/'
planted 'an erase that does not count' hashmap \
  's/&counts->erased, 1/\&counts->erased, 0/'
planted 'a head stored without release' chained \
  's/cua_port_store_b64(head, first, CUA_RELEASE/cua_port_store_b64(head, first, CUA_RELAXED/'
planted 'a head loaded without acquire' chained \
  's/^\([[:space:]]*\)CUA_ACQUIRE, CUA_SCOPE_DEVICE/\1CUA_RELAXED, CUA_SCOPE_DEVICE/'
planted 'a push without release' chained \
  's/before, first, CUA_RELEASE/before, first, CUA_RELAXED/'
planted 'a push that does not ask whether its swap failed' chained \
  '/cua__chained_swap(const/,/^}/s/^		    before)$/		    before || 1)/'
planted 'a push that is tried again with its old link' chained \
  '/cua__chained_swap(const/,/^}/s/CUA_WRITE(/if (backoff.ns == 32) &/'
planted 'lanes of a warp that do not meet before one pushes for all' chained \
  '/part of what its last lane/,/swap(/s/cua_port_sync_warp(mask)/(void)0/'
planted 'a lane that returns before its pair is there' chained \
  '/finds its own pair/,/return/s/cua_port_sync_warp(mask)/(void)0/'
planted 'lanes of a warp in the chain of another bucket' chained \
  's/ & cua_port_match_any_u64(mask, bucket);/;/'
planted 'an entry of a warp that is linked to one that has no place' chained \
  's/group = cua_port_ballot(mask, stored) &/group = votes \&/'
planted 'a chain of a block that is inserted before it is whole' chained_kernel \
  '/also makes all entries/,/for (/s/cua_port_sync_block()/(void)0/' chained
planted 'entries of a warp that are stored before all lanes have theirs there' chained_kernel \
  '/stage\[3 \* lane + 2\]/,/UNROLL/s/cua_port_sync_warp(CUA__CHAINED_ALL)/(void)0/' chained
planted 'entries of a warp that are written over before they are stored' chained_kernel \
  '/all have read what/,/CUA_WRITE/s/cua_port_sync_warp(CUA__CHAINED_ALL)/(void)0/' chained
planted 'a build by lanes of a warp that all link to the former head' chained_kernel \
  's/next\[j\] = above ? .*/next[j] = before;/' chained
planted 'a bulk insert past the end of the pool' chained_kernel \
  's/if (mine > view->capacity - base)/if (0)/' chained
planted 'turns without a sync_warp between two' combine \
  's/^	cua_port_sync_warp(t->group);/	(void)0;/'
planted 'turns that start before the lock is taken' combine \
  's/^	cua_port_sync_warp(t.group);/	(void)0;/'
planted 'no match of the locks in turns' combine \
  's/t.left = cua_port_match_any_u64(.*;/t.left = mask;/'
planted 'a warp that does not meet before its sections' combine \
  '/memset((void \*)&value/,/lock_scope/s/cua_port_sync_warp(group)/(void)0/'
planted 'a warp that does not meet after its sections' combine \
  '/unlock_scope/,/return result/s/cua_port_sync_warp(group)/(void)0/'
planted 'no match of the locks in a warp' combine \
  's/group = cua_port_match_any_u64(.*);/group = mask;/'
planted 'a block without the barrier before its sections' combine \
  '/CUA_WRITE(scratch\[thread\], argument)/,/if (thread == 0/s/cua_port_sync_block()/(void)0/'
planted 'a block without the barrier after its sections' combine \
  '/unlock_scope/,/return result/s/cua_port_sync_block()/(void)0/'
planted 'a state written back after the unlock' combine \
  's/CUA_WRITE(\*state, value);/cua_spinlock_unlock_scope(l, scope); &/'
planted 'a spinlock without acquire' spinlock \
  '/_swap(/,/^}/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'a spinlock without release' spinlock \
  's/&l->word, 0, CUA_RELEASE/\&l->word, 0, CUA_RELAXED/'
planted 'a spinlock given back for the block alone' spinlock \
  's/&l->word, 0, CUA_RELEASE, scope/\&l->word, 0, CUA_RELEASE, CUA_SCOPE_BLOCK/'
planted 'a spinlock given back before the section' spinlock \
  '/_section_try(/,/^}/s/return cua__spinlock_swap(l, scope);/return cua__spinlock_swap(l, scope) \&\& (cua_spinlock_unlock_scope(l, scope), 1);/'
planted 'a full-mask sync inside the spin' spinlock \
  '/_section_step(/,/^}/s/cua__backoff_wait_upto(.*);/cua_port_sync_warp(0xffffffffu);/'
planted 'a spinlock that looks and does not swap' spinlock \
  's/cua_port_cas_b32(&l->word, 0, 1, CUA_ACQUIRE,/cua_port_load_b32(\&l->word, CUA_ACQUIRE,/'
planted 'a ticket trylock that skips the owner check' ticketlock \
  's/SPACE_GENERIC) != owner)$/SPACE_GENERIC) != owner \&\& 0)/; s/uint32_t owner = cua_port_load_b32(&l->owner, CUA_ACQUIRE/uint32_t owner = cua_port_load_b32(\&l->next, CUA_ACQUIRE/'
planted 'a ticket unlock without release' ticketlock \
  's/&l->owner, 1, CUA_RELEASE/\&l->owner, 1, CUA_RELAXED/'
planted 'a ticket trylock without acquire' ticketlock \
  '/_trylock_scope(/,/^}/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'a ticket lock without acquire' ticketlock \
  '/void cua_ticketlock_lock_scope(/,/^}/s/cua_port_acquire_b32.*//'
planted 'a queue without release' mcslock \
  's/waiting, 0, CUA_RELEASE/waiting, 0, CUA_RELAXED/'
planted 'an end of the queue without release' mcslock \
  's/(uint64_t)(uintptr_t)node, 0, CUA_RELEASE/(uint64_t)(uintptr_t)node, 0, CUA_RELAXED/'
planted 'a queue without acquire' mcslock \
  's/cua_port_acquire_b32(&node->waiting.*//'
planted 'a queue joined without acquire' mcslock \
  's/(uint64_t)(uintptr_t)node, CUA_ACQ_REL/(uint64_t)(uintptr_t)node, CUA_RELEASE/'
planted 'a write lock that does not wait for the readers' rwlock \
  's/!= came/!= came \&\& 0/'
planted 'a try to write that does not look at the readers again' rwlock \
  's/if (cua_port_cas_b32(&l->readers_in, in,.*/if (cua_port_fetch_xor_b32(\&l->readers_in, CUA__RWLOCK_WRITER, CUA_RELAXED, CUA__RWLOCK_AT) != ~0u)/'
planted 'a writer that does not flip the phase' rwlock \
  's/fetch_xor_b32(&l->readers_in, CUA__RWLOCK_WRITER/fetch_xor_b32(\&l->readers_in, CUA__RWLOCK_PRESENT/'
planted 'a read unlock without release' rwlock \
  's/CUA__RWLOCK_READER, CUA_RELEASE/CUA__RWLOCK_READER, CUA_RELAXED/'
planted 'a read lock without acquire' rwlock \
  's/CUA__RWLOCK_READER, CUA_ACQUIRE/CUA__RWLOCK_READER, CUA_RELAXED/'
planted 'a write unlock without release to the writers' rwlock \
  's/and_b32(&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELEASE/and_b32(\&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELAXED/; s/&l->writers_out, 1, CUA_RELEASE/\&l->writers_out, 1, CUA_RELAXED/'
planted 'a write unlock without release to the readers' rwlock \
  's/and_b32(&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELEASE/and_b32(\&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELAXED/'
planted 'a read without its second look' seqlock \
  's/ != begun;$/ != begun \&\& 0;/'
planted 'a read that begins in the middle of a write' seqlock \
  's/^\tif (!(seen & 1))$/\tif (1)/; s/ != begun;$/ != (begun | 1) \&\& 0;/'
planted 'a seqlock taken by two writers' seqlock \
  's/^\tif (seen & 1)$/\tif (0)/'
planted 'a seqlock without acquire' seqlock \
  's/seen + 1, CUA_ACQUIRE/seen + 1, CUA_RELAXED/'
planted 'a seqlock without release' seqlock \
  's/odd + 1, CUA_RELEASE/odd + 1, CUA_RELAXED/'
planted 'a semaphore that lets in one too many' semaphore \
  's/while (seen) {/while (seen + 1) {/'
planted 'a semaphore without acquire' semaphore \
  's/seen - 1, CUA_ACQUIRE/seen - 1, CUA_RELAXED/'
planted 'a semaphore without release' semaphore \
  's/&s->count, 1, CUA_RELEASE/\&s->count, 1, CUA_RELAXED/'
planted 'partial sums handed on without release' reduce \
  's/&f->arrived, 1, CUA_ACQ_REL/\&f->arrived, 1, CUA_ACQUIRE/'
planted 'partial sums read without acquire' reduce \
  's/&f->arrived, 1, CUA_ACQ_REL/\&f->arrived, 1, CUA_RELEASE/'
planted 'a turn handed on without release' reduce \
  's/last ? 0 : block + 1, CUA_RELEASE/last ? 0 : block + 1, CUA_RELAXED/'
planted 'a turn taken without acquire' reduce \
  's/&f->turn, CUA_ACQUIRE/\&f->turn, CUA_RELAXED/'
planted 'a warp that is in before its lock is taken' lock_forms \
  '/_lock_warp_scope(CUA__UNPACK params/,/^	}/s/cua_port_sync_warp(mask);/(void)0;/'
planted 'a block that is in before its lock is taken' lock_forms \
  '/_lock_block_scope(CUA__UNPACK params/,/^	}/s/cua_port_sync_block();/(void)0;/'
planted 'a warp that does not meet first' lock_forms \
  '/int cua__come_warp/,/^}/s/cua_port_sync_warp(mask);/(void)0;/'
planted 'a block that does not meet first' lock_forms \
  '/int cua__come_block/,/^}/s/cua_port_sync_block();/(void)0;/'
planted 'a block that takes its lock before all have come' lock_forms \
  '/_lock_block_scope(CUA__UNPACK params/,/^	}/s/cua__come_block()/cua_port_thread() == 0/'
planted 'a vote that orders nothing' lock_forms \
  '/int cua__tell_warp/,/^}/s/cua_port_sync_warp(mask);/(void)0;/'
planted 'an answer for the first thread alone' lock_forms \
  's/cua_port_sync_block_or(taken)/(cua_port_sync_block(), taken)/'
planted 'two stripes in the order of the arguments' stripe \
  's/i < j ? i : j/i/; s/i < j ? j : i/j/'
planted 'one stripe taken twice' stripe \
  '/_lock_two_scope/,/^}/s/if (i != j)/if (1)/'
planted 'a striped atomic that unlocks too early' stripe \
  's/CUA_WRITE(\*p, next);/cua_spinlock_unlock_scope(l, scope); &/'
planted 'a striped load without its lock' stripe \
  's/v = CUA_READ(\*p);/cua_spinlock_unlock_scope(l, scope); &/'
planted 'a section on the stripe after its own' stripe \
  's/l = cua_stripes_at((stripes), (p)); l;/l = \&(stripes)->locks[(cua_stripes_index((stripes), (p)) + 1) % (stripes)->n].lock; l;/'
planted 'rows of a histogram that are told without release' reduce \
  's/(&f->arrived, 1, CUA_ACQ_REL,/(\&f->arrived, 1, CUA_ACQUIRE,/' histogram
planted 'a row of a histogram that is stored too early' histogram_kernel \
  '/^CUA_FORCE void cua__histogram_run(/,/store_row/s/cua_port_sync_block()/(void)0/' histogram
planted 'rows of a histogram that are merged before the block knows of them' histogram_kernel \
  '/cua__finish_arrive(j/,/is_last = /s/cua_port_sync_block()/(void)0/' histogram
planted 'the answer to who is last, written over before all have read it' histogram_kernel \
  '/is_last = CUA_READ/,/return/s/cua_port_sync_block()/(void)0/' histogram
planted 'a sum of a histogram that is not zero again' histogram_kernel \
  's/CUA_WRITE(j->sums\[i\], 0)/(void)0/' histogram
planted 'a packed bin that keeps what it got from the one below' histogram_kernel \
  's/^\t\tshould = 0;/\t\tshould = 1;/' histogram
planted 'a packed bin that loses what ran over' histogram_kernel \
  's/if (is != should \&\& field < own->slots)/if (is != should \&\& field != slot)/' histogram
planted 'a hot bin that is forgotten for the next one' histogram_kernel \
  '/old + CUA__HISTOGRAM_HOT_LANES ||/,/own->hot = sample/s/cua__histogram_hot_flush(j, own)/own->hot_n = 0/' histogram
planted 'a pack of two values of which the second one counts all' histogram_kernel \
  's/own->lane ? n \* 32 - firsts : firsts/own->lane ? n * 32 : firsts/' histogram
planted 'a pack of more than two values that is counted as two' histogram_kernel \
  's/differs |= slot\[k\] != first \&\& slot\[k\] != last/differs |= 0/' histogram
planted 'a weight without its carry' histogram_kernel \
  's/ + (old + (uint32_t)n < old);/;/' histogram
planted 'parts of segments that are told without release' reduce \
  's/(&f->arrived, 1, CUA_ACQ_REL,/(\&f->arrived, 1, CUA_ACQUIRE,/' segment
planted 'a tile of a path that is read before it is there' segment_kernel \
  '/m = (uint32_t)(p->last - j);/,/this thread/s/cua_port_sync_block()/(void)0/' segment
planted 'a scan of segments that frees its scratch too early' segment_kernel \
  '/\*total_ended = ended;/,/^}/s/cua_port_sync_block()/(void)0/' segment
planted 'a segment without what other tiles have of it' segment_kernel \
  's/before = cua__segment_combine(op, type, \*carry, before)/(void)0/' segment
planted 'a segment without what the part before has of it' segment_kernel \
  's/before = tail;/before = 0;/' segment
planted 'partials of a segment that are told without release' segment_tree \
  's/(&l->arrived, 1, CUA_ACQ_REL,/(\&l->arrived, 1, CUA_ACQUIRE,/' segment
planted 'partials of a segment that are read without acquire' segment_tree \
  's/(&l->arrived, 1, CUA_ACQ_REL,/(\&l->arrived, 1, CUA_RELEASE,/' segment
planted 'partials of a segment that other lanes read before lane 0 has them' segment_tree \
  's/cua_port_sync_warp(CUA__FIXED_FULL)/(void)0/' segment
planted 'a strip without what is moved out of its last row' segment_tree \
  's/if (shift && full - (int32_t)shift < there)/if (0)/' segment
planted 'columns of a strip that are not put in their places' segment_tree \
  's/a\[j\] = moved\[j\];/(void)moved[j];/' segment
planted 'few rows without what is moved out of the last one' segment_tree \
  's/c\[0\]\[j\], last.v\[j\], last.v\[j\], 0)/c[0][j], v[0][0].v[j], v[0][0].v[j], 0)/' segment
planted 'few rows whose last lane takes columns of the wrong pack' segment_tree \
  's/of ? a\[p\]\[j\] : a\[(p + 1) % PACKS\]\[j\]/a[p][j]/' segment
planted 'a strip with what is before and after it' segment_tree \
  's/if (at < 0 || at + WIDTH > there)/if (0)/' segment
planted 'a segment on the list of which one chunk is another one' segment_tree \
  's/place << CUA__FIXED_CHUNK_BITS | c)/place << CUA__FIXED_CHUNK_BITS | c \/ 2)/' segment
planted 'a segment without a place on the list that is left out and not stored' segment_tree \
  's/return listed;/return 1;/' segment
planted 'a run that begins again with each warp' filter_kernel \
  's/t->before = cua__filter_load_before(k, x);/;/' filter
planted 'a run that begins again with each load' filter_kernel \
  's/lowest = other;/lowest = last;/' filter
planted 'a first key that begins no run where the array begins a pack' filter_kernel \
  's/t->start = at == 0 \&\& !shift;/t->start = 0;/' filter
planted 'a first key that begins no run inside a pack' filter_kernel \
  's/t->start = (uint32_t)1 << (j \* per + c);/;/' filter
planted 'the end of the last run, where all places are taken' filter_kernel \
  's/if (kept <= f->capacity)$/if (kept < f->capacity)/' filter
planted 'the end of the last run with a place' filter_kernel \
  's/f->capacity + (k.key == CUA__FILTER_CHANGE)/f->capacity/' filter
planted 'a stage that is pushed to before all have seen how full it is' append \
  '/nobody pushes before all have seen/,/^	}/s/cua_port_sync_block()/(void)0/'
planted 'an item that is stored where the stage has no room' append \
  's/if (place < (room)) {/if (1) {/'
planted 'a filter in place whose counts are told without release' filter_kernel \
  's/cua__filter_tell(f, f->in_place, tile, CUA__FILTER_COUNT/cua__filter_tell(f, 0, tile, CUA__FILTER_COUNT/' filter
planted 'a count of the filter that is told before all have counted' filter_kernel \
  '/CUA_WRITE(sh->next, next);/,/before = cua__filter_add_warps/s/cua_port_sync_block()/(void)0/' filter
planted 'a filter in place whose counts are read without acquire' filter_kernel \
  's/? cua__filter_look(f, f->in_place, tile + j/? cua__filter_look(f, 0, tile + j/' filter
planted 'a filter in place whose places are told without release' filter_kernel \
  '/reached \&\& j/,/PLACE/s/f->in_place, tile/0, tile/' filter
planted 'a filter in place whose places are read without acquire' filter_kernel \
  's/word = cua__filter_look(f, f->in_place, oldest.tile)/word = cua__filter_look(f, 0, oldest.tile)/' filter
planted 'a scan of the filter that takes words that nobody told' filter_kernel \
  's/run = !goes_on ? 0 : .*;/run = !goes_on ? 0 : 32;/' filter
planted 'a scan of the filter that reads sums too early' filter_kernel \
  '/sh->scan_told\[turn\]\[warp\], told/,/warps above/s/cua_port_sync_block()/(void)0/' filter
planted 'a scan of the filter that has room for one step' filter_kernel \
  's/turn ^= 1;/(void)turn;/' filter
planted 'a scan of the filter that goes on behind a gap' filter_kernel \
  's/goes_on = goes_on \&\& of_warp == full;/(void)of_warp;/' filter
planted 'a scan of the filter that waits for tiles that nobody has' filter_kernel \
  's/} else if (idle > CUA__FILTER_PATIENCE .*{/} else if (0) {/' filter
planted 'a place of the filter that is written over' filter_kernel \
  '/all have seen the place before/,/}/s/cua_port_sync_block()/(void)0/' filter
planted 'a stage of the filter that is stored before its place is known' filter_kernel \
  '/CUA_WRITE(sh->first, word/,/if (due)/s/cua_port_sync_block()/(void)0/' filter
planted 'tiles of the filter in one stage' filter_kernel \
  's/to = to + 1 == k.stages ? 0 : to + 1/(void)0/; s/from = to < n_staged ? .*;/from = to;/' filter
planted 'a short filter in place whose counts are told without release' filter_kernel \
  's/cua__filter_tell(f, told_more, s.tile/cua__filter_tell(f, 0, s.tile/' filter
planted 'a short filter in place whose counts are read without acquire' filter_kernel \
  's/cua__filter_lower(f, told_more,/cua__filter_lower(f, 0,/' filter
planted 'a short filter that takes counts of a call before' filter_kernel \
  's/while (word\[j\] >> 16 != call)/while (word[j] == 0)/' filter
planted 'a short filter that looks for the end of the buffer too late' filter_kernel \
  's/place = base + lower;/place = cua__filter_base(f) + lower;/' filter
planted 'a stage of the filter that is stored before it is full' filter_kernel \
  '/CUA_WRITE(sh->next, ticket);/,/if (is_staged)/s/cua_port_sync_block()/(void)0/' filter
planted 'a stage of the filter that is filled before it is stored' filter_kernel \
  '/CUA_WRITE(sh->kept\[thread \/ 32\], r.own);/,/nobody reads/s/cua_port_sync_block()/(void)0/' filter
planted 'a record that two lanes write' lock_debug \
  's/CUA__DEBUG_AT) != seen)$/CUA__DEBUG_AT) != seen \&\& 0)/'
planted 'a verdict that is ready before it is written' lock_debug \
  's/&v->ready, 1, CUA_RELEASE/\&v->ready, 1, CUA_RELAXED/'
planted 'two reports of one wait' lock_debug \
  's/^\tw->limit = 0;$//'
planted 'lanes in turn that do not see those below' atomic_warp \
  's/old = next_of(old, next);/(void)next;/' serial
planted 'lanes in turn whose swap is not asked whether it failed' atomic_warp \
  '/CUA__DEFINE_SERIAL_WARP(/,/^	}/s/CUA_SPACE_GENERIC) != before;/CUA_SPACE_GENERIC) != before \&\& 0;/' serial
planted 'a fetch of a block that frees its scratch too early' atomic_warp \
  '/the slots are free again/,/return lane/s/cua_port_sync_block()/(void)0/' serial
planted 'a fetch of a block without the totals of the warps' atomic_warp \
  's/old = group##_combine(old, total);/(void)total;/' serial
planted 'partial results of chunks handed on without order' reduce \
  's/&f->arrived, 1, CUA_ACQ_REL/\&f->arrived, 1, CUA_RELAXED/' tree
planted 'a last block that does not wait for its first thread' tree_block \
  '/CUA_WRITE(s->last,/,/CUA_READ(s->last)/s/cua_port_sync_block();/(void)0;/' tree
planted 'chunks that share one place for the values of warps' tree_block \
  's/turn ^= 1;/turn ^= 0;/' tree
planted 'values of warps that are read too early' tree_block \
  '/cua__tree_packs_##kind(A v/,/return v;/s/cua_port_sync_block();/(void)0;/' tree
planted 'a block that arrives before its last partial result' tree_block \
  '/if (thread == 0)/{N;s/(thread == 0)\(.*s->last\)/(thread == 33)\1/;}' tree
planted 'chunks that go to other places' tree_block \
  's/chunk = thread; chunk/chunk = (thread + 1) % CUA__TREE_THREADS; chunk/' tree
planted 'lanes that take in their neighbours first' tree_block \
  's/(lane + half) % 32/(lane + (half > 4 ? 24 - half : half)) % 32/' tree
planted 'a row without its last element' tree_block \
  's/int more = pack + j < left;/int more = pack + j + 1 < left;/' tree
planted 'a wide loop that does not try again' atomic \
  's/while (seen != before);/while (0);/' wide
wait
if grep -q '^FAIL' "$tmp"/*.told || [ "$(cat "$tmp"/*.told | grep -c '^found')" != "$number" ]; then
  exit 1
fi
