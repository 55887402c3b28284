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
	const char *dir;			 /* for output that outlives the daemon; it is made */
	void (*on_output)(void *data);		 /* there is more of some output, or an end */
	void (*on_end)(void *data, uint64_t id); /* the launcher has ended, whatever became of the run */
	void *data;
};

int launches_new(const struct launches_config *config, struct launches **ret);
void launches_free(struct launches *launches); /* what runs goes on, and the next daemon has its output */

/* What is run, and how, is on record. */
int launches_start(struct launches *launches, const struct run_launch *how, struct failure *ret_failure);
int launches_input(struct launches *launches, uint64_t id, const struct run_input *input, struct failure *ret_failure);
void launches_leave(struct launches *launches, uint64_t id);	  /* likewise, if it is attached */
void launches_stop(struct launches *launches, uint64_t id);	  /* kills the launcher, and nothing else */
pid_t launches_pid(const struct launches *launches, uint64_t id); /* 0: it has none, or that has ended */
/* Output from that byte on, as NDJSON, and whether there will be more. -ENOENT: of no run that was started here, or forgotten.
 * Who reads an attached one has read what comes before that byte. */
int launches_output(struct launches *launches, uint64_t id, size_t from, struct run_text *ret, bool *ret_ended);

#endif
