/* SPDX-License-Identifier: MIT */
/* `cuatomic info`: the version, the backends of this build and the devices of this machine. */
#include <stdio.h>

#include "tools.h"

/* Whether this build runs there: the one sure way to know is to make a context. */
static const char *readiness(enum cua_backend backend, int device, unsigned *threads)
{
	struct cua_context *ctx;
	enum cua_status status = cua_context_create(backend, device, &ctx);

	if (status == CUA_ERROR_NO_DEVICE)
		return "not usable: this build has no code for it, or the driver is too old";
	if (status)
		return cua_strerror(status);
	if (threads)
		*threads = cua_context_threads(ctx);
	cua_context_destroy(ctx);
	return "ready";
}

static void print_cpu(void)
{
	struct cua_device_info info = {.struct_size = sizeof(info)};
	enum cua_status status = cua_device_query(CUA_BACKEND_CPU, 0, &info);
	char memory[TOOL_BYTES_TEXT];
	unsigned threads = 0;
	const char *ready = readiness(CUA_BACKEND_CPU, 0, &threads);

	printf("\nCPU backend\n");
	if (status) {
		printf("  %s\n", cua_strerror(status));
		return;
	}
	printf("  device 0: %s\n", info.name);
	printf("    threads:            %u\n", threads);
	printf("    memory:             %s\n", tool_bytes_text(memory, info.memory_bytes));
	printf("    state:              %s\n", ready);
}

static void print_cuda(void)
{
	const char *architectures = cua_cuda_architectures();
	enum cua_status status;
	int n = 0;

	printf("\nCUDA backend\n");
	if (!*architectures) {
		printf("  not built\n");
		return;
	}
	printf("  architectures built:  %s\n", architectures);
	status = cua_device_count(CUA_BACKEND_CUDA, &n);
	if (status)
		printf("  %s\n", cua_strerror(status));
	else if (!n)
		printf("  no device\n");
	for (int device = 0; device < n; device++) {
		struct cua_device_info info = {.struct_size = sizeof(info)};
		char memory[TOOL_BYTES_TEXT];

		status = cua_device_query(CUA_BACKEND_CUDA, device, &info);
		if (status) {
			printf("  device %d: %s\n", device, cua_strerror(status));
			continue;
		}
		printf("  device %d: %s\n", device, info.name);
		printf("    compute capability: %d.%d\n", info.compute_major, info.compute_minor);
		printf("    multiprocessors:    %u\n", (unsigned)info.processors);
		printf("    memory:             %s\n", tool_bytes_text(memory, info.memory_bytes));
		printf("    state:              %s\n", readiness(CUA_BACKEND_CUDA, device, NULL));
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
