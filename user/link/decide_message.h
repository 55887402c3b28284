/* SPDX-License-Identifier: MIT */
/*
 * What netpawld and a netpawl-decide say to each other: LINK_DECIDE, LINK_DECIDE_BODY and LINK_WITHDRAW there, LINK_READY (the decider has said
 * hello) and LINK_DECIDED (struct decision) back. The lines that a decider is sent are written by the daemon; what a decider sends
 * is read by netpawl-decide alone.
 */
#pragma once

#include "link/link.h"
#include "vocab/decision.h"

/* Its descriptors, as it is started with them, behind LINK_FD. */
enum decide_fd {
	DECIDE_FD_CHANNEL = LINK_FD + 1, /* a stream socket to the decider */
	DECIDE_FD_STDERR,		 /* the decider's, for reading; of one that is dialled: the null device */
	DECIDE_FD_END,
};

/* Followed by a line of JSON without its end: what is asked, or (LINK_DECIDE_BODY) the bytes that it needed for its answer. Of
 * LINK_WITHDRAW: nobody waits for it any more. */
struct link_decide {
	uint64_t id;
};
