/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox sees of the file system: the host's, without what talks to the
 * kernel or to the host's services.
 *
 *   /proc            fresh, of the sandbox's own pid namespace; the kernel's settings in it read-only
 *   /sys             read-only
 *   /dev             null zero full random urandom tty, its own pts and shm; no other device
 *   /run             empty and private; resolv.conf kept when it lives there
 *   /run/netpawl     the session's notices, read-only
 *   for uid 0        everything read-only but the working directory, /tmp and /var/tmp: what root may write,
 *                    the host would run or believe
 *   cgroup, bpf, tracefs, debugfs, ... wherever they are mounted: an empty read-only directory
 */
#ifndef NP_SANDBOX_MOUNTS_H
#define NP_SANDBOX_MOUNTS_H

#include <stdbool.h>

struct mounts_plan {
	const char *cwd;	   /* the working directory, absolute */
	bool readonly;		   /* all but cwd, /tmp and /var/tmp */
	const char *const *hidden; /* further paths to hide, ends with NULL; NULL for none */
	const char *notices;	   /* the host's directory with the session's notices; NULL: there is none */
};

/* Where the sandbox sees that directory. */
#define MOUNTS_NOTICES "/run/netpawl"

/* Call in a fresh mount and pid namespace, with CAP_SYS_ADMIN, /proc still the caller's. 0, or -errno and
 * in *ret_place the path at which it failed (static storage): the namespace is then half made, so give up. */
int mounts_confine(const struct mounts_plan *plan, const char **ret_place);

#endif
