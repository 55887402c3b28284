/* SPDX-License-Identifier: MIT */
#include "control/refusals.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "control/body.h"
#include "control/reply.h"
#include "policy/quote.h"
#include "reason.h"
#include "vocab/limits.h"

static const char *text_of(const json_t *event, const char *name)
{
	const char *text = json_string_value(json_object_get(event, name));

	return text ? text : "";
}

static bool hook_is(const json_t *event, unsigned hook)
{
	return strcmp(text_of(event, "hook"), hook_token(hook)) == 0;
}

/* "TCP"; "" when it is not known. */
static void protocol_text(const json_t *event, char text[static 16])
{
	size_t n = 0;

	for (const char *p = text_of(event, "protocol"); isalnum((unsigned char)*p) && n < 15; p++)
		text[n++] = (char)toupper((unsigned char)*p);
	text[n] = '\0';
}

static void address_text(const json_t *event, struct refusal *refusal)
{
	const char *address = text_of(event, "address");
	json_int_t port = json_integer_value(json_object_get(event, "port"));
	bool brackets = port && strchr(address, ':');
	char text[NP_WHY_WHERE * 4];

	if (port)
		snprintf(text, sizeof(text), "%s%s%s:%d", brackets ? "[" : "", address, brackets ? "]" : "", (int)port);
	else
		snprintf(text, sizeof(text), "%s", address);
	text_clean(refusal->where, sizeof(refusal->where), text, strlen(text));
}

/* A request, or what there was of one. */
static void request_name(const json_t *event, struct refusal *refusal)
{
	const char *method = text_of(event, "method"), *url = text_of(event, "url"), *query = text_of(event, "lookup");
	char text[NP_WHY_WHERE * 4];

	snprintf(refusal->what, sizeof(refusal->what), "%s",
		 *query	   ? "DNS query"
		 : *method ? "HTTP request"
			   : "connection");
	refusal->link = *query ? " for " : *method ? " " : " to ";
	if (*query) {
		text_clean(refusal->where, sizeof(refusal->where), query, strlen(query));
		return;
	}
	if (!*url) {
		address_text(event, refusal);
		return;
	}
	/* Without the query: it differs from one try to the next, and may hold what nobody wants to read again. */
	snprintf(text, sizeof(text), "%s%s%.*s", method, *method ? " " : "", (int)strcspn(url, "?"), url);
	text_clean(refusal->where, sizeof(refusal->where), text, strlen(text));
}

static void name_put(struct refusal *refusal, const char *link, const char *protocol, const char *what)
{
	refusal->link = link;
	snprintf(refusal->what, sizeof(refusal->what), "%s%s%s", protocol, *protocol && *what ? " " : "", what);
}

/* A call from outside. The port of the caller differs from one try to the next, and says nothing. */
static void caller_name(const json_t *event, const char *protocol, struct refusal *refusal)
{
	json_int_t port = json_integer_value(json_object_get(event, "listener_port"));

	name_put(refusal, port ? " to " : " from ", "incoming", *protocol ? protocol : "packet");
	if (!port)
		return;
	snprintf(refusal->where, sizeof(refusal->where), "port %d from %.64s", (int)port, text_of(event, "address"));
	refusal->plain = true;
}

/* What was tried, by where in the kernel it was refused. */
static void refusal_name(const json_t *event, struct refusal *refusal)
{
	bool udp = strcmp(text_of(event, "protocol"), "udp") == 0;
	bool dns = json_integer_value(json_object_get(event, "port")) == 53;
	char protocol[16];

	if (!json_object_get(event, "hook")) {
		request_name(event, refusal);
		return;
	}
	protocol_text(event, protocol);
	address_text(event, refusal);
	if (hook_is(event, NP_HOOK_UNIX_CONNECT))
		name_put(refusal, " to ", "", "unix socket connection");
	else if (hook_is(event, NP_HOOK_UNIX_SEND))
		name_put(refusal, " to ", "", "unix socket datagram");
	else if (hook_is(event, NP_HOOK_BIND))
		name_put(refusal, " on ", protocol, "listener");
	else if (hook_is(event, NP_HOOK_CREATE))
		name_put(refusal, " ", protocol, "socket");
	else if (hook_is(event, NP_HOOK_OPTION))
		name_put(refusal, " ", protocol, "socket option");
	else if (hook_is(event, NP_HOOK_INGRESS) || hook_is(event, NP_HOOK_SK_LOOKUP))
		caller_name(event, protocol, refusal);
	else if (dns)
		name_put(refusal, " to ", "DNS", "query");
	else if (hook_is(event, NP_HOOK_CONNECT))
		name_put(refusal, " to ", protocol, "connection");
	else
		name_put(refusal, " to ", protocol, udp ? "datagram" : "packet");
}

