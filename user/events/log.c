/* SPDX-License-Identifier: MIT */
#include "events/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "events/feed.h"
#include "events/history.h"
#include "events/journal.h"
#include "limits.h"

struct event_log {
	int dirfd;
	uint64_t seq; /* of the last event */
	struct journal *journal;
	struct history *history;
	struct feed_list feeds;
	struct buf line;
	uint64_t written, unwritable; /* unwritable: not even turned into JSON, for want of memory */
	uint64_t journal_errors;
	int journal_error;
};

int event_log_open(const char *dir, struct event_log **ret)
{
	struct event_log *log;
	int r;

	r = fs_mkdir_all(dir, 0750);
	if (r < 0)
		return r;
	log = calloc(1, sizeof(*log));
	if (!log)
		return -ENOMEM;
	log->line = BUF_INIT(NP_EVENT_LINE_MAX);
	log->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = log->dirfd < 0 ? -errno : 0;
	if (r == 0)
		r = journal_new(log->dirfd, &log->journal);
	if (r == 0)
		r = history_new(dir, &log->history);
	if (r < 0) {
		event_log_close(log);
		return r;
	}
	log->seq = journal_last_seq(log->dirfd);
	if (log->seq < history_last_seq(log->history))
		log->seq = history_last_seq(log->history);
	*ret = log;
	return 0;
}

void event_log_close(struct event_log *log)
{
	if (!log)
		return;
	feed_list_detach(&log->feeds);
	history_free(log->history);
	journal_free(log->journal);
	if (log->dirfd >= 0)
		close(log->dirfd);
	buf_free(&log->line);
	free(log);
}

void event_log_put(struct event_log *log, struct event *event)
{
	struct history_row row = { .wall_us = event->wall_us, .session = event->session, .reason = event->reason };
	struct buf *line = &log->line;

	event->seq = row.seq = ++log->seq;
	log->written++;
	buf_clear(line);
	event_to_json(event, line);
	if (buf_error(line)) {
		log->unwritable++;
		return;
	}
	log->journal_error = journal_put(log->journal, line->data, line->len);
	if (log->journal_error)
		log->journal_errors++;
	history_put(log->history, &row, line->data, line->len);
	feed_list_put(&log->feeds, event, line->data, line->len);
}

void event_log_flush(struct event_log *log)
{
	history_flush(log->history);
}

void event_log_stats(const struct event_log *log, struct event_log_stats *ret)
{
	struct history_stats history;

	history_stats(log->history, &history);
	*ret = (struct event_log_stats){
		.written = log->written,
		.journal_errors = log->journal_errors + log->unwritable,
		.history_errors = history.dropped + log->unwritable,
		.journal_error = log->journal_error,
		.history_error = history.error,
	};
}

int event_log_query(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, unsigned limit,
		    struct buf *out)
{
	struct history_filter filter = {
		.session = session,
		.reason = -1,
		.after_seq = after_seq,
		.limit = limit < NP_EVENTS_PAGE ? limit : NP_EVENTS_PAGE,
	};

	if (reason) {
		filter.reason = reason_parse(reason);
		if (filter.reason < 0)
			return filter.reason;
	}
	return history_query(log->history, &filter, out);
}

int event_log_refused(struct event_log *log, const char *session, unsigned limit, struct buf *out)
{
	struct history_filter filter = {
		.session = session,
		.reason = -1,
		.limit = limit < NP_EVENTS_PAGE ? limit : NP_EVENTS_PAGE,
		.refused = true,
	};

	return history_query(log->history, &filter, out);
}

int event_feed_new(struct event_log *log, const char *session, void (*wake)(void *data), void *data,
		   struct event_feed **ret)
{
	return feed_list_add(&log->feeds, session, wake, data, ret);
}
