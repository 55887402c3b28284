/* SPDX-License-Identifier: MIT */
#include "control/follow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "vocab/limits.h"

struct follower {
	struct follower *next;
	struct follow_set *set;
	struct MHD_Connection *connection;
	int fd; /* MHD's */
	struct peer peer;
	struct event_feed *feed;	      /* NULL once ended */
	const struct follow_subject *subject; /* NULL: the events themselves */
	void *state;			      /* the subject's */
	bool news;			      /* the subject has more to tell, or may have */
	struct buf match;		      /* the member that a line must contain; empty when all of them pass */
	struct buf out;			      /* history, then lines that passed the filter */
	size_t out_sent;
	struct buf line;   /* filter only: the start of a line whose end has not come yet */
	uint64_t spoke_ns; /* when bytes were last handed out */
	bool suspended;
	bool beat; /* an empty line is due */
};

#define READ_CHUNK   4096  /* bytes looked at a time when lines are filtered */
#define STREAM_BLOCK 16384 /* bytes a follower is asked for at a time, by MHD */

static void follower_resume(struct follower *f)
{
	if (!f->suspended) /* it is about to read anyway, and MHD forbids to resume it */
		return;
	f->suspended = false;
	MHD_resume_connection(f->connection);
	f->set->kick(f->set->data);
}

static void follower_wake(void *data)
{
	follower_resume(data);
}

static void follower_end(struct follower *f)
{
	event_feed_free(take_ptr(f->feed));
	follower_resume(f);
}

static void follower_free(void *data)
{
	struct follower *f = data;

	for (struct follower **p = &f->set->first; *p; p = &(*p)->next) {
		if (*p != f)
			continue;
		*p = f->next;
		break;
	}
	event_feed_free(f->feed);
	if (f->subject)
		f->subject->free(f->state);
	buf_free(&f->out);
	buf_free(&f->line);
	buf_free(&f->match);
	free(f);
}

/* A string inside of the line cannot imitate the member: its quotes would be escaped. That events were lost is
 * told to everybody, since one of them may have been wanted. */
static bool line_is_of_loss(const char *line, size_t len)
{
	static const char lost[] = "\"reason\":\"lost\"";

	return memmem(line, len, lost, sizeof(lost) - 1);
}

static bool subject_matches(const struct follow_subject *subject, const char *line, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(subject->matches); i++)
		if (subject->matches[i] && memmem(line, len, subject->matches[i], strlen(subject->matches[i])))
			return true;
	return false;
}

static void follower_line(struct follower *f, const char *line, size_t len)
{
	const bool lost = line_is_of_loss(line, len);

	if (!f->subject) {
		if (lost || memmem(line, len, f->match.data, f->match.len))
			buf_append(&f->out, line, len);
	} else if (lost || subject_matches(f->subject, line, len)) {
		f->news = true;
		if (f->subject->look)
			f->subject->look(f->state, line, len, lost);
	}
}

/* What was left for later, because a reader takes a piece at a time, is told before the feed is looked at again. */
static void follower_more(struct follower *f)
{
	int r = f->subject->more(f->set->config, f->state, &f->out);

	f->news = r > 0;
	if (r < 0 && !buf_error(&f->out))
		f->out.error = -EIO;
}

/* Reads the feed until a line passes or it is empty. */
static void follower_filter(struct follower *f)
{
	char chunk[READ_CHUNK];
	size_t n;

	while (f->out.len == 0 && !f->news && (n = event_feed_read(f->feed, chunk, sizeof(chunk))) > 0) {
		const char *end;

		buf_append(&f->line, chunk, n);
		while (f->line.len && (end = memchr(f->line.data, '\n', f->line.len))) {
			size_t len = (size_t)(end - f->line.data) + 1;

			follower_line(f, f->line.data, len);
			buf_drop(&f->line, len);
		}
	}
}

static size_t follower_flush(struct follower *f, char *data, size_t max)
{
	size_t left = f->out.len - f->out_sent, n = left < max ? left : max;

	memcpy(data, f->out.data + f->out_sent, n);
	f->out_sent += n;
	if (f->out_sent == f->out.len) {
		/* History may have been large, and is never needed again. */
		buf_free(&f->out);
		f->out_sent = 0;
	}
	return n;
}

