/* SPDX-License-Identifier: MIT */
/*
 * A test loads NVRTC when it runs, so it needs no CUDA header and no CUDA library.
 *
 * Environment:
 *   CUA_NVRTC           the file of libnvrtc; otherwise the usual names and folders are tried
 *   CUA_NVRTC_INCLUDE   folders of headers, separated by colons; otherwise the folders of the
 *                       source and of the build
 */
#ifndef CUATOMIC_TESTS_NVRTC_H
#define CUATOMIC_TESTS_NVRTC_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVRTC_TEXT 4096
#define NVRTC_OPTIONS 16

struct nvrtc_program; /* the target of an nvrtcProgram */

#define NVRTC_CALLS(X)                                                                             \
	X(nvrtcVersion, (int *, int *))                                                            \
	X(nvrtcGetNumSupportedArchs, (int *))                                                      \
	X(nvrtcGetSupportedArchs, (int *))                                                         \
	X(nvrtcCreateProgram, (struct nvrtc_program **, const char *, const char *, int,           \
			       const char *const *, const char *const *))                          \
	X(nvrtcDestroyProgram, (struct nvrtc_program **))                                          \
	X(nvrtcCompileProgram, (struct nvrtc_program *, int, const char *const *))                 \
	X(nvrtcGetProgramLogSize, (struct nvrtc_program *, size_t *))                              \
	X(nvrtcGetProgramLog, (struct nvrtc_program *, char *))                                    \
	X(nvrtcGetCUBINSize, (struct nvrtc_program *, size_t *))                                   \
	X(nvrtcGetCUBIN, (struct nvrtc_program *, char *))

#define NVRTC_POINTER(name, arguments) static int(*name) arguments;
NVRTC_CALLS(NVRTC_POINTER)
#undef NVRTC_POINTER

/* Loads a file. Returns 0 if it has all calls. */
static inline int nvrtc_open_file(const char *file)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	int missing = 0;

	if (!library)
		return -1;
#define NVRTC_LOAD(name, arguments)                                                                \
	*(void **)&name = dlsym(library, #name);                                                   \
	missing += !name;
	NVRTC_CALLS(NVRTC_LOAD)
#undef NVRTC_LOAD
	return missing ? -1 : 0;
}

/* Tries the usual names in a folder; "" is the loader's search. */
static inline int nvrtc_open_folder(const char *folder, const char *below)
{
	static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
	char file[NVRTC_TEXT];

	for (size_t i = 0; folder && i < sizeof(names) / sizeof(*names); i++) {
		snprintf(file, sizeof(file), "%s%s%s", folder, below, names[i]);
		if (!nvrtc_open_file(file))
			return 0;
	}
	return -1;
}

/* Returns 0 if the library is loaded; otherwise prints a line. */
static inline int nvrtc_open(void)
{
	const char *given = getenv("CUA_NVRTC");

	if (given && *given) {
		if (!nvrtc_open_file(given))
			return 0;
		printf("failed: CUA_NVRTC: %s\n", dlerror());
		return -1;
	}
	if (!nvrtc_open_folder("", "") || !nvrtc_open_folder(getenv("CUDA_LIBDIR"), "/") ||
	    !nvrtc_open_folder(getenv("CUDA_HOME"), "/lib64/") ||
	    !nvrtc_open_folder(getenv("CUDA_PATH"), "/lib64/") ||
	    !nvrtc_open_folder("/usr/local/cuda", "/lib64/"))
		return 0;
	printf("skipped: no libnvrtc\n");
	return -1;
}

/* The folders of headers as options of NVRTC. */
struct nvrtc_folders {
	char text[NVRTC_TEXT];
	const char *option[NVRTC_OPTIONS];
	int n;
};

static inline void nvrtc_folders(struct nvrtc_folders *f)
{
	const char *given = getenv("CUA_NVRTC_INCLUDE"), *source = getenv("top_srcdir");
	const char *build = getenv("top_builddir");
	char folders[NVRTC_TEXT / 2], *folder, *rest = NULL;
	size_t used = 0;

	if (given && *given)
		snprintf(folders, sizeof(folders), "%s", given);
	else
		snprintf(folders, sizeof(folders), "%s/include:%s/include:%s/tests",
			 source ? source : "..", build ? build : "..", source ? source : "..");
	f->n = 0;
	for (folder = strtok_r(folders, ":", &rest); folder && f->n < NVRTC_OPTIONS / 2;
	     folder = strtok_r(NULL, ":", &rest)) {
		f->option[f->n++] = f->text + used;
		used += (size_t)snprintf(f->text + used, sizeof(f->text) - used, "-I%s", folder) +
			1;
	}
}

/*
 * Compiles a text for an architecture, "sm_90" or "compute_90", with up to 4 more options, the last
 * of which is NULL. Returns the status of NVRTC. *log and *cubin (NULL for compute_) are the
 * caller's to free. A warning that an architecture is old is no part of the log.
 */
static inline int nvrtc_compile(const char *text, const char *arch, const char *const *more,
				char **log, void **cubin)
{
	struct nvrtc_program *program = NULL;
	struct nvrtc_folders folders;
	char option[64], *line;
	size_t bytes = 0;
	int status;

	nvrtc_folders(&folders);
	snprintf(option, sizeof(option), "-arch=%s", arch);
	folders.option[folders.n++] = option;
	while (more && *more)
		folders.option[folders.n++] = *more++;
	*cubin = NULL;
	if (nvrtcCreateProgram(&program, text, "unit.cu", 0, NULL, NULL))
		abort();
	status = nvrtcCompileProgram(program, folders.n, folders.option);
	nvrtcGetProgramLogSize(program, &bytes);
	*log = calloc(1, bytes + 1);
	nvrtcGetProgramLog(program, *log);
	line = strstr(*log, "nvrtc: warning: Architectures prior to");
	if (line)
		memset(line, ' ', strcspn(line, "\n"));
	if (!status && !strncmp(arch, "sm_", 3) && !nvrtcGetCUBINSize(program, &bytes)) {
		*cubin = calloc(1, bytes + 1);
		nvrtcGetCUBIN(program, *cubin);
	}
	nvrtcDestroyProgram(&program);
	return status;
}

#endif /* CUATOMIC_TESTS_NVRTC_H */
