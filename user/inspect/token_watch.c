/* SPDX-License-Identifier: MIT */
#include "inspect/token_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/client.h"
#include "secrets/locked.h"

#define ITEMS_SIZE (NP_TOKENS_ALL * sizeof(struct watched_token))
/* Of a long one its end is searched for: there is the signature, without which the rest is worth nothing, and nothing else has it. */
#define SEARCHED_BYTES 512

struct watched_token {
	TAILQ_ENTRY(watched_token) next;
	size_t len;	    /* of all of it */
	struct token token; /* its value is the one below */
	char value[SEARCHED_BYTES];
};

static struct token searched_part(const struct token *token)
{
	struct token part = *token;

	if (part.len > SEARCHED_BYTES) {
		part.value += part.len - SEARCHED_BYTES;
		part.len = SEARCHED_BYTES;
	}
	return part;
}

static bool is_watched(const struct token_watch *watch, const struct token *token)
{
	const struct token part = searched_part(token);
	const struct watched_token *item;

	TAILQ_FOREACH(item, &watch->tokens, next)
		if (item->len == token->len && memcmp(item->value, part.value, part.len) == 0 &&
		    strcmp(item->token.credential, token->credential) == 0)
			return true;
	return false;
}

static bool slots_get(struct token_slots *slots)
{
	if (slots->items)
		return true;
	slots->items = locked_alloc(ITEMS_SIZE);
	if (!slots->items)
		return false;
	TAILQ_INIT(&slots->free);
	for (unsigned i = 0; i < NP_TOKENS_ALL; i++)
		TAILQ_INSERT_TAIL(&slots->free, &slots->items[i], next);
	return true;
}

static void search_drop(struct token_watch *watch)
{
	watch->scrubber.search = NULL;
	search_free(watch->search);
	watch->search = NULL;
}

static void oldest_drop(struct token_slots *slots, struct token_watch *watch)
{
	struct watched_token *item = TAILQ_FIRST(&watch->tokens);

	TAILQ_REMOVE(&watch->tokens, item, next);
	explicit_bzero(item, sizeof(*item));
	TAILQ_INSERT_HEAD(&slots->free, item, next);
	search_drop(watch); /* it has the bytes, too */
	watch->stale = true;
	watch->n--;
}

static void watch_free(struct token_slots *slots, struct token_watch *watch)
{
	while (watch->n)
		oldest_drop(slots, watch);
	scrubber_free(&watch->scrubber);
	LIST_REMOVE(watch, of_worker);
	if (watch->session)
		watch->session->tokens = NULL;
	free(watch);
}

static struct token_watch *watch_get(struct token_slots *slots, struct session *session)
{
	struct token_watch *watch = session->tokens ? session->tokens : calloc(1, sizeof(*watch));

	if (!watch || session->tokens)
		return watch;
	TAILQ_INIT(&watch->tokens);
	watch->session = session;
	memcpy(watch->name, session->name, sizeof(watch->name));
	LIST_INSERT_HEAD(&slots->watches, watch, of_worker);
	session->tokens = watch;
	return watch;
}

/* Whoever has most gives one back: a session that has many issued takes them from itself, and not from those that have few. */
static void slot_free(struct token_slots *slots)
{
	struct token_watch *most = LIST_FIRST(&slots->watches), *watch;

	LIST_FOREACH(watch, &slots->watches, of_worker)
		if (watch->n >= most->n) /* of several the one that has had some for longest */
			most = watch;
	oldest_drop(slots, most);
	if (!most->n)
		watch_free(slots, most);
}

