/* SPDX-License-Identifier: MIT */
#include "daemon/launches.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"
#include "vocab/words.h"
#include "reason.h"
#include "vocab/limits.h"

#define READ_BYTES 16384
#define TAIL_MAX   3 /* bytes of a character whose rest has not come yet */

struct stream {
	struct launch *launch;
	const char *name;
	int fd; /* -1: ended */
	char tail[TAIL_MAX];
	size_t n_tail;
};

struct launch {
	TAILQ_ENTRY(launch) of_all;
	struct launches *launches;
	uint64_t id;
	pid_t pid; /* 0: reaped */
	int pidfd;
	struct stream streams[2];
	struct buf lines;
	bool truncated;
};

TAILQ_HEAD(launch_list, launch);

struct launches {
	struct launches_config config;
	char exe[FS_PATH_SIZE], socket[FS_PATH_SIZE];
	struct launch_list all; /* the oldest first */
	unsigned count;
};

static bool launch_ended(const struct launch *launch)
{
	return !launch->pid && launch->streams[0].fd < 0 && launch->streams[1].fd < 0;
}

static void fd_end(struct launches *l, int *fd)
{
	if (*fd < 0)
		return;
	loop_unwatch(l->config.loop, *fd);
	close(*fd);
	*fd = -1;
}

static void launch_free(struct launch *launch)
{
	struct launches *l = launch->launches;

	for (size_t i = 0; i < ARRAY_SIZE(launch->streams); i++)
		fd_end(l, &launch->streams[i].fd);
	fd_end(l, &launch->pidfd);
	buf_free(&launch->lines);
	TAILQ_REMOVE(&l->all, launch, of_all);
	l->count--;
	free(launch);
}

/* -- output ---------------------------------------------------------------------------- */

