#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The cases of the SIMT checker must fail for each error below, planted into a copy of a header of
# include/cuatomic or lib. As many errors are tried in parallel as there are processors.
#
# CUA_TEST_PLANTED=part/of  tries error number n if n modulo `of` is `part`; 0/1 tries all errors. By default,
#                           `make check` tries a fixed sample, and `make check-deep` all errors.
# CUA_TEST_PLANTED=edits    compiles nothing; checks that each edit changes code in its header
# CUA_TEST_QUICK=1          skips the script; in `make check-deep` it tries another fixed sample
set -u

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${PKG_CONFIG?}" "${SANITIZER_FLAGS?}"

if [ -n "${CUA_TEST_PLANTED-}" ]; then
  part=$CUA_TEST_PLANTED
elif [ "${CUA_TEST_QUICK:-0}" = 0 ]; then
  part=$([ "${CUA_TEST_DEEP:-0}" = 0 ] && echo 7/120 || echo 0/1)
elif [ "${CUA_TEST_DEEP:-0}" != 0 ]; then
  part=16/24
else
  echo "skipped: CUA_TEST_QUICK is set"
  exit 77
fi
if [ "$part" != edits ]; then
  if [ -n "$SANITIZER_FLAGS" ]; then
    echo "skipped: the sanitizers do not follow coroutines"
    exit 77
  fi
  if ! flags=$("${PKG_CONFIG:-pkg-config}" --cflags --libs check); then
    echo "skipped: pkg-config does not know the check library"
    exit 77
  fi
fi
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
jobs=$(nproc)
running=0
number=0
tried=0
echo "part $part"

# The path of a header; names of headers are unique.
file_of() {
  (cd "$top_srcdir" && find include lib -name "$1.h")
}

# build DIR HEADER SED MODULE: the cases of MODULE over a copy of the headers with HEADER edited.
build() {
  mkdir "$1" && cp -R "$top_srcdir/include" "$top_srcdir/lib" "$1" || return
  chmod -R u+w "$1/include" "$1/lib"
  sed "$3" "$top_srcdir/$(file_of "$2")" >"$1/$(file_of "$2")" || return
  # CC and the flags of the library are lists of words. The linear cases use a map of the library.
  # shellcheck disable=SC2086
  "$top_builddir/libtool" --silent --tag=CC --mode=link $CC -no-install \
    -std=gnu11 -O1 -w -ffp-contract=off -DCUA_PORT_HEADER='"simt/port_simt.h"' -I"$1/include" \
    -I"$top_builddir/include" -I"$top_srcdir/tests" -I"$1" -I"$1/lib" \
    -DSIMT_SUITES="SIMT_SUITE($4)" -o "$1/simt" "$top_srcdir/tests/check_simt.c" \
    "$top_srcdir/tests/simt_$4.c" "$tmp/simt.o" "$tmp/linear.o" "$tmp/common.o" \
    "$top_builddir/lib/libcuatomic.la" $flags -lpthread -lm
}

# limited PROGRAM: limits the processor time, because a planted error may make a case run forever.
limited() (
  ulimit -t 240
  export CUA_TEST_FULL=1 CUA_TEST_QUICK=0 CUA_TEST_SEED=1 CK_TIMEOUT_MULTIPLIER=20
  exec "$1"
)

# edit_it ERROR HEADER SED: the edit must change code of the header, not only comments.
edit_it() {
  local file
  file=$top_srcdir/$(file_of "$2")
  if ! sed "$3" "$file" >"$tmp/edited"; then
    echo "FAIL: $1: sed cannot edit $2.h"
  elif ! diff "$file" "$tmp/edited" | sed -n 's/^[<>][[:space:]]*//p' |
    awk '!/^\/?\*([ *\/]|$)/ && NF { code = 1 } END { exit !code }'; then
    echo "FAIL: $1: there is nothing to edit in $2.h"
  fi
}

# find_it DIR ERROR HEADER SED MODULE: the case of MODULE must fail, not crash or hang.
find_it() {
  if ! build "$1" "$3" "$4" "$5" 2>&1; then
    echo "FAIL: $2: does not compile"
  elif cmp -s "$top_srcdir/$(file_of "$3")" "$1/$(file_of "$3")"; then
    echo "FAIL: $2: there is nothing to edit in $3.h"
  elif limited "$1/simt" >"$1/log" 2>&1; then
    echo "FAIL: $2: not found"
  elif ! grep -q 'Failures: [1-9][0-9]*, Errors: 0' "$1/log"; then
    echo "FAIL: $2: not found, but"
    cat "$1/log"
  else
    echo "found: $2: $(sed -n 's/.*lanes: //p' "$1/log" | tail -n 1)"
  fi
}

