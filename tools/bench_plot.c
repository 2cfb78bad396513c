/* SPDX-License-Identifier: MIT */
/*
 * The script of a plot, for gnuplot 5.4. The panels have fixed positions in pixels; values are
 * transformed to linear axes here, so that gnuplot never sees a logarithm of zero. All texts that
 * are not of this file are written by gnuplot_text.
 */
#include <math.h>
#include <string.h>

#include "bench_plot.h"

#define WIDTH 900
/* Cairo draws at most 32767 pixels. */
#define MOST_HEIGHT 32000
#define BENCH_HEIGHT 44 /* the title of a benchmark */
#define TITLE_HEIGHT 26 /* the title of a panel */
#define AXIS_HEIGHT 60
#define LINE_HEIGHT 17 /* of a bar, and of a line of the key */
#define CELL_HEIGHT 34
#define LINES_HEIGHT 220
#define CHARACTER 7 /* width of a character of a tick */

/* Okabe and Ito, without their yellow, which is faint on white. */
static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
				      "#56B4E9", "#E69F00", "#000000"};
#define COLOURS (sizeof(colours) / sizeof(colours[0]))
#define CEILING_COLOUR "#767676"
static const int points[] = {7, 5, 9, 13, 11, 6, 4, 8, 12, 10};

struct drawing {
	FILE *script;
	const struct results *results;
	const struct plot_panel *panel;
	int height;           /* of the whole plot */
	double x_low, x_high; /* axes, transformed */
	double y_low, y_high;
	double shift; /* of the points of lines, from series to series */
};

/* ---- layout ---- */

static const struct plot_item *first_item(const struct plot_panel *panel)
{
	return panel->items[0];
}

/* Whether the item begins a group of bars, which has a line for its case. */
static int begins_group(const struct plot_panel *panel, size_t i)
{
	return !i || panel->items[i]->row->group != panel->items[i - 1]->row->group;
}

static int order_numbers(const void *a, const void *b)
{
	return stats_order(a, b);
}

/* Stores the distinct x, or y, of the items in order. Returns their number. */
static size_t distinct(const struct plot_panel *panel, int of_y, double *values)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < panel->n; i++) {
		const double v = of_y ? panel->items[i]->y : panel->items[i]->x;

		if (!isnan(v))
			values[n++] = v;
	}
	qsort(values, n, sizeof(*values), order_numbers);
	for (size_t i = 0; i < n; i++) {
		if (!i || values[i] != values[kept - 1])
			values[kept++] = values[i];
	}
	return kept;
}

static size_t count_distinct(const struct plot_panel *panel, int of_y)
{
	double *values = tool_alloc(panel->n * sizeof(*values));
	const size_t n = distinct(panel, of_y, values);

	free(values);
	return n;
}

static size_t inner_height(const struct plot_panel *panel)
{
	size_t lines = panel->n + 1;

	if (first_item(panel)->shape == PLOT_CELLS)
		return CELL_HEIGHT * count_distinct(panel, 1);
	if (first_item(panel)->shape == PLOT_LINES) {
		const size_t key = LINE_HEIGHT * panel->n_series;

		return key > LINES_HEIGHT ? key : LINES_HEIGHT;
	}
	for (size_t i = 0; i < panel->n; i++)
		lines += (size_t)begins_group(panel, i);
	return LINE_HEIGHT * lines;
}

/* Whether the panel is drawn to the right of the panel before it. */
static int is_beside(const struct plot_panel *before, const struct plot_panel *panel)
{
	return before && !panel->begins_bench && before->left == 0 &&
	       first_item(before)->shape == PLOT_CELLS && first_item(panel)->shape == PLOT_CELLS;
}

