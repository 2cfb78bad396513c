/* SPDX-License-Identifier: MIT */
/*
 * Clocks, throttling, ECC mode and links of a GPU, from NVML, in C and in CUDA C.
 *
 * libnvidia-ml.so.1 is loaded at run time, so no NVIDIA header is needed. CUATOMIC_NVML names another
 * file instead. Every function returns whether the value is known, and sets its last argument only
 * then. Without the library, without one of its functions, or for the device NULL, nothing is known.
 *
 * The declarations below follow the NVML API reference. NVML's enumerations are int here, and its
 * handles are pointers to an incomplete struct. Both have the same size in the ABI.
 */
#ifndef CUATOMIC_BENCH_NVML_H
#define CUATOMIC_BENCH_NVML_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NVML_ENV_LIBRARY "CUATOMIC_NVML"

/* nvmlReturn_t */
enum { NVML_RESULT_SUCCESS = 0, NVML_RESULT_INVALID_ARGUMENT = 2, NVML_RESULT_NOT_SUPPORTED = 3 };
/* nvmlClockType_t */
enum { NVML_TYPE_SM = 1, NVML_TYPE_MEMORY = 2 };
/* nvmlTemperatureSensors_t: the sensor of the die */
enum { NVML_SENSOR_GPU = 0 };
/* nvmlEnableState_t */
enum { NVML_STATE_ENABLED = 1 };
/* nvmlIntNvLinkDeviceType_t */
enum { NVML_REMOTE_SWITCH = 2 };
/* NVML_NVLINK_MAX_LINKS; a link number past a device's last is an invalid argument */
enum { NVML_LINKS_MAX = 36 };

/* Bits of nvmlDeviceGetCurrentClocksThrottleReasons. */
enum {
	NVML_REASON_IDLE = 0x1,
	NVML_REASON_APPLICATION_CLOCKS = 0x2,
	NVML_REASON_POWER_CAP = 0x4,
	NVML_REASON_HARDWARE = 0x8,
	NVML_REASON_SYNC_BOOST = 0x10,
	NVML_REASON_SOFTWARE_THERMAL = 0x20,
	NVML_REASON_HARDWARE_THERMAL = 0x40,
	NVML_REASON_POWER_BRAKE = 0x80,
	NVML_REASON_DISPLAY_CLOCKS = 0x100
};
#define NVML_REASONS_HARMLESS                                                                      \
	(NVML_REASON_IDLE | NVML_REASON_APPLICATION_CLOCKS | NVML_REASON_DISPLAY_CLOCKS)

/* Room for the text of all reasons, for a PCI bus id, and for the version of a driver. */
enum { NVML_REASONS_SIZE = 96, NVML_PCI_SIZE = 32, NVML_DRIVER_SIZE = 80 };

/* The target of nvmlDevice_t. */
struct nvmlDevice_st;

/* nvmlPciInfo_t of the functions with the suffix _v2 and later */
struct nvml_pci_info {
	char legacy_id[16];
	unsigned domain, bus, device, ids, subsystem;
	char id[32];
};

/* The functions; each pointer is NULL if the library lacks the function. */
struct nvml_functions {
	int (*init)(void);
	int (*driver)(char *version, unsigned size);
	int (*handle)(const char *pci_id, struct nvmlDevice_st **device);
	int (*clock)(struct nvmlDevice_st *device, int type, unsigned *mhz);
	int (*clock_max)(struct nvmlDevice_st *device, int type, unsigned *mhz);
	int (*throttle_reasons)(struct nvmlDevice_st *device, unsigned long long *reasons);
	int (*event_reasons)(struct nvmlDevice_st *device, unsigned long long *reasons);
	int (*ecc)(struct nvmlDevice_st *device, int *current, int *pending);
	int (*pcie_generation)(struct nvmlDevice_st *device, unsigned *generation);
	int (*pcie_generation_max)(struct nvmlDevice_st *device, unsigned *generation);
	int (*pcie_width)(struct nvmlDevice_st *device, unsigned *lanes);
	int (*pcie_width_max)(struct nvmlDevice_st *device, unsigned *lanes);
	int (*link_state)(struct nvmlDevice_st *device, unsigned link, int *is_active);
	int (*link_version)(struct nvmlDevice_st *device, unsigned link, unsigned *version);
	int (*link_remote)(struct nvmlDevice_st *device, unsigned link, struct nvml_pci_info *pci);
	int (*link_remote_type)(struct nvmlDevice_st *device, unsigned link, int *type);
	int (*temperature)(struct nvmlDevice_st *device, int sensor, unsigned *celsius);
	int (*power)(struct nvmlDevice_st *device, unsigned *milliwatts);
};

