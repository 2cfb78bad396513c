/* SPDX-License-Identifier: MIT */
/*
 * Saves of hash maps in folders of several users: permissions, set-user-id, groups and links.
 */
#include "hashmap_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_mode;
}

/* Whether the file has the contents of make_file. */
static int is_untouched(const char *path)
{
	char text[8] = "";
	int fd = open(path, O_RDONLY), same;

	ck_assert_int_ge(fd, 0);
	same = read(fd, text, 7) == 6 && !strcmp(text, "before");
	close(fd);
	return same;
}

/* ---- permissions ---- */

/* The permissions of other users from the creation of the file on, its name and its flags. */
START_TEST(private_until_whole)
{
	static const mode_t before[] = {0, 0600, 0640, 0666, 0444}, masks[] = {022, 077, 0, 027};
	char first[300];

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		for (size_t j = 0; j < sizeof(masks) / sizeof(masks[0]); j++) {
			if (before[i])
				make_file("a", before[i]);
			umask(masks[j]);
			watch_on();
			ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
			watch.on = 0;
			ck_assert_int_eq(watch.written, 1);
			ck_assert_int_eq(watch.loose, 0);
			ck_assert_int_eq(watch.weak, 0);
			ck_assert_uint_eq(mode_of("a"),
					  S_IFREG | (before[i] ? before[i] : 0666 & ~masks[j]));
			/* the umask is unchanged */
			ck_assert_uint_eq(umask(022), masks[j]);
			ck_assert_int_eq(test_files_in("."), 1);
			/*
			 * the 128 random bits of a name differ from save to save, and are not the
			 * process id
			 */
			if (i + j)
				ck_assert_str_ne(first, watch.name);
			memcpy(first, watch.name, sizeof(first));
			ck_assert_uint_ge(strspn(strpbrk(first, "-.") + strcspn(first, "-"),
						 "-0123456789abcdef"),
					  32);
			ck_assert_int_eq(unlink("a"), 0);
		}
}
END_TEST

static int make_trap(void)
{
	int fd = open("theirs", O_WRONLY | O_CREAT | O_EXCL, 0600);

	return fd < 0 || fchmod(fd, 04777);
}

/* No file has the set-user-id bit after a save, for any owner of the replaced file. */
START_TEST(set_user_id)
{
	struct stat st;
	int other;

	make_file("own", 06755);
	ck_assert_uint_eq(mode_of("own") & 04000, 04000);
	ck_assert_cua(cua_hashmap_save(fixture.map, "own"));
	ck_assert_uint_eq(mode_of("own"), S_IFREG | 0755);

	ck_assert_int_eq(chmod(fixture.folder, 0777), 0);
	other = as_other_user(make_trap);
	if (other != 77) {
		ck_assert_int_eq(other, 0);
		ck_assert_cua(cua_hashmap_save(fixture.map, "theirs"));
		ck_assert_int_eq(stat("theirs", &st), 0);
		ck_assert_uint_eq(st.st_uid, geteuid());
		ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
		ck_assert_int_eq(unlink("theirs"), 0);
	}
	ck_assert_int_eq(unlink("own"), 0);
}
END_TEST

/*
 * A file with a second link gets no more permissions than a new file, because any user may have
 * created the link.
 */
