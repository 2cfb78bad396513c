/* SPDX-License-Identifier: MIT */
/*
 * Hash maps saved to files and loaded from them.
 */
#include "hashmap_pairs.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *bytes = test_malloc(1 << 20);

	ck_assert_ptr_nonnull(f);
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(saved)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (int c = 0; c < PAIR_SIZES; c++)
		for (int large = 0; large < 3; large++) {
			struct cua_hashmap_options o = {
				.struct_size = sizeof(o), .seed = 5, .rejects = 3};
			size_t n = large == 2 ? (c == 2 && !test_quick() ? 700001 : 3001)
				   : large    ? 1
					      : 0;
			struct pair_map m = new_pair_map(ctx, c, n + 10, &o), l = m;
			struct pair *p = numbered_pairs(n, m.ks, m.vs, 0);
			struct cua_hashmap_view view;

			ck_assert_cua(insert_pairs(&m, p, n));
			ck_assert_cua(cua_hashmap_save(m.map, "a"));
			/* replaces a file */
			ck_assert_cua(cua_hashmap_save(m.map, "./a"));
			ck_assert_int_eq(test_files_in("."), c || large ? 2 : 1);
			for (int other = 0; other < 2; other++) {
				l.ctx = other ? cpu : ctx;
				ck_assert_cua(cua_hashmap_load(l.ctx, NULL, "a", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_get_view(l.map, &view));
				ck_assert_uint_eq(view.seed, 5);
				ck_assert_ptr_nonnull(view.rejects);
				ck_assert_uint_ge(slots_of(&l), slots_of(&m));
				if (!other)
					ck_assert_uint_eq(slots_of(&l), slots_of(&m));
				/* and back to the first backend */
				ck_assert_cua(cua_hashmap_save(l.map, "b"));
				ck_assert_cua(cua_hashmap_destroy(l.map));
				l.ctx = ctx;
				o.seed = 6;
				o.rejects = 0;
				ck_assert_cua(cua_hashmap_load(ctx, &o, "b", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_get_view(l.map, &view));
				ck_assert_uint_eq(view.seed, 6);
				ck_assert_ptr_null(view.rejects);
				ck_assert_cua(cua_hashmap_destroy(l.map));
			}
			o.own_hash = 1;
			ck_assert_status(cua_hashmap_load(ctx, &o, "b", &l.map),
					 CUA_ERROR_UNSUPPORTED);
			free(p);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
	test_leave_folder(folder);
	cua_context_destroy(ctx);
	cua_context_destroy(cpu);
}
END_TEST

/*
 * A full map with all reserved slots in use, loaded into a layout without reserved slots. The path
 * is a symbolic link to a private file.
 */
START_TEST(saved_full)
{
	const struct cua_hashmap_options portable = {.struct_size = sizeof(portable),
						     .portable = 1};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_view view;
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (uint64_t capacity = 20; capacity <= 7680; capacity *= 384) {
		struct pair_map m = new_pair_map(ctx, 4, capacity, NULL), l = m;
		struct pair *p;
		struct stat st;
		size_t n;

		ck_assert_cua(cua_hashmap_get_view(m.map, &view));
		n = slots_of(&m) + (view.layout == CUA_HASHMAP_WORDS ? 2 : 0);
		p = numbered_pairs(n, m.ks, m.vs, 0);
		ck_assert_cua(insert_pairs(&m, p, n));
		ck_assert_cua(cua_hashmap_status(m.map));
		write_file("a", "before", 6);
		ck_assert_int_eq(chmod("a", 0600) | symlink("a", "link"), 0);
		ck_assert_cua(cua_hashmap_save(m.map, "link"));
		ck_assert_int_eq(lstat("link", &st), 0);
		ck_assert(S_ISLNK(st.st_mode));
		ck_assert_int_eq(lstat("a", &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0600);
		ck_assert_int_eq(test_files_in("."), 2);
		for (int how = 0; how < 2; how++) {
			ck_assert_cua(
				cua_hashmap_load(ctx, how ? &portable : NULL, "link", &l.map));
			expect_pairs(&l, p, n);
			/* reserved keys take no slots, so the number of slots is unchanged */
			if (!how)
				ck_assert_uint_eq(slots_of(&l), slots_of(&m));
			ck_assert_cua(cua_hashmap_destroy(l.map));
		}
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_int_eq(unlink("a") | unlink("link"), 0);
	}
	test_leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* Links to targets that save creates, links that cannot be resolved, and the longest file names. */
START_TEST(saved_by_name)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct pair_map m = new_pair_map(ctx, 0, 20, NULL), l = m;
	struct pair *p = numbered_pairs(13, 4, 4, 0);
	char folder[TEST_PATH_BYTES], name[256], whole[TEST_PATH_BYTES + 8];
	const char *links[] = {"first", "d/second", "third"};
	struct stat st;

	test_enter_folder(folder);
	ck_assert_cua(insert_pairs(&m, p, 13));
	ck_assert_int_eq(mkdir("d", 0700) | symlink("d/second", "first") |
				 symlink("../third", "d/second"),
			 0);
	/* in the second round the target exists */
	snprintf(whole, sizeof(whole), "%s/target", folder);
	ck_assert_int_eq(symlink(whole, "third"), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_cua(cua_hashmap_save(m.map, "first"));
		for (size_t j = 0; j < sizeof(links) / sizeof(links[0]); j++) {
			ck_assert_int_eq(lstat(links[j], &st), 0);
			ck_assert(S_ISLNK(st.st_mode));
		}
		ck_assert_int_eq(lstat("target", &st), 0);
		ck_assert(S_ISREG(st.st_mode));
		ck_assert_int_eq(test_files_in("."), 4);
	}
	ck_assert_cua(cua_hashmap_load(ctx, NULL, "first", &l.map));
	expect_pairs(&l, p, 13);
	ck_assert_cua(cua_hashmap_destroy(l.map));
	ck_assert_int_eq(unlink("target") | unlink("third") | unlink("d/second"), 0);

	ck_assert_int_eq(symlink("../first", "d/second"), 0);
	ck_assert_status(cua_hashmap_save(m.map, "first"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ELOOP);
	ck_assert_int_eq(unlink("d/second") | symlink("none/here", "d/second"), 0);
	ck_assert_status(cua_hashmap_save(m.map, "first"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(test_files_in("."), 2);
	ck_assert_int_eq(unlink("d/second") | rmdir("d") | unlink("first"), 0);

	memset(name, 'n', sizeof(name));
	for (size_t length = 240; length <= 255; length++) {
		name[length] = 0;
		ck_assert_cua(cua_hashmap_save(m.map, name));
		ck_assert_int_eq(test_files_in("."), 1);
		ck_assert_int_eq(unlink(name), 0);
		name[length] = 'n';
	}
	test_leave_folder(folder);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

/* A loaded map has the options of the saved map, unless load is called with other options. */
START_TEST(saved_options)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (unsigned how = 0; how < 16; how++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = 1 + how};
		struct cua_hashmap_options other = {.struct_size = sizeof(other), .seed = 99};
		const struct cua_hashmap_options *now = how & 8 ? &other : &o;
		struct pair *p = numbered_pairs(3000, 8, 8, 6);
		struct cua_hashmap_view view, plain;
		uint64_t room = 0, slots, all = 99, size = 99;
		struct pair_map m, l;

		o.grow_percent = how & 1 ? 60 : 0;
		o.portable = o.no_erase = how >> 1 & 1;
		o.rejects = how & 4 ? 7 : 0;
		other.grow_percent = how & 1 ? 0 : 60;
		other.portable = other.no_erase = !o.portable;
		other.rejects = how & 4 ? 0 : 8;
		/*
		 * 8 + 8 bytes: the layout is words, unless portable is set or the machine has no
		 * 128-bit atomics
		 */
		m = new_pair_map(ctx, 4, 500, now);
		ck_assert_cua(cua_hashmap_get_view(m.map, &plain));
		ck_assert_cua(cua_hashmap_destroy(m.map));
		m = new_pair_map(ctx, 4, 500, &o);
		l = m;
		ck_assert_cua(insert_pairs(&m, p, 200));
		ck_assert_cua(cua_hashmap_save(m.map, "a"));
		ck_assert_cua(cua_hashmap_load(ctx, how & 8 ? &other : NULL, "a", &l.map));
		ck_assert_cua(cua_hashmap_get_view(l.map, &view));
		ck_assert_uint_eq(view.layout, plain.layout);
		ck_assert_uint_eq(view.seed, now->seed);
		ck_assert_uint_eq(view.no_erase, now->no_erase);
		if (view.rejects)
			test_download(ctx, &room, &view.rejects->room, sizeof(room));
		ck_assert_uint_eq(room, now->rejects);
		slots = slots_of(&l);
		ck_assert_cua(insert_pairs(&l, p, 3000));
		ck_assert_int_eq(slots_of(&l) > slots, now->grow_percent != 0);
		ck_assert_cua(cua_hashmap_size(l.map, &size));
		ck_assert_uint_eq(size, now->grow_percent ? 3000 : slots);
		ck_assert_cua(cua_hashmap_rejected(l.map, 0, NULL, NULL, &all));
		ck_assert_uint_eq(all, 3000 - size);
		/* a map that has grown has the options too */
		ck_assert_cua(cua_hashmap_get_view(l.map, &view));
		ck_assert_uint_eq(view.no_erase, now->no_erase);
		if (now->grow_percent)
			ck_assert_uint_le(3000, slots_of(&l) / 10 * 6 + 6);
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(l.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* The library's checksum of whole words, to sign forged files. */
static uint64_t add_up(uint64_t sum, const char *bytes, size_t n)
{
	uint64_t word;

	for (size_t i = 0; i < n; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

static void sign(char *header)
{
	uint64_t sum = add_up(1, header, 80);

	memcpy(header + 80, &sum, 8);
}

static void sign_all(char *bytes, size_t size)
{
	uint64_t sum = add_up(0, bytes + 88, size - 88);

	memcpy(bytes + 72, &sum, 8);
	sign(bytes);
}

START_TEST(corrupt_files)
{
	uint64_t seed = test_seed("corrupt_files");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct pair_map m = new_pair_map(ctx, 0, 20, NULL);
	struct pair *p = numbered_pairs(13, 4, 4, 0);
	struct cua_hashmap *none = NULL;
	char folder[TEST_PATH_BYTES], *good, *bad;
	const uint64_t absurd[] = {0,           12, 14, (uint64_t)1 << 61, ((uint64_t)1 << 61) + 13,
				   ~(uint64_t)0};
	size_t size, other;

	test_enter_folder(folder);
	ck_assert_cua(insert_pairs(&m, p, 13));
	ck_assert_cua(cua_hashmap_save(m.map, "a"));
	good = read_file("a", &size);
	ck_assert_uint_eq(size, 88 + 13 * 8);
	bad = test_malloc(size + 8);
	memset(bad, 0, size + 8);
	/* truncated at each length, and too long */
	for (size_t cut_at = 0; cut_at < size; cut_at++) {
		write_file("b", good, cut_at);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	memcpy(bad, good, size);
	write_file("b", bad, size + 8);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	/* each bit flipped, and pairs exchanged */
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
		bad[bit / 8] = good[bit / 8];
	}
	for (int i = 0; i < 200; i++) {
		size_t a = 88 + test_random(&seed) % 13 * 8, b = 88 + test_random(&seed) % 13 * 8;

		memcpy(bad + a, good + b, 8);
		memcpy(bad + b, good + a, 8);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none),
				 a == b ? CUA_OK : CUA_ERROR_CORRUPT);
		if (a == b)
			ck_assert_cua(cua_hashmap_destroy(none));
		none = NULL;
		memcpy(bad, good, size);
	}
	/* signed headers with a wrong count */
	sign(bad);
	ck_assert_mem_eq(bad, good, size);
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		memcpy(bad + 24, &absurd[i], 8);
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	memcpy(bad, good, size);
	/* a key twice in a signed file, also a reserved key, with equal or different values */
	sign_all(bad, size);
	ck_assert_mem_eq(bad, good, size);
	for (int i = 0; i < 13 * 4; i++) {
		memcpy(bad + 88 + i % 13 * 8, good + 88 + (i + 1 + i / 26 * 5) % 13 * 8,
		       i / 13 % 2 ? 4 : 8);
		sign_all(bad, size);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
		memcpy(bad, good, size);
	}
	/* fewer slots than pairs, too many slots, sizes of no type, another version */
	memset(bad + 32, 0, 8);
	bad[32] = 5;
	sign(bad);
	write_file("b", bad, size);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	memset(bad + 32, 0xff, 8);
	sign(bad);
	write_file("b", bad, size);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_SIZE);
	for (int at = 8; at < 24; at += 4) {
		memcpy(bad, good, size);
		bad[at] = 7;
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	/* invalid options */
	for (int at = 56; at < 64; at += 4) {
		memcpy(bad, good, size);
		bad[at] = 96;
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	/* paths that are no regular file */
	ck_assert_status(cua_hashmap_load(ctx, NULL, ".", &none), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "/dev/zero", &none), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(mkfifo("f", 0600), 0);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "f", &none), CUA_ERROR_SYSTEM);
	ck_assert_status(cua_hashmap_save(m.map, "f"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(mkdir("d", 0700), 0);
	ck_assert_status(cua_hashmap_save(m.map, "d"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_ptr_null(none);
	ck_assert_int_eq(test_files_in("."), 4);
	ck_assert_int_eq(rmdir("d") | unlink("f") | unlink("b"), 0);
	/* the file that no save replaced is unchanged */
	free(bad);
	bad = read_file("a", &other);
	ck_assert_uint_eq(other, size);
	ck_assert_mem_eq(bad, good, size);
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	free(good);
	free(bad);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

/* If the disk is full at any offset of the file, the old file stays, and no other file is left. */
START_TEST(no_space)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct pair_map m = new_pair_map(ctx, 4, 100, NULL);
	struct pair *p = numbered_pairs(50, 8, 8, 0);
	char folder[TEST_PATH_BYTES], *before, *after;
	size_t size, then;
	struct rlimit old, limit;

	test_enter_folder(folder);
	ck_assert_cua(insert_pairs(&m, p, 20));
	ck_assert_cua(cua_hashmap_save(m.map, "a"));
	before = read_file("a", &size);
	ck_assert_cua(insert_pairs(&m, p + 20, 30));
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	for (rlim_t at = 0; at < 88 + 50 * 16; at += 37) {
		enum cua_status status;
		int error;

		limit = old;
		limit.rlim_cur = at;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		errno = 0;
		status = cua_hashmap_save(m.map, "a");
		error = errno;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
		ck_assert_status(status, CUA_ERROR_SYSTEM);
		ck_assert_int_eq(error, EFBIG);
		ck_assert_int_eq(test_files_in("."), 1);
		after = read_file("a", &then);
		ck_assert_uint_eq(then, size);
		ck_assert_mem_eq(after, before, size);
		free(after);
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	free(before);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_save");
	TCase *tcase = tcase_create("hashmap_save");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, saved);
	tcase_add_test(tcase, saved_full);
	tcase_add_test(tcase, saved_by_name);
	tcase_add_test(tcase, saved_options);
	tcase_add_test(tcase, corrupt_files);
	tcase_add_test(tcase, no_space);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