static inline void nvml_resolve(void *library, struct nvml_functions *f)
{
	static const struct {
		const char *name;
		size_t offset;
	} list[] = {
		{"nvmlInit_v2", offsetof(struct nvml_functions, init)},
		{"nvmlSystemGetDriverVersion", offsetof(struct nvml_functions, driver)},
		{"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml_functions, handle)},
		{"nvmlDeviceGetClockInfo", offsetof(struct nvml_functions, clock)},
		{"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml_functions, clock_max)},
		{"nvmlDeviceGetCurrentClocksThrottleReasons",
		 offsetof(struct nvml_functions, throttle_reasons)},
		{"nvmlDeviceGetCurrentClocksEventReasons",
		 offsetof(struct nvml_functions, event_reasons)},
		{"nvmlDeviceGetEccMode", offsetof(struct nvml_functions, ecc)},
		{"nvmlDeviceGetCurrPcieLinkGeneration",
		 offsetof(struct nvml_functions, pcie_generation)},
		{"nvmlDeviceGetMaxPcieLinkGeneration",
		 offsetof(struct nvml_functions, pcie_generation_max)},
		{"nvmlDeviceGetCurrPcieLinkWidth", offsetof(struct nvml_functions, pcie_width)},
		{"nvmlDeviceGetMaxPcieLinkWidth", offsetof(struct nvml_functions, pcie_width_max)},
		{"nvmlDeviceGetNvLinkState", offsetof(struct nvml_functions, link_state)},
		{"nvmlDeviceGetNvLinkVersion", offsetof(struct nvml_functions, link_version)},
		{"nvmlDeviceGetNvLinkRemotePciInfo_v2",
		 offsetof(struct nvml_functions, link_remote)},
		{"nvmlDeviceGetNvLinkRemoteDeviceType",
		 offsetof(struct nvml_functions, link_remote_type)},
		{"nvmlDeviceGetTemperature", offsetof(struct nvml_functions, temperature)},
		{"nvmlDeviceGetPowerUsage", offsetof(struct nvml_functions, power)},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		void *symbol = dlsym(library, list[i].name);

		memcpy((char *)f + list[i].offset, &symbol, sizeof(symbol));
	}
}

/*
 * The functions of the library, which the first call loads and initializes; all pointers are NULL
 * without it. The library stays loaded. The first call must return before a second thread calls.
 */
static inline const struct nvml_functions *nvml_open(void)
{
	static struct nvml_functions functions;
	static bool is_open;
	const char *named = getenv(NVML_ENV_LIBRARY);
	void *library;

	if (is_open)
		return &functions;
	is_open = true;
	library = dlopen(named && *named ? named : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library)
		nvml_resolve(library, &functions);
	if (!functions.init || functions.init() != NVML_RESULT_SUCCESS) {
		memset(&functions, 0, sizeof(functions));
		if (library)
			dlclose(library);
	}
	return &functions;
}

/* The version of the driver, such as "580.65.06". */
static inline bool nvml_driver(char version[NVML_DRIVER_SIZE])
{
	const struct nvml_functions *f = nvml_open();
	char got[NVML_DRIVER_SIZE] = "";

	if (!f->driver || f->driver(got, sizeof(got)) != NVML_RESULT_SUCCESS)
		return false;
	snprintf(version, NVML_DRIVER_SIZE, "%s", got);
	return true;
}

/* The device with a PCI bus id such as "0000:1b:00.0". */
static inline bool nvml_device(const char *pci_id, struct nvmlDevice_st **device)
{
	const struct nvml_functions *f = nvml_open();
	struct nvmlDevice_st *got = NULL;

	if (!f->handle || f->handle(pci_id, &got) != NVML_RESULT_SUCCESS)
		return false;
	*device = got;
	return true;
}

/* ---- clocks ---- */

static inline bool nvml_typed_value(int (*read)(struct nvmlDevice_st *, int, unsigned *),
				    struct nvmlDevice_st *device, int type, unsigned *value)
{
	unsigned got = 0;

	if (!device || !read || read(device, type, &got) != NVML_RESULT_SUCCESS)
		return false;
	*value = got;
	return true;
}

static inline bool nvml_sm_clock(struct nvmlDevice_st *device, unsigned *mhz)
{
	return nvml_typed_value(nvml_open()->clock, device, NVML_TYPE_SM, mhz);
}

static inline bool nvml_memory_clock(struct nvmlDevice_st *device, unsigned *mhz)
{
	return nvml_typed_value(nvml_open()->clock, device, NVML_TYPE_MEMORY, mhz);
}

static inline bool nvml_sm_clock_max(struct nvmlDevice_st *device, unsigned *mhz)
{
	return nvml_typed_value(nvml_open()->clock_max, device, NVML_TYPE_SM, mhz);
}

/* The bits NVML_REASON_ that hold now; several samples can be combined by OR. */
static inline bool nvml_throttle_reasons(struct nvmlDevice_st *device, uint64_t *reasons)
{
	const struct nvml_functions *f = nvml_open();
	unsigned long long got = 0;
	int (*read)(struct nvmlDevice_st *, unsigned long long *) =
		f->throttle_reasons ? f->throttle_reasons : f->event_reasons;

	if (!device || !read || read(device, &got) != NVML_RESULT_SUCCESS)
		return false;
	*reasons = got;
	return true;
}

/*
 * The reasons as text, joined by " + "; "" without throttling. An idle GPU, and clocks that a user has
 * set, are no throttling. A bit that this table lacks is "other".
 */
static inline void nvml_throttle_text(uint64_t reasons, char text[NVML_REASONS_SIZE])
{
	static const struct {
		uint64_t bits;
		const char *text;
	} list[] = {
		{NVML_REASON_POWER_CAP, "power cap"},
		{NVML_REASON_SOFTWARE_THERMAL | NVML_REASON_HARDWARE_THERMAL, "thermal"},
		{NVML_REASON_POWER_BRAKE, "power brake"},
		{NVML_REASON_HARDWARE, "hardware slowdown"},
		{NVML_REASON_SYNC_BOOST, "sync boost"},
	};
	uint64_t rest = reasons & ~(uint64_t)NVML_REASONS_HARMLESS;
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (rest & list[i].bits)
			used += (size_t)snprintf(text + used, NVML_REASONS_SIZE - used, "%s%s",
						 used ? " + " : "", list[i].text);
		rest &= ~list[i].bits;
	}
	if (rest)
		snprintf(text + used, NVML_REASONS_SIZE - used, "%sother", used ? " + " : "");
}

/* ---- ECC, temperature, power ---- */

static inline bool nvml_ecc(struct nvmlDevice_st *device, bool *is_enabled)
{
	const struct nvml_functions *f = nvml_open();
	int current = 0, pending = 0;

	if (!device || !f->ecc || f->ecc(device, &current, &pending) != NVML_RESULT_SUCCESS)
		return false;
	*is_enabled = current == NVML_STATE_ENABLED;
	return true;
}

static inline bool nvml_temperature(struct nvmlDevice_st *device, unsigned *celsius)
{
	return nvml_typed_value(nvml_open()->temperature, device, NVML_SENSOR_GPU, celsius);
}

static inline bool nvml_value(int (*read)(struct nvmlDevice_st *, unsigned *),
			      struct nvmlDevice_st *device, unsigned *value)
{
	unsigned got = 0;

	if (!device || !read || read(device, &got) != NVML_RESULT_SUCCESS)
		return false;
	*value = got;
	return true;
}

static inline bool nvml_power(struct nvmlDevice_st *device, unsigned *milliwatts)
{
	return nvml_value(nvml_open()->power, device, milliwatts);
}

/* ---- PCIe ---- */

static inline bool nvml_pcie_generation(struct nvmlDevice_st *device, unsigned *generation)
{
	return nvml_value(nvml_open()->pcie_generation, device, generation);
}

static inline bool nvml_pcie_generation_max(struct nvmlDevice_st *device, unsigned *generation)
{
	return nvml_value(nvml_open()->pcie_generation_max, device, generation);
}

static inline bool nvml_pcie_width(struct nvmlDevice_st *device, unsigned *lanes)
{
	return nvml_value(nvml_open()->pcie_width, device, lanes);
}

static inline bool nvml_pcie_width_max(struct nvmlDevice_st *device, unsigned *lanes)
{
	return nvml_value(nvml_open()->pcie_width_max, device, lanes);
}

/* ---- NVLink ---- */

struct nvml_link {
	unsigned number;            /* of the link */
	unsigned version;           /* in tenths, such as 40; 0: unknown */
	bool to_switch;             /* the remote device is an NVSwitch */
	char remote[NVML_PCI_SIZE]; /* its PCI bus id, such as "0000:1b:00.0"; "": unknown */
};

struct nvml_links {
	unsigned n; /* active links; elements of the array */
	struct nvml_link link[NVML_LINKS_MAX];
};

/* nvmlNvlinkVersion_t in tenths; 0: unknown */
static inline unsigned nvml_link_version(struct nvmlDevice_st *device, unsigned link)
{
	static const unsigned char tenths[] = {0, 10, 20, 22, 30, 31, 40, 50, 60};
	const struct nvml_functions *f = nvml_open();
	unsigned got = 0;

	if (!f->link_version || f->link_version(device, link, &got) != NVML_RESULT_SUCCESS)
		return 0;
	return got < sizeof(tenths) ? tenths[got] : 0;
}

static inline void nvml_read_link(struct nvmlDevice_st *device, unsigned number,
				  struct nvml_link *link)
{
	const struct nvml_functions *f = nvml_open();
	struct nvml_pci_info pci;
	int type = 0;

	memset(link, 0, sizeof(*link));
	memset(&pci, 0, sizeof(pci));
	link->number = number;
	link->version = nvml_link_version(device, number);
	if (f->link_remote && f->link_remote(device, number, &pci) == NVML_RESULT_SUCCESS)
		snprintf(link->remote, sizeof(link->remote), "%04x:%02x:%02x.0", pci.domain,
			 pci.bus, pci.device);
	if (f->link_remote_type &&
	    f->link_remote_type(device, number, &type) == NVML_RESULT_SUCCESS)
		link->to_switch = type == NVML_REMOTE_SWITCH;
}

/* The active links. A device without NVLink has 0, which is known. */
static inline bool nvml_links(struct nvmlDevice_st *device, struct nvml_links *links)
{
	const struct nvml_functions *f = nvml_open();
	int result = NVML_RESULT_SUCCESS;
	unsigned n = 0;

	if (!device || !f->link_state)
		return false;
	for (unsigned i = 0; i < NVML_LINKS_MAX; i++) {
		int is_active = 0;

		result = f->link_state(device, i, &is_active);
		if (result != NVML_RESULT_SUCCESS)
			break;
		if (is_active == NVML_STATE_ENABLED)
			nvml_read_link(device, i, &links->link[n++]);
	}
	if (result != NVML_RESULT_SUCCESS && result != NVML_RESULT_INVALID_ARGUMENT &&
	    result != NVML_RESULT_NOT_SUPPORTED)
		return false;
	links->n = n;
	return true;
}

/* The links of a device that end at a PCI bus id, or at an NVSwitch if pci_id is NULL. */
static inline unsigned nvml_links_to(const struct nvml_links *links, const char *pci_id)
{
	unsigned n = 0;

	for (unsigned i = 0; i < links->n; i++)
		n += pci_id ? !strcasecmp(links->link[i].remote, pci_id) : links->link[i].to_switch;
	return n;
}

/*
 * The NVLinks between a device and the peer with the PCI bus id: its direct links, or else the
 * smaller number of links of both to NVSwitches.
 */
static inline unsigned nvml_links_between(const struct nvml_links *device,
					  const struct nvml_links *peer, const char *peer_id)
{
	unsigned direct = nvml_links_to(device, peer_id), mine, theirs;

	if (direct)
		return direct;
	mine = nvml_links_to(device, NULL);
	theirs = nvml_links_to(peer, NULL);
	return mine < theirs ? mine : theirs;
}

#endif /* CUATOMIC_BENCH_NVML_H */
