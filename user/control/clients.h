/* SPDX-License-Identifier: MIT */
/*
 * The clients that are connected, and which of them has to go when a new one comes and there is no place left. A
 * newcomer always gets in, unless only clients of operators could make room: so nobody can keep an escalation out by
 * holding connections.
 *
 * An operator is root, outside of every sandbox; other users are those whom the socket's group lets in. A process in a
 * sandbox never gets here.
 *
 * States of a client: joined -> (left ->) removed. One that left holds no place; its connection is about to end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct MHD_Connection;

/* What a client would lose, the least first. */
enum client_state {
	CLIENT_SILENT,	/* no whole request: between two, half a head, a body that trickles in */
	CLIENT_WAITS,	/* asked, and has no answer yet */
	CLIENT_ANSWERED /* reads its answer, which may be a stream */
};

/* A process with clients. */
struct client_process {
	struct client_process *next;
	uid_t uid;
	pid_t pid;
	unsigned clients;
};

struct client {
	struct client *next, **link;	/* link points at what points here */
	struct client_process *process; /* NULL: it left */
	enum client_state state;
	uint64_t since_ns;		 /* when the connection, or the request in progress, began */
	int fd;				 /* MHD's */
	bool streams;			 /* follows events: may stay for ever */
	struct MHD_Connection *waits;	 /* suspended until something changes; NULL: it is not */
	struct MHD_Connection *deferred; /* suspended until the next round; NULL: it is not */
};

struct clients {
	struct client *first; /* newest first */
	struct client_process *processes;
	unsigned count;	 /* that did not leave */
	unsigned others; /* of them, those of other users than root */
};

/* The client that has to leave before (uid, pid) may join; NULL: none has to. -EUSERS: only clients of operators are
 * there. */
int clients_place(const struct clients *set, uid_t uid, pid_t pid, struct client **ret_leaves);
int clients_join(struct clients *set, uid_t uid, pid_t pid, struct client **ret); /* 0 or -ENOMEM */
void clients_leave(struct clients *set, struct client *client);
void clients_remove(struct clients *set, struct client *client); /* and frees it */