/* Sets the positions. Returns the height of the plot. */
static size_t lay_out(struct plot_panels *p)
{
	size_t top = 0, end = 0;

	for (size_t i = 0; i < p->n && end <= MOST_HEIGHT; i++) {
		struct plot_panel *panel = &p->panels[i];
		const size_t height = TITLE_HEIGHT + inner_height(panel) + AXIS_HEIGHT;
		const int beside = is_beside(i ? panel - 1 : NULL, panel);

		if (!beside)
			top = end;
		panel->left = beside ? WIDTH / 2 : 0;
		panel->top = (int)top + (panel->begins_bench ? BENCH_HEIGHT : 0);
		panel->top = beside ? panel[-1].top : panel->top;
		panel->height = (int)(height < MOST_HEIGHT ? height : MOST_HEIGHT);
		if ((size_t)panel->top + height > end)
			end = (size_t)panel->top + height;
	}
	return end;
}

/* ---- positions and numbers ---- */

static double screen_x(double pixels)
{
	return pixels / WIDTH;
}

static double screen_y(const struct drawing *d, double pixels)
{
	return 1 - pixels / d->height;
}

static double axis_x(const struct plot_kind *kind, double v)
{
	return kind && kind->log_x ? log2(v) : v;
}

static double axis_y(const struct plot_kind *kind, double v)
{
	return kind && kind->log_y ? log10(v) : v;
}

static const char *short_number(char text[24], double v)
{
	if (v >= 1e6 || (v > 0 && v < 1e-3))
		snprintf(text, 24, "%.3g", v);
	else
		table_number(text, v);
	return text;
}

/* Formats a number of an axis: "16 KiB" with units, otherwise "16384". */
static const char *tick_text(char text[32], double v, const char *const *units)
{
	int k = 0;

	while (units && units[k + 1] && v >= 1024) {
		v /= 1024;
		k++;
	}
	snprintf(text, 32, "%.6g%s%s", v, units && *units[k] ? " " : "", units ? units[k] : "");
	return text;
}

/* ---- a panel ---- */

/* Writes a label, unless it is empty, at pixels of the whole plot. */
static void screen_label(const struct drawing *d, double x, double y, const char *text, size_t most,
			 const char *style)
{
	if (!*text)
		return;
	fputs("set label ", d->script);
	gnuplot_text(d->script, text, most);
	fprintf(d->script, " at screen %.6f, screen %.6f %s\n", screen_x(x), screen_y(d, y), style);
}

/* Names the benchmark and the machine above the first panel of a benchmark. */
static void bench_title(const struct drawing *d)
{
	const struct results *r = d->results;
	const char *machine = r->device ? r->device : r->origin.cpu ? r->origin.cpu : "CPU";
	const double top = d->panel->top - BENCH_HEIGHT;
	char text[512];

	snprintf(text, sizeof(text), "%.60s: %.200s", first_item(d->panel)->row->bench, machine);
	screen_label(d, 14, top + 24, text, 70, "left font \"sans-serif,15\"");
	snprintf(text, sizeof(text), "cuatomic %.40s, %.40s",
		 r->origin.version ? r->origin.version : "", r->origin.date ? r->origin.date : "");
	screen_label(d, WIDTH - 14, top + 24, text, 60, "right tc rgb \"#505050\"");
}

/* Sets the margins of the axes in pixels, and the titles. */
static void panel_begin(const struct drawing *d, double left, double right, const char *title,
			const char *x_name, const char *y_name)
{
	const struct plot_panel *panel = d->panel;
	FILE *f = d->script;

	fputs("unset label\nunset arrow\nunset key\nset xtics autofreq scale 1\nset ytics autofreq scale 1\n",
	      f);
	if (panel->begins_bench)
		bench_title(d);
	fprintf(f, "set lmargin at screen %.6f\nset rmargin at screen %.6f\n",
		screen_x(panel->left + left), screen_x(panel->left + right));
	fprintf(f, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
		screen_y(d, panel->top + TITLE_HEIGHT),
		screen_y(d, panel->top + panel->height - AXIS_HEIGHT));
	screen_label(d, panel->left + left, panel->top + 14, title, panel->left ? 50 : 90,
		     "left font \"sans-serif,12\"");
	screen_label(d, panel->left + (left + right) / 2, panel->top + panel->height - 16, x_name,
		     60, "center");
	screen_label(d, panel->left + 16,
		     panel->top + (TITLE_HEIGHT + panel->height - AXIS_HEIGHT) / 2.0, y_name, 30,
		     "center rotate by 90");
	fprintf(f, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", d->x_low, d->x_high,
		d->y_low, d->y_high);
}

