/* SPDX-License-Identifier: MIT */
/*
 * Inside of the inspectors' supervisor. Files: supervisor.c (all of them: watched, waited
 * for), processes.c (each: started, sent to, received from, ended), briefing.c (what every one of them has to know, and the interface of
 * session/inspectors.h), cas.c (who makes a session's CA), ca_store.c (CAs that outlive a daemon), names_store.c (which
 * synthetic address stands for which name), ledgers.c and ledger_files.c (what they counted and reported), debug_ask.c (what they show of
 * themselves), listening.c (where they listen for sandboxes with a network of their own), asks.c (what they ask people about),
 * leaks.c (what must not leave, and was about to), secrets_brief.c (values of credentials), spawn.c, config_blobs.c.
 */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "base/fs.h"
#include "supervisor/readiness.h"
#include "supervisor/supervisor.h"
#include "dns/synthetic_names.h"
#include "netns/way_out.h"
#include "base/table.h"
#include "vocab/limits.h"

struct process {
	struct supervisor *supervisor;
	pid_t pid; /* 0: none */
	int link;
	bool ready;
	bool unreset;		  /* it is dead, and its ledger has not been made ready for the next */
	uint32_t synced, settled; /* the last numbers it answered */
	unsigned cas;		  /* that it is to make */
	bool cas_behind;	  /* it was not told of a CA, because it did not keep up */
	unsigned asks;		  /* that wait to be handled: asks.c's */
	unsigned failures;
	uint64_t start_ns; /* when it was started, or may be again */
};

/* What every worker must know: told again to one that starts. */
struct briefed {
	struct table_node node;
	LIST_ENTRY(briefed) of_leaving;
	struct link_sandbox sandbox;
	bool left; /* an inspector has said so since it was asked */
	uint32_t
		asked; /* debug_ask.c's: the last question that it was there for, and what had been sent of it by then */
	struct np_rung asked_rung;
};

LIST_HEAD(briefed_list, briefed);
LIST_HEAD(listening_list, listening);

/* A session that has sandboxes. */
struct session_brief {
	struct table_node node;
	unsigned sandboxes;
	bool inspected; /* one of them has been PROXIED: something of it may be with inspectors when that one is gone */
	struct names *names; /* that have a synthetic address */
	int names_fd;	     /* where they are kept; -1: nowhere */
	size_t names_bytes;  /* in that file */
	/* While it has no CA it is in one of the queues below. */
	TAILQ_ENTRY(session_brief) of_cas;
	struct process *requested_of; /* who is to make it; nobody else is believed. NULL: nobody yet */
	uint64_t requested_ns;
	struct link_ca ca; /* len 0: not made yet */
};

TAILQ_HEAD(session_brief_queue, session_brief);

/* The question that inspectors were last asked to show themselves by, and what each did: debug_ask.c's. */
struct debug_shown {
	pid_t pid; /* that was asked; 0: none */
	struct debug_page *page;
};
struct debug_question {
	uint32_t number, after;
	uint64_t until_ns; /* it is waited for so long; 0: it is over */
	struct debug_shown of[NP_WORKERS_MAX];
};

TAILQ_HEAD(ask_queue, ask);
TAILQ_HEAD(leak_queue, leak);

struct supervisor {
	struct supervisor_config config;
	struct inspector_sockets sockets;
	struct ways_out ways_out;	       /* of those of sandboxes */
	struct listening_list namespaces;      /* sockets in those of sandboxes: listening.c's */
	uint64_t sockets_of;		       /* the cgroup that they were made in */
	int settings, roots, policy;	       /* blobs */
	unsigned unserved;		       /* namespaces without sockets, where there should be some */
	struct link_proxy_logins proxy_logins; /* for the policy */
	char exe[FS_PATH_SIZE], root[FS_PATH_SIZE], names_dir[FS_PATH_SIZE];
	struct hash_key key;
	struct table sandboxes, sessions;
	struct briefed_list leaving; /* are forgotten; their ledger entries stay until their last reports are handled */
	uint32_t sync, settle;
	bool sync_asked; /* for the answers to `sync`, and nothing was sent since */
	struct ledgers *ledgers;
	struct loop_task receive; /* of reports that wait */
	uint64_t cut;		  /* of ledgers_cut(), when it was last asked for */
	uint64_t finish_ns;	  /* they are to end, then at the latest; 0: they are not */
	unsigned slices;	  /* of reports that were taken, one behind the other */
	unsigned turn;		  /* whose turn it is to make a CA */
	int cas_dir;		  /* where CAs are kept, ... */
	unsigned proxied;	  /* sandboxes that are: while there is none, nobody needs a secret */
	bool cas_kept;		  /* ... if cas_dir is in memory */
	bool recovered;		  /* all sandboxes of a predecessor are known: others are new */
	bool steering;		  /* the gate steers */
	struct readiness readiness;
	struct session_brief_queue cas_wanted, cas_requested; /* the latter: the oldest first */
	struct debug_question debug;
	struct ask_queue asks;
	struct leak_queue leaks; /* leaks.c's: what has come of such, until a verb is over, ... */
	struct table leaks_by_what;
	bool handing_on; /* ... and is handed on now */
	struct process processes[NP_WORKERS_MAX];
};

/* -- processes.c */
#define SYNC_MS 1000 /* a worker that takes longer than this is hung; a shorter time can pass on a busy machine */
int process_start(struct process *p);
/* At most so many messages; true: so many, and there may be more. */
bool process_read(struct process *p, unsigned most);
void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd);
void process_end(struct process *p, const char *why);
void process_drop(struct process *p); /* without a word */
/* Until everything is known after a start, nothing is sent: each worker is sent all of it in one piece, by
 * processes_brief(). */
