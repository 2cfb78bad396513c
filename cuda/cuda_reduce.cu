/* SPDX-License-Identifier: MIT */
/*
 * Reductions on a GPU. This file has the plain algorithm: a single kernel, which also finishes
 * across its blocks. Its blocks read the array with a stride of the grid. Each thread has several
 * 16-byte loads in flight. The tree (tree.h) serves mode FIXED, if the order can change a bit, and
 * every operation or type that the plain algorithm lacks.
 */
#include "config.h"

#include "kernels/cached.h"
#include "backend/reduce_backend.h"
#include "launch.h"
#include "cuda_tree.h"

/*
 * Threads of a multiprocessor with loads in flight, at 64 registers each: enough to saturate the
 * memory.
 */
#define THREADS_PER_SM 1024
#define AUTO_BLOCK_SIZE 256
#define MAX_BLOCK_SIZE 1024
#define MAX_BLOCKS_PER_SM 16
/* 16-byte loads in flight per thread, over all arrays. */
#define LOADS 8

/* The types and operations of a kernel. */
#define DEFINE_REDUCTION(name, op_name, type_name, T_, A_, R_, family, element_, value_, nothing_) \
	struct name {                                                                              \
		typedef T_ T;                                                                      \
		typedef A_ A;                                                                      \
		typedef R_ R;                                                                      \
		enum { DOT = CUA_REDUCE_##op_name == CUA_REDUCE_DOT };                             \
                                                                                                   \
		static __device__ __forceinline__ A element(T a, T b)                              \
		{                                                                                  \
			(void)b;                                                                   \
			return element_;                                                           \
		}                                                                                  \
		static __device__ __forceinline__ A combine(A a, A b)                              \
		{                                                                                  \
			return cua_combine_##family(a, b);                                         \
		}                                                                                  \
		static __device__ __forceinline__ A block(A v, struct cua_block_scratch *s)        \
		{                                                                                  \
			return cua_block_##family(v, s);                                           \
		}                                                                                  \
		static __device__ __forceinline__ int finish(const struct cua__reduce &r,          \
							     struct cua_block_scratch *s,          \
							     uint64_t block, A v, A *total)        \
		{                                                                                  \
			return cua_finish_##family(r.finish_mode, r.finish, s, (A *)r.partials,    \
						   block, r.blocks, v, total);                     \
		}                                                                                  \
		static __device__ __forceinline__ R value(A t)                                     \
		{                                                                                  \
			return value_;                                                             \
		}                                                                                  \
		static __device__ __forceinline__ R nothing(void)                                  \
		{                                                                                  \
			return nothing_;                                                           \
		}                                                                                  \
	};

namespace
{

CUA__REDUCE_LIST(DEFINE_REDUCTION)

template <typename T, int N> struct alignas(N * sizeof(T)) pack {
	T v[N];
};

template <typename Pack> __device__ __forceinline__ Pack load_pack(const Pack *p, uint64_t policy)
{
	struct cua__pack words;
	Pack v;

	if (sizeof(v) != sizeof(words))
		return *p;
	words = cua__cached_load(p, policy);
	memcpy(&v, &words, sizeof(v));
	return v;
}

/*
 * Adds this thread's share of m packs to the accumulators. The block processes a tile of AT_ONCE
 * packs per thread in each step; the last tile may be shorter.
 */
template <typename P, int N, int AT_ONCE>
__device__ __forceinline__ void reduce_packs(typename P::A (&acc)[4], const typename P::T *x,
					     const typename P::T *y, uint64_t m, uint64_t block,
					     uint64_t blocks, const struct cua__cached &cached)
{
	typedef pack<typename P::T, N> Pack;
	const Pack *xs = (const Pack *)x, *ys = (const Pack *)y;
	const uint64_t tile = (uint64_t)blockDim.x * AT_ONCE, stride = blocks * tile;

	for (uint64_t first = block * tile; first < m; first += stride) {
		if (m - first >= tile) {
			uint64_t policy_x = cua__cached_policy(&cached, xs + first);
			uint64_t policy_y = cua__cached_policy(&cached, ys + first);
			Pack a[AT_ONCE], b[AT_ONCE];

#pragma unroll
			for (int l = 0; l < AT_ONCE; l++) {
				uint64_t i = first + (uint64_t)l * blockDim.x + threadIdx.x;

				a[l] = load_pack(xs + i, policy_x);
				if (P::DOT)
					b[l] = load_pack(ys + i, policy_y);
			}
#pragma unroll
			for (int l = 0; l < AT_ONCE; l++) {
#pragma unroll
				for (int j = 0; j < N; j++) {
					typename P::A &t = acc[(l * N + j) % 4];

					t = P::combine(t,
						       P::element(a[l].v[j],
								  P::DOT ? b[l].v[j] : a[l].v[j]));
				}
			}
		} else {
			for (uint64_t i = first + threadIdx.x; i < m; i += blockDim.x) {
				Pack a = xs[i], b = P::DOT ? ys[i] : a;

#pragma unroll
				for (int j = 0; j < N; j++)
					acc[j] = P::combine(acc[j], P::element(a.v[j], b.v[j]));
			}
		}
	}
}

/* Reduces this thread's share of all elements. */
template <typename P>
__device__ __forceinline__ typename P::A reduce_part(const struct cua__reduce &r, uint64_t n,
						     uint64_t block)
{
	typedef typename P::T T;
	const int N = 16 / sizeof(T);
	const T *x = (const T *)r.x, *y = (const T *)r.y;
	const struct cua__cached cached =
		cua__cached(n * sizeof(T) * (P::DOT ? 2 : 1), r.kept_bytes);
	typename P::A acc[4] = {0, 0, 0, 0};

	if (P::DOT && (((uintptr_t)x ^ (uintptr_t)y) & 15)) {
		/* x and y have no 16-byte boundary in common */
		reduce_packs<P, 1, LOADS>(acc, x, y, n, block, r.blocks, cached);
	} else {
		uint64_t head = (-(uintptr_t)x & 15) / sizeof(T), m, tail;

		if (head > n)
			head = n;
		m = (n - head) / N;
		tail = head + m * N;
		reduce_packs<P, N, P::DOT ? LOADS / 2 : LOADS>(acc, x + head, y + head, m, block,
							       r.blocks, cached);
		/*
		 * fewer than N elements remain at either end; a block may have fewer threads than
		 * that
		 */
		if (block == 0) {
			for (uint64_t i = threadIdx.x; i < head; i += blockDim.x)
				acc[0] = P::combine(acc[0], P::element(x[i], P::DOT ? y[i] : x[i]));
			for (uint64_t i = tail + threadIdx.x; i < n; i += blockDim.x)
				acc[1] = P::combine(acc[1], P::element(x[i], P::DOT ? y[i] : x[i]));
		}
	}
	return P::combine(P::combine(acc[0], acc[1]), P::combine(acc[2], acc[3]));
}

/*
 * Without the bound of 1 block, the compiler limits itself to 32 registers and keeps a single load
 * in flight per thread.
 */
template <typename P>
__global__ void __launch_bounds__(MAX_BLOCK_SIZE, 1)
	reduce_kernel(const __grid_constant__ struct cua__reduce r)
{
	__shared__ struct cua_block_scratch scratch;

	cua__after_predecessor();
	uint64_t block = cua_finish_block(r.finish_mode, r.finish, &scratch);
	uint64_t n = cua__reduce_count(&r);
	typename P::A v = P::block(reduce_part<P>(r, n, block), &scratch);

	if (!P::finish(r, &scratch, block, v, &v))
		return;
	if (r.step == CUA__TREE_VALUE)
		*(typename P::A *)r.result = v;
	else
		*(typename P::R *)r.result = n ? P::value(v) : P::nothing();
}

} // namespace

