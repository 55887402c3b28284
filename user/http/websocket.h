/* SPDX-License-Identifier: MIT */
/*
 * Websockets (RFC 6455). Files: websocket.c (the frames of one direction), websocket_handshake.c (the request and the
 * response that lead there). Bytes in, facts out: no fd, no clock, and no message is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/head.h"

struct buf;

/* -- the handshake ------------------------------------------------------------------ */

/* What is wrong with a request that asks for an upgrade, as a sentence; NULL: it is a websocket's handshake. An offer of
 * an extension that could not be followed in the frames is taken out of the head, so that no origin accepts it. */
const char *websocket_request_check(struct head *request);
/* The same for the 101 that answers it. *ret_deflate: permessage-deflate (RFC 7692) was agreed on. */
const char *websocket_response_check(const struct head *request, const struct head *response, bool *ret_deflate);

/* -- frames ------------------------------------------------------------------------- */

enum websocket_opcode {
	WEBSOCKET_CONTINUATION = 0,
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10,
};

struct websocket_frame {
	enum websocket_opcode opcode;
	bool fin;	 /* the last one of its message */
	bool compressed; /* the message is deflated; said by its first frame */
	unsigned char mask[4];
	uint64_t len; /* of the payload, below 2^63 */
};

/* All may be NULL. Each returns 0 to go on or -errno, which websocket_read() then returns. */
struct websocket_events {
	int (*frame)(void *ctx, const struct websocket_frame *frame); /* its header is complete, and in order */
	/* Some of its payload as it is on the wire; at: bytes of it that came before. websocket_unmask() reads it. */
	int (*payload)(void *ctx, const struct websocket_frame *frame, uint64_t at, const char *data, size_t len);
};

/* One direction of a connection. */
struct websocket {
	const struct websocket_events *events;
	void *ctx;
	bool from_client; /* frames must be masked; else they must not be */
	bool deflate;	  /* agreed on: a message may be compressed */
	bool open;	  /* a message has begun and not ended */
	bool closed;	  /* a close frame came: no message may follow */
	bool in_payload;
	unsigned char header[14]; /* of the frame that comes; its first bytes are checked as they come */
	unsigned have;		  /* bytes of it */
	struct websocket_frame frame;
	uint64_t at;   /* bytes of its payload that came */
	unsigned code; /* of a close frame */
	int error;
	const char *problem;
};

void websocket_init(struct websocket *ws, bool from_client, bool deflate, const struct websocket_events *events,
		    void *ctx);
/* Takes all of len: 0; -EPROTO with websocket_problem(): what came breaks the protocol, and nothing more is read; or
 * what an event returned. */
int websocket_read(struct websocket *ws, const char *data, size_t len);
const char *websocket_problem(const struct websocket *ws); /* a sentence: "a frame of a client is not masked" */
/* A whole frame. mask: four bytes, of a client's; NULL: of an origin's. */
void websocket_write(struct buf *out, enum websocket_opcode opcode, bool fin, const unsigned char *mask,
		     const char *data, size_t len);
/* Payload as it was before it was masked; at as payload() has it. out may be data. */
void websocket_unmask(const struct websocket_frame *frame, uint64_t at, const char *data, size_t len, char *out);
