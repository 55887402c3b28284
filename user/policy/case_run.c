/* SPDX-License-Identifier: MIT */
#include "policy/case.h"

#include <stdio.h>
#include <string.h>

#include "vocab/words.h"
#include "policy/credential_fate.h"
#include "policy/outcome.h"

/* "x.yaml" is meant by "x.yaml" and is the last part of "dir/x.yaml". */
static bool file_is(const char *shown, const char *wanted)
{
	size_t n = strlen(shown), m = strlen(wanted);

	return n >= m && !strcmp(shown + n - m, wanted) && (n == m || shown[n - m - 1] == '/');
}

static bool place_holds(const struct policy *policy, const struct case_item *item, const struct rule *rule)
{
	if (!item->at)
		return true;
	if (!rule || rule->at.line != item->at)
		return false;
	return item->file ? file_is(policy->files[rule->at.file], item->file) : rule->at.file == 0;
}

struct case_outcome case_run(const struct policy *policy, const struct case_item *item)
{
	struct case_outcome out = { .facts = item->facts };

	out.facts.rung.mode = facts_mode(policy, &item->facts);
	out.verdict = policy_outcome(policy, &out.facts);
	out.holds =
		out.verdict.action == item->action && (item->reason < 0 || (int)out.verdict.reason == item->reason) &&
		(!item->by || (out.verdict.rule && out.verdict.rule->by && !strcmp(out.verdict.rule->by, item->by))) &&
		place_holds(policy, item, out.verdict.rule) &&
		(!item->credential ||
		 credential_goes(policy, &out.facts, &out.verdict, *item->credential ? item->credential : NULL));
	return out;
}

void case_expected_format(const struct case_item *item, char text[static CASE_TEXT_SIZE])
{
	char place[PLACE_TEXT_SIZE] = "";

	if (item->at)
		snprintf(place, sizeof(place), item->file ? " %.256s:%u" : " %sline %u", item->file ? item->file : "",
			 item->at);
	snprintf(text, CASE_TEXT_SIZE, "%s%s%s%s%s%s%s%s", action_name(item->action), item->by ? " " : "",
		 item->by ? item->by : "", item->reason >= 0 ? " " : "",
		 item->reason >= 0 ? reason_token((unsigned)item->reason) : "", place,
		 !item->credential   ? ""
		 : *item->credential ? " credential "
				     : " no credential",
		 item->credential ? item->credential : "");
}

/* Those that go with it, if the policy has any at all. */
static void carried_format(const struct policy *policy, const struct case_outcome *outcome, char *text, size_t size)
{
	struct credential_fate fate;
	size_t len = 0, any = 0, next = 0;

	text[0] = '\0';
	while (len < size && credential_fate_next(policy, &outcome->facts, &outcome->verdict, &next, &fate))
		if (!fate.why)
			len += (size_t)snprintf(text + len, size - len, "%s%s", any++ ? ", " : ", credential ",
						fate.credential->name);
	if (!any && policy->n_credentials && outcome->facts.method)
		snprintf(text, size, ", no credential");
}

void case_actual_format(const struct policy *policy, const struct case_outcome *outcome,
			char text[static CASE_TEXT_SIZE])
{
	const struct verdict *verdict = &outcome->verdict;
	char carried[CASE_TEXT_SIZE / 2];
	const char *decider = verdict->rule && verdict->action == ACTION_DECIDE ? verdict->rule->by : NULL;
	char place[PLACE_TEXT_SIZE] = "no rule";

	if (verdict->rule)
		place_format(policy, &verdict->rule->at, place);
	carried_format(policy, outcome, carried, sizeof(carried));
	snprintf(text, CASE_TEXT_SIZE, "%s%s%.64s %s, %.310s%s", action_name(verdict->action), decider ? " " : "",
		 decider ? decider : "", reason_token(verdict->reason), place, carried);
}
