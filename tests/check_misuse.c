/* SPDX-License-Identifier: MIT */
/*
 * Calls of every exported function with arguments that are wrong in some way, or right: NULL,
 * misaligned and overlapping pointers, counts that overflow, unknown enumerators, a struct_size and
 * a layout of no release, objects of another context.
 * After each call the test checks its status against the documented list. An error has changed no
 * output and no object. The library has printed nothing. A seed determines all calls.
 */
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "fuzz/scratch.h"

#define SLICE ((size_t)16384)
#define INPUTS 4u
#define OUTPUTS 8u
#define MOST_N 64u
#define MAPS 5u
#define MEMORY_LIMIT ((rlim_t)1 << 30)

/* The kind of error in a call's arrays; other arguments may also be wrong. */
enum mode {
	RIGHT,      /* arrays of n <= MOST_N elements */
	NULLS,      /* some of them are NULL */
	MISALIGNED, /* some are off by 1 byte */
	OVERLAPPING,
	OVERFLOWING, /* counts whose bytes exceed size_t */
	HUGE_COUNTS, /* counts of 2^31 and more, and all arrays are NULL */
	MODES
};

/* Shared with the parent; the parent reports how the child ended. */
static struct {
	uint64_t calls;
	char name[64];
	int mode;
	char message[256];
} * shared;

static uint64_t state;
static enum mode mode;
static int must_fail;     /* an argument of this call must be refused */
static uint8_t *memory;   /* INPUTS read-only slices, then OUTPUTS */
static uint8_t *snapshot; /* a copy of the outputs before the call */

static struct cua_context *ctx1, *ctx2;
static struct cua_hashmap *maps[MAPS], *foreign_map;
static struct cua_multimap *multimaps[2];
static struct cua_chained *table;
static struct cua_append *buffers[2], *foreign_buffer;
static struct cua_lock_debug *debug;
static struct cua_group *ranks; /* of ctx1 and ctx2 */
static struct cua_sharded_map *sharded_maps[2];
static struct cua_pitched pitched;
static void *block; /* from cua_alloc */
static void *made;  /* the object that a call created */

static void broken(const char *what)
{
	snprintf(shared->message, sizeof(shared->message), "%s", what);
	_exit(1);
}

static uint64_t pick(uint64_t n)
{
	return test_random(&state) % n;
}

/* ---- arguments ---- */

static uint8_t *outputs(void)
{
	return memory + INPUTS * SLICE;
}

static void *pointer(int input)
{
	uint8_t *p;

	if (mode == HUGE_COUNTS || (mode == NULLS && pick(2)))
		return NULL;
	if (mode == OVERLAPPING && !(input && pick(2)))
		p = outputs() + pick(4) * 16;
	else
		p = input ? memory + pick(INPUTS) * SLICE : outputs() + pick(OUTPUTS) * SLICE;
	return p + (mode == MISALIGNED && pick(2));
}

static const void *in(void)
{
	return pointer(1);
}

static void *out(void)
{
	return pointer(0);
}

/* The number of elements of an array. */
static size_t count(void)
{
	static const size_t overflow[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX - 7};
	static const uint64_t huge[] = {(uint64_t)1 << 31, ((uint64_t)1 << 32) + 1,
					((uint64_t)1 << 31) - 1};

	if (mode == OVERFLOWING)
		return overflow[pick(3)];
	if (mode == HUGE_COUNTS)
		return (size_t)huge[pick(3)];
	return pick(4) ? pick(MOST_N + 1) : pick(2);
}

/* A capacity for an output array; outputs never exceed the slices. */
static uint64_t room(void)
{
	static const uint64_t rooms[] = {0,
					 1,
					 8,
					 200,
					 (uint64_t)1 << 31,
					 ((uint64_t)1 << 32) + 1,
					 UINT64_MAX,
					 UINT64_MAX / 2};

	return mode == HUGE_COUNTS || mode == OVERFLOWING ? count() : rooms[pick(8)];
}

/* A capacity to allocate; the memory limit refuses the large values. */
static uint64_t capacity(void)
{
	static const uint64_t sizes[] = {0,
					 1,
					 5,
					 100,
					 1000,
					 UINT64_MAX,
					 UINT64_MAX / 2,
					 UINT64_MAX / 64,
					 (uint64_t)1 << 48,
					 (uint64_t)1 << 31,
					 ((uint64_t)1 << 32) + 1};

	return sizes[pick(SANITIZED ? 8 : 11)];
}

static int wild(void)
{
	static const int numbers[] = {-1, 0x7fffffff, 999, -0x7fffffff - 1};

	must_fail = 1;
	return numbers[pick(4)];
}

/* An enumerator in first..last, including any gaps, or an unknown value. */
static int enumerator(int first, int last)
{
	return pick(8) ? first + (int)pick((uint64_t)(last - first + 1)) : wild();
}

static enum cua_type type(void)
{
	static const int types[] = {
		CUA_I8,          CUA_U8,   CUA_I16, CUA_U16,  CUA_I32, CUA_U32, CUA_I64,
		CUA_U64,         CUA_U128, CUA_F16, CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32,
		CUA_COMPLEX_F64, CUA_NONE, 9,       11,       26};

	return (enum cua_type)(pick(10) ? types[pick(19)] : wild());
}

static enum cua_type small_type(void)
{
	static const int types[] = {CUA_U32, CUA_U64, CUA_U128, CUA_NONE};

	return pick(5) ? (enum cua_type)types[pick(4)] : type();
}

static enum cua_type index_type(void)
{
	static const enum cua_type types[] = {CUA_I32, CUA_U32, CUA_I64, CUA_U64};

	return pick(8) ? types[pick(4)] : type();
}

static size_t struct_size(size_t right)
{
	const size_t wrong[] = {0,         1,        7,         right - 1,
				right + 1, SIZE_MAX, right * 2, (size_t)1 << 31};

	return pick(4) ? right : wrong[pick(8)];
}

/* For an argument that must not be NULL. */
static void *or_null(void *p)
{
	if (pick(12))
		return p;
	must_fail = 1;
	return NULL;
}

static struct cua_context *ctx(void)
{
	return or_null(ctx1);
}

static struct cua_hashmap *map(void)
{
	return or_null(maps[pick(MAPS)]);
}

static struct cua_hashmap *any_map(void)
{
	return pick(6) ? map() : foreign_map;
}

static struct cua_multimap *multimap(void)
{
	return or_null(multimaps[pick(2)]);
}

static struct cua_chained *chained(void)
{
	return or_null(table);
}

static struct cua_append *buffer(void)
{
	return or_null(buffers[pick(2)]);
}

static struct cua_append *any_buffer(void)
{
	if (pick(6))
		return buffer();
	must_fail = 1;
	return foreign_buffer;
}

static struct cua_group *group(void)
{
	return or_null(ranks);
}

static struct cua_sharded_map *sharded(void)
{
	return or_null(sharded_maps[pick(2)]);
}

static const size_t *counts(void)
{
	static size_t n[2];

	n[0] = count();
	n[1] = count();
	return pick(16) ? n : NULL;
}

static const void *const *ins(void)
{
	static const void *arrays[2][2];
	const uint64_t set = pick(2);

	arrays[set][0] = in();
	arrays[set][1] = in();
	return pick(16) ? arrays[set] : NULL;
}

static void *const *outs(void)
{
	static void *results[2];

	results[0] = out();
	results[1] = out();
	return pick(16) ? results : NULL;
}

static uint8_t *const *byte_outs(void)
{
	return (uint8_t *const *)outs();
}

static const uint64_t *rooms(void)
{
	static uint64_t most[2];

	most[0] = room();
	most[1] = room();
	return pick(16) ? most : NULL;
}

static struct cua_lock_debug *lock_debug(void)
{
	return or_null(debug);
}

/* Room for the handle of a created object. */
static void *slot(void)
{
	made = &made;
	return or_null(&made);
}

/* An output struct, with the caller's content before the call. */
static void *filled(const void *bytes, size_t size)
{
	uint8_t *p = or_null(outputs() + pick(OUTPUTS) * SLICE);

	if (p) {
		memcpy(p, bytes, size);
		memcpy(snapshot + (p - outputs()), bytes, size);
	}
	return p;
}

