/* SPDX-License-Identifier: MIT */
/*
 * What an origin sends back of a credential that it was given: placeholders take the place of values, in heads, bodies and trailers,
 * before anybody else sees the response. What cannot be searched is refused. `echo` of the credential may say otherwise.
 *
 * All values that the worker has are searched for, not only those that this request carried: none belongs into a sandbox.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/carried.h"
#include "inspect/echo_words.h"
#include "inspect/exchange.h"
#include "inspect/secret_watch.h"
#include "inspect/stage.h"
#include "inspect/stage_tokens.h"
#include "secrets/decode.h"

#define DECODE_BYTES (64u << 10) /* that are searched in one go */

struct echo {
	struct echo_words words;
	struct decoder *decoder; /* NULL: the body is not coded */
	struct buf plain;	 /* what was decoded of it, and may be the beginning of a secret */
	struct fields trailers;
};

/* -- what it may carry ------------------------------------------------------------------------- */

/* One that is to be searched for: its response has to be. */
static bool echo_matters(const struct exchange *ex)
{
	if (!ex->carried)
		return false;
	for (unsigned i = 0; i < ex->carried->n; i++) {
		const struct credential *credential = carried_credential(ex, i);

		if (!credential || credential->echo != ECHO_PASSES)
			return true;
	}
	return ex->carried->body_values;
}

/* It is, for values, or for tokens that are captured from it. */
static bool is_searched(const struct exchange *ex)
{
	return echo_matters(ex) || tokens_are_captured(ex);
}

struct secret_set *echo_set(const struct exchange *ex)
{
	return ex->echo && echo_matters(ex) ? ex->echo->words.set : NULL;
}

static enum stage_result echo_stop(struct exchange *ex, enum np_reason reason, const char *words)
{
	upstream_reset(ex);
	exchange_stop(ex, reason, NULL, words);
	return STAGE_OVER;
}

/* Hits of a scrubber, or its error: may it go on? */
static enum stage_result echo_judge(struct exchange *ex, int hits)
{
	char words[NP_NAME_MAX + 64];

	if (hits < 0)
		return echo_stop(ex, NP_R_INTERNAL, "it could not be searched for secrets");
	if (ex->echo->words.refused) {
		snprintf(words, sizeof(words), "the value of the credential %s came back", ex->echo->words.refused);
		return echo_stop(ex, NP_R_SECRET_RETURNED, words);
	}
	if (hits)
		exchange_note(ex, "the value of a credential came back, and was replaced by its placeholder");
	return STAGE_NEXT;
}

/* -- heads ------------------------------------------------------------------------------------- */

/* A signature (SigV4) that covers it: another value would make it worthless. */
static bool accepts_is_signed(const struct head *outgoing)
{
	const struct field *signature = fields_find(&outgoing->fields, "authorization");

	return signature && strncmp(signature->value, "AWS4-", 5) == 0 && strstr(signature->value, "accept-encoding");
}

/* The request asks for nothing that could not be searched. */
static enum stage_result on_start(struct exchange *ex)
{
	struct head *outgoing;
	const struct field *accepts;
	_buf_ struct buf narrow = BUF_INIT(NP_HEAD_BYTES);

	if (!is_searched(ex))
		return STAGE_NEXT;
	ex->echo = calloc(1, sizeof(*ex->echo));
	if (!ex->echo || secret_watch(ex->client->worker, &ex->echo->words.set) < 0) {
		exchange_refuse(ex, NP_R_INTERNAL, NULL, "its response could not be searched for secrets");
		return STAGE_OVER;
	}
	ex->echo->words.client = ex->client;
	ex->echo->words.carried = ex->carried;
	if (ex->echo->words.set)
		secret_set_ref(ex->echo->words.set);
	outgoing = exchange_outgoing(ex);
	if (outgoing && accepts_is_signed(outgoing))
		return STAGE_NEXT; /* what comes of it is looked at when it comes */
	accepts = fields_find(&ex->head.fields, "accept-encoding");
	decoder_narrow(accepts ? accepts->value : NULL, accepts ? accepts->value_len : 0, &narrow);
	if (outgoing)
		fields_remove(&outgoing->fields, "accept-encoding");
	if (!outgoing || buf_error(&narrow) ||
	    fields_add(&outgoing->fields, "accept-encoding", 15, narrow.data, narrow.len) < 0) {
		exchange_refuse(ex, NP_R_BAD_HTTP, NULL, "the head is too large");
		return STAGE_OVER;
	}
	return STAGE_NEXT;
}

/* What is said about the bytes that are not sent. A validator of these bytes is a weak one of what they stand for. */
static int head_decoded(struct head *head)
{
	static const char *const gone[] = { "content-encoding", "content-md5", "digest",
					    "content-digest",	"repr-digest", "accept-ranges" };
	const struct field *etag = fields_find(&head->fields, "etag");
	char weak[256];

	for (unsigned i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		fields_remove(&head->fields, gone[i]);
	if (!etag || etag->value[0] != '"')
		return 0;
	if (snprintf(weak, sizeof(weak), "W/%s", etag->value) >= (int)sizeof(weak)) {
		fields_remove(&head->fields, "etag");
		return 0;
	}
	fields_remove(&head->fields, "etag");
	return fields_add(&head->fields, "etag", 4, weak, strlen(weak));
}

static bool is_twice(const struct fields *fields, const char *name)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < fields->n; i++)
		n += strcmp(fields->items[i].name, name) == 0;
	return n > 1;
}

