/* SPDX-License-Identifier: MIT */
/*
 * The filter on a GPU. A block takes tiles: each thread loads 64 bytes of a tile and compares, the
 * block ranks what is kept (by popc in the thread, shuffles in the warp, shared memory across
 * warps), makes one reservation for the whole tile, and writes it out from shared memory, so that
 * the stores are coalesced.
 */
#include "config.h"

#include <string.h>

#include "../lib/append.h"
#include "launch.h"

#define BLOCK 256u
#define WARPS (BLOCK / 32u)
#define LOADS 4u /* of 16 bytes, a thread and tile */
#define BLOCKS_PER_PROCESSOR 8u

static __global__ void size_kernel(struct cua_append_view view, uint64_t *size)
{
	uint64_t demand = cua_port_load_b64(&view.cursor->demand, CUA_RELAXED, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GLOBAL);

	*size = demand < view.capacity ? demand : view.capacity;
}

/* Overloads, so that the kernel's type picks the predicate. */
#define DEFINE_KEEP(name, T)                                                                       \
	static __device__ __forceinline__ int keep(T x, enum cua_compare compare, T value)         \
	{                                                                                          \
		return cua_filter_keep_##name(x, compare, value);                                  \
	}
DEFINE_KEEP(u32, uint32_t)
DEFINE_KEEP(i32, int32_t)
DEFINE_KEEP(u64, uint64_t)
DEFINE_KEEP(i64, int64_t)
DEFINE_KEEP(f32, float)
DEFINE_KEEP(f64, double)

/* 16 bytes of elements. */
template <typename T> struct __align__(16) vector
{
	T at[16 / sizeof(T)];
};

template <typename T, enum cua_compare COMPARE>
static __global__ void __launch_bounds__(BLOCK)
	filter_kernel(struct cua_append_view view, uint64_t n, const T *x, T value)
{
	constexpr unsigned PER_LOAD = 16 / sizeof(T), PER_THREAD = LOADS * PER_LOAD;
	constexpr unsigned TILE = BLOCK * PER_THREAD;
	__shared__ T stage[TILE];
	__shared__ unsigned warp_counts[WARPS];
	__shared__ uint64_t first;
	const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
	const bool aligned = (uintptr_t)x % 16 == 0;
	const uint64_t tiles = n / TILE + (n % TILE != 0);

	for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
		const uint64_t begin = tile * TILE;
		vector<T> v[LOADS];
		unsigned kept = 0, upto, before = 0, total = 0, offset;
		uint64_t room;

		if (aligned && n - begin >= TILE) {
			const vector<T> *p = (const vector<T> *)(x + begin) + thread;

#pragma unroll
			for (unsigned j = 0; j < LOADS; j++)
				v[j] = p[j * BLOCK];
#pragma unroll
			for (unsigned k = 0; k < PER_THREAD; k++)
				kept |= (unsigned)keep(v[k / PER_LOAD].at[k % PER_LOAD], COMPARE,
						       value)
					<< k;
		} else {
#pragma unroll
			for (unsigned k = 0; k < PER_THREAD; k++) {
				const uint64_t i = begin + k * BLOCK + thread;

				if (i < n) {
					v[k / PER_LOAD].at[k % PER_LOAD] = x[i];
					kept |= (unsigned)keep(v[k / PER_LOAD].at[k % PER_LOAD],
							       COMPARE, value)
						<< k;
				}
			}
		}

		/* upto: what the lanes up to and with this one keep */
		upto = (unsigned)__popc(kept);
#pragma unroll
		for (unsigned d = 1; d < 32; d *= 2) {
			const unsigned below = __shfl_up_sync(0xffffffffu, upto, d);

			if (lane >= d)
				upto += below;
		}
		if (lane == 31)
			warp_counts[warp] = upto;
		__syncthreads();
#pragma unroll
		for (unsigned w = 0; w < WARPS; w++) {
			if (w < warp)
				before += warp_counts[w];
			total += warp_counts[w];
		}
		if (thread == 0 && total)
			first = cua_append_reserve(&view, total);
		offset = before + upto - (unsigned)__popc(kept);
#pragma unroll
		for (unsigned k = 0; k < PER_THREAD; k++)
			if (kept >> k & 1)
				stage[offset++] = v[k / PER_LOAD].at[k % PER_LOAD];
		__syncthreads();

		if (total && first < view.capacity) {
			T *out = (T *)view.items + first;

			room = view.capacity - first;
			if (room > total)
				room = total;
			for (unsigned i = thread; i < (unsigned)room; i += BLOCK)
				out[i] = stage[i];
		}
		/* the next tile overwrites what this one still reads */
		__syncthreads();
	}
}

template <typename T>
static enum cua_status filter(struct cua_context *ctx, const struct cua_append_view *view, size_t n,
			      const void *x, enum cua_compare compare, const void *host_value)
{
	void (*kernel)(struct cua_append_view, uint64_t, const T *, T);
	T value;

	memcpy(&value, host_value, sizeof(value));
	switch (compare) {
	case CUA_LT: kernel = filter_kernel<T, CUA_LT>; break;
	case CUA_LE: kernel = filter_kernel<T, CUA_LE>; break;
	case CUA_EQ: kernel = filter_kernel<T, CUA_EQ>; break;
	case CUA_NE: kernel = filter_kernel<T, CUA_NE>; break;
	case CUA_GE: kernel = filter_kernel<T, CUA_GE>; break;
	default: kernel = filter_kernel<T, CUA_GT>; break;
	}
	return cua__launch(
		ctx, kernel,
		cua__grid(ctx, n, BLOCK * LOADS * (16 / sizeof(T)), BLOCKS_PER_PROCESSOR), BLOCK, 0,
		*view, n, (const T *)x, value);
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_append_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 1, 0, *view, size);
}

static enum cua_status cuda_filter(struct cua_context *ctx, const struct cua_append_view *view,
				   enum cua_type type, size_t n, const void *x,
				   enum cua_compare compare, const void *value)
{
	switch (type) {
	case CUA_U32: return filter<uint32_t>(ctx, view, n, x, compare, value);
	case CUA_I32: return filter<int32_t>(ctx, view, n, x, compare, value);
	case CUA_U64: return filter<uint64_t>(ctx, view, n, x, compare, value);
	case CUA_I64: return filter<int64_t>(ctx, view, n, x, compare, value);
	case CUA_F32: return filter<float>(ctx, view, n, x, compare, value);
	default: return filter<double>(ctx, view, n, x, compare, value);
	}
}

const struct cua__append_ops cua__cuda_append = {cuda_size, cuda_filter};
