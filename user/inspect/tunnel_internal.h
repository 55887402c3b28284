/* SPDX-License-Identifier: MIT */
/* The files of tunnels, among themselves. */
#pragma once

#include "http/websocket.h"
#include "inspect/ask.h"
#include "inspect/carried.h"
#include "inspect/client.h"
#include "inspect/hold.h"
#include "inspect/report.h"
#include "inspect/tunnel.h"
#include "net/channel.h"
#include "net/relay.h"
#include "net/splice.h"
#include "resolver/aliases.h"

struct messages;

struct tunnel {
	struct client *client;
	struct hold hold;	    /* it waits for an answer, */
	struct ask ask;		    /* of a person, */
	struct origin_dial *dial;   /* is on the way, */
	struct relay *relay;	    /* goes through our hands, or */
	struct splice *splice;	    /* the kernel's */
	uint64_t first;		    /* bytes that went before it */
	uint64_t sent, received;    /* bytes that were counted */
	struct route route;	    /* where it leads, if that is known here: routed */
	const char *proxy;	    /* the upstream proxy that it goes by: its URL, or NULL */
	struct head head;	    /* of the request that it grew out of; without a method: none did */
	struct carried *carried;    /* credentials that it carries; NULL: the policy had none when it began */
	struct websocket frames[2]; /* of a websocket: the origin's, the client's */
	struct messages *messages;  /* what is in them; NULL: nobody searches them */
	struct link_request report;
	unsigned stage; /* of stages[] that is next */
	bool reported;	/* its end, whatever that was, is one event, and that is sent or somebody else's */
	bool routed;
	bool looks;		     /* where its name leads, a rule has to see requests: it is no tunnel any more */
	char named[NP_NAME_MAX + 1]; /* the credential that the rule names which allows it, or "" */
};

struct tunnel *tunnel_new(struct client *client);			 /* NULL: out of memory */
void tunnel_set_route(struct tunnel *tunnel, const struct route *route); /* NULL: it is not known here */
/* Takes over both channels. first goes to the origin before what comes. */
void tunnel_relay(struct tunnel *tunnel, struct channel *near, struct channel *far, const struct buf *first,
		  const struct relay_events *events);
void tunnel_over(void *tunnel, uint64_t sent, uint64_t received);	      /* one end has closed: of relay_events */
void tunnel_withdraw(struct tunnel *tunnel);				      /* it gets no event of its own */
void tunnel_end(struct tunnel *tunnel, const struct client_refusal *refusal); /* a refusal, instead of its event */

/* What it is as far as credentials ask, of a websocket. */
struct credential_facts tunnel_facts(const struct tunnel *tunnel);

/* -- tunnel_messages.c: what a websocket's frames have in them */
int tunnel_messages_begin(struct tunnel *tunnel, const struct exchange *exchange, bool deflate);
int tunnel_messages_pass(struct tunnel *tunnel, bool from_client, const char *data, size_t len, struct buf *out);
size_t tunnel_messages_held(const struct tunnel *tunnel);
void tunnel_messages_end(struct tunnel *tunnel);
