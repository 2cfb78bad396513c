/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* the affinity of threads */
#endif

#include "common.h"

#include <cuatomic/lock_debug.h>
#include <cuatomic/version.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

/* See check_memory.c. */
static int may_run_out(void)
{
	return !SANITIZED && !(TEST_BACKEND == CUA_BACKEND_CUDA && test_quick());
}

static unsigned default_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > 1024 ? 1024 : (unsigned)n;
}

/*
 * Fills enough memory for several threads and reads it back. Returns 0 on success, else the line of
 * the first failed call. Contains no check macro, so any thread and any child may call it.
 */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		if ((call) != CUA_OK)                                                              \
			return __LINE__;                                                           \
	} while (0)

static int use_context(struct cua_context *ctx, uint32_t value)
{
	enum { N = 1 << 21 };
	const uint32_t patterns[2] = {value, ~value};
	uint32_t *host;
	void *p;
	int wrong = 0;

	TRY(cua_alloc(ctx, N, 4, &p));
	TRY(cua_fill(ctx, p, N / 2, 8, patterns));
	host = malloc(N * 4);
	if (!host)
		return __LINE__;
	TRY(cua_copy(ctx, host, p, N * 4));
	for (uint32_t i = 0; i < N; i++)
		if (host[i] != patterns[i % 2])
			wrong = __LINE__;
	free(host);
	TRY(cua_free(ctx, p));
	TRY(cua_context_synchronize(ctx));
	return wrong;
}

/* ---- calls without a context ---- */

START_TEST(statuses)
{
	static const struct {
		enum cua_status status;
		int number;
		const char *name, *text;
	} all[] = {
#define ENTRY(name, number, text) {name, number, #name, text},
		CUA_STATUS_LIST(ENTRY)
#undef ENTRY
	};
	static const int unknown[] = {1, 2, -999, INT_MAX, INT_MIN};
	const int n = (int)(sizeof(all) / sizeof(all[0]));

	ck_assert_int_eq(CUA_OK, 0);
	ck_assert_uint_eq(sizeof(enum cua_status), sizeof(int));
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq((int)all[i].status, all[i].number);
		ck_assert_int_le(all[i].number, 0);
		ck_assert_str_eq(cua_status_name(all[i].status), all[i].name);
		ck_assert_str_eq(cua_strerror(all[i].status), all[i].text);
		for (int k = 0; k < i; k++) {
			ck_assert_int_ne(all[i].number, all[k].number);
			ck_assert_str_ne(all[i].text, all[k].text);
		}
	}
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		ck_assert_str_eq(cua_status_name((enum cua_status)unknown[i]), "CUA_ERROR_UNKNOWN");
		ck_assert_str_eq(cua_strerror((enum cua_status)unknown[i]), "unknown status");
	}
}
END_TEST

/* Both backends: paths that are the same on every machine, and paths that depend on the machine. */
START_TEST(atomic_paths)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_atomic_path path = CUA_PATH_STRIPE;
	/* the kernels of the model have the atomics of the host */
	int gpu = cua_context_backend(ctx) == CUA_BACKEND_CUDA && !TEST_MODEL;
	const struct {
		enum cua_type type;
		enum cua_atomic_op op;
		enum cua_atomic_path cpu, cuda;
	} known[] = {
		{CUA_U32, CUA_OP_ADD, CUA_PATH_NATIVE, CUA_PATH_NATIVE},
		{CUA_U32, CUA_OP_INC, CUA_PATH_CAS_32, CUA_PATH_NATIVE},
		{CUA_U64, CUA_OP_INC, CUA_PATH_CAS_64, CUA_PATH_CAS_64},
		{CUA_I64, CUA_OP_MAX, CUA_PATH_CAS_64, CUA_PATH_NATIVE},
		{CUA_F32, CUA_OP_ADD, CUA_PATH_CAS_32, CUA_PATH_NATIVE},
		{CUA_F32, CUA_OP_MIN, CUA_PATH_CAS_32, CUA_PATH_CAS_32},
		{CUA_F64, CUA_OP_DIV, CUA_PATH_CAS_64, CUA_PATH_CAS_64},
		{CUA_U8, CUA_OP_STORE, CUA_PATH_NATIVE, CUA_PATH_WORD},
		{CUA_I8, CUA_OP_ADD, CUA_PATH_CAS_8, CUA_PATH_WORD},
		{CUA_U16, CUA_OP_EXCHANGE, CUA_PATH_NATIVE, CUA_PATH_CAS_16},
		{CUA_I16, CUA_OP_COMPARE_EXCHANGE, CUA_PATH_NATIVE, CUA_PATH_NATIVE},
		{CUA_F16, CUA_OP_ADD, CUA_PATH_CAS_16, CUA_PATH_NATIVE},
		{CUA_BF16, CUA_OP_MUL, CUA_PATH_CAS_16, CUA_PATH_CAS_16},
		{CUA_COMPLEX_F32, CUA_OP_LOAD, CUA_PATH_NATIVE, CUA_PATH_NATIVE},
		{CUA_COMPLEX_F32, CUA_OP_ADD, CUA_PATH_CAS_64, CUA_PATH_CAS_64},
		{CUA_F32, CUA_OP_AND, CUA_PATH_NONE, CUA_PATH_NONE},
		{CUA_I32, CUA_OP_INC, CUA_PATH_NONE, CUA_PATH_NONE},
		{CUA_U32, CUA_OP_DIV, CUA_PATH_NONE, CUA_PATH_NONE},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_status(cua_atomic_path_query(ctx, known[i].type, known[i].op, &path),
				 CUA_OK);
		ck_assert_int_eq((int)path, (int)(gpu ? known[i].cuda : known[i].cpu));
	}
	/* U128 has the lock-free path or the lock, never a third */
	ck_assert_status(cua_atomic_path_query(ctx, CUA_U128, CUA_OP_ADD, &path), CUA_OK);
	ck_assert(path == CUA_PATH_CAS_128 || path == CUA_PATH_STRIPE);
	path = CUA_PATH_WORD;
	ck_assert_status(cua_atomic_path_query(NULL, CUA_U32, CUA_OP_ADD, &path), CUA_ERROR_NULL);
	ck_assert_status(cua_atomic_path_query(ctx, CUA_U32, CUA_OP_ADD, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_atomic_path_query(ctx, (enum cua_type)9, CUA_OP_ADD, &path),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_atomic_path_query(ctx, CUA_U32, (enum cua_atomic_op)0, &path),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_atomic_path_query(ctx, CUA_U32, (enum cua_atomic_op)17, &path),
			 CUA_ERROR_VALUE);
	ck_assert_int_eq((int)path, (int)CUA_PATH_WORD);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(types)
{
	static const struct {
		enum cua_type type;
		int number;
		size_t size;
		const char *name;
	} all[] = {
		{CUA_I8, 1, 1, "i8"},
		{CUA_U8, 2, 1, "u8"},
		{CUA_I16, 3, 2, "i16"},
		{CUA_U16, 4, 2, "u16"},
		{CUA_I32, 5, 4, "i32"},
		{CUA_U32, 6, 4, "u32"},
		{CUA_I64, 7, 8, "i64"},
		{CUA_U64, 8, 8, "u64"},
		{CUA_F32, 18, 4, "f32"},
		{CUA_F64, 19, 8, "f64"},
		{CUA_U128, 10, 16, "u128"},
		{CUA_F16, 16, 2, "f16"},
		{CUA_BF16, 17, 2, "bf16"},
		{CUA_COMPLEX_F32, 24, 8, "complex_f32"},
		{CUA_COMPLEX_F64, 25, 16, "complex_f64"},
	};
	int known = 0;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		ck_assert_int_eq((int)all[i].type, all[i].number);
		ck_assert_uint_eq(cua_type_size(all[i].type), all[i].size);
		ck_assert_str_eq(cua_type_name(all[i].type), all[i].name);
	}
	for (int number = -3; number < 300; number++) {
		enum cua_type type = (enum cua_type)number;

		if (cua_type_size(type))
			known++;
		else
			ck_assert_str_eq(cua_type_name(type), "unknown");
	}
	ck_assert_int_eq(known, (int)(sizeof(all) / sizeof(all[0])));
}
END_TEST

