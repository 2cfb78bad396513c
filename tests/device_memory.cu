/* SPDX-License-Identifier: MIT */
/* Memory inside kernels and graphs, and kinds of memory that only the CUDA runtime allocates. */
#include "device.h"

#include <pthread.h>

/* ---- spaces ---- */

static __device__ int in_global;
static __managed__ int in_managed;

enum { SPACE_ALLOCATED, SPACE_VARIABLE, SPACE_MANAGED, SPACE_SHARED, SPACE_LOCAL, SPACES };

static __global__ void spaces_kernel(const int *allocated, int *result)
{
	__shared__ int in_shared;
	int in_local = (int)threadIdx.x;

	result[SPACE_ALLOCATED] = cua_is_global(allocated);
	result[SPACE_VARIABLE] = cua_is_global(&in_global);
	result[SPACE_MANAGED] = cua_is_global(&in_managed);
	result[SPACE_SHARED] = cua_is_global(&in_shared);
	result[SPACE_LOCAL] = cua_is_global(&in_local);
}

START_TEST(spaces)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	int *p = (int *)test_alloc(ctx, SPACES * sizeof(int)), result[SPACES];

	spaces_kernel<<<1, 1>>>(p, p);
	ck_assert_cuda(cudaGetLastError());
	test_download(ctx, result, p, sizeof(result));
	ck_assert_int_eq(result[SPACE_ALLOCATED], 1);
	ck_assert_int_eq(result[SPACE_VARIABLE], 1);
	ck_assert_int_eq(result[SPACE_MANAGED], 1);
	ck_assert_int_eq(result[SPACE_SHARED], 0);
	ck_assert_int_eq(result[SPACE_LOCAL], 0);
	test_free(ctx, p);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- element addresses ---- */

/* Writes its packed index into each element. */
static __global__ void number_kernel(struct cua_pitched a)
{
	size_t n = a.width * a.height * a.depth;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x) {
		uint64_t *p = (uint64_t *)cua_pitched_at(&a, i % a.width, i / a.width % a.height,
							 i / a.width / a.height);

		*p = i;
	}
}

static __global__ void check_numbers_kernel(struct cua_pitched a, uint64_t first, unsigned *wrong)
{
	for (size_t z = blockIdx.x; z < a.depth; z += gridDim.x)
		for (size_t y = 0; y < a.height; y++)
			for (size_t x = threadIdx.x; x < a.width; x += blockDim.x) {
				uint64_t expected = first + (z * a.height + y) * a.width + x;

				if (*(const uint64_t *)cua_pitched_at(&a, x, y, z) != expected)
					atomicAdd(wrong, 1u);
			}
}

START_TEST(element_addresses)
{
	static const size_t sizes[][3] = {
		{1, 1, 1}, {32, 5, 1}, {33, 7, 3}, {100, 1, 9}, {1000, 31, 4}};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned *wrong = (unsigned *)test_alloc(ctx, sizeof(*wrong)), zero = 0, result;

	for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k][0] * sizes[k][1] * sizes[k][2];
		uint64_t *packed = (uint64_t *)test_malloc(n * sizeof(*packed));
		struct cua_pitched a;

		ck_assert_cua(cua_alloc_3d(ctx, sizes[k][0], sizes[k][1], sizes[k][2], 8, &a));
		number_kernel<<<7, 96>>>(a);
		ck_assert_cuda(cudaGetLastError());
		ck_assert_cua(cua_copy_from_pitched(ctx, packed, &a));
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(packed[i], i);
		for (size_t i = 0; i < n; i++)
			packed[i] = i + 1000;
		ck_assert_cua(cua_copy_to_pitched(ctx, &a, packed));
		ck_assert_cua(cua_fill(ctx, wrong, 1, 4, &zero));
		check_numbers_kernel<<<3, 64>>>(a, 1000, wrong);
		ck_assert_cuda(cudaGetLastError());
		test_download(ctx, &result, wrong, sizeof(result));
		ck_assert_uint_eq(result, 0);
		ck_assert_cua(cua_free_pitched(ctx, &a));
		free(packed);
	}
	test_free(ctx, wrong);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- static variables ---- */

