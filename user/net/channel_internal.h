/* SPDX-License-Identifier: MIT */
/* What the parts of the channel share: its life in channel.c, the way to its owner in channel_read.c, the socket in
 * channel_socket.c, TLS in channel_tls.c. */
#pragma once

#include "net/channel.h"
#include "net/queue.h"
#include "vocab/limits.h"

/* Bytes that were read and nobody used. Bounded by NP_BACKLOG_HIGH. */
struct leftover {
	char *data;
	size_t at, len, size;
};

struct channel {
	struct loop *loop;
	const struct channel_events *events;
	void *ctx;
	SSL *ssl;
	struct loop_task task;
	struct queue out;      /* for the socket; with TLS these are records */
	struct queue plain;    /* TLS: payload that is in no record yet */
	struct leftover rest;  /* payload that data() did not use */
	struct leftover first; /* TLS: what was read from the socket before it began */
	const char *problem;
	size_t budget; /* bytes that this wake-up may still read */
	int fd;
	int error;	 /* why it is broken; told once */
	int sock_error;	 /* what the socket said, to be told when all that came before it is read */
	int read_error;	 /* what TLS said, likewise */
	int write_error; /* nothing can be sent any more; what can be read still is */
	/* The socket. Edge-triggered: true until a call shows otherwise. */
	bool readable, writable;
	bool hung_up;	/* there is an end to be read: a short read does not mean that nothing is left */
	bool starved;	/* the budget ran out before the socket did */
	bool reoffered; /* what was left was offered again in this wake-up */
	bool eof;	/* the peer sends no more */
	bool sock_eof;
	/* The owner. */
	bool paused, resumed;
	bool tried, wants_more; /* data() did not use what is left: once; again, and so with more only */
	bool offering;		/* data() runs */
	bool busy, freed;	/* some callback may run; the owner freed it in one */
	bool woken;	  /* the owner wrote in one: after the last flush of the wake-up that is another one's work */
	bool high;	  /* the backlog was above NP_BACKLOG_HIGH */
	bool finishing;	  /* channel_finish() was called ... */
	bool ended, shut; /* ... close_notify is queued ... and the sending side closed */
	bool eof_reported, broken_reported, finished_reported;
	/* TLS. */
	bool up;     /* the handshake is done */
	bool showed; /* as a server: our certificate */
	int alert;   /* that the peer ended TLS with; 0: none */
	bool direct; /* a single record: if nothing is before it, send it without queueing it */
};

/* channel_socket.c. At most len bytes: > 0; 0 at the end; -EAGAIN; -errno. */
ssize_t channel_recv(struct channel *c, void *data, size_t len);
/* Sends what the socket takes: how much, 0 when it is full. Failure is in write_error, and then all is taken. */
size_t channel_send(struct channel *c, const struct iovec *iov, size_t n);
void channel_send_queue(struct channel *c);
/* What is queued and then data, at once when it is worth a call; keeps the rest. 0 or -ENOMEM. */
int channel_send_plain(struct channel *c, const char *data, size_t len);
int leftover_reserve(struct leftover *l, size_t more);		    /* room behind what is there; 0 or -ENOMEM */
int leftover_add(struct leftover *l, const void *data, size_t len); /* 0, -ENOMEM or -EMSGSIZE */
void leftover_clear(struct leftover *l);

/* channel_read.c: offers what is there, until the owner has had enough of it */
void channel_read(struct channel *c);

/* channel_tls.c */
int tls_handshake(struct channel *c);				/* 1: done; 0: not yet; -errno */
ssize_t tls_read(struct channel *c, char *data, size_t len);	/* > 0; 0: nothing now, perhaps eof is set; -errno */
int tls_write(struct channel *c, const void *data, size_t len); /* into c->out, or the socket */
int tls_finish(struct channel *c);				/* close_notify into c->out */
