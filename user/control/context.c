/* SPDX-License-Identifier: MIT */
/* /v1/sessions/USER/SESSION/context: what a session is for, for deciders. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/body.h"
#include "control/reply.h"
#include "vocab/limits.h"

int context_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *name = rq->session.text;
	struct context_row row = { "", "" };
	struct session_row session;
	int r = service_session_show(rq->config->service, name, &session, ret_failure);

	if (r < 0)
		return r;
	r = store_context_get(service_store(rq->config->service), name, &row);
	if (r < 0 && r != -ENOENT)
		return failure_put(ret_failure, r, NP_R_FAILED, "the context could not be read: %s", sql_strerror(r));
	return answer_json(ret, 200,
			   json_pack("{s:s,s:o,s:o*}", "session", name, "purpose", json_text(row.purpose), "context",
				     row.context[0] ? json_loads(row.context, 0, NULL) : json_null()),
			   ret_failure);
}

/* What is not in the body stays as it is. */
int context_put(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *purpose = NULL, *problem;
	const struct body_field fields[] = {
		{ "purpose", false, .ret_text = &purpose },
		{ "context", false, .is_nested = true },
	};
	_json_ json_t *body = NULL;
	_free_ char *context = NULL;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r < 0)
		return r;
	if (purpose && text_check(purpose, NP_PURPOSE_MAX, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"purpose\": %s", problem);
	if (json_object_get(body, "context")) {
		context =
			json_dumps(json_object_get(body, "context"), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
		if (!context)
			return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the context could not be written");
		if (strlen(context) > NP_CONTEXT_MAX)
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
					   "\"context\" has at most %u bytes as JSON", NP_CONTEXT_MAX);
	}
	r = service_context_put(rq->config->service, rq->session.text, purpose, context, ret_failure);
	return r < 0 ? r : context_get(rq, ret, ret_failure);
}