# planted ERROR HEADER SED [MODULE]: find_it in the background. ERROR describes the error. MODULE
# is HEADER by default.
planted() {
  number=$((number + 1))
  if [ "$part" = edits ]; then
    edit_it "$1" "$2" "$3" | tee -a "$tmp/edits.out"
    return
  fi
  [ $((number % ${part#*/})) = "${part%/*}" ] || return 0
  tried=$((tried + 1))
  if [ "$running" -ge "$jobs" ]; then
    wait -n
    running=$((running - 1))
  fi
  {
    find_it "$tmp/$number" "$1" "$2" "$3" "${4:-$2}" >"$tmp/$number.out"
    cat "$tmp/$number.out"
    rm -rf "${tmp:?}/$number"
  } &
  running=$((running + 1))
}

if [ "$part" != edits ]; then
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O2 -w -I"$top_srcdir/tests" -c -o "$tmp/simt.o" "$top_srcdir/tests/simt/simt.c" || exit 1
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O2 -w -I"$top_srcdir/tests" -c -o "$tmp/linear.o" "$top_srcdir/tests/linear.c" || exit 1
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O2 -w -I"$top_srcdir/tests" -I"$top_srcdir/include" -I"$top_builddir/include" \
    -c -o "$tmp/common.o" "$top_srcdir/tests/common.c" || exit 1
fi

# instead NAME PARAMETERS BODY: a sed script that renames cua_hashmap_NAME to cua_hashmap_NAME_right, and defines
# cua_hashmap_NAME with another body. These errors do not depend on the layout of the map.
instead() {
  printf '%s\n' "s/\\<cua_hashmap_$1(/cua_hashmap_$1_right(/g" \
    "/^#endif.*CUATOMIC_HASHMAP_H/i CUA_FN int cua_hashmap_$1(const struct cua_hashmap_view *view, uint64_t key$2) { ${3//$'\n'/ } }"
}
planted 'an update that is a find and an assign' hashmap "$(instead update ', uint64_t value, enum cua_update op' \
  'uint64_t old; if (op == CUA_UPDATE_ADD && cua_hashmap_find(view, key, &old))
    return cua_hashmap_assign(view, key, old + value);
    return cua_hashmap_update_right(view, key, value, op);')" linear
planted 'an insert that is a lookup and an assign' hashmap "$(instead insert ', uint64_t value' \
  'return cua_hashmap_contains(view, key) ? CUA_HASHMAP_EXISTS : cua_hashmap_assign(view, key, value);')" linear
planted 'an assign that erases and inserts' hashmap "$(instead assign ', uint64_t value' \
  'int was = cua_hashmap_erase(view, key), result = cua_hashmap_insert(view, key, value);
    return was && result == CUA_HASHMAP_INSERTED ? CUA_HASHMAP_EXISTS : result;')" linear
planted 'an erase whose result comes from an earlier lookup' hashmap "$(instead erase '' \
  'int was = cua_hashmap_contains(view, key); cua_hashmap_erase_right(view, key); return was;')" linear
planted 'a find whose value comes from a second lookup' hashmap "$(instead find ', uint64_t *value' \
  '*value = 0; if (!cua_hashmap_contains(view, key)) return 0; cua_hashmap_find_right(view, key, value); return 1;')" linear
planted 'a write by a quad that is not counted' hashmap_quad \
  's/added = cua_port_popc_u32(cua_port_ballot(lanes.mask, result == CUA_HASHMAP_INSERTED));/added = 0;/' linear
planted 'an update by a quad that changes nothing' hashmap_quad \
  '/^CUA_FORCE int cua__quad_write(/,/^}/s/return \(cua__hashmap_word_change_by\)/return 1 || \1/' linear
planted 'quads of sets that ask for no equality' hashmap_quad \
  's/CUA__DEFINE_HASHSET_QUAD(name, K, name##__equal)/CUA__DEFINE_HASHSET_QUAD(name, K, NULL)/' hashmap_kinds
planted 'quads of maps that ask for no equality' hashmap_quad \
  's/CUA__DEFINE_HASHMAP_QUAD(name, K, V, name##__equal)/CUA__DEFINE_HASHMAP_QUAD(name, K, V, NULL)/' hashmap_kinds
planted 'a set with an equality that its lanes do not use' hashmap \
  '/define CUA_DEFINE_HASHSET_WITH/,/^$/s/name##__equal/NULL/' hashmap_kinds
planted 'words of 4 + 8 that lose half of the value' hashmap_word \
  '/cua__hashmap_word_value(/,/^}/s/vs == 8/0/' hashmap_kinds
planted 'a compare-exchange that does not compare' hashmap \
  '/^CUA_FORCE int cua__hashmap_compare_exchange_at(/,/^}/s/if (!cua__hashmap_same(spot->value, \*expected))/if (0)/' linear
planted 'a compare-exchange by a quad that forgets a reserved key' hashmap_quad \
  's/return lanes.active \&\& is_reserved ? -1 : 0;/return 0;/' linear
planted 'an insert that forgets the lock which it took beside claims' hashmap_word \
  's/in->locked = lock && stored/in->locked = 0/' hashmap
planted 'an insert that takes a lock beside claims for its own' hashmap_word \
  's/in->locked = lock && stored/in->locked = lock/' hashmap
planted 'an insert that takes a held lock beside claims' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_enter_home(/,/^}/s/!(lo & CUA__HASHMAP_LOCKED) &&//' hashmap
planted 'a warp whose lanes have not one key, taken for one' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_look_same(/,/^}/s/bits == cua_port_shuffle_u32(all, bits, 0)/1/' hashmap
planted 'a warp with one key whose lanes have two maps, taken for one' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_look_same(/,/^}/s/cua__warp_peers(all, home) != all/0/' hashmap
planted 'a warp with one key that takes the next slot' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_look_same(/,/^}/s/home + 8 \* slot/home + 8 * (slot % 7 + 1)/' hashmap
planted 'a warp with one key that takes no account of reserved keys' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_look_same(/,/^}/s/cua__hashmap_reserved_slot(view, 4, 4, key.bits, equal)/0/' hashmap
planted 'a warp with one key that publishes nothing' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_look_same(/,/^}/s/cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);//' hashmap
planted 'native updates of lanes that have not met' hashmap \
  's/CUA_WARP_LANES > 1 ? cua__warp_meet() : 0/CUA_WARP_LANES > 1 ? cua_port_active_mask() : 0/'
planted 'native updates together with lanes that joined later' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/cua_port_match_any_u32(mask, together)/mask/' hashmap
planted 'native updates together with lanes in their next call' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/cua_port_match_any_u32(mask, together)/together/' linear
planted 'native updates of which each lane does that of all' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/if (!cua__warp_below(peers))/if (1)/' hashmap
planted 'native updates that a lane does not find afterwards' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/if (grouped)/if (0)/' hashmap
planted 'native updates with the operand of the lowest lane only' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/if (rounds.above)/if (0)/' hashmap
planted 'native updates of lanes with two slots together' hashmap_word \
  '/cua__hashmap_word_apply_together/,/^}/s/cua__warp_peers(mask, .*) &$/mask \&/' hashmap
planted 'native updates of a reserved key without a fence before' hashmap_word \
  '/^CUA_FORCE int cua__hashmap_word_enter(/,/^}/{s/if (fenced)/if (fenced \&\& !reserved)/;}' hashmap
planted 'an erase from a map that never erases' hashmap \
  's/if (view->no_erase)/if (0)/'
planted 'updates together without what the others did before' hashmap_word \
  '/_word_change_together(/,/^}/s/cua_port_sync_warp(mask);/;/' hashmap
planted 'updates together of lanes with two slots' hashmap_word \
  '/_word_change_together(/,/^}/s/peers = cua__warp_peers(.*) &$/peers =/' hashmap
planted 'updates together of lanes with two operations' hashmap_word \
  '/_word_change_together(/,/^}/s/spot->at + (uint32_t)op/spot->at/' linear
planted 'updates together of lanes with two keys' hashmap_word \
  '/_word_change_together(/,/^}/s/cua_port_match_any_u64(mask, key.lo)/mask/' hashmap
planted 'updates together of a key that is gone' hashmap_word \
  '/_word_change_together(/,/^}/s/cua__hashmap_word_has(ks, vs, word, key, NULL)/1/' hashmap
planted 'updates together without the operands of the lanes below' hashmap_word \
  '/_operands(/,/^}/s/if (below >> lane & 1)/if (0)/' hashmap
planted 'updates together with the operands of all lanes' hashmap_word \
  '/_operands(/,/^}/s/if (below >> lane & 1)/if (lane < cua_port_lane())/' hashmap
planted 'updates together by any operation as if it were associative' hashmap_word \
  '/_word_change_together(/,/^}/s/const int associative =$/& 1 ||/' hashmap
planted 'updates together where a lane gets the value before all' hashmap_word \
  '/_word_change_together(/,/^}/s/spot->value = value;/spot->value = cua__hashmap_word_value(ks, vs, word);/' hashmap
planted 'updates together that ask an operation about the value of another key' hashmap_word \
  's/left ? below : 0, operand/below, operand/' hashmap
planted 'updates together of which the lowest lane swaps' hashmap_word \
  '/_word_change_together(/,/^}/s/cua__warp_highest(peers)/cua_port_ffs_u32(peers) - 1/' hashmap
planted 'updates together that count the CAS of another slot as theirs' hashmap_word \
  '/_word_change_together(/,/^}/s/cua_port_ballot(mask, swapped) \& peers/cua_port_ballot(mask, swapped)/' hashmap
planted 'updates together whose swap does not release' hashmap_word \
  '/_word_change_together(/,/^}/s/desired, CUA_ACQ_REL/desired, CUA_ACQUIRE/' hashmap
planted 'updates together whose read and swap do not acquire' hashmap_word \
  '/_word_change_together(/,/^}/{s/desired, CUA_ACQ_REL/desired, CUA_RELEASE/;s/wide, CUA_ACQUIRE/wide, CUA_RELAXED/}' hashmap
planted 'a find without its second load of the state' hashmap_state \
  's/if (seen == state && !wait)/if (!wait)/'
planted 'a claim that does not advance the version' hashmap_state \
  's/state = cua__hashmap_state_next(free_state);/state = free_state;/'
planted 'an insert that does not store the reach' hashmap_state \
  's/if (free_distance >= reach)$/if (0)/'
planted 'a write that gives the lock back too early' hashmap_state \
  's/result = cua__hashmap_state_write_locked/cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);&/'
planted 'a change that gives the lock back too early' hashmap_state \
  '/result = cua__hashmap_state_change_locked/s/result =/cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);&/'
planted 'an erase that gives the lock back too early' hashmap_state \
  's/result = cua__hashmap_state_erase_locked/cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);&/'
planted 'a claimed slot that says at once it holds a key' hashmap_state \
  's/state | CUA__HASHMAP_STATE_BUSY, CUA_ACQUIRE/state | CUA__HASHMAP_STATE_USED, CUA_ACQUIRE/'
planted 'keys and values stored without release' hashmap_state \
  '/_state_store(char/,/^}/s/CUA_RELEASE/CUA_RELAXED/'
planted 'values loaded without acquire' hashmap_state \
  '/v = cua__hashmap_state_load($/,/;/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'an erase that does not count' hashmap_state \
  's/&counts->erased, 1/\&counts->erased, 0/'
planted 'halves of two keys accepted as a third key' hashmap_state \
  's/ || cua__hashmap_state_glance(slot) == \*state)/ || 1)/'
planted 'halves of two keys written to as a third' hashmap_state \
  's/if (ks < 16 || !(locked || equal)/if (ks < 16 || !equal/'
planted 'halves of two keys that end a find' hashmap_state \
  '/_state_lookup(/,/^}/{/if (vs < 16)/{n;s/break/return 0/}}'
planted 'a find that does not retry after a changed value' hashmap_state \
  '/_state_lookup(/,/^}/s/if (vs < 16)/if (1)/'
planted 'a find that does not wait for a value' hashmap_state \
  '/int wait =$/{n;s/vs == 16/vs == 99/;}'
planted 'a find that takes a changing value for an absent key' hashmap_state \
  '/_state_match(/,/^}/s/if (!(\*state & CUA__HASHMAP_STATE_KEY))/if ((*state \& 3u) != CUA__HASHMAP_STATE_USED)/'
planted 'a glance that takes a changing value for an absent key' hashmap_state \
  '/_state_match(/,/^}/s/if (!(seen & CUA__HASHMAP_STATE_KEY))/if ((seen \& 3u) != CUA__HASHMAP_STATE_USED)/'
planted 'a change that does not say so' hashmap_state \
  's/next | CUA__HASHMAP_STATE_CHANGING/next | CUA__HASHMAP_STATE_USED/'
planted 'a change that does not advance the version' hashmap_state \
  's/next = cua__hashmap_state_next(state)/next = state - CUA__HASHMAP_STATE_USED/'
planted 'a change that does not compare the value' hashmap_state \
  's/if (!cua__hashmap_same(old, spot->value))/if (0)/'
planted 'a change of a key that is no longer there' hashmap_state \
  's/return -1;/state = cua__hashmap_state_glance(spot->at);/'
planted 'a pair of which the key is of another one' hashmap_state \
  '/_state_at(/,/^}/s/if (cua__hashmap_state_glance(slot) == state)/if (1)/'
planted 'a pair with a value that is changing' hashmap_state \
  '/_state_at(/,/^}/s/== CUA__HASHMAP_STATE_CHANGING)/== 99)/'
planted 'a claim that ignores an equal key stored by another lane' hashmap_word \
  '/cua__hashmap_word_claim(char/,/^}/s/if (cua__hashmap_word_has(.*/if (0)/' hashmap
planted 'a claim that goes past the key' hashmap_word \
  '/cua__hashmap_word_claim(char/,/^}/s/if (cua__hashmap_word_cas(spot->at, wide, empty, word, order, &spot->word))/if (i > first ? (cua_port_store_b64(spot->at, word.lo, order, CUA__HASHMAP_AT), 1) : cua__hashmap_word_cas(spot->at, wide, empty, word, order, \&spot->word))/' hashmap
planted 'an insert under the lock that searches only the home' hashmap_word \
  's/far = cua__hashmap_word_far(wide, in->head, key.hash);/far = 0;/' hashmap
planted 'a class that is not raised' hashmap_word \
  's/if ((\*classes >> shift & most) < far)/if (0)/' hashmap
planted 'a head whose farthest distance is not raised' hashmap_word \
  's/if (distance > cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255))/if (0)/' hashmap
planted 'a home that is unlocked too early' hashmap_word \
  's/result = cua__hashmap_word_place(/cua__hashmap_word_unlock(bucket, wide, in->head); &/' hashmap
planted 'a lock of a home that two lanes have' hashmap_word \
  '/int cua__hashmap_word_trylock/,/^}/s/return !(lo & CUA__HASHMAP_LOCKED) &&/return/' hashmap
planted 'an erased slot that is empty again' hashmap_word \
  '/int cua__hashmap_word_take/,/^}/s/erased = cua__hashmap_word_erased(ks, vs);/erased = {0, 0};/' hashmap
planted 'an erase that does not compare the key of the slot' hashmap_word \
  '/int cua__hashmap_word_take/,/^}/s/if (!cua__hashmap_word_has(.*/if (0) {/' hashmap
planted 'an erase that keeps its count when another one was faster' hashmap_word \
  's/~(uint64_t)0, CUA_RELAXED, CUA__HASHMAP_AT/0, CUA_RELAXED, CUA__HASHMAP_AT/' hashmap
planted 'an erase that does not count' hashmap_word \
  's/cua_port_add_u64(counted, 1,/cua_port_add_u64(counted, 0,/' hashmap
planted 'a find that ends at the home' hashmap_word \
  's/return cua__hashmap_word_look_far(view, kind, key, equal, order, room.head, spot);/return 0;/' hashmap
planted 'pairs put without release' hashmap_word \
  's/^	if (fenced)$/	if (0)/' hashmap
planted 'pairs found without acquire' hashmap_word \
  's/^\(.*\)cua_port_acquire_b32(spot->at.*/\1(void)0;/' hashmap
planted 'pairs found without acquire by a warp' hashmap_word \
  's/^\(.*\)(void)cua__hashmap_word_load(spot->at, wide, CUA_ACQUIRE);/\1(void)0;/' hashmap
planted 'a warp that reads together without some of its lanes' hashmap_bucket \
  's/if (mask == all) {/if (mask \& (mask - 1)) {/' hashmap
planted 'a lane that counts for itself alone, not for those that count with it' hashmap_bucket \
  's/cua_port_popc_u32(mask), order,/1, order,/' hashmap
planted 'inserts into two maps that are counted in one' hashmap_bucket \
  's/if (cua_port_ballot(mask, cua_port_shuffle_u64(.*) == mask) {/if (array) {/' hashmap
planted 'a key that is counted before its head is stored' hashmap_word \
  '/void cua__hashmap_word_raise_home(/,/^}/s/head->lo | CUA__HASHMAP_LOCKED, CUA_RELAXED/lo | CUA__HASHMAP_LOCKED, CUA_RELAXED/' hashmap
planted 'an unlock that does not count' hashmap_word \
  's/inserted, \*added, CUA_RELAXED,/inserted, 0, CUA_RELAXED,/' hashmap
planted 'an unlock without a fence' hashmap_word \
  '/void cua__hashmap_word_unlock_counted(/,/^}/s/cua_port_fence(.*);//' hashmap
planted 'a hit in a load of another lane that is acquired by a fence' hashmap_word \
  's/by_others = cua__bucket_read_together/(void)cua__bucket_read_together/' hashmap
planted 'a slot that another home has claimed meanwhile' hashmap_word \
  '/int cua__hashmap_word_put(/,/^}/s/if (cua__hashmap_word_cas(.*was)) {/if (cua__hashmap_word_cas(spot->at, wide, expected, word, order, \&was) || 1) {/' hashmap
planted 'classes that are older than the lock' hashmap_word \
  's/in->head.hi = room.head.hi;/(void)0;/' hashmap
planted 'a value changed that was another one by then' hashmap_word \
  '/int cua__hashmap_word_change/,/^}/s/if (!cua__hashmap_word_has(ks, vs, seen, key, NULL))/if (0)/' linear
planted 'a value read again after a wait that is another key'"'"'s' hashmap_word \
  '/_word_change_together(/,/^}/s/cua__hashmap_word_has(ks, vs, word, key, NULL)/!cua__hashmap_word_empty(word) \&\& !cua__hashmap_same(word, cua__hashmap_word_erased(ks, vs))/' linear
planted 'an empty slot of a reserved key taken for the key, after a wait' hashmap_word \
  '/_word_change_together(/,/^}/s/cua__hashmap_word_has(.*NULL)/(& || cua__hashmap_word_empty(word))/' linear
planted 'an execute that does not release or acquire' hashmap_execute \
  's/^		cua_port_fence(.*/		(void)0;/' hashmap
planted 'an execute whose lanes do not meet after their fences' hashmap_execute \
  '/^		cua_port_fence(/{n;s/.*//;}' hashmap
planted 'an execute that counts inserts, and unlocks, without a fence' hashmap_execute \
  's/^			cua_port_fence(.*/			(void)0;/' hashmap
planted 'an execute that keeps the count of an absent key' hashmap_execute \
  's/if (counted && e.state != CUA_HASHMAP_EXISTS)/if (0)/' hashmap
planted 'an execute that does not count its erases' hashmap_execute \
  's/counted = operation == CUA_HASHMAP_ERASE.*/counted = 0;/' hashmap
planted 'an execute that counts one of its inserts' hashmap_execute \
  's/n = cua_port_popc_u32(adders);/n = 1;/' hashmap
planted 'an execute in two maps that is counted in one' hashmap_execute \
  's/same = map == .*/same = 1 || map || first;/' hashmap
planted 'an execute that does not unlock' hashmap_execute \
  's/if (e.locked)/if (0)/' hashmap
planted 'an execute that claims beside an equal key' hashmap_execute \
  's/} else if (e->state != CUA__EXECUTE_PUT &&/} else if (0 \&\&/' hashmap
planted 'an execute that claims past the end of the home' hashmap_execute \
  's/end = (uintptr_t).*/end = 0;/' hashmap
planted 'an execute under the lock that searches only the home' hashmap_execute \
  's/e->far = cua__hashmap_word_far(wide, e->head, key.hash);/e->far = 0;/' hashmap
planted 'an execute that does not raise the head' hashmap_execute \
  's/if (e->state == CUA__EXECUTE_PUT)$/if (0)/' hashmap
planted 'an execute with classes that are older than the lock' hashmap_execute \
  's/e->head.hi = room->head.hi;/(void)0;/' hashmap
planted 'an execute that seeks at the farthest distance alone' hashmap_execute \
  's/if (--e->distance == 0)/if (1)/' hashmap
planted 'an execute that acquires nothing behind the home' hashmap_execute \
  's/CUA_ACQUIRE, 0, &spot/CUA_RELAXED, 0, \&spot/' hashmap
planted 'an execute that takes a reserved key for an ordinary one' hashmap_execute \
  's/^		    !cua__hashmap_reserved_slot(.*/		    1)/' hashmap
planted 'an execute that is full before it has scanned all slots' hashmap_execute \
  's/else if (++e->distance == (uint32_t)cua__hashmap_most(view))/else/' hashmap
planted 'an execute that gives up' hashmap_execute \
  's/^	} while (e.state == CUA__EXECUTE_RETRY);/	} while (0);/' hashmap
planted 'an execute that erases what another lane has stored' hashmap_execute \
  's/e->spot.word = seen;/(void)0;/' hashmap
planted 'a quad that finds a key before the class of its home is raised' hashmap_quad \
  's/if (here.there > 0 && free && distance > far)/if (0)/' hashmap
planted 'an octet that finds a key before the class of its home is raised' hashmap_quad \
  's/\/ 4 <= far$/\/ 4 < ~far/' hashmap
planted 'a class at its largest number, and an outdated farthest distance' hashmap_word \
  's/if (wide && cua__hashmap_class_far(/if (0 \&\& cua__hashmap_class_far(/' hashmap
planted 'a quad that takes the head for a slot' hashmap_quad \
  's/wide ? w\[2 \* slot + 2\] : w\[slot + 1\]/wide ? w[2 * slot] : w[slot]/' hashmap
planted 'an octet that takes the head for a slot' hashmap_quad \
  's/first_free = looks && part &&/first_free = looks \&\&/' hashmap
planted 'a quad that loses the slots of its last lane' hashmap_bucket \
  's/for (j = 1; j < 4; j++)/for (j = 1; j < 3; j++)/' hashmap
planted 'lanes of a quad that take each other'"'"'s buckets' hashmap_bucket \
  's/for (bit = 1; bit < 4; bit \*= 2)/for (bit = 1; bit < 2; bit *= 2)/' hashmap
planted 'a quad that inserts without release' hashmap_quad \
  '/cua__quad_write(/,/^}/s/cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);/(void)0;/' hashmap
planted 'a quad that acquires nothing' hashmap_quad \
  '/cua__quad_look_at(/,/^}/s/if (seen->there > 0)$/if (0)/' hashmap
planted 'a quad that acquires nothing behind the home' hashmap_quad \
  '/cua__quad_walk(/,/^}/s/^			if (order != CUA_RELAXED)$/if (0)/' hashmap
planted 'a quad that looks one bucket behind the home' hashmap_quad \
  's/pending = --distance > 0;/pending = 0;/' hashmap
planted 'a find that leaves out the nearest' hashmap_word 's/for (; distance; distance--)/for (; distance > 1; distance--)/' hashmap
planted 'a quad that leaves out the nearest' hashmap_quad 's/pending = --distance > 0;/pending = --distance > 1;/' hashmap
planted 'a quad that walks past what it found' hashmap_quad \
  's/if (here.there > 0) {$/if (here.there > 0 \&\& distance == 0) {/' hashmap
planted 'a second try without the lock' hashmap_quad \
  's/if (head.lo & CUA__HASHMAP_LOCKED)$/if (!lanes.active)/' hashmap
planted 'a second try that does not raise the class' hashmap_quad \
  '/int cua__quad_enter_full/,/^}/s/head = cua__hashmap_word_raise(/(void)cua__hashmap_word_raise(/' hashmap
planted 'a second try that keeps the lock' hashmap_quad \
  '/int cua__quad_enter_full/,/^}/s/cua__hashmap_word_unlock(home, wide, head);/(void)head;/' hashmap
planted 'a second try that does not search all buckets' hashmap_quad \
  's/(distance < far || seen->slot == CUA__QUAD_NONE)/seen->slot == CUA__QUAD_NONE/; s/if (!pending && !here.there && distance < far)/if (0)/' hashmap
planted 'an octet without the lock' hashmap_quad \
  's/owns = !(head.lo & CUA__HASHMAP_LOCKED);/owns = lanes.active;/' hashmap
planted 'an octet that does not raise the class' hashmap_quad \
  '/int cua__octet_enter_full/,/^}/s/head = cua__hashmap_word_raise(/(void)cua__hashmap_word_raise(/' hashmap
planted 'an octet that keeps the lock' hashmap_quad \
  '/int cua__octet_enter_full/,/^}/s/cua__hashmap_word_unlock(at_home, wide, head);/(void)head;/' hashmap
planted 'an octet that does not search all buckets' hashmap_quad \
  's/pending = far >= distance || owner == CUA__QUAD_NONE;/pending = owner == CUA__QUAD_NONE;/' hashmap
planted 'an octet of which all lanes put the key' hashmap_quad \
  's/mine = lane == owner;/mine = part \&\& first_free;/' hashmap
planted 'a quad that erases and does not count' hashmap_quad \
  's/cua_port_popc_u32(there), CUA_RELAXED/0, CUA_RELAXED/' hashmap
planted 'a quad whose counts are left out' hashmap_quad \
  's/cua__quad_counts(view)->inserted, \*added/cua__quad_counts(view)->inserted, 0/' hashmap
planted 'an insert that does not link to the head' multimap \
  's/cua__multimap_set_link(view, vs, last, spot.value.lo);/(void)0;/'
planted 'a head swapped without order' hashmap \
  's/spot, desired, CUA_ACQ_REL/spot, desired, CUA_RELAXED/' multimap
planted 'an erase whose entries serve others at once' multimap \
  's/if (ticket < reusable)/if ((cursor = cua__multimap_pop_spare(view, vs)))return cursor;&/
   s/set_link(view, vs, cursor, next | CUA__MULTIMAP_MARK)/push_spare(view, vs, cursor)/'
planted 'a walk that takes the mark for a link' multimap \
  's/vs, cursor) & ~CUA__MULTIMAP_MARK;/vs, cursor);/'
planted 'an erase that does not count' multimap \
  's/&view->pool->dropped, n, /\&view->pool->dropped, 0, /'
planted 'a full map that keeps the entry' multimap \
  '/^CUA_FORCE int cua__multimap_insert_at/,/^}/s/cua__multimap_push_spare(.*);/(void)0;/'
planted 'an entry given back without order' multimap \
  's/| cursor, CUA_RELEASE/| cursor, CUA_RELAXED/'
planted 'spares without a count of pops' multimap \
  's/((before \& ~low) + low + 1) | next/(before \& ~low) | next/'
planted 'entries of a warp joined before they are complete' multimap \
  '/^CUA_FORCE int cua__multimap_insert_warp/,/^}/s/^	cua_port_sync_warp(mask);/	(void)0;/'
planted 'a warp whose lanes do not push unpublished entries to the spares' multimap \
  's/if (!cursor)$/if (!cursor || ticket >= view->capacity)/'
planted 'sums of warps that are read too early' multimap_kernel \
  '/^CUA_FORCE uint64_t cua__multimap_block_scan/,/^}/{/CUA_WRITE(warps/{n;s/cua_port_sync_block();/(void)0;/;}}' multimap
planted 'sums of warps that the next scan overwrites' multimap_kernel \
  '/for the next call/{n;s/cua_port_sync_block();/(void)0;/;}' multimap
planted 'tiles that all begin at the offset of their range' multimap_kernel \
  '/^CUA_FORCE void cua__multimap_values_kernel/,/^}/s/carry += total;/(void)total;/' multimap
planted 'a warp that lists its free entries at one offset' multimap_kernel \
  's/ +$/ + 0 */' multimap
planted 'a head stored without release' chained \
  's/cua_port_store_b64(head, first, CUA_RELEASE/cua_port_store_b64(head, first, CUA_RELAXED/'
planted 'a head loaded without acquire' chained \
  's/^\([[:space:]]*\)CUA_ACQUIRE, CUA_SCOPE_DEVICE/\1CUA_RELAXED, CUA_SCOPE_DEVICE/'
planted 'a push without release' chained \
  's/before, first, CUA_RELEASE/before, first, CUA_RELAXED/'
planted 'a push that does not ask whether its swap failed' chained \
  '/cua__chained_swap(const/,/^}/s/CUA_SPACE_GLOBAL) == before)$/CUA_SPACE_GLOBAL) == before || 1)/'
planted 'a push that is tried again with its old link' chained \
  '/cua__chained_swap(const/,/^}/s/CUA_WRITE(/if (backoff.ns == 32) &/'
planted 'lanes of a warp that do not converge before a lane pushes for all' chained \
  '/before the release by its last lane/,/swap(/s/cua_port_sync_warp(mask)/(void)0/'
planted 'a lane that returns before its pair is there' chained \
  '/finds its own pair/,/return/s/cua_port_sync_warp(mask)/(void)0/'
planted 'lanes of a warp in the chain of another bucket' chained \
  's/ & cua_port_match_any_u64(mask, bucket);/;/'
planted 'an entry of a warp that links to a lane without an entry' chained \
  's/group = cua_port_ballot(mask, stored) &/group = votes \&/'
planted 'counters of a tile that are used before all are zero' shard_kernel \
  '/^CUA_FORCE void cua__shard_place/,/^}/{/cua__shard_clear(s, sh);/{n;d;};}' shard
planted 'room of a tile that is claimed before all lanes have counted' shard_kernel \
  '/cua_port_sync_block();/{N;s/.*\n\(.*cua__shard_claim(s, sh);\)/\1/;}' shard
planted 'pairs that are placed before the room of their tile is claimed' shard_kernel \
  '/cua__shard_claim(s, sh);/{n;d;}' shard
planted 'a tile that claims the room of one pair' shard_kernel \
  's/cua_port_fetch_add_u32(&s->cursors\[r\], count,/cua_port_fetch_add_u32(\&s->cursors[r], 1,/' shard
planted 'counts of a block that are stored and not added' shard_kernel \
  's/cua_port_fetch_add_u32(&s->counts\[r\], count, CUA__SHARD_ON_DEVICE)/cua_port_store_b32(\&s->counts[r], count, CUA__SHARD_ON_DEVICE)/' shard
planted 'many ranks whose pairs claim no place of their own' shard_kernel \
  's/at = cua_port_fetch_add_u32(&s->cursors\[to\], 1,/at = cua_port_load_b32(\&s->cursors[to],/' shard
planted 'an owner that depends on half of a wide key' owner \
  's/cua_hash_u128(key, seed)/cua_hash_u64(key.lo, seed)/' shard
planted 'an owner that depends on half of a key of 8 bytes' owner \
  's/cua_hash_u64(key.lo, seed)/cua_hash_u64((uint32_t)key.lo, seed)/' shard
planted 'keys that are counted before the counters are zero' shard_find \
  '/^CUA_FORCE void cua__bins_count/,/^}/{/CUA_WRITE(count\[b\], 0u);/{n;d;};}' shard_find
planted 'counts of a block that are added before all lanes have counted' shard_find \
  '/CUA__SHARD_OFFSET)b);/,/^}/{s/^\tcua_port_sync_block();//;}' shard_find
planted 'a count that leaves out keys of a thread' shard_find \
  's/cua_port_grid_size() \* step/cua_port_grid_size() * step * 2/' shard_find
planted 'answers of a tile that are left out' shard_find \
  's/i += loads \* CUA__BINS_THREADS/i += 2 * loads * CUA__BINS_THREADS/' shard_find
planted 'an order of answers that leaves out some' shard_find \
  's/i += CUA__BINS_LOADS \* CUA__BINS_THREADS/i += 2 * CUA__BINS_LOADS * CUA__BINS_THREADS/' shard_find
planted 'bins that begin where the last one ends' shard_find \
  's|at += (CUA_READ(f->counts\[b\]) + 31) / 32 \* 32;|at += CUA_READ(f->counts[b]);|' shard_find
planted 'threads whose bins all begin at the first place' shard_find \
  's/before += w < warp ? CUA_READ(of_warp\[w\]) : 0;//' shard_find
planted 'keys of a tile that are numbered before the counters are zero' shard_find \
  '/CUA_WRITE(sh->count\[i\], 0u);/{n;d;}' shard_find
planted 'runs that are claimed before all keys have numbers' shard_find \
  '/CUA__SHARD_IN_BLOCK);/{n;s/cua_port_sync_block();//;}' shard_find
planted 'a sorted tile that is sent before it is whole' shard_find \
  '/CUA_WRITE(f->bases/,/CUA__UNROLL/s/cua_port_sync_block();/(void)0;/' shard_find
planted 'a run that begins where another does' warp_scan \
  's/CUA_WRITE(base\[first + k \* threads\], place\[k\] - position\[k\]);/CUA_WRITE(base[first + k * threads], place[k]);/' shard_find
planted 'units of a region for its first source alone' shard_find \
  's/most = n > most ? n : most;/most = s ? most : n;/' shard_find
planted 'a unit that goes past the keys of its source' shard_find \
  's/u.n = i >= n ? 0 : n - i < CUA__HASHMAP_UNIT ? n - i : CUA__HASHMAP_UNIT;/u.n = CUA__HASHMAP_UNIT;/' shard_find
planted 'a unit of the region after its own' shard_find \
  's/if (CUA_READ(p->units\[middle\]) <= unit)/if (CUA_READ(p->units[middle]) <= unit + 1)/' shard_find
planted 'answers that are taken before their bins are known' shard_find \
  '/CUA_WRITE(bin_of\[s\], (CUA__SHARD_OFFSET)i);/,/the bound is equal/s/cua_port_sync_block();/(void)0;/' shard_find
planted 'answers to a tile that are written before all are there' shard_find \
  '/cua__shard_set(values, s, value\[j\], vs);/,/CUA__UNROLL/s/cua_port_sync_block();/(void)0;/' shard_find
planted 'an answer that is that of the next key' shard_find \
  's/>> at % 32 & 1;/>> (at + 1) % 32 \& 1;/' shard_find
planted 'an answer that overwrites the value of an absent key of a find' shard_find \
  's/if (vs && there)$/if (vs)/' shard_find
planted 'an answer that overwrites the value of an absent key' shard_kernel \
  's/if (value_size && result)/if (value_size)/' shard
planted 'a chain of a block that is inserted before it is whole' chained_kernel \
  '/orders all entries of the block/,/for (/s/cua_port_sync_block()/(void)0/' chained
planted 'entries of a warp that are stored before all lanes have theirs there' chained_kernel \
  '/stage\[3 \* lane + 2\]/,/UNROLL/s/cua_port_sync_warp(CUA__ALL_LANES)/(void)0/' chained
planted 'entries of a warp that are written over before they are stored' chained_kernel \
  '/all lanes have read the stage/,/CUA_WRITE/s/cua_port_sync_warp(CUA__ALL_LANES)/(void)0/' chained
planted 'a build by lanes of a warp that all link to the former head' chained_kernel \
  's/above ? base + first + .*/before;/' chained
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
  '/_cas(/,/^}/s/CUA_ACQUIRE/CUA_RELAXED/'
planted 'a spinlock without release' spinlock \
  's/&l->word, 0, CUA_RELEASE/\&l->word, 0, CUA_RELAXED/'
planted 'a spinlock given back for the block alone' spinlock \
  's/&l->word, 0, CUA_RELEASE, scope/\&l->word, 0, CUA_RELEASE, CUA_SCOPE_BLOCK/'
planted 'a spinlock given back before the section' spinlock \
  '/_section_try(/,/^}/s/return cua__spinlock_cas(s->l, s->scope);/return cua__spinlock_cas(s->l, s->scope) \&\& (cua_spinlock_unlock_scope(s->l, s->scope), 1);/'
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
  's/!= arrived/!= arrived \&\& 0/'
planted 'a try to write that does not look at the readers again' rwlock \
  '/if (cua_port_cas_b32(&l->readers_in, in,/{N;s/if (.*/if (cua_port_fetch_xor_b32(\&l->readers_in, CUA__RWLOCK_WRITER, CUA_RELAXED, CUA__RWLOCK_AT) != ~0u)/;}'
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
planted 'a read without its second load of the sequence' seqlock \
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
  '/void cua__await_leader_warp/,/^}/s/cua_port_sync_warp(mask);/(void)0;/'
planted 'a block that is in before its lock is taken' lock_forms \
  '/void cua__await_leader_block/,/^}/s/cua_port_sync_block();/(void)0;/'
planted 'a warp that does not meet first' lock_forms \
  '/int cua__converge_warp/,/^}/s/cua_port_sync_warp(mask);/(void)0;/'
planted 'a block that does not meet first' lock_forms \
  '/int cua__converge_block/,/^}/s/cua_port_sync_block();/(void)0;/'
planted 'a block that takes its lock before all have come' spinlock \
  '/void cua_spinlock_lock_block_scope/,/^}/s/cua__converge_block()/cua_port_thread() == 0/' lock_forms
planted 'a vote that orders nothing' lock_forms \
  '/int cua__any_warp/,/^}/s/cua_port_sync_warp(mask);/(void)0;/'
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
  's/(cua_stripes_at((stripes), (p)), scope)/(\&(stripes)->locks[(cua_stripes_index((stripes), (p)) + 1) % (stripes)->n].lock, scope)/'
planted 'a section that stays locked after a return' section \
  's/__attribute__((cleanup(cua__##kind##_section_leave)))//'
planted 'a section that is unlocked at its end and once more' spinlock \
  '/void cua__spinlock_section_leave(/,/^}/s/if (s->state == 1)/if (s->state)/' section
planted 'turns that a return ends for its lane alone' combine \
  '/void cua__turns_section_leave(/,/^}/s/while (t->left)/while (0)/' section
planted 'rows of a histogram that are published without release' reduce \
  's/(&f->arrived, 1, CUA_ACQ_REL,/(\&f->arrived, 1, CUA_ACQUIRE,/' histogram
planted 'a private histogram that is stored too early' histogram_kernel \
  '/^CUA_FORCE void cua__histogram_run(/,/store_private/s/cua_port_sync_block()/(void)0/' histogram
planted 'private histograms that are merged before the block has acquired them' histogram_finish \
  '/cua__finish_arrive(j/,/is_last = /s/cua_port_sync_block()/(void)0/' histogram
planted 'the flag of the last block, overwritten before all threads have read it' histogram_finish \
  '/is_last = CUA_READ/,/return/s/cua_port_sync_block()/(void)0/' histogram
planted 'a sum of a histogram that is not zero again' histogram_finish \
  's/CUA_WRITE(j->sums\[i\], 0)/(void)0/' histogram
planted 'a packed counter that keeps the carry of the counter below it' histogram_counters \
  's/^\t\tshould = 0;/\t\tshould = 1;/' histogram
planted 'a packed counter that loses its overflow' histogram_counters \
  's/if (is != should \&\& field < own->counters)/if (is != should \&\& field != counter)/' histogram
planted 'a hot set that is dropped for the next hot set' histogram_counters \
  '/old + CUA__HISTOGRAM_HOT_LANES ||/,/own->hot = sample/s/cua__histogram_hot_flush(j, own)/own->hot_n = 0/' histogram
planted 'a pack of two values whose second value gets all counts' histogram_counters \
  's/own->lane ? n \* 32 - firsts : firsts/own->lane ? n * 32 : firsts/' histogram
planted 'a pack of more than two values that is counted as two' histogram_counters \
  's/differs |= counter\[k\] != first \&\& counter\[k\] != last/differs |= 0/' histogram
planted 'a slot of a cache that two counters claim' histogram_cache \
  's/tag = tag ? tag : counter + 1;/tag = counter + 1;/' histogram
planted 'a number of a cache that is lost when its slot is freed' histogram_cache \
  's/cua__histogram_add(&j->h, 0, tag - 1, n)/(void)0/' histogram
planted 'a cache that is freed while other lanes still add' histogram_cache \
  's/cua_port_sync_block_or(own->misses > most)/own->period != 0/' histogram
planted 'a cache in which lanes count before it is free' histogram_cache \
  '/cua__histogram_cache_flush(j, own);/,/period/s/cua_port_sync_block()/(void)0/' histogram
planted 'elements of a lane that are lost behind its first uncached element' histogram_cache \
  's/others \&= others - 1;/others = 0;/' histogram
planted 'ranges that are counted although a cache has counted them' histogram_kernel \
  's/if (j->cached \&\& layout == CUA__COUNT_BYTES \&\& /if (0 \&\& /' histogram
planted 'private histograms that are merged although a cache has counted' histogram_finish \
  's/if (j->cached \&\& CUA_READ(\*j->cached))/if (0)/' histogram
planted 'a cell whose edge is not compared' histogram_edges \
  's/const int has_edge = .*/const int has_edge = 0;/' histogram
planted 'a weight without its carry' histogram_any \
  's/ + (old + (uint32_t)n < old);/;/' histogram
planted 'a narrow window without its upper limit' exact_kernel \
  's/return t->greatest >> 16 < end && (t->greatest & 0xffff) < end &&/return/' exact
planted 'a narrow window whose lower limit is that of odd elements' exact_kernel \
  's/ && (least & 0xffff) >= begin - 1;/;/' exact
planted 'a narrow window without its rests' exact_kernel \
  's/(uint64_t)(int64_t)(rests \* unit)/0/' exact
planted 'a narrow window that takes infinities for numbers' exact_kernel \
  's/return rests == rests;/return 1;/' exact
planted 'a narrow window of which a single element counts once' exact_kernel \
  's/narrow ? 2 : 1/1/' exact
planted 'partial results of segments that are published without release' reduce \
  's/(&f->arrived, 1, CUA_ACQ_REL,/(\&f->arrived, 1, CUA_ACQUIRE,/' segment
planted 'a tile of a path that is read before it is there' segment_kernel \
  '/m = (uint32_t)(p->last - j);/,/this thread/s/cua_port_sync_block()/(void)0/' segment
planted 'a scan of segments that frees its scratch too early' segment_kernel \
  '/total->ended = ended;/,/^}/s/cua_port_sync_block()/(void)0/' segment
planted 'a segment without what other tiles have of it' segment_kernel \
  's/before.v = cua__segment_combine(op, type, from->carry, before.v)/(void)0/' segment
planted 'a segment without what the part before has of it' segment_kernel \
  's/before.v = tail;/before.v = 0;/' segment
planted 'a strip that two warps sum' segment_tree \
  's/return t ^$/return t |/' segment
planted 'a strip of the segment after' segment_tree.tmpl \
  's/if (length > strip)/if (0)/' segment
planted 'an entry that is loaded for the step after the next' segment_tree.tmpl \
  's/f->entry\[(t + warps) \/ CUA__TREE_WARPS\]/f->entry[(t + warps + CUA__TREE_WARPS) \/ CUA__TREE_WARPS % (strips \/ CUA__TREE_WARPS)]/' segment
planted 'chunks of a lane that are combined with their neighbours' segment_tree.tmpl \
  's/c < n ? K(cua__fixed_of_entry)(f, e + c)/c < n ? K(cua__fixed_of_entry)(f, e)/' segment
planted 'a warp that combines the chunks of another segment' segment_tree.tmpl \
  's/(f, e - lane + from, n, lane)/(f, e, n, lane)/' segment
planted 'values of a block that are overwritten before they are combined' segment_tree.tmpl \
  '/the warps. values are read/,/}/s/cua_port_sync_block();/(void)0;/' segment
planted 'lanes of long segments that are read too early' segment_tree.tmpl \
  '/of_block\[thread \/ 32\], of_warp/,/for (/s/cua_port_sync_block();/(void)0;/' segment
planted 'a strip without what is moved out of its last row' segment_tree.tmpl \
  's/if (shift && full - (int32_t)shift < length)/if (0)/' segment
planted 'columns of a strip that are not moved to their lanes' segment_tree.tmpl \
  's/a\[j\] = moved\[j\];/(void)moved[j];/' segment
planted 'few rows without what is moved out of the last one' segment_tree.tmpl \
  's/c\[0\]\[j\], last.v\[j\], last.v\[j\], 0)/c[0][j], v[0][0].v[j], v[0][0].v[j], 0)/' segment
planted 'few rows whose last lane takes columns of the wrong pack' segment_tree.tmpl \
  's/of ? a\[p\]\[j\] : a\[(p + 1) % PACKS\]\[j\]/a[p][j]/' segment
planted 'a strip with what is before and after it' segment_tree.tmpl \
  's/if (at < 0 || at + WIDTH > length)/if (0)/' segment
planted 'a segment on the list of which one chunk is another one' segment_tree \
  's/CUA_WRITE(e->first, x + c \* chunk)/CUA_WRITE(e->first, x + c \/ 2 * chunk)/' segment
planted 'a segment that finds no room on the list and is not stored' segment_tree \
  's/return fits;/return 1;/' segment
planted 'runs that are summed before their offset is known' filter_kernel \
  's/while (word < CUA__FILTER_OFFSET) {/if (0) {/' segment
planted 'runs without the barrier of their tile' segment_runs.tmpl \
  '/cua__copies_wait(0);/,/if (more) {/s/cua_port_sync_block()/(void)0/' segment
planted 'keys that are read before all lanes have copied theirs' segment_runs.tmpl \
  '/the keys have arrived/,/cua__runs_count/s/cua_port_sync_warp(CUA__ALL_LANES)/(void)0/' segment
planted 'keys that are overwritten before all lanes have staged theirs' segment_runs.tmpl \
  '/the warp has read its keys/,/tile < b.tiles/s/cua_port_sync_warp(CUA__ALL_LANES)/(void)0/' segment
planted 'values over those of the tile that is summed' segment_runs.tmpl \
  's/(k, s, \&b, next.tile, turn)/(k, s, \&b, next.tile, turn ^ 1)/' segment
planted 'starts of three tiles in two stages' segment_runs \
  's/#define CUA__RUNS_STAGES .*/#define CUA__RUNS_STAGES CUA__RUNS_LAG/' segment
planted 'the next tile in the word of the tile' segment_runs.tmpl \
  's/turn ^= 1;/(void)turn;/' segment
planted 'a last run of a tile that is not pending' segment_runs.tmpl \
  's/is_pending = is_last || n > TINY/is_pending = n > TINY/' segment
planted 'a pending run without the end that the next tile has' segment_runs.tmpl \
  's/i == 0 || run == f->capacity ||/run == f->capacity || i > 0 \&\&/' segment
planted 'a pending run whose next run has no offset' segment_runs.tmpl \
  's/local - CUA_READ(locals\[i - 1\]) > TINY))/0))/' segment
planted 'the end of the last run within the capacity' segment_runs.tmpl \
  's/run == f->capacity ||/0 ||/' segment
planted 'values that are summed from their first pack on' segment_runs.tmpl \
  's/^\t\tb->value_shift;/\t\t0;/' segment
planted 'a list that is not empty' segment_runs.tmpl \
  's/CUA_WRITE(state->entries, (uint64_t)0);/;/' segment
planted 'runs that wait for tiles that nobody has' segment_runs.tmpl \
  's/} else if (idle > CUA__FILTER_PATIENCE .*{/} else if (0) {/' segment
planted 'a run that begins again with each warp of its tile' segment_runs \
  's/before = cua__filter_load_before(k, x);/;/' segment
planted 'a first key that begins no summed run' segment_runs \
  's/if (at <= b->shift \&\& b->shift - at < all)/if (0)/' segment
planted 'runs after the end of the keys' segment_runs \
  's/if (end < at + all)/if (0)/' segment
planted 'keys of many starts that have no room' segment_runs \
  's/starts <= cua__runs_few(k))/1)/' segment
planted 'a count of starts without those of lower warps' segment_runs \
  's/before += w + c < warp ? v.word\[c\] : 0;/;/' segment
planted 'tiles of two runs whose values are not read' segment_runs.tmpl \
  's/next.starts > 1/next.starts > 2/' segment
planted 'pending segments of a single word' segment_tree.tmpl \
  '/own = base + lane < words/,/from =/s/some \&= some - 1/some = 0/' segment
planted 'a run that begins again with each warp' filter_kernel \
  's/t->before = cua__filter_load_before(k, x);/;/' filter
planted 'a run that begins again with each load' filter_kernel \
  's/lowest = other;/lowest = last;/' filter
planted 'a first key that begins no run where the array begins a pack' filter_kernel \
  's/t->start = at == 0 \&\& !shift;/t->start = 0;/' filter
planted 'a first key that begins no run inside a pack' filter_kernel \
  's/t->start = (uint32_t)1 << (j \* per + c);/;/' filter
planted 'the end of the last run, at the end of the output' filter_kernel \
  's/if (kept <= f->capacity)$/if (kept < f->capacity)/' filter
planted 'the end of the last run that has room' filter_kernel \
  's/f->capacity + (k.key == CUA__FILTER_CHANGE)/f->capacity/' filter
planted 'a stage that is pushed to before all have seen how full it is' append \
  '/no thread pushes before all threads have read/,/^	}/s/cua_port_sync_block()/(void)0/'
planted 'an item that is stored where the stage has no room' append \
  's/if (at < (room)) {/if (1) {/'
planted 'a filter in place whose counts are published without release' filter_kernel \
  's/cua__filter_publish(f, f->in_place, tile, CUA__FILTER_COUNT/cua__filter_publish(f, 0, tile, CUA__FILTER_COUNT/' filter
planted 'a count of the filter that is published before all have counted' filter_kernel \
  '/CUA_WRITE(b.sh->next, next);/,/before = cua__filter_add_warps/s/cua_port_sync_block()/(void)0/' filter
planted 'a filter in place whose counts are read without acquire' filter_kernel \
  's/? cua__filter_load_word(f, f->in_place, tile + j/? cua__filter_load_word(f, 0, tile + j/' filter
planted 'a filter in place whose offsets are published without release' filter_kernel \
  '/reached \&\& j/,/OFFSET/s/f->in_place, tile/0, tile/' filter
planted 'a filter in place whose offsets are read without acquire' filter_kernel \
  's/cua__filter_await_offset(f, f->in_place,/cua__filter_await_offset(f, 0,/' filter
planted 'a scan of the filter that takes words that no block published' filter_kernel \
  's/run = !goes_on ? 0 : .*;/run = !goes_on ? 0 : 32;/' filter
planted 'a scan of the filter that reads sums too early' filter_kernel \
  '/sh->scan_published\[turn\]\[warp\], published/,/the gap is in/s/cua_port_sync_block()/(void)0/' filter
planted 'a scan of the filter that has room for one step' filter_kernel \
  's/turn ^= 1;/(void)turn;/' filter
planted 'a scan of the filter that goes on behind a gap' filter_kernel \
  's/goes_on = goes_on \&\& of_warp == full;/(void)of_warp;/' filter
planted 'a scan of the filter that waits for tiles that nobody has' filter_kernel \
  's/} else if (idle > CUA__FILTER_PATIENCE .*{/} else if (0) {/' filter
planted 'an offset of the filter that is written over' filter_kernel \
  '/all threads have read the previous offset/,/}/s/cua_port_sync_block()/(void)0/' filter
planted 'a stage of the filter that is stored before its offset is known' filter_kernel \
  '/cua__filter_await_offset(f, f->in_place/,/if (due)/s/cua_port_sync_block()/(void)0/' filter
planted 'tiles of the filter in one stage' filter_kernel \
  's/to = to + 1 == k.stages ? 0 : to + 1/(void)0/; s/from = to < n_staged ? .*;/from = to;/' filter
planted 'a short filter in place whose counts are published without release' filter_kernel \
  's/cua__filter_publish(f, synchronize, s.tile/cua__filter_publish(f, 0, s.tile/' filter
planted 'a short filter in place whose counts are read without acquire' filter_kernel \
  's/cua__filter_lower(f, synchronize,/cua__filter_lower(f, 0,/' filter
planted 'a short filter that takes counts of a call before' filter_kernel \
  's/while (word\[j\] >> 16 != call)/while (word[j] == 0)/' filter
planted 'a short filter that looks for the end of the buffer too late' filter_kernel \
  's/offset = base + lower;/offset = cua__filter_base(f) + lower;/' filter
planted 'a stage of the filter that is stored before it is full' filter_kernel \
  '/CUA_WRITE(sh->next, ticket);/,/if (is_staged)/s/cua_port_sync_block()/(void)0/' filter
planted 'a stage of the filter that is filled before it is stored' filter_kernel \
  '/CUA_WRITE(sh->kept\[thread \/ 32\], r.own);/,/no thread reads the stage/s/cua_port_sync_block()/(void)0/' filter
planted 'counts of a partition that are published without release' filter_kernel \
  's/&f->control->arrived, 1, CUA_ACQ_REL,/\&f->control->arrived, 1, CUA_ACQUIRE,/' filter
planted 'counts of a partition that are read without acquire' filter_kernel \
  's/&f->control->arrived, 1, CUA_ACQ_REL,/\&f->control->arrived, 1, CUA_RELEASE,/' filter
planted 'a range of a partition that is summed before all have counted' filter_kernel \
  '/(CUA__FILTER_LOCAL)kept);/,/i += k.warps/s/cua_port_sync_block()/(void)0/' filter
planted 'a range of a partition without the tiles of other warps' filter_kernel \
  '/CUA_WRITE(sh->kept\[i\], upto);/,/if (warp == 0)/s/cua_port_sync_block()/(void)0/' filter
planted 'offsets of a partition that use sums too early' filter_kernel \
  '/CUA_WRITE(sh->sums\[turn\]\[warp\], kept);/,/kept = 0;/s/cua_port_sync_block()/(void)0/' filter
planted 'offsets of a partition that have room for the sums of one step' filter_kernel \
  '/total += all;/,/^}/s/turn ^= 1;/(void)turn;/' filter
planted 'a tile of a partition with the offset of a lower tile' filter_kernel \
  's/tile \* (k.loads \/ CUA__FILTER_COUNT_LOADS)/tile/' filter
planted 'a partition whose rejected elements overlap' filter_kernel \
  's/f->n - rest - (s.elements - s.kept)/f->n - rest - s.kept/' filter
planted 'a record that two lanes write' lock_debug \
  's/CUA__DEBUG_AT) != seen)$/CUA__DEBUG_AT) != seen \&\& 0)/'
planted 'a verdict that is ready before it is written' lock_debug \
  's/&v->ready, 1, CUA_RELEASE/\&v->ready, 1, CUA_RELAXED/'
planted 'two reports of one wait' lock_debug \
  's/^\tw->limit = 0;$//'
planted 'lanes in turn that do not see those below' atomic_warp \
  's/old = next_of(old, next);/(void)next;/' serial
planted 'lanes in turn whose swap is not asked whether it failed' atomic_warp \
  '/CUA__DEFINE_SERIAL_WARP(/,/^	}/s/space, &seen);/space, \&seen) \&\& 0;/' serial
planted 'a fetch of a block that frees its scratch too early' atomic_warp \
  '/the slots are free again/,/return w.lane/s/cua_port_sync_block()/(void)0/' serial
planted 'a fetch of a block without the totals of the warps' atomic_warp \
  's/old = group##_combine(old, total);/(void)total;/' serial
planted 'partial results of chunks handed on without order' reduce \
  's/&f->arrived, 1, CUA_ACQ_REL/\&f->arrived, 1, CUA_RELAXED/' tree
planted 'a last block that does not wait for its first thread' tree_block.tmpl \
  '/CUA_WRITE(s->last,/,/CUA_READ(s->last)/s/cua_port_sync_block();/(void)0;/' tree
planted 'chunks that share the memory for the values of warps' tree_block.tmpl \
  's/turn ^= 1;/turn ^= 0;/' tree
planted 'values of warps that are read too early' tree_block.tmpl \
  '/K(cua__tree_packs)(A v/,/return v;/s/cua_port_sync_block();/(void)0;/' tree
planted 'a block that arrives before its last partial result' tree_block.tmpl \
  '/if (thread == 0)/{N;s/(thread == 0)\(.*s->last\)/(thread == 33)\1/;}' tree
planted 'chunks that other threads combine' tree_block.tmpl \
  's/chunk = thread; chunk/chunk = (thread + 1) % CUA__TREE_THREADS; chunk/' tree
planted 'lanes that take in their neighbours first' tree_block.tmpl \
  's/(lane + half) % 32/(lane + (half > 4 ? 24 - half : half)) % 32/' tree
planted 'rows that are skipped although a lane improves' tree_block.tmpl \
  's/n) > known) != 0/n) > known) == CUA__ALL_LANES/' tree
planted 'a greatest key that no lane has' tree_block.tmpl \
  's/known = other > known ? other : known;/known = ~(uint64_t)0;/' tree
planted 'a greatest key of no pack but the first' tree_block.tmpl \
  's/i < n \* N; i++) {/i < N; i++) {/' tree
planted 'a part whose indexes count from its own first element' tree_block.tmpl \
  's/r->first + first + pack + j/first + pack + j/' tree
planted 'chunks of a part that are combined to a result' tree_block.tmpl \
  's/if (r->step == CUA__TREE_CHUNKS)/if (0)/' tree
planted 'a root that reduces elements again' tree_block.tmpl \
  's/r->step != CUA__TREE_ROOT \&\& chunk/chunk/' tree
planted 'a part that stores a result in place of its value' tree_block.tmpl \
  's/thread == 0 \&\& r->step == CUA__TREE_VALUE/0/' tree
planted 'a root of as many values as the array has chunks' tree 's/s.chunks = r->values;/;/'
planted 'a rounding that drops the last exact sum' exact_kernel \
  's/p < r->partials; p++)/p + 1 < r->partials || !p; p++)/' exact
planted 'a row without its last element' tree_block.tmpl \
  's/int more = pack + j < left;/int more = pack + j + 1 < left;/' tree
planted 'a map of which max_probes bounds nothing' hashmap_common \
  's/^\treturn view->max_probes \&\& /\treturn 0 \&\& /' hashmap
planted 'a map with max_probes that is full before it is' hashmap_word \
  '/_word_crowded(/,/^}/{/&room) ||$/{N;s/&room) ||.*/\&room) > 0)/;}}' hashmap
planted 'a key that is stored during the scan of its slots, with max_probes' hashmap_word \
  '/_word_crowded(/,/^}/{/if (cua__hashmap_word_search(/{N;N;s/if (\(.*&room)\) ||/room.unused = slots; if (\1 < 0 ||/;}}' hashmap
planted 'slots with max_probes that are full before they are' hashmap_state \
  's/^\t\tif ((seen & CUA__HASHMAP_STATE_PHASE) == CUA__HASHMAP_STATE_FREE ||$/\t\tif (/'
planted 'a wide loop that does not try again' atomic \
  's/while (seen != before);/while (0);/' wide
planted 'a build that keeps equal keys' hashmap_regions 's/	if (equal)$/	if (0)/'
planted 'deferred words of a build, whose distance the head of the home lacks' hashmap_regions \
  's/head = cua__hashmap_word_raise(wide, head, hash, distance);/;/'
planted 'a build that leaves slots as they were' hashmap_regions 's/if (i >= n)$/if (0)/'
planted 'a stage that is stored before it is written' hashmap_regions \
  's/crowded = cua_port_sync_block_or(crowded);/crowded = cua_port_ballot(CUA__ALL_LANES, crowded) != 0;/'
planted 'words that are staged before their offsets are known' hashmap_regions \
  '/before += n\[j\];/,/CUA__UNROLL/s/cua_port_sync_block();/(void)0;/'
planted 'a tile that claims more than the room of its regions' hashmap_regions \
  's/crowded |= claimed\[j % 2\] + n\[j\] > a->room;/;/'
planted 'a second scatter of the words of another rank' hashmap_regions \
  's/from = a->from_of\[region % a->from_ranks\];/from = a->from_of[0];/'
planted 'a second scatter of the words of another region' hashmap_regions \
  's/start = region \/ a->from_ranks \* a->from_room;/start = 0;/'
planted 'an insert of the words of another rank' hashmap_regions \
  's/words = (const char \*)a->from_of\[region % a->from_ranks\] +/words = (const char *)a->from_of[0] +/'
planted 'an insert of the words of another region' hashmap_regions \
  's/(region \/ a->from_ranks \* a->from_room + first)/(first)/'
planted 'a reserved key that two lanes set aside' hashmap_regions \
  's/!cua_port_fetch_add_u32(taken, 1, CUA_RELAXED, CUA__HASHMAP_AT))/cua_port_fetch_add_u32(taken, 1, CUA_RELAXED, CUA__HASHMAP_AT) < 2)/'
planted 'a reserved key with a value that no rank set aside' hashmap_regions \
  's/value.lo = CUA_READ(late->values\[which\]);/;/'
planted 'a reserved key that only one owner inserts' hashmap_regions \
  's/owner(key, k.ks, a->owner_seed, a->owners) != a->rank)/owner(key, k.ks, a->owner_seed, a->owners) != 0)/'
planted 'a build with the words of a rank in other regions' hashmap_regions \
  's/first_region = a->first_region + (uint64_t)(region \/ a->from_ranks) \*/first_region = a->first_region + (uint64_t)(region \/ a->from_ranks ^ 1) */'
planted 'a slice of a build in the place of the first slice' hashmap_regions \
  's/first_region = a->first_region + /first_region = /'
planted 'overflowing words of a build that do not search their home' hashmap_regions \
  's/if (cua__regions_has(k, table, home, CUA_READ(number\[home\]), w))/if (0)/'
planted 'equal keys of a build that are inserted concurrently' hashmap_regions \
  '/if (cua_port_fetch_or_b32(&overflow\[home\]/{N;s/if (.*bit)/if (0)/;}'
planted 'slots of a build that are claimed while other threads search the home' hashmap_regions \
  '/deferred |= (uint32_t)1 << turn;/,/this bound and the next/s/cua_port_sync_block();/(void)0;/'
planted 'overflowing words of a build, whose distance the head of the home lacks' hashmap_regions \
  's/searching = put && distance;/searching = 0;/'
planted 'a wide head of a build with distances in the low half only' hashmap_regions 's/half < (wide ? 2u : 1u)/half < 1/'
planted 'deferred words of a build that are lost' hashmap_regions \
  's/while (cua_port_sync_block_or(deferred != 0))/while (cua_port_sync_block_or(0))/'
planted 'a list of deferred words that is emptied while other threads read it' hashmap_regions \
  '/result = cua__regions_insert_deferred(/,/CUA_WRITE(sh->deferred, 0)/s/cua_port_sync_block();/(void)0;/'
planted 'a bucket of a build that is locked without acquire' hashmap_regions \
  's/CUA__REGIONS_BUSY, CUA_ACQUIRE,$/CUA__REGIONS_BUSY, CUA_RELAXED,/'
planted 'a bucket of a build that deferred words use without its lock' hashmap_regions \
  's/if (full || cua__regions_lock(number, at, n))/if (1)/'
planted 'a full bucket of a build that is read without acquire' hashmap_regions \
  's/cua_port_load_b32(&number\[at\], CUA_ACQUIRE/cua_port_load_b32(\&number[at], CUA_RELAXED/'
planted 'a bucket of a build that is unlocked without release' hashmap_regions \
  's/(&number\[bucket\], n, CUA_RELEASE, CUA__REGIONS_BLOCK)/(\&number[bucket], n, CUA_RELAXED, CUA__REGIONS_BLOCK)/'
planted 'a deferred word that is spilled by lanes without a word' hashmap_regions \
  '/result = cua__regions_insert_deferred(/,/cua__regions_spill/s/has && !result/!result/'
planted 'deferred words of an insert that are lost' hashmap_regions \
  's/for (j = thread; j - lane < n || n_deferred; j += k.threads)/for (j = thread; j - lane < n; j += k.threads)/'
planted 'deferred words of an insert that overwrite the words of other warps' hashmap_regions \
  's/(char \*)list + thread \/ 32 \* 64/(char *)list + 0 * 64/'
planted 'a list of spilled words that was too short' hashmap_regions \
  's/const int listed = spilled <= a->spill_room;/const int listed = 1;/'
planted 'a sum of 64 bits without its carry' hashmap_sums 's/ + low < low;/ \& 0;/' hashmap_combine
planted 'an entry of sums that two keys claim' hashmap_sums \
  's/\*claimed = there == none;/*claimed = 1;/' hashmap_combine
planted 'sums in which the greatest key is a free entry' hashmap_sums 's/if (key == none)/if (0)/' hashmap_combine
planted 'sums that are written out without the greatest key' hashmap_combine \
  's/ + (thread \/ 32 == k.threads \/ 32 - 1);/;/'
planted 'a table of sums that is used while other threads free it' hashmap_combine \
  '/_combine_region(/,/^}/{/cua__combine_flush(/{n;s/cua_port_sync_block();/;/;}}'
planted 'a word that is lost if its table is full' hashmap_combine 's/next = word;/at += k.threads;/'
planted 'repeats that stay beside their sum' hashmap_regions \
  '/_combine_repeats(/,/^}/s/\*there &= .*;/;/' hashmap_combine
planted 'a sum of repeats that is read before it is complete' hashmap_regions \
  '/_combine_repeats(/,/^}/{/\*there &=/,/CUA__UNROLL/s/cua_port_sync_block();/(void)0;/;}' hashmap_combine
planted 'updates of which repeats are dropped' hashmap_regions \
  '/cua_port_sync_block_or(!filtered/{n;n;s/if (k.updates)/if (0)/;}' hashmap_combine
planted 'regions of updates that overlap' hashmap_combine 's/CUA_WRITE(a->ends\[i\], start)/CUA_WRITE(a->ends[i], 0)/'
planted 'combined words that are lost at the end' hashmap_combine \
  's/while (piece \* 32 < n || n_deferred)/while (piece * 32 < n)/'
planted 'an update of a key that another lane has just stored' hashmap_combine \
  '/if (seen.there <= 0)/{n;s/return 0;/return result;/;}'
planted 'an update twice of a key that is not at home' hashmap_combine \
  's/ && !(result == CUA_HASHMAP_EXISTS && spot.at);/;/;s/result != CUA_HASHMAP_INSERTED &&$/result != CUA_HASHMAP_INSERTED;/'
planted 'an update by a lane alone that is left out' hashmap_combine 's/^\tif (left)$/\tif (0)/'
planted 'combined updates that do not count their inserts' hashmap_combine \
  '/_combine_update(/,/^}/s/cua__quad_count(/(void)(/'
planted 'a guess that sees no equal keys' hashmap_combine 's/return there == key.lo;/return 0;/'
planted 'a sample whose lanes part ways' hashmap_combine 's/cua_port_ballot(CUA__ALL_LANES, full)/full/'
planted 'a sample that nobody asks' hashmap_combine 's/cua__combine_sample_is_direct(a, total, sampled, room)/0/'
planted 'a guess that nobody asks' hashmap_combine 's/cua__combine_guess_is_direct(a, room) ||/0 \&\&/'
planted 'combined words that go to another owner' hashmap_combine 's/region \/ a->per_owner/region % a->owners/'
planted 'pairs that are counted in the region of another owner' hashmap_combine \
  's/cua__regions_before_owner(k, a, key\[j\])/0/'
planted 'combined words after the room of a list' hashmap_combine 's/ && (!k.sends || to < a->room)//'
planted 'an owner that is told of a list without room' hashmap_combine 's/none ? 0 : n)/n)/'
planted 'a rank that forgets that it sent nothing' hashmap_combine 's/if (r == 0 \&\& none)/if (0)/'
planted 'direct updates that count as sent' hashmap_combine 's/CUA_READ(\*a->direct) || n > a->room/n > a->room/'
planted 'combined pairs of which the values are missing' hashmap_combine '/cua__hashmap_set(values, /d'
planted 'combined pairs of direct updates' hashmap_combine \
  '/_combine_split(/,/^}/s/CUA_READ(\*a->direct) ? ~(uint64_t)0 : n)/n)/'
planted 'a region that is forgotten after repeats' hashmap_regions 's/again ? rank\[j\] >> 16 : 0/again ? 0 : 0/' \
  hashmap_combine
planted 'a sort that counts pairs of a digit before all have read' hashmap_kernel \
  '/all have read/{n;d;}' hashmap_ops
planted 'a rank that forgets the lanes before' hashmap_kernel \
  's/ranks\[r\] += before/ranks[r] += 0/' hashmap_ops
planted 'a tile that begins where the one before began' hashmap_kernel \
  's/CUA_READ(shared->next\[d\]) + behind/CUA_READ(shared->next[d])/' hashmap_ops
planted 'a rank that forgets the warps before' hashmap_kernel \
  's/behind += CUA_READ(shared->counts/behind = CUA_READ(shared->counts/' hashmap_ops
planted 'sorted pairs left in the other array' hashmap_kernel \
  's/if (!cua__sort_from(s, s->key_size))/if (cua__sort_from(s, s->key_size))/' hashmap_ops
planted 'a sort that looks at half of a key' hashmap_kernel \
  's/differ.hi |= key.hi ^ first.hi/differ.hi |= 0/' hashmap_ops
planted 'a slice that does not wait for its offset' hashmap_kernel \
  '/CUA_WRITE(shared->base/{n;n;n;d;}' hashmap_ops
planted 'least keys that are counted whatever they begin like' hashmap_kernel \
  's/cua__hashmap_same_prefix(key, begin, a->pass)/1/' hashmap_ops
planted 'least keys that are chosen before all counts are there' hashmap_kernel \
  '/CUA_WRITE(a->least->counts/{n;n;d;}' hashmap_ops
planted 'least keys counted with the digits of another pass' hashmap_kernel \
  '/CUA_WRITE(a->least->counts/d' hashmap_ops
planted 'least keys without the last of them' hashmap_kernel \
  's/!(s->last && cua__hashmap_below(\*s->last, key))/!(s->last \&\& !cua__hashmap_below(key, *s->last))/' hashmap_ops
planted 'least keys of which more are given than there is room for' hashmap_kernel \
  's/if (there && (!s->last || .*))/if (there)/' hashmap_ops
planted 'least keys that are searched to the last digit although an earlier digit decided' hashmap_kernel \
  's/ || a->least->done//' hashmap_ops
planted 'a digit of the least keys that is taken for the last that matters' hashmap_kernel \
  '/a->pass, d, below,$/{n;s/CUA_READ(shared\[d\]))/rank - below + 1)/;}' hashmap_ops
planted 'least keys that are given once more' hashmap_kernel \
  's/s->last && \*s->all <= s->max/0/' hashmap_ops
planted 'a tally without its worst bucket' hashmap_kernel \
  's/if (worst)$/if (0)/' hashmap_ops
planted 'a carry of a scatter that is lost' scatter_cells 's/ + (old + v_low < old);/;/' scatter
planted 'an overflow of a scatter that nobody sees' scatter_cells \
  '/^CUA_FORCE int cua__scatter_add64(/,/^}/s/return up >> 31 ? -1 : 1;/return 0;/' scatter
planted 'a digit of a scatter whose limit is worth twice as much' scatter_values \
  's/move >> 32/move >> 31/' scatter
planted 'a cell of a scatter that is clean although an element did not fit' scatter_cells \
  '/cua__scatter_make_dirty(struct/,/^}/s/1u << target % 32/0/' scatter
planted 'an element of a list of a scatter that is lost' scatter_kernel 's/if (first == k)/if (0)/' scatter
planted 'an element for a full list of a scatter that is lost' scatter_cells \
  's/cua__scatter_make_dirty(sh, target, at >= CUA__SCATTER_ODD);/if (at < CUA__SCATTER_ODD) cua__scatter_make_dirty(sh, target, 0); else cua_port_store_b32(\&sh->again, 1, CUA__SCATTER_IN_BLOCK);/' \
  scatter
planted 'an infinity in a list of a scatter that is lost' scatter_results 's/flags |= p.flags;/;/' scatter
planted 'digits of shared cells that are rounded before they are there' scatter_kernel \
  '/^CUA_FORCE void cua__scatter_put_shared(/,/^}/{/CUA_WRITE(digit\[i + k/{n;n;s/cua_port_sync_block();/;/;};}' scatter
planted 'cells of a scatter that are stored before all elements are there' scatter_kernel \
  '/cua__scatter_traverse(j, &c, &t,/{n;s/cua_port_sync_block();/;/;}' scatter
planted 'dirty cells of a scatter that are numbered while others clear them' scatter_kernel \
  '/CUA_WRITE(c->sh->dirty, 0u);/{n;s/cua_port_sync_block();/;/;}' scatter
planted 'shared cells of a scatter that are read without acquire' scatter_kernel \
  's/CUA_ACQ_REL, CUA_SCOPE_DEVICE,/CUA_RELEASE, CUA_SCOPE_DEVICE,/' scatter
planted 'a block of a scatter that arrives before all of its cells' scatter_kernel \
  '/cua__scatter_share_cell(/{n;s/cua_port_sync_block();/;/;}' scatter
planted 'arrivals of a scatter that the next pass counts again' scatter_kernel \
  's/CUA_WRITE(j->state->arrived\[t->share\], 0u);/;/' scatter
planted 'shared cells of a scatter with the sums of the pass before' scatter_partition \
  's/^	cua__scatter_clear_shared(j, &p);/	;/' scatter
planted 'a pass of a scatter with fewer shared cells than it needs' scatter_partition \
  's/if (cua__scatter_scan(sh->sum) <= CUA__SCATTER_SHARED_MAX)/if (1)/' scatter
planted 'records of a scatter for which a flush claims no room' warp_scan \
  's/CUA_READ(count\[r + 1\]) - position\[k\]/0/' scatter
planted 'a stage of a scatter that is filled before it is empty' scatter_partition \
  '/^CUA_FORCE void cua__scatter_flush(/,/^}/{/CUA_WRITE(\*sh->staged, 0u);/{n;s/cua_port_sync_block();/;/;};}' scatter
planted 'a stage of a scatter that is filled before all know that it is not full' scatter_partition \
  '/^CUA_FORCE void cua__scatter_partition(/,/^}/{/^		else$/{n;s/cua_port_sync_block();/;/;};}' scatter
planted 'records of a scatter whose order is read too early' scatter_partition \
  '/CUA_WRITE(sh->order\[position/{n;n;n;s/cua_port_sync_block();/;/;}' scatter
planted 'an element of another sub-range that is added' scatter_traverse \
  's/bits\[k\] = is ? bits\[k\] : 0;/;/' scatter
planted 'an element that no row has and is added' scatter_traverse \
  's/bits\[k\] = mine >> k & 1 ? bits\[k\] : 0;/;/' scatter
planted 'a slot of a cache that two targets take' scatter_global \
  '/tag = cua_port_cas_b32(/{N;s/.*/cua_port_store_b32(\&cache->tag[slot], (uint32_t)target, CUA__SCATTER_IN_BLOCK);/;}' \
  scatter
planted 'planes that are stored although an element does not fit' scatter_global \
  's/if (CUA_READ(j->state->misfit))$/if (0)/' scatter
planted 'an element that does not fit the planes and is lost' scatter_global \
  's/cua_port_store_b32(&j->state->misfit, 1, CUA__SCATTER_ON_DEVICE);/;/' scatter
planted 'a slot of a table of rows that two keys claim' group_by_kernel \
  's/named = cua__number_claim(\(d->table.*\));/cua__number_set(\1);/' group_by
planted 'a slot that does not have the first row of its key' group_by_kernel \
  's/cua__number_min(d->table, at, row, wide);/;/' group_by
planted 'a claim that failed and is believed' group_by_kernel \
  '/named = cua__number_claim(/{n;s/if (named == CUA__GROUP_NONE)/if (1)/;}' group_by
planted 'a row that passes the slot of its key' group_by_kernel \
  's/if (other.lo != key.lo || other.hi != key.hi)/if (named > row || other.lo != key.lo || other.hi != key.hi)/' \
  group_by
planted 'a counter of a sort that is changed before all have read it' group_by_kernel \
  '/all lanes have read the counters/{n;s/cua_port_sync_warp(CUA__ALL_LANES);/;/;}' group_by
planted 'a counter of a sort that is read before it is changed' group_by_kernel \
  '/CUA_WRITE(counter\[digit\], at + cua_port_popc_u32(same));/{n;n;s/cua_port_sync_warp(CUA__ALL_LANES);/;/;}' group_by
planted 'a sort that is not stable' group_by_kernel \
  's/cua_port_popc_u32(cua__warp_below(same))/cua_port_popc_u32(same \& ~((2u << lane) - 1))/' group_by
planted 'groups of a sort that belong to no part' group_by_kernel \
  's/each \* part + (part < more ? part : more)/each * part/' group_by
planted 'a count of digits beyond the end of a part' group_by_kernel \
  's/^	const int inside = i < end;/	const int inside = 1;/' group_by
planted 'a sum of counts without the chunks before' group_by_kernel \
  '/^CUA_FORCE void cua__group_sort_sum(/,/^}/s/before += /before = /' group_by
planted 'a last row that a lower row replaces' group_by_kernel \
  's/cua_port_max_u32((uint32_t \*)j->rows + g, (uint32_t)row + 1, CUA__GROUP_AT)/cua_port_store_b32((uint32_t *)j->rows + g, (uint32_t)row + 1, CUA__GROUP_AT)/' \
  group_by
planted 'a null value that is a first row' group_by_kernel \
  's/if (g >= j->targets || !cua__group_is_valid(j, row))/if (g >= j->targets)/' group_by
planted 'an overflow of a cell downwards that carries upwards' exact_cell \
  '/^CUA_FORCE int cua__exact_cell_plus(/,/^}/s/return v < 0 ? -1 : 1;/return 1;/'
planted 'an overflow of a cell downwards without a carry' exact_cell \
  '/^CUA_FORCE int cua__exact_cell_plus(/,/^}/s/((before ^ after)/v < 0 || &/'
planted 'a carry of a cell that enters the wrong word' exact_cell \
  's/cua__exact_cell_plus(word + w, by < 0/cua__exact_cell_plus(word + words - 1, by < 0/'
planted 'a carry of a cell that enters the flags' exact_cell \
  's/(w == words - 1 ? CUA__EXACT_CELL_FLAG_BITS : 0)/0/'
planted 'a carry of a cell by a load and a store' exact_cell \
  '/^CUA__RARE int cua__exact_cell_carry(/,/^}/s/by = cua__exact_cell_plus(.*/{ uint64_t old = \
    cua_port_load_b64(word + w, CUA_RELAXED, scope, space); \
    cua_port_store_b64(word + w, old + (uint64_t)(by < 0 ? -v : v), CUA_RELAXED, scope, space); by = 0; }/'
planted 'a carry of a cell that is not atomic' exact_cell \
  '/^CUA__RARE int cua__exact_cell_carry(/,/^}/s/by = cua__exact_cell_plus(.*/CUA_WRITE(word[w], \
    word[w] + (uint64_t)(by < 0 ? -v : v)); by = 0;/'
planted 'a carry of a cell that stops at the next word' exact_cell \
  '/^CUA__RARE int cua__exact_cell_carry(/,/^}/s/if (!by)/if (1)/'
planted 'a carry of an upper part from the word below' exact_cell \
  '/^CUA_FORCE int cua__exact_cell_add_f64(/,/^}/s/term.w + 1, by, scope/term.w, by, scope/'
planted 'a spill without the flag of its cell' exact_cell \
  's/item ? CUA_EXACT_SPILLED : CUA_EXACT_LOST/item ? 0 : CUA_EXACT_LOST/'
planted 'a lost element without the flag of its cell' exact_cell \
  's/item ? CUA_EXACT_SPILLED : CUA_EXACT_LOST/item ? CUA_EXACT_SPILLED : 0/'
planted 'a spill that reserves no room' exact_cell 's/cua_append_reserve(spills, 1)/cua_append_reserve(spills, 0)/'
planted 'flags of a cell by a load and a store' exact_cell \
  's/cua_port_or_b64(last, /cua_port_store_b64(last, cua_port_load_b64(last, CUA_RELAXED, scope, space) | /'
planted 'a lower half of a cell without its carry' exact_cell 's/ + (old + low < old);/;/'
planted 'an upper half of a cell with an unsigned overflow' exact_cell \
  's/if (!(((was ^ (was + up)) & (up ^ (was + up))) >> 31))/if (was + up >= was)/'
planted 'an overflow of an upper half in the wrong direction' exact_cell \
  's/return up >> 31 ? -1 : 1;/return up >> 31 ? 1 : -1;/'
planted 'lanes of a cell that all get the old value of their leader' atomic_warp \
  's/return below ? group##_combine(old, before) : old;  /return old;/' exact_cell
planted 'lanes without a term in the mask of an addition' exact_cell \
  's/^	mask = cua_port_ballot(mask, term.v != 0);/	(void)cua_port_ballot(mask, term.v != 0);/'
planted 'spills of a private cell with its own number' exact_cell 's/own.first += first;/;/'
planted 'a merge that drops the flags of a private cell' exact_cell 's/if (v & flags)/if (0)/'
planted 'a merge that adds the flags of a private cell' exact_cell 's/(int64_t)(v & ~flags),/(int64_t)v,/'
planted 'a finish that keeps the slot number in a cell' exact_cell_kernel \
  's/^	CUA_WRITE(j->c.cell\[i \* j->words\], word\[0\]);/	;/' exact_cell
planted 'spills of a finish that enter the slots of other cells' exact_cell_kernel \
  's/ || CUA_READ(j->slot_cell\[begin + slot\]) != i)/)/' exact_cell
planted 'spills of a finish that enter slots of another round' exact_cell_kernel \
  's/slot = CUA_READ(j->c.cell\[i \* j->words\]) - begin;/slot = CUA_READ(j->c.cell[i * j->words]);/' \
  exact_cell
planted 'digits of a finish with the spills of the round before' exact_cell_kernel \
  '/^CUA_FORCE void cua__cells_round(/,/^}/s/CUA_WRITE(j->digit\[s \* j->digits + d\], 0);/;/' \
  exact_cell
planted 'digits of a finish that are not cleared' exact_cell_kernel \
  '/^CUA_FORCE void cua__cells_claim(/,/^}/s/if (slot < j->round_slots)/if (0)/' exact_cell
planted 'a cell with a lost element that gets a slot' exact_cell_kernel \
  's/if (flags & CUA_EXACT_LOST)/if ((flags \& CUA_EXACT_LOST) > (flags \& CUA_EXACT_SPILLED) * 2)/' exact_cell
planted 'cells of a finish that share a slot' exact_cell_kernel \
  's/cua_port_fetch_add_u64(&j->state->slots, 1,/cua_port_fetch_add_u64(\&j->state->slots, 0,/' \
  exact_cell
planted 'a round of a finish that leaves out its last slot' exact_cell_kernel \
  's/? slots : j->round_slots;/? slots : j->round_slots - 1;/' exact_cell
planted 'a list of a join that lacks its last row' join_kernel \
  's/2 \* slot + 1, i + 1, wide/2 * slot + 1, i, wide/' join
planted 'a list of a join that begins at every row' join_kernel \
  's/if (i == 0 || /if (i == i || /' join
planted 'a sum of pairs that wraps around' join_kernel \
  's/return a + b < a ? UINT64_MAX : a + b;/return a + b;/' join
planted 'an offset that has the pairs of other lanes' join_kernel \
  's/return lane ? below : 0;/return below;/' join
planted 'offsets without the rows before' join_kernel \
  's/before = cua__join_add(before, all);/;/' join
planted 'a scan that adds no lower parts' join_kernel \
  's/before = cua__join_add(before, pairs);/;/' join
planted 'left rows of a join that belong to no part' join_kernel \
  's/each \* part + (part < more ? part : more)/each * part/' join
planted 'a pair that belongs to the row behind' join_kernel \
  's/if (CUA_READ(j->offset\[middle\]) <= p)/if (CUA_READ(j->offset[middle]) <= p + 1)/' join
planted 'pairs beyond the capacity' join_kernel \
  's/return pairs < j->room ? pairs : j->room;/return pairs;/' join
planted 'a pair with a wrong row of its list' join_kernel \
  's/list + (p - first)/list + (behind - 1 - p)/' join
planted 'an entry of a table in shared memory that is claimed by a store' group_by_regions \
  's/seen = cua_port_cas_b32(&t->entry\[k\], 0, wanted, \(.*\));/seen = 0, cua_port_store_b32(\&t->entry[k], wanted, \1);/'
planted 'a group that passes its own entry' group_by_regions 's/if (p.word\[e\] == wanted || !p.word\[e\])/if (!p.word[e])/'
planted 'a group that shares the entry of another group' group_by_regions 's/if (!seen || seen == wanted)/(void)seen;/'
planted 'a lower word of the sum of a group without its carry' scatter_cells 's/ + (old + v_low < old);/;/' group_by_regions
planted 'an overflow of the sum of a group in the wrong direction' scatter_cells 's/up >> 31 ? -1 : 1/up >> 31 ? 1 : -1/' group_by_regions
planted 'a list that has the odd elements of the subset before' group_by_regions 's/CUA_WRITE(t->sh->odd, 0u);/;/'
planted 'a table that stays full' group_by_regions 's/CUA_WRITE(t->sh->full, 0u);/;/'
planted 'groups of a subset behind the places of the subset before' group_by_regions 's/CUA_WRITE(t->sh->placed, 0u);/;/'
planted 'a second half of a subset that is skipped' group_by_regions \
  's/while (depth > least && subset >> (depth - 1))/while (depth > least)/'
planted 'groups that are appended before all rows are added' group_by_regions \
  '/^CUA_FORCE void cua__regions_subset(/,/^}/{
    /^	cua_port_sync_block();/{N;s/.*\n}/}/}
  }'
