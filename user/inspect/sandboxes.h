/* SPDX-License-Identifier: MIT */
/* Sandboxes and their sessions: whose connection is whose. */
#pragma once

#include "inspect/pool.h"
#include "inspect/worker.h"
#include "link/link.h"

/* A session: its CA, what its origins remember, its kept connections. Nothing of it is shared. */
struct session {
	LIST_ENTRY(session) of_worker, of_pooling;
	struct table_node node; /* by name */
	char name[NP_LABEL_SIZE];
	unsigned sandboxes; /* it goes with the last one */
	struct ca *ca;	    /* session_ca() */
	char *ca_data;	    /* it, as it came; NULL: it has been read, or has not come */
	size_t ca_len;
	bool ca_awaited;	 /* by a client */
	struct origins *origins; /* session_origins() */
	struct dns_session dns;	 /* its names and queries */
	unsigned proxied;	 /* sandboxes of it that are */
	bool raised;		 /* one of them was, so all will be: what is open to origins goes when that is done */
	struct pool pool;
	struct memory_sum memory;
	struct placeholder_set *placeholders; /* session_placeholders() */
	struct token_watch *tokens;	      /* token_watch.c's. NULL: it has none */
	struct lane lane;		      /* what its connections have to do: sessions take turns */
};

/* A sandbox. */
struct sandbox {
	struct table_node node;
	uint64_t cgroup_id;
	struct session *session;
	struct np_rung rung;
	bool ending; /* it is being removed: whose connection ends now did not end it by itself */
	struct ledger_slot *counts;
	struct report_rate rate;
	struct memory_sum memory;
	LIST_ENTRY(sandbox) of_talking; /* client*.c's, as are the three below */
	struct client_list clients;
	unsigned n_clients, n_exchanges;
	struct dns_sandbox dns;
	unsigned n_held; /* exchanges and tunnels that wait for an answer: hold.c's */
};

struct sandbox *sandbox_find(struct worker *worker, uint64_t cgroup_id);
/* All of them, in no order: the first for NULL, then the one after it, which must still be there. */
struct sandbox *sandbox_next(const struct worker *worker, const struct sandbox *sandbox);
struct session *session_find(struct worker *worker, const char *session);
int sandbox_learn(struct worker *worker, const struct link_sandbox *message);
/* The policy or the level changed: what is not allowed any more ends, and its event says by what (NP_R_ENDED_BY_*). */
void sandbox_rejudge(struct worker *worker, struct sandbox *sandbox, enum np_reason by);
void sandbox_free(struct worker *worker, struct sandbox *sandbox, enum np_reason by); /* NP_R_ENDED_BY_* */
bool sandbox_has_unsent(const struct sandbox *sandbox);
/* Its programs have ended a handshake, and why is still to be read: it must be in the record. */
bool sandbox_has_unheard(const struct sandbox *sandbox);
void sessions_raised(struct worker *worker); /* all that a raise means has been received */
/* Takes a CA as ca_export() wrote it; clients that wait for it go on. A second one is ignored. 0 or -ENOMEM. */
int session_set_ca(struct worker *worker, struct session *session, const char *data, size_t len);
struct ca *session_ca(struct session *session); /* NULL: it has not come */
/* What its origins remember, from the first connection on; NULL without memory. */
struct origins *session_origins(const struct worker *worker, struct session *session);
/* What its sandboxes hold in the place of the policy's credentials; NULL: there is no memory, or the policy has none. */
const struct placeholder_set *session_placeholders(const struct worker *worker, struct session *session);
void session_drop_placeholders(struct session *session); /* the policy has changed */
/* The CAs that origins are verified with have changed: connections that were verified with the former ones end. */
void session_renew_origins(struct session *session);
