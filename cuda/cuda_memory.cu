/* SPDX-License-Identifier: MIT */
/* The memory calls of the CUDA backend: fills by 16-byte stores, copies of rows by the driver. */
#include "config.h"

#include "backend/memory_backend.h"
#include "launch.h"

#define BLOCK 256u
#define UNROLL 4u
/* 16-byte words that a block writes in one step. */
#define TILE (BLOCK * UNROLL)
/* Words of a long row that form a work item. */
#define RANGE 2048u
#define BLOCKS_PER_PROCESSOR 8u

/* Byte i of the 16-byte pattern. */
static __device__ __forceinline__ char pattern_byte(struct cua__pattern p, unsigned i)
{
	return (char)((i & 8 ? p.words[1] : p.words[0]) >> (i % 8 * 8));
}

/*
 * dst is aligned to the pattern. Threads of block 0 write the bytes before the first and after the
 * last 16-byte boundary singly. Both byte ranges begin with the pattern's first byte, because its
 * size divides 16.
 */
static __global__ void __launch_bounds__(BLOCK)
	fill_kernel(char *dst, uint64_t bytes, struct cua__pattern p)
{
	uint64_t unaligned = (16 - (uintptr_t)dst % 16) % 16;
	uint64_t head = unaligned < bytes ? unaligned : bytes;
	uint64_t n = (bytes - head) / 16, tail = (bytes - head) % 16;
	ulonglong2 v = make_ulonglong2(p.words[0], p.words[1]);
	ulonglong2 *body = (ulonglong2 *)(dst + head);
	uint64_t step = (uint64_t)gridDim.x * TILE;

	for (uint64_t base = (uint64_t)blockIdx.x * TILE; base < n; base += step) {
		if (n - base >= TILE) {
#pragma unroll
			for (unsigned k = 0; k < UNROLL; k++)
				body[base + k * BLOCK + threadIdx.x] = v;
		} else {
			for (uint64_t i = base + threadIdx.x; i < n; i += BLOCK)
				body[i] = v;
		}
	}
	if (blockIdx.x == 0) {
		if (threadIdx.x < head)
			dst[threadIdx.x] = pattern_byte(p, threadIdx.x);
		if (threadIdx.x < tail)
			dst[head + n * 16 + threadIdx.x] = pattern_byte(p, threadIdx.x);
	}
}

/*
 * An item is a range of a row, written by 1 << lanes_log2 threads. Rows start at multiples of 256
 * bytes, so only the last word of a row can have less than 16 bytes.
 */
static __global__ void __launch_bounds__(BLOCK)
	fill_rows_kernel(char *base, uint64_t pitch, uint64_t row_bytes, uint64_t items,
			 uint64_t ranges, unsigned lanes_log2, struct cua__pattern p)
{
	uint64_t words = row_bytes / 16 + (row_bytes % 16 != 0);
	unsigned lanes = 1u << lanes_log2, lane = threadIdx.x & (lanes - 1);
	unsigned items_per_block = BLOCK >> lanes_log2;
	uint64_t step = (uint64_t)gridDim.x * items_per_block;
	ulonglong2 v = make_ulonglong2(p.words[0], p.words[1]);

	for (uint64_t item = (uint64_t)blockIdx.x * items_per_block + (threadIdx.x >> lanes_log2);
	     item < items; item += step) {
		uint64_t row = ranges == 1 ? item : item / ranges;
		uint64_t first = (item - row * ranges) * RANGE;
		uint64_t last = words - first < RANGE ? words : first + RANGE;
		char *to = base + row * pitch;

		for (uint64_t i = first + lane; i < last; i += lanes) {
			if (i * 16 + 16 <= row_bytes) {
				((ulonglong2 *)to)[i] = v;
			} else {
				for (uint64_t b = i * 16; b < row_bytes; b++)
					to[b] = pattern_byte(p, (unsigned)(b % 16));
			}
		}
	}
}

static enum cua_status cuda_fill(struct cua_context *ctx, void *dst, size_t bytes,
				 const struct cua__pattern *pattern)
{
	return cua__launch(ctx, fill_kernel, cua__grid(ctx, bytes / 16, TILE, BLOCKS_PER_PROCESSOR),
			   BLOCK, 0, (char *)dst, bytes, *pattern);
}

static enum cua_status cuda_fill_rows(struct cua_context *ctx, void *base, size_t pitch,
				      size_t row_bytes, size_t rows,
				      const struct cua__pattern *pattern)
{
	uint64_t words = row_bytes / 16 + (row_bytes % 16 != 0);
	uint64_t ranges = words / RANGE + (words % RANGE != 0);
	uint64_t items = rows * ranges;
	unsigned lanes_log2 = 0;

	while ((1u << lanes_log2) < BLOCK && ((uint64_t)1 << lanes_log2) < words)
		lanes_log2++;
	return cua__launch(ctx, fill_rows_kernel,
			   cua__grid(ctx, items, BLOCK >> lanes_log2, BLOCKS_PER_PROCESSOR), BLOCK,
			   0, (char *)base, pitch, row_bytes, items, ranges, lanes_log2, *pattern);
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
			status = cua__cuda_status(ctx,
						  cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch,
								    row_bytes, n, cudaMemcpyDefault,
								    (cudaStream_t)ctx->stream));
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