/* Widens the range of a value. */
static void widen(double *low, double *high, double v)
{
	if (!isfinite(v))
		return;
	*low = v < *low || isnan(*low) ? v : *low;
	*high = v > *high || isnan(*high) ? v : *high;
}

/* ---- bars ---- */

#define BARS_LEFT 330
#define BARS_RIGHT 880

static const char *const kind_colours[] = {CEILING_COLOUR, "#E69F00", "#0072B2"};
static const char *const kind_names[] = {"ceiling", "peer", "cuatomic"};

/* The line of each bar, counted from the top. */
static void bar_lines(const struct plot_panel *panel, double *lines)
{
	double line = 0;

	for (size_t i = 0; i < panel->n; i++) {
		line += begins_group(panel, i) ? 2 : 1;
		lines[i] = line;
	}
}

static void bar_labels(const struct drawing *d, const double *lines)
{
	FILE *f = d->script;

	for (size_t i = 0; i < d->panel->n; i++) {
		const struct result_row *row = d->panel->items[i]->row;

		if (begins_group(d->panel, i)) {
			fputs("set label ", f);
			gnuplot_text(f, row->name, 44);
			fprintf(f, " at screen %.6f, first %g left font \"sans-serif,11\"\n",
				screen_x(14), lines[i] - 1);
		}
		fputs("set label ", f);
		gnuplot_text(f, row->way, 46);
		fprintf(f, " at screen %.6f, first %g right font \"sans-serif,11\"\n",
			screen_x(BARS_LEFT - 6), lines[i]);
		if (!row->figure.runs)
			fprintf(f,
				"set label \"not available\" at graph 0.01, first %g left "
				"font \"sans-serif,11\" tc rgb \"#505050\"\n",
				lines[i]);
	}
}

/* Writes the bars of a kind, their intervals and their numbers. Returns the number of bars. */
static size_t bar_data(const struct drawing *d, const double *lines, int kind)
{
	FILE *f = d->script;
	size_t n = 0;
	char text[24];

	fprintf(f, "$bars%d << END\n", kind);
	for (size_t i = 0; i < d->panel->n; i++) {
		const struct result_row *row = d->panel->items[i]->row;
		const struct figure *g = &row->figure;

		if ((int)row->kind != kind || !g->runs)
			continue;
		fprintf(f, "%.9g %g %.9g %.9g \"%s\"\n", g->median, lines[i], g->interval.low,
			g->interval.high, short_number(text, g->median));
		n++;
	}
	fputs("END\n", f);
	return n;
}

/* Draws a dashed line through the bars of each case with a ceiling. */
static void bar_ceilings(const struct drawing *d, const double *lines)
{
	const struct plot_panel *panel = d->panel;

	for (size_t i = 0, end; i < panel->n; i = end) {
		double best = 0;

		for (end = i; end < panel->n && (end == i || !begins_group(panel, end)); end++) {
			const struct result_row *row = panel->items[end]->row;

			if (row->kind == TABLE_CEILING && row->figure.runs)
				best = table_better(row->unit, best, row->figure.median);
		}
		if (best > 0 && end - i > 1)
			fprintf(d->script,
				"set arrow from first %.9g, first %g to first %.9g, first %g "
				"nohead front dt 2 lw 1.5 lc rgb \"" CEILING_COLOUR "\"\n",
				best, lines[i] - 0.5, best, lines[end - 1] + 0.5);
	}
}

