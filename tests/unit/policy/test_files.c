/* SPDX-License-Identifier: MIT */
/* A policy from disk: nothing outside of its directory is opened, whatever the links say. */
#include "policy/files.c"

#include <ftw.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "found.h"

static char base[64];

static int base_make(void **state)
{
	(void)state;
	strcpy(base, "/tmp/netpawl-test-XXXXXX");
	return mkdtemp(base) && chdir(base) == 0 && mkdir("etc", 0755) == 0 && mkdir("etc/sub", 0755) == 0 &&
			       mkdir("out", 0755) == 0
		       ? 0
		       : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int base_remove(void **state)
{
	found_clear(state);
	return chdir("/") == 0 ? nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS) : -1;
}

static void file_write(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void file_link(const char *target, const char *name)
{
	assert_int_equal(symlink(target, name), 0);
}

static int load_path(const char *path)
{
	int r;

	found_clear(NULL);
	r = policy_load_file(path, &policy, &found);
	assert_int_equal(r == 0, policy != NULL);
	assert_int_equal(r == 0, found.errors == 0);
	return r;
}

static void fails(const char *path, int error, const char *lines)
{
	assert_int_equal(load_path(path), error);
	assert_string_equal(found_join(), lines);
}

/* One include in etc/p.yaml, and what is told of it behind its place. */
static void include_fails(const char *include, const char *words)
{
	char text[320];

	snprintf(text, sizeof(text), "version: 1\ninclude: %s\n", include);
	file_write("etc/p.yaml", text);
	snprintf(text, sizeof(text), "etc/p.yaml:2:10: error: %s\n", words);
	fails("etc/p.yaml", -EINVAL, text);
}

static void include_loads(const char *include, const char *shown)
{
	char text[256];

	snprintf(text, sizeof(text), "version: 1\ninclude: %s\n", include);
	file_write("etc/p.yaml", text);
	fails("etc/p.yaml", 0, "");
	assert_int_equal(policy->n_files, 2);
	assert_string_equal(policy->files[1], shown);
	assert_int_equal(policy->n_rules, 1);
}

static void names_are_as_the_user_gave_them(void **state)
{
	char absolute[128], expected[256];

	(void)state;
	file_write("p.yaml", "version: 1\ninclude: etc/a.yaml\n");
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a.example]\n");
	fails("p.yaml", 0, "");
	assert_string_equal(policy->files[0], "p.yaml");
	assert_string_equal(policy->files[1], "etc/a.yaml");
	fails("./p.yaml", 0, "");
	assert_string_equal(policy->files[0], "./p.yaml");
	assert_string_equal(policy->files[1], "./etc/a.yaml");
	fails("etc/../p.yaml", 0, "");
	assert_string_equal(policy->files[1], "etc/../etc/a.yaml");
	fails("etc//a.yaml", 0, "");
	assert_string_equal(policy->files[0], "etc//a.yaml");
	snprintf(absolute, sizeof(absolute), "%s/p.yaml", base);
	fails(absolute, 0, "");
	assert_string_equal(policy->files[0], absolute);
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a b]\n");
	snprintf(expected, sizeof(expected), "%s/etc/a.yaml:2:16: error: \"a b\" is no host name\n", base);
	fails(absolute, -EINVAL, expected);
}

static void the_hash_is_of_what_the_directory_holds(void **state)
{
	char hash[POLICY_HASH_SIZE];

	(void)state;
	file_write("etc/p.yaml", "version: 1\n");
	fails("etc/p.yaml", 0, "");
	memcpy(hash, policy->hash, sizeof(hash));
	assert_int_equal(chdir("etc"), 0);
	fails("p.yaml", 0, "");
	assert_string_equal(policy->hash, hash);
}

static void files_that_are_not_there(void **state)
{
	(void)state;
	fails("none.yaml", -ENOENT, "none.yaml: error: cannot read it: there is no such file\n");
	fails("none/p.yaml", -ENOENT, "none/p.yaml: error: cannot read it: there is no such file\n");
	fails("", -ENOENT, ": error: cannot read it: there is no such file\n");
	fails("etc", -EISDIR, "etc: error: cannot read it: it is a directory\n");
	fails("etc/", -EISDIR, "etc/: error: cannot read it: it is a directory\n");
	fails("/", -EISDIR, "/: error: cannot read it: it is a directory\n");
	fails(".", -EISDIR, ".: error: cannot read it: it is a directory\n");
	fails("etc/.", -EISDIR, "etc/.: error: cannot read it: it is a directory\n");
	fails("etc/..", -EXDEV,
	      "etc/..: error: cannot read it: it leads out of the directory of the policy's first file\n");
	file_write("p.yaml", "version: 1\n");
	fails("p.yaml/x", -ENOTDIR, "p.yaml/x: error: cannot read it: Not a directory\n");
	/* "-" is a file like any other. */
	fails("-", -ENOENT, "-: error: cannot read it: there is no such file\n");
	file_write("-", "version: 1\n");
	fails("-", 0, "");
	/* What is in a name does not reach the terminal. */
	fails("a\x1b[2J\n", -ENOENT, "a?[2J?: error: cannot read it: there is no such file\n");
}

