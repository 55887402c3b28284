/* SPDX-License-Identifier: MIT */
#include "control/args.h"

#include <errno.h>
#include <stdio.h>

#include "control/http_status.h"
#include "control/url_text.h"
#include "reason.h"

int name_read(const char *text, struct session_name *ret, struct failure *ret_failure)
{
	const char *problem = "";

	if (session_name_parse(text, ret, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_NAME, "\"%.160s\": %s", text, problem);
	return 0;
}

/* USER and SESSION are two segments of the path. */
int name_read_path(const struct request *rq, struct session_name *ret, struct failure *ret_failure)
{
	char text[1024]; /* a longer name is no name, cut or not */

	snprintf(text, sizeof(text), "%s/%s", rq->args[0], rq->args[1]);
	return name_read(text, ret, ret_failure);
}

int level_read(const char *text, enum level *ret, struct failure *ret_failure)
{
	if (level_parse(text, ret) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_LEVEL, "\"%.64s\"", text);
	return 0;
}

int run_id_read(const struct request *rq, uint64_t *ret, struct failure *ret_failure)
{
	if (url_number(rq->args[0], INT64_MAX, ret) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_RUN, "%.64s", rq->args[0]);
	return 0;
}
