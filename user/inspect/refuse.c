/* SPDX-License-Identifier: MIT */
/*
 * What a refusal says. It is read by people and by language models that act on it:
 * what happened, that trying again will not help, and what they may do instead.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "vocab/words.h"
#include "inspect/client.h"
#include "inspect/refuse.h"

/* 403, where none is named. */
static const uint16_t statuses[NP_REASON_COUNT] = {
	[NP_R_BAD_HTTP] = 400,		 [NP_R_BAD_WEBSOCKET] = 400,	  [NP_R_HOST_MISMATCH] = 421,
	[NP_R_BODY_TOO_LARGE] = 413,	 [NP_R_TOO_MANY_REQUESTS] = 429,  [NP_R_TOO_MUCH_UNREAD] = 429,
	[NP_R_ORIGIN_UNREACHABLE] = 502, [NP_R_ORIGIN_UNTRUSTED] = 502,	  [NP_R_ORIGIN_TLS] = 502,
	[NP_R_PROXY_FAILED] = 502,	 [NP_R_WEBSOCKET_BROKEN] = 502,	  [NP_R_SECRET_RETURNED] = 502,
	[NP_R_UNSEARCHABLE] = 502,	 [NP_R_CREDENTIAL_MISSING] = 503, [NP_R_TIMED_OUT] = 504,
	[NP_R_PROXY_TIMED_OUT] = 504,
};

static unsigned refusal_status(enum np_reason reason)
{
	return reason < NP_REASON_COUNT && statuses[reason] ? statuses[reason] : 403;
}

/* The policy let it pass, and then the host or the way there failed: whoever reads it must not look for a rule. */
static bool refusal_is_origins(enum np_reason reason)
{
	return refusal_status(reason) >= 500 && reason != NP_R_WEBSOCKET_BROKEN && reason != NP_R_CREDENTIAL_MISSING &&
	       reason != NP_R_SECRET_RETURNED && reason != NP_R_UNSEARCHABLE;
}

static const char *failed_words(enum np_reason reason)
{
	switch (reason) {
	case NP_R_TIMED_OUT:
		return "did not answer in time";
	case NP_R_ORIGIN_UNTRUSTED:
		return "has a certificate that was not accepted";
	case NP_R_ORIGIN_TLS:
		return "does not speak TLS 1.2 or 1.3 at this port";
	default:
		return "could not be reached";
	}
}

static void put_member(struct buf *out, const char *key, const char *value)
{
	json_put_text(out, key, value, NP_EVENT_STRING_MAX);
}

static bool wants_text(const struct head *request)
{
	const struct field *accept = request ? fields_find(&request->fields, "accept") : NULL;

	return accept && accept->value_len >= 5 && strncasecmp(accept->value, "text/", 5) == 0;
}

static void host_text(const struct host *host, char text[static NAME_SIZE])
{
	char addr[ADDR_TEXT_SIZE];

	if (!host->is_addr) {
		snprintf(text, NAME_SIZE, "%s", host->name);
		return;
	}
	addr_format(&host->addr, addr);
	snprintf(text, NAME_SIZE, "%s", addr);
}

static int field_put(struct head *head, const char *name, const char *value)
{
	return fields_add(&head->fields, name, strlen(name), value, strlen(value));
}

int refusal_make(const struct client *client, enum np_reason reason, const struct head *request,
		 const struct host *host, const struct verdict *verdict, uint64_t question, const char *detail,
		 struct head *ret_head, struct buf *ret_body)
{
	const struct policy *policy = client->worker->policy;
	char name[NAME_SIZE] = "", place[PLACE_TEXT_SIZE] = "", message[768];
	bool text = wants_text(request);
	const bool later = (reason == NP_R_NEEDS_APPROVAL && question) || reason == NP_R_NEEDS_DECIDER;
	const char *decider = verdict && verdict->rule ? verdict->rule->by : NULL;
	int r;

	if (host)
		host_text(host, name);
	if (verdict && verdict->rule)
		place_format(policy, &verdict->rule->at, place);
	if (refusal_is_origins(reason))
		snprintf(message, sizeof(message), "The policy allows this request, but %s %s: %s.",
			 name[0] ? name : "the host", failed_words(reason),
			 detail && *detail ? detail : "no reason is known");
	else
		snprintf(message, sizeof(message), "netpawl refused this request%s%s: %s%s%s.", name[0] ? " to " : "",
			 name, reason_sentence(reason), detail && *detail ? ": " : "", detail ? detail : "");
	if (text) {
		buf_printf(ret_body, "%s\n%s\n", message, reason_hint(reason));
		if (question)
			buf_printf(ret_body, "Question %llu.\n", (unsigned long long)question);
	} else {
		json_open_object(ret_body, NULL);
		put_member(ret_body, "error", refusal_is_origins(reason) ? "origin_failed" : "refused");
		put_member(ret_body, "reason", reason_token(reason));
		put_member(ret_body, "host", name[0] ? name : NULL);
		put_member(ret_body, "rule", place[0] ? place : NULL);
		put_member(ret_body, "mode", mode_name(client->sandbox->rung.mode));
		put_member(ret_body, "level", level_name(client->sandbox->rung.level));
		put_member(ret_body, "message", message);
		put_member(ret_body, "hint", reason_hint(reason));
		if (decider)
			put_member(ret_body, "decider", decider);
		if (question)
			json_put_number(ret_body, "question", question);
		if (later)
			json_put_number(ret_body, "retry_after", NP_RETRY_AFTER_S);
		json_close_object(ret_body);
		buf_puts(ret_body, "\n");
	}
	ret_head->status = refusal_status(reason);
	ret_head->has_body = ret_head->has_length = true;
	ret_head->length = ret_body->len;
	r = field_put(ret_head, "content-type", text ? "text/plain; charset=utf-8" : "application/json");
	if (r == 0)
		r = field_put(ret_head, "x-netpawl-reason", reason_token(reason));
	if (r == 0)
		r = field_put(ret_head, "cache-control", "no-store");
	if (r == 0 && later) {
		snprintf(message, sizeof(message), "%d", NP_RETRY_AFTER_S);
		r = field_put(ret_head, "retry-after", message);
	}
	return r ? r : buf_error(ret_body);
}
