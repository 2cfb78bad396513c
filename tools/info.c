/* SPDX-License-Identifier: MIT */
/* `cuatomic info`: the version, the backends of this build and the devices of this machine. */
#include <stdio.h>

#include "tools.h"

/* Prints a row for each type and a column for each operation; a letter or number names the path. */
static void print_paths(struct cua_context *ctx)
{
	static const enum cua_type types[] = {
		CUA_I8,   CUA_U8,  CUA_I16, CUA_U16,         CUA_I32,
		CUA_U32,  CUA_I64, CUA_U64, CUA_U128,        CUA_F16,
		CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64,
	};
	static const char *const ops[] = {"load", "store", "exch", "cas", "add", "sub",
					  "mul",  "div",   "min",  "max", "and", "or",
					  "xor",  "nand",  "inc",  "dec"};
	static const char *const paths[] = {".", "N", "8", "16", "32", "64", "128", "W", "S"};

	printf("    atomics:    ");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		printf("%6s", ops[i]);
	putchar('\n');
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		printf("    %-12s", cua_type_name(types[t]));
		for (int op = CUA_OP_LOAD; op <= CUA_OP_DEC; op++) {
			enum cua_atomic_path path;
			enum cua_status status =
				cua_atomic_path_query(ctx, types[t], (enum cua_atomic_op)op, &path);

			printf("%6s", status || (size_t)path >= sizeof(paths) / sizeof(paths[0])
					      ? "?"
					      : paths[path]);
		}
		putchar('\n');
	}
	printf("    N native; 8 to 128: compare-and-swap loop of that many bits; W: on the word around it;\n"
	       "    S: only under a lock stripe; .: no such operation\n");
}

/*
 * Returns "ready" or the reason why this build cannot use the device. Only the creation of a
 * context proves it. *kept is the new context, or NULL on failure.
 */
static const char *readiness(enum cua_backend backend, int device, unsigned *threads,
			     struct cua_context **kept)
{
	const char *problem;
	struct cua_context *ctx;
	enum cua_status status;

	*kept = NULL;
	status = cua_context_create(backend, device, &ctx);
	if (status) {
		problem = cua_device_problem(backend, device);
		return *problem ? problem : cua_strerror(status);
	}
	if (threads)
		*threads = cua_context_threads(ctx);
	*kept = ctx;
	return "ready";
}

static const char *or_unknown(const char *text)
{
	return *text ? text : "unknown";
}

/* CUDA encodes version 12.4 as 12040. */
static const char *cuda_text(char text[32], int version)
{
	snprintf(text, 32, "%d.%d", version / 1000, version % 1000 / 10);
	return text;
}

static void print_cpu(void)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	enum cua_status status = cua_device_query(CUA_BACKEND_CPU, 0, &info);
	char memory[TOOL_BYTES_TEXT];
	unsigned threads = 0;
	struct cua_context *ctx;
	const char *ready = readiness(CUA_BACKEND_CPU, 0, &threads, &ctx);

	printf("\nCPU backend\n");
	if (status) {
		printf("  %s\n", cua_strerror(status));
		cua_context_destroy(ctx);
		return;
	}
	printf("  device 0: %s\n", info.name);
	printf("    threads:            %u\n", threads);
	printf("    memory:             %s\n", tool_bytes_text(memory, info.memory_bytes));
	printf("    state:              %s\n", ready);
	if (ctx)
		print_paths(ctx);
	cua_context_destroy(ctx);
}

static void print_cuda(void)
{
	const char *architectures = cua_cuda_architectures();
	enum cua_status status;
	int n = 0;

	printf("\nCUDA backend\n");
	if (*architectures)
		printf("  architectures built:  %s\n", architectures);
	status = cua_device_count(CUA_BACKEND_CUDA, &n);
	if (status)
		printf("  %s\n", cua_strerror(status));
	else if (!n)
		printf("  no device: %s\n", cua_device_problem(CUA_BACKEND_CUDA, 0));
	for (int device = 0; device < n; device++) {
		struct cua_device_info info = CUA_DEVICE_INFO_INIT;
		char memory[TOOL_BYTES_TEXT], driver[32], runtime[32];
		struct cua_context *ctx;

		status = cua_device_query(CUA_BACKEND_CUDA, device, &info);
		if (status) {
			printf("  device %d: %s\n", device, cua_strerror(status));
			continue;
		}
		printf("  device %d: %s\n", device, info.name);
		printf("    compute capability: %d.%d\n", info.compute_major, info.compute_minor);
		printf("    multiprocessors:    %u\n", (unsigned)info.processors);
		printf("    memory:             %s\n", tool_bytes_text(memory, info.memory_bytes));
		printf("    PCI id:             %s\n", or_unknown(info.pci_bus_id));
		printf("    UUID:               %s\n", or_unknown(info.uuid));
		printf("    driver:             %s, for CUDA up to %s\n", or_unknown(info.driver),
		       cuda_text(driver, info.driver_cuda));
		printf("    CUDA runtime:       %s\n", cuda_text(runtime, info.runtime_cuda));
		printf("    state:              %s\n",
		       readiness(CUA_BACKEND_CUDA, device, NULL, &ctx));
		if (ctx)
			print_paths(ctx);
		cua_context_destroy(ctx);
	}
}

int tool_info(int argc, char **argv)
{
	if (argc > 1)
		return tool_usage_error("info takes no argument '%s'", argv[1]);
	printf("cuatomic %s\n", cua_version());
	print_cpu();
	print_cuda();
	return TOOL_OK;
}
