/* SPDX-License-Identifier: MIT */
/*
 * Histograms on the CPU. A worker processes its elements in blocks. First, a loop for the type
 * finds the bin of each element of a block. Then a loop for the strategy counts these bins. Here,
 * an element outside all bins has the index bins + its side, so the loops need no branch for it.
 *
 * Private bins have 32 bits, or 64 for sums of weights, and are in the workspace. If there are few
 * bins, there are several copies of them. Neighbouring elements use different copies, so an
 * addition does not wait for the addition before it. Types of 8 bits are counted by value, and
 * types of 16 bits too if there are many elements. The bin of each value is then found once, at the
 * end.
 */
#include "config.h"

#include "cpu/cpu_histogram_bytes.h"
#include "cpu/float_mode.h"
#include "backend/histogram_backend.h"

/* Fewer elements are not worth a thread. */
#define GRAIN 65536
/* Elements that a worker claims at a time, if workers take turns. */
#define PIECE 4096
/*
 * Maximum number of private bins of a worker, over all channels: for AUTO, and for a strategy
 * chosen by name.
 */
#define PRIVATE_BINS ((size_t)1 << 20)
#define PRIVATE_BINS_ASKED ((size_t)65536)
/* Values of a channel in a block. */
#define BLOCK 1024
/*
 * No private bin overflows within this many elements. The limit is lower than necessary, so that
 * all large calls exercise the flush.
 */
#define MOST_BETWEEN_FLUSHES ((size_t)1 << 26)
/* With at least this many elements per worker, 16-bit types are counted by value. */
#define VALUES_FROM ((size_t)1 << 19)
#define VALUES 65536
#define VALUE_COPIES 2
/* With at most this many bins, there are 4 or 2 copies. */
#define BINS_FOR_4 1024
#define BINS_FOR_2 2048

#define CHANNELS CUA_HISTOGRAM_MAX_CHANNELS
#define SIDES CUA_HISTOGRAM_SIDES

/* State of a worker. */
struct worker {
	const struct cua__histogram *h;
	void *own;      /* its part of the scratch memory */
	size_t counted; /* elements since the last flush */
	uint32_t bin[BLOCK];
	uint64_t weight[BLOCK];
	uint64_t outside[CHANNELS][SIDES];
	uint64_t bytes[CHANNELS][256];
};

/* ---- results, shared by the workers ---- */

