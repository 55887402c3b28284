/* SPDX-License-Identifier: MIT */
/*
 * netpawl-decide: stands between netpawld and one decider, so that what a decider sends is read by a process that has nothing: no
 * user of note, no capability, no file, no socket but the two that it was started with. It lives as long as the channel.
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/call_filter.h"
#include "base/log.h"
#include "base/privileges.h"
#include "decider/decider_channel.h"
#include "link/decide_message.h"

static int filter_load(void)
{
	scmp_filter_ctx ctx;
	int r = call_filter_make(NULL, 0, &ctx);

	return call_filter_load(ctx, r);
}

int main(int argc, char **argv)
{
	unsigned long uid;
	char *end, byte;
	int r;

	log_setup("netpawl-decide", LOG_LEVEL_INFO);
	if (argc != 4 || (uid = strtoul(argv[1], &end, 10)) == 0 || *end) {
		fprintf(stderr, "netpawl-decide is started by netpawld\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	json_object_seed(0); /* while there are files: its random numbers */
	r = privileges_give_up((uid_t)uid, argv[2], 16);
	if (r == 0 && recv(LINK_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return 0; /* the daemon died before PR_SET_PDEATHSIG */
	if (r == 0)
		r = filter_load();
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	log_warning("the channel to the decider %s is closed: %s", argv[3], channel_serve(argv[3]));
	return 0;
}
