/* SPDX-License-Identifier: MIT */
/*
 * Inside the inspector. Files: main.c (a process that gives up what it does not
 * need), worker.c (its loop), told.c (what netpawld tells it), report.c (what it
 * counts and tells netpawld), stop.c (its end), sandboxes.c (sandboxes and sessions), meet.c and client.c (a
 * connection of a sandbox), lookup.c (DNS), exchange.c (one request and its response), upstream.c (connections to
 * origins, and their pool), refuse.c (what a refusal says), tunnel.c and relay.c
 * (bytes that are not looked at).
 */
#ifndef NP_INSPECT_WORKER_H
#define NP_INSPECT_WORKER_H

#include <sys/queue.h>

#include "dns/synthetic_names.h"
#include "dns/socket.h"
#include "flow.h"
#include "tls/ca.h"
#include "net/channel.h"
#include "net/dial.h"
#include "net/relay.h"
#include "link/ledger.h"
#include "link/link.h"
#include "tls/origin.h"
#include "resolver/records.h"
#include "loop/loop.h"
#include "policy/decide.h"
#include "http/h1.h"
#include "http/h2.h"
#include "http/head.h"
#include "wire/url.h"

LIST_HEAD(sandbox_list, sandbox);
LIST_HEAD(session_list, session);
LIST_HEAD(client_list, client);
LIST_HEAD(exchange_list, exchange);
LIST_HEAD(upstream_list, upstream);
TAILQ_HEAD(upstream_queue, upstream);
TAILQ_HEAD(waiting_queue, waiting);

/* A session: its authority, what its origins remember, its kept connections. Nothing of it is shared. */
struct session {
	LIST_ENTRY(session) of_worker;
	char name[NP_LABEL_SIZE];
	unsigned sandboxes; /* it goes with the last one */
	struct ca *ca;	    /* NULL: asked for */
	struct origins *origins;
	struct names *names;	      /* that have a synthetic address */
	struct waiting_queue queries; /* that wait for one, or for records */
	struct upstream_list upstreams;
	struct upstream_queue idle; /* least recently used first */
	unsigned n_idle;
	size_t held;	  /* bytes that its origins have not taken: memory.c */
	unsigned proxied; /* sandboxes of it that are */
	bool raised;	  /* one of them was, so all will be: what is open to origins goes when that is done */
};

/* A sandbox. */
struct sandbox {
	LIST_ENTRY(sandbox) of_worker;
	uint64_t cgroup_id;
	struct session *session;
	struct np_rung rung;
	struct client_list clients;
	unsigned n_clients, n_exchanges;
	size_t held;		      /* bytes that its clients have not read: memory.c */
	bool tight;		      /* some of its exchanges were held back for that */
	unsigned n_queries;	      /* that wait */
	uint64_t reported_ns, tokens; /* of reports */
	struct ledger_slot *counts;
};

#define SANDBOX_BUCKETS 1024

struct worker {
	struct loop *loop;
	int link;
	int listeners[2];
	struct dns_socket *dns;
	struct policy *policy;
	struct roots *system; /* roots that netpawld gave */
	struct roots *roots;  /* and the policy's beside them */
	struct dialer *dialer;
	struct sandbox_list sandboxes[SANDBOX_BUCKETS];
	struct session_list sessions;
	struct client_list dirty_clients; /* that have something to write: worker_flush() */
	struct upstream_list dirty_upstreams;
	struct records *records; /* that rules let sandboxes look up */
	struct waiting_queue
		queries; /* that wait until a name has an address or its records are known, the oldest first */
	struct hash_key key;
	unsigned n_clients;
	size_t held;	 /* of all sandboxes and sessions */
	uint64_t now_ns; /* of the last tick: deadlines need no better */
	unsigned ticks;
	const struct rule *placed;    /* the last that allowed a request; NULL after a change of the policy */
	char place[PLACE_TEXT_SIZE];  /* where it is written */
	struct ledger *ledger;	      /* where it counts and reports; its own memory until it has the daemon's */
	struct ledger_slot uncounted; /* of sandboxes without a slot */
	size_t unannounced;	      /* bytes of reports that the daemon was not woken for */
	uint64_t announced;	      /* it was last woken for what is in the ring up to here */
	struct buf report;	      /* the one that is written */
	struct loop_task settling;    /* another look at what sandboxes have sent ... */
	unsigned settle_rounds;	      /* ... so many times, then ... */
	uint32_t settle;	      /* ... this is answered */
	uint64_t stop_ns;	      /* it stops, then at the latest; 0: it does not */
	struct buf spare;	      /* to gather in: none of a connection's own, so that one that waits is small */
	bool flushing;
	bool ready;
};

