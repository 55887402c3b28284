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

#include "session/registrable.h"
#include "session/questions_internal.h"
#include "vocab/limits.h"

/* -- in memory ----------------------------------------------------------------------------- */

/* host: row->host, or the domain that its answer is for. */
static uint64_t key_hash(const struct service *service, const struct question_row *row, const char *host)
{
	return hash_text(&service->key, row->session.text) ^ hash_text(&service->key, host) * 3 ^
	       hash_number(&service->key, row->rule ^ (row->port * 2u + row->write));
}

/* All of the key but the host. What is seen is not what is not, and what goes in the clear is not what goes in TLS. */
static bool same_kind(const struct question_row *a, const struct question_row *b)
{
	return a->port == b->port && a->write == b->write && !a->method[0] == !b->method[0] && a->tls == b->tls &&
	       a->rule == b->rule && !strcmp(a->session.text, b->session.text);
}

bool question_covers(const struct question_row *answered, const struct question_row *asked)
{
	char domain[QUESTION_HOST_SIZE];

	return answered->answer == ANSWER_DOMAIN && same_kind(answered, asked) &&
	       registrable_domain(asked->host, domain) == 0 && !strcmp(answered->domain, domain);
}

bool question_is_beside(const struct question_row *a, const struct question_row *b)
{
	return same_kind(a, b) && !strcmp(a->host, b->host);
}

/* A text that was cut may have gone on in another way. */
bool question_shows(const struct question_row *row, const struct question_row *asked)
{
	return !strcmp(row->method, asked->method) && !strcmp(row->url, asked->url) &&
	       strlen(row->url) + 1 < sizeof(row->url) && strlen(row->method) + 1 < sizeof(row->method) &&
	       !strcmp(row->headers, asked->headers) && row->body == asked->body &&
	       row->preview_len == asked->preview_len && !memcmp(row->preview, asked->preview, row->preview_len);
}

/* Which of two of the same key is met: what was denied is, before what was answered once, before the rest. */
static unsigned question_rank(const struct question *question)
{
	return question->row.answer == ANSWER_DENY ? 2 : question->row.answer == ANSWER_ONCE;
}

/* The question about this very host, or an answer for its domain. What was answered once is there for what it has shown. */
struct question *question_find(const struct service *service, const struct question_row *key)
{
	char domain[QUESTION_HOST_SIZE];
	struct question *found = NULL;
	struct table_node *n;

	for (n = table_first(&service->questions_by_key, key_hash(service, key, key->host)); n; n = table_next(n)) {
		struct question *question = container_of(n, struct question, node);
		const struct question_row *row = &question->row;

		if (row->answer != ANSWER_DOMAIN && question_is_beside(row, key) &&
		    (row->answer != ANSWER_ONCE || question_shows(row, key)) &&
		    (!found || question_rank(question) > question_rank(found)))
			found = question;
	}
	if (found || registrable_domain(key->host, domain) < 0)
		return found;
	for (n = table_first(&service->questions_by_key, key_hash(service, key, domain)); n; n = table_next(n)) {
		struct question *question = container_of(n, struct question, node);

		if (question_covers(&question->row, key))
			return question;
	}
	return NULL;
}

void question_index(struct service *service, struct question *question)
{
	const struct question_row *row = &question->row;

	table_add(&service->questions_by_key, &question->node,
		  key_hash(service, row, row->answer == ANSWER_DOMAIN ? row->domain : row->host));
}

/*
 * When its time is over, by a clock that nobody sets. After a restart the wall's clock is all there is: one that was set back
 * behind the beginning ends it, and none makes it longer than it was meant to be.
 */
uint64_t question_due(const struct service *service, const struct question_row *row)
{
	const bool waits = row->state == QUESTION_PENDING;
	const uint64_t from = waits ? row->created_us : row->answered_us,
		       until = waits ? row->expires_us : row->until_us, wall = service->config.wall_us(),
		       now = service->config.boot_us();

	if (!until)
		return 0;
	return wall < from || wall >= until ? now : now + (until - wall);
}

bool question_is_due(const struct service *service, const struct question *question)
{
	return question->due_us && question->due_us <= service->config.boot_us();
}

int question_keep(struct service *service, const struct question_row *row, struct question **ret)
{
	struct question *question =
		table_reserve(&service->questions_by_key) == 0 ? calloc(1, sizeof(*question)) : NULL;

	if (!question)
		return -ENOMEM;
	question->row = *row;
	question->due_us = question_due(service, row);
	question->timed = row->state != QUESTION_PENDING;
	TAILQ_INIT(&question->held);
	TAILQ_INSERT_TAIL(&service->questions, question, of_all);
	question_index(service, question);
	if (ret)
		*ret = question;
	return 0;
}

