/* SPDX-License-Identifier: MIT */
/*
 * The panels of a plot. The name of the benchmark decides how its rows are drawn; the numbers of
 * a row are parts of its case and its way. A row without these numbers is a bar.
 */
#include <math.h>
#include <string.h>

#include "bench_plot.h"

/* ---- numbers in names ---- */

static const char *const bytes_units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
static const char *const count_units[] = {"", "Ki", "Mi", "Gi", "Ti", NULL};

/* Parses a decimal number above 0. Returns the text after it, or NULL. */
static const char *parse_decimal(const char *text, double *v)
{
	char *end;

	if (*text < '0' || *text > '9' || text[strspn(text, "0")] == 'x')
		return NULL;
	*v = strtod(text, &end);
	return *v > 0 && *v < 1e18 ? end : NULL;
}

/* Parses "16 KiB" or "1 byte". */
static int parse_size(const char *text, double *v)
{
	const char *unit = parse_decimal(text, v);

	if (!unit || *unit++ != ' ')
		return 0;
	if (!strcmp(unit, "byte") || !strcmp(unit, "bytes"))
		return 1;
	for (int k = 0; bytes_units[k]; k++) {
		if (!strcmp(unit, bytes_units[k])) {
			*v *= pow(1024, k);
			return 1;
		}
	}
	return 0;
}

/* Parses "1 address", "32 addresses" or "1 Ki addresses". */
static int parse_addresses(const char *text, double *v)
{
	const char *rest = parse_decimal(text, v);

	if (!rest || *rest++ != ' ')
		return 0;
	for (int k = 1; count_units[k]; k++) {
		const size_t length = strlen(count_units[k]);

		if (!strncmp(rest, count_units[k], length) && rest[length] == ' ') {
			*v *= pow(1024, k);
			rest += length + 1;
			break;
		}
	}
	return !strcmp(rest, "address") || !strcmp(rest, "addresses");
}

/* Returns the text after the last comma and its space, or NULL. */
static const char *last_part(const char *text)
{
	const char *comma = strrchr(text, ',');

	return comma && comma[1] == ' ' ? comma + 2 : NULL;
}

/* Parses "one thread", "all threads, 16" or "all threads, 132 x 256". */
static int parse_contenders(const char *text, double *v)
{
	const char *part = last_part(text);
	double factor;

	*v = 1;
	if (!strcmp(text, "one thread"))
		return 1;
	part = part ? parse_decimal(part, v) : NULL;
	if (!part || strncmp(part, " x ", 3) != 0)
		return part && !*part;
	part = parse_decimal(part + 3, &factor);
	if (part)
		*v *= factor;
	return part && !*part;
}

/* ---- rows of a kind ---- */

static void name_part(char name[PLOT_NAME], const char *text, size_t length)
{
	snprintf(name, PLOT_NAME, "%.*s", (int)(length < PLOT_NAME ? length : PLOT_NAME - 1), text);
}

/* Case "aligned, 4 bytes", way "block 256, unroll 4". */
static int place_cell(struct plot_item *item)
{
	const char *name = item->row->name, *operand = last_part(name);
	const char *unroll = last_part(item->row->way);
	const char *end;

	if (!operand || !parse_size(operand, &item->y) || !unroll || strncmp(unroll, "unroll ", 7))
		return 0;
	end = parse_decimal(unroll + 7, &item->x);
	name_part(item->panel, name, (size_t)(operand - 2 - name));
	return end && !*end;
}

/* Way "16 KiB". */
static int place_footprint(struct plot_item *item)
{
	name_part(item->series, item->row->name, PLOT_NAME);
	return parse_size(item->row->way, &item->x);
}

/* Case "add u32, global, gpu", way "32 addresses": a panel for each memory and scope. */
static int place_addresses(struct plot_item *item)
{
	const char *name = item->row->name, *memory = strstr(name, ", ");

	name_part(item->series, name, memory ? (size_t)(memory - name) : PLOT_NAME);
	name_part(item->panel, memory ? memory + 2 : "", PLOT_NAME);
	return parse_addresses(item->row->way, &item->x);
}

/* Case "all threads, 16". */
static int place_contenders(struct plot_item *item)
{
	name_part(item->series, item->row->way, PLOT_NAME);
	return parse_contenders(item->row->name, &item->x);
}

