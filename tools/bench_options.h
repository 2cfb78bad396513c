/* SPDX-License-Identifier: MIT */
/* The benchmarks, and the arguments of `cuatomic bench`. */
#ifndef CUATOMIC_BENCH_OPTIONS_H
#define CUATOMIC_BENCH_OPTIONS_H

#include "bench.h"

/* The least time limit of a benchmark. */
#define BENCH_LEAST_SECONDS 1e-6

struct benchmark {
	const char *name;
	const char *what;
	void (*cpu)(const struct bench_options *o); /* NULL: on a GPU only */
	const char *more; /* program with further CPU peers, run next if it was built; or NULL */
	/*
	 * Regular expression of the rows "bench/case/way" of the summary, on a GPU and on the CPU:
	 * few rows, with the ceiling, the best peer and ours; or NULL.
	 */
	const char *summary;
	/* the GPU program, if it has several benchmarks and their names as first argument; or NULL */
	const char *program;
};

/* Returns the benchmark of this name, or NULL. */
const struct benchmark *bench_find(const char *name);

/* A benchmark with its arguments. */
struct bench_request {
	double seconds; /* time limit; 0: none */
	const struct benchmark *benchmark;
	char **rest;
	int n_rest;
};

struct bench_arguments {
	struct tool_options options;
	struct bench_file json, csv, plot;
	char *gnuplot;                      /* path of the program, of --plot */
	const char *filter, *from, *device; /* NULL: not given */
	const char *against;                /* name of a reference; NULL: not given */
	double seconds;                     /* 0: not given */
	uint64_t size;                      /* 0: not given */
	int list, compare;
	double threshold; /* negative: not given */
	struct bench_reference *reference;
	int summary; /* no benchmark is named */
	struct bench_request *requests;
	size_t n;
};

/* Parses and checks the arguments. Returns the exit status of the command. */
int bench_parse_arguments(int argc, char **argv, struct bench_arguments *a);
/* Whether a file takes the place of the table. */
int bench_has_no_table(const struct bench_arguments *a);

#endif /* CUATOMIC_BENCH_OPTIONS_H */
