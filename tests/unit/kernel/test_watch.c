/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/watch.c"

#define MANY 1000

static unsigned told[3];

static void on_told(void *data, uint64_t cgroup_id)
{
	(void)data;
	assert_in_range(cgroup_id, 1, 2);
	told[cgroup_id]++;
}

static struct kernel *kernel_new(char *dir)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));

	assert_non_null(kernel);
	assert_non_null(mkdtemp(dir));
	kernel->config.on_cgroup = on_told;
	kernel->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(kernel->inotify_fd >= 0);
	memset(told, 0, sizeof(told));
	return kernel;
}

static void watch_dir(struct kernel *kernel, uint64_t id, const char *dir, const char *name)
{
	struct gate_cgroup cg = { .id = id };

	fs_path(cg.path, "%s/%s", dir, name);
	assert_int_equal(mkdir(cg.path, 0700), 0);
	watch_children(kernel, &cg);
}

static void child(const char *dir, const char *name, int i, bool make)
{
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/%s/%d", dir, name, i);
	assert_int_equal(make ? mkdir(path, 0700) : rmdir(path), 0);
}

static void directory_end(const char *dir, const char *name)
{
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/%s", dir, name);
	rmdir(path);
}

/* Whoever makes cgroups faster than they are looked at does not keep the daemon from all else, and others are told all the same. */
static void test_a_flood_is_told_once_for_each_look(void **state)
{
	char dir[] = "/tmp/netpawl-watch-XXXXXX";
	struct kernel *kernel = kernel_new(dir);
	unsigned looks = 0;
	int left;

	(void)state;
	watch_dir(kernel, 1, dir, "a");
	watch_dir(kernel, 2, dir, "b");
	for (int i = 0; i < MANY; i++)
		child(dir, "a", i, true);
	child(dir, "b", 0, true);
	on_inotify(kernel, EPOLLIN);
	assert_int_equal(told[1], 1);
	assert_int_equal(ioctl(kernel->inotify_fd, FIONREAD, &left), 0);
	assert_true(left > 0); /* the rest waits for the next turn of the loop */
	for (; left; looks++) {
		on_inotify(kernel, EPOLLIN);
		assert_int_equal(ioctl(kernel->inotify_fd, FIONREAD, &left), 0);
	}
	assert_in_range(told[1], looks, looks + 1); /* the last may have the other alone */
	assert_int_equal(told[2], 1);
	for (int i = 0; i < MANY; i++)
		child(dir, "a", i, false);
	child(dir, "b", 0, false);
	directory_end(dir, "a");
	directory_end(dir, "b");
	rmdir(dir);
	watch_free(kernel);
	free(kernel);
}

/* The nearest that there is, up to the root of the hierarchy; and no further. */
static void test_the_way_to_a_cgroup(void **state)
{
	char dir[] = "/tmp/netpawl-watch-XXXXXX", path[FS_PATH_SIZE];
	struct kernel *kernel = kernel_new(dir);
	struct stat st;

	(void)state;
	strcpy(kernel->mount, dir);
	fs_path(path, "%s/docker/0123", dir);
	assert_true(watch_way(kernel, path));
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(container_of(table_walk(&kernel->watches, NULL), struct watch, node)->cgroup_id, st.st_ino);
	watch_dir(kernel, 1, dir, "docker");
	assert_false(watch_way(kernel, path));
	assert_int_equal(kernel->watches.count, 2);
	fs_path(path, "%s", dir);
	assert_false(watch_way(kernel, path)); /* of what is none it is not told */
	assert_int_equal(kernel->watches.count, 2);
	directory_end(dir, "docker");
	rmdir(dir);
	watch_free(kernel);
	free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_flood_is_told_once_for_each_look),
		cmocka_unit_test(test_the_way_to_a_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
