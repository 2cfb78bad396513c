/* SPDX-License-Identifier: MIT */
/*
 * Queries to the CUDA driver that must not load it. The library asks only if the process already
 * uses the driver, so a program on the CPU backend never touches CUDA.
 */
#ifndef CUATOMIC_BACKEND_DRIVER_H
#define CUATOMIC_BACKEND_DRIVER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cua__driver_pointer {
	int on_device; /* device memory, managed or not */
	int managed;
	int device;
	void *base;
	size_t size;
};

/* Returns 1 and fills *out if the driver is loaded and knows the address; else returns 0. */
int cua__driver_query(const void *p, struct cua__driver_pointer *out);

/* The version of the driver in the kernel ("550.54.15"), or "" if the system does not report it. */
void cua__driver_version(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_DRIVER_H */
