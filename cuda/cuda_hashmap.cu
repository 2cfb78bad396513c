/* SPDX-License-Identifier: MIT */
/* The hash map on a GPU. */
#include "config.h"

/* few lanes of a warp call operations by lanes here */
#define CUA__HASHMAP_WARP 0
#include <cuatomic/hashmap_quad.h>

#include "cuda_hashmap_calls.h"
#include "kernels/hashmap_sums.h"

/* blocks of threads with 80 registers that fit a multiprocessor */
#define WRITE_BLOCKS 3u

/* Loops by whole warps: lanes without an element take part until the warp's last element. */
#define EACH_WARP(i, n)                                                                            \
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;                         \
	     i - threadIdx.x % 32 < (n); i += (uint64_t)gridDim.x * blockDim.x)

/* ---- insert, for words ---- */

struct outcome {
	int result;
	struct cua_u128 value;
};

/*
 * An insert by a single lane that waits for locks. It is inlined: around a call, the loops of the
 * kernels would keep their own values in local memory. For the same reason the view stays where it
 * is, without a copy that has constants.
 */
template <uint32_t KS, uint32_t VS, int PLAIN>
static __device__ __forceinline__ struct outcome
enter_alone(const struct cua_hashmap_view *view, struct cua_u128 key, struct cua_u128 value)
{
	const uint64_t hash = hash_of<KS, PLAIN>(view, key);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	struct outcome o;
	uint32_t added = 0;

	o.result = cua__hashmap_word_enter(view, CUA__HASHMAP_KIND(KS, VS),
					   cua__hashmap_key_of(hash, key), NULL, value, CUA_RELAXED,
					   &spot, &added);
	if (o.result == CUA_HASHMAP_FULL)
		cua__hashmap_reject(view, hash, key, value);
	o.value = cua__hashmap_word_value(KS, VS, spot.word);
	return o;
}

/*
 * Deferred elements of each warp: their indices and their pairs as words. They need more than a
 * probe of the home. The warp handles them when there is an element for every lane; otherwise
 * nearly every turn would take the long path for a single lane.
 */
template <uint32_t KS, uint32_t VS> struct deferred {
	static constexpr int WIDE = KS + VS > 8;
	uint64_t elements[THREADS / 32][64];
	uint64_t words[THREADS / 32][64][WIDE ? 2 : 1];
};

/*
 * Defers the elements of lanes with `defers`. *n is the number of deferred elements, equal in all
 * lanes, at most 63.
 */
template <uint32_t KS, uint32_t VS>
static __device__ __forceinline__ void deferred_push(struct deferred<KS, VS> *l, int defers,
						     uint64_t element, struct cua_u128 key,
						     struct cua_u128 value, uint32_t *n)
{
	const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, defers);
	const uint32_t below = ((uint32_t)1 << cua_port_lane()) - 1;

	if (defers) {
		const struct cua_u128 word = cua__hashmap_word_of(KS, VS, key, value);
		const uint32_t at = *n + cua_port_popc_u32(votes & below);

		l->elements[threadIdx.x / 32][at] = element;
		l->words[threadIdx.x / 32][at][0] = word.lo;
		if (l->WIDE)
			l->words[threadIdx.x / 32][at][l->WIDE] = word.hi;
	}
	*n += cua_port_popc_u32(votes);
	cua_port_sync_warp(CUA__ALL_LANES);
}

/* Removes up to 32 deferred elements, one per lane. Returns whether this lane has an element. */
template <uint32_t KS, uint32_t VS>
static __device__ __forceinline__ int deferred_pop(const struct deferred<KS, VS> *l,
						   uint64_t *element, struct cua_u128 *word,
						   uint32_t *n)
{
	const uint32_t most = *n < 32 ? *n : 32;
	const int has = cua_port_lane() < most;

	*n -= most;
	if (has) {
		const uint32_t at = *n + cua_port_lane();

		*element = l->elements[threadIdx.x / 32][at];
		word->lo = l->words[threadIdx.x / 32][at][0];
		word->hi = l->WIDE ? l->words[threadIdx.x / 32][at][l->WIDE] : 0;
	}
	cua_port_sync_warp(CUA__ALL_LANES);
	return has;
}

struct bulk_insert {
	struct cua_hashmap_view view;
	uint64_t n;
	const void *keys, *values;
	void *values_out;
	uint8_t *results;
};

template <uint32_t VS>
static __device__ __forceinline__ void report_insert(const struct bulk_insert *c, uint64_t i,
						     int result, struct cua_u128 brought,
						     struct cua_u128 there)
{
	if (VS && c->values_out && result != CUA_HASHMAP_FULL)
		cua__hashmap_set(c->values_out, VS, i,
				 result == CUA_HASHMAP_EXISTS ? there : brought);
	if (c->results)
		c->results[i] = (uint8_t)result;
}

/*
 * Inserts a warp's deferred elements, whose home is full. Returns `added` plus the number of keys
 * inserted and not counted.
 */
template <uint32_t KS, uint32_t VS, int PLAIN>
static __device__ __noinline__ uint32_t insert_deferred(const struct bulk_insert *c,
							const struct deferred<KS, VS> *l,
							uint32_t *n_deferred, uint32_t added)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua_u128 word = {0, 0}, key, value, there = {0, 0};
	uint64_t i = 0;
	const int active = deferred_pop(l, &i, &word, n_deferred);
	int result = 0, left, tries;

	key = cua__hashmap_word_key(KS, word);
	value = cua__hashmap_word_value(KS, VS, word);
	left = active && !cua__hashmap_reserved_slot(&c->view, KS, VS, key, NULL);
	for (tries = 0; tries < CUA__QUAD_TRIES && cua_port_ballot(CUA__ALL_LANES, left); tries++) {
		const int r = cua__quad_enter_full(
			&c->view, CUA__HASHMAP_KIND(KS, VS),
			cua__quad_lanes_of(CUA__ALL_LANES, left),
			cua__hashmap_key_of(hash_of<KS, PLAIN>(&c->view, key), key), NULL, value,
			&seen);

		if (left && r > 0) {
			result = r;
			there = seen.value;
		}
		left = left && !r;
	}
	added += cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
	if (cua_port_ballot(CUA__ALL_LANES, active && !result))
		cua__quad_count(&c->view, CUA__ALL_LANES, CUA_RELAXED, &added);
	if (active && !result) {
		struct outcome o = enter_alone<KS, VS, PLAIN>(&c->view, key, value);

		result = o.result;
		there = o.value;
	}
	if (active)
		report_insert<VS>(c, i, result, value, there);
	return added;
}

