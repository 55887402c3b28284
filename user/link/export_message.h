/* SPDX-License-Identifier: MIT */
/*
 * What a netpawl-export and netpawld say to each other: LINK_EXPORT_CALL, which is answered with the same and a descriptor, a
 * connection to the control API that is a reader's and good for one call; LINK_READY and LINK_EXPORT_STATE to the daemon.
 */
#pragma once

#include "link/link.h"

/* Its descriptors, as it is started with them, behind LINK_FD. */
enum export_fd {
	EXPORT_FD_CURSOR = LINK_FD + 1, /* the file of its place in the record; of metrics: the null device */
	EXPORT_FD_END,
};

struct export_state {
	uint64_t acked;	   /* seq of the last event that its receiver has taken */
	uint64_t sent;	   /* events that were, since its start */
	uint64_t failures; /* attempts that failed, likewise */
	uint64_t rejected; /* events that the receiver does not want, whatever is tried */
	uint64_t gaps;	   /* events that it never got: the record has them no more */
};
