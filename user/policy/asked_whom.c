/* SPDX-License-Identifier: MIT */
#include "policy/asked_whom.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "vocab/words.h"

static const struct decider *verdict_decider(const struct policy *policy, const struct verdict *verdict)
{
	for (size_t i = 0; verdict->action == ACTION_DECIDE && i < policy->n_deciders; i++)
		if (verdict->rule && policy->deciders[i].name == verdict->rule->by)
			return &policy->deciders[i];
	return NULL;
}

static void text_put(char text[static ASKED_TEXT_SIZE], struct buf *from)
{
	snprintf(text, ASKED_TEXT_SIZE, "%s", from->data && !buf_error(from) ? from->data : "?");
}

/* "1500 ms", "12 s", "10 min": the largest unit that says it exactly. */
static void span_put(struct buf *out, uint64_t ms)
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = { { 3600000, "h" }, { 60000, "min" }, { 1000, "s" }, { 1, "ms" } };
	unsigned i = 0;

	while (units[i].ms > 1 && (!ms || ms % units[i].ms))
		i++;
	buf_printf(out, "%llu %s", (unsigned long long)(ms / units[i].ms), units[i].name);
}

static void approvers_put(const struct policy *policy, struct buf *out)
{
	unsigned n = 0;

	buf_puts(out, "a person: root");
	for (size_t i = 0; i < policy->n_access; i++) {
		const struct access_caller *caller = &policy->access[i];

		if (!(caller->roles & (ROLE_OPERATOR | ROLE_APPROVER)))
			continue;
		if (n++ < 4)
			buf_printf(out, ", %s %.64s", caller->is_group ? "group" : "user", caller->name);
	}
	if (n > 4)
		buf_printf(out, " and %u more of access:", n - 4);
	if (policy->approval.group)
		buf_printf(out, ", group %.64s at approve.sock", policy->approval.group);
	if (policy->approval.four_eyes)
		buf_puts(out, "; not who has started something in the session (four_eyes)");
}

static void decider_put(const struct decider *decider, struct buf *out)
{
	buf_printf(out, "the decider \"%.64s\" (%s %.256s)", decider->name, decider->socket ? "socket" : "command",
		   decider->socket ? decider->socket : decider->command[0]);
	if (decider->network)
		buf_puts(out, ", which has a network");
}

static void about_put(const struct facts *facts, struct buf *out)
{
	char addr[ADDR_TEXT_SIZE] = "";

	if (!facts->name)
		addr_format(&facts->addr, addr);
	buf_printf(out, "%s %s%.255s%s:%u%s",
		   !facts->method      ? "a connection to"
		   : facts_read(facts) ? "reading from"
				       : "writing to",
		   strchr(addr, ':') ? "[" : "", facts->name ? facts->name : addr, strchr(addr, ':') ? "]" : "",
		   facts->port,
		   !facts->method	   ? ""
		   : facts->leg == LEG_TLS ? ", in TLS"
					   : ", in the clear");
}

static void person_waits(const struct approval *approval, struct buf *waits, struct buf *retry)
{
	buf_puts(waits, "for ");
	span_put(waits, approval->hold_ms);
	buf_puts(waits, ", then 403 needs_approval with retry_after; people have ");
	span_put(waits, approval->timeout_ms);
	buf_puts(retry, "it joins the question, or meets its answer");
	buf_puts(retry, approval->once ? ", which is for one request (remember: once)" : "");
}

static void decider_waits(const struct decider *decider, struct buf *waits, struct buf *retry)
{
	buf_puts(waits, "for ");
	span_put(waits, decider->timeout_ms);
	buf_puts(waits, ", then 403 needs_decider with retry_after; a person, if it hands it on");
	buf_puts(retry,
		 "after needs_decider; after decider_denies it is asked again, unless it wants its answer remembered");
}

bool asked_whom(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		struct asked_whom *ret)
{
	_buf_ struct buf whom = BUF_INIT(ASKED_TEXT_SIZE), about = BUF_INIT(ASKED_TEXT_SIZE),
			 waits = BUF_INIT(ASKED_TEXT_SIZE), retry = BUF_INIT(ASKED_TEXT_SIZE);
	const struct decider *decider = verdict_decider(policy, verdict);

	if (verdict->action != ACTION_ASK && !decider)
		return false;
	if (decider) {
		decider_put(decider, &whom);
		decider_waits(decider, &waits, &retry);
	} else {
		approvers_put(policy, &whom);
		person_waits(&policy->approval, &waits, &retry);
	}
	about_put(facts, &about);
	ret->decider = decider;
	text_put(ret->whom, &whom);
	text_put(ret->about, &about);
	text_put(ret->waits, &waits);
	text_put(ret->retry, &retry);
	return true;
}