/* At most this many elements left at the end are inserted faster by octets. */
#define FEW 16u

/* Inserts all deferred elements by octets; an idle octet takes the next element. */
template <uint32_t KS, uint32_t VS, int PLAIN>
static __device__ __noinline__ uint32_t insert_few(const struct bulk_insert *c,
						   const struct deferred<KS, VS> *l,
						   uint32_t n_deferred, uint32_t added)
{
	const uint32_t warp = threadIdx.x / 32, part = cua_port_lane() % CUA__OCTET_LANES;
	const uint32_t before = ((uint32_t)1 << (cua_port_lane() - part)) - 1;
	struct cua_u128 word = {0, 0}, there = {0, 0};
	uint32_t taken = 0, at = 0;
	int has = 0;

	for (;;) {
		const uint32_t idle = cua_port_ballot(CUA__ALL_LANES, !has && part == 0);
		struct cua_u128 key, value;
		int result, slotted;

		if (!has) {
			at = taken + cua_port_popc_u32(idle & before);
			has = at < n_deferred;
		}
		taken += taken < n_deferred ? cua_port_popc_u32(idle) : 0;
		if (!cua_port_ballot(CUA__ALL_LANES, has))
			return added;
		if (has) {
			word.lo = l->words[warp][at][0];
			word.hi = l->WIDE ? l->words[warp][at][l->WIDE] : 0;
		}
		key = cua__hashmap_word_key(KS, word);
		value = cua__hashmap_word_value(KS, VS, word);
		slotted = has && !cua__hashmap_reserved_slot(&c->view, KS, VS, key, NULL);
		result = cua__octet_enter_full(
			&c->view, CUA__HASHMAP_KIND(KS, VS),
			cua__quad_lanes_of(CUA__ALL_LANES, slotted),
			cua__hashmap_key_of(hash_of<KS, PLAIN>(&c->view, key), key), value, &there);
		if (has && !slotted)
			result = -1;
		added += cua_port_popc_u32(cua_port_ballot(
			CUA__ALL_LANES, part == 0 && result == CUA_HASHMAP_INSERTED));
		if (cua_port_ballot(CUA__ALL_LANES, result < 0))
			cua__quad_count(&c->view, CUA__ALL_LANES, CUA_RELAXED, &added);
		has = has && !result;
		if (result < 0 && part == 0) {
			struct outcome o = enter_alone<KS, VS, PLAIN>(&c->view, key, value);

			result = o.result;
			there = o.value;
		}
		if (result && part == 0)
			report_insert<VS>(c, l->elements[warp][at], result, value, there);
		cua_port_sync_warp(CUA__ALL_LANES);
	}
}

