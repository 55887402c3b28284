/* SPDX-License-Identifier: MIT */
/* Who waits for a question, and is told what comes of it: each held by an inspector, by a number of its own. */
#include <stdlib.h>

#include "session/questions_internal.h"
#include "vocab/limits.h"

void held_drop(struct service *service, struct question *question, struct question_held *held)
{
	TAILQ_REMOVE(&question->held, held, next);
	question->n_held--;
	service->n_held[held->waiter.inspector]--;
	free(held);
}

void waiter_reply(struct service *service, const struct question_waiter *to, const struct question_news *news)
{
	const struct inspectors *inspectors = &service->config.inspectors;

	inspectors->reply(inspectors->ctx, to, news);
}

void question_reply(struct service *service, struct question *question, enum question_reply reply, unsigned reason,
		    const char *words)
{
	struct question_held *held;

	while ((held = TAILQ_FIRST(&question->held))) {
		struct question_waiter waiter = held->waiter;

		held_drop(service, question, held);
		waiter_reply(service, &waiter,
			     &(struct question_news){
				     .reply = reply, .question = question->row.id, .reason = reason, .words = words });
	}
}

/* An inspector holds no more than it may: what says otherwise is not believed. */
static struct question_held *held_add(struct service *service, struct question *question,
				      const struct question_waiter *waiter)
{
	struct question_held *held = service->n_held[waiter->inspector] < NP_HELD_MAX ? calloc(1, sizeof(*held)) : NULL;

	if (!held)
		return NULL;
	held->waiter = *waiter;
	TAILQ_INSERT_TAIL(&question->held, held, next);
	question->n_held++;
	service->n_held[waiter->inspector]++;
	return held;
}

/* It waits. */
void question_hold(struct service *service, struct question *question, const struct question_waiter *waiter, bool shown)
{
	struct question_news news = { .reply = REPLY_PENDING, .question = question->row.id };
	struct question_held *held = held_add(service, question, waiter);

	if (held) {
		held->shown = shown;
	} else {
		news.reply = REPLY_REFUSED;
		news.reason = NP_R_TOO_MANY_QUESTIONS;
	}
	waiter_reply(service, waiter, &news);
}

/*
 * One that was answered once is used up, on disk, before who waits is told; it may have left by then, of which it tells in its turn. So
 * it is kept among those that wait until it has said the one or the other.
 */
static bool question_hand_out(struct service *service, struct question *question, const struct question_waiter *waiter)
{
	struct question_held *held = held_add(service, question, waiter);

	if (!held || store_answer_end(service->config.store, question->row.id, "", service->config.wall_us())) {
		if (held)
			held_drop(service, question, held);
		return false;
	}
	table_remove(&service->questions_by_key, &question->node);
	question->used = true;
	return true;
}

void question_use(struct service *service, struct question *question, const struct question_waiter *waiter)
{
	struct question_news news = { .reply = question->row.answer == ANSWER_DENY ? REPLY_DENIED : REPLY_ALLOWED,
				      .question = question->row.id,
				      .reason = NP_R_ANSWER_DENIES,
				      .words = question->row.reason,
				      .once = question->row.answer == ANSWER_ONCE };

	if (news.once && !question_hand_out(service, question, waiter)) {
		news.reply = REPLY_REFUSED;
		news.reason = NP_R_NEEDS_APPROVAL;
		news.words = "that the answer is used could not be recorded";
		news.once = false;
	}
	waiter_reply(service, waiter, &news);
}

/* It was used, or nobody knows: what its time is to end is kept until then. */
static void question_used(struct service *service, struct question *question)
{
	if (!question->timed)
		question_drop(service, question);
}

/* The request that was given the answer had gone, so nothing has used it: the next one that is the same gets it,
 * also one that was asked about meanwhile. If that cannot be recorded, the answer stays used. */
static void question_return(struct service *service, struct question *question)
{
	if (table_reserve(&service->questions_by_key) || store_answer_return(service->config.store, question->row.id)) {
		question_used(service, question);
		return;
	}
	question->used = false;
	question_index(service, question);
	questions_returned(service, question);
}

/* The question that it waits for, or that was used for it; it is held no longer. NULL: there is none. */
static struct question *held_leave(struct service *service, const struct question_waiter *waiter, bool used)
{
	struct question *question;
	struct question_held *held;

	TAILQ_FOREACH(question, &service->questions, of_all) {
		TAILQ_FOREACH(held, &question->held, next) {
			if ((used && !question->used) || held->waiter.number != waiter->number ||
			    held->waiter.inspector != waiter->inspector)
				continue;
			held_drop(service, question, held);
			return question;
		}
	}
	return NULL;
}

void service_question_leave(struct service *service, const struct question_waiter *waiter)
{
	struct question *question;

	decisions_leave(service, waiter);
	question = held_leave(service, waiter, false);
	if (question && question->used)
		question_return(service, question);
}

void service_question_taken(struct service *service, const struct question_waiter *waiter)
{
	struct question *question = held_leave(service, waiter, true);

	if (question)
		question_used(service, question);
}

void service_question_lost(struct service *service, unsigned inspector)
{
	struct question *question, *next_question;
	struct question_held *held, *next;

	decisions_lost(service, inspector);
	for (question = TAILQ_FIRST(&service->questions); question; question = next_question) {
		next_question = TAILQ_NEXT(question, of_all);
		for (held = TAILQ_FIRST(&question->held); held; held = next) {
			next = TAILQ_NEXT(held, next);
			if (held->waiter.inspector == inspector)
				held_drop(service, question, held);
		}
		if (question->used && !question->n_held) /* it may have gone on */
			question_used(service, question);
	}
}
