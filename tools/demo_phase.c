/* SPDX-License-Identifier: MIT */
/* The functions that both phases of the demonstration use: arrays, comparisons, rows. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

_Static_assert(LDBL_MANT_DIG >= 64, "demo_expect compares numbers of 64 bits");

static const char *const device_names[DEMO_DEVICES] = {"CPU", "GPU"};

/* ---- arrays ---- */

void demo_open(struct demo_phase *p, const char *what, const size_t bytes[DEMO_ARRAYS])
{
	p->setup.part = what;
	p->row = &p->setup;
	for (int k = 0; k < DEMO_ARRAYS; k++)
		p->host[k] = tool_alloc(bytes[k]);
	for (int i = 0; i < DEMO_DEVICES; i++)
		for (int k = 0; demo_select(p, i) && k < DEMO_ARRAYS; k++)
			demo_need(p, cua_alloc(p->ctx, 1, bytes[k], &p->on[k]));
}

void demo_close(struct demo_phase *p)
{
	for (int i = 0; i < DEMO_DEVICES; i++)
		for (int k = 0; demo_select(p, i) && k < DEMO_ARRAYS; k++)
			cua_free(p->ctx, p->on[k]);
	for (int k = 0; k < DEMO_ARRAYS; k++)
		free(p->host[k]);
}

int demo_select(struct demo_phase *p, int device)
{
	p->device = device;
	p->ctx = p->d->ctx[device];
	p->on = p->arrays[device];
	return p->ctx != NULL;
}

void demo_upload(struct demo_phase *p, int array, size_t bytes)
{
	if (bytes)
		demo_need(p, cua_copy(p->ctx, p->on[array], p->host[array], bytes));
}

void *demo_download(struct demo_phase *p, int array, size_t bytes)
{
	if (bytes)
		demo_need(p, cua_copy(p->ctx, p->host[array], p->on[array], bytes));
	return p->host[array];
}

/* ---- results ---- */

void demo_need(const struct demo_phase *p, enum cua_status status)
{
	const char *part = p->row->part, *device = device_names[p->device];

	if (status == CUA_ERROR_CUDA)
		tool_die("%s, %s: %s (CUDA error %d)", part, device, cua_strerror(status),
			 cua_context_cuda_error(p->ctx));
	if (status)
		tool_die("%s, %s: %s", part, device, cua_strerror(status));
}

#ifdef CUATOMIC_DEMO_PLANT
/*
 * In the test build, 1 if the environment variable DEMO_PLANT names this check, so that it must
 * fail. Otherwise 0.
 */
static uint64_t plant(const char *what)
{
	const char *name = getenv("DEMO_PLANT");

	return name && !strcmp(name, what);
}
#else
#define plant(what) 0
#endif

int demo_expect(struct demo_phase *p, const char *what, long double got, uint64_t expected)
{
	expected += plant(what);
	if (got == (long double)expected)
		return 1;
	if (!p->row->wrong)
		tool_error("%s, %s: %s is %.20Lg, the reference has %llu", p->row->part,
			   device_names[p->device], what, got, (unsigned long long)expected);
	p->row->wrong = 1;
	return 0;
}

void demo_add(struct demo_phase *p, double result)
{
	if (p->device == p->d->first)
		p->row->total += result;
}

static void time_text(char text[16], double seconds)
{
	if (seconds < 1e-3)
		snprintf(text, 16, "%.1f us", seconds * 1e6);
	else if (seconds < 1)
		snprintf(text, 16, "%.2f ms", seconds * 1e3);
	else
		snprintf(text, 16, "%.2f s", seconds);
}

void demo_print_columns(const char *part, const char *result, const char *cpu, const char *gpu,
			const char *verified)
{
	printf("%-20s %-*s %9s %9s  %s\n", part, DEMO_RESULT_WIDTH, result, cpu, gpu, verified);
	fflush(stdout);
}

void demo_print_row(struct demo *d, const struct demo_row *row)
{
	char times[DEMO_DEVICES][16] = {"-", "-"}, total[64];

	for (int i = 0; i < DEMO_DEVICES; i++)
		if (d->ctx[i])
			time_text(times[i], row->seconds[i]);
	snprintf(total, sizeof(total), "%.0f%s", row->total, row->unit);
	demo_print_columns(row->part, *row->text ? row->text : total, times[DEMO_CPU],
			   times[DEMO_GPU], row->wrong ? "NO" : "yes");
	d->n_rows++;
	d->n_wrong += row->wrong;
}
