/* SPDX-License-Identifier: MIT */
/* The statistics of benchmarks: bench/bench_stats.h and the figures of bench/bench_table.h. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "../bench/bench_table.h"
#include "common.h"

/* Of 2^-n C(n, i) by logarithms: the tested code multiplies terms. */
static double binomial(int n, int i)
{
	return exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2));
}

/* The probability of less than k heads of n coins. */
static double less_heads(int n, int k)
{
	double sum = 0;

	for (int i = 0; i < k; i++)
		sum += binomial(n, i);
	return sum;
}

START_TEST(ranks_are_those_of_binomial_sums)
{
	for (int n = 5; n <= STATS_SAMPLES; n++) {
		const int k = stats_rank(n);

		/* the interval covers the median, and a shorter one does not */
		ck_assert_msg(!k || 2 * less_heads(n, k) <= 0.05, "n %d, k %d", n, k);
		ck_assert_msg(2 * less_heads(n, k + 1) > 0.05, "n %d, k %d", n, k);
		ck_assert_int_lt(2 * k, n + 1);
	}
}
END_TEST

/* Values of published tables of the sign test at 5 %, two-sided, plus 1. */
START_TEST(ranks_are_those_of_tables)
{
	static const int known[][2] = {{0, 0},   {1, 0},   {2, 0},   {5, 0},    {6, 1},   {8, 1},
				       {9, 2},   {10, 2},  {12, 3},  {15, 4},   {20, 6},  {25, 8},
				       {30, 10}, {40, 14}, {50, 18}, {100, 40}, {101, 41}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_msg(stats_rank(known[i][0]) == known[i][1], "n %d: %d, not %d",
			      known[i][0], stats_rank(known[i][0]), known[i][1]);
}
END_TEST

/* Figures of 1 to n, in an order that is not sorted. */
static struct figure figure_of(int n)
{
	double rates[STATS_SAMPLES];

	for (int i = 0; i < n; i++)
		rates[i] = 1 + (i * 3 + 1) % n;
	if (n % 3 == 0)
		for (int i = 0; i < n; i++)
			rates[i] = n - i;
	return table_figure(rates, n);
}

START_TEST(figures_of_known_samples)
{
	static const struct {
		int n, known;
		double median, low, high;
	} wanted[] = {
		{1, 0, 1, 1, 1}, {2, 0, 1.5, 1, 2},  {5, 0, 3, 1, 5},
		{9, 1, 5, 2, 8}, {10, 1, 5.5, 2, 9}, {101, 1, 51, 41, 61},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct figure f = figure_of(wanted[i].n);

		ck_assert_int_eq(f.runs, wanted[i].n);
		ck_assert_int_eq(f.interval.known, wanted[i].known);
		ck_assert_double_eq(f.median, wanted[i].median);
		ck_assert_double_eq(f.interval.low, wanted[i].low);
		ck_assert_double_eq(f.interval.high, wanted[i].high);
		ck_assert_double_eq(f.least, 1);
		ck_assert_double_eq(f.most, wanted[i].n);
	}
}
END_TEST

START_TEST(samples_keep_their_order)
{
	double rates[] = {3, 1, 2};
	const struct figure f = table_figure(rates, 3);

	ck_assert_double_eq(f.samples[0], 3);
	ck_assert_double_eq(f.samples[1], 1);
	ck_assert_double_eq(f.samples[2], 2);
	ck_assert_double_eq(rates[0], 1);
}
END_TEST

/* The middle of two large samples does not overflow. */
START_TEST(median_of_large_samples)
{
	double rates[] = {1.5e308, 1.7e308};

	ck_assert_double_eq(table_figure(rates, 2).median, 1.6e308);
}
END_TEST

START_TEST(noisy_and_close)
{
	const struct stats_interval narrow = {100, 99, 101, 1}, low = {100, 98.9, 100, 1},
				    high = {100, 100, 101.1, 1}, wide = {100, 97.4, 102.5, 1},
				    edge = {100, 97.5, 102.5, 1}, few = {100, 1, 1000, 0};

	ck_assert(stats_is_close(&narrow) && !stats_is_noisy(&narrow));
	ck_assert(!stats_is_close(&low) && !stats_is_close(&high));
	ck_assert(stats_is_noisy(&wide) && !stats_is_noisy(&edge) && !stats_is_close(&wide));
	ck_assert(!stats_is_close(&few) && !stats_is_noisy(&few));
}
END_TEST

static const struct stats_plan usual = {BENCH_RUNS, STATS_SAMPLES, 1, 10};

/* Adds samples of a clock that advances by `step`, until none is needed. */
static void take(struct stats *s, struct stats_plan plan, double (*sample)(int i), double step)
{
	double now = 1000;

	stats_begin(s, plan);
	for (int i = 0; stats_add(s, sample(i), now); i++) {
		now += step;
		ck_assert_int_lt(i, 1000);
	}
}

static double equal_sample(int i)
{
	return i ? 7 : 1e9; /* the warm-up differs */
}

static double wild_sample(int i)
{
	return 1 + i % 2;
}

/* The first samples vary, and all later samples are equal. */
static double settling_sample(int i)
{
	return i < 8 ? 1 + i : 4.5;
}

START_TEST(equal_samples_converge)
{
	struct stats s;
	struct figure f;

	take(&s, usual, equal_sample, 0.001);
	ck_assert_int_eq(s.n, BENCH_RUNS);
	ck_assert_int_eq(s.reason, STATS_CONVERGED);
	f = table_stats(&s);
	ck_assert_double_eq(f.median, 7);
	ck_assert_double_eq(f.interval.low, 7);
	ck_assert_double_eq(f.interval.high, 7);
	ck_assert_int_eq(f.reason, STATS_CONVERGED);
	ck_assert(!stats_is_noisy(&f.interval));
}
END_TEST

START_TEST(zeros_converge)
{
	const struct stats_interval zero = {0, 0, 0, 1};

	ck_assert(stats_is_close(&zero) && !stats_is_noisy(&zero));
}
END_TEST

START_TEST(settling_samples_converge_later)
{
	struct stats s;

	take(&s, usual, settling_sample, 0.001);
	ck_assert_int_eq(s.reason, STATS_CONVERGED);
	ck_assert_int_gt(s.n, BENCH_RUNS);
	ck_assert_int_lt(s.n, STATS_SAMPLES);
}
END_TEST

START_TEST(wild_samples_reach_the_number)
{
	struct stats s;

	take(&s, usual, wild_sample, 0.001);
	ck_assert_int_eq(s.n, STATS_SAMPLES);
	ck_assert_int_eq(s.reason, STATS_ALL_SAMPLES);
}
END_TEST

START_TEST(wild_samples_reach_the_time)
{
	const struct stats_plan short_plan = {STATS_LEAST, STATS_SAMPLES, 1, 0};
	struct stats s;

	take(&s, usual, wild_sample, 0.5);
	ck_assert_int_eq(s.n, 20);
	ck_assert_int_eq(s.reason, STATS_TIME_LIMIT);
	/* a time limit leaves the least number of samples */
	take(&s, usual, wild_sample, 5);
	ck_assert_int_eq(s.n, BENCH_RUNS);
	ck_assert_int_eq(s.reason, STATS_TIME_LIMIT);
	take(&s, short_plan, wild_sample, 5);
	ck_assert_int_eq(s.n, STATS_LEAST);
}
END_TEST

START_TEST(quick_plan_takes_all_samples)
{
	const struct stats_plan quick = {BENCH_RUNS, BENCH_RUNS, 0, 10};
	struct stats s;

	take(&s, quick, equal_sample, 0.001);
	ck_assert_int_eq(s.n, BENCH_RUNS);
	ck_assert_int_eq(s.reason, STATS_ALL_SAMPLES);
}
END_TEST

/* The time of a row, if ten seconds remain. */
static double row_seconds(int planned, int done)
{
	struct bench_state *s = bench_env();

	s->start = stats_now();
	s->seconds = 10;
	s->planned = planned;
	s->done = done;
	return bench_stats_plan().seconds;
}

START_TEST(rows_share_the_time_that_remains)
{
	ck_assert_double_eq_tol(row_seconds(20, 0), 0.5, 0.1);
	ck_assert_double_eq_tol(row_seconds(20, 15), 2, 0.1);
	ck_assert_double_eq_tol(row_seconds(20, 19), 10, 0.1);
	ck_assert_double_eq_tol(row_seconds(20, 25), 10, 0.1);
	/* without a plan, at least 16 rows remain */
	ck_assert_double_eq_tol(row_seconds(0, 0), 10. / 64, 0.01);
	ck_assert_double_eq_tol(row_seconds(0, 40), 10. / 24, 0.01);
	ck_assert_double_eq_tol(row_seconds(0, 63), 10. / 16, 0.01);
	ck_assert_double_eq_tol(row_seconds(0, 1000), 10. / 16, 0.01);
	bench_env()->start -= 20;
	ck_assert(bench_stats_plan().seconds == 0);
	ck_assert_int_eq(bench_stats_plan().least, STATS_LEAST);
	bench_env()->summarized = 1;
	ck_assert_int_eq(bench_stats_plan().least, STATS_LEAST_KNOWN);
	bench_env()->summarized = 0;
	ck_assert(stats_rank(STATS_LEAST_KNOWN) && !stats_rank(STATS_LEAST_KNOWN - 1));
}
END_TEST

static void read_clocks(struct bench_machine_state *state)
{
	state->sm_mhz = 1980;
	state->knows_throttle = 1;
	strcpy(state->throttle, "thermal");
}

/* A program with a clock writes the state before each row that was measured. */
START_TEST(rows_have_the_state_of_the_clock)
{
	struct bench_state *s = bench_env();
	struct table table = {.n = 0};
	struct figure none = {.runs = 0};
	char text[512];
	FILE *f = tmpfile();

	s->records = fileno(f);
	s->clock = read_clocks;
	table_begin(&table, "c");
	table_add(&table, TABLE_OURS, "way", figure_of(1));
	table_add(&table, TABLE_OURS, "none", none);
	s->clock = NULL;
	table_add(&table, TABLE_OURS, "later", figure_of(1));
	s->records = -1;
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	ck_assert_str_eq(text, "%case\tc\n"
			       "%state\t1980\t0\tthermal\n"
			       "%row\tc\tway\tours\t\t\tsamples\t1\n"
			       "%row\tc\tnone\tours\t\t\tconverged\n"
			       "%row\tc\tlater\tours\t\t\tsamples\t1\n");
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("bench_stats");
	TCase *tc = tcase_create("bench_stats");

	tcase_add_test(tc, ranks_are_those_of_binomial_sums);
	tcase_add_test(tc, ranks_are_those_of_tables);
	tcase_add_test(tc, figures_of_known_samples);
	tcase_add_test(tc, samples_keep_their_order);
	tcase_add_test(tc, median_of_large_samples);
	tcase_add_test(tc, noisy_and_close);
	tcase_add_test(tc, equal_samples_converge);
	tcase_add_test(tc, zeros_converge);
	tcase_add_test(tc, settling_samples_converge_later);
	tcase_add_test(tc, wild_samples_reach_the_number);
	tcase_add_test(tc, wild_samples_reach_the_time);
	tcase_add_test(tc, quick_plan_takes_all_samples);
	tcase_add_test(tc, rows_share_the_time_that_remains);
	tcase_add_test(tc, rows_have_the_state_of_the_clock);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
