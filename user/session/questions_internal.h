/* SPDX-License-Identifier: MIT */
/* Questions inside the session service: what waits for an answer, and the answers that hold. */
#pragma once

#include "session/service_internal.h"

/* -- questions.c ------------------------------------------------------------ */
void question_forget(struct service *service, struct question *question); /* who holds it has it; nobody is told */
/* Is it answered for the domain of what is asked, of the same session, rule and kind? */
bool question_covers(const struct question_row *answered, const struct question_row *asked);
/* Have they the same key? */
bool question_is_beside(const struct question_row *a, const struct question_row *b);
/* Is it, in all that is shown of it, what the question shows? */
bool question_shows(const struct question_row *row, const struct question_row *asked);
struct question *question_find(const struct service *service, const struct question_row *key); /* or NULL */
void question_index(struct service *service, struct question *question); /* under its key, or its answer's */
uint64_t question_due(const struct service *service, const struct question_row *row); /* see struct question */
void held_drop(struct service *service, struct question *question, struct question_held *held);
/* An answer that holds: it is used. One for once is there until the inspector says that it was taken, or has come too late. */
void question_use(struct service *service, struct question *question, const struct question_waiter *waiter);
void question_drop(struct service *service, struct question *question); /* from memory; nobody is told */
/* It waits for the question. shown: it is what that shows. */
void question_hold(struct service *service, struct question *question, const struct question_waiter *waiter,
		   bool shown);
void questions_free(struct service *service);
void question_event(struct service *service, unsigned reason, const struct question_row *row, const char *who,
		    const char *words);
int question_keep(struct service *service, const struct question_row *row, struct question **ret); /* in memory */
bool question_is_due(const struct service *service,
		     const struct question *question); /* time has ended it, or its answer */
/* To all that wait for it; then nobody does. */
void question_reply(struct service *service, struct question *question, enum question_reply reply, unsigned reason,
		    const char *words);

/* -- question_row.c ---------------------------------------------------------- */
/* What it is about. False: it does not fit, so it is not what an inspector of this build says. */
bool question_row_fill(const struct service *service, const struct question_ask *ask, const struct sandbox *sandbox,
		       const struct policy *policy, struct question_row *row);
void question_row_process(const struct service *service, uint64_t cgroup_id, struct question_row *row); /* who asks */
bool question_meet(struct service *service, const struct question_row *row, const struct question_waiter *waiter);
void question_put(struct service *service, const struct question_row *row, const struct question_waiter *waiter);
void waiter_reply(struct service *service, const struct question_waiter *to, const struct question_news *news);

/* -- questions_end.c ---------------------------------------------------------- */
void questions_raised(struct service *service,
		      const struct session *session); /* what was asked or granted before is void */
void questions_reload(struct service *service);	      /* what the live policy does not ask about any more, likewise */
void questions_session_ended(struct service *service, const char *session);
void questions_covered(struct service *service, const struct question *by); /* what waits, and the answer is for */
void questions_returned(struct service *service,
			const struct question *by); /* likewise, of one that came back unused */
/* From here on nothing goes on by it. The record follows with questions_record(), which frees it. who: "daemon", or who did it. */
void question_end(struct service *service, struct question *question, enum question_state state, const char *who,
		  const char *why);
int questions_record(struct service *service); /* what is over; also tried by each sweep */
void questions_sweep(struct service *service); /* what time does to them */