/* Chooses a grid that is resident as a whole and divides the chunks evenly among its blocks. */
static void plan_tree(struct cua_context *ctx, struct cua__reduce *r)
{
	uint64_t chunks = r->step == CUA__TREE_ROOT
				  ? 1
				  : cua__tree_shape_of(r, r->n, cua_type_size(r->type)).chunks;
	uint64_t most = (uint64_t)ctx->processors * TREE_BLOCKS_PER_SM, each;

	if (!r->blocks) {
		each = (chunks - 1) / most + 1;
		r->blocks = (uint32_t)((chunks - 1) / each + 1);
	}
	r->block_size = CUA__TREE_THREADS;
}

/* Whether the accumulator of the plain algorithm is also the value of the kind. */
static int has_plain_value(const struct cua__reduce *r)
{
	if (r->step != CUA__TREE_VALUE || r->mode != CUA_REDUCE_FAST)
		return 0;
	return (r->op == CUA_REDUCE_SUM &&
		(r->kind == CUA__TREE_sum_f32 || r->kind == CUA__TREE_sum_f64)) ||
	       (r->op == CUA_REDUCE_DOT &&
		(r->kind == CUA__TREE_dot_f32 || r->kind == CUA__TREE_dot_f64));
}

static int uses_tree(const struct cua__reduce *r)
{
	if (r->step)
		return !has_plain_value(r);
	return r->finish_mode == CUA_FINISH_LAST_BLOCK &&
	       (!cua__reduce_in_any_order(r) || !cua__reduce_has_plain(r));
}

static void cuda_plan(struct cua_context *ctx, struct cua__reduce *r)
{
	int locked = r->finish_mode == CUA_FINISH_LOCK || r->finish_mode == CUA_FINISH_ORDERED_LOCK;
	unsigned per_sm = 1;

	r->kept_bytes = ctx->kept_bytes;
	if (uses_tree(r)) {
		plan_tree(ctx, r);
		return;
	}
	r->kind = CUA__TREE_NONE;
	/* each block takes the lock once, so few blocks are better */
	if (!r->block_size)
		r->block_size = locked ? MAX_BLOCK_SIZE : AUTO_BLOCK_SIZE;
	if (r->blocks)
		return;
	if (!locked && r->block_size < THREADS_PER_SM)
		per_sm = THREADS_PER_SM / r->block_size;
	if (per_sm > MAX_BLOCKS_PER_SM)
		per_sm = MAX_BLOCKS_PER_SM;
	r->blocks = cua__grid(ctx, r->n,
			      (uint64_t)r->block_size * LOADS * 16 /
				      (cua_type_size(r->type) * (r->op == CUA_REDUCE_DOT ? 2 : 1)),
			      per_sm);
}

static enum cua_status cuda_run(struct cua_context *ctx, const struct cua__reduce *r)
{
	switch (r->kind) {
#define RUN_TREE(kind, family)                                                                     \
	case CUA__TREE_##kind: return cua__tree_run_##family(ctx, r);
		CUA__TREE_KINDS(RUN_TREE)
	case CUA__TREE_NONE: break;
	}
#define RUN_REDUCTION(name, op_name, type_name, T, A, R, family, element, value, nothing)          \
	if (r->op == CUA_REDUCE_##op_name && r->type == CUA_##type_name)                           \
		return cua__launch_early(ctx, reduce_kernel<name>, r->blocks, r->block_size, 0, *r);
	CUA__REDUCE_LIST(RUN_REDUCTION)
	return CUA_ERROR_TYPE;
}

/* In the order of the struct's members. */
const struct cua__reduce_ops cua__cuda_reduce = {cuda_plan, cuda_run};