planted 'a table that is cleared before all its groups are stored' group_by_regions \
  '/^CUA_FORCE void cua__regions_append(/,/^}/{
    /^	cua_port_sync_block();/{N;s/.*\n}/}/}
  }'
planted 'a flag of a full table that is reset before all threads read it' group_by_regions \
  '/cua_port_max_u32(&j->state->depth/{N;N;s/\n[^\n]*sync_block[^\n]*//}'
planted 'a cursor of a region by a load and a store' warp_scan \
  '/place\[k\] = cua_port_fetch_add_u32(/{N;N;s/.*/{ \
    place[k] = cua_port_load_b32(\&cursor[r], CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL); \
    cua_port_store_b32(\&cursor[r], place[k] + CUA_READ(count[r + 1]) - position[k], CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL); }/;}' \
  group_by_regions
planted 'an unfit call that the threads of a block see at different times' group_by_regions \
  '/^CUA_FORCE void cua__regions_accumulate(/,/^}/s/^	t.sh = sh;/	if (cua_port_load_b32(\&j->state->unfit, \
    CUA__REGIONS_ON_DEVICE)) return; t.sh = sh;/'
planted 'a unit that a thread chooses before the greatest element is known' group_by_regions \
  '/^CUA_FORCE void cua__regions_set_unit(/,/^}/{
    /if (!CUA_READ(t->sh->top))/{n;s/.*//}
  }'
