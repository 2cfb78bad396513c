/* SPDX-License-Identifier: MIT */
/* Groups on the CPU backend. Every call has finished when it returns, so nothing is to be ordered. */
#include "config.h"

#include <string.h>

#include "backend/group_backend.h"

static enum cua_status nothing(struct cua_group *g)
{
	(void)g;
	return CUA_OK;
}

static void cpu_close(struct cua_group *g)
{
	(void)g;
}

static enum cua_status cpu_gather(struct cua_group *g, const size_t *bytes)
{
	for (uint32_t to = 0; to < g->local; to++) {
		char *at = g->parts[to].all;

		for (uint32_t from = 0; from < g->local; from++) {
			if (from != to && bytes[from])
				memcpy(at, g->parts[from].mine, bytes[from]);
			at += bytes[from];
		}
	}
	return CUA_OK;
}

const struct cua__group_ops cua__cpu_group = {
	.open = nothing,
	.close = cpu_close,
	.begin = nothing,
	.end = nothing,
	.gather = cpu_gather,
};
