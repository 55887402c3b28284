/* SPDX-License-Identifier: MIT */
#include "base/fs.c"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

static char folder[64];
static int dir = -1;

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/np-unit-fs-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	close(dir);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *name, const char *text)
{
	_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
}

static void reads_files(void **state)
{
	char *text = NULL;

	(void)state;
	put("ten", "0123456789");
	put("none", "");
	assert_int_equal(fs_read_at(dir, "ten", 10, &text), 0);
	assert_string_equal(text, "0123456789");
	free(text);
	text = NULL;
	assert_int_equal(fs_read_at(dir, "ten", 9, &text), -E2BIG);
	assert_null(text); /* untouched */
	assert_int_equal(fs_read_at(dir, "none", 0, &text), 0);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(fs_read_at(dir, "missing", 10, &text), -ENOENT);
	assert_int_equal(fs_read_at(dir, ".", 10, &text), -EISDIR);
	/* a file that has no length of its own */
	assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/status", 1 << 16, &text), 0);
	assert_memory_equal(text, "Name:", 5);
	free(text);
}

static void writes_what_exists(void **state)
{
	char *text;

	(void)state;
	put("value", "");
	assert_int_equal(fs_write_at(dir, "value", "42"), 0);
	assert_int_equal(fs_read_at(dir, "value", 10, &text), 0);
	assert_string_equal(text, "42");
	free(text);
	assert_int_equal(fs_write_at(dir, "not-there", "42"), -ENOENT);
	assert_int_equal(faccessat(dir, "not-there", F_OK, 0), -1); /* and is not made */
	assert_int_equal(fs_write_at(AT_FDCWD, "/dev/full", "42"), -ENOSPC);
}

