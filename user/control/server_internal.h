/* SPDX-License-Identifier: MIT */
/* What server.c and newcomers.c share. */
#pragma once

#include "control/access.h"
#include "control/admit.h"
#include "control/clients.h"
#include "control/follow.h"
#include "base/listen.h"
#include "control/run_output.h"
#include "control/server.h"
#include "control/why_files.h"

struct server {
	struct server_config config;
	char *path;
	struct listen_file file;
	struct MHD_Daemon *daemon;
	int epoll_fd; /* MHD's */
	int kick_fd;  /* timer: MHD has something left to do, or something new */
	struct admit admit;
	struct access access;
	bool accepts; /* the loop watches the listening socket */
	struct clients clients;
	struct client *joining; /* while MHD takes its connection */
	uint64_t round_ns;	/* when this round of MHD began */
	bool round_read;	/* something that only reads was answered in it */
	struct follow_set follows;
	struct output_set outputs;
	struct why_files why;
};

/* server.c */
void server_run(struct server *server); /* what MHD has to do now, for a while at the most */

/* newcomers.c */
void server_accepts(struct server *server, bool accepts); /* whether the loop watches the listening socket */
void on_newcomers(void *data, uint32_t events);
