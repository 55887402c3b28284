/* SPDX-License-Identifier: MIT */
/* Names and levels that a client wrote, checked before anything is done with them. 0, or -EINVAL and why. */
#ifndef NP_CONTROL_ARGS_H
#define NP_CONTROL_ARGS_H

#include "control/request.h"

int name_read(const char *text, struct session_name *ret, struct failure *ret_failure);
int name_read_path(const struct request *rq, struct session_name *ret, struct failure *ret_failure);
int level_read(const char *text, enum level *ret, struct failure *ret_failure);

/* The run that the path names. -ENOENT: that is no number. */
int run_id_read(const struct request *rq, uint64_t *ret, struct failure *ret_failure);

#endif
