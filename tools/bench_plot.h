/* SPDX-License-Identifier: MIT */
/* The plots of `cuatomic bench --plot`: the panels, and the program gnuplot that draws them. */
#ifndef CUATOMIC_BENCH_PLOT_H
#define CUATOMIC_BENCH_PLOT_H

#include "bench.h"

/* ---- panels ---- */

#define PLOT_NAME 160

enum plot_shape { PLOT_CELLS, PLOT_LINES, PLOT_BARS };

/* How a benchmark is drawn. */
struct plot_kind {
	const char *bench;
	enum plot_shape shape;
	const char *x_name, *y_name; /* y_name NULL: the unit */
	int log_x, log_y;
	const char *const *x_units; /* names of the powers of 1024 */
};

/* A row in its panel. */
struct plot_item {
	const struct result_row *row;
	const struct plot_kind *kind; /* NULL: bars */
	enum plot_shape shape;
	char panel[PLOT_NAME];
	char series[PLOT_NAME];       /* of lines */
	double x, y;                  /* x of lines and cells; NAN: at every x. y of cells */
	const struct plot_item *base; /* of a ceiling of a case: an item of it; or NULL */
	int taken;                    /* it is in a panel */
	size_t colour;                /* of the series */
	size_t line;                  /* index of the series in the panel */
};

/* The items of a panel have the same benchmark, shape, unit and panel name. */
struct plot_panel {
	struct plot_item **items;
	size_t n;
	/* of lines: the part of the series that this panel has */
	size_t first_series, n_series, series;
	/* position in pixels from the upper left corner */
	int left, top, width, height, columns; /* columns: panels side by side */
	int begins_bench;
};

struct plot_panels {
	struct plot_item *items;
	struct plot_panel *panels;
	size_t n, room;
};

/* Most rows of a plot, and most lines of a panel. */
#define PLOT_ROWS 4000
#define PLOT_LINES_MOST 12

/* Divides the rows, at most PLOT_ROWS, into panels. */
void plot_divide(const struct results *r, struct plot_panels *p);
void plot_free(struct plot_panels *p);
/* Whether the row has a value to draw. */
int plot_has_value(const struct plot_item *item);

/* ---- gnuplot ---- */

/* Returns the path of gnuplot, in memory from tool_alloc. Reports that there is none and returns NULL. */
char *gnuplot_find(void);
/* Opens a script, which has no name. Reports an error and returns NULL. */
FILE *gnuplot_script(void);
/* Runs the script, with its output to the file. Returns the exit status of the command. */
int gnuplot_run(const char *program, FILE *script, const struct bench_file *f);
/* Writes a quoted string of at most `most` characters. No text ends the string or is evaluated. */
void gnuplot_text(FILE *script, const char *text, size_t most);

#endif /* CUATOMIC_BENCH_PLOT_H */