static inline struct roots *worker_roots(const struct worker *worker)
{
	return worker->roots ? worker->roots : worker->system;
}

/* What netpawld gives it; IPv4, then IPv6. */
struct worker_fds {
	int link;
	int listeners[2];
	int dns[2];
	int dns_origins; /* map np_dns_origins */
};
int worker_new(const struct worker_fds *fds, struct worker **ret);
int worker_run(struct worker *worker);
void worker_free(struct worker *worker);

/* Call at the end of whatever the loop called: writes what was gathered, in as few records as can be. */
void worker_flush(struct worker *worker);
/* A connection is about to gather something in out, which is lent memory for it. */
void worker_lend(struct worker *worker, struct buf *out);
/* Writes what is gathered in out, and what h2 (may be NULL) has, as far as the channel's backlog allows; out has no
 * memory then. */
int worker_push(struct worker *worker, struct h2 *h2, struct channel *channel, struct buf *out);

/* -- sandboxes.c ---------------------------------------------------------------------- */
struct sandbox *sandbox_find(struct worker *worker, uint64_t cgroup_id);
struct session *session_find(struct worker *worker, const char *session);
int sandbox_learn(struct worker *worker, const struct link_sandbox *message);
/* The policy or the level changed: what is not allowed any more ends, and its event says by what (NP_R_ENDED_BY_*). */
void sandbox_rejudge(struct worker *worker, struct sandbox *sandbox, enum np_reason by);
void sandbox_free(struct worker *worker, struct sandbox *sandbox, enum np_reason by); /* NP_R_ENDED_BY_* */
bool sandbox_has_unsent(const struct sandbox *sandbox);
void sessions_raised(struct worker *worker); /* all that a raise means has been told */

/* -- stop.c: the end, and counts that somebody waits for -------------------------- */
void worker_settle(struct worker *worker, uint32_t number);
void worker_stop(struct worker *worker);
void worker_stop_tick(struct worker *worker); /* ends the loop when nothing is open any more, or it is time */

/* -- told.c ----------------------------------------------------------------------- */
void worker_drain(struct worker *worker); /* reads what the daemon has said by now */
int worker_open(struct worker *worker);	  /* all is known: connections may come */

/* -- capture.c -------------------------------------------------------------------- */
/* All take NULL: then nothing is wanted. */
struct capture;
struct capture *capture_new(uint32_t max); /* bytes of a body; 0 gives NULL */
void capture_free(struct capture *capture);
void capture_head(struct capture *capture, enum link_tail tail, const struct fields *fields);
void capture_body(struct capture *capture, enum link_tail tail, const char *data, size_t len);
void capture_finish(struct capture *capture, struct link_request *report);    /* no more comes */
const char *capture_part(const struct capture *capture, enum link_tail tail); /* NULL: there is none */

/* -- report.c --------------------------------------------------------------------- */
struct report_texts {
	const char *method; /* NULL: none; so are the others */
	const char *url[4]; /* in parts */
	const char *query;
	const struct capture *capture;
};
/* A verdict on something of this sandbox falls now: what the report says about the rung and the policy is as of now. */
void report_decide(struct link_request *report, const struct worker *worker, const struct sandbox *sandbox);
/* Counts a request that will be reported when it ends: it is not lost in silence if we end before it does. */
void report_begin(struct link_request *report, const struct worker *worker, struct sandbox *sandbox);
/* It is reported in another way. */
void report_withdraw(struct link_request *report, struct sandbox *sandbox);
/* The place of the rule, of the policy in hand; NULL: none. */
void report_rule(struct link_request *report, struct worker *worker, const struct rule *rule);
/* A verdict that falls now, at the sandbox's rung. */
void report_verdict(struct link_request *report, struct worker *worker, const struct sandbox *sandbox,
		    const struct verdict *verdict);
/* Something open is ended by the platform: by is NP_R_ENDED_BY_*. rule is the one that does not allow it any more, or NULL.
 * What allowed it is kept as text. */
void report_end(struct link_request *report, struct worker *worker, const struct sandbox *sandbox, enum np_reason by,
		const struct rule *rule);
void report_send(struct worker *worker, const struct link_request *request, const struct report_texts *texts);
void report_flush(struct worker *worker);

