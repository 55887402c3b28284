/* SPDX-License-Identifier: MIT */
#include "control/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "control/access.h"
#include "control/body.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "vocab/limits.h"
#include "vocab/words.h"

#define SEES (ROLE_APPROVER | ROLE_INBOX | ROLE_READER)

int inbox_ref_read(const char *text, struct inbox_ref *ret)
{
	const bool run = !strncmp(text, "run-", 4);

	*ret = (struct inbox_ref){ .run = run };
	return url_number(run ? text + 4 : text, INT64_MAX, &ret->id) < 0 ? -EINVAL : 0;
}

/* -- a run as a question -------------------------------------------------------------------- */

bool run_is_asked(const struct run_row *row)
{
	return row->class == CLASS_WRITE;
}

static enum question_state run_asked_state(const struct run_row *row)
{
	if (!row->decided)
		return QUESTION_PENDING;
	if (row->approved)
		return QUESTION_ALLOWED;
	if (strcmp(row->decider, "daemon") != 0)
		return QUESTION_DENIED;
	return row->decided_us >= row->expires_us ? QUESTION_EXPIRED : QUESTION_VOID;
}

json_t *run_asked_object(const struct request *rq, const struct run_row *row)
{
	const enum question_state state = run_asked_state(row);
	const bool answered = state == QUESTION_ALLOWED || state == QUESTION_DENIED;
	_json_ json_t *run = run_shown(rq, row);
	struct policy_loaded loaded;
	struct session_row session = { 0 };
	struct failure ignored;
	char id[32];
	int known = service_session_show(rq->config->service, row->session.text, &session, &ignored) == 0;

	rq->config->policy_loaded(rq->config->data, &loaded);
	snprintf(id, sizeof(id), "run-%llu", (unsigned long long)row->id);
	return json_pack(
		"{s:s,s:s,s:n,s:I,s:o,s:s,s:O*,s:O*,s:O*,s:s*,s:s*,s:o,s:s,s:o,s:o,s:O*,s:O*,s:O*,s:o,s:o,s:[]}", "id",
		id, "kind", "run", "question", "run", (json_int_t)row->id, "session", json_text(row->session.text),
		"state", question_state_name(state), "command", json_object_get(run, "command"), "options",
		json_object_get(run, "options"), "asked_by", json_object_get(run, "asked_by"), "level",
		known ? level_name(session.rung.level) : NULL, "mode", known ? mode_name(session.rung.mode) : NULL,
		"generation", known ? json_integer(session.rung.generation) : json_null(), "policy",
		loaded.policy->hash, "answer",
		answered ? json_string(state == QUESTION_ALLOWED ? "once" : "deny") : json_null(), "answered_by",
		answered ? json_text(row->decider) : json_null(), "reason", json_object_get(run, "reason"), "created",
		json_object_get(run, "created"), "expires", json_object_get(run, "expires"), "answered",
		answered ? json_time(row->decided_us) : json_null(), "datasets",
		dataset_names(service_store(rq->config->service), row->session.text), "warnings");
}

/* -- the list --------------------------------------------------------------------------------- */

void inbox_free(struct inbox *inbox)
{
	free(inbox->items);
	*inbox = (struct inbox){ 0 };
}

static int item_add(struct inbox *inbox, const struct inbox_ref *ref, const struct session_name *session,
		    uint64_t created_us, enum question_state state)
{
	const struct inbox_query *query = inbox->query;

	if ((!query->any && query->state != state) || !access_sees(inbox->rq, SEES, session->text) ||
	    (query->session && strcmp(query->session, session->text) != 0))
		return 0;
	if (inbox->max-- == 0)
		return -E2BIG;
	if (ARRAY_RESERVE(inbox->items, inbox->size, inbox->n + 1) < 0)
		return -ENOMEM;
	inbox->items[inbox->n++] = (struct inbox_item){ .ref = *ref, .session = *session, .created_us = created_us };
	return 0;
}

static int question_take(void *data, const struct question_row *row)
{
	struct inbox *inbox = data;

	if (row->id <= inbox->query->after)
		return 0;
	return item_add(inbox, &(struct inbox_ref){ false, row->id }, &row->session, row->created_us, row->state);
}

