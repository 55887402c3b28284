/* SPDX-License-Identifier: MIT */
/*
 * Questions: asked by inspectors, answered by people. The order is the promise: an answer, and that it is used, is on disk
 * before anything that waits goes on. A crash in between leaves a request that was answered and did not go, never one that
 * went unanswered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql.h"
#include "policy/asked.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

/* -- in memory ----------------------------------------------------------------------------- */

static uint64_t key_hash(const struct service *service, const struct question_row *row)
{
	return hash_text(&service->key, row->session.text) ^ hash_text(&service->key, row->host) * 3 ^
	       hash_text(&service->key, row->place) * 5 ^ hash_number(&service->key, row->port * 2u + row->write);
}

/* What is seen is not what is not, and what goes in the clear is not what goes in TLS. */
static bool same_kind(const struct question_row *a, const struct question_row *b)
{
	return a->write == b->write && !a->method[0] == !b->method[0] &&
	       !strncmp(a->url, "https:", 6) == !strncmp(b->url, "https:", 6);
}

static struct question *question_find(const struct service *service, const struct question_row *key)
{
	for (struct table_node *n = table_first(&service->questions_by_key, key_hash(service, key)); n;
	     n = table_next(n)) {
		struct question *question = container_of(n, struct question, node);
		const struct question_row *row = &question->row;

		if (row->port == key->port && same_kind(row, key) && !strcmp(row->session.text, key->session.text) &&
		    !strcmp(row->host, key->host) && !strcmp(row->place, key->place))
			return question;
	}
	return NULL;
}

int question_keep(struct service *service, const struct question_row *row, struct question **ret)
{
	struct question *question =
		table_reserve(&service->questions_by_key) == 0 ? calloc(1, sizeof(*question)) : NULL;

	if (!question)
		return -ENOMEM;
	question->row = *row;
	question->timed = row->state != QUESTION_PENDING;
	TAILQ_INIT(&question->held);
	TAILQ_INSERT_TAIL(&service->questions, question, of_all);
	table_add(&service->questions_by_key, &question->node, key_hash(service, row));
	if (ret)
		*ret = question;
	return 0;
}

static void held_drop(struct service *service, struct question *question, struct question_held *held)
{
	TAILQ_REMOVE(&question->held, held, next);
	question->n_held--;
	service->n_held[held->waiter.inspector]--;
	free(held);
}

void question_drop(struct service *service, struct question *question)
{
	while (!TAILQ_EMPTY(&question->held))
		held_drop(service, question, TAILQ_FIRST(&question->held));
	TAILQ_REMOVE(&service->questions, question, of_all);
	if (!question->used)
		table_remove(&service->questions_by_key, &question->node);
	free(question);
}

void questions_free(struct service *service)
{
	while (!TAILQ_EMPTY(&service->questions))
		question_drop(service, TAILQ_FIRST(&service->questions));
	table_clear(&service->questions_by_key);
}

/* -- what is news --------------------------------------------------------------------------- */

void question_event(struct service *service, unsigned reason, const struct question_row *row, const char *who,
		    const char *words)
{
	char text[NP_EVENT_STRING_MAX];
	struct event event = {
		.reason = reason,
		.session = row->session.text,
		.sandbox = row->sandbox[0] ? row->sandbox : NULL,
		.rung = row->rung,
		.rule = row->place,
		.method = row->method[0] ? row->method : "CONNECT",
		.url = row->url,
		.port = row->port,
		.who = who,
		.text = text,
	};

	snprintf(text, sizeof(text), "question %llu%s%s%s%.512s", (unsigned long long)row->id, row->answer ? ", " : "",
		 question_answer_name(row->answer), words && *words ? ": " : "", words ? words : "");
	service_emit(service, &event, NULL, NULL);
}

static void waiter_reply(struct service *service, const struct question_waiter *to, const struct question_news *news)
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

/* -- an inspector asks ------------------------------------------------------------------------ */

/* It waits. An inspector holds no more than it may: what says otherwise is not believed. */
static void question_hold(struct service *service, struct question *question, const struct question_waiter *waiter)
{
	struct question_news news = { .reply = REPLY_PENDING, .question = question->row.id };
	struct question_held *held = service->n_held[waiter->inspector] < NP_HELD_MAX ? calloc(1, sizeof(*held)) : NULL;

	if (!held) {
		news.reply = REPLY_REFUSED;
		news.reason = NP_R_TOO_MANY_QUESTIONS;
	} else {
		held->waiter = *waiter;
		TAILQ_INSERT_TAIL(&question->held, held, next);
		question->n_held++;
		service->n_held[waiter->inspector]++;
	}
	waiter_reply(service, waiter, &news);
}

