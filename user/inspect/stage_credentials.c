/* SPDX-License-Identifier: MIT */
/*
 * Placeholders become values where the policy says so, and nowhere else. The head that the client sent, which is judged,
 * captured and reported, keeps its placeholders: values are in the copy that the origin gets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "inspect/stage_credentials.h"
#include "secrets/sigv4.h"

/* All of its body is there, as it goes: the signature is for its hash, too. */
static void on_whole(struct hold *hold)
{
	struct exchange *ex = hold->terms.ctx;
	const struct credential *credential = credential_find(ex->client->worker->policy, ex->carried->signs);
	char hash[SIGV4_HASH];
	struct credential_look look;

	if (ex->request == REQUEST_COMES)
		return; /* its time is over soon */
	credential_look_begin(&look, ex);
	sigv4_hash(ex->pending.data, ex->pending.len, hash);
	look.body_hash = hash;
	if (!credential || !credential_fits(ex, look.policy, credential)) {
		exchange_stop(ex, NP_R_CREDENTIAL_ELSEWHERE, NULL,
			      "the credential that signs it is not for it any more");
		return;
	}
	ex->carried->signs[0] = '\0';
	if (credentials_head_sign(&look, credential) < 0)
		credential_look_end(&look);
	else
		hold_resume(hold);
}

static enum stage_result body_await(struct exchange *ex, const struct credential *credential)
{
	const struct hold_terms terms = {
		.ms = NP_STALL_MS,
		.late = NP_R_TIMED_OUT,
		.words = "its body did not come, whose hash is to be signed",
		.body = ex->head.length,
		.wake = on_whole,
		.wake_ms = NP_STALL_MS,
		.ctx = ex,
	};

	snprintf(ex->carried->signs, sizeof(ex->carried->signs), "%s", credential->name);
	return exchange_hold(ex, &terms);
}

static enum stage_result on_start(struct exchange *ex)
{
	const struct policy *policy = ex->client->worker->policy;
	struct credential_look look;
	int r;

	if (!policy->n_credentials)
		return STAGE_NEXT;
	if (ex->head.upgrade) /* its messages are searched: compressed ones could not be. Nobody has a copy of the head yet */
		fields_remove(&ex->head.fields, "sec-websocket-extensions");
	r = carried_get(ex);
	credential_look_begin(&look, ex);
	if (!look.finder.set)
		r = -ENOMEM;
	if (r == 0)
		r = credentials_head_rewrite(&look);
	if (r < 0)
		return credential_look_end(&look);
	if (ex->head.has_body || ex->head.upgrade)
		credentials_body_open(ex, policy);
	return look.needs_body ? body_await(ex, look.signs) : STAGE_NEXT;
}

/* What it carries has to be for it still: at this level, and by this policy. */
static enum stage_result on_rejudge(struct exchange *ex, enum np_reason by)
{
	struct worker *worker = ex->client->worker;
	const struct credential_facts facts = credential_facts_of(ex);
	const char *lost = ex->carried ? carried_lost(ex->carried, ex->client, &facts) : NULL;
	char words[NP_NAME_MAX + 64];

	if (!lost)
		return STAGE_NEXT;
	reporter_count_cut(&worker->reporter);
	report_end(&ex->report, worker, ex->client->sandbox, by, NULL);
	snprintf(words, sizeof(words), "the credential %s is not for it any more", lost);
	upstream_reset(ex);
	exchange_stop(ex, by, NULL, words);
	return STAGE_OVER;
}

static void on_forget(struct exchange *ex)
{
	if (ex->carried && ex->carried->n && ex->outgoing)
		fields_wipe(&ex->outgoing->fields);
	free(ex->carried);
	ex->carried = NULL;
}

const struct stage stage_credentials = { .name = "credentials",
					 .role = STAGE_MODIFIES,
					 .start = on_start,
					 .request_body = credentials_body_look,
					 .rejudge = on_rejudge,
					 .forget = on_forget };
