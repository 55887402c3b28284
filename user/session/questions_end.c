/* SPDX-License-Identifier: MIT */
/* How questions end without an answer, and answers without being used: by a rise, a reload, the session's end, time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql.h"
#include "policy/asked.h"
#include "session/questions_internal.h"

#define DAEMON "daemon" /* who ends what nobody has taken back */

/* What waits for it, or goes on by it, is notified. That only tightens, so it does not wait for the disk. */
static void question_report_end(struct service *service, struct question *question, enum question_state state,
				const char *who, const char *why)
{
	const struct question_news over = { .reply = REPLY_OVER, .question = question->row.id };
	const struct inspectors *inspectors = &service->config.inspectors;

	question_event(service, NP_R_QUESTION_ENDED, &question->row, who, why);
	if (question->row.state != QUESTION_PENDING) {
		if (question->row.answer != ANSWER_DENY && (question->row.answer != ANSWER_ONCE || question->used))
			inspectors->reply(inspectors->ctx, NULL, &over);
	} else if (state == QUESTION_EXPIRED) {
		question_reply(service, question, REPLY_REFUSED, NP_R_NEEDS_APPROVAL, why);
	} else {
		question_reply(service, question, REPLY_AGAIN, 0, NULL);
	}
}

/* From here on nothing goes on by it; the record follows. */
void question_end(struct service *service, struct question *question, enum question_state state, const char *who,
		  const char *why)
{
	if (question->row.state == QUESTION_PENDING)
		service->question_counts.ended[state]++;
	question_report_end(service, question, state, who, why);
	question->end = (struct question_end){ .state = state, .us = service->config.wall_us() };
	if (strcmp(who, DAEMON) != 0)
		snprintf(question->end.who, sizeof(question->end.who), "%s", who);
	question_forget(service, question);
	TAILQ_INSERT_TAIL(&service->unrecorded, question, of_all);
}

static int end_record(struct store *store, const struct question *question)
{
	const struct question_end *end = &question->end;
	int r = question->row.state == QUESTION_PENDING
			? store_question_end(store, question->row.id, end->state, end->us)
			: store_answer_end(store, question->row.id, end->who, end->us);

	return r == -EALREADY || r == -ENOENT ? 0 : r;
}

/*
 * In one transaction: a raise waits for the disk once, however many a sandbox has asked for. What could not be recorded is
 * tried again by each sweep, and is what it was only for a daemon that starts before that: it finds out the same again, by the
 * generation, the time and the policy, but for an answer that was taken back, of which the caller was told that it failed.
 */
int questions_record(struct service *service)
{
	struct store *store = service->config.store;
	struct question *question;
	int r = TAILQ_EMPTY(&service->unrecorded) ? 0 : store_questions_begin(store);

	if (r || TAILQ_EMPTY(&service->unrecorded))
		return r;
	TAILQ_FOREACH(question, &service->unrecorded, of_all) {
		r = end_record(store, question);
		if (r)
			break;
	}
	r = store_questions_commit(store, r);
	while (!r && (question = TAILQ_FIRST(&service->unrecorded))) {
		TAILQ_REMOVE(&service->unrecorded, question, of_all);
		free(question);
	}
	return r;
}

typedef const char *end_fn(const struct service *service, const struct question *question, const void *data);

/* Ends those for which why() has words. */
static void questions_end(struct service *service, end_fn *why, enum question_state state, const void *data)
{
	struct question *question, *next;

	for (question = TAILQ_FIRST(&service->questions); question; question = next) {
		const char *words = why(service, question, data);

		next = TAILQ_NEXT(question, of_all);
		if (words)
			question_end(service, question, state, DAEMON, words);
	}
	questions_record(service);
}

/* Generations of two sessions may be equal, and one may have its rung by a cgroup that was the other's. */
static bool question_stands(const struct question *question, const struct np_rung *rung)
{
	const struct np_rung *of = &question->row.rung;

	return of->generation == rung->generation && of->level == rung->level && of->mode == rung->mode;
}

static const char *raised_why(const struct service *service, const struct question *question, const void *data)
{
	const struct session *session = data;

	(void)service;
	return !strcmp(question->row.session.text, session->name.text) && !question_stands(question, &session->stands)
		       ? "the session's level rose"
		       : NULL;
}

