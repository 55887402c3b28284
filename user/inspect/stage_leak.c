/* SPDX-License-Identifier: MIT */
/*
 * A secret that is about to leave: the value of a credential, in any request of any session. No sandbox has it from us, so it came
 * from where it should not have been. It is refused, and the daemon raises the session if the credential says so (on_leak).
 *
 * This comes before the verdict, because what a verdict refuses is reported with its URL, and before what captures bodies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/exchange.h"
#include "inspect/leak.h"
#include "inspect/secret_watch.h"
#include "inspect/stage_credentials.h"
#include "link/secret_message.h"
#include "policy/credential.h"
#include "secrets/decode.h"

#define DECODE_BYTES (64u << 10) /* that are looked at in one go */
#define LEAK_SEND_MS 1000

/* Of a body that comes coded. */
struct leak {
	struct decoder *decoder;
	struct buf plain; /* what was decoded of it, and may be the beginning of a secret, or of a placeholder */
	const struct placeholder *placeholder; /* that was found in it */
};

static bool word_redacted(void *ctx, uint32_t secret, struct scrub_word *ret)
{
	(void)ctx;
	(void)secret;
	*ret = (struct scrub_word){ "(secret)", 8 };
	return true;
}

/* What is reported of it must not have it either. */
static void target_redact(struct exchange *ex, struct scrubber *scrubber)
{
	const struct scrub_words words = { word_redacted, NULL };
	_buf_ struct buf out = BUF_INIT(NP_HEAD_BYTES);
	size_t used, len = strlen(ex->head.target);
	int hits = scrub(scrubber, &words, ex->head.target, len, true, &out, &used);

	if (hits < 0 || (hits > 0 && head_set_target(&ex->head, out.data, out.len) < 0))
		ex->head.target = "/(secret)";
}

static enum stage_result leak_fail(struct exchange *ex, int error)
{
	exchange_stop(ex, error == -EIO ? NP_R_BAD_HTTP : NP_R_INTERNAL, NULL,
		      error == -EIO ? "its body is not what its content-encoding says"
				    : "it could not be searched for secrets");
	return STAGE_OVER;
}

/* No placeholder becomes a value in there: whoever put it there meant it for somebody else, or could not know. */
static enum stage_result placeholder_refuse(struct exchange *ex, const struct placeholder *placeholder)
{
	const struct credential *credential;
	char words[NP_NAME_MAX + 80];

	if (placeholder->credential == PLACEHOLDER_NOBODYS) {
		exchange_stop(ex, NP_R_CREDENTIAL_ELSEWHERE, NULL, NOBODYS_TOKEN);
		return STAGE_OVER;
	}
	credential = &ex->client->worker->policy->credentials[placeholder->credential];
	snprintf(ex->report.credential, sizeof(ex->report.credential), "%s", credential->name);
	snprintf(words, sizeof(words), "the credential %s: it stands in a body that is compressed", credential->name);
	exchange_stop(ex, NP_R_CREDENTIAL_ELSEWHERE, NULL, words);
	return STAGE_OVER;
}

/* How far its leak raises a session; 0: not at all. */
static unsigned leak_raises(const struct policy *policy, const char *name)
{
	const struct credential *credential = credential_find(policy, name);

	return credential && credential->on_leak != CREDENTIAL_NO_RAISE ? credential->on_leak + 1 : 0;
}

/* Of the credentials that have the same value, the one whose leak raises the session furthest. */
static int leak_strictest(const struct policy *policy, const struct secret_set *set, int found)
{
	const uint32_t same = set->same[found];

	for (size_t i = 0; i < set->n; i++)
		if (set->same[i] == same && leak_raises(policy, set->names[i]) > leak_raises(policy, set->names[found]))
			found = (int)i;
	return found;
}

static const char *leak_send(const struct client *client, const char *name)
{
	struct link_leak message = { .cgroup_id = client->sandbox->cgroup_id };

	snprintf(message.name, sizeof(message.name), "%s", name);
	link_send_patiently(client->worker->link, LINK_LEAK, &message, sizeof(message), -1, LEAK_SEND_MS);
	return name;
}