static void *with_size(size_t right)
{
	uint8_t bytes[1024];
	size_t size = struct_size(right);

	memset(bytes, 0x5a, sizeof(bytes));
	memcpy(bytes, &size, sizeof(size));
	return filled(bytes, right);
}

static struct cua_exact *partial(void)
{
	struct cua_exact exact = CUA_EXACT_INIT;

	if (pick(4) == 0)
		exact.layout = 99;
	if (pick(4) == 0)
		for (unsigned i = 0; i < CUA_EXACT_DIGITS; i++)
			exact.digit[i] = (int64_t)test_random(&state);
	exact.pending = (uint32_t)pick(3);
	return pick(3) ? filled(&exact, sizeof(exact)) : out();
}

static const struct cua_pitched *array(void)
{
	static struct cua_pitched a;

	a = pitched;
	switch (pick(16)) {
	case 0: a.layout = 99; break;
	case 1: a.pitch = 3; break;
	case 2: a.element_size = 0; break;
	case 3: a.width = SIZE_MAX; break;
	case 4: a.height = 0; break;
	case 5: a.depth = SIZE_MAX / 2; break;
	case 6: a.base = NULL; break;
	case 7: a.pitch = 0; break;
	default: return or_null(&a);
	}
	return &a;
}

/* A struct of no allocation: freeing it fails or has no effect. */
static struct cua_pitched *dead_array(void)
{
	struct cua_pitched a = pitched;

	switch (pick(4)) {
	case 0: a.base = NULL; break;
	case 1: a.base = outputs(); break;
	case 2: a.base = (char *)a.base + 256; break;
	default: a.layout = (uint32_t)wild(); break;
	}
	return filled(&a, sizeof(a));
}

static void *no_allocation(void)
{
	switch (pick(4)) {
	case 0: return NULL;
	case 1: must_fail = 1; return outputs() + pick(64);
	case 2: must_fail = 1; return (char *)block + 16;
	default: must_fail = 1; return &state;
	}
}

static size_t pattern_bytes(void)
{
	static const size_t sizes[] = {1, 2, 4, 8, 16, 0, 3, 32, SIZE_MAX};

	return sizes[pick(9)];
}

static size_t small(void)
{
	static const size_t sizes[] = {1, 2, 5, 16, 0, SIZE_MAX, SIZE_MAX / 2 + 1};

	return sizes[pick(7)];
}

static size_t offset(void)
{
	static const size_t offsets[] = {0, 8, 1, SIZE_MAX, SIZE_MAX / 2};

	return offsets[pick(5)];
}

static const char *path(void)
{
	static char longest[6000];

	memset(longest, 'a', sizeof(longest) - 1);
	switch (pick(10)) {
	case 0: return or_null(NULL);
	case 1: return "";
	case 2: return "/";
	case 3: return "/nonexistent/folder/map";
	case 4: return longest;
	case 5: return scratch_folder;
	default: return scratch_path((int)pick(2));
	}
}

static int visit(void *arg, const void *key, const void *value)
{
	(void)arg;
	(void)key;
	(void)value;
	return pick(4) == 0;
}

static const struct cua_hashmap_options *map_options(void)
{
	static struct cua_hashmap_options o;

	memset(&o, 0, sizeof(o));
	o.struct_size = struct_size(sizeof(o));
	o.seed = 1;
	o.rejects = pick(2) ? 0 : capacity();
	o.grow_percent = pick(3) ? 0 : (uint32_t)pick(120);
	o.own_hash = pick(4) ? 0 : (uint32_t)pick(3);
	o.portable = pick(3) ? 0 : (uint32_t)pick(3);
	return pick(3) ? &o : NULL;
}

static const struct cua_multimap_options *multimap_options(void)
{
	static struct cua_multimap_options o;

	memset(&o, 0, sizeof(o));
	o.struct_size = struct_size(sizeof(o));
	o.seed = 1;
	o.link_size = (uint32_t)pick(3) * 4;
	o.portable = (uint32_t)pick(3);
	return pick(3) ? &o : NULL;
}

static const struct cua_chained_options *chained_options(void)
{
	static struct cua_chained_options o;

	o.struct_size = struct_size(sizeof(o));
	o.seed = 1;
	return pick(3) ? &o : NULL;
}

static const struct cua_reduce_options *reduce_options(void)
{
	static struct cua_reduce_options o;
	const int known = must_fail; /* wrong options may be accepted */

	memset(&o, 0, sizeof(o));
	o.struct_size = struct_size(sizeof(o));
	o.finish = pick(3) ? CUA_FINISH_AUTO : (enum cua_finish_mode)pick(7);
	o.mode = (enum cua_reduce_mode)pick(6);
	o.blocks = pick(3) ? 0 : (uint32_t)test_random(&state);
	o.block_size = pick(3) ? 0 : (uint32_t)pick(1100);
	o.result_type = pick(3) ? CUA_NONE : type();
	o.count = pick(4) ? NULL : in();
	must_fail = known;
	return pick(2) ? &o : NULL;
}

/* Contexts of a group, and a number of them. */
static struct cua_context *const *contexts(void)
{
	static struct cua_context *both[2];

	both[0] = ctx1;
	both[1] = pick(8) ? ctx2 : pick(2) ? ctx1 : NULL;
	return pick(12) ? both : NULL;
}

static uint32_t n_contexts(void)
{
	static const uint32_t numbers[] = {1, 2, 2, 0, CUA_GROUP_RANKS_MAX + 1, UINT32_MAX};

	return numbers[pick(6)];
}

static enum cua_status no_exchange(void *self, const void *const *send, const size_t *send_bytes,
				   void *const *receive, const size_t *receive_bytes)
{
	(void)self;
	(void)send;
	(void)send_bytes;
	(void)receive;
	(void)receive_bytes;
	return CUA_ERROR_SYSTEM;
}

static enum cua_status no_agreement(void *self, enum cua_status mine, enum cua_status *all)
{
	(void)self;
	*all = mine;
	return CUA_ERROR_SYSTEM;
}

static const struct cua_transport *transport(void)
{
	static struct cua_transport t;

	memset(&t, 0, sizeof(t));
	t.struct_size = struct_size(sizeof(t));
	t.rank = (uint32_t)pick(3);
	t.size = pick(4) ? 1 + (uint32_t)pick(9) : pick(2) ? 0 : UINT32_MAX;
	t.exchange = pick(12) ? no_exchange : NULL;
	t.agree = pick(12) ? no_agreement : NULL;
	return or_null(&t);
}

static const struct cua_segment_options *segment_options(void)
{
	static struct cua_segment_options o;

	o.struct_size = struct_size(sizeof(o));
	o.mode = (enum cua_reduce_mode)pick(6);
	return pick(2) ? &o : NULL;
}

static const struct cua_scatter_options *scatter_options(void)
{
	static struct cua_scatter_options o = CUA_SCATTER_OPTIONS_INIT;
	static const uint32_t widths[] = {0, 1, 2, 5, 16, CUA_SCATTER_WIDTH_MAX + 1, UINT32_MAX};
	const int known = must_fail; /* wrong options may be accepted */

	o.struct_size = struct_size(sizeof(o));
	o.mode = (enum cua_reduce_mode)pick(6);
	o.result_type = pick(2) ? CUA_NONE : type();
	o.overwrite = pick(8) ? (int)pick(2) : wild();
	o.width = widths[pick(4) ? pick(5) : pick(7)];
	o.reserved = pick(16) == 0;
	o.skipped = pick(2) ? NULL : out();
	must_fail = known;
	return pick(3) ? &o : NULL;
}

static const struct cua_group_by_options *group_by_options(void)
{
	static struct cua_group_by_options o = CUA_GROUP_BY_OPTIONS_INIT;

	o.struct_size = struct_size(sizeof(o));
	o.mode = (enum cua_reduce_mode)pick(6);
	o.order = (enum cua_key_order)pick(5);
	return pick(3) ? &o : NULL;
}