/* -- client.c: a connection of a sandbox ---------------------------------------- */
struct exchange;

struct client {
	LIST_ENTRY(client) of_sandbox, of_dirty;
	bool dirty;
	struct worker *worker;
	struct sandbox *sandbox;
	struct channel *channel;
	struct np_flow flow;
	/* Where it means to go: the flow's address, then what SNI or CONNECT say. */
	uint16_t port;
	bool named; /* by SNI or CONNECT: requests must name the same host */
	struct host host;
	bool tls, by_connect;
	enum {
		CLIENT_DNS,
		CLIENT_SNIFF,
		CLIENT_WAIT_CA,
		CLIENT_HANDSHAKE,
		CLIENT_H1,
		CLIENT_H2,
		CLIENT_TUNNEL,
	} state;
	struct buf first;  /* bytes before it is known what they are */
	size_t first_need; /* a ClientHello needs so many at least */
	unsigned first_tries;
	struct h1 *h1;
	struct h2 *h2;
	struct buf out;
	struct exchange *exchange; /* h1: the one at hand */
	struct exchange_list exchanges;
	struct tunnel *tunnel;
	/* h1, of the request at hand */
	bool request_read;  /* all of it was read */
	bool answered;	    /* the exchange is over; with request_read the next one may come */
	bool connect;	    /* it was a CONNECT, and granted */
	uint64_t discarded; /* bytes of a body that nobody wants */
	size_t unread;	    /* bytes of its body that the origin has not taken */
	unsigned heads;	    /* h2: requests of this turn */
	bool paused;
	bool prior;	    /* h2 without TLS */
	bool closing;	    /* after what is written */
	bool closing_after; /* after this exchange */
	bool finishing;	    /* the end was written */
	bool opaque;	    /* after CONNECT to a port that is not inspected: bytes pass unseen */
	bool broken;	    /* a response was cut short: with a reset */
	bool busy;	    /* inside of a codec: it is freed later */
	bool dead;
	enum np_reason ended; /* by the platform: NP_R_ENDED_BY_*; 0: it was not */
	uint64_t deadline_ns;
	size_t unsent;	   /* bytes that it had not taken at the last deadline */
	size_t held, kept; /* as memory.c counted it last: all, and of requests' bodies */
};

void client_flush(struct client *client);
void client_dirty(struct client *client);
/* Tells of something that is no exchange. status 0: it was reset. */
/* "db.example:5432", "[2001:db8::1]:443" */
#define HOST_PORT_SIZE (NAME_SIZE + 16)
void host_port_text(const struct host *host, uint16_t port, char text[static HOST_PORT_SIZE]);
/* The event of a connection that was refused before it had a request. verdict, if it is not NULL, names the rule; addr is
 * the address that was refused, or NULL: the one that it went to. */
struct client_refusal {
	enum np_reason reason;
	unsigned status;
	const char *text;
	const struct verdict *verdict;
	const struct np_addr *addr;
};
void client_report_refusal(struct client *client, const struct client_refusal *refusal);
void client_report(struct client *client, enum np_reason reason, unsigned status, const char *text);
int client_speak(struct client *client);				 /* client_http.c: h1 or h2 */
size_t client_feed(struct client *client, const char *data, size_t len); /* likewise */
void client_next(struct client *client);				 /* likewise: the next request */
void client_wait(struct client *client, uint64_t ms);
void client_rejudge(struct client *client, enum np_reason by);
/* As client_reset(), and the events of what was open say by what it ended. */
void client_end_by(struct client *client, enum np_reason by);
void client_close(struct client *client); /* at once */
void client_reset(struct client *client); /* with a RST */
void client_tick(struct client *client, uint64_t now_ns);

extern const struct channel_events client_events;

/* -- meet.c: a new one ----------------------------------------------------------- */
void client_accept(struct worker *worker, int fd);
/* Its first bytes. True when they are HTTP, to be read by client_feed(). */
bool client_sniff(struct client *client, const char *data, size_t len);
void client_ca_ready(struct client *client);
/* Its hello has come, and somebody has to see what it says in TLS. */
void client_look(struct client *client);

/* What an exchange does to the client's side of it. */
int client_respond(struct exchange *exchange, const struct head *head, bool end);
int client_body(struct exchange *exchange, const char *data, size_t len);
int client_end(struct exchange *exchange, const struct fields *trailers);
size_t client_backlog(const struct exchange *exchange);
void client_consume(struct exchange *exchange, size_t n);
void client_abort(struct exchange *exchange); /* the response cannot be finished */
void client_done(struct exchange *exchange);  /* the exchange is over; it frees itself */
/* Takes the connection out of HTTP's hands, after a 101. It offers what was not used yet once more. */
struct channel *client_take(struct exchange *exchange);

