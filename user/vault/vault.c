/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "secrets/locked.h"
#include "vault/vault_internal.h"

#define RETRY_MS 10000 /* after a source failed */

int vault_new(const struct vault_config *config, struct vault **ret)
{
	struct vault *vault = calloc(1, sizeof(*vault));
	int r = -ENOMEM;

	if (!vault)
		return -ENOMEM;
	vault->config = *config;
	vault->secrets = calloc(1, sizeof(*vault->secrets));
	vault->key = locked_alloc(sizeof(*vault->key));
	if (vault->secrets && vault->key)
		r = placeholder_key_open(config->key_file, vault->key);
	if (r < 0)
		vault_free(vault);
	else
		*ret = vault;
	return r;
}

static void kept_clear(struct vault *vault)
{
	for (size_t i = 0; i < vault->n; i++)
		command_stop(&vault->kept[i]);
	free(vault->kept);
	vault->kept = NULL;
	vault->n = 0;
}

void vault_free(struct vault *vault)
{
	if (!vault)
		return;
	kept_clear(vault);
	if (vault->secrets)
		secrets_keep(vault->secrets, NULL);
	free(vault->secrets);
	locked_free(vault->key, sizeof(*vault->key));
	free(vault);
}

/* A value that is too old is not used, whatever the source says by then; it is asked in good time before. */
static void value_put(struct kept *kept, const char *text, size_t len)
{
	const struct vault *vault = kept->vault;
	const uint64_t ttl_ns = kept->credential->source.ttl_ms * 1000000, now = loop_now_ns();
	int r = secrets_put(vault->secrets, vault->policy->hash, kept->credential->name, text, len,
			    ttl_ns ? now + ttl_ns : 0);

	kept->fetched_us = r == 0 ? loop_wall_us() : 0;
	kept->due_ns = ttl_ns ? now + ttl_ns / 4 * 3 : 0;
	snprintf(kept->problem, sizeof(kept->problem), "%s", r == 0 ? "" : strerror(-r));
}

/* The parts of a key that signs are searched for one by one: each has to be one that can be. NULL: it is fine, or signs nothing. */
static const char *key_problem(const struct credential *credential, const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len), *end = text + len;
	const char *token = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;

	if (credential->slots[0].kind != SLOT_SIGV4)
		return NULL;
	if (!colon || colon == text)
		return "it is not KEY_ID:SECRET or KEY_ID:SECRET:TOKEN";
	return (token ? token : end) - colon - 1 < NP_SECRET_MIN || (token && end - token - 1 < NP_SECRET_MIN)
		       ? "a part of it is too short to be told from other text"
		       : NULL;
}

void kept_fetched(struct kept *kept, const char *text, size_t len, const char *problem)
{
	const struct vault *vault = kept->vault;
	const char *name = kept->credential->name;
	const char *wrong = text ? key_problem(kept->credential, text, len) : problem;

	if (!wrong) {
		value_put(kept, text, len);
	} else {
		if (strcmp(kept->problem, wrong) != 0) /* once: it is tried again and again */
			log_warning("the credential %s: %s", name, wrong);
		snprintf(kept->problem, sizeof(kept->problem), "%s", wrong);
		kept->due_ns = loop_now_ns() + RETRY_MS * 1000000ull;
		/* With a ttl the value before is good until that is over. */
		if (!kept->credential->source.ttl_ms)
			secrets_put(vault->secrets, vault->policy->hash, name, NULL, 0, 0);
	}
	vault->config.on_change(vault->config.data, vault->policy->hash, name);
}

static void kept_fetch(struct kept *kept)
{
	const struct credential_source *source = &kept->credential->source;
	const char *problem;
	char *text;
	size_t len = 0;
	int r;

	kept->due_ns = 0;
	if (source->kind == SOURCE_COMMAND) {
		r = command_start(kept);
		if (r < 0)
			kept_fetched(kept, NULL, 0, strerror(-r));
		return;
	}
	text = locked_alloc(SOURCE_ROOM);
	problem = text ? source_read(source, text, &len) : "there is no memory that can be locked";
	kept_fetched(kept, problem ? NULL : text, len, problem);
	locked_free(text, SOURCE_ROOM);
}

static bool command_equal(const char *const *a, const char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return !*a && !*b;
}

