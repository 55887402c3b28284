/* SPDX-License-Identifier: MIT */
#include "inspect/token_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/worker.h"
#include "secrets/locked.h"

#define ITEMS_SIZE (NP_TOKENS_WATCHED * sizeof(struct watched_token))
/* Of a long one its end is searched for: there is the signature, without which the rest is worth nothing, and nothing else has it. */
#define SEARCHED_BYTES 512

struct watched_token {
	char session[NP_LABEL_SIZE];
	struct token token; /* its value is the one below */
	char value[NP_TOKEN_MAX];
};

static bool is_watched(const struct token_watch *watch, const char *session, const struct token *token)
{
	for (unsigned i = 0; i < watch->n; i++) {
		const struct watched_token *item = &watch->items[i];

		if (item->token.len == token->len && memcmp(item->value, token->value, token->len) == 0 &&
		    strcmp(item->session, session) == 0 && strcmp(item->token.credential, token->credential) == 0)
			return true;
	}
	return false;
}

void token_watch_note(struct worker *worker, const char *session, const struct token *token)
{
	struct token_watch *watch = &worker->tokens;
	struct watched_token *item;

	if (token->len < NP_TOKEN_WATCHED_MIN || token->len > NP_TOKEN_MAX || is_watched(watch, session, token))
		return;
	if (!watch->items)
		watch->items = locked_alloc(ITEMS_SIZE);
	if (!watch->items)
		return;
	item = &watch->items[watch->next];
	watch->next = (watch->next + 1) % NP_TOKENS_WATCHED;
	if (watch->n < NP_TOKENS_WATCHED)
		watch->n++;
	explicit_bzero(item, sizeof(*item));
	memcpy(item->session, session, strnlen(session, sizeof(item->session) - 1));
	memcpy(item->value, token->value, token->len);
	item->token = *token;
	item->token.value = item->value;
	watch->stale = true;
}

const struct secret *token_watch_lend(struct worker *worker, const struct token *token)
{
	worker->tokens.lent = (struct secret){ .value = (char *)(uintptr_t)token->value, .len = token->len };
	return &worker->tokens.lent;
}

void token_watch_free(struct token_watch *watch)
{
	scrubber_free(&watch->scrubber);
	search_free(watch->search);
	locked_free(watch->items, ITEMS_SIZE);
	*watch = (struct token_watch){ 0 };
}

static int search_make(const struct token_watch *watch, struct search **ret)
{
	struct needle *needles = calloc((size_t)watch->n * FORMS_MAX + 1, sizeof(*needles));
	size_t n = 0;
	int r = needles ? 0 : -ENOMEM;

	for (unsigned i = 0; r >= 0 && i < watch->n; i++) {
		const struct token *token = &watch->items[i].token;
		const size_t len = token->len < SEARCHED_BYTES ? token->len : SEARCHED_BYTES;

		r = forms_make(token->value + token->len - len, len, i, needles + n);
		if (r > 0)
			n += (size_t)r;
	}
	if (r >= 0)
		r = n ? search_new(needles, n, ret) : 0;
	else
		for (size_t i = 0; i < n; i++)
			needle_free(&needles[i]);
	free(needles);
	return r;
}

int token_watch_scrubber(struct worker *worker, struct scrubber **ret)
{
	struct token_watch *watch = &worker->tokens;
	int r = 0;

	if (watch->stale) {
		search_free(watch->search);
		watch->search = NULL;
		r = search_make(watch, &watch->search);
		if (r < 0)
			return r;
		watch->stale = false;
	}
	watch->scrubber.search = watch->search;
	*ret = watch->search ? &watch->scrubber : NULL;
	return 0;
}

const char *token_watch_credential(const struct worker *worker, int number)
{
	return worker->tokens.items[number].token.credential;
}

void token_watch_word(const struct worker *worker, const char *session, int number, struct buf *out)
{
	const struct watched_token *item = &worker->tokens.items[number];

	buf_clear(out);
	if (item->token.len > SEARCHED_BYTES || strcmp(item->session, session) != 0 || !worker->sealer ||
	    token_seal(worker->sealer, session, &item->token, out) < 0) {
		buf_clear(out);
		buf_puts(out, "(secret)");
	}
}

int token_watch_look(struct worker *worker, const char *data, size_t len, bool end, size_t *ret_used)
{
	struct scrubber *scrubber = NULL;

	*ret_used = len;
	if (token_watch_scrubber(worker, &scrubber) < 0)
		return -ENOMEM;
	return scrubber ? scrub_look(scrubber, data, len, end, ret_used) : -1;
}

int token_watch_look_head(struct worker *worker, const struct head *head)
{
	struct scrubber *scrubber = NULL;

	if (token_watch_scrubber(worker, &scrubber) < 0)
		return -ENOMEM;
	return scrubber ? secret_in_head(scrubber, head) : -1;
}
