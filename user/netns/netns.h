/* SPDX-License-Identifier: MIT */
/*
 * Network namespaces, and the inspector's sockets in them. A socket stays in the namespace that it was made in, whoever has it
 * later: so the inspectors, which live in the host's, listen in as many as there are.
 *
 * The sockets are made by a process that enters the namespace, hands them over (SCM_RIGHTS) and is gone. It has to be one of
 * its own, for a socket's cgroup, by which the gate knows the inspector's, is that of the process that makes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* On 127.0.0.1 and ::1; -1: there is none. IPv4 first. */
struct inspector_sockets {
	int tcp[2]; /* listeners */
	int dns[2]; /* UDP: the DNS gate's */
};
#define NO_INSPECTOR_SOCKETS ((struct inspector_sockets){ .tcp = { -1, -1 }, .dns = { -1, -1 } })
void inspector_sockets_close(struct inspector_sockets *sockets);

/* In the namespace of the caller. cgroup: the inspector's. */
int netns_listen_here(const char *cgroup, struct inspector_sockets *ret);
/* In that of the descriptor. */
int netns_listen_in(const char *cgroup, int netns, struct inspector_sockets *ret);
/* A new one, with loopback and nothing else; without sockets where nobody will be led to them. It lives as long as somebody
 * has it: the descriptor, a process, a socket. */
int netns_new(const char *cgroup, bool listen, int *ret_netns, struct inspector_sockets *ret);

/* The one that a file leads to, and its number in /proc. -EINVAL: it leads to none, or to the caller's. */
int netns_open(const char *path, int *ret_fd, uint64_t *ret_inode);
int netns_inode(int netns, uint64_t *ret);

/* The kernel's number of the caller's, which is never given twice. */
int netns_cookie(uint64_t *ret);
/* Calls fn in it; what fn opens stays there. The calling thread, and no other one, goes there, and is back when this returns: if
 * there is no way back, the process ends, for all that it would do from there is done to the wrong host. */
int netns_call(int netns, int (*fn)(void *data), void *data);
