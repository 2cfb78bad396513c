/* SPDX-License-Identifier: MIT */
/*
 * The headers under NVRTC without any other header. The CPU suite compiles every header. The CUDA
 * suite compiles kernels, runs them, and expects exact results.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <dirent.h>

#include "nvrtc.h"

#define EXIT_SKIP 77
#define ARCHS 64

#if !TEST_CUDA

/* ---- architectures ---- */

static int archs[ARCHS];
static int n_archs;

/* The least architecture of the headers that this NVRTC has, then 9.0, then its newest. */
static void choose_archs(void)
{
	int n = 0, all[ARCHS];

	ck_assert_int_eq(nvrtcGetNumSupportedArchs(&n), 0);
	ck_assert_int_le(n, ARCHS);
	ck_assert_int_eq(nvrtcGetSupportedArchs(all), 0);
	n_archs = 0;
	for (int i = 0; i < n; i++)
		if (all[i] >= 70 && (n_archs == 0 || all[i] == 90 || i == n - 1))
			archs[n_archs++] = all[i];
	ck_assert_int_ge(n_archs, 2);
}

/* Expects that a text compiles without a line in the log. */
static void expect_silent(const char *what, const char *text, const char *arch,
			  const char *const *options)
{
	char *log;
	void *cubin;
	int status = nvrtc_compile(text, arch, options, &log, &cubin);

	ck_assert_msg(!status && log[strspn(log, " \n")] == 0, "%s for %s%s%s: status %d\n%s", what,
		      arch, options ? " with " : "", options && *options ? *options : "", status,
		      log);
	free(log);
	free(cubin);
}

/* ---- headers alone ---- */

static int compiled;

static void compile_header(const char *folder, const char *name)
{
	static const char *const debug[] = {"-DCUA_LOCK_DEBUG", NULL};
	char text[NVRTC_TEXT], arch[32], what[NVRTC_TEXT];

	/* twice, for the include guard */
	snprintf(text, sizeof(text),
		 "#include <%s%s>\n#include <%s%s>\n__global__ void unit(void) {}\n", folder, name,
		 folder, name);
	snprintf(what, sizeof(what), "%s%s", folder, name);
	for (int i = 0; i < n_archs; i++) {
		snprintf(arch, sizeof(arch), "compute_%d", archs[i]);
		expect_silent(what, text, arch, NULL);
		expect_silent(what, text, arch, debug);
		compiled++;
	}
}

/* Compiles all headers of a folder except templates. Only other headers include templates. */
static void compile_folder(const char *folder)
{
	const char *source = getenv("top_srcdir");
	char path[NVRTC_TEXT];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/include/%s", source ? source : "..", folder);
	d = opendir(path);
	ck_assert_msg(d != NULL, "%s: no such folder", path);
	while ((entry = readdir(d))) {
		const size_t n = strlen(entry->d_name);

		if (n > 2 && !strcmp(entry->d_name + n - 2, ".h") &&
		    !strstr(entry->d_name, ".tmpl.h") && strcmp(entry->d_name, "version.h"))
			compile_header(folder, entry->d_name);
	}
	closedir(d);
}

START_TEST(headers_compile_alone)
{
	choose_archs();
	compile_folder("");
	compile_folder("cuatomic/");
	compile_folder("cuatomic/detail/");
	compile_header("cuatomic/", "version.h");
	ck_assert_int_ge(compiled, 45 * n_archs);
	printf("%d headers, from compute_%d to compute_%d\n", compiled / n_archs, archs[0],
	       archs[n_archs - 1]);
}
END_TEST

/* ---- kernels, with options that change the language or the code ---- */

START_TEST(kernels_compile)
{
	static const char *const options[][2] = {
		{"-std=c++14"}, {"-std=c++20"},     {"-default-device"}, {"-rdc=true"},
		{"-G"},         {"-use_fast_math"}, {"-device-int128"},  {"-DCUA_LOCK_DEBUG"},
	};
	const char *text = "#include \"nvrtc_kernels.cu\"\n";
	char arch[32];

	choose_archs();
	expect_silent("kernels", text, "compute_90", options[_i]);
	if (_i)
		return;
	for (int i = 0; i < n_archs; i++) {
		snprintf(arch, sizeof(arch), "compute_%d", archs[i]);
		expect_silent("kernels", text, arch, NULL);
	}
	expect_silent("kernels", text, "sm_90", NULL);
}
END_TEST

