/* SPDX-License-Identifier: MIT */
/* How the stages of an exchange are gone through. */
#include "inspect/stage.h"

#include "inspect/exchange.h"

static enum stage_result stage_counts(const struct stage *stage, enum stage_result result)
{
	return stage->role == STAGE_OBSERVES ? STAGE_NEXT : result;
}

static unsigned stages_count(void)
{
	unsigned n = 0;

	while (stages[n])
		n++;
	return n;
}

void stage_wants(struct exchange *ex, const struct stage *stage, enum stage_way way, enum stage_want want)
{
	struct stage_bodies *bodies = &ex->bodies[way];

	for (unsigned i = 0; stages[i]; i++)
		if (stages[i] == stage)
			bodies->wanted |= 1u << i;
	bodies->resized |= want == WANT_REPLACE;
}

enum stage_result stages_go_on(struct exchange *ex)
{
	while (stages[ex->stage]) {
		const unsigned at = ex->stage++;
		const struct stage *stage = stages[at];
		enum stage_result r = stage->start ? stage_counts(stage, stage->start(ex)) : STAGE_NEXT;

		if (r != STAGE_OVER && ex->bodies[WAY_REQUEST].wanted & 1u << at &&
		    stages_body_late(ex, at) == STAGE_OVER)
			return STAGE_OVER;
		if (r != STAGE_NEXT)
			return r;
	}
	return STAGE_NEXT;
}

enum stage_result stages_response(struct exchange *ex, struct head *head)
{
	for (unsigned i = stages_count(); i-- > 0;)
		if (stages[i]->response && stage_counts(stages[i], stages[i]->response(ex, head)) != STAGE_NEXT)
			return STAGE_OVER;
	return STAGE_NEXT;
}

enum stage_result stages_rejudge(struct exchange *ex, enum np_reason by)
{
	for (unsigned i = 0; i < ex->stage && stages[i]; i++)
		if (stages[i]->rejudge && stage_counts(stages[i], stages[i]->rejudge(ex, by)) != STAGE_NEXT)
			return STAGE_OVER;
	return STAGE_NEXT;
}

void stages_over(struct exchange *ex)
{
	for (unsigned i = 0; stages[i]; i++)
		if (stages[i]->over)
			stages[i]->over(ex);
}

void stages_forget(struct exchange *ex)
{
	for (unsigned i = 0; stages[i]; i++)
		if (stages[i]->forget)
			stages[i]->forget(ex);
	stages_body_forget(ex);
}

enum stage_result stages_connect(struct tunnel *tunnel, unsigned *at)
{
	while (stages[*at]) {
		const struct stage *stage = stages[(*at)++];
		enum stage_result r = stage->connect ? stage_counts(stage, stage->connect(tunnel)) : STAGE_NEXT;

		if (r != STAGE_NEXT)
			return r;
	}
	return STAGE_NEXT;
}
