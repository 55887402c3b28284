/* SPDX-License-Identifier: MIT */
/*
 * Parents: sandboxes that container engines are told to make their containers' cgroups in (--cgroup-parent). What is born there is
 * confined from its first instruction on. Its cgroup always has the same name, so that a container that an engine starts again after the parent went
 * (a reboot) is born below the slice and in no sandbox, where it has no network until the session has its parent again.
 *
 * For engines that leave cgroups to systemd it has the name of a slice of systemd's below ours, which other engines do not take. So a
 * session has one of either kind. It stays while it is empty, until it is removed or its session ends. Each cgroup that turns up right below it is
 * a container, and becomes a sandbox of its own in it, which ends with the container. The gate goes by the stricter of the two, and by
 * the inner one where they are alike: so a container is held by its parent until it is a sandbox, and not looser afterwards.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "session/service_internal.h"

#define PREFIX "netpawl-"
#define SUFFIX ".slice"

/* To systemd a dash is a level of the tree, and it has no @ or + in such names. The hash keeps apart what that makes alike. */
void parent_name(const struct session_name *name, bool systemd, char ret[static PARENT_NAME_SIZE])
{
	int n = snprintf(ret, PARENT_NAME_SIZE, PREFIX "%s.%016" PRIx64 "%s", name->text,
			 hash_mark(name->text, strlen(name->text)), systemd ? SUFFIX : "");

	ret[sizeof(PREFIX) - 1 + name->user_len] = '.';
	for (char *c = ret + sizeof(PREFIX) - 1; c < ret + n; c++)
		if (strchr("-@+", *c))
			*c = '_';
}

bool parent_is(const struct session_name *session, const char *path)
{
	const char *name = strrchr(path, '/');
	char wanted[PARENT_NAME_SIZE];

	parent_name(session, true, wanted);
	if (!name || strncmp(name + 1, wanted, strlen(wanted) - strlen(SUFFIX)) != 0)
		return false;
	name += 1 + strlen(wanted) - strlen(SUFFIX);
	return !*name || !strcmp(name, SUFFIX);
}

bool parent_holds(const struct session_name *session, const char *path)
{
	const char *name = strrchr(path, '/');
	char parent[FS_PATH_SIZE];

	return name && fs_path(parent, "%.*s", (int)(name - path), path) == 0 && parent_is(session, parent);
}

/* -- containers ------------------------------------------------------------------ */

/* Its first process enters its network namespace after it is in its cgroup, and before it becomes the container's command; until the
 * inspectors listen there, what they should see is refused. 0: they do, or it is the host's so far. */
static int born_join(struct service *service, struct sandbox *sandbox, struct failure *ret_failure)
{
	int r = sandbox->pub.own_network ? 0 : own_network_join(service, sandbox, NULL, ret_failure);

	if (r && sandbox->pub.own_network && !sandbox->pub.adopted) /* one too many */
		sandbox_abandon(service, sandbox);
	return r;
}

void born_look(struct service *service, struct sandbox *sandbox)
{
	struct failure ignored;

	born_join(service, sandbox, &ignored);
}

bool service_newborns_look(struct service *service)
{
	_verb_ struct service *verb = verb_begin(service);
	struct sandbox *sandbox, *next;
	bool left;

	if (service->config.now_ns() >= service->newborns_ns)
		return false;
	left = restarted_look(service, false);
	for (sandbox = TAILQ_FIRST(&service->all); sandbox; sandbox = next) {
		struct failure ignored;

		next = TAILQ_NEXT(sandbox, of_all);
		if ((!sandbox->pub.born && !sandbox->again) || sandbox->pub.own_network || sandbox->dying ||
		    sandbox->stage != SANDBOX_RUNS)
			continue;
		left = born_join(service, sandbox, &ignored) != 0 || !sandbox->pub.own_network || left;
	}
	return left;
}

struct births {
	struct service *service;
	struct session_name session;
};

/* One that cannot be made a sandbox, or not yet, stays in that of its parent: it has the mode, and the inspector listens nowhere
 * for it. */