template <uint32_t KS, uint32_t VS, int PLAIN>
static __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
	insert_kernel(const __grid_constant__ struct bulk_insert c)
{
	__shared__ struct deferred<KS, VS> l;
	uint32_t added = 0, n_deferred = 0;

	if (!cua__hashmap_has_words(KS, VS))
		return;
	cua__after_predecessor();
	EACH_WARP(i, c.n)
	{
		struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
		struct cua_u128 key = {0, 0}, value = {0, 0};
		int result;

		if (i < c.n) {
			key = cua__hashmap_get(c.keys, KS, i);
			value = cua__hashmap_get(c.values, VS, i);
		}
		result = cua__quad_enter_home(
			&c.view, CUA__HASHMAP_KIND(KS, VS),
			cua__quad_lanes_of(CUA__ALL_LANES, i < c.n),
			cua__hashmap_key_of(hash_of<KS, PLAIN>(&c.view, key), key), NULL, value,
			CUA_RELAXED, &seen);
		/* reconverge: lanes that lost their slot to another thread arrive later */
		cua_port_sync_warp(CUA__ALL_LANES);
		if (result)
			report_insert<VS>(&c, i, result, value, seen.value);
		added += cua_port_popc_u32(
			cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
		deferred_push(&l, i < c.n && !result, i, key, value, &n_deferred);
		if (n_deferred >= 32)
			added = insert_deferred<KS, VS, PLAIN>(&c, &l, &n_deferred, added);
	}
	/* a lane of another warp may wait for this count */
	cua__quad_count(&c.view, CUA__ALL_LANES, CUA_RELAXED, &added);
	if (n_deferred > FEW)
		added = insert_deferred<KS, VS, PLAIN>(&c, &l, &n_deferred, added);
	else if (n_deferred)
		added = insert_few<KS, VS, PLAIN>(&c, &l, n_deferred, added);
	cua__quad_count(&c.view, CUA__ALL_LANES, CUA_RELAXED, &added);
}

/* ---- assign and update, and inserts into the layout with slot states ---- */

/* The type in which operands of VS bytes are combined. */
template <uint32_t VS> struct sum_of {
	typedef uint64_t type;
};
template <> struct sum_of<4> {
	typedef uint32_t type;
};

/*
 * A frequent key would be written by all blocks concurrently, and a single address takes few writes
 * per second. So the lanes of a warp with equal keys write once. If a warp has equal keys, or a
 * write met contention, and the key is present, the block lists the key in shared memory. It
 * combines the operands of a listed key there and writes the sum once at the end.
 *
 * Operations on a listed key return EXISTS at once, because the key was present when it was listed.
 * If the key is present at the end, these updates take effect then. If it is absent, they took
 * effect just before its erase: that was during the call, and they changed only a value that is
 * gone. An assign to a listed key took effect just before an assign that was written by the warp
 * that listed the key. An exchange returns the previous value, so no key is listed for it.
 */
template <uint32_t KS, uint32_t VS> struct list {
	static constexpr uint32_t ROOM = KS == 16 || VS == 16 ? 1024 : 2048;
	uint64_t tags[ROOM]; /* the key's low half ^ MARK; 0: free; BEING_LISTED */
	uint64_t highs[KS == 16 ? ROOM : 1];
	typename sum_of<VS>::type sums[ROOM][VS == 16 ? 2 : 1];
};

#define BEING_LISTED 1u
/* A key whose tag would be 0 or BEING_LISTED is never listed. */
#define MARK 0x9e3779b97f4a7c15u
#define IN_BLOCK CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

/* Clears a list of `room` entries, a power of two and at least 2. */
template <uint32_t KS, uint32_t VS>
static __device__ void list_clear(struct list<KS, VS> *l, uint32_t room, int op)
{
	const uint64_t identity = op == CUA_UPDATE_MIN || op == CUA_UPDATE_AND ? ~(uint64_t)0 : 0;

	for (uint32_t i = threadIdx.x; i < room; i += blockDim.x) {
		l->tags[i] = 0;
		for (typename sum_of<VS>::type &sum : l->sums[i])
			sum = (typename sum_of<VS>::type)identity;
	}
}

/*
 * The first entry for a key with this hash, and the number of entry pairs searched from there on,
 * cyclically. The entry depends on the block, so that no key is left out in all blocks.
 */
#define LIST_PAIRS 4u
static __device__ __forceinline__ uint32_t list_entry(uint32_t room, uint64_t hash)
{
	return ((uint32_t)(hash >> 8) ^ blockIdx.x * 0x9e3779b1u >> 8) & (room - 2);
}

/*
 * Results instead of an entry. NOT_LISTED: the key is absent. NO_ROOM: the key is absent and has no
 * free entry.
 */
#define NOT_LISTED (-1)
#define NO_ROOM (-2)

/* Returns the entry of the key, or NOT_LISTED. */
template <uint32_t KS, uint32_t VS>
static __device__ __forceinline__ int list_find(const struct list<KS, VS> *l, uint32_t room,
						uint64_t hash, struct cua_u128 key)
{
	uint32_t at = list_entry(room, hash);
	uint64_t tags[2];

	if ((key.lo ^ MARK) <= BEING_LISTED)
		return NOT_LISTED;
#pragma unroll 1
	for (uint32_t i = 0; i < LIST_PAIRS; i++, at = (at + 2) & (room - 1)) {
		cua_port_load_2xb64(&l->tags[at], KS == 16 ? CUA_ACQUIRE : CUA_RELAXED, IN_BLOCK,
				    tags);
		for (uint32_t j = 0; j < 2; j++)
			if (tags[j] == (key.lo ^ MARK) && (KS != 16 || l->highs[at + j] == key.hi))
				return (int)(at + j);
		if (!tags[1])
			break;
	}
	return NOT_LISTED;
}

/* Lists the key. Returns its entry, or NO_ROOM. */
template <uint32_t KS, uint32_t VS>
static __device__ __noinline__ int list_add(struct list<KS, VS> *l, uint32_t room, uint64_t hash,
					    struct cua_u128 key)
{
	uint32_t at = list_entry(room, hash);

	if ((key.lo ^ MARK) <= BEING_LISTED)
		return NO_ROOM;
	for (uint32_t i = 0; i < 2 * LIST_PAIRS; i++, at = (at + 1) & (room - 1)) {
		uint64_t tag = cua_port_load_b64(&l->tags[at], CUA_RELAXED, IN_BLOCK);

		if (!tag)
			tag = cua_port_cas_b64(&l->tags[at], 0, BEING_LISTED, CUA_RELAXED,
					       IN_BLOCK);
		if (KS != 16 && tag == (key.lo ^ MARK))
			return (int)at;
		if (tag)
			continue;
		if (KS == 16)
			l->highs[at] = key.hi;
		/* racecheck recognizes an exchange, but reports a store as a race */
		(void)cua_port_exchange_b64(&l->tags[at], key.lo ^ MARK, CUA_RELEASE, IN_BLOCK);
		return (int)at;
	}
	return NO_ROOM;
}

/*
 * Not for MIN or MAX of 16-byte values. A separate function, like all code that uniform keys do not
 * need, so that the common path does not pay for its registers.
 */
template <uint32_t KS, uint32_t VS>
static __device__ __noinline__ void combine_u64(struct list<KS, VS> *l, int at, int op,
						struct cua_u128 v)
{
	uint64_t *sum = (uint64_t *)l->sums[at];

	switch (op) {
	case CUA_UPDATE_ADD:
		if (VS == 16)
			v.hi += cua_port_fetch_add_u64(sum, v.lo, CUA_RELAXED, IN_BLOCK) + v.lo <
				v.lo;
		else
			cua_port_add_u64(sum, v.lo, CUA_RELAXED, IN_BLOCK);
		if (VS == 16)
			cua_port_add_u64(sum + VS / 16, v.hi, CUA_RELAXED, IN_BLOCK);
		break;
	case CUA_UPDATE_MIN: cua_port_min_u64(sum, v.lo, CUA_RELAXED, IN_BLOCK); break;
	case CUA_UPDATE_MAX: cua_port_max_u64(sum, v.lo, CUA_RELAXED, IN_BLOCK); break;
	case CUA_UPDATE_AND:
		cua_port_and_b64(sum, v.lo, CUA_RELAXED, IN_BLOCK);
		if (VS == 16)
			cua_port_and_b64(sum + VS / 16, v.hi, CUA_RELAXED, IN_BLOCK);
		break;
	case CUA_UPDATE_OR:
		cua_port_or_b64(sum, v.lo, CUA_RELAXED, IN_BLOCK);
		if (VS == 16)
			cua_port_or_b64(sum + VS / 16, v.hi, CUA_RELAXED, IN_BLOCK);
		break;
	case CUA_UPDATE_XOR:
		cua_port_xor_b64(sum, v.lo, CUA_RELAXED, IN_BLOCK);
		if (VS == 16)
			cua_port_xor_b64(sum + VS / 16, v.hi, CUA_RELAXED, IN_BLOCK);
		break;
	default: break;
	}
}

template <uint32_t KS, uint32_t VS>
static __device__ __forceinline__ void list_combine(struct list<KS, VS> *l, int at, int op,
						    struct cua_u128 v)
{
	if (VS == 4)
		cua__sums_apply_b32((uint32_t *)l->sums[at], op, (uint32_t)v.lo);
	else
		combine_u64(l, at, op, v);
}

/* A write by a single lane that waits for locks; inlined as enter_alone. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __device__ __forceinline__ struct outcome
write_alone(const struct cua_hashmap_view *view, int op, struct cua_u128 key, struct cua_u128 value)
{
	const cua__hashmap_kind kind =
		CUA__HASHMAP_KIND(KS, VS) +
		(LAYOUT == CUA_HASHMAP_WORDS ? CUA__HASHMAP_OF_WORDS : CUA__HASHMAP_OF_STATES);
	struct outcome o = {0, {0, 0}};

	o.result = cua__hashmap_write(view, kind, op, hash_of<KS, PLAIN>(view, key), key, value,
				      &o.value);
	return o;
}

/* Updates a key that is present; does nothing if it is absent. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __device__ __noinline__ void update_present(const struct cua_hashmap_view *view, int op,
						   struct cua_u128 key, struct cua_u128 operand)
{
	const struct cua_hashmap_view known = with_layout<PLAIN>(view, LAYOUT);
	const struct cua__hashmap_key whole =
		cua__hashmap_key_of(hash_of<KS, PLAIN>(view, key), cua__hashmap_cut(key, KS));
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int changed = 0;

	while (changed <= 0 &&
	       cua__hashmap_spot_of(&known, CUA__HASHMAP_KIND(KS, VS), whole, NULL, &spot) > 0) {
		do {
			struct cua_u128 next =
				cua__hashmap_combine(spot.value, operand, VS, (enum cua_update)op);

			changed = cua__hashmap_same(next, spot.value)
					  ? 1
					  : cua__hashmap_change(&known, CUA__HASHMAP_KIND(KS, VS),
								whole, NULL, &spot, next);
		} while (!changed);
	}
}

/*
 * A write per lane, by the quads of a warp, for words. Returns a result, with the previous value in
 * *there for EXISTS; or 0 if the lane has to write alone. *contended: another thread wrote the same
 * pair concurrently. With `may_list`, an update of a key that is frequent or contended lists the
 * key instead of writing it, if there is room; *listed is its entry.
 */
template <uint32_t KS, uint32_t VS>
static __device__ __forceinline__ int
write_by_quads(const struct cua_hashmap_view *view, int op, int active, uint64_t hash,
	       struct cua_u128 key, struct cua_u128 value, struct list<KS, VS> *l, uint32_t room,
	       int may_list, int frequent, struct cua_u128 *there, int *contended, int *listed)
{
	const int slotted = active && !cua__hashmap_reserved_slot(view, KS, VS, key, NULL);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result = 0, changed = 1;

	cua__quad_look(view, CUA__HASHMAP_KIND(KS, VS), cua__quad_lanes_of(CUA__ALL_LANES, slotted),
		       cua__hashmap_key_of(hash, key), NULL, CUA_RELAXED, &seen);
	if (seen.there > 0) {
		result = CUA_HASHMAP_EXISTS;
		cua__quad_spot(view, KS, VS, key, &seen, &spot);
	} else if (seen.there < 0) {
		result = cua__hashmap_word_claim(cua__hashmap_word_bucket(view, seen.home),
						 CUA__HASHMAP_KIND(KS, VS), seen.slot, key, NULL,
						 cua__hashmap_word_of(KS, VS, key, value),
						 CUA_RELAXED, &spot);
	}
	if (result != CUA_HASHMAP_EXISTS)
		return result;
	do {
		struct cua_u128 next = value;

		*contended |= !changed;
		if (may_list && (frequent || !changed)) {
			*listed = list_add(l, room, hash, key);
			if (*listed >= 0) {
				list_combine(l, *listed, op, value);
				return result;
			}
			may_list = 0;
		}
		if (op != CUA__HASHMAP_INSERT && op != CUA__HASHMAP_ASSIGN &&
		    cua__hashmap_word_is_native(view, KS, VS)) {
			cua__hashmap_word_apply(spot.at, cua__hashmap_word_key(KS, spot.word),
						value, (enum cua_update)op, CUA_RELAXED);
			return result;
		}
		*there = cua__hashmap_word_value(KS, VS, spot.word);
		if (op != CUA__HASHMAP_ASSIGN)
			next = cua__hashmap_combine(*there, value, VS, (enum cua_update)op);
		changed = cua__hashmap_same(next, *there)
				  ? 1
				  : cua__hashmap_word_change(KS, VS, &spot, next, CUA_RELAXED);
	} while (!changed);
	return changed > 0 ? result : 0;
}

/* The active lanes of the caller's warp with the same key. */
template <uint32_t KS>
static __device__ __forceinline__ uint32_t lanes_of(uint32_t active, struct cua_u128 key)
{
	uint32_t group = KS == 4 ? cua_port_match_any_u32(CUA__ALL_LANES, (uint32_t)key.lo)
				 : cua_port_match_any_u64(CUA__ALL_LANES, key.lo);

	if (KS == 16)
		group &= cua_port_match_any_u64(CUA__ALL_LANES, key.hi);
	return group & active;
}

template <uint32_t VS>
static __device__ __forceinline__ struct cua_u128 value_of_lane(struct cua_u128 value,
								uint32_t lane)
{
	if (VS == 4)
		value.lo = cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)value.lo, lane);
	else if (VS)
		value.lo = cua_port_shuffle_u64(CUA__ALL_LANES, value.lo, lane);
	if (VS == 16)
		value.hi = cua_port_shuffle_u64(CUA__ALL_LANES, value.hi, lane);
	return value;
}

