/* SPDX-License-Identifier: MIT */
#include "daemon/launches_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "control/http_status.h"
#include "reason.h"

bool launch_ended(const struct launch *launch)
{
	return !launch->pid && launch->streams[0].fd < 0 && launch->streams[1].fd < 0;
}

struct launch *launch_find(const struct launches *l, uint64_t id)
{
	struct launch *launch = TAILQ_FIRST(&l->all);

	while (launch && launch->id != id)
		launch = TAILQ_NEXT(launch, of_all);
	return launch;
}

void launch_free(struct launch *launch)
{
	struct launches *l = launch->launches;

	for (size_t i = 0; i < ARRAY_SIZE(launch->streams); i++)
		fd_end(l, &launch->streams[i].fd);
	fd_end(l, &launch->pidfd);
	input_close(launch);
	launch_forget(launch);
	l->bytes -= launch->lines.len;
	buf_free(&launch->lines);
	TAILQ_REMOVE(&l->all, launch, of_all);
	l->count--;
	free(launch);
}

static void on_exit_of(void *data, uint32_t events)
{
	struct launch *launch = data;
	struct launches *l = launch->launches;

	(void)events;
	if (waitpid(launch->pid, NULL, WNOHANG) == 0)
		return;
	launch->pid = 0;
	fd_end(l, &launch->pidfd);
	l->config.on_end(l->config.data, launch->id);
	l->config.on_output(l->config.data);
}

/* -- start ------------------------------------------------------------------------------ */

/* What it only holds, out of the way of the numbers that others get. */
static int held_open(const struct launch *launch, int held[static 2])
{
	for (size_t i = 0; i < 2; i++) {
		held[i] = fcntl(launch->streams[i].fd, F_DUPFD_CLOEXEC, 64);
		if (held[i] < 0)
			return -errno;
	}
	return 0;
}

/* fds: what it gets as 0, 1, 2. terminal: a name instead, which becomes its controlling terminal. held: what it gets as
 * LAUNCH_HELD and after that; -1: nothing. */
static int launcher_spawn(const char *const *argv, const int fds[3], const int held[2], const char *terminal,
			  pid_t *ret)
{
	int next = LAUNCH_HELD;
	static const char *const environment[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
						   "LANG=C.UTF-8", "TERM=xterm", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r = 0;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						(terminal ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
	for (int i = 0; !r && i < 3; i++)
		r = terminal ? posix_spawn_file_actions_addopen(&actions, i, terminal, O_RDWR, 0)
			     : posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	for (int i = 0; !r && i < 2 && held[i] >= 0; i++)
		r = posix_spawn_file_actions_adddup2(&actions, held[i], next++);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, next);
	if (!r)
		r = posix_spawn_file_actions_addchdir_np(&actions, "/");
	descriptors_lower(); /* commands get what netpawld was started with */
	if (!r)
		r = posix_spawn(ret, argv[0], &actions, &attr, (char *const *)argv, (char *const *)environment);
	descriptors_raise_again();
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

/* Pipes, of which the launcher gets the far ends. */
static int pipes_make(struct launch *launch, bool input, int far[static 3])
{
	for (int i = 0; i < 3; i++) {
		int pair[2];

		if (i == 0 && !input) {
			far[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			if (far[0] < 0)
				return -errno;
			continue;
		}
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		far[i] = pair[i ? 1 : 0];
		*(i ? &launch->streams[i - 1].fd : &launch->to) = pair[i ? 0 : 1];
	}
	return 0;
}

/* A terminal of its own. What it writes, standard error included, is one stream. */
static int terminal_make(struct launch *launch, const struct run_launch *how, char name[static 64])
{
	const struct winsize size = { .ws_row = (unsigned short)how->rows, .ws_col = (unsigned short)how->columns };

	launch->terminal = true;
	launch->to = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (launch->to < 0 || grantpt(launch->to) < 0 || unlockpt(launch->to) < 0 ||
	    ptsname_r(launch->to, name, 64) != 0 || ioctl(launch->to, TIOCSWINSZ, &size) < 0)
		return -errno;
	launch->streams[0].fd = fcntl(launch->to, F_DUPFD_CLOEXEC, 3); /* each is watched for itself */
	return launch->streams[0].fd < 0 ? -errno : 0;
}

int launch_watch(struct launch *launch)
{
	struct loop *loop = launch->launches->config.loop;
	int r;

	launch->pidfd = (int)syscall(SYS_pidfd_open, launch->pid, 0);
	r = launch->pidfd < 0 ? -errno : loop_watch(loop, launch->pidfd, EPOLLIN, on_exit_of, launch);
	if (launch->to >= 0)
		fcntl(launch->to, F_SETFL, O_NONBLOCK);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(launch->streams); i++) {
		if (launch->streams[i].fd < 0)
			continue;
		fcntl(launch->streams[i].fd, F_SETFL, O_NONBLOCK);
		r = loop_watch(loop, launch->streams[i].fd, EPOLLIN, on_output, &launch->streams[i]);
	}
	return r;
}

static int launch_spawn(struct launch *launch, const struct run_launch *how)
{
	struct launches *l = launch->launches;
	char id[24], terminal[64];
	const char *const argv[] = { l->exe, l->socket, id, NULL };
	int far[3] = { -1, -1, -1 }, held[2] = { -1, -1 }, r;

	snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->id);
	r = how->rows ? terminal_make(launch, how, terminal) : pipes_make(launch, how->input || how->attach, far);
	if (r == 0 && !launch->terminal && !launch->attach)
		r = held_open(launch, held);
	if (r == 0)
		r = launcher_spawn(argv, far, held, how->rows ? terminal : NULL, &launch->pid);
	for (int i = 0; i < 3; i++)
		cleanup_close(&far[i]);
	for (int i = 0; i < 2; i++)
		cleanup_close(&held[i]);
	if (r < 0)
		return r;
	launch_keep(launch);
	r = launch_watch(launch);
	if (r < 0) {
		kill(launch->pid, SIGKILL); /* before it could have started anything: it asks us first */
		waitpid(launch->pid, NULL, 0);
	}
	return r;
}

static unsigned launches_of(const struct launches *l, uid_t caller)
{
	const struct launch *launch;
	unsigned n = 0;

	TAILQ_FOREACH(launch, &l->all, of_all) {
		n += launch->caller == caller && !launch_ended(launch);
	}
	return n;
}

int launch_new(struct launches *l, const struct run_launch *how, struct launch **ret)
{
	struct launch *launch = calloc(1, sizeof(*launch));

	if (!launch)
		return -ENOMEM;
	*launch = (struct launch){ .launches = l,
				   .id = how->id,
				   .caller = how->caller,
				   .attach = how->attach,
				   .pidfd = -1,
				   .to = -1,
				   .lines = BUF_INIT(NP_LAUNCH_OUTPUT),
				   .input = BUF_INIT(NP_LAUNCH_INPUT + 64) };
	launch->streams[0] = (struct stream){ .launch = launch, .name = "stdout", .fd = -1 };
	launch->streams[1] = (struct stream){ .launch = launch, .name = "stderr", .fd = -1 };
	TAILQ_INSERT_TAIL(&l->all, launch, of_all);
	l->count++;
	*ret = launch;
	return 0;
}

static int launches_start(void *ctx, const struct run_launch *how, struct failure *ret_failure)
{
	struct launches *l = ctx;
	struct launch *launch = NULL;
	int r;

	if (launches_of(l, how->caller) >= NP_LAUNCHES_PER_USER)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_MANY,
				   "%d runs that user %u has had started are not over", NP_LAUNCHES_PER_USER,
				   (unsigned)how->caller);
	if (!launch_room_make(l))
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_MANY, "%d runs that the API started are not over",
				   NP_LAUNCHES_MAX);
	r = launch_new(l, how, &launch);
	if (r == 0)
		r = launch_spawn(launch, how);
	if (r == 0)
		return 0;
	if (launch)
		launch_free(launch);
	return failure_put(ret_failure, r, NP_R_FAILED, "%.400s: %s", l->exe, strerror(-r));
}

