/* SPDX-License-Identifier: MIT */
/* The followers of the log. The readers' half, event_feed_read() and event_feed_free(), is in events/event_log.h. */
#pragma once

#include "events/event_log.h"

struct feed_list {
	struct event_feed *first;
	unsigned count;
};

int feed_list_add(struct feed_list *list, const char *session, void (*wake)(void *data), void *data,
		  struct event_feed **ret);
void feed_list_put(struct feed_list *list, const struct event *event, const char *line, size_t len);
/* The feeds live on, for their owners to read out and free. */
void feed_list_detach(struct feed_list *list);
