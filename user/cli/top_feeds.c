/* SPDX-License-Identifier: MIT */
#include "cli/top_feeds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_client/api.h"
#include "base/cleanup.h"
#include "cli/top_model.h"
#include "vocab/limits.h"

#define FIRST_EVENTS "200" /* of the history, at the start */
#define LINE_BYTES   (CLIENT_LINE_MAX + 2)
#define LISTS_BYTES  (1u << 20) /* sessions and questions that are shown: a page */

struct feed_job {
	const char *socket, *session, *since, *id, *body;
	int fd;
	unsigned page; /* events of the next page of the past; 0: there are no more of them */
	unsigned long long last;
	bool up;
};

/* -- in the process of a feed ------------------------------------------------------------------------------- */

static void feed_write(const struct feed_job *job, char kind, const char *text)
{
	const size_t len = strlen(text);
	_free_ char *line = malloc(len + 2);
	size_t sent = 0;

	if (!line)
		_exit(1);
	line[0] = kind;
	memcpy(line + 1, text, len);
	line[len + 1] = '\n';
	while (sent < len + 2) {
		ssize_t n = write(job->fd, line + sent, len + 2 - sent);

		if (n <= 0)
			_exit(0); /* nobody reads it any more */
		sent += (size_t)n;
	}
}

static void feed_is_up(struct feed_job *job, bool up, const char *why)
{
	if (up != job->up || !up)
		feed_write(job, up ? TOP_LINE_UP : TOP_LINE_DOWN, why);
	job->up = up;
}

static int event_write(void *data, char *line)
{
	struct feed_job *job = data;

	if (strncmp(line, "{\"seq\":", 7) == 0)
		job->last = strtoull(line + 7, NULL, 10);
	feed_is_up(job, true, "");
	feed_write(job, TOP_LINE_EVENT, line);
	return 0;
}

static void events_path(const struct feed_job *job, struct buf *path)
{
	char after[24], limit[16];

	snprintf(after, sizeof(after), "%llu", job->last);
	snprintf(limit, sizeof(limit), "%u", job->page);
	buf_puts(path, job->page ? "/v1/events?follow=0" : "/v1/events?follow=1");
	api_query(path, "session", job->session);
	if (job->page || !job->last)
		api_query(path, "limit", job->page ? limit : FIRST_EVENTS);
	if (job->last)
		api_query(path, "after", after);
	else if (job->since)
		api_query(path, "since", job->since);
	if (buf_error(path))
		_exit(1);
}

/* One page of the past has come, or has not. Is there another step at once? */
static bool page_is_over(struct feed_job *job, unsigned long long before, int r, const struct client_answer *answer)
{
	if (!job->page || r < 0)
		return false;
	if (answer->status == 429 && job->page > 50) { /* with long bodies captured, fewer fit into one answer */
		job->page /= 4;
		return true;
	}
	if (answer->status != 200)
		return false;
	if (job->last == before)
		job->page = 0;
	return true;
}

static void events_run(struct feed_job *job)
{
	for (;;) {
		cleanup(client_answer_free) struct client_answer answer = { 0 };
		_buf_ struct buf path = BUF_INIT(4096);
		const unsigned long long before = job->last;
		int r;

		events_path(job, &path);
		r = client_stream(job->socket, path.data, event_write, job, &answer);
		if (page_is_over(job, before, r, &answer))
			continue;
		if (answer.status && answer.status != 200)
			feed_is_up(job, false, answer.status == 403 ? "you may not see events" : "the daemon refuses");
		else
			feed_is_up(job, false, r < 0 ? strerror(-r) : "the daemon went away");
		sleep(1);
	}
}

static bool list_write(struct feed_job *job, const char *path)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int r = client_call(job->socket, "GET", path, NULL, &answer);

	if (r == 0 && answer.status == 200 && answer.body.data && answer.body.len < LISTS_BYTES) {
		answer.body.data[strcspn(answer.body.data, "\n")] = '\0';
		feed_write(job, TOP_LINE_LIST, answer.body.data);
	}
	return r == 0;
}

