/* SPDX-License-Identifier: MIT */
/*
 * The types, results and helpers that both layouts of the hash map share. cuatomic/hashmap.h has
 * the contract.
 */
#ifndef CUATOMIC_HASHMAP_COMMON_H
#define CUATOMIC_HASHMAP_COMMON_H

#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The result of an operation on a key. */
enum cua_hashmap_result {
	CUA_HASHMAP_ABSENT = 0,   /* compare_exchange: the key is absent */
	CUA_HASHMAP_INSERTED = 1, /* the key was absent; the pair was inserted */
	CUA_HASHMAP_EXISTS = 2,   /* the key was present: kept, overwritten or updated */
	CUA_HASHMAP_FULL = 3,     /* the key was absent and there was no slot: nothing changed */
	CUA_HASHMAP_DIFFERS = 4,  /* compare_exchange: the key has another value */
	/*
	 * the code is for other sizes or layouts, or lacks the map's CAS of 128 bits: see
	 * `portable`
	 */
	CUA_HASHMAP_UNSUPPORTED = 5
};

/* The operation of a lane in a call that a warp makes together, such as cua_hashmap_execute. */
enum cua_hashmap_operation {
	CUA_HASHMAP_SKIP = 0, /* nothing */
	CUA_HASHMAP_FIND = 1,
	CUA_HASHMAP_INSERT = 2,
	CUA_HASHMAP_ERASE = 3
};

/*
 * Counts, in stripes so that no address is hot. A lane counts in the stripe of its home bucket, or
 * of that of a lane which counts with it; a quad, and a lane in an execute, in a stripe chosen by
 * the number of its warp; a rejected pair in a stripe chosen by its hash. Only sums over all
 * stripes have a meaning. cuatomic/hashmap.h, "Full", has their use.
 */
#define CUA_HASHMAP_STRIPES 64u
struct cua_hashmap_counts {
	uint64_t inserted; /* keys inserted into slots, counted after they are stored */
	uint64_t erased;   /* keys erased from slots, counted before the slots are free */
	uint64_t rejected; /* writes that were FULL */
	uint64_t reserved;
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_counts) == 32, "the counts are ABI");

/* A rejected pair. Keys and values below 16 bytes are in lo; all other bits are 0. */
struct cua_hashmap_pair {
	struct cua_u128 key, value;
};

/* The rejected pairs that are kept. */
struct cua_hashmap_rejects {
	uint64_t count; /* pairs rejected since the last clear, kept or not */
	uint64_t room;
	struct cua_hashmap_pair pairs[1]; /* of `room` */
};

/* Layouts: a slot is an atomic word, or has a state word. */
#define CUA_HASHMAP_WORDS 2u
#define CUA_HASHMAP_STATES 3u

/* How keys are hashed; see hash.h. */
enum cua_hashmap_hash {
	CUA_HASHMAP_HASH_SEEDED =
		0, /* cua_hash_u64 or cua_hash_u128 under a seed of 64 bits: the fastest */
	CUA_HASHMAP_HASH_KEYED =
		1 /* SipHash-1-3 under a secret of 128 bits: for keys that an attacker chooses */
};

/* The map as the backend addresses it. Kernels and host threads get it by value. */
struct cua_hashmap_view {
	void *buckets;
	struct cua_hashmap_counts
		*counts; /* CUA_HASHMAP_STRIPES, then 2 reserved slots of 16 bytes */
	struct cua_hashmap_rejects *rejects; /* or NULL */
	uint64_t n_buckets;
	uint64_t seed;                 /* of a keyed hash, the lower half of its secret */
	uint32_t key_size, value_size; /* 4, 8 or 16; value_size may be 0 */
	uint32_t layout;
	uint32_t hash;      /* an enum cua_hashmap_hash */
	uint64_t seed_high; /* of a keyed hash, the upper half of its secret; else 0 */
	uint32_t
		max_probes; /* buckets that may hold a key, or 0 for all of them; see the options */
	uint32_t no_erase;  /* 1: no key is ever erased; see the options */
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_view) == 48 + 3 * sizeof(void *), "the view is ABI");

/* Whether two keys are equal. NULL compares their bits. Always a compile-time constant. */
typedef int cua__hashmap_equal_fn(struct cua_u128 a, struct cua_u128 b);

/*
 * The kind of a map: the bytes of a key and of a value. Always a compile-time constant. It is a
 * number, not a struct, because compilers fold a constant argument earlier than a struct's member.
 */
typedef uint32_t cua__hashmap_kind;
#define CUA__HASHMAP_KIND(ks, vs) ((cua__hashmap_kind)((ks)*32 + (vs)))
/* Added to the kind of a map whose layout is a constant too. */
#define CUA__HASHMAP_OF_WORDS ((cua__hashmap_kind)1024)
#define CUA__HASHMAP_OF_STATES ((cua__hashmap_kind)2048)
#define CUA__HASHMAP_KS(kind) ((kind) / 32 % 32)
#define CUA__HASHMAP_VS(kind) ((kind) % 32)

/* A key with its hash. */
struct cua__hashmap_key {
	uint64_t hash;
	struct cua_u128 bits;
};

CUA_FORCE struct cua__hashmap_key cua__hashmap_key_of(uint64_t hash, struct cua_u128 bits)
{
	struct cua__hashmap_key key;

	key.hash = hash;
	key.bits = bits;
	return key;
}

/*
 * The new value after `old`. Always a compile-time constant. `op` is passed through from the
 * caller.
 */