/* Bytes that may be the start of a character. */
static bool is_start(const char *text, size_t len)
{
	unsigned char c = (unsigned char)text[0];
	size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

	for (size_t i = 1; i < len; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return false;
	return len < want;
}

/* How many of the bytes are whole characters or never will be: all but a character that is cut in two. */
static size_t whole_length(const char *text, size_t len)
{
	for (size_t n = 1; n <= TAIL_MAX && n <= len; n++)
		if (is_start(text + len - n, n))
			return len - n;
	return len;
}

static void stream_take(struct stream *stream, const char *data, size_t len, bool last)
{
	struct launch *launch = stream->launch;
	char text[TAIL_MAX + READ_BYTES];
	_buf_ struct buf line = BUF_INIT(8 * sizeof(text));
	size_t used, n = stream->n_tail + len;

	memcpy(text, stream->tail, stream->n_tail);
	memcpy(text + stream->n_tail, data, len);
	used = last ? n : whole_length(text, n);
	json_open_object(&line, NULL);
	json_put_text(&line, "stream", stream->name, NP_NAME_MAX);
	json_put_bytes(&line, "data", text, used);
	json_close_object(&line);
	buf_puts(&line, "\n");
	stream->n_tail = n - used;
	memcpy(stream->tail, text + used, stream->n_tail);
	if (!used || launch->truncated)
		return;
	/* Room for the line that says so is kept. */
	if (buf_error(&line) || launch->lines.len + line.len + 64 > NP_LAUNCH_OUTPUT) {
		launch->truncated = true;
		buf_puts(&launch->lines, "{\"truncated\":true}\n");
	} else {
		buf_append(&launch->lines, line.data, line.len);
	}
}

static void on_output(void *data, uint32_t events)
{
	struct stream *stream = data;
	struct launches *l = stream->launch->launches;
	char bytes[READ_BYTES];
	ssize_t n = read(stream->fd, bytes, sizeof(bytes));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	stream_take(stream, bytes, n > 0 ? (size_t)n : 0, n <= 0);
	if (n <= 0)
		fd_end(l, &stream->fd);
	l->config.on_output(l->config.data);
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

/* ends: the writing ends, for its output and its errors. */
static int launcher_spawn(const char *const *argv, const int ends[2], pid_t *ret)
{
	static const char *const environment[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
						   "LANG=C.UTF-8", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	for (int i = 0; !r && i < 2; i++)
		r = posix_spawn_file_actions_adddup2(&actions, ends[i], 1 + i);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!r)
		r = posix_spawn_file_actions_addchdir_np(&actions, "/");
	if (!r)
		r = posix_spawn(ret, argv[0], &actions, &attr, (char *const *)argv, (char *const *)environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static int launch_spawn(struct launch *launch)
{
	struct launches *l = launch->launches;
	char id[24];
	const char *const argv[] = { l->exe, l->socket, id, NULL };
	_close_ int out = -1, err = -1;
	int pair[2][2], r;

	snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->id);
	if (pipe2(pair[0], O_CLOEXEC) < 0)
		return -errno;
	launch->streams[0].fd = pair[0][0];
	out = pair[0][1];
	if (pipe2(pair[1], O_CLOEXEC) < 0)
		return -errno;
	launch->streams[1].fd = pair[1][0];
	err = pair[1][1];
	r = launcher_spawn(argv, (const int[]){ out, err }, &launch->pid);
	if (r < 0)
		return r;
	launch->pidfd = (int)syscall(SYS_pidfd_open, launch->pid, 0);
	r = launch->pidfd < 0 ? -errno : loop_watch(l->config.loop, launch->pidfd, EPOLLIN, on_exit_of, launch);
	for (size_t i = 0; r == 0 && i < 2; i++) {
		fcntl(launch->streams[i].fd, F_SETFL, O_NONBLOCK);
		r = loop_watch(l->config.loop, launch->streams[i].fd, EPOLLIN, on_output, &launch->streams[i]);
	}
	if (r < 0) {
		kill(launch->pid, SIGKILL); /* before it could have started anything: it asks us first */
		waitpid(launch->pid, NULL, 0);
	}
	return r;
}

/* Room for one more: the oldest that has ended goes. */
static bool room_make(struct launches *l)
{
	struct launch *launch;

	if (l->count < NP_LAUNCHES_MAX)
		return true;
	for (launch = TAILQ_FIRST(&l->all); launch; launch = TAILQ_NEXT(launch, of_all)) {
		if (!launch_ended(launch))
			continue;
		launch_free(launch);
		return true;
	}
	return false;
}

int launches_start(struct launches *l, uint64_t id, struct failure *ret_failure)
{
	struct launch *launch;
	int r;

	ret_failure->reason = NP_R_TOO_MANY;
	snprintf(ret_failure->text, sizeof(ret_failure->text), "%d runs that the API started are not over",
		 NP_LAUNCHES_MAX);
	if (!room_make(l))
		return -E2BIG;
	launch = calloc(1, sizeof(*launch));
	if (launch) {
		launch->launches = l;
		launch->id = id;
		launch->pidfd = -1;
		launch->streams[0] = (struct stream){ .launch = launch, .name = "stdout", .fd = -1 };
		launch->streams[1] = (struct stream){ .launch = launch, .name = "stderr", .fd = -1 };
		launch->lines = BUF_INIT(NP_LAUNCH_OUTPUT);
		TAILQ_INSERT_TAIL(&l->all, launch, of_all);
		l->count++;
	}
	r = launch ? launch_spawn(launch) : -ENOMEM;
	if (r == 0)
		return 0;
	if (launch)
		launch_free(launch);
	ret_failure->reason = NP_R_FAILED;
	snprintf(ret_failure->text, sizeof(ret_failure->text), "%.400s: %s", l->exe, strerror(-r));
	return r;
}

static const struct launch *launch_find(const struct launches *l, uint64_t id)
{
	const struct launch *launch = TAILQ_FIRST(&l->all);

	while (launch && launch->id != id)
		launch = TAILQ_NEXT(launch, of_all);
	return launch;
}

pid_t launches_pid(const struct launches *l, uint64_t id)
{
	const struct launch *launch = launch_find(l, id);

	return launch ? launch->pid : 0;
}

int launches_output(struct launches *l, uint64_t id, const struct buf **ret, bool *ret_ended)
{
	const struct launch *launch = launch_find(l, id);

	if (!launch)
		return -ENOENT;
	*ret = &launch->lines;
	*ret_ended = launch_ended(launch);
	return 0;
}

int launches_new(const struct launches_config *config, struct launches **ret)
{
	struct launches *l = calloc(1, sizeof(*l));
	int r = l ? fs_beside(l->exe, "netpawl-run") : -ENOMEM;

	if (r == 0)
		r = fs_path(l->socket, "%s", config->socket_path);
	if (r < 0) {
		free(l);
		return r;
	}
	l->config = *config;
	TAILQ_INIT(&l->all);
	*ret = l;
	return 0;
}

void launches_free(struct launches *l)
{
	struct launch *launch;

	if (!l)
		return;
	while ((launch = TAILQ_FIRST(&l->all)))
		launch_free(launch);
	free(l);
}
