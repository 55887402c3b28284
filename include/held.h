/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What np_held is asked, and the records that it answers with. */
#ifndef NP_HELD_H
#define NP_HELD_H

#include <linux/types.h>

/* The one entry of np_held_query: a cgroup that is to be adopted. */
struct np_held_query {
	__u64 cgroup_id;
	__u32 depth;
	__u32 pad;
};

/* A socket that a process in or below that cgroup holds open. */
struct np_held {
	__u32 pid;
	__u32 fd;
	__u16 family;
	__u16 type;
	__u16 protocol;
	__u8 inside;	   /* it was made in or below that cgroup */
	__u8 peer_outside; /* AF_UNIX: connected to a socket that was not */
};
_Static_assert(sizeof(struct np_held) == 16, "np_held layout");

#endif