static void bar_plot(const struct drawing *d, const double *lines)
{
	FILE *f = d->script;
	size_t n[TABLE_OURS + 1];

	for (int kind = TABLE_CEILING; kind <= TABLE_OURS; kind++)
		n[kind] = bar_data(d, lines, kind);
	fputs("plot NaN notitle", f);
	for (int kind = TABLE_CEILING; kind <= TABLE_OURS; kind++) {
		if (n[kind])
			fprintf(f,
				", $bars%d using ($1/2):2:(0):1:($2-0.38):($2+0.38) with boxxyerror "
				"fs solid 0.75 noborder lc rgb \"%s\" title \"%s\"",
				kind, kind_colours[kind], kind_names[kind]);
	}
	for (int kind = TABLE_CEILING; kind <= TABLE_OURS; kind++) {
		if (n[kind])
			fprintf(f,
				", $bars%d using 1:2:3:4 with xerrorbars pt -1 lw 1.2 "
				"lc rgb \"black\" notitle, $bars%d using 4:2:5 with labels left "
				"offset 0.5,0 font \"sans-serif,11\" notitle",
				kind, kind);
	}
	fputs("\n", f);
}

static void draw_bars(struct drawing *d)
{
	const struct plot_panel *panel = d->panel;
	double *lines = tool_alloc(panel->n * sizeof(*lines)), most = 0;

	bar_lines(panel, lines);
	for (size_t i = 0; i < panel->n; i++) {
		if (panel->items[i]->row->figure.runs &&
		    panel->items[i]->row->figure.interval.high > most)
			most = panel->items[i]->row->figure.interval.high;
	}
	d->x_low = 0;
	d->x_high = most > 0 ? 1.13 * most : 1;
	d->y_low = lines[panel->n - 1] + 1;
	d->y_high = 0.3;
	panel_begin(d, BARS_LEFT, BARS_RIGHT, "", first_item(panel)->row->unit, "");
	fprintf(d->script,
		"unset ytics\nset key at screen %.6f, screen %.6f right center horizontal\n",
		screen_x(BARS_RIGHT), screen_y(d, panel->top + TITLE_HEIGHT / 2.0));
	bar_labels(d, lines);
	bar_ceilings(d, lines);
	bar_plot(d, lines);
	free(lines);
}

/* ---- lines ---- */

#define LINES_LEFT 86
#define LINES_RIGHT 560
/* Points are shifted if the lines have at most SHIFT_VALUES points. */
#define SHIFT_VALUES 4
#define SHIFT_PIXELS 4.0

/* Whether this part of the lines has the item's series. */
static int has_series(const struct plot_panel *panel, const struct plot_item *item)
{
	return item->line >= panel->first_series &&
	       item->line < panel->first_series + panel->n_series;
}

/* Ticks at 1, 2 and 5 of each decade, or at powers of ten. */
static void log_ticks(const struct drawing *d)
{
	static const int steps[] = {1, 2, 5};
	const double decades = d->y_high - d->y_low;
	const int every = decades > 12 ? (int)(decades / 6) : 1;
	const char *separator = "";

	fputs("set ytics (", d->script);
	for (int k = (int)floor(d->y_low); k <= (int)ceil(d->y_high); k++) {
		for (int s = 0; s < (decades > 2.6 ? 1 : 3); s++) {
			const double at = k + log10(steps[s]);

			if (at < d->y_low || at > d->y_high || k % every)
				continue;
			fprintf(d->script, "%s\"%g\" %.9g", separator, steps[s] * pow(10, k), at);
			separator = ", ";
		}
	}
	fputs(")\n", d->script);
}

/* Ticks at the values of the rows, without those that would overlap. */
static void value_ticks(const struct drawing *d, const struct plot_kind *kind)
{
	const struct plot_panel *panel = d->panel;
	double *values = tool_alloc(panel->n * sizeof(*values));
	const size_t n = distinct(panel, 0, values);
	const double scale = (LINES_RIGHT - LINES_LEFT) / (d->x_high - d->x_low);
	const char *separator = "";
	double end = -INFINITY;

	fputs("set xtics (", d->script);
	for (size_t i = 0; i < n; i++) {
		const double at = axis_x(kind, values[i]);
		char text[32];
		double half;

		tick_text(text, values[i], kind->x_units);
		half = (double)strlen(text) * CHARACTER / 2 + 2;
		if (at * scale - half < end)
			continue;
		fprintf(d->script, "%s\"%s\" %.9g", separator, text, at);
		separator = ", ";
		end = at * scale + half;
	}
	fputs(")\n", d->script);
	free(values);
}

