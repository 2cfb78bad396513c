/* SPDX-License-Identifier: MIT */
/*
 * Histograms on the CPU. The private bins of a worker have 64 bits and lie in the workspace; one
 * more behind them takes the elements that are ignored, so that the loop needs no branch.
 */
#include "config.h"

#include "histogram.h"

/* Fewer elements than this are not worth a thread. */
#define GRAIN 65536
/* Elements that a worker takes at a turn where the workers take turns. */
#define PIECE 4096
/* Private bins of a worker: what a core's cache holds. */
#define PRIVATE_BINS 65536

typedef void count_fn(const struct cua__histogram *h, uint64_t *own, size_t begin, size_t end);

struct job {
	const struct cua__histogram *h;
	count_fn *count;
};

static inline void add_shared(const struct cua__histogram *h, uint32_t bin, uint64_t n)
{
	if (bin != CUA_HISTOGRAM_NO_BIN)
		cua_port_add_u64((uint64_t *)h->counts + bin, n, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GLOBAL);
}

static inline void add(const struct cua__histogram *h, uint64_t *own, uint32_t bin, uint64_t n)
{
	if (bin < h->private_bins)
		own[bin] += n;
	else
		add_shared(h, bin, n);
}

/* Counts x[begin..end) as the strategy says; BIN is an expression of the element `v`. */
#define DEFINE_COUNT(name, T, BIN)                                                                 \
	static void count_##name(const struct cua__histogram *h, uint64_t *own, size_t begin,      \
				 size_t end)                                                       \
	{                                                                                          \
		const struct cua_histogram_range range = h->range;                                 \
		const uint32_t own_bins = h->private_bins;                                         \
		const T *x = h->x;                                                                 \
                                                                                                   \
		(void)range;                                                                       \
		if (h->strategy == CUA_HISTOGRAM_AGGREGATED) {                                     \
			uint32_t last = CUA_HISTOGRAM_NO_BIN;                                      \
			uint64_t run = 0;                                                          \
                                                                                                   \
			for (size_t i = begin; i < end; i++) {                                     \
				T v = x[i];                                                        \
				uint32_t bin = (BIN);                                              \
                                                                                                   \
				if (bin != last) {                                                 \
					add(h, own, last, run);                                    \
					last = bin;                                                \
					run = 0;                                                   \
				}                                                                  \
				run++;                                                             \
			}                                                                          \
			add(h, own, last, run);                                                    \
		} else if (own_bins == h->bins) {                                                  \
			for (size_t i = begin; i < end; i++) {                                     \
				T v = x[i];                                                        \
				uint32_t bin = (BIN);                                              \
                                                                                                   \
				own[bin < own_bins ? bin : own_bins]++;                            \
			}                                                                          \
		} else if (own_bins) {                                                             \
			for (size_t i = begin; i < end; i++) {                                     \
				T v = x[i];                                                        \
                                                                                                   \
				add(h, own, (BIN), 1);                                             \
			}                                                                          \
		} else {                                                                           \
			for (size_t i = begin; i < end; i++) {                                     \
				T v = x[i];                                                        \
                                                                                                   \
				add_shared(h, (BIN), 1);                                           \
			}                                                                          \
		}                                                                                  \
	}
DEFINE_COUNT(bytes, uint8_t, v)
DEFINE_COUNT(letters, uint8_t, cua_histogram_letter_bin(v))
DEFINE_COUNT(u8, uint8_t, cua_histogram_even_bin_i64(&range, v))
DEFINE_COUNT(u16, uint16_t, cua_histogram_even_bin_i64(&range, v))
DEFINE_COUNT(u32, uint32_t, cua_histogram_even_bin_i64(&range, v))
DEFINE_COUNT(i32, int32_t, cua_histogram_even_bin_i64(&range, v))
DEFINE_COUNT(f32, float, cua_histogram_even_bin_f64(&range, (double)v))
DEFINE_COUNT(f64, double, cua_histogram_even_bin_f64(&range, v))

static size_t own_bytes(const struct cua__histogram *h)
{
	return cua__scratch_size(((size_t)h->private_bins + 1) * sizeof(uint64_t));
}

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	const struct cua__histogram *h = job->h;
	uint64_t *own = NULL;
	size_t begin, end;

	if (h->private_bins) {
		own = (uint64_t *)(void *)((char *)h->scratch + worker * own_bytes(h));
		memset(own, 0, ((size_t)h->private_bins + 1) * sizeof(*own));
	}
	if (h->strategy == CUA_HISTOGRAM_INTERLEAVED) {
		size_t pieces = h->n / PIECE + (h->n % PIECE != 0);

		for (size_t piece = worker; piece < pieces; piece += workers) {
			begin = piece * PIECE;
			end = h->n - begin > PIECE ? begin + PIECE : h->n;
			job->count(h, own, begin, end);
		}
	} else {
		cua__share(h->n, worker, workers, &begin, &end);
		job->count(h, own, begin, end);
	}
	for (uint32_t bin = 0; bin < h->private_bins; bin++)
		if (own[bin])
			add_shared(h, bin, own[bin]);
}

static void cpu_plan(struct cua_context *ctx, struct cua__histogram *h)
{
	size_t grain;

	if (h->strategy == CUA_HISTOGRAM_AUTO)
		h->strategy = h->bins <= PRIVATE_BINS ? CUA_HISTOGRAM_PRIVATIZED
						      : CUA_HISTOGRAM_INTERLEAVED;
	h->private_bins = 0;
	if (h->strategy == CUA_HISTOGRAM_PRIVATIZED || h->strategy == CUA_HISTOGRAM_AGGREGATED)
		h->private_bins = h->bins < PRIVATE_BINS ? h->bins : PRIVATE_BINS;
	/* clearing and merging private bins costs about what counting as many elements does */
	grain = GRAIN + (size_t)h->private_bins;
	h->workers = cua__workers(ctx, h->n, grain);
	h->scratch_bytes = h->private_bins ? h->workers * own_bytes(h) : 0;
}

static enum cua_status cpu_run(struct cua_context *ctx, const struct cua__histogram *h)
{
	struct job job = {.h = h};

	if (h->channels > 1 || h->width != h->n || h->outside || h->weight_type ||
	    h->count_type != CUA_U64 || h->rule == CUA__BIN_EDGES)
		return CUA_ERROR_UNSUPPORTED;
	if (h->rule == CUA__BIN_EVEN)
		switch (h->type) {
		case CUA_U8:
		case CUA_U16:
		case CUA_U32:
		case CUA_I32:
		case CUA_F32:
		case CUA_F64: break;
		default: return CUA_ERROR_UNSUPPORTED;
		}
	if (h->clear)
		memset(h->counts, 0, h->bins * sizeof(uint64_t));
	if (h->rule == CUA__BIN_BYTE)
		job.count = count_bytes;
	else if (h->rule == CUA__BIN_LETTER)
		job.count = count_letters;
	else
		switch (h->type) {
		case CUA_U8: job.count = count_u8; break;
		case CUA_U16: job.count = count_u16; break;
		case CUA_U32: job.count = count_u32; break;
		case CUA_I32: job.count = count_i32; break;
		case CUA_F32: job.count = count_f32; break;
		default: job.count = count_f64; break;
		}
	cua__parallel(ctx, h->workers, work, &job);
	return CUA_OK;
}

const struct cua__histogram_ops cua__cpu_histogram = {
	.plan = cpu_plan,
	.run = cpu_run,
};
