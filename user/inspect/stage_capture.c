/* SPDX-License-Identifier: MIT */
/* What the rule wants of the exchange in its event. */
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"

static enum stage_result on_start(struct exchange *ex)
{
	if (ex->capture) {
		stage_wants(ex, &stage_capture, WAY_REQUEST, WANT_LOOK);
		stage_wants(ex, &stage_capture, WAY_RESPONSE, WANT_LOOK);
	}
	capture_head(ex->capture, LINK_REQUEST_HEADERS, &ex->head.fields);
	return STAGE_NEXT;
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	capture_body(ex->capture, LINK_REQUEST_BODY, piece->data, piece->len);
	return STAGE_NEXT;
}

static enum stage_result on_response(struct exchange *ex, struct head *head)
{
	if (head->status >= 200)
		capture_head(ex->capture, LINK_RESPONSE_HEADERS, &head->fields);
	return STAGE_NEXT;
}

static enum stage_result on_response_body(struct exchange *ex, struct piece *piece)
{
	capture_body(ex->capture, LINK_RESPONSE_BODY, piece->data, piece->len);
	return STAGE_NEXT;
}

static void on_over(struct exchange *ex)
{
	capture_finish(ex->capture, &ex->report);
}

static void on_forget(struct exchange *ex)
{
	capture_free(ex->capture);
	ex->capture = NULL;
}

const struct stage stage_capture = {
	.name = "capture",
	.role = STAGE_OBSERVES,
	.start = on_start,
	.request_body = on_request_body,
	.response = on_response,
	.response_body = on_response_body,
	.over = on_over,
	.forget = on_forget,
};
