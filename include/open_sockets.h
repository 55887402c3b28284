/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What np_open_sockets is asked, and the records that it answers with. */
#pragma once

#include <linux/types.h>

#define NP_STARTING_ALL (~0u)

/* The one entry of np_open_query: a cgroup that is to be adopted. */
struct np_open_query {
	__u64 cgroup_id;
	__u64 netns; /* cookie of the network namespace that its IP sockets must be in; 0: any */
	__u32 depth;
	__u32 starting; /* this process has yet to become what it will be, and talks with its runtime; 0: none; NP_STARTING_ALL */
	__u32 most; /* descriptors that a table may have room for: to look at them takes time */
	__u32 pad;
};

/* Why a file that a process in or below that cgroup holds open cannot be governed. */
#define NP_OBJECTIONS(X)                                                                         \
	X(RING_USED, "io_uring")                                                                 \
	X(RING_HELD, "an io_uring")                                                              \
	X(IP_OUTSIDE, "an IP socket that was made outside the cgroup")                           \
	X(IP_ELSEWHERE, "an IP socket in another network namespace")                             \
	X(REPAIRED, "a TCP socket whose sequence numbers somebody may have chosen (TCP_REPAIR)") \
	X(IP_OTHER, "an IP socket that is neither TCP nor UDP")                                  \
	X(IN_FLIGHT, "a unix socket with descriptors in messages that nobody has received yet")  \
	X(NOT_ACCEPTED, "a unix socket with connections that nobody has accepted yet")           \
	X(PEER_OUTSIDE, "a unix socket whose other end is outside the cgroup")                   \
	X(UNIX_OUTSIDE, "a unix socket that was made outside the cgroup")                        \
	X(FAMILY, "a socket of a family that the gate does not see")                             \
	X(TOO_MANY, "one of more than can be looked at")

#define NP_OBJECTION(name, text) NP_OBJECT_##name,
enum np_objection { NP_OBJECT_NONE, NP_OBJECTIONS(NP_OBJECTION) NP_N_OBJECTIONS };
#undef NP_OBJECTION

/* The first of a thread's files to which there is an objection. */
struct np_open_socket {
	__u32 pid;
	__u32 fd;
	__u32 objection;
};
