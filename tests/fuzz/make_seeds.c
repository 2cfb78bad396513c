/* SPDX-License-Identifier: MIT */
/*
 * make_seeds FOLDER: writes the binary seeds of load and ops. They are in the source tree. Write
 * them again if the file format of cua_hashmap_save, or the encoding of fuzz_ops, changes.
 */
#include <sys/stat.h>

#include <cuatomic.h>

#include "fuzz.h"

static const enum cua_type types[] = {CUA_U32, CUA_U64, CUA_U128, CUA_NONE};
static const char *const names[] = {"4", "8", "16", "0"};

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(EXIT_FAILURE);
	}
}

static void load_seed(const char *folder, struct cua_context *ctx, int k, int v, uint32_t portable,
		      size_t n, uint64_t capacity)
{
	struct cua_hashmap_options options = {.struct_size = sizeof(options)};
	struct cua_hashmap *map;
	uint64_t keys[256], values[256], state = 7;
	char path[4096];

	/* a fixed hash seed, so that the file is reproducible */
	options.seed = 12345;
	options.portable = portable;
	options.rejects = 3;
	must(!cua_hashmap_create(ctx, &options, types[k], types[v], capacity, &map), "create");
	for (int i = 0; i < 256; i++) {
		keys[i] = fuzz_random(&state);
		values[i] = fuzz_random(&state);
	}
	/* the reserved keys of the layout: their pairs have slots beside the table */
	memset(keys, 0, 16);
	memset(keys + 2, 0, 16);
	keys[2] = 1;
	if (k == 0)
		((uint32_t *)keys)[1] = 1;
	if (k == 1)
		keys[1] = 1;
	must(!cua_hashmap_insert_n(map, n, keys, values, NULL), "insert");
	snprintf(path, sizeof(path), "%s/load/%s-%s%s-%zu", folder, names[k], names[v],
		 portable ? "-portable" : "", n);
	must(!cua_hashmap_save(map, path), path);
	must(!cua_hashmap_destroy(map), "destroy");
}

int main(int argc, char **argv)
{
	struct cua_context *ctx;
	char path[4096];

	must(argc == 2, "make_seeds FOLDER");
	mkdir(argv[1], 0777);
	snprintf(path, sizeof(path), "%s/load", argv[1]);
	mkdir(path, 0777);
	must(!cua_context_create(CUA_BACKEND_CPU, 0, &ctx), "context");
	for (int k = 0; k < 3; k++)
		for (int v = 0; v < 4; v++)
			for (uint32_t portable = 0; portable < 2; portable++)
				load_seed(argv[1], ctx, k, v, portable, 5, 8);
	load_seed(argv[1], ctx, 1, 1, 0, 0, 1);
	load_seed(argv[1], ctx, 0, 0, 0, 100, 100);
	load_seed(argv[1], ctx, 2, 2, 1, 100, 300);
	cua_context_destroy(ctx);

	snprintf(path, sizeof(path), "%s/ops", argv[1]);
	mkdir(path, 0777);
	for (int kind = 0; kind < 16; kind++) {
		uint64_t state = (uint64_t)kind;
		FILE *f;

		snprintf(path, sizeof(path), "%s/ops/%02d", argv[1], kind);
		f = fopen(path, "wb");
		must(f != NULL, path);
		/* the first byte chooses the container, see fuzz_ops.c */
		fputc(kind, f);
		for (int i = 0; i < 200; i++)
			fputc((int)(fuzz_random(&state) & 0xff), f);
		must(!fclose(f), path);
	}
	return 0;
}
