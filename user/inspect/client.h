/* SPDX-License-Identifier: MIT */
/* A connection of a sandbox. Files: client_accept.c (when it is new), client.c (its life and its bytes), client_http.c
 * (its side of exchanges). */
#pragma once

#include <sys/queue.h>

#include "flow.h"
#include "inspect/sandboxes.h"
#include "wire/url.h"

struct channel_events;
struct exchange;
struct tunnel;
struct verdict;

LIST_HEAD(exchange_list, exchange);

struct client {
	LIST_ENTRY(client) of_sandbox;
	struct leg leg;
	struct worker *worker;
	struct sandbox *sandbox;
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
	struct exchange_list exchanges;
	struct tunnel *tunnel;
	/* h1, of the request at hand */
	bool request_read;    /* all of it was read */
	bool answered;	      /* the exchange is over; with request_read the next one may come */
	bool connect;	      /* it was a CONNECT, and granted */
	uint64_t discarded;   /* bytes of a body that nobody wants */
	unsigned heads;	      /* h2: requests of this turn */
	bool prior;	      /* h2 without TLS */
	bool opaque;	      /* after CONNECT to a port that is not inspected: bytes pass unseen */
	enum np_reason ended; /* see client_ended_by() */
	uint64_t deadline_ns;
	size_t unsent; /* bytes that it had not taken at the last deadline */
};

/* An exchange's place at its client. Only client*.c write it. */
struct at_client {
	LIST_ENTRY(exchange) of_client;
	struct turn turn;
	bool rejudged; /* in this round */
};

/* -- client_accept.c */
void client_accept(struct worker *worker, int fd);
/* Its first bytes. True when they are HTTP, to be read by client_feed(). */
bool client_sniff(struct client *client, const char *data, size_t len);
void client_ca_ready(struct client *client);
/* Its ClientHello has come: ends TLS with the client, as soon as the session has its CA, so that its requests can be
 * read. */
void client_look(struct client *client);

/* -- client.c */
extern const struct channel_events client_events;
extern const struct leg_events client_leg_events; /* client_http.c */
void client_flush(struct leg *leg);
struct exchange *client_at_hand(const struct client *client); /* HTTP/1.1; NULL: none */
void client_wait(struct client *client, uint64_t ms);
void client_rejudge(struct client *client, enum np_reason by);
/* As client_reset(), and the events of what was open say by what it ended. */
void client_end_by(struct client *client, enum np_reason by);
/* What the platform has ended its connection by: NP_R_ENDED_BY_*; 0: nothing, it ends by itself or the origin's doing. */
enum np_reason client_ended_by(const struct client *client);
/* The client has ended the handshake or gone on with it, and that is still to be read. */
bool client_is_unheard(const struct client *client);
void client_close(struct client *client); /* at once */
void client_reset(struct client *client); /* with a RST */
void client_tick(struct client *client, uint64_t now_ns);
bool client_is_open(const struct client *client); /* for an answer; a tunnel has no end that one could wait for */
/* DNS over TCP: gathers an answer to be written; and: has the client left so many unread that it gets no more for
 * now? */
void client_send(struct client *client, const void *data, size_t len);
bool client_is_deaf(const struct client *client);
void client_hold(struct client *client); /* no more is read from it until it has read */
/* It is a tunnel's now, or (NULL) no longer. */
void client_set_tunnel(struct client *client, struct tunnel *tunnel);
/* Its connection goes into the tunnel's hands: as a channel, or as a descriptor if nothing of it is buffered (else -1,
 * and it stays). */
struct channel *client_release(struct client *client);
int client_release_fd(struct client *client);
struct buf client_take_first(struct client *client); /* bytes that it sent before it was known where they go */

/* "db.example:5432", "[2001:db8::1]:443" */
#define HOST_PORT_SIZE (NAME_SIZE + 16)
void host_port_text(const struct host *host, uint16_t port, char text[static HOST_PORT_SIZE]);
/* The event of a connection that was refused before it had a request. verdict, if it is not NULL, names the rule; addr is
 * the address that was refused, or NULL: the one that it went to. status 0: it was reset. */
struct client_refusal {
	enum np_reason reason;
	unsigned status;
	const char *text;
	const struct verdict *verdict;
	const struct np_addr *addr;
	const char *proxy; /* URL of the upstream proxy that it went by; may be NULL */
};
void client_report_refusal(struct client *client, const struct client_refusal *refusal);
void client_report(struct client *client, enum np_reason reason, unsigned status, const char *text);

/* -- client_http.c */
int client_speak(struct client *client); /* h1 or h2 */
size_t client_feed(struct client *client, const char *data, size_t len);
void client_next(struct client *client);	/* the next request */
void client_close_after(struct client *client); /* no request of it comes after those that are open */

/* What an exchange does to the client's side of it, beside the verbs of its turn. */
void client_attach(struct exchange *exchange, const struct turn *turn);
void client_turn_away(struct client *client, const struct turn *turn); /* there is no memory for an exchange */
void client_done(struct exchange *exchange);			       /* the exchange is over; it frees itself */
/* Takes the connection out of HTTP's hands, after a 101; it leads to the exchange's host now. It offers what was not used
 * yet once more. The exchange is over. */
struct channel *client_take(struct exchange *exchange);
