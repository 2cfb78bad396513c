/* SPDX-License-Identifier: MIT */
/* Functions that the files of the CUDA segmented reductions share. */
#ifndef CUATOMIC_CUDA_SEGMENT_H
#define CUATOMIC_CUDA_SEGMENT_H

#include "backend/filter_backend.h"
#include "backend/segment_backend.h"

struct cua__fixed_state;

/* Runs that are found and summed in a single pass (cuda_segment_runs.cu). */

/* Whether the device can sum runs, and the call sums in the order of the tree. */
int cua__cuda_can_sum_runs(const struct cua_context *ctx, const struct cua__runs *r,
			   const struct cua__segments *s);
/* Bytes of workspace. */
size_t cua__cuda_sum_runs_scratch(const struct cua__runs *r, const struct cua__segments *s);
/*
 * f describes the runs as a filter. Sets s->pending, and sets *state to zeros for the kernels that
 * reduce the pending segments.
 */
enum cua_status cua__cuda_sum_runs(struct cua_context *ctx, const struct cua__runs *r,
				   const struct cua__filter *f, struct cua__segments *s,
				   struct cua__fixed_state *state);

#endif /* CUATOMIC_CUDA_SEGMENT_H */
