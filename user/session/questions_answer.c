/* SPDX-License-Identifier: MIT */
/* A person answers a question, or takes an answer back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "policy/policy.h"
#include "session/registrable.h"
#include "session/questions_internal.h"
#include "vocab/limits.h"

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

unsigned service_questions_pending(const struct service *service)
{
	const struct question *question;
	unsigned n = 0;

	TAILQ_FOREACH(question, &service->questions, of_all)
		n += question->row.state == QUESTION_PENDING;
	return n;
}

void service_questions_count(const struct service *service, struct question_counts *ret)
{
	const struct question *question;

	*ret = service->question_counts;
	TAILQ_FOREACH(question, &service->questions, of_all) {
		const bool waits = question->row.state == QUESTION_PENDING;

		ret->pending += waits;
		ret->answers += !waits && !question->used;
		ret->waiting += question->used ? 0 : question->n_held;
	}
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
	if (policy->approval.once && given->answer != ANSWER_DENY && given->answer != ANSWER_ONCE)
		return service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL,
				    "the policy has an answer be for one request (approval: remember: once)");
	if (answers_count(service, row->session.text) >= NP_ANSWERS_PER_SESSION)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "%s has %d answers that hold",
				    row->session.text, NP_ANSWERS_PER_SESSION);
	return 0;
}

/* The answer is on record. One that was given for once goes to the longest waiting of those requests that are what
 * the question shows: otherwise a sandbox could show one request and have another one pass. The others ask anew. */
static void answer_apply(struct service *service, struct question *question)
{
	struct question_held *first = TAILQ_FIRST(&question->held);
	struct question_waiter waiter;

	while (first && !first->shown)
		first = TAILQ_NEXT(first, next);

	if (question->row.answer == ANSWER_DENY) {
		question_reply(service, question, REPLY_DENIED, NP_R_ANSWER_DENIES, question->row.reason);
	} else if (question->row.answer != ANSWER_ONCE) {
		question_reply(service, question, REPLY_ALLOWED, 0, NULL);
	} else if (first) {
		waiter = first->waiter;
		held_drop(service, question, first);
		question_reply(service, question, REPLY_AGAIN, 0, NULL);
		question_use(service, question, &waiter);
	} else {
		question_reply(service, question, REPLY_AGAIN, 0, NULL);
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

	if (!r && row.state != QUESTION_PENDING)
		r = -EALREADY;
	if (r)
		return question_fail(ret_failure, r, id);
	question = question_find(service, &row);
	/* It is void, and that could not be recorded yet; or its time is over, and the sweep has not been here. */
	if (!question || question->row.id != id || question_is_due(service, question))
		return question_fail(ret_failure, -EALREADY, id);
	/* What is for always is for all sessions of the user. */
	r = starter_check(service, &row.session, given->answer == ANSWER_ALWAYS, who, ret_failure);
	if (!r)
		r = answer_check(service, &row, given, ret_failure);
	if (r)
		return r;
	row.state = given->answer == ANSWER_DENY ? QUESTION_DENIED : QUESTION_ALLOWED;
	row.answer = given->answer;
	row.answered_us = now;
	row.until_us = given->for_ms ? now + given->for_ms * 1000 : 0;
	if (row.answer == ANSWER_ONCE &&
	    !row.until_us) /* for a client that tries again: as long as it would have waited */
		row.until_us = now + (row.expires_us - row.created_us);
	if (row.answer == ANSWER_DOMAIN)
		r = registrable_domain(row.host, row.domain);
	if (r)
		return service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL,
				    "%s has no domain that is known to be one owner's; answer host", row.host);
	snprintf(row.who, sizeof(row.who), "%s", who);
	snprintf(row.reason, sizeof(row.reason), "%s", given->reason);
	r = store_question_answer(store, &row);
	if (r)
		return question_fail(ret_failure, r, id);
	table_remove(&service->questions_by_key, &question->node);
	question->row = row;
	question->timed = given->for_ms;
	question->due_us = question_due(service, &row);
	question_index(service, question);
	service->question_counts.ended[row.state]++;
	question_event(service, NP_R_QUESTION_ANSWERED, &row, who, row.reason);
	if (row.answer == ANSWER_DOMAIN)
		questions_covered(service, question);
	answer_apply(service, question);
	return store_question_get(store, id, ret)
		       ? service_fail(ret_failure, NP_R_FAILED, -EIO, "question %llu", (unsigned long long)id)
		       : 0;
}

int service_grant_revoked(struct service *service, struct question_row *row, const char *who,
			  struct failure *ret_failure)
{
	int r = store_grant_revoked(service->config.store, row->id, who);

	if (!r)
		r = store_question_get(service->config.store, row->id, row);
	return r ? question_fail(ret_failure, r, row->id) : 0;
}

int service_question_revoke(struct service *service, uint64_t id, const char *reason, const char *who,
			    struct question_row *ret, struct failure *ret_failure)
{
	struct question *question;
	char words[NP_REASON_TEXT_MAX + 32];
	int r;

	TAILQ_FOREACH(question, &service->questions, of_all)
		if (question->row.id == id && question->row.state != QUESTION_PENDING)
			break;
	if (!question) {
		r = store_question_get(service->config.store, id, ret);
		if (!r && ret->state == QUESTION_PENDING)
			return service_fail(ret_failure, NP_R_BAD_FIELD, -EINVAL, "question %llu has no answer yet",
					    (unsigned long long)id);
		return question_fail(ret_failure, r ? r : -EALREADY, id);
	}
	snprintf(words, sizeof(words), "taken back%s%s", *reason ? ": " : "", reason);
	question_end(service, question, QUESTION_VOID, who, words);
	r = questions_record(service);
	if (!r)
		r = store_question_get(service->config.store, id, ret);
	return r ? question_fail(ret_failure, r, id) : 0;
}