/* The value combined with the values of the lanes in `rest`. */
template <uint32_t VS>
static __device__ __noinline__ struct cua_u128 combine_lanes(int op, struct cua_u128 value,
							     uint32_t rest)
{
	const uint32_t lane = cua_port_lane();
	struct cua_u128 operand = value;

	while (cua_port_ballot(CUA__ALL_LANES, rest != 0)) {
		const struct cua_u128 other =
			value_of_lane<VS>(value, rest ? cua_port_ffs_u32(rest) - 1 : lane);

		if (rest)
			operand = cua__hashmap_combine(operand, other, VS, (enum cua_update)op);
		rest &= rest - 1;
	}
	return operand;
}

struct bulk_write {
	struct bulk_insert c;
	const uint32_t *wanted; /* NULL; or the kernel does nothing if this is 0 */
	int op;
	uint32_t room;         /* entries of the list */
	struct cua_u128 value; /* the value for every key, if c.values is NULL */
};

template <uint32_t VS>
static __device__ __forceinline__ void report_write(const struct bulk_write *b, uint64_t i,
						    int result, struct cua_u128 there)
{
	if (VS && b->c.values_out && result != CUA_HASHMAP_FULL &&
	    (b->op == CUA__HASHMAP_INSERT || result == CUA_HASHMAP_EXISTS))
		cua__hashmap_set(b->c.values_out, VS, i, there);
	if (b->c.results)
		b->c.results[i] = (uint8_t)result;
}

