/* SPDX-License-Identifier: MIT */
/* The hash map inside kernels: invariants of any mix of operations. Also bulk calls in graphs. */
#include "device.h"

static uint64_t *device_zeros(size_t n)
{
	uint64_t *p = NULL;

	ck_assert_cuda(cudaMalloc((void **)&p, n * sizeof(*p)));
	ck_assert_cuda(cudaMemset(p, 0, n * sizeof(*p)));
	return p;
}

static const enum cua_type types[2] = {CUA_U32, CUA_U64};

static struct cua_hashmap *new_map(struct cua_context *ctx, enum cua_type key_type,
				   enum cua_type value_type, uint64_t capacity)
{
	struct cua_hashmap *map = NULL;

	ck_assert_cua(cua_hashmap_create(ctx, NULL, key_type, value_type, capacity, &map));
	return map;
}

static struct cua_hashmap *new_counter_map(struct cua_context *ctx, enum cua_type key_type,
					   enum cua_type value_type, uint64_t capacity)
{
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	struct cua_hashmap *map = NULL;

	options.no_erase = 1;
	ck_assert_cua(cua_hashmap_create(ctx, &options, key_type, value_type, capacity, &map));
	return map;
}

static struct cua_hashmap_view view_of(struct cua_hashmap *map)
{
	struct cua_hashmap_view view;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	return view;
}

static uint64_t size_of(struct cua_hashmap *map)
{
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_size(map, &size));
	return size;
}

#define ADD(p, v) cua_port_add_u64(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL)

/* The high half of a value holds its key, so find can check it. */
CUA_FN uint64_t value_of(const struct cua_hashmap_view *view, uint64_t key, uint64_t low)
{
	return view->value_size == 8 ? key << 32 | (low & 0xffff) : key << 16 | (low & 0xff);
}

CUA_FN uint64_t key_of(const struct cua_hashmap_view *view, uint64_t value)
{
	return value >> (view->value_size == 8 ? 32 : 16);
}

/* ---- any mix on few keys ---- */

enum { HOT = 12, WRONG = 2 * HOT, FULL, COUNTERS };

/* Counters: HOT inserted, HOT erased, then impossible results, and rejected keys. */
static __global__ void mix_kernel(struct cua_hashmap_view view, uint64_t seed, unsigned rounds,
				  uint64_t *counters)
{
	uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t r = cua_hash_u64(thread * rounds + i, seed), value = 0;
		uint64_t key = (r >> 32) % HOT;
		int result = 0;

		switch (r % 8) {
		case 0:
		case 1:
			result = cua_hashmap_insert(&view, key, value_of(&view, key, r >> 8));
			break;
		case 2:
			result = cua_hashmap_assign(&view, key, value_of(&view, key, r >> 8));
			break;
		case 3:
			result = cua_hashmap_update(&view, key, value_of(&view, key, r >> 8),
						    r & 256 ? CUA_UPDATE_MIN : CUA_UPDATE_MAX);
			break;
		case 4:
			if (cua_hashmap_erase(&view, key))
				ADD(&counters[HOT + key], 1);
			break;
		default:
			if (cua_hashmap_find(&view, key, &value) && key_of(&view, value) != key)
				ADD(&counters[WRONG], 1);
		}
		if (result == CUA_HASHMAP_INSERTED)
			ADD(&counters[key], 1);
		if (result == CUA_HASHMAP_FULL)
			ADD(&counters[FULL], 1);
	}
}