START_TEST(version)
{
	ck_assert_str_eq(cua_version(), CUA_VERSION_STRING);
	ck_assert_ptr_nonnull(cua_cuda_architectures());
	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_uint_gt(strlen(cua_cuda_architectures()), 0);
}
END_TEST

/*
 * The status of calls for the CUDA backend on a machine without a device; a build without CUDA has
 * its own status.
 */
static enum cua_status no_cuda(void)
{
	return *cua_cuda_architectures() ? CUA_ERROR_NO_DEVICE : CUA_ERROR_NOT_BUILT;
}

START_TEST(devices)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT, before;
	struct {
		size_t struct_size;
		char name[10];
	} small = {sizeof(size_t) + 4, "abcdefghi"};
	int count = -5;

	ck_assert_status(cua_device_count(TEST_BACKEND, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_device_count(CUA_BACKEND_AUTO, &count), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_count((enum cua_backend)77, &count), CUA_ERROR_VALUE);
	ck_assert_int_eq(count, -5);
	ck_assert_cua(cua_device_count(CUA_BACKEND_CPU, &count));
	ck_assert_int_eq(count, 1);
	ck_assert_cua(cua_device_count(CUA_BACKEND_CUDA, &count));
	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_int_ge(count, 1);
	else
		ck_assert_int_eq(count, 0); /* main has hidden all devices */

	memset(info.name, 'x', sizeof(info.name));
	info.compute_major = 7;
	before = info;
	ck_assert_status(cua_device_query(TEST_BACKEND, 0, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_device_query(CUA_BACKEND_AUTO, 0, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_query((enum cua_backend)77, 0, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_query(TEST_BACKEND, -1, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_query(CUA_BACKEND_CPU, 1, &info), CUA_ERROR_NO_DEVICE);
	ck_assert_status(cua_device_query(CUA_BACKEND_CUDA, count, &info), no_cuda());
	ck_assert_status(cua_device_query(CUA_BACKEND_CUDA, INT_MAX, &info), no_cuda());
	info.struct_size = before.struct_size = 0;
	ck_assert_status(cua_device_query(TEST_BACKEND, 0, &info), CUA_ERROR_VALUE);
	info.struct_size = before.struct_size = sizeof(size_t) - 1;
	ck_assert_status(cua_device_query(TEST_BACKEND, 0, &info), CUA_ERROR_VALUE);
	info.struct_size = before.struct_size = sizeof(info) + 1;
	ck_assert_status(cua_device_query(TEST_BACKEND, 0, &info), CUA_ERROR_VALUE);
	ck_assert_mem_eq(&info, &before, sizeof(info));

	info.struct_size = sizeof(info);
	ck_assert_cua(cua_device_query(TEST_BACKEND, 0, &info));
	ck_assert_uint_eq(info.struct_size, sizeof(info));
	ck_assert_ptr_nonnull(memchr(info.name, 0, sizeof(info.name)));
	ck_assert_uint_gt(strlen(info.name), 0);
	ck_assert_uint_gt(info.processors, 0);
	ck_assert_uint_gt(info.memory_bytes, (uint64_t)16 << 20);
	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_int_ge(info.compute_major, 7);
	else
		ck_assert(info.compute_major == 0 && info.compute_minor == 0);
	if (TEST_BACKEND == CUA_BACKEND_CUDA) {
		ck_assert_int_ge(info.driver_cuda, info.runtime_cuda / 1000 * 1000);
		ck_assert_int_ge(info.runtime_cuda, 11080);
		ck_assert_uint_ge(strlen(info.pci_bus_id), strlen("00:00.0"));
		ck_assert_uint_eq(strlen(info.uuid), 36);
		ck_assert_uint_eq(strspn(info.uuid, "-0123456789abcdef"), 36);
		ck_assert_ptr_nonnull(memchr(info.driver, 0, sizeof(info.driver)));
	} else {
		ck_assert(info.driver_cuda == 0 && info.runtime_cuda == 0);
		ck_assert(!*info.driver && !*info.pci_bus_id && !*info.uuid);
	}
	ck_assert_str_eq(cua_device_problem(TEST_BACKEND, 0), "");
	ck_assert_str_eq(cua_device_problem(TEST_BACKEND, INT_MAX), "no such device");
	ck_assert_str_eq(cua_device_problem(TEST_BACKEND, -1), "no such device");
	ck_assert_str_eq(cua_device_problem(CUA_BACKEND_AUTO, 0), "no such backend");
	ck_assert_str_eq(cua_device_problem((enum cua_backend)77, 0), "no such backend");
	if (!*cua_cuda_architectures())
		ck_assert_str_eq(cua_device_problem(CUA_BACKEND_CUDA, 0),
				 cua_strerror(CUA_ERROR_NOT_BUILT));
	else if (TEST_BACKEND == CUA_BACKEND_CPU)
		ck_assert_str_ne(cua_device_problem(CUA_BACKEND_CUDA, 0), "");

	/* a struct_size that no release had */
	ck_assert_status(
		cua_device_query(TEST_BACKEND, 0, (struct cua_device_info *)(void *)&small),
		CUA_ERROR_VALUE);
	ck_assert_str_eq(small.name, "abcdefghi");
	ck_assert_uint_eq(small.struct_size, sizeof(size_t) + 4);
}
END_TEST

START_TEST(hardware)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	const int gpu = TEST_BACKEND == CUA_BACKEND_CUDA;

	ck_assert_cua(cua_device_query(TEST_BACKEND, 0, &info));
	ck_assert(info.ecc == 0 || info.ecc == 1);
	ck_assert_int_eq(info.reserved, 0);
	if (!gpu) {
		const long level1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);

		ck_assert(info.clock_mhz == 0 && info.memory_clock_mhz == 0);
		ck_assert(info.memory_bus_bits == 0 && info.block_shared_bytes == 0);
		ck_assert_uint_eq(info.processor_shared_bytes, 0);
		ck_assert(!info.ecc && !info.managed_memory && !info.concurrent_managed_access);
		ck_assert(!info.host_native_atomics && !info.cooperative_launch);
		ck_assert_int_eq(info.memory_pools, 0);
		ck_assert_uint_ge(info.cache_bytes, level1 > 0 ? (uint64_t)level1 : 0);
		return;
	}
	ck_assert(info.clock_mhz >= 300 && info.clock_mhz < 10000);
	ck_assert(info.memory_clock_mhz < 100000);
	ck_assert(info.memory_bus_bits >= 32 && info.memory_bus_bits % 32 == 0);
	ck_assert_uint_ge(info.cache_bytes, 1u << 17);
	ck_assert_uint_ge(info.block_shared_bytes, 48u << 10);
	ck_assert_uint_ge(info.processor_shared_bytes, info.block_shared_bytes);
	ck_assert(info.managed_memory <= 1 && info.memory_pools <= 1);
	ck_assert(info.managed_memory || !info.concurrent_managed_access);
	ck_assert_int_eq(info.cooperative_launch, 1);
}
END_TEST

/* Callers of the first header have no members from cache_bytes on. */
START_TEST(device_info_sizes)
{
	const size_t first = offsetof(struct cua_device_info, cache_bytes);
	struct cua_device_info whole = CUA_DEVICE_INFO_INIT;
	union {
		struct cua_device_info info;
		unsigned char bytes[sizeof(struct cua_device_info) + 24];
	} any;

	ck_assert_uint_eq(first, 256);
	ck_assert_cua(cua_device_query(TEST_BACKEND, 0, &whole));
	for (size_t size = 0; size <= sizeof(any); size++) {
		const int is_known = size == first || size == sizeof(struct cua_device_info);

		memset(&any, 0xa5, sizeof(any));
		any.info.struct_size = size;
		ck_assert_status(cua_device_query(TEST_BACKEND, 0, &any.info),
				 is_known ? CUA_OK : CUA_ERROR_VALUE);
		ck_assert_uint_eq(any.info.struct_size, size);
		for (size_t i = is_known ? size : sizeof(size_t); i < sizeof(any); i++)
			ck_assert_uint_eq(any.bytes[i], 0xa5);
		if (is_known) {
			ck_assert_mem_eq(any.bytes + sizeof(size_t),
					 (const char *)&whole + sizeof(size_t),
					 size - sizeof(size_t));
		}
	}
}
END_TEST

START_TEST(peers)
{
	struct cua_peer_info info = CUA_PEER_INFO_INIT, before;
	int count = 0;

	ck_assert_cua(cua_device_count(TEST_BACKEND, &count));
	info.access = info.native_atomics = info.array_access = info.performance_rank = 7;
	before = info;
	ck_assert_status(cua_device_peer_query(TEST_BACKEND, 0, 0, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_device_peer_query(CUA_BACKEND_AUTO, 0, 0, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_peer_query((enum cua_backend)77, 0, 0, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_peer_query(TEST_BACKEND, -1, 0, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_peer_query(TEST_BACKEND, 0, -1, &info), CUA_ERROR_VALUE);
	ck_assert_status(cua_device_peer_query(TEST_BACKEND, 0, count, &info), CUA_ERROR_NO_DEVICE);
	ck_assert_status(cua_device_peer_query(TEST_BACKEND, count, 0, &info), CUA_ERROR_NO_DEVICE);
	ck_assert_status(cua_device_peer_query(CUA_BACKEND_CUDA, INT_MAX, 0, &info), no_cuda());
	ck_assert_mem_eq(&info, &before, sizeof(info));
	for (int device = 0; device < count; device++) {
		for (int peer = 0; peer < count; peer++) {
			ck_assert_cua(cua_device_peer_query(TEST_BACKEND, device, peer, &info));
			ck_assert_uint_eq(info.struct_size, sizeof(info));
			ck_assert(info.access == 0 || info.access == 1);
			ck_assert(info.access || !info.native_atomics);
			ck_assert_int_ge(info.performance_rank, 0);
			if (device == peer) {
				ck_assert(info.access && info.native_atomics && info.array_access);
				ck_assert_int_eq(info.performance_rank, 0);
			}
		}
	}
}
END_TEST

/*
 * For every struct that begins with its size: only sizes that a release gave the struct are
 * accepted. device_info_sizes tests cua_device_info.
 */
START_TEST(struct_sizes)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_chained *chained = NULL;
	struct cua_hashmap *map = NULL, *made_map;
	struct cua_multimap *multimap;
	struct cua_lock_debug *table;
	uint64_t *words = test_alloc(ctx, 4096), number, five = 5;
	const struct cua_exact_cells_f32 no_cells =
		cua_exact_cells_view_f32(NULL, 0, CUA_EXACT_CELL_UNIT_F32, NULL);
	union {
		size_t struct_size;
		char bytes[1024];
	} any;
	size_t bytes;

	ck_assert_cua(cua_chained_create(ctx, NULL, 4, 4, &chained));
	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, 9, &map));

#define EVERY_SIZE(type, call, undo)                                                               \
	for (size_t size = 0; size <= sizeof(struct type) + 24; size++) {                          \
		struct type *o = (struct type *)(void *)any.bytes;                                 \
		enum cua_status status,                                                            \
			expected = size == sizeof(struct type) ? CUA_OK : CUA_ERROR_VALUE;         \
                                                                                                   \
		memset(&any, 0, sizeof(any));                                                      \
		any.struct_size = size;                                                            \
		status = call;                                                                     \
		ck_assert_msg(status == expected, #type " of %zu bytes, not %zu: %s", size,        \
			      sizeof(struct type), cua_status_name(status));                       \
		if (!status) {                                                                     \
			undo;                                                                      \
		}                                                                                  \
	}
	EVERY_SIZE(cua_peer_info, cua_device_peer_query(TEST_BACKEND, 0, 0, o), )
	EVERY_SIZE(cua_pointer_info, cua_pointer_query(ctx, words, o), )
	EVERY_SIZE(cua_chained_report, cua_chained_verify(chained, o), )
	EVERY_SIZE(cua_hashmap_statistics, cua_hashmap_get_statistics(map, o), )
	EVERY_SIZE(cua_hashmap_options, cua_hashmap_create(ctx, o, CUA_U32, CUA_U32, 9, &made_map),
		   cua_hashmap_destroy(made_map))
	EVERY_SIZE(cua_multimap_options,
		   cua_multimap_create(ctx, o, CUA_U32, CUA_U32, 9, 9, &multimap),
		   cua_multimap_destroy(multimap))
	EVERY_SIZE(cua_lock_debug_options, cua_lock_debug_create(ctx, o, &table),
		   cua_lock_debug_destroy(table))
	EVERY_SIZE(cua_reduce_options,
		   cua_reduce(ctx, o, CUA_REDUCE_SUM, CUA_U64, 0, NULL, NULL, &number), )
	EVERY_SIZE(cua_reduce_options,
		   cua_reduce_workspace(ctx, o, CUA_REDUCE_SUM, CUA_U64, 9, &bytes), )
	EVERY_SIZE(cua_filter_options,
		   cua_filter_array(ctx, o, CUA_U64, 0, NULL, CUA_LT, &five, 0, NULL, &number), )
	EVERY_SIZE(cua_filter_options, cua_filter_workspace(ctx, o, CUA_U64, 9, &bytes), )
	EVERY_SIZE(cua_histogram_options, cua_histogram_bytes(ctx, o, 0, NULL, words), )
	EVERY_SIZE(cua_histogram_options, cua_histogram_workspace(ctx, o, 9, &bytes), )
	EVERY_SIZE(cua_segment_options,
		   cua_reduce_by_key(ctx, o, CUA_REDUCE_SUM, CUA_U32, CUA_U64, 0, NULL, NULL, 0,
				     NULL, NULL, &number), )
	EVERY_SIZE(cua_segment_options,
		   cua_segmented_reduce(ctx, o, CUA_REDUCE_SUM, CUA_U64, 0, NULL, 0, words, NULL), )
	EVERY_SIZE(cua_scatter_options,
		   cua_scatter(ctx, o, CUA_SCATTER_ADD, CUA_U32, CUA_U64, 0, NULL, NULL, 0, NULL), )
	EVERY_SIZE(cua_scatter_options,
		   cua_scatter_workspace(ctx, o, CUA_SCATTER_ADD, CUA_U32, CUA_U64, 9, 9, &bytes), )
	EVERY_SIZE(cua_group_by_options,
		   cua_group_by(ctx, o, CUA_U32, 0, NULL, NULL, 0, 0, NULL, &number), )
	EVERY_SIZE(cua_group_by_options,
		   cua_group_by_workspace(ctx, o, CUA_U32, 9, NULL, 0, 9, &bytes), )
	EVERY_SIZE(cua_unique_options, cua_unique(ctx, o, CUA_U32, 0, NULL, 0, NULL, &number), )
	EVERY_SIZE(cua_unique_options, cua_unique_workspace(ctx, o, CUA_U32, 9, 9, &bytes), )
	EVERY_SIZE(cua_exact_cells_options, cua_exact_cells_finish_f32(ctx, o, &no_cells, NULL), )
	EVERY_SIZE(cua_join_options,
		   cua_join(ctx, o, CUA_U32, 0, NULL, 0, NULL, 0, NULL, NULL, &number), )
	EVERY_SIZE(cua_join_options, cua_join_workspace(ctx, o, CUA_U32, 9, 9, &bytes), )
	EVERY_SIZE(cua_is_in_options, cua_is_in(ctx, o, CUA_U32, 0, NULL, 0, NULL, NULL), )
	EVERY_SIZE(cua_is_in_options, cua_is_in_workspace(ctx, o, CUA_U32, 9, 9, &bytes), )
#undef EVERY_SIZE
	cua_hashmap_destroy(map);
	cua_chained_destroy(chained);
	test_free(ctx, words);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- life ---- */

START_TEST(create)
{
	struct cua_context *ctx = NULL, *untouched = (struct cua_context *)&ctx;
	int count = 0;

	ck_assert_cua(cua_device_count(TEST_BACKEND, &count));
	ck_assert_status(cua_context_create(TEST_BACKEND, 0, NULL), CUA_ERROR_NULL);
	ctx = untouched;
	ck_assert_status(cua_context_create((enum cua_backend)3, 0, &ctx), CUA_ERROR_VALUE);
	ck_assert_status(cua_context_create((enum cua_backend) - 1, 0, &ctx), CUA_ERROR_VALUE);
	ck_assert_status(cua_context_create(TEST_BACKEND, -1, &ctx), CUA_ERROR_VALUE);
	ck_assert_status(cua_context_create(CUA_BACKEND_AUTO, -1, &ctx), CUA_ERROR_VALUE);
	ck_assert_status(cua_context_create(TEST_BACKEND, count, &ctx), CUA_ERROR_NO_DEVICE);
	ck_assert_status(cua_context_create(TEST_BACKEND, INT_MAX, &ctx), CUA_ERROR_NO_DEVICE);
	if (TEST_BACKEND == CUA_BACKEND_CPU)
		ck_assert_status(cua_context_create(CUA_BACKEND_CUDA, 0, &ctx), no_cuda());
	ck_assert_ptr_eq(ctx, untouched);

	ck_assert_cua(cua_context_create(TEST_BACKEND, 0, &ctx));
	ck_assert_int_eq((int)cua_context_backend(ctx), (int)TEST_BACKEND);
	ck_assert_int_eq(cua_context_device(ctx), 0);
	ck_assert_ptr_null(cua_context_stream(ctx));
	ck_assert_uint_eq(cua_context_threads(ctx), default_threads());
	ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_int_eq(use_context(ctx, 1), 0);
	cua_context_destroy(ctx);

	/* AUTO selects the GPU if there is a GPU, else the CPU */
	ck_assert_cua(cua_context_create(CUA_BACKEND_AUTO, 0, &ctx));
	ck_assert_int_eq((int)cua_context_backend(ctx), (int)TEST_BACKEND);
	ck_assert_int_eq(use_context(ctx, 2), 0);
	cua_context_destroy(ctx);
	/* also for a device number without a GPU: the CPU */
	ck_assert_cua(cua_context_create(CUA_BACKEND_AUTO, 1000, &ctx));
	ck_assert_int_eq((int)cua_context_backend(ctx), (int)CUA_BACKEND_CPU);
	ck_assert_int_eq(cua_context_device(ctx), 0);
	cua_context_destroy(ctx);

	cua_context_destroy(NULL);
	for (int i = 0; i < 10; i++) {
		ck_assert_cua(cua_context_create(TEST_BACKEND, 0, &ctx));
		cua_context_destroy(ctx);
	}
}
END_TEST

START_TEST(null_context)
{
	ck_assert_int_eq((int)cua_context_backend(NULL), (int)CUA_BACKEND_AUTO);
	ck_assert_int_eq(cua_context_device(NULL), -1);
	ck_assert_ptr_null(cua_context_stream(NULL));
	ck_assert_uint_eq(cua_context_threads(NULL), 0);
	ck_assert_int_eq(cua_context_cuda_error(NULL), 0);
	ck_assert_status(cua_context_set_stream(NULL, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_context_set_threads(NULL, 1), CUA_ERROR_NULL);
	ck_assert_status(cua_context_reserve(NULL, 1), CUA_ERROR_NULL);
	ck_assert_status(cua_context_synchronize(NULL), CUA_ERROR_NULL);
}
END_TEST

START_TEST(stream)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_cua(cua_context_set_stream(ctx, NULL));
	else
		ck_assert_status(cua_context_set_stream(ctx, NULL), CUA_ERROR_NO_DEVICE);
	ck_assert_ptr_null(cua_context_stream(ctx));
	ck_assert_int_eq(use_context(ctx, 3), 0);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(threads)
{
	static const unsigned counts[] = {1, 2, 3, 7, 7, 40, 1, 5};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		ck_assert_cua(cua_context_set_threads(ctx, counts[i]));
		ck_assert_uint_eq(cua_context_threads(ctx), counts[i]);
		ck_assert_int_eq(use_context(ctx, i), 0);
		ck_assert_int_eq(use_context(ctx, ~i), 0);
	}
	ck_assert_status(cua_context_set_threads(ctx, 1025), CUA_ERROR_VALUE);
	ck_assert_status(cua_context_set_threads(ctx, UINT_MAX), CUA_ERROR_VALUE);
	ck_assert_uint_eq(cua_context_threads(ctx), 5);
	ck_assert_cua(cua_context_set_threads(ctx, 1024));
	ck_assert_uint_eq(cua_context_threads(ctx), 1024);
	ck_assert_cua(cua_context_set_threads(ctx, 0));
	ck_assert_uint_eq(cua_context_threads(ctx), default_threads());
	ck_assert_int_eq(use_context(ctx, 9), 0);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * The threads of a context that was created on a thread bound to one CPU, and of a context whose
 * thread count is chosen again there.
 */
struct bound {
	struct cua_context *ctx;
	int skipped;
	unsigned created, renewed;
};

static void *bound_main(void *arg)
{
	struct bound *b = arg;
	struct cua_context *ctx;
	cpu_set_t set;
	int cpu = 0;

	b->skipped = 1;
	if (sched_getaffinity(0, sizeof(set), &set))
		return NULL;
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return NULL;
	b->skipped = 0;
	if (cua_context_create(TEST_BACKEND, 0, &ctx))
		return NULL;
	b->created = cua_context_threads(ctx);
	cua_context_destroy(ctx);
	if (cua_context_set_threads(b->ctx, 0) == CUA_OK)
		b->renewed = cua_context_threads(b->ctx);
	return NULL;
}

START_TEST(affinity)
{
	struct bound b = {test_context(TEST_BACKEND), 0, 0, 0};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, bound_main, &b), 0);
	pthread_join(thread, NULL);
	if (b.skipped) {
		printf("affinity: skipped, threads cannot be bound here\n");
	} else {
		ck_assert_uint_eq(b.created, 1);
		ck_assert_uint_eq(b.renewed, 1);
	}
	ck_assert_cua(cua_context_set_threads(b.ctx, 0));
	ck_assert_uint_eq(cua_context_threads(b.ctx), default_threads());
	cua_context_destroy(b.ctx);
}
END_TEST

START_TEST(reserve)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	ck_assert_cua(cua_context_reserve(ctx, 0));
	ck_assert_cua(cua_context_reserve(ctx, 1));
	/* growing, shrinking (a no-op) and growing again */
	for (size_t bytes = 1; bytes <= (size_t)1 << 25; bytes *= 3)
		ck_assert_cua(cua_context_reserve(ctx, bytes));
	ck_assert_cua(cua_context_reserve(ctx, 100));
	ck_assert_status(cua_context_reserve(ctx, SIZE_MAX), CUA_ERROR_SIZE);
	ck_assert_status(cua_context_reserve(ctx, SIZE_MAX / 2 + 1), CUA_ERROR_SIZE);
	if (may_run_out())
		ck_assert_status(cua_context_reserve(ctx, SIZE_MAX / 4), CUA_ERROR_NO_MEMORY);
	ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
	ck_assert_int_eq(use_context(ctx, 4), 0);
	ck_assert_cua(cua_context_reserve(ctx, (size_t)1 << 26));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- several at once ---- */

START_TEST(several_contexts)
{
	enum { N = 5 };
	struct cua_context *all[N], *cpu;

	for (int i = 0; i < N; i++)
		all[i] = test_context(TEST_BACKEND);
	/* plus a context on the CPU, for either backend of the rest */
	cpu = test_context(CUA_BACKEND_CPU);
	for (uint32_t round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++)
			ck_assert_int_eq(use_context(all[i], round * N + (uint32_t)i), 0);
		ck_assert_int_eq(use_context(cpu, round), 0);
	}
	for (int i = N - 1; i >= 0; i -= 2)
		cua_context_destroy(all[i]);
	ck_assert_int_eq(use_context(cpu, 7), 0);
	for (int i = N - 2; i >= 0; i -= 2) {
		ck_assert_int_eq(use_context(all[i], 8), 0);
		cua_context_destroy(all[i]);
	}
	cua_context_destroy(cpu);
}
END_TEST

struct thread_of_context {
	pthread_t thread;
	enum cua_backend backend;
	uint32_t value;
	int wrong;
};

/*
 * A hash map (also saved and loaded), a multimap and a chained table, with keys and values derived
 * from `value`.
 */
static int use_tables(struct cua_context *ctx, uint32_t value)
{
	enum { N = 20000 };
	const char *tmp = getenv("TMPDIR");
	struct cua_hashmap *map, *loaded;
	struct cua_multimap *many;
	struct cua_chained *chained;
	uint64_t *host = malloc(N * 8), size = 0, all = 0, entries = 0;
	void *keys, *values;
	char path[4096];
	int wrong = 0;

	if (!host)
		return __LINE__;
	snprintf(path, sizeof(path), "%s/check_context.%ld.%u", tmp && *tmp ? tmp : "/tmp",
		 (long)getpid(), value);
	TRY(cua_alloc(ctx, N, 8, &keys));
	TRY(cua_alloc(ctx, N, 8, &values));
	for (uint64_t i = 0; i < N; i++)
		host[i] = (i << 32 | value) * 0x9e3779b97f4a7c15u;
	TRY(cua_copy(ctx, keys, host, N * 8));
	TRY(cua_hashmap_create(ctx, NULL, CUA_U64, CUA_U64, N, &map));
	TRY(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, N, N, &many));
	TRY(cua_chained_create(ctx, NULL, N, N, &chained));
	TRY(cua_hashmap_insert_n(map, N, keys, keys, NULL));
	TRY(cua_multimap_insert_n(many, N, keys, keys, NULL));
	TRY(cua_chained_insert_n(chained, N, keys, keys));
	TRY(cua_hashmap_save(map, path));
	TRY(cua_hashmap_destroy(map));
	TRY(cua_hashmap_load(ctx, NULL, path, &loaded));
	unlink(path);
	TRY(cua_hashmap_size(loaded, &size));
	TRY(cua_multimap_size(many, &all));
	TRY(cua_chained_size(chained, &entries));
	if (size != N || all != N || entries != N)
		wrong = __LINE__;
	for (int table = 0; table < 2; table++) {
		memset(host, 0, N * 8);
		TRY(cua_copy(ctx, values, host, N * 8));
		if (table)
			TRY(cua_chained_find_n(chained, N, keys, values, NULL));
		else
			TRY(cua_hashmap_find_n(loaded, N, keys, values, NULL));
		TRY(cua_copy(ctx, host, values, N * 8));
		for (uint64_t i = 0; i < N; i++)
			if (host[i] != (i << 32 | value) * 0x9e3779b97f4a7c15u)
				wrong = __LINE__;
	}
	TRY(cua_hashmap_destroy(loaded));
	TRY(cua_multimap_destroy(many));
	TRY(cua_chained_destroy(chained));
	TRY(cua_free(ctx, keys));
	TRY(cua_free(ctx, values));
	free(host);
	return wrong;
}

static int thread_life(enum cua_backend backend, uint32_t value)
{
	for (uint32_t round = 0; round < 3; round++) {
		struct cua_context *ctx;
		int wrong;

		TRY(cua_context_create(backend, 0, &ctx));
		TRY(cua_context_set_threads(ctx, 1 + value % 3));
		for (uint32_t i = 0; i < 3; i++) {
			wrong = use_context(ctx, value * 100 + round * 10 + i);
			if (wrong)
				return wrong;
		}
		wrong = use_tables(ctx, value * 100 + round);
		if (wrong)
			return wrong;
		cua_context_destroy(ctx);
	}
	return 0;
}

static void *thread_main(void *arg)
{
	struct thread_of_context *t = arg;

	t->wrong = thread_life(t->backend, t->value);
	return NULL;
}

START_TEST(several_threads)
{
	enum { N = 6 };
	struct thread_of_context threads[N];

	if (test_under("racecheck")) {
		printf("several_threads: skipped, the tool stalls when several threads launch\n");
		return;
	}
	for (int i = 0; i < N; i++) {
		threads[i].backend = i % 3 == 2 ? CUA_BACKEND_CPU : TEST_BACKEND;
		threads[i].value = (uint32_t)i;
		threads[i].wrong = 0;
		ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]),
				 0);
	}
	for (int i = 0; i < N; i++) {
		pthread_join(threads[i].thread, NULL);
		ck_assert_msg(!threads[i].wrong, "thread %d failed in line %d", i,
			      threads[i].wrong);
	}
}
END_TEST

