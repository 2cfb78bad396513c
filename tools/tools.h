/* SPDX-License-Identifier: MIT */
/* What the commands of the tool share. */
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

/* Puts '?' for each control character, which the name of a file may contain. */
void tool_one_line(char *text);

/* One line on stderr, after "cuatomic: ". */
void tool_error(const char *format, ...) TOOL_PRINTF;
/* The same, then the process ends with status 1. */
void tool_die(const char *format, ...) TOOL_PRINTF __attribute__((noreturn));
/* The same for wrong usage, naming the help; returns TOOL_USAGE. */
int tool_usage_error(const char *format, ...) TOOL_PRINTF;

/* The same for what getopt_long, silent and with ':', returned for an argument. */
int tool_option_error(int returned, const char *argument);

/* The value of an option -t. Returns TOOL_OK or TOOL_USAGE. */
int tool_parse_threads(const char *text, unsigned *threads);

/* Writes out stdout and returns status; when that fails says why and returns TOOL_FAILED. */
int tool_finish(int status);

/* Memory from malloc; ends the process when there is none. Zero bytes give a valid pointer too. */
void *tool_alloc(size_t bytes);

/* Ends the process unless so much more memory can be had; the kernel would kill it later. */
void tool_claim_memory(uint64_t bytes);

/* Seconds of a clock that never goes back. */
double tool_now(void);

/* "1.5 GiB" in buffer, which is returned. */
#define TOOL_BYTES_TEXT 32
const char *tool_bytes_text(char *buffer, uint64_t bytes);

#endif /* CUATOMIC_TOOLS_H */
