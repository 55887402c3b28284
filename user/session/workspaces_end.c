/* SPDX-License-Identifier: MIT */
/*
 * Workspaces of sessions that have ended: kept, archived or removed, as the policy says.
 *
 * A workspace that goes is first moved to {data_dir}/.ended, under a name that says when and what is to be done:
 * TIME.USER,SESSION.archive or .remove. The move is one step, so the session may come back at once, to an empty workspace.
 * What is left is work for a child, one at a time: tar, into {data_dir}/.archives, and rm. The directory is the queue: a
 * restarted daemon goes on with what it finds there. An archive counts when it has its name: until then it is NAME.part, and
 * made anew. What could not be archived stays, as .failed: nothing is lost that was to be kept.
 *
 * The files are a stranger's. Neither tar nor rm follows a link; a file with holes is read without them; the archive has a
 * bound (RLIMIT_FSIZE) and both have a time. A workspace's user is free again when the last of its files is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "session/workspaces_internal.h"

static const char *const fates[] = { [WORKSPACE_ARCHIVE] = ".archive", [WORKSPACE_REMOVE] = ".remove" };

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	return len > end && !strcmp(name + len - end, suffix);
}

/* -- the queue --------------------------------------------------------------------- */

int ended_open(struct workspaces *workspaces)
{
	_closedir_ DIR *dir = NULL;
	const struct dirent *entry;
	struct stat st;
	int fd;

	workspaces->ended = directory_make(workspaces->dir, ".ended");
	workspaces->archives = workspaces->ended < 0 ? -1 : directory_make(workspaces->dir, ".archives");
	if (workspaces->archives < 0)
		return workspaces->ended < 0 ? workspaces->ended : workspaces->archives;
	fd = directory_open(workspaces->ended, ".");
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return fd < 0 ? fd : -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			uid_mark(workspaces, st.st_uid, true);
	workspaces->pending = true;
	return 0;
}

void ended_close(struct workspaces *workspaces)
{
	/* The child ends by itself, and the next daemon looks at what it left. */
	cleanup_close(&workspaces->ended);
	cleanup_close(&workspaces->archives);
}

int workspaces_end(struct workspaces *workspaces, const struct session_name *session, enum workspace_fate fate)
{
	_close_ int dir = -1;
	char user[NP_NAME_MAX + 1], name[ENDED_NAME_SIZE], path[FS_PATH_SIZE];
	/* -ENOENT and nothing else means that there is none: a level is forgotten on that word. */
	int r = workspaces_find(workspaces, session, path);

	if (r < 0 || fate == WORKSPACE_KEEP)
		return r;
	user_of(session, user);
	dir = directory_open(workspaces->dir, user);
	if (dir < 0)
		return dir;
	snprintf(name, sizeof(name), "%llu.%s,%s%s", (unsigned long long)workspaces->config.wall_us(), user,
		 session_of(session), fates[fate]);
	if (renameat2(dir, session_of(session), workspaces->ended, name, RENAME_NOREPLACE) < 0)
		return -errno;
	unlinkat(workspaces->dir, user, AT_REMOVEDIR); /* the last of this user; others keep it */
	workspaces->pending = true;
	return 0;
}

/* -- the work ------------------------------------------------------------------------ */

static void ended_report(struct workspaces *workspaces, bool failed, const char *text)
{
	const char *from = strchr(workspaces->job.name, '.'), *comma = strchr(workspaces->job.name, ',');
	char session[ENDED_NAME_SIZE];
	size_t user = from && comma > from ? (size_t)(comma - from - 1) : 0;

	if (!user || !workspaces->config.report)
		return;
	snprintf(session, sizeof(session), "%.*s/%s", (int)user, from + 1, comma + 1);
	*strrchr(session, '.') = '\0'; /* what was to be done */
	workspaces->config.report(workspaces->config.data, session, failed, text);
}

/* TIME.USER,SESSION.tar */
static void archive_name(const struct ended_job *job, const char *suffix, char name[static ENDED_NAME_SIZE])
{
	snprintf(name, ENDED_NAME_SIZE, "%.*s%s", (int)(strlen(job->name) - strlen(fates[WORKSPACE_ARCHIVE])),
		 job->name, suffix);
}

static void child_run(const struct workspaces *workspaces)
{
	const struct ended_job *job = &workspaces->job;
	const struct rlimit bound = { workspaces->archive_max, workspaces->archive_max };
	char from[FS_PATH_SIZE], part[ENDED_NAME_SIZE], to[FS_PATH_SIZE];
	char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next daemon begins anew, and two would write one archive */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGXFSZ, SIG_DFL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || nice(10) == -1)
		_exit(126);
	umask(077);
	if (fs_path(from, "%s/.ended/%s", workspaces->path, job->name) < 0)
		_exit(126);
	if (!job->archives) {
		execvpe("rm", (char *[]){ "rm", "-rf", "--one-file-system", "--", from, NULL }, environment);
		_exit(127);
	}
	archive_name(job, ".tar.part", part);
	if (fs_path(to, "%s/.archives/%s", workspaces->path, part) < 0 || setrlimit(RLIMIT_FSIZE, &bound) < 0)
		_exit(126);
	execvpe("tar",
		(char *[]){ "tar", "--create", "--file", to, "--force-local", "--sparse", "--one-file-system",
			    "--numeric-owner", "--directory", from, "--", ".", NULL },
		environment);
	_exit(127);
}

