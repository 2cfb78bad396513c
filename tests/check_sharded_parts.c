/* SPDX-License-Identifier: MIT */
/* The tests of sharded maps, with finds in many parts and, of any table of words, in many regions. */
#include "check_sharded_map.c"

#define MOST_FOUND ((uint64_t)777)
#define LEAST_FOUND ((uint64_t)777)
#define FIND_SHIFT 1u
#define LEAST_REGIONS 1u
#define LEAST_REGION_KEYS(n_buckets) 1u
#include "group/sharded_direct.c"
