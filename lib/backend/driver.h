/* SPDX-License-Identifier: MIT */
/*
 * Questions to the CUDA driver that must not load it: the library asks only where the process already
 * uses it, so that a program on the CPU backend never touches CUDA.
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

/* 1 and *out when the driver is loaded and knows the address; else 0. */
int cua__driver_query(const void *p, struct cua__driver_pointer *out);

/* The version of the driver in the kernel ("550.54.15"), or "" where the system does not say. */
void cua__driver_version(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_DRIVER_H */