static void job_start(struct workspaces *workspaces, const char *name)
{
	struct ended_job *job = &workspaces->job;
	char part[ENDED_NAME_SIZE];
	struct stat st;

	*job = (struct ended_job){ .archives = ends_in(name, fates[WORKSPACE_ARCHIVE]) };
	snprintf(job->name, sizeof(job->name), "%s", name);
	if (fstatat(workspaces->ended, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	job->uid = st.st_uid;
	if (job->archives) {
		archive_name(job, ".tar.part", part);
		unlinkat(workspaces->archives, part, 0); /* of a try that was cut short */
	}
	job->deadline_ns = workspaces->config.now_ns() + NP_ARCHIVE_S * 1000000000ull;
	job->pid = fork();
	if (job->pid == 0)
		child_run(workspaces);
	if (job->pid < 0)
		job->pid = 0; /* another try in a second */
}

/* What could not be done stays for an operator. */
static void job_failed(struct workspaces *workspaces, const char *why)
{
	struct ended_job *job = &workspaces->job;
	char name[ENDED_NAME_SIZE + 8], part[ENDED_NAME_SIZE], text[FS_PATH_SIZE];

	if (job->archives) {
		archive_name(job, ".tar.part", part);
		unlinkat(workspaces->archives, part, 0);
	}
	snprintf(name, sizeof(name), "%.*s.failed", (int)(strrchr(job->name, '.') - job->name), job->name);
	if (renameat(workspaces->ended, job->name, workspaces->ended, name) < 0)
		snprintf(name, sizeof(name), "%s", job->name);
	snprintf(text, sizeof(text), "it could not be %s (%s) and stays in %.2048s/.ended/%s",
		 job->archives ? "archived" : "removed", why, workspaces->path, name);
	ended_report(workspaces, true, text);
}

/* The archive gets its name when it is on the disk; then what it was made of may go. */
static int archive_finish(struct workspaces *workspaces)
{
	struct ended_job *job = &workspaces->job;
	char part[ENDED_NAME_SIZE], name[ENDED_NAME_SIZE], next[ENDED_NAME_SIZE], text[FS_PATH_SIZE];
	_close_ int fd = -1;

	archive_name(job, ".tar.part", part);
	archive_name(job, ".tar", name);
	archive_name(job, fates[WORKSPACE_REMOVE], next);
	fd = openat(workspaces->archives, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0 || renameat(workspaces->archives, part, workspaces->archives, name) < 0 ||
	    fsync(workspaces->archives) < 0)
		return -errno;
	snprintf(text, sizeof(text), "archived as %.2048s/.archives/%s", workspaces->path, name);
	ended_report(workspaces, false, text);
	return renameat(workspaces->ended, job->name, workspaces->ended, next) < 0 ? -errno : 0;
}

static void job_finish(struct workspaces *workspaces, int status)
{
	struct ended_job *job = &workspaces->job;
	struct stat st;
	int r;

	if (WIFSIGNALED(status)) {
		job_failed(workspaces, WTERMSIG(status) == SIGXFSZ   ? "it is larger than archive_max"
				       : WTERMSIG(status) == SIGKILL ? "it took too long"
								     : strsignal(WTERMSIG(status)));
	} else if (WEXITSTATUS(status)) {
		job_failed(workspaces, job->archives ? "tar failed" : "rm failed");
	} else if (job->archives) {
		r = archive_finish(workspaces);
		if (r)
			job_failed(workspaces, strerror(-r));
	} else if (fstatat(workspaces->ended, job->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
		uid_mark(workspaces, job->uid, false);
		ended_report(workspaces, false, "removed");
	}
}

/* True while the child is at work. */
static bool job_runs(struct workspaces *workspaces)
{
	struct ended_job *job = &workspaces->job;
	int status = 0;
	pid_t r;

	if (!job->pid)
		return false;
	r = waitpid(job->pid, &status, WNOHANG);
	if (r == 0) {
		if (workspaces->config.now_ns() > job->deadline_ns)
			kill(job->pid, SIGKILL);
		return true;
	}
	job->pid = 0;
	if (r > 0)
		job_finish(workspaces, status);
	return false;
}

void workspaces_sweep(struct workspaces *workspaces, uint64_t archive_max)
{
	_closedir_ DIR *dir = NULL;
	const struct dirent *entry = NULL;
	int fd;

	workspaces->archive_max = archive_max;
	if (job_runs(workspaces) || !workspaces->pending)
		return;
	fd = directory_open(workspaces->ended, ".");
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir)))
		if (ends_in(entry->d_name, fates[WORKSPACE_ARCHIVE]) || ends_in(entry->d_name, fates[WORKSPACE_REMOVE]))
			break;
	if (entry)
		job_start(workspaces, entry->d_name);
	else if (dir)
		workspaces->pending = false;
}