static void lists_run(struct feed_job *job)
{
	for (;;) {
		const bool up = list_write(job, "/v1/questions?state=pending");

		feed_is_up(job, up && list_write(job, "/v1/sessions?limit=1000"), "no daemon");
		list_write(job, "/v1/credentials"); /* not for everybody who sees sessions */
		sleep(1);
	}
}

static void answer_run(struct feed_job *job)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_json_ json_t *reply = NULL;
	_buf_ struct buf path = BUF_INIT(4096);
	char text[640], why[512], name[64];
	int r;

	top_question_name(job->id, name);
	buf_puts(&path, "/v1/questions/");
	api_escape(&path, job->id);
	buf_puts(&path, "/answer");
	r = buf_error(&path) ? buf_error(&path) : client_call(job->socket, "POST", path.data, job->body, &answer);
	reply = r == 0 && answer.body.data ? json_loads(answer.body.data, 0, NULL) : NULL;
	if (r < 0)
		snprintf(text, sizeof(text), "%s: %s", name, strerror(-r));
	else if (answer.status == 200)
		snprintf(text, sizeof(text), "%s: %s", name, member_text(reply, "state") ?: "answered");
	else {
		refusal_text(reply, "refused", why, sizeof(why));
		snprintf(text, sizeof(text), "%s is NOT answered: %s", name, why);
	}
	feed_write(job, TOP_LINE_RESULT, text);
}

/* -- in netpawl top -------------------------------------------------------------------------------------------- */

static int feed_start(struct top_feed *feed, struct feed_job *job, void (*run)(struct feed_job *job))
{
	const pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	feed->pid = fork();
	if (feed->pid < 0) {
		close(fds[0]);
		close(fds[1]);
		feed->pid = 0;
		return -errno;
	}
	if (feed->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		signal(SIGINT, SIG_IGN); /* the terminal's: for the one who draws */
		signal(SIGTERM, SIG_DFL);
		close(fds[0]);
		job->fd = fds[1];
		run(job);
		_exit(0);
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	feed->fd = fds[0];
	feed->line = BUF_INIT(LISTS_BYTES > LINE_BYTES ? LISTS_BYTES : LINE_BYTES);
	return 0;
}

int top_feed_events(struct top_feed *feed, const char *socket, const char *session, const char *since)
{
	struct feed_job job = { .socket = socket, .session = session, .since = since };

	job.page = since ? NP_EVENTS_PAGE : 0;
	return feed_start(feed, &job, events_run);
}

int top_feed_lists(struct top_feed *feed, const char *socket)
{
	return feed_start(feed, &(struct feed_job){ .socket = socket }, lists_run);
}

int top_feed_answer(struct top_feed *feed, const char *socket, const char *id, const char *body)
{
	return feed_start(feed, &(struct feed_job){ .socket = socket, .id = id, .body = body }, answer_run);
}

int top_feed_read(struct top_feed *feed, void (*fn)(void *data, char kind, char *text), void *data)
{
	char chunk[65536], *end;
	/* A bounded piece: keys are looked at in between, however much comes. */
	ssize_t n = read(feed->fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	buf_append(&feed->line, chunk, (size_t)n);
	if (buf_error(&feed->line))
		return -EPIPE;
	while (feed->line.len && (end = memchr(feed->line.data, '\n', feed->line.len))) {
		*end = '\0';
		fn(data, feed->line.data[0], feed->line.data + 1);
		buf_drop(&feed->line, (size_t)(end - feed->line.data) + 1);
	}
	return 0;
}

void top_feed_end(struct top_feed *feed)
{
	if (feed->pid > 0) {
		kill(feed->pid, SIGKILL);
		waitpid(feed->pid, NULL, 0);
	}
	if (feed->fd >= 0)
		close(feed->fd);
	buf_free(&feed->line);
	*feed = (struct top_feed){ .fd = -1 };
}
