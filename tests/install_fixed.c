/* SPDX-License-Identifier: MIT */
/*
 * A user's program that prints the bits of FIXED results. No compiler option of the program may
 * change them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

int main(void)
{
	enum { N = 100000 };
	static const enum cua_type types[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F64};
	static uint64_t x[2 * N] __attribute__((aligned(16)));
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	struct cua_context *ctx;
	uint64_t random = 1;

	if (cua_context_create(CUA_BACKEND_CPU, 0, &ctx) != CUA_OK ||
	    cua_context_set_threads(ctx, 3) != CUA_OK)
		return EXIT_FAILURE;
	o.mode = CUA_REDUCE_FIXED;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (int tiny = 0; tiny < 2; tiny++) {
			/* tiny: subnormal numbers only; else any finite numbers */
			for (size_t i = 0; i < 2 * N; i++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				x[i] = tiny ? random & 0x800f007f800f007fu
					    : random & 0xbfffbfffbfffbfffu;
			}
			for (int op = CUA_REDUCE_SUM; op <= CUA_REDUCE_DOT_CONJ; op++) {
				int two = op == CUA_REDUCE_DOT || op == CUA_REDUCE_DOT_CONJ;
				uint64_t result[2] __attribute__((aligned(16))) = {0, 0};

				o.blocks = (uint32_t)(op % 4);
				if (cua_reduce(ctx, &o, (enum cua_reduce_op)op, types[t], N, x,
					       two ? x : NULL, result) != CUA_OK)
					continue;
				printf("%s %d: %016llx %016llx\n", cua_type_name(types[t]), op,
				       (unsigned long long)result[0],
				       (unsigned long long)result[1]);
			}
		}
	}
	cua_context_destroy(ctx);
	return EXIT_SUCCESS;
}
