/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What np_open_sockets and np_open_rings are asked, and the records that they answer with. */
#pragma once

#include <linux/types.h>

/* The one entry of np_open_query: a cgroup that is to be adopted. */
struct np_open_query {
	__u64 cgroup_id;
	__u64 netns; /* cookie of the network namespace that its IP sockets must be in; 0: any */
	__u32 depth;
	__u32 pad;
};

/* A socket that a process in or below that cgroup holds open; family 0: not a socket, but a use of io_uring. */
struct np_open_socket {
	__u32 pid;
	__u32 fd;
	__u16 family;
	__u16 type;
	__u16 protocol;
	__u8 inside;	   /* it was made in or below that cgroup */
	__u8 connected;	   /* AF_UNIX: it has a peer */
	__u8 peer_outside; /* AF_UNIX: and that was not made there */
	__u8 repaired;	   /* TCP: it is in TCP_REPAIR mode, so its sequence numbers may be of somebody's choice */
	__u8 elsewhere;	   /* AF_INET, AF_INET6: in another network namespace */
	__u8 pad;
	__u32 in_flight;    /* AF_UNIX: descriptors in messages that it has not received yet (SCM_RIGHTS) */
	__u32 not_accepted; /* AF_UNIX: connections that wait in its queue */
};
_Static_assert(sizeof(struct np_open_socket) == 28, "np_open_sockets layout");
