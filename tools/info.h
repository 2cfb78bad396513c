/* SPDX-License-Identifier: MIT */
/* The facts that `cuatomic info` prints as text and as JSON. */
#ifndef CUATOMIC_TOOLS_INFO_H
#define CUATOMIC_TOOLS_INFO_H

#include "../bench/bench_nvml.h"
#include "tools.h"

enum { INFO_TYPES = 15, INFO_OPS = 16 };
extern const enum cua_type info_types[INFO_TYPES];

/* The path of an atomic operation: a value of enum cua_atomic_path, or INFO_PATH_UNKNOWN. */
enum { INFO_PATH_UNKNOWN = 255 };
struct info_paths {
	int is_known;
	unsigned char path[INFO_TYPES][INFO_OPS];
};

struct info_device {
	enum cua_status status; /* of its description; the other members are valid after CUA_OK */
	struct cua_device_info info;
	const char *problem; /* "": this build can use the device */
	unsigned threads;    /* of the CPU */
	struct info_paths paths;
	/* from NVML, for CUDA; -1: unknown */
	int pcie_generation, pcie_generation_max, pcie_width, pcie_width_max;
	int links_known;
	struct nvml_links links;
};

struct info_peer {
	enum cua_status status;
	struct cua_peer_info info;
	int links; /* NVLinks between both; -1: unknown */
};

struct info {
	struct info_device cpu;
	enum cua_status cuda_status; /* of the number of devices */
	int n;                       /* CUDA devices */
	struct info_device *cuda;
	struct info_peer *peers;  /* n rows of n, the device of the row first */
	const char *cuda_problem; /* the reason why there is no device; "": there are devices */
	const char *nccl_problem; /* "": NCCL is usable */
};

/* The bytes per second of memory that transfers twice a clock; 0: unknown. */
uint64_t info_bandwidth(const struct cua_device_info *info);

/* The names of the optional parts that the command was built with; ends with NULL. */
extern const char *const info_features[];

/* See doc/info-schema.json. */
void info_write_json(FILE *f, const struct info *all);

#endif /* CUATOMIC_TOOLS_INFO_H */