/* More than a pipe holds, to a reader that takes it in pieces. */
static void writes_all_of_it(void **state)
{
	static char data[300000];
	int pipes[2], status;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 251);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		_buf_ struct buf b = BUF_INIT(sizeof(data));

		close(pipes[1]);
		_exit(fs_read_fd(pipes[0], &b) == 0 && b.len == sizeof(data) && !memcmp(b.data, data, b.len) ? 0 : 1);
	}
	close(pipes[0]);
	assert_int_equal(fs_write_all(pipes[1], data, sizeof(data)), 0);
	assert_int_equal(fs_write_all(pipes[1], NULL, 0), 0);
	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_reader_that_is_gone(void **state)
{
	int pipes[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(pipes[0]);
	assert_int_equal(fs_write_all(pipes[1], "x", 1), -EPIPE);
	close(pipes[1]);
	assert_int_equal(fs_write_all(pipes[1], "x", 1), -EBADF);
}

static void paths(void **state)
{
	static char path[FS_PATH_SIZE], just[FS_PATH_SIZE];

	(void)state;
	assert_int_equal(fs_path(path, "%s/%d", "a", 5), 0);
	assert_string_equal(path, "a/5");
	memset(just, 'x', FS_PATH_SIZE - 1);
	assert_int_equal(fs_path(path, "%s", just), 0);
	assert_int_equal(strlen(path), FS_PATH_SIZE - 1);
	assert_int_equal(fs_path(path, "%sy", just), -ENAMETOOLONG);
	assert_string_equal(path, ""); /* not half of it: that would be another file */
	assert_int_equal(fs_beside(path, "other"), 0);
	assert_non_null(strstr(path, "/base/other"));
	assert_int_equal(path[0], '/');
}

static void stays_beneath(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdirat(dir, "in", 0755), 0);
	put("in/file", "x");
	assert_int_equal(symlinkat("file", dir, "in/near"), 0);
	assert_int_equal(symlinkat("../../..", dir, "in/up"), 0);
	assert_int_equal(symlinkat("/etc", dir, "in/far"), 0);
	assert_int_equal(symlinkat("loop", dir, "in/loop"), 0);
	for (int i = 0; i < 3; i++) {
		static const char *const good[] = { "in/file", "in/near", "in/../in/file" };

		fd = fs_open_beneath(dir, good[i], O_RDONLY);
		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
	assert_int_equal(fs_open_beneath(dir, "..", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(dir, "in/../../x", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(dir, "/etc/passwd", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(dir, "in/up", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(dir, "in/far/passwd", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(dir, "in/loop", O_RDONLY), -ELOOP);
	assert_int_equal(fs_open_beneath(dir, "in/missing", O_RDONLY), -ENOENT);
	fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fs_open_beneath(fd, "0", O_RDONLY), -ELOOP); /* a magic link leads anywhere */
	close(fd);
}

/* Every rename of the host makes the kernel unsure of "..", and it answers EAGAIN. */
static void renames_elsewhere_do_not_matter(void **state)
{
	char path[16 * 9 + 16] = "";
	pid_t other;

	(void)state;
	for (int i = 0; i < 16; i++)
		strcat(path, "still/../");
	strcat(path, "still/file");
	assert_int_equal(mkdirat(dir, "still", 0755), 0);
	put("still/file", "x");
	put("restless", "x");
	other = fork();
	if (!other) {
		for (unsigned i = 0; i < 20000000 && getppid() != 1; i++)
			if (renameat(dir, i & 1 ? "moved" : "restless", dir, i & 1 ? "restless" : "moved"))
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 20000; i++) {
		int fd = fs_open_beneath(dir, path, O_RDONLY);

		if (fd < 0)
			kill(other, SIGKILL);
		assert_true(fd >= 0);
		close(fd);
	}
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

static void makes_folders(void **state)
{
	char path[FS_PATH_SIZE], long_one[PATH_MAX + 1];
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(fs_path(path, "%s/a/b//c", folder), 0);
	assert_int_equal(fs_mkdir_all(path, 0700), 0);
	assert_int_equal(fs_mkdir_all(path, 0755), 0); /* it is there, and stays as it is */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fstatat(dir, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	put("a/file", "");
	assert_int_equal(fs_path(path, "%s/a/file", folder), 0);
	assert_int_equal(fs_mkdir_all(path, 0755), -ENOTDIR);
	assert_int_equal(fs_path(path, "%s/a/file/x", folder), 0);
	assert_int_equal(fs_mkdir_all(path, 0755), -ENOTDIR);
	assert_int_equal(fs_mkdir_all("", 0755), -ENAMETOOLONG);
	memset(long_one, 'x', PATH_MAX);
	long_one[PATH_MAX] = '\0';
	assert_int_equal(fs_mkdir_all(long_one, 0755), -ENAMETOOLONG);
}

/* Root could write the file by its own name; by the name of this descriptor nobody can. */
static void a_descriptor_apart(void **state)
{
	char path[FS_PATH_SIZE], again[64], got[8] = "";
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	put("apart", "text");
	assert_int_equal(fs_path(path, "%s/apart", folder), 0);
	fd = fs_open_apart(path);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, sizeof(got)), 4);
	assert_string_equal(got, "text");
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	assert_int_equal(open(again, O_WRONLY), -1);
	assert_int_equal(errno, EROFS);
	close(fd);
	fd = open(path, O_RDONLY); /* the control: an ordinary descriptor */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	close(open(again, O_WRONLY | O_TRUNC));
	close(fd);
	assert_int_equal(fstatat(dir, "apart", &(struct stat){ 0 }, 0), 0);
	assert_true(fs_open_apart("/nowhere/at/all") == -ENOENT);
}

static void below(void **state)
{
	(void)state;
	assert_true(path_below("/a/b", "/a"));
	assert_true(path_below("/a", "/a"));
	assert_true(path_below("/a", "/"));
	assert_true(path_below("/", "/"));
	assert_false(path_below("/ab", "/a"));
	assert_false(path_below("/a", "/a/b"));
	assert_false(path_below("/b/a", "/a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below),
		cmocka_unit_test(reads_files),
		cmocka_unit_test(writes_what_exists),
		cmocka_unit_test(writes_all_of_it),
		cmocka_unit_test(a_reader_that_is_gone),
		cmocka_unit_test(paths),
		cmocka_unit_test(stays_beneath),
		cmocka_unit_test(renames_elsewhere_do_not_matter),
		cmocka_unit_test(makes_folders),
		cmocka_unit_test(a_descriptor_apart),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
