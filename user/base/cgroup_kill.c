/* SPDX-License-Identifier: MIT */
/*
 * The kernel does it in one step where a cgroup is a domain. A threaded one has no such step: there it is frozen, so that nobody
 * in it forks any more, and each process is killed by a descriptor, which cannot come to mean another one. A frozen process
 * dies of SIGKILL all the same.
 */
#include "base/cgroup_kill.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define THREADS_MAX (8u << 20) /* bytes of one cgroup.threads: a million of them */
#define ROUNDS	    500	       /* of a millisecond, until the last of them is frozen, and was killed */
#define AT_ONCE	    128	       /* descriptors, then a look at the list */

static int control_write(const char *path, const char *file, const char *text)
{
	char name[FS_PATH_SIZE];
	int r = fs_path(name, "%s/%s", path, file);

	return r < 0 ? r : fs_write_at(AT_FDCWD, name, text);
}

/* The number behind a word of /proc/TID/status; 0: it is gone. */
static pid_t process_of(const char *tid)
{
	char name[64];
	_free_ char *text = NULL;
	const char *at;

	snprintf(name, sizeof(name), "/proc/%.20s/status", tid);
	if (fs_read_at(AT_FDCWD, name, 65536, &text) < 0)
		return 0;
	at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : 0;
}

static bool is_listed(const char *list, const char *tid)
{
	const size_t len = strlen(tid);

	for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, tid, len) && (line[len] == '\n' || !line[len]))
			return true;
	return false;
}

static int threads_read(const char *path, char **ret)
{
	char name[FS_PATH_SIZE];
	int r = fs_path(name, "%s/cgroup.threads", path);

	return r < 0 ? r : fs_read_at(AT_FDCWD, name, THREADS_MAX, ret);
}

/* How many there were, or -errno. The descriptors are opened first, then the list is read a second time: a pid that
 * is still there is the process that its descriptor was opened for, because no process enters this cgroup (no TOCTOU
 * by a reused pid). */
static int threads_kill(const char *path)
{
	const char *tids[AT_ONCE];
	char *save = NULL, *tid;
	_free_ char *text = NULL;
	int fds[AT_ONCE], n = 0, r = threads_read(path, &text);

	tid = r < 0 ? NULL : strtok_r(text, "\n", &save);
	while (tid) {
		_free_ char *again = NULL;
		int k = 0;

		for (; tid && k < AT_ONCE; tid = strtok_r(NULL, "\n", &save), k++) {
			const pid_t process = process_of(tid);

			tids[k] = tid;
			fds[k] = process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;
		}
		n += k;
		r = threads_read(path, &again);
		while (k-- > 0) {
			if (fds[k] >= 0 && r == 0 && is_listed(again, tids[k]))
				syscall(SYS_pidfd_send_signal, fds[k], SIGKILL, NULL, 0);
			cleanup_close(&fds[k]);
		}
	}
	return r < 0 ? r : n;
}

int cgroup_empty(const char *path)
{
	int r = control_write(path, "cgroup.freeze", "1");

	if (r < 0)
		return r;
	for (unsigned i = 0; i < ROUNDS; i++) {
		r = threads_kill(path);
		if (r <= 0)
			break;
		usleep(1000);
	}
	control_write(path, "cgroup.freeze", "0");
	return r > 0 ? -EBUSY : r;
}

int cgroup_kill(const char *path)
{
	int r = control_write(path, "cgroup.kill", "1");

	return r == -EOPNOTSUPP ? cgroup_empty(path) : r;
}
