/* SPDX-License-Identifier: MIT */
/* Queries to the CUDA driver, without linking to it. */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backend/driver.h"

/*
 * From the CUDA driver API; its header is not needed for a single function. The form for several
 * attributes is used because it does not fail for memory that CUDA does not know.
 */
typedef int (*pointer_get_attributes)(unsigned int n, const int *attributes, void **data,
				      unsigned long long p);

enum {
	ATTRIBUTE_MEMORY_TYPE = 2,
	ATTRIBUTE_IS_MANAGED = 8,
	ATTRIBUTE_DEVICE_ORDINAL = 9,
	ATTRIBUTE_RANGE_START = 11,
	ATTRIBUTE_RANGE_SIZE = 12,
	MEMORY_TYPE_UNKNOWN = 0,
	MEMORY_TYPE_HOST = 1
};

/*
 * The search for the driver, by one thread at a time. A search for a missing library reads files
 * and changes the loader's state. So it is repeated only after something was loaded. It never runs
 * while another thread forks, because the child would inherit that state half changed.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_once_t atfork_once;
	pointer_get_attributes get; /* written once */
	unsigned long long loads;   /* the loader's count of loaded objects at the last search */
} driver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .atfork_once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
	pthread_mutex_lock(&driver.mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&driver.mutex);
}

static void install_atfork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* Reads the count from the first object and stops the iteration. */
static int read_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	(void)size;
	*(unsigned long long *)loads = info->dlpi_adds;
	return 1;
}

static void search(void)
{
	unsigned long long loads = 0;
	pointer_get_attributes get = NULL;
	void *library, *symbol;

	dl_iterate_phdr(read_loads, &loads);
	if (loads && loads == driver.loads)
		return;
	driver.loads = loads;
	library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return;
	symbol = dlsym(library, "cuPointerGetAttributes");
	if (symbol)
		memcpy(&get, &symbol, sizeof(get));
	/*
	 * the handle is never closed: the library must stay loaded as long as its function is
	 * remembered
	 */
	__atomic_store_n(&driver.get, get, __ATOMIC_RELEASE);
}

static pointer_get_attributes find_driver(void)
{
	pointer_get_attributes get = __atomic_load_n(&driver.get, __ATOMIC_ACQUIRE);

	if (get)
		return get;
	pthread_once(&driver.atfork_once, install_atfork);
	pthread_mutex_lock(&driver.mutex);
	if (!driver.get)
		search();
	get = driver.get;
	pthread_mutex_unlock(&driver.mutex);
	return get;
}

int cua__driver_query(const void *p, struct cua__driver_pointer *out)
{
	pointer_get_attributes get = find_driver();
	static const int attributes[] = {ATTRIBUTE_MEMORY_TYPE, ATTRIBUTE_IS_MANAGED,
					 ATTRIBUTE_DEVICE_ORDINAL, ATTRIBUTE_RANGE_START,
					 ATTRIBUTE_RANGE_SIZE};
	unsigned int type = MEMORY_TYPE_UNKNOWN, managed = 0;
	int device = -1;
	unsigned long long start = 0;
	size_t size = 0;
	void *data[] = {&type, &managed, &device, &start, &size};

	if (!get ||
	    get(sizeof(attributes) / sizeof(attributes[0]), attributes, data,
		(unsigned long long)(uintptr_t)p) ||
	    type == MEMORY_TYPE_UNKNOWN)
		return 0;
	if (!start || !size) {
		start = 0;
		size = 0;
	}
	out->on_device = managed || type != MEMORY_TYPE_HOST;
	out->managed = managed != 0;
	out->device = device;
	out->base = (void *)(uintptr_t)start;
	out->size = size;
	return 1;
}

void cua__driver_version(char *text, size_t size)
{
	FILE *f = fopen("/sys/module/nvidia/version", "re");

	text[0] = 0;
	if (!f)
		return;
	if (!fgets(text, (int)size, f))
		text[0] = 0;
	text[strcspn(text, "\n")] = 0;
	fclose(f);
}