static const struct cua_join_options *join_options(void)
{
	static struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;

	o.struct_size = struct_size(sizeof(o));
	o.kind = (enum cua_join_kind)pick(4);
	o.index_type = pick(4) ? (pick(2) ? CUA_U32 : CUA_U64) : CUA_I32;
	return pick(3) ? &o : NULL;
}

static const struct cua_is_in_options *is_in_options(void)
{
	static struct cua_is_in_options o = CUA_IS_IN_OPTIONS_INIT;

	o.struct_size = struct_size(sizeof(o));
	o.invert = (int)pick(3) - 1;
	return pick(3) ? &o : NULL;
}

static uint32_t aggregates_count(void)
{
	return pick(16) ? (uint32_t)pick(4) : CUA_AGGREGATES_MAX + 1;
}

static const struct cua_aggregate *aggregates(void)
{
	static struct cua_aggregate a[CUA_AGGREGATES_MAX + 1];
	const int known = must_fail; /* unused and wrong aggregates may be accepted */

	for (int i = 0; i < 4; i++) {
		a[i].op = (enum cua_aggregate_op)(pick(16) ? 1 + (int)pick(8) : wild());
		a[i].type = type();
		a[i].result_type = pick(2) ? CUA_NONE : type();
		a[i].ddof = a[i].op == CUA_AGGREGATE_VARIANCE ? (uint32_t)pick(3) : pick(20) == 0;
		a[i].values = in();
		a[i].valid = pick(2) ? NULL : in();
		a[i].valid_bits = pick(16) ? (int)pick(2) : wild();
		a[i].reserved = pick(16) == 0;
		a[i].out = out();
	}
	must_fail = known;
	return pick(16) ? a : NULL;
}

static const struct cua_unique_options *unique_options(void)
{
	static struct cua_unique_options o = CUA_UNIQUE_OPTIONS_INIT;
	const int known = must_fail; /* wrong options may be accepted */

	o.struct_size = struct_size(sizeof(o));
	o.order = (enum cua_key_order)pick(5);
	o.index_type = pick(4) ? (pick(2) ? CUA_U32 : CUA_U64) : type();
	o.counts = pick(2) ? NULL : out();
	o.first = pick(2) ? NULL : out();
	o.inverse = pick(2) ? NULL : out();
	must_fail = known;
	return pick(3) ? &o : NULL;
}

static const struct cua_exact_cells_options *cells_options(void)
{
	static struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;
	const int known = must_fail; /* wrong options may be accepted */

	o.struct_size = struct_size(sizeof(o));
	o.result_type = pick(2) ? CUA_NONE : type();
	o.overwrite = pick(8) ? (int)pick(2) : wild();
	o.lost = pick(2) ? NULL : out();
	must_fail = known;
	return pick(3) ? &o : NULL;
}

/* A unit in least..most, or one outside. */
static int unit_in(int least, int most)
{
	if (pick(12))
		return least + (int)pick((uint64_t)(most - least + 1));
	must_fail = 1;
	return pick(2) ? least - 1 - (int)pick(9) : most + 1 + (int)pick(9);
}

/* The fields that both types of views share; cells and spills have any contents. */
#define CELLS_VIEW(t, least, most)                                                                 \
	static const struct cua_exact_cells_##t *cells_##t(void)                                   \
	{                                                                                          \
		static struct cua_exact_cells_##t v;                                               \
                                                                                                   \
		memset(&v, 0, sizeof(v));                                                          \
		v.cell = out();                                                                    \
		v.cells = count();                                                                 \
		v.first = pick(4) ? 0 : pick(2) ? pick(MOST_N) : UINT64_MAX;                       \
		v.unit = unit_in(least, most);                                                     \
		v.layout = pick(12) ? CUA_EXACT_CELLS_LAYOUT : (uint32_t)wild();                   \
		if (pick(4)) {                                                                     \
			v.spills.items = pick(2) ? out() : (void *)(uintptr_t)in();                \
			v.spills.cursor = pick(2) ? out() : (void *)(uintptr_t)in();               \
			v.spills.capacity = count();                                               \
			v.spills.item_size = pick(8) ? 16 : pick(33);                              \
			v.spills.layout = pick(12) ? CUA_APPEND_LAYOUT : (uint32_t)pick(3);        \
		}                                                                                  \
		return or_null(&v);                                                                \
	}

CELLS_VIEW(f32, CUA_EXACT_CELL_UNIT_MIN_F32, CUA_EXACT_CELL_UNIT_MAX_F32)
CELLS_VIEW(f64, CUA_EXACT_CELL_UNIT_MIN_F64, CUA_EXACT_CELL_UNIT_MAX_F64)

static const struct cua_filter_options *filter_options(void)
{
	static struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	const int known = must_fail; /* wrong options may be accepted */

	o.struct_size = struct_size(sizeof(o));
	o.ordered = (int)pick(2);
	o.partition = pick(4) == 0;
	o.flags = pick(3) ? NULL : in();
	o.indexes = pick(3) ? NULL : out();
	o.index_type = o.indexes ? pick(2) ? CUA_U32 : type() : pick(8) ? CUA_NONE : CUA_U64;
	must_fail = known;
	return pick(2) ? &o : NULL;
}

static const struct cua_histogram_options *histogram_options(void)
{
	static struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;
	static const size_t pitches[] = {0, 0, 3, 64, 128, SIZE_MAX};
	static const double limits[] = {0, 1, -1, 1e300, 5e-324};
	const int known = must_fail; /* wrong options may be accepted */

	o.struct_size = struct_size(sizeof(o));
	o.strategy = pick(2) ? CUA_HISTOGRAM_AUTO : (enum cua_histogram_strategy)pick(8);
	o.accumulate = (int)pick(2);
	o.count_type = pick(2) ? CUA_NONE : type();
	o.channels = pick(2) ? 0 : (unsigned)pick(6);
	o.counted = pick(2) ? 0 : (unsigned)pick(6);
	o.closed = (int)pick(2);
	o.width = pick(2) ? 0 : pick(5);
	o.pitch = pitches[pick(6)];
	o.outside = pick(2) ? NULL : out();
	o.weights = pick(3) ? NULL : in();
	o.weight_type = o.weights && pick(4) ? CUA_F64 : pick(3) ? CUA_NONE : type();
	o.weight_limit = limits[pick(5)];
	must_fail = known;
	return pick(3) ? &o : NULL;
}

static const struct cua_lock_debug_options *debug_options(void)
{
	static struct cua_lock_debug_options o;

	o.struct_size = struct_size(sizeof(o));
	o.max_records = pick(2) ? 16 : capacity();
	o.max_verdicts = pick(2) ? 0 : capacity();
	o.max_reports = pick(2) ? 0 : capacity();
	o.limit_ns = pick(2);
	return pick(2) ? &o : NULL;
}

/* ---- the calls: a line each, with the object to destroy and whether NULL is valid ---- */

enum kind {
	PLAIN,
	LENIENT,
	MADE_MEMORY,
	MADE_CONTEXT,
	MADE_MAP,
	MADE_MULTIMAP,
	MADE_CHAINED,
	MADE_BUFFER,
	MADE_DEBUG,
	MADE_GROUP,
	MADE_SHARDED
};

/* For functions that return no status. */
static enum cua_status fine(int condition)
{
	if (!condition)
		broken("the result is none that the header lists");
	return CUA_OK;
}

static enum cua_status restored(enum cua_status status)
{
	if (!status && cua_context_set_threads(ctx1, 2))
		broken("cua_context_set_threads");
	return status;
}

/* The output of an array allocation; the array is freed again. */
static struct cua_pitched *new_array(void)
{
	return or_null(outputs());
}

/* The status of a call that stores all results even if it returns FULL. */
static enum cua_status full_is_done(enum cua_status status)
{
	return status == CUA_ERROR_FULL ? CUA_OK : status;
}

static enum cua_status made_array(enum cua_status status)
{
	struct cua_pitched copy;

	if (status)
		return status;
	memcpy(&copy, outputs(), sizeof(copy));
	return cua_free_pitched(ctx1, &copy);
}

