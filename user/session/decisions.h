/* SPDX-License-Identifier: MIT */
/* Inside the session service: what deciders are asked, and their answers that are used again. */
#pragma once

#include <sys/queue.h>

#include "base/table.h"
#include "session/service.h"
#include "session/trail.h"
#include "vocab/decision.h"
#include "vocab/limits.h"

/* Something that a decider was asked and has not answered. */
struct decision_open {
	struct table_node node; /* by its number */
	TAILQ_ENTRY(decision_open) next;
	uint64_t id;
	struct question_waiter waiter;
	uint64_t cgroup_id;
	bool needs_body; /* it waits for that */
	char decider[NP_NAME_MAX + 1];
	struct question_row row; /* what it is about, as a person would be asked */
};
TAILQ_HEAD(decision_open_list, decision_open);

/* An answer of a decider that is used again. */
struct decision_known {
	struct table_node node; /* by its session and rule */
	TAILQ_ENTRY(decision_known) next;
	struct decision decision;
	uint64_t until_ns; /* by a clock that nobody sets */
	struct np_rung rung;
	uint64_t rule;
	char session[NP_LABEL_SIZE];
	/* Of one for a host: */
	char host[QUESTION_HOST_SIZE];
	uint16_t port;
	bool write, seen, tls;
};
TAILQ_HEAD(decision_known_list, decision_known);

struct decisions {
	uint64_t last; /* number */
	struct table by_id, known_by_key;
	struct decision_open_list open;
	struct decision_known_list known; /* the oldest is first */
	size_t n_known;
	uint64_t used; /* times that one of these was */
	struct trails trails;
};

void decisions_init(struct service *service);
void decisions_free(struct service *service);
/* Meets an answer that is remembered, or asks the decider. row: what a person would be asked. */
void decision_ask(struct service *service, const struct question_ask *ask, const char *decider,
		  const struct question_row *row, const struct question_waiter *waiter);
/* An answer that is remembered and would be met; NULL: none is. */
const struct decision_known *decision_find(const struct service *service, const struct question_row *row);
void decisions_leave(struct service *service, const struct question_waiter *waiter);
void decisions_lost(struct service *service, unsigned inspector);
/* What was asked and is remembered at another rung than the session's is over; session NULL: all, whatever the rung. */
void decisions_over(struct service *service, const char *session, const struct np_rung *stands);
/* decision_frame.c: one line of JSON */
void decision_frame(struct service *service, const struct decision_open *open, const struct question_ask *ask,
		    struct buf *out);
void decision_body_frame(uint64_t id, const char *bytes, size_t len, bool whole,
			 struct buf *out); /* the line that shows a body */
