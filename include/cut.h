/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the iterators that cut open connections share with the daemon that runs them. */
#ifndef NP_CUT_H
#define NP_CUT_H

#include "box.h"

/* The passes over the socket tables, in this order. */
enum np_cut_pass {
	NP_CUT_LOOK = 1, /* remember flows that stay on this host; count bytes below TCP */
	NP_CUT_DESTROY,	 /* destroy what np_judge_cut() says */
};

/* The one entry of np_cut. */
struct np_cut_state {
	enum np_cut_pass pass;
	__u32 destroyed;
	__u32 failed;	  /* sockets that would not go; the packet layer holds them */
	__u32 candidates; /* sockets of these sandboxes that np_judge_cut() may want gone */
	__u64 in_flight;  /* bytes that TCP and UDP have handed to devices and that are still queued there */
};

/* A connection between two sockets of this host, seen from one of them. */
struct np_cut_flow {
	struct np_addr near_addr, far_addr;
	__u16 near_port, far_port; /* host order */
	__u16 protocol;
	__u16 pad;
};
_Static_assert(sizeof(struct np_cut_flow) == 40, "np_cut_flow layout");

#endif
