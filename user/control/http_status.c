/* SPDX-License-Identifier: MIT */
#include "control/http_status.h"

#include <stdarg.h>
#include <stdint.h>
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

/* 500, where none is named. */
static const uint16_t statuses[NP_REASON_COUNT] = {
	[NP_R_BAD_REQUEST] = 400,     [NP_R_BAD_JSON] = 400,	       [NP_R_UNKNOWN_FIELD] = 400,
	[NP_R_BAD_FIELD] = 400,	      [NP_R_BAD_NAME] = 400,	       [NP_R_BAD_LEVEL] = 400,
	[NP_R_FROM_SANDBOX] = 403,    [NP_R_NOT_PERMITTED] = 403,      [NP_R_NO_ROLE] = 403,
	[NP_R_NOT_APPROVED] = 403,    [NP_R_NOT_THE_LAUNCHER] = 403,   [NP_R_NO_SUCH_SESSION] = 404,
	[NP_R_NO_SUCH_SANDBOX] = 404, [NP_R_NO_SUCH_PATH] = 404,       [NP_R_NO_SUCH_RUN] = 404,
	[NP_R_NO_OUTPUT] = 404,	      [NP_R_NO_SUCH_CREDENTIAL] = 404, [NP_R_NO_SUCH_QUESTION] = 404,
	[NP_R_NO_SUCH_FILE] = 404,    [NP_R_BAD_METHOD] = 405,	       [NP_R_BAD_CGROUP] = 409,
	[NP_R_SANDBOX_BUSY] = 409,    [NP_R_HELD_SOCKETS] = 409,       [NP_R_FOREIGN_NETNS] = 409,
	[NP_R_RUN_OVER] = 409,	      [NP_R_QUESTION_OVER] = 409,      [NP_R_QUESTION_CHANGED] = 409,
	[NP_R_FILE_CHANGED] = 409,    [NP_R_SESSION_OPEN] = 409,       [NP_R_NO_FORWARD] = 409,
	[NP_R_TOO_LARGE] = 413,	      [NP_R_BAD_POLICY] = 422,	       [NP_R_TOO_MANY] = 429,
	[NP_R_UNSUPPORTED] = 501,     [NP_R_NO_INSPECTOR] = 503,       [NP_R_NOT_RECORDED] = 507,
	[NP_R_NOT_WHOLE] = 507,
};

unsigned failure_status(unsigned reason)
{
	return reason < NP_REASON_COUNT && statuses[reason] ? statuses[reason] : 500;
}