START_TEST(test_mix)
{
	uint64_t seed = test_seed("test_mix");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 4 : 132, threads = test_quick() ? 64 : 128;
	const unsigned rounds = test_quick() ? 4 : 12;

	for (int t = 0; t < 4; t++)
		for (int small = 0; small < 2; small++) {
			struct cua_hashmap *map =
				new_map(ctx, types[t & 1], types[t >> 1], small ? 5 : 3 * HOT);
			uint64_t *device = device_zeros(COUNTERS), counters[COUNTERS];
			uint64_t *keys = device_zeros(HOT), *values = device_zeros(HOT);
			uint64_t host[HOT], n = 0, size = 0;
			uint64_t present[HOT] = {0};
			char raw[HOT * 8];
			size_t key_size = cua_type_size(types[t & 1]);

			mix_kernel<<<blocks, threads>>>(view_of(map), seed + (uint64_t)t, rounds,
							device);
			finish_kernel();
			ck_assert_cuda(cudaMemcpy(counters, device, sizeof(counters),
						  cudaMemcpyDeviceToHost));
			ck_assert_uint_eq(counters[WRONG], 0);
			ck_assert(small || !counters[FULL]);
			ck_assert_status(cua_hashmap_status(map),
					 counters[FULL] ? CUA_ERROR_FULL : CUA_OK);
			ck_assert_cua(
				cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, HOT, keys, values, &n));
			ck_assert_uint_le(n, HOT);
			test_download(ctx, raw, keys, n * key_size);
			for (uint64_t i = 0; i < n; i++) {
				host[i] = 0;
				memcpy(&host[i], raw + i * key_size, key_size);
				ck_assert_uint_lt(host[i], HOT);
				present[host[i]]++;
			}
			for (int key = 0; key < HOT; key++) {
				ck_assert_uint_eq(counters[key] - counters[HOT + key],
						  present[key]);
				ck_assert_uint_le(present[key], 1);
				size += present[key];
			}
			ck_assert_uint_eq(size_of(map), size);
			ck_assert_cuda(cudaFree(device));
			ck_assert_cuda(cudaFree(keys));
			ck_assert_cuda(cudaFree(values));
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- as many keys as slots, each written by a single thread: FULL is an error ---- */

static __global__ void own_kernel(struct cua_hashmap_view view, unsigned n, uint64_t seed,
				  unsigned rounds, uint64_t *wrong)
{
	unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;

	if (thread >= n)
		return;
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t low = cua_hash_u64((uint64_t)thread * rounds + i, seed), value = 0;
		uint64_t key = thread + (i & 1) * (uint64_t)n,
			 other = (low >> 32) % (2 * (uint64_t)n);
		unsigned bad = 0;

		bad += cua_hashmap_insert(&view, key, value_of(&view, key, low)) !=
		       CUA_HASHMAP_INSERTED;
		bad += !cua_hashmap_find(&view, key, &value) || value != value_of(&view, key, low);
		bad += cua_hashmap_insert(&view, key, 0) != CUA_HASHMAP_EXISTS;
		bad += cua_hashmap_assign(&view, key, value_of(&view, key, low + 1)) !=
		       CUA_HASHMAP_EXISTS;
		bad += !cua_hashmap_find(&view, key, &value) ||
		       value != value_of(&view, key, low + 1);
		bad += cua_hashmap_find(&view, other, &value) && key_of(&view, value) != other;
		bad += !cua_hashmap_erase(&view, key);
		bad += cua_hashmap_contains(&view, key);
		bad += cua_hashmap_erase(&view, key);
		if (bad)
			ADD(wrong, bad);
	}
}

