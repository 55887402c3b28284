/* SPDX-License-Identifier: MIT */
/* What a raise did, for the answer and the events. */
#pragma once

#include "session/service_internal.h"

struct outcome {
	struct np_rung before;
	uint64_t owed_us; /* of the session, before */
	struct written written;
	bool raised;
	unsigned cut;
	uint64_t applied_us;
	int applied, recorded; /* 0 or -errno */
};

void outcome_emit(struct service *service, const struct session *session, const struct raise_request *request,
		  const struct outcome *o, const struct failure *failure);
/* A rise that was recorded, and that no request asked for: the kernel knew of it, or (owed_us) it was made then and could not be recorded. */
void rise_emit(struct service *service, const struct session *session, const struct np_rung *before, uint64_t owed_us,
	       const char *who);
/* 0: it may be acknowledged; -errno: *failure says why not. */
int outcome_answer(const struct session *session, const struct outcome *o, struct failure *failure);
