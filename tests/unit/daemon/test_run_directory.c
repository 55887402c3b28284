/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/run_directory.h"

/* Whoever has a role comes to the control socket in a directory that the daemon itself made, too. */
static void test_mode(void **state)
{
	char dir[] = "/tmp/np-unit-XXXXXX", run[64], lock[80];
	const mode_t mask = umask(027); /* as netpawld has it */
	struct stat st;
	int fd = -1, again = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(run, sizeof(run), "%s/run", dir);
	snprintf(lock, sizeof(lock), "%s/lock", run);
	assert_int_equal(lock_take(run, RUN_DIRECTORY_MODE, &fd), 0);
	assert_int_equal(stat(run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(umask(mask), 027);
	assert_int_equal(lock_take(run, RUN_DIRECTORY_MODE, &again), -EWOULDBLOCK);
	close(fd);
	unlink(lock);
	rmdir(run);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mode) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
