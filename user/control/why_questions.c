/* SPDX-License-Identifier: MIT */
#include "control/why_questions.h"

#include <errno.h>

#include "base/cleanup.h"
#include "control/body.h"
#include "control/refusals.h"
#include "control/reply.h"
#include "session/store.h"
#include "vocab/limits.h"
#include "vocab/words.h"

struct asked {
	struct buf *text;
	json_t *array;
};

/* How it ended, and is it of any use to try again? */
static const char *outcome_words(const struct question_row *row, bool *ret_retry)
{
	const bool over = row->over_us;

	*ret_retry = true;
	switch (row->state) {
	case QUESTION_PENDING:
		return "waits for a person; trying again joins it";
	case QUESTION_ALLOWED:
		return !over ? "was allowed: try again"
			     : "was allowed, and the answer is used or holds no more; trying again asks anew";
	case QUESTION_DENIED:
		*ret_retry = over;
		return over ? "was denied, and the answer holds no more; trying again asks anew"
			    : "was denied; trying again will not help";
	case QUESTION_EXPIRED:
		return "was not answered in time; trying again asks anew";
	default:
		return "is void, for the level or the policy is another by now, or another answer covers it; trying "
		       "again is judged by that";
	}
}

static int asked_add(void *data, const struct question_row *row)
{
	struct asked *asked = data;
	bool retry;
	const char *words = outcome_words(row, &retry);
	char until[TIME_TEXT_SIZE], shorter[32];

	if (json_array_size(asked->array) >= NP_WHY_QUESTIONS)
		return -E2BIG;
	time_format(row->expires_us, until);
	time_shorten(until, shorter);
	buf_printf(asked->text, "Question %llu (%s %.200s) %s", (unsigned long long)row->id,
		   row->method[0] ? row->method : "connect to", row->url, words);
	if (row->state == QUESTION_PENDING)
		buf_printf(asked->text, ", until %s", shorter);
	if (row->reason[0])
		buf_printf(asked->text, ": %.200s", row->reason);
	buf_puts(asked->text, ".\n");
	return json_array_append_new(asked->array,
				     json_pack("{s:I,s:s,s:o,s:o,s:s,s:b}", "question", (json_int_t)row->id, "state",
					       question_state_name(row->state), "method",
					       row->method[0] ? json_text(row->method) : json_null(), "url",
					       json_text(row->url), "outcome", words, "retry", (int)retry)) < 0
		       ? -ENOMEM
		       : 0;
}

int why_questions(struct service *service, const char *session, struct buf *text, json_t **ret)
{
	_json_ json_t *array = json_array();
	struct asked asked = { .text = text, .array = array };
	int r = array ? store_questions_each(service_store(service), session, false, asked_add, &asked) : -ENOMEM;

	if (r < 0 && r != -E2BIG)
		return r;
	*ret = take_ptr(array);
	return 0;
}
