/* SPDX-License-Identifier: MIT */
/* What the rule wants of the exchange in its event. */
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"

static enum stage_result on_start(struct exchange *ex)
{
	capture_head(ex->capture, LINK_REQUEST_HEADERS, &ex->head.fields);
	return STAGE_NEXT;
}

static enum stage_result on_request_body(struct exchange *ex, const char *data, size_t len)
{
	capture_body(ex->capture, LINK_REQUEST_BODY, data, len);
	return STAGE_NEXT;
}

static enum stage_result on_response(struct exchange *ex, const struct head *head)
{
	capture_head(ex->capture, LINK_RESPONSE_HEADERS, &head->fields);
	return STAGE_NEXT;
}

static enum stage_result on_response_body(struct exchange *ex, const char *data, size_t len)
{
	capture_body(ex->capture, LINK_RESPONSE_BODY, data, len);
	return STAGE_NEXT;
}

static void on_over(struct exchange *ex)
{
	capture_finish(ex->capture, &ex->report);
}

const struct stage stage_capture = {
	.name = "capture",
	.role = STAGE_OBSERVES,
	.start = on_start,
	.request_body = on_request_body,
	.response = on_response,
	.response_body = on_response_body,
	.over = on_over,
};