#define TABLE_SIZE 1000

static __device__ uint32_t table[TABLE_SIZE];
static __device__ double scalar;

static __global__ void double_table_kernel(void)
{
	for (unsigned i = threadIdx.x; i < TABLE_SIZE; i += blockDim.x)
		table[i] *= 2;
	if (threadIdx.x == 0)
		scalar += 0.5;
}

START_TEST(symbols)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_pointer_info info = CUA_POINTER_INFO_INIT;
	static uint32_t in[TABLE_SIZE], out[TABLE_SIZE];
	void *address = NULL, *scalar_address = NULL;
	const double value = 1.25;
	double result = 0;

	for (uint32_t i = 0; i < TABLE_SIZE; i++)
		in[i] = i * 3;
	ck_assert_cua(CUA_SYMBOL_ADDRESS(table, &address));
	ck_assert_cua(CUA_SYMBOL_ADDRESS(scalar, &scalar_address));
	ck_assert_ptr_nonnull(address);
	ck_assert_ptr_ne(address, scalar_address);
	ck_assert_cua(cua_pointer_query(ctx, address, &info));
	ck_assert_int_eq((int)info.backend, (int)CUA_BACKEND_CUDA);
	ck_assert_int_eq(info.device, 0);
	ck_assert_int_eq(info.accessible, 1);

	ck_assert_cua(cua_symbol_write(ctx, address, 0, in, sizeof(in)));
	ck_assert_cua(cua_symbol_write(ctx, scalar_address, 0, &value, sizeof(value)));
	double_table_kernel<<<1, 128>>>();
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cua(cua_symbol_read(ctx, out, address, 0, sizeof(out)));
	ck_assert_cua(cua_symbol_read(ctx, &result, scalar_address, 0, sizeof(result)));
	ck_assert_double_eq(result, 1.75);
	for (uint32_t i = 0; i < TABLE_SIZE; i++)
		ck_assert_uint_eq(out[i], i * 6);
	/* a part of the symbol */
	ck_assert_cua(cua_symbol_write(ctx, address, 40, in + 500, 8));
	ck_assert_cua(cua_symbol_read(ctx, out, address, 36, 16));
	ck_assert_uint_eq(out[0], 9 * 6);
	ck_assert_uint_eq(out[1], 1500);
	ck_assert_uint_eq(out[2], 1503);
	ck_assert_uint_eq(out[3], 12 * 6);

	if (info.base)
		ck_assert_status(cua_symbol_write(ctx, address, (size_t)1 << 40, in, 4),
				 CUA_ERROR_SIZE);
	ck_assert_status(cua_symbol_write(ctx, &in, 0, out, 4), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_symbol_write(cpu, address, 0, in, 4), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_symbol_read(cpu, out, address, 0, 4), CUA_ERROR_MEMORY_KIND);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- graphs ---- */

#define GRAPH_BYTES 100003

