/* SPDX-License-Identifier: MIT */
/* How questions end without an answer, and answers without being used: by a rise, a reload, the session's end, time. */
#include <errno.h>
#include <string.h>

#include "base/sql.h"
#include "policy/asked.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

/*
 * What a failure to record it leaves: memory has forgotten it, so nothing goes on by it; after a restart the same is found out
 * again, for the generation, the time and the policy say so.
 */
static void question_end(struct service *service, struct question *question, enum question_state state, const char *why)
{
	const struct question_news over = { .reply = REPLY_OVER, .question = question->row.id };
	const struct inspectors *inspectors = &service->config.inspectors;
	uint64_t now = service->config.wall_us();

	if (question->row.state == QUESTION_PENDING) {
		store_question_end(service->config.store, question->row.id, state, now);
		question_event(service, NP_R_QUESTION_ENDED, &question->row, "daemon", why);
		if (state == QUESTION_EXPIRED)
			question_reply(service, question, REPLY_REFUSED, NP_R_NEEDS_APPROVAL, why);
		else
			question_reply(service, question, REPLY_AGAIN, 0, NULL);
	} else {
		store_answer_end(service->config.store, question->row.id, now);
		question_event(service, NP_R_QUESTION_ENDED, &question->row, "daemon", why);
		if (question->row.answer == ANSWER_HOST || question->used)
			inspectors->reply(inspectors->ctx, NULL, &over);
	}
	question_drop(service, question);
}

typedef const char *end_fn(const struct service *service, const struct question *question, const void *data);

/*
 * Ends those for which why() has words. In one transaction: a raise waits for the disk once, however many a sandbox has asked
 * for. One that fails leaves what question_end() says.
 */
static void questions_end(struct service *service, end_fn *why, enum question_state state, const void *data)
{
	struct question *question, *next;
	bool begun = false;

	for (question = TAILQ_FIRST(&service->questions); question; question = next) {
		const char *words = why(service, question, data);

		next = TAILQ_NEXT(question, of_all);
		if (!words)
			continue;
		begun = begun || store_questions_begin(service->config.store) == 0;
		question_end(service, question, state, words);
	}
	if (begun)
		store_questions_commit(service->config.store);
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
	questions_end(service, raised_why, QUESTION_VOID, session);
}

static const char *ended_why(const struct service *service, const struct question *question, const void *data)
{
	(void)service;
	return !strcmp(question->row.session.text, data) ? "the session was ended" : NULL;
}

void questions_session_ended(struct service *service, const char *session)
{
	questions_end(service, ended_why, QUESTION_VOID, session);
}

static const char *reload_why(const struct service *service, const struct question *question, const void *data)
{
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;
	const struct question_row *row = &question->row;

	(void)data;
	return policy && asked_still(policy, &row->rung, row->session.text, row->method, row->url, row->place)
		       ? NULL
		       : "the policy does not ask about it any more";
}

void questions_reload(struct service *service)
{
	questions_end(service, reload_why, QUESTION_VOID, NULL);
}

static const char *sweep_why(const struct service *service, const struct question *question, const void *data)
{
	(void)data;
	if (!question_is_due(question, service->config.wall_us()))
		return NULL;
	return question->row.state == QUESTION_PENDING ? "nobody answered in time" : "the time of the answer is over";
}

void questions_sweep(struct service *service)
{
	questions_end(service, sweep_why, QUESTION_EXPIRED, NULL);
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
		question_end(service, question, QUESTION_VOID, "the session's level rose, or it was ended");
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