const char *leak_report(const struct client *client, const struct secret_set *set, int found)
{
	return leak_send(client, set->names[leak_strictest(client->worker->policy, set, found)]);
}

const char *leak_report_token(const struct client *client, int found)
{
	return leak_send(client, token_watch_credential(client, found));
}

static enum stage_result leak_refuse(struct exchange *ex, struct scrubber *scrubber, const char *what, const char *name,
				     const char *where)
{
	char words[NP_NAME_MAX + 80];

	snprintf(ex->report.credential, sizeof(ex->report.credential), "%s", name);
	snprintf(words, sizeof(words), "%s of the credential %s is in its %s", what, name, where);
	target_redact(ex, scrubber);
	exchange_stop(ex, NP_R_SECRET_LEAVING, NULL, words);
	return STAGE_OVER;
}

/* What a search has found. */
struct leak_found {
	int number; /* -1: nothing; or less: it could not be searched */
	bool token; /* of a token that was captured, and not of a value */
};

static enum stage_result leak_judge(struct exchange *ex, const struct secret_set *set, struct leak_found found,
				    const char *where)
{
	struct worker *worker = ex->client->worker;
	struct scrubber *scrubber = NULL;

	if (found.number == -1)
		return STAGE_NEXT;
	if (found.number == -EACCES && ex->leak)
		return placeholder_refuse(ex, ex->leak->placeholder);
	if (found.number < -1)
		return leak_fail(ex, found.number);
	if (!found.token)
		return leak_refuse(ex, secret_scrubber(worker, set), "the value",
				   leak_report(ex->client, set, found.number), where);
	if (token_watch_scrubber(ex->client, &scrubber) < 0)
		return leak_fail(ex, -ENOMEM);
	return leak_refuse(ex, scrubber, "a token", leak_report_token(ex->client, found.number), where);
}

/* Values, then tokens; *used as scrub_look() has it. */
static struct leak_found text_look(const struct client *client, const struct secret_set *set, const char *data,
				   size_t len, bool end, size_t *used)
{
	size_t of_tokens;
	int found = -1;

	*used = len;
	if (set)
		found = scrub_look(secret_scrubber(client->worker, set), data, len, end, used);
	if (found != -1)
		return (struct leak_found){ found, false };
	found = token_watch_look(client, data, len, end, &of_tokens);
	if (of_tokens < *used)
		*used = of_tokens;
	return (struct leak_found){ found, true };
}

static struct leak_found fields_look(const struct client *client, const struct secret_set *set,
				     const struct fields *fields)
{
	struct scrubber *scrubber = NULL;
	int found = set ? secret_in_fields(secret_scrubber(client->worker, set), fields) : -1;

	if (found != -1)
		return (struct leak_found){ found, false };
	found = token_watch_scrubber(client, &scrubber) < 0 ? -ENOMEM : -1;
	return (struct leak_found){ scrubber ? secret_in_fields(scrubber, fields) : found, true };
}

static struct leak_found head_look(const struct client *client, const struct secret_set *set, const struct head *head)
{
	int found = set ? secret_in_head(secret_scrubber(client->worker, set), head) : -1;

	if (found != -1)
		return (struct leak_found){ found, false };
	return (struct leak_found){ token_watch_look_head(client, head), true };
}

/* The list of its codings, which may stand in several lines. */
static void codings_join(const struct fields *fields, struct buf *out)
{
	for (uint32_t i = 0; i < fields->n; i++) {
		if (strcmp(fields->items[i].name, "content-encoding") != 0)
			continue;
		buf_puts(out, out->len ? ", " : "");
		buf_append(out, fields->items[i].value, fields->items[i].value_len);
	}
}

