/* SPDX-License-Identifier: MIT */
/*
 * What deciders are asked, and what their answers are worth. An answer is for the request that waits for it. It is used for others
 * only if the decider says so (remember), in the same session, for the same rule, and as long as neither the level nor the policy
 * changes. That there was no answer is never remembered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql.h"
#include "policy/policy.h"
#include "session/questions_internal.h"
#include "session/service_internal.h"
#include "vocab/words.h"

#define FRAME_BYTES (60u << 10) /* of one line: below what a message of the link holds */

static struct decision_open *open_find(const struct decisions *all, const struct hash_key *key, uint64_t id)
{
	for (struct table_node *n = table_first(&all->by_id, hash_number(key, id)); n; n = table_next(n))
		if (container_of(n, struct decision_open, node)->id == id)
			return container_of(n, struct decision_open, node);
	return NULL;
}

static void open_drop(struct service *service, struct decision_open *open)
{
	TAILQ_REMOVE(&service->decisions.open, open, next);
	table_remove(&service->decisions.by_id, &open->node);
	free(open);
}

static void open_withdraw(struct service *service, struct decision_open *open)
{
	service->config.deciders.withdraw(service->config.deciders.ctx, open->id);
	open_drop(service, open);
}

static void waiter_refuse(struct service *service, const struct question_waiter *waiter, const char *why)
{
	waiter_reply(service, waiter,
		     &(struct question_news){ .reply = REPLY_REFUSED, .reason = NP_R_NEEDS_DECIDER, .words = why });
}

/* -- answers that are remembered ---------------------------------------------------------------------- */

static uint64_t known_hash(const struct service *service, const char *session, uint64_t rule)
{
	return hash_text(&service->key, session) ^ hash_number(&service->key, rule);
}

/* Generations alone do not tell: a session may have its rung by a cgroup that was another's, at the same one. */
static bool rung_stands(const struct np_rung *rung, const struct np_rung *stands)
{
	return stands && rung->generation == stands->generation && rung->level == stands->level &&
	       rung->mode == stands->mode;
}

static bool known_is(const struct service *service, const struct decision_known *known, const struct question_row *row)
{
	if (known->rule != row->rule || strcmp(known->session, row->session.text) != 0 ||
	    !rung_stands(&known->rung, &row->rung) || known->until_ns <= service->config.now_ns())
		return false;
	return known->decision.remember == REMEMBER_SESSION ||
	       (known->port == row->port && known->write == row->write && known->seen == !!row->method[0] &&
		known->tls == row->tls && !strcmp(known->host, row->host));
}

static void known_drop(struct service *service, struct decision_known *known)
{
	TAILQ_REMOVE(&service->decisions.known, known, next);
	table_remove(&service->decisions.known_by_key, &known->node);
	service->decisions.n_known--;
	free(known);
}

/* The last that was said wins, and one for the host before one for the session. */
const struct decision_known *decision_find(const struct service *service, const struct question_row *row)
{
	const struct decision_known *found = NULL;

	for (struct table_node *n =
		     table_first(&service->decisions.known_by_key, known_hash(service, row->session.text, row->rule));
	     n; n = table_next(n)) {
		const struct decision_known *known = container_of(n, struct decision_known, node);

		if (known_is(service, known, row) && (!found || (known->decision.remember == REMEMBER_HOST &&
								 found->decision.remember == REMEMBER_SESSION)))
			found = known;
	}
	return found;
}

/* One that cannot be remembered is asked for again. */
static void known_put(struct service *service, const struct decision *decision, const struct question_row *row)
{
	struct decisions *all = &service->decisions;
	struct decision_known *known = table_reserve(&all->known_by_key) == 0 ? calloc(1, sizeof(*known)) : NULL;
	struct decision_known *old, *next;

	if (!known)
		return;
	*known = (struct decision_known){
		.decision = *decision,
		.until_ns = service->config.now_ns() +
			    (decision->ttl_s ? decision->ttl_s : NP_DECISION_TTL_S) * 1000000000ull,
		.rung = row->rung,
		.rule = row->rule,
		.port = row->port,
		.write = row->write,
		.seen = row->method[0],
		.tls = row->tls,
	};
	snprintf(known->session, sizeof(known->session), "%s", row->session.text);
	snprintf(known->host, sizeof(known->host), "%s", row->host);
	for (old = TAILQ_FIRST(&all->known); old; old = next) { /* what this replaces */
		next = TAILQ_NEXT(old, next);
		if (old->decision.remember == decision->remember && known_is(service, old, row))
			known_drop(service, old);
	}
	if (all->n_known >= NP_DECISIONS_REMEMBERED)
		known_drop(service, TAILQ_FIRST(&all->known));
	TAILQ_INSERT_TAIL(&all->known, known, next);
	all->n_known++;
	table_add(&all->known_by_key, &known->node, known_hash(service, known->session, known->rule));
}

