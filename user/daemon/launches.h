/* SPDX-License-Identifier: MIT */
/*
 * Runs that the API started. Each of them is one process of netpawl-run (user/launcher/), whose output is read
 * here and kept, within bounds, for whoever asks. It asks the daemon for its sandbox like everybody else.
 */
#ifndef NP_DAEMON_LAUNCHES_H
#define NP_DAEMON_LAUNCHES_H

#include "control/server.h"

struct launches;

struct launches_config {
	struct loop *loop;
	const char *socket_path;		 /* the control socket */
	void (*on_output)(void *data);		 /* there is more of some output, or an end */
	void (*on_end)(void *data, uint64_t id); /* the launcher has ended, whatever became of the run */
	void *data;
};

int launches_new(const struct launches_config *config, struct launches **ret);
void launches_free(struct launches *launches); /* what runs goes on; its output is lost */

/* What is run, and how, is on record. */
int launches_start(struct launches *launches, uint64_t id, struct failure *ret_failure);
pid_t launches_pid(const struct launches *launches, uint64_t id); /* 0: it has none, or that has ended */
/* Output so far, as NDJSON, and whether there will be more. -ENOENT: of no run that was started here, or forgotten. */
int launches_output(struct launches *launches, uint64_t id, const struct buf **ret, bool *ret_ended);

#endif
