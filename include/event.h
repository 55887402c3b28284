/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One decision of the gate on its way to user space, through the np_events ring.
 */
#pragma once

#include "sandbox.h"
#include "reason.h"

/* Where in the kernel the decision was made. */
/* X(NAME, code, token) */
#define NP_HOOKS(X)                        \
	X(CREATE, 1, "socket")             \
	X(CONNECT, 2, "connect")           \
	X(SEND, 3, "sendmsg")              \
	X(BIND, 4, "bind")                 \
	X(UNIX_CONNECT, 5, "unix_connect") \
	X(UNIX_SEND, 6, "unix_sendmsg")    \
	X(EGRESS, 7, "egress")             \
	X(INGRESS, 8, "ingress")           \
	X(DEVICE, 9, "device")             \
	X(OPTION, 10, "setsockopt")        \
	X(SK_LOOKUP, 11, "sk_lookup")

enum np_hook {
#define X(name, code, token) NP_HOOK_##name = code,
	NP_HOOKS(X)
#undef X
};

struct np_event {
	__u16 version; /* NP_ABI_VERSION */
	__u8 hook;     /* enum np_hook */
	__u8 reason;   /* enum np_reason */
	__u8 family;   /* AF_*, 0 when unknown */
	__u8 pad;
	__u16 protocol;	     /* IPPROTO_*, 0 when unknown */
	__u64 time_ns;	     /* CLOCK_MONOTONIC */
	__u64 cgroup_id;     /* of the sandbox; of the socket's cgroup when there is none */
	struct np_rung rung; /* at the decision; mode 0 when the sandbox is unknown */
	__u32 pid;	     /* 0 at the packet layer: whoever runs there is not the sender */
	__u32 uid;
	__u32 suppressed; /* events of this sandbox that were not sent before this one */
	__u32 rule;	  /* of the policy of that epoch, from 1; 0: none */
	__u32 epoch;
	__u32 ifindex;	     /* packet layer only */
	struct np_addr addr; /* the far end; zero for unix sockets */
	__u16 port;	     /* host order */
	union {
		__u16 unix_len;	 /* bytes of unix_path in use */
		__u16 near_port; /* not AF_UNIX: the sandbox's port that a caller tried, host order; 0: nobody called */
	};
	char comm[16];
	char unix_path[44]; /* first bytes of a unix address; a leading NUL is an abstract name */
};
_Static_assert(sizeof(struct np_event) == 136, "np_event layout");
