/* SPDX-License-Identifier: MIT */
/* Real roots, each in a process with a mount and a process namespace of its own. Needs root. */
#include "launch/root.c"

#include <sched.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <cmocka.h>

static char folder[] = "/tmp/np-root-XXXXXX", problem[ROOT_PROBLEM_SIZE], path[FS_PATH_SIZE];
static struct buf words = BUF_INIT(64);
static struct step steps[40];
static size_t n_steps;

static const char *in_folder(const char *name)
{
	assert_int_equal(fs_path(path, "%s/%s", folder, name), 0);
	return path;
}

static void step_put(struct step step)
{
	steps[n_steps++] = step;
}

/* What every one of them has. */
static void steps_begin(void)
{
	n_steps = 0;
	step_put((struct step){ .kind = STEP_RO_BIND, .source = "/usr", .dest = "/usr" });
	step_put((struct step){ .kind = STEP_PROC, .dest = "/proc" });
	step_put((struct step){ .kind = STEP_TMPFS, .dest = "/dev", .mode = 0755 });
	step_put((struct step){ .kind = STEP_DEVPTS, .dest = "/dev/pts" });
	step_put((struct step){ .kind = STEP_DEVICE, .source = "/dev/null", .dest = "/dev/null" });
	step_put((struct step){ .kind = STEP_BIND, .source = folder, .dest = "/data" });
}

/* The exit code of look() in the root that was built, or 100 when it was not: then problem has the words, and the result is at
 * its end. */
static int build(const char *directory, int (*look)(void))
{
	static const struct identity somebody = { .uid = 4711, .gid = 4712 };
	struct plan plan = { .steps = steps, .n_steps = n_steps, .directory = directory, .identity = &somebody };
	int ends[2], status = 0;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		/* Nothing of it may reach the host, whatever root_build() does. */
		if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(99);
		pid = fork();
		if (pid == 0) {
			int r = root_build(&plan, problem);

			if (r == 0)
				_exit(look());
			snprintf(problem + strlen(problem), sizeof(problem) - strlen(problem), " (%d)", r);
			_exit(write(ends[1], problem, strlen(problem) + 1) > 0 ? 100 : 98);
		}
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
	}
	close(ends[1]);
	problem[0] = '\0';
	assert_true(read(ends[0], problem, sizeof(problem)) >= 0);
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}

#define CHECK(what)                               \
	do {                                      \
		if (!(what))                      \
			return __LINE__ % 90 + 1; \
	} while (0)

static unsigned long flags_of(const char *name)
{
	struct statvfs st;

	return statvfs(name, &st) < 0 ? ~0UL : st.f_flag;
}

static int nothing(void)
{
	return 0;
}

