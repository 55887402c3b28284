/* SPDX-License-Identifier: MIT */
/* The files that every sandbox has: the host's, the kernel's, the session's and netpawl's own. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "launch/plan_internal.h"
#include "launch/resolv_conf.h"

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
int windows_cover(struct planner *p, const char *source, const char *dest)
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

int system_add(struct planner *p)
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

/* Where no server is known that could be reached, programs see the host's, and are told that nobody answers. */
static int resolver_add(struct planner *p)
{
	const char *at = p->host->resolver;
	struct buf *own = &p->plan->resolv_conf;
	int r = p->request->way_out && p->host->resolv_conf
			? resolv_conf_make(p->host->resolv_conf, p->host->upstream, own)
			: 0;

	if (r == 1)
		return step_add(p,
				(struct step){ .kind = STEP_FILE, .dest = at ? at : "/etc/resolv.conf", .file = own });
	if (r == -ENOMEM || !at)
		return r == -ENOENT ? 0 : r;
	return step_add(p, (struct step){ .kind = STEP_RO_BIND, .source = at, .dest = at });
}

int kernel_add(struct planner *p)
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
		/* The host's root makes it, which is nobody inside. */
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

	return r == 0 ? resolver_add(p) : r;
}

/* A user that only the daemon knows of still needs a name: programs ask for it, and for its home. */
int accounts_add(struct planner *p)
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

int workspace_add(struct planner *p)
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
int notices_add(struct planner *p)
{
	const struct plan_request *rq = p->request;

	return rq->notices ? step_add(p, (struct step){ .kind = STEP_RO_BIND,
							.source = rq->notices,
							.dest = PLAN_NOTICES,
							.device = rq->notices_device,
							.inode = rq->notices_inode })
			   : 0;
}

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

/* For everybody in the sandbox, and nobody's to change. */
int placeholders_add(struct planner *p)
{
	const struct placeholders *placeholders = p->request->placeholders;
	int r = 0;

	for (unsigned i = 0; r == 0 && placeholders && i < PLACEHOLDERS_FILES; i++)
		if (placeholders->files[i].len)
			r = step_add(p, (struct step){ .kind = STEP_FILE,
						       .dest = placeholders_path(i),
						       .file = &placeholders->files[i] });
	return r;
}

int trust_add(struct planner *p)
{
	const struct trust *trust = p->request->trust;
	const struct step own[] = {
		{ .kind = STEP_FILE, .dest = TRUST_DIR "/" TRUST_CA, .file = trust ? &trust->ca : NULL },
		{ .kind = STEP_SYMLINK, .source = TRUST_CA, .dest = TRUST_DIR "/" TRUST_CA_LINK },
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
