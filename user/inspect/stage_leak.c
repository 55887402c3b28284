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
#include "inspect/stage.h"
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
	const struct credential *credential = &ex->client->worker->policy->credentials[placeholder->credential];
	char words[NP_NAME_MAX + 80];

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

const char *leak_report(const struct client *client, const struct secret_set *set, int found)
{
	const char *name = set->names[leak_strictest(client->worker->policy, set, found)];
	struct link_leak message = { .cgroup_id = client->sandbox->cgroup_id };

	snprintf(message.name, sizeof(message.name), "%s", name);
	link_send_patiently(client->worker->link, LINK_LEAK, &message, sizeof(message), -1, LEAK_SEND_MS);
	return name;
}

/* found: the number of a secret; -1: there is none; or less: it could not be searched. */
static enum stage_result leak_judge(struct exchange *ex, const struct secret_set *set, int found, const char *where)
{
	char words[NP_NAME_MAX + 80];
	const char *name;

	if (found == -1)
		return STAGE_NEXT;
	if (found == -EACCES && ex->leak)
		return placeholder_refuse(ex, ex->leak->placeholder);
	if (found < -1)
		return leak_fail(ex, found);
	name = leak_report(ex->client, set, found);
	snprintf(ex->report.credential, sizeof(ex->report.credential), "%s", name);
	snprintf(words, sizeof(words), "the value of the credential %s is in its %s", name, where);
	target_redact(ex, secret_scrubber(ex->client->worker, set));
	exchange_stop(ex, NP_R_SECRET_LEAVING, NULL, words);
	return STAGE_OVER;
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
	struct secret_set *set = NULL;
	struct scrubber *scrubber;
	int found = secret_watch(ex->client->worker, &set);

	if (found < 0)
		return leak_fail(ex, -ENOMEM);
	if (!set)
		return STAGE_NEXT;
	scrubber = secret_scrubber(ex->client->worker, set);
	found = secret_in_head(scrubber, &ex->head);
	if (found == -1 && ex->head.has_body)
		found = leak_begin(ex) < 0 ? -ENOMEM : -1;
	return leak_judge(ex, set, found, "head");
}

/* What was coded goes on once what it stands for has been looked at: whoever has all but the last piece has no whole secret. */
static int look_into(struct exchange *ex, struct scrubber *scrubber, const struct piece *piece)
{
	const struct placeholder_set *set = session_placeholders(ex->client->worker, ex->client->sandbox->session);
	struct leak *leak = ex->leak;
	enum decoded decoded = DECODED_MORE;
	size_t at = 0;

	while (decoded == DECODED_MORE) {
		size_t used, place;
		int found;

		decoded = decoder_read(leak->decoder, piece->data + at, piece->len - at, piece->end, DECODE_BYTES,
				       &leak->plain, &used);
		at += used;
		if (decoded != DECODED_ALL && decoded != DECODED_MORE)
			return -EIO;
		found = scrub_look(scrubber, leak->plain.data, leak->plain.len, piece->end && decoded == DECODED_ALL,
				   &used);
		if (found != -1)
			return found;
		leak->placeholder = set ? placeholder_set_find(set, leak->plain.data, leak->plain.len, &place) : NULL;
		if (leak->placeholder)
			return -EACCES;
		buf_drop(&leak->plain, used - (set ? placeholder_set_pending(set, leak->plain.data, used) : 0));
	}
	return -1;
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	struct secret_set *set = NULL;
	struct scrubber *scrubber;
	int found = secret_watch(ex->client->worker, &set);

	if (found < 0)
		return leak_fail(ex, -ENOMEM);
	if (!set) /* the last value was taken back */
		return STAGE_NEXT;
	scrubber = secret_scrubber(ex->client->worker, set);
	if (ex->leak)
		found = look_into(ex, scrubber, piece);
	else
		found = scrub_look(scrubber, piece->data, piece->len, piece->end, &piece->used);
	if (found == -1 && piece->trailers)
		found = secret_in_fields(scrubber, piece->trailers);
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
