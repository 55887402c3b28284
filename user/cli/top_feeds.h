/* SPDX-License-Identifier: MIT */
/*
 * Where netpawl top has its lines from: processes of its own that call the API and write what comes into pipes, so that the screen
 * never waits for the daemon. They end with it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct top_feed {
	pid_t pid; /* 0: none */
	int fd;	   /* -1: none */
	struct buf line;
};

/* Each line of a feed begins with one of these. */
#define TOP_LINE_EVENT	'e' /* an event */
#define TOP_LINE_LIST	'l' /* an answer of /v1/sessions, /v1/questions or /v1/credentials */
#define TOP_LINE_UP	'u' /* the daemon is there */
#define TOP_LINE_DOWN	'd' /* it is not */
#define TOP_LINE_RESULT 'r' /* what came of an answer, in words */

/* The newest events, or all since a time (NULL: none is given), and all that come; begins again, behind the last one, when the daemon was
 * gone. */
int top_feed_events(struct top_feed *feed, const char *socket, const char *session, const char *since);
/* Sessions, questions and credentials, every second. */
int top_feed_lists(struct top_feed *feed, const char *socket);
/* Answers what waits under this id, and ends. body is the JSON of the call. */
int top_feed_answer(struct top_feed *feed, const char *socket, const char *id, const char *body);

/* Takes what is there, and calls fn for each line. 0; -EPIPE: the feed is over. */
int top_feed_read(struct top_feed *feed, void (*fn)(void *data, char kind, char *text), void *data);
void top_feed_end(struct top_feed *feed);
