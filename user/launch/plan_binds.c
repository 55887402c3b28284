/* SPDX-License-Identifier: MIT */
/* What --bind adds, as far as the policy lets it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/plan_internal.h"

bool path_is_plain(const char *path)
{
	if (*path != '/' || strstr(path, "//") || strlen(path) >= 4000)
		return false;
	for (const char *part = path; *part; part += strcspn(part, "/")) {
		part++;
		if (!strcmp(part, ".") || !strcmp(part, "..") || !strncmp(part, "./", 2) || !strncmp(part, "../", 3))
			return false;
	}
	return path[1] && path[strlen(path) - 1] != '/';
}

bool bind_is_permitted(const struct permit *permits, size_t n, const struct bind *bind)
{
	for (size_t i = 0; i < n; i++)
		if (path_below(bind->source, permits[i].path) && (bind->readonly || !permits[i].readonly))
			return true;
	return false;
}

int bind_refuse(const struct bind *bind, char problem[static PLAN_PROBLEM_SIZE])
{
	snprintf(problem, PLAN_PROBLEM_SIZE,
		 "--bind: the policy's sandbox: section does not permit %.200s%s (links are followed first)",
		 bind->source, bind->readonly ? "" : " for writing");
	return -EACCES;
}

/* A mount point in a place that a sandbox writes is a name that it can make a link of, and the mount would be elsewhere. */
static const char *dest_problem(const struct plan_request *rq, size_t index)
{
	static const char *const taken[] = { "/proc", "/sys", "/dev", PLAN_WORKSPACE, TRUST_DIR };
	const char *dest = rq->binds[index].dest;

	if (!path_is_plain(dest))
		return "is no absolute path without dots";
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (path_below(dest, taken[i]) || path_below(taken[i], dest))
			return "is the sandbox's own";
	for (size_t i = 0; i < rq->n_binds; i++)
		if (i != index && path_below(dest, rq->binds[i].dest))
			return "lies in another bind";
	return NULL;
}

int bind_add(struct planner *p, size_t index)
{
	const struct plan_request *rq = p->request;
	const struct bind *bind = &rq->binds[index];
	const char *why = dest_problem(rq, index);
	int r;

	if (why)
		return plan_refuse(p, -EINVAL, "--bind: %.200s %s", bind->dest, why);
	if (!path_is_plain(bind->source))
		return plan_refuse(p, -EINVAL, "--bind: %.200s is no absolute path without dots", bind->source);
	if (!bind_is_permitted(rq->permits, rq->n_permits, bind))
		return bind_refuse(bind, p->problem);
	for (size_t i = 0; i < p->host->n_windows; i++)
		if (path_below(bind->source, p->host->windows[i].path))
			return plan_refuse(p, -EACCES, "--bind: %.200s is never to be seen in a sandbox", bind->source);
	r = step_add(p, (struct step){ .kind = bind->readonly ? STEP_RO_BIND : STEP_BIND,
				       .source = bind->source,
				       .dest = bind->dest,
				       .device = bind->device,
				       .inode = bind->inode });
	return r == 0 ? windows_cover(p, bind->source, bind->dest) : r;
}