static int run_take(void *data, const struct run_row *row)
{
	if (!run_is_asked(row))
		return 0;
	return item_add(data, &(struct inbox_ref){ true, row->id }, &row->session, row->created_us,
			run_asked_state(row));
}

static int item_order(const struct inbox_item *a, const struct inbox_item *b)
{
	if (a->created_us != b->created_us)
		return a->created_us < b->created_us ? -1 : 1;
	if (a->ref.run != b->ref.run)
		return a->ref.run ? 1 : -1;
	return a->ref.id < b->ref.id ? -1 : a->ref.id > b->ref.id;
}

static int by_session(const void *a, const void *b)
{
	const struct inbox_item *x = a, *y = b;
	int order = strcmp(x->session.text, y->session.text);

	return order ? order : item_order(x, y);
}

static int by_turn(const void *a, const void *b)
{
	const struct inbox_item *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : item_order(x, y);
}

static int by_age(const void *a, const void *b)
{
	return item_order(b, a);
}

/* Sessions take turns. */
static void items_order(struct inbox *inbox)
{
	qsort(inbox->items, inbox->n, sizeof(*inbox->items), by_session);
	for (size_t i = 1; i < inbox->n; i++)
		if (!strcmp(inbox->items[i].session.text, inbox->items[i - 1].session.text))
			inbox->items[i].rank = inbox->items[i - 1].rank + 1;
	qsort(inbox->items, inbox->n, sizeof(*inbox->items), by_turn);
}

int inbox_read(const struct request *rq, const struct inbox_query *query, struct inbox *ret, bool *ret_cut_short)
{
	struct store *store = service_store(rq->config->service);
	const bool waits = !query->any && query->state == QUESTION_PENDING;
	const size_t max = waits ? NP_LIST_MAX : NP_EVENTS_PAGE; /* all that waits is less: limits.h */
	cleanup(inbox_free) struct inbox inbox = { .rq = rq, .query = query, .max = max };
	bool cut;
	int r = store_questions_each(store, query->session, waits, question_take, &inbox);

	cut = r == -E2BIG;
	if ((!r || cut) && !query->after) {
		inbox.max = max;
		r = waits ? store_runs_open_each(store, run_take, &inbox)
			  : store_runs_each(store, query->session, run_take, &inbox);
		cut |= r == -E2BIG;
	}
	if (r < 0 && r != -E2BIG)
		return r;
	if (waits && inbox.n)
		items_order(&inbox);
	else if (inbox.n)
		qsort(inbox.items, inbox.n, sizeof(*inbox.items), by_age);
	if (inbox.n > max) {
		inbox.n = max;
		cut = true;
	}
	*ret_cut_short = cut;
	*ret = inbox;
	inbox.items = NULL;
	return 0;
}

_Static_assert(NP_QUESTIONS_PENDING + NP_RUNS_PENDING < NP_LIST_MAX, "one answer has all that waits");

int inbox_show(const struct request *rq, const struct inbox_ref *ref, const struct inbox_query *query, json_t **ret,
	       enum question_state *ret_state)
{
	struct store *store = service_store(rq->config->service);
	const struct session_name *session;
	union {
		struct question_row question;
		struct run_row run;
	} row;
	int r = ref->run ? store_run_get(store, ref->id, &row.run) : store_question_get(store, ref->id, &row.question);

	*ret = NULL;
	if (r == -ENOENT || (r == 0 && ref->run && !run_is_asked(&row.run)))
		return 0;
	if (r < 0)
		return r;
	session = ref->run ? &row.run.session : &row.question.session;
	*ret_state = ref->run ? run_asked_state(&row.run) : row.question.state;
	if (!access_sees(rq, SEES, session->text) || (query->session && strcmp(query->session, session->text) != 0) ||
	    (!query->any && query->state != *ret_state))
		return 0;
	*ret = ref->run ? run_asked_object(rq, &row.run) : question_shown(rq, &row.question);
	return *ret ? 0 : -ENOMEM;
}
