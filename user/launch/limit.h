/* SPDX-License-Identifier: MIT */
/* How much a sandbox may take. 0 is no limit. */
#ifndef NP_LAUNCH_LIMIT_H
#define NP_LAUNCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limits {
	uint64_t memory;     /* bytes */
	uint64_t cpus_milli; /* thousandths of a CPU */
	uint64_t pids;
	uint64_t timeout_ms;
	uint64_t output;  /* bytes of standard output and error together; the rest is thrown away */
	uint64_t disk;	  /* bytes: of the workspace, and of each private file system */
	bool best_effort; /* a limit that cannot be set is told, and no error */
};

#endif
