/* SPDX-License-Identifier: MIT */
#include "policy/credential_fate.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "policy/policy.h"

#define TLS_PORT 443

static const char *credential_misfit(const struct policy *policy, const struct credential_fate *fate,
				     const struct facts *facts, const struct verdict *verdict,
				     const struct credential_facts *asked)
{
	const struct credential *credential = fate->credential;
	struct credential_facts other = *asked;

	if (verdict->action == ACTION_DENY)
		return "the request is refused";
	if (facts->rung.mode != NP_PROXIED)
		return "requests are inspected in PROXIED alone";
	if (facts->leg != LEG_TLS)
		return "the request goes without TLS";
	if (!verdict->inspect)
		return "requests pass unseen there";
	if (!(credential->levels & 1u << facts->rung.level))
		return "it is not for this level";
	if (!strcmp(asked->method, "TRACE") || !strcmp(asked->method, "TRACK"))
		return "an answer to TRACE would show it";
	if (fate->tokens ? credential_token_is_bound(policy, credential, asked)
			 : credential_is_bound(policy, credential, asked))
		return NULL;
	other.method = NULL; /* then the path does not count either */
	return credential_is_bound(policy, credential, &other) ? "it is for other methods or paths"
							       : "it is for other sessions or classes of runs";
}

/* Where it would be if the request had TLS: "http://" has a port of its own, and that is not what is wrong with it. */
static bool hosts_hold(const struct policy *policy, const struct pattern_run *hosts, const struct host *host,
		       const struct facts *facts)
{
	return pattern_run_holds(policy, hosts, host, facts->port) ||
	       (facts->leg != LEG_TLS && pattern_run_holds(policy, hosts, host, TLS_PORT));
}

bool credential_fate_next(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			  size_t *next, struct credential_fate *ret)
{
	struct host host = { .is_addr = !facts->name, .addr = facts->addr };
	const struct credential_facts asked = { .host = &host,
						.port = facts->port,
						.method = facts->method,
						.path = facts->path,
						.session = facts->session ? facts->session : "",
						.rung = facts->rung,
						.named = verdict->rule ? verdict->rule->credential : NULL };

	if (!facts->method || !facts->name)
		return false;
	snprintf(host.name, sizeof(host.name), "%s", facts->name);
	while (*next < policy->n_credentials) {
		const struct credential *credential = &policy->credentials[(*next)++];
		const bool bound = (asked.named && asked.named->number == credential->number) ||
				   hosts_hold(policy, &credential->hosts, &host, facts);
		const bool tokens =
			!bound && credential->capture && hosts_hold(policy, &credential->capture->hosts, &host, facts);

		if (!bound && !tokens)
			continue;
		*ret = (struct credential_fate){ .credential = credential, .tokens = tokens };
		ret->why = credential_misfit(policy, ret, facts, verdict, &asked);
		return true;
	}
	return false;
}

bool credential_goes(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		     const char *name)
{
	struct credential_fate fate;
	bool any = false;

	for (size_t next = 0; credential_fate_next(policy, facts, verdict, &next, &fate);) {
		if (fate.why)
			continue;
		if (name && strcmp(fate.credential->name, name) == 0)
			return true;
		any = true;
	}
	return !name && !any;
}

/* "header x-api-key" */
#define SLOT_TEXT_SIZE 128
static void slot_format(const struct credential_slot *slot, char text[static SLOT_TEXT_SIZE])
{
	const bool named = slot->kind == SLOT_HEADER || slot->kind == SLOT_QUERY;

	snprintf(text, SLOT_TEXT_SIZE, "%s%s%.100s", slot_name(slot->kind), named ? " " : "", named ? slot->name : "");
}

/* Of tokens it is the capture's places behind the credential's. NULL: there is no i-th. */
static const struct credential_slot *place_at(const struct credential_fate *fate, size_t i)
{
	const struct credential *credential = fate->credential;

	if (i < credential->n_slots)
		return &credential->slots[i];
	i -= credential->n_slots;
	return fate->tokens && i < credential->capture->n_slots ? &credential->capture->slots[i] : NULL;
}

void credential_places(const struct credential_fate *fate, char text[static CREDENTIAL_PLACES_SIZE])
{
	const struct credential_slot *slot;
	char one[SLOT_TEXT_SIZE];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; (slot = place_at(fate, i)) && len < CREDENTIAL_PLACES_SIZE; i++) {
		slot_format(slot, one);
		len += (size_t)snprintf(text + len, CREDENTIAL_PLACES_SIZE - len, "%s%s", i ? ", " : "", one);
	}
}

void credential_fates_json(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			   struct buf *out)
{
	const struct credential_slot *slot;
	struct credential_fate fate;
	char one[SLOT_TEXT_SIZE];

	json_open_array(out, NULL);
	for (size_t next = 0; credential_fate_next(policy, facts, verdict, &next, &fate);) {
		json_open_object(out, NULL);
		json_put_text(out, "name", fate.credential->name, NP_NAME_MAX);
		json_put_bool(out, "goes", !fate.why);
		json_put_text(out, "why", fate.why, SIZE_MAX);
		json_put_bool(out, "tokens", fate.tokens);
		json_open_array(out, "as");
		for (size_t k = 0; (slot = place_at(&fate, k)); k++) {
			slot_format(slot, one);
			json_put_text(out, NULL, one, sizeof(one));
		}
		json_close_array(out);
		json_close_object(out);
	}
	json_close_array(out);
}
