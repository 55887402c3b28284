/* SPDX-License-Identifier: MIT */
/* The control API: HTTP/1.1 with JSON on a unix socket (libmicrohttpd), run by the daemon's loop. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "events/event_log.h"
#include "loop/loop.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "policy/text_hash.h"
#include "session/service.h"
#include "session/workspaces.h"

struct server;

/* The policy that holds now; borrowed. */
struct policy_loaded {
	const char *file; /* NULL: none was given */
	const struct policy *policy;
	const struct buf *record; /* the bytes it was read from: policy/snapshot.h */
	const struct problems *problems;
	uint64_t loaded_us;
	uint32_t epoch;	 /* in the gate */
	const char *who; /* made it live */
};

/* What a reload did. */
struct policy_reloaded {
	char previous[POLICY_HASH_SIZE];
	unsigned raised; /* sessions */
	unsigned cut;	 /* connections */
};

/* Another text for a file of the policy; borrowed. */
struct policy_save {
	const char *file; /* as GET /v1/policy/source names it */
	const char *old;  /* what it was when it was shown: policy/text_hash.h */
	const char *text;
	bool operator; /* else an editor: policy/editors.h */
};

struct policy_saved {
	char hash[TEXT_HASH_SIZE];
	struct policy_reloaded reloaded;
};

/* What a launcher has to know of the daemon; borrowed. */
struct daemon_facts {
	char netns[24]; /* of the network namespace that the gate looks at; empty: not known */
	const char *run_dir, *state_dir, *data_dir, *pin_dir;
	unsigned inspectors; /* that are ready */
};

/* What a launcher of the daemon's is started with. */
struct run_launch {
	uint64_t id;
	uid_t caller;
	bool input, attach;
	unsigned columns, rows; /* of its terminal; 0: it has none */
};

/* What goes to a launched command: bytes, the end of them, another size of its terminal. */
struct run_input {
	const char *data;
	size_t len;
	bool end;
	unsigned columns, rows; /* 0: as it is */
};

struct run_text {
	const char *data;
	size_t len;
};

/* Who starts runs for the API: daemon/launches.h. */
struct launcher {
	/* Has a run that is on record started, as the record says. */
	int (*start)(void *ctx, const struct run_launch *launch, struct failure *ret_failure);
	int (*input)(void *ctx, uint64_t id, const struct run_input *input, struct failure *ret_failure);
	/* Ends the launcher of a run, if the run was launched here, so that it starts nothing any more. */
	void (*stop)(void *ctx, uint64_t id);
	/* Somebody wants to follow its output. An attached one's is for one reader at a time, of the user who has had it started: -EACCES,
	 * -EBUSY. *ret_reads: that is he now, and it ends when he does: leave(). */
	int (*follow)(void *ctx, uint64_t id, uid_t caller, bool *ret_reads);
	void (*leave)(void *ctx, uint64_t id);
	pid_t (*pid)(void *ctx, uint64_t id);  /* of a run that was launched here and is not over; or 0 */
	uint64_t (*run)(void *ctx, pid_t pid); /* the run that this is the launcher of; or 0 */
	/* NDJSON from that byte on, and whether that is all. -ENOENT: the run was not started by the daemon, or is forgotten, or
	 * these bytes are. Of an attached one all before them are forgotten now. */
	int (*output)(void *ctx, uint64_t id, size_t from, struct run_text *ret, bool *ret_ended);
	void *ctx;
};

/* The values of credentials, without them: vault/vault.h. */
struct credentials_calls {
	size_t (*count)(void *data);
	void (*describe)(void *data, size_t i, struct credential_state *ret);
	/* Fetches it now. -ENOENT: there is none of that name; -EINPROGRESS: its command runs. */
	int (*refresh)(void *data, const char *name);
	size_t (*placeholder)(void *data, const char *session, const struct credential *credential,
			      char ret[static NP_PLACEHOLDER_MAX + 1]);
};

struct access;

struct server_config {
	const struct access *access; /* set by the server itself */
	struct loop *loop;
	struct service *service;
	struct workspaces *workspaces;
	struct event_log *events;
	bool approvals; /* it is approve.sock: for the group of the policy's approval:, and for nothing but the inbox */
	const char *socket_path; /* made with mode 0660; a stale file of a dead daemon is replaced */
	/* True when the process is inside a sandbox, or cannot be shown to be outside. */
	bool (*peer_is_sandboxed)(void *data, pid_t pid);
	/* Appends members (base/json.h) to the object of the health answer, what daemon/ knows: versions, directories,
	 * kernel features, counters. */
	void (*health)(void *data, struct buf *out);
	void (*node)(void *data, struct buf *out);    /* likewise of GET /v1/node */
	bool (*is_degraded)(void *data);	      /* may be NULL */
	void (*metrics)(void *data, struct buf *out); /* base/exposition.h: what it has counted; may be NULL */
	void (*facts)(void *data, struct daemon_facts *ret);
	struct inspectors_debug debug;
	void (*policy_loaded)(void *data, struct policy_loaded *ret);
	/* Returns when what the gate and the inspector know of up to now is counted. */
	void (*settle)(void *data);
	/* The certificate of a session's CA, as PEM. -ENOENT, -EAGAIN. */
	int (*session_ca)(void *data, const char *session, struct buf *out);
	int (*policy_reload)(void *data, const char *who, struct policy_reloaded *ret, struct failure *ret_failure);
	/* Writes the file and reloads. -ESTALE: it is another by now. */
	int (*policy_save)(void *data, const struct policy_save *save, const char *who, struct policy_saved *ret,
			   struct failure *ret_failure);
	/* Adds what was answered with "always" to the policy's grants, or takes it back: on the disk, and live. */
	int (*grant_change)(void *data, const struct question_row *row, bool add, const char *who,
			    struct failure *ret_failure);
	struct launcher launcher;
	struct credentials_calls credentials;
	void *data;
};

int server_new(const struct server_config *config, struct server **ret);
void server_free(struct server *server);
/* A connection for a process that the daemon has started as this user: a reader's. The other end; -errno. */
int server_lend(struct server *server, uid_t uid);
/* Something was refused or changed in this session: see why_files.h. */
void server_refused(struct server *server, const char *session);
/* Another policy is live: it may say something else about who may call. */
void server_policy(struct server *server);
/* Something that is waited for may have changed. */
void server_changed(struct server *server);
/* There is more output of some run. */
void server_output(struct server *server);
