/* SPDX-License-Identifier: MIT */
/* What a case expects: the verdict, its reason, the place of its rule, the credential that goes with it. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/chars.h"
#include "policy/case_internal.h"
#include "vocab/words.h"

/* Verdicts have reasons of the groups allow and refuse; see reason.h. */
static int reason_find(const char *token)
{
	for (int i = 0; i < 128; i++)
		if (!strcmp(reason_token((unsigned)i), token) && strcmp(token, "unknown") != 0)
			return i;
	return -1;
}

static int line_number(const char *text, uint32_t *ret)
{
	uint64_t value;

	if (*text == '0' || number_parse(text, strlen(text), UINT32_MAX, &value) < 0)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* "line 14" or "FILE:14"; the first word is the current one. */
static int place_read(struct case_reading *r, struct case_item *item)
{
	char *colon = strrchr(r->word, ':');

	if (!strcmp(r->word, "line"))
		return case_word_take(r) ? line_number(r->word, &item->at) : -EINVAL;
	if (!colon || colon == r->word || line_number(colon + 1, &item->at) < 0)
		return -EINVAL;
	item->file = arena_text(r->file->arena, r->word, (size_t)(colon - r->word));
	return item->file ? 0 : -ENOMEM;
}

/* "credential NAME" or "no credential", the last of a line; the first word is the current one. 0: it is neither. */
static int credential_read(struct case_reading *r, struct case_item *item, const char **ret_problem)
{
	const bool none = !strcmp(r->word, "no") && case_word_comes(r, "credential");

	if (!none && strcmp(r->word, "credential") != 0)
		return 0;
	if (!case_word_take(r) || case_word_comes(r, ARROW)) {
		*ret_problem = "which credential goes with it is written \"credential NAME\", or \"no credential\"";
		return -EINVAL;
	}
	item->credential = none ? "" : arena_text(r->file->arena, r->word, strlen(r->word));
	if (!item->credential)
		return -ENOMEM;
	if (case_word_take(r)) {
		*ret_problem = "nothing comes behind the credential";
		return -EINVAL;
	}
	return 1;
}

int case_expected_read(struct case_reading *r, struct case_item *item, const char **ret_problem)
{
	const char *word = case_word_take(r);
	int e;

	for (int a = ACTION_ALLOW; word && a <= ACTION_DECIDE; a++)
		if (!strcmp(word, action_name((enum action)a)))
			item->action = (enum action)a;
	if (!item->action) {
		*ret_problem = "the expected verdict is one of allow, deny, ask, decide";
		return -EINVAL;
	}
	word = case_word_take(r);
	e = word ? credential_read(r, item, ret_problem) : 0;
	if (e)
		return e < 0 ? e : 0;
	if (word && item->action == ACTION_DECIDE && !strchr(word, ':') && strcmp(word, "line") != 0 &&
	    reason_find(word) < 0) {
		item->by = arena_text(r->file->arena, word, strlen(word));
		if (!item->by)
			return -ENOMEM;
		word = case_word_take(r);
	}
	item->reason = word ? reason_find(word) : -1;
	if (item->reason >= 0)
		word = case_word_take(r);
	e = word ? credential_read(r, item, ret_problem) : 0;
	if (e)
		return e < 0 ? e : 0;
	if (word && place_read(r, item) < 0) {
		*ret_problem = item->reason >= 0
				       ? "the rule is named by \"line N\" or \"FILE:N\""
				       : "neither a reason nor the place of a rule (\"line N\" or \"FILE:N\")";
		return -EINVAL;
	}
	e = word && case_word_take(r) ? credential_read(r, item, ret_problem) : 1;
	if (e == 0) {
		*ret_problem =
			"nothing comes behind the place of the rule but \"credential NAME\" or \"no credential\"";
		return -EINVAL;
	}
	return e < 0 ? e : 0;
}