/* MHD asks for bytes. 0 is allowed only together with a suspension. */
static ssize_t follower_read(void *data, uint64_t pos, char *bytes, size_t max)
{
	struct follower *f = data;
	size_t n;

	(void)pos;
	if (!f->feed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (f->out.len == 0 && (f->match.len || f->subject)) {
		bool news;

		do {
			follower_filter(f);
			news = f->news;
			/* Not every way to a notice has an event: nobody waits longer than a heartbeat for one. */
			if (f->subject && (news || f->beat))
				follower_more(f);
		} while (f->out.len == 0 && news && !buf_error(&f->out)); /* it was not for this one */
		if (buf_error(&f->line) || buf_error(&f->out))
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (f->out.len)
		n = follower_flush(f, bytes, max);
	else
		n = f->match.len || f->subject ? 0 : event_feed_read(f->feed, bytes, max);
	if (n == 0 && f->beat && max > 0) {
		/* Only whole lines went out so far, for the feed is empty. */
		bytes[0] = '\n';
		n = 1;
	}
	if (n > 0) {
		f->beat = false;
		f->spoke_ns = loop_now_ns();
		return (ssize_t)n;
	}
	f->suspended = true;
	MHD_suspend_connection(f->connection);
	return 0;
}

/* MHD does not look at a suspended connection, so we do. A client that only shut down its writing side is alive. */
static bool follower_is_gone(const struct follower *f)
{
	struct pollfd p = { .fd = f->fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Only feeds are freed in here, never followers: the list stays as it is. */
static void follow_reap(struct follow_set *set)
{
	for (struct follower *f = set->first; f; f = f->next)
		if (f->feed && f->suspended && follower_is_gone(f))
			follower_end(f);
}

static bool is_operator(const struct peer *peer)
{
	return peer->uid == 0 || (peer->roles & ROLE_OPERATOR);
}

/* Whoever watches over the others is not kept out by them. */
static bool follow_has_room(const struct follow_set *set, const struct peer *peer)
{
	unsigned own = 0, others = 0;

	for (const struct follower *f = set->first; f; f = f->next) {
		own += f->feed && f->peer.uid == peer->uid;
		others += f->feed && !is_operator(&f->peer);
	}
	return own < NP_FOLLOWERS_PER_USER && (is_operator(peer) || others < NP_FOLLOWERS_MAX - NP_FOLLOWERS_RESERVE);
}

int follow_open(struct follow_set *set, struct MHD_Connection *connection, const struct follow_options *options,
		struct buf *history, struct MHD_Response **ret)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	_free_ struct follower *f = calloc(1, sizeof(*f));
	_buf_ struct buf match = BUF_INIT(256);
	struct MHD_Response *response;
	int r;

	if (!f || !info)
		return -ENOMEM;
	f->set = set;
	f->connection = connection;
	f->fd = info->connect_fd;
	f->peer = options->peer;
	f->out = BUF_INIT(NP_FEED_BYTES);
	f->line = BUF_INIT(NP_FEED_BYTES);
	f->spoke_ns = loop_now_ns();
	if (options->reason)
		json_put_text(&match, "reason", options->reason, SIZE_MAX);
	if (buf_error(&match))
		return -ENOMEM;

	follow_reap(set); /* their places may be the ones that are missing */
	if (!follow_has_room(set, &options->peer))
		return -EMFILE;
	r = event_feed_new(set->config->events, options->session, follower_wake, f, &f->feed);
	if (r < 0)
		return r;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, follower_read, f, follower_free);
	if (!response) {
		event_feed_free(f->feed);
		return -ENOMEM;
	}
	f->subject = options->subject;
	f->state = options->state;
	f->news = options->subject;
	f->match = match;
	match = BUF_INIT(0);
	f->out = *history;
	*history = BUF_INIT(0);
	f->out.max = NP_FEED_BYTES > f->out.len ? NP_FEED_BYTES : f->out.len;
	f->next = set->first;
	set->first = f;
	take_ptr(f);
	/* Silence is what followers mostly hear. They are looked after by follow_tick() instead. */
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	*ret = response;
	return 0;
}

void follow_tick(struct follow_set *set, uint64_t now_ns)
{
	follow_reap(set);
	for (struct follower *f = set->first; f; f = f->next) {
		if (!f->feed || now_ns - f->spoke_ns < NP_HEARTBEAT_S * UINT64_C(1000000000))
			continue;
		if (!peer_is_outside(&f->peer, set->config)) {
			follower_end(f);
			continue;
		}
		f->beat = true;
		follower_resume(f);
	}
}

void follow_end_all(struct follow_set *set)
{
	for (struct follower *f = set->first; f; f = f->next)
		follower_end(f);
}
