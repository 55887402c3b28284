/* SPDX-License-Identifier: MIT */
#include "base/listen.c"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static char dir[64], path[128];

static int make(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/netpawl-listen-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(path);
	rmdir(path);
	return rmdir(dir);
}

static int reach(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

static void has_its_mode_and_restores_the_umask(void **state)
{
	struct listen_file file;
	struct stat st;
	int fd;

	(void)state;
	umask(0);
	fd = listen_unix(path, 4096, &file);
	assert_true(fd >= 0);
	assert_int_equal(umask(022), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(reach(), 0);
	listen_remove(path, &file);
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
}

static void replaces_a_stale_socket(void **state)
{
	struct listen_file first, second;
	int fd;

	(void)state;
	fd = listen_unix(path, 4096, &first);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(reach(), -ECONNREFUSED);
	fd = listen_unix(path, 4096, &second);
	assert_true(fd >= 0);
	assert_int_equal(reach(), 0);
	/* The predecessor, slow to die, must not take the socket away. */
	listen_remove(path, &first);
	assert_int_equal(reach(), 0);
	close(fd);
}

static void replaces_nothing_else(void **state)
{
	struct listen_file file;
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listen_unix(path, 4096, &file), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(listen_unix(path, 4096, &file), -EEXIST);
}

static void leaves_nothing_behind(void **state)
{
	struct listen_file file;
	char longer[200];

	(void)state;
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(listen_unix(longer, 4096, &file), -ENAMETOOLONG);
	assert_int_equal(listen_unix("/nonexistent/dir/s", 4096, &file), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
	const struct CMUnitTest tests[] = {
		TEST(has_its_mode_and_restores_the_umask),
		TEST(replaces_a_stale_socket),
		TEST(replaces_nothing_else),
		TEST(leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
