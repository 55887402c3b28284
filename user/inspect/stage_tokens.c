/* SPDX-License-Identifier: MIT */
/*
 * Tokens that an origin issues: what a credential captures (members of JSON, cookies) goes to the sandbox sealed (secrets/token.h), before
 * anybody else sees it. Responses that are searched for values are searched for the tokens that were seen last, too. What comes
 * here is decoded: stage_echo.c stands between this and the origin. What should have tokens and cannot be read is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inspect/stage_credentials.h"
#include "inspect/stage_tokens.h"
#include "secrets/issued.h"

struct tokens {
	struct exchange *ex;
	char captors[NP_CARRIED_MAX][NP_NAME_MAX + 1]; /* credentials that capture: the policy may change */
	bool of_json[NP_CARRIED_MAX];		       /* not of cookies alone */
	unsigned n;
	bool in_cookies; /* what is taken now is one, and no member of JSON */
	bool json;	 /* the body is read as such */
	struct issued_json reader;
	struct buf plain;    /* of such a body, with tokens sealed: it may end with the beginning of another */
	struct buf word;     /* that takes the place of one that was seen before */
	const char *refused; /* the credential of one that was, and says refuse */
	struct fields trailers;
};

bool tokens_are_captured(const struct exchange *ex)
{
	return ex->tokens && ex->tokens->n;
}

static int tokens_get(struct exchange *ex)
{
	if (ex->tokens)
		return 0;
	ex->tokens = calloc(1, sizeof(*ex->tokens));
	if (!ex->tokens)
		return -ENOMEM;
	ex->tokens->ex = ex;
	ex->tokens->plain = BUF_INIT(NP_WITHHELD_BYTES + 2 * NP_BACKLOG_HIGH);
	ex->tokens->word = BUF_INIT(SEALED_MAX);
	return 0;
}

static enum stage_result tokens_stop(struct exchange *ex, enum np_reason reason, const char *words)
{
	upstream_reset(ex);
	exchange_stop(ex, reason, NULL, words);
	return STAGE_OVER;
}

/* What a reader of tokens returned. */
static enum stage_result tokens_fail(struct exchange *ex, int error)
{
	if (error == -EBADMSG)
		return tokens_stop(ex, NP_R_UNSEARCHABLE, "it is no JSON that tokens could be found in");
	if (error == -EINVAL)
		return tokens_stop(ex, NP_R_UNSEARCHABLE,
				   "what the policy says is a token is none that could be captured");
	if (error == -E2BIG)
		return tokens_stop(ex, NP_R_UNSEARCHABLE, "it has a token that is too long, or too many of them");
	return tokens_stop(ex, NP_R_INTERNAL, "it could not be searched for tokens");
}

/* -- whose tokens they are --------------------------------------------------------------------- */

/* Of the policy in hand; NULL: it is gone, or captures nothing any more. */
static const struct credential *captor_find(const struct tokens *tokens, unsigned i)
{
	const struct credential *credential = credential_find(tokens->ex->client->worker->policy, tokens->captors[i]);

	return credential && credential->capture ? credential : NULL;
}

static const struct credential *captor_of(const struct tokens *tokens, const char *name)
{
	for (unsigned i = 0; i < tokens->n; i++) {
		const struct credential *credential = captor_find(tokens, i);
		const char *const *names = !credential		? NULL
					   : tokens->in_cookies ? credential->capture->cookies
					   : tokens->of_json[i] ? credential->capture->json
								: NULL;

		for (; names && *names; names++)
			if (strcmp(*names, name) == 0)
				return credential;
	}
	return NULL;
}

static bool on_wanted(void *ctx, const char *name)
{
	return captor_of(ctx, name) != NULL;
}

/* The value of a credential that came back is a placeholder already. A token that has one in it, or what looks like one, may have it
 * from the sandbox: that is a token still. */
static bool is_placeholder(const struct exchange *ex, const char *text, size_t len)
{
	const struct placeholder_set *set = session_placeholders(ex->client->worker, ex->client->sandbox->session);
	size_t at;
	const struct placeholder *found = set ? placeholder_set_find(set, text, len, &at) : NULL;

	return found && found->credential != PLACEHOLDER_NOBODYS && at == 0 && found->len == len;
}

static int on_taken(void *ctx, const char *name, const char *text, size_t len, struct buf *out)
{
	struct tokens *tokens = ctx;
	struct exchange *ex = tokens->ex;
	struct worker *worker = ex->client->worker;
	const char *session = ex->client->sandbox->session->name;
	const struct credential *credential = captor_of(tokens, name);
	struct token token = { .is_cookie = tokens->in_cookies, .value = text, .len = len };
	int r;

	if (!credential || !worker->sealer)
		return -ENOMEM;
	if (is_placeholder(ex, text, len)) {
		buf_append(out, text, len);
		return 0;
	}
	if (ex->report.tokens == NP_TOKENS_ISSUED)
		return -E2BIG;
	snprintf(token.credential, sizeof(token.credential), "%s", credential->name);
	r = token_seal(worker->sealer, session, &token, out);
	if (r < 0)
		return r;
	token_watch_note(ex->client, &token);
	ex->report.tokens++;
	snprintf(ex->report.captured, sizeof(ex->report.captured), "%s", credential->name);
	return 0;
}