START_TEST(test_own_keys)
{
	uint64_t seed = test_seed("test_own_keys");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint64_t *wrong = device_zeros(1), host = 0;

	for (int t = 0; t < 4; t++) {
		struct cua_hashmap *map =
			new_map(ctx, types[t & 1], types[t >> 1], test_quick() ? 35 : 700);
		uint64_t slots = 0;

		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		/* small blocks, which spread over the multiprocessors */
		own_kernel<<<(unsigned)(slots + 31) / 32, 32>>>(view_of(map), (unsigned)slots, seed,
								test_quick() ? 3 : 40, wrong);
		finish_kernel();
		test_download(ctx, &host, wrong, sizeof(host));
		ck_assert_uint_eq(host, 0);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_uint_eq(size_of(map), 0);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	ck_assert_cuda(cudaFree(wrong));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- one free slot, many threads ---- */

static __global__ void last_slot_kernel(struct cua_hashmap_view view, uint64_t *counters)
{
	uint64_t key = 1000000 + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	int result = cua_hashmap_insert(&view, key, key);

	ADD(&counters[result & 3], 1);
}

START_TEST(test_last_slot)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 2 : 100, threads = test_quick() ? 64 : 128;
	struct cua_hashmap *map = new_map(ctx, CUA_U64, CUA_U64, test_quick() ? 20 : 1000);
	uint64_t slots = 0, *keys, *counters = device_zeros(4), got[4], n = 0;

	ck_assert_cua(cua_hashmap_capacity(map, &slots));
	keys = (uint64_t *)test_malloc(slots * 8);
	/* without the reserved keys 0 and 1 */
	for (uint64_t i = 0; i < slots; i++)
		keys[i] = 2 + i;
	for (int round = 0; round < (test_quick() ? 2 : 20); round++) {
		uint64_t *filled = (uint64_t *)test_upload(ctx, keys, slots * 8);

		ck_assert_cua(cua_hashmap_clear(map));
		ck_assert_cua(cua_hashmap_insert_n(map, slots - 1, filled, filled, NULL));
		ck_assert_cuda(cudaMemset(counters, 0, 32));
		last_slot_kernel<<<blocks, threads>>>(view_of(map), counters);
		finish_kernel();
		test_download(ctx, got, counters, sizeof(got));
		ck_assert_uint_eq(got[CUA_HASHMAP_INSERTED], 1);
		ck_assert_uint_eq(got[CUA_HASHMAP_FULL], (uint64_t)blocks * threads - 1);
		ck_assert_uint_eq(got[CUA_HASHMAP_EXISTS] + got[0], 0);
		ck_assert_uint_eq(size_of(map), slots);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
		test_free(ctx, filled);
	}
	ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 0, NULL, NULL, &n));
	ck_assert_uint_eq(n, slots);
	free(keys);
	ck_assert_cuda(cudaFree(counters));
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- find during erases and inserts; permanent keys are always found ---- */

static __global__ void churn_kernel(struct cua_hashmap_view view, uint64_t n_moving,
				    uint64_t n_staying, unsigned rounds, uint64_t seed,
				    uint64_t *wrong)
{
	uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t r = cua_hash_u64(thread * rounds + i, seed), value = 0;
		uint64_t moving = r % n_moving, stays = n_moving + (r >> 20) % n_staying;
		unsigned bad = 0;

		if (blockIdx.x & 1) {
			if (r >> 63)
				cua_hashmap_erase(&view, moving);
			else
				bad += cua_hashmap_insert(&view, moving,
							  value_of(&view, moving, r)) ==
				       CUA_HASHMAP_FULL;
		} else {
			bad += cua_hashmap_find(&view, moving, &value) &&
			       key_of(&view, value) != moving;
		}
		bad += !cua_hashmap_find(&view, stays, &value) ||
		       value != value_of(&view, stays, 1);
		if (bad)
			ADD(wrong, bad);
	}
}

static __global__ void stay_kernel(struct cua_hashmap_view view, uint64_t first, uint64_t n)
{
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * blockDim.x)
		cua_hashmap_insert(&view, first + i, value_of(&view, first + i, 1));
}