/* -- exchange.c ------------------------------------------------------------------- */
struct exchange {
	LIST_ENTRY(exchange) of_client;
	struct client *client;
	struct h2_stream *stream; /* h2: the client's */
	struct upstream *upstream;
	struct dial *dial;		 /* on the way to one */
	struct upstream *handshake;	 /* further on */
	struct h2_stream *origin_stream; /* h2: the origin's */
	unsigned tries;			 /* it was lost before anything was done, and went again */
	bool h1_only;			 /* the origin wants no other version */
	struct head head;		 /* the request's */
	struct host host;
	uint16_t port;
	bool tls;		 /* of the origin's leg */
	uint64_t body, max_body; /* bytes of its body that came, and that may */
	struct buf pending;	 /* request body before there is an upstream */
	struct buf again;	 /* what was sent of it, if it may have to be sent once more ... */
	bool keeps;		 /* ... and all of it is there */
	bool has_answered;	 /* something of a response came */
	size_t owed_client;	 /* body bytes of the client not given back to its window yet */
	size_t owed_origin;
	bool request_done;  /* the client has sent it all */
	bool request_sent;  /* and the origin has it */
	bool responded;	    /* a final head went to the client */
	bool response_done; /* and all of it, as far as the client is concerned */
	bool gone;	    /* the client's side */
	unsigned interims;
	struct fields *trailers;  /* of the request, before there is an upstream */
	struct timeouts timeouts; /* its rule's */
	uint64_t active_ns;	  /* when a byte moved last */
	size_t waiting;		  /* bytes on their way to either side, when that was looked at last */
	struct link_request report;
	struct capture *capture; /* NULL: its rule wants none */
	uint64_t sent_ns, head_ns;
};

/* A request came; the head is taken. May be over when this returns. */
void exchange_start(struct client *client, struct h2_stream *stream, struct head *head, bool end);
/* Answers a request that is none for an origin: CONNECT. stream may be NULL. */
void request_refuse(struct client *client, struct h2_stream *stream, struct head *head, const struct verdict *verdict);
void exchange_free(struct exchange *exchange);
void exchange_report(struct worker *worker, const struct link_request *report, const struct head *head, bool tls,
		     const struct capture *capture);
void exchange_body(struct exchange *exchange, const char *data, size_t len);
void exchange_end(struct exchange *exchange, const struct fields *trailers);
void exchange_client_drained(struct exchange *exchange);
void exchange_client_gone(struct exchange *exchange);		/* no more to or from the client */
void exchange_tick(struct exchange *exchange, uint64_t now_ns); /* is over when it has been silent for too long */
/* The policy or the level changed: is it still allowed? It is broken off if not. */
void exchange_rejudge(struct exchange *exchange, enum np_reason by);
/* The name leads to where the client may not go: the rule that says so is named. */
void exchange_route_refused(struct exchange *exchange, const struct route *route, const char *words);

void exchange_upstream_ready(struct exchange *exchange, struct upstream *upstream);
void exchange_upstream_failed(struct exchange *exchange, enum np_reason reason, const char *words);
void exchange_response(struct exchange *exchange, struct head *head, bool end);
void exchange_response_body(struct exchange *exchange, const char *data, size_t len);
void exchange_response_end(struct exchange *exchange, const struct fields *trailers);
void exchange_upstream_drained(struct exchange *exchange);
void exchange_discard(struct exchange *exchange); /* what its upstream has not sent by now never leaves */

/* The verdict on what this client may do; route NULL: it is not known yet where the host leads; head NULL: on the
 * connection. */
struct verdict client_judge(const struct client *client, const struct host *host, uint16_t port,
			    const struct route *route, const struct head *head);

/* -- lookup.c --------------------------------------------------------------------- */
void query_start(void *worker, const struct dns_client *origin, const char *data, size_t len); /* a dns_ask_fn */
size_t query_feed(struct client *client, const char *data, size_t len);			       /* over TCP */
void query_named(struct worker *worker, const struct link_name *message);		       /* the daemon's answer */
void query_records(void *worker, const char *name, uint16_t type);			       /* a records_heard_fn */
void queries_tick(struct worker *worker);
void queries_forget(struct worker *worker, const struct sandbox *sandbox,
		    const struct client *client); /* of one of them */