void token_watch_note(const struct client *client, const struct token *token)
{
	struct token_slots *slots = &client->worker->tokens;
	struct session *session = client->sandbox->session;
	const struct token part = searched_part(token);
	struct token_watch *watch = session->tokens;
	struct watched_token *item;

	if (token->len < NP_TOKEN_WATCHED_MIN || token->len > NP_TOKEN_MAX || (watch && is_watched(watch, token)) ||
	    !slots_get(slots))
		return;
	if (watch && watch->n == NP_TOKENS_WATCHED)
		oldest_drop(slots, watch);
	else if (TAILQ_EMPTY(&slots->free))
		slot_free(slots);
	watch = watch_get(slots, session); /* it may have been the one that gave its last back */
	if (!watch)
		return;
	item = TAILQ_FIRST(&slots->free);
	TAILQ_REMOVE(&slots->free, item, next);
	memcpy(item->value, part.value, part.len);
	item->len = token->len;
	item->token = part;
	item->token.value = item->value;
	TAILQ_INSERT_TAIL(&watch->tokens, item, next);
	watch->n++;
	watch->stale = true;
}

const struct secret *token_watch_lend(struct worker *worker, const struct token *token)
{
	worker->tokens.lent = (struct secret){ .value = (char *)(uintptr_t)token->value, .len = token->len };
	return &worker->tokens.lent;
}

void token_watch_come(const struct worker *worker, struct session *session)
{
	struct token_watch *watch;

	LIST_FOREACH(watch, &worker->tokens.watches, of_worker) {
		if (strcmp(watch->name, session->name) != 0)
			continue;
		watch->session = session;
		session->tokens = watch;
		return;
	}
}

void token_watch_go(struct session *session)
{
	if (!session->tokens)
		return;
	search_drop(session->tokens); /* by far the most of it, and made again when it is needed */
	session->tokens->stale = true;
	session->tokens->session = NULL;
	session->tokens = NULL;
}

void token_watch_free(struct worker *worker)
{
	struct token_slots *slots = &worker->tokens;

	while (!LIST_EMPTY(&slots->watches))
		watch_free(slots, LIST_FIRST(&slots->watches));
	locked_free(slots->items, ITEMS_SIZE);
	*slots = (struct token_slots){ 0 };
}

static int search_make(const struct token_watch *watch, const struct watched_token *items, struct search **ret)
{
	struct needle *needles = calloc((size_t)watch->n * FORMS_MAX + 1, sizeof(*needles));
	const struct watched_token *item;
	size_t n = 0;
	int r = needles ? 0 : -ENOMEM;

	for (item = TAILQ_FIRST(&watch->tokens); r >= 0 && item; item = TAILQ_NEXT(item, next)) {
		r = forms_make(item->value, item->token.len, (uint32_t)(item - items), needles + n);
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

int token_watch_scrubber(const struct client *client, struct scrubber **ret)
{
	struct token_watch *watch = client->sandbox->session->tokens;
	int r = 0;

	*ret = NULL;
	if (!watch)
		return 0;
	if (watch->stale) {
		search_drop(watch);
		r = search_make(watch, client->worker->tokens.items, &watch->search);
		if (r < 0)
			return r;
		watch->stale = false;
	}
	watch->scrubber.search = watch->search;
	*ret = watch->search ? &watch->scrubber : NULL;
	return 0;
}

bool token_watch_is_empty(const struct client *client)
{
	return !client->sandbox->session->tokens;
}

const char *token_watch_credential(const struct client *client, int number)
{
	return client->worker->tokens.items[number].token.credential;
}

void token_watch_word(const struct client *client, int number, struct buf *out)
{
	const struct watched_token *item = &client->worker->tokens.items[number];
	const struct sealer *sealer = client->worker->sealer;

	buf_clear(out);
	if (item->len > SEARCHED_BYTES || !sealer ||
	    token_seal(sealer, client->sandbox->session->name, &item->token, out) < 0) {
		buf_clear(out);
		buf_puts(out, "(secret)");
	}
}

int token_watch_look(const struct client *client, const char *data, size_t len, bool end, size_t *ret_used)
{
	struct scrubber *scrubber = NULL;

	*ret_used = len;
	if (token_watch_scrubber(client, &scrubber) < 0)
		return -ENOMEM;
	return scrubber ? scrub_look(scrubber, data, len, end, ret_used) : -1;
}

int token_watch_look_head(const struct client *client, const struct head *head)
{
	struct scrubber *scrubber = NULL;

	if (token_watch_scrubber(client, &scrubber) < 0)
		return -ENOMEM;
	return scrubber ? secret_in_head(scrubber, head) : -1;
}