START_TEST(graphs)
{
	static const size_t sizes[] = {1, 2, 4, 8, 16};
	static unsigned char out[GRAPH_BYTES], expected[5][GRAPH_BYTES];
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *other = test_context(CUA_BACKEND_CUDA);
	unsigned char pattern[16], host[16] = {0}, *pinned = NULL;
	size_t filled[5];
	cudaStream_t stream, other_stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	struct cua_pitched a;
	char *p[5], *copies[5], *packed;
	void *late = &late;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaMallocHost((void **)&pinned, 64));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cua(cua_context_set_stream(other, other_stream));
	ck_assert_ptr_eq(cua_context_stream(ctx), stream);
	for (int k = 0; k < 5; k++) {
		p[k] = (char *)test_alloc(ctx, GRAPH_BYTES);
		copies[k] = (char *)test_alloc(ctx, GRAPH_BYTES);
		/* patterns below 16 bytes: the address is not aligned to 16 bytes */
		filled[k] = (GRAPH_BYTES - sizes[k]) / sizes[k] * sizes[k];
	}
	ck_assert_cua(cua_alloc_3d(ctx, 37, 5, 3, 4, &a));
	packed = (char *)test_alloc(ctx, 37 * 5 * 3 * 4);

	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int k = 0; k < 5; k++) {
		for (int i = 0; i < 16; i++)
			pattern[i] = (unsigned char)(17 * k + i + 1);
		ck_assert_cua(
			cua_fill(ctx, p[k] + sizes[k], filled[k] / sizes[k], sizes[k], pattern));
		ck_assert_cua(cua_copy(ctx, copies[k], p[k], GRAPH_BYTES));
		memset(expected[k], 0, GRAPH_BYTES);
		for (size_t i = 0; i < filled[k]; i++)
			expected[k][sizes[k] + i] = pattern[i % sizes[k]];
	}
	for (int i = 0; i < 4; i++)
		pattern[i] = (unsigned char)(0xf0 + i);
	ck_assert_cua(cua_fill_pitched(ctx, &a, 4, pattern));
	ck_assert_cua(cua_copy_from_pitched(ctx, packed, &a));
	ck_assert_cua(cua_copy_to_pitched(ctx, &a, packed));
	/* pinned memory is read when the graph runs */
	ck_assert_cua(cua_copy(ctx, packed, pinned, 4));
	/* a call that has to wait: refused, and the capture continues */
	ck_assert_status(cua_copy(ctx, host, p[0], 16), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_copy(ctx, p[0], host, 16), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_symbol_write(ctx, p[0], 0, host, 16), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_symbol_read(ctx, host, p[0], 0, 16), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_copy_to_pitched(ctx, &a, out), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_copy_from_pitched(ctx, out, &a), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_alloc(ctx, 16, 1, &late), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_alloc_2d(ctx, 1, 1, 1, &a), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_free(ctx, packed), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_free_pitched(ctx, &a), CUA_ERROR_CAPTURE);
	ck_assert_cua(cua_free(ctx, NULL));
	ck_assert_status(cua_context_synchronize(ctx), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_context_reserve(ctx, (size_t)1 << 24), CUA_ERROR_WORKSPACE);
	ck_assert_cua(cua_context_reserve(ctx, 1));
	ck_assert_ptr_eq(late, &late);
	/* a context with another stream is not affected */
	ck_assert_cua(cua_alloc(other, 1000, 1, &late));
	ck_assert_cua(cua_fill(other, late, 1000, 1, pattern));
	ck_assert_cua(cua_copy(other, pinned + 32, late, 16));
	ck_assert_cua(cua_context_synchronize(other));
	ck_assert_uint_eq(pinned[32 + 15], 0xf0);
	ck_assert_cua(cua_free(other, late));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));

	/* the graph has its own copy of the pattern */
	memset(pattern, 0xee, sizeof(pattern));
	for (int round = 0; round < 3; round++) {
		const unsigned char zero = 0;

		for (int k = 0; k < 5; k++) {
			ck_assert_cua(cua_fill(ctx, p[k], GRAPH_BYTES, 1, &zero));
			ck_assert_cua(cua_fill(ctx, copies[k], GRAPH_BYTES, 1, &pattern));
		}
		ck_assert_cua(cua_fill(ctx, packed, 37 * 5 * 3 * 4, 1, &zero));
		ck_assert_cua(cua_fill_pitched(ctx, &a, 1, &zero));
		memset(pinned, 0x21 + round, 4);
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cua(cua_context_synchronize(ctx));
		for (int k = 0; k < 5; k++) {
			test_download(ctx, out, copies[k], GRAPH_BYTES);
			ck_assert_int_eq(memcmp(out, expected[k], GRAPH_BYTES), 0);
		}
		test_download(ctx, out, packed, 37 * 5 * 3 * 4);
		for (int i = 0; i < 37 * 5 * 3 * 4; i++)
			ck_assert_uint_eq(out[i], i < 4 ? 0x21 + round : 0xf0 + i % 4);
		ck_assert_cua(cua_copy_from_pitched(ctx, out, &a));
		for (int i = 0; i < 37 * 5 * 3 * 4; i++)
			ck_assert_uint_eq(out[i], 0xf0 + i % 4);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	for (int k = 0; k < 5; k++) {
		test_free(ctx, p[k]);
		test_free(ctx, copies[k]);
	}
	test_free(ctx, packed);
	ck_assert_cua(cua_free_pitched(ctx, &a));
	ck_assert_cuda(cudaFreeHost(pinned));
	cua_context_destroy(other);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
	ck_assert_cuda(cudaStreamDestroy(other_stream));
}
END_TEST

