/* SPDX-License-Identifier: MIT */
/* /v1/health */
#include <errno.h>
#include <unistd.h>

#include "base/json.h"
#include "base/sql.h"
#include "control/reply.h"
#include "vocab/limits.h"

static int session_count(void *data, const struct session_row *row)
{
	*(unsigned *)data += !row->ended;
	return 0;
}

static int sandbox_count(void *data, const struct sandbox_info *sandbox)
{
	(void)sandbox;
	++*(unsigned *)data;
	return 0;
}

int health_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	const struct server_config *config = rq->config;
	unsigned sessions = 0, sandboxes = 0;
	int r;

	r = store_sessions_each(service_store(config->service), session_count, &sessions);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sessions could not be read: %s", sql_strerror(r));
	r = service_sandboxes_each(config->service, NULL, sandbox_count, &sandboxes);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sandboxes could not be counted");
	json_open_object(&out, NULL);
	json_put_text(&out, "status", config->is_degraded && config->is_degraded(config->data) ? "degraded" : "ok",
		      SIZE_MAX);
	json_put_text(&out, "version", NETPAWL_VERSION, SIZE_MAX);
	json_put_number(&out, "pid", (uint64_t)getpid());
	json_put_number(&out, "sessions", sessions);
	json_put_number(&out, "sandboxes", sandboxes);
	if (config->health)
		config->health(config->data, &out);
	json_close_object(&out);
	*ret = (struct answer){ .status = 200, .type = "application/json", .len = out.len };
	ret->body = buf_take(&out);
	if (!ret->body)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the answer could not be written");
	return 0;
}
