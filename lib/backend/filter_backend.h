/* SPDX-License-Identifier: MIT */
/* The backend interface of the filter, and the comparison that both backends share. */
#ifndef CUATOMIC_BACKEND_FILTER_BACKEND_H
#define CUATOMIC_BACKEND_FILTER_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the kernel decides about an element. */
enum cua__filter_key {
	CUA__FILTER_FLAG,    /* by its flag; the element is not compared */
	CUA__FILTER_INTEGER, /* by its bits, as an integer */
	CUA__FILTER_FLOAT,   /* by sign and magnitude, mapped to an integer in the same order */
	/*
	 * kept if its bits differ from those of the element before: it begins a run of equal
	 * elements
	 */
	CUA__FILTER_CHANGE
};

/* Most tiles of a short array. */
#define CUA__FILTER_SHORT 128

/*
 * Tickets and sums of a kernel. All are zero between calls, except short_ticket and short_tiles:
 * their bits from 16 on hold the number of the last call on a short array. So a call needs no
 * reset.
 */
struct cua__filter_control {
	uint64_t ticket;
	uint64_t pad_1[7];
	uint64_t kept, rest; /* without order: elements kept and rejected so far */
	uint64_t arrived;
	uint64_t pad_2[5];
	uint64_t short_ticket;
	uint64_t short_kept;
	uint64_t pad_3[6];
	uint64_t short_tiles[CUA__FILTER_SHORT]; /* the word of each tile */
};

/*
 * A checked call, with pointers that the backend can use.
 *
 * An element is kept if its key is among the `range` + 1 consecutive values from `low` on, modulo
 * 2^bits. With `inverted` it is kept if its key is none of them. Every comparison with a value has
 * this form.
 *
 * Runs of equal elements need ordered elements of 4 or 8 bytes and indexes of 8 bytes. `indexes`
 * has room for 1 more entry than `values`. The entry after the start of the last stored run holds
 * the end of that run.
 */
struct cua__filter {
	enum cua__filter_key key;
	uint32_t size; /* bytes of an element: 1, 2, 4, 8 or 16 */
	uint64_t n;    /* not 0 */
	const void *x; /* NULL: neither compared nor stored */
	const uint8_t *flags;
	uint64_t low, range;
	int inverted;
	int ordered;
	int partition; /* partition: rejected elements follow the kept elements; capacity is n */
	int in_place;  /* values is x; requires ordered, excludes partition */
	uint64_t capacity;
	void *values;        /* NULL: not stored */
	void *indexes;       /* NULL: not stored */
	uint32_t index_size; /* 4 or 8 */
	/* end of an append buffer, after which the kept elements are stored; or NULL */
	uint64_t *demand;
	uint64_t *count;      /* if demand is NULL: receives the number of kept elements */
	uint64_t *count_copy; /* runs only: receives the same number */
	/* set by the CUDA backend */
	/*
	 * ordered partition, from an earlier pass: the number of kept elements; that of all lower
	 * ranges of 2^range_shift tiles; and that of the lower tiles of the same range
	 */
	uint64_t *total_kept, *range_kept;
	uint32_t *tile_kept;
	uint32_t range_shift;
	struct cua__filter_control *control;
	uint64_t *tiles; /* ordered: a zeroed word for each tile, or control->short_tiles */
};

struct cua__filter_ops {
	/* bytes of scratch memory */
	size_t (*scratch)(struct cua_context *ctx, const struct cua__filter *f);
	enum cua_status (*filter)(struct cua_context *ctx, const struct cua__filter *f,
				  void *scratch);
};

/* Bytes of the filter's range in the context's control block. */
#define CUA__FILTER_CONTROL 4096

/* The key of an element of at most 32 bits; higher bits are 0. */
CUA_FORCE uint32_t cua__filter_key32(enum cua__filter_key key, uint32_t size, uint32_t bits)
{
	const uint32_t sign = (uint32_t)1 << (size * 8 - 1);

	if (key == CUA__FILTER_FLOAT && size == 4)
		return cua__ranked_f32(bits);
	if (key == CUA__FILTER_FLOAT)
		return bits & sign ? bits ^ (sign - 1) : bits;
	return bits;
}

CUA_FORCE uint64_t cua__filter_key64(enum cua__filter_key key, uint64_t bits)
{
	if (key == CUA__FILTER_FLOAT)
		return cua__ranked_f64(bits);
	return bits;
}

/* Whether the key is in the range; `inverted` is not applied. */
CUA_FORCE int cua__filter_in32(uint32_t size, uint32_t key, uint32_t low, uint32_t range)
{
	const uint32_t mask = size == 4 ? UINT32_MAX : ((uint32_t)1 << (size * 8 % 32)) - 1;

	return ((key - low) & mask) <= range;
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_FILTER_BACKEND_H */
