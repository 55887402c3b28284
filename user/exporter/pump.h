/* SPDX-License-Identifier: MIT */
/*
 * Events from the daemon's record to a receiver, at least once each, in their order. The record is the queue, and is bounded
 * already: what the receiver does not take stays there, over restarts of whoever, until it is too old to be kept. Here is one
 * batch at a time, and none while the receiver is waited for.
 */
#pragma once

#include <jansson.h>

#include "link/cursor.h"
#include "link/export_message.h"

enum delivery {
	DELIVERED,
	DELIVERY_LATER,	 /* it is tried again */
	DELIVERY_REFUSED /* these events will never be taken, for what is in them */
};

struct receiver {
	/* *ret_wait_ms: how long the receiver wants to be left alone (DELIVERY_LATER); why: what is said of it, NULL when it is taken. */
	enum delivery (*deliver)(void *data, json_t *const *events, size_t n, unsigned *ret_wait_ms,
				 char why[static 128]);
	void *data;
	const char *name; /* for the log */
};

/* Until the daemon is gone (0), or its place in the record cannot be read or written (-errno). */
int pump_run(const struct receiver *receiver, int cursor_fd);

/* A page of the API's lines as events, with those that are missing told by an event of its own. Pure but for memory. */
struct page {
	json_t *events[2 * NP_EXPORT_BATCH + 1]; /* owned; before each there may be one that tells of a gap */
	size_t n;
	uint64_t last;	 /* seq of the last one */
	uint64_t missed; /* events that are not there */
};
/* after: the seq that was asked behind. known: until_seq of the last "not_kept" that was passed on. */
int page_read(const char *text, size_t len, uint64_t after, uint64_t *known, struct page *ret);
void page_free(struct page *page);
