/* SPDX-License-Identifier: MIT */
/*
 * The command with references that a test can falsify. The environment variable DEMO_PLANT names a
 * check; its expected value is then off by 1. BENCH_PLANT names the row of a benchmark.
 * check_cli.sh expects the command to notice. The licence texts are made unavailable, so that the
 * second default file is tested as well.
 */
#include <stdlib.h>
#include <string.h>

static int plant(const char *what)
{
	const char *name = getenv("DEMO_PLANT");

	return name && !strcmp(name, what);
}

#define CUATOMIC_DEMO_PLANT(what) plant(what)
#define CUATOMIC_LICENSES "/nonexistent/common-licenses"
#define CUATOMIC_DOCDIR "/usr/local/share/doc/cuatomic"

#include "../tools/bench.c"
#include "../tools/bench_child.c"
#include "../tools/bench_compare.c"
#include "../tools/bench_file.c"
#include "../tools/bench_gnuplot.c"
#include "../tools/bench_load.c"
#include "../tools/bench_options.c"
#include "../tools/bench_output.c"
#include "../tools/bench_panels.c"
#include "../tools/bench_plot.c"
#include "../tools/bench_progress.c"
#include "../tools/bench_results.c"
#include "../tools/bench_summary.c"
#include "../tools/cpu_bench.c"
#include "../tools/cpu_bench_append.c"
#include "../tools/cpu_bench_atomics.c"
#include "../tools/cpu_bench_fill.c"
#include "../tools/cpu_bench_hashmap.c"
#include "../tools/cpu_bench_histogram.c"
#include "../tools/cpu_bench_latency.c"
#include "../tools/cpu_bench_launch.c"
#include "../tools/cpu_bench_locks.c"
#include "../tools/cpu_bench_random.c"
#include "../tools/cpu_bench_read.c"
#include "../tools/cpu_bench_reduce.c"
#include "../tools/cpu_bench_stream.c"
#include "../tools/cpu_bench_vector.c"
#include "../tools/cuatomic.c"
#include "../tools/demo.c"
#include "../tools/demo_group.c"
#include "../tools/demo_parts.c"
#include "../tools/demo_piece.c"
#include "../tools/info.c"
#include "../tools/info_json.c"
