/* SPDX-License-Identifier: MIT */
/*
 * Values of credentials, on their way to inspectors. An inspector has them while some sandbox is PROXIED: which session may
 * use which is the policy's word and judged there request by request, but whichever of them leaves by the hand of a sandbox
 * has to be known when it does. When the last sandbox that is inspected is raised or gone, they are forgotten.
 */
#include <string.h>

#include "link/secret_message.h"
#include "supervisor/supervisor_internal.h"

static void message_make(const struct secret *secret, struct link_secret *ret)
{
	memcpy(ret->policy, secret->policy, sizeof(ret->policy));
	memcpy(ret->name, secret->name, sizeof(ret->name));
	ret->len = (uint32_t)secret->len;
	ret->expires_ns = secret->expires_ns;
	memcpy(ret->value, secret->value, secret->len);
}

static void secret_send(struct process *p, const struct secret *secret, bool forget)
{
	struct link_secret message = { 0 };

	message_make(secret, &message);
	if (forget)
		message.len = 0;
	process_send(p, LINK_SECRET, &message, LINK_SECRET_SIZE(message.len), -1);
	explicit_bzero(&message, sizeof(message));
}

void secrets_send(struct process *p)
{
	const struct supervisor_config *config = &p->supervisor->config;

	if (!config->secrets)
		return;
	process_send(p, LINK_PLACEHOLDER_KEY, config->placeholder_key, sizeof(*config->placeholder_key), -1);
	for (size_t i = 0; p->supervisor->proxied && i < config->secrets->n; i++)
		secret_send(p, &config->secrets->items[i], false);
}

static void all_send(struct supervisor *w, bool forget)
{
	for (unsigned k = 0; w->recovered && w->config.secrets && k < w->config.count; k++)
		for (size_t i = 0; i < w->config.secrets->n; i++)
			secret_send(&w->processes[k], &w->config.secrets->items[i], forget);
}

void secrets_send_all(struct supervisor *w)
{
	if (w->proxied)
		all_send(w, false);
}

void secrets_count(struct supervisor *w, enum np_mode before, enum np_mode now)
{
	const bool were = w->proxied;

	w->proxied += now == NP_PROXIED;
	w->proxied -= before == NP_PROXIED;
	if (were != (w->proxied > 0))
		all_send(w, were);
}

void supervisor_secret(struct supervisor *w, const char *policy, const char *name)
{
	struct link_secret gone = { 0 };
	const struct secret *found = NULL;

	for (size_t i = 0; i < w->config.secrets->n; i++) {
		const struct secret *secret = &w->config.secrets->items[i];

		if (!strcmp(secret->name, name) && !strcmp(secret->policy, policy))
			found = secret;
	}
	strncpy(gone.policy, policy, sizeof(gone.policy) - 1);
	strncpy(gone.name, name, sizeof(gone.name) - 1);
	for (unsigned k = 0; w->recovered && w->proxied && k < w->config.count; k++)
		if (found)
			secret_send(&w->processes[k], found, false);
		else
			process_send(&w->processes[k], LINK_SECRET, &gone, LINK_SECRET_SIZE(0), -1);
}
