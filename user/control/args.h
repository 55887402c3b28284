/* SPDX-License-Identifier: MIT */
/* Names and levels that a client wrote, checked before anything is done with them. 0, or -EINVAL and why. */
#pragma once

#include "control/routes.h"

int name_read(const char *text, struct session_name *ret, struct failure *ret_failure);
int level_read(const char *text, enum level *ret, struct failure *ret_failure);

/* What the path names: fills rq->session or rq->id. -ENOENT: that is no number. */
int args_read(struct request *rq, const struct route *route, struct failure *ret_failure);
