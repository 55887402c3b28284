/* SPDX-License-Identifier: MIT */
/* How the stages of an exchange are gone through. */
#include "inspect/stage.h"

#include "inspect/exchange.h"

static enum stage_result stage_counts(const struct stage *stage, enum stage_result result)
{
	return stage->role == STAGE_OBSERVES ? STAGE_NEXT : result;
}

enum stage_result stages_go_on(struct exchange *ex)
{
	while (stages[ex->stage]) {
		const struct stage *stage = stages[ex->stage++];
		enum stage_result r = stage->start ? stage_counts(stage, stage->start(ex)) : STAGE_NEXT;

		if (r != STAGE_NEXT)
			return r;
	}
	return STAGE_NEXT;
}

enum stage_result stages_request_body(struct exchange *ex, const char *data, size_t len)
{
	for (const struct stage *const *s = stages; *s; s++)
		if ((*s)->request_body && stage_counts(*s, (*s)->request_body(ex, data, len)) != STAGE_NEXT)
			return STAGE_OVER;
	return STAGE_NEXT;
}

enum stage_result stages_response(struct exchange *ex, const struct head *head)
{
	for (const struct stage *const *s = stages; *s; s++)
		if ((*s)->response && stage_counts(*s, (*s)->response(ex, head)) != STAGE_NEXT)
			return STAGE_OVER;
	return STAGE_NEXT;
}

enum stage_result stages_response_body(struct exchange *ex, const char *data, size_t len)
{
	for (const struct stage *const *s = stages; *s; s++)
		if ((*s)->response_body && stage_counts(*s, (*s)->response_body(ex, data, len)) != STAGE_NEXT)
			return STAGE_OVER;
	return STAGE_NEXT;
}

void stages_over(struct exchange *ex)
{
	for (const struct stage *const *s = stages; *s; s++)
		if ((*s)->over)
			(*s)->over(ex);
}
