/* SPDX-License-Identifier: MIT */
/*
 * Where inspectors listen for sandboxes in other network namespaces than the host's. The kernel side knows the namespaces (and finds
 * those of a predecessor); here are the sockets in them: made, given to every worker, and named to the gate while one is ready.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "supervisor/supervisor_internal.h"

#define UNSERVED_TRIES 8 /* namespaces that are tried again in vain in one look: a process each */

struct listening {
	LIST_ENTRY(listening) next;
	const struct kernel_netns *netns;
	struct inspector_sockets sockets;
};

static void listening_free(struct listening *l)
{
	LIST_REMOVE(l, next);
	inspector_sockets_close(&l->sockets);
	free(l);
}

static void listening_steer(const struct supervisor *w, const struct listening *l)
{
	if (kernel_inspector_set(w->config.kernel, l->netns, w->steering ? &l->sockets : NULL) < 0)
		log_error("the gate does not take the inspector of a sandbox's own network namespace");
}

/* A worker that does not take them all is ended. */
static void listening_send(struct process *p, const struct listening *l)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct link_listen message = { .netns = l->netns->cookie, .dns = i & 1, .v6 = i >> 1 };
		int fd = message.dns ? l->sockets.dns[message.v6] : l->sockets.tcp[message.v6];

		if (fd >= 0)
			process_send(p, LINK_LISTEN, &message, sizeof(message), fd);
	}
}

void namespaces_send(struct process *p)
{
	const struct listening *l;

	LIST_FOREACH(l, &p->supervisor->namespaces, next)
		listening_send(p, l);
}

void namespaces_steer(struct supervisor *w)
{
	const struct listening *l;

	LIST_FOREACH(l, &w->namespaces, next)
		listening_steer(w, l);
}

/* Takes the sockets, also when it fails. */
static int listening_add(struct supervisor *w, const struct kernel_netns *netns, struct inspector_sockets *sockets)
{
	struct listening *l = malloc(sizeof(*l));

	if (!l) {
		inspector_sockets_close(sockets);
		return -ENOMEM;
	}
	*l = (struct listening){ .netns = netns, .sockets = *sockets };
	LIST_INSERT_HEAD(&w->namespaces, l, next);
	for (unsigned i = 0; i < w->config.count; i++)
		if (w->processes[i].pid)
			listening_send(&w->processes[i], l);
	if (w->steering)
		listening_steer(w, l);
	return 0;
}

static bool has_listeners(const struct supervisor *w, const struct kernel_netns *netns)
{
	const struct listening *l = LIST_FIRST(&w->namespaces);

	while (l && l->netns != netns)
		l = LIST_NEXT(l, next);
	return l;
}

/* Also where nobody is led to any more, since the sandbox was raised: how far that one is, is not known here yet. */
void namespaces_listen(struct supervisor *w)
{
	const char *cgroup = kernel_inspector_cgroup(w->config.kernel);
	const bool anew = LIST_EMPTY(&w->namespaces), first = !w->unserved;
	const struct kernel_netns *netns;

	w->unserved = 0;
	for (netns = kernel_netns_next(w->config.kernel, NULL); netns;
	     netns = kernel_netns_next(w->config.kernel, netns)) {
		struct inspector_sockets sockets;
		int r = 0;

		if (!anew && has_listeners(w, netns))
			continue;
		if (first || w->unserved < UNSERVED_TRIES)
			r = netns_listen_in(cgroup, netns->fd, &sockets);
		else
			r = -EAGAIN; /* they lack the same as the others: the next look tries again */
		if (r == 0)
			r = listening_add(w, netns, &sockets);
		if (r == 0)
			continue;
		w->unserved++; /* what it should see is refused */
		if (first)
			log_error("the inspector cannot listen in a sandbox's own network namespace: %s", strerror(-r));
	}
}

unsigned supervisor_networks_check(struct supervisor *w)
{
	bool tried;
	unsigned failed = kernel_netns_mend(w->config.kernel, &tried);

	if (tried || w->unserved)
		namespaces_listen(w);
	return failed + w->unserved;
}

void namespaces_unlisten(struct supervisor *w)
{
	struct listening *l;

	while ((l = LIST_FIRST(&w->namespaces)))
		listening_free(l);
}

/* With a way out it is steered in any case: a raise to PROXIED does not wait for listeners. The devices are there before the gate looks
 * for them, and that is done before anybody is in there. */