static int order_items(const void *a, const void *b)
{
	const struct plot_item *x = *(struct plot_item *const *)a;
	const struct plot_item *y = *(struct plot_item *const *)b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->x < y->x || x->x > y->x)
		return x->x < y->x ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Sets the ranges of all series, so that the parts of a divided panel have the same axes. */
static void line_ranges(struct drawing *d, const struct plot_kind *kind)
{
	double pad;

	d->x_low = d->x_high = d->y_low = d->y_high = NAN;
	for (size_t i = 0; i < d->panel->n; i++) {
		const struct plot_item *item = d->panel->items[i];
		const struct figure *g = &item->row->figure;

		if (!plot_has_value(item))
			continue;
		widen(&d->x_low, &d->x_high, axis_x(kind, item->x));
		widen(&d->y_low, &d->y_high, axis_y(kind, g->median));
		widen(&d->y_low, &d->y_high, axis_y(kind, g->interval.low));
		widen(&d->y_low, &d->y_high, axis_y(kind, g->interval.high));
	}
	pad = 0.06 * (d->x_high - d->x_low);
	d->x_low -= pad;
	d->x_high += pad;
	if (!kind->log_y)
		d->y_low = 0;
	pad = 0.06 * (d->y_high - d->y_low);
	if (!(pad > 0.02))
		pad = kind->log_y || !(pad > 0) ? 0.1 : pad;
	d->y_high += pad;
	d->y_low -= kind->log_y ? pad : 0;
}

/*
 * Sets the distance in x between the points of two series with the same x, so that few and noisy
 * points do not hide each other. The points of an x stay closer than two x.
 */
static void set_shift(struct drawing *d, const struct plot_kind *kind)
{
	double *values = tool_alloc(d->panel->n * sizeof(*values));
	const size_t n = distinct(d->panel, 0, values);
	const double gaps = d->panel->n_series > 1 ? (double)d->panel->n_series - 1 : 1;
	double most = SHIFT_PIXELS * (d->x_high - d->x_low) / (LINES_RIGHT - LINES_LEFT);

	for (size_t i = 1; i < n; i++) {
		const double step = axis_x(kind, values[i]) - axis_x(kind, values[i - 1]);

		most = 0.6 * step < most * gaps ? 0.6 * step / gaps : most;
	}
	d->shift = n <= SHIFT_VALUES ? most : 0;
	free(values);
}

/* The shift of a series. */
static double shift_of(const struct drawing *d, size_t line)
{
	const double middle = ((double)d->panel->n_series - 1) / 2;

	return d->shift * ((double)(line - d->panel->first_series) - middle);
}

/* Writes the points of the lines, in order. A ceiling without an x has two points. */
static void line_data(const struct drawing *d, const struct plot_kind *kind)
{
	const struct plot_panel *panel = d->panel;
	FILE *f = d->script;
	size_t line = (size_t)-1;
	int begun = 0;

	for (size_t i = 0; i < panel->n; i++) {
		const struct plot_item *item = panel->items[i];
		const struct figure *g = &item->row->figure;
		const double y = axis_y(kind, g->median);
		double low;

		if (!has_series(panel, item))
			continue;
		if (item->line != line) {
			fprintf(f, "%s$line%zu << END\n", line == (size_t)-1 ? "" : "END\n",
				item->line);
			begun = 0;
		}
		line = item->line;
		/* several series may share a ceiling */
		if (!plot_has_value(item) || (begun && isnan(item->x)))
			continue;
		begun = 1;
		low = axis_y(kind, g->interval.low);
		low = isfinite(low) ? low : d->y_low;
		if (isnan(item->x))
			fprintf(f, "%.9g %.9g\n%.9g %.9g\n", d->x_low, y, d->x_high, y);
		else
			fprintf(f, "%.9g %.9g %.9g %.9g\n",
				axis_x(kind, item->x) + shift_of(d, line), y, low,
				axis_y(kind, g->interval.high));
	}
	fputs("END\n", f);
}