/* ---- programs with their own types of <stdint.h> ---- */

/* The types of <cuda/std/cstdint> under NVRTC. */
#define CUDA_TYPES                                                                                  \
	"typedef signed char int8_t;\ntypedef signed short int16_t;\ntypedef signed int int32_t;\n" \
	"typedef signed long long int64_t;\ntypedef unsigned char uint8_t;\n"                       \
	"typedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"                        \
	"typedef unsigned long long uint64_t;\ntypedef uint64_t uintptr_t;\n"
#define CUDA_LIMITS "#define UINT64_MAX 0xffffffffffffffffULL\n"
/* The types of <stdint.h> on Linux, with a macro that announces them. */
#define LINUX_TYPES                                                                                \
	"typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"              \
	"typedef long int64_t;\ntypedef unsigned char uint8_t;\n"                                  \
	"typedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"                       \
	"typedef unsigned long uint64_t;\ntypedef unsigned long uintptr_t;\n"                      \
	"#define UINT64_MAX 0xffffffffffffffffUL\n"
#define HEADER "#include <cuatomic.h>\n"
#define KERNELS "#include \"nvrtc_kernels.cu\"\n"

START_TEST(types_do_not_clash)
{
	static const char *const texts[] = {
		CUDA_TYPES CUDA_LIMITS KERNELS,
		CUDA_TYPES KERNELS,
		HEADER CUDA_TYPES CUDA_LIMITS KERNELS,
		LINUX_TYPES KERNELS,
	};

	choose_archs();
	expect_silent("types", texts[_i], "compute_90", NULL);
}
END_TEST

/* ---- the check itself can fail ---- */

START_TEST(faults_are_found)
{
	static const char *const texts[] = {
		"#include <stdint.h>\n",
		"#include <string.h>\n",
		"void host(void);\n",
		HEADER "__device__ void f(void) { int unused; }\n",
	};
	char *log;
	void *cubin;
	int status;

	status = nvrtc_compile(texts[_i], "compute_90", NULL, &log, &cubin);
	ck_assert_msg(status || log[strspn(log, " \n")], "no fault was found in: %s", texts[_i]);
	free(log);
}
END_TEST

/* A kernel that calls a host function of the library does not link. */
START_TEST(host_calls_do_not_link)
{
	char *log;
	void *cubin;

	ck_assert_int_ne(nvrtc_compile(HEADER "__global__ void f(struct cua_append *a)\n"
					      "{\n\tcua_append_reset(a);\n}\n",
				       "sm_90", NULL, &log, &cubin),
			 0);
	ck_assert_ptr_nonnull(strstr(log, "cua_append_reset"));
	free(log);
}
END_TEST

#else

/* ---- the CUDA driver ---- */

#define DRIVER_CALLS(X)                                                                            \
	X(cuInit, (unsigned))                                                                      \
	X(cuDeviceGet, (int *, int))                                                               \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxSetCurrent, (void *))                                                               \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuModuleLoadData, (void **, const void *))                                               \
	X(cuModuleGetFunction, (void **, void *, const char *))                                    \
	X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
			   unsigned, void *, void **, void **))

#define DRIVER_POINTER(name, arguments) static int(*name) arguments;
DRIVER_CALLS(DRIVER_POINTER)

static struct cua_context *ctx;
static void *module;

#define THREADS 256u
#define BLOCKS 120u
#define N ((uint64_t)THREADS * BLOCKS)

static void setup(void)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *cubin;
	char arch[32], *log;
	int device, status;

	ck_assert_msg(library != NULL, "%s", dlerror());
#define DRIVER_LOAD(name, arguments)                                                               \
	*(void **)&name = dlsym(library, #name);                                                   \
	ck_assert_msg(name != NULL, "%s", #name);
	DRIVER_CALLS(DRIVER_LOAD)
	ctx = test_context(CUA_BACKEND_CUDA);
	ck_assert_cua(cua_device_query(CUA_BACKEND_CUDA, 0, &info));
	ck_assert_int_eq(cuInit(0), 0);
	ck_assert_int_eq(cuDeviceGet(&device, 0), 0);
	ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, device), 0);
	ck_assert_int_eq(cuCtxSetCurrent(context), 0);
	snprintf(arch, sizeof(arch), "sm_%d%d", info.compute_major, info.compute_minor);
	status = nvrtc_compile("#include \"nvrtc_kernels.cu\"\n", arch, NULL, &log, &cubin);
	ck_assert_msg(!status && cubin, "%s: %d\n%s", arch, status, log);
	ck_assert_int_eq(cuModuleLoadData(&module, cubin), 0);
	free(log);
	free(cubin);
}

