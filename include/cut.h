/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Cutting open connections: what the programs that find them share with the daemon that runs these.
 *
 * The sockets of a sandbox are in np_sockets, in slots 0 to N of the sandbox, so that a cut costs by what the sandbox has
 * and not by what the host has. An entry of the map is a block of slots, made with the first socket that comes to one of them: what a
 * cut of a thousand sockets waits for is memory, and a block is one place to look for. All TCP and UDP sockets are there, because one is noted where
 * the kernel makes it, or at the latest where it begins to lead anywhere:
 *   - socket(): np_create, before the caller has a descriptor;
 *   - the child of a listener, accepted or not: np_sockops, at the end of its handshake, before it carries a byte;
 *   - one that has neither, because the kernel made it for itself or it is older than the gate: np_sockops before its SYN,
 *     np_connect and np_sendmsg before its first datagram;
 *   - and those that lead somewhere already when the gate comes to their cgroup, or to this table: NP_CUT_NOTE, a pass over
 *     the host's tables, after the programs are attached and before the first cut.
 * Nothing takes an entry away while its socket lives: not close() (an orphan still sends), not the passing on of its
 * descriptor, not the end of a process. An entry names the socket by its address and cookie; whoever looks asks the socket
 * itself, and a slot whose socket is gone is the next one's. A sandbox whose socket found no slot is NP_SLOTS_LOST: its cuts
 * are passes over the host's tables, for good.
 */
#pragma once

#include "sandbox.h"

/* The passes over the socket tables. A cut is the first two, in this order. */
enum np_cut_pass {
	NP_CUT_LOOK = 1, /* destroy what leads off this host, remember what stays on it */
	NP_CUT_LOCAL,	 /* destroy what stays on this host and leads to somebody else */
	NP_CUT_ORPHANS,	 /* destroy nothing: mark in np_cut_targets the sandboxes that have orphans */
	NP_CUT_ENDED,	 /* destroy orphans, whatever the mode says */
	NP_CUT_NOTE,	 /* destroy nothing: note in np_sockets what is not there yet */
};

/* Values of np_cut_targets: a sandbox that is looked at, and one in which that look has found an orphan: a TCP connection
 * that its program closed, and whose far end has not acknowledged everything. */
enum np_cut_found {
	NP_CUT_NAMED = 1,
	NP_CUT_HAS_ORPHAN,
};

/* np_cut_state.all: np_sockets is empty, whatever is noted with the sockets. */
#define NP_CUT_ALL_ANEW 2

/* The one entry of np_cut. */
struct np_cut_state {
	enum np_cut_pass pass;
	__u32 final;	  /* in: do not wait for bytes in flight any longer */
	__u32 reload;	  /* in: the policy changed and the mode did not, so sockets that lead nowhere yet stay */
	__u32 destroyed;  /* the rest is counted by the pass */
	__u32 failed;	  /* sockets that would not go; the packet layer holds them */
	__u32 local;	  /* connections on this host that need the second pass */
	__u32 remembered; /* entries made in np_cut_flows */
	__u32 all;  /* in, NP_CUT_NOTE: of every sandbox, not only of those in np_cut_targets; or NP_CUT_ALL_ANEW */
	__u32 busy; /* slots of np_sockets that a new socket was on its way into */
	__u32 idle; /* sockets that lead nowhere yet, or listen */
	__u64 in_flight; /* bytes handed to devices and still queued there: their sockets wait for another look */
	/* The far end that was looked up last, and what was found: most connections of a sandbox lead to few places. */
	struct np_addr far;
	__u64 far_netns;
	__u32 far_kind; /* np_addr_kind() and 1 more; 0: none was yet */
	__u32 handed;	/* in: the cgroup becomes another session's: as if its mode were NONE, whatever it is */
};

/* A connection between two sockets of this host, seen from one of them. */
struct np_cut_flow {
	struct np_addr near_addr, far_addr;
	__u16 near_port, far_port; /* host order */
	__u16 protocol;
	__u16 netns; /* the last digits of its cookie: two that share them may be cut where one need not be */
};
_Static_assert(sizeof(struct np_cut_flow) == 40, "np_cut_flow layout");

/* A socket that the daemon is to destroy: what np_cut_walk finds, and the iterators where they cannot do it themselves. */
struct np_cut_order {
	struct np_cut_flow flow;
	__u64 cookie; /* 0: nobody ever asked for one */
	__u32 device; /* that the socket is bound to, or 0 */
	__u32 family;
};
_Static_assert(sizeof(struct np_cut_order) == 56, "np_cut_order layout");

/* -- np_sockets ------------------------------------------------------------------------ */

struct np_socket_key {
	__u64 cgroup_id; /* of the sandbox */
	__u32 block;	 /* slot / NP_BLOCK_SLOTS */
	__u32 pad;
};

/* A slot. */
struct np_socket {
	__u64 sock; /* address of the kernel's struct sock: only ever read, and only while the cookie fits */
	__u64 cookie; /* of the socket, which is never given twice; 0: of none yet; NP_SOCKET_BUSY while the slot changes hands */
	__u32 protocol;
	__u32 counted; /* np_sandbox.sockets has it, and goes by this entry: see np_count_socket() */
};

struct np_socket_block {
	struct np_socket slots[NP_BLOCK_SLOTS];
};

#define NP_SOCKET_BUSY (~0ull)
#define NP_SLOTS_LOST  (1u << 31) /* in np_sandbox.slots */

/* What np_cut_walk is asked: the pass of np_cut over the sockets of one sandbox. Its orders are in np_cut_orders.
 * Returns how many there are; -ENOENT: there is no such sandbox; -EAGAIN: not all of its sockets are in np_sockets. */
struct np_cut_walk {
	__u32 version; /* NP_ABI_VERSION, else -EPROTO */
	__u32 from;    /* in: the first block to look at; out: the next one; 0: that was all */
	__u64 cgroup_id;
	__u32 most; /* orders that are written: more are only counted, for somebody who would not carry them out now */
	__u32 pad;
};
_Static_assert(sizeof(struct np_cut_walk) == 24, "np_cut_walk layout");
