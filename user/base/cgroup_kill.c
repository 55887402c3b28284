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

static bool is_in(const char *tid, const char *path)
{
	char name[64];
	_free_ char *text = NULL;
	const char *at;
	size_t len;

	snprintf(name, sizeof(name), "/proc/%.20s/cgroup", tid);
	if (fs_read_at(AT_FDCWD, name, 65536, &text) < 0)
		return false;
	at = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	at = at ? strchr(at, '/') : NULL;
	len = at ? strcspn(at, "\n") : 0;
	/* The path has the mount in front of it. */
	return len && strlen(path) >= len && !strncmp(path + strlen(path) - len, at, len);
}

/* The descriptor first, then the look: what is in the cgroup by then is who it was opened for, for nobody comes into it. */
static void thread_kill(const char *tid, const char *path)
{
	const pid_t process = process_of(tid);
	_close_ int fd = process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;

	if (fd >= 0 && is_in(tid, path))
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

/* How many there were, or -errno. */
static int threads_kill(const char *path)
{
	char name[FS_PATH_SIZE];
	_free_ char *text = NULL;
	int n = 0, r = fs_path(name, "%s/cgroup.threads", path);

	if (r == 0)
		r = fs_read_at(AT_FDCWD, name, THREADS_MAX, &text);
	if (r < 0)
		return r;
	for (char *save = NULL, *tid = strtok_r(text, "\n", &save); tid; tid = strtok_r(NULL, "\n", &save), n++)
		thread_kill(tid, path);
	return n;
}

int cgroup_kill(const char *path)
{
	int r = control_write(path, "cgroup.kill", "1");

	if (r != -EOPNOTSUPP)
		return r;
	r = control_write(path, "cgroup.freeze", "1");
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
