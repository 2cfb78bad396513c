/* SPDX-License-Identifier: MIT */
/* The output of `cuatomic info --json` (see doc/info-schema.json). */
#include <stdio.h>

#include "info.h"
#include "json.h"

/* Each function writes a member and the comma after it. */
static void info_json_text(FILE *f, const char *name, const char *text)
{
	json_member(f, name, text && *text ? text : NULL);
	fputs(", ", f);
}

/* A negative number is null. */
static void info_json_number(FILE *f, const char *name, double value)
{
	json_number(f, name, value);
	fputs(", ", f);
}

/* 0 is null. */
static void info_json_amount(FILE *f, const char *name, uint64_t value)
{
	info_json_number(f, name, value ? (double)value : -1);
}

/* A negative value is null. */
static void info_json_bool(FILE *f, const char *name, int value)
{
	json_text(f, name);
	fprintf(f, ": %s, ", value < 0 ? "null" : value ? "true" : "false");
}

/* CUDA encodes version 12.4 as 12040. */
static void info_json_version(FILE *f, const char *name, int version)
{
	char text[32] = "";

	if (version)
		snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
	info_json_text(f, name, text);
}

/* The last member of a device: an array of the operations that exist. */
static void info_json_atomics(FILE *f, const struct info_paths *all)
{
	static const char *const ops[INFO_OPS] = {"load", "store", "exchange", "compare_exchange",
						  "add",  "sub",   "mul",      "div",
						  "min",  "max",   "and",      "or",
						  "xor",  "nand",  "inc",      "dec"};
	static const char *const paths[] = {"none",   "native",  "cas_8", "cas_16", "cas_32",
					    "cas_64", "cas_128", "word",  "stripe"};
	int n = 0;

	fputs("\n      \"atomics\": [", f);
	for (int t = 0; all->is_known && t < INFO_TYPES; t++) {
		for (int op = 0; op < INFO_OPS; op++) {
			const size_t path = all->path[t][op];

			if (path == CUA_PATH_NONE)
				continue;
			fputs(n++ ? ",\n        {" : "\n        {", f);
			info_json_text(f, "type", cua_type_name(info_types[t]));
			info_json_text(f, "operation", ops[op]);
			json_member(f, "path",
				    path < sizeof(paths) / sizeof(paths[0]) ? paths[path] : NULL);
			putc('}', f);
		}
	}
	fputs(n ? "\n      ]" : "]", f);
}

static void info_json_build(FILE *f, const struct info *all)
{
	fputs("  \"build\": {", f);
	info_json_text(f, "cuda_architectures", cua_cuda_architectures());
	info_json_version(f, "cuda_runtime", all->n ? all->cuda[0].info.runtime_cuda : 0);
	fputs("\"features\": [", f);
	for (int i = 0; info_features[i]; i++) {
		fputs(i ? ", " : "", f);
		json_text(f, info_features[i]);
	}
	fputs("]},\n  \"nccl\": {", f);
	info_json_bool(f, "usable", !*all->nccl_problem);
	json_member(f, "problem", *all->nccl_problem ? all->nccl_problem : NULL);
	fputs("},\n", f);
}

/* The reason why a device cannot be described or used, or NULL. */
static const char *info_json_problem(const struct info_device *d)
{
	if (d->status)
		return cua_strerror(d->status);
	return *d->problem ? d->problem : NULL;
}

static void info_json_cpu(FILE *f, const struct info_device *d)
{
	fputs("  \"cpu\": {\n      ", f);
	info_json_text(f, "name", d->info.name);
	info_json_text(f, "problem", info_json_problem(d));
	info_json_amount(f, "logical_cpus", d->info.processors);
	info_json_amount(f, "threads", d->threads);
	info_json_amount(f, "memory_bytes", d->info.memory_bytes);
	info_json_amount(f, "cache_bytes", d->info.cache_bytes);
	info_json_atomics(f, &d->paths);
	fputs("\n  },\n", f);
}

static void info_json_hardware(FILE *f, const struct cua_device_info *info)
{
	info_json_amount(f, "multiprocessors", info->processors);
	info_json_amount(f, "sm_clock_mhz", info->clock_mhz);
	info_json_amount(f, "memory_clock_mhz", info->memory_clock_mhz);
	fputs("\n      ", f);
	info_json_amount(f, "memory_bytes", info->memory_bytes);
	info_json_amount(f, "memory_bus_bits", info->memory_bus_bits);
	info_json_amount(f, "memory_bytes_per_second", info_bandwidth(info));
	fputs("\n      ", f);
	info_json_amount(f, "l2_bytes", info->cache_bytes);
	info_json_amount(f, "shared_block_bytes", info->block_shared_bytes);
	info_json_amount(f, "shared_multiprocessor_bytes", info->processor_shared_bytes);
}

