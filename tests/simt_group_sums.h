/* SPDX-License-Identifier: MIT */
/* Counts, sums and means of groups under the checker: their elements and the expected results. */
#ifndef CUATOMIC_TESTS_SIMT_GROUP_SUMS_H
#define CUATOMIC_TESTS_SIMT_GROUP_SUMS_H

#include <stdio.h>
#include <string.h>

#include "exact_model.h"
#include "simt_suites.h"

/*
 * Some ODD elements do not fit the unit, or are infinities or NaN. CROWDED elements overflow their
 * sums, in the direction of the group: the last quarter is nearly 512 times the sampled elements.
 * FULL elements are nearly 2, with all bits in both halves (halves.h). SPARSE elements are zeros where
 * the threads sample. WILD elements fill the lists of the blocks. VAST elements are next to 2^126.
 */
enum elements { TAME, ODD, CROWDED, FULL, SPARSE, WILD, VAST };

/* Random numbers of a case, which sets `rng`. */
static uint64_t rng;
static inline uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 20;
}

/*
 * Tries a case for each struct shape of an array: setup, body and check of the module, after its
 * make(&shapes[k]) has set `shape`.
 */
#define TRY_SHAPES(case_name, shapes)                                                              \
	for (size_t k = 0; k < sizeof(shapes) / sizeof((shapes)[0]); k++) {                        \
		rng = k + 1;                                                                       \
		make(&(shapes)[k]);                                                                \
		try_shape((struct simt_case){.name = (case_name),                                  \
					     .setup = setup,                                       \
					     .body = body,                                         \
					     .check = check},                                      \
			  shape.blocks, LANES, 3);                                                 \
	}

struct group_sum {
	uint32_t count;
	uint64_t integer;
	struct model sum;
};

/* Element i of n, of group `number`; r is random. */
static inline uint32_t make_element(enum cua_type type, enum elements elements, uint32_t i,
				    uint32_t n, uint32_t number, uint64_t r)
{
	const uint32_t sign = (uint32_t)(r & 1) << 31, fraction = (uint32_t)(r >> 1) & 0x7fffff;

	if (type != CUA_F32)
		/* carries into the upper word, in both directions */
		return (uint32_t)r ^ (r >> 40 & 1 ? 0xf0000000u : 0);
	if (elements == CROWDED)
		return number << 31 | (i < n / 4 * 3 ? 0x3f800000u : 0x43ffffffu);
	if (elements == VAST)
		return sign | (0x7e800000u - (uint32_t)(r >> 24) % 4);
	if (elements == FULL)
		return number << 31 | 0x3ffffffau;
	if (elements == SPARSE && i < n / 4 * 3)
		return sign;
	if (elements == WILD)
		return sign | ((uint32_t)(r >> 24) % 254 + 1) << 23 | fraction;
	if (elements == ODD && r >> 24 & 1 && i % 16 == 3)
		switch (r >> 25 & 7) {
		case 0: return sign | fraction;
		case 1: return sign | 0x7f800000u;
		case 2: return 0x7fc00000u | sign;
		case 3: return sign;
		case 4: return sign | 0x7f7fffffu;
		default: return sign | 0x20000000u | fraction;
		}
	return sign | (0x3f800000u - (uint32_t)((r >> 24) % 6 << 23)) | fraction;
}

static inline void add_to_sum(struct group_sum *g, enum cua_type type, uint32_t bits)
{
	g->count++;
	if (type == CUA_F32)
		model_add(&g->sum, &formats[2], bits);
	else
		g->integer += type == CUA_I32 ? (uint64_t)(int64_t)(int32_t)bits : bits;
}

/* Element i of an array of results. */
static inline uint64_t load_result(const void *array, uint64_t i, enum cua_type type)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)array + i * cua__element_size(type), cua__element_size(type));
	return bits;
}

static inline uint64_t expected_sum(const struct group_sum *g, enum cua_type type,
				    enum cua_type result)
{
	if (type == CUA_F32)
		return model_round(&g->sum, result == CUA_F64 ? &formats[3] : &formats[2]);
	return cua__element_size(result) == 8 ? g->integer : (uint32_t)g->integer;
}

static inline uint64_t expected_mean(const struct group_sum *g, enum cua_type type,
				     enum cua_type result)
{
	const uint64_t bits = expected_sum(g, type, CUA_F64);
	double mean;

	if (type == CUA_F32)
		memcpy(&mean, &bits, sizeof(mean));
	else
		mean = type == CUA_I32 ? (double)(int64_t)bits : (double)bits;
	mean /= g->count;
	if (mean != mean)
		return format_nan(result == CUA_F64 ? &formats[3] : &formats[2]);
	return result == CUA_F64 ? cua__bits_f64(mean) : cua__bits_f32((float)mean);
}

/* A message if a result of a key is wrong, else NULL. */
static inline const char *wrong_result(const char *what, uint64_t key, uint64_t got,
				       uint64_t expected)
{
	static char message[120];

	if (got == expected)
		return NULL;
	snprintf(message, sizeof(message), "%s of key %#llx is %#llx and not %#llx", what,
		 (unsigned long long)key, (unsigned long long)got, (unsigned long long)expected);
	return message;
}

/* Checks the results of output g. */
static inline const char *sums_check(const struct cua__group_sums *s, uint64_t g, uint64_t key,
				     const struct group_sum *expected)
{
	const char *message = NULL;

	if (s->out_count)
		message = wrong_result("the count", key, s->out_count[g], expected->count);
	if (!message && s->out_sum)
		message = wrong_result("the sum", key, load_result(s->out_sum, g, s->sum_type),
				       expected_sum(expected, s->type, s->sum_type));
	if (!message && s->out_mean)
		message = wrong_result("the mean", key, load_result(s->out_mean, g, s->mean_type),
				       expected_mean(expected, s->type, s->mean_type));
	return message;
}

#endif /* CUATOMIC_TESTS_SIMT_GROUP_SUMS_H */
