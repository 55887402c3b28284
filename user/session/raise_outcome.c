/* SPDX-License-Identifier: MIT */
#include "session/raise_outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "vocab/limits.h"

void outcome_emit(struct service *service, const struct session *session, const struct raise_request *request,
		  const struct outcome *o, const struct failure *failure)
{
	struct event event = { .who = request->who };

	if (o->written.created) {
		event.reason = NP_R_SESSION_CREATED;
		service_emit(service, &event, session, NULL);
	}
	if (o->raised && (!o->recorded || o->recorded == -E2BIG)) {
		event = (struct event){
			.reason = NP_R_RAISED,
			.who = request->who,
			.dataset = request->dataset,
			.text = request->text,
			.cut = o->cut,
			.has_cut = 1,
			.applied_us = o->applied_us,
		};
		service_emit(service, &event, session, NULL);
	}
	if (o->cut) {
		event = (struct event){ .reason = NP_R_CUT, .who = request->who, .cut = o->cut, .has_cut = 1 };
		service_emit(service, &event, session, NULL);
	}
	if (failure->reason == NP_R_NOT_APPLIED || failure->reason == NP_R_NOT_RECORDED ||
	    failure->reason == NP_R_NOT_WHOLE) {
		event = (struct event){ .reason = failure->reason,
					.who = request->who,
					.dataset = request->dataset,
					.text = failure->text };
		service_emit(service, &event, session, NULL);
	}
}

/* What is most urgent for the client to know comes first. */
int outcome_answer(const struct session *session, const struct outcome *o, struct failure *failure)
{
	if (o->applied) {
		size_t len = strlen(failure->text);

		/* session_kernel() and session_cut() have said which sandbox; say here that the record failed, too. */
		if (o->recorded && o->recorded != -E2BIG)
			snprintf(failure->text + len, sizeof(failure->text) - len, "; not recorded either: %s",
				 sql_strerror(o->recorded));
		return o->applied;
	}
	if (o->recorded == -E2BIG)
		return o->raised ? 0
				 : service_fail(failure, NP_R_TOO_MANY, -E2BIG, "%s has %d datasets already",
						session->name.text, NP_DATASETS_MAX);
	if (o->recorded)
		return service_fail(failure, NP_R_NOT_RECORDED, o->recorded, "%s: %s", session->name.text,
				    sql_strerror(o->recorded));
	return 0;
}
