/* SPDX-License-Identifier: MIT */
#include "events/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/steady_clock.h"
#include "events/feed.h"
#include "events/history.h"
#include "events/journal.h"
#include "events/replay.h"
#include "vocab/limits.h"

#define EVENTS	  "events"
#define CHANGES	  "changes"
#define EXPIRE_US 3600000000ull /* between looks for files that are too old */

struct event_log {
	int dirfd;
	uint64_t seq; /* of the last event */
	struct keep_limits limits;
	struct journal *journal; /* of everything */
	struct journal *changes;
	struct history *history;
	struct feed_list feeds;
	struct buf line;
	uint64_t written, unwritable; /* unwritable: not even turned into JSON, for want of memory */
	uint64_t journal_errors;
	int journal_error;
	struct steady_clock clock; /* the wall's */
	uint64_t expired_us;	   /* when files that are too old were last looked for */
};

int event_log_open(const char *dir, const struct keep_limits *limits, struct event_log **ret)
{
	struct event_log *log;
	int r = fs_mkdir_all(dir, 0750);

	if (r < 0)
		return r;
	log = calloc(1, sizeof(*log));
	if (!log)
		return -ENOMEM;
	log->limits = *limits;
	log->line = BUF_INIT(NP_EVENT_LINE_MAX);
	log->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = log->dirfd < 0 ? -errno : 0;
	if (r == 0)
		r = journal_new(log->dirfd, EVENTS, limits->journal_bytes, &log->journal);
	if (r == 0)
		r = journal_new(log->dirfd, CHANGES, limits->change_bytes, &log->changes);
	if (r == 0)
		r = history_new(dir, limits, &log->history);
	if (r < 0) {
		event_log_close(log);
		return r;
	}
	log->seq = journal_last_seq(log->dirfd, EVENTS);
	if (log->seq < journal_last_seq(log->dirfd, CHANGES))
		log->seq = journal_last_seq(log->dirfd, CHANGES);
	if (log->seq < history_last_seq(log->history))
		log->seq = history_last_seq(log->history);
	replay_journal(log->dirfd, EVENTS, log->history);
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
	journal_free(log->changes);
	cleanup_close(&log->dirfd);
	buf_free(&log->line);
	free(log);
}

void event_log_put(struct event_log *log, struct event *event)
{
	struct history_row row = {
		.wall_us = event->wall_us,
		.session = event->session,
		.reason = event->reason,
		.weight = history_weight(event->reason, event->suppressed),
	};
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
	if (keep_class(event->reason) == KEEP_CHANGE) {
		int r = journal_put(log->changes, line->data, line->len);

		if (r < 0)
			log->journal_error = r;
	}
	if (log->journal_error)
		log->journal_errors++;
	history_put(log->history, &row, line->data, line->len);
	feed_list_put(&log->feeds, event, line->data, line->len);
}

static void files_expire(struct journal *journal, uint64_t wall_us, uint64_t age_us)
{
	if (age_us && wall_us > age_us)
		journal_expire(journal, wall_us - age_us);
}

void event_log_flush(struct event_log *log, uint64_t wall_us, uint64_t boot_us)
{
	/* One that was set makes nothing old. */
	const bool steady = steady_clock_look(&log->clock, wall_us, boot_us, NP_CLOCK_STEADY_S * 1000000ull);

	history_flush(log->history, steady ? wall_us : 0);
	if (!steady || wall_us - log->expired_us < EXPIRE_US) /* a clock that was set back makes it large */
		return;
	log->expired_us = wall_us;
	files_expire(log->journal, wall_us, log->limits.total_age_us);
	files_expire(log->changes, wall_us, log->limits.change_age_us);
}

uint64_t event_log_last_seq(const struct event_log *log)
{
	return log->seq;
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

/* The seq that the answer begins with; UINT64_MAX when it is empty. */
static uint64_t answer_first(const struct buf *out, size_t from)
{
	static const char start[] = "{\"seq\":";

	if (out->len < from + sizeof(start) || memcmp(out->data + from, start, sizeof(start) - 1) != 0)
		return UINT64_MAX;
	return strtoull(out->data + from + sizeof(start) - 1, NULL, 10);
}

static size_t lines_count(const struct buf *out, size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < out->len; i++)
		count += out->data[i] == '\n';
	return count;
}