#define BACKEND ((enum cua_backend)enumerator(0, 2))
#define REDUCTION ((enum cua_reduce_op)enumerator(0, 16))
#define SCATTER ((enum cua_scatter_op)enumerator(0, 5))
#define UPDATE ((enum cua_update)enumerator(0, 7))
#define COMPARE ((enum cua_compare)enumerator(0, 7))
#define ORDER ((enum cua_hashmap_order)enumerator(0, 2))

#define CALLS(X)                                                                                   \
	X(cua_alloc, MADE_MEMORY, cua_alloc(ctx(), (size_t)capacity(), small(), slot()))           \
	X(cua_alloc_2d, PLAIN,                                                                     \
	  made_array(cua_alloc_2d(ctx(), small(), small(), small(), new_array())))                 \
	X(cua_alloc_3d, PLAIN,                                                                     \
	  made_array(cua_alloc_3d(ctx(), small(), small(), small(), small(), new_array())))        \
	X(cua_alloc_system, MADE_MEMORY,                                                           \
	  cua_alloc_system(ctx(), (size_t)capacity(), small(), slot()))                            \
	X(cua_alloc_zero, MADE_MEMORY, cua_alloc_zero(ctx(), (size_t)capacity(), small(), slot())) \
	X(cua_append_create, MADE_BUFFER, cua_append_create(ctx(), small(), capacity(), slot()))   \
	X(cua_append_demand, PLAIN, cua_append_demand(buffer(), out()))                            \
	X(cua_append_destroy, LENIENT, cua_append_destroy(NULL))                                   \
	X(cua_append_items, PLAIN, cua_append_items(buffer(), or_null(outputs())))                 \
	X(cua_append_read, PLAIN, cua_append_read(buffer(), out(), (size_t)room(), out()))         \
	X(cua_append_reset, PLAIN, cua_append_reset(buffer()))                                     \
	X(cua_append_size, PLAIN, cua_append_size(buffer(), out()))                                \
	X(cua_append_status, PLAIN, cua_append_status(buffer()))                                   \
	X(cua_append_get_view, PLAIN, cua_append_get_view(buffer(), or_null(outputs())))           \
	X(cua_atomic_path_query, PLAIN,                                                            \
	  cua_atomic_path_query(ctx(), type(), (enum cua_atomic_op)enumerator(0, 17),              \
				or_null(outputs())))                                               \
	X(cua_chained_build_n, PLAIN, cua_chained_build_n(chained(), count(), in(), in()))         \
	X(cua_chained_clear, PLAIN, cua_chained_clear(chained()))                                  \
	X(cua_chained_copy, MADE_CHAINED,                                                          \
	  cua_chained_copy(chained(), pick(2) ? ctx() : ctx2, slot()))                             \
	X(cua_chained_count_n, PLAIN, cua_chained_count_n(chained(), count(), in(), out()))        \
	X(cua_chained_create, MADE_CHAINED,                                                        \
	  cua_chained_create(ctx(), chained_options(), capacity(), capacity(), slot()))            \
	X(cua_chained_demand, PLAIN, cua_chained_demand(chained(), out()))                         \
	X(cua_chained_destroy, LENIENT, cua_chained_destroy(NULL))                                 \
	X(cua_chained_find_n, PLAIN, cua_chained_find_n(chained(), count(), in(), out(), out()))   \
	X(cua_chained_insert_n, PLAIN, cua_chained_insert_n(chained(), count(), in(), in()))       \
	X(cua_chained_size, PLAIN, cua_chained_size(chained(), out()))                             \
	X(cua_chained_status, PLAIN, cua_chained_status(chained()))                                \
	X(cua_chained_values, PLAIN,                                                               \
	  cua_chained_values(chained(), pick(200), room(), out(), out()))                          \
	X(cua_chained_verify, LENIENT,                                                             \
	  cua_chained_verify(chained(), with_size(sizeof(struct cua_chained_report))))             \
	X(cua_chained_get_view, PLAIN, cua_chained_get_view(chained(), or_null(outputs())))        \
	X(cua_context_backend, LENIENT, fine(cua_context_backend(ctx()) <= CUA_BACKEND_CPU))       \
	X(cua_context_create, MADE_CONTEXT, cua_context_create(BACKEND, (int)pick(4) - 1, slot())) \
	X(cua_context_cuda_error, LENIENT, fine(!cua_context_cuda_error(ctx())))                   \
	X(cua_context_destroy, LENIENT, fine((cua_context_destroy(NULL), 1)))                      \
	X(cua_context_device, LENIENT, fine(cua_context_device(ctx()) <= 0))                       \
	X(cua_context_reserve, PLAIN, cua_context_reserve(ctx(), (size_t)capacity()))              \
	X(cua_context_set_stream, PLAIN,                                                           \
	  cua_context_set_stream(ctx(), pick(2) ? NULL : (struct CUstream_st *)outputs()))         \
	X(cua_context_set_threads, PLAIN, restored(cua_context_set_threads(ctx(), threads())))     \
	X(cua_context_stream, LENIENT, fine(!cua_context_stream(ctx())))                           \
	X(cua_context_synchronize, PLAIN, cua_context_synchronize(ctx()))                          \
	X(cua_context_threads, LENIENT, fine(cua_context_threads(ctx()) <= 2))                     \
	X(cua_copy, PLAIN, cua_copy(ctx(), out(), in(), count()))                                  \
	X(cua_copy_from_pitched, PLAIN, cua_copy_from_pitched(ctx(), out(), array()))              \
	X(cua_copy_to_pitched, PLAIN, cua_copy_to_pitched(ctx(), array(), in()))                   \
	X(cua_cuda_architectures, LENIENT, fine(cua_cuda_architectures() != NULL))                 \
	X(cua_device_count, PLAIN, cua_device_count(BACKEND, or_null(outputs())))                  \
	X(cua_device_peer_query, PLAIN,                                                            \
	  cua_device_peer_query(BACKEND, (int)pick(4) - 1, (int)pick(4) - 1,                       \
				with_size(sizeof(struct cua_peer_info))))                          \
	X(cua_device_problem, LENIENT,                                                             \
	  fine(cua_device_problem(BACKEND, (int)pick(4) - 1) != NULL))                             \
	X(cua_device_query, PLAIN,                                                                 \
	  cua_device_query(BACKEND, (int)pick(4) - 1, with_size(sizeof(struct cua_device_info))))  \
	X(cua_dot, PLAIN, cua_dot(ctx(), type(), count(), in(), in(), out()))                      \
	X(cua_exact_cells_finish_f32, PLAIN,                                                       \
	  full_is_done(cua_exact_cells_finish_f32(ctx(), cells_options(), cells_f32(), out())))    \
	X(cua_exact_cells_finish_f64, PLAIN,                                                       \
	  full_is_done(cua_exact_cells_finish_f64(ctx(), cells_options(), cells_f64(), out())))    \
	X(cua_exact_dot, PLAIN, cua_exact_dot(ctx(), type(), count(), in(), in(), partial()))      \
	X(cua_exact_finish, PLAIN, cua_exact_finish(ctx(), partial(), type(), out()))              \
	X(cua_exact_range, PLAIN,                                                                  \
	  cua_exact_range(ctx(), pick(4) ? (pick(2) ? CUA_F32 : CUA_F64) : type(), count(), in(),  \
			  out()))                                                                  \
	X(cua_exact_sum, PLAIN, cua_exact_sum(ctx(), type(), count(), in(), partial()))            \
	X(cua_fill, PLAIN, cua_fill(ctx(), out(), count(), pattern_bytes(), in()))                 \
	X(cua_fill_pitched, PLAIN, cua_fill_pitched(ctx(), array(), pattern_bytes(), in()))        \
	X(cua_filter, PLAIN,                                                                       \
	  cua_filter(ctx(), type(), count(), in(), COMPARE, in(), any_buffer()))                   \
	X(cua_filter_append, LENIENT,                                                              \
	  cua_filter_append(ctx(), filter_options(), type(), count(), in(), COMPARE, in(),         \
			    any_buffer()))                                                         \
	X(cua_filter_array, LENIENT,                                                               \
	  cua_filter_array(ctx(), filter_options(), type(), count(), in(), COMPARE, in(), room(),  \
			   out(), out()))                                                          \
	X(cua_filter_workspace, LENIENT,                                                           \
	  cua_filter_workspace(ctx(), filter_options(), type(), count(), or_null(outputs())))      \
	X(cua_fixed_cut, PLAIN,                                                                    \
	  cua_fixed_cut(type(), count(), (uint32_t)pick(9), (uint32_t)pick(9),                     \
			or_null(outputs())))                                                       \
	X(cua_free, PLAIN, cua_free(ctx(), no_allocation()))                                       \
	X(cua_free_pitched, LENIENT, cua_free_pitched(ctx(), dead_array()))                        \
	X(cua_group_by, PLAIN,                                                                     \
	  cua_group_by(ctx(), group_by_options(), type(), count(), in(), aggregates(),             \
		       aggregates_count(), room(), out(), out()))                                  \
	X(cua_group_by_workspace, PLAIN,                                                           \
	  cua_group_by_workspace(ctx(), group_by_options(), type(), count(), aggregates(),         \
				 aggregates_count(), room(), or_null(outputs())))                  \
	X(cua_group_create, MADE_GROUP, cua_group_create(ctx(), transport(), slot()))              \
	X(cua_group_create_devices, MADE_GROUP,                                                    \
	  cua_group_create_devices(n_contexts(), contexts(), slot()))                              \
	X(cua_group_create_nccl, MADE_GROUP,                                                       \
	  cua_group_create_nccl(ctx(), or_null(memory), slot()))                                   \
	X(cua_group_destroy, LENIENT, (cua_group_destroy(NULL), CUA_OK))                           \
	X(cua_group_local, LENIENT, fine(cua_group_local(group()) <= 2))                           \
	X(cua_group_nccl_problem, LENIENT, fine(cua_group_nccl_problem() != NULL))                 \
	X(cua_group_rank, LENIENT, fine(cua_group_rank(group()) == 0))                             \
	X(cua_group_reduce, PLAIN,                                                                 \
	  cua_group_reduce(group(), reduce_options(), REDUCTION, type(), counts(), ins(),          \
			   pick(2) ? NULL : ins(), outs()))                                        \
	X(cua_group_reduce_workspace, PLAIN,                                                       \
	  cua_group_reduce_workspace(group(), reduce_options(), REDUCTION, type(), count(),        \
				     or_null(outputs())))                                          \
	X(cua_group_set_timeout, PLAIN, cua_group_set_timeout(group(), (double)count()))           \
	X(cua_group_size, LENIENT, fine(cua_group_size(group()) <= 2))                             \
	X(cua_group_status, PLAIN, cua_group_status(group()))                                      \
	X(cua_group_sum, PLAIN, cua_group_sum(group(), type(), count(), outs()))                   \
	X(cua_group_sum_workspace, PLAIN,                                                          \
	  cua_group_sum_workspace(group(), type(), count(), or_null(outputs())))                   \
	X(cua_hang_report_text, PLAIN,                                                             \
	  cua_hang_report_text(or_null(memory), text_size(), or_null(outputs())))                  \
	X(cua_hashmap_assign_n, PLAIN, cua_hashmap_assign_n(map(), count(), in(), in(), out()))    \
	X(cua_hashmap_build_n, PLAIN, cua_hashmap_build_n(map(), count(), in(), in(), out()))      \
	X(cua_hashmap_build_workspace, PLAIN,                                                      \
	  cua_hashmap_build_workspace(map(), count(), or_null(outputs())))                         \
	X(cua_hashmap_capacity, PLAIN, cua_hashmap_capacity(map(), or_null(outputs())))            \
	X(cua_hashmap_clear, PLAIN, cua_hashmap_clear(map()))                                      \
	X(cua_hashmap_compare_exchange_n, PLAIN,                                                   \
	  cua_hashmap_compare_exchange_n(map(), count(), in(), out(), in(), out()))                \
	X(cua_hashmap_contains_n, PLAIN, cua_hashmap_contains_n(map(), count(), in(), out()))      \
	X(cua_hashmap_copy_to_host, PLAIN,                                                         \
	  cua_hashmap_copy_to_host(map(), room(), out(), out(), or_null(outputs())))               \
	X(cua_hashmap_create, MADE_MAP,                                                            \
	  cua_hashmap_create(ctx(), map_options(), small_type(), small_type(), capacity(),         \
			     slot()))                                                              \
	X(cua_hashmap_destroy, LENIENT, cua_hashmap_destroy(NULL))                                 \
	X(cua_hashmap_erase_n, PLAIN, cua_hashmap_erase_n(map(), count(), in(), out()))            \
	X(cua_hashmap_exchange_n, PLAIN,                                                           \
	  cua_hashmap_exchange_n(map(), count(), in(), in(), out(), out()))                        \
	X(cua_hashmap_find_n, PLAIN, cua_hashmap_find_n(map(), count(), in(), out(), out()))       \
	X(cua_hashmap_for_each, PLAIN,                                                             \
	  cua_hashmap_for_each(map(), pick(8) ? visit : (wild(), NULL), NULL))                     \
	X(cua_hashmap_insert_n, PLAIN, cua_hashmap_insert_n(map(), count(), in(), in(), out()))    \
	X(cua_hashmap_insert_or_get_n, PLAIN,                                                      \
	  cua_hashmap_insert_or_get_n(map(), count(), in(), in(), out(), out()))                   \
	X(cua_hashmap_load, MADE_MAP, cua_hashmap_load(ctx(), map_options(), path(), slot()))      \
	X(cua_hashmap_merge, PLAIN,                                                                \
	  cua_hashmap_merge(map(), any_map(), (enum cua_hashmap_merge_rule)enumerator(0, 17)))     \
	X(cua_hashmap_rejected, PLAIN, cua_hashmap_rejected(map(), room(), out(), out(), out()))   \
	X(cua_hashmap_resize, PLAIN, cua_hashmap_resize(map(), capacity()))                        \
	X(cua_hashmap_retrieve, PLAIN,                                                             \
	  cua_hashmap_retrieve(map(), ORDER, room(), out(), out(), out()))                         \
	X(cua_hashmap_retrieve_workspace, PLAIN,                                                   \
	  cua_hashmap_retrieve_workspace(map(), ORDER, room(), or_null(outputs())))                \
	X(cua_hashmap_save, PLAIN, cua_hashmap_save(map(), path()))                                \
	X(cua_hashmap_size, PLAIN, cua_hashmap_size(map(), out()))                                 \
	X(cua_hashmap_get_statistics, PLAIN,                                                       \
	  cua_hashmap_get_statistics(map(), with_size(sizeof(struct cua_hashmap_statistics))))     \
	X(cua_hashmap_status, PLAIN, cua_hashmap_status(map()))                                    \
	X(cua_hashmap_update_n, PLAIN,                                                             \
	  cua_hashmap_update_n(map(), UPDATE, count(), in(), in(), out()))                         \
	X(cua_hashmap_update_value_n, PLAIN,                                                       \
	  cua_hashmap_update_value_n(map(), UPDATE, count(), in(), in(), out()))                   \
	X(cua_hashmap_get_view, PLAIN, cua_hashmap_get_view(map(), or_null(outputs())))            \
	X(cua_histogram_bytes, PLAIN,                                                              \
	  cua_histogram_bytes(ctx(), histogram_options(), count(), in(), out()))                   \
	X(cua_histogram_edges, PLAIN,                                                              \
	  cua_histogram_edges(ctx(), histogram_options(), type(), count(), in(), count(), in(),    \
			      out()))                                                              \
	X(cua_histogram_even, PLAIN,                                                               \
	  cua_histogram_even(ctx(), histogram_options(), type(), count(), in(), count(), in(),     \
			     in(), out()))                                                         \
	X(cua_histogram_letters, PLAIN,                                                            \
	  cua_histogram_letters(ctx(), histogram_options(), count(), in(), out()))                 \
	X(cua_histogram_workspace, PLAIN,                                                          \
	  cua_histogram_workspace(ctx(), histogram_options(), (size_t)capacity(),                  \
				  or_null(outputs())))                                             \
	X(cua_is_in, PLAIN,                                                                        \
	  cua_is_in(ctx(), is_in_options(), type(), count(), in(), count(), in(), out()))          \
	X(cua_is_in_workspace, PLAIN,                                                              \
	  cua_is_in_workspace(ctx(), is_in_options(), type(), count(), count(),                    \
			      or_null(outputs())))                                                 \
	X(cua_join, PLAIN,                                                                         \
	  cua_join(ctx(), join_options(), type(), count(), in(), count(), in(), room(), out(),     \
		   out(), out()))                                                                  \
	X(cua_join_workspace, PLAIN,                                                               \
	  cua_join_workspace(ctx(), join_options(), type(), count(), count(), or_null(outputs()))) \
	X(cua_lock_debug_create, MADE_DEBUG,                                                       \
	  cua_lock_debug_create(ctx(), debug_options(), slot()))                                   \
	X(cua_lock_debug_destroy, LENIENT, cua_lock_debug_destroy(NULL))                           \
	X(cua_lock_debug_dropped, PLAIN, cua_lock_debug_dropped(lock_debug(), or_null(outputs()))) \
	X(cua_lock_debug_read_reports, PLAIN,                                                      \
	  cua_lock_debug_read_reports(lock_debug(), room(), (size_t)room(), entries(),             \
				      or_null(outputs()), or_null(outputs() + 8)))                 \
	X(cua_lock_debug_read_verdicts, PLAIN,                                                     \
	  cua_lock_debug_read_verdicts(lock_debug(), room(), (size_t)room(), entries(),            \
				       or_null(outputs()), or_null(outputs() + 8)))                \
	X(cua_lock_verdict_text, PLAIN,                                                            \
	  cua_lock_verdict_text(or_null(memory), text_size(), or_null(outputs())))                 \
	X(cua_max, PLAIN, cua_max(ctx(), type(), count(), in(), out()))                            \
	X(cua_memory_info, PLAIN,                                                                  \
	  cua_memory_info(ctx(), or_null(outputs()), or_null(outputs() + 8)))                      \
	X(cua_min, PLAIN, cua_min(ctx(), type(), count(), in(), out()))                            \
	X(cua_multimap_clear, PLAIN, cua_multimap_clear(multimap()))                               \
	X(cua_multimap_count_n, PLAIN, cua_multimap_count_n(multimap(), count(), in(), out()))     \
	X(cua_multimap_create, MADE_MULTIMAP,                                                      \
	  cua_multimap_create(ctx(), multimap_options(), small_type(), small_type(), capacity(),   \
			      capacity(), slot()))                                                 \
	X(cua_multimap_destroy, LENIENT, cua_multimap_destroy(NULL))                               \
	X(cua_multimap_erase_n, PLAIN, cua_multimap_erase_n(multimap(), count(), in(), out()))     \
	X(cua_multimap_insert_n, PLAIN,                                                            \
	  cua_multimap_insert_n(multimap(), count(), in(), in(), out()))                           \
	X(cua_multimap_keys, PLAIN, cua_multimap_keys(multimap(), out()))                          \
	X(cua_multimap_reclaim, PLAIN, cua_multimap_reclaim(multimap()))                           \
	X(cua_multimap_retrieve, PLAIN,                                                            \
	  cua_multimap_retrieve(multimap(), room(), out(), out(), out()))                          \
	X(cua_multimap_retrieve_n, PLAIN,                                                          \
	  cua_multimap_retrieve_n(multimap(), count(), in(), room(), out(), out(), out()))         \
	X(cua_multimap_size, PLAIN, cua_multimap_size(multimap(), out()))                          \
	X(cua_multimap_status, PLAIN, cua_multimap_status(multimap()))                             \
	X(cua_multimap_get_view, PLAIN, cua_multimap_get_view(multimap(), or_null(outputs())))     \
	X(cua_pointer_query, LENIENT,                                                              \
	  cua_pointer_query(ctx(), in(), with_size(sizeof(struct cua_pointer_info))))              \
	X(cua_reduce, PLAIN,                                                                       \
	  cua_reduce(ctx(), reduce_options(), REDUCTION, type(), count(), in(),                    \
		     pick(2) ? NULL : in(), out()))                                                \
	X(cua_reduce_by_key, PLAIN,                                                                \
	  cua_reduce_by_key(ctx(), segment_options(), REDUCTION, type(), type(), count(), in(),    \
			    in(), room(), out(), out(), out()))                                    \
	X(cua_reduce_by_key_workspace, PLAIN,                                                      \
	  cua_reduce_by_key_workspace(ctx(), segment_options(), REDUCTION, type(), type(),         \
				      count(), room(), or_null(outputs())))                        \
	X(cua_reduce_workspace, PLAIN,                                                             \
	  cua_reduce_workspace(ctx(), reduce_options(), REDUCTION, type(), count(),                \
			       or_null(outputs())))                                                \
	X(cua_scatter, PLAIN,                                                                      \
	  cua_scatter(ctx(), scatter_options(), SCATTER, index_type(), type(), count(), in(),      \
		      in(), count(), out()))                                                       \
	X(cua_scatter_add, PLAIN,                                                                  \
	  cua_scatter_add(ctx(), index_type(), type(), count(), in(), in(), count(), out()))       \
	X(cua_scatter_workspace, PLAIN,                                                            \
	  cua_scatter_workspace(ctx(), scatter_options(), SCATTER, index_type(), type(), count(),  \
				count(), or_null(outputs())))                                      \
	X(cua_segmented_reduce, PLAIN,                                                             \
	  cua_segmented_reduce(ctx(), segment_options(), REDUCTION, type(), count(), in(),         \
			       count(), in(), out()))                                              \
	X(cua_segmented_reduce_workspace, PLAIN,                                                   \
	  cua_segmented_reduce_workspace(ctx(), segment_options(), REDUCTION, type(), count(),     \
					 count(), or_null(outputs())))                             \
	X(cua_segmented_sum, PLAIN,                                                                \
	  cua_segmented_sum(ctx(), type(), count(), in(), count(), in(), out()))                   \
	X(cua_status_name, LENIENT,                                                                \
	  fine(cua_status_name((enum cua_status)enumerator(-25, 3))[0] != 0))                      \
	X(cua_sharded_map_assign_n, PLAIN,                                                         \
	  cua_sharded_map_assign_n(sharded(), counts(), ins(), ins(), byte_outs()))                \
	X(cua_sharded_map_build_n, PLAIN,                                                          \
	  cua_sharded_map_build_n(sharded(), counts(), ins(), ins(), byte_outs()))                 \
	X(cua_sharded_map_clear, PLAIN, cua_sharded_map_clear(sharded()))                          \
	X(cua_sharded_map_contains_n, PLAIN,                                                       \
	  cua_sharded_map_contains_n(sharded(), counts(), ins(), byte_outs()))                     \
	X(cua_sharded_map_create, MADE_SHARDED,                                                    \
	  cua_sharded_map_create(group(), map_options(), small_type(), small_type(), capacity(),   \
				 slot()))                                                          \
	X(cua_sharded_map_destroy, LENIENT, (cua_sharded_map_destroy(NULL), CUA_OK))               \
	X(cua_sharded_map_erase_n, PLAIN,                                                          \
	  cua_sharded_map_erase_n(sharded(), counts(), ins(), byte_outs()))                        \
	X(cua_sharded_map_find_n, PLAIN,                                                           \
	  cua_sharded_map_find_n(sharded(), counts(), ins(), outs(), byte_outs()))                 \
	X(cua_sharded_map_insert_n, PLAIN,                                                         \
	  cua_sharded_map_insert_n(sharded(), counts(), ins(), ins(), byte_outs()))                \
	X(cua_sharded_map_load, MADE_SHARDED,                                                      \
	  cua_sharded_map_load(group(), map_options(), path(), slot()))                            \
	X(cua_sharded_map_workspace, PLAIN,                                                        \
	  cua_sharded_map_workspace(sharded(), count(), or_null(outputs())))                       \
	X(cua_sharded_map_owner, PLAIN,                                                            \
	  cua_sharded_map_owner(sharded(), or_null(memory), or_null(outputs())))                   \
	X(cua_sharded_map_retrieve, PLAIN,                                                         \
	  cua_sharded_map_retrieve(sharded(), ORDER, rooms(), outs(), outs(), or_null(outputs()))) \
	X(cua_sharded_map_save, PLAIN, cua_sharded_map_save(sharded(), path()))                    \
	X(cua_sharded_map_shard, LENIENT,                                                          \
	  fine(cua_sharded_map_shard(sharded(), (uint32_t)pick(4)) != maps[0]))                    \
	X(cua_sharded_map_size, PLAIN, cua_sharded_map_size(sharded(), or_null(outputs())))        \
	X(cua_sharded_map_status, PLAIN, cua_sharded_map_status(sharded()))                        \
	X(cua_sharded_map_update_n, PLAIN,                                                         \
	  cua_sharded_map_update_n(sharded(), UPDATE, counts(), ins(), ins(), byte_outs()))        \
	X(cua_strerror, LENIENT, fine(cua_strerror((enum cua_status)enumerator(-25, 3))[0] != 0))  \
	X(cua_sum, PLAIN, cua_sum(ctx(), type(), count(), in(), out()))                            \
	X(cua_symbol_read, PLAIN, cua_symbol_read(ctx(), out(), in(), offset(), count()))          \
	X(cua_symbol_write, PLAIN, cua_symbol_write(ctx(), out(), offset(), in(), count()))        \
	X(cua_type_name, LENIENT, fine(cua_type_name(type())[0] != 0))                             \
	X(cua_type_size, LENIENT, fine(cua_type_size(type()) <= 16))                               \
	X(cua_unique, PLAIN,                                                                       \
	  cua_unique(ctx(), unique_options(), type(), count(), in(), room(), out(), out()))        \
	X(cua_unique_workspace, PLAIN,                                                             \
	  cua_unique_workspace(ctx(), unique_options(), type(), count(), room(),                   \
			       or_null(outputs())))                                                \
	X(cua_version, LENIENT, fine(cua_version()[0] != 0))