/* -- what was seen before ---------------------------------------------------------------------- */

static bool on_seen(void *ctx, uint32_t number, struct scrub_word *ret)
{
	struct tokens *tokens = ctx;
	const struct client *client = tokens->ex->client;
	const struct credential *credential =
		credential_find(client->worker->policy, token_watch_credential(client, (int)number));

	if (credential && credential->echo == ECHO_PASSES)
		return false;
	if (credential && credential->echo == ECHO_IS_REFUSED)
		tokens->refused = credential->name;
	token_watch_word(client, (int)number, &tokens->word);
	*ret = (struct scrub_word){ tokens->word.data, tokens->word.len };
	return true;
}

/* Hits of a scrubber, or its error. */
static enum stage_result seen_judge(struct exchange *ex, int hits)
{
	char words[NP_NAME_MAX + 64];

	if (hits < 0)
		return tokens_stop(ex, NP_R_INTERNAL, "it could not be searched for tokens");
	if (ex->tokens->refused) {
		snprintf(words, sizeof(words), "a token of the credential %s came back", ex->tokens->refused);
		return tokens_stop(ex, NP_R_SECRET_RETURNED, words);
	}
	if (hits)
		exchange_note(ex, "a token came back, and was replaced by its placeholder");
	return STAGE_NEXT;
}

static enum stage_result fields_judge(struct exchange *ex, struct fields *fields)
{
	const struct scrub_words words = { on_seen, ex->tokens };
	struct scrubber *scrubber = NULL;
	int hits = token_watch_scrubber(ex->client, &scrubber);

	return seen_judge(ex, hits < 0 || !scrubber ? hits : secret_scrub_fields(scrubber, &words, fields));
}

/* -- heads ------------------------------------------------------------------------------------- */

static enum stage_result on_start(struct exchange *ex)
{
	const struct policy *policy = ex->client->worker->policy;
	const struct credential_facts facts = credential_facts_of(ex);
	struct head *outgoing;
	bool any_json = false;

	for (size_t i = 0; ex->tls && i < policy->n_credentials; i++) {
		const struct credential *credential = &policy->credentials[i];
		const bool json = credential_captures_json(policy, credential, &facts);

		if (!json && !credential_captures_cookies(policy, credential, &facts))
			continue;
		if (tokens_get(ex) < 0 || ex->tokens->n == NP_CARRIED_MAX) {
			exchange_refuse(ex, NP_R_INTERNAL, NULL, "its response could not be searched for tokens");
			return STAGE_OVER;
		}
		any_json |= json;
		ex->tokens->of_json[ex->tokens->n] = json;
		snprintf(ex->tokens->captors[ex->tokens->n++], NP_NAME_MAX + 1, "%s", credential->name);
	}
	if (!any_json)
		return STAGE_NEXT;
	/* A part of a body would be half a token. */
	outgoing = exchange_outgoing(ex);
	if (!outgoing) {
		exchange_refuse(ex, NP_R_INTERNAL, NULL, "its response could not be searched for tokens");
		return STAGE_OVER;
	}
	fields_remove(&outgoing->fields, "range");
	return STAGE_NEXT;
}

static bool has_json_captor(const struct tokens *tokens)
{
	for (unsigned i = 0; i < tokens->n; i++) {
		const struct credential *credential = captor_find(tokens, i);

		if (tokens->of_json[i] && (!credential || credential->capture->json))
			return true;
	}
	return false;
}

/* application/json, text/json, application/vnd.api+json; parameters do not matter. */
static bool type_is_json(const struct head *head)
{
	const struct field *field = fields_find(&head->fields, "content-type");
	size_t len = 0;

	while (field && len < field->value_len && !strchr("; \t", field->value[len]))
		len++;
	return len > 5 && strncasecmp(field->value + len - 4, "json", 4) == 0 && strchr("/+", field->value[len - 5]);
}

static enum stage_result cookies_take(struct exchange *ex, struct head *head)
{
	const struct issued_taker taker = { on_wanted, on_taken, ex->tokens };

	ex->tokens->in_cookies = true;
	for (uint32_t i = 0; i < head->fields.n; i++) {
		const struct field *field = &head->fields.items[i];
		_buf_ struct buf out = BUF_INIT(NP_HEAD_BYTES);
		int r = 0;

		if (strcmp(field->name, "set-cookie") == 0)
			r = issued_cookie(&taker, field->value, field->value_len, &out);
		if (r > 0)
			r = fields_set(&head->fields, i, out.data, out.len);
		if (r < 0)
			return tokens_fail(ex, r);
	}
	ex->tokens->in_cookies = false;
	return STAGE_NEXT;
}

