/* SPDX-License-Identifier: MIT */
/* The report of `cuatomic bench` without a name: the machine, and a table of all benchmarks. */
#include <string.h>
#include <unistd.h>

#include "bench.h"

void summary_set_rows(const char *pattern)
{
	struct bench_state *s = bench_env();

	if (s->summarized)
		regfree(&s->summary);
	setenv(BENCH_ENV_SUMMARY, pattern, 1);
	s->summarized = !regcomp(&s->summary, pattern, REG_EXTENDED | REG_NOSUB);
	if (!s->summarized)
		tool_die("bench: '%s' is not a regular expression", pattern);
}

static void print_machine(const struct results *r)
{
	const struct result_origin *o = &r->origin;
	char memory[TOOL_BYTES_TEXT];

	printf("machine   %s, %.0f CPUs, %s, %s\n", o->cpu ? o->cpu : "unknown", o->cores,
	       tool_bytes_text(memory, (uint64_t)o->memory), o->os);
	if (r->device)
		printf("GPU       %s, driver %s\n", r->device, r->driver ? r->driver : "unknown");
	else
		printf("GPU       %s%s\n", o->no_gpu ? "none: " : "not used",
		       o->no_gpu ? o->no_gpu : "");
	printf("versions  %s%s\n", r->device ? "" : "cuatomic ",
	       o->versions ? o->versions : o->version);
	printf("date      %s\n\n", o->date);
	printf("%-9s %-27s %-40s %9s %-5s %8s %10s  %s\n", "bench", "case", "way", "median", "unit",
	       "interval", "of ceiling", "state");
}

/* Adds an item to a list. */
static void add_state(char text[128], const char *item)
{
	const size_t n = strlen(text);

	snprintf(text + n, 128 - n, "%s%s", n && *item ? ", " : "", item);
}

/* Describes the state of the machine and the quality of the samples. */
static void state_text(char text[128], const struct figure *f)
{
	char clock[32] = "";

	*text = '\0';
	if (f->state.sm_mhz > 0)
		snprintf(clock, sizeof(clock), "%.0f MHz", f->state.sm_mhz);
	add_state(text, clock);
	add_state(text, f->state.throttle);
	if (!f->runs)
		add_state(text, "not available");
	else if (!f->interval.known)
		add_state(text, "few runs");
	else if (stats_is_noisy(&f->interval))
		add_state(text, "noisy");
}

void summary_show(struct results *r, size_t i)
{
	const struct result_row *row = &r->rows[i];
	const struct figure *f = &row->figure;
	const double share = results_ratio(r, i, TABLE_CEILING);
	char median[24] = "-", interval[24] = "-", ceiling[24] = "-", state[128];

	if (!i)
		print_machine(r);
	if (f->runs)
		table_number(median, f->median);
	if (f->runs && f->interval.known && f->median > 0)
		snprintf(interval, sizeof(interval), "%.1f %%",
			 100 * (f->interval.high - f->interval.low) / f->median);
	if (share >= 0)
		snprintf(ceiling, sizeof(ceiling), "%.3f", share);
	state_text(state, f);
	printf("%-9s %-27s %-40.40s %9s %-5s %8s %10s%s%s\n", row->bench, row->name, row->way,
	       median, row->unit, interval, ceiling, *state ? "  " : "", state);
	fflush(stdout);
}