static int look_around(void)
{
	char text[64] = "", cwd[64];
	struct stat st;
	int fd;

	CHECK(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/data"));
	/* The host's is gone, and the new one is not to be written. */
	CHECK(access("/etc", F_OK) < 0 && access("/tmp", F_OK) < 0 && access("..", F_OK) == 0);
	CHECK(mkdir("/x", 0755) < 0 && errno == EROFS);
	CHECK(mkdir("/usr/x", 0755) < 0 && errno == EROFS);
	CHECK((flags_of("/usr") & (ST_RDONLY | ST_NOSUID | ST_NODEV)) == (ST_RDONLY | ST_NOSUID | ST_NODEV));
	CHECK((flags_of("/data") & (ST_RDONLY | ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	CHECK(mkdir("/data/made", 0755) == 0 && rmdir("/data/made") == 0);
	/* Of the process namespace: we are the first there. */
	CHECK(readlink("/proc/self", text, sizeof(text)) == 1 && text[0] == '1');
	CHECK(flags_of("/proc/sys") & ST_RDONLY && !(flags_of("/proc") & ST_RDONLY));
	CHECK(open("/proc/sys/kernel/hostname", O_WRONLY) < 0 && errno == EROFS);
	/* A device that works, and one that a directory shows and that does not. */
	fd = open("/dev/null", O_RDWR);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	CHECK(open("/data/null", O_RDWR) < 0 && errno == EACCES);
	CHECK(stat("/dev/pts/ptmx", &st) == 0 && S_ISCHR(st.st_mode));
	/* In memory, with its mode and its size. */
	CHECK(stat("/mem", &st) == 0 && (st.st_mode & 07777) == 01777);
	fd = open("/mem/file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "x", 1, 0) == 1);
	CHECK(pwrite(fd, "x", 1, 4096) < 0 && errno == ENOSPC);
	/* One file at two places; the first is made, the second is put over one that is there. */
	fd = open("/new/file", O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 5 && !memcmp(text, "words", 5));
	fd = open("/data/words", O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 5 && !memcmp(text, "words", 5));
	CHECK(open("/new/file", O_WRONLY) < 0 && errno == EROFS);
	/* And one of the command's own. */
	CHECK(stat("/own", &st) == 0 && st.st_uid == 4711 && st.st_gid == 4712 && (st.st_mode & 0777) == 0700);
	CHECK(stat("/own/dir", &st) == 0 && st.st_uid == 4711 && st.st_gid == 4712);
	CHECK(stat("/own/dir/file", &st) == 0 && st.st_uid == 4711 && st.st_size == 5 && (st.st_mode & 0777) == 0600);
	CHECK(!(flags_of("/own") & ST_RDONLY));
	CHECK(readlink("/bin", text, sizeof(text)) == 7 && !memcmp(text, "usr/bin", 7));
	CHECK(umask(0) == 022);
	return 0;
}

static void one_of_each_kind(void **state)
{
	struct stat st;

	(void)state;
	umask(022);
	steps_begin();
	step_put((struct step){ .kind = STEP_SYMLINK, .source = "usr/bin", .dest = "/bin" });
	step_put((struct step){ .kind = STEP_DIR, .dest = "/new", .mode = 0755 });
	step_put((struct step){ .kind = STEP_DIR, .dest = "/new", .mode = 0700 }); /* it is there, and stays as it is */
	step_put((struct step){ .kind = STEP_TMPFS, .dest = "/mem", .mode = 01777, .size = 4096 });
	step_put((struct step){ .kind = STEP_FILE, .dest = "/new/file", .file = &words });
	step_put((struct step){ .kind = STEP_FILE, .dest = "/data/words", .file = &words });
	step_put((struct step){ .kind = STEP_TMPFS, .dest = "/own", .mode = 0700, .own = true });
	step_put((struct step){ .kind = STEP_DIR, .dest = "/own/dir", .mode = 0700, .own = true });
	step_put((struct step){ .kind = STEP_FILE, .dest = "/own/dir/file", .file = &words, .own = true });
	step_put((struct step){ .kind = STEP_REMOUNT_RO, .dest = "/" });
	assert_int_equal(build("/data", look_around), 0);
	assert_string_equal(problem, "");
	/* What is put over a file leaves it as it was. */
	assert_int_equal(stat(in_folder("words"), &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void what_cannot_be_done_is_said(void **state)
{
	struct stat st;

	(void)state;
	steps_begin();
	assert_int_equal(build("/nowhere", nothing), 100);
	assert_non_null(strstr(problem, "cannot start in /nowhere: No such file or directory (-22)"));
	/* It may have gone with a mount: another look at the host may do. */
	step_put((struct step){ .kind = STEP_BIND, .source = "/np-nowhere", .dest = "/x" });
	assert_int_equal(build("/", nothing), 100);
	assert_non_null(strstr(problem, "/np-nowhere: No such file or directory (-11)"));
	/* To cover what is gone, nothing is made: it would be the host's. */
	steps[n_steps - 1] = (struct step){ .kind = STEP_TMPFS, .dest = "/data/gone", .mode = 0555, .over = true };
	assert_int_equal(build("/", nothing), 100);
	assert_non_null(strstr(problem, "tmpfs at /data/gone: No such file or directory (-11)"));
	assert_int_equal(access(in_folder("gone"), F_OK), -1);
	/* A mount point cannot be made in what is shown read-only. */
	steps[n_steps - 1] = (struct step){ .kind = STEP_BIND, .source = folder, .dest = "/usr/np-new" };
	assert_int_equal(build("/", nothing), 100);
	assert_non_null(strstr(problem, "--bind: /usr/np-new is not there in the sandbox"));
	assert_non_null(strstr(problem, "(-22)"));
	/* What was looked at is what is shown. */
	assert_int_equal(stat(folder, &st), 0);
	steps[n_steps - 1] = (struct step){
		.kind = STEP_BIND, .source = folder, .dest = "/x", .device = st.st_dev, .inode = st.st_ino
	};
	assert_int_equal(build("/", nothing), 0);
	steps[n_steps - 1].inode++;
	assert_int_equal(build("/", nothing), 100);
	assert_non_null(strstr(problem, "/x: what was to be mounted there was exchanged on the way (-22)"));
}

/* In what a sandbox writes, somebody may have put links in the way of a mount. */
static void links_lead_nowhere_else(void **state)
{
	static const char *const targets[] = { "/usr", "../usr", "../../../../usr" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		assert_int_equal(symlink(targets[i], in_folder("link")), 0);
		steps_begin();
		step_put((struct step){ .kind = STEP_TMPFS, .dest = "/data/link/lib", .mode = 0755 });
		/* By "../usr" it is the sandbox's own; the others lead out of it. */
		assert_int_equal(build("/", nothing), i == 1 ? 0 : 100);
		/* At its end none is followed. */
		steps[n_steps - 1] =
			(struct step){ .kind = STEP_TMPFS, .dest = "/data/link", .mode = 0700, .own = true };
		assert_int_equal(build("/", nothing), 100);
		assert_int_equal(unlink(in_folder("link")), 0);
	}
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	buf_puts(&words, "words");
	assert_int_equal(mknod(in_folder("words"), S_IFREG | 0644, 0), 0);
	return mknod(in_folder("null"), S_IFCHR | 0666, 0x103);
}

static int teardown(void **state)
{
	(void)state;
	unlink(in_folder("words"));
	unlink(in_folder("null"));
	buf_free(&words);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_each_kind),
		cmocka_unit_test(what_cannot_be_done_is_said),
		cmocka_unit_test(links_lead_nowhere_else),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