START_TEST(test_churn)
{
	uint64_t seed = test_seed("test_churn");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 4 : 264, threads = test_quick() ? 64 : 128;
	uint64_t *wrong = device_zeros(1), host = 0;

	for (int t = 0; t < 4; t++) {
		struct cua_hashmap *map = new_map(ctx, types[t & 1], types[t >> 1], 700);

		stay_kernel<<<2, 64>>>(view_of(map), 300, 250);
		churn_kernel<<<blocks, threads>>>(view_of(map), 300, 250, test_quick() ? 4 : 200,
						  seed, wrong);
		finish_kernel();
		test_download(ctx, &host, wrong, sizeof(host));
		ck_assert_uint_eq(host, 0);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	ck_assert_cuda(cudaFree(wrong));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- sums: no addition is lost ---- */

static __global__ void sum_kernel(struct cua_hashmap_view view, uint64_t n_keys, unsigned rounds,
				  uint64_t *inserted)
{
	for (unsigned i = 0; i < rounds; i++)
		/* half of a warp on one key, the diverged other half on another key */
		if (threadIdx.x & 16) {
			if (cua_hashmap_update(&view, i % n_keys, 1, CUA_UPDATE_ADD) ==
			    CUA_HASHMAP_INSERTED)
				ADD(inserted, 1);
		} else if (cua_hashmap_update(&view, (threadIdx.x + i) % n_keys, 1,
					      CUA_UPDATE_ADD) == CUA_HASHMAP_INSERTED) {
			ADD(inserted, 1);
		}
}

static __global__ void total_kernel(struct cua_hashmap_view view, uint64_t n_keys, uint64_t *total)
{
	uint64_t sum = 0, value;

	for (uint64_t key = 0; key < n_keys; key++)
		sum += cua_hashmap_find(&view, key, &value) ? value : 0;
	*total = sum;
}

START_TEST(test_sums)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 2 : 32, threads = 64, rounds = test_quick() ? 2 : 9;

	for (int t = 0; t < 8; t++)
		for (uint64_t n_keys = 1; n_keys <= 100; n_keys = n_keys * 10) {
			struct cua_hashmap *map = (t & 4 ? new_counter_map : new_map)(
				ctx, types[t & 1], types[t >> 1 & 1], n_keys);
			uint64_t *counters = device_zeros(2), got[2];

			sum_kernel<<<blocks, threads>>>(view_of(map), n_keys, rounds, counters);
			total_kernel<<<1, 1>>>(view_of(map), n_keys, counters + 1);
			finish_kernel();
			test_download(ctx, got, counters, sizeof(got));
			ck_assert_uint_eq(got[0], size_of(map));
			ck_assert_uint_eq(got[1], (uint64_t)blocks * threads * rounds);
			ck_assert_cuda(cudaFree(counters));
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- maps that never erase ---- */

CUA_DEFINE_HASHMAP(counter, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE_OP(counter_or, counter, CUA_UPDATE_OR)

CUA_FN uint32_t operand_of(unsigned lane, unsigned round, int op)
{
	const uint32_t bits = (uint32_t)cua_hash_u64(lane, round);

	/* few bits change, so the results of AND and OR are not trivial */
	return op == CUA_UPDATE_AND  ? ~(bits & 1 ? 1u << (bits >> 8) % 32 : 0)
	       : op == CUA_UPDATE_OR ? (bits & 1 ? 1u << (bits >> 8) % 32 : 0)
				     : bits;
}

/*
 * Each lane updates a key and finds it. Halves of a warp diverge, and lanes of one warp have the
 * same key, different keys, or different operations.
 */
static __global__ void never_kernel(struct cua_hashmap_view view, unsigned n_keys, unsigned rounds,
				    int op, uint64_t *wrong)
{
	const unsigned lane = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < rounds; i++) {
		const uint32_t key = (lane + i) % n_keys, operand = operand_of(lane, i, op);
		uint64_t value = 0;
		int result;

		if (lane + i & 16)
			result = cua_hashmap_update(&view, key, operand, (enum cua_update)op);
		else if (op == CUA_UPDATE_OR)
			result = counter_or(&view, key, operand);
		else
			result = cua_hashmap_update(&view, key, operand, (enum cua_update)op);
		if (result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_EXISTS)
			ADD(wrong, 1);
		if (!cua_hashmap_find(&view, key, &value) ||
		    (op == CUA_UPDATE_OR && (value & operand) != operand) ||
		    (op == CUA_UPDATE_AND && (value & ~(uint64_t)operand)) ||
		    (op == CUA_UPDATE_MIN && value > operand) ||
		    (op == CUA_UPDATE_MAX && value < operand))
			ADD(wrong, 1);
		if (cua_hashmap_erase(&view, key))
			ADD(wrong, 1);
	}
}

START_TEST(test_never_erases)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 3 : 64, threads = 96, rounds = test_quick() ? 3 : 40;
	uint64_t *wrong = device_zeros(1), host = 99;

	for (int op = CUA_UPDATE_ADD; op <= CUA_UPDATE_XOR; op++)
		for (unsigned n_keys = 1; n_keys <= 1000; n_keys = n_keys * 9 + 1) {
			struct cua_hashmap *map = new_counter_map(ctx, CUA_U32, CUA_U32, n_keys);
			uint32_t *expected = (uint32_t *)test_malloc(n_keys * sizeof(*expected));
			uint8_t *seen = (uint8_t *)test_malloc(n_keys);
			struct cua_hashmap_view view = view_of(map);

			memset(seen, 0, n_keys);
			for (unsigned lane = 0; lane < blocks * threads; lane++)
				for (unsigned i = 0; i < rounds; i++) {
					const unsigned key = (lane + i) % n_keys;
					const struct cua_u128 old = {expected[key], 0},
							      operand = {operand_of(lane, i, op),
									 0};

					expected[key] =
						(uint32_t)(seen[key] ? cua__hashmap_combine(
									       old, operand, 4,
									       (enum cua_update)op)
									       .lo
								     : operand.lo);
					seen[key] = 1;
				}
			never_kernel<<<blocks, threads>>>(view, n_keys, rounds, op, wrong);
			finish_kernel();
			test_download(ctx, &host, wrong, sizeof(host));
			ck_assert_uint_eq(host, 0);
			for (uint32_t key = 0; key < n_keys; key++) {
				uint32_t *k = (uint32_t *)test_upload(ctx, &key, sizeof(key));
				uint32_t *v = (uint32_t *)device_zeros(1), value = 99;

				if (key > 20 && key + 20 < n_keys)
					continue;
				ck_assert_cua(cua_hashmap_find_n(map, 1, k, v, NULL));
				test_download(ctx, &value, v, sizeof(value));
				EXPECT(!seen[key] || value == expected[key],
				       "operation %d, %u keys: key %u has %u, not %u", op, n_keys,
				       key, value, expected[key]);
				test_free(ctx, k);
				ck_assert_cuda(cudaFree(v));
			}
			free(expected);
			free(seen);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	ck_assert_cuda(cudaFree(wrong));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the hash of byte strings, at every alignment and length ---- */

#define STRING_BYTES 300

static __global__ void hash_kernel(const unsigned char *bytes, uint64_t *hashes)
{
	hashes[blockIdx.x * STRING_BYTES + threadIdx.x] =
		cua_hash_bytes(bytes + blockIdx.x, threadIdx.x, blockIdx.x);
}

START_TEST(test_hash_bytes)
{
	enum { STARTS = 9 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned char host[STARTS + STRING_BYTES], *bytes;
	uint64_t got[STARTS * STRING_BYTES], *hashes = device_zeros(STARTS * STRING_BYTES);

	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 37 + (i >> 3) + 11);
	bytes = (unsigned char *)test_upload(ctx, host, sizeof(host));
	hash_kernel<<<STARTS, STRING_BYTES>>>(bytes, hashes);
	finish_kernel();
	test_download(ctx, got, hashes, sizeof(got));
	for (size_t start = 0; start < STARTS; start++)
		for (size_t n = 0; n < STRING_BYTES; n++)
			ck_assert_uint_eq(got[start * STRING_BYTES + n],
					  cua_hash_bytes(host + start, n, start));
	ck_assert_cuda(cudaFree(hashes));
	test_free(ctx, bytes);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- graphs ---- */

START_TEST(test_graph)
{
	enum { N = 4000, KEYS = 500 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_hashmap *map = new_map(ctx, CUA_U64, CUA_U64, N);
	uint64_t *keys = device_zeros(N), *ones = device_zeros(N), *got = device_zeros(N);
	uint64_t *all_keys = device_zeros(N), *all_values = device_zeros(N),
		 *results = device_zeros(4);
	uint8_t *flags = (uint8_t *)device_zeros(N), *absent = flags + N, *present = flags + 2 * N;
	uint64_t host[N], host_values[N], expected[KEYS], host_results[4], on_host = 77;
	uint8_t host_flags[3 * N];
	enum cua_status refused[4];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int replays = test_quick() ? 2 : 10;
	/*
	 * the first half has an array of operands, the second half a single operand, which the
	 * graph copies
	 */
	uint64_t one = 1;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < N; i++)
		host[i] = 1;
	ck_assert_cuda(cudaMemcpy(ones, host, sizeof(host), cudaMemcpyHostToDevice));
	ck_assert_cuda(cudaDeviceSynchronize());
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_hashmap_clear(map));
	ck_assert_cua(cua_hashmap_update_n(map, CUA_UPDATE_ADD, N / 2, keys, ones, flags));
	ck_assert_cua(cua_hashmap_update_value_n(map, CUA_UPDATE_ADD, N - N / 2, keys + N / 2, &one,
						 flags + N / 2));
	one = 1000;
	ck_assert_cua(cua_hashmap_insert_n(map, N, keys, keys, NULL));
	ck_assert_cua(cua_hashmap_size(map, results));
	ck_assert_cua(cua_hashmap_find_n(map, N, keys, got, NULL));
	ck_assert_cua(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, N, all_keys, all_values, results + 1));
	ck_assert_cua(cua_hashmap_contains_n(map, N, keys, present));
	ck_assert_cua(cua_hashmap_erase_n(map, N, keys, NULL));
	ck_assert_cua(cua_hashmap_contains_n(map, N, keys, absent));
	ck_assert_cua(cua_hashmap_size(map, results + 2));
	ck_assert_cua(cua_hashmap_assign_n(map, 1, keys, ones, NULL));
	ck_assert_cua(cua_hashmap_size(map, results + 3));
	/* a call that would have to wait is refused and does not end the capture */
	refused[0] = cua_hashmap_status(map);
	refused[1] = cua_hashmap_size(map, &on_host);
	refused[2] = cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, N, all_keys, all_values, &on_host);
	refused[3] = cua_hashmap_destroy(map);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	for (int i = 0; i < 4; i++)
		ck_assert_status(refused[i], CUA_ERROR_CAPTURE);
	ck_assert_uint_eq(on_host, 77);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < replays; replay++) {
		uint64_t distinct = 0, inserted = 0;

		memset(expected, 0, sizeof(expected));
		for (int i = 0; i < N; i++) {
			host[i] = (uint64_t)i * (uint64_t)(i + replay) % (uint64_t)(KEYS - replay);
			distinct += !expected[host[i]]++;
		}
		ck_assert_cuda(cudaMemcpy(keys, host, sizeof(host), cudaMemcpyHostToDevice));
		ck_assert_cuda(cudaDeviceSynchronize());
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_cuda(cudaMemcpy(host_results, results, sizeof(host_results),
					  cudaMemcpyDeviceToHost));
		ck_assert_cuda(
			cudaMemcpy(host_values, got, sizeof(host_values), cudaMemcpyDeviceToHost));
		ck_assert_cuda(
			cudaMemcpy(host_flags, flags, sizeof(host_flags), cudaMemcpyDeviceToHost));
		ck_assert_uint_eq(host_results[0], distinct);
		ck_assert_uint_eq(host_results[1], distinct);
		ck_assert_uint_eq(host_results[2], 0);
		ck_assert_uint_eq(host_results[3], 1);
		for (int i = 0; i < N; i++) {
			ck_assert_uint_eq(host_values[i], expected[host[i]]);
			inserted += host_flags[i] == CUA_HASHMAP_INSERTED;
			ck_assert_uint_ne(host_flags[i], CUA_HASHMAP_FULL);
			ck_assert_uint_eq(host_flags[N + i], 0);
			ck_assert_uint_eq(host_flags[2 * N + i], 1);
		}
		ck_assert_uint_eq(inserted, distinct);
		ck_assert_cuda(cudaMemcpy(host, all_keys, distinct * 8, cudaMemcpyDeviceToHost));
		ck_assert_cuda(
			cudaMemcpy(host_values, all_values, distinct * 8, cudaMemcpyDeviceToHost));
		for (uint64_t i = 0; i < distinct; i++) {
			ck_assert_uint_lt(host[i], KEYS);
			ck_assert_uint_eq(host_values[i], expected[host[i]]);
			expected[host[i]] = 0;
		}
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_uint_eq(size_of(map), 1);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_hashmap_destroy(map));
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaFree(ones));
	ck_assert_cuda(cudaFree(got));
	ck_assert_cuda(cudaFree(all_keys));
	ck_assert_cuda(cudaFree(all_values));
	ck_assert_cuda(cudaFree(results));
	ck_assert_cuda(cudaFree(flags));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* ---- many keys at once ---- */

static __global__ void fill_keys(uint32_t *keys, uint64_t n, uint32_t distinct, uint32_t first)
{
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * blockDim.x)
		keys[i] = distinct ? (uint32_t)(cua_hash_u64(i, 5) % distinct)
				   : (first + (uint32_t)i) * 2654435761u;
}

