/* SPDX-License-Identifier: MIT */
/*
 * What waits for a person or a decider: LINK_ASK, from an inspector, and LINK_ANSWER, to it. An inspector asks about each request and each
 * connection that a rule asks about, holds it meanwhile, and keeps no answer: what one is good for is the daemon's to know.
 */
#pragma once

#include "link/link.h"
#include "vocab/question_reply.h"

/* Texts are those of text_ascii(). */
struct link_ask {
	uint64_t number; /* of what is held, in this inspector */
	uint64_t cgroup_id;
	struct np_rung rung; /* the sandbox's and the policy's, when the verdict fell */
	char policy[65];
	uint8_t gone;	 /* 1: it waits no longer; nothing below counts */
	uint8_t write;	 /* 1: it may write. 0: a request that reads */
	uint8_t tls;	 /* 1: a request whose origin is spoken to in TLS */
	uint8_t decider; /* 1 and up: the decider of the policy that is asked; 0: a person is */
	uint8_t shows; /* 1: nothing is asked; these are the bytes that its decider needs. But for number and whole nothing counts */
	uint8_t whole;	  /* 1: of these, and they are all of its body */
	uint8_t taken;	  /* 1: it was told that it is allowed, once, and goes on; but for number nothing counts */
	uint16_t headers; /* bytes behind the message */
	uint16_t
		preview; /* bytes behind these: the first ones of its body, if the rule captures, or its decider needs them */
	uint32_t pid; /* of the process that connected; 0: not known */
	uint16_t port;
	uint64_t body;	 /* its length, as far as announced; UINT64_MAX: there is one, and it is not known */
	uint64_t rule;	 /* that asks: asked_rule() */
	char place[320]; /* where that stands */
	char host[256];	 /* canonical, or an address */
	char method[NP_QUESTION_METHOD]; /* empty: a connection of which nothing is seen */
	char url[NP_QUESTION_URL];	 /* without user, password and fragment; of a connection "host:port" */
};

struct link_answer {
	uint64_t number;
	uint64_t question; /* id */
	uint32_t reply;	   /* enum question_reply */
	uint32_t reason;   /* enum np_reason of a refusal */
	uint32_t body;	   /* of REPLY_BODY: bytes */
	uint32_t
		once; /* 1: of REPLY_ALLOWED, for this one only: the daemon is told whether it was taken, or has come too late (gone) */
	char words[256]; /* for whoever asked */
};

/* A request comes with its headers, "name: value" a line, without their secrets. */
static inline const char *link_ask_headers(const struct link_ask *ask)
{
	return (const char *)(ask + 1);
}

static inline const char *link_ask_preview(const struct link_ask *ask)
{
	return link_ask_headers(ask) + ask->headers;
}

/* The message, or NULL for nonsense. Each text of what it returns is one of text_ascii(): it ends, and can be shown. */
const struct link_ask *link_ask_read(const void *data, size_t len);
