/* SPDX-License-Identifier: MIT */
/* What a raise did, for the answer and the events. */
#pragma once

#include "session/service_internal.h"

struct outcome {
	struct np_rung before;
	struct written written;
	bool raised;
	unsigned cut;
	uint64_t applied_us;
	int applied, recorded; /* 0 or -errno */
};

void outcome_emit(struct service *service, const struct session *session, const struct raise_request *request,
		  const struct outcome *o, const struct failure *failure);
/* 0: it may be acknowledged; -errno: *failure says why not. */
int outcome_answer(const struct session *session, const struct outcome *o, struct failure *failure);
