/* SPDX-License-Identifier: MIT */
/* Questions and answers as they are, for who explains or looks for a fault: without a change of anything. */
#include <string.h>

#include "session/questions_internal.h"

/* Which of those that cover a request is met, as question_find() has it; 0: it does not. What was answered once is for the request that
 * it shows, of which method and URL are known here. */
static unsigned look_rank(const struct service *service, const struct question *question,
			  const struct question_row *row)
{
	const struct question_row *of = &question->row;

	if (question->used || question_is_due(service, question))
		return 0;
	if (of->answer == ANSWER_DOMAIN)
		return question_covers(of, row);
	if (!question_is_beside(of, row))
		return 0;
	if (of->answer == ANSWER_ONCE)
		return !strcmp(of->method, row->method) && !strcmp(of->url, row->url) ? 3 : 0;
	return of->answer == ANSWER_DENY ? 4 : 2;
}

void service_question_look(struct service *service, const struct question_row *row, bool decider,
			   struct question_met *ret)
{
	const struct decision_known *known = decider ? decision_find(service, row) : NULL;
	const struct question *question, *found = NULL;
	unsigned best = 0;

	*ret = (struct question_met){ 0 };
	TAILQ_FOREACH(question, &service->questions, of_all) {
		unsigned rank = look_rank(service, question, row);

		if (rank > best) {
			best = rank;
			found = question;
		}
	}
	if (found) {
		ret->asked = true;
		ret->question = found->row;
	}
	if (known) {
		const uint64_t now = service->config.now_ns();

		ret->decided = true;
		ret->decision = known->decision;
		ret->left_s = known->until_ns > now ? (known->until_ns - now) / 1000000000u : 0;
	}
}

void service_questions_each(const struct service *service, const char *session,
			    void (*fn)(void *data, const struct question_row *row, unsigned waiting), void *data)
{
	const struct question *question;

	TAILQ_FOREACH(question, &service->questions, of_all) {
		if (!session || !strcmp(question->row.session.text, session))
			fn(data, &question->row, question->n_held);
	}
}