static void includes(void **state)
{
	(void)state;
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a.example]\n");
	file_write("etc/sub/b.yaml", "version: 1\nrules: [allow: b.example]\n");
	file_write("out/x.yaml", "version: 1\nrules: [allow: x.example]\n");
	include_loads("a.yaml", "etc/a.yaml");
	include_loads("sub/b.yaml", "etc/sub/b.yaml");
	include_loads("sub/../a.yaml", "etc/a.yaml");
	include_fails("none.yaml", "cannot read \"none.yaml\": there is no such file");
	include_fails("sub", "cannot read \"sub\": it is a directory");
	include_fails("sub/", "cannot read \"sub\": it is a directory");
	include_fails("a.yaml/x", "cannot read \"a.yaml/x\": Not a directory");
	include_fails("../out/x.yaml", "\"../out/x.yaml\" leads out of the directory of the policy's first file");
	include_fails("/etc/hostname", "include takes paths relative to the file, not \"/etc/hostname\"");
	include_fails("sub/../../out/x.yaml",
		      "\"sub/../../out/x.yaml\" leads out of the directory of the policy's first file");
	/* The directory is that of the first file, not of the one that includes. */
	file_write("etc/sub/b.yaml", "version: 1\ninclude: ../a.yaml\n");
	file_write("etc/p.yaml", "version: 1\ninclude: sub/b.yaml\n");
	fails("etc/p.yaml", 0, "");
	fails("etc/sub/b.yaml", -EINVAL,
	      "etc/sub/b.yaml:2:10: error: \"../a.yaml\" leads out of the directory of the policy's first file\n");
}

static void links_that_stay(void **state)
{
	(void)state;
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a.example]\n");
	file_write("etc/sub/b.yaml", "version: 1\nrules: [allow: b.example]\n");
	file_link("a.yaml", "etc/link.yaml");
	file_link("../a.yaml", "etc/sub/up.yaml");
	file_link("sub", "etc/dir");
	file_link("link.yaml", "etc/twice.yaml");
	include_loads("link.yaml", "etc/link.yaml");
	include_loads("sub/up.yaml", "etc/sub/up.yaml");
	include_loads("dir/b.yaml", "etc/dir/b.yaml");
	include_loads("dir/up.yaml", "etc/dir/up.yaml");
	include_loads("twice.yaml", "etc/twice.yaml");
}

static void links_that_lead_out(void **state)
{
	static const char words[] = "it leads out of the directory of the policy's first file";
	char absolute[128], text[256];

	(void)state;
	file_write("out/x.yaml", "version: 1\nrules: [allow: x.example]\n");
	file_write("etc/a.yaml", "version: 1\n");
	snprintf(absolute, sizeof(absolute), "%s/out/x.yaml", base);
	file_link("../out/x.yaml", "etc/file");
	file_link("../out", "etc/dir");
	file_link(absolute, "etc/absolute");
	file_link("..", "etc/up");
	file_link("file", "etc/twice");
	file_link("sub/../../out/x.yaml", "etc/around");
	file_link("/proc/self/fd/0", "etc/magic");
	snprintf(absolute, sizeof(absolute), "%s/etc/a.yaml", base);
	file_link(absolute, "etc/inside"); /* absolute, so it goes by the root, even if it comes back */
	static const char *const names[] = { "file",  "dir/x.yaml", "absolute", "up/out/x.yaml", "up/etc/a.yaml",
					     "twice", "around",	    "magic",	"inside" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "cannot read \"%s\": %s", names[i], words);
		include_fails(names[i], text);
	}
	file_link("loop", "etc/loop");
	include_fails("loop", "cannot read \"loop\": Too many levels of symbolic links");
	file_link("none", "etc/dangling");
	include_fails("dangling", "cannot read \"dangling\": there is no such file");
}