static bool member_equal(const json_t *a, const json_t *b, const char *name)
{
	return strcmp(text_of(a, name), text_of(b, name)) == 0;
}

static bool refusal_equal(const struct refusal *a, const struct refusal *b)
{
	return a->reason == b->reason && strcmp(a->what, b->what) == 0 && strcmp(a->where, b->where) == 0 &&
	       member_equal(a->event, b->event, "rule") && member_equal(a->event, b->event, "mode") &&
	       member_equal(a->event, b->event, "level");
}

static void refusals_put(struct refusals *refusals, json_t *event, unsigned reason)
{
	struct refusal refusal = { .event = event, .reason = reason, .count = 1 };

	refusal_name(event, &refusal);
	snprintf(refusal.first, sizeof(refusal.first), "%s", text_of(event, "time"));
	for (size_t i = 0; i < refusals->count; i++) {
		struct refusal *other = &refusals->items[i];

		if (!refusal_equal(other, &refusal))
			continue;
		other->count++;
		memcpy(other->first, refusal.first, sizeof(other->first));
		return;
	}
	if (refusals->count == refusals->max) {
		refusals->others++;
		return;
	}
	json_incref(event);
	refusals->items[refusals->count++] = refusal;
}

void refusals_clear(struct refusals *refusals)
{
	for (size_t i = 0; i < refusals->count; i++)
		json_decref(refusals->items[i].event);
	*refusals = (struct refusals){ 0 };
}

void refusals_read(const char *lines, size_t len, size_t max, struct refusals *ret)
{
	*ret = (struct refusals){ .max = max < NP_WHY_MAX ? max : NP_WHY_MAX };
	while (len) {
		const char *end = lines + len - 1; /* of the last line, which is the newest */
		const char *newline = len > 1 ? memrchr(lines, '\n', len - 1) : NULL,
			   *line = newline ? newline + 1 : lines;
		_json_ json_t *event = json_loadb(line, (size_t)(end - line) + 1, 0, NULL);
		int reason = json_is_object(event) ? reason_parse(text_of(event, "reason")) : -EINVAL;

		len = (size_t)(line - lines);
		if (reason < 0)
			continue;
		ret->seen++;
		if (json_is_true(json_object_get(event, "quiet"))) {
			ret->quiet++;
			continue;
		}
		ret->suppressed += (uint64_t)json_integer_value(json_object_get(event, "suppressed"));
		if (reason != NP_R_SUPPRESSED)
			refusals_put(ret, event, (unsigned)reason);
	}
}

/* What is inside of the sandbox, or on this host, is not opened by any mode. */
static bool is_local(unsigned reason)
{
	return reason == NP_R_HOST_LOOPBACK || reason == NP_R_FOREIGN_UNIX || reason == NP_R_INBOUND ||
	       reason == NP_R_PORT_TAKEN || reason == NP_R_UNIX_WOULD_WAIT;
}

/* What may be done about it in the mode of now: what was refused before NONE is closed by NONE now. */
static const char *refusal_hint(const struct refusal *refusal, enum np_mode mode)
{
	/* Modes never loosen, so it was not the session's. */
	if (refusal->reason == NP_R_MODE_NONE && mode != NP_NONE)
		return "Trying again will not help: this run was started without a network (class none). What needs "
		       "one is to be run with another class.";
	return reason_hint(mode == NP_NONE && !is_local(refusal->reason) ? NP_R_MODE_NONE : refusal->reason);
}

