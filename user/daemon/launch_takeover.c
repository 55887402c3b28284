/* SPDX-License-Identifier: MIT */
/*
 * Launched runs outlive the daemon, and so does what they print. The launcher holds the reading ends of its own pipes
 * (LAUNCH_HELD): nobody gets EPIPE while no daemon is there, what is in the pipes stays, and a command that prints more waits.
 * What was read before is in a file of the run directory, whose name says whose it is:
 *
 *   RUN/launches/RUN.PID.START.USER     START: of the process, for numbers of processes come again
 *
 * The next daemon reads the file, takes the pipes from the launcher (pidfd_getfd) and goes on. Runs that somebody is attached
 * to, or that have a terminal, are not kept: whoever sat there is gone with the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/launches_internal.h"

/* When the process began, in ticks since the boot; 0: it is gone. */
static uint64_t process_start(pid_t pid)
{
	char path[64];
	_free_ char *text = NULL;
	const char *after;
	uint64_t start = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fs_read_at(AT_FDCWD, path, 4096, &text) < 0)
		return 0;
	after = strrchr(text, ')'); /* field 2, which may have anything in it */
	if (!after ||
	    sscanf(after + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		   &start) != 1)
		return 0;
	return start;
}

static int kept_path(const struct launches *l, const char *name, char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/%s", l->dir, name);
}

void launch_keep(struct launch *launch)
{
	char path[FS_PATH_SIZE];

	if (launch->attach || launch->terminal)
		return;
	snprintf(launch->kept_name, sizeof(launch->kept_name), "%" PRIu64 ".%d.%" PRIu64 ".%u", launch->id,
		 (int)launch->pid, process_start(launch->pid), (unsigned)launch->caller);
	launch->kept_fd = -1;
	if (kept_path(launch->launches, launch->kept_name, path) == 0)
		launch->kept_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (launch->kept_fd >= 0)
		return;
	log_warning("output of run %" PRIu64 " will not outlive the daemon: %s", launch->id, strerror(errno));
	launch->kept_name[0] = '\0';
}

void launch_keep_line(struct launch *launch, const char *data, size_t len)
{
	if (launch->kept_name[0] && fs_write_all(launch->kept_fd, data, len) < 0)
		launch_forget(launch); /* half of it would be no JSON */
}

void launch_leave_kept(struct launch *launch)
{
	if (launch->kept_name[0])
		cleanup_close(&launch->kept_fd);
	launch->kept_name[0] = '\0';
}

void launch_forget(struct launch *launch)
{
	char path[FS_PATH_SIZE];

	if (launch->kept_name[0] && kept_path(launch->launches, launch->kept_name, path) == 0)
		unlink(path);
	launch_leave_kept(launch);
}

/* -- the next daemon ---------------------------------------------------------------------------- */

/* A last line without its end was never read by anybody. */
static int lines_read(struct launch *launch, const char *path)
{
	const char *end;
	int r;

	launch->kept_fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (launch->kept_fd < 0)
		return -errno;
	r = fs_read_fd(launch->kept_fd, &launch->lines);
	if (r < 0)
		return r;
	end = launch->lines.len ? memrchr(launch->lines.data, '\n', launch->lines.len) : NULL;
	launch->lines.len = end ? (size_t)(end - launch->lines.data) + 1 : 0;
	if (ftruncate(launch->kept_fd, (off_t)launch->lines.len) < 0)
		return -errno;
	launch->truncated = launch->lines.len >= 19 && !memcmp(end - 18, "{\"truncated\":true}", 18);
	return 0;
}

/* Its pipes, if it still runs and is who it was. */
static void launcher_take(struct launch *launch, pid_t pid, uint64_t start)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return;
	if (!start || process_start(pid) != start) { /* looked at while the descriptor keeps its number */
		close(pidfd);
		return;
	}
	launch->pid = pid;
	launch->pidfd = pidfd;
	for (size_t i = 0; i < ARRAY_SIZE(launch->streams); i++)
		launch->streams[i].fd = (int)syscall(SYS_pidfd_getfd, pidfd, LAUNCH_HELD + i, 0);
}

static int launch_recover(struct launches *l, const char *name)
{
	struct run_launch how = { 0 };
	struct launch *launch = NULL;
	char path[FS_PATH_SIZE], again[96];
	uint64_t id, start;
	unsigned user;
	int pid, r;

	if (sscanf(name, "%" SCNu64 ".%d.%" SCNu64 ".%u", &id, &pid, &start, &user) != 4)
		return -EINVAL;
	snprintf(again, sizeof(again), "%" PRIu64 ".%d.%" PRIu64 ".%u", id, pid, start, user);
	if (strcmp(name, again) != 0 || pid <= 1 || launch_find(l, id) || l->count >= NP_LAUNCHES_MAX)
		return -EINVAL;
	how.id = id;
	how.caller = user;
	r = kept_path(l, name, path);
	if (r == 0)
		r = launch_new(l, &how, &launch);
	if (r < 0 || !launch)
		return r;
	memcpy(launch->kept_name, again, sizeof(launch->kept_name));
	r = lines_read(launch, path);
	if (r == 0) {
		l->bytes += launch->lines.len;
		launcher_take(launch, pid, start);
		r = launch->pid ? launch_watch(launch) : 0;
	}
	if (r < 0)
		launch_free(launch);
	return r;
}

static int by_run(const struct dirent **a, const struct dirent **b)
{
	const unsigned long long left = strtoull((*a)->d_name, NULL, 10), right = strtoull((*b)->d_name, NULL, 10);

	return left < right ? -1 : left > right;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int launches_recover(struct launches *l)
{
	struct dirent **entries = NULL;
	int n, r = fs_mkdir_all(l->dir, 0700);

	n = r < 0 ? 0 : scandir(l->dir, &entries, is_visible, by_run);
	for (int i = 0; i < n; i++) {
		char path[FS_PATH_SIZE];

		if (launch_recover(l, entries[i]->d_name) < 0 && kept_path(l, entries[i]->d_name, path) == 0)
			unlink(path);
		free(entries[i]);
	}
	free(entries);
	return r;
}