/* Case "4+4, 0.8, find hits": the load is the part below 1. */
static int place_load(struct plot_item *item)
{
	const char *name = item->row->name;

	for (const char *part = name; (part = strstr(part, ", 0."));) {
		const char *end = parse_decimal(part + 2, &item->x);

		part += 2;
		if (!end || strncmp(end, ", ", 2) != 0)
			continue;
		name_part(item->panel, end + 2, PLOT_NAME);
		snprintf(item->series, PLOT_NAME, "%.*s: %.*s", (int)(part - 2 - name) % PLOT_NAME,
			 name, PLOT_NAME - 4, item->row->way);
		return 1;
	}
	return 0;
}

static const struct {
	struct plot_kind kind;
	int (*place)(struct plot_item *item);
} kinds[] = {
	{{"read", PLOT_CELLS, "unroll", "operand, bytes", 0, 0, NULL}, place_cell},
	{{"write", PLOT_CELLS, "unroll", "operand, bytes", 0, 0, NULL}, place_cell},
	{{"copy", PLOT_CELLS, "unroll", "operand, bytes", 0, 0, NULL}, place_cell},
	{{"random", PLOT_LINES, "footprint", NULL, 1, 1, bytes_units}, place_footprint},
	{{"latency", PLOT_LINES, "footprint", NULL, 1, 1, bytes_units}, place_footprint},
	{{"atomics", PLOT_LINES, "addresses", NULL, 1, 1, count_units}, place_addresses},
	{{"locks", PLOT_LINES, "threads that contend", NULL, 1, 1, NULL}, place_contenders},
	{{"hashmap", PLOT_LINES, "load factor", NULL, 0, 0, NULL}, place_load},
};

int plot_has_value(const struct plot_item *item)
{
	const struct figure *g = &item->row->figure;

	if (!g->runs)
		return 0;
	return g->median > 0 || !item->kind || !item->kind->log_y;
}

static void make_bar(struct plot_item *item)
{
	item->kind = NULL;
	item->shape = PLOT_BARS;
	item->panel[0] = item->series[0] = '\0';
	item->base = NULL;
}

static void place(struct plot_item *item, const struct result_row *row)
{
	memset(item, 0, sizeof(*item));
	item->row = row;
	make_bar(item);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].kind.bench, row->bench) != 0)
			continue;
		item->kind = &kinds[i].kind;
		item->shape = kinds[i].kind.shape;
		if (!kinds[i].place(item))
			make_bar(item);
	}
}

