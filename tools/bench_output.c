/* SPDX-License-Identifier: MIT */
/* The rows of benchmarks as JSON (see doc/bench-schema.json) and as CSV (RFC 4180). */
#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "json.h"

/* ---- values that both formats have ---- */

/* Formats a number that keeps all its bits. No number is infinite or a NaN. */
static const char *number(char text[32], double v)
{
	/* the command never calls setlocale, so the decimal separator is a point */
	snprintf(text, 32, "%.17g", v);
	return text;
}

static double ceiling_share(const struct results *r, size_t i)
{
	return results_ratio(r, i, TABLE_CEILING);
}

static double peer_ratio(const struct results *r, size_t i)
{
	return r->rows[i].kind == TABLE_CEILING ? -1 : results_ratio(r, i, TABLE_PEER);
}

/* A clock, or -1 if it is unknown. */
static double known_clock(double mhz)
{
	return mhz > 0 ? mhz : -1;
}

/* ---- JSON ---- */

static void json_row(FILE *f, const struct results *r, size_t i)
{
	const struct result_row *row = &r->rows[i];
	const struct figure *g = &row->figure;
	const struct {
		const char *name, *text;
	} texts[] = {{"bench", row->bench}, {"case", row->name},
		     {"way", row->way},     {"kind", table_kind_name(row->kind)},
		     {"unit", row->unit},   {"note", row->note}};
	char digits[32];

	fputs("    {", f);
	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
		json_member(f, texts[k].name, texts[k].text);
		fputs(", ", f);
	}
	json_number(f, "median", g->runs ? g->median : -1);
	fputs(", ", f);
	json_number(f, "low", g->runs ? g->interval.low : -1);
	fputs(", ", f);
	json_number(f, "high", g->runs ? g->interval.high : -1);
	fputs(", ", f);
	json_number(f, "ceiling_share", ceiling_share(r, i));
	fputs(", ", f);
	json_number(f, "peer_ratio", peer_ratio(r, i));
	fputs(",\n     ", f);
	json_member(f, "reason", g->runs ? table_reason_name(g->reason) : NULL);
	fprintf(f, ", \"noisy\": %s, ", g->runs && stats_is_noisy(&g->interval) ? "true" : "false");
	json_number(f, "sm_mhz", known_clock(g->state.sm_mhz));
	fputs(", ", f);
	json_number(f, "memory_mhz", known_clock(g->state.memory_mhz));
	fputs(", ", f);
	json_member(f, "throttle", g->state.knows_throttle ? g->state.throttle : NULL);
	fputs(", \"samples\": [", f);
	for (int k = 0; k < g->runs; k++)
		fprintf(f, "%s%s", k ? ", " : "", number(digits, g->samples[k]));
	fputs("]}", f);
}

/* From /etc/os-release and uname. */
static void system_text(char *text, size_t room)
{
	FILE *f = fopen("/etc/os-release", "re");
	struct utsname u;
	char line[256], name[200] = "";

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "PRETTY_NAME=\"%199[^\"\n]", name) == 1)
			break;
	}
	if (f)
		fclose(f);
	if (uname(&u))
		snprintf(text, room, "%s", name);
	else
		snprintf(text, room, "%s%s%s %s %s", name, *name ? ", " : "", u.sysname, u.release,
			 u.machine);
}

void results_set_date(struct results *r)
{
	const time_t now = time(NULL);
	struct tm utc;
	char text[32] = "";

	if (gmtime_r(&now, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	free(r->origin.date);
	r->origin.date = results_copy(text);
}

void results_describe(struct results *r, const char *no_gpu)
{
	struct result_origin *o = &r->origin;
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	const double pages = (double)sysconf(_SC_PHYS_PAGES);
	char system[512];

	system_text(system, sizeof(system));
	o->no_gpu = no_gpu;
	o->version = results_copy(cua_version());
	results_set_date(r);
	if (!cua_device_query(CUA_BACKEND_CPU, 0, &info))
		o->cpu = results_copy(info.name);
	o->os = results_copy(system);
	o->cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
	o->memory = pages * (double)sysconf(_SC_PAGESIZE);
}

static void json_machine(FILE *f, const struct results *r)
{
	const struct result_origin *o = &r->origin;

	fputs("  \"machine\": {", f);
	json_member(f, "cpu", o->cpu);
	fputs(", ", f);
	json_number(f, "cores", o->cores);
	fputs(", ", f);
	json_number(f, "memory", o->memory);
	fputs(",\n    ", f);
	json_member(f, "os", o->os);
	fputs(", ", f);
	json_member(f, "gpu", r->device);
	fputs(", ", f);
	json_member(f, "driver", r->driver);
	fputs("},\n", f);
}

void bench_write_json(FILE *f, const struct results *r)
{
	fputs("{\n  \"schema\": 1, ", f);
	json_member(f, "version", r->origin.version);
	fputs(", ", f);
	json_member(f, "date", r->origin.date);
	fprintf(f, ", \"complete\": %s, ", r->failed ? "false" : "true");
	json_member(f, "options", r->origin.options ? r->origin.options : "");
	fputs(",\n", f);
	json_machine(f, r);
	fputs("  \"rows\": [", f);
	for (size_t i = 0; i < r->n; i++) {
		fputs(i ? ",\n" : "\n", f);
		json_row(f, r, i);
	}
	fputs("\n  ]\n}\n", f);
}

/* ---- CSV ---- */

static void csv_text(FILE *f, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, f);
	} else {
		putc('"', f);
		for (; *text; text++)
			fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, f);
		putc('"', f);
	}
	putc(',', f);
}

/* Writes a number, or an empty field if v is negative. */
static void csv_number(FILE *f, double v)
{
	char digits[32];

	fprintf(f, "%s,", v >= 0 && isfinite(v) ? number(digits, v) : "");
}

void bench_write_csv(FILE *f, const struct results *r)
{
	char digits[32];

	fputs("bench,case,way,kind,unit,note,median,low,high,ceiling_share,peer_ratio,reason,noisy,"
	      "sm_mhz,memory_mhz,throttle,samples\r\n",
	      f);
	for (size_t i = 0; i < r->n; i++) {
		const struct result_row *row = &r->rows[i];
		const struct figure *g = &row->figure;

		csv_text(f, row->bench);
		csv_text(f, row->name);
		csv_text(f, row->way);
		csv_text(f, table_kind_name(row->kind));
		csv_text(f, row->unit);
		csv_text(f, row->note);
		csv_number(f, g->runs ? g->median : -1);
		csv_number(f, g->runs ? g->interval.low : -1);
		csv_number(f, g->runs ? g->interval.high : -1);
		csv_number(f, ceiling_share(r, i));
		csv_number(f, peer_ratio(r, i));
		csv_text(f, g->runs ? table_reason_name(g->reason) : "");
		csv_text(f, g->runs && stats_is_noisy(&g->interval) ? "true" : "false");
		csv_number(f, known_clock(g->state.sm_mhz));
		csv_number(f, known_clock(g->state.memory_mhz));
		csv_text(f, g->state.throttle);
		/* the samples are a single field */
		for (int k = 0; k < g->runs; k++)
			fprintf(f, "%s%s", k ? " " : "", number(digits, g->samples[k]));
		fputs("\r\n", f);
	}
}