void queries_rejudge(struct worker *worker,
		     const struct sandbox *sandbox); /* what it waits for may be refused by now */
/* Whatever names are resolved for nobody any more, on behalf of dials or of queries, are not asked for again on the wire. */
void queries_cancel_unwanted(struct worker *worker);
/* The name that a synthetic address stands for in this session, or NULL. It counts as a use. */
const char *query_reverse(struct worker *worker, struct session *session, const struct np_addr *addr);

/* -- refuse.c --------------------------------------------------------------------- */
/* A whole response: head and body. host and rule may be NULL. */
int refusal_make(const struct client *client, enum np_reason reason, const struct head *request,
		 const struct host *host, const struct verdict *verdict, const char *detail, struct head *ret_head,
		 struct buf *ret_body);

/* -- upstream.c ------------------------------------------------------------------- */
/* Finds or makes a connection to the exchange's host; exchange_upstream_ready() or _failed() follows, perhaps at once.
 * upgrade: HTTP/1.1, and for this exchange alone. */
void upstream_get(struct exchange *exchange, bool upgrade);
void upstream_cancel(struct exchange *exchange); /* it wants no more of it */
int upstream_request(struct exchange *exchange, const struct head *head, bool end);
int upstream_body(struct exchange *exchange, const char *data, size_t len);
int upstream_end(struct exchange *exchange, const struct fields *trailers);
size_t upstream_backlog(const struct exchange *exchange);
/* Bytes that would be lost with the connection, those in the kernel included; with HTTP/2: with the stream. */
size_t upstream_waiting(const struct exchange *exchange);
void upstream_consume(struct exchange *exchange, size_t n);
void upstream_done(struct exchange *exchange); /* request and response are complete: keep the connection */
struct channel *upstream_take(struct exchange *exchange);
void upstream_tick(struct session *session, uint64_t now_ns);
void upstream_close_all(struct session *session, enum np_reason reason, const char *words);
/* The policy or the level changed: none of the connections that are there serves another request. */
void upstream_retire(struct session *session);
/* Where it leads. */
const struct route *upstream_route(const struct upstream *upstream);
/* Closes the connection under an exchange, with a reset: nothing that waits in it leaves. */
void upstream_reset(struct exchange *exchange);

/* Has the origin not acknowledged all of a request; or all of those that are over, of any connection of the session? */
bool upstream_owes(const struct exchange *exchange);
bool upstreams_owe(const struct session *session);

void upstream_flush(struct upstream *upstream);

/* May an inspector go this way for the client? head is NULL for a tunnel. */
bool route_may(const struct client *client, const struct host *host, uint16_t port, const struct route *route,
	       const struct head *head);
/* What refuses it: a verdict with the rule, or without one where no rule is the reason. */
struct verdict route_refusal(const struct client *client, const struct host *host, uint16_t port,
			     const struct route *route, const struct head *head);

/* -- tunnel.c --------------------------------------------------------------------- */
struct tunnel;
void tunnel_start(struct client *client, const struct verdict *verdict); /* bytes pass to client->host, unseen */
/* The request that the exchange was for has become a websocket, perhaps with compressed messages. */
void tunnel_switch(struct exchange *exchange, bool deflate);
size_t tunnel_held(const struct tunnel *tunnel);
void tunnel_rejudge(struct client *client, enum np_reason by);
size_t tunnel_unsent(const struct tunnel *tunnel); /* bytes that it only waits for the origin to acknowledge */
void tunnel_tick(struct client *client);	   /* the client may be gone then */
void tunnel_count(struct tunnel *tunnel);	   /* brings the sandbox's counts up to date */
bool tunnel_owes(const struct tunnel *tunnel);	   /* the origin has not acknowledged all that the client says */
void tunnel_free(struct tunnel *tunnel);

/* -- memory.c --------------------------------------------------------------------- */
void memory_count_client(struct client *client);
/* So many unsent bytes of one leg of the client's exchanges, and the other is no longer read. */
size_t memory_mark(const struct client *client);
/* The sandbox holds more unread bytes than it may: whoever adds to them is broken off. */
bool memory_is_over(const struct client *client);
bool memory_admits(const struct client *client); /* another request */
void memory_tick(struct worker *worker, struct sandbox *sandbox);
void memory_tick_upstreams(struct session *session);
void memory_trim(void); /* now and then: gives back what is not used */

#endif
