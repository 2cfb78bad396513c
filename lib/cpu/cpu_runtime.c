/* SPDX-License-Identifier: MIT */
/* The CPU backend's runtime: host memory, no stream, nothing to wait for. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "backend/driver.h"
#include "backend/internal.h"

/*
 * The allocations of this backend in order of address, so that a pointer into the middle of an
 * allocation finds its base and size. The table exists only while there are allocations.
 */
static struct {
	pthread_mutex_t mutex;
	struct {
		char *base;
		size_t size;
		size_t mapped; /* bytes to unmap; 0: allocated by malloc */
	} * blocks;
	size_t n, room;
	pthread_once_t atfork_once;
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER, .atfork_once = PTHREAD_ONCE_INIT};

/* A child of fork must not find the mutex held by a thread that the child does not have. */
static void before_fork(void)
{
	pthread_mutex_lock(&registry.mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&registry.mutex);
}

static void install_atfork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* The number of blocks whose base is at or below p. Called with the mutex held. */
static size_t blocks_up_to(const void *p)
{
	size_t low = 0, high = registry.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)registry.blocks[middle].base <= (uintptr_t)p)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int registry_add(char *base, size_t size, size_t mapped)
{
	size_t at;
	int ok = 0;

	pthread_once(&registry.atfork_once, install_atfork);
	pthread_mutex_lock(&registry.mutex);
	if (registry.n == registry.room) {
		size_t room = registry.room ? registry.room * 2 : 64;
		void *more = realloc(registry.blocks, room * sizeof(*registry.blocks));

		if (!more)
			goto out;
		registry.blocks = more;
		registry.room = room;
	}
	at = blocks_up_to(base);
	memmove(registry.blocks + at + 1, registry.blocks + at,
		(registry.n - at) * sizeof(*registry.blocks));
	registry.blocks[at].base = base;
	registry.blocks[at].size = size;
	registry.blocks[at].mapped = mapped;
	registry.n++;
	ok = 1;
out:
	pthread_mutex_unlock(&registry.mutex);
	return ok;
}

static int registry_remove(const void *base, size_t *mapped)
{
	size_t at;
	int ok = 0;

	pthread_mutex_lock(&registry.mutex);
	at = blocks_up_to(base);
	if (at && registry.blocks[at - 1].base == base) {
		*mapped = registry.blocks[at - 1].mapped;
		registry.n--;
		memmove(registry.blocks + at - 1, registry.blocks + at,
			(registry.n - at + 1) * sizeof(*registry.blocks));
		ok = 1;
	}
	/* the library may be unloaded after this, and then nothing could free the table */
	if (ok && !registry.n) {
		free(registry.blocks);
		registry.blocks = NULL;
		registry.room = 0;
	}
	pthread_mutex_unlock(&registry.mutex);
	return ok;
}

static void registry_find(const void *p, struct cua__location *where)
{
	size_t at;

	pthread_mutex_lock(&registry.mutex);
	at = blocks_up_to(p);
	if (at && (size_t)((const char *)p - registry.blocks[at - 1].base) <
			  registry.blocks[at - 1].size) {
		where->base = registry.blocks[at - 1].base;
		where->size = registry.blocks[at - 1].size;
	}
	pthread_mutex_unlock(&registry.mutex);
}

static enum cua_status cpu_device_count(int *count)
{
	*count = 1;
	return CUA_OK;
}

/* The last level of the first CPU in Linux's sysfs, or 0. sysconf adds up the caches of a package. */
static uint64_t sysfs_cache_bytes(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < 8; i++) {
		char path[80];
		unsigned long long kib;
		FILE *f;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%lluK", &kib) == 1)
			bytes = kib * 1024;
		fclose(f);
	}
	return bytes;
}

/* The last level that the system reports. */
static uint64_t cache_bytes(void)
{
	static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
				     _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL1_DCACHE_SIZE};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		const long bytes = sysconf(levels[i]);

		if (bytes > 0)
			return (uint64_t)bytes;
	}
	return 0;
}