static unsigned threads(void)
{
	static const unsigned numbers[] = {1, 2, 3, 1025, UINT_MAX, 0};

	return numbers[pick(6)];
}

/* Entries of a lock table; NULL is valid if there is room for none. */
static void *entries(void)
{
	return pick(8) ? outputs() + 4 * SLICE : NULL;
}

static size_t text_size(void)
{
	static const size_t sizes[] = {CUA_LOCK_DEBUG_TEXT, 0, 1, 40, SLICE};

	return sizes[pick(5)];
}

#define CALL(name, kind, call)                                                                     \
	static enum cua_status call_##name(void)                                                   \
	{                                                                                          \
		return (call);                                                                     \
	}
CALLS(CALL)
#undef CALL

static const struct {
	const char *name;
	enum kind kind;
	enum cua_status (*call)(void);
} calls[] = {
#define CALL(name, kind, call) {#name, kind, call_##name},
	CALLS(CALL)
#undef CALL
};
#define N_CALLS (sizeof(calls) / sizeof(*calls))

static enum cua_status destroy(enum kind kind)
{
	switch (kind) {
	case MADE_MEMORY: return cua_free(ctx1, made);
	case MADE_CONTEXT: cua_context_destroy(made); return CUA_OK;
	case MADE_MAP: return cua_hashmap_destroy(made);
	case MADE_MULTIMAP: return cua_multimap_destroy(made);
	case MADE_CHAINED: return cua_chained_destroy(made);
	case MADE_BUFFER: return cua_append_destroy(made);
	case MADE_DEBUG: return cua_lock_debug_destroy(made);
	case MADE_GROUP: cua_group_destroy(made); return CUA_OK;
	case MADE_SHARDED: cua_sharded_map_destroy(made); return CUA_OK;
	default: return CUA_OK;
	}
}

