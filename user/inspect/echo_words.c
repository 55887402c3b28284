/* SPDX-License-Identifier: MIT */
#include "inspect/echo_words.h"

#include <string.h>

#include "inspect/carried.h"
#include "inspect/client.h"
#include "inspect/secret_watch.h"
#include "policy/credential.h"

/* One that is to be searched for, goes with the request and has this value: of several it is the one that the client knows. */
static const struct credential *credential_carried(const struct echo_words *words, uint32_t number)
{
	const struct policy *policy = words->client->worker->policy;
	const struct secret_set *set = words->set;

	for (unsigned i = 0; words->carried && i < words->carried->n; i++) {
		const struct credential *credential = credential_find(policy, words->carried->names[i]);

		if (!credential || credential->echo == ECHO_PASSES)
			continue;
		for (size_t k = 0; k < set->n; k++)
			if (set->same[k] == set->same[number] && !strcmp(set->names[k], credential->name))
				return credential;
	}
	return credential_find(policy, set->names[number]);
}

/* What stands for a value: the session's placeholder of that credential. */
bool echo_words_find(void *ctx, uint32_t number, struct scrub_word *ret)
{
	struct echo_words *words = ctx;
	const struct worker *worker = words->client->worker;
	const struct credential *credential = credential_carried(words, number);

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