/* As insert_deferred. */
template <uint32_t KS, uint32_t VS, int PLAIN>
static __device__ __noinline__ uint32_t write_deferred(const struct bulk_write *b,
						       const struct deferred<KS, VS> *q,
						       uint32_t *n_deferred, uint32_t added)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua_u128 word = {0, 0}, there = {0, 0}, key, value;
	uint64_t i = 0;
	const int active = deferred_pop(q, &i, &word, n_deferred);
	int result;

	key = cua__hashmap_word_key(KS, word);
	value = cua__hashmap_word_value(KS, VS, word);
	result = cua__quad_enter_full(
		&b->c.view, CUA__HASHMAP_KIND(KS, VS),
		cua__quad_lanes_of(
			CUA__ALL_LANES,
			active && !cua__hashmap_reserved_slot(&b->c.view, KS, VS, key, NULL)),
		cua__hashmap_key_of(hash_of<KS, PLAIN>(&b->c.view, key), key), NULL, value, &seen);
	added += cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
	cua__quad_count(&b->c.view, CUA__ALL_LANES, CUA_RELAXED, &added);
	if (active && result != CUA_HASHMAP_INSERTED) {
		struct outcome o = write_alone<KS, VS, CUA_HASHMAP_WORDS, PLAIN>(&b->c.view, b->op,
										 key, value);

		result = o.result;
		there = o.value;
	}
	if (active)
		report_write<VS>(b, i, result, there);
	return added;
}

