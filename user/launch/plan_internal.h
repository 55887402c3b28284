/* SPDX-License-Identifier: MIT */
/* Parts of plan_make(). What returns int returns 0 or a negative errno, with words in planner.problem where there are any. */
#pragma once

#include "launch/plan.h"

struct planner {
	const struct plan_request *request;
	const struct host *host;
	struct plan *plan;
	size_t size; /* of plan->steps */
	char *problem;
};

/* plan.c */
__attribute__((format(printf, 3, 4))) int plan_refuse(struct planner *p, int error, const char *fmt, ...);
int step_add(struct planner *p, struct step step); /* with the directories on the way to its dest */
int steps_add(struct planner *p, const struct step *steps, size_t n);

/* plan_files.c */
int system_add(struct planner *p);
int kernel_add(struct planner *p);
int accounts_add(struct planner *p);
int workspace_add(struct planner *p);
int notices_add(struct planner *p);
int placeholders_add(struct planner *p);
int trust_add(struct planner *p);
int windows_cover(struct planner *p, const char *source, const char *dest);

/* plan_binds.c */
bool path_is_plain(const char *path); /* absolute, and without dots */
bool bind_is_permitted(const struct permit *permits, size_t n, const struct bind *bind);
int bind_refuse(const struct bind *bind, char problem[static PLAN_PROBLEM_SIZE]); /* -EACCES */
int bind_add(struct planner *p, size_t index);

/* environment.c. The array is the caller's to free, the words in it are the arena's and the request's. 0 or -ENOMEM. */
int environment_make(const struct plan_request *request, struct arena *arena, char ***ret);