static enum stage_result body_begin(struct exchange *ex, struct head *head)
{
	const struct field *coding = fields_find(&head->fields, "content-encoding");
	int r = coding ? decoder_new(coding->value, coding->value_len, &ex->echo->decoder) : 0;

	if (r == -ENOTSUP || r == -EINVAL || is_twice(&head->fields, "content-encoding"))
		return echo_stop(ex, NP_R_UNSEARCHABLE, "its content-encoding is not known");
	if (r == 0 && ex->echo->decoder)
		r = head_decoded(head);
	if (r < 0)
		return echo_stop(ex, NP_R_INTERNAL, "it could not be searched for secrets");
	ex->echo->plain = BUF_INIT(NP_WITHHELD_BYTES + 4 * DECODE_BYTES);
	stage_wants(ex, &stage_echo, WAY_RESPONSE, WANT_REPLACE);
	return STAGE_NEXT;
}

static enum stage_result on_response(struct exchange *ex, struct head *head)
{
	const struct scrub_words words = { echo_words_find, ex->echo ? &ex->echo->words : NULL };
	struct secret_set *set = echo_set(ex);
	enum stage_result r = STAGE_NEXT;

	if (!ex->echo || !is_searched(ex) || (!set && !tokens_are_captured(ex) && token_watch_is_empty(ex->client)))
		return STAGE_NEXT;
	if (set)
		r = echo_judge(
			ex, secret_scrub_fields(secret_echo_scrubber(ex->client->worker, set), &words, &head->fields));
	if (r != STAGE_NEXT || head->status < 200 || !head->has_body)
		return r; /* what follows a 101 is tunnel_messages.c's */
	return body_begin(ex, head);
}

/* -- bodies ------------------------------------------------------------------------------------ */

static enum stage_result decoded_stop(struct exchange *ex, enum decoded decoded)
{
	return echo_stop(ex, decoded == DECODED_MEMORY ? NP_R_INTERNAL : NP_R_UNSEARCHABLE,
			 decoded == DECODED_BOMB ? "its body grows too much when it is decoded"
						 : "its body is not what its content-encoding says");
}

/* What a coded piece stands for, searched, is in piece->out. */
static enum stage_result piece_decode(struct exchange *ex, struct scrubber *scrubber, struct piece *piece)
{
	const struct scrub_words words = { echo_words_find, &ex->echo->words };
	struct echo *echo = ex->echo;
	enum decoded decoded;
	enum stage_result r;
	size_t used;
	int hits;

	piece->used = 0;
	do {
		decoded = decoder_read(echo->decoder, piece->data + piece->used, piece->len - piece->used, piece->end,
				       DECODE_BYTES, &echo->plain, &used);
		piece->used += used;
		if (decoded != DECODED_ALL && decoded != DECODED_MORE)
			return decoded_stop(ex, decoded);
		used = echo->plain.len;
		hits = scrubber ? scrub(scrubber, &words, echo->plain.data, echo->plain.len,
					piece->end && decoded == DECODED_ALL, piece->out, &used)
				: 0;
		r = echo_judge(ex, hits);
		if (r != STAGE_NEXT)
			return r;
		if (!hits)
			buf_append(piece->out, echo->plain.data, used);
		buf_drop(&echo->plain, used);
	} while (decoded == DECODED_MORE && !piece->out->len);
	return decoded == DECODED_MORE ? STAGE_MORE : STAGE_REPLACED;
}

static enum stage_result trailers_scrub(struct exchange *ex, struct scrubber *scrubber, struct piece *piece)
{
	const struct scrub_words words = { echo_words_find, &ex->echo->words };
	struct fields *trailers = &ex->echo->trailers;
	enum stage_result r;

	if (!piece->trailers || trailers->n || !scrubber)
		return STAGE_NEXT;
	r = echo_judge(ex, fields_copy(trailers, piece->trailers) < 0
				   ? -ENOMEM
				   : secret_scrub_fields(scrubber, &words, trailers));
	if (r == STAGE_NEXT)
		piece->trailers = trailers;
	return r;
}

static enum stage_result on_response_body(struct exchange *ex, struct piece *piece)
{
	const struct scrub_words words = { echo_words_find, &ex->echo->words };
	struct secret_set *set = ex->echo->words.set;
	struct scrubber *scrubber =
		set ? secret_echo_scrubber(ex->client->worker, set) : NULL; /* NULL: no value is known */
	enum stage_result r;
	int hits;

	r = trailers_scrub(ex, scrubber, piece);
	if (r != STAGE_NEXT)
		return r;
	if (ex->echo->decoder)
		return piece_decode(ex, scrubber, piece);
	if (!scrubber)
		return STAGE_NEXT;
	hits = scrub(scrubber, &words, piece->data, piece->len, piece->end, piece->out, &piece->used);
	r = echo_judge(ex, hits);
	return r == STAGE_NEXT && hits ? STAGE_REPLACED : r;
}

static void on_forget(struct exchange *ex)
{
	if (!ex->echo)
		return;
	secret_set_unref(ex->echo->words.set);
	decoder_free(ex->echo->decoder);
	buf_free(&ex->echo->plain);
	fields_free(&ex->echo->trailers);
	free(ex->echo);
	ex->echo = NULL;
}

const struct stage stage_echo = {
	.name = "echo",
	.role = STAGE_MODIFIES,
	.start = on_start,
	.response = on_response,
	.response_body = on_response_body,
	.forget = on_forget,
};