static void teardown(void)
{
	cua_context_destroy(ctx);
}

/* Runs N threads and waits for them. */
static void launch(const char *name, void **arguments)
{
	void *function = NULL;

	ck_assert_msg(!cuModuleGetFunction(&function, module, name), "%s", name);
	ck_assert_int_eq(
		cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
	ck_assert_msg(!cuCtxSynchronize(), "%s", name);
}

static void *zeros(size_t bytes)
{
	void *p = NULL;

	ck_assert_cua(cua_alloc_zero(ctx, 1, bytes, &p));
	ck_assert_cua(cua_context_synchronize(ctx));
	return p;
}

static void expect_u64(const void *p, uint64_t expected, const char *what)
{
	uint64_t found;

	test_download(ctx, &found, p, sizeof(found));
	ck_assert_msg(found == expected, "%s: %llu, expected %llu", what, (unsigned long long)found,
		      (unsigned long long)expected);
}

START_TEST(lock_counts)
{
	struct cua_spinlock *lock = zeros(sizeof(*lock));
	uint64_t *count = zeros(sizeof(*count));
	uint32_t rounds = 3;
	void *arguments[] = {&lock, &count, &rounds};

	launch("count_locked", arguments);
	expect_u64(count, N * rounds, "count");
	test_free(ctx, lock);
	test_free(ctx, count);
}
END_TEST

static void fill_and_find(enum cua_type type, const char *fill, const char *find)
{
	struct cua_hashmap *map;
	struct cua_hashmap_view view;
	uint64_t keys = N / 4, times = 4, size, *counts = zeros(2 * sizeof(*counts));
	uint64_t *wrong = counts + 1;
	void *fill_arguments[] = {&view, &keys, &counts, &wrong};
	void *find_arguments[] = {&view, &keys, &times, &wrong};

	ck_assert_cua(cua_hashmap_create(ctx, NULL, type, type, keys + keys / 4, &map));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	launch(fill, fill_arguments);
	expect_u64(counts, keys, "inserted");
	expect_u64(wrong, 0, "wrong results of inserts");
	ck_assert_cua(cua_hashmap_size(map, &size));
	ck_assert_uint_eq(size, keys);
	launch(find, find_arguments);
	expect_u64(wrong, 0, "wrong results of finds");
	/* the find itself can fail */
	times++;
	launch(find, find_arguments);
	expect_u64(wrong, keys, "wrong results of finds of other values");
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, counts);
}

START_TEST(map_has_pairs)
{
	fill_and_find(CUA_U32, "fill_narrow", "find_narrow");
	fill_and_find(CUA_U64, "fill_wide", "find_wide");
}
END_TEST

START_TEST(append_keeps_items)
{
	const uint64_t items = (N + 2) / 3;
	struct cua_append *buffer;
	struct cua_append_view view;
	uint64_t demand, *stored = zeros(sizeof(*stored)),
			 *read = test_malloc(items * sizeof(*read));
	char *seen = calloc(N, 1);
	size_t n;
	void *arguments[] = {&view, &stored};

	ck_assert_cua(cua_append_create(ctx, sizeof(uint64_t), items, &buffer));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_append_get_view(buffer, &view));
	launch("append_thirds", arguments);
	expect_u64(stored, items, "stored");
	ck_assert_cua(cua_append_demand(buffer, &demand));
	ck_assert_uint_eq(demand, items);
	ck_assert_cua(cua_append_read(buffer, read, items, &n));
	ck_assert_uint_eq(n, items);
	for (uint64_t i = 0; i < items; i++) {
		ck_assert_msg(read[i] < N && read[i] % 3 == 0 && !seen[read[i]], "item %llu",
			      (unsigned long long)read[i]);
		seen[read[i]] = 1;
	}
	ck_assert_cua(cua_append_destroy(buffer));
	free(seen);
	free(read);
	test_free(ctx, stored);
}
END_TEST

