/* SPDX-License-Identifier: MIT */
/* What went wrong, on its way to the client. Pure. */
#pragma once

#include "session/service.h"

/* Fills the failure and returns error, so that a caller can return in one line. */
int failure_put(struct failure *ret_failure, int error, unsigned reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

unsigned failure_status(unsigned reason); /* the HTTP status of an ERROR reason */