static enum cua_status cpu_device_query(int device, struct cua_device_info *info)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	FILE *f;
	char line[256];

	if (device)
		return CUA_ERROR_NO_DEVICE;
	snprintf(info->name, sizeof(info->name), "CPU");
	info->processors = cpus < 1 ? 1 : (uint32_t)cpus;
	info->memory_bytes = pages < 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	info->cache_bytes = sysfs_cache_bytes();
	if (!info->cache_bytes)
		info->cache_bytes = cache_bytes();
	f = fopen("/proc/cpuinfo", "re");
	if (!f)
		return CUA_OK;
	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (value && !strncmp(line, "model name", 10)) {
			value[strcspn(value, "\n")] = 0;
			value += 1 + (value[1] == ' ');
			snprintf(info->name, sizeof(info->name), "%.*s",
				 (int)sizeof(info->name) - 1, value);
			break;
		}
	}
	fclose(f);
	return CUA_OK;
}

static enum cua_status cpu_device_peer_query(int device, int peer, struct cua_peer_info *info)
{
	if (device || peer)
		return CUA_ERROR_NO_DEVICE;
	info->access = 1;
	info->native_atomics = 1;
	info->array_access = 1;
	return CUA_OK;
}

static const char *cpu_device_problem(int device)
{
	return device ? "no such device" : "";
}

static enum cua_status cpu_open(struct cua_context *ctx, int device)
{
	(void)device;
	ctx->processors = (int)ctx->threads;
	return CUA_OK;
}

static void cpu_close(struct cua_context *ctx)
{
	(void)ctx;
}

static int cpu_enter(struct cua_context *ctx)
{
	(void)ctx;
	return 0;
}

static void cpu_leave(struct cua_context *ctx, int previous)
{
	(void)ctx;
	(void)previous;
}

static enum cua_status cpu_ok(struct cua_context *ctx)
{
	(void)ctx;
	return CUA_OK;
}

static enum cua_status cpu_locate(struct cua_context *ctx, const void *p,
				  struct cua__location *where)
{
	struct cua__driver_pointer known;

	(void)ctx;
	memset(where, 0, sizeof(*where));
	where->memory_kind = CUA__MEMORY_KIND_BACKEND;
	where->owner = CUA_BACKEND_CPU;
	where->device = -1;
	where->address = p;
	where->host_access = 1;
	if (cua__driver_query(p, &known)) {
		where->base = known.base;
		where->size = known.size;
		if (known.on_device) {
			where->owner = CUA_BACKEND_CUDA;
			where->device = known.device;
			if (!known.managed) {
				where->memory_kind = CUA__MEMORY_KIND_OTHER;
				where->host_access = 0;
			}
			return CUA_OK;
		}
	}
	registry_find(p, where);
	return CUA_OK;
}

static void cpu_extent(const void *p, struct cua__location *where)
{
	(void)p;
	(void)where;
}

/* Tables are accessed at random. With small pages most accesses would also miss the TLB. */
#define HUGE_PAGE ((size_t)2 << 20)

static enum cua_status cpu_allocate(struct cua_context *ctx, size_t bytes, void **p)
{
	void *base;
	int huge = bytes >= 8 * HUGE_PAGE;

	(void)ctx;
	if (bytes > SIZE_MAX / 2)
		return CUA_ERROR_SIZE;
	if (posix_memalign(&base, huge ? HUGE_PAGE : 256, bytes ? bytes : 1))
		return CUA_ERROR_NO_MEMORY;
	if (huge)
		madvise(base, bytes, MADV_HUGEPAGE); /* only a hint; small pages are also correct */
	if (!registry_add(base, bytes ? bytes : 1, 0)) {
		free(base);
		return CUA_ERROR_NO_MEMORY;
	}
	*p = base;
	return CUA_OK;
}

/*
 * Large allocations are fresh pages of the kernel: they are zeroed, and cost nothing until they are
 * accessed.
 */
static enum cua_status cpu_allocate_zeros(struct cua_context *ctx, size_t bytes, void **p)
{
	size_t before, mapped, room;
	enum cua_status status;
	char *base;

