/* SPDX-License-Identifier: MIT */
/* Sums and dot products from plain C, on the GPU, or without a GPU on the CPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

#define N 1000000

static void die(int code, const char *what, const char *why)
{
	fprintf(stderr, "sum: %s: %s\n", what, why);
	exit(code);
}

static void check(enum cua_status status, const char *what)
{
	if (status != CUA_OK)
		die(1, what, cua_strerror(status));
}

int main(int argc, char **argv)
{
	struct cua_context *ctx;
	float *values = (float *)malloc(N * sizeof(*values));
	float sum, dot, smallest, largest;
	void *x;
	int i;

	(void)argv;
	if (argc != 1)
		die(2, "usage", "sum");
	if (!values)
		die(1, "array", "out of memory");
	for (i = 0; i < N; i++)
		values[i] = (float)(i % 1000) - 250.0f;

	check(cua_context_create(CUA_BACKEND_AUTO, 0, &ctx), "context");
	check(cua_alloc(ctx, N, sizeof(*values), &x), "memory");
	check(cua_copy(ctx, x, values, N * sizeof(*values)), "copy");

	/* the results are in host memory, so each call returns when its result is stored */
	check(cua_sum_f32(ctx, N, (const float *)x, &sum), "sum");
	check(cua_dot_f32(ctx, N, (const float *)x, (const float *)x, &dot), "dot");
	check(cua_min_f32(ctx, N, (const float *)x, &smallest), "min");
	check(cua_max_f32(ctx, N, (const float *)x, &largest), "max");

	printf("%s: sum %g, dot %g, min %g, max %g\n",
	       cua_context_backend(ctx) == CUA_BACKEND_CUDA ? "CUDA" : "CPU", (double)sum,
	       (double)dot, (double)smallest, (double)largest);
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output", strerror(errno));

	check(cua_free(ctx, x), "free");
	cua_context_destroy(ctx);
	free(values);
	/* 1000 periods of -250, -249, ..., 749; the squares are added in double and rounded once */
	return sum == 249500000.0f && dot == (float)145583500000.0 && smallest == -250.0f &&
			       largest == 749.0f
		       ? 0
		       : 1;
}
