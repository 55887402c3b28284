/* SPDX-License-Identifier: MIT */
/*
 * What the session service needs of the kernel, as an interface: kernel/ provides it, daemon/ joins the two, a unit test puts a
 * recording one in its place. Every function returns 0 or -errno. None of them can loosen anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox.h"
#include "vocab/level.h"
#include "vocab/limits.h"

/* A sandbox's cgroup, as found or made. */
struct gate_cgroup {
	uint64_t id;
	uint32_t depth;
	char path[4096]; /* absolute, below the cgroup v2 mount */
};

/* Why an adoption was refused, in words, for the API. Empty when there is nothing to say. */
struct gate_problem {
	unsigned reason; /* enum np_reason, an ERROR one */
	char text[512];
};

/* What the kernel holds for one sandbox, as read back at a takeover. */
struct gate_sandbox {
	uint64_t cgroup_id;
	struct np_rung rung;
	char session[NP_LABEL_SIZE];
	bool uncut; /* its cut was due, and nobody has done it: see cut_due() */
};

/* A process, as it calls itself and by its file, as far as these can be told. Strangers' texts: text_ascii(). */
struct gate_process {
	char name[16];
	char file[NP_PROGRAM_SIZE]; /* a path in its own mount namespace */
};

/* Why open connections are cut. */
enum gate_cut {
	GATE_CUT_RAISED,   /* the mode or the level rose */
	GATE_CUT_RELOADED, /* the policy changed: sockets that lead nowhere yet are left alone */
	GATE_CUT_ENDED,	   /* the sandbox is over: its orphans, see orphans(), whatever its mode permits */
	GATE_CUT_HANDED, /* and its cgroup becomes another session's: all that leads out of it, as if its mode were NONE */
};

#define GATE_STARTING_ALL ((pid_t)-1)

struct gate {
	void *ctx;

	/* Makes slice/ID. The cgroup is NONE until it is raised. */
	int (*cgroup_make)(void *ctx, const char *id, struct gate_cgroup *ret);
	/* Looks at a path for adoption, changes nothing. -EINVAL with *ret_problem when it cannot be adopted.
	 * starting: a process that a runtime is about to make a container's first of: unix sockets that are connected are the runtime's,
	 * and do not count; 0: none; GATE_STARTING_ALL: each of them may be. */
	int (*cgroup_inspect)(void *ctx, const char *path, pid_t starting, struct gate_cgroup *ret,
			      struct gate_problem *ret_problem);
	/* Looks at what the processes of a made sandbox hold, as cgroup_inspect() does. 0: the gate governs it all. */
	int (*cgroup_look)(void *ctx, const struct gate_cgroup *cg, struct gate_problem *ret_problem);
	/* Finds slice/ID again after a restart; -ENOENT when it is gone. */
	int (*cgroup_find)(void *ctx, const char *path, struct gate_cgroup *ret);

	/* Registers or tightens: the kernel takes the maximum of what stands and what is asked, member by member.
	 * *ret tells what stands afterwards. */
	int (*raise)(void *ctx, const struct gate_cgroup *cg, const struct np_rung *rung, const char *session,
		     struct np_rung *ret);
	/* Attaches the programs to an adopted cgroup and pins them; raise() comes first. Idempotent. */
	int (*attach)(void *ctx, const struct gate_cgroup *cg);
	/* Notes in the kernel that a sandbox is about to be cut, until cut() has: a daemon that dies before leaves it to the
	 * next. 0 or -errno. May be NULL. */
	int (*cut_due)(void *ctx, uint64_t cgroup_id);
	/* Cuts every open connection that the mode of these sandboxes, or the policy in it, forbids, and waits until
	 * what was queued below TCP has left. ret_cut counts sockets. Of many, the last ones are ended a moment later, and send
	 * nothing until then: see kernel/cut_tail.c. */
	int (*cut)(void *ctx, const uint64_t *cgroup_ids, size_t n, enum gate_cut why, unsigned *ret_cut);

	/* Which of these sandboxes have orphans: TCP connections that their programs closed before everything was
	 * acknowledged, so that the kernel goes on with them when nobody is left? n <= 1024. */
	int (*orphans)(void *ctx, const uint64_t *cgroup_ids, size_t n, bool *ret_has);

	/* Kills every process of a made sandbox and removes its cgroup, nested ones included.
	 * -EBUSY when it is not yet empty: ask again later. */
	int (*cgroup_remove)(void *ctx, const struct gate_cgroup *cg);
	/* The same for those directly below a made sandbox's whose names begin so: all are killed, the first error is told. */
	int (*cgroup_remove_below)(void *ctx, const struct gate_cgroup *cg, const char *prefix);
	/* True when a process lives in it or below. An error counts as true. */
	bool (*cgroup_populated)(void *ctx, const struct gate_cgroup *cg);
	/* Detaches an adopted, empty cgroup. */
	int (*detach)(void *ctx, const struct gate_cgroup *cg);
	/* Forgets the kernel's entry of a cgroup that is gone (or detached). */
	int (*retire)(void *ctx, uint64_t cgroup_id);

	/* Calls fn for every sandbox that the kernel holds; stops at a negative answer and returns it. */
	int (*each)(void *ctx, int (*fn)(void *data, const struct gate_sandbox *sandbox), void *data);

	/* Does the sandbox listen on this TCP port? *ret: at which address, all zeros (of IPv6, or as a mapped IPv4 address) for
	 * every one. -ENOENT: it does not. */
	int (*listens)(void *ctx, uint64_t cgroup_id, unsigned port, struct np_addr *ret);
	/* The host's socket with this cookie may call the sandbox, as long as its mode is not NONE; and no longer. */
	int (*forward)(void *ctx, uint64_t cookie, uint64_t cgroup_id);
	void (*unforward)(void *ctx, uint64_t cookie);

	/* What the kernel holds of one sandbox; -ENOENT. May be NULL: nobody decides by it. */
	int (*read)(void *ctx, uint64_t cgroup_id, struct np_rung *ret);
	/* Is every part of the gate in place, so that a raise may be acknowledged? Puts back what it can. -errno with words
	 * for what is gone. May be NULL. */
	int (*whole)(void *ctx, char problem[static 512]);
	/* Is it? Changes nothing. May be NULL: then whole() is asked. */
	bool (*stands)(void *ctx);

	/* What runs as this process of the sandbox, for people to read; -ESRCH: it is gone, or another sandbox's by now. May be
	 * NULL: nobody is told. */
	int (*process)(void *ctx, uint64_t cgroup_id, pid_t pid, struct gate_process *ret);

	/* The two below may be NULL; recovery then cleans up less, and loosens nothing. */

	/* Finds a cgroup by its id; -ENOENT when there is none (any more). */
	int (*cgroup_by_id)(void *ctx, uint64_t id, struct gate_cgroup *ret);
	/* Calls fn for every cgroup directly below the slice, whoever made it; stops as each() does. */
	int (*slice_each)(void *ctx, int (*fn)(void *data, const struct gate_cgroup *cg), void *data);
	/* The same for those directly below a parent; and from now on it is told, as of the parent, when one is made there.
	 * May be NULL: there are no parents then. */
	int (*children_each)(void *ctx, const struct gate_cgroup *parent,
			     int (*fn)(void *data, const struct gate_cgroup *cg), void *data);
	/* From now on it is told, as of the one above it, when the cgroup of this path is made; or, true, the first on the way there that
	 * there is not yet: then it is to be asked again. May be NULL: the sweep finds it. */
	bool (*way_watch)(void *ctx, const char *path);
};