planted 'a unit for a sample of zeros' group_by_regions 's/if (!CUA_READ(t->sh->top))/if (0)/'
planted 'a bit of a region that a store sets' group_by_regions \
  's/cua_port_fetch_or_b32(word, bit, CUA__REGIONS_IN_BLOCK)/(cua_port_store_b32(word, bit | cua_port_load_b32(word, CUA__REGIONS_IN_BLOCK), CUA__REGIONS_IN_BLOCK), 0u)/'
planted 'a bit of a region that two threads count' group_by_regions \
  's/cua_port_fetch_or_b32(word, bit, CUA__REGIONS_IN_BLOCK)/(cua_port_or_b32(word, bit, CUA__REGIONS_IN_BLOCK), 0u)/'
planted 'bits of a region that are read before all are set' group_by_regions \
  '/cua__regions_set_marks(j, sh, region);/{n;s/cua_port_sync_block();/;/}'
planted 'bits of a region that stay for the next one' group_by_regions \
  '/^CUA_FORCE void cua__regions_mark(/,/^}/s/CUA_WRITE(((struct cua__pack \*)sh->word)\[i\], zero);/;/'
planted 'the last hash of a region in the next one' group_by_regions 's/ + regions - 1) \/ regions/) \/ regions/'
planted 'keys of bits past the capacity' group_by_regions \
  's/bits = j->capacity - g < bits ? (uint32_t)(j->capacity - g) : bits;/;/'
