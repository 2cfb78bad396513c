/* SPDX-License-Identifier: MIT */
/* The append buffer inside kernels, and its host calls in graphs. */
#include "device.h"

/* ---- a view over memory of the test's own, with a guard behind the items ---- */

#define GUARD 4096u

struct own {
	struct cua_append_view view;
	char *memory;
};

static struct own own_create(uint64_t item_size, uint64_t capacity)
{
	struct own b;
	size_t bytes = (size_t)(item_size * capacity) + GUARD;

	memset(&b, 0, sizeof(b));
	ck_assert_cuda(cudaMalloc((void **)&b.memory, bytes));
	ck_assert_cuda(cudaMemset(b.memory, 0xee, bytes));
	b.view.items = b.memory;
	ck_assert_cuda(cudaMalloc((void **)&b.view.cursor, sizeof(*b.view.cursor)));
	ck_assert_cuda(cudaMemset(b.view.cursor, 0, sizeof(*b.view.cursor)));
	b.view.capacity = capacity;
	b.view.item_size = item_size;
	b.view.layout = CUA_APPEND_LAYOUT;
	return b;
}

static uint64_t own_demand(const struct own *b)
{
	uint64_t demand = UINT64_MAX;

	ck_assert_cuda(cudaMemcpy(&demand, b->view.cursor, sizeof(demand), cudaMemcpyDeviceToHost));
	return demand;
}