/* An answer that holds: it is used. */
static void question_use(struct service *service, struct question *question, const struct question_waiter *waiter)
{
	struct question_news news = { .reply = question->row.answer == ANSWER_DENY ? REPLY_DENIED : REPLY_ALLOWED,
				      .question = question->row.id,
				      .reason = NP_R_ANSWER_DENIES,
				      .words = question->row.reason };
	bool once = question->row.answer == ANSWER_ONCE;

	if (once && store_answer_end(service->config.store, question->row.id, service->config.wall_us())) {
		news.reply = REPLY_REFUSED;
		news.reason = NP_R_NEEDS_APPROVAL;
		news.words = "that the answer is used could not be recorded";
		once = false;
	}
	waiter_reply(service, waiter, &news);
	if (once && question->timed) {
		table_remove(&service->questions_by_key, &question->node);
		question->used = true;
	} else if (once) {
		question_drop(service, question);
	}
}

static bool questions_have_room(const struct service *service, const char *session)
{
	const struct question *question;
	unsigned all = 0, own = 0;

	TAILQ_FOREACH(question, &service->questions, of_all) {
		bool waits = question->row.state == QUESTION_PENDING;

		all += waits;
		own += waits && !strcmp(question->row.session.text, session);
	}
	return all < NP_QUESTIONS_PENDING && own < NP_QUESTIONS_PER_SESSION;
}

static int question_make(struct service *service, const struct question_row *row, struct question **ret)
{
	struct question_row made = *row;
	int r = questions_have_room(service, row->session.text) ? 0 : -E2BIG;

	if (!r)
		r = store_question_put(service->config.store, row, &made.id);
	if (!r)
		r = question_keep(service, &made, ret);
	if (!r)
		question_event(service, NP_R_QUESTION_ASKED, &made, "daemon", NULL);
	return r;
}

static bool row_fill(const struct service *service, const struct question_ask *ask, const struct sandbox *sandbox,
		     const struct policy *policy, struct question_row *row)
{
	*row = (struct question_row){
		.session = sandbox->session->name,
		.port = ask->port,
		.write = ask->write,
		.body = ask->body,
		.rung = sandbox->session->stands,
		.created_us = service->config.wall_us(),
	};
	row->expires_us = row->created_us + policy->approval.timeout_ms * 1000;
	memcpy(row->sandbox, sandbox->pub.id, sizeof(row->sandbox));
	return (size_t)snprintf(row->place, sizeof(row->place), "%s", ask->place) < sizeof(row->place) &&
	       (size_t)snprintf(row->host, sizeof(row->host), "%s", ask->host) < sizeof(row->host) &&
	       (size_t)snprintf(row->method, sizeof(row->method), "%s", ask->method) < sizeof(row->method) &&
	       (size_t)snprintf(row->url, sizeof(row->url), "%s", ask->url) < sizeof(row->url) &&
	       (size_t)snprintf(row->policy, sizeof(row->policy), "%s", policy->hash) < sizeof(row->policy);
}

bool question_is_due(const struct question *question, uint64_t now_us)
{
	uint64_t until = question->row.state == QUESTION_PENDING ? question->row.expires_us : question->row.until_us;

	return until && until <= now_us;
}

void service_question_ask(struct service *service, const struct question_ask *ask, const struct question_waiter *waiter)
{
	const struct sandbox *sandbox = sandbox_by_cgroup(service, ask->cgroup_id);
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;
	struct question_news news = { .reply = REPLY_REFUSED, .reason = NP_R_NEEDS_APPROVAL };
	struct question *question;
	struct question_row row;
	int r;

	if (!sandbox || !policy || !row_fill(service, ask, sandbox, policy, &row)) {
		waiter_reply(service, waiter, &news);
		return;
	}
	/* What it was judged by is not what holds: the inspector has been told of that by now. */
	if (!np_rung_equal(&ask->rung, &sandbox->pub.rung) || strcmp(ask->policy, policy->hash) != 0) {
		news.reply = REPLY_AGAIN;
		waiter_reply(service, waiter, &news);
		return;
	}
	question = question_find(service, &row);
	if (question && question_is_due(question, row.created_us)) { /* the sweep would see to it within a second */
		questions_sweep(service);
		question = question_find(service, &row);
	}
	if (question && question->row.state == QUESTION_PENDING) {
		question_hold(service, question, waiter);
	} else if (question) {
		question_use(service, question, waiter);
	} else if ((r = question_make(service, &row, &question)) == 0) {
		question_hold(service, question, waiter);
	} else {
		news.reason = r == -E2BIG ? NP_R_TOO_MANY_QUESTIONS : NP_R_NEEDS_APPROVAL;
		news.words = r == -E2BIG ? NULL : "the question could not be recorded";
		waiter_reply(service, waiter, &news);
	}
}

void service_question_leave(struct service *service, const struct question_waiter *waiter)
{
	struct question *question;
	struct question_held *held;

	TAILQ_FOREACH(question, &service->questions, of_all) {
		TAILQ_FOREACH(held, &question->held, next) {
			if (held->waiter.number != waiter->number || held->waiter.inspector != waiter->inspector)
				continue;
			held_drop(service, question, held);
			return;
		}
	}
}