/* Writes the style of the series that the item begins. */
static void line_style(const struct drawing *d, const struct plot_item *item)
{
	const int is_ceiling = item->row->kind == TABLE_CEILING;
	const size_t colour = item->base ? item->base->colour : item->colour;

	fprintf(d->script, " lw 1.5 dt %d lc rgb \"%s\"", is_ceiling ? 2 : 1,
		is_ceiling && !item->base ? CEILING_COLOUR : colours[colour % COLOURS]);
}

static int point_of(const struct plot_item *item)
{
	return points[item->line % (sizeof(points) / sizeof(points[0]))];
}

/* Writes a line of the key to the right of the axes. */
static void line_key(const struct drawing *d, const struct plot_item *item)
{
	const struct plot_panel *panel = d->panel;
	const double y = panel->top + TITLE_HEIGHT + 8 +
			 LINE_HEIGHT * (double)(item->line - panel->first_series);

	fprintf(d->script,
		"set arrow from screen %.6f, screen %.6f to screen %.6f, screen %.6f nohead",
		screen_x(LINES_RIGHT + 10), screen_y(d, y), screen_x(LINES_RIGHT + 38),
		screen_y(d, y));
	line_style(d, item);
	fputs("\n", d->script);
	if (!isnan(item->x)) {
		fprintf(d->script, "set label \"\" at screen %.6f, screen %.6f point pt %d ps 0.8",
			screen_x(LINES_RIGHT + 24), screen_y(d, y), point_of(item));
		line_style(d, item);
		fputs("\n", d->script);
	}
	screen_label(d, LINES_RIGHT + 44, y, item->series, 44, "left font \"sans-serif,11\"");
}

/* Whether a row of the series has a value. */
static int is_drawn(const struct plot_panel *panel, size_t line)
{
	for (size_t i = 0; i < panel->n; i++) {
		if (panel->items[i]->line == line && plot_has_value(panel->items[i]))
			return 1;
	}
	return 0;
}

/* Returns the item that begins the next series with a value at or after item i, or NULL. */
static const struct plot_item *next_line(const struct plot_panel *panel, size_t *i)
{
	for (; *i < panel->n; ++*i) {
		const struct plot_item *item = panel->items[*i];

		if (*i && panel->items[*i - 1]->line == item->line)
			continue;
		if (has_series(panel, item) && is_drawn(panel, item->line)) {
			++*i;
			return item;
		}
	}
	return NULL;
}

static void line_plot(const struct drawing *d)
{
	const struct plot_item *item;

	for (size_t i = 0; (item = next_line(d->panel, &i));)
		line_key(d, item);
	fputs("plot NaN notitle", d->script);
	for (size_t i = 0; (item = next_line(d->panel, &i));) {
		if (isnan(item->x))
			fprintf(d->script, ", $line%zu using 1:2 with lines", item->line);
		else
			fprintf(d->script, ", $line%zu using 1:2:3:4 with yerrorlines pt %d ps 0.8",
				item->line, point_of(item));
		line_style(d, item);
		fputs(" notitle", d->script);
	}
	fputs("\n", d->script);
}

static void draw_lines(struct drawing *d)
{
	const struct plot_panel *panel = d->panel;
	const struct plot_kind *kind = first_item(panel)->kind;
	char title[PLOT_NAME + 96];

	qsort(panel->items, panel->n, sizeof(struct plot_item *), order_items);
	line_ranges(d, kind);
	snprintf(title, sizeof(title), "%s", first_item(panel)->panel);
	if (panel->series > PLOT_LINES_MOST)
		snprintf(title, sizeof(title), "%s%slines %zu to %zu of %zu",
			 first_item(panel)->panel, *first_item(panel)->panel ? ", " : "",
			 panel->first_series + 1, panel->first_series + panel->n_series,
			 panel->series);
	panel_begin(d, LINES_LEFT, LINES_RIGHT, title, kind->x_name, first_item(panel)->row->unit);
	value_ticks(d, kind);
	if (kind->log_y)
		log_ticks(d);
	set_shift(d, kind);
	line_data(d, kind);
	line_plot(d);
}

/* ---- cells ---- */