/* The first thread creates a context, the second thread uses it, the third thread destroys it. */
static void *use_main(void *arg)
{
	return use_context(arg, 11) ? arg : NULL;
}

static void *destroy_main(void *arg)
{
	cua_context_destroy(arg);
	return NULL;
}

START_TEST(handed_from_thread_to_thread)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	pthread_t thread;
	void *result = ctx;

	ck_assert_int_eq(use_context(ctx, 10), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, use_main, ctx), 0);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
	ck_assert_int_eq(use_context(ctx, 12), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy_main, ctx), 0);
	pthread_join(thread, NULL);
}
END_TEST

#if !TEST_CUDA

/* ---- signals ---- */

static volatile sig_atomic_t signals_taken;

static void take_signal(int number)
{
	(void)number;
	signals_taken++;
}

/*
 * A signal to the process is delivered to the program's own thread, never to a thread of a context.
 */
START_TEST(signals)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct sigaction action, former;
	sigset_t block, before, after, pending;

	memset(&action, 0, sizeof(action));
	action.sa_handler = take_signal;
	sigemptyset(&action.sa_mask);
	signals_taken = 0;
	ck_assert_int_eq(sigaction(SIGUSR1, &action, &former), 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	ck_assert_cua(cua_context_set_threads(ctx, 4));
	ck_assert_int_eq(use_context(ctx, 40), 0);
	/* starting threads leaves the caller's mask unchanged */
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	for (int number = 1; number < 32; number++)
		ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &block, NULL), 0);
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	/* a helper that received the signal would handle it before its next work is done */
	ck_assert_int_eq(use_context(ctx, 41), 0);
	ck_assert_int_eq(sigpending(&pending), 0);
	ck_assert_int_eq(sigismember(&pending, SIGUSR1), 1);
	ck_assert_int_eq((int)signals_taken, 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	ck_assert_int_eq((int)signals_taken, 1);
	ck_assert_int_eq(sigaction(SIGUSR1, &former, NULL), 0);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- fork ---- */

/*
 * Runs in the child: uses the parent's context, with more and with fewer threads, and a context of
 * its own.
 */
static int child_life(struct cua_context *ctx, void *from_parent)
{
	struct cua_context *own;
	int wrong;

	wrong = use_context(ctx, 21);
	if (wrong)
		return wrong;
	TRY(cua_context_set_threads(ctx, 3));
	wrong = use_context(ctx, 22);
	if (wrong)
		return wrong;
	TRY(cua_context_create(CUA_BACKEND_AUTO, 0, &own));
	wrong = use_context(own, 23);
	if (wrong)
		return wrong;
	/* the child has its own copies of the parent's memory and of the table of allocations */
	TRY(cua_free(ctx, from_parent));
	cua_context_destroy(own);
	cua_context_destroy(ctx);
	return 0;
}

struct allocator {
	struct cua_context *ctx;
	int stop;
	int wrong;
};

/* Keeps the registry of allocations busy while another thread forks. */
static void *allocator_main(void *arg)
{
	struct allocator *a = arg;

	while (!__atomic_load_n(&a->stop, __ATOMIC_ACQUIRE)) {
		void *p;

		if (cua_alloc(a->ctx, 1, 64, &p) || cua_free(a->ctx, p))
			a->wrong = 1;
	}
	return NULL;
}

START_TEST(forks)
{
	struct cua_context *ctx, *other;
	struct allocator allocator = {NULL, 0, 0};
	pthread_t thread;
	void *p;

#if defined(__SANITIZE_THREAD__)
	printf("forks: skipped, ThreadSanitizer allows a child of threads none of its own\n");
	return;
#endif
	ctx = test_context(CUA_BACKEND_CPU);
	other = test_context(CUA_BACKEND_CPU);
	allocator.ctx = test_context(CUA_BACKEND_CPU);
	ck_assert_cua(cua_context_set_threads(ctx, 4));
	ck_assert_cua(cua_context_set_threads(other, 2));
	p = test_alloc(ctx, 1000);
	ck_assert_int_eq(use_context(ctx, 20), 0);
	ck_assert_int_eq(use_context(other, 20), 0);
	/* AddressSanitizer's allocator may be locked in a child of several threads */
	if (!SANITIZED)
		ck_assert_int_eq(pthread_create(&thread, NULL, allocator_main, &allocator), 0);
	for (int i = 0; i < (test_quick() ? 3 : 20); i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			int wrong;

			/*
			 * a hang is a failure; the test framework's own handler would end the
			 * parent
			 */
			signal(SIGALRM, SIG_DFL);
			alarm(60);
			wrong = child_life(ctx, p);
			if (wrong)
				fprintf(stderr, "child: line %d\n", wrong);
			_exit(wrong != 0);
		}
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fork %d: status %d",
			      i, status);
		/* the parent continues as before */
		ck_assert_int_eq(use_context(ctx, 30), 0);
	}
	__atomic_store_n(&allocator.stop, 1, __ATOMIC_RELEASE);
	if (!SANITIZED)
		pthread_join(thread, NULL);
	ck_assert_int_eq(allocator.wrong, 0);
	ck_assert_int_eq(use_context(other, 31), 0);
	test_free(ctx, p);
	cua_context_destroy(allocator.ctx);
	cua_context_destroy(other);
	cua_context_destroy(ctx);
}
END_TEST

