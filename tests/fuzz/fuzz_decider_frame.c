/* SPDX-License-Identifier: MIT */
/* Random bytes as a line of a decider: what is taken is something that a decider may say, and can be shown. */
#include "decider/frame.c"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *problem = NULL;
	struct frame frame;

	if (frame_read((const char *)data, size, &frame, &problem) < 0) {
		if (!problem)
			abort();
		return 0;
	}
	if (frame.type == FRAME_ANSWER && (!decision_is_valid(&frame.decision) || frame.decision.kind == DECISION_NONE))
		abort();
	if (frame.type == FRAME_ANSWER) { /* what it says is about something that it was asked, and it says it once */
		const bool needs = frame.decision.kind == DECISION_NEED_BODY;
		static struct unanswered all;

		all.n = 0;
		if (unanswered_need_body(&all, frame.decision.id) || unanswered_take(&all, frame.decision.id) ||
		    unanswered_add(&all, frame.decision.id) < 0)
			abort();
		if (needs &&
		    (!unanswered_need_body(&all, frame.decision.id) || unanswered_need_body(&all, frame.decision.id)))
			abort();
		if (!unanswered_take(&all, frame.decision.id) || unanswered_need_body(&all, frame.decision.id))
			abort();
	}
	return 0;
}
