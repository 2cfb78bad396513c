/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a benchmark's samples, in C and in CUDA C: the median, its confidence interval, and
 * the rule that ends the sampling.
 *
 * The interval assumes no distribution. Its ends are the order statistics x(k) and x(n + 1 - k) of n
 * samples. The median of the distribution is outside with the probability 2 P(B < k), where B is
 * the number of heads of n coins.
 */
#ifndef CUATOMIC_BENCH_STATS_H
#define CUATOMIC_BENCH_STATS_H

#include <stdlib.h>
#include <time.h>

/* Samples of a row in short runs, and the least number before convergence ends the sampling. */
#define BENCH_RUNS 9
/* Most samples of a row. */
#define STATS_SAMPLES 101
/* The sampling ends if both ends of the interval are closer to the median than this share. */
#define STATS_CLOSE 0.01
/* A row is noisy if its interval is wider than this share of the median. */
#define STATS_WIDE 0.05
/* The interval leaves this probability on either side. */
#define STATS_TAIL 0.025
/* Least number of samples if the time limit is the user's. */
#define STATS_LEAST 3
/* Least number of samples that have an interval. */
#define STATS_LEAST_KNOWN 6

enum stats_reason {
	STATS_CONVERGED,
	STATS_TIME_LIMIT,
	STATS_ALL_SAMPLES /* the planned number of samples */
};

struct stats_interval {
	double median, low, high;
	int known; /* 0: too few samples for 95 %, so the ends are the extremes */
};

static inline int stats_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns k, counted from 1, or 0 if n is less than 6. n is at most STATS_SAMPLES. */
static inline int stats_rank(int n)
{
	double term = 1, sum;
	int k = 0;

	for (int i = 0; i < n; i++)
		term /= 2;
	for (sum = term; sum <= STATS_TAIL; sum += term) {
		k++;
		term *= (double)(n - k + 1) / k;
	}
	return k;
}

/* The median and its interval of n sorted samples, n >= 1. */
static inline struct stats_interval stats_of_sorted(const double *x, int n)
{
	struct stats_interval s;
	const int k = stats_rank(n);

	s.median = n % 2 ? x[n / 2] : x[n / 2 - 1] / 2 + x[n / 2] / 2;
	s.low = x[k ? k - 1 : 0];
	s.high = x[k ? n - k : n - 1];
	s.known = k > 0;
	return s;
}

/* Whether both ends of the interval are close to the median. */
static inline int stats_is_close(const struct stats_interval *s)
{
	const double most = STATS_CLOSE * s->median;

	return s->known && s->median - s->low <= most && s->high - s->median <= most;
}

/* Whether the interval is wide. Too few samples are not noisy: they have no interval. */
static inline int stats_is_noisy(const struct stats_interval *s)
{
	return s->known && s->high - s->low > STATS_WIDE * s->median;
}

/* Seconds of a monotonic clock. */
static inline double stats_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* When the sampling of a row ends. */
struct stats_plan {
	int least, most; /* numbers of samples; they exclude the warm-up */
	int converges;   /* 0: takes all `most` samples */
	double seconds;  /* time limit, from the first call of stats_add */
};

/* The samples of a row, in the order of their measurement. */
struct stats {
	struct stats_plan plan;
	double samples[STATS_SAMPLES];
	int n; /* -1: the next sample is the warm-up, which is dropped */
	double start;
	enum stats_reason reason;
};

static inline void stats_begin(struct stats *s, struct stats_plan plan)
{
	s->plan = plan;
	s->n = -1;
	s->start = 0;
	s->reason = STATS_ALL_SAMPLES;
}

/* Like stats_begin; the warm-up is over at time `now`. */
static inline void stats_begin_warm(struct stats *s, struct stats_plan plan, double now)
{
	stats_begin(s, plan);
	s->n = 0;
	s->start = now;
}

static inline int stats_has_converged(const struct stats *s)
{
	double sorted[STATS_SAMPLES];
	struct stats_interval interval;

	for (int i = 0; i < s->n; i++)
		sorted[i] = s->samples[i];
	qsort(sorted, (size_t)s->n, sizeof(sorted[0]), stats_order);
	interval = stats_of_sorted(sorted, s->n);
	return stats_is_close(&interval);
}

/* Adds a sample that was complete at time `now`. Returns whether another sample is needed. */
static inline int stats_add(struct stats *s, double sample, double now)
{
	if (s->n < 0) {
		s->n = 0;
		s->start = now;
		return 1;
	}
	s->samples[s->n++] = sample;
	if (s->plan.converges && s->n >= BENCH_RUNS && stats_has_converged(s)) {
		s->reason = STATS_CONVERGED;
		return 0;
	}
	if (s->n >= s->plan.most || s->n >= STATS_SAMPLES) {
		s->reason = STATS_ALL_SAMPLES;
		return 0;
	}
	if (s->n >= s->plan.least && now - s->start >= s->plan.seconds) {
		s->reason = STATS_TIME_LIMIT;
		return 0;
	}
	return 1;
}

#endif /* CUATOMIC_BENCH_STATS_H */