#define CELLS_LEFT 62
#define CELLS_RIGHT 352
#define CELLS_PALETTE                                                                               \
	"set palette defined (0 \"#00224e\", 0.25 \"#3b496c\", 0.5 \"#7c7b78\", 0.75 \"#bcae6c\", " \
	"1 \"#fee838\")\n"

/* The greatest value of the cells of the benchmark with this unit: its panels share the colours. */
static double most_of_cells(const struct drawing *d, const struct result_row *of)
{
	double most = 0;

	for (size_t i = 0; i < d->results->n; i++) {
		const struct result_row *row = &d->results->rows[i];

		if (row->figure.runs && row->figure.median > most &&
		    !strcmp(row->bench, of->bench) && !strcmp(row->unit, of->unit))
			most = row->figure.median;
	}
	return most > 0 ? most : 1;
}

static void cell_ticks(const struct drawing *d, const char *axis, const double *values, size_t n)
{
	fprintf(d->script, "set %stics (", axis);
	for (size_t i = 0; i < n; i++)
		fprintf(d->script, "%s\"%.6g\" %zu", i ? ", " : "", values[i], i);
	fputs(") scale 0\n", d->script);
}

/* Writes the ceiling of the cells to the right of the title. */
static void cell_ceiling(const struct drawing *d)
{
	const struct plot_panel *panel = d->panel;
	const struct plot_item *ceiling = NULL;
	double low = NAN, high = NAN;
	char text[PLOT_NAME + 64], number[2][24];

	for (size_t i = 0; i < panel->n; i++) {
		const struct plot_item *item = panel->items[i];

		if (!isnan(item->x) || !item->row->figure.runs)
			continue;
		ceiling = item;
		widen(&low, &high, item->row->figure.median);
	}
	if (!ceiling)
		return;
	snprintf(text, sizeof(text), "%.36s, %s%s%s", ceiling->series, short_number(number[0], low),
		 high > low ? " to " : "", high > low ? short_number(number[1], high) : "");
	screen_label(d, panel->left + CELLS_RIGHT, panel->top + 14, text, 60,
		     "right font \"sans-serif,11\" tc rgb \"" CEILING_COLOUR "\"");
}

/* Writes the ticks of the colours, which a low box has no space for. */
static void colour_ticks(const struct drawing *d, double most)
{
	char text[24];

	if (d->panel->height - AXIS_HEIGHT - TITLE_HEIGHT < 4 * CELL_HEIGHT)
		fprintf(d->script, "set cbtics (\"0\" 0, \"%s\" %.9g)\n", short_number(text, most),
			most);
	else
		fputs("set cbtics autofreq\n", d->script);
}

/* Writes the best median of each cell. Returns the number of cells. */
static size_t cell_data(const struct drawing *d, const double *xs, size_t n_x, const double *ys,
			size_t n_y, double most)
{
	const struct plot_panel *panel = d->panel;
	double *best = tool_alloc(n_x * n_y * sizeof(*best));
	size_t n = 0;
	char text[24];

	memset(best, 0, n_x * n_y * sizeof(*best));
	for (size_t i = 0; i < panel->n; i++) {
		const struct plot_item *item = panel->items[i];
		size_t x = 0, y = 0;

		if (isnan(item->x))
			continue;
		while (xs[x] != item->x)
			x++;
		while (ys[y] != item->y)
			y++;
		if (item->row->figure.runs && item->row->figure.median > best[y * n_x + x])
			best[y * n_x + x] = item->row->figure.median;
	}
	fputs("$cells << END\n", d->script);
	for (size_t i = 0; i < n_x * n_y; i++) {
		if (!(best[i] > 0))
			continue;
		fprintf(d->script, "%zu %zu %.9g \"%s\" %d\n", i % n_x, i / n_x, best[i],
			short_number(text, best[i]), best[i] < 0.6 * most ? 0xffffff : 0);
		n++;
	}
	fputs("END\n", d->script);
	free(best);
	return n;
}

