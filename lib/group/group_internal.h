/* SPDX-License-Identifier: MIT */
/*
 * The steps of a collective call. A call shows a record of each rank to all ranks, and ends there
 * if a rank has an error. It then works in each context, agrees again, and exchanges values. Each
 * function returns the same status on all ranks, unless the transport fails.
 */
#ifndef CUATOMIC_GROUP_GROUP_INTERNAL_H
#define CUATOMIC_GROUP_GROUP_INTERNAL_H

#include <string.h>

#include "backend/group_backend.h"

/* The lesser status: errors are negative, so an error is less than OK. */
static inline enum cua_status cua__worse(enum cua_status a, enum cua_status b)
{
	return a < b ? a : b;
}

/* Runs a function of the backend while the context's device is current. */
#define CUA__GROUP_IN(ctx, status, expression)                                                     \
	do {                                                                                       \
		const int previous_ = (ctx)->runtime->enter(ctx);                                  \
                                                                                                   \
		(status) = (expression);                                                           \
		(ctx)->runtime->leave(ctx, previous_);                                             \
	} while (0)

/*
 * A collective call as a user makes it: sets status to `expression`, without cancellation, or to NULL
 * without a group, or to the status of a broken group.
 */
#define CUA__GROUP_CALL(g, status, expression)                                                     \
	do {                                                                                       \
		const struct cua_group *group_ = (g);                                              \
                                                                                                   \
		(status) = !group_ ? CUA_ERROR_NULL : group_->broken;                              \
		if (!(status)) {                                                                   \
			const int cancel_ = cua__cancel_disable();                                 \
                                                                                                   \
			(status) = (expression);                                                   \
			cua__cancel_restore(cancel_);                                              \
		}                                                                                  \
	} while (0)

/* A record without arguments. */
static inline void cua__group_record(struct cua__group_record *record, enum cua__group_call call,
				     enum cua_status status)
{
	memset(record, 0, sizeof(*record));
	record->status = status;
	record->call = (int32_t)call;
}

/*
 * Begins a collective call: shows the records of the local ranks, mine, to all ranks, in
 * g->records. Returns the least status of the records, or VALUE if calls or arguments differ.
 */
enum cua_status cua__group_meet(struct cua_group *g, const struct cua__group_record *mine);

/* The least status of all processes. */
enum cua_status cua__group_agree(struct cua_group *g, enum cua_status mine);

/*
 * Ends a collective call that called cua__call_begin for each local rank. `begun` is the status of `begin`
 * of the backend, and `met` that of meet: after an error there all ranks return without another agreement.
 */
enum cua_status cua__group_end(struct cua_group *g, enum cua_status begun, enum cua_status met,
			       enum cua_status status);

/*
 * Keeps memory that a failed transport may still use, where leak checkers find it. The node is in this
 * memory.
 */
void cua__group_keep(struct cua__kept *node);

/* Sets the addresses of the values of the local ranks, after `begin` of the backend. */
void cua__group_place(struct cua_group *g, const size_t *bytes);

/*
 * Copies parts[i].mine of each rank i, bytes[i] bytes, to parts[j].all of each rank j, in the order
 * of the ranks. Memory of the contexts, in stream order. `status` is that of this process; if a
 * process has an error, all processes return it, and nothing is copied.
 */
enum cua_status cua__group_gather(struct cua_group *g, const size_t *bytes, enum cua_status status);

/* Whether the transport sends and receives memory of this rank's context, a GPU. */
int cua__group_reads_context(const struct cua_group *g);

/*
 * Exchanges arrays in the memory of the contexts, in stream order. With a transport it waits for the
 * stream, and a rank with an error of its own takes part all the same.
 */
enum cua_status cua__group_exchange(struct cua_group *g, const struct cua__group_traffic *t);

/*
 * Where there is a transport: sets each x[i], i < n, to the sum of the x[i] of all ranks. Host memory.
 * n is at most CUA__GROUP_WORDS.
 */
enum cua_status cua__group_sum_words(struct cua_group *g, uint64_t *x, size_t n);

/* Where the transport has sum_device: sums of n elements of the context's memory. */
enum cua_status cua__group_sum_device(struct cua_group *g, enum cua_type type, void *x, size_t n);

#endif /* CUATOMIC_GROUP_GROUP_INTERNAL_H */
