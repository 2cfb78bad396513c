/* SPDX-License-Identifier: MIT */
/*
 * Loaded hash maps: the options of the hash, and forged files that cost the reader time or memory.
 */
#include "hashmap_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)4 << 20) /* bytes that load reads at a time */

/* ---- options of the hash ---- */

/* A loaded map has the hash of the saved map; the file does not contain the secret. */
START_TEST(hash_options)
{
	struct cua_hashmap_options o = {
		.struct_size = sizeof(o), .hash = CUA_HASHMAP_HASH_KEYED, .max_probes = 48};
	const uint64_t secret[2] = {0x1122334455667788, 0x99aabbccddeeff01};
	struct cua_hashmap *map, *loaded;
	struct cua_hashmap_view view;
	char bytes[HEADER_BYTES + 50 * 8];
	int fd;

	o.seed = secret[0];
	o.seed_high = secret[1];
	map = map_of(fixture.ctx, 50, &o);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	fd = open("a", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	close(fd);
	for (size_t i = 0; i + 8 <= sizeof(bytes); i++)
		ck_assert(memcmp(bytes + i, &secret[0], 8) && memcmp(bytes + i, &secret[1], 8));
	ck_assert_cua(cua_hashmap_load(fixture.ctx, NULL, "a", &loaded));
	ck_assert_cua(cua_hashmap_get_view(loaded, &view));
	ck_assert_uint_eq(view.hash, CUA_HASHMAP_HASH_KEYED);
	ck_assert_uint_eq(view.max_probes, 48);
	ck_assert_uint_ne(view.seed_high, secret[1]);
	ck_assert_cua(cua_hashmap_destroy(loaded));
	ck_assert_uint_eq(size_of_file("a"), 50);
	ck_assert_int_eq(unlink("a"), 0);
	ck_assert_cua(cua_hashmap_destroy(map));
}
END_TEST

/* ---- files that cost the reader time or memory ---- */

/* The checksum of the file format, over whole words. */
static uint64_t add_up(uint64_t sum, const void *bytes, size_t n)
{
	uint64_t word;

	for (size_t i = 0; i < n; i += 8) {
		memcpy(&word, (const char *)bytes + i, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

/* Overwrites the header of a saved file with these numbers. */
static void forge_header(const char *path, uint64_t count, uint64_t slots, uint64_t pairs_sum)
{
	char header[HEADER_BYTES];
	uint64_t sum;
	int fd = open(path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, header, HEADER_BYTES, 0), HEADER_BYTES);
	memcpy(header + 24, &count, 8);
	memcpy(header + 32, &slots, 8);
	memcpy(header + 72, &pairs_sum, 8);
	sum = add_up(1, header, 80);
	memcpy(header + 80, &sum, 8);
	ck_assert_int_eq(pwrite(fd, header, HEADER_BYTES, 0), HEADER_BYTES);
	close(fd);
}

/* The same with 4 + 4 bytes a pair, extended by holes to `size`. */
static void forge(const char *path, uint64_t count, uint64_t slots, uint64_t pairs_sum, off_t size)
{
	forge_header(path, count, slots, pairs_sum);
	if (truncate(path, HEADER_BYTES) || truncate(path, size))
		ck_abort_msg("%s: truncate to %lld: %s", path, (long long)size, strerror(errno));
}

static long peak_kib(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/*
 * The same key again and again, in holes and on the disk. load detects it after the first block,
 * with little memory.
 */
START_TEST(equal_keys)
{
	struct cua_hashmap *none = NULL;
	const uint64_t all = (uint64_t)8 << 30, some = 3 * BLOCK_BYTES;
	char *pairs = test_malloc(some);
	long before;
	int fd;

	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	before = peak_kib();
	forge("a", all / 8, all / 8, 0, (off_t)(HEADER_BYTES + all));
	watch_on();
	if (cua_hashmap_load(fixture.ctx, NULL, "a", &none) == CUA_ERROR_NO_MEMORY)
		printf("no memory for a map of 8 GiB: the file was not read\n");
	else
		ck_assert_status(cua_hashmap_load(fixture.ctx, NULL, "a", &none),
				 CUA_ERROR_CORRUPT);
	watch.on = 0;
	ck_assert_uint_ge(watch.read, HEADER_BYTES);
	ck_assert_uint_le(watch.read, 2 * (HEADER_BYTES + BLOCK_BYTES));
	ck_assert_int_lt(peak_kib() - before, 1 << 20);

	/* with a valid checksum */
	for (uint64_t i = 0; i < some; i += 8)
		memcpy(pairs + i, "key.val.", 8);
	forge("a", some / 8, some / 8, add_up(0, pairs, some), HEADER_BYTES);
	fd = open("a", O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, pairs, some), (ssize_t)some);
	close(fd);
	watch_on();
	ck_assert_status(cua_hashmap_load(fixture.ctx, NULL, "a", &none), CUA_ERROR_CORRUPT);
	watch.on = 0;
	ck_assert_uint_ge(watch.read, HEADER_BYTES + BLOCK_BYTES);
	ck_assert_uint_le(watch.read, HEADER_BYTES + BLOCK_BYTES);
	ck_assert_ptr_null(none);
	free(pairs);
	ck_assert_int_eq(unlink("a"), 0);
}
END_TEST

/*
 * A header alone, of a large map. load allocates no memory for unwritten slots, and no more than
 * the limit.
 */
START_TEST(large_header)
{
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .max_bytes = 1 << 20};
	struct cua_hashmap *loaded = NULL;
	const uint64_t slots = 512 * 7 << 17;
	uint64_t n = 0, size = 1;
	enum cua_status status;
	long before;

	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	/* 4 GiB, then more than the address space */
	for (int i = 0; i < 2; i++) {
		forge("a", 0, i ? (uint64_t)1 << 60 : slots, 0, HEADER_BYTES);
		ck_assert_status(cua_hashmap_load(fixture.ctx, &o, "a", &loaded), CUA_ERROR_SIZE);
		ck_assert_ptr_null(loaded);
	}
	/* load checks the size of the file first */
	forge("a", slots, slots, 0, HEADER_BYTES);
	ck_assert_status(cua_hashmap_load(fixture.ctx, &o, "a", &loaded), CUA_ERROR_CORRUPT);
	forge("a", 0, slots, 0, HEADER_BYTES);
	before = peak_kib();
	status = cua_hashmap_load(fixture.ctx, NULL, "a", &loaded);
	ck_assert_int_lt(peak_kib() - before, 256 << 10);
	if (status == CUA_ERROR_NO_MEMORY) {
		printf("no memory for a map of 4 GiB\n");
	} else {
		ck_assert_cua(status);
		ck_assert_cua(cua_hashmap_capacity(loaded, &n));
		ck_assert_uint_eq(n, slots);
		ck_assert_cua(cua_hashmap_size(loaded, &size));
		ck_assert_uint_eq(size, 0);
		ck_assert_cua(cua_hashmap_destroy(loaded));
	}
	/* a sufficient limit */
	forge("a", 0, 512 * 7, 0, HEADER_BYTES);
	ck_assert_cua(cua_hashmap_load(fixture.ctx, &o, "a", &loaded));
	ck_assert_cua(cua_hashmap_destroy(loaded));
	ck_assert_int_eq(unlink("a"), 0);
}
END_TEST

/* Few pairs far apart in a large map. Each pair costs a page, not a huge page. */
START_TEST(few_pairs)
{
	struct cua_hashmap *map = map_of(fixture.ctx, 500, NULL), *loaded = NULL;
	uint64_t pairs_sum, size = 0;
	enum cua_status status;
	long before;
	int fd;

	ck_assert_cua(cua_hashmap_save(map, "a"));
	fd = open("a", O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &pairs_sum, 8, 72), 8);
	close(fd);
	/* 4 GiB of slots */
	forge_header("a", 500, 512 * 7 << 17, pairs_sum);
	before = peak_kib();
	status = cua_hashmap_load(fixture.ctx, NULL, "a", &loaded);
	if (status == CUA_ERROR_NO_MEMORY) {
		printf("no memory for a map of 4 GiB\n");
	} else {
		ck_assert_cua(status);
		ck_assert_int_lt(peak_kib() - before, 128 << 10);
		ck_assert_cua(cua_hashmap_size(loaded, &size));
		ck_assert_uint_eq(size, 500);
		ck_assert_cua(cua_hashmap_destroy(loaded));
	}
	ck_assert_int_eq(unlink("a"), 0);
	ck_assert_cua(cua_hashmap_destroy(map));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_load");
	TCase *tcase = files_tcase("hashmap_load");

	tcase_add_test(tcase, hash_options);
	tcase_add_test(tcase, equal_keys);
	tcase_add_test(tcase, large_header);
	tcase_add_test(tcase, few_pairs);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
