/* SPDX-License-Identifier: MIT */
#include "secrets/placeholder_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/credential.h"
#include "policy/placeholder_shape.h"
#include "policy/policy.h"
#include "secrets/token.h"

#define WORD sizeof(uint64_t)

/* What is needed to read tokens, and the one that was found last. */
struct sealed {
	struct sealer *sealer;
	const struct policy *policy;
	const char *session;
	struct placeholder found;
	struct token token;
};

static uint64_t word_at(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

static unsigned place_of(uint64_t word)
{
	return (unsigned)(word % PLACEHOLDER_PLACES);
}

/* Where the longest part that is random begins. Two placeholders have the same eight bytes there by chance alone. */
static size_t anchor_find(const char *like, size_t len)
{
	size_t at = 0, best = len - WORD, longest = 0;
	struct shape_part part;

	if (!strcmp(like, PLACEHOLDER_JWT))
		return len - 43; /* its signature */
	for (const char *text = like; shape_next(&text, &part) > 0; at += part.len)
		if (part.alphabet && part.len > longest && at + WORD <= len) {
			longest = part.len;
			best = at;
		}
	return best;
}

static void set_add(struct placeholder_set *set, const struct credential *credential, const char *text, size_t len)
{
	struct placeholder *item = &set->items[set->n];
	size_t anchor = anchor_find(credential->like, len);
	unsigned place;

	*item = (struct placeholder){ .text = text,
				      .len = len,
				      .credential = credential->number,
				      .anchor = (uint32_t)anchor,
				      .word = word_at(text + anchor) };
	place = place_of(item->word);
	item->next = set->first[place];
	set->first[place] = (uint16_t)++set->n;
	if (len > set->longest)
		set->longest = len;
}

int placeholder_set_new(const struct policy *policy, const struct placeholder_key *key, const char *session,
			struct placeholder_set **ret)
{
	struct placeholder_set *set = calloc(1, sizeof(*set));
	char text[NP_PLACEHOLDER_MAX + 1];
	size_t used = 0;

	if (set) {
		set->items = calloc(policy->n_credentials + 1, sizeof(*set->items));
		for (size_t i = 0; i < policy->n_credentials; i++)
			used += placeholder_make(key, session, policy->credentials[i].name, policy->credentials[i].like,
						 text) +
				1;
		set->texts = malloc(used + 1);
	}
	if (!set || !set->items || !set->texts) {
		placeholder_set_free(set);
		return -ENOMEM;
	}
	used = 0;
	for (size_t i = 0; i < policy->n_credentials; i++) {
		const struct credential *credential = &policy->credentials[i];
		size_t len = placeholder_make(key, session, credential->name, credential->like, text);

		memcpy(set->texts + used, text, len + 1);
		set_add(set, credential, set->texts + used, len);
		used += len + 1;
	}
	*ret = set;
	return 0;
}

int placeholder_set_add_tokens(struct placeholder_set *set, struct sealer *sealer, const struct policy *policy,
			       const char *session)
{
	set->sealed = calloc(1, sizeof(*set->sealed));
	if (!set->sealed)
		return -ENOMEM;
	*set->sealed = (struct sealed){ .sealer = sealer, .policy = policy, .session = session };
	return 0;
}

void placeholder_set_free(struct placeholder_set *set)
{
	if (!set)
		return;
	free(set->sealed);
	free(set->items);
	free(set->texts);
	free(set);
}

const struct placeholder *placeholder_set_find_own(const struct placeholder_set *set, const char *text, size_t len,
						   size_t *ret_at)
{
	for (size_t i = 0; i + WORD <= len; i++) {
		const uint64_t word = word_at(text + i);

		for (uint32_t k = set->first[place_of(word)]; k; k = set->items[k - 1].next) {
			const struct placeholder *item = &set->items[k - 1];

			if (item->word != word || i < item->anchor || len - (i - item->anchor) < item->len ||
			    memcmp(text + i - item->anchor, item->text, item->len) != 0)
				continue;
			*ret_at = i - item->anchor;
			return item;
		}
	}
	return NULL;
}

/* Whose token is it? */
static const struct placeholder *sealed_look(struct sealed *sealed, const char *text, size_t len)
{
	const struct credential *credential = NULL;

	if (token_unseal(sealed->sealer, sealed->session, text, len, &sealed->token))
		credential = credential_find(sealed->policy, sealed->token.credential);
	if (credential && !credential->capture)
		credential = NULL;
	sealed->found = (struct placeholder){ .text = text,
					      .len = len,
					      .credential = credential ? credential->number : PLACEHOLDER_NOBODYS,
					      .token = &sealed->token };
	return &sealed->found;
}

const struct placeholder *placeholder_set_find(const struct placeholder_set *set, const char *text, size_t len,
					       size_t *ret_at)
{
	const struct placeholder *own;
	size_t at, token_len;

	if (!set->sealed || !token_find(text, len, &at, &token_len))
		return placeholder_set_find_own(set, text, len, ret_at);
	own = placeholder_set_find_own(set, text, at, ret_at);
	if (own)
		return own;
	*ret_at = at;
	return sealed_look(set->sealed, text + at, token_len);
}

size_t placeholder_set_pending_token(const struct placeholder_set *set, const char *text, size_t len)
{
	return set->sealed ? token_pending(text, len) : 0;
}

/* Of the last bytes, as many as are the beginning of one. */
static size_t beginning_len(const struct placeholder_set *set, const char *text, size_t len)
{
	size_t pending = placeholder_set_pending_token(set, text, len);

	for (size_t i = 0; i < set->n; i++) {
		const struct placeholder *item = &set->items[i];
		size_t most = item->len - 1 < len ? item->len - 1 : len;

		for (size_t n = most; n > pending; n--)
			if (!memcmp(text + len - n, item->text, n)) {
				pending = n;
				break;
			}
	}
	return pending;
}

/* Where the first whole one ends, be it a token; 0: there is none. */
static size_t whole_end(const struct placeholder_set *set, const char *text, size_t len)
{
	size_t at, token_at, token_len;
	const bool token = set->sealed && token_find_whole(text, len, &token_at, &token_len);
	const struct placeholder *own = placeholder_set_find_own(set, text, token ? token_at : len, &at);

	return own ? at + own->len : token ? token_at + token_len : 0;
}

size_t placeholder_set_pending(const struct placeholder_set *set, const char *text, size_t len)
{
	const size_t most = set->sealed && set->longest < SEALED_MAX ? SEALED_MAX : set->longest;
	size_t pending = beginning_len(set, text, len), from, end;

	if (!pending)
		return 0;
	/* A whole one may end with what another begins with: it must not be cut there. */
	from = len - pending > most ? len - pending - most : 0;
	while (pending && (end = whole_end(set, text + from, len - from))) {
		from += end;
		if (from > len - pending)
			pending = beginning_len(set, text + from, len - from);
	}
	return pending;
}
