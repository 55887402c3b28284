/* SPDX-License-Identifier: MIT */
/*
 * What netpawl top knows: rows of events with repeats in one, counters, sessions and questions. No terminal and no descriptor: lines
 * of JSON come in, top_screen.c asks what to show.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "vocab/event_filter.h"

#define TOP_ROWS    2000 /* events that are kept, repeats in one */
#define TOP_REPEATS 64	 /* newest rows that one may be a repeat of */
#define TOP_TEXT    256

struct top_row {
	json_t *event;	       /* the newest of its repeats, without captured bytes */
	unsigned long long at; /* which line it came with, from 1: it does not move when repeats come */
	unsigned count;
	unsigned long long sent;
};

struct top_model {
	struct top_row rows[TOP_ROWS]; /* a ring */
	size_t first, n;
	unsigned long long lines; /* that came */
	unsigned long long last;  /* seq of the last one that had one */
	unsigned long long allowed, refused, changes, sent, lost;
	json_t *sessions;    /* the array of GET /v1/sessions, or NULL */
	json_t *questions;   /* likewise, those that wait */
	json_t *credentials; /* likewise, by name; whoever may not see them has none */
	struct event_filter filter;
	bool paused;
	unsigned long long paused_at; /* lines from there on are not shown */
	bool connected;
	char message[TOP_TEXT]; /* what became of the last thing that was done */
};

void top_model_init(struct top_model *model);
void top_model_free(struct top_model *model);

/* One line of the event stream; takes it over. What is no event is left out. */
void top_take_event(struct top_model *model, const char *line);
/* An answer of GET /v1/sessions, /v1/questions or /v1/credentials. */
void top_take_lists(struct top_model *model, const char *line);

void top_pause(struct top_model *model, bool paused);

/* The rows that pass the filter, the newest first: the index-th of them, or NULL. */
const struct top_row *top_visible(const struct top_model *model, size_t index);
size_t top_visible_count(const struct top_model *model);

/* Copies text for a screen: what is not printable ASCII is a question mark, one for a character; what does not fit is cut. */
void top_clean(char *ret, size_t size, const char *text);
/* What a row is about, in words of ASCII: "POST https://x.test/a 403", "dns x.test", "tcp 192.0.2.1:80", "raised to SECRET". */
void top_what(const json_t *event, char *ret, size_t size);
void top_bytes(unsigned long long bytes, char ret[static 16]); /* 1.2M */
/* What waits for a person: "question 7" or "run 3", of the id that the inbox has for it. */
void top_question_name(const char *id, char ret[static 64]);
/* Its place in the list; where it is not, the list's length. */
size_t top_question_find(const struct top_model *model, const char *id);
const char *top_question_id(const struct top_model *model, size_t index); /* "": there is none */
/* Seconds until a question is over; -1: not known. */
long long top_left(const json_t *question, unsigned long long now_us);
