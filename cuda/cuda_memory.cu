/* SPDX-License-Identifier: MIT */
/* The memory calls of the CUDA backend: fills by 16-byte stores, copies of rows by the driver. */
#include "config.h"

#include "backend/memory_backend.h"
#include "launch.h"

/* A block writes a 16-byte word with each thread: short blocks in the order of their addresses. */
#define BLOCK 1024u
#define ROWS_BLOCK 512u
/* Rows of more words are divided among whole blocks. */
#define NARROW_WORDS 65536u
#define BLOCKS_MOST 0x7fffffffu
/* The driver fills short arrays with a byte, some of them without a kernel. */
#define MEMSET_BYTES ((size_t)1 << 20)

/* Byte i of the 16-byte pattern. */
static __device__ __forceinline__ char pattern_byte(struct cua__pattern p, unsigned i)
{
	return (char)((i & 8 ? p.words[1] : p.words[0]) >> (i % 8 * 8));
}

/*
 * dst is aligned to the pattern. Threads of block 0 write the bytes before the first line of 128
 * bytes and after the last word singly. Both byte ranges begin with the pattern's first byte,
 * because its size divides 16. Warps write whole lines.
 */
static __global__ void __launch_bounds__(BLOCK)
	fill_kernel(char *dst, uint64_t bytes, struct cua__pattern p)
{
	uint64_t unaligned = (128 - (uintptr_t)dst % 128) % 128;
	uint64_t head = unaligned < bytes ? unaligned : bytes;
	uint64_t n = (bytes - head) / 16, tail = (bytes - head) % 16;
	ulonglong2 v = make_ulonglong2(p.words[0], p.words[1]);
	ulonglong2 *body = (ulonglong2 *)(dst + head);
	uint64_t step = (uint64_t)gridDim.x * BLOCK;

	for (uint64_t i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += step)
		body[i] = v;
	if (blockIdx.x == 0) {
		if (threadIdx.x < head)
			dst[threadIdx.x] = pattern_byte(p, threadIdx.x % 16);
		if (threadIdx.x < tail)
			dst[head + n * 16 + threadIdx.x] = pattern_byte(p, threadIdx.x);
	}
}

/* Writes the first n bytes of the pattern, 1 <= n < 16, to a 16-byte boundary. */
static __device__ __forceinline__ void store_part(char *to, unsigned n, struct cua__pattern p)
{
	uint64_t word = n & 8 ? p.words[1] : p.words[0];
	uint32_t half = (uint32_t)(n & 4 ? word >> 32 : word);

	if (n & 8)
		*(uint64_t *)to = p.words[0];
	to += n & 8;
	if (n & 4)
		*(uint32_t *)to = (uint32_t)word;
	to += n & 4;
	if (n & 2)
		*(uint16_t *)to = (uint16_t)half;
	if (n & 1)
		to[n & 2] = (char)(n & 2 ? half >> 16 : half);
}

/* The rows of a pitched array. They start at multiples of 256 bytes. */
struct fill_rows {
	char *base;
	uint64_t pitch, row_bytes, rows;
	uint64_t words;  /* of a row, the last of which may be partial */
	uint64_t blocks; /* work items */
	uint64_t ratio;  /* narrow: ceil(2^64 / words); wide: blocks of a row */
};

/*
 * Finds the word of a thread of a work item. Returns its row, or `rows` if there is none. Narrow
 * rows follow each other without gaps between the threads. The quotient by multiplication is exact
 * while i * words < 2^64: Granlund and Montgomery, Division by invariant integers (1994).
 */
template <bool NARROW>
static __device__ __forceinline__ uint64_t find_word(const struct fill_rows &a, uint64_t item,
						     uint64_t *word)
{
	uint64_t row, i = item * ROWS_BLOCK + threadIdx.x;

	if (NARROW) {
		row = a.words == 1 ? i : __umul64hi(i, a.ratio);
		*word = i - row * a.words;
	} else {
		row = item / a.ratio;
		*word = (item - row * a.ratio) * ROWS_BLOCK + threadIdx.x;
		if (*word >= a.words)
			row = a.rows;
	}
	return row;
}

