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

struct planner {
	const struct plan_request *request;
	const struct host *host;
	struct plan *plan;
	size_t size; /* of plan->steps */
	char *problem;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct planner *p, int error, const char *fmt, ...)
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

/* With the directories on the way to dest. */
static int step_add(struct planner *p, struct step step)
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

static int steps_add(struct planner *p, const struct step *steps, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = step_add(p, steps[i]);
	return r;
}

/* -- files ------------------------------------------------------------------------ */

/* Puts nothing, read-only, over what is at dest. */
static int cover_add(struct planner *p, const char *dest, enum host_kind kind)
{
	const struct step steps[] = { { .kind = STEP_TMPFS, .dest = dest, .mode = 0555, .size = 4096, .over = true },
				      { .kind = STEP_REMOUNT_RO, .dest = dest } };

	if (kind == HOST_DIRECTORY)
		return steps_add(p, steps, ARRAY_SIZE(steps));
	return step_add(p, (struct step){ .kind = STEP_RO_BIND, .source = "/dev/null", .dest = dest, .over = true });
}

/* True when what is around it is covered, and it with that. Of two that are the same the first one counts. */
static bool window_is_covered(const struct host *host, size_t index)
{
	for (size_t i = 0; i < host->n_windows; i++) {
		bool same = !strcmp(host->windows[i].path, host->windows[index].path);

		if (i != index && path_below(host->windows[index].path, host->windows[i].path) && (!same || i < index))
			return true;
	}
	return false;
}

/* Covers the windows that a bind brings along. */
static int windows_cover(struct planner *p, const char *source, const char *dest)
{
	for (size_t i = 0; i < p->host->n_windows; i++) {
		const struct host_path *window = &p->host->windows[i];
		const char *rest = window->path + (strcmp(source, "/") ? strlen(source) : 0);
		_buf_ struct buf at = BUF_INIT(8192);
		const char *path;
		int r;

		if (!path_below(window->path, source) || window_is_covered(p->host, i))
			continue;
		buf_printf(&at, "%s%s", dest, rest);
		path = buf_error(&at) ? NULL : arena_text(p->plan->arena, at.data, at.len);
		r = path ? cover_add(p, path, window->kind) : -ENOMEM;
		if (r < 0)
			return r;
	}
	return 0;
}

static int system_add(struct planner *p)
{
	const struct host *host = p->host;
	int r = 0;

	for (size_t i = 0; i < host->n_system && r == 0; i++) {
		const struct host_path *item = &host->system[i];

		if (item->kind == HOST_LINK) {
			r = step_add(p,
				     (struct step){ .kind = STEP_SYMLINK, .source = item->target, .dest = item->path });
			continue;
		}
		r = step_add(p, (struct step){ .kind = STEP_RO_BIND, .source = item->path, .dest = item->path });
		if (r == 0)
			r = windows_cover(p, item->path, item->path);
	}
	return r;
}

