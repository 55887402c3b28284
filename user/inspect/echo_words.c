/* SPDX-License-Identifier: MIT */
#include "inspect/echo_words.h"

#include <string.h>

#include "inspect/carried.h"
#include "inspect/client.h"
#include "inspect/secret_watch.h"
#include "policy/credential.h"

static bool is_carried(const struct carried *carried, const char *name)
{
	for (unsigned i = 0; carried && i < carried->n; i++)
		if (!strcmp(carried->names[i], name))
			return true;
	return false;
}

static const struct credential *echo_stricter(const struct credential *a, const struct credential *b)
{
	return !a || (a->echo != ECHO_IS_REFUSED && b->echo == ECHO_IS_REFUSED) ? b : a;
}

/* Of several that have this value and are to be searched for: one that goes with the request, for the client knows it, and the strictest. */
static const struct credential *credential_meant(const struct echo_words *words, uint32_t number)
{
	const struct credential *carried = NULL, *other = NULL;
	const struct policy *policy = words->client->worker->policy;
	const struct secret_set *set = words->set;

	for (size_t i = 0; i < set->n; i++) {
		const struct credential *credential =
			set->same[i] == set->same[number] ? credential_find(policy, set->names[i]) : NULL;

		if (!credential || credential->echo == ECHO_PASSES)
			continue;
		if (is_carried(words->carried, credential->name))
			carried = echo_stricter(carried, credential);
		else
			other = echo_stricter(other, credential);
	}
	if (carried || other)
		return carried ? carried : other;
	return credential_find(policy, set->names[number]);
}

/* What stands for a value: the session's placeholder of that credential. */
bool echo_words_find(void *ctx, uint32_t number, struct scrub_word *ret)
{
	struct echo_words *words = ctx;
	const struct worker *worker = words->client->worker;
	const struct credential *credential = credential_meant(words, number);

	*ret = (struct scrub_word){ "(secret)", 8 };
	if (!credential)
		return true;
	if (credential->echo == ECHO_PASSES)
		return false;
	if (credential->echo == ECHO_IS_REFUSED)
		words->refused = credential->name;
	if (credential->like) {
		ret->text = words->placeholder;
		ret->len = placeholder_make(&worker->placeholder_key, words->client->sandbox->session->name,
					    credential->name, credential->like, words->placeholder);
	}
	return true;
}
