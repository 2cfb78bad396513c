/* SPDX-License-Identifier: MIT */
/*
 * For check_nvml.sh: prints the values of each device of the arguments, "-" for an unknown value, and
 * the links between the first two devices. Compiles as C and as C++.
 */
#include "bench_nvml.h"

static void print_number(const char *name, bool is_known, unsigned value)
{
	if (is_known)
		printf(" %s %u", name, value);
	else
		printf(" %s -", name);
}

static void print_links(struct nvmlDevice_st *device, struct nvml_links *links)
{
	links->n = 0;
	if (!nvml_links(device, links)) {
		printf(" links -\n");
		return;
	}
	printf(" links %u", links->n);
	if (links->n) {
		const struct nvml_link *last = &links->link[links->n - 1];

		printf(" (%u: %u, %s%s)", last->number, last->version,
		       *last->remote ? last->remote : "-", last->to_switch ? " switch" : "");
	}
	printf("\n");
}

static void print_device(const char *id, struct nvml_links *links)
{
	struct nvmlDevice_st *device = NULL;
	char text[NVML_REASONS_SIZE];
	uint64_t reasons = 0;
	unsigned value = 0;
	bool is_known = nvml_device(id, &device), has_ecc = false;

	printf("%s%s:", id, is_known ? "" : " unknown");
	/* the left operand sets the value */
#define PRINT(call) is_known = nvml_##call(device, &value), print_number(#call, is_known, value)
	PRINT(sm_clock);
	PRINT(memory_clock);
	PRINT(sm_clock_max);
	PRINT(temperature);
	PRINT(power);
	PRINT(pcie_generation);
	PRINT(pcie_generation_max);
	PRINT(pcie_width);
	PRINT(pcie_width_max);
	is_known = nvml_ecc(device, &has_ecc);
	print_number("ecc", is_known, has_ecc);
	if (nvml_throttle_reasons(device, &reasons)) {
		nvml_throttle_text(reasons, text);
		printf(" [%s]", text);
	} else {
		printf(" [-]");
	}
	print_links(device, links);
}

int main(int argc, char **argv)
{
	static struct nvml_links links[8];
	char driver[NVML_DRIVER_SIZE];

	printf("driver %s\n", nvml_driver(driver) ? driver : "-");
	for (int i = 1; i < argc && i <= 8; i++)
		print_device(argv[i], &links[i - 1]);
	if (argc > 2)
		printf("between %u\n", nvml_links_between(&links[0], &links[1], argv[2]));
	return 0;
}
