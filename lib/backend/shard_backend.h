/* SPDX-License-Identifier: MIT */
/* The backend interface of sharded maps: pairs are sorted by their owners, and answers return. */
#ifndef CUATOMIC_BACKEND_SHARD_BACKEND_H
#define CUATOMIC_BACKEND_SHARD_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of a call's pairs. Addresses are backend memory. */
struct cua__shard {
	uint64_t seed; /* of the hash that chooses the owner */
	uint32_t ranks, key_size, value_size;
	uint32_t n;
	const void *keys, *values;
	/* the pairs in the order of their owners; values and values_out may be NULL */
	void *keys_out, *values_out;
	uint32_t *index;   /* the place of each of these in the piece; may be NULL */
	uint32_t *counts;  /* of each rank */
	uint32_t *cursors; /* of each rank: where its pairs begin in the output */
};

/* Answers to a piece's keys, in the order of their owners. */
struct cua__shard_answers {
	uint32_t n, value_size;
	const uint32_t *index;
	const uint8_t *results;
	const void *values; /* may be NULL */
	uint8_t *results_out;
	/* an answer without a result leaves its value unchanged; both may be NULL */
	void *values_out;
};

struct cua__shard_ops {
	/* Adds the number of pairs that each rank owns to counts, which are 0. */
	enum cua_status (*count)(struct cua_context *ctx, const struct cua__shard *s);
	/* Writes the output; cursors are undefined afterwards. */
	enum cua_status (*place)(struct cua_context *ctx, const struct cua__shard *s);
	enum cua_status (*answer)(struct cua_context *ctx, const struct cua__shard_answers *a);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_SHARD_BACKEND_H */