planted 'a bit of a pack that is taken twice' group_by_regions 's/borrow = borrow && !p->word\[e\];/borrow = 0;/'
planted 'a slot of a table of few groups that is claimed by a store' group_by_few \
  's/seen = cua_port_cas_b32((uint32_t \*)table + at, 0, (uint32_t)hash,/cua_port_store_b32((uint32_t *)table + at, (uint32_t)hash,/'
planted 'a key of few groups that passes its own slot' group_by_few \
  '/^CUA_FORCE uint32_t cua__few_claim(/,/^}/s/if (seen == hash)/if (0)/'
planted 'a row of few groups that takes the slot of another key' group_by_few 's/return in_one ? one : two;/return one;/'
planted 'a hash of 0 that takes an empty slot' group_by_few '/^CUA_FORCE uint32_t cua__few_claim(/,/^}/s/if (!hash)/if (0)/'
planted 'a key that loses its place in the dictionary' group_by_few 's/CUA__FEW_MOVES; move++/1; move++/
  s/return 0;/return 1;/'
planted 'a displaced key that returns to the same slot' group_by_few 's/at = at == one ? two : one;/at = one;/'
planted 'a first row in a block by a store' group_by_few \
  's/cua_port_min_u32(&least\[at\], (uint32_t)row/cua_port_store_b32(\&least[at], (uint32_t)row/'
