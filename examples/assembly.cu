// SPDX-License-Identifier: MIT
// Deposits particles on a grid, ten times: by native atomic additions, with bits that differ from
// run to run, and by exact cells, with the same bits in each run. At last the host adds the same
// particles in another order, and gets the bits of the GPU. The assembly of a finite-element matrix
// has the same form.
//
//     nvcc assembly.cu $(pkg-config --cflags --libs cuatomic) -o assembly
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

#define PARTICLES (4 * 1024 * 1024)
#define SIDE 512 // nodes on a side of the grid
#define NODES (SIDE * SIDE)
#define RUNS 10
#define ROOM 4096 // weights too small for a cell
#define THREADS 256

// A particle gives its mass to the four nodes around it, by bilinear weights.
struct deposit {
	unsigned node[4];
	float mass[4];
};

__host__ __device__ static unsigned random_bits(unsigned v)
{
	v = (v ^ v >> 16) * 0x7feb352du;
	v = (v ^ v >> 15) * 0x846ca68bu;
	return v ^ v >> 16;
}

// The particles crowd around the middle of the grid, so many threads add to the same node. The
// factors of a weight are exact, and only products are rounded. So the host computes the same masses
// as the GPU.
__host__ __device__ static struct deposit deposit_of(unsigned particle)
{
	const unsigned a = random_bits(4 * particle), b = random_bits(4 * particle + 1);
	const unsigned c = random_bits(4 * particle + 2), d = random_bits(4 * particle + 3);
	// 9 bits of the node and 12 bits of the place in its cell
	const unsigned x = (a >> 11) / 2 + (b >> 11) / 2, y = (c >> 11) / 2 + (d >> 11) / 2;
	const unsigned column = x >> 12, row = y >> 12;
	const float u = (float)(x & 4095) / 4096, v = (float)(y & 4095) / 4096;
	const float mass = 1 + (float)(a & 1023) / 1024;
	struct deposit p;

	for (int corner = 0; corner < 4; corner++) {
		const unsigned right = corner & 1, down = corner >> 1;

		p.node[corner] = (row + down) % SIDE * SIDE + (column + right) % SIDE;
		p.mass[corner] = (right ? u : 1 - u) * (down ? v : 1 - v) * mass;
	}
	return p;
}

__global__ void deposit_native(float *grid)
{
	const unsigned particle = blockIdx.x * THREADS + threadIdx.x;
	const struct deposit p = deposit_of(particle);

	for (int corner = 0; corner < 4; corner++)
		atomicAdd(&grid[p.node[corner]], p.mass[corner]);
}

__global__ void deposit_exact(struct cua_exact_cells_f32 grid)
{
	const unsigned particle = blockIdx.x * THREADS + threadIdx.x;
	const struct deposit p = deposit_of(particle);

	for (int corner = 0; corner < 4; corner++)
		cua_exact_cell_add_f32(&grid, p.node[corner], p.mass[corner]);
}

static void check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
		exit(1);
	}
}

static void check_status(enum cua_status status, const char *what)
{
	if (status != CUA_OK) {
		fprintf(stderr, "%s: %s\n", what, cua_strerror(status));
		exit(1);
	}
}

static unsigned bits_of(float v)
{
	unsigned bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

// A digest of the grid's bits: different for grids that differ in any bit, but for a chance.
static unsigned long long digest(const float *grid)
{
	unsigned long long sum = 14695981039346656037ull;

	for (int i = 0; i < NODES; i++)
		sum = (sum ^ bits_of(grid[i])) * 1099511628211ull;
	return sum;
}

// The same sums on the host, from the last particle to the first.
static unsigned long long digest_on_host(float *grid)
{
	const size_t bytes = NODES * sizeof(struct cua_exact_cell_f32);
	struct cua_context *ctx;
	struct cua_exact_cell_f32 *cell = (struct cua_exact_cell_f32 *)aligned_alloc(64, bytes);

	if (!cell)
		exit(1);
	memset(cell, 0, bytes);
	memset(grid, 0, NODES * sizeof(*grid));
	check_status(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), "context");
	struct cua_exact_cells_f32 view =
		cua_exact_cells_view_f32(cell, NODES, CUA_EXACT_CELL_UNIT_F32, NULL);
	for (unsigned particle = PARTICLES; particle-- > 0;) {
		const struct deposit p = deposit_of(particle);

		for (int corner = 0; corner < 4; corner++)
			cua_exact_cell_add_f32(&view, p.node[corner], p.mass[corner]);
	}
	check_status(cua_exact_cells_finish_f32(ctx, NULL, &view, grid), "finish");
	cua_context_destroy(ctx);
	free(cell);
	return digest(grid);
}

int main(void)
{
	unsigned long long native = 0, exact = 0, first_native = 0, first_exact = 0;
	int native_changes = 0, exact_changes = 0;
	struct cua_exact_cell_f32 *cell;
	struct cua_append_view spills;
	struct cua_append *buffer;
	struct cua_context *ctx;
	float *grid, *copy = (float *)malloc(NODES * sizeof(*copy));

	if (!copy)
		return 1;
	check(cudaMalloc((void **)&grid, NODES * sizeof(*grid)), "memory");
	check(cudaMalloc((void **)&cell, NODES * sizeof(*cell)), "memory");
	check_status(cua_context_create(CUA_BACKEND_CUDA, 0, &ctx), "context");
	check_status(cua_append_create(ctx, sizeof(struct cua_exact_spill), ROOM, &buffer),
		     "buffer");
	check_status(cua_append_get_view(buffer, &spills), "buffer");
	struct cua_exact_cells_f32 view =
		cua_exact_cells_view_f32(cell, NODES, CUA_EXACT_CELL_UNIT_F32, &spills);

	printf("run  native atomics    exact cells\n");
	for (int run = 0; run < RUNS; run++) {
		check(cudaMemset(grid, 0, NODES * sizeof(*grid)), "grid");
		deposit_native<<<PARTICLES / THREADS, THREADS>>>(grid);
		check(cudaMemcpy(copy, grid, NODES * sizeof(*grid), cudaMemcpyDeviceToHost),
		      "grid");
		native = digest(copy);

		check(cudaMemset(cell, 0, NODES * sizeof(*cell)), "cells");
		check(cudaMemset(grid, 0, NODES * sizeof(*grid)), "grid");
		check_status(cua_append_reset(buffer), "buffer");
		deposit_exact<<<PARTICLES / THREADS, THREADS, 0, cua_context_stream(ctx)>>>(view);
		check_status(cua_exact_cells_finish_f32(ctx, NULL, &view, grid), "finish");
		check_status(cua_context_synchronize(ctx), "finish");
		check(cudaMemcpy(copy, grid, NODES * sizeof(*grid), cudaMemcpyDeviceToHost),
		      "grid");
		exact = digest(copy);

		if (run == 0) {
			first_native = native;
			first_exact = exact;
		}
		native_changes += native != first_native;
		exact_changes += exact != first_exact;
		printf("%3d  %016llx  %016llx\n", run + 1, native, exact);
	}
	exact = digest_on_host(copy);
	printf("host                   %016llx\n", exact);
	exact_changes += exact != first_exact;
	printf("runs that differ from the first: %d, %d\n", native_changes, exact_changes);
	check_status(cua_append_destroy(buffer), "buffer");
	cua_context_destroy(ctx);
	check(cudaFree(cell), "free");
	check(cudaFree(grid), "free");
	free(copy);
	return exact_changes != 0;
}
