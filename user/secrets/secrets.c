/* SPDX-License-Identifier: MIT */
#include "secrets/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "secrets/locked.h"

static struct secret *slot_find(const struct secrets *secrets, const char *policy, const char *name)
{
	for (size_t i = 0; i < secrets->n; i++) {
		const struct secret *secret = &secrets->items[i];

		if (!strcmp(secret->name, name) && !strcmp(secret->policy, policy))
			return (struct secret *)secret;
	}
	return NULL;
}

static void slot_drop(struct secrets *secrets, struct secret *secret)
{
	locked_free(secret->value, secret->len);
	*secret = secrets->items[--secrets->n];
	secrets->items[secrets->n] = (struct secret){ 0 };
	secrets->generation++;
}

int secrets_put(struct secrets *secrets, const char *policy, const char *name, const char *value, size_t len,
		uint64_t expires_ns)
{
	struct secret *secret = slot_find(secrets, policy, name);
	struct secret fresh = { .len = len, .expires_ns = expires_ns };

	if (secret)
		slot_drop(secrets, secret);
	if (!len)
		return 0;
	if (len > NP_SECRET_MAX || memchr(value, '\0', len) || strlen(policy) >= sizeof(fresh.policy) ||
	    strlen(name) >= sizeof(fresh.name))
		return -EINVAL;
	if (secrets->n == ARRAY_SIZE(secrets->items))
		return -ENOSPC;
	fresh.value = locked_alloc(len);
	if (!fresh.value)
		return -ENOMEM;
	memcpy(fresh.value, value, len);
	snprintf(fresh.policy, sizeof(fresh.policy), "%s", policy);
	snprintf(fresh.name, sizeof(fresh.name), "%s", name);
	secrets->items[secrets->n++] = fresh;
	secrets->generation++;
	return 0;
}

const struct secret *secrets_find(const struct secrets *secrets, const char *policy, const char *name, uint64_t now_ns)
{
	const struct secret *secret = slot_find(secrets, policy, name);

	return secret && (!secret->expires_ns || now_ns < secret->expires_ns) ? secret : NULL;
}

void secrets_keep(struct secrets *secrets, const char *policy)
{
	for (size_t i = secrets->n; i-- > 0;)
		if (!policy || strcmp(secrets->items[i].policy, policy) != 0)
			slot_drop(secrets, &secrets->items[i]);
}
