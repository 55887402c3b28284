/* SPDX-License-Identifier: MIT */
/*
 * The daemon's values of credentials: fetched from their sources when a policy is loaded, when somebody asks for that, and
 * before they are too old. Files and variables are read at once, commands run beside. A source that fails leaves no value
 * once the one before has expired, or at once if there is no ttl: requests that need it are refused then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/credential.h"
#include "secrets/placeholder.h"
#include "secrets/secrets.h"

struct loop;
struct vault;

struct vault_config {
	struct loop *loop;
	const char *key_file; /* where the placeholder key is kept, if that is in memory (tmpfs) */
	unsigned command_uid; /* whom commands run as */
	/* The value of this credential of this policy has changed, or is gone. */
	void (*on_change)(void *data, const char *policy, const char *name);
	void *data;
};

int vault_new(const struct vault_config *config, struct vault **ret);
void vault_free(struct vault *vault);

/* Fetches the values of this policy's credentials; those of the policy before stay beside them until vault_settle(). The
 * policy is used until the next one comes. */
void vault_policy(struct vault *vault, const struct policy *policy);
void vault_settle(struct vault *vault); /* nobody uses the policy before any more */
/* Every second or so: what is due is fetched again, what has expired is forgotten. */
void vault_tick(struct vault *vault);

const struct secrets *vault_secrets(const struct vault *vault);
const struct placeholder_key *vault_placeholder_key(const struct vault *vault);

/* Of the policy's credentials, in its order. */
size_t vault_count(const struct vault *vault);
void vault_describe(const struct vault *vault, size_t i, struct credential_state *ret);
/* Fetches it now. -ENOENT: there is none of that name; -EINPROGRESS: its command runs. */
int vault_refresh(struct vault *vault, const char *name);
void vault_note_use(struct vault *vault, const char *name); /* a report says so; an unknown name is fine */
void vault_note_tokens(struct vault *vault, const char *name, uint32_t n); /* so many were captured, likewise */
