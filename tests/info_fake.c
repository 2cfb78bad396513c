/* SPDX-License-Identifier: MIT */
/*
 * The command `cuatomic info` with CUDA devices that do not exist, for check_info.sh. They have the
 * PCI ids of tests/fake_nvml.c. The CPU backend runs in their place.
 *
 * FAKE_DEVICES    number of devices [0]. Most facts about device 5 are unknown, and the query of
 *                 device 6 fails
 */
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

enum { DEVICES = 7 };
static const char *const pci_ids[DEVICES] = {"0000:1b:00.0", "0000:1c:00.0", "0000:3d:00.0",
					     "0000:4A:00.0", "0000:4B:00.0", ""};

static int devices(void)
{
	const char *text = getenv("FAKE_DEVICES");

	return text ? atoi(text) : 0;
}

static enum cua_status fake_device_count(enum cua_backend backend, int *n)
{
	(void)backend;
	*n = devices();
	return CUA_OK;
}

static enum cua_status fake_device_query(enum cua_backend backend, int device,
					 struct cua_device_info *info)
{
	if (backend == CUA_BACKEND_CPU)
		return cua_device_query(backend, device, info);
	if (device == 6)
		return CUA_ERROR_CUDA;
	strcpy(info->name, device == 2 ? "Fake \"GPU\"" : "Fake GPU");
	strcpy(info->pci_bus_id, pci_ids[device]);
	info->compute_major = 9;
	info->processors = 132;
	if (device == 5)
		return CUA_OK;
	info->memory_bytes = (uint64_t)141 << 30;
	info->driver_cuda = 13000;
	info->runtime_cuda = 12040;
	strcpy(info->uuid, "00112233-4455-6677-8899-aabbccddeeff");
	info->cache_bytes = (uint64_t)60 << 20;
	info->clock_mhz = 1980;
	info->memory_clock_mhz = 3201;
	info->memory_bus_bits = 6144;
	info->block_shared_bytes = 227 << 10;
	info->processor_shared_bytes = 228 << 10;
	info->ecc = device != 2;
	info->managed_memory = info->cooperative_launch = info->memory_pools = 1;
	info->concurrent_managed_access = device == 0;
	info->host_native_atomics = device == 1;
	return CUA_OK;
}

static enum cua_status fake_device_peer_query(enum cua_backend backend, int device, int peer,
					      struct cua_peer_info *info)
{
	(void)backend;
	if (device == 6 || peer == 6)
		return CUA_ERROR_CUDA;
	/* pairs with NVLink, and some accesses by PCIe */
	info->native_atomics = device + peer == 1 || (device + peer == 7 && device * peer == 12);
	info->access = info->native_atomics || (device == 2 && peer == 0) || device == 5;
	info->array_access = info->access && device != 5;
	info->performance_rank = info->native_atomics ? 0 : device;
	return CUA_OK;
}

static const char *fake_device_problem(enum cua_backend backend, int device)
{
	(void)backend;
	(void)device;
	return devices() ? "" : "no fake device";
}

static enum cua_status fake_context_create(enum cua_backend backend, int device,
					   struct cua_context **ctx)
{
	(void)backend;
	return device == 4 ? CUA_ERROR_NO_MEMORY : cua_context_create(CUA_BACKEND_CPU, 0, ctx);
}

static const char *fake_architectures(void)
{
	return "90 +PTX90";
}

static const char *fake_nccl_problem(void)
{
	return "no fake NCCL";
}

#define cua_device_count fake_device_count
#define cua_device_query fake_device_query
#define cua_device_peer_query fake_device_peer_query
#define cua_device_problem fake_device_problem
#define cua_context_create fake_context_create
#define cua_cuda_architectures fake_architectures
#define cua_group_nccl_problem fake_nccl_problem

#include "../tools/cuatomic.c"
#include "../tools/info.c"
#include "../tools/info_json.c"

int tool_bench(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return TOOL_USAGE;
}

int tool_demo(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return TOOL_USAGE;
}
