/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the iterators that cut open connections share with the daemon that runs them. */
#ifndef NP_CUT_H
#define NP_CUT_H

#include "sandbox.h"

/* The passes over the socket tables. A cut is the first two, in this order. */
enum np_cut_pass {
	NP_CUT_LOOK = 1, /* destroy what leads off this host, remember what stays on it */
	NP_CUT_LOCAL,	 /* destroy what stays on this host and leads to somebody else */
	NP_CUT_ORPHANS,	 /* destroy nothing: mark in np_cut_targets the sandboxes that have orphans */
	NP_CUT_ENDED,	 /* destroy orphans, whatever the mode says */
};

/* Values of np_cut_targets: a sandbox that is looked at, and one in which that look has found an orphan: a TCP connection
 * that its program closed, and whose far end has not acknowledged everything. */
enum np_cut_found {
	NP_CUT_NAMED = 1,
	NP_CUT_HAS_ORPHAN,
};

/* The one entry of np_cut. */
struct np_cut_state {
	enum np_cut_pass pass;
	__u32 final;	  /* in: do not wait for bytes in flight any longer */
	__u32 reload;	  /* in: the policy changed and the mode did not, so sockets that lead nowhere yet stay */
	__u32 destroyed;  /* the rest is counted by the pass */
	__u32 failed;	  /* sockets that would not go; the packet layer holds them */
	__u32 local;	  /* connections on this host that need the second pass */
	__u32 remembered; /* entries made in np_cut_flows */
	__u32 pad;
	__u64 in_flight; /* bytes handed to devices and still queued there: their sockets wait for another look */
};

/* A connection between two sockets of this host, seen from one of them. */
struct np_cut_flow {
	struct np_addr near_addr, far_addr;
	__u16 near_port, far_port; /* host order */
	__u16 protocol;
	__u16 pad;
};
_Static_assert(sizeof(struct np_cut_flow) == 40, "np_cut_flow layout");

/* What the iterators write, on kernels without bpf_sock_destroy: a socket that the daemon is to destroy. */
struct np_cut_order {
	struct np_cut_flow flow;
	__u32 device; /* that the socket is bound to, or 0 */
	__u32 family;
};
_Static_assert(sizeof(struct np_cut_order) == 48, "np_cut_order layout");

#endif