template <bool NARROW>
static __global__ void __launch_bounds__(ROWS_BLOCK)
	fill_rows_kernel(struct fill_rows a, struct cua__pattern p)
{
	const ulonglong2 v = make_ulonglong2(p.words[0], p.words[1]);

	for (uint64_t item = blockIdx.x; item < a.blocks; item += gridDim.x) {
		uint64_t word, row = find_word<NARROW>(a, item, &word), left;
		char *to;

		if (row >= a.rows)
			continue;
		to = a.base + row * a.pitch + word * 16;
		left = a.row_bytes - word * 16;
		/*
		 * The row ends inside a sector of 32 bytes. A later write-back of a partial sector
		 * reads it first; a prefetch makes the reads overlap.
		 */
		if (left <= 16 && a.row_bytes % 32)
			cua__prefetch(to);
		if (left >= 16)
			*(ulonglong2 *)to = v;
		else
			store_part(to, (unsigned)left, p);
	}
}

static unsigned most_blocks(uint64_t n)
{
	return n > BLOCKS_MOST ? BLOCKS_MOST : n ? (unsigned)n : 1;
}

static uint64_t quotient_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

static bool is_one_byte(const struct cua__pattern *p)
{
	return p->words[0] == p->words[1] &&
	       p->words[0] == (p->words[0] & 0xff) * UINT64_C(0x0101010101010101);
}

/* cudaMemset refuses ordinary host memory, which kernels can access on some machines. */
static bool is_allocation(const void *p)
{
	cudaPointerAttributes a;

	if (cudaPointerGetAttributes(&a, p) != cudaSuccess) {
		(void)cudaGetLastError();
		return false;
	}
	return a.type != cudaMemoryTypeUnregistered;
}

static enum cua_status cuda_fill(struct cua_context *ctx, void *dst, size_t bytes,
				 const struct cua__pattern *pattern)
{
	if (bytes <= MEMSET_BYTES && is_one_byte(pattern) && is_allocation(dst))
		return cua__cuda_status(ctx, cudaMemsetAsync(dst, (int)(pattern->words[0] & 0xff),
							     bytes, (cudaStream_t)ctx->stream));
	return cua__launch(ctx, fill_kernel, most_blocks(quotient_up(bytes / 16, BLOCK)), BLOCK, 0,
			   (char *)dst, bytes, *pattern);
}

static enum cua_status cuda_fill_rows(struct cua_context *ctx, void *base, size_t pitch,
				      size_t row_bytes, size_t rows,
				      const struct cua__pattern *pattern)
{
	struct fill_rows a = {(char *)base, pitch, row_bytes, rows, quotient_up(row_bytes, 16)};
	const bool narrow = a.words <= NARROW_WORDS;

	if (narrow) {
		a.blocks = quotient_up(a.words * rows, ROWS_BLOCK);
		a.ratio = UINT64_MAX / a.words + 1;
	} else {
		a.ratio = quotient_up(a.words, ROWS_BLOCK);
		a.blocks = a.ratio * rows;
	}
	return cua__launch(ctx, narrow ? fill_rows_kernel<true> : fill_rows_kernel<false>,
			   most_blocks(a.blocks), ROWS_BLOCK, 0, a, *pattern);
}

static enum cua_status cuda_copy_rows(struct cua_context *ctx, void *dst, size_t dst_pitch,
				      const void *src, size_t src_pitch, size_t row_bytes,
				      size_t rows)
{
	const size_t most_rows = (size_t)1 << 30;
	enum cua_status status;
	int limit = 0;

	status = cua__cuda_status(ctx,
				  cudaDeviceGetAttribute(&limit, cudaDevAttrMaxPitch, ctx->device));
	while (!status && rows) {
		size_t n = rows < most_rows ? rows : most_rows;

		/* rows too far apart for a 2D copy are large enough to be copied singly */
		if (dst_pitch > (size_t)limit || src_pitch > (size_t)limit) {
			n = 1;
			status = ctx->runtime->copy(ctx, dst, src, row_bytes);
		} else {
			const enum cudaStreamCaptureMode mode = relax();
			const cudaError_t error =
				cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, row_bytes, n,
						  cudaMemcpyDefault, (cudaStream_t)ctx->stream);

			restore(mode);
			status = cua__cuda_status(ctx, error);
		}
		dst = (char *)dst + n * dst_pitch;
		src = (const char *)src + n * src_pitch;
		rows -= n;
	}
	return status;
}

/* In the order of the struct's members. */
const struct cua__memory_ops cua__cuda_memory = {
	cuda_fill,
	cuda_fill_rows,
	cuda_copy_rows,
};