	if (bytes < 8 * HUGE_PAGE || bytes > SIZE_MAX / 2) {
		status = cpu_allocate(ctx, bytes, p);
		if (!status)
			memset(*p, 0, bytes);
		return status;
	}
	mapped = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	room = mapped + HUGE_PAGE;
	base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return CUA_ERROR_NO_MEMORY;
	/* keep only whole huge pages */
	before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
	if (before)
		munmap(base, before);
	base += before;
	munmap(base + mapped, HUGE_PAGE - before);
	madvise(base, mapped, MADV_HUGEPAGE);
	if (!registry_add(base, bytes, mapped)) {
		munmap(base, mapped);
		return CUA_ERROR_NO_MEMORY;
	}
	*p = base;
	return CUA_OK;
}

/* With huge pages, each scattered byte that is written would occupy a huge page. */
static void cpu_expect_few(struct cua_context *ctx, void *p, size_t bytes)
{
	(void)ctx;
	if (bytes >= 8 * HUGE_PAGE)
		madvise(p, bytes, MADV_NOHUGEPAGE);
}

static enum cua_status cpu_release(struct cua_context *ctx, void *p)
{
	size_t mapped = 0;

	(void)ctx;
	if (!p)
		return CUA_OK;
	if (!registry_remove(p, &mapped))
		return CUA_ERROR_MEMORY_KIND;
	if (mapped)
		munmap(p, mapped);
	else
		free(p);
	return CUA_OK;
}

static enum cua_status cpu_copy(struct cua_context *ctx, void *dst, const void *src, size_t bytes)
{
	(void)ctx;
	memcpy(dst, src, bytes);
	return CUA_OK;
}

static enum cua_status cpu_set_bytes(struct cua_context *ctx, void *dst, int byte, size_t bytes)
{
	(void)ctx;
	memset(dst, byte, bytes);
	return CUA_OK;
}

static enum cua_status cpu_memory_info(struct cua_context *ctx, uint64_t *free_bytes,
				       uint64_t *total_bytes)
{
	unsigned long long available = 0, total = 0;
	struct sysinfo si;
	char line[128];
	FILE *f;

	(void)ctx;
	f = fopen("/proc/meminfo", "re");
	if (f) {
		while (fgets(line, sizeof(line), f)) {
			/* a line of another name changes neither variable */
			if (sscanf(line, "MemTotal: %llu kB", &total) != 1)
				(void)sscanf(line, "MemAvailable: %llu kB", &available);
		}
		fclose(f);
	}
	if (total && available) {
		*free_bytes = (uint64_t)available * 1024;
		*total_bytes = (uint64_t)total * 1024;
		return CUA_OK;
	}
	if (sysinfo(&si))
		return CUA_ERROR_SYSTEM;
	*free_bytes = ((uint64_t)si.freeram + si.bufferram) * si.mem_unit;
	*total_bytes = (uint64_t)si.totalram * si.mem_unit;
	return CUA_OK;
}

static enum cua_status cpu_query(struct cua_context *ctx, int *done)
{
	(void)ctx;
	*done = 1;
	return CUA_OK;
}

const struct cua__runtime cua__cpu_runtime = {
	.kind = CUA_BACKEND_CPU,
	.device_count = cpu_device_count,
	.device_query = cpu_device_query,
	.device_peer_query = cpu_device_peer_query,
	.device_problem = cpu_device_problem,
	.open = cpu_open,
	.close = cpu_close,
	.enter = cpu_enter,
	.leave = cpu_leave,
	.may_wait = cpu_ok,
	.synchronize = cpu_ok,
	.locate = cpu_locate,
	.extent = cpu_extent,
	.allocate = cpu_allocate,
	.allocate_system = cpu_allocate,
	.release = cpu_release,
	.allocate_mapped = cpu_allocate,
	.release_mapped = cpu_release,
	.copy = cpu_copy,
	.set_bytes = cpu_set_bytes,
	.memory_info = cpu_memory_info,
	.allocate_zeros = cpu_allocate_zeros,
	.expect_few = cpu_expect_few,
	.query = cpu_query,
};