/* Checks the guard and copies the items to the host. The caller frees them. */
static void *own_items(const struct own *b)
{
	size_t bytes = (size_t)(b->view.item_size * b->view.capacity);
	unsigned char *host = (unsigned char *)test_malloc(bytes + GUARD);

	ck_assert_cuda(cudaMemcpy(host, b->memory, bytes + GUARD, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < GUARD; i++)
		if (host[bytes + i] != 0xee)
			ck_abort_msg("a store %zu bytes past the end", i);
	return host;
}

static void own_destroy(struct own *b)
{
	ck_assert_cuda(cudaFree(b->memory));
	ck_assert_cuda(cudaFree(b->view.cursor));
}

/* ---- pushes ---- */

struct triple {
	uint32_t a, b, c;
};
CUA_DEFINE_APPEND(triple, struct triple)

enum way { LANE, WARP, DIVERGED_LANE, DIVERGED_WARP, SOME_OF_WARP, WAYS };

/* Thread number i pushes the items i * each to i * each + each - 1 of 64 bits. */
static __global__ void push_kernel(struct cua_append_view view, int way, uint32_t each,
				   unsigned long long *stored)
{
	const uint64_t thread = cua_port_block() * cua_port_block_size() + cua_port_thread();
	const uint32_t lane = cua_port_lane();
	/* the last warp of a block may have fewer lanes */
	const uint32_t rest = cua_port_block_size() - cua_port_thread() / 32 * 32;
	const uint32_t full = rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
	unsigned long long mine = 0;

	for (uint32_t k = 0; k < each; k++) {
		const uint64_t v = thread * each + k;

		switch (way) {
		case LANE: mine += cua_append_push_u64(&view, v); break;
		case WARP: mine += cua_append_push_warp_u64(&view, full, 1, v); break;
		case DIVERGED_LANE:
			if ((lane ^ k) & 1)
				mine += cua_append_push_u64(&view, v);
			else
				mine += cua_append_push(&view, &v);
			break;
		case DIVERGED_WARP: {
			/* two diverged groups call at different times, each with its own mask */
			const int side = (lane + k) % 3 == 0;
			const uint32_t mask = cua_port_ballot(full, side);

			if (side)
				mine += cua_append_push_warp_u64(&view, mask, 1, v);
			else
				mine += cua_append_push_warp_u64(&view, full & ~mask, 1, v);
			cua_port_sync_warp(full);
			break;
		}
		default: {
			/*
			 * two calls: lanes with a true predicate, then lanes with a false one;
			 * sometimes all are false
			 */
			const int first = k % 4 == 3 ? 0 : (int)((lane * 7 + k) % 5 < 2);

			mine += cua_append_push_warp_u64(&view, full, first, v);
			mine += cua_append_push_warp_u64(&view, full, !first, v);
			break;
		}
		}
	}
	atomicAdd(stored, mine);
}

START_TEST(test_pushes)
{
	static const struct {
		unsigned grid, block;
	} shapes[] = {{1, 1}, {1, 32}, {1, 33}, {3, 100}, {64, 256}, {40, 1024}};
	const uint32_t each = 5;
	unsigned long long *stored, got_stored;

	ck_assert_cuda(cudaMalloc((void **)&stored, sizeof(*stored)));
	for (size_t s = 0; s < COUNT(shapes); s++) {
		const uint64_t all = (uint64_t)shapes[s].grid * shapes[s].block * each;
		unsigned char *seen = (unsigned char *)test_malloc(all);

		/* a capacity above the count, one below it, a third of it, and zero */
		for (int room = 0; room < 4; room++) {
			const uint64_t capacity = room == 0   ? all + 3
						  : room == 1 ? all - 1
						  : room == 2 ? all / 3
							      : 0;
			const uint64_t expected = capacity < all ? capacity : all;

			for (int way = 0; way < WAYS; way++) {
				struct own b = own_create(8, capacity);
				uint64_t *items;

				ck_assert_cuda(cudaMemset(stored, 0, sizeof(*stored)));
				push_kernel<<<shapes[s].grid, shapes[s].block>>>(b.view, way, each,
										 stored);
				finish_kernel();
				ck_assert_cuda(cudaMemcpy(&got_stored, stored, sizeof(got_stored),
							  cudaMemcpyDeviceToHost));
				ck_assert_uint_eq(own_demand(&b), all);
				ck_assert_uint_eq(got_stored, expected);
				items = (uint64_t *)own_items(&b);
				memset(seen, 0, all);
				for (uint64_t i = 0; i < expected; i++) {
					if (items[i] >= all || seen[items[i]])
						ck_abort_msg("way %d: %llu is not there once", way,
							     (unsigned long long)items[i]);
					seen[items[i]] = 1;
				}
				free(items);
				own_destroy(&b);
			}
		}
		free(seen);
	}
	ck_assert_cuda(cudaFree(stored));
}
END_TEST

/* Reservations of different lengths, and a user's item type. */
static __global__ void reserve_kernel(struct cua_append_view view)
{
	const uint32_t thread =
		(uint32_t)cua_port_block() * cua_port_block_size() + cua_port_thread();
	const uint32_t n = thread % 5;
	const uint64_t first = cua_append_reserve(&view, n);
	struct triple t;

	t.a = thread;
	for (uint32_t k = 0; k < n; k++) {
		struct triple *place = (struct triple *)cua_append_at(&view, first + k);

		if (!place)
			continue;
		t.b = k;
		t.c = (uint32_t)first;
		*place = t;
	}
	t.b = 77;
	t.c = ~thread;
	if (thread % 2)
		cua_append_push_triple(&view, t);
	cua_append_push_warp_triple(&view, 0xffffffffu, thread % 2 == 0, t);
}

START_TEST(test_reserve)
{
	const uint32_t grid = 30, block = 128, threads = grid * block;
	const uint64_t all =
		(uint64_t)threads / 5 * 10 + threads % 5 * (threads % 5 - 1) / 2 + threads;

	for (int room = 0; room < 2; room++) {
		const uint64_t capacity = room ? all : all / 2 + 1;
		struct own b = own_create(sizeof(struct triple), capacity);
		unsigned char *pushed = (unsigned char *)test_malloc(threads);
		struct triple *t;
		uint64_t n_pushed = 0;

		reserve_kernel<<<grid, block>>>(b.view);
		finish_kernel();
		ck_assert_uint_eq(own_demand(&b), all);
		t = (struct triple *)own_items(&b);
		memset(pushed, 0, threads);
		for (uint64_t i = 0; i < capacity; i++) {
			int good;

			if (t[i].b == 77) {
				good = t[i].a < threads && t[i].c == ~t[i].a && !pushed[t[i].a]++;
				n_pushed++;
			} else {
				/* the items of a range are consecutive */
				good = t[i].a < threads && t[i].b < t[i].a % 5 &&
				       t[i].c + t[i].b == i;
			}
			if (!good)
				ck_abort_msg("item %llu", (unsigned long long)i);
		}
		ck_assert(n_pushed == threads || !room);
		free(t);
		free(pushed);
		own_destroy(&b);
	}
}
END_TEST

/* ---- a block together ---- */

CUA_DEFINE_APPEND_STAGE(wide, uint64_t, 512u)

/*
 * Thread number i makes the items i * each to i * each + each - 1. It pushes multiples of 3 if bit
 * 0 of `bits` is set, all other items if bit 1 is set. So lanes sometimes diverge.
 */
static __global__ void stage_kernel(struct cua_append_view view, uint32_t each, uint32_t n,
				    int bits)
{
	__shared__ struct cua_append_stage_wide stage;
	const uint64_t thread = cua_port_block() * cua_port_block_size() + cua_port_thread();

	cua_append_stage_init_wide(&stage);
	for (uint32_t k = 0; k < each; k++) {
		const uint64_t v = thread * each + k;

		cua_append_stage_make_room_wide(&view, &stage, n);
		if (v % 3 == 0) {
			if (bits & 1)
				cua_append_stage_push_wide(&view, &stage, v);
		} else if (bits & 2) {
			cua_append_stage_push_wide(&view, &stage, v);
		}
	}
	cua_append_stage_flush_wide(&view, &stage);
}

static __global__ void reserve_block_kernel(struct cua_append_view view, uint32_t each, int bits)
{
	__shared__ struct cua_block_scratch scratch;
	const uint64_t thread = cua_port_block() * cua_port_block_size() + cua_port_thread();
	uint64_t offset;
	uint32_t mine = 0;

	for (uint32_t k = 0; k < each; k++)
		mine += bits >> ((thread * each + k) % 3 != 0) & 1;
	offset = cua_append_reserve_block(&view, mine, &scratch);
	for (uint32_t k = 0; k < each; k++) {
		const uint64_t v = thread * each + k;
		uint64_t *item;

		if (!(bits >> (v % 3 != 0) & 1))
			continue;
		item = (uint64_t *)cua_append_at(&view, offset++);
		if (item)
			*item = v;
	}
}

CUA_DEFINE_FILTER(thirds, uint64_t, int, c >> (x % 3 != 0) & 1 && x == i)

static __global__ void predicate_kernel(struct cua_append_view view, uint64_t n, const uint64_t *x,
					int bits)
{
	__shared__ struct cua_append_stage_thirds stage;

	cua_filter_by_thirds(&view, n, x, bits, &stage);
}

START_TEST(test_block)
{
	static const struct {
		unsigned grid, block;
	} shapes[] = {{1, 1}, {1, 33}, {3, 100}, {64, 256}, {20, 1024}};
	const uint32_t each = 7;

	for (size_t s = 0; s < COUNT(shapes); s++) {
		const uint64_t all = (uint64_t)shapes[s].grid * shapes[s].block * each;
		unsigned char *seen = (unsigned char *)test_malloc(all);
		uint64_t *x = (uint64_t *)managed(all * sizeof(*x));

		for (uint64_t i = 0; i < all; i++)
			x[i] = i;
		for (int way = 0; way < 5; way++)
			for (int bits = 0; bits < 4; bits++)
				for (int room = 0; room < 3; room++) {
					const uint64_t wanted =
						(bits & 1 ? (all + 2) / 3 : 0) +
						(bits & 2 ? all - (all + 2) / 3 : 0);
					const uint64_t capacity = room == 0   ? wanted + 3
								  : room == 1 ? wanted / 2
									      : 0;
					struct own b = own_create(8, capacity);
					/* n: the exact number, too few, or the whole stage */
					const uint32_t n =
						way == 0 ? (shapes[s].block < 512 ? shapes[s].block
										  : 512)
						: way == 1 ? 1
							   : 512;
					uint64_t *items;

					if (way < 3)
						stage_kernel<<<shapes[s].grid, shapes[s].block>>>(
							b.view, each, n, bits);
					else if (way == 3)
						reserve_block_kernel<<<shapes[s].grid,
								       shapes[s].block>>>(
							b.view, each, bits);
					else
						predicate_kernel<<<shapes[s].grid,
								   shapes[s].block>>>(b.view, all,
										      x, bits);
					finish_kernel();
					ck_assert_uint_eq(own_demand(&b), wanted);
					items = (uint64_t *)own_items(&b);
					memset(seen, 0, all);
					for (uint64_t i = 0;
					     i < (wanted < capacity ? wanted : capacity); i++) {
						if (items[i] >= all || seen[items[i]] ||
						    !(bits >> (items[i] % 3 != 0) & 1))
							ck_abort_msg(
								"way %d: %llu should not be there",
								way, (unsigned long long)items[i]);
						seen[items[i]] = 1;
					}
					free(items);
					own_destroy(&b);
				}
		free(seen);
		ck_assert_cuda(cudaFree(x));
	}
}
END_TEST

/* ---- graphs ---- */

/*
 * Reset, filter and counts in a graph, replayed on changing data; sometimes the capacity is too
 * small.
 */
START_TEST(test_graph)
{
	enum { N = 50021 };
	const uint64_t capacity = 20000;
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint32_t *host = (uint32_t *)test_malloc(N * sizeof(*host));
	uint32_t *x = (uint32_t *)test_alloc(ctx, N * sizeof(*x)), one = 0;
	uint64_t *results = (uint64_t *)test_alloc(ctx, 2 * sizeof(*results)), got[2], n = 99;
	struct cua_append *b, *late = NULL;
	cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	enum cua_status statuses[6];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	ck_assert_cua(cua_append_create(ctx, sizeof(*x), capacity, &b));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	ck_assert_cua(cua_append_reset(b));
	ck_assert_cua(cua_filter_u32(ctx, N, x, CUA_LT, 1000, b));
	ck_assert_cua(cua_filter_u32(ctx, N - 1, x + 1, CUA_GE, 5000, b));
	ck_assert_cua(cua_append_demand(b, &results[0]));
	ck_assert_cua(cua_append_size(b, &results[1]));
	/* a call that would have to wait: refused, and the capture continues */
	statuses[0] = cua_append_demand(b, &n);
	statuses[1] = cua_append_size(b, &n);
	statuses[2] = cua_append_status(b);
	statuses[3] = cua_append_read(b, &one, 1, &n);
	statuses[4] = cua_append_create(ctx, 4, 4, &late);
	statuses[5] = cua_append_destroy(b);
	ck_assert_cuda(cudaStreamIsCapturing(stream, &capturing));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_int_eq((int)capturing, (int)cudaStreamCaptureStatusActive);
	for (size_t i = 0; i < COUNT(statuses); i++)
		ck_assert_status(statuses[i], CUA_ERROR_CAPTURE);
	ck_assert_uint_eq(n, 99);
	ck_assert_ptr_null(late);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t replay = 0; replay < 6; replay++) {
		uint64_t expected = 0, stored;
		uint64_t sum = 0, got_sum = 0;
		uint32_t *items;

		for (uint32_t i = 0; i < N; i++) {
			host[i] = (i * 7919 + replay) % (2000 + replay * 2000);
			expected += (host[i] < 1000) + (i && host[i] >= 5000);
			sum += (host[i] < 1000 ? host[i] : 0) +
			       (i && host[i] >= 5000 ? host[i] : 0);
		}
		stored = expected < capacity ? expected : capacity;
		ck_assert_cuda(
			cudaMemcpyAsync(x, host, N * sizeof(*x), cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(
			cudaMemcpyAsync(got, results, sizeof(got), cudaMemcpyDeviceToHost, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_uint_eq(got[0], expected);
		ck_assert_uint_eq(got[1], stored);
		ck_assert_status(cua_append_status(b),
				 expected > capacity ? CUA_ERROR_FULL : CUA_OK);
		items = (uint32_t *)test_malloc((size_t)capacity * sizeof(*items));
		ck_assert_cua(cua_append_read(b, items, capacity, &n));
		ck_assert_uint_eq(n, stored);
		for (uint64_t i = 0; i < n; i++) {
			got_sum += items[i];
			if (items[i] >= 1000 && items[i] < 5000)
				ck_abort_msg("%u was kept", items[i]);
		}
		if (stored == expected)
			ck_assert_uint_eq(got_sum, sum);
		free(items);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_append_destroy(b));
	test_free(ctx, x);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* Filters in order, of few and of many tiles, in place, with indexes and a partition, replayed on changing data. */
START_TEST(test_filter_graph)
{
	enum { N = 3000017, FEW = 20000 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	uint32_t *host = (uint32_t *)test_malloc(N * sizeof(*host)),
		 *back = (uint32_t *)test_malloc(N * sizeof(*back));
	uint32_t *x = (uint32_t *)test_alloc(ctx, N * sizeof(*x)),
		 *out = (uint32_t *)test_alloc(ctx, N * sizeof(*out));
	uint32_t *split = (uint32_t *)test_alloc(ctx, N * sizeof(*split));
	uint64_t *indexes = (uint64_t *)test_alloc(ctx, FEW * sizeof(*indexes));
	uint64_t *back_indexes = (uint64_t *)test_malloc(FEW * sizeof(*back_indexes));
	uint64_t *counts = (uint64_t *)test_alloc(ctx, 4 * sizeof(*counts)), got[4];
	const uint32_t limit = 5000;
	size_t bytes = 0;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	o.ordered = 1;
	ck_assert_cua(cua_filter_workspace(ctx, &o, CUA_U32, N, &bytes));
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	o.partition = 1;
	ck_assert_cua(cua_filter_workspace(ctx, &o, CUA_U32, N, &bytes));
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	ck_assert_cua(
		cua_filter_array(ctx, &o, CUA_U32, N, x, CUA_LT, &limit, N, split, &counts[0]));
	o.partition = 0;
	ck_assert_cua(cua_filter_array(ctx, &o, CUA_U32, N, x, CUA_GE, &limit, N, out, &counts[1]));
	o.indexes = indexes;
	o.index_type = CUA_U64;
	ck_assert_cua(
		cua_filter_array(ctx, &o, CUA_U32, FEW, x, CUA_GE, &limit, FEW, NULL, &counts[2]));
	o.indexes = NULL;
	o.index_type = (enum cua_type)0;
	o.ordered = 0;
	ck_assert_cua(cua_filter_array(ctx, &o, CUA_U32, N, x, CUA_LT, &limit, N, x, &counts[3]));
	ck_assert_status(cua_filter_array(ctx, &o, CUA_U32, N, x, CUA_LT, &limit, N, out, &got[0]),
			 CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t replay = 0; replay < 4; replay++) {
		uint64_t below = 0, above = 0, few = 0;

		for (uint32_t i = 0; i < N; i++)
			host[i] = mix(i + replay) % (limit * (1 + replay * replay));
		ck_assert_cuda(
			cudaMemcpyAsync(x, host, N * sizeof(*x), cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_cuda(cudaMemcpy(got, counts, sizeof(got), cudaMemcpyDeviceToHost));
		ck_assert_cuda(cudaMemcpy(back, split, N * sizeof(*back), cudaMemcpyDeviceToHost));
		ck_assert_cuda(cudaMemcpy(back_indexes, indexes, FEW * sizeof(*indexes),
					  cudaMemcpyDeviceToHost));
		for (uint32_t i = 0; i < N; i++)
			if (host[i] < limit) {
				if (back[below] != host[i])
					ck_abort_msg("replay %u: offset %u of the partition",
						     replay, (unsigned)below);
				below++;
			} else {
				if (back[got[0] + above] != host[i])
					ck_abort_msg("replay %u: offset %u of the others", replay,
						     (unsigned)above);
				if (i < FEW && back_indexes[few++] != i)
					ck_abort_msg("replay %u: index %u", replay, i);
				above++;
			}
		ck_assert_uint_eq(got[0], below);
		ck_assert_uint_eq(got[1], above);
		ck_assert_uint_eq(got[2], few);
		ck_assert_uint_eq(got[3], below);
		/*
		 * the rejected elements alone equal the second part of the partition; in place, the
		 * array begins with the first part
		 */
		ck_assert_cuda(
			cudaMemcpy(host, out, above * sizeof(*host), cudaMemcpyDeviceToHost));
		ck_assert_mem_eq(host, back + below, above * sizeof(*host));
		ck_assert_cuda(cudaMemcpy(host, x, below * sizeof(*host), cudaMemcpyDeviceToHost));
		ck_assert_mem_eq(host, back, below * sizeof(*host));
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	test_free(ctx, x);
	test_free(ctx, out);
	test_free(ctx, split);
	test_free(ctx, indexes);
	test_free(ctx, counts);
	free(host);
	free(back);
	free(back_indexes);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* Elements and results in managed and in pinned memory, with a user's kernel between the calls. */
static __global__ void keep_odd(struct cua_append_view view, const uint32_t *x, uint32_t n)
{
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t v = i < n ? x[i] : 0;

	cua_append_push_warp_u32(&view, 0xffffffffu, i < n && v % 2, v);
}

START_TEST(test_memory)
{
	enum { N = 10000 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_append_view view;
	struct cua_append *b;
	uint64_t *counts;
	uint32_t *pinned, *managed;
	void *items;
	int has_managed = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&has_managed, cudaDevAttrManagedMemory, 0));
	ck_assert_cuda(cudaMallocHost((void **)&pinned, N * sizeof(*pinned)));
	ck_assert_cuda(cudaMallocHost((void **)&counts, 3 * sizeof(*counts)));
	for (uint32_t i = 0; i < N; i++)
		pinned[i] = i;
	ck_assert_cua(cua_append_create(ctx, sizeof(uint32_t), N, &b));
	ck_assert_cua(cua_append_get_view(b, &view));
	ck_assert_cua(cua_append_items(b, &items));
	ck_assert_cua(cua_filter_u32(ctx, N, pinned, CUA_LT, 100, b));
	ck_assert_cua(cua_append_size(b, &counts[0]));
	keep_odd<<<(N + 255) / 256, 256>>>(view, pinned, N);
	ck_assert_cua(cua_append_demand(b, &counts[1]));
	ck_assert_cua(cua_append_read(b, pinned, N, &counts[2]));
	finish_kernel();
	ck_assert_uint_eq(counts[0], 100);
	ck_assert_uint_eq(counts[1], 100 + N / 2);
	ck_assert_uint_eq(counts[2], 100 + N / 2);
	for (uint32_t i = 0; i < 100 + N / 2; i++)
		if (i < 100 ? pinned[i] >= 100 : pinned[i] % 2 == 0)
			ck_abort_msg("item %u is %u", i, pinned[i]);
	if (has_managed) {
		ck_assert_cuda(cudaMallocManaged((void **)&managed, N * sizeof(*managed),
						 cudaMemAttachGlobal));
		for (uint32_t i = 0; i < N; i++)
			managed[i] = i;
		ck_assert_cua(cua_append_reset(b));
		ck_assert_cua(cua_filter_u32(ctx, N - 3, managed + 3, CUA_GT, 9000, b));
		ck_assert_cua(cua_append_demand(b, &counts[0]));
		ck_assert_cua(cua_context_synchronize(ctx));
		ck_assert_uint_eq(counts[0], 999);
		ck_assert_cuda(cudaFree(managed));
	}
	ck_assert_cua(cua_append_destroy(b));
	ck_assert_cuda(cudaFreeHost(pinned));
	ck_assert_cuda(cudaFreeHost(counts));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_append");
	TCase *tc = tcase_create("device_append");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_pushes);
	tcase_add_test(tc, test_reserve);
	tcase_add_test(tc, test_block);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_filter_graph);
	tcase_add_test(tc, test_memory);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
