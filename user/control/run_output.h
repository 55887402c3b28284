/* SPDX-License-Identifier: MIT */
/* Output of a run, as it comes. A stream with nothing to send is suspended until output_wake(). */
#pragma once

#include <microhttpd.h>

#include "control/server.h"

struct output;

struct output_set {
	const struct server_config *config;
	struct output *first;
	void (*kick)(void *data); /* as in struct follow_set */
	void *data;
};

/* The response that follows the output of a run to its end. 0, -EMFILE (the caller has NP_FOLLOWERS_PER_USER),
 * -EACCES or -EBUSY (it is attached: see struct launcher) or -ENOMEM. */
int output_open(struct output_set *set, struct MHD_Connection *connection, uint64_t id, uid_t caller,
		struct MHD_Response **ret);
/* There is more, of somebody's. */
void output_wake(struct output_set *set);
/* Ends all of them, at the next MHD_run() or MHD_stop_daemon(). */
void output_end_all(struct output_set *set);
