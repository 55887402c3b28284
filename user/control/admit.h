/* SPDX-License-Identifier: MIT */
/*
 * Takes connections from the control socket, and turns away peers that may not use it before they cost anything. These
 * get an answer, too, without having sent a request.
 */
#pragma once

#include "control/http_status.h"
#include "control/peer_credentials.h"

#define ADMIT_FAREWELLS 16

struct admit {
	int fd; /* listens; owned */
	/* Connections that have their refusal. They stay open until the next tick but one, or until that many more
	 * were refused: a client that is still sending its request would get EPIPE and never read the answer. */
	struct {
		int fd; /* or -1 */
		bool aged;
	} farewells[ADMIT_FAREWELLS];
	unsigned next;
};

void admit_init(struct admit *admit, int fd);
void admit_free(struct admit *admit);
/* A connection whose peer is outside of every sandbox and has a role: its descriptor, owned by the caller. -EAGAIN: nobody waits.
 * -EACCES: one was refused; there may be more. Others: accept() failed. */
int admit_accept(struct admit *admit, const struct server_config *config, struct peer *ret);
void admit_refuse(struct admit *admit, int fd, const struct failure *failure); /* takes over fd */
void admit_tick(struct admit *admit);					       /* about every second */

/* Sends an answer to a request that was not read to its end, or not at all. What does not fit is lost. */
void admit_answer(int fd, const struct failure *failure);