static const char *const class_words[KEEP_CLASSES] = {
	[KEEP_CHANGE] = "changes", [KEEP_REFUSED] = "refusals", [KEEP_ALLOWED] = "requests"
};

/* Puts the line about what was not kept in front of the answer, which covers what came after the seq `low`. */
static void dropped_report(const struct keep_dropped *dropped, const char *session, int class, uint64_t low,
			   size_t from, struct buf *out)
{
	_buf_ struct buf line = BUF_INIT(NP_EVENT_LINE_MAX), text = BUF_INIT(NP_EVENT_STRING_MAX),
			 answer = BUF_INIT(out->max);
	struct event event = { .reason = NP_R_NOT_KEPT, .session = session };

	for (int c = 0; c < KEEP_CLASSES; c++) {
		if (!dropped->count[c] || dropped->until_seq[c] <= low || (class >= 0 && c != class))
			continue;
		buf_printf(&text, "%s%llu %s", text.len ? ", " : "", (unsigned long long)dropped->count[c],
			   class_words[c]);
		event.dropped += dropped->count[c];
		if (!event.since_us || dropped->since_us[c] < event.since_us)
			event.since_us = dropped->since_us[c];
		if (dropped->until_us[c] > event.wall_us)
			event.wall_us = dropped->until_us[c];
		if (dropped->until_seq[c] > event.until_seq)
			event.until_seq = dropped->until_seq[c];
	}
	if (!event.dropped)
		return;
	event.text = text.data;
	event_to_json(&event, &line);
	buf_append(&answer, out->data, from);
	buf_append(&answer, line.data, line.len);
	buf_append(&answer, out->data + from, out->len - from);
	if (buf_error(&line) || buf_error(&answer)) {
		out->error = out->error ? out->error : buf_error(&line) ? buf_error(&line) : buf_error(&answer);
		return;
	}
	buf_free(out);
	*out = answer;
	answer = BUF_INIT(0);
}

static int log_query(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, bool forward,
		     unsigned limit, struct buf *out)
{
	struct history_filter filter = {
		.session = session,
		.reason = -1,
		.after_seq = after_seq,
		.limit = limit < NP_EVENTS_PAGE ? limit : NP_EVENTS_PAGE,
		.forward = forward,
	};
	struct keep_dropped dropped = { 0 };
	const size_t from = out->len;
	uint64_t low = after_seq;
	int r;

	if (reason) {
		filter.reason = reason_parse(reason);
		if (filter.reason < 0)
			return filter.reason;
	}
	r = history_query(log->history, &filter, out);
	if (r == 0)
		r = history_dropped(log->history, session, &dropped);
	if (r < 0)
		return r;
	/* Cut at the limit: what is missing before the first one is no gap. */
	if (!forward && lines_count(out, from) >= filter.limit)
		low = answer_first(out, from);
	dropped_report(&dropped, session, reason ? (int)keep_class((unsigned)filter.reason) : -1, low, from, out);
	return buf_error(out);
}

int event_log_query(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, unsigned limit,
		    struct buf *out)
{
	return log_query(log, session, reason, after_seq, false, limit, out);
}

int event_log_page(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, unsigned limit,
		   struct buf *out)
{
	return log_query(log, session, reason, after_seq, true, limit, out);
}

int event_log_before(struct event_log *log, uint64_t wall_us, uint64_t *ret_seq)
{
	return history_before(log->history, wall_us, ret_seq);
}

int event_log_dropped(struct event_log *log, const char *session, struct keep_dropped *ret)
{
	return history_dropped(log->history, session, ret);
}

int event_log_refused(struct event_log *log, const char *session, uint64_t after_seq, unsigned limit, struct buf *out)
{
	struct history_filter filter = {
		.session = session,
		.reason = -1,
		.limit = limit < NP_EVENTS_PAGE ? limit : NP_EVENTS_PAGE,
		.after_seq = after_seq,
		.refused = true,
	};

	return history_query(log->history, &filter, out);
}

int event_feed_new(struct event_log *log, const char *session, void (*wake)(void *data), void *data,
		   struct event_feed **ret)
{
	return feed_list_add(&log->feeds, session, wake, data, ret);
}
