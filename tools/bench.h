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

struct results {
	struct result_row *rows;
	size_t n, room;
	const char *bench; /* name of the benchmark that runs */
	unsigned group;
	char *device, *driver; /* of the last program on a GPU, or NULL */
	char *versions;        /* of the last benchmark, or NULL */
	const char *no_gpu;    /* why there is none, or NULL */
	int failed;            /* a benchmark failed or was stopped, so rows are missing */

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
void results_free(struct results *r);
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
/* The operating system and the kernel. */
void bench_system_text(char *text, size_t room);
/* The date and time, in UTC. */
void bench_date_text(char text[32]);
void bench_write_json(FILE *f, const struct results *r);
void bench_write_csv(FILE *f, const struct results *r);

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
/* Prints the verdicts of the rows in both. Returns TOOL_FAILED if a row is slower. */
int bench_reference_judge(struct bench_reference *ref, const struct results *r, double threshold);

#endif /* CUATOMIC_BENCH_COMMAND_H */
