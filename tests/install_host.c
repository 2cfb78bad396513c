/* SPDX-License-Identifier: MIT */
/* A user's program: built against an installed copy with the flags of pkg-config. */
#include <stdio.h>
#include <string.h>

#include <cuatomic.h>

int main(int argc, char **argv)
{
	enum { N = 1000 };
	static float x[N];
	struct cua_context *ctx;
	double sum = 0;
	float result = 0;
	int i;

	if (argc > 1 && strcmp(argv[1], CUA_VERSION_STRING) != 0) {
		fprintf(stderr, "headers are %s, package is %s\n", CUA_VERSION_STRING, argv[1]);
		return 1;
	}
	for (i = 0; i < N; i++) {
		x[i] = (float)(i % 7);
		sum += x[i];
	}
	if (cua_context_create(CUA_BACKEND_CPU, 0, &ctx) != CUA_OK)
		return 2;
	if (cua_sum(ctx, CUA_F32, N, x, &result) != CUA_OK)
		return 3;
	cua_context_destroy(ctx);
	printf("sum %g\n", (double)result);
	return result == (float)sum ? 0 : 4;
}
