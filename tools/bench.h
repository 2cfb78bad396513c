/* SPDX-License-Identifier: MIT */
/*
 * The parts of `cuatomic bench`: the child processes that measure, the rows that they write, and
 * the output.
 */
#ifndef CUATOMIC_BENCH_COMMAND_H
#define CUATOMIC_BENCH_COMMAND_H

#include "../bench/bench_table.h"
#include "cpu_bench.h"

/* ---- rows ---- */

struct result_row {
	char *bench, *name, *way, *unit, *note; /* name: of the case */
	enum table_kind kind;
	unsigned group; /* the rows of a case share it */
	struct figure figure;
};

/* The run that made the rows: this one, or that of a file. Each text may be NULL. */
struct result_origin {
	char *version, *date, *cpu, *os;
	char *options;        /* those that change what a row measures, such as "--quick" */
	char *versions;       /* of the last benchmark of this run */
	const char *no_gpu;   /* why this run has no GPU */
	double cores, memory; /* negative: unknown */
};

struct results {
	struct result_row *rows;
	size_t n, room;
	const char *bench; /* name of the benchmark that runs */
	unsigned group;
	char *device, *driver; /* of the last program on a GPU, or NULL */
	struct result_origin origin;
	int failed; /* a benchmark failed or was stopped, so rows are missing */

	/* shows row i on standard output in place of the table, or NULL */
	void (*show)(struct results *r, size_t i);

	/* the table on standard output */
	int prints;
	struct table table;
	char *columns, *title; /* head of the columns, before its first row; or NULL */

	/* progress of the benchmark that runs */
	struct bench_machine_state state; /* of the next row */
	size_t planned, done;
	double seconds;     /* time limit, or 0 */
	double start, last; /* times of the start and of the last row */
};

/* Reads a line of a benchmark: a record, or text. Returns 0 if the record is malformed. */
int results_read(struct results *r, char *line);
/* Starts a benchmark. seconds: its time limit, or 0. */
void results_begin(struct results *r, const char *bench, double seconds);
/* The next rows have this unit, and notes with this title. */
void results_columns(struct results *r, const char *unit, const char *title);
/* The next rows belong to this case. */
void results_case(struct results *r, const char *name);
void results_free(struct results *r);
/* Adds a row of the benchmark that runs, with copies of the texts, and prints it. */
void results_add(struct results *r, const struct result_row *row);
/* Sets the origin to this machine, now. no_gpu: why there is no GPU, or NULL. */
void results_describe(struct results *r, const char *no_gpu);
/* Sets the date of the origin to now. */
void results_set_date(struct results *r);
/* Returns a copy in memory from tool_alloc. */
char *results_copy(const char *text);
int results_kind(const char *text, enum table_kind *kind);
int results_reason(const char *text, enum stats_reason *reason);
/* Best median of the case of row i, or 0. */
double results_best(const struct results *r, size_t i, enum table_kind kind);
/* The ratio of row i to the best row of a kind in the case, 1 for the best; -1: there is none. */
double results_ratio(const struct results *r, size_t i, enum table_kind kind);

/* ---- progress ---- */

/* Shows the progress on standard error if it is a terminal. */
void progress_show(const struct results *r);
/* Removes the progress from the terminal. */
void progress_clear(void);

/* ---- summary ---- */

/* Sets the regular expression of the rows that benchmarks measure for the summary. */
void summary_set_rows(const char *pattern);
/* Prints row i of the summary, with the head before the first row. */
void summary_show(struct results *r, size_t i);

/* ---- child processes ---- */

/* A program, or a function of this program that runs in a child process. */
struct bench_job {
	const char *name;
	char *const *argv; /* of the program; NULL: run */
	void (*run)(const struct bench_job *job);
	const struct bench_options *options; /* of run */
	double seconds;                      /* time limit; 0: none */
};

/*
 * Records the signals that stop a benchmark, instead of ending the process. From then on, an output
 * with a reader that has stalled is dropped.
 */
void bench_catch_signals(void);
/* Adds an output that may wait for a reader. */
void bench_watch_output(int fd);
/* The signal that was caught, or 0. */
int bench_caught_signal(void);
/* Ends the process by the signal that was caught, if there is one. */
void bench_raise_signal(void);
/* Runs a job until its end or a signal. Returns the exit status of the command. */
int bench_run_job(const struct bench_job *job, struct results *r);
/*
 * Runs a program with these descriptors as standard streams, until its end or a signal. Sets the
 * status of waitpid. Returns TOOL_OK, or TOOL_FAILED if it did not run or was stopped.
 */
int bench_run_filter(char *const *argv, int in, int out, int err, int *ended);

/* ---- output ---- */

/* A file that appears as a whole when it is complete. */
struct bench_file {
	const char *path;         /* NULL: none; "-": standard output */
	char *target, *temporary; /* temporary NULL: writes to the target itself */
	FILE *stream;
};

int bench_file_open(struct bench_file *f);
/* Whether two open files have the same target. */
int bench_file_is_same(const struct bench_file *a, const struct bench_file *b);
/* Closes the file. Returns TOOL_OK, or reports the error. */
int bench_file_finish(struct bench_file *f);
/* Closes the file and removes the temporary file. */
void bench_file_discard(struct bench_file *f);
void bench_write_json(FILE *f, const struct results *r);
void bench_write_csv(FILE *f, const struct results *r);

/* Draws the rows. gnuplot: path of the program. Returns the exit status of the command. */
int bench_plot(const struct bench_file *f, const struct results *r, const char *gnuplot);

/* ---- files of bench_write_json ---- */

/*
 * Adds the rows of a file that table_matches and `wants` have, and sets the origin. Returns the exit
 * status of the command.
 */
int bench_load(const char *path, struct results *r,
	       int (*wants)(const char *bench, const void *data), const void *data);
/*
 * Adds all rows of a file with its medians and intervals, and without samples. A row without
 * samples is accepted, and a missing origin too. Returns the exit status of the command.
 */
int bench_load_intervals(const char *path, struct results *r);

/* Compares two files of bench_write_json. Returns the exit status of the command. */
int bench_compare(const char *before, const char *after, double threshold);

/* A file of bench_write_json that a run is compared with. */
struct bench_reference;

/*
 * Reads a reference: a path that has a '/' or ends in .json, or the name of an installed file.
 * Reports an error and returns NULL.
 */
struct bench_reference *bench_reference_open(const char *name);
void bench_reference_close(struct bench_reference *ref);
/* Prints the verdicts of the rows in both. name: of the rows in r. Returns TOOL_FAILED if a row is slower. */
int bench_reference_judge(struct bench_reference *ref, const struct results *r, const char *name,
			  double threshold);

#endif /* CUATOMIC_BENCH_COMMAND_H */