/* ONE: the call may have a single value for all keys; with PLAIN, it has. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN, int ONE>
static __global__ void __launch_bounds__(THREADS, WRITE_BLOCKS)
	write_kernel(const __grid_constant__ struct bulk_write b)
{
	__shared__ __align__(16) struct list<KS, VS> l;
	__shared__ struct deferred<KS, VS> q;
	const struct cua_hashmap_view &view = b.c.view;
	const void *const keys = b.c.keys, *const values = b.c.values;
	const uint64_t n = b.c.n;
	const uint32_t room = b.room;
	const int op = b.op;
	const uint32_t lane = cua_port_lane();
	const int updates = op != CUA__HASHMAP_INSERT && op != CUA__HASHMAP_ASSIGN;
	const int lists =
		op == CUA__HASHMAP_ASSIGN
			? !b.c.values_out
			: updates && (VS != 16 || (op != CUA_UPDATE_MIN && op != CUA_UPDATE_MAX));
	uint32_t added = 0, n_deferred = 0;

	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	list_clear(&l, room, op);
	cua__after_predecessor();
	if (b.wanted && !*b.wanted)
		return;
	__syncthreads();
	EACH_WARP(i, n)
	{
		struct cua_u128 key = {0, 0}, value = {0, 0}, operand, there = {0, 0};
		int result = 0, contended = 0, listed = NOT_LISTED, leads = i < n, alone,
		    defers = 0;
		uint32_t group = (uint32_t)1 << lane, rest;
		uint64_t hash;

		if (i < n) {
			key = cua__hashmap_get(keys, KS, i);
			value = ONE && (PLAIN || !values) ? b.value
							  : cua__hashmap_get(values, VS, i);
		}
		operand = value;
		hash = hash_of<KS, PLAIN>(&view, key);
		/*
		 * 4-byte values: the hardware combines them, so each lane combines its own operand
		 */
		if (VS == 4 && lists && i < n)
			listed = list_find(&l, room, hash, key);
		if (op != CUA__HASHMAP_INSERT) {
			group = lanes_of<KS>(cua_port_ballot(CUA__ALL_LANES, i < n && listed < 0),
					     key);
			group = listed < 0 ? group : (uint32_t)1 << lane;
			leads = leads && (listed >= 0 || lane == cua_port_ffs_u32(group) - 1);
		}
		rest = leads && listed < 0 ? group & (group - 1) : 0;
		if (!cua_port_ballot(CUA__ALL_LANES, rest != 0)) {
			;
		} else if (updates) {
			operand = combine_lanes<VS>(op, value, rest);
		} else {
			/*
			 * the assigns of a group take effect in lane order, so the last value is
			 * written
			 */
			operand = value_of_lane<VS>(value, group ? 31 - __clz((int)group) : lane);
		}
		if (VS != 4 && lists && leads)
			listed = list_find(&l, room, hash, key);
		if (listed >= 0) {
			result = CUA_HASHMAP_EXISTS;
			if (updates)
				list_combine(&l, listed, op, operand);
		}
		alone = leads && listed < 0;
		/* warps with listed keys only do not access the map */
		if (LAYOUT == CUA_HASHMAP_WORDS && cua_port_ballot(CUA__ALL_LANES, alone)) {
			const int by_quads = write_by_quads<KS, VS>(
				&view, op, alone, hash, key, operand, &l, room, lists && updates,
				rest != 0, &there, &contended, &listed);

			added += cua_port_popc_u32(
				cua_port_ballot(CUA__ALL_LANES, by_quads == CUA_HASHMAP_INSERTED));
			if (alone)
				result = by_quads;
			/* a reserved key is often frequent: list it at once */
			if (cua__hashmap_reserved_slot(&view, KS, VS, key, NULL))
				contended = 1;
			defers = alone && !result && !contended && !(group & (group - 1));
			alone = alone && !result && !defers;
			deferred_push(&q, defers, i, key, operand, &n_deferred);
			if (n_deferred >= 32)
				added = write_deferred<KS, VS, PLAIN>(&b, &q, &n_deferred, added);
			if (cua_port_ballot(CUA__ALL_LANES, alone))
				cua__quad_count(&view, CUA__ALL_LANES, CUA_RELAXED, &added);
		}
		if (alone) {
			struct outcome o =
				write_alone<KS, VS, LAYOUT, PLAIN>(&view, op, key, operand);

			result = o.result;
			there = o.value;
		}
		/* a single lane's inserted key has no later assign in its warp */
		if (lists && leads && listed == NOT_LISTED &&
		    (contended || (group & (group - 1))) && result && result != CUA_HASHMAP_FULL &&
		    (updates || result == CUA_HASHMAP_EXISTS || (group & (group - 1))))
			(void)list_add(&l, room, hash, key);
		if (cua_port_ballot(CUA__ALL_LANES, i < n && !leads)) {
			const uint32_t below = group & (((uint32_t)1 << lane) - 1);
			const struct cua_u128 before =
				value_of_lane<VS>(value, below ? 31 - __clz((int)below) : lane);

			result = (int)cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)result,
							   group ? cua_port_ffs_u32(group) - 1
								 : lane);
			if (!leads) {
				there = before;
				if (result == CUA_HASHMAP_INSERTED)
					result = CUA_HASHMAP_EXISTS;
			}
		}
		if (i < n && !defers)
			report_write<VS>(&b, i, result, there);
	}
	if (LAYOUT == CUA_HASHMAP_WORDS && n_deferred)
		added = write_deferred<KS, VS, PLAIN>(&b, &q, &n_deferred, added);
	if (LAYOUT == CUA_HASHMAP_WORDS)
		cua__quad_count(&view, CUA__ALL_LANES, CUA_RELAXED, &added);
	__syncthreads();
	for (uint32_t j = threadIdx.x; updates && j < room; j += blockDim.x) {
		const struct cua_u128 key = {KS == 4 ? (uint32_t)(l.tags[j] ^ MARK)
						     : l.tags[j] ^ MARK,
					     KS == 16 ? l.highs[KS == 16 ? j : 0] : 0};
		const struct cua_u128 sum = {l.sums[j][0], VS == 16 ? l.sums[j][VS / 16] : 0};

		if (l.tags[j] > BEING_LISTED)
			update_present<KS, VS, LAYOUT, PLAIN>(&view, op, key, sum);
	}
}

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT>
static enum cua_status write_of(struct cua_context *ctx, const struct cua_hashmap_view *view,
				const struct cua__hashmap_call *c, const uint32_t *wanted)
{
	/* the blocks of a small batch have few keys each */
	const uint32_t room = is_few(ctx, c->n) ? FEW_THREADS : list<KS, VS>::ROOM;

	const struct bulk_write b = {{*view, c->n, c->keys, c->values, c->values_out, c->flags},
				     wanted,
				     c->op,
				     room,
				     c->value};

	if (!is_plain(view))
		return launch_each(ctx, c->n, WRITE_BLOCKS, write_kernel<KS, VS, LAYOUT, 0, 1>, b);
	if (VS && !c->values)
		return launch_each(ctx, c->n, WRITE_BLOCKS, write_kernel<KS, VS, LAYOUT, 1, 1>, b);
	return launch_each(ctx, c->n, WRITE_BLOCKS, write_kernel<KS, VS, LAYOUT, 1, 0>, b);
}

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT> struct inserts {
	static enum cua_status run(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *c)
	{
		return write_of<KS, VS, LAYOUT>(ctx, view, c, NULL);
	}
};

template <uint32_t KS, uint32_t VS> struct inserts<KS, VS, CUA_HASHMAP_WORDS> {
	static enum cua_status run(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *c)
	{
		const struct bulk_insert b = {*view,     c->n,          c->keys,
					      c->values, c->values_out, c->flags};

		return launch_each(ctx, c->n, BLOCKS_PER_PROCESSOR,
				   FOR_VIEW(view, insert_kernel, KS, VS), b);
	}
};

static enum cua_status cuda_insert(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *c)
{
#define FUNCTION(ks, vs, layout) inserts<ks, vs, layout>::run(ctx, view, c)
	BY_SIZE
#undef FUNCTION
}

static enum cua_status cuda_change(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *c, const uint32_t *wanted)
{
#define FUNCTION(ks, vs, layout) write_of<ks, vs, layout>(ctx, view, c, wanted)
	BY_SIZE
#undef FUNCTION
}

/* Updates in parts, so that the workspace has a bound. */
static enum cua_status cuda_update(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *call)
{
	struct cua__hashmap_call part = *call;
	enum cua_status status = CUA_OK;
	uint64_t left = call->n;

	while (!status && left) {
		const uint32_t *direct = NULL;

		part.n = left < CUA__HASHMAP_MOST_COMBINED ? left : CUA__HASHMAP_MOST_COMBINED;
		status = cua__cuda_hashmap_combine(ctx, view, &part, &direct);
		if (status == CUA_ERROR_UNSUPPORTED)
			part.n = left;
		if (!status || status == CUA_ERROR_UNSUPPORTED)
			status = cuda_change(ctx, view, &part, direct);
		left -= part.n;
		part.keys = (const char *)part.keys + part.n * view->key_size;
		if (part.values)
			part.values = (const char *)part.values + part.n * view->value_size;
	}
	return status;
}