/* -- asking ---------------------------------------------------------------------------------------- */

static void answer_give(struct service *service, const struct decision *decision, const struct question_waiter *waiter)
{
	const bool allowed = decision->kind == DECISION_ALLOW;

	waiter_reply(service, waiter,
		     &(struct question_news){ .reply = allowed ? REPLY_ALLOWED : REPLY_DENIED,
					      .reason = allowed ? NP_R_DECIDER_ALLOWS : NP_R_DECIDER_DENIES,
					      .words = allowed ? NULL : decision->words });
}

static struct decision_open *open_make(struct service *service, const char *decider, uint64_t cgroup_id,
				       const struct question_row *row, const struct question_waiter *waiter)
{
	struct decisions *all = &service->decisions;
	struct decision_open *open = table_reserve(&all->by_id) == 0 ? malloc(sizeof(*open)) : NULL;

	if (!open)
		return NULL;
	*open = (struct decision_open){ .id = ++all->last, .waiter = *waiter, .cgroup_id = cgroup_id, .row = *row };
	snprintf(open->decider, sizeof(open->decider), "%s", decider);
	TAILQ_INSERT_TAIL(&all->open, open, next);
	table_add(&all->by_id, &open->node, hash_number(&service->key, open->id));
	return open;
}

void decision_ask(struct service *service, const struct question_ask *ask, const char *decider,
		  const struct question_row *row, const struct question_waiter *waiter)
{
	const struct decider_calls *calls = &service->config.deciders;
	const struct decision_known *known = decision_find(service, row);
	_buf_ struct buf line = BUF_INIT(FRAME_BYTES);
	const char *why = "the decider could not be asked";
	struct decision_open *open;

	if (known) {
		service->decisions.used++;
		answer_give(service, &known->decision, waiter);
		return;
	}
	open = calls->ask ? open_make(service, decider, ask->cgroup_id, row, waiter) : NULL;
	if (open)
		decision_frame(service, open, ask, &line);
	if (open && !buf_error(&line) && calls->ask(calls->ctx, decider, open->id, line.data, line.len, &why) == 0)
		return;
	if (open)
		open_drop(service, open);
	waiter_refuse(service, waiter, why);
}

/* -- what becomes of it ------------------------------------------------------------------------------ */

/* The request is refused, whatever the raise does to it: what made the decider raise is what it has seen. */
static void decision_raise(struct service *service, const struct decision *decision, const struct decision_open *open)
{
	struct decision denied = *decision;
	struct escalation done;
	struct failure failure = { 0 };
	char who[NP_NAME_MAX + 16];

	snprintf(who, sizeof(who), "decider %s", open->decider);
	service_escalate(service, open->row.session.text, (enum level)decision->level, NULL,
			 decision->words[0] ? decision->words : NULL, true, who, &done, &failure);
	if (failure.reason) /* the kernel is tight; the next raise, or the sweep, does what is missing */
		snprintf(denied.words, sizeof(denied.words), "the session was to be raised, and %.128s",
			 reason_sentence(failure.reason));
	answer_give(service, &denied, &open->waiter);
}

/* Was it asked by what still holds? */
static bool open_stands(struct service *service, const struct decision_open *open)
{
	const struct sandbox *sandbox = sandbox_by_cgroup(service, open->cgroup_id);
	const struct policy *policy = service->config.policy(service->config.policy_data);

	return sandbox && policy && rung_stands(&open->row.rung, &sandbox->session->stands) &&
	       !strcmp(open->row.policy, policy->hash);
}

