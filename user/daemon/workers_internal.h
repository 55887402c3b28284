/* SPDX-License-Identifier: MIT */
/*
 * Inside of the inspectors' keeper. Files: workers.c (processes: started, watched,
 * spoken to), workers_known.c (what every one of them has to know), workers_names.c
 * (which synthetic address stands for which name).
 */
#ifndef NP_DAEMON_WORKERS_INTERNAL_H
#define NP_DAEMON_WORKERS_INTERNAL_H

#include <sys/types.h>

#include "base/fs.h"
#include "daemon/workers.h"
#include "dns/names.h"
#include "session/table.h"

struct process {
	struct workers *workers;
	pid_t pid; /* 0: none */
	int link;
	bool ready;
	uint32_t synced, settled; /* the last numbers it answered */
	unsigned failures;
	uint64_t start_ns; /* when it was started, or may be again */
};

/* What every worker must know: told again to one that starts. */
struct known {
	struct table_node node;
	struct link_box box;
	bool left; /* an inspector has said so since it was asked */
};

/* A session that has sandboxes. */
struct site {
	struct table_node node;
	unsigned boxes;
	struct names *names;	     /* that have a synthetic address */
	int names_fd;		     /* where they are kept; -1: nowhere */
	size_t names_bytes;	     /* in that file */
	const struct process *asked; /* who is to make it; nobody else is believed */
	uint64_t asked_ns;
	struct link_ca ca; /* len 0: not made yet */
};

struct workers {
	struct workers_config config;
	struct inspector_sockets sockets;
	int settings, roots, policy; /* blobs */
	char exe[FS_PATH_SIZE], root[FS_PATH_SIZE], names_dir[FS_PATH_SIZE];
	struct hash_key key;
	uint64_t seed;
	struct table boxes, sites;
	uint32_t sync, settle;
	struct ledgers *ledgers;
	uint64_t cut;	    /* of ledgers_cut(), when it was last asked for */
	bool recovered;	    /* all sandboxes of a predecessor are known: others are new */
	uint64_t finish_ns; /* they are to end, then at the latest; 0: they are not */
	unsigned turn;	    /* whose turn it is to make an authority */
	bool live;	    /* the gate steers */
	struct process processes[NP_WORKERS_MAX];
};

/* -- workers.c */
void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd);
void tell_others(struct workers *w, const struct process *but, enum link_type type, const void *data, size_t len,
		 int fd);
void tell_all(struct workers *w, enum link_type type, const void *data, size_t len, int fd);

/* -- workers_names.c: names of sessions, and their synthetic addresses */
int names_open(struct workers *w, struct site *site); /* with what an earlier daemon gave out */
void names_sweep(struct workers *w, bool (*is_used)(void *data, const char *session), void *data);
void names_close(struct workers *w, struct site *site, bool forget);
void names_learn(struct process *from, const struct link_name *told);
void names_batch(const struct site *site, struct buf *out);
/* To workers that were there before the session: what an earlier daemon gave out. */
void names_tell(struct workers *w, const struct site *site);

/* -- workers_known.c */
struct site *site_find(struct workers *w, const char *session);
void batch_add(struct buf *out, enum link_type type, const void *data, size_t len);
void authority_learn(struct process *from, const struct link_ca *told);
void left_learn(struct workers *w, const struct link_box *told);
void authorities_ask(struct workers *w); /* for those that are not there yet, if nobody was asked just now */
/* Every sandbox and every authority, for a worker that starts: too much for a socket that nobody reads yet. */
int batch_make(struct workers *w, int *ret_fd);
void known_clear(struct workers *w);

#endif
