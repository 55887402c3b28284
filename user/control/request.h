/* SPDX-License-Identifier: MIT */
/*
 * What a handler gets and what it gives: a complete request comes in, one answer or one failure goes out. Handlers need neither sockets
 * nor headers, but for streams, and for the metrics, which have two formats.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "control/follow.h"
#include "control/run_output.h"
#include "control/peer_credentials.h"
#include "control/server.h"

#define REQUEST_ARGS_MAX  2
#define REQUEST_QUERY_MAX 6

struct request {
	const struct server_config *config;
	struct follow_set *follows;
	struct output_set *outputs;
	struct MHD_Connection *connection; /* for streams and metrics */
	struct peer peer;
	bool head;			      /* GET without the body */
	const char *args[REQUEST_ARGS_MAX];   /* what the stars of the route's pattern matched */
	struct session_name session;	      /* that the path names, where it does */
	uint64_t id;			      /* likewise of a run or a forward */
	const char *query[REQUEST_QUERY_MAX]; /* in the order of the route's names; NULL when absent */
	const char *body;
	size_t body_len;
	/* A handler that would rather answer when something has changed says so, and is asked again: with the mark that
	 * it left, until it may not wait any longer. */
	bool may_wait;
	unsigned mark;		   /* 0 at first */
	struct session_name place; /* likewise, for one that goes on in the next round; empty at first */
};

struct answer {
	unsigned status; /* of HTTP */
	const char *type;
	char *body; /* owned, from malloc() */
	size_t len;
	const char *allow;	     /* value of the Allow header, or NULL */
	struct MHD_Response *stream; /* owned; used instead of the body when not NULL */
	bool wait;		     /* no answer yet */
	bool goes_on;		     /* nor here: the handler is called again in the next round */
};

/* Returns 0 and fills the answer, or -errno and says why. */
typedef int request_fn(struct request *rq, struct answer *ret, struct failure *ret_failure);

request_fn health_get, node_get, metrics_get, launch_get, debug_get;
request_fn sessions_create, sessions_list, session_get, session_end, session_forget, session_escalate, session_ca_get,
	context_get, context_put;
request_fn sandboxes_create, sandboxes_list, sandbox_get, sandbox_remove;
request_fn session_why, session_explain, notices_get, notices_ack;
request_fn runs_create, runs_list, run_get, run_approve, run_reject, run_end, run_output_get, run_input_post,
	run_cancel;
request_fn questions_list, question_get, question_answer, question_revoke;
request_fn forwards_create, forward_socket, forward_remove;
request_fn credentials_list, credential_refresh, placeholders_get;
request_fn events_get;
request_fn policy_get, policy_source_get, policy_reload, policy_file_save;

/* For whom the peer asks: a launcher of the daemon's does it for whoever asked for its run. who is room for that. */
const char *request_for(const struct request *rq, char who[static RUN_WHO_SIZE]);
/* Is the peer who may start (or end) this run? A run that the daemon launches is its launcher's. */
int run_launcher_check(const struct request *rq, uint64_t id, bool starts, struct failure *ret_failure);