static inline void add_shared(const struct cua__histogram *h, size_t at, uint64_t n)
{
	if (h->count_type == CUA_U32)
		cua_port_add_u32((uint32_t *)h->counts + at, (uint32_t)n, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_add_u64((uint64_t *)h->counts + at, n, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GLOBAL);
}

/* Adds n elements of channel c with this bin, or with bins + side. */
static inline void add_result(struct worker *w, unsigned c, uint32_t bin, uint64_t n)
{
	if (bin < w->h->bins)
		add_shared(w->h, (size_t)c * w->h->bins + bin, n);
	else
		w->outside[c][bin - w->h->bins] += n;
}

/* ---- bins ---- */

/* Finds the bins of n values, n <= BLOCK; they are `step` values apart. */
typedef void find_fn(const struct cua__histogram *h, const void *values, size_t n, size_t step,
		     uint32_t *bins);

struct finders {
	find_fn *byte, *letter;
	find_fn *even[CUA_F64 + 1], *edges[CUA_F64 + 1]; /* by type */
};

static inline float of_f16(uint16_t bits)
{
	return cua__element_f32(CUA_F16, bits);
}

static inline float of_bf16(uint16_t bits)
{
	return cua__element_f32(CUA_BF16, bits);
}

#define FIND(name) name##_any
#define FIND_TARGET
#include "cpu/cpu_histogram_bins.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1
#define FIND(name) name##_avx2
#define FIND_TARGET __attribute__((target("avx2")))
#include "cpu/cpu_histogram_bins.h"

#define FIND(name) name##_avx512
#define FIND_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "cpu/cpu_histogram_bins.h"
#endif

static find_fn *finder_of(const struct cua__histogram *h)
{
	const struct finders *finders = &finders_any;

#if HAVE_WIDER
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		finders = &finders_avx512;
	else if (__builtin_cpu_supports("avx2"))
		finders = &finders_avx2;
#endif
	switch (h->rule) {
	case CUA__BIN_BYTE: return finders->byte;
	case CUA__BIN_LETTER: return finders->letter;
	case CUA__BIN_EVEN: return finders->even[h->type];
	default: return finders->edges[h->type];
	}
}

/* ---- weights ---- */

/* Marks a refused weight; no number of units is this low. */
#define REFUSED ((uint64_t)1 << 63)

/* Reads the weights of n elements from element i on. */
static void read_weights(const struct cua__histogram *h, size_t i, size_t n, uint64_t *weight)
{
	const void *p = h->weights;

	switch (h->weight_type) {
	case CUA_I32:
		for (size_t k = 0; k < n; k++)
			weight[k] = (uint64_t)(int64_t)((const int32_t *)p)[i + k];
		break;
	case CUA_U32:
		for (size_t k = 0; k < n; k++)
			weight[k] = ((const uint32_t *)p)[i + k];
		break;
	case CUA_I64:
	case CUA_U64: memcpy(weight, (const uint64_t *)p + i, n * sizeof(*weight)); break;
	default:
		for (size_t k = 0; k < n; k++) {
			double v = h->weight_type == CUA_F32
					   ? cua_port_cvt_f64_f32(((const float *)p)[i + k])
					   : ((const double *)p)[i + k];

			weight[k] = v >= -h->weight_limit && v <= h->weight_limit
					    ? (uint64_t)cua__histogram_units(v, h->per_unit)
					    : REFUSED;
		}
	}
}

/* ---- private bins ---- */

static unsigned copies_of(const struct cua__histogram *h)
{
	size_t bins = (size_t)h->private_bins * h->counted;

	if (h->weight_type)
		return 1;
	return bins <= BINS_FOR_4 ? 4 : bins <= BINS_FOR_2 ? 2 : 1;
}

/* Counters of a copy: the private bins, and the sides (used only if all bins are private). */
static size_t counters_of(const struct cua__histogram *h)
{
	return (size_t)h->private_bins + SIDES;
}

/* Size in bytes of a worker's private bins. */
static size_t private_bytes(const struct cua__histogram *h)
{
	size_t size = h->weight_type ? sizeof(uint64_t) : sizeof(uint32_t);

	return h->private_bins ? counters_of(h) * copies_of(h) * h->counted * size : 0;
}

/* Adds the private bins to the results, and clears them. */
static void flush(struct worker *w)
{
	const struct cua__histogram *h = w->h;
	const unsigned copies = copies_of(h);
	const size_t counters = counters_of(h);

	w->counted = 0;
	for (unsigned c = 0; c < h->counted && h->private_bins; c++) {
		uint32_t *own = (uint32_t *)w->own + c * counters * copies;
		uint64_t *sums = (uint64_t *)w->own + c * counters;

		for (size_t i = 0; i < counters; i++) {
			/* the sides follow the private bins, even if only some bins are private */
			uint32_t bin = i < h->private_bins
					       ? (uint32_t)i
					       : h->bins + (uint32_t)(i - h->private_bins);
			uint64_t n = 0;

			if (h->weight_type)
				n = sums[i];
			else
				for (unsigned k = 0; k < copies; k++)
					n += own[k * counters + i];
			if (n)
				add_result(w, c, bin, n);
		}
	}
	if (h->private_bins)
		memset(w->own, 0, private_bytes(h));
}

/* ---- counting the bins of a block ---- */

static void count_copies(struct worker *w, unsigned c, size_t n)
{
	const unsigned copies = copies_of(w->h);
	const size_t counters = counters_of(w->h);
	uint32_t *own = (uint32_t *)w->own + c * counters * copies;
	/* element i uses copy i % copies */
	uint32_t *own1 = own + 1 % copies * counters, *own2 = own + 2 % copies * counters,
		 *own3 = own + 3 % copies * counters;
	const uint32_t *bin = w->bin;
	size_t i;

	for (i = 0; n - i >= 4; i += 4) {
		own[bin[i]]++;
		own1[bin[i + 1]]++;
		own2[bin[i + 2]]++;
		own3[bin[i + 3]]++;
	}
	for (; i < n; i++)
		own[bin[i]]++;
}

/* Adds to a bin, private or not. */
static inline void add_either(struct worker *w, unsigned c, uint32_t bin, uint64_t by)
{
	const struct cua__histogram *h = w->h;

	if (bin >= h->private_bins)
		add_result(w, c, bin, by);
	else if (h->weight_type)
		((uint64_t *)w->own)[c * counters_of(h) + bin] += by;
	else
		((uint32_t *)w->own)[c * counters_of(h) * copies_of(h) + bin] += (uint32_t)by;
}

static void count_runs(struct worker *w, unsigned c, size_t n)
{
	uint32_t last = w->bin[0];
	uint64_t run = 0;

	for (size_t i = 0; i < n; i++) {
		if (w->bin[i] != last) {
			add_either(w, c, last, run);
			last = w->bin[i];
			run = 0;
		}
		run++;
	}
	add_either(w, c, last, run);
}

static void count_weights(struct worker *w, unsigned c, size_t n)
{
	const struct cua__histogram *h = w->h;
	const int may_refuse = cua__is_float(h->weight_type), all = h->private_bins == h->bins;
	/* without private bins, the worker has no scratch memory */
	uint64_t *own = all ? (uint64_t *)w->own + c * counters_of(h) : NULL;

	for (size_t i = 0; i < n; i++) {
		const int inside = w->bin[i] < h->bins;
		const int refused = may_refuse && inside && w->weight[i] == REFUSED;
		const uint32_t bin = refused ? h->bins + CUA_HISTOGRAM_REFUSED : w->bin[i];
		/* elements outside are counted without weight */
		const uint64_t by = inside && !refused ? w->weight[i] : 1;

		if (all)
			own[bin] += by;
		else
			add_either(w, c, bin, by);
	}
}

static void count_block(struct worker *w, unsigned c, size_t n)
{
	const struct cua__histogram *h = w->h;

	if (h->weight_type)
		count_weights(w, c, n);
	else if (h->strategy == CUA_HISTOGRAM_AGGREGATED)
		count_runs(w, c, n);
	else if (h->private_bins == h->bins)
		count_copies(w, c, n);
	else
		for (size_t i = 0; i < n; i++)
			add_either(w, c, w->bin[i], 1);
}

/* ---- traversal ---- */

/* Counts n elements at p, without gaps; the first is element `first`. */
typedef void count_fn(struct worker *w, const char *p, size_t first, size_t n);

static void count_by_bin(struct worker *w, const char *p, size_t first, size_t n)
{
	const struct cua__histogram *h = w->h;
	const size_t value = cua_type_size(h->type), element = value * h->channels;
	find_fn *find = finder_of(h);

	for (size_t i = 0; i < n; i += BLOCK) {
		const size_t block = n - i < BLOCK ? n - i : BLOCK;

		if (h->weight_type)
			read_weights(h, first + i, block, w->weight);
		for (unsigned c = 0; c < h->counted; c++) {
			find(h, p + i * element + c * value, block, h->channels, w->bin);
			count_block(w, c, block);
		}
		w->counted += block;
		if (w->counted >= MOST_BETWEEN_FLUSHES - BLOCK)
			flush(w);
	}
}

static void count_by_byte(struct worker *w, const char *p, size_t first, size_t n)
{
	(void)first;
	count_bytes((const uint8_t *)p, n * w->h->channels, w->h->channels, w->bytes);
}

static uint32_t *values_of(struct worker *w, unsigned c)
{
	return (uint32_t *)w->own + (size_t)c * VALUES * VALUE_COPIES;
}

static void flush_values(struct worker *w)
{
	const struct cua__histogram *h = w->h;
	find_fn *find = finder_of(h);

	for (unsigned v = 0; v < VALUES; v += BLOCK) {
		uint16_t value[BLOCK];

		for (unsigned i = 0; i < BLOCK; i++)
			value[i] = (uint16_t)(v + i);
		find(h, value, BLOCK, 1, w->bin);
		for (unsigned c = 0; c < h->counted; c++) {
			uint32_t *own = values_of(w, c) + v;

			for (unsigned i = 0; i < BLOCK; i++) {
				uint64_t n = (uint64_t)own[i] + own[VALUES + i];

				if (n)
					add_result(w, c, w->bin[i], n);
			}
		}
	}
	memset(w->own, 0, sizeof(uint32_t) * VALUES * VALUE_COPIES * h->counted);
	w->counted = 0;
}

static void count_by_value(struct worker *w, const char *p, size_t first, size_t n)
{
	const size_t channels = w->h->channels;

	(void)first;
	while (n) {
		const size_t room = MOST_BETWEEN_FLUSHES - w->counted, piece = n < room ? n : room;

		for (unsigned c = 0; c < w->h->counted; c++) {
			const cua__raw16 *x = (const cua__raw16 *)(const void *)p + c;
			uint32_t *a = values_of(w, c), *b = a + VALUES;

			for (size_t i = 0; i + 2 <= piece; i += 2) {
				a[x[i * channels]]++;
				b[x[(i + 1) * channels]]++;
			}
			if (piece % 2)
				a[x[(piece - 1) * channels]]++;
		}
		p += piece * channels * sizeof(cua__raw16);
		n -= piece;
		w->counted += piece;
		if (w->counted == MOST_BETWEEN_FLUSHES)
			flush_values(w);
	}
}

static void flush_bytes(struct worker *w)
{
	uint8_t value[256];

	for (unsigned v = 0; v < 256; v++)
		value[v] = (uint8_t)v;
	finder_of(w->h)(w->h, value, 256, 1, w->bin);
	for (unsigned c = 0; c < w->h->counted; c++)
		for (unsigned v = 0; v < 256; v++)
			if (w->bytes[c][v])
				add_result(w, c, w->bin[v], w->bytes[c][v]);
}

/* Counts elements begin to end, row by row. */
static void count_rows(struct worker *w, count_fn *count, size_t begin, size_t end)
{
	const struct cua__histogram *h = w->h;
	const size_t element = cua_type_size(h->type) * h->channels;

	while (begin < end) {
		const size_t row = begin / h->width, at = begin % h->width, left = h->width - at;
		const size_t n = end - begin < left ? end - begin : left;

		count(w, (const char *)h->x + row * h->pitch + at * element, begin, n);
		begin += n;
	}
}

/* Whether values are counted instead of bins. If n is unknown: whether they ever are. */
static int by_value(const struct cua__histogram *h, size_t size)
{
	return !h->weight_type && h->strategy == CUA_HISTOGRAM_PRIVATIZED &&
	       (h->n == SIZE_MAX || (cua_type_size(h->type) == size &&
				     (size == 1 || h->n / h->workers >= VALUES_FROM)));
}

static size_t own_bytes(const struct cua__histogram *h)
{
	const size_t values = sizeof(uint32_t) * VALUES * VALUE_COPIES * h->counted;
	size_t bytes = private_bytes(h);

	if (h->n == SIZE_MAX)
		bytes = by_value(h, 2) && values > bytes ? values : bytes;
	else if (by_value(h, 1))
		bytes = 0;
	else if (by_value(h, 2))
		bytes = values;
	return cua__scratch_size(bytes);
}

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__histogram *h = arg;
	const int bytes = by_value(h, 1), values = by_value(h, 2);
	count_fn *count = bytes ? count_by_byte : values ? count_by_value : count_by_bin;
	struct worker w;
	size_t begin, end;
	fenv_t mode;

	cua__float_mode_begin(&mode);
	w.h = h;
	w.own = h->scratch_bytes ? (char *)h->scratch + worker * own_bytes(h) : NULL;
	w.counted = 0;
	memset(w.outside, 0, sizeof(w.outside));
	memset(w.bytes, 0, bytes ? sizeof(w.bytes) : 0);
	if (w.own)
		memset(w.own, 0, own_bytes(h));
	if (h->strategy == CUA_HISTOGRAM_INTERLEAVED) {
		size_t pieces = h->n / PIECE + (h->n % PIECE != 0);

		for (size_t piece = worker; piece < pieces; piece += workers) {
			begin = piece * PIECE;
			end = h->n - begin > PIECE ? begin + PIECE : h->n;
			count_rows(&w, count, begin, end);
		}
	} else {
		cua__share(h->n, worker, workers, &begin, &end);
		count_rows(&w, count, begin, end);
	}
	if (bytes)
		flush_bytes(&w);
	else if (values)
		flush_values(&w);
	else
		flush(&w);
	for (unsigned c = 0; c < h->counted && h->outside; c++)
		for (unsigned side = 0; side < SIDES; side++)
			if (w.outside[c][side])
				cua_port_add_u64(&h->outside[c * SIDES + side], w.outside[c][side],
						 CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua__float_mode_end(&mode);
}

static void cpu_plan(struct cua_context *ctx, struct cua__histogram *h)
{
	const size_t bins = (size_t)h->bins * h->counted;
	size_t most = PRIVATE_BINS_ASKED / h->counted;

	if (h->strategy == CUA_HISTOGRAM_AUTO) {
		h->strategy =
			bins <= PRIVATE_BINS ? CUA_HISTOGRAM_PRIVATIZED : CUA_HISTOGRAM_INTERLEAVED;
		most = PRIVATE_BINS;
	}
	h->private_bins = 0;
	if (h->strategy == CUA_HISTOGRAM_PRIVATIZED || h->strategy == CUA_HISTOGRAM_AGGREGATED)
		h->private_bins = h->bins < most ? h->bins : (uint32_t)most;
	/* clearing and merging a private bin costs about as much as counting an element */
	h->workers = cua__workers(ctx, h->n, GRAIN + (size_t)h->private_bins * h->counted);
	h->scratch_bytes = h->workers * own_bytes(h);
}

static enum cua_status cpu_run(struct cua_context *ctx, const struct cua__histogram *h)
{
	if (h->clear) {
		memset(h->counts, 0, (size_t)h->bins * h->counted * cua__histogram_count_size(h));
		if (h->outside)
			memset(h->outside, 0, h->counted * SIDES * sizeof(*h->outside));
	}
	/* workers only read the histogram */
	cua__parallel(ctx, h->workers, work, (void *)(uintptr_t)h);
	return CUA_OK;
}

static void finish_share(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__histogram *h = arg;
	const uint64_t *counts = h->counts;
	size_t begin, end;
	fenv_t mode;

	cua__share((size_t)h->bins * h->counted, worker, workers, &begin, &end);
	cua__float_mode_begin(&mode);
	for (size_t i = begin; i < end; i++)
		h->sums[i] = cua__histogram_sum(counts[i], h->unit, h->add_sums,
						h->add_sums ? h->sums[i] : 0);
	cua__float_mode_end(&mode);
}

static enum cua_status cpu_finish(struct cua_context *ctx, const struct cua__histogram *h)
{
	cua__parallel(ctx, cua__workers(ctx, (size_t)h->bins * h->counted, GRAIN), finish_share,
		      (void *)(uintptr_t)h);
	return CUA_OK;
}

const struct cua__histogram_ops cua__cpu_histogram = {
	.plan = cpu_plan,
	.run = cpu_run,
	.finish = cpu_finish,
};