static enum cua_status cuda_write(struct cua_context *ctx, const struct cua_hashmap_view *view,
				  const struct cua__hashmap_call *call)
{
	enum cua_status status;

	if (call->op == CUA__HASHMAP_ASSIGN)
		return cuda_change(ctx, view, call, NULL);
	if (call->op != CUA__HASHMAP_INSERT)
		return cuda_update(ctx, view, call);
	status = cua__cuda_hashmap_insert_regions(ctx, view, call);
	return status == CUA_ERROR_UNSUPPORTED ? cuda_insert(ctx, view, call) : status;
}

/* ---- erase ---- */

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
	erase_kernel(const __grid_constant__ struct cua_hashmap_view view, uint64_t n,
		     const void *keys, uint8_t *found)
{
	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	cua__after_predecessor();
	EACH_WARP(i, n)
	{
		struct cua_u128 key = {0, 0};
		uint64_t hash;
		int there;

		if (i < n)
			key = cua__hashmap_get(keys, KS, i);
		hash = hash_of<KS, PLAIN>(&view, key);
		if (LAYOUT == CUA_HASHMAP_WORDS)
			there = cua__quad_erase(&view, CUA__HASHMAP_KIND(KS, VS),
						cua__quad_lanes_of(CUA__ALL_LANES, i < n),
						cua__hashmap_key_of(hash, key), NULL, CUA_RELEASE);
		else
			there = i < n && cua__hashmap_state_erase(&view, CUA__HASHMAP_KIND(KS, VS),
								  cua__hashmap_key_of(hash, key),
								  NULL, NULL);
		if (i < n && found)
			found[i] = (uint8_t)there;
	}
}

static enum cua_status cuda_erase(struct cua_context *ctx, const struct cua_hashmap_view *view,
				  const struct cua__hashmap_call *c)
{
#define FUNCTION(ks, vs, layout)                                                                   \
	launch_each(ctx, c->n, BLOCKS_PER_PROCESSOR, FOR_VIEW(view, erase_kernel, ks, vs, layout), \
		    *view, c->n, c->keys, c->flags)
	BY_SIZE
#undef FUNCTION
}

/* ---- compare-exchange ---- */

template <uint32_t KS, uint32_t VS, int PLAIN>
static __device__ __noinline__ int
compare_exchange_alone(const struct cua_hashmap_view *view, struct cua_u128 key,
		       struct cua_u128 *expected, struct cua_u128 desired)
{
	return cua__hashmap_compare_exchange(
		view, CUA__HASHMAP_KIND(KS, VS),
		cua__hashmap_key_of(hash_of<KS, PLAIN>(view, key), key), NULL, expected, desired);
}

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
	compare_exchange_kernel(const __grid_constant__ struct cua_hashmap_view view, uint64_t n,
				const void *keys, const void *desired, void *expected,
				uint8_t *results)
{
	if (!VS || (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS)))
		return;
	cua__after_predecessor();
	EACH_WARP(i, n)
	{
		const struct cua_hashmap_view known = with_layout<PLAIN>(&view, LAYOUT);
		struct cua_u128 key = {0, 0}, seen = {0, 0}, value = {0, 0};
		int result = -1;

		if (i < n) {
			key = cua__hashmap_get(keys, KS, i);
			seen = cua__hashmap_get(expected, VS, i);
			value = cua__hashmap_get(desired, VS, i);
		}
		if (LAYOUT == CUA_HASHMAP_WORDS)
			result = cua__quad_compare_exchange(
				&known, CUA__HASHMAP_KIND(KS, VS),
				cua__quad_lanes_of(CUA__ALL_LANES, i < n),
				cua__hashmap_key_of(hash_of<KS, PLAIN>(&known, key), key), NULL,
				&seen, value);
		if (i >= n)
			continue;
		if (result < 0)
			result = compare_exchange_alone<KS, VS, PLAIN>(&known, key, &seen, value);
		if (result == CUA_HASHMAP_DIFFERS)
			cua__hashmap_set(expected, VS, i, seen);
		if (results)
			results[i] = (uint8_t)result;
	}
}

static enum cua_status cuda_compare_exchange(struct cua_context *ctx,
					     const struct cua_hashmap_view *view,
					     const struct cua__hashmap_call *c)
{
#define FUNCTION(ks, vs, layout)                                                                   \
	launch_each(ctx, c->n, BLOCKS_PER_PROCESSOR,                                               \
		    FOR_VIEW(view, compare_exchange_kernel, ks, vs, layout), *view, c->n, c->keys, \
		    c->values, c->values_out, c->flags)
	BY_SIZE
#undef FUNCTION
}

/* ---- size and retrieve ---- */

static __global__ void size_kernel(const __grid_constant__ struct cua_hashmap_view view,
				   uint64_t *size)
{
	uint64_t n = 0;

	for (uint32_t i = threadIdx.x; i < CUA_HASHMAP_STRIPES; i += 32)
		n += cua_port_load_b64(&view.counts[i].inserted, CUA_RELAXED, CUA__HASHMAP_AT) -
		     cua_port_load_b64(&view.counts[i].erased, CUA_RELAXED, CUA__HASHMAP_AT);
	for (uint32_t half = 16; half; half /= 2)
		n += cua_port_shuffle_u64(CUA__ALL_LANES, n, threadIdx.x ^ half);
	if (threadIdx.x == 0)
		*size = n + cua__hashmap_reserved_used(&view);
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 32, 0, *view, size);
}