/* ---- memory kinds ---- */

struct query_in_thread {
	struct cua_context *ctx;
	const void *p;
	struct cua_pointer_info info = CUA_POINTER_INFO_INIT;
	enum cua_status status;
};

static void *query_main(void *arg)
{
	struct query_in_thread *q = (struct query_in_thread *)arg;

	q->info.struct_size = sizeof(q->info);
	q->status = cua_pointer_query(q->ctx, q->p, &q->info);
	return NULL;
}

/* Memory that both backends access: each fills it, and each reads it. */
static void try_both(struct cua_context *cuda, struct cua_context *cpu, void *p,
		     enum cua_backend owner)
{
	const uint32_t values[2] = {0x01020304, 0x0a0b0c0d};
	struct cua_context *contexts[2] = {cuda, cpu};
	uint32_t *words = (uint32_t *)p;
	struct cua_pointer_info info = CUA_POINTER_INFO_INIT;

	for (int i = 0; i < 2; i++) {
		ck_assert_cua(cua_fill(contexts[i], p, 1024, 4, &values[i]));
		ck_assert_cua(cua_context_synchronize(contexts[i]));
		for (int k = 0; k < 1024; k++)
			ck_assert_uint_eq(words[k], values[i]);
		ck_assert_cua(cua_pointer_query(contexts[i], words + 100, &info));
		ck_assert_int_eq((int)info.backend, (int)owner);
		ck_assert_int_eq(info.accessible, 1);
		ck_assert_int_eq(info.host_accessible, 1);
		/* a pointer of any kind that is no allocation of this library */
		ck_assert_status(cua_free(contexts[i], words + 100), CUA_ERROR_MEMORY_KIND);
	}
}

