/* SPDX-License-Identifier: MIT */
#include "session/raise_outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sql.h"
#include "vocab/limits.h"
#include "vocab/words.h"

#define WHY_SIZE 96

static const char kernel_text[] = "the kernel held a cgroup of it tighter than its record";

/* That it is an old one. */
static const char *owed_text(uint64_t owed_us, char text[static WHY_SIZE])
{
	char since[TIME_TEXT_SIZE];

	time_format(owed_us, since);
	snprintf(text, WHY_SIZE, "in force since %s, when it could not be recorded", since);
	return text;
}

static bool has_risen(const struct session *session, const struct np_rung *before)
{
	return session->stands.level > before->level || session->stands.mode > before->mode;
}

void rise_emit(struct service *service, const struct session *session, const struct np_rung *before, uint64_t owed_us,
	       const char *who)
{
	char text[WHY_SIZE];
	struct event event = {
		.reason = NP_R_RAISED,
		.who = owed_us ? "daemon" : who,
		.text = owed_us ? owed_text(owed_us, text) : kernel_text,
	};

	if (has_risen(session, before))
		service_emit(service, &event, session, NULL);
}

/* What a verb finds that only settles what stands: who calls it has raised nothing. */
static void settled_describe(const struct service *service, const struct outcome *o, char text[static WHY_SIZE],
			     struct event *event)
{
	const bool policy = service->config.modes.of[o->before.level] > o->before.mode;

	event->who = "daemon";
	event->text = o->owed_us ? owed_text(o->owed_us, text)
		      : policy	 ? "by the policy its level means a stricter mode than it did"
				 : kernel_text;
}

void outcome_emit(struct service *service, const struct session *session, const struct raise_request *request,
		  const struct outcome *o, const struct failure *failure)
{
	struct event event = { .who = request->who };
	char text[WHY_SIZE];

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
		if (request->settles)
			settled_describe(service, o, text, &event);
		else if (o->owed_us && !request->text)
			event.text = owed_text(o->owed_us, text);
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