/* ---- the contents of the objects ---- */

#define MOST_PAIRS ((size_t)1 << 15)

static uint64_t sum_of(uint64_t sum, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
	return sum;
}

static void works(enum cua_status status)
{
	if (status && status != CUA_ERROR_FULL)
		broken("an object does not work any more");
}

static uint64_t contents(void)
{
	static uint64_t keys[2 * MOST_PAIRS], values[2 * MOST_PAIRS];
	uint64_t sum = 0xcbf29ce484222325u, n, more[4];

	for (unsigned i = 0; i <= MAPS; i++) {
		struct cua_hashmap *m = i < MAPS ? maps[i] : foreign_map;
		struct cua_hashmap_view view;

		works(cua_hashmap_get_view(m, &view));
		works(cua_hashmap_retrieve(m, CUA_HASHMAP_SORTED, MOST_PAIRS, keys, values, &n));
		if (n > MOST_PAIRS)
			broken("a map has more keys than were inserted");
		sum = sum_of(sum, keys, n * view.key_size);
		sum = sum_of(sum, values, n * view.value_size);
		works(cua_hashmap_size(m, &more[0]));
		if (n != more[0])
			broken("a map has another size than it has keys");
		works(cua_hashmap_capacity(m, &more[1]));
		works(cua_hashmap_rejected(m, 0, NULL, NULL, &more[2]));
		more[3] = (uint64_t)(-cua_hashmap_status(m));
		sum = sum_of(sum, more, sizeof(more));
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t any = 0;

		works(cua_multimap_retrieve(multimaps[i], MOST_PAIRS, keys, values, &n));
		/* in any order */
		for (uint64_t j = 0; j < n; j++)
			any += i ? ((uint32_t *)keys)[j] * 31u + ((uint32_t *)values)[j]
				 : keys[j] * 31 + values[j];
		works(cua_multimap_size(multimaps[i], &more[0]));
		works(cua_multimap_keys(multimaps[i], &more[1]));
		more[2] = any;
		more[3] = (uint64_t)(-cua_multimap_status(multimaps[i]));
		sum = sum_of(sum, more, sizeof(more));
	}
	works(cua_chained_demand(table, &more[0]));
	for (uint64_t i = 0; i < MOST_N; i++)
		keys[i] = i * 3;
	works(cua_chained_count_n(table, MOST_N, keys, values));
	sum = sum_of(sum, values, MOST_N * 8);
	for (unsigned i = 0; i < 3; i++) {
		struct cua_append *b = i < 2 ? buffers[i] : foreign_buffer;

		works(cua_append_read(b, keys, 1000, &n));
		sum = sum_of(sum, keys, n * (i ? 4 : 8));
		works(cua_append_demand(b, &more[1 + i]));
	}
	sum = sum_of(sum, more, sizeof(more));
	works(cua_copy_from_pitched(ctx1, keys, &pitched));
	sum = sum_of(sum, keys,
		     pitched.width * pitched.height * pitched.depth * pitched.element_size);
	works(cua_lock_debug_dropped(debug, &more[0]));
	more[1] = cua_context_threads(ctx1);
	sum = sum_of(sum, more, 16);
	return sum_of(sum, block, 256);
}