START_TEST(other_names)
{
	mode_t before;
	struct stat st;
	int fd;

	before = umask(077);
	fd = open("b", O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0666), 0);
	close(fd);
	ck_assert_int_eq(link("b", "a"), 0);
	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	ck_assert_int_eq(stat("a", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	/* and no more permissions than it had */
	ck_assert_int_eq(chmod("b", 0400), 0);
	ck_assert_int_eq(unlink("a") | link("b", "a"), 0);
	umask(0);
	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	umask(before);
	ck_assert_int_eq(stat("a", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0400);
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
}
END_TEST

/*
 * save keeps the group of the file if the saver is a member. Otherwise nobody gets more permissions
 * than before.
 */
static int save_of_group(void)
{
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct stat st;
	enum cua_status status;

	if (cua_context_create(TEST_BACKEND, 0, &ctx) ||
	    cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, 10, &map))
		return 1;
	status = cua_hashmap_save(map, "theirs");
	return status || stat("theirs", &st) || st.st_gid != OTHER_USER ||
	       (st.st_mode & 07777) != 0644;
}

START_TEST(group)
{
	struct stat st;

	if (geteuid()) {
		printf("skipped: only root can give files away\n");
		return;
	}
	ck_assert_int_eq(chmod(fixture.folder, 0777), 0);
	make_file("own", 0640);
	ck_assert_int_eq(chown("own", 0, 12345), 0);
	ck_assert_cua(cua_hashmap_save(fixture.map, "own"));
	ck_assert_int_eq(stat("own", &st), 0);
	ck_assert_uint_eq(st.st_gid, 12345);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
	/* group 12345 could write and other users could not, so the new group must not write */
	make_file("theirs", 0664);
	ck_assert_int_eq(chown("theirs", OTHER_USER, 12345) | chmod("theirs", 0664), 0);
	if (as_other_user(save_of_group) != 77)
		ck_assert_int_eq(as_other_user(save_of_group), 0);
	ck_assert_int_eq(unlink("own") | unlink("theirs"), 0);
}
END_TEST

/* ---- links ---- */

static int make_links(void)
{
	return symlink("../victim", "shared/link") || symlink("../nothing", "shared/dangling") ||
	       symlink("mine", "shared/chain") || symlink("../victim", "shared/mine");
}

/*
 * In a sticky folder that all may write, save follows only links of this user and of the folder's
 * owner.
 */
START_TEST(sticky_links)
{
	static const char *const links[] = {"shared/link", "shared/dangling", "shared/chain",
					    "own"};
	int other;

	ck_assert_int_eq(
		chmod(fixture.folder, 0755) | mkdir("shared", 0700) | chmod("shared", 01777), 0);
	make_file("victim", 0600);
	/* a link to a link of another user */
	ck_assert_int_eq(symlink("shared/link", "own"), 0);
	other = as_other_user(make_links);
	if (other != 77) {
		ck_assert_int_eq(other, 0);
		for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
			errno = 0;
			ck_assert_status(cua_hashmap_save(fixture.map, links[i]), CUA_ERROR_SYSTEM);
			ck_assert_int_eq(errno, EACCES);
			ck_assert(is_untouched("victim"));
			ck_assert_int_eq(test_files_in("."), 3);
			ck_assert_int_eq(test_files_in("shared"), 4);
		}
		/* in a private folder without the sticky bit, save follows them */
		ck_assert_int_eq(chmod("shared", 0755), 0);
		ck_assert_cua(cua_hashmap_save(fixture.map, "shared/chain"));
		ck_assert_uint_eq(size_of_file("victim"), FIXTURE_KEYS);
		ck_assert_cua(cua_hashmap_save(fixture.map, "shared/dangling"));
		ck_assert_uint_eq(size_of_file("nothing"), FIXTURE_KEYS);
		ck_assert(S_ISLNK(mode_of("shared/link")) && S_ISLNK(mode_of("shared/dangling")));
		ck_assert_int_eq(unlink("nothing") | unlink("shared/link") |
					 unlink("shared/dangling") | unlink("shared/chain") |
					 unlink("shared/mine"),
				 0);
		ck_assert_int_eq(unlink("victim") | chmod("shared", 01777), 0);
		make_file("victim", 0600);
	}
	ck_assert_int_eq(
		symlink("../victim", "shared/link") | symlink("../nothing", "shared/dangling"), 0);
	ck_assert_cua(cua_hashmap_save(fixture.map, "own"));
	ck_assert_uint_eq(size_of_file("victim"), FIXTURE_KEYS);
	ck_assert_uint_eq(mode_of("victim"), S_IFREG | 0600);
	ck_assert_cua(cua_hashmap_save(fixture.map, "shared/dangling"));
	ck_assert_uint_eq(size_of_file("nothing"), FIXTURE_KEYS);
	ck_assert_int_eq(test_files_in("shared"), 2);
	ck_assert_int_eq(unlink("nothing") | unlink("victim") | unlink("own") |
				 unlink("shared/link") | unlink("shared/dangling") |
				 rmdir("shared"),
			 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_permissions");
	TCase *tcase = files_tcase("hashmap_permissions");

	tcase_add_test(tcase, private_until_whole);
	tcase_add_test(tcase, set_user_id);
	tcase_add_test(tcase, other_names);
	tcase_add_test(tcase, group);
	tcase_add_test(tcase, sticky_links);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
