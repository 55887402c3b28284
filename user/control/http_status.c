/* SPDX-License-Identifier: MIT */
#include "control/http_status.h"

#include <stdarg.h>
#include <stdio.h>

int failure_put(struct failure *ret_failure, int error, unsigned reason, const char *fmt, ...)
{
	va_list ap;

	ret_failure->reason = reason;
	va_start(ap, fmt);
	vsnprintf(ret_failure->text, sizeof(ret_failure->text), fmt, ap);
	va_end(ap);
	return error;
}

unsigned failure_status(unsigned reason)
{
	switch (reason) {
	case NP_R_BAD_REQUEST:
	case NP_R_BAD_JSON:
	case NP_R_UNKNOWN_FIELD:
	case NP_R_BAD_FIELD:
	case NP_R_BAD_NAME:
	case NP_R_BAD_LEVEL:
		return 400;
	case NP_R_FROM_SANDBOX:
	case NP_R_NOT_PERMITTED:
	case NP_R_NO_ROLE:
	case NP_R_NOT_APPROVED:
	case NP_R_NOT_THE_LAUNCHER:
		return 403;
	case NP_R_NO_SUCH_SESSION:
	case NP_R_NO_SUCH_SANDBOX:
	case NP_R_NO_SUCH_PATH:
	case NP_R_NO_SUCH_RUN:
	case NP_R_NO_OUTPUT:
	case NP_R_NO_SUCH_CREDENTIAL:
	case NP_R_NO_SUCH_QUESTION:
	case NP_R_NO_SUCH_FILE:
		return 404;
	case NP_R_BAD_METHOD:
		return 405;
	case NP_R_BAD_CGROUP:
	case NP_R_SANDBOX_BUSY:
	case NP_R_HELD_SOCKETS:
	case NP_R_FOREIGN_NETNS:
	case NP_R_RUN_OVER:
	case NP_R_QUESTION_OVER:
	case NP_R_QUESTION_CHANGED:
	case NP_R_FILE_CHANGED:
	case NP_R_SESSION_OPEN:
	case NP_R_NO_FORWARD:
		return 409;
	case NP_R_TOO_LARGE:
		return 413;
	case NP_R_BAD_POLICY:
		return 422;
	case NP_R_TOO_MANY:
		return 429;
	case NP_R_UNSUPPORTED:
		return 501;
	case NP_R_NO_INSPECTOR:
		return 503;
	case NP_R_NOT_RECORDED:
	case NP_R_NOT_WHOLE:
		return 507;
	default:
		return 500;
	}
}