/* ---- the run ---- */

static void must(enum cua_status status)
{
	if (status)
		broken(cua_status_name(status));
}

static void prepare(void)
{
	static const enum cua_type key_types[MAPS] = {CUA_U64, CUA_U32, CUA_U128, CUA_U64, CUA_U64};
	static const enum cua_type value_types[MAPS] = {CUA_U64, CUA_NONE, CUA_U128, CUA_U32,
							CUA_U64};
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = 1};
	struct cua_context *contexts_of_group[2];
	uint64_t *words;

	memory = mmap(NULL, (INPUTS + OUTPUTS) * SLICE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snapshot = malloc(OUTPUTS * SLICE);
	if (memory == MAP_FAILED || !snapshot)
		broken("no memory");
	words = (uint64_t *)memory;
	for (size_t i = 0; i < SLICE / 8; i++) {
		const double ascending = (double)i;

		words[i] = test_random(&state);
		words[SLICE / 8 + i] = i * 3;
		memcpy(&words[2 * SLICE / 8 + i], &ascending, 8);
		words[3 * SLICE / 8 + i] = 0x0101010101010101u;
	}
	memset(outputs(), 0xa5, OUTPUTS * SLICE);
	/* a write to an input ends the program */
	if (mprotect(memory, INPUTS * SLICE, PROT_READ))
		broken("mprotect");
	must(cua_context_create(CUA_BACKEND_CPU, 0, &ctx1));
	must(cua_context_create(CUA_BACKEND_CPU, 0, &ctx2));
	must(cua_context_set_threads(ctx1, 2));
	must(cua_context_set_threads(ctx2, 1));
	contexts_of_group[0] = ctx1;
	contexts_of_group[1] = ctx2;
	for (unsigned i = 0; i < MAPS; i++) {
		o.grow_percent = i == 3 ? 80 : 0;
		o.portable = i == 4;
		o.rejects = i == 2 ? 4 : 0;
		must(cua_hashmap_create(ctx1, &o, key_types[i], value_types[i], i == 2 ? 5 : 100,
					&maps[i]));
		must(cua_hashmap_insert_n(maps[i], 10, memory, memory, NULL));
	}
	must(cua_hashmap_create(ctx2, NULL, CUA_U64, CUA_U64, 100, &foreign_map));
	must(cua_hashmap_insert_n(foreign_map, 10, memory, memory, NULL));
	must(cua_multimap_create(ctx1, NULL, CUA_U64, CUA_U64, 100, 300, &multimaps[0]));
	must(cua_multimap_create(ctx1, NULL, CUA_U32, CUA_U32, 20, 50, &multimaps[1]));
	must(cua_chained_create(ctx1, NULL, 16, 200, &table));
	must(cua_append_create(ctx1, 8, 100, &buffers[0]));
	must(cua_append_create(ctx1, 4, 10, &buffers[1]));
	must(cua_append_create(ctx2, 4, 10, &foreign_buffer));
	must(cua_lock_debug_create(ctx1, NULL, &debug));
	must(cua_group_create_devices(2, contexts_of_group, &ranks));
	must(cua_sharded_map_create(ranks, NULL, CUA_U32, CUA_U32, 1000, &sharded_maps[0]));
	must(cua_sharded_map_create(ranks, NULL, CUA_U64, CUA_NONE, 50, &sharded_maps[1]));
	must(cua_alloc_3d(ctx1, 5, 4, 3, 4, &pitched));
	must(cua_fill_pitched(ctx1, &pitched, 4, memory));
	must(cua_alloc_zero(ctx1, 64, 4, &block));
}