static __global__ void count_flags(const uint8_t *flags, uint64_t n, uint8_t flag, uint64_t *count)
{
	uint64_t mine = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * blockDim.x)
		mine += flags[i] == flag;
	ADD(count, mine);
}

struct timing {
	cudaEvent_t start, stop;
};

static void time_begin(struct timing *t)
{
	ck_assert_cuda(cudaEventRecord(t->start, 0));
}

static void time_end(struct timing *t, uint64_t n, const char *what)
{
	float ms = 0;

	ck_assert_cuda(cudaEventRecord(t->stop, 0));
	ck_assert_cuda(cudaEventSynchronize(t->stop));
	ck_assert_cuda(cudaEventElapsedTime(&ms, t->start, t->stop));
	printf("  %s: %.3f ms, %.3f G/s\n", what, ms, (double)n / ms / 1e6);
	fflush(stdout);
}

static uint64_t flagged(struct cua_context *ctx, const uint8_t *flags, uint64_t n, uint8_t flag)
{
	uint64_t *count = device_zeros(1), host = 0;

	count_flags<<<128, 256>>>(flags, n, flag, count);
	finish_kernel();
	test_download(ctx, &host, count, sizeof(host));
	ck_assert_cuda(cudaFree(count));
	return host;
}

START_TEST(test_many)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const uint64_t n = test_quick() ? 3000 : 26214400;
	static const uint32_t distinct[] = {1, 2, 1000};
	uint32_t *keys = (uint32_t *)device_zeros(n / 2), *values = (uint32_t *)device_zeros(n / 2);
	uint8_t *flags = (uint8_t *)device_zeros(n / 8);
	struct timing t;

	ck_assert_cuda(cudaEventCreate(&t.start));
	ck_assert_cuda(cudaEventCreate(&t.stop));
	for (int load = 5; load <= 9; load += load == 5 ? 3 : 1) {
		struct cua_hashmap *map = new_map(ctx, CUA_U32, CUA_U32, n * 10 / (uint64_t)load);

		printf("%llu keys, 4 + 4, load 0.%d\n", (unsigned long long)n, load);
		for (int twice = 0; twice < 2; twice++) {
			fill_keys<<<256, 256>>>(keys, n, 0, 0);
			finish_kernel();
			ck_assert_cua(cua_hashmap_clear(map));
			time_begin(&t);
			ck_assert_cua(cua_hashmap_insert_n(map, n, keys, keys, flags));
			time_end(&t, n, "insert");
			ck_assert_uint_eq(flagged(ctx, flags, n, CUA_HASHMAP_INSERTED), n);
			ck_assert_uint_eq(size_of(map), n);
			time_begin(&t);
			ck_assert_cua(cua_hashmap_find_n(map, n, keys, values, flags));
			time_end(&t, n, "find hit");
			ck_assert_uint_eq(flagged(ctx, flags, n, 1), n);
			/* the values equal the keys, so these are present, too */
			ck_assert_cua(cua_hashmap_contains_n(map, n, values, flags));
			ck_assert_uint_eq(flagged(ctx, flags, n, 1), n);
			time_begin(&t);
			ck_assert_cua(
				cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, keys, flags));
			time_end(&t, n, "update");
			ck_assert_uint_eq(flagged(ctx, flags, n, CUA_HASHMAP_EXISTS), n);
			fill_keys<<<256, 256>>>(keys, n, 0, (uint32_t)n);
			finish_kernel();
			time_begin(&t);
			ck_assert_cua(cua_hashmap_find_n(map, n, keys, values, flags));
			time_end(&t, n, "find miss");
			ck_assert_uint_eq(flagged(ctx, flags, n, 0), n);
			fill_keys<<<256, 256>>>(keys, n, 0, 0);
			finish_kernel();
			time_begin(&t);
			ck_assert_cua(cua_hashmap_erase_n(map, n, keys, flags));
			time_end(&t, n, "erase");
			ck_assert_uint_eq(flagged(ctx, flags, n, 1), n);
			ck_assert_uint_eq(size_of(map), 0);
		}
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	for (int d = 0; d < 3; d++) {
		struct cua_hashmap *map = new_map(ctx, CUA_U32, CUA_U64, 2000);
		uint64_t *total = device_zeros(1), host = 0, *ones = device_zeros(n);

		printf("%llu keys, %u of them distinct\n", (unsigned long long)n, distinct[d]);
		ck_assert_cua(cua_fill(ctx, ones, n, 8, "\1\0\0\0\0\0\0"));
		fill_keys<<<256, 256>>>(keys, n, distinct[d], 0);
		finish_kernel();
		time_begin(&t);
		ck_assert_cua(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, ones, flags));
		time_end(&t, n, "update");
		ck_assert_uint_eq(flagged(ctx, flags, n, CUA_HASHMAP_INSERTED), size_of(map));
		total_kernel<<<1, 1>>>(view_of(map), distinct[d], total);
		finish_kernel();
		test_download(ctx, &host, total, sizeof(host));
		ck_assert_uint_eq(host, n);
		ck_assert_cua(cua_hashmap_clear(map));
		time_begin(&t);
		ck_assert_cua(cua_hashmap_insert_n(map, n, keys, ones, flags));
		time_end(&t, n, "insert");
		ck_assert_uint_eq(flagged(ctx, flags, n, CUA_HASHMAP_INSERTED), size_of(map));
		time_begin(&t);
		ck_assert_cua(cua_hashmap_erase_n(map, n, keys, flags));
		time_end(&t, n, "erase");
		ck_assert_uint_eq(size_of(map), 0);
		ck_assert_cuda(cudaFree(total));
		ck_assert_cuda(cudaFree(ones));
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	ck_assert_cuda(cudaEventDestroy(t.start));
	ck_assert_cuda(cudaEventDestroy(t.stop));
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaFree(values));
	ck_assert_cuda(cudaFree(flags));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_hashmap");
	TCase *tc = tcase_create("device_hashmap");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_mix);
	tcase_add_test(tc, test_own_keys);
	tcase_add_test(tc, test_last_slot);
	tcase_add_test(tc, test_churn);
	tcase_add_test(tc, test_sums);
	tcase_add_test(tc, test_never_erases);
	tcase_add_test(tc, test_hash_bytes);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_many);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
