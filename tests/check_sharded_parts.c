/* SPDX-License-Identifier: MIT */
/* The tests of sharded maps, with finds in many parts and, of any table of words, in many regions. */
#include "config.h"

#include "check_sharded_map.c"

#define MOST_FOUND ((uint64_t)(TEST_MODEL ? 7777 : 777))
#define FIND_SHIFT 1u
#define LEAST_REGIONS 1u
#define LEAST_REGION_KEYS(n_buckets) 1u
#include "group/sharded_internal.h"

/* Refuses each third workspace, so that finds also go in rounds. */
static int take_or_refuse(struct cua_group *g, struct cua__workspaces *w, size_t bytes)
{
	static unsigned asked;

	return ++asked % 3 ? cua__sharded_take(g, w, bytes) : 0;
}
#define cua__sharded_take take_or_refuse

#include "group/sharded_direct.c"