void service_decision(struct service *service, const struct decision *decision)
{
	struct decision_open *found = open_find(&service->decisions, &service->key, decision->id), open;

	if (!found)
		return;
	if (decision->kind == DECISION_NEED_BODY && open_stands(service, found)) {
		found->needs_body = true;
		waiter_reply(service, &found->waiter,
			     &(struct question_news){ .reply = REPLY_BODY, .body = decision->max });
		return;
	}
	open = *found;
	if (decision->kind == DECISION_NEED_BODY)
		open_withdraw(service, found);
	else
		open_drop(service, found);
	if (decision->kind == DECISION_NONE) {
		waiter_refuse(service, &open.waiter, decision->words);
		return;
	}
	if (!open_stands(service, &open)) {
		waiter_reply(service, &open.waiter, &(struct question_news){ .reply = REPLY_AGAIN });
		return;
	}
	if (decision->remember)
		known_put(service, decision, &open.row);
	if (decision->kind == DECISION_RAISE)
		decision_raise(service, decision, &open);
	else if (decision->kind != DECISION_ASK)
		answer_give(service, decision, &open.waiter);
	else if (!question_meet(service, &open.row, &open.waiter))
		question_put(service, &open.row, &open.waiter);
}

static struct decision_open *open_of(struct service *service, const struct question_waiter *waiter)
{
	struct decision_open *open;

	TAILQ_FOREACH(open, &service->decisions.open, next)
		if (open->waiter.number == waiter->number && open->waiter.inspector == waiter->inspector)
			return open;
	return NULL;
}

void service_question_body(struct service *service, const struct question_waiter *waiter, const char *bytes, size_t len,
			   bool whole)
{
	const struct decider_calls *calls = &service->config.deciders;
	struct decision_open *open = open_of(service, waiter);
	_buf_ struct buf line = BUF_INIT(FRAME_BYTES);

	if (!open || !open->needs_body) /* it has answered meanwhile, or is asked about something else */
		return;
	open->needs_body = false;
	decision_body_frame(open->id, bytes, len, whole, &line);
	if (!buf_error(&line) && calls->show(calls->ctx, open->id, line.data, line.len) == 0)
		return;
	open_withdraw(service, open);
	waiter_refuse(service, waiter, "the decider could not be shown the body");
}

void decisions_leave(struct service *service, const struct question_waiter *waiter)
{
	struct decision_open *open = open_of(service, waiter);

	if (open)
		open_withdraw(service, open);
}

void decisions_lost(struct service *service, unsigned inspector)
{
	struct decision_open *open, *next;

	for (open = TAILQ_FIRST(&service->decisions.open); open; open = next) {
		next = TAILQ_NEXT(open, next);
		if (open->waiter.inspector == inspector)
			open_withdraw(service, open);
	}
}

void decisions_over(struct service *service, const char *session, const struct np_rung *stands)
{
	struct decision_open *open, *next_open;
	struct decision_known *known, *next;

	for (open = TAILQ_FIRST(&service->decisions.open); open; open = next_open) {
		struct question_waiter waiter = open->waiter;

		next_open = TAILQ_NEXT(open, next);
		if (session && (strcmp(open->row.session.text, session) != 0 || rung_stands(&open->row.rung, stands)))
			continue;
		open_withdraw(service, open);
		waiter_reply(service, &waiter, &(struct question_news){ .reply = REPLY_AGAIN });
	}
	for (known = TAILQ_FIRST(&service->decisions.known); known; known = next) {
		next = TAILQ_NEXT(known, next);
		if (!session || (!strcmp(known->session, session) && !rung_stands(&known->rung, stands)))
			known_drop(service, known);
	}
}

void decisions_init(struct service *service)
{
	TAILQ_INIT(&service->decisions.open);
	TAILQ_INIT(&service->decisions.known);
	trails_init(&service->decisions.trails);
}

void decisions_free(struct service *service)
{
	while (!TAILQ_EMPTY(&service->decisions.open))
		open_drop(service, TAILQ_FIRST(&service->decisions.open));
	while (!TAILQ_EMPTY(&service->decisions.known))
		known_drop(service, TAILQ_FIRST(&service->decisions.known));
	table_clear(&service->decisions.by_id);
	table_clear(&service->decisions.known_by_key);
	trails_free(&service->decisions.trails);
}

int service_context_put(struct service *service, const char *name, const char *purpose, const char *context,
			struct failure *ret_failure)
{
	struct session_row row;
	int r = service_session_show(service, name, &row, ret_failure);

	if (r)
		return r;
	r = store_context_put(service->config.store, name, purpose, context);
	return r ? service_fail(ret_failure, NP_R_NOT_RECORDED, r, "%s: %s", name, sql_strerror(r)) : 0;
}

void service_request_note(struct service *service, const struct trail_request *request)
{
	const struct policy *policy =
		service->config.policy ? service->config.policy(service->config.policy_data) : NULL;

	if (policy && policy->n_deciders)
		trails_note(&service->decisions.trails, &service->key, request);
}
