/* SPDX-License-Identifier: MIT */
/*
 * One thing that happened: the only record there is, in one JSON form. The gate's
 * refusals and the daemon's own doings are the same kind of event.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "vocab/words.h"
#include "rung.h"

/* Strings are borrowed for the time of the call; NULL or 0 means absent and is left out of the JSON. */
struct event {
	uint64_t seq;	  /* set by the log: counts up, also over restarts */
	uint64_t wall_us; /* CLOCK_REALTIME */
	unsigned reason;  /* enum np_reason: says what happened */
	const char *session;
	const char *sandbox; /* sandbox id */
	struct np_rung rung; /* of the decision or after the change; mode 0: it is about no session */

	/* a decision of the gate */
	unsigned hook; /* enum np_hook */
	unsigned protocol;
	const char *address; /* far end in words; a unix path, "@name" for an abstract one */
	unsigned port;
	unsigned listener_port; /* the sandbox's, that somebody called; address and port are the caller's */
	uint32_t pid;
	uint32_t uid; /* root is 0, so it is written whenever a hook names a pid */
	const char *comm;
	const char *rule;    /* the policy's rule that decided: "coding-agent.yaml:14" */
	const char *list;    /* the list that the rule has it from: "@llm" */
	int quiet;	     /* refused by what the policy calls quiet */
	uint32_t suppressed; /* events of the same sandbox that were only counted before this one */

	/* What was not kept (not_kept): how many, from when, and the newest one's seq. */
	uint64_t dropped, since_us, until_seq;

	const char *query; /* a name that the DNS gate was asked for ("lookup" in the JSON); text is the type */

	/* a request that the inspector judged */
	const char *method, *url;
	const char *credential;	 /* name of the one that it carried, or was refused for */
	uint32_t tokens;	 /* that were captured from its response, ... */
	const char *captured;	 /* ... for the credential of this name */
	const char *proxy;	 /* URL of the upstream proxy that it went by */
	unsigned status;	 /* what the client was answered */
	const char *http;	 /* version that the client spoke: "1.1" */
	uint64_t sent, received; /* bytes of its body, and of the response's */
	uint32_t dns_us, connect_us, tls_us, wait_us, receive_us;
	/* What its rule wants captured: up to NP_CAPTURE_MAX bytes each, cut where they are more. Headers are lines, with
	 * secrets left out; a body that is no text is base64. */
	const char *request_headers, *response_headers, *request_body, *response_body;
	int request_base64, response_base64;

	/* a change */
	uint64_t run; /* that it is about */
	const char *dataset;
	const char *text;   /* the reason a person gave, or details */
	const char *policy; /* hash of the policy that is live now, or was refused */
	const char *who;    /* "uid 0 pid 123" of the API client; "daemon" */
	uint32_t cut;
	int has_cut; /* cut is meaningful */
	uint64_t applied_us;

	/* of a question, or by whose answer a request went on or was refused */
	uint64_t question;
	const char *answer; /* "host"; of an event about the question only */
	uint64_t waited_us; /* when the question is over, or answered: since it was asked */
};

/* The kind of an event, from its reason: "allow", "refuse", "change" or "error". */
const char *event_kind(unsigned reason);

/*
 * Appends one JSON object and a newline: at most NP_EVENT_LINE_MAX bytes, one line. Its strings are those of
 * json_quote(), cut at NP_EVENT_STRING_MAX bytes.
 */
void event_to_json(const struct event *event, struct buf *out);