static int kernel_add(struct planner *p)
{
	const bool as_root = identity_has_root(p->request->identity);
	const uint64_t disk = p->request->limits.disk;
	const struct step steps[] = {
		{ .kind = STEP_PROC, .dest = "/proc" },
		{ .kind = STEP_TMPFS, .dest = "/dev", .mode = 0755 },
		{ .kind = STEP_DEVPTS, .dest = "/dev/pts" },
		{ .kind = STEP_SYMLINK, .source = "pts/ptmx", .dest = "/dev/ptmx" },
		{ .kind = STEP_SYMLINK, .source = "/proc/self/fd", .dest = "/dev/fd" },
		{ .kind = STEP_SYMLINK, .source = "/proc/self/fd/0", .dest = "/dev/stdin" },
		{ .kind = STEP_SYMLINK, .source = "/proc/self/fd/1", .dest = "/dev/stdout" },
		{ .kind = STEP_SYMLINK, .source = "/proc/self/fd/2", .dest = "/dev/stderr" },
		{ .kind = STEP_DEVICE, .source = "/dev/null", .dest = "/dev/null" },
		{ .kind = STEP_DEVICE, .source = "/dev/zero", .dest = "/dev/zero" },
		{ .kind = STEP_DEVICE, .source = "/dev/full", .dest = "/dev/full" },
		{ .kind = STEP_DEVICE, .source = "/dev/random", .dest = "/dev/random" },
		{ .kind = STEP_DEVICE, .source = "/dev/urandom", .dest = "/dev/urandom" },
		{ .kind = STEP_DEVICE, .source = "/dev/tty", .dest = "/dev/tty" },
		{ .kind = STEP_TMPFS, .dest = "/dev/shm", .mode = 01777, .size = disk },
		{ .kind = STEP_TMPFS, .dest = "/tmp", .mode = 01777, .size = disk },
		{ .kind = STEP_TMPFS, .dest = "/var/tmp", .mode = 01777, .size = disk },
		/* Who makes it is the host's root, who is nobody inside. */
		{ .kind = STEP_TMPFS, .dest = "/run", .mode = as_root ? 01777 : 0755, .size = disk },
		{ .kind = STEP_SYMLINK, .source = "/run", .dest = "/var/run" },
	};
	const struct host *host = p->host;
	int r = steps_add(p, steps, ARRAY_SIZE(steps));

	for (size_t i = 0; i < host->n_devices && r == 0; i++)
		r = step_add(p, (struct step){ .kind = STEP_DEVICE,
					       .source = host->devices[i].path,
					       .dest = host->devices[i].path,
					       .device = host->devices[i].device,
					       .inode = host->devices[i].inode });

	if (r == 0 && host->resolver)
		r = step_add(p,
			     (struct step){ .kind = STEP_RO_BIND, .source = host->resolver, .dest = host->resolver });
	return r;
}

/* A user that only the daemon knows of still needs a name: programs ask for it, and for its home. */
static int accounts_add(struct planner *p)
{
	const struct identity *identity = p->request->identity;
	struct plan *plan = p->plan;
	int r = 0;

	if (identity->name[0])
		return 0;
	if (p->host->passwd) {
		buf_printf(&plan->passwd, "%s%s:x:%u:%u::%s:/bin/sh\n", p->host->passwd, PLAN_USER,
			   (unsigned)identity->uid, (unsigned)identity->gid, PLAN_WORKSPACE);
		r = step_add(p, (struct step){ .kind = STEP_FILE, .dest = "/etc/passwd", .file = &plan->passwd });
	}
	if (r == 0 && p->host->group) {
		buf_printf(&plan->group, "%s%s:x:%u:\n", p->host->group, PLAN_USER, (unsigned)identity->gid);
		r = step_add(p, (struct step){ .kind = STEP_FILE, .dest = "/etc/group", .file = &plan->group });
	}
	return r < 0 || buf_error(&plan->passwd) || buf_error(&plan->group) ? -ENOMEM : 0;
}

static int workspace_add(struct planner *p)
{
	const struct plan_request *rq = p->request;

	if (!rq->workspace)
		return step_add(
			p, (struct step){
				   .kind = STEP_TMPFS, .dest = PLAN_WORKSPACE, .mode = 0777, .size = rq->limits.disk });
	return step_add(p, (struct step){ .kind = STEP_BIND,
					  .source = rq->workspace,
					  .dest = PLAN_WORKSPACE,
					  .device = rq->workspace_device,
					  .inode = rq->workspace_inode });
}

/* A window into the host's directory: what the daemon writes there later is seen at once. */
static int notices_add(struct planner *p)
{
	const struct plan_request *rq = p->request;

	return rq->notices ? step_add(p, (struct step){ .kind = STEP_RO_BIND,
							.source = rq->notices,
							.dest = PLAN_NOTICES,
							.device = rq->notices_device,
							.inode = rq->notices_inode })
			   : 0;
}

/* -- binds ------------------------------------------------------------------------- */

static bool path_is_plain(const char *path)
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

static bool bind_permitted(const struct plan_request *rq, const struct bind *bind)
{
	for (size_t i = 0; i < rq->n_permits; i++)
		if (path_below(bind->source, rq->permits[i].path) && (bind->readonly || !rq->permits[i].readonly))
			return true;
	return false;
}