/* An error that is no JSON has no token; what is fetched well and is no JSON might, in a form that was not foreseen. */
static enum stage_result body_begin(struct exchange *ex, struct head *head)
{
	static const char *const gone[] = { "etag",	      "content-md5", "digest",
					    "content-digest", "repr-digest", "accept-ranges" };
	const bool json = type_is_json(head);

	if (!has_json_captor(ex->tokens))
		return STAGE_NEXT;
	if (head->status == 206 || (!json && head->status < 300))
		return tokens_stop(ex, NP_R_UNSEARCHABLE,
				   "tokens are captured from it, and it is not the whole of a JSON text");
	ex->tokens->json = json;
	for (unsigned i = 0; json && i < sizeof(gone) / sizeof(gone[0]); i++)
		fields_remove(&head->fields, gone[i]);
	return STAGE_NEXT;
}

static enum stage_result on_response(struct exchange *ex, struct head *head)
{
	enum stage_result r;

	if (!ex->echo || (!ex->tokens && token_watch_is_empty(ex->client)))
		return STAGE_NEXT; /* its response is not searched, or there is nothing to search for */
	if (tokens_get(ex) < 0)
		return tokens_stop(ex, NP_R_INTERNAL, "it could not be searched for tokens");
	r = cookies_take(ex, head);
	if (r == STAGE_NEXT)
		r = fields_judge(ex, &head->fields);
	if (r != STAGE_NEXT || head->status < 200 || !head->has_body)
		return r;
	r = body_begin(ex, head);
	if (r == STAGE_NEXT && (ex->tokens->json || !token_watch_is_empty(ex->client)))
		stage_wants(ex, &stage_tokens, WAY_RESPONSE, WANT_REPLACE);
	return r;
}

/* -- bodies ------------------------------------------------------------------------------------ */

/* Tokens in it are sealed, then it is searched. */
static enum stage_result json_pass(struct exchange *ex, struct piece *piece)
{
	struct tokens *tokens = ex->tokens;
	const struct issued_taker taker = { on_wanted, on_taken, tokens };
	const struct scrub_words words = { on_seen, tokens };
	struct scrubber *scrubber = NULL;
	enum stage_result result;
	size_t used;
	int r = issued_json_read(&tokens->reader, &taker, piece->data, piece->len, piece->end, &tokens->plain);

	if (r < 0)
		return tokens_fail(ex, r);
	used = tokens->plain.len;
	r = token_watch_scrubber(ex->client, &scrubber);
	if (r == 0 && scrubber)
		r = scrub(scrubber, &words, tokens->plain.data, tokens->plain.len, piece->end, piece->out, &used);
	result = seen_judge(ex, r);
	if (result != STAGE_NEXT)
		return result;
	if (!r)
		buf_append(piece->out, tokens->plain.data, used);
	buf_drop(&tokens->plain, used);
	return STAGE_REPLACED;
}

static enum stage_result on_response_body(struct exchange *ex, struct piece *piece)
{
	const struct scrub_words words = { on_seen, ex->tokens };
	struct fields *trailers = &ex->tokens->trailers;
	struct scrubber *scrubber = NULL;
	enum stage_result r = STAGE_NEXT;
	int hits;

	if (piece->trailers && !trailers->n) {
		r = fields_copy(trailers, piece->trailers) < 0 ? seen_judge(ex, -ENOMEM) : fields_judge(ex, trailers);
		piece->trailers = trailers;
	}
	if (r != STAGE_NEXT)
		return r;
	if (ex->tokens->json)
		return json_pass(ex, piece);
	hits = token_watch_scrubber(ex->client, &scrubber);
	if (hits == 0 && scrubber)
		hits = scrub(scrubber, &words, piece->data, piece->len, piece->end, piece->out, &piece->used);
	r = seen_judge(ex, hits);
	return r == STAGE_NEXT && hits ? STAGE_REPLACED : r;
}

/* By a policy that captures nothing of it any more, nobody knows what of it is a token. */
static enum stage_result on_rejudge(struct exchange *ex, enum np_reason by)
{
	for (unsigned i = 0; ex->tokens && i < ex->tokens->n; i++) {
		if (captor_find(ex->tokens, i))
			continue;
		reporter_count_cut(&ex->client->worker->reporter);
		report_end(&ex->report, ex->client->worker, ex->client->sandbox, by, NULL);
		return tokens_stop(ex, by, "the policy does not capture its tokens any more");
	}
	return STAGE_NEXT;
}

static void on_forget(struct exchange *ex)
{
	if (!ex->tokens)
		return;
	issued_json_free(&ex->tokens->reader);
	buf_wipe(&ex->tokens->plain);
	buf_free(&ex->tokens->word);
	fields_free(&ex->tokens->trailers);
	free(ex->tokens);
	ex->tokens = NULL;
}

const struct stage stage_tokens = {
	.name = "tokens",
	.role = STAGE_MODIFIES,
	.start = on_start,
	.response = on_response,
	.response_body = on_response_body,
	.rejudge = on_rejudge,
	.forget = on_forget,
};
