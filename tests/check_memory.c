/* SPDX-License-Identifier: MIT */
#include "common.h"

/*
 * Whether a test may exhaust the memory. A sanitizer's allocator ends the program.
 * compute-sanitizer (with small sizes) reports the refusal as an error.
 */
static int may_run_out(void)
{
	return !SANITIZED && !(TEST_BACKEND == CUA_BACKEND_CUDA && test_quick());
}

/* Guard bytes before and after the output of a call; no call may write them. */
#define GUARD 64

static const size_t pattern_sizes[] = {1, 2, 4, 8, 16};

static void random_bytes(uint64_t *seed, void *p, size_t bytes)
{
	unsigned char *out = p;

	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(test_random(seed) >> 40);
}

static void model_fill(unsigned char *p, size_t bytes, const void *pattern, size_t pattern_bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = ((const unsigned char *)pattern)[i % pattern_bytes];
}

/* ---- allocation ---- */

typedef enum cua_status allocate_fn(struct cua_context *, size_t, size_t, void **);

/* Each allocation of 0 bytes returns a distinct pointer, and cua_free accepts it. */
static void check_empty(struct cua_context *ctx, allocate_fn *allocate)
{
	static const size_t shapes[][2] = {{0, 0}, {0, 1}, {1, 0}, {0, SIZE_MAX}, {SIZE_MAX, 0}};
	void *p[5];

	for (int i = 0; i < 5; i++) {
		p[i] = NULL;
		ck_assert_cua(allocate(ctx, shapes[i][0], shapes[i][1], &p[i]));
		ck_assert_ptr_nonnull(p[i]);
		for (int k = 0; k < i; k++)
			ck_assert_ptr_ne(p[k], p[i]);
	}
	for (int i = 0; i < 5; i++)
		ck_assert_cua(cua_free(ctx, p[i]));
}

static void check_errors(struct cua_context *ctx, allocate_fn *allocate)
{
	static const size_t over[][2] = {{SIZE_MAX, 1},
					 {1, SIZE_MAX},
					 {SIZE_MAX / 2 + 1, 1},
					 {SIZE_MAX / 2, 3},
					 {SIZE_MAX, SIZE_MAX},
					 {SIZE_MAX / 2 + 1, 2},
					 {(size_t)1 << 32, (size_t)1 << 32}};
	void *p = &p;

	ck_assert_status(allocate(NULL, 1, 1, &p), CUA_ERROR_NULL);
	ck_assert_status(allocate(NULL, 0, 0, &p), CUA_ERROR_NULL);
	ck_assert_status(allocate(ctx, 1, 1, NULL), CUA_ERROR_NULL);
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++)
		ck_assert_status(allocate(ctx, over[i][0], over[i][1], &p), CUA_ERROR_SIZE);
	if (may_run_out())
		ck_assert_status(allocate(ctx, SIZE_MAX / 16, 4, &p), CUA_ERROR_NO_MEMORY);
	ck_assert_ptr_eq(p, &p);
}