static void the_first_file_may_be_a_link(void **state)
{
	(void)state;
	file_write("etc/sub/real.yaml", "version: 1\ninclude: a.yaml\n");
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a.example]\n");
	file_link("sub/real.yaml", "etc/p.yaml");
	/* Its directory is where the path says, not where the link leads. */
	fails("etc/p.yaml", 0, "");
	assert_string_equal(policy->files[1], "etc/a.yaml");
	assert_int_equal(policy->n_rules, 1);
	/* As a container platform mounts it: p.yaml -> ..data/p.yaml, ..data -> ..1 */
	assert_int_equal(mkdir("etc/..1", 0755), 0);
	file_write("etc/..1/k.yaml", "version: 1\n");
	file_link("..1", "etc/..data");
	file_link("..data/k.yaml", "etc/k.yaml");
	fails("etc/k.yaml", 0, "");
	/* The directory itself may be reached by any links. */
	file_link("../etc", "out/there");
	fails("out/there/p.yaml", 0, "");
	assert_string_equal(policy->files[1], "out/there/a.yaml");
	file_link("../etc/a.yaml", "out/a.yaml");
	fails("out/a.yaml", -EXDEV,
	      "out/a.yaml: error: cannot read it: it leads out of the directory of the policy's first file\n");
}

static void a_circle_of_links_ends(void **state)
{
	(void)state;
	file_write("etc/p.yaml", "version: 1\ninclude: link.yaml\n");
	file_link("p.yaml", "etc/link.yaml");
	fails("etc/p.yaml", -EINVAL, "etc/link.yaml:2:10: error: \"link.yaml\" is already included in etc/p.yaml:2\n");
	/* A directory in itself gives ever new names, until the kernel has followed enough of them. */
	file_link(".", "etc/dot");
	file_write("etc/p.yaml", "version: 1\ninclude: dot/p.yaml\n");
	assert_int_equal(load_path("etc/p.yaml"), -EINVAL);
	assert_int_equal(found.errors, 1);
	assert_non_null(strstr(found.items[0].text, "Too many levels of symbolic links"));
	assert_true(found.items[0].line == 2 && found.items[0].column == 10);
}

static void what_is_no_regular_file(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "etc/socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	/* Nobody writes to the pipe: whoever waits for it waits for ever. */
	assert_int_equal(mkfifo("etc/fifo", 0644), 0);
	include_fails("fifo", "cannot read \"fifo\": it is no regular file");
	fails("etc/fifo", -ENXIO, "etc/fifo: error: cannot read it: it is no regular file\n");
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	include_fails("socket", "cannot read \"socket\": it is no regular file");
	close(fd);
	fails("/dev/zero", -ENXIO, "/dev/zero: error: cannot read it: it is no regular file\n");
}

static void large_files(void **state)
{
	int fd;

	(void)state;
	file_write("etc/big.yaml", "version: 1\n");
	fd = open("etc/big.yaml", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole */
	close(fd);
	include_fails("big.yaml", "cannot read \"big.yaml\": it is too large");
	fails("etc/big.yaml", -E2BIG, "etc/big.yaml: error: cannot read it: it is too large\n");
	file_write("etc/empty.yaml", "");
	fails("etc/empty.yaml", -EINVAL,
	      "etc/empty.yaml:1:1: error: the file is empty; a policy starts with \"version: 1\"\n");
}

static void nothing_stays_open(void **state)
{
	int before = open("/", O_RDONLY | O_CLOEXEC), after;

	(void)state;
	close(before);
	file_write("etc/a.yaml", "version: 1\nrules: [allow: a.example]\n");
	include_loads("a.yaml", "etc/a.yaml");
	include_fails("none.yaml", "cannot read \"none.yaml\": there is no such file");
	load_path("none/p.yaml");
	after = open("/", O_RDONLY | O_CLOEXEC);
	close(after);
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_are_as_the_user_gave_them, base_make, base_remove),
		cmocka_unit_test_setup_teardown(the_hash_is_of_what_the_directory_holds, base_make, base_remove),
		cmocka_unit_test_setup_teardown(files_that_are_not_there, base_make, base_remove),
		cmocka_unit_test_setup_teardown(includes, base_make, base_remove),
		cmocka_unit_test_setup_teardown(links_that_stay, base_make, base_remove),
		cmocka_unit_test_setup_teardown(links_that_lead_out, base_make, base_remove),
		cmocka_unit_test_setup_teardown(the_first_file_may_be_a_link, base_make, base_remove),
		cmocka_unit_test_setup_teardown(a_circle_of_links_ends, base_make, base_remove),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file, base_make, base_remove),
		cmocka_unit_test_setup_teardown(large_files, base_make, base_remove),
		cmocka_unit_test_setup_teardown(nothing_stays_open, base_make, base_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