json_t *refusal_object(const struct refusal *refusal, enum np_mode mode)
{
	static const char *const copied[] = { "address", "port",    "listener_port", "protocol", "method", "url",
					      "rule",	 "mode",    "level",	     "comm",	 "pid",	   "hook",
					      "text",	 "sandbox", "lookup",	     "proxy",	 "list" };
	json_t *object =
		json_pack("{s:s,s:o,s:s,s:s,s:s,s:i,s:s,s:s}", "what", refusal->what, "where",
			  json_text(refusal->where), "reason", reason_token(refusal->reason), "message",
			  reason_sentence(refusal->reason), "hint", refusal_hint(refusal, mode), "count",
			  (int)refusal->count, "first", refusal->first, "last", text_of(refusal->event, "time"));

	if (object && *refusal->near)
		json_object_set_new(object, "near_miss", json_text(refusal->near));
	for (size_t i = 0; object && i < ARRAY_SIZE(copied); i++) {
		json_t *value = json_object_get(refusal->event, copied[i]);

		if (value && json_object_set(object, copied[i], value) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

void time_shorten(const char *time, char text[static 32])
{
	size_t dot = strcspn(time, ".");

	text_clean(text, 31, time, dot);
	if (time[dot] == '.')
		strcat(text, "Z");
}

/* What a sandbox chose itself must not read like words of ours: where it has a blank it is quoted. */
static void words_put(const char *words, bool quote, struct buf *out)
{
	if (!quote || !strpbrk(words, " \"")) {
		buf_puts(out, words);
		return;
	}
	buf_puts(out, "\"");
	for (; *words; words++)
		buf_append(out, *words == '"' ? "'" : words, 1);
	buf_puts(out, "\"");
}

static void refusal_line(const struct refusal *refusal, size_t number, struct buf *out)
{
	const char *rule = text_of(refusal->event, "rule"), *detail = text_of(refusal->event, "text");
	char time[32], clean[NP_WHY_WHERE];

	buf_printf(out, "%zu. %s%s", number, refusal->what, *refusal->where ? refusal->link : "");
	words_put(refusal->where, !refusal->plain && !*text_of(refusal->event, "method"), out);
	text_clean(clean, sizeof(clean), text_of(refusal->event, "comm"), strlen(text_of(refusal->event, "comm")));
	if (*clean) {
		buf_puts(out, " by ");
		words_put(clean, true, out);
	}
	text_clean(clean, sizeof(clean), text_of(refusal->event, "proxy"), strlen(text_of(refusal->event, "proxy")));
	if (*clean)
		buf_printf(out, " by way of %s", clean);
	time_shorten(text_of(refusal->event, "time"), time);
	if (refusal->count > 1)
		buf_printf(out, ", %u times, last at %s", refusal->count, time);
	else
		buf_printf(out, ", at %s", time);
	buf_printf(out, ": %s", reason_sentence(refusal->reason));
	if (*rule) {
		text_clean(clean, sizeof(clean), rule, strlen(rule));
		buf_printf(out, " (%s)", clean);
	}
	if (*detail) {
		text_clean(clean, sizeof(clean), detail, strlen(detail));
		buf_printf(out, ": %s", clean);
	}
	if (*refusal->near)
		buf_printf(out, " (%s)", refusal->near);
	buf_puts(out, ".\n");
}

/* Each hint once, with the numbers that it is about. */
static void hints_text(const struct refusals *refusals, enum np_mode mode, struct buf *out)
{
	for (size_t i = 0; i < refusals->count; i++) {
		const char *hint = refusal_hint(&refusals->items[i], mode);
		bool reported = false;

		for (size_t j = 0; j < i && !reported; j++)
			reported = refusal_hint(&refusals->items[j], mode) == hint;
		if (reported)
			continue;
		buf_puts(out, "About ");
		for (size_t j = i; j < refusals->count; j++)
			if (refusal_hint(&refusals->items[j], mode) == hint)
				buf_printf(out, "%s%zu", j == i ? "" : ", ", j + 1);
		buf_printf(out, ": %s\n", hint);
	}
}

/* "1,204" */
static void number_put(uint64_t number, struct buf *out)
{
	if (number >= 1000) {
		number_put(number / 1000, out);
		buf_printf(out, ",%03u", (unsigned)(number % 1000));
	} else {
		buf_printf(out, "%u", (unsigned)number);
	}
}

static void not_kept_text(const struct refusals *refusals, struct buf *out)
{
	char time[TIME_TEXT_SIZE], since[32], until[32];

	if (!refusals->not_kept)
		return;
	time_format(refusals->since_us, time);
	time_shorten(time, since);
	time_format(refusals->until_us, time);
	time_shorten(time, until);
	number_put(refusals->not_kept, out);
	buf_printf(out, " older refusal%s not kept, from %s to %s.\n", refusals->not_kept == 1 ? " was" : "s were",
		   since, until);
}

static void quiet_text(const struct refusals *refusals, struct buf *out)
{
	if (refusals->quiet)
		buf_printf(out, "%u more %s refused by rules that are quiet.\n", refusals->quiet,
			   refusals->quiet == 1 ? "was" : "were");
}

void refusals_text(const struct refusals *refusals, enum np_mode mode, struct buf *out)
{
	if (!refusals->count) {
		if (!refusals->not_kept && !refusals->quiet)
			buf_puts(out, "Nothing was refused.\n");
		quiet_text(refusals, out);
		not_kept_text(refusals, out);
		return;
	}
	buf_puts(out, "Refused, newest first:\n");
	for (size_t i = 0; i < refusals->count; i++)
		refusal_line(&refusals->items[i], i + 1, out);
	if (refusals->others)
		buf_printf(out, "Before these, %u more were refused.\n", refusals->others);
	if (refusals->suppressed)
		buf_printf(out, "And %llu came too fast to be told one by one.\n",
			   (unsigned long long)refusals->suppressed);
	quiet_text(refusals, out);
	not_kept_text(refusals, out);
	hints_text(refusals, mode, out);
}
