/* SPDX-License-Identifier: MIT */
/* Facts about the host that a plan depends on, looked up before: planning itself touches nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fs.h"
#include "vocab/limits.h"

struct arena;

enum host_kind {
	HOST_DIRECTORY,
	HOST_FILE,
	HOST_LINK, /* target says where to */
};

struct host_path {
	const char *path;
	enum host_kind kind;
	const char *target;
};

struct host_device {
	const char *path;
	uint64_t device, inode; /* of the file */
	gid_t group;		/* that may read and write it; 0: none, or root's */
};

struct host {
	struct arena *arena; /* all memory below */
	/* Directories of the system that are shown read-only, with links as they are. */
	struct host_path *system;
	size_t n_system;
	/* Mounts that are windows to the kernel or to other namespaces (cgroup, bpf, debugfs, nsfs, ...), and
	 * whatever else was named to host_look(): never to be seen. */
	struct host_path *windows;
	size_t n_windows;
	struct host_path *bundles; /* the system's bundles of certificates */
	size_t n_bundles;
	const char *passwd,
		*group; /* the text of /etc/passwd and /etc/group; NULL: there is none, or it is no plain file */
	struct host_device devices[NP_DEVICES_MAX]; /* beside those that every sandbox has: device_kinds.h */
	size_t n_devices;
	const char *resolv_conf,
		*upstream;    /* texts: the name servers of programs, and of the host's own resolver; or NULL */
	const char *resolver; /* where /etc/resolv.conf leads to when that is below /run; else NULL */
};

/* hidden: further windows, ends with NULL; may be NULL. 0 or -errno. host_free() in any case. */
int host_look(const char *const *hidden, struct host *ret);
void host_free(struct host *host);