/* A coding that is not known is not looked into: what is in there is as hidden as if it were encrypted. */
static int leak_begin(struct exchange *ex)
{
	_buf_ struct buf codings = BUF_INIT(2 * NP_HEAD_BYTES);
	struct decoder *decoder = NULL;
	int r;

	codings_join(&ex->head.fields, &codings);
	if (buf_error(&codings))
		return -ENOMEM;
	r = codings.len ? decoder_new(codings.data, codings.len, &decoder) : 0;

	if (r == -ENOMEM || (decoder && !(ex->leak = calloc(1, sizeof(*ex->leak))))) {
		decoder_free(decoder);
		return -ENOMEM;
	}
	if (r < 0)
		return 0;
	if (decoder)
		*ex->leak =
			(struct leak){ .decoder = decoder, .plain = BUF_INIT(NP_WITHHELD_BYTES + 4 * DECODE_BYTES) };
	stage_wants(ex, &stage_leak, WAY_REQUEST, WANT_LOOK);
	return 0;
}

static enum stage_result on_start(struct exchange *ex)
{
	struct worker *worker = ex->client->worker;
	struct secret_set *set = NULL;
	struct leak_found found;

	if (secret_watch(worker, &set) < 0)
		return leak_fail(ex, -ENOMEM);
	if (!set && token_watch_is_empty(ex->client))
		return STAGE_NEXT;
	found = head_look(ex->client, set, &ex->head);
	if (found.number == -1 && ex->head.has_body)
		found.number = leak_begin(ex) < 0 ? -ENOMEM : -1;
	return leak_judge(ex, set, found, "head");
}

/* What was coded goes on once what it stands for has been looked at: whoever has all but the last piece has no whole secret. */
static struct leak_found look_into(struct exchange *ex, const struct secret_set *values, const struct piece *piece)
{
	struct worker *worker = ex->client->worker;
	const struct placeholder_set *set = session_placeholders(worker, ex->client->sandbox->session);
	struct leak_found found = { .number = -1 };
	struct leak *leak = ex->leak;
	enum decoded decoded = DECODED_MORE;
	size_t at = 0;

	while (decoded == DECODED_MORE) {
		size_t used, place, pending = 0;
		bool end;

		decoded = decoder_read(leak->decoder, piece->data + at, piece->len - at, piece->end, DECODE_BYTES,
				       &leak->plain, &used);
		at += used;
		if (decoded != DECODED_ALL && decoded != DECODED_MORE)
			return (struct leak_found){ -EIO, false };
		end = piece->end && decoded == DECODED_ALL;
		found = text_look(ex->client, values, leak->plain.data, leak->plain.len, end, &used);
		if (found.number != -1)
			return found;
		if (set && !end)
			pending = placeholder_set_pending(set, leak->plain.data, leak->plain.len);
		leak->placeholder =
			set ? placeholder_set_find(set, leak->plain.data, leak->plain.len - pending, &place) : NULL;
		if (leak->placeholder)
			return (struct leak_found){ -EACCES, false };
		if (used > leak->plain.len - pending)
			used = leak->plain.len - pending;
		buf_drop(&leak->plain, used);
	}
	return found;
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	struct worker *worker = ex->client->worker;
	struct secret_set *set = NULL;
	struct leak_found found;

	if (secret_watch(worker, &set) < 0)
		return leak_fail(ex, -ENOMEM);
	if (!set && token_watch_is_empty(ex->client)) /* the last value was taken back */
		return STAGE_NEXT;
	if (ex->leak)
		found = look_into(ex, set, piece);
	else
		found = text_look(ex->client, set, piece->data, piece->len, piece->end, &piece->used);
	if (found.number == -1 && piece->trailers)
		found = fields_look(ex->client, set, piece->trailers);
	return leak_judge(ex, set, found, "body");
}

static void on_forget(struct exchange *ex)
{
	if (!ex->leak)
		return;
	decoder_free(ex->leak->decoder);
	buf_free(&ex->leak->plain);
	free(ex->leak);
	ex->leak = NULL;
}

const struct stage stage_leak = {
	.name = "leak",
	.role = STAGE_ANSWERS,
	.start = on_start,
	.request_body = on_request_body,
	.forget = on_forget,
};