int namespace_make(void *ctx, uint64_t cgroup_id, bool steered, bool way_out)
{
	struct supervisor *w = ctx;
	struct inspector_sockets sockets;
	const struct kernel_netns *netns;
	int fd, r;

	steered = steered || way_out;
	r = netns_new(kernel_inspector_cgroup(w->config.kernel), steered, &fd, &sockets);
	if (r < 0)
		return r;
	r = !descriptors_left(fd, NP_DESCRIPTORS_RESERVE) ? -EMFILE
	    : way_out					  ? way_out_make(&w->ways_out, cgroup_id, fd)
							  : 0;
	if (r < 0)
		close(fd);
	else
		r = kernel_netns_add(w->config.kernel, cgroup_id, fd, way_out, &netns);
	if (r < 0) {
		way_out_drop(&w->ways_out, cgroup_id);
		inspector_sockets_close(&sockets);
		return r;
	}
	r = steered ? listening_add(w, netns, &sockets) : 0;
	if (r == 0 && way_out)
		r = kernel_devices_look(w->config.kernel);
	if (r < 0)
		namespace_drop(w, cgroup_id);
	return r;
}

/* The one that a file leads to, for a cgroup that nobody is in, or only who lives there. A home that was left for it is forgotten: the
 * containers of a pod that gets another network are gone. *ret_fd -1: it is the home already. */
static int namespace_open(struct supervisor *w, const struct gate_cgroup *cgroup, const char *path, int *ret_fd)
{
	const struct kernel_netns *home = kernel_netns_find(w->config.kernel, cgroup->id);
	_close_ int fd = -1, seen = -1;
	uint64_t inode, there = 0, cookie;
	int r = netns_open(path, &fd, &inode);

	if (r < 0)
		return r;
	*ret_fd = -1;
	if (home && home->inode == inode)
		return 0;
	r = kernel_netns_look(w->config.kernel, cgroup, &cookie, &seen);
	if (r == 0 && seen >= 0)
		r = netns_inode(seen, &there);
	if (r < 0)
		return r;
	if (cookie && there != inode)
		return -EXDEV;
	if (home)
		namespace_drop(w, cgroup->id);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Whatever its mode is: a raise to PROXIED does not wait for listeners. */
int namespace_join(void *ctx, const struct gate_cgroup *cgroup, const char *path)
{
	struct supervisor *w = ctx;
	struct kernel *kernel = w->config.kernel;
	const struct kernel_netns *netns = path ? NULL : kernel_netns_find(kernel, cgroup->id);
	struct inspector_sockets sockets;
	uint64_t cookie;
	int fd = -1, r = path	 ? namespace_open(w, cgroup, path, &fd)
			 : netns ? 0
				 : kernel_netns_look(kernel, cgroup, &cookie, &fd);

	if (r < 0 || fd < 0)
		return r;
	if (!descriptors_left(fd, NP_DESCRIPTORS_RESERVE)) {
		close(fd);
		return -EMFILE;
	}
	r = kernel_netns_add(kernel, cgroup->id, fd, true, &netns);
	if (r < 0 || netns->sandboxes > 1) /* others of the pod live there already */
		return r;
	r = netns_listen_in(kernel_inspector_cgroup(kernel), netns->fd, &sockets);
	if (r == 0)
		r = listening_add(w, netns, &sockets);
	if (r < 0)
		kernel_netns_remove(kernel, cgroup->id);
	return r;
}

bool namespace_lost(void *ctx, uint64_t cgroup_id)
{
	const struct supervisor *w = ctx;

	return kernel_netns_lost(w->config.kernel, cgroup_id);
}

int namespace_find(void *ctx, uint64_t cgroup_id, struct sandbox_netns *ret)
{
	const struct supervisor *w = ctx;
	const struct kernel_netns *netns = kernel_netns_find(w->config.kernel, cgroup_id);

	if (!netns)
		return -ENOENT;
	snprintf(ret->path, sizeof(ret->path), "/proc/%d/fd/%d", (int)getpid(), netns->fd);
	ret->inode = netns->inode;
	ret->wired = netns->wired;
	return 0;
}

void namespace_drop(struct supervisor *w, uint64_t cgroup_id)
{
	const struct kernel_netns *netns = kernel_netns_find(w->config.kernel, cgroup_id);
	struct link_listen message = { .netns = netns ? netns->cookie : 0 };
	struct listening *l, *next;

	for (l = netns && netns->sandboxes == 1 ? LIST_FIRST(&w->namespaces) : NULL; l; l = next) {
		next = LIST_NEXT(l, next);
		if (l->netns != netns)
			continue;
		for (unsigned i = 0; i < w->config.count; i++)
			process_send(&w->processes[i], LINK_UNLISTEN, &message, sizeof(message), -1);
		listening_free(l);
	}
	way_out_drop(&w->ways_out, cgroup_id);
	kernel_netns_remove(w->config.kernel, cgroup_id);
}