START_TEST(kinds)
{
	struct cua_context *cuda = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	static uint32_t ordinary[1024];
	const uint32_t value = 77;
	uint32_t on_host[4] = {1, 2, 3, 4};
	void *pinned, *managed, *registered, *device = test_alloc(cuda, 4096);
	struct query_in_thread q;
	pthread_t thread;
	int pageable = 0;

	ck_assert_cuda(cudaMallocHost(&pinned, 4096));
	ck_assert_cuda(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
	registered = aligned_alloc(4096, 4096);
	ck_assert_ptr_nonnull(registered);
	ck_assert_cuda(cudaHostRegister(registered, 4096, cudaHostRegisterDefault));
	try_both(cuda, cpu, pinned, CUA_BACKEND_CPU);
	try_both(cuda, cpu, managed, CUA_BACKEND_CUDA);
	try_both(cuda, cpu, registered, CUA_BACKEND_CPU);
	/* wrong memory kind: pinned for the CUDA backend, managed for the CPU */
	ck_assert_status(cua_free(cuda, pinned), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(cpu, pinned), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(cpu, managed), CUA_ERROR_MEMORY_KIND);

	/* ordinary memory: with and without access by the device */
	ck_assert_cuda(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, 0));
	/* the tools (with small sizes) do not know of the device's access */
	if (!pageable || !test_quick()) {
		ck_assert_status(cua_fill(cuda, ordinary, 1024, 4, &value),
				 pageable ? CUA_OK : CUA_ERROR_MEMORY_KIND);
		ck_assert_cua(cua_context_synchronize(cuda));
		for (int i = 0; i < 1024; i++)
			ck_assert_uint_eq(ordinary[i], pageable ? value : 0);
	}
	memset(&q, 0, sizeof(q));
	q.info.struct_size = sizeof(q.info);
	ck_assert_cua(cua_pointer_query(cuda, ordinary, &q.info));
	ck_assert_int_eq(q.info.accessible, pageable != 0);
	ck_assert_int_eq(q.info.host_accessible, 1);

	/* device memory on the CPU backend: also in a thread that has not used CUDA */
	ck_assert_cua(cua_fill(cuda, device, 1024, 4, &value));
	ck_assert_status(cua_fill(cpu, device, 4, 4, on_host), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_fill(cpu, on_host, 4, 4, device), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_copy(cpu, device, on_host, 16), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_copy(cpu, on_host, device, 16), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_free(cpu, device), CUA_ERROR_MEMORY_KIND);
	ck_assert_uint_eq(on_host[0], 1);
	q.ctx = cpu;
	q.p = (char *)device + 4095;
	ck_assert_int_eq(pthread_create(&thread, NULL, query_main, &q), 0);
	pthread_join(thread, NULL);
	ck_assert_cua(q.status);
	ck_assert_int_eq((int)q.info.backend, (int)CUA_BACKEND_CUDA);
	ck_assert_int_eq(q.info.device, 0);
	ck_assert_ptr_eq(q.info.base, device);
	ck_assert_uint_ge(q.info.size, 4096);
	ck_assert_int_eq(q.info.accessible, 0);
	ck_assert_int_eq(q.info.host_accessible, 0);
	test_download(cuda, on_host, device, sizeof(on_host));
	ck_assert_uint_eq(on_host[3], value);

	ck_assert_cuda(cudaHostUnregister(registered));
	free(registered);
	ck_assert_cuda(cudaFreeHost(pinned));
	ck_assert_cuda(cudaFree(managed));
	test_free(cuda, device);
	cua_context_destroy(cpu);
	cua_context_destroy(cuda);
}
END_TEST

/* ---- a device that has failed ---- */

static __global__ void trap_kernel(void)
{
	__trap();
}

START_TEST(lost_device)
{
	struct cua_context *ctx;
	const char *fork_mode = getenv("CK_FORK");
	void *p, *q = &q;

	/* the error is permanent in the process: a tool would report it */
	if (fork_mode && !strcmp(fork_mode, "no")) {
		printf("lost_device: skipped, it needs a process of its own\n");
		return;
	}
	ctx = test_context(CUA_BACKEND_CUDA);
	p = test_alloc(ctx, 100);
	trap_kernel<<<1, 1>>>();
	ck_assert_status(cua_context_synchronize(ctx), CUA_ERROR_CUDA);
	ck_assert_int_ne(cua_context_cuda_error(ctx), 0);
	ck_assert_int_ne(cua_alloc(ctx, 100, 1, &q), CUA_OK);
	ck_assert_ptr_eq(q, &q);
	ck_assert_int_ne(cua_free(ctx, p), CUA_OK);
	ck_assert_int_ne(cua_context_reserve(ctx, (size_t)1 << 24), CUA_OK);
	cua_context_destroy(ctx);
	/* the CPU backend still works */
	ck_assert_cua(cua_context_create(CUA_BACKEND_CPU, 0, &ctx));
	p = test_alloc(ctx, 100);
	test_free(ctx, p);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_memory");
	TCase *tcase = tcase_create("device_memory");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, spaces);
	tcase_add_test(tcase, element_addresses);
	tcase_add_test(tcase, symbols);
	tcase_add_test(tcase, graphs);
	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, lost_device);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
