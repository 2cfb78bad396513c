/* SPDX-License-Identifier: MIT */
/*
 * Deposits particles on a grid by threads of a kernel or of the CPU, several times: by atomic
 * additions, with bits that may differ from run to run, and by exact cells, with the same bits in
 * each run. At last a single thread adds the same particles in another order, and gets the same bits. The
 * assembly of a finite-element matrix has the same form.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

#define PARTICLES (1024 * 1024)
#define SIDE 512 /* nodes on a side of the grid */
#define NODES (SIDE * SIDE)
#define RUNS 5
#define ROOM 4096 /* weights too small for a cell */
#define BLOCK 256
#define THREADS 4 /* of the CPU */

/* A particle gives its mass to the four nodes around it, by bilinear weights. */
struct deposit {
	unsigned node[4];
	float mass[4];
};

CUA_FN unsigned random_bits(unsigned v)
{
	v = (v ^ v >> 16) * 0x7feb352du;
	v = (v ^ v >> 15) * 0x846ca68bu;
	return v ^ v >> 16;
}

/*
 * The particles crowd around the middle of the grid, so many threads add to the same node. The
 * factors of a weight are exact, and only products are rounded. So the host computes the same masses
 * as the GPU.
 */
CUA_FN struct deposit deposit_of(unsigned particle)
{
	const unsigned a = random_bits(4 * particle), b = random_bits(4 * particle + 1);
	const unsigned c = random_bits(4 * particle + 2), d = random_bits(4 * particle + 3);
	/* 9 bits of the node and 12 bits of the place in its cell */
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

struct grids {
	float *plain;
	struct cua_exact_cells_f32 exact;
};

CUA_FN void deposit(const struct grids *grids, unsigned particle)
{
	const struct deposit p = deposit_of(particle);

	for (int corner = 0; corner < 4; corner++) {
		cua_atomic_add_f32(&grids->plain[p.node[corner]], p.mass[corner]);
		cua_exact_cell_add_f32(&grids->exact, p.node[corner], p.mass[corner]);
	}
}

struct worker {
	pthread_t thread;
	const struct grids *grids;
	unsigned first;
};

static void *work(void *arg)
{
	const struct worker *w = (const struct worker *)arg;

	for (unsigned particle = w->first; particle < PARTICLES; particle += THREADS)
		deposit(w->grids, particle);
	return NULL;
}

#ifdef __CUDACC__
static __global__ void deposit_kernel(struct grids grids)
{
	deposit(&grids, blockIdx.x * blockDim.x + threadIdx.x);
}
#endif

/* ---- on the host ---- */

static void die(int code, const char *what, const char *why)
{
	fprintf(stderr, "assembly: %s: %s\n", what, why);
	exit(code);
}

static void check(enum cua_status status, const char *what)
{
	if (status != CUA_OK)
		die(1, what, cua_strerror(status));
}

static void deposit_on_threads(const struct grids *grids)
{
	struct worker worker[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		worker[i].grids = grids;
		worker[i].first = i;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			die(1, "threads", "a thread cannot be started");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(worker[i].thread, NULL);
}

static void deposit_all(struct cua_context *ctx, const struct grids *grids)
{
	if (cua_context_backend(ctx) == CUA_BACKEND_CPU) {
		deposit_on_threads(grids);
		return;
	}
#ifdef __CUDACC__
	deposit_kernel<<<PARTICLES / BLOCK, BLOCK, 0, cua_context_stream(ctx)>>>(*grids);
	if (cudaGetLastError() != cudaSuccess)
		die(1, "kernel", "it cannot be launched");
#endif
}

/* A digest of the grid's bits: different for grids that differ in any bit, but for a chance. */
static unsigned long long digest(struct cua_context *ctx, const float *grid)
{
	unsigned *bits = (unsigned *)malloc(NODES * sizeof(*bits));
	unsigned long long sum = 14695981039346656037ull;

	if (!bits)
		die(1, "grid", "out of memory");
	check(cua_copy(ctx, bits, grid, NODES * sizeof(*bits)), "grid");
	check(cua_context_synchronize(ctx), "grid");
	for (int i = 0; i < NODES; i++)
		sum = (sum ^ bits[i]) * 1099511628211ull;
	free(bits);
	return sum;
}

/* The grids in a context's memory. */
struct memory {
	void *plain, *cells, *rounded; /* the exact sums, rounded once */
	struct cua_append *spills;     /* weights too small for a cell */
	struct grids grids;
};

static void open_memory(struct cua_context *ctx, struct memory *m)
{
	struct cua_append_view spills;

	check(cua_alloc(ctx, NODES, sizeof(float), &m->plain), "memory");
	check(cua_alloc(ctx, NODES, sizeof(float), &m->rounded), "memory");
	check(cua_alloc(ctx, NODES, sizeof(struct cua_exact_cell_f32), &m->cells), "memory");
	check(cua_append_create(ctx, sizeof(struct cua_exact_spill), ROOM, &m->spills), "buffer");
	check(cua_append_get_view(m->spills, &spills), "buffer");
	m->grids.plain = (float *)m->plain;
	m->grids.exact = cua_exact_cells_view_f32((struct cua_exact_cell_f32 *)m->cells, NODES,
						  CUA_EXACT_CELL_UNIT_F32, &spills);
}

static void clear_memory(struct cua_context *ctx, struct memory *m)
{
	static const char zero = 0;

	check(cua_fill(ctx, m->plain, NODES * sizeof(float), 1, &zero), "grid");
	check(cua_fill(ctx, m->rounded, NODES * sizeof(float), 1, &zero), "grid");
	check(cua_fill(ctx, m->cells, NODES * sizeof(struct cua_exact_cell_f32), 1, &zero),
	      "cells");
	check(cua_append_reset(m->spills), "buffer");
	check(cua_context_synchronize(ctx), "grid");
}

static unsigned long long finish(struct cua_context *ctx, struct memory *m)
{
	float *rounded = (float *)m->rounded;

	check(cua_exact_cells_finish_f32(ctx, NULL, &m->grids.exact, rounded), "finish");
	return digest(ctx, rounded);
}

static void close_memory(struct cua_context *ctx, struct memory *m)
{
	check(cua_append_destroy(m->spills), "buffer");
	check(cua_free(ctx, m->plain), "memory");
	check(cua_free(ctx, m->rounded), "memory");
	check(cua_free(ctx, m->cells), "memory");
}

/* The same sums by a single thread of the host, from the last particle to the first. */
static unsigned long long digest_on_host(void)
{
	struct cua_context *ctx;
	struct memory m;
	unsigned long long bits;

	check(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), "context");
	open_memory(ctx, &m);
	clear_memory(ctx, &m);
	for (unsigned particle = PARTICLES; particle-- > 0;)
		deposit(&m.grids, particle);
	bits = finish(ctx, &m);
	close_memory(ctx, &m);
	cua_context_destroy(ctx);
	return bits;
}

int main(int argc, char **argv)
{
	unsigned long long plain, exact, first_plain = 0, first_exact = 0;
	int plain_changes = 0, exact_changes = 0;
	enum cua_backend backend = CUA_BACKEND_CPU;
	struct cua_context *ctx;
	struct memory m;

#ifdef __CUDACC__
	backend = CUA_BACKEND_AUTO;
#endif
	(void)argv;
	if (argc != 1)
		die(2, "usage", "assembly");
	check(cua_context_create(backend, 0, &ctx), "context");
	open_memory(ctx, &m);
	printf("run   atomic additions  exact cells\n");
	for (int run = 0; run < RUNS; run++) {
		clear_memory(ctx, &m);
		deposit_all(ctx, &m.grids);
		plain = digest(ctx, m.grids.plain);
		exact = finish(ctx, &m);
		if (run == 0) {
			first_plain = plain;
			first_exact = exact;
		}
		plain_changes += plain != first_plain;
		exact_changes += exact != first_exact;
		printf("%3d   %016llx  %016llx\n", run + 1, plain, exact);
	}
	close_memory(ctx, &m);
	cua_context_destroy(ctx);
	exact = digest_on_host();
	exact_changes += exact != first_exact;
	printf("host                    %016llx\n", exact);
	printf("runs that differ from the first: %d by atomic additions, %d by exact cells\n",
	       plain_changes, exact_changes);
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output", strerror(errno));
	return exact_changes != 0;
}
