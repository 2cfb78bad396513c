/* SPDX-License-Identifier: MIT */
/* `cuatomic info`: the version, the build, the backends and the devices of this machine. */
#include "config.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "info.h"

const enum cua_type info_types[INFO_TYPES] = {
	CUA_I8,   CUA_U8,  CUA_I16,  CUA_U16, CUA_I32, CUA_U32,         CUA_I64,         CUA_U64,
	CUA_U128, CUA_F16, CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64,
};

const char *const info_features[] = {
#if CUA_HAVE_CUDA
	"CUDA",
#endif
#ifdef HAVE_JANSSON
	"jansson",
#endif
#ifdef HAVE_LIBCUCKOO
	"libcuckoo",
#endif
#ifdef HAVE_TBB
	"TBB",
#endif
	NULL};

/* ---- collection ---- */

static void info_collect_paths(struct cua_context *ctx, struct info_paths *paths)
{
	paths->is_known = 1;
	for (int t = 0; t < INFO_TYPES; t++) {
		for (int op = 0; op < INFO_OPS; op++) {
			enum cua_atomic_path path = CUA_PATH_NONE;
			const enum cua_status status = cua_atomic_path_query(
				ctx, info_types[t], (enum cua_atomic_op)(CUA_OP_LOAD + op), &path);

			paths->path[t][op] =
				status ? INFO_PATH_UNKNOWN : (unsigned char)(unsigned)path;
		}
	}
}

/* Only the creation of a context proves that this build can use a device. */
static void info_use(enum cua_backend backend, int device, struct info_device *d)
{
	struct cua_context *ctx;
	const enum cua_status status = cua_context_create(backend, device, &ctx);

	d->problem = "";
	if (status) {
		d->problem = cua_device_problem(backend, device);
		if (!*d->problem)
			d->problem = cua_strerror(status);
		return;
	}
	d->threads = cua_context_threads(ctx);
	info_collect_paths(ctx, &d->paths);
	cua_context_destroy(ctx);
}

static int info_nvml_value(bool (*read)(struct nvmlDevice_st *, unsigned *),
			   struct nvmlDevice_st *device)
{
	unsigned value = 0;

	return read(device, &value) ? (int)value : -1;
}

static void info_collect_nvml(struct info_device *d)
{
	struct nvmlDevice_st *device = NULL;
	char driver[NVML_DRIVER_SIZE];

	if (*d->info.pci_bus_id)
		nvml_device(d->info.pci_bus_id, &device);
	d->pcie_generation = info_nvml_value(nvml_pcie_generation, device);
	d->pcie_generation_max = info_nvml_value(nvml_pcie_generation_max, device);
	d->pcie_width = info_nvml_value(nvml_pcie_width, device);
	d->pcie_width_max = info_nvml_value(nvml_pcie_width_max, device);
	d->links_known = nvml_links(device, &d->links);
	if (!*d->info.driver && nvml_driver(driver))
		snprintf(d->info.driver, sizeof(d->info.driver), "%.*s",
			 (int)sizeof(d->info.driver) - 1, driver);
}

static void info_collect_device(enum cua_backend backend, int device, struct info_device *d)
{
	*d = (struct info_device){.info = CUA_DEVICE_INFO_INIT,
				  .problem = "",
				  .pcie_generation = -1,
				  .pcie_generation_max = -1,
				  .pcie_width = -1,
				  .pcie_width_max = -1};
	d->status = cua_device_query(backend, device, &d->info);
	if (d->status)
		return;
	info_use(backend, device, d);
	if (backend == CUA_BACKEND_CUDA)
		info_collect_nvml(d);
}

static void info_collect_peer(const struct info *all, int device, int peer, struct info_peer *p)
{
	const struct info_device *a = &all->cuda[device], *b = &all->cuda[peer];

	*p = (struct info_peer){.info = CUA_PEER_INFO_INIT, .links = -1};
	p->status = cua_device_peer_query(CUA_BACKEND_CUDA, device, peer, &p->info);
	if (!a->status && !b->status && a->links_known && b->links_known)
		p->links = (int)nvml_links_between(&a->links, &b->links, b->info.pci_bus_id);
}

static void info_collect(struct info *all)
{
	int n = 0;

	*all = (struct info){.nccl_problem = cua_group_nccl_problem(), .cuda_problem = ""};
	info_collect_device(CUA_BACKEND_CPU, 0, &all->cpu);
	all->cuda_status = cua_device_count(CUA_BACKEND_CUDA, &n);
	if (all->cuda_status) {
		all->cuda_problem = cua_strerror(all->cuda_status);
		return;
	}
	if (!n) {
		all->cuda_problem = cua_device_problem(CUA_BACKEND_CUDA, 0);
		return;
	}
	all->n = n;
	all->cuda = tool_alloc((size_t)n * sizeof(*all->cuda));
	all->peers = tool_alloc((size_t)n * (size_t)n * sizeof(*all->peers));
	for (int i = 0; i < n; i++)
		info_collect_device(CUA_BACKEND_CUDA, i, &all->cuda[i]);
	for (int i = 0; i < n * n; i++)
		info_collect_peer(all, i / n, i % n, &all->peers[i]);
}

