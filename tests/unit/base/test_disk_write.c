/* SPDX-License-Identifier: MIT */
/* Writes that go on beside their caller: what is there after the wait, on a disk and in memory, and what an error says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

static bool refuses; /* writes past the page cache, as some file systems do that let files be opened for them */

static ssize_t pwrite_refused(int fd, const void *data, size_t n, off_t at)
{
	if (refuses && (fcntl(fd, F_GETFL) & O_DIRECT)) {
		errno = EINVAL;
		return -1;
	}
	return (pwrite)(fd, data, n, at);
}

#define pwrite pwrite_refused
#include "base/disk_write.c"
#undef pwrite

#define BLOCK 4096

static _Alignas(BLOCK) char block[BLOCK];

/* A file with two blocks of zeros, which has no name. */
static int file_make(const char *dir)
{
	static const char zeros[2 * BLOCK];
	int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(fsync(fd), 0);
	return fd;
}

static void assert_holds(int fd, char one, char other)
{
	char all[2 * BLOCK];

	assert_int_equal(pread(fd, all, sizeof(all), 0), sizeof(all));
	for (size_t i = 0; i < sizeof(all); i++)
		assert_int_equal(all[i], i < BLOCK ? one : other);
}

static void written_and_waited_for(const char *dir)
{
	struct disk_write write = DISK_WRITE_INIT;
	int fd = file_make(dir);

	assert_int_equal(disk_write_wait(&write), 0); /* for nothing */
	assert_int_equal(disk_write_open(&write, fd), 0);
	disk_write_begin(&write); /* nothing */
	memset(block, 'a', BLOCK);
	disk_write_take(&write, block, BLOCK, BLOCK);
	assert_holds(fd, 0, 0); /* not yet */
	disk_write_begin(&write);
	disk_write_begin(&write); /* once */
	assert_int_equal(disk_write_wait(&write), 0);
	assert_holds(fd, 0, 'a');
	memset(block, 'b', BLOCK);
	disk_write_begin(&write);
	assert_int_equal(disk_write_wait(&write), 0); /* of the one before, which is over */
	assert_holds(fd, 0, 'a');
	/* What nobody began is written by who waits. */
	disk_write_take(&write, block, BLOCK, 0);
	assert_int_equal(disk_write_wait(&write), 0);
	assert_holds(fd, 'b', 'a');
	/* And what nobody waited for is there when it is closed. */
	memset(block, 'c', BLOCK);
	disk_write_take(&write, block, BLOCK, 0);
	disk_write_begin(&write);
	disk_write_close(&write);
	assert_holds(fd, 'c', 'a');
	disk_write_close(&write);
	close(fd);
}

static void test_on_a_disk(void **state)
{
	(void)state;
	written_and_waited_for("/var/tmp");
}

static void test_in_memory(void **state)
{
	(void)state;
	written_and_waited_for("/dev/shm");
}

/* There are file systems, and machines, that have no such writes. */
static void test_without_the_kernel(void **state)
{
	struct disk_write write;
	int fd = file_make("/var/tmp");

	(void)state;
	assert_int_equal(disk_write_open(&write, fd), 0);
	if (write.context)
		assert_int_equal(syscall(SYS_io_destroy, write.context), 0);
	write.context = 0;
	memset(block, 'a', BLOCK);
	disk_write_take(&write, block, BLOCK, 0);
	disk_write_begin(&write);
	assert_int_equal(disk_write_wait(&write), 0);
	assert_holds(fd, 'a', 0);
	disk_write_close(&write);
	close(fd);
}

/* Or let a file be opened for them, and take none. */
static void test_refused(void **state)
{
	static _Alignas(BLOCK) char odd[BLOCK + 1]; /* from its second byte on: a disk refuses that itself */
	struct disk_write write;
	int fd = file_make("/var/tmp");

	(void)state;
	memset(block, 'a', BLOCK);
	memset(odd, 'b', sizeof(odd));
	for (int begun = 0; begun < 2; begun++) {
		assert_int_equal(disk_write_open(&write, fd), 0);
		refuses = !begun;
		disk_write_take(&write, begun ? odd + 1 : block, BLOCK, begun * BLOCK);
		if (begun)
			disk_write_begin(&write);
		assert_int_equal(disk_write_wait(&write), 0);
		assert_true(fcntl(write.fd, F_GETFL) & O_DSYNC);
		/* And from then on. */
		disk_write_take(&write, begun ? odd + 1 : block, BLOCK, begun * BLOCK);
		disk_write_begin(&write);
		assert_int_equal(disk_write_wait(&write), 0);
		disk_write_close(&write);
	}
	refuses = false;
	assert_holds(fd, 'a', 'b');
	close(fd);
}

/* Whoever waits is told, whether it was begun or not; and the next write is another matter. */
static void test_an_error(void **state)
{
	struct rlimit before, small = { .rlim_cur = BLOCK };
	struct disk_write write;
	int fd = file_make("/var/tmp");

	(void)state;
	assert_int_equal(disk_write_open(&write, fd), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	memset(block, 'a', BLOCK);
	for (int begun = 0; begun < 2; begun++) {
		disk_write_take(&write, block, BLOCK, BLOCK);
		if (begun)
			disk_write_begin(&write);
		assert_int_equal(disk_write_wait(&write), -EFBIG);
		assert_int_equal(disk_write_wait(&write), -EFBIG);
		disk_write_take(&write, block, BLOCK, 0);
		disk_write_begin(&write);
		assert_int_equal(disk_write_wait(&write), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_holds(fd, 'a', 0);
	disk_write_close(&write);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_a_disk),	   cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_without_the_kernel), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