static void launches_stop(void *ctx, uint64_t id)
{
	const struct launch *launch = launch_find(ctx, id);

	if (launch && launch->pid)
		syscall(SYS_pidfd_send_signal, launch->pidfd, SIGKILL, NULL, 0);
}

static int launches_follow(void *ctx, uint64_t id, uid_t caller, bool *ret_reads)
{
	struct launch *launch = launch_find(ctx, id);

	*ret_reads = false;
	if (!launch || !launch->attach)
		return launch ? 0 : -ENOENT;
	/* What he reads is forgotten, and his end is the run's: nobody else's business. */
	if (launch->caller != caller)
		return -EACCES;
	if (launch->read)
		return -EBUSY;
	*ret_reads = launch->read = true;
	return 0;
}

static void launches_leave(void *ctx, uint64_t id)
{
	struct launch *launch = launch_find(ctx, id);

	if (!launch || !launch->attach)
		return;
	launch->attach = false; /* what comes now is kept as anybody's, and does not hold it up */
	streams_hold(launch);
	launches_stop(ctx, id);
}

static pid_t launches_pid(void *ctx, uint64_t id)
{
	const struct launch *launch = launch_find(ctx, id);

	return launch ? launch->pid : 0;
}

static uint64_t launches_run(void *ctx, pid_t pid)
{
	const struct launches *l = ctx;
	const struct launch *launch = TAILQ_FIRST(&l->all);

	while (launch && (pid <= 0 || launch->pid != pid))
		launch = TAILQ_NEXT(launch, of_all);
	return launch ? launch->id : 0;
}

struct launcher launches_launcher(struct launches *l)
{
	return (struct launcher){
		.start = launches_start,
		.input = launches_input,
		.stop = launches_stop,
		.follow = launches_follow,
		.leave = launches_leave,
		.pid = launches_pid,
		.run = launches_run,
		.output = launches_output,
		.ctx = l,
	};
}

int launches_new(const struct launches_config *config, struct launches **ret)
{
	struct launches *l = calloc(1, sizeof(*l));
	int r = l ? fs_beside(l->exe, "netpawl-run") : -ENOMEM;

	if (r == 0)
		r = fs_path(l->socket, "%s", config->socket_path);
	if (r == 0)
		r = fs_path(l->dir, "%s", config->dir);
	if (r < 0) {
		free(l);
		return r;
	}
	l->config = *config;
	TAILQ_INIT(&l->all);
	r = launches_recover(l);
	if (r < 0) {
		launches_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void launches_free(struct launches *l)
{
	struct launch *launch;

	if (!l)
		return;
	while ((launch = TAILQ_FIRST(&l->all))) {
		launch_leave_kept(launch);
		launch_free(launch);
	}
	free(l);
}