#endif

#if TEST_CUDA
/*
 * Calls of contexts while another stream is captured in the default mode. Calls that wait or allocate would invalidate
 * this capture if they did not select the relaxed mode.
 */
START_TEST(foreign_capture)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *other;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
	cudaStream_t stream;
	cudaGraph_t graph;
	struct cua_lock_debug *table;
	struct cua_pitched rows;
	char packed[35] = "rows", got[35];
	size_t nodes = 1;
	void *p;

	/* loads the kernels */
	ck_assert_int_eq(use_context(ctx, 40), 0);
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	ck_assert_int_eq(use_context(ctx, 41), 0);
	ck_assert_cua(cua_context_reserve(ctx, (size_t)1 << 22));
	ck_assert_cua(cua_alloc(ctx, 1000, 8, &p));
	ck_assert_cua(cua_free(ctx, p));
	ck_assert_cua(cua_alloc_2d(ctx, 5, 7, 1, &rows));
	ck_assert_cua(cua_copy_to_pitched(ctx, &rows, packed));
	ck_assert_cua(cua_copy_from_pitched(ctx, got, &rows));
	ck_assert_mem_eq(got, packed, sizeof(got));
	ck_assert_cua(cua_free_pitched(ctx, &rows));
	/* mapped memory */
	ck_assert_cua(cua_lock_debug_create(ctx, NULL, &table));
	ck_assert_cua(cua_lock_debug_destroy(table));
	ck_assert_cua(cua_context_create(TEST_BACKEND, 0, &other));
	ck_assert_int_eq(use_context(other, 42), 0);
	cua_context_destroy(other);
	/* the mode of the thread is the same as before */
	ck_assert_cuda(cudaThreadExchangeStreamCaptureMode(&mode));
	ck_assert_int_eq((int)mode, (int)cudaStreamCaptureModeGlobal);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphGetNodes(graph, NULL, &nodes));
	ck_assert_uint_eq(nodes, 0);
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cuda(cudaStreamDestroy(stream));
	cua_context_destroy(ctx);
}
END_TEST

#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("context");
	TCase *tcase = tcase_create("context");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, statuses);
	tcase_add_test(tcase, types);
	tcase_add_test(tcase, atomic_paths);
	tcase_add_test(tcase, version);
	tcase_add_test(tcase, devices);
	tcase_add_test(tcase, hardware);
	tcase_add_test(tcase, device_info_sizes);
	tcase_add_test(tcase, peers);
	tcase_add_test(tcase, struct_sizes);
	tcase_add_test(tcase, create);
	tcase_add_test(tcase, null_context);
	tcase_add_test(tcase, stream);
	tcase_add_test(tcase, threads);
	tcase_add_test(tcase, affinity);
	tcase_add_test(tcase, reserve);
	tcase_add_test(tcase, several_contexts);
	tcase_add_test(tcase, several_threads);
	tcase_add_test(tcase, handed_from_thread_to_thread);
#if TEST_CUDA
	tcase_add_test(tcase, foreign_capture);
#else
	tcase_add_test(tcase, signals);
	tcase_add_test(tcase, forks);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
#if !TEST_CUDA
	/* a machine without a GPU, for AUTO */
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
#endif
	return test_run(make_suite(), TEST_BACKEND);
}