static void bind_problem(const struct bind *bind, char problem[static PLAN_PROBLEM_SIZE])
{
	snprintf(problem, PLAN_PROBLEM_SIZE, "--bind: the policy's sandbox: section does not permit %.200s%s",
		 bind->source, bind->readonly ? "" : " for writing");
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

static int bind_add(struct planner *p, size_t index)
{
	const struct plan_request *rq = p->request;
	const struct bind *bind = &rq->binds[index];
	const char *why = dest_problem(rq, index);
	int r;

	if (why)
		return refuse(p, -EINVAL, "--bind: %.200s %s", bind->dest, why);
	if (!path_is_plain(bind->source))
		return refuse(p, -EINVAL, "--bind: %.200s is no absolute path without dots", bind->source);
	if (!bind_permitted(rq, bind)) {
		bind_problem(bind, p->problem);
		return -EACCES;
	}
	for (size_t i = 0; i < p->host->n_windows; i++)
		if (path_below(bind->source, p->host->windows[i].path))
			return refuse(p, -EACCES, "--bind: %.200s is never to be seen in a sandbox", bind->source);
	r = step_add(p, (struct step){ .kind = bind->readonly ? STEP_RO_BIND : STEP_BIND,
				       .source = bind->source,
				       .dest = bind->dest,
				       .device = bind->device,
				       .inode = bind->inode,
				       .bind = true });
	return r == 0 ? windows_cover(p, bind->source, bind->dest) : r;
}

/* -- trust ---------------------------------------------------------------------------- */

/* In memory, and the command's to write: NSS opens a database no other way, and browsers add to it. */
static int nssdb_add(struct planner *p, const struct trust *trust)
{
	const struct step steps[] = {
		{ .kind = STEP_TMPFS, .dest = PLAN_PKI, .mode = 0700, .size = p->request->limits.disk, .own = true },
		{ .kind = STEP_DIR, .dest = PLAN_PKI "/nssdb", .mode = 0700, .own = true },
		{ .kind = STEP_FILE,
		  .dest = PLAN_PKI "/nssdb/cert9.db",
		  .file = &trust->nss_certificates,
		  .own = true },
		{ .kind = STEP_FILE, .dest = PLAN_PKI "/nssdb/key4.db", .file = &trust->nss_keys, .own = true },
	};

	return steps_add(p, steps, ARRAY_SIZE(steps));
}

static int trust_add(struct planner *p)
{
	const struct trust *trust = p->request->trust;
	const struct step own[] = {
		{ .kind = STEP_FILE, .dest = TRUST_DIR "/" TRUST_CA, .file = trust ? &trust->ca : NULL },
		{ .kind = STEP_FILE, .dest = TRUST_DIR "/" TRUST_BUNDLE, .file = trust ? &trust->bundle : NULL },
		{ .kind = STEP_FILE, .dest = TRUST_DIR "/" TRUST_STORE, .file = trust ? &trust->store : NULL },
	};
	int r;

	if (!trust)
		return 0;
	r = steps_add(p, own, ARRAY_SIZE(own));
	if (r == 0 && trust->nss_certificates.len && !p->request->own_nssdb)
		r = nssdb_add(p, trust);
	for (size_t i = 0; i < p->host->n_bundles && r == 0; i++)
		r = step_add(p, (struct step){
					.kind = STEP_FILE, .dest = p->host->bundles[i].path, .file = &trust->bundle });
	return r;
}

/* -- the whole ---------------------------------------------------------------------------- */

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
		if (!bind_permitted(request, &request->binds[i])) {
			r = -EACCES;
			bind_problem(&request->binds[i], problem);
		}
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
		r = refuse(&p, -EINVAL, "--bind needs the isolation that --isolation none turns off");
	if (r == 0)
		r = environment_make(request, ret->arena, &ret->environ);
	if (r == 0 && request->isolation == ISOLATION_NONE)
		ret->directory = request->directory;
	if (r == 0 && request->isolation == ISOLATION_FULL && identity_has_root(request->identity) &&
	    !request->identity->root)
		r = refuse(&p, -EINVAL, "root in a sandbox is a user of the session's own outside, and there is none");
	if (r == 0 && request->isolation == ISOLATION_FULL) {
		r = steps_make(&p);
		ret->directory = directory_choose(request, host);
	}
	if (r == -ENOMEM)
		refuse(&p, r, "the plan takes more memory than there is for one");
	if (r < 0)
		plan_free(ret);
	return r;
}

void plan_free(struct plan *plan)
{
	buf_free(&plan->passwd);
	buf_free(&plan->group);
	free(plan->environ);
	free(plan->steps);
	arena_free(plan->arena);
	*plan = (struct plan){ 0 };
}
