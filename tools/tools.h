/* SPDX-License-Identifier: MIT */
/* Functions that the commands of the tool share. */
#ifndef CUATOMIC_TOOLS_H
#define CUATOMIC_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include <cuatomic.h>

#define TOOL_PRINTF __attribute__((format(printf, 1, 2)))

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* The commands. argv[0] is the command's name; the return value is the exit status. */
int tool_bench(int argc, char **argv);
int tool_demo(int argc, char **argv);
int tool_info(int argc, char **argv);

/* Replaces control characters by '?': the name of a file may contain some. */
void tool_one_line(char *text);

/* Prints "cuatomic: " and the message as a single line on stderr. */
void tool_error(const char *format, ...) TOOL_PRINTF;
/* Prints the message like tool_error, then ends the process with status 1. */
void tool_die(const char *format, ...) TOOL_PRINTF __attribute__((noreturn));
/* Prints the message and a hint to the help. Returns TOOL_USAGE. */
int tool_usage_error(const char *format, ...) TOOL_PRINTF;

/* The options of demo and bench. */
struct tool_options {
	int cpu, cuda; /* the backends to use; by default both */
	int backend_given;
	unsigned threads; /* of the CPU backend; 0: the default */
	uint32_t group;   /* the ranks of a group; 0: no group */
	int quick;
};
#define DEMO_RANKS_MAX 64u /* of --group */

/* Further options of a command, without a letter: their values are 256 and more. */
struct option;
struct tool_more {
	const struct option *names; /* ends with a name of NULL */
	/* Returns TOOL_OK or TOOL_USAGE. */
	int (*set)(int option, const char *value, void *data);
	void *data;
};

/*
 * Parses the options: `letters` is ":b:g:t:" for demo or ":b:qt:" for bench; `more` may be NULL.
 * Afterwards optind is the index of the first argument. Returns TOOL_OK or TOOL_USAGE.
 */
int tool_parse_options(int argc, char **argv, const char *letters, struct tool_options *o,
		       const struct tool_more *more);

/* Creates a context of the CPU backend and describes its device. An error ends the process. */
struct cua_context *tool_cpu_context(unsigned threads, struct cua_device_info *info);

/* Flushes stdout. Returns status, or reports a write error and returns TOOL_FAILED. */
int tool_finish(int status);

/*
 * Allocates with malloc. Ends the process if memory is exhausted. Zero bytes give a valid pointer
 * too.
 */
void *tool_alloc(size_t bytes);

/* Memory available without swapping, or UINT64_MAX if the system does not report it. */
uint64_t tool_available_memory(void);

/*
 * Ends the process unless so many more bytes are available: with overcommit, malloc succeeds and
 * the kernel kills the process later.
 */
void tool_claim_memory(uint64_t bytes);

/* Seconds of a monotonic clock. */
double tool_now(void);

/* Formats a size, for example "1.5 GiB", and returns buffer. */
#define TOOL_BYTES_TEXT 32
const char *tool_bytes_text(char *buffer, uint64_t bytes);

#endif /* CUATOMIC_TOOLS_H */
