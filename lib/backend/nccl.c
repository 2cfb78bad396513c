/* SPDX-License-Identifier: MIT */
/* The search for NCCL. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "backend/nccl.h"

#define LIBRARY "libnccl.so.2"

static const struct {
	const char *name;
	size_t offset; /* of the pointer in struct cua__nccl */
} functions[] = {
	{"ncclGetVersion", offsetof(struct cua__nccl, version)},
	{"ncclCommCount", offsetof(struct cua__nccl, count)},
	{"ncclCommCuDevice", offsetof(struct cua__nccl, device)},
	{"ncclCommUserRank", offsetof(struct cua__nccl, rank)},
	{"ncclCommGetAsyncError", offsetof(struct cua__nccl, async_error)},
	{"ncclCommAbort", offsetof(struct cua__nccl, abort)},
	{"ncclSend", offsetof(struct cua__nccl, send)},
	{"ncclRecv", offsetof(struct cua__nccl, receive)},
	{"ncclAllReduce", offsetof(struct cua__nccl, all_reduce)},
	{"ncclGroupStart", offsetof(struct cua__nccl, group_start)},
	{"ncclGroupEnd", offsetof(struct cua__nccl, group_end)},
};

/*
 * A communicator must only be passed to the copy of NCCL that created it. So a copy that the process
 * has comes first: a loaded library of this name, at any path, or functions of the program itself.
 */
static void *find_library(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

	if (library)
		return library;
	library = dlopen(NULL, RTLD_NOW);
	if (library && dlsym(library, functions[0].name))
		return library;
	if (library)
		dlclose(library);
	return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

/* Returns NULL, or the reason why the library cannot be used. */
static const char *resolve(void *library, struct cua__nccl *nccl)
{
	int version = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(library, functions[i].name);

		if (!symbol)
			return LIBRARY " lacks a function that this library needs";
		memcpy((char *)nccl + functions[i].offset, &symbol, sizeof(symbol));
	}
	if (nccl->version(&version) != CUA__NCCL_OK)
		return LIBRARY " does not report its version";
	if (version < CUA__NCCL_OLDEST)
		return LIBRARY " is older than NCCL 2.14";
	if (version > CUA__NCCL_NEWEST)
		return LIBRARY " is not of NCCL 2";
	return NULL;
}

const struct cua__nccl *cua__nccl_load(const char **problem)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static struct cua__nccl loaded;
	static int is_loaded;
	struct cua__nccl found;
	const struct cua__nccl *result;
	void *library;

	*problem = NULL;
	pthread_mutex_lock(&mutex);
	if (!is_loaded) {
		library = find_library();
		*problem = library ? resolve(library, &found) : LIBRARY " cannot be loaded";
		if (!*problem) {
			/* the library is never closed, because its functions stay in use */
			loaded = found;
			is_loaded = 1;
		} else if (library) {
			dlclose(library);
		}
	}
	result = is_loaded ? &loaded : NULL;
	pthread_mutex_unlock(&mutex);
	return result;
}