/* The name of a ceiling of a case. */
static void name_ceiling(struct plot_item *item, const char *name)
{
	static const char prefix[] = "ceiling: ";
	const char *way = item->row->way;

	way += strncmp(way, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1;
	snprintf(item->series, PLOT_NAME, "%.*s: %.*s", PLOT_NAME / 2 - 2, name, PLOT_NAME / 2 - 2,
		 way);
}

/* A ceiling without a number belongs to the lines or cells of its case, at every x. */
static void place_ceiling(struct plot_item *items, size_t n, struct plot_item *item)
{

	if (item->row->kind != TABLE_CEILING || item->shape != PLOT_BARS)
		return;
	for (size_t i = 0; i < n; i++) {
		struct plot_item *other = &items[i];

		if (other->shape == PLOT_BARS || other->base ||
		    strcmp(other->row->bench, item->row->bench) != 0 ||
		    strcmp(other->row->name, item->row->name) != 0 ||
		    strcmp(other->row->unit, item->row->unit) != 0)
			continue;
		*item = (struct plot_item){.row = item->row,
					   .kind = other->kind,
					   .shape = other->shape,
					   .base = other,
					   .x = NAN,
					   .y = NAN};
		memcpy(item->panel, other->panel, sizeof(item->panel));
		name_ceiling(item, item->shape == PLOT_LINES ? other->series : "ceiling");
		return;
	}
}

/* ---- panels ---- */

static int share_panel(const struct plot_item *a, const struct plot_item *b)
{
	return a->shape == b->shape && !strcmp(a->row->bench, b->row->bench) &&
	       !strcmp(a->row->unit, b->row->unit) && !strcmp(a->panel, b->panel);
}

/* Whether two ceilings of lines are the same measurement. */
static int is_same_ceiling(const struct plot_item *a, const struct plot_item *b)
{
	return b->base && b->shape == PLOT_LINES && share_panel(a, b) &&
	       !strcmp(a->row->way, b->row->way) && a->row->figure.median == b->row->figure.median;
}

/* A ceiling that several series have is a single line. */
static void merge_ceilings(struct plot_item *items, size_t n, struct plot_item *first)
{
	int merged = 0;

	for (struct plot_item *item = first + 1; item < items + n; item++) {
		if (!is_same_ceiling(first, item))
			continue;
		item->base = NULL;
		name_ceiling(item, "ceiling");
		merged = 1;
	}
	if (merged) {
		first->base = NULL;
		name_ceiling(first, "ceiling");
	}
}

/* Lines need two x, and cells too; otherwise the rows are bars. */
static void make_short_lines_bars(struct plot_item *items, size_t n, struct plot_item *first)
{
	double x = NAN;

	for (struct plot_item *item = items; item < items + n; item++) {
		const int counts = first->shape == PLOT_CELLS || plot_has_value(item);

		if (!share_panel(first, item) || !counts || isnan(item->x))
			continue;
		if (!isnan(x) && item->x != x)
			return;
		x = item->x;
	}
	for (struct plot_item *item = items; item < items + n; item++) {
		if (item != first && share_panel(first, item))
			make_bar(item);
	}
	make_bar(first);
}

static struct plot_panel *new_panel(struct plot_panels *p)
{
	if (p->n == p->room) {
		const size_t room = p->room ? 2 * p->room : 16;
		struct plot_panel *panels = tool_alloc(room * sizeof(*panels));

		if (p->n)
			memcpy(panels, p->panels, p->n * sizeof(*panels));
		free(p->panels);
		p->panels = panels;
		p->room = room;
	}
	memset(&p->panels[p->n], 0, sizeof(*p->panels));
	return &p->panels[p->n++];
}

/* Numbers all series, and the colours of the series except ceilings. */
static void number_series(struct plot_panel *panel)
{
	size_t colours = 0;

	for (size_t i = 0; i < panel->n; i++) {
		size_t k = 0;

		while (strcmp(panel->items[k]->series, panel->items[i]->series) != 0)
			k++;
		panel->items[i]->line = k < i ? panel->items[k]->line : panel->series++;
		if (k < i)
			panel->items[i]->colour = panel->items[k]->colour;
		else if (panel->items[i]->row->kind != TABLE_CEILING)
			panel->items[i]->colour = colours++;
	}
}

/* Adds the panel of the item. Many lines are divided into several panels. */
static void add_panel(struct plot_panels *p, size_t n, struct plot_item *first)
{
	struct plot_panel panel = {.left = 0};

	for (struct plot_item *item = first; item < p->items + n; item++)
		panel.n += !item->taken && share_panel(first, item);
	panel.items = tool_alloc(panel.n * sizeof(struct plot_item *));
	panel.n = 0;
	for (struct plot_item *item = first; item < p->items + n; item++) {
		if (!item->taken && share_panel(first, item)) {
			item->taken = 1;
			panel.items[panel.n++] = item;
		}
	}
	number_series(&panel);
	do {
		struct plot_panel *part = new_panel(p);
		const size_t rest = panel.series - panel.first_series;

		*part = panel;
		part->n_series = rest < PLOT_LINES_MOST ? rest : PLOT_LINES_MOST;
		panel.first_series += PLOT_LINES_MOST;
	} while (panel.first_series < panel.series);
}

/* Adds the panels of a benchmark, with the bars last. */
static void add_bench(struct plot_panels *p, size_t n, const char *bench)
{
	const size_t before = p->n;

	for (int shape = PLOT_CELLS; shape <= PLOT_BARS; shape++) {
		for (size_t i = 0; i < n; i++) {
			struct plot_item *item = &p->items[i];

			if (!item->taken && (int)item->shape == shape &&
			    !strcmp(item->row->bench, bench))
				add_panel(p, n, item);
		}
	}
	p->panels[before].begins_bench = 1;
}

void plot_divide(const struct results *r, struct plot_panels *p)
{
	memset(p, 0, sizeof(*p));
	p->items = tool_alloc(r->n * sizeof(*p->items));
	for (size_t i = 0; i < r->n; i++)
		place(&p->items[i], &r->rows[i]);
	for (size_t i = 0; i < r->n; i++)
		place_ceiling(p->items, r->n, &p->items[i]);
	for (size_t i = 0; i < r->n; i++) {
		if (p->items[i].shape != PLOT_BARS)
			make_short_lines_bars(p->items, r->n, &p->items[i]);
	}
	for (size_t i = 0; i < r->n; i++) {
		if (p->items[i].base && p->items[i].shape == PLOT_LINES)
			merge_ceilings(p->items, r->n, &p->items[i]);
	}
	for (size_t i = 0; i < r->n; i++) {
		if (!p->items[i].taken)
			add_bench(p, r->n, r->rows[i].bench);
	}
}

void plot_free(struct plot_panels *p)
{
	for (size_t i = 0; i < p->n; i++) {
		/* the parts of divided lines share the items */
		if (!p->panels[i].first_series)
			free(p->panels[i].items);
	}
	free(p->panels);
	free(p->items);
}