static void info_json_features(FILE *f, const struct info_device *d)
{
	const struct cua_device_info *info = &d->info;
	const int known = !d->status;

	fputs("\n      ", f);
	info_json_bool(f, "ecc", known ? info->ecc : -1);
	info_json_bool(f, "managed_memory", known ? info->managed_memory : -1);
	info_json_bool(f, "concurrent_managed_access",
		       known ? info->concurrent_managed_access : -1);
	fputs("\n      ", f);
	info_json_bool(f, "host_native_atomics", known ? info->host_native_atomics : -1);
	info_json_bool(f, "cooperative_launch", known ? info->cooperative_launch : -1);
	info_json_bool(f, "memory_pools", known ? info->memory_pools : -1);
}

/* The version of the first link is that of all. */
static void info_json_links(FILE *f, const struct info_device *d)
{
	const struct nvml_links *links = &d->links;
	char version[32] = "";

	if (d->links_known && links->n && links->link[0].version)
		snprintf(version, sizeof(version), "%u.%u", links->link[0].version / 10,
			 links->link[0].version % 10);
	fputs("\n      ", f);
	info_json_number(f, "pcie_generation", d->pcie_generation);
	info_json_number(f, "pcie_generation_max", d->pcie_generation_max);
	info_json_number(f, "pcie_lanes", d->pcie_width);
	info_json_number(f, "pcie_lanes_max", d->pcie_width_max);
	fputs("\n      ", f);
	info_json_number(f, "nvlinks", d->links_known ? (double)links->n : -1);
	info_json_text(f, "nvlink_version", version);
}

static void info_json_gpu(FILE *f, int device, const struct info_device *d)
{
	const struct cua_device_info *info = &d->info;
	char capability[32] = "";

	if (!d->status)
		snprintf(capability, sizeof(capability), "%d.%d", info->compute_major,
			 info->compute_minor);
	fputs("{\n      ", f);
	info_json_number(f, "device", device);
	info_json_text(f, "name", info->name);
	info_json_text(f, "problem", info_json_problem(d));
	fputs("\n      ", f);
	info_json_text(f, "pci_id", info->pci_bus_id);
	info_json_text(f, "uuid", info->uuid);
	info_json_text(f, "driver", info->driver);
	info_json_version(f, "driver_cuda", info->driver_cuda);
	fputs("\n      ", f);
	info_json_text(f, "compute_capability", capability);
	info_json_hardware(f, info);
	info_json_features(f, d);
	info_json_links(f, d);
	info_json_atomics(f, &d->paths);
	fputs("\n    }", f);
}

static void info_json_peers(FILE *f, const struct info *all)
{
	int n = 0;

	for (int i = 0; i < all->n * all->n; i++) {
		const struct info_peer *p = &all->peers[i];
		const int device = i / all->n, peer = i % all->n;

		if (device == peer || p->status)
			continue;
		fputs(n++ ? ",\n    {" : "\n    {", f);
		info_json_number(f, "device", device);
		info_json_number(f, "peer", peer);
		info_json_bool(f, "access", p->info.access);
		info_json_bool(f, "native_atomics", p->info.native_atomics);
		info_json_bool(f, "array_access", p->info.array_access);
		info_json_number(f, "performance_rank", p->info.performance_rank);
		json_number(f, "nvlinks", p->links);
		putc('}', f);
	}
	fputs(n ? "\n  ]" : "]", f);
}

void info_write_json(FILE *f, const struct info *all)
{
	fputs("{\n  \"schema\": 1, ", f);
	json_member(f, "version", cua_version());
	fputs(",\n", f);
	info_json_build(f, all);
	info_json_cpu(f, &all->cpu);
	fputs("  \"cuda\": {", f);
	info_json_text(f, "problem", all->cuda_problem);
	fputs("\"devices\": [", f);
	for (int i = 0; i < all->n; i++) {
		fputs(i ? ", " : "", f);
		info_json_gpu(f, i, &all->cuda[i]);
	}
	fputs("],\n  \"peers\": [", f);
	info_json_peers(f, all);
	fputs("}\n}\n", f);
}