/* Erases some of the calls' keys, so that maps neither stay full nor grow without limit. */
static void tidy(void)
{
	for (unsigned i = 0; i < MAPS; i++)
		must(cua_hashmap_clear(maps[i]));
	for (unsigned i = 0; i < MAPS; i++)
		must(cua_hashmap_resize(maps[i], i == 2 ? 5 : 100));
	must(cua_multimap_clear(multimaps[0]));
	must(cua_multimap_clear(multimaps[1]));
	must(cua_chained_clear(table));
}

static void run_calls(uint64_t seed, uint64_t n, const char *printed)
{
	uint64_t before, after;
	struct stat st;
	int fd = open(printed, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		broken("no file for what is printed");
	if (!SANITIZED) {
		struct rlimit limit = {MEMORY_LIMIT, MEMORY_LIMIT};

		setrlimit(RLIMIT_AS, &limit);
	}
	/* fixes the seeds of all hashes */
	setenv("CUATOMIC_HASH_SEED", "1", 1);
	state = seed;
	prepare();
	before = contents();
	for (uint64_t i = 0; i < n; i++) {
		const size_t which = pick(N_CALLS);
		enum cua_status status;

		if (i % 500 == 499) {
			tidy();
			before = contents();
		}
		mode = pick(2) ? RIGHT : (enum mode)pick(MODES);
		must_fail = 0;
		made = &made;
		shared->calls = i;
		shared->mode = (int)mode;
		snprintf(shared->name, sizeof(shared->name), "%s", calls[which].name);
		memcpy(snapshot, outputs(), OUTPUTS * SLICE);
		alarm(600);
		status = calls[which].call();
		if (!strcmp(cua_status_name(status), "CUA_ERROR_UNKNOWN"))
			broken("the status is none of the list");
		if (status == CUA_ERROR_CUDA || status == CUA_ERROR_CAPTURE)
			broken("a status of CUDA on the CPU");
		if (!status && must_fail && calls[which].kind != LENIENT)
			broken("an argument that is wrong was taken");
		if (status && memcmp(snapshot, outputs(), OUTPUTS * SLICE))
			broken("a call that failed has changed an output");
		if (calls[which].kind >= MADE_MEMORY) {
			if (status ? made != (void *)&made : made == (void *)&made)
				broken(status ? "a call that failed has set the result"
					      : "no result was set");
			if (!status && destroy(calls[which].kind))
				broken("what was created cannot be destroyed");
		}
		after = contents();
		if (status && status != CUA_ERROR_FULL && after != before)
			broken("a call that failed has changed an object");
		before = after;
		/* a sanitizer warns about requests that it refuses */
		if (fstat(1, &st) || (!SANITIZED && st.st_size))
			broken("something was printed");
	}
	must(cua_chained_verify(table, NULL));
	_exit(0);
}

START_TEST(every_symbol_has_an_entry)
{
	const char *top = getenv("top_srcdir");
	char line[256], path[4096];
	unsigned symbols = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/lib/libcuatomic.symbols", top && *top ? top : TOP_SRCDIR);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		int found = 0;

		line[strcspn(line, " ;\n")] = 0;
		if (strncmp(line, "cua_", 4))
			continue;
		symbols++;
		for (size_t i = 0; i < N_CALLS; i++)
			found |= !strcmp(calls[i].name, line);
		EXPECT(found, "%s is exported, and tests/check_misuse.c has no call of it", line);
	}
	fclose(f);
	ck_assert_uint_eq(symbols, N_CALLS);
}
END_TEST

START_TEST(calls_that_are_wrong)
{
	const int deep = test_deep();
	const char *number = getenv("CUA_MISUSE_CALLS");
	const uint64_t seed = test_seed("calls_that_are_wrong");
	uint64_t n = number && *number ? strtoull(number, NULL, 0)
		     : deep            ? 300000
		     : test_quick()    ? 2000
				       : 8000;
	char printed[1200];
	int wait_status = 0;
	pid_t child;

	/* beside the folder of the saved maps; scratch_path creates the folder */
	scratch_path(0);
	snprintf(printed, sizeof(printed), "%s.printed", scratch_folder);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	fflush(NULL);
	child = fork();
	if (child == 0)
		run_calls(seed, n, printed);
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
	if (wait_status) {
		char output[1000] = "";
		FILE *f = fopen(printed, "r");

		if (f) {
			size_t got = fread(output, 1, sizeof(output) - 1, f);

			output[got] = 0;
			fclose(f);
		}
		unlink(printed);
		ck_abort_msg(
			"call %llu, %s, mode %d: %s%s %d; CUA_TEST_SEED=%llu CUA_MISUSE_CALLS=%llu\n%s",
			(unsigned long long)shared->calls, shared->name, shared->mode,
			shared->message, WIFSIGNALED(wait_status) ? "signal" : "; exit status",
			WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
			(unsigned long long)seed, (unsigned long long)shared->calls + 1, output);
	}
	unlink(printed);
	munmap(shared, sizeof(*shared));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("misuse");
	TCase *tests = tcase_create("misuse");

	tcase_set_timeout(tests, 0);
	tcase_add_test(tests, every_symbol_has_an_entry);
	tcase_add_test(tests, calls_that_are_wrong);
	suite_add_tcase(suite, tests);
	return test_run(suite, CUA_BACKEND_CPU);
}