void questions_raised(struct service *service, const struct session *session)
{
	decisions_over(service, session->name.text, &session->stands);
	questions_end(service, raised_why, QUESTION_VOID, session);
}

static const char *ended_why(const struct service *service, const struct question *question, const void *data)
{
	(void)service;
	return !strcmp(question->row.session.text, data) ? "the session was ended" : NULL;
}

void questions_session_ended(struct service *service, const char *session)
{
	decisions_over(service, session, NULL);
	trails_forget(&service->decisions.trails, &service->key, session);
	questions_end(service, ended_why, QUESTION_VOID, session);
}

static const char *reload_why(const struct service *service, const struct question *question, const void *data)
{
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;
	const struct question_row *row = &question->row;
	const struct asked asked = {
		.rung = row->rung,
		.rule = row->rule,
		.session = row->session.text,
		.method = row->method,
		.url = row->url,
		.headers = row->headers,
		.has_body = row->body,
	};

	(void)data;
	return policy && asked_still(policy, &asked) ? NULL : "the policy does not ask about it any more";
}

void questions_reload(struct service *service)
{
	decisions_over(service, NULL, NULL);
	questions_end(service, reload_why, QUESTION_VOID, NULL);
}

static const char *sweep_why(const struct service *service, const struct question *question, const void *data)
{
	(void)data;
	/* An answer that is being used goes on: the time limit was for requests still to come. */
	if (!question_is_due(service, question) || (question->used && !question->timed))
		return NULL;
	return question->row.state == QUESTION_PENDING ? "nobody answered in time" : "the time of the answer is over";
}

void questions_sweep(struct service *service)
{
	questions_end(service, sweep_why, QUESTION_EXPIRED, NULL);
}

static const char *covered_why(const struct service *service, const struct question *question, const void *data)
{
	const struct question *by = data;

	(void)service;
	return question != by && question->row.state == QUESTION_PENDING && question_covers(&by->row, &question->row)
		       ? "an answer for its domain covers it"
		       : NULL;
}

void questions_covered(struct service *service, const struct question *by)
{
	questions_end(service, covered_why, QUESTION_VOID, by);
}

static const char *returned_why(const struct service *service, const struct question *question, const void *data)
{
	const struct question *by = data;

	(void)service;
	return question != by && question->row.state == QUESTION_PENDING &&
			       question_is_beside(&by->row, &question->row) && question_shows(&by->row, &question->row)
		       ? "the answer to the same request came back unused"
		       : NULL;
}

/* Requests that wait for another question beside it may be covered as well: they ask again, each by itself. */
void questions_returned(struct service *service, const struct question *by)
{
	struct question *question;

	questions_end(service, returned_why, QUESTION_VOID, by);
	TAILQ_FOREACH(question, &service->questions, of_all)
		if (question->row.state == QUESTION_PENDING && question_is_beside(&by->row, &question->row))
			question_reply(service, question, REPLY_AGAIN, 0, NULL);
}

/* -- after a start ----------------------------------------------------------------------------- */

/* What stands of its session, recorded or not. */
static int session_stands(struct service *service, const struct question_row *row, struct np_rung *ret)
{
	const struct session *session = session_find(service, row->session.text);
	struct session_row recorded;
	int r = session ? 0 : store_session_get(service->config.store, row->session.text, &recorded);

	if (r || (!session && recorded.ended))
		return r ? r : -ENOENT;
	*ret = session ? session->stands : recorded.rung;
	return 0;
}

static int question_recover(void *data, const struct question_row *row)
{
	struct service *service = data;
	struct question *question;
	struct np_rung rung = { 0 };
	int r = session_stands(service, row, &rung);

	if (r && r != -ENOENT)
		return r;
	if (question_keep(service, row, &question))
		return -ENOMEM;
	if (r || !question_stands(question, &rung))
		question_end(service, question, QUESTION_VOID, DAEMON, "the session's level rose, or it was ended");
	return 0;
}

int service_questions_recover(struct service *service, struct failure *ret_failure)
{
	int r = store_questions_each(service->config.store, NULL, true, question_recover, service);

	if (r)
		return service_fail(ret_failure, NP_R_FAILED, r, "the questions could not be read: %s",
				    sql_strerror(r));
	questions_reload(service);
	questions_sweep(service);
	return 0;
}
