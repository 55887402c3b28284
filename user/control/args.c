/* SPDX-License-Identifier: MIT */
#include "control/args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/http_status.h"
#include "control/url_text.h"

int name_read(const char *text, struct session_name *ret, struct failure *ret_failure)
{
	const char *problem = "";

	if (session_name_parse(text, ret, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_NAME, "\"%.160s\": %s", text, problem);
	return 0;
}

int level_read(const char *text, enum level *ret, struct failure *ret_failure)
{
	if (level_parse(text, ret) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_LEVEL, "\"%.64s\"", text);
	return 0;
}

int args_read(struct request *rq, const struct route *route, struct failure *ret_failure)
{
	const bool run = !strncmp(route->pattern, "/v1/runs/", 9),
		   forward = !strncmp(route->pattern, "/v1/forwards/", 13);
	char text[1024]; /* a longer name is no name, cut or not */

	if (rq->args[0] && rq->args[1] && !strncmp(route->pattern, "/v1/sessions/", 13)) {
		snprintf(text, sizeof(text), "%s/%s", rq->args[0], rq->args[1]);
		return name_read(text, &rq->session, ret_failure);
	}
	if ((!run && !forward) || url_number(rq->args[0], INT64_MAX, &rq->id) == 0)
		return 0;
	return failure_put(ret_failure, -ENOENT, run ? NP_R_NO_SUCH_RUN : NP_R_NO_FORWARD,
			   run ? "%.64s" : "there is no forward %.64s", rq->args[0]);
}