static void cell_plot(const struct drawing *d, double most)
{
	const struct plot_panel *panel = d->panel;

	fprintf(d->script,
		CELLS_PALETTE "set cbrange [0:%.9g]\n"
			      "set colorbox user origin screen %.6f, screen %.6f size screen %.6f, "
			      "screen %.6f\nset cblabel ",
		most, screen_x(panel->left + CELLS_RIGHT + 8),
		screen_y(d, panel->top + panel->height - AXIS_HEIGHT), screen_x(10),
		(double)(panel->height - AXIS_HEIGHT - TITLE_HEIGHT) / d->height);
	gnuplot_text(d->script, first_item(panel)->row->unit, 16);
	fputs("\nplot $cells using 1:2:($1-0.49):($1+0.49):($2-0.48):($2+0.48):3 with boxxyerror "
	      "fs solid noborder fc palette notitle, $cells using 1:2:4:5 with labels "
	      "font \"sans-serif,11\" tc rgb variable notitle\n",
	      d->script);
}

static void draw_cells(struct drawing *d)
{
	const struct plot_panel *panel = d->panel;
	const struct plot_item *first = first_item(panel);
	double *xs = tool_alloc(panel->n * sizeof(*xs)), *ys = tool_alloc(panel->n * sizeof(*ys));
	const size_t n_x = distinct(panel, 0, xs), n_y = distinct(panel, 1, ys);
	const double most = most_of_cells(d, first->row);

	d->x_low = d->y_low = -0.5;
	d->x_high = (double)n_x - 0.5;
	d->y_high = (double)n_y - 0.5;
	panel_begin(d, CELLS_LEFT, CELLS_RIGHT, first->panel, first->kind->x_name,
		    first->kind->y_name);
	cell_ceiling(d);
	colour_ticks(d, most);
	cell_ticks(d, "x", xs, n_x);
	cell_ticks(d, "y", ys, n_y);
	if (cell_data(d, xs, n_x, ys, n_y, most))
		cell_plot(d, most);
	else
		fputs("plot NaN notitle\n", d->script);
	free(xs);
	free(ys);
}

/* ---- the plot ---- */

static void draw(const struct plot_panels *p, struct drawing *d, const char *path)
{
	static void (*const shapes[])(struct drawing *) = {draw_cells, draw_lines, draw_bars};
	const size_t length = strlen(path);

	/* a point of a font is a pixel in SVG, and 4/3 pixels in PNG */
	fprintf(d->script,
		"set terminal %s size %d,%d noenhanced font \"sans-serif,12\" background rgb "
		"\"white\"\n",
		length > 4 && !strcmp(path + length - 4, ".png") ? "pngcairo fontscale 0.75"
								 : "svg",
		WIDTH, d->height);
	fputs("set encoding utf8\nset multiplot\nset errorbars 1.2\nset border lw 0.8\n"
	      "set tics nomirror out\nset grid xtics ytics lc rgb \"#cccccc\" lw 0.7 dt 1\n",
	      d->script);
	for (size_t i = 0; i < p->n; i++) {
		d->panel = &p->panels[i];
		shapes[first_item(d->panel)->shape](d);
	}
	fputs("unset multiplot\n", d->script);
}

/* Returns why the rows cannot be drawn, or NULL. */
static const char *why_no_plot(const struct results *r)
{
	if (!r->n)
		return "there is no row to plot";
	if (r->n > PLOT_ROWS)
		return "there are too many rows for a plot; option '--filter' selects rows";
	return NULL;
}

int bench_plot(const struct bench_file *f, const struct results *r, const char *gnuplot)
{
	struct drawing d = {.results = r};
	const char *why = why_no_plot(r);
	struct plot_panels p;
	size_t height;
	int status = TOOL_FAILED;

	if (why) {
		tool_error("%s: %s", f->path, why);
		return TOOL_FAILED;
	}
	plot_divide(r, &p);
	height = lay_out(&p);
	if (height > MOST_HEIGHT) {
		tool_error("%s: the plot is too high; option '--filter' selects rows", f->path);
	} else if ((d.script = gnuplot_script())) {
		d.height = (int)height;
		draw(&p, &d, f->path);
		status = gnuplot_run(gnuplot, d.script, f);
		fclose(d.script);
	}
	plot_free(&p);
	return status;
}