START_TEST(allocation)
{
	static const size_t sizes[] = {0, 1, 2, 255, 256, 257, 4095, 65537, (size_t)1 << 20};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	void *p, *kept[sizeof(sizes) / sizeof(sizes[0])];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		kept[i] = NULL;
		ck_assert_cua(i % 2 ? cua_alloc(ctx, sizes[i], 1, &kept[i])
				    : cua_alloc(ctx, 1, sizes[i], &kept[i]));
		ck_assert_ptr_nonnull(kept[i]);
		ck_assert_uint_eq((uintptr_t)kept[i] % 256, 0);
		for (size_t k = 0; k < i; k++)
			ck_assert_ptr_ne(kept[k], kept[i]);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ck_assert_cua(cua_free(ctx, kept[i]));
	ck_assert_cua(cua_free(ctx, NULL));

	p = &p;
	check_empty(ctx, cua_alloc);
	check_errors(ctx, cua_alloc);
	p = NULL;
	ck_assert_cua(cua_alloc(ctx, 1001, 12, &p));
	ck_assert_cua(cua_fill(ctx, p, 1001 * 3, 4, "abc"));
	test_free(ctx, p);
	ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
	ck_assert_status(cua_free(NULL, NULL), CUA_ERROR_NULL);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(zeros)
{
	static const size_t counts[] = {1, 3, 1000, 100003}, sizes[] = {1, 4, 12, 32};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	void *dirty, *p = NULL;

	for (size_t i = 0; i < 16; i++) {
		size_t n = counts[i / 4], size = sizes[i % 4], sum = 0;
		unsigned char *host = test_malloc(n * size);

		/* most likely the same memory as before */
		dirty = test_alloc(ctx, n * size);
		test_free(ctx, dirty);
		ck_assert_cua(cua_alloc_zero(ctx, n, size, &p));
		ck_assert_uint_eq((uintptr_t)p % 256, 0);
		test_download(ctx, host, p, n * size);
		for (size_t k = 0; k < n * size; k++)
			sum += host[k] != 0;
		ck_assert_uint_eq(sum, 0);
		test_free(ctx, p);
		free(host);
	}
	check_empty(ctx, cua_alloc_zero);
	check_errors(ctx, cua_alloc_zero);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Memory for host and device at once, if the hardware has it; device_lock_forms.cu tests whether it
 * must.
 */
START_TEST(system_memory)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_pointer_info info = CUA_POINTER_INFO_INIT;
	uint32_t *words;
	void *p = &p;
	enum cua_status status;

	ck_assert_status(cua_alloc_system(NULL, 1, 4, &p), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_system(ctx, 1, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_system(ctx, SIZE_MAX / 2, 3, &p), CUA_ERROR_SIZE);
	ck_assert_ptr_eq(p, &p);
	status = cua_alloc_system(ctx, 1001, 4, &p);
	if (TEST_BACKEND == CUA_BACKEND_CUDA && status == CUA_ERROR_UNSUPPORTED) {
		ck_assert_ptr_eq(p, &p);
		ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
		ck_assert_cua(cua_context_synchronize(ctx));
	} else {
		ck_assert_cua(status);
		check_empty(ctx, cua_alloc_system);
		words = p;
		for (int i = 0; i < 1001; i++)
			ck_assert_uint_eq(words[i], 0);
		words[1000] = 7;
		ck_assert_cua(cua_pointer_query(ctx, p, &info));
		ck_assert_int_eq(info.accessible, 1);
		ck_assert_int_eq(info.host_accessible, 1);
		test_free(ctx, p);
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(free_of_what_is_no_allocation)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	unsigned char out[256], in[256];
	char *p = test_alloc(ctx, 256), *host = test_malloc(64);
	static int variable;

	memset(in, 0x5a, sizeof(in));
	ck_assert_cua(cua_copy(ctx, p, in, sizeof(in)));
	ck_assert_status(cua_free(ctx, &variable), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(ctx, host), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(ctx, p + 1), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(ctx, p + 255), CUA_ERROR_MEMORY_KIND);
	test_download(ctx, out, p, sizeof(out));
	ck_assert_mem_eq(in, out, sizeof(out));
	test_free(ctx, p);
	ck_assert_status(cua_free(ctx, p), CUA_ERROR_MEMORY_KIND);
	/* a status, but no error that a later call would report */
	ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
	ck_assert_cua(cua_context_synchronize(ctx));
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(random_allocations)
{
	enum { SLOTS = 64 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct {
		char *p;
		size_t size;
	} slots[SLOTS] = {{NULL, 0}};
	uint64_t seed = test_seed("random_allocations");
	int rounds = test_quick() ? 200 : 3000;

	for (int i = 0; i < rounds; i++) {
		unsigned s = (unsigned)(test_random(&seed) % SLOTS);

		if (slots[s].p) {
			struct cua_pointer_info info = CUA_POINTER_INFO_INIT;
			size_t inside = (size_t)(test_random(&seed) % slots[s].size);

			ck_assert_cua(cua_pointer_query(ctx, slots[s].p + inside, &info));
			ck_assert_ptr_eq(info.base, slots[s].p);
			ck_assert_uint_ge(info.size, slots[s].size);
			ck_assert_int_eq(info.accessible, 1);
			ck_assert_int_eq((int)info.backend, (int)TEST_BACKEND);
			test_free(ctx, slots[s].p);
			slots[s].p = NULL;
		} else {
			slots[s].size = 1 + (size_t)(test_random(&seed) % 10000);
			slots[s].p = test_alloc(ctx, slots[s].size);
		}
		for (unsigned k = 0; k < SLOTS && i % 100 == 0; k++)
			for (unsigned j = 0; j < k; j++)
				ck_assert(!slots[k].p || !slots[j].p ||
					  slots[k].p + slots[k].size <= slots[j].p ||
					  slots[j].p + slots[j].size <= slots[k].p);
	}
	for (unsigned s = 0; s < SLOTS; s++)
		test_free(ctx, slots[s].p);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- copies ---- */

START_TEST(copies)
{
	enum { ROOM = 100000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("copies");
	unsigned char *model = test_malloc(2 * ROOM), *host = test_malloc(ROOM);
	char *a = test_alloc(ctx, ROOM), *b = test_alloc(ctx, ROOM);

	random_bytes(&seed, model, 2 * ROOM);
	ck_assert_cua(cua_copy(ctx, a, model, ROOM));
	ck_assert_cua(cua_copy(ctx, b, model + ROOM, ROOM));
	for (int i = 0; i < 200; i++) {
		size_t most = i % 2 ? ROOM : 40;
		size_t bytes = (size_t)(test_random(&seed) % most);
		size_t from = (size_t)(test_random(&seed) % (ROOM - bytes + 1));
		size_t to = (size_t)(test_random(&seed) % (ROOM - bytes + 1));

		switch (test_random(&seed) % 4) {
		case 0: /* backend to backend */
			ck_assert_cua(cua_copy(ctx, b + to, a + from, bytes));
			memcpy(model + ROOM + to, model + from, bytes);
			break;
		case 1:
			ck_assert_cua(cua_copy(ctx, a + to, b + from, bytes));
			memcpy(model + to, model + ROOM + from, bytes);
			break;
		case 2: /* host to backend: the source may change at once */
			random_bytes(&seed, host, bytes);
			ck_assert_cua(cua_copy(ctx, a + to, host, bytes));
			memcpy(model + to, host, bytes);
			memset(host, 0, bytes);
			break;
		default: /* backend to host: the result is there at once */
			memset(host, 0, bytes);
			ck_assert_cua(cua_copy(ctx, host, b + from, bytes));
			ck_assert(!bytes || !memcmp(host, model + ROOM + from, bytes));
		}
	}
	test_download(ctx, host, a, ROOM);
	ck_assert_mem_eq(host, model, ROOM);
	test_download(ctx, host, b, ROOM);
	ck_assert_mem_eq(host, model + ROOM, ROOM);
	/* host to host */
	ck_assert_cua(cua_copy(ctx, host, model, ROOM));
	ck_assert_mem_eq(host, model, ROOM);
	test_free(ctx, a);
	test_free(ctx, b);
	free(model);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(copy_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	unsigned char before[512], after[512];
	char *p;

	for (int i = 0; i < 512; i++)
		before[i] = (unsigned char)(i * 7);
	p = test_upload(ctx, before, sizeof(before));
	ck_assert_status(cua_copy(NULL, p, before, 8), CUA_ERROR_NULL);
	ck_assert_status(cua_copy(ctx, NULL, before, 8), CUA_ERROR_NULL);
	ck_assert_status(cua_copy(ctx, p, NULL, 8), CUA_ERROR_NULL);
	ck_assert_status(cua_copy(ctx, p, before, SIZE_MAX), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy(ctx, p, before, SIZE_MAX / 2 + 1), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy(ctx, p, (char *)UINTPTR_MAX - 3, 8), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy(ctx, (char *)UINTPTR_MAX - 3, before, 8), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy(ctx, p, p, 8), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_copy(ctx, p + 7, p, 8), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_copy(ctx, p, p + 7, 8), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_copy(ctx, p, p + 100, 256), CUA_ERROR_OVERLAP);
	test_download(ctx, after, p, sizeof(after));
	ck_assert_mem_eq(before, after, sizeof(after));

	ck_assert_cua(cua_copy(ctx, NULL, NULL, 0));
	ck_assert_cua(cua_copy(ctx, p, p, 0));
	/* adjacent ranges do not overlap */
	ck_assert_cua(cua_copy(ctx, p + 8, p, 8));
	ck_assert_cua(cua_copy(ctx, p + 100, p + 108, 8));
	memcpy(before + 8, before, 8);
	memcpy(before + 100, before + 108, 8);
	test_download(ctx, after, p, sizeof(after));
	ck_assert_mem_eq(before, after, sizeof(after));
	test_free(ctx, p);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- fills ---- */

/* Fills `count` patterns at an offset, and compares all surrounding memory with the model. */
static void try_fill(struct cua_context *ctx, char *p, unsigned char *model, unsigned char *out,
		     size_t room, size_t offset, size_t count, size_t pattern_bytes,
		     const void *pattern)
{
	ck_assert_cua(cua_fill(ctx, p + offset, count, pattern_bytes, pattern));
	model_fill(model + offset, count * pattern_bytes, pattern, pattern_bytes);
	test_download(ctx, out, p, room);
	ck_assert_msg(!memcmp(out, model, room), "fill of %zu x %zu at %zu", count, pattern_bytes,
		      offset);
}

START_TEST(fill_small)
{
	enum { ROOM = 512 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("fill_small");
	unsigned char model[ROOM], out[ROOM], pattern[16];
	char *p;
	size_t step = TEST_BACKEND == CUA_BACKEND_CUDA ? 7 : 1;

	random_bytes(&seed, model, ROOM);
	p = test_upload(ctx, model, ROOM);
	for (size_t k = 0; k < 5; k++) {
		size_t size = pattern_sizes[k];

		/* every alignment, and all counts with no body or a short body */
		for (size_t offset = GUARD; offset < GUARD + 32; offset += size)
			for (size_t count = 0; count * size <= 200;
			     count += count < 18 ? 1 : step) {
				random_bytes(&seed, pattern, sizeof(pattern));
				try_fill(ctx, p, model, out, ROOM, offset, count, size, pattern);
			}
	}
	test_free(ctx, p);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(fill_large)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("fill_large");
	const size_t room = test_quick() ? 300000 : 9000000;
	unsigned char *model = test_malloc(room), *out = test_malloc(room), pattern[16];
	char *p;

	memset(model, 1, room);
	p = test_upload(ctx, model, room);
	for (int i = 0; i < (test_quick() ? 10 : 40); i++) {
		size_t size = pattern_sizes[i % 5];
		/* lengths: around a block's tile, and up to the whole array */
		size_t most = i < 10 ? 20000 : room - 2 * GUARD;
		size_t count = (size_t)(test_random(&seed) % (most / size));
		size_t offset = GUARD + (size_t)(test_random(&seed) % 16) / size * size;

		if (i == 30)
			count = (room - 2 * GUARD) / size;
		cua_context_set_threads(ctx, 1 + (unsigned)i % 5);
		random_bytes(&seed, pattern, sizeof(pattern));
		if (i % 7 == 3)
			memset(pattern, i, sizeof(pattern));
		try_fill(ctx, p, model, out, room, offset, count, size, pattern);
	}
	test_free(ctx, p);
	free(model);
	free(out);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(fill_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	unsigned char before[512], after[512];
	const uint64_t pattern[2] = {1, 2};
	char *p;

	for (int i = 0; i < 512; i++)
		before[i] = (unsigned char)(i * 5);
	p = test_upload(ctx, before, sizeof(before));
	ck_assert_status(cua_fill(NULL, p, 4, 4, pattern), CUA_ERROR_NULL);
	ck_assert_status(cua_fill(ctx, NULL, 4, 4, pattern), CUA_ERROR_NULL);
	ck_assert_status(cua_fill(ctx, p, 4, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_fill(ctx, p, 4, 0, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill(ctx, p, 4, 3, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill(ctx, p, 4, 12, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill(ctx, p, 4, 32, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill(ctx, p, 4, SIZE_MAX, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill(ctx, p, SIZE_MAX, 1, pattern), CUA_ERROR_SIZE);
	ck_assert_status(cua_fill(ctx, p, SIZE_MAX / 16 + 2, 16, pattern), CUA_ERROR_SIZE);
	for (size_t k = 1; k < 5; k++)
		for (size_t off = 1; off < pattern_sizes[k]; off++)
			ck_assert_status(cua_fill(ctx, p + off, 2, pattern_sizes[k], pattern),
					 CUA_ERROR_ALIGNMENT);
	test_download(ctx, after, p, sizeof(after));
	ck_assert_mem_eq(before, after, sizeof(after));

	ck_assert_cua(cua_fill(ctx, NULL, 0, 4, pattern));
	ck_assert_cua(cua_fill(ctx, p, 0, 16, pattern));
	/* the pattern may have any address */
	ck_assert_cua(cua_fill(ctx, p, 32, 16, before + 1));
	model_fill(after, sizeof(after), before + 1, 16);
	test_download(ctx, before, p, sizeof(before));
	ck_assert_mem_eq(before, after, sizeof(after));
#if TEST_CUDA
	ck_assert_status(cua_fill(ctx, p, 4, 4, p + 256), CUA_ERROR_MEMORY_KIND);
	test_download(ctx, before, p, sizeof(before));
	ck_assert_mem_eq(before, after, sizeof(after));
#endif
	test_free(ctx, p);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements, and more than 2^32 bytes. */
START_TEST(fill_huge)
{
	const size_t count = ((size_t)1 << 31) + 7, chunk = (size_t)1 << 26;
	const size_t bytes = count * 2;
	struct cua_context *ctx;
	const uint16_t pattern = 0xa55a;
	uint64_t available = 0, total;
	unsigned char *out, *expected, *p, last = 0;
	void *memory = NULL;

	if (test_quick() || SANITIZED) {
		printf("fill_huge: skipped, sizes are small\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
	ck_assert_cua(cua_memory_info(ctx, &available, &total));
	if (available < 2 * (uint64_t)bytes ||
	    cua_alloc(ctx, bytes + 2 + GUARD, 1, &memory) != CUA_OK) {
		printf("fill_huge: skipped, %llu MiB are free\n",
		       (unsigned long long)(available >> 20));
		cua_context_destroy(ctx);
		return;
	}
	p = memory;
	ck_assert_cua(cua_fill(ctx, p + bytes, 2 + GUARD, 1, &last));
	/* not aligned to 16 bytes */
	p += 2;
	ck_assert_cua(cua_fill(ctx, p, count, 2, &pattern));
	out = test_malloc(chunk);
	expected = test_malloc(chunk);
	model_fill(expected, chunk, &pattern, 2);
	for (size_t at = 0; at < bytes; at += chunk) {
		size_t n = bytes - at < chunk ? bytes - at : chunk;

		test_download(ctx, out, p + at, n);
		ck_assert_msg(!memcmp(out, expected, n), "in the chunk at %zu", at);
	}
	test_download(ctx, out, p + bytes, GUARD);
	for (int i = 0; i < GUARD; i++)
		ck_assert_uint_eq(out[i], 0);
	free(out);
	free(expected);
	test_free(ctx, memory);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- pitched arrays ---- */

static size_t pitched_bytes(const struct cua_pitched *a)
{
	return a->pitch * a->height * a->depth;
}

static size_t packed_bytes(const struct cua_pitched *a)
{
	return a->width * a->height * a->depth * a->element_size;
}

/* Byte i of the packed rows as an offset into the array. */
static size_t unpacked(const struct cua_pitched *a, size_t i)
{
	size_t row = a->width * a->element_size;

	return i / row * a->pitch + i % row;
}

static void try_pitched(struct cua_context *ctx, uint64_t *seed, size_t width, size_t height,
			size_t depth, size_t element_size)
{
	struct cua_pitched a;
	unsigned char *model, *out, *packed, pattern[16];
	const unsigned char background = 0xc3;
	void *other;
	size_t all, bytes;

	memset(&a, 0xff, sizeof(a));
	if (depth == 1)
		ck_assert_cua(cua_alloc_2d(ctx, width, height, element_size, &a));
	else
		ck_assert_cua(cua_alloc_3d(ctx, width, height, depth, element_size, &a));
	ck_assert(a.width == width && a.height == height && a.depth == depth);
	ck_assert_uint_eq(a.element_size, element_size);
	ck_assert_uint_eq(a.pitch % CUA_PITCH_ALIGNMENT, 0);
	ck_assert_uint_ge(a.pitch, width * element_size);
	ck_assert_uint_lt(a.pitch - width * element_size, CUA_PITCH_ALIGNMENT);
	ck_assert_uint_eq((uintptr_t)a.base % CUA_PITCH_ALIGNMENT, 0);
	all = pitched_bytes(&a);
	bytes = packed_bytes(&a);
	model = test_malloc(all);
	out = test_malloc(all);
	packed = test_malloc(bytes);
	ck_assert_ptr_eq(cua_pitched_at(&a, 0, 0, 0), a.base);
	ck_assert_ptr_eq(cua_pitched_at(&a, width - 1, height - 1, depth - 1),
			 (char *)a.base + unpacked(&a, bytes - element_size));
	ck_assert_ptr_eq(cua_pitched_at(&a, width / 2, height / 2, depth / 2),
			 (char *)a.base + unpacked(&a, ((depth / 2 * height + height / 2) * width +
							width / 2) *
							       element_size));

	/* the elements without the padding */
	ck_assert_cua(cua_fill(ctx, a.base, all, 1, &background));
	memset(model, background, all);
	for (size_t k = 0; k < 5; k++) {
		if (element_size % pattern_sizes[k])
			continue;
		random_bytes(seed, pattern, sizeof(pattern));
		ck_assert_cua(cua_fill_pitched(ctx, &a, pattern_sizes[k], pattern));
		model_fill(packed, bytes, pattern, pattern_sizes[k]);
		for (size_t i = 0; i < bytes; i++)
			model[unpacked(&a, i)] = packed[i];
		test_download(ctx, out, a.base, all);
		ck_assert_msg(!memcmp(out, model, all), "%zu x %zu x %zu of %zu, pattern of %zu",
			      width, height, depth, element_size, pattern_sizes[k]);
	}

	/* packed rows: from the host, back to it, and to the backend */
	random_bytes(seed, packed, bytes);
	ck_assert_cua(cua_copy_to_pitched(ctx, &a, packed));
	for (size_t i = 0; i < bytes; i++)
		model[unpacked(&a, i)] = packed[i];
	test_download(ctx, out, a.base, all);
	ck_assert_mem_eq(out, model, all);
	memset(out, 0, all);
	ck_assert_cua(cua_copy_from_pitched(ctx, out, &a));
	ck_assert_mem_eq(out, packed, bytes);
	other = test_alloc(ctx, bytes);
	ck_assert_cua(cua_copy_from_pitched(ctx, other, &a));
	test_download(ctx, out, other, bytes);
	ck_assert_mem_eq(out, packed, bytes);
	ck_assert_cua(cua_fill_pitched(ctx, &a, 1, &background));
	ck_assert_cua(cua_copy_to_pitched(ctx, &a, other));
	test_download(ctx, out, a.base, all);
	ck_assert_mem_eq(out, model, all);

	test_free(ctx, other);
	ck_assert_cua(cua_free_pitched(ctx, &a));
	ck_assert_ptr_null(a.base);
	ck_assert_cua(cua_free_pitched(ctx, &a));
	free(model);
	free(out);
	free(packed);
}

START_TEST(pitched)
{
	static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 20, 48};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("pitched");
	int rounds = test_quick() ? 10 : 60;

	try_pitched(ctx, &seed, 1, 1, 1, 1);
	try_pitched(ctx, &seed, 256, 5, 1, 1);
	try_pitched(ctx, &seed, 255, 5, 2, 1);
	try_pitched(ctx, &seed, 257, 3, 3, 1);
	try_pitched(ctx, &seed, 64, 4, 4, 16);
	try_pitched(ctx, &seed, 1, 3000, 1, 2);
	/* rows that are longer than a block of the GPU's fill, and than a unit of the CPU's */
	try_pitched(ctx, &seed, 32768, 2, 1, 1);
	try_pitched(ctx, &seed, 32768 + 17, 2, 2, 1);
	try_pitched(ctx, &seed, (1 << 20) + 17, 2, 1, 1);
	try_pitched(ctx, &seed, 100001, 1, 1, 3);
	try_pitched(ctx, &seed, 100001, 3, 1, 4);
	try_pitched(ctx, &seed, test_quick() ? 3000 : 700001, 3, 1, 4);
	for (int i = 0; i < rounds; i++) {
		cua_context_set_threads(ctx, 1 + (unsigned)i % 4);
		try_pitched(ctx, &seed, 1 + (size_t)(test_random(&seed) % 600),
			    1 + (size_t)(test_random(&seed) % 20),
			    1 + (size_t)(test_random(&seed) % 6),
			    sizes[test_random(&seed) % (sizeof(sizes) / sizeof(sizes[0]))]);
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(pitched_arguments)
{
	const size_t max = SIZE_MAX;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_pitched a, b, zero;
	unsigned char *before, *after, packed[4 * 3 * 8];
	uint64_t pattern[2] = {~(uint64_t)0, 0};
	char *edge = (char *)UINTPTR_MAX - 8;

	memset(&zero, 0, sizeof(zero));
	memset(packed, 0x77, sizeof(packed));
	memset(&b, 0x11, sizeof(b));
	a = b;
	ck_assert_status(cua_alloc_2d(NULL, 1, 1, 1, &b), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_2d(ctx, 1, 1, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_2d(ctx, 0, 1, 1, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_2d(ctx, 1, 0, 1, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_2d(ctx, 1, 1, 0, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_2d(ctx, max, 1, 1, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_alloc_2d(ctx, max / 4, 1, 8, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_alloc_2d(ctx, max / 2, 1, 1, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_alloc_2d(ctx, 1, max / 4, 1, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_alloc_3d(NULL, 1, 1, 1, 1, &b), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_3d(ctx, 1, 1, 1, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_alloc_3d(ctx, 0, 1, 1, 1, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_3d(ctx, 1, 0, 1, 1, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_3d(ctx, 1, 1, 0, 1, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_3d(ctx, 1, 1, 1, 0, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_alloc_3d(ctx, 1, max / 4, 4, 1, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_alloc_3d(ctx, 1, (size_t)1 << 30, (size_t)1 << 30, 1, &b),
			 CUA_ERROR_SIZE);
	if (may_run_out())
		ck_assert_status(cua_alloc_2d(ctx, 1, (size_t)1 << 53, 1, &b), CUA_ERROR_NO_MEMORY);
	ck_assert_mem_eq(&a, &b, sizeof(a));

	ck_assert_cua(cua_alloc_3d(ctx, 3, 2, 2, 8, &a));
	before = test_malloc(pitched_bytes(&a));
	after = test_malloc(pitched_bytes(&a));
	memset(before, 0x3c, pitched_bytes(&a));
	ck_assert_cua(cua_copy(ctx, a.base, before, pitched_bytes(&a)));

	ck_assert_status(cua_fill_pitched(NULL, &a, 8, pattern), CUA_ERROR_NULL);
	ck_assert_status(cua_fill_pitched(ctx, NULL, 8, pattern), CUA_ERROR_NULL);
	ck_assert_status(cua_fill_pitched(ctx, &a, 8, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_fill_pitched(ctx, &a, 0, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill_pitched(ctx, &a, 3, pattern), CUA_ERROR_VALUE);
	ck_assert_status(cua_fill_pitched(ctx, &a, 16, pattern), CUA_ERROR_VALUE);

	/* invalid: a struct that no allocation made, in each call with such a parameter */
#define REFUSED(change, status)                                                                    \
	do {                                                                                       \
		b = a;                                                                             \
		change;                                                                            \
		ck_assert_status(cua_fill_pitched(ctx, &b, 8, pattern), status);                   \
		ck_assert_status(cua_copy_to_pitched(ctx, &b, packed), status);                    \
		ck_assert_status(cua_copy_from_pitched(ctx, packed, &b), status);                  \
	} while (0)
	REFUSED(b.layout = 0, CUA_ERROR_LAYOUT);
	REFUSED(b.layout++, CUA_ERROR_LAYOUT);
	REFUSED(b = zero, CUA_ERROR_LAYOUT);
	REFUSED(b.base = NULL, CUA_ERROR_NULL);
	REFUSED(b.width = 0, CUA_ERROR_VALUE);
	REFUSED(b.height = 0, CUA_ERROR_VALUE);
	REFUSED(b.depth = 0, CUA_ERROR_VALUE);
	REFUSED(b.element_size = 0, CUA_ERROR_VALUE);
	REFUSED(b.pitch--, CUA_ERROR_VALUE);
	REFUSED(b.pitch = 0, CUA_ERROR_VALUE);
	REFUSED(b.width = 33, CUA_ERROR_VALUE);
	REFUSED(b.width = max / 2, CUA_ERROR_SIZE);
	REFUSED(b.height = max / 2, CUA_ERROR_SIZE);
	REFUSED(b.depth = max / 4, CUA_ERROR_SIZE);
	REFUSED(b.pitch = (max / 2) & ~(size_t)255, CUA_ERROR_SIZE);
	REFUSED(b.base = (char *)a.base + 8, CUA_ERROR_ALIGNMENT);
#undef REFUSED

	ck_assert_status(cua_copy_to_pitched(NULL, &a, packed), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_to_pitched(ctx, NULL, packed), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_to_pitched(ctx, &a, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_to_pitched(ctx, &a, edge), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy_to_pitched(ctx, &a, (char *)a.base + 24), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_copy_from_pitched(NULL, packed, &a), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_from_pitched(ctx, NULL, &a), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_from_pitched(ctx, packed, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_copy_from_pitched(ctx, edge, &a), CUA_ERROR_SIZE);
	ck_assert_status(cua_copy_from_pitched(ctx, (char *)a.base + 24, &a), CUA_ERROR_OVERLAP);
	test_download(ctx, after, a.base, pitched_bytes(&a));
	ck_assert_mem_eq(before, after, pitched_bytes(&a));
	for (size_t i = 0; i < sizeof(packed); i++)
		ck_assert_uint_eq(packed[i], 0x77);

	ck_assert_status(cua_free_pitched(NULL, &a), CUA_ERROR_NULL);
	ck_assert_cua(cua_free_pitched(ctx, NULL));
	ck_assert_cua(cua_free_pitched(ctx, &zero));
	b = a;
	b.layout++;
	ck_assert_status(cua_free_pitched(ctx, &b), CUA_ERROR_LAYOUT);
	b = a;
	b.base = (char *)a.base + 256;
	ck_assert_status(cua_free_pitched(ctx, &b), CUA_ERROR_MEMORY_KIND);
	ck_assert_ptr_eq(b.base, (char *)a.base + 256);
	ck_assert_cua(cua_free_pitched(ctx, &a));
	free(before);
	free(after);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- queries ---- */

START_TEST(pointer_query)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_pointer_info info = CUA_POINTER_INFO_INIT, before;
	char *p = test_alloc(ctx, 1000), *host = test_malloc(100), *ours = test_alloc(cpu, 77);
	static int variable;
	struct {
		size_t struct_size;
		enum cua_backend backend;
		int rest;
	} small = {offsetof(struct cua_pointer_info, device), CUA_BACKEND_AUTO, 123};

	for (size_t at = 0; at < 1000; at += 333) {
		memset(&info, 0xee, sizeof(info));
		info.struct_size = sizeof(info);
		ck_assert_cua(cua_pointer_query(ctx, p + at, &info));
		ck_assert_uint_eq(info.struct_size, sizeof(info));
		ck_assert_int_eq((int)info.backend, (int)TEST_BACKEND);
		ck_assert_int_eq(info.device, TEST_BACKEND == CUA_BACKEND_CUDA ? 0 : -1);
		ck_assert_ptr_eq(info.base, p);
		ck_assert_uint_ge(info.size, 1000);
		ck_assert_int_eq(info.accessible, 1);
		ck_assert_int_eq(info.host_accessible, TEST_BACKEND == CUA_BACKEND_CPU);
	}
	/* the host's memory: only this library's allocations are known */
	ck_assert_cua(cua_pointer_query(ctx, ours + 76, &info));
	ck_assert_int_eq((int)info.backend, (int)CUA_BACKEND_CPU);
	ck_assert_ptr_eq(info.base, ours);
	ck_assert_uint_eq(info.size, 77);
	ck_assert_int_eq(info.host_accessible, 1);
	for (int i = 0; i < 3; i++) {
		const void *q = i == 0 ? (void *)host : i == 1 ? (void *)&variable : (void *)&info;

		ck_assert_cua(cua_pointer_query(ctx, q, &info));
		ck_assert_int_eq((int)info.backend, (int)CUA_BACKEND_CPU);
		ck_assert_int_eq(info.device, -1);
		ck_assert_ptr_null(info.base);
		ck_assert_uint_eq(info.size, 0);
		ck_assert_int_eq(info.host_accessible, 1);
		if (TEST_BACKEND == CUA_BACKEND_CPU)
			ck_assert_int_eq(info.accessible, 1);
	}
	/* a struct_size that no release had */
	ck_assert_status(cua_pointer_query(ctx, p, (struct cua_pointer_info *)&small),
			 CUA_ERROR_VALUE);
	ck_assert_int_eq((int)small.backend, (int)CUA_BACKEND_AUTO);
	ck_assert_int_eq(small.rest, 123);
	ck_assert_uint_eq(small.struct_size, offsetof(struct cua_pointer_info, device));

	memset(&info, 0xee, sizeof(info));
	before = info;
	ck_assert_status(cua_pointer_query(ctx, p, &info), CUA_ERROR_VALUE);
	before.struct_size = info.struct_size = sizeof(info) + 1;
	ck_assert_status(cua_pointer_query(ctx, p, &info), CUA_ERROR_VALUE);
	before.struct_size = info.struct_size = sizeof(size_t) - 1;
	ck_assert_status(cua_pointer_query(ctx, p, &info), CUA_ERROR_VALUE);
	before.struct_size = info.struct_size = sizeof(info);
	ck_assert_status(cua_pointer_query(NULL, p, &info), CUA_ERROR_NULL);
	ck_assert_status(cua_pointer_query(ctx, NULL, &info), CUA_ERROR_NULL);
	ck_assert_status(cua_pointer_query(ctx, p, NULL), CUA_ERROR_NULL);
	ck_assert_mem_eq(&info, &before, sizeof(info));
	ck_assert_int_eq(cua_is_global(host), 0);
	ck_assert_int_eq(cua_is_global(NULL), 0);

	test_free(ctx, p);
	test_free(cpu, ours);
	/* removed from the registry too */
	ck_assert_cua(cua_pointer_query(cpu, ours, &info));
	ck_assert_ptr_null(info.base);
	free(host);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(memory_info)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t available = 5, total = 6;

	ck_assert_status(cua_memory_info(NULL, &available, &total), CUA_ERROR_NULL);
	ck_assert_status(cua_memory_info(ctx, NULL, &total), CUA_ERROR_NULL);
	ck_assert_status(cua_memory_info(ctx, &available, NULL), CUA_ERROR_NULL);
	ck_assert(available == 5 && total == 6);
	ck_assert_cua(cua_memory_info(ctx, &available, &total));
	ck_assert_uint_gt(available, 0);
	ck_assert_uint_le(available, total);
	/* in bytes, not pages or KiB: every machine has more */
	ck_assert_uint_ge(total, (uint64_t)16 << 20);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- static variables ---- */

#if !TEST_CUDA
static uint32_t table[64];
#endif

START_TEST(symbols)
{
	enum { WORDS = 64, BYTES = WORDS * 4 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint32_t in[WORDS], out[WORDS], model[WORDS];
	char *p = test_alloc(ctx, BYTES), *other = test_alloc(ctx, BYTES);
	char *symbol;

#if TEST_CUDA
	symbol = p; /* variables of a kernel's file: device_memory.cu */
#else
	symbol = (char *)table;
#endif
	for (unsigned i = 0; i < WORDS; i++)
		model[i] = in[i] = i * 2654435761u;
	ck_assert_cua(cua_symbol_write(ctx, symbol, 0, in, BYTES));
	memset(out, 0, sizeof(out));
	ck_assert_cua(cua_symbol_read(ctx, out, symbol, 0, BYTES));
	ck_assert_mem_eq(out, model, BYTES);
	/* a part of the symbol, from and to the backend's memory */
	ck_assert_cua(cua_copy(ctx, other, in, BYTES));
	ck_assert_cua(cua_symbol_write(ctx, symbol, 13, other + 5, 30));
	memcpy((char *)model + 13, (char *)in + 5, 30);
	ck_assert_cua(cua_symbol_read(ctx, other + 3, symbol, 7, 101));
	test_download(ctx, out, other + 3, 101);
	ck_assert_mem_eq(out, (char *)model + 7, 101);
	ck_assert_cua(cua_symbol_read(ctx, out, symbol, 0, BYTES));
	ck_assert_mem_eq(out, model, BYTES);
	ck_assert_cua(cua_symbol_write(ctx, symbol, BYTES, NULL, 0));
	ck_assert_cua(cua_symbol_read(ctx, NULL, symbol, 5, 0));

	ck_assert_status(cua_symbol_write(NULL, symbol, 0, in, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_write(ctx, NULL, 0, in, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_write(ctx, symbol, 0, NULL, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_write(ctx, symbol, SIZE_MAX, in, 4), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_write(ctx, symbol, 4, in, SIZE_MAX), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_write(ctx, symbol, 4, symbol + 6, 4), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_symbol_read(NULL, out, symbol, 0, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_read(ctx, NULL, symbol, 0, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_read(ctx, out, NULL, 0, 4), CUA_ERROR_NULL);
	ck_assert_status(cua_symbol_read(ctx, out, symbol, SIZE_MAX, 4), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_read(ctx, out, symbol, 4, SIZE_MAX), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_read(ctx, symbol + 6, symbol, 4, 4), CUA_ERROR_OVERLAP);
	/* past the end of a symbol of known size */
	ck_assert_status(cua_symbol_write(ctx, other, (size_t)1 << 40, in, 4), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_read(ctx, out, other, (size_t)1 << 40, 4), CUA_ERROR_SIZE);
#if !TEST_CUDA
	ck_assert_status(cua_symbol_write(ctx, other, BYTES - 3, in, 4), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_write(ctx, other + 8, BYTES - 8 - 3, in, 4), CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_read(ctx, out, other, BYTES + 1, 0), CUA_ERROR_SIZE);
#else
	ck_assert_status(cua_symbol_write(ctx, in, 0, out, 4), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_symbol_read(ctx, out, in, 0, 4), CUA_ERROR_MEMORY_KIND);
#endif
	ck_assert_mem_eq(out, model, BYTES);
	memset(out, 0, sizeof(out));
	ck_assert_cua(cua_symbol_read(ctx, out, symbol, 0, BYTES));
	ck_assert_mem_eq(out, model, BYTES);
	test_free(ctx, p);
	test_free(ctx, other);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("memory");
	TCase *tcase = tcase_create("memory");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, allocation);
	tcase_add_test(tcase, zeros);
	tcase_add_test(tcase, system_memory);
	tcase_add_test(tcase, free_of_what_is_no_allocation);
	tcase_add_test(tcase, random_allocations);
	tcase_add_test(tcase, copies);
	tcase_add_test(tcase, copy_arguments);
	tcase_add_test(tcase, fill_small);
	tcase_add_test(tcase, fill_large);
	tcase_add_test(tcase, fill_arguments);
	tcase_add_test(tcase, fill_huge);
	tcase_add_test(tcase, pitched);
	tcase_add_test(tcase, pitched_arguments);
	tcase_add_test(tcase, pointer_query);
	tcase_add_test(tcase, memory_info);
	tcase_add_test(tcase, symbols);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
