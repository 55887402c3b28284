/* SPDX-License-Identifier: MIT */
#include "launch/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "vocab/limits.h"
#include "launch/plan_internal.h"

const char *step_name(enum step_kind kind)
{
	static const char *const names[] = {
		[STEP_BIND] = "bind",	    [STEP_RO_BIND] = "ro-bind",
		[STEP_SYMLINK] = "symlink", [STEP_PROC] = "proc",
		[STEP_DEVPTS] = "devpts",   [STEP_DEVICE] = "device",
		[STEP_DIR] = "dir",	    [STEP_TMPFS] = "tmpfs",
		[STEP_FILE] = "file",	    [STEP_REMOUNT_RO] = "remount-ro",
	};

	return names[kind];
}

int plan_refuse(struct planner *p, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->problem, PLAN_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	return error;
}

static int step_append(struct planner *p, struct step step)
{
	if (ARRAY_RESERVE(p->plan->steps, p->size, p->plan->n_steps + 1) < 0)
		return -ENOMEM;
	p->plan->steps[p->plan->n_steps++] = step;
	return 0;
}

/* True when a step before gives this directory, or everything around it. */
static bool directory_is_given(const struct planner *p, const char *path)
{
	for (size_t i = 0; i < p->plan->n_steps; i++) {
		const struct step *step = &p->plan->steps[i];
		bool whole = step->kind == STEP_BIND || step->kind == STEP_RO_BIND || step->kind == STEP_PROC;

		if (!strcmp(step->dest, path) || (whole && path_below(path, step->dest)))
			return true;
	}
	return false;
}

int step_add(struct planner *p, struct step step)
{
	for (const char *slash = strchr(step.dest + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *path = arena_text(p->plan->arena, step.dest, (size_t)(slash - step.dest));
		int r = !path ? -ENOMEM
			: directory_is_given(p, path)
				? 0
				: step_append(p, (struct step){ .kind = STEP_DIR, .dest = path, .mode = 0755 });

		if (r < 0)
			return r;
	}
	return step_append(p, step);
}

int steps_add(struct planner *p, const struct step *steps, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = step_add(p, steps[i]);
	return r;
}

/* The caller's directory, when it is the same one inside. */
static bool directory_is_seen(const struct plan_request *rq, const struct host *host)
{
	for (size_t i = 0; i < rq->n_binds; i++)
		if (!strcmp(rq->binds[i].source, rq->binds[i].dest) && path_below(rq->cwd, rq->binds[i].source))
			return true;
	for (size_t i = 0; i < host->n_system; i++)
		if (host->system[i].kind == HOST_DIRECTORY && path_below(rq->cwd, host->system[i].path))
			return true;
	return !strcmp(rq->cwd, "/");
}

static int steps_make(struct planner *p)
{
	const struct plan_request *rq = p->request;
	int r = system_add(p);

	if (r == 0)
		r = kernel_add(p);
	if (r == 0)
		r = accounts_add(p);
	if (r == 0)
		r = workspace_add(p);
	for (size_t i = 0; i < rq->n_binds && r == 0; i++)
		r = bind_add(p, i);
	if (r == 0)
		r = trust_add(p);
	if (r == 0)
		r = placeholders_add(p);
	if (r == 0)
		r = notices_add(p);
	/* The root itself is in memory; nobody has a reason to write there. */
	return r == 0 ? step_add(p, (struct step){ .kind = STEP_REMOUNT_RO, .dest = "/" }) : r;
}

static const char *directory_choose(const struct plan_request *request, const struct host *host)
{
	return request->directory		  ? request->directory
	       : directory_is_seen(request, host) ? request->cwd
						  : PLAN_WORKSPACE;
}

static int plan_begin(const struct plan_request *request, struct plan *ret)
{
	*ret = (struct plan){
		.isolation = request->isolation,
		.kept = request->kept,
		.identity = request->identity,
		.session = request->session,
		.argv = request->argv,
		.limits = request->limits,
		.passwd = BUF_INIT(NP_PLAN_MEMORY),
		.resolv_conf = BUF_INIT(NP_PLAN_MEMORY),
		.group = BUF_INIT(NP_PLAN_MEMORY),
	};
	return arena_new(NP_PLAN_MEMORY, &ret->arena);
}

int plan_make_command(const struct plan_request *request, const struct host *host, struct plan *ret,
		      char problem[static PLAN_PROBLEM_SIZE])
{
	int r = plan_begin(request, ret);

	if (r == 0)
		r = environment_make(request, ret->arena, &ret->environ);
	ret->directory = directory_choose(request, host);
	if (r == -ENOMEM)
		snprintf(problem, PLAN_PROBLEM_SIZE, "the command takes more memory than there is for one");
	/* The policy may have changed since the sandbox was made. */
	for (size_t i = 0; r == 0 && i < request->n_binds; i++)
		if (!bind_is_permitted(request->permits, request->n_permits, &request->binds[i]))
			r = bind_refuse(&request->binds[i], problem);
	if (r < 0)
		plan_free(ret);
	return r;
}

int plan_make(const struct plan_request *request, const struct host *host, struct plan *ret,
	      char problem[static PLAN_PROBLEM_SIZE])
{
	struct planner p = { .request = request, .host = host, .plan = ret, .problem = problem };
	int r = plan_begin(request, ret);

	*problem = '\0';
	if (r == 0 && request->isolation == ISOLATION_NONE && request->n_binds)
		r = plan_refuse(&p, -EINVAL, "--bind needs the isolation that --isolation none turns off");
	if (r == 0)
		r = environment_make(request, ret->arena, &ret->environ);
	if (r == 0 && request->isolation == ISOLATION_NONE)
		ret->directory = request->directory;
	if (r == 0 && request->isolation == ISOLATION_FULL && identity_has_root(request->identity) &&
	    !request->identity->root)
		r = plan_refuse(&p, -EINVAL,
				"root in a sandbox is a user of the session's own outside, and there is none");
	if (r == 0 && request->isolation == ISOLATION_FULL) {
		r = steps_make(&p);
		ret->directory = directory_choose(request, host);
	}
	if (r == -ENOMEM)
		plan_refuse(&p, r, "the plan takes more memory than there is for one");
	if (r < 0)
		plan_free(ret);
	return r;
}

void plan_free(struct plan *plan)
{
	buf_free(&plan->passwd);
	buf_free(&plan->resolv_conf);
	buf_free(&plan->group);
	free(plan->environ);
	free(plan->steps);
	arena_free(plan->arena);
	*plan = (struct plan){ 0 };
}
