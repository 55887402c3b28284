/* SPDX-License-Identifier: MIT */
/*
 * An exchange is a pipeline of stages, each of which may do one thing to it. The table in stages.c is the pipeline: another
 * stage is a file and a line there.
 */
#ifndef NP_INSPECT_STAGE_H
#define NP_INSPECT_STAGE_H

#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct head;

enum stage_role {
	STAGE_ANSWERS,	/* may answer it, or break it off, in the origin's place */
	STAGE_MODIFIES, /* may change what is passed on, and refuses what it cannot change */
	STAGE_OBSERVES, /* looks, and has no say: what it returns does not count */
};

enum stage_result {
	STAGE_NEXT, /* on to the next stage */
	STAGE_HELD, /* start() only: it waits, and stages_go_on() goes on behind this stage. Its body waits with it */
	STAGE_OVER, /* it was answered or broken off: the exchange is no more */
};

/* Each may be NULL. */
struct stage {
	const char *name;
	enum stage_role role;
	enum stage_result (*start)(struct exchange *exchange); /* its head has come */
	enum stage_result (*request_body)(struct exchange *exchange, const char *data, size_t len);
	enum stage_result (*response)(struct exchange *exchange, const struct head *head); /* the final one */
	enum stage_result (*response_body)(struct exchange *exchange, const char *data, size_t len);
	void (*over)(struct exchange *exchange); /* both sides are done, whatever came before */
};

extern const struct stage *const stages[]; /* NULL behind the last */

/* Calls start() of the stages behind the one that was called last. */
enum stage_result stages_go_on(struct exchange *exchange);
enum stage_result stages_request_body(struct exchange *exchange, const char *data, size_t len);
enum stage_result stages_response(struct exchange *exchange, const struct head *head);
enum stage_result stages_response_body(struct exchange *exchange, const char *data, size_t len);
void stages_over(struct exchange *exchange);

extern const struct stage stage_place, stage_judge, stage_capture, stage_rewrite, stage_upstream, stage_report;

#endif