typedef struct cua_u128 cua__hashmap_next_fn(struct cua_u128 old, struct cua_u128 operand,
					     enum cua_update op);
#define CUA__HASHMAP_NO_OP ((enum cua_update)0)

/*
 * The slot in which a lookup or an insert found or stored a key. Another lane may have changed or
 * erased the pair since.
 */
struct cua__hashmap_spot {
	char *at;
	struct cua_u128 value; /* the value that was read */
	struct cua_u128 word;  /* in the word layout, the word that was read or stored */
};

#define CUA__HASHMAP_AT CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/*
 * Backoff limit in ns of lanes that wait for a lock. Hundreds of lanes may wait for a hot key, and
 * each attempt is traffic that delays the holder. The pauses of a lane grow to this limit only after
 * pauses of about this length in total.
 */
#define CUA__HASHMAP_LONGEST_WAIT 16384u
/*
 * Backoff limit in ns of warps whose lanes change values together. The figures for other limits are
 * in doc/lab-notes/hashmap.md, "Updates of a hot key by lanes".
 */
#define CUA__HASHMAP_LONGEST_APART 4096u

/*
 * Whether all slots held a key at some moment of this call. May return 0 wrongly while writers run.
 */
CUA_FN int cua__hashmap_full(const struct cua_hashmap_view *view, uint32_t slots)
{
	uint64_t inserted = 0, erased = 0;
	uint32_t i;

	CUA__ROLLED
	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		inserted +=
			cua_port_load_b64(&view->counts[i].inserted, CUA_ACQUIRE, CUA__HASHMAP_AT);
	CUA__ROLLED
	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		erased += cua_port_load_b64(&view->counts[i].erased, CUA_ACQUIRE, CUA__HASHMAP_AT);
	return inserted - erased == view->n_buckets * slots;
}

/* The number of buckets, from the first of the probe sequence on, that may hold a key. */
CUA_FORCE uint64_t cua__hashmap_most(const struct cua_hashmap_view *view)
{
	return view->max_probes && view->max_probes < view->n_buckets ? view->max_probes
								      : view->n_buckets;
}

/* The stripe of counts of a home bucket. */
CUA_FORCE struct cua_hashmap_counts *cua__hashmap_counts(const struct cua_hashmap_view *view,
							 uint64_t bucket)
{
	return &view->counts[bucket % CUA_HASHMAP_STRIPES];
}

CUA_FORCE int cua__hashmap_same(struct cua_u128 a, struct cua_u128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

/* ---- keys and values as two words of 64 bits ---- */

CUA_FORCE struct cua_u128 cua__hashmap_bits(const void *p, uint32_t size)
{
	struct cua_u128 bits = {0, 0};
	uint32_t low;

	if (size == 4) {
		memcpy(&low, p, 4);
		bits.lo = low;
	} else if (size) {
		memcpy(&bits, p, size);
	}
	return bits;
}

CUA_FORCE void cua__hashmap_unbits(void *p, uint32_t size, struct cua_u128 bits)
{
	uint32_t low = (uint32_t)bits.lo;

	if (size == 4)
		memcpy(p, &low, 4);
	else if (size)
		memcpy(p, &bits, size);
}

CUA_FORCE struct cua_u128 cua__hashmap_u64(uint64_t v, uint32_t size)
{
	struct cua_u128 bits;

	bits.lo = size == 4 ? (uint32_t)v : v;
	bits.hi = 0;
	return bits;
}

/* Whether a < b, as unsigned numbers. */
CUA_FORCE int cua__hashmap_below(struct cua_u128 a, struct cua_u128 b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

/* The low `size` bytes of v. */
CUA_FORCE struct cua_u128 cua__hashmap_cut(struct cua_u128 v, uint32_t size)
{
	if (size == 4)
		v.lo = (uint32_t)v.lo;
	if (size != 16)
		v.hi = 0;
	return v;
}

/* The value after an update. Values are unsigned numbers of vs bytes. */
CUA_FORCE struct cua_u128 cua__hashmap_combine(struct cua_u128 old, struct cua_u128 operand,
					       uint32_t vs, enum cua_update op)
{
	switch (op) {
	case CUA_UPDATE_ADD:
		old.hi += operand.hi;
		old.lo += operand.lo;
		old.hi += old.lo < operand.lo;
		break;
	case CUA_UPDATE_MIN: return cua__hashmap_below(operand, old) ? operand : old;
	case CUA_UPDATE_MAX: return cua__hashmap_below(old, operand) ? operand : old;
	case CUA_UPDATE_AND:
		old.lo &= operand.lo;
		old.hi &= operand.hi;
		break;
	case CUA_UPDATE_OR:
		old.lo |= operand.lo;
		old.hi |= operand.hi;
		break;
	default: old.lo ^= operand.lo; old.hi ^= operand.hi;
	}
	return cua__hashmap_cut(old, vs);
}

CUA_FORCE struct cua_u128 cua__hashmap_next_combined(struct cua_u128 old, struct cua_u128 operand,
						     enum cua_update op)
{
	return cua__hashmap_combine(old, operand, 16, op);
}

CUA_FORCE struct cua_u128 cua__hashmap_next_assign(struct cua_u128 old, struct cua_u128 operand,
						   enum cua_update op)
{
	(void)old;
	(void)op;
	return operand;
}

#endif /* CUATOMIC_HASHMAP_COMMON_H */
