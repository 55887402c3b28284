/* SPDX-License-Identifier: MIT */
/*
 * netpawl-decide: stands between netpawld and one decider, so that what a decider sends is read by a process that has nothing: no
 * user of note, no capability, no file, no socket but the two that it was started with. It lives as long as the channel.
 */
#include <jansson.h>
#include <string.h>

#include "base/call_filter.h"
#include "base/log.h"
#include "decider/decider_channel.h"
#include "link/helper.h"

static int filter_load(void)
{
	scmp_filter_ctx ctx;
	int r = call_filter_make(NULL, 0, &ctx);

	return call_filter_load(ctx, r);
}

int main(int argc, char **argv)
{
	const uid_t uid = helper_begin("netpawl-decide", argc, 4, argv);
	int r;

	if (!uid)
		return 2;
	json_object_seed(0); /* while there are files: its random numbers */
	r = privileges_give_up(uid, argv[2], 16);
	if (r == 0)
		r = filter_load();
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	log_warning("the channel to the decider %s is closed: %s", argv[3], channel_serve(argv[3]));
	return 0;
}
