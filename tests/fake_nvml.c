/* SPDX-License-Identifier: MIT */
/*
 * A double of NVML for tests without a GPU, as a shared library. CUATOMIC_NVML makes the tools load it.
 * It has five devices, and -DnvmlFUNCTION=OTHER leaves out a function:
 *
 * 0000:1b:00.0  ECC, 18 links of version 4.0 to an NVSwitch
 * 0000:1c:00.0  the same, but the last two links are inactive
 * 0000:3d:00.0  no NVLink, no ECC
 * 0000:4a:00.0  4 links of version 3.1 to the next device
 * 0000:4b:00.0  4 links to the device before; reports neither temperature nor power
 *
 * FAKE_NVML_REASONS    the bits of throttling, as a number [0]
 * FAKE_NVML_INIT       the result of nvmlInit_v2 [0]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { GPU = 0, SWITCH = 2, DEVICES = 5 };

struct pci_info {
	char legacy_id[16];
	unsigned domain, bus, device, ids, subsystem;
	char id[32];
};
_Static_assert(sizeof(struct pci_info) == 68, "as in NVML");

struct device {
	unsigned bus, links, active, version; /* version: nvmlNvlinkVersion_t */
	unsigned remote_bus;
	int remote_type, has_ecc, has_sensors;
};

static struct device devices[DEVICES] = {
	{0x1b, 18, 18, 6, 0x05, SWITCH, 1, 1}, {0x1c, 18, 16, 6, 0x05, SWITCH, 1, 1},
	{0x3d, 0, 0, 0, 0, GPU, 0, 1},         {0x4a, 4, 4, 5, 0x4b, GPU, 1, 1},
	{0x4b, 4, 4, 5, 0x4a, GPU, 1, 0},
};
static int is_ready;

static unsigned long long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : 0;
}

int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct device **device);
int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *reasons);
int nvmlDeviceGetEccMode(struct device *device, int *current, int *pending);
int nvmlDeviceGetCurrPcieLinkGeneration(struct device *device, unsigned *generation);
int nvmlDeviceGetMaxPcieLinkGeneration(struct device *device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkWidth(struct device *device, unsigned *lanes);
int nvmlDeviceGetMaxPcieLinkWidth(struct device *device, unsigned *lanes);
int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, int *is_active);
int nvmlDeviceGetNvLinkVersion(struct device *device, unsigned link, unsigned *version);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *device, unsigned link, struct pci_info *pci);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct device *device, unsigned link, int *type);
int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatts);

int nvmlInit_v2(void)
{
	const int result = (int)number("FAKE_NVML_INIT");

	is_ready = result == SUCCESS;
	return result;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
	if (!is_ready)
		return UNINITIALIZED;
	snprintf(version, size, "580.65.06");
	return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct device **device)
{
	char own[16];

	for (int i = 0; is_ready && i < DEVICES; i++) {
		snprintf(own, sizeof(own), "0000:%02x:00.0", devices[i].bus);
		if (!strcasecmp(id, own)) {
			*device = &devices[i];
			return SUCCESS;
		}
	}
	return is_ready ? NOT_FOUND : UNINITIALIZED;
}

/* ---- clocks ---- */

int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz)
{
	if (type != 1 && type != 2)
		return INVALID_ARGUMENT;
	*mhz = type == 1 ? 1000 + device->bus : 2619;
	return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz)
{
	(void)device;
	if (type != 1 && type != 2)
		return INVALID_ARGUMENT;
	*mhz = type == 1 ? 1980 : 2619;
	return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *reasons)
{
	(void)device;
	*reasons = number("FAKE_NVML_REASONS");
	return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *reasons)
{
	(void)device;
	*reasons = number("FAKE_NVML_REASONS");
	return SUCCESS;
}

/* ---- ECC, temperature, power ---- */

int nvmlDeviceGetEccMode(struct device *device, int *current, int *pending)
{
	if (device->bus == 0x3d)
		return NOT_SUPPORTED;
	*current = device->has_ecc;
	*pending = !device->has_ecc;
	return SUCCESS;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
	if (!device->has_sensors)
		return NOT_SUPPORTED;
	if (sensor != 0)
		return INVALID_ARGUMENT;
	*celsius = 41;
	return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatts)
{
	if (!device->has_sensors)
		return NOT_SUPPORTED;
	*milliwatts = 123456;
	return SUCCESS;
}

/* ---- links ---- */

int nvmlDeviceGetCurrPcieLinkGeneration(struct device *device, unsigned *generation)
{
	(void)device;
	*generation = 4;
	return SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct device *device, unsigned *generation)
{
	(void)device;
	*generation = 5;
	return SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(struct device *device, unsigned *lanes)
{
	(void)device;
	*lanes = 8;
	return SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth(struct device *device, unsigned *lanes)
{
	(void)device;
	*lanes = 16;
	return SUCCESS;
}

int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, int *is_active)
{
	if (!device->links)
		return NOT_SUPPORTED;
	if (link >= device->links)
		return INVALID_ARGUMENT;
	*is_active = link < device->active;
	return SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(struct device *device, unsigned link, unsigned *version)
{
	if (link >= device->links)
		return INVALID_ARGUMENT;
	*version = device->version;
	return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *device, unsigned link, struct pci_info *pci)
{
	if (link >= device->links)
		return INVALID_ARGUMENT;
	memset(pci, 0xff, sizeof(*pci));
	pci->domain = 0;
	pci->bus = device->remote_bus;
	pci->device = 0;
	snprintf(pci->id, sizeof(pci->id), "00000000:%02X:00.0", pci->bus);
	return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct device *device, unsigned link, int *type)
{
	if (link >= device->links)
		return INVALID_ARGUMENT;
	*type = device->remote_type;
	return SUCCESS;
}
