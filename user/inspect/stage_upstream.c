/* SPDX-License-Identifier: MIT */
/* On to the origin: exchange_upstream_ready() or _failed() follows, perhaps at once. */
#include "inspect/exchange.h"
#include "inspect/stage.h"

static enum stage_result on_start(struct exchange *ex)
{
	upstream_get(ex, ex->head.upgrade != NULL);
	return STAGE_OVER; /* of the request's way: the exchange may be no more */
}

const struct stage stage_upstream = { .name = "upstream", .role = STAGE_ANSWERS, .start = on_start };
