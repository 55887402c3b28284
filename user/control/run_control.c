/* SPDX-License-Identifier: MIT */
/* /v1/runs/ID/input and /v1/runs/ID/cancel: what a run that goes on is told. */
#include <errno.h>
#include <nettle/base64.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "control/body.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "vocab/limits.h"

/* As text or as bytes. */
static int input_read(const char *text, const char *base64, struct buf *out, struct failure *ret_failure)
{
	size_t n = base64 ? BASE64_DECODE_LENGTH(strlen(base64)) : 0;
	_free_ uint8_t *bytes = malloc(n + 1);
	struct base64_decode_ctx ctx;

	base64_decode_init(&ctx);
	if (bytes && base64 &&
	    (!base64_decode_update(&ctx, &n, bytes, strlen(base64), base64) || !base64_decode_final(&ctx)))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"base64\" is none");
	buf_puts(out, text ? text : "");
	buf_append(out, bytes, n);
	return !bytes || buf_error(out) ? failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory") : 0;
}

int run_input_post(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *text = NULL, *base64 = NULL;
	uint64_t columns = 0, rows = 0;
	struct run_input input = { 0 };
	const struct body_field fields[] = {
		{ "data", false, .ret_text = &text },	  { "base64", false, .ret_text = &base64 },
		{ "end", false, .ret_flag = &input.end }, { "columns", false, .ret_number = &columns },
		{ "rows", false, .ret_number = &rows },
	};
	_json_ json_t *body = NULL;
	_buf_ struct buf bytes = BUF_INIT(NP_BODY_MAX);
	struct run_row run;
	int r = service_run_show(rq->config->service, rq->id, &run, ret_failure);

	if (r == 0)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0 && (!columns != !rows || columns > NP_TERMINAL_MAX || rows > NP_TERMINAL_MAX))
		r = failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"columns\" and \"rows\" are a terminal's size");
	if (r == 0)
		r = input_read(text, base64, &bytes, ret_failure);
	if (r < 0)
		return r;
	input.data = bytes.len ? bytes.data : "";
	input.len = bytes.len;
	input.columns = (unsigned)columns;
	input.rows = (unsigned)rows;
	r = rq->config->launcher.input(rq->config->launcher.ctx, rq->id, &input, ret_failure);
	if (r < 0)
		return r;
	return answer_json(ret, 200, json_pack("{s:I,s:I}", "run", (json_int_t)rq->id, "taken", (json_int_t)bytes.len),
			   ret_failure);
}

/* The result of a run that was ended in the middle, as JSON: the same however far it had come, for nobody saw it end. */
static char *cancelled_text(const char *who, const char *reason)
{
	_buf_ struct buf words = BUF_INIT(4096);
	_json_ json_t *object = NULL;

	buf_printf(&words, "cancelled by %s%s%s", who, reason ? ": " : "", reason ? reason : "");
	object = buf_error(&words) ? NULL
				   : json_pack("{s:i,s:s,s:s}", "exit_code", 128 + SIGKILL, "killed_by", "cancel",
					       "problem", words.data);
	return object ? json_dumps(object, JSON_COMPACT) : NULL;
}

/* Its launcher first, so that nothing is started any more; then all that it has started. One that waits is rejected, with a
 * reason that says so. */
int run_cancel(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	char never[NP_REASON_TEXT_MAX + 1];
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", false, .ret_text = &reason } };
	_json_ json_t *body = NULL;
	_free_ char *result = NULL;
	struct run_row run = { 0 };
	int r = 0;

	if (rq->body_len)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0)
		r = service_run_show(rq->config->service, rq->id, &run, ret_failure);
	if (r < 0)
		return r;
	if (reason && text_check(reason, NP_REASON_TEXT_MAX - strlen("cancelled: "), &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"reason\": %s", problem);
	snprintf(never, sizeof(never), "cancelled%s%s", reason ? ": " : "", reason ? reason : "");
	result = cancelled_text(rq->peer.who, reason);
	if (!result)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (run.state == RUN_RUNNING)
		rq->config->launcher.stop(rq->config->launcher.ctx, rq->id);
	r = run.state == RUN_PENDING
		    ? service_run_withdraw(rq->config->service, rq->id, never, rq->peer.who, &run, ret_failure)
		    : service_run_cancel(rq->config->service, rq->id, result, rq->peer.who, &run, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_object(&run), ret_failure);
}
