/* SPDX-License-Identifier: MIT */
/* The demonstration: the library's calls on pieces of a file (demo_parts.c), the command (demo.c). */
#ifndef CUATOMIC_TOOLS_DEMO_H
#define CUATOMIC_TOOLS_DEMO_H

#include "tools.h"

enum { DEMO_CPU, DEMO_GPU, DEMO_DEVICES };

struct demo;

/* A row of the table of results. */
struct demo_part {
	const char *name;
	void (*run)(struct demo *d);
	const char *unit; /* of the result */
	/* of a reduction */
	enum cua_reduce_op op;
	enum cua_finish_mode finish;
	enum cua_reduce_mode mode;
	double (*combine)(double, double); /* the results of two pieces; NULL: they are added */
	double result[DEMO_DEVICES], seconds[DEMO_DEVICES];
	int wrong;
};
extern struct demo_part demo_parts[]; /* the last has no name */

/* Runs all parts on a piece of the file, on each device with a context that is not NULL. */
void demo_run(struct cua_context *const contexts[DEMO_DEVICES], const uint8_t *bytes, size_t n);

#endif /* CUATOMIC_TOOLS_DEMO_H */
