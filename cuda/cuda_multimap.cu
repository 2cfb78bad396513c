/* SPDX-License-Identifier: MIT */
/* The multimap on a GPU: the kernels of lib/kernels/multimap_kernel.h and their launches. */
#include "config.h"

#include "kernels/multimap_kernel.h"
#include "launch.h"

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u

#define EACH(i, n)                                                                                 \
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                \
	     i += (uint64_t)gridDim.x * blockDim.x)

typedef void call_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call);

/* Launches the instance for the key size, for n elements. */
static enum cua_status launch(struct cua_context *ctx, const struct cua_multimap_view *view,
			      const struct cua__multimap_call *call, uint64_t n, call_kernel *of_4,
			      call_kernel *of_8)
{
	return cua__launch(ctx, view->map.key_size == 4 ? of_4 : of_8,
			   cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR), THREADS, 0, *view,
			   *call);
}

/* ---- insert, count, erase ---- */

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	insert_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	cua__multimap_insert_kernel(&view, &call, KS);
}

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	count_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	EACH(i, call.n)
	call.out[i] = cua__multimap_length(&view, view.value_size,
					   cua__multimap_head_of(&view, KS, call.keys, i));
}

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	erase_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	EACH(i, call.n)
	{
		const struct cua_u128 key = cua__hashmap_get(call.keys, KS, i);
		uint64_t n = cua__multimap_erase(&view, KS, view.value_size,
						 cua__hashmap_hash(&view.map, KS, key), key);

		if (call.out)
			call.out[i] = n;
	}
}

static enum cua_status cuda_insert(struct cua_context *ctx, const struct cua_multimap_view *view,
				   const struct cua__multimap_call *call)
{
	return launch(ctx, view, call, call->n, insert_kernel<4>, insert_kernel<8>);
}

static enum cua_status cuda_count(struct cua_context *ctx, const struct cua_multimap_view *view,
				  const struct cua__multimap_call *call)
{
	return launch(ctx, view, call, call->n, count_kernel<4>, count_kernel<8>);
}

static enum cua_status cuda_erase(struct cua_context *ctx, const struct cua_multimap_view *view,
				  const struct cua__multimap_call *call)
{
	return launch(ctx, view, call, call->n, erase_kernel<4>, erase_kernel<8>);
}

/* ---- retrieve ---- */

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	sums_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	__shared__ uint64_t warps[THREADS / 32];

	cua__multimap_sums_kernel(&view, &call, KS, warps);
}

static __global__ void __launch_bounds__(THREADS)
	scan_kernel(const struct cua__multimap_call call, uint32_t ranges)
{
	__shared__ uint64_t warps[THREADS / 32];

	cua__multimap_scan_kernel(&call, ranges, warps);
}

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	values_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	__shared__ uint64_t warps[THREADS / 32];

	cua__multimap_values_kernel(&view, &call, KS, warps);
}

static enum cua_status cuda_retrieve(struct cua_context *ctx, const struct cua_multimap_view *view,
				     const struct cua__multimap_call *call)
{
	const int of_4 = view->map.key_size == 4;
	unsigned ranges = cua__grid(ctx, call->n, THREADS, BLOCKS_PER_PROCESSOR);
	enum cua_status status;

	if (ranges > CUA__MULTIMAP_RANGES)
		ranges = CUA__MULTIMAP_RANGES;
	status = cua__launch(ctx, of_4 ? sums_kernel<4> : sums_kernel<8>, ranges, THREADS, 0, *view,
			     *call);
	if (!status)
		status = cua__launch(ctx, scan_kernel, 1, THREADS, 0, *call, ranges);
	if (!status && call->n)
		status = cua__launch(ctx, of_4 ? values_kernel<4> : values_kernel<8>, ranges,
				     THREADS, 0, *view, *call);
	return status;
}

/* ---- all pairs, reclaim, size ---- */

template <uint32_t KS>
static __global__ void __launch_bounds__(THREADS)
	all_kernel(const struct cua_multimap_view view, const struct cua__multimap_call call)
{
	cua__multimap_all_kernel(&view, &call, KS);
}

static enum cua_status cuda_retrieve_all(struct cua_context *ctx,
					 const struct cua_multimap_view *view,
					 const struct cua__multimap_call *call)
{
	return launch(ctx, view, call, cua__multimap_map_slots(view, view->map.key_size),
		      all_kernel<4>, all_kernel<8>);
}

static __global__ void __launch_bounds__(THREADS)
	reclaim_kernel(const struct cua_multimap_view view)
{
	cua__multimap_reclaim_kernel(&view);
}

static __global__ void reclaimed_kernel(const struct cua_multimap_view view)
{
	cua__multimap_reclaimed(&view);
}

static enum cua_status cuda_reclaim(struct cua_context *ctx, const struct cua_multimap_view *view)
{
	enum cua_status status = cua__launch(
		ctx, reclaim_kernel, cua__grid(ctx, view->capacity, THREADS, BLOCKS_PER_PROCESSOR),
		THREADS, 0, *view);

	return status ? status : cua__launch(ctx, reclaimed_kernel, 1, 1, 0, *view);
}

static __global__ void size_kernel(const struct cua_multimap_view view, uint64_t *size)
{
	*size = cua__multimap_count(&view);
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_multimap_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 1, 0, *view, size);
}

const struct cua__multimap_ops cua__cuda_multimap = {
	cuda_insert,       cuda_count,   cuda_erase, cuda_retrieve,
	cuda_retrieve_all, cuda_reclaim, cuda_size,
};