void question_forget(struct service *service, struct question *question)
{
	while (!TAILQ_EMPTY(&question->held))
		held_drop(service, question, TAILQ_FIRST(&question->held));
	TAILQ_REMOVE(&service->questions, question, of_all);
	if (!question->used)
		table_remove(&service->questions_by_key, &question->node);
}

void question_drop(struct service *service, struct question *question)
{
	question_forget(service, question);
	free(question);
}

void questions_free(struct service *service)
{
	struct question *question;

	while (!TAILQ_EMPTY(&service->questions))
		question_drop(service, TAILQ_FIRST(&service->questions));
	while ((question = TAILQ_FIRST(&service->unrecorded))) {
		TAILQ_REMOVE(&service->unrecorded, question, of_all);
		free(question);
	}
	table_clear(&service->questions_by_key);
}

/* -- what is news --------------------------------------------------------------------------- */

/* At least 1, also when the clock was set: 0 means that nobody waited. */
static uint64_t question_waited(uint64_t from_us, uint64_t to_us)
{
	return to_us > from_us ? to_us - from_us : 1;
}

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
		.question = row->id,
		.answer = row->answer ? question_answer_name(row->answer) : NULL,
	};

	if (reason == NP_R_QUESTION_ANSWERED)
		event.waited_us = question_waited(row->created_us, row->answered_us);
	else if (reason == NP_R_QUESTION_ENDED && row->state == QUESTION_PENDING)
		event.waited_us = question_waited(row->created_us, service->config.wall_us());
	snprintf(text, sizeof(text), "question %llu%s%s%s%.512s", (unsigned long long)row->id, row->answer ? ", " : "",
		 question_answer_name(row->answer), words && *words ? ": " : "", words ? words : "");
	service_emit(service, &event, NULL, NULL);
}

/* -- an inspector asks ------------------------------------------------------------------------ */

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
		service->question_counts.asked++;
	if (!r)
		question_event(service, NP_R_QUESTION_ASKED, &made, "daemon", NULL);
	return r;
}

bool question_meet(struct service *service, const struct question_row *row, const struct question_waiter *waiter)
{
	struct question *question = question_find(service, row);

	if (question && question_is_due(service, question)) { /* the sweep would see to it within a second */
		questions_sweep(service);
		question = question_find(service, row);
	}
	if (question && question->row.state == QUESTION_PENDING)
		question_hold(service, question, waiter, question_shows(&question->row, row));
	else if (question)
		question_use(service, question, waiter);
	return question;
}

void question_put(struct service *service, const struct question_row *row, const struct question_waiter *waiter)
{
	struct question_news news = { .reply = REPLY_REFUSED };
	struct question *question;
	int r = question_make(service, row, &question);

	if (r == 0) {
		question_hold(service, question, waiter, true);
		return;
	}
	news.reason = r == -E2BIG ? NP_R_TOO_MANY_QUESTIONS : NP_R_NEEDS_APPROVAL;
	news.words = r == -E2BIG ? NULL : "the question could not be recorded";
	waiter_reply(service, waiter, &news);
}

static bool question_is_denied(const struct service *service, const struct question_row *row)
{
	const struct question *question = question_find(service, row);

	return question && question->row.answer == ANSWER_DENY;
}

void service_question_ask(struct service *service, const struct question_ask *ask, const struct question_waiter *waiter)
{
	const struct sandbox *sandbox = sandbox_by_cgroup(service, ask->cgroup_id);
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;
	struct question_news news = { .reply = REPLY_REFUSED,
				      .reason = ask->decider ? NP_R_NEEDS_DECIDER : NP_R_NEEDS_APPROVAL };
	struct question_row row;

	/* Of a sandbox or a session that has ended nobody is asked, though what its processes did last arrives now. */
	if (!sandbox || sandbox->dying || sandbox->session->status == SESSION_ENDED || !policy ||
	    ask->decider > policy->n_deciders || !question_row_fill(service, ask, sandbox, policy, &row)) {
		waiter_reply(service, waiter, &news);
		return;
	}
	/* What it was judged by is not what holds: the inspector has been told of that by now. */
	if (!np_rung_equal(&ask->rung, &sandbox->pub.rung) || strcmp(ask->policy, policy->hash) != 0) {
		news.reply = REPLY_AGAIN;
		waiter_reply(service, waiter, &news);
		return;
	}
	/*
	 * A decider is asked about each request, whatever a person has allowed: it narrows, and hands over what it does not
	 * decide itself; then that is met (service_decision()). What a person has denied, it is not asked about.
	 */
	if ((!ask->decider || question_is_denied(service, &row)) && question_meet(service, &row, waiter))
		return;
	question_row_process(service, ask->cgroup_id, &row);
	if (ask->decider)
		decision_ask(service, ask, policy->deciders[ask->decider - 1].name, &row, waiter);
	else
		question_put(service, &row, waiter);
}
