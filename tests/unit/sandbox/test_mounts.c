/* SPDX-License-Identifier: MIT */
/* The parts that need no namespace; the rest is seen from inside by test_launch.c. */
#include "sandbox/mounts.c"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "child.h"

static void decoding(void **state)
{
	char text[] = "/a\\040b\\134c\\011", plain[] = "/x", cut[] = "/y\\04";

	(void)state;
	octal_decode(text);
	assert_string_equal(text, "/a b\\c\t");
	octal_decode(plain);
	assert_string_equal(plain, "/x");
	octal_decode(cut);
	assert_string_equal(cut, "/y\\04");
}

static void which_paths_are_below(void **state)
{
	(void)state;
	assert_true(below("/run", "/run"));
	assert_true(below("/run/x", "/run"));
	assert_false(below("/running", "/run"));
	assert_false(below("/", "/run"));
}

static char dir[] = "/tmp/np-mounts-XXXXXX";

/* Two file systems of a hidden kind, one of them covered by something else, and a file. */
static int hiding(void)
{
	_free_ char *table = NULL;
	const char *place = NULL;
	char path[64];
	struct stat st;

	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", dir, "tmpfs", 0, NULL) == 0);
	CHECK(chdir(dir) == 0 && mkdir("proc one", 0755) == 0 && mkdir("two", 0755) == 0);
	close(open("three", O_CREAT | O_WRONLY, 0644));
	CHECK(mount("proc", "proc one", "proc", 0, NULL) == 0);
	CHECK(mount("proc", "two", "proc", 0, NULL) == 0);
	CHECK(mount("tmpfs", "two", "tmpfs", 0, NULL) == 0);
	close(open("two/kept", O_CREAT | O_WRONLY, 0644));
	CHECK(mount("/proc/self/ns/net", "three", NULL, MS_BIND, NULL) == 0);
	CHECK(fs_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_BYTES, &table) == 0);
	CHECK(access("proc one/self", F_OK) == 0);
	CHECK(table_hide(table, &place) == 0);
	snprintf(path, sizeof(path), "%s/proc one/self", dir);
	CHECK(access(path, F_OK) < 0 && errno == ENOENT);
	snprintf(path, sizeof(path), "%s/two/kept", dir);
	CHECK(access(path, F_OK) == 0);
	snprintf(path, sizeof(path), "%s/three", dir);
	CHECK(stat(path, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(access("/proc/self", F_OK) == 0);
	return 0;
}

static void kinds_of_file_systems(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(child_run(hiding), 0);
	assert_int_equal(rmdir(dir), 0); /* the mounts went with their namespace */
}

/* A link into /run, through a second link that is in /run itself. */
static int resolver(void)
{
	char path[PATH_MAX], text[16] = "";
	int fd;

	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", "/etc", "tmpfs", 0, NULL) == 0);
	CHECK(resolver_path(path) == 0);
	CHECK(symlink("/usr/lib/x", "/etc/resolv.conf") == 0 && resolver_path(path) == 0);
	CHECK(unlink("/etc/resolv.conf") == 0);
	CHECK(mount("tmpfs", "/run", "tmpfs", 0, NULL) == 0);
	CHECK(mkdir("/run/a", 0755) == 0 && symlink("../real", "/run/a/stub") == 0);
	fd = open("/run/real", O_CREAT | O_WRONLY, 0644);
	CHECK(fd >= 0 && write(fd, "nameserver", 10) == 10);
	close(fd);
	CHECK(symlink("../run/./b/../a/stub", "/etc/resolv.conf") == 0 || errno == EEXIST);
	CHECK(resolver_path(path) == 1);
	CHECK(!strcmp(path, "/run/a/stub"));
	CHECK(mkdir("/run/b", 0755) == 0); /* for the outside's own walk along the link */
	CHECK(run_replace() == 0);
	CHECK(access("/run/real", F_OK) < 0);
	CHECK(unlink("/etc/resolv.conf") == 0 && symlink("/run/a/stub", "/etc/resolv.conf") == 0);
	fd = open("/etc/resolv.conf", O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 10);
	CHECK(open("/etc/resolv.conf", O_WRONLY) < 0 && errno == EROFS);
	return 0;
}

static void resolv_conf_is_kept(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(child_run(resolver), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoding),
		cmocka_unit_test(which_paths_are_below),
		cmocka_unit_test(kinds_of_file_systems),
		cmocka_unit_test(resolv_conf_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