planted 'a first row of all blocks by a store' group_by_few \
  's/cua_port_min_u32(&j->least\[at\]/cua_port_store_b32(\&j->least[at]/'
planted 'more groups than the tables may have' group_by_few \
  's/CUA__FEW_ON_DEVICE) >=/CUA__FEW_ON_DEVICE) \/ 4 >=/'
planted 'a table of a block that is merged before all its keys are there' group_by_few \
  '/^CUA_FORCE void cua__few_collect(/,/^}/{
    /^	cua_port_sync_block();/{N;/full/s/[^\n]*\n//}
  }'
planted 'a sort of groups without its last step' group_by_few 's/half > 0/half > 1/'
planted 'a sort of groups without barriers' group_by_few \
  '/^CUA_FORCE void cua__few_sort(/,/^}/s/cua_port_sync_block();/;/'
planted 'a dictionary that is cleared while its keys are stored' group_by_few \
  '/CUA_WRITE(sh->homeless, 0u);/{n;s/cua_port_sync_block();/;/}'
planted 'room for few groups in the order of their keys' group_by_few 's/if (j->d.sorted && j->d.room && groups > j->d.room)/if (0)/'
planted 'signed keys in the order of unsigned ones' group_by_few 's/cua__group_ordered(&j->d, \(.*\)).lo;/\1.lo;/'
planted 'a key without a number that nobody misses' group_by_few \
  '/^CUA_FORCE void cua__few_number_rows(/,/^}/s/cua_port_store_b32(&j->state->missed.*;/;/'
