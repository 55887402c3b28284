/* SPDX-License-Identifier: MIT */
/* May the value of a credential go with this request? Who carries which. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inspect/stage_credentials.h"

/* Whose tokens are that were sealed for another session, or by nobody. */
static const struct credential credential_nobodys = { .name = "" };

const struct credential *carried_credential(const struct exchange *ex, unsigned i)
{
	return credential_find(ex->client->worker->policy, ex->carried->names[i]);
}

const char *carried_lost(const struct carried *carried, const struct client *client,
			 const struct credential_facts *facts)
{
	const struct policy *policy = client->worker->policy;

	for (unsigned i = 0; i < carried->n; i++) {
		const struct credential *credential = credential_find(policy, carried->names[i]);

		if (!credential || !(carried->issued[i] ? credential_token_is_bound(policy, credential, facts)
							: credential_is_bound(policy, credential, facts)))
			return carried->names[i];
	}
	return NULL;
}

/* They send back what they get. */
static bool method_echoes(const char *method)
{
	return !strcasecmp(method, "TRACE") || !strcasecmp(method, "TRACK");
}

struct credential_facts credential_facts_of(const struct exchange *ex)
{
	const struct sandbox *sandbox = ex->client->sandbox;

	return (struct credential_facts){
		.host = &ex->host,
		.port = ex->port,
		.method = ex->head.method,
		.path = ex->head.target,
		.session = sandbox->session->name,
		.rung = sandbox->rung,
		.named = ex->credential,
	};
}

/* The origin is whom its certificate says, the name is the one that was judged, and we have looked it up: what is left is whether that
 * is the right one. */
static bool facts_fit(const struct policy *policy, const struct credential *credential,
		      const struct credential_facts *facts)
{
	return !method_echoes(facts->method) && credential_is_bound(policy, credential, facts);
}

bool credential_fits(const struct exchange *ex, const struct policy *policy, const struct credential *credential)
{
	const struct credential_facts facts = credential_facts_of(ex);

	return ex->tls && facts_fit(policy, credential, &facts);
}

bool credential_token_fits(const struct exchange *ex, const struct policy *policy, const struct credential *credential)
{
	const struct credential_facts facts = credential_facts_of(ex);

	return ex->tls && !method_echoes(facts.method) && credential_token_is_bound(policy, credential, &facts);
}

int carried_get(struct exchange *ex)
{
	if (ex->carried)
		return 0;
	ex->carried = calloc(1, sizeof(*ex->carried));
	if (!ex->carried)
		return -ENOMEM;
	ex->carried->generation = ex->client->worker->secrets.generation;
	ex->carried->tls = ex->tls;
	return 0;
}

/* It goes with the request from now on. False: with so many that nobody keeps count. */
static bool carried_note(struct credential_look *look, const struct credential *credential, bool issued)
{
	struct carried *carried = look->carried;

	for (unsigned i = 0; i < carried->n; i++)
		if (!strcmp(carried->names[i], credential->name) && carried->issued[i] == issued)
			return true;
	if (carried->n == NP_CARRIED_MAX)
		return false;
	carried->issued[carried->n] = issued;
	snprintf(carried->names[carried->n++], sizeof(carried->names[0]), "%s", credential->name);
	if (!look->report->credential[0])
		snprintf(look->report->credential, sizeof(look->report->credential), "%s", credential->name);
	return true;
}

const struct secret *credential_look_refuse(struct credential_look *look, const struct credential *credential,
					    enum np_reason reason, const char *words)
{
	look->refused = credential;
	look->reason = reason;
	look->words = words;
	return NULL;
}

/* A value that may go with the request, which carries it then; NULL: look says why not. */
const struct secret *credential_look_value(struct credential_look *look, const struct credential *credential)
{
	const struct worker *worker = look->client->worker;
	const struct secret *secret =
		secrets_find(&worker->secrets, look->policy->hash, credential->name, loop_now_ns());

	if (!secret)
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_MISSING,
					      "its source has given no value");
	/* In its body, or in a message, later: what comes back is searched for the values that there were when it began, and not for this one. */
	if (look->carried->generation != worker->secrets.generation)
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_MISSING,
					      "values have changed since the request began: it may be sent again");
	/* A level may have it that the one of the beginning had not: what comes back to this websocket is not searched for it. */
	if (!look->ex && !look->carried->body_values)
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "it was not for this websocket when that began: another may have it");
	if (!carried_note(look, credential, false))
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "too many of them in one request");
	return secret;
}