void send_others(struct supervisor *w, const struct process *but, enum link_type type, const void *data, size_t len,
		 int fd);
void send_all(struct supervisor *w, enum link_type type, const void *data, size_t len, int fd);
void processes_brief(struct supervisor *w); /* those that were started before all was known */
/* Reports that nobody waits for are taken a few at a time: a call of the API does not wait for all of them. */
void supervisor_receive_some(void *supervisor);
void finish_check(struct supervisor *w); /* says so when those that are to end have ended */

/* -- supervisor.c */
void supervisor_sync_begin(struct supervisor *w); /* asks for what supervisor_sync() waits for; see struct inspectors */
/* Returns when every worker has done what it was sent so far; one that does not in time is killed. */
void supervisor_sync(struct supervisor *w);
/* Requests and tunnels that they have ended since this was asked last, because of a rung or a policy. */
unsigned supervisor_cut(struct supervisor *w);

/* -- cas.c: the CAs of sessions */
void ca_want(struct supervisor *w, struct session_brief *session);
void ca_unwant(struct supervisor *w, struct session_brief *session); /* it goes */
void ca_learn(struct process *from, const struct link_ca *message);
void cas_request(struct supervisor *w); /* of workers that have time, and again of others what takes too long */
void cas_unrequest(struct process *p);	/* it is gone: others are to make them */
void cas_catch_up(struct process *p);	/* tells it what it was not told */

/* -- ca_store.c: CAs that outlive a daemon */
int cas_open(struct supervisor *w, const char *path);
/* Adds to the message, which has the session, the CA that was kept, if it is its own and whole. Nobody has looked inside. */
bool ca_kept(const struct supervisor *w, const char *session, struct link_ca *ret);
void ca_keep(const struct supervisor *w, const struct link_ca *ca);
void ca_forget(const struct supervisor *w, const char *session);
/* Those of sessions that are not used, or, without a supervisor, all. */
void cas_wipe(int dir, struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data);

/* -- names_store.c: names of sessions, and their synthetic addresses */
int names_open(struct supervisor *w, struct session_brief *session); /* with what an earlier daemon gave out */
void names_sweep(struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data);
void names_close(struct supervisor *w, struct session_brief *session, bool forget);
void names_learn(struct process *from, const struct link_name *message);
void names_batch(const struct session_brief *session, struct buf *out);
/* USER/SESSION as one component: neither has a comma. */
void session_file(const char *session, char name[static NP_LABEL_SIZE]);
/* Drops the files of sessions that are not used and, without a supervisor, of all. */
void files_sweep(int dir, struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data,
		 void (*drop)(int dir, const char *name));
/* To workers that were there before the session: what an earlier daemon gave out. */
void names_send(struct supervisor *w, const struct session_brief *session);

/* -- debug_ask.c */
int debug_learn(struct process *from, const char *data, size_t len); /* 0 or -EPROTO */
void debug_tick(struct supervisor *w);				     /* every 50 ms or so */
void debug_clear(struct supervisor *w);

/* -- listening.c: listeners in the namespaces of sandboxes */
void namespaces_listen(struct supervisor *w);	/* in those that there are */
void namespaces_unlisten(struct supervisor *w); /* nowhere any more */
void namespaces_send(struct process *p);	/* to a worker that starts */
void namespaces_steer(struct supervisor *w);	/* as w->steering says */
int namespace_make(void *ctx, uint64_t cgroup_id, bool steered, bool way_out);
int namespace_join(void *ctx, const struct gate_cgroup *cgroup, const char *path);
bool namespace_lost(void *ctx, uint64_t cgroup_id);
int namespace_find(void *ctx, uint64_t cgroup_id, struct sandbox_netns *ret);
void namespace_drop(struct supervisor *w, uint64_t cgroup_id); /* the sandbox is gone. An unknown one is fine */

/* -- leaks.c */
int leaks_learn(struct process *from, const char *data, size_t len); /* 0, -ENOMEM, or -EPROTO */
void leaks_receive(struct supervisor *w); /* hands on what has come, or some of it, and the rest soon */
void leaks_clear(struct supervisor *w);

/* -- asks.c */
int asks_learn(struct process *from, const char *data, size_t len); /* 0, -ENOMEM, or -EPROTO */
void asks_receive(struct supervisor *w);			    /* hands on what has come */
void asks_lose(struct process *p);				    /* it is gone, and what it held */
void asks_drop(struct supervisor *w, uint64_t cgroup_id);	    /* those of a sandbox that is over */
void asks_clear(struct supervisor *w);
void asks_reply(void *ctx, const struct question_waiter *to, const struct question_news *news);

/* -- secrets_brief.c: values of credentials */
void secrets_send(struct process *p); /* all, to one that starts */
void secrets_send_all(struct supervisor *w);
/* A sandbox has this mode from now on instead of that one; 0: it was not there, or is gone. */
void secrets_count(struct supervisor *w, enum np_mode before, enum np_mode now);

/* -- briefing.c */
struct briefed *known_find(struct supervisor *w, uint64_t cgroup_id);
struct session_brief *session_brief_find(struct supervisor *w, const char *session);
void batch_add(struct buf *out, enum link_type type, const void *data, size_t len);
void left_learn(struct supervisor *w, const struct link_sandbox *message);
/* Every sandbox, CA and name, for a worker that starts: too much for a socket that nobody reads yet. */
int batch_make(struct supervisor *w, bool cas_only, int *ret_fd);
void briefing_leave(struct supervisor *w); /* frees the ledger entries of those that are forgotten */
void briefing_clear(struct supervisor *w);