static int child_look(void *data, const struct gate_cgroup *cgroup)
{
	const struct sandbox_order order = { .kind = SANDBOX_BORN, .cgroup = cgroup->path };
	const struct births *births = data;
	struct service *service = births->service;
	const struct sandbox_info *sandbox;
	struct failure ignored;

	if (!sandbox_by_cgroup(service, cgroup->id) &&
	    !sandbox_make(service, births->session.text, &order, "daemon", &sandbox, &ignored))
		service->newborns_ns = service->config.now_ns() + NP_NEWBORN_MS * 1000000ull;
	return 0;
}

void parent_look(struct service *service, struct sandbox *parent)
{
	struct births births = { service, parent->pub.session };
	const struct gate_cgroup cgroup = parent->pub.cgroup; /* what it makes of the first may end the parent */
	const struct gate *gate = &service->config.gate;

	if (gate->children_each)
		gate->children_each(gate->ctx, &cgroup, child_look, &births);
}

/* Whoever starts a container has put files there, to be mounted in it. What does not go stays: it does no harm. */
void parent_forget(struct service *service, const char *id)
{
	_closedir_ DIR *dir = NULL;
	char path[FS_PATH_SIZE];

	if (!service->config.containers_dir || fs_path(path, "%s/%s", service->config.containers_dir, id) < 0)
		return;
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));)
		unlinkat(dirfd(dir), e->d_name, 0);
	rmdir(path);
}

bool born_find(struct service *service, const char *session, const char *path, const struct sandbox_info **ret,
	       int *ret_error, struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct gate_cgroup cgroup;
	struct sandbox *sandbox;

	if (gate->cgroup_find(gate->ctx, path, &cgroup))
		return false;
	/* The daemon may not have been told of it yet. */
	for (sandbox = TAILQ_FIRST(&service->all); sandbox; sandbox = TAILQ_NEXT(sandbox, of_all))
		if (sandbox->pub.parent && parent_holds(&sandbox->pub.session, cgroup.path)) {
			parent_look(service, sandbox);
			break;
		}
	sandbox = sandbox_by_cgroup(service, cgroup.id);
	if (!sandbox || !sandbox->pub.born)
		return false;
	*ret_error = 0;
	if (strcmp(sandbox->pub.session.text, session) != 0)
		*ret_error = service_fail(ret_failure, NP_R_BAD_CGROUP, -EEXIST, "%s was born in a parent of %s", path,
					  sandbox->pub.session.text);
	if (!*ret_error)
		*ret_error = born_join(service, sandbox, ret_failure);
	*ret = &sandbox->pub;
	return true;
}

static struct sandbox *parent_find(struct service *service, const struct session_name *name, bool systemd)
{
	const struct session *session = session_find(service, name->text);
	char wanted[PARENT_NAME_SIZE];
	struct sandbox *sandbox = session ? TAILQ_FIRST(&session->sandboxes) : NULL;

	parent_name(name, systemd, wanted);
	while (sandbox && (!sandbox->pub.parent || strcmp(strrchr(sandbox->pub.cgroup.path, '/') + 1, wanted) != 0 ||
			   sandbox->dying || sandbox->stage != SANDBOX_RUNS || sandbox_is_gone(service, sandbox)))
		sandbox = TAILQ_NEXT(sandbox, of_session);
	return sandbox;
}

int service_sandbox_parent(struct service *service, const char *session, bool systemd, const char *who,
			   const struct sandbox_info **ret, struct failure *ret_failure)
{
	_verb_ struct service *verb = verb_begin(service);
	struct session_name name;
	struct sandbox *sandbox;
	int r = service_name_read(session, &name, ret_failure);

	if (r)
		return r;
	sandbox = parent_find(service, &name, systemd);
	if (!sandbox)
		r = sandbox_make(service, name.text,
				 &(struct sandbox_order){ .kind = SANDBOX_PARENT, .systemd = systemd }, who, ret,
				 ret_failure);
	sandbox = sandbox ? sandbox : r ? NULL : sandbox_by_id(service, (*ret)->id);
	if (!sandbox)
		return r;
	sandbox_touch(service, sandbox);
	*ret = &sandbox->pub;
	parent_look(service, sandbox); /* watches it from now on */
	return starter_note(service, &name, who, ret_failure);
}