START_TEST(blocks_are_summed)
{
	struct cua_finish *finish = zeros(sizeof(*finish));
	uint64_t *total = zeros(sizeof(*total));
	void *arguments[] = {&finish, &total};

	/* the second launch uses the state that the first has reset */
	for (int i = 0; i < 2; i++) {
		ck_assert_cua(cua_fill(ctx, total, 1, sizeof(i), &i));
		ck_assert_cua(cua_context_synchronize(ctx));
		launch("sum_ids", arguments);
		expect_u64(total, N * (N - 1) / 2, "sum");
	}
	test_free(ctx, finish);
	test_free(ctx, total);
}
END_TEST

START_TEST(floats_are_summed)
{
	float *sum = zeros(sizeof(*sum)), narrow;
	double *wide_sum = zeros(sizeof(*wide_sum)), wide;
	void *arguments[] = {&sum, &wide_sum};

	launch("add_floats", arguments);
	test_download(ctx, &narrow, sum, sizeof(narrow));
	test_download(ctx, &wide, wide_sum, sizeof(wide));
	ck_assert_msg(narrow == (float)N && wide == 0.5 * (double)N, "%g, %g", (double)narrow,
		      wide);
	test_free(ctx, sum);
	test_free(ctx, wide_sum);
}
END_TEST

START_TEST(cell_is_exact)
{
	struct cua_exact_cell_f64 *cell = zeros(sizeof(*cell));
	struct cua_exact_cells_f64 cells = cua_exact_cells_view_f64(cell, 1, -20, NULL);
	uint64_t *lost = zeros(sizeof(*lost));
	double *out = zeros(sizeof(*out)), sum;
	void *arguments[] = {&cells, &lost};

	launch("add_exact", arguments);
	expect_u64(lost, 0, "lost");
	ck_assert_cua(cua_exact_cells_finish_f64(ctx, NULL, &cells, out));
	test_download(ctx, &sum, out, sizeof(sum));
	ck_assert_msg(sum == (double)(N * (N - 1) / 2), "%.17g", sum);
	test_free(ctx, cell);
	test_free(ctx, lost);
	test_free(ctx, out);
}
END_TEST

/* The arithmetic of 128 bits, on GPUs that have such atomics. */
START_TEST(wide_numbers_are_combined)
{
	cua__uint128 initial[3] = {0, 1, 0}, expected[3] = {0, 1, N % 7}, found[3];
	cua__uint128 *numbers, *product, *ring;
	void *function, *arguments[3] = {&numbers, &product, &ring};

	if (cuModuleGetFunction(&function, module, "add_wide")) {
		printf("wide_numbers_are_combined: no 128-bit atomics\n");
		return;
	}
	for (uint64_t i = 0; i < N; i++) {
		expected[0] += (cua__uint128)1 << 64 | ~(uint64_t)0;
		expected[1] *= (cua__uint128)5 << 64 | 3;
	}
	numbers = test_upload(ctx, initial, sizeof(initial));
	product = numbers + 1;
	ring = numbers + 2;
	launch("add_wide", arguments);
	test_download(ctx, found, numbers, sizeof(found));
	for (int i = 0; i < 3; i++)
		ck_assert_msg(found[i] == expected[i], "number %d", i);
	test_free(ctx, numbers);
}
END_TEST

#endif

int main(void)
{
	Suite *suite = suite_create("nvrtc");
	TCase *tcase = tcase_create("nvrtc");
	const char *given = getenv("CUA_NVRTC");
	int major = 0, minor = 0;

	if (nvrtc_open())
		return given && *given ? EXIT_FAILURE : EXIT_SKIP;
	nvrtcVersion(&major, &minor);
	printf("NVRTC %d.%d\n", major, minor);
	tcase_set_timeout(tcase, 300);
	suite_add_tcase(suite, tcase);
#if TEST_CUDA
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, lock_counts);
	tcase_add_test(tcase, map_has_pairs);
	tcase_add_test(tcase, append_keeps_items);
	tcase_add_test(tcase, blocks_are_summed);
	tcase_add_test(tcase, floats_are_summed);
	tcase_add_test(tcase, cell_is_exact);
	tcase_add_test(tcase, wide_numbers_are_combined);
#else
	tcase_add_test(tcase, headers_compile_alone);
	tcase_add_loop_test(tcase, kernels_compile, 0, 8);
	tcase_add_loop_test(tcase, types_do_not_clash, 0, 4);
	tcase_add_loop_test(tcase, faults_are_found, 0, 4);
	tcase_add_test(tcase, host_calls_do_not_link);
#endif
	return test_run(suite, TEST_BACKEND);
}