/* A token that was issued to the session; TLS was seen to. Its source has nothing to do with it, nor has a value that changed: what comes
 * back is searched for the tokens that the worker knows then. */
static const struct secret *token_look(struct credential_look *look, const struct credential *credential,
				       const struct token *token, const struct slot_place *place)
{
	struct worker *worker = look->client->worker;

	if (method_echoes(look->facts.method) || !credential_token_is_bound(look->policy, credential, &look->facts))
		return credential_look_refuse(
			look, credential, NP_R_CREDENTIAL_ELSEWHERE,
			"a token of it is not for this host, this request, or this session at its level");
	if (!slot_fits_token(credential, token->is_cookie, place))
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "a token of it stands in another place of the request than \"as\" says");
	if (!look->ex && !look->carried->body_values)
		return credential_look_refuse(
			look, credential, NP_R_CREDENTIAL_ELSEWHERE,
			"a token of it was not for this websocket when that began: another may have it");
	if (!carried_note(look, credential, true))
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "too many of them in one request");
	token_watch_note(look->client, token);
	return token_watch_lend(worker, token);
}

const struct secret *credential_look_placeholder(struct credential_look *look, const struct placeholder *placeholder,
						 const struct slot_place *place)
{
	static const struct secret nothing;
	const struct credential *credential;

	if (placeholder->credential == PLACEHOLDER_NOBODYS)
		return credential_look_refuse(look, &credential_nobodys, NP_R_CREDENTIAL_ELSEWHERE, NOBODYS_TOKEN);
	credential = &look->policy->credentials[placeholder->credential];
	if (!look->tls)
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "the request goes without TLS");
	if (placeholder->token)
		return token_look(look, credential, placeholder->token, place);
	if (!facts_fit(look->policy, credential, &look->facts))
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "it is not for this host, this request, or this session at its level");
	if (!slot_fits(credential, place))
		return credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
					      "it stands in another place of the request than \"as\" says");
	if (place->kind != SLOT_SIGV4)
		return credential_look_value(look, credential);
	look->signs = credential; /* what stands there now is written anew: stage_credentials_head.c */
	return &nothing;
}

static const struct secret *on_placeholder(void *ctx, const struct placeholder *placeholder,
					   const struct slot_place *place)
{
	return credential_look_placeholder(ctx, placeholder, place);
}

void credential_look_begin(struct credential_look *look, struct exchange *ex)
{
	const struct worker *worker = ex->client->worker;

	*look = (struct credential_look){
		.ex = ex,
		.client = ex->client,
		.facts = credential_facts_of(ex),
		.tls = ex->tls,
		.carried = ex->carried,
		.report = &ex->report,
		.policy = worker->policy,
		.finder = { session_placeholders(worker, ex->client->sandbox->session), on_placeholder, look },
	};
}

void credential_look_message(struct credential_look *look, const struct client *client,
			     const struct credential_facts *facts, struct carried *carried, struct link_request *report)
{
	const struct worker *worker = client->worker;

	*look = (struct credential_look){
		.client = client,
		.facts = *facts,
		.tls = carried->tls,
		.carried = carried,
		.report = report,
		.policy = worker->policy,
		.finder = { session_placeholders(worker, client->sandbox->session), on_placeholder, look },
	};
}

void credential_look_report(struct credential_look *look, char words[static LOOK_WORDS_SIZE])
{
	if (look->refused == &credential_nobodys) {
		snprintf(words, LOOK_WORDS_SIZE, "%s", look->words);
		return;
	}
	snprintf(look->report->credential, sizeof(look->report->credential), "%s", look->refused->name);
	snprintf(words, LOOK_WORDS_SIZE, "the credential %s: %s", look->refused->name, look->words);
}

enum stage_result credential_look_end(struct credential_look *look)
{
	struct exchange *ex = look->ex;
	char words[LOOK_WORDS_SIZE];

	if (!look->refused) {
		exchange_stop(ex, NP_R_INTERNAL, NULL, "there is no room for a credential");
		return STAGE_OVER;
	}
	credential_look_report(look, words);
	upstream_reset(ex);
	exchange_stop(ex, look->reason, NULL, words);
	return STAGE_OVER;
}
