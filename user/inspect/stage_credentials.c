/* SPDX-License-Identifier: MIT */
/*
 * Placeholders become values where the policy says so, and nowhere else. The head that the client sent, which is judged,
 * captured and reported, keeps its placeholders: values are in the copy that the origin gets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "inspect/stage_credentials.h"

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
	return STAGE_NEXT;
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
