/* SPDX-License-Identifier: MIT */
/* /v1/health */
#include <errno.h>
#include <unistd.h>

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
	size_t start;
	int r;

	r = store_sessions_each(service_store(config->service), session_count, &sessions);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sessions could not be read");
	r = service_sandboxes_each(config->service, NULL, sandbox_count, &sandboxes);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sandboxes could not be counted");
	buf_printf(&out, "{\"status\":\"ok\",\"version\":\"%s\",\"pid\":%d,\"sessions\":%u,\"sandboxes\":%u,",
		   NETPAWL_VERSION, getpid(), sessions, sandboxes);
	start = out.len;
	if (config->health)
		config->health(config->data, &out);
	if (out.len == start && out.len > 0)
		out.len--; /* nothing follows the comma */
	buf_puts(&out, "}");
	*ret = (struct answer){ .status = 200, .type = "application/json", .len = out.len };
	ret->body = buf_take(&out);
	if (!ret->body)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "the answer could not be written");
	return 0;
}