uint64_t info_bandwidth(const struct cua_device_info *info)
{
	return (uint64_t)info->memory_clock_mhz * 1000000 * 2 * (info->memory_bus_bits / 8);
}

/* ---- text ---- */

/* A line about a device; an empty value is unknown. */
__attribute__((format(printf, 2, 3))) static void info_line(const char *name, const char *format,
							    ...)
{
	char value[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	printf("    %-20s%s\n", name, *value ? value : "unknown");
}

/* Formats a number with its unit, or "unknown" for 0. */
static const char *info_amount(char text[32], uint64_t value, const char *unit)
{
	if (!value)
		return "unknown";
	snprintf(text, 32, "%llu %s", (unsigned long long)value, unit);
	return text;
}

static const char *info_bytes(char text[TOOL_BYTES_TEXT], uint64_t bytes)
{
	return bytes ? tool_bytes_text(text, bytes) : "unknown";
}

/* CUDA encodes version 12.4 as 12040. */
static const char *info_cuda_version(char text[32], int version)
{
	if (!version)
		return "unknown";
	snprintf(text, 32, "%d.%d", version / 1000, version % 1000 / 10);
	return text;
}

static const char *info_yes(int value)
{
	return value ? "yes" : "no";
}

/* Prints a row for each type and a column for each operation; a letter or number names the path. */
static void info_print_paths(const struct info_paths *all)
{
	static const char *const ops[INFO_OPS] = {"load", "store", "exch", "cas", "add", "sub",
						  "mul",  "div",   "min",  "max", "and", "or",
						  "xor",  "nand",  "inc",  "dec"};
	static const char *const paths[] = {".", "N", "8", "16", "32", "64", "128", "W", "S"};

	if (!all->is_known)
		return;
	printf("    atomics:    ");
	for (int op = 0; op < INFO_OPS; op++)
		printf("%6s", ops[op]);
	putchar('\n');
	for (int t = 0; t < INFO_TYPES; t++) {
		printf("    %-12s", cua_type_name(info_types[t]));
		for (int op = 0; op < INFO_OPS; op++) {
			const size_t path = all->path[t][op];

			printf("%6s", path < sizeof(paths) / sizeof(paths[0]) ? paths[path] : "?");
		}
		putchar('\n');
	}
	printf("    N native; 8 to 128: compare-and-swap loop of that many bits; W: on the word around it;\n"
	       "    S: only under a lock stripe; .: no such operation\n");
}

static void info_print_build(const struct info *all)
{
	const char *architectures = cua_cuda_architectures();
	char version[32];

	printf("\nBuild\n");
	printf("  architectures built:  %s\n", *architectures ? architectures : "none");
	if (all->n)
		printf("  CUDA runtime:         %s\n",
		       info_cuda_version(version, all->cuda[0].info.runtime_cuda));
	printf("  features:             ");
	for (int i = 0; info_features[i]; i++)
		printf("%s%s", i ? ", " : "", info_features[i]);
	printf("%s\n", info_features[0] ? "" : "none");
	printf("  NCCL:                 %s\n", *all->nccl_problem ? all->nccl_problem : "usable");
}

static void info_print_cpu(const struct info *all, int atomics)
{
	const struct info_device *d = &all->cpu;
	char text[TOOL_BYTES_TEXT];

	printf("\nCPU backend\n");
	if (d->status) {
		printf("  %s\n", cua_strerror(d->status));
		return;
	}
	printf("  device 0: %s\n", d->info.name);
	info_line("threads:", "%u", d->threads);
	info_line("memory:", "%s", info_bytes(text, d->info.memory_bytes));
	info_line("last cache:", "%s", info_bytes(text, d->info.cache_bytes));
	info_line("state:", "%s", *d->problem ? d->problem : "ready");
	if (atomics)
		info_print_paths(&d->paths);
}

static void info_print_memory(const struct cua_device_info *info)
{
	char bits[32], rate[32], sm[32], memory[32], size[TOOL_BYTES_TEXT], more[TOOL_BYTES_TEXT];

	info_line("maximum clocks:", "SM %s, memory %s", info_amount(sm, info->clock_mhz, "MHz"),
		  info_amount(memory, info->memory_clock_mhz, "MHz"));
	info_line("memory:", "%s", info_bytes(size, info->memory_bytes));
	info_line("memory bus:", "%s, bandwidth %s",
		  info_amount(bits, info->memory_bus_bits, "bits"),
		  info_amount(rate, info_bandwidth(info) / 1000000000, "GB/s"));
	info_line("L2 cache:", "%s", info_bytes(size, info->cache_bytes));
	info_line("shared memory:", "%s a block, %s a multiprocessor",
		  info_bytes(size, info->block_shared_bytes),
		  info_bytes(more, info->processor_shared_bytes));
	info_line("ECC:", "%s", info->ecc ? "on" : "off");
}

static void info_print_links(const struct info_device *d)
{
	const struct nvml_links *links = &d->links;

	if (d->pcie_generation < 0 || d->pcie_generation_max < 0 || d->pcie_width < 0 ||
	    d->pcie_width_max < 0)
		info_line("PCIe:", "unknown");
	else
		info_line("PCIe:", "generation %d of %d, %d of %d lanes", d->pcie_generation,
			  d->pcie_generation_max, d->pcie_width, d->pcie_width_max);
	if (!d->links_known)
		info_line("NVLink:", "unknown");
	else if (!links->n)
		info_line("NVLink:", "none");
	else if (!links->link[0].version)
		info_line("NVLink:", "%u links", links->n);
	else
		info_line("NVLink:", "%u links of version %u.%u", links->n,
			  links->link[0].version / 10, links->link[0].version % 10);
}

static void info_print_features(const struct cua_device_info *info)
{
	info_line("managed memory:", "%s, concurrent access: %s", info_yes(info->managed_memory),
		  info_yes(info->concurrent_managed_access));
	info_line("host atomics:", "%s", info->host_native_atomics ? "native" : "not native");
	info_line("cooperative launch:", "%s", info_yes(info->cooperative_launch));
	info_line("memory pools:", "%s", info_yes(info->memory_pools));
}

static void info_print_gpu(int device, const struct info_device *d, int atomics)
{
	const struct cua_device_info *info = &d->info;
	char version[32];

	if (d->status) {
		printf("  device %d: %s\n", device, cua_strerror(d->status));
		return;
	}
	printf("  device %d: %s\n", device, info->name);
	info_line("compute capability:", "%d.%d", info->compute_major, info->compute_minor);
	info_line("multiprocessors:", "%u", (unsigned)info->processors);
	info_print_memory(info);
	info_line("PCI id:", "%s", info->pci_bus_id);
	info_line("UUID:", "%s", info->uuid);
	info_line("driver:", "%s, for CUDA up to %s", *info->driver ? info->driver : "unknown",
		  info_cuda_version(version, info->driver_cuda));
	info_line("CUDA runtime:", "%s", info_cuda_version(version, info->runtime_cuda));
	info_print_links(d);
	info_print_features(info);
	info_line("state:", "%s", *d->problem ? d->problem : "ready");
	if (atomics)
		info_print_paths(&d->paths);
}

static const char *info_peer_text(char text[24], const struct info_peer *p)
{
	const char *atomics = p->info.native_atomics ? "+A" : "";

	if (p->status)
		return "?";
	if (!p->info.access)
		return "none";
	if (p->links > 0)
		snprintf(text, 24, "NV%d%s", p->links, atomics);
	else if (p->links == 0)
		snprintf(text, 24, "PCIe%s", atomics);
	else
		snprintf(text, 24, "rank%d%s", p->info.performance_rank, atomics);
	return text;
}

static void info_print_peers(const struct info *all)
{
	char text[24];

	if (all->n < 2)
		return;
	printf("  access of a device (row) to the memory of another (column)\n    %6s", "");
	for (int i = 0; i < all->n; i++)
		printf(" %7d", i);
	putchar('\n');
	for (int i = 0; i < all->n; i++) {
		printf("    %6d", i);
		for (int k = 0; k < all->n; k++)
			printf(" %7s",
			       i == k ? "-" : info_peer_text(text, &all->peers[i * all->n + k]));
		putchar('\n');
	}
	printf("    NVn: n NVLinks; PCIe: no NVLink; rankn: NVLinks unknown, rank n of the links (0 the\n"
	       "    fastest); +A: atomics are atomic with the peer's; none: no access\n");
}

static void info_print(const struct info *all, int atomics)
{
	printf("cuatomic %s\n", cua_version());
	info_print_build(all);
	info_print_cpu(all, atomics);
	printf("\nCUDA backend\n");
	if (!all->n)
		printf(all->cuda_status ? "  %s\n" : "  no device: %s\n", all->cuda_problem);
	for (int device = 0; device < all->n; device++)
		info_print_gpu(device, &all->cuda[device], atomics);
	info_print_peers(all);
}

/* ---- the command ---- */

enum { INFO_ATOMICS = 256, INFO_JSON };

struct info_options {
	int atomics, json;
};

static int info_set(int option, const char *value, void *data)
{
	struct info_options *o = data;

	(void)value;
	if (option == INFO_ATOMICS)
		o->atomics = 1;
	else
		o->json = 1;
	return TOOL_OK;
}

int tool_info(int argc, char **argv)
{
	static const struct option names[] = {
		{"atomics", no_argument, NULL, INFO_ATOMICS},
		{"json", no_argument, NULL, INFO_JSON},
		{NULL, 0, NULL, 0},
	};
	struct info_options own = {0};
	const struct tool_more more = {names, info_set, &own};
	struct tool_options shared;
	struct info all;

	if (tool_parse_options(argc, argv, ":", &shared, &more))
		return TOOL_USAGE;
	if (optind < argc)
		return tool_usage_error("info takes no argument '%s'", argv[optind]);
	info_collect(&all);
	if (own.json)
		info_write_json(stdout, &all);
	else
		info_print(&all, own.atomics);
	free(all.cuda);
	free(all.peers);
	return TOOL_OK;
}
