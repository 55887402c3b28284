/* SPDX-License-Identifier: MIT */
#include "inspect/echo_words.h"

#include "inspect/client.h"
#include "inspect/secret_watch.h"
#include "policy/credential.h"

/* What stands for a value: the session's placeholder of that credential. */
bool echo_words_find(void *ctx, uint32_t number, struct scrub_word *ret)
{
	struct echo_words *words = ctx;
	const struct worker *worker = words->client->worker;
	const struct credential *credential = credential_find(worker->policy, words->set->names[number]);

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
