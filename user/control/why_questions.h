/* SPDX-License-Identifier: MIT */
/* Recent questions of a session and their answers, for an agent that wants to know whether to try again. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "session/service.h"

/* The newest of them, as sentences behind text and as an array. 0 or -errno. */
int why_questions(struct service *service, const char *session, struct buf *text, json_t **ret);
