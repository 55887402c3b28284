/* SPDX-License-Identifier: MIT */
/*
 * Runs that the API started. Each of them is one process of netpawl-run (user/launcher/), whose output is read
 * here and kept, within bounds, for whoever asks. It asks the daemon for its sandbox like everybody else.
 */
#pragma once

#include "control/server.h"

struct launches;

struct launches_config {
	struct loop *loop;
	const char *socket_path;		 /* the control socket */
	const char *dir;			 /* for output that outlives the daemon; it is made */
	void (*on_output)(void *data);		 /* there is more of some output, or an end */
	void (*on_end)(void *data, uint64_t id); /* the launcher has ended, whatever became of the run */
	void *data;
};

int launches_new(const struct launches_config *config, struct launches **ret);
void launches_free(struct launches *launches); /* what runs goes on, and the next daemon has its output */

/* What control/ calls, see there. stop: kills the launcher, and nothing else; leave: likewise, if it is attached. */
struct launcher launches_launcher(struct launches *launches);