planted 'a key without a sum that nobody misses' group_by_few \
  '/^CUA_FORCE void cua__few_add_rows(/,/^}/s/cua_port_store_b32(&j->state->missed.*;/;/'
planted 'results of a call that misses a key' group_by_few 's/ || CUA_READ(j->state->missed)//'
planted 'sums of few groups that are published before all rows are added' group_by_few \
  '/^CUA_FORCE void cua__few_accumulate(/,/^}/{
    /^	cua_port_sync_block();/{N;/i = thread/s/[^\n]*\n//}
  }'
planted 'copies of a sum of few groups that are not published' group_by_few \
  's/(i + cua_port_lane()) & (t->copies - 1)/0/'
planted 'an upper word of a sum of few groups without its sign' group_by_few \
  's/(int32_t)CUA_READ(entry\[1\])/CUA_READ(entry[1])/'
planted 'an overflow of few groups in the wrong direction' group_by_few 's/v >> 31 ? -1 : 1/v >> 31 ? 1 : -1/'
planted 'an element of few groups that does not fit and is added' halves 's/high = fits ? high : 0;/;/' group_by_few
planted 'an element that loses its last bits in its halves' halves 's/w->limit \&\& /w->limit || /' group_by_few
planted 'an element above the window of its halves' halves 's/(bits & 0x7fffffff) < w->limit/1/' group_by_few
planted 'a window of halves whose magic number is too large' halves 's/limit > 252 ? 252/limit > 253 ? 253/' group_by_few
planted 'an overflow of halves that nobody sees' halves 's/return (old ^ sum) & (v ^ sum);/return 0;/' group_by_few
planted 'carries of a lower half that the upper half gets' scatter_results 's/cua__scatter_low_carries(carries))/cua__scatter_high_carries(carries))/' scatter
planted 'halves of a scatter that nobody completes' scatter_cells 's/odd >> 31 && k < n/k < 0/' scatter
planted 'a carry of an upper half in the wrong direction' scatter_cells 's/high >> 31 ? 0 - 0x10000u : 0x10000u/high >> 31 ? 0x10000u : 0 - 0x10000u/' scatter
planted 'a carry of a lower half in the wrong direction' scatter_cells 's/low >> 31 ? 0 - 1u : 1u/low >> 31 ? 1u : 0 - 1u/' scatter
planted 'carries that are moved and stay' scatter_cells 's/cua_port_cas_b32(carries, sum, 0,/cua_port_cas_b32(carries, sum, sum,/' scatter
planted 'a skipped row that is added to halves' scatter_traverse \
  's/bits\[k\] = is ? x->word\[k\] : 0;/bits[k] = x->word[k];/' scatter
planted 'a clean cell of halves whose carries are lost' scatter_results 's/ || CUA_READ(c->word\[number + 2 \* c->cells\])//' scatter
planted 'an infinity in a sum of few groups that is lost' group_by_few \
  '/^CUA_FORCE void cua__few_misfit(/,/^}/s/p.flags,/0 * p.flags,/'
if [ "$part" = edits ]; then
  echo "$number edits"
  # no tried error is an error of this script
  [ "$number" -gt 200 ] && [ ! -s "$tmp/edits.out" ]
  exit
fi
wait
echo "$tried of $number errors"
if [ "$tried" = 0 ] || grep -q '^FAIL' "$tmp"/*.out ||
  [ "$(cat "$tmp"/*.out | grep -c '^found')" != "$tried" ]; then
  exit 1
fi
