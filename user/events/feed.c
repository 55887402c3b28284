/* SPDX-License-Identifier: MIT */
#include "events/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/limits.h"

/* A feed that skips goes on skipping until half of it was read, so that a slow reader gets one report of a long
 * gap and not a report between any two events. The report then always has room. */
#define RESUME_BYTES (NP_FEED_BYTES / 2)
_Static_assert(RESUME_BYTES > NP_EVENT_LINE_MAX, "the report of a gap fits a feed that resumes");

struct event_feed {
	struct feed_list *list; /* NULL once detached */
	struct event_feed *next;
	char *session; /* NULL for all */
	void (*wake)(void *data);
	void *data;
	struct buf unread;
	uint32_t skipped;
	uint64_t skipped_us; /* when the last of them happened */
};

int feed_list_add(struct feed_list *list, const char *session, void (*wake)(void *data), void *data,
		  struct event_feed **ret)
{
	struct event_feed *feed;

	if (list->count >= NP_FOLLOWERS_MAX)
		return -EMFILE;
	feed = calloc(1, sizeof(*feed));
	if (!feed)
		return -ENOMEM;
	if (session) {
		feed->session = strdup(session);
		if (!feed->session) {
			free(feed);
			return -ENOMEM;
		}
	}
	feed->wake = wake;
	feed->data = data;
	feed->unread = BUF_INIT(NP_FEED_BYTES - 1); /* with its NUL a power of two, which is what a buffer allocates */
	feed->list = list;
	feed->next = list->first;
	list->first = feed;
	list->count++;
	*ret = feed;
	return 0;
}

static void feed_skip(struct event_feed *feed, const struct event *event)
{
	if (feed->skipped < UINT32_MAX)
		feed->skipped++;
	feed->skipped_us = event->wall_us;
}

static void feed_put(struct event_feed *feed, const struct event *event, const char *line, size_t len)
{
	size_t before = feed->unread.len;

	if (feed->session && (!event->session || strcmp(feed->session, event->session) != 0))
		return;
	if (feed->skipped) {
		feed_skip(feed, event);
		return;
	}
	buf_append(&feed->unread, line, len);
	if (buf_error(&feed->unread)) {
		feed->unread.error = 0;
		feed_skip(feed, event);
	}
	/* Also when an empty feed skipped, for want of memory: the reader then finds the report. */
	if (!before && feed->wake)
		feed->wake(feed->data);
}

void feed_list_put(struct feed_list *list, const struct event *event, const char *line, size_t len)
{
	struct event_feed *next;

	for (struct event_feed *feed = list->first; feed; feed = next) {
		next = feed->next;
		feed_put(feed, event, line, len);
	}
}

void feed_list_detach(struct feed_list *list)
{
	struct event_feed *next;

	for (struct event_feed *feed = list->first; feed; feed = next) {
		next = feed->next;
		feed->list = NULL;
		feed->next = NULL;
	}
	*list = (struct feed_list){ 0 };
}

/* Puts the report of a gap behind what came before it, once there is room. */
static void feed_resume(struct event_feed *feed)
{
	struct event lost = {
		.wall_us = feed->skipped_us,
		.reason = NP_R_LOST,
		.session = feed->session,
		.suppressed = feed->skipped,
		.text = "this feed was not read fast enough",
	};
	size_t before = feed->unread.len;

	if (!feed->skipped || before > RESUME_BYTES)
		return;
	event_to_json(&lost, &feed->unread);
	if (buf_error(&feed->unread)) {
		feed->unread.error = 0;
		feed->unread.len = before;
		return;
	}
	feed->skipped = 0;
}

size_t event_feed_read(struct event_feed *feed, char *data, size_t max)
{
	size_t done = 0;

	/* At most twice round: the report of a gap appears while reading, and an answer shorter than max must
	 * leave the feed empty, or its reader would sleep on it. */
	for (;;) {
		size_t len;

		feed_resume(feed);
		len = feed->unread.len < max - done ? feed->unread.len : max - done;
		if (!len)
			return done;
		memcpy(data + done, feed->unread.data, len);
		buf_drop(&feed->unread, len);
		done += len;
	}
}

void event_feed_free(struct event_feed *feed)
{
	if (!feed)
		return;
	if (feed->list) {
		struct event_feed **at = &feed->list->first;

		while (*at != feed)
			at = &(*at)->next;
		*at = feed->next;
		feed->list->count--;
	}
	buf_free(&feed->unread);
	free(feed->session);
	free(feed);
}