void service_question_lost(struct service *service, unsigned inspector)
{
	struct question *question;
	struct question_held *held, *next;

	TAILQ_FOREACH(question, &service->questions, of_all) {
		for (held = TAILQ_FIRST(&question->held); held; held = next) {
			next = TAILQ_NEXT(held, next);
			if (held->waiter.inspector == inspector)
				held_drop(service, question, held);
		}
	}
}

/* -- a person answers --------------------------------------------------------------------------- */

static int question_fail(struct failure *ret_failure, int r, uint64_t id)
{
	unsigned long long n = id;

	if (r == -ENOENT)
		return service_fail(ret_failure, NP_R_NO_SUCH_QUESTION, r, "%llu", n);
	if (r == -EALREADY)
		return service_fail(ret_failure, NP_R_QUESTION_OVER, r, "question %llu", n);
	return service_fail(ret_failure, NP_R_NOT_RECORDED, r, "question %llu: %s", n, sql_strerror(r));
}

int service_question_show(struct service *service, uint64_t id, struct question_row *ret, struct failure *ret_failure)
{
	int r = store_question_get(service->config.store, id, ret);

	return r ? question_fail(ret_failure, r, id) : 0;
}

unsigned service_question_waiting(struct service *service, const struct question_row *row)
{
	const struct question *question = question_find(service, row);

	return question && question->row.id == row->id ? question->n_held : 0;
}

static unsigned answers_count(const struct service *service, const char *session)
{
	const struct question *question;
	unsigned n = 0;

	TAILQ_FOREACH(question, &service->questions, of_all)
		n += question->row.state != QUESTION_PENDING && !strcmp(question->row.session.text, session);
	return n;
}

/* May it be given? The question waits. */
static int answer_check(const struct service *service, const struct question_row *row,
			const struct question_given *given, struct failure *ret_failure)
{
	const struct policy *policy = service->config.policy(service->config.policy_data);
	unsigned long long n = row->id;

	if ((given->policy && strcmp(given->policy, policy->hash) != 0) ||
	    (given->has_generation && given->generation != row->rung.generation))
		return service_fail(ret_failure, NP_R_QUESTION_CHANGED, -ESTALE, "question %llu", n);
	if (policy->approval.once && given->answer == ANSWER_HOST)
		return service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL,
				    "the policy has an answer be for one request (approval: remember: once)");
	if (answers_count(service, row->session.text) >= NP_ANSWERS_PER_SESSION)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%s has %d answers that hold",
				    row->session.text, NP_ANSWERS_PER_SESSION);
	return 0;
}

/* The record has the answer. One that was given once goes to who has waited longest, the others ask anew. */
static void answer_apply(struct service *service, struct question *question)
{
	const struct question_held *first = TAILQ_FIRST(&question->held);
	struct question_waiter waiter;

	if (question->row.answer == ANSWER_DENY) {
		question_reply(service, question, REPLY_DENIED, NP_R_ANSWER_DENIES, question->row.reason);
	} else if (question->row.answer == ANSWER_HOST) {
		question_reply(service, question, REPLY_ALLOWED, 0, NULL);
	} else if (first) {
		waiter = first->waiter;
		held_drop(service, question, TAILQ_FIRST(&question->held));
		question_reply(service, question, REPLY_AGAIN, 0, NULL);
		question_use(service, question, &waiter);
	}
}

int service_question_answer(struct service *service, uint64_t id, const struct question_given *given, const char *who,
			    struct question_row *ret, struct failure *ret_failure)
{
	struct store *store = service->config.store;
	uint64_t now = service->config.wall_us();
	struct question *question;
	struct question_row row;
	int r = store_question_get(store, id, &row);

	if (!r && (row.state != QUESTION_PENDING || row.expires_us <= now))
		r = -EALREADY;
	if (r)
		return question_fail(ret_failure, r, id);
	question = question_find(service, &row);
	if (!question || question->row.id != id) /* void, and that could not be recorded */
		return question_fail(ret_failure, -EALREADY, id);
	r = answer_check(service, &row, given, ret_failure);
	if (r)
		return r;
	row.state = given->answer == ANSWER_DENY ? QUESTION_DENIED : QUESTION_ALLOWED;
	row.answer = given->answer;
	row.answered_us = now;
	row.until_us = given->for_ms ? now + given->for_ms * 1000 : 0;
	if (row.answer == ANSWER_ONCE &&
	    !row.until_us) /* for who tries again: as long as he would have waited for it */
		row.until_us = now + (row.expires_us - row.created_us);
	snprintf(row.who, sizeof(row.who), "%s", who);
	snprintf(row.reason, sizeof(row.reason), "%s", given->reason);
	r = store_question_answer(store, &row);
	if (r)
		return question_fail(ret_failure, r, id);
	question->row = row;
	question->timed = given->for_ms;
	question_event(service, NP_R_QUESTION_ANSWERED, &row, who, row.reason);
	answer_apply(service, question);
	return store_question_get(store, id, ret)
		       ? service_fail(ret_failure, NP_R_FAILED, -EIO, "question %llu", (unsigned long long)id)
		       : 0;
}