/* The unit of a thread's load: 16 bytes of a bucket of words, or a slot with a state. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT> struct piece {
	static constexpr int WIDE = KS + VS > 8;
	static constexpr uint32_t PAIRS = LAYOUT == CUA_HASHMAP_WORDS && !WIDE ? 2 : 1;
	static constexpr uint32_t LOADS = LAYOUT == CUA_HASHMAP_WORDS ? 4 : 1;
	struct cua_u128 keys[PAIRS], values[PAIRS];

	static __device__ __forceinline__ uint64_t count(const struct cua_hashmap_view *view)
	{
		return LAYOUT == CUA_HASHMAP_WORDS
			       ? view->n_buckets * (CUA__HASHMAP_WORD_BYTES / 16)
			       : cua__hashmap_state_all(view, KS, VS);
	}

	/* Loads the unit. Returns the mask of the PAIRS that are present. */
	__device__ __forceinline__ uint32_t load(const struct cua_hashmap_view *view, uint64_t at)
	{
		uint32_t used = 0;
		uint64_t w[2];

		if (LAYOUT != CUA_HASHMAP_WORDS)
			return (uint32_t)cua__hashmap_state_at(view, KS, VS, at, &keys[0],
							       &values[0]);
		cua__piece_load((const char *)view->buckets + 16 * at, WIDE, w);
		for (uint32_t j = 0; j < PAIRS; j++) {
			const struct cua_u128 word = {w[j], WIDE ? w[1] : 0};

			/* the head comes first */
			if ((j || at % (CUA__HASHMAP_WORD_BYTES / 16)) &&
			    cua__hashmap_word_used(KS, VS, word))
				used |= 1u << j;
			keys[j] = cua__hashmap_word_key(KS, word);
			values[j] = cua__hashmap_word_value(KS, VS, word);
		}
		return used;
	}
};

/* A block claims the offsets of a turn by a single addition. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT>
static __global__ void __launch_bounds__(THREADS)
	retrieve_kernel(const __grid_constant__ struct cua_hashmap_view view, uint64_t max,
			void *keys_out, void *values_out, uint64_t *n)
{
	typedef struct piece<KS, VS, LAYOUT> P;
	__shared__ uint32_t warps[THREADS / 32];
	__shared__ uint64_t first;
	const uint64_t count = P::count(&view), turn = THREADS * (uint64_t)P::LOADS;
	const uint32_t lane = cua_port_lane(), below = ((uint32_t)1 << lane) - 1;

	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	for (uint64_t start = blockIdx.x * turn; start < count; start += gridDim.x * turn) {
		P p[P::LOADS];
		uint32_t used[P::LOADS], at[P::LOADS], sum = 0;

#pragma unroll
		for (uint32_t j = 0; j < P::LOADS; j++) {
			const uint64_t i = start + j * THREADS + threadIdx.x;

			used[j] = i < count ? p[j].load(&view, i) : 0;
		}
#pragma unroll
		for (uint32_t j = 0; j < P::LOADS; j++) {
			at[j] = sum;
#pragma unroll
			for (uint32_t k = 0; k < P::PAIRS; k++) {
				const uint32_t votes =
					cua_port_ballot(CUA__ALL_LANES, used[j] >> k & 1);

				at[j] += cua_port_popc_u32(votes & below);
				sum += cua_port_popc_u32(votes);
			}
		}
		if (lane == 0)
			warps[threadIdx.x / 32] = sum;
		__syncthreads();
		if (threadIdx.x == 0) {
			uint32_t all = 0;

			for (uint32_t w = 0; w < THREADS / 32; w++) {
				const uint32_t of_warp = warps[w];

				warps[w] = all;
				all += of_warp;
			}
			first = all ? cua_port_fetch_add_u64(n, all, CUA_RELAXED, CUA__HASHMAP_AT)
				    : 0;
		}
		__syncthreads();
#pragma unroll
		for (uint32_t j = 0; j < P::LOADS; j++) {
			uint64_t to = first + warps[threadIdx.x / 32] + at[j];

#pragma unroll
			for (uint32_t k = 0; k < P::PAIRS; k++) {
				if (!(used[j] >> k & 1))
					continue;
				if (to < max) {
					cua__hashmap_set(keys_out, KS, to, p[j].keys[k]);
					cua__hashmap_set(values_out, VS, to, p[j].values[k]);
				}
				to++;
			}
		}
		__syncthreads();
	}
	/* the reserved slots */
	if (LAYOUT == CUA_HASHMAP_WORDS && blockIdx.x == 0 && threadIdx.x < 2) {
		const struct cua_hashmap_view known = with_layout<0>(&view, LAYOUT);
		struct cua_u128 key, value;

		if (cua__hashmap_at(&known, KS, VS,
				    cua__hashmap_all_slots(&known, KS, VS) - 2 + threadIdx.x, &key,
				    &value)) {
			const uint64_t to =
				cua_port_fetch_add_u64(n, 1, CUA_RELAXED, CUA__HASHMAP_AT);

			if (to < max) {
				cua__hashmap_set(keys_out, KS, to, key);
				cua__hashmap_set(values_out, VS, to, value);
			}
		}
	}
}

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT>
static enum cua_status retrieve_of(struct cua_context *ctx, const struct cua_hashmap_view *view,
				   uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	typedef struct piece<KS, VS, LAYOUT> P;
	const uint64_t count = LAYOUT == CUA_HASHMAP_WORDS
				       ? view->n_buckets * (CUA__HASHMAP_WORD_BYTES / 16)
				       : cua__hashmap_state_all(view, KS, VS);

	return cua__launch(ctx, retrieve_kernel<KS, VS, LAYOUT>,
			   cua__grid(ctx, count, THREADS * P::LOADS, BLOCKS_PER_PROCESSOR), THREADS,
			   0, *view, max, keys_out, values_out, n);
}

enum cua_status cua__cuda_hashmap_retrieve(struct cua_context *ctx,
					   const struct cua_hashmap_view *view, uint64_t max,
					   void *keys_out, void *values_out, uint64_t *n)
{
#define FUNCTION(ks, vs, layout)                                                                   \
	retrieve_of<ks, vs, layout>(ctx, view, max, keys_out, values_out, n)
	BY_SIZE
#undef FUNCTION
}

const struct cua__hashmap_ops cua__cuda_hashmap = {
	cuda_write,
	cua__cuda_hashmap_build,
	cua__cuda_hashmap_build_scratch,
	cua__cuda_hashmap_find,
	cua__cuda_hashmap_find_regions,
	cuda_erase,
	cuda_compare_exchange,
	cuda_size,
};
