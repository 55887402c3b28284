/* SPDX-License-Identifier: MIT */
/*
 * All that waits for a person, in one list: questions about requests and connections, and runs of class write. A run that waits
 * is a question as well, whose answers are once (approve) and deny (reject); its id is "run-3", since runs count on their own.
 */
#pragma once

#include <jansson.h>

#include "control/request.h"

struct inbox_ref {
	bool run;
	uint64_t id;
};

int inbox_ref_read(const char *text, struct inbox_ref *ret); /* "7", "run-3"; -EINVAL */

/* What of a run a person is to know, or was; NULL: out of memory. */
json_t *run_asked_object(const struct request *rq, const struct run_row *row);
/* A person is asked about it, or was. */
bool run_is_asked(const struct run_row *row);

/* Who asks for which of them. */
struct inbox_query {
	const char *session; /* NULL: all */
	bool any;	     /* of every state */
	enum question_state state;
	uint64_t after; /* 0, or the number of a question: runs count on their own, and are not among these */
};

struct inbox_item {
	struct inbox_ref ref;
	struct session_name session;
	uint64_t created_us;
	unsigned rank; /* among its session's: 0 is its oldest */
};
struct inbox {
	struct inbox_item *items;
	size_t n, size;
	size_t max; /* of each kind */
	const struct request *rq;
	const struct inbox_query *query;
};
void inbox_free(struct inbox *inbox);

/*
 * Those that the caller may see. What waits is in the order in which it is to be answered, each session's oldest, then each
 * session's second, so that nobody's flood hides another's; of what is over the newest comes first, up to NP_EVENTS_PAGE.
 * 0, or -errno.
 */
int inbox_read(const struct request *rq, const struct inbox_query *query, struct inbox *ret, bool *ret_cut_short);

/* As it stands now. 0 and *ret NULL: it is not there, not for the caller, or not what the query is for. */
int inbox_show(const struct request *rq, const struct inbox_ref *ref, const struct inbox_query *query, json_t **ret,
	       enum question_state *ret_state);

/* Answers with a stream: what waits, an empty line, then each that changes as it stands then. */
int inbox_follow(struct request *rq, const struct inbox_query *query, struct answer *ret, struct failure *ret_failure);

/* questions.c: with what the session holds, and what was said about this host before. NULL: out of memory. */
json_t *question_shown(const struct request *rq, const struct question_row *row);
/* runs.c: values of variables are for who may start runs like it, or approve it; a reader sees their names. */
json_t *run_shown(const struct request *rq, const struct run_row *row);
