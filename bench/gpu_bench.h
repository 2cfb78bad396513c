/* SPDX-License-Identifier: MIT */
/* Shared by all programs: arguments, the head of the output, timing and the textbook lock. */
#ifndef CUATOMIC_BENCH_H
#define CUATOMIC_BENCH_H

#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <cuatomic/version.h>

#include "bench_nvml.h"
#include "bench_table.h"

struct options {
	bool quick;      /* short runs that only test the program */
	bool candidates; /* see gpu_bench_locks.cu */
};

static void need(bool ok, const char *what)
{
	if (!ok) {
		cudaError_t error = cudaGetLastError();

		fflush(stdout);
		fprintf(stderr, "cuatomic bench: %s: %s\n", what,
			error ? cudaGetErrorString(error) : "wrong result");
		exit(1);
	}
}

/* Ends the program with status 2 for an unknown argument, like the command. */
static inline struct options parse_options(int argc, char **argv, const char *name,
					   bool has_candidates)
{
	struct options o = {};

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			o.quick = true;
			bench_env()->quick = 1;
		} else if (has_candidates && !strcmp(argv[i], "candidates")) {
			o.candidates = true;
		} else {
			fprintf(stderr, "cuatomic bench: %s takes no argument '%s'\n", name,
				argv[i]);
			exit(2);
		}
	}
	return o;
}

/* ---- clocks ---- */

static struct nvmlDevice_st *nvml_handle;

static inline void read_clock(struct bench_machine_state *state)
{
	char text[NVML_REASONS_SIZE];
	unsigned mhz;
	uint64_t reasons;

	if (nvml_sm_clock(nvml_handle, &mhz))
		state->sm_mhz = mhz;
	if (nvml_memory_clock(nvml_handle, &mhz))
		state->memory_mhz = mhz;
	state->knows_throttle = nvml_throttle_reasons(nvml_handle, &reasons);
	if (state->knows_throttle) {
		nvml_throttle_text(reasons, text);
		snprintf(state->throttle, sizeof(state->throttle), "%.*s",
			 (int)sizeof(state->throttle) - 1, text);
	}
}

/* Records the clocks of each row, if NVML knows the first device. */
static inline void watch_clock(void)
{
	char pci_id[NVML_PCI_SIZE];

	if (!cudaDeviceGetPCIBusId(pci_id, sizeof(pci_id), 0) && nvml_device(pci_id, &nvml_handle))
		bench_env()->clock = read_clock;
}

/* Prints the head of the output. Ends the program if there is no device. */
static inline cudaDeviceProp print_head(const char *name)
{
	cudaDeviceProp device;
	char driver[64] = "unknown", versions[512];
	int driver_cuda = 0, runtime = 0;
	FILE *f;

	if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
		fprintf(stderr, "cuatomic bench: %s: no CUDA device\n", name);
		exit(1);
	}
	f = fopen("/sys/module/nvidia/version", "r");
	if (f) {
		if (fscanf(f, "%63s", driver) != 1)
			strcpy(driver, "unknown");
		fclose(f);
	}
	need(!cudaDriverGetVersion(&driver_cuda) && !cudaRuntimeGetVersion(&runtime), "versions");
	snprintf(
		versions, sizeof(versions),
		"driver %s (CUDA %d.%d), runtime %d.%d, nvcc %d.%d.%d, architectures %s, cuatomic %s",
		driver, driver_cuda / 1000, driver_cuda % 1000 / 10, runtime / 1000,
		runtime % 1000 / 10, __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
		__CUDACC_VER_BUILD__, CUA_CUDA_ARCHS, CUA_VERSION_STRING);
	watch_clock();
	bench_program(name);
	bench_head("device", device.name);
	bench_head("driver", driver);
	bench_head("versions", versions);
	printf("%s: %s, compute capability %d.%d, %d multiprocessors\n", name, device.name,
	       device.major, device.minor, device.multiProcessorCount);
	printf("%s\n", versions);
	printf("medians of up to %d runs; every result is checked\n", STATS_SAMPLES);
	return device;
}

/*
 * Times calls of `operations` operations each, after `ignored` warm-up calls: `runs` calls if these
 * are fewer than BENCH_RUNS, otherwise as many as bench_stats_plan() asks for. The figure is in
 * millions of operations a second. before() and after() run around each call and are not timed.
 */
template <typename Before, typename Call, typename After>
static struct figure measure_runs(double operations, int ignored, int runs, Before before,
				  Call call, After after)
{
	cudaEvent_t start, end;
	struct figure f;
	struct stats s;
	bool more = true;

	need(!cudaEventCreate(&start) && !cudaEventCreate(&end), "cudaEventCreate");
	stats_begin_warm(&s, bench_runs_plan(runs), stats_now());
	for (int i = -ignored; more; i++) {
		float ms;

		before();
		cudaEventRecord(start);
		call();
		cudaEventRecord(end);
		/* the events of a launch that failed succeed */
		need(!cudaGetLastError() && !cudaEventSynchronize(end) &&
			     !cudaEventElapsedTime(&ms, start, end),
		     "a run");
		after();
		if (i >= 0)
			more = stats_add(&s, operations / ((double)ms * 1e3), stats_now());
	}
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	f = table_stats(&s);
	if (bench_env()->clock)
		bench_env()->clock(&f.state);
	return f;
}

template <typename Before, typename Call, typename After>
static struct figure measure(double operations, Before before, Call call, After after)
{
	return measure_runs(operations, 1, BENCH_RUNS, before, call, after);
}

/* The textbook lock. */

struct textbook_lock {
	int word;
};

__device__ static inline void textbook_acquire(struct textbook_lock *l)
{
	while (atomicCAS(&l->word, 0, 1) != 0)
		;
	__threadfence();
}

__device__ static inline void textbook_release(struct textbook_lock *l)
{
	__threadfence();
	atomicExch(&l->word, 0);
}

static __host__ __device__ inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

#endif /* CUATOMIC_BENCH_H */