/* A command takes its time: what the same one gave before is good until then. */
static void value_carry(struct kept *kept, const struct policy *before)
{
	const struct credential *was = before ? credential_find(before, kept->credential->name) : NULL;
	const struct secret *secret;

	if (!was || was->source.kind != SOURCE_COMMAND || kept->credential->source.kind != SOURCE_COMMAND ||
	    !command_equal(was->source.command, kept->credential->source.command))
		return;
	secret = secrets_find(kept->vault->secrets, before->hash, was->name, loop_now_ns());
	if (secret && strcmp(before->hash, kept->vault->policy->hash) != 0)
		secrets_put(kept->vault->secrets, kept->vault->policy->hash, was->name, secret->value, secret->len,
			    secret->expires_ns);
}

void vault_policy(struct vault *vault, const struct policy *policy)
{
	const struct policy *before = vault->policy;
	struct kept *kept = policy->n_credentials ? calloc(policy->n_credentials, sizeof(*kept)) : NULL;
	size_t n = kept ? policy->n_credentials : 0;

	if (policy == before) { /* at the start: it is told twice */
		free(kept);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct credential *credential = &policy->credentials[i];

		kept[i] = (struct kept){ .vault = vault, .credential = credential, .command = { .output = -1 } };
		for (size_t k = 0; k < vault->n; k++) {
			const struct kept *old = &vault->kept[k];

			if (strcmp(old->credential->name, credential->name) != 0)
				continue;
			kept[i].used_us = old->used_us;
			kept[i].uses = old->uses;
			kept[i].tokens = old->tokens;
			kept[i].fetched_us = old->fetched_us;
		}
	}
	kept_clear(vault);
	vault->policy = policy;
	vault->kept = kept;
	vault->n = n;
	for (size_t i = 0; i < n; i++) {
		value_carry(&kept[i], before);
		kept_fetch(&kept[i]);
	}
}

void vault_settle(struct vault *vault)
{
	secrets_keep(vault->secrets, vault->policy->hash);
}

/* A value that is over is wiped here too, and not only unused. */
static void kept_expire(struct kept *kept, uint64_t now_ns)
{
	const struct vault *vault = kept->vault;
	const char *name = kept->credential->name;
	const size_t before = vault->secrets->n;

	if (secrets_find(vault->secrets, vault->policy->hash, name, now_ns))
		return;
	secrets_put(vault->secrets, vault->policy->hash, name, NULL, 0, 0);
	if (vault->secrets->n != before)
		vault->config.on_change(vault->config.data, vault->policy->hash, name);
}

void vault_tick(struct vault *vault)
{
	const uint64_t now = loop_now_ns();

	for (size_t i = 0; i < vault->n; i++) {
		struct kept *kept = &vault->kept[i];

		command_tick(kept, now);
		if (!kept->command.pid && kept->due_ns && now >= kept->due_ns)
			kept_fetch(kept);
		kept_expire(kept, now);
	}
}

const struct secrets *vault_secrets(const struct vault *vault)
{
	return vault->secrets;
}

const struct placeholder_key *vault_placeholder_key(const struct vault *vault)
{
	return vault->key;
}

size_t vault_count(const struct vault *vault)
{
	return vault->n;
}

void vault_describe(const struct vault *vault, size_t i, struct credential_state *ret)
{
	const struct kept *kept = &vault->kept[i];
	const uint64_t now = loop_now_ns();
	const struct secret *secret = secrets_find(vault->secrets, vault->policy->hash, kept->credential->name, now);

	*ret = (struct credential_state){ .credential = kept->credential,
					  .has_value = secret != NULL,
					  .busy = kept->command.pid != 0,
					  .fetched_us = kept->fetched_us,
					  .used_us = kept->used_us,
					  .uses = kept->uses,
					  .tokens = kept->tokens };
	if (secret && secret->expires_ns)
		ret->expires_us = loop_wall_us() + (secret->expires_ns - now) / 1000;
	memcpy(ret->problem, kept->problem, sizeof(ret->problem));
}

static struct kept *kept_find(const struct vault *vault, const char *name)
{
	for (size_t i = 0; i < vault->n; i++)
		if (!strcmp(vault->kept[i].credential->name, name))
			return &vault->kept[i];
	return NULL;
}

int vault_refresh(struct vault *vault, const char *name)
{
	struct kept *kept = kept_find(vault, name);

	if (!kept)
		return -ENOENT;
	if (!kept->command.pid)
		kept_fetch(kept);
	return kept->command.pid ? -EINPROGRESS : 0;
}

void vault_note_use(struct vault *vault, const char *name)
{
	struct kept *kept = kept_find(vault, name);

	if (!kept)
		return;
	kept->used_us = loop_wall_us();
	kept->uses++;
}

void vault_note_tokens(struct vault *vault, const char *name, uint32_t n)
{
	struct kept *kept = kept_find(vault, name);

	if (kept)
		kept->tokens += n;
}
