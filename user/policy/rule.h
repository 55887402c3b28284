/* SPDX-License-Identifier: MIT */
/* The rules of a policy as data: what the reader makes and the compiler takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sandbox.h"
#include "vocab/limits.h"
#include "rules.h"

/* A place in a policy file. Lines and columns from 1; line 0: nowhere. */
struct place {
	uint32_t file; /* index into policy->files */
	uint32_t line, column;
};

/* The kernel's numbers, so that nothing needs translating. */
enum action {
	ACTION_ALLOW = NP_ALLOW,
	ACTION_DENY = NP_DENY,
	ACTION_ASK = NP_ASK,
	ACTION_DECIDE = NP_DECIDE,
};
const char *action_name(enum action action); /* "allow", ...; "?" otherwise */

/* One destination of a rule: a name pattern or a range of addresses, with ports and protocols. */
enum pattern_kind {
	PATTERN_NAME, /* never matches an address */
	PATTERN_NET,  /* never matches a name, but see decide.h for deny */
};

#define PATTERN_TCP 1
#define PATTERN_UDP 2

struct pattern {
	enum pattern_kind kind;
	uint8_t protocols; /* PATTERN_TCP | PATTERN_UDP */
	/* No port written: for deny every port (1 to 65535) of both protocols; for the others the inspected ports
	 * over TCP, which is inspected = true and 0 in both. */
	bool inspected;
	uint16_t first_port, last_port;
	/* NAME: canonical; "*" is one label, "**" (leftmost only) one or more, as in "*.example.com", "**". A "." in front
	 * is none or more: ".example.com" is example.com and all below it, and has no stars. */
	const char *name;
	/* NET: bits count from the left of the 16 bytes, so an IPv4 /24 has 120. Bits behind are zero. */
	struct np_addr addr;
	uint8_t bits;
	bool v4;
	const char *list; /* that it is from, as in "@llm"; NULL: the rule itself has it */
	bool quiet;	  /* that list is: see struct rule */
	struct place at;  /* where it is written: for a list, the line in the list */
	uint32_t rule;	  /* index of the rule that uses it */
};

struct credential;

/* In ms; 0: the default, which for first_byte is idle. */
struct timeouts {
	uint32_t idle;	     /* no byte moves either way */
	uint32_t first_byte; /* from the whole request to the beginning of its response */
	uint32_t connect;    /* a connection to the origin */
};

#define RULE_MARK_DEFAULT 1 /* in the place of a rule's mark: default: */

struct rule {
	enum action action;
	uint32_t number;	      /* index in its list, from 0 */
	uint8_t levels;		      /* bit (1 << level): for: */
	const char *const *sessions;  /* globs of USER/SESSION, NULL-terminated; NULL: every session */
	uint32_t pattern, n_patterns; /* a run in policy->patterns */
	/* Conditions on a request; each is NULL-terminated, NULL when the rule has none. */
	const char *const *methods; /* upper case */
	const char *const *paths;   /* globs over the normalised path */
	const char *const *headers; /* lower case; all must be present */
	/* What an allow grants. */
	bool inspect;	   /* true unless inspect: false */
	bool websocket;	   /* websocket: true */
	uint64_t max_body; /* UINT64_MAX: no bound */
	uint32_t capture;  /* so many bytes of each body, and the headers, go into events; 0: nothing does */
	struct timeouts timeouts;
	uint8_t dns;			     /* dns_record_bit() of the types of records that may be looked up */
	const char *by;			     /* decide: name of its decider */
	const struct credential *credential; /* credential.h: that requests which it allows may carry; NULL: none */
	bool quiet;			     /* of a deny: nobody wants to read of what it refuses */
	struct place at;
	uint64_t mark;	  /* of what is written, wherever that stands: two rules that say the same have the same */
	const char *text; /* its head as a person wrote it: "allow: @llm" */
};

/* Of a name pattern: does it stand for more than one name? */
static inline bool pattern_is_wide(const struct pattern *pattern)
{
	return pattern->name[0] == '.' || strchr(pattern->name, '*');
}

/* True for conditions that only a request can meet. */
static inline bool rule_asks_request(const struct rule *rule)
{
	return rule->methods || rule->paths || rule->headers;
}

/* A program that answers decide rules. One of command and socket is set. */
struct decider {
	const char *name;
	const char *const *command; /* NULL-terminated; the first is an absolute path */
	const char *socket;	    /* absolute path of a unix socket */
	bool network;		    /* of a command: it has the host's */
	uint64_t timeout_ms;
	struct place at;
};

/* Who is told that a question waits: one of them is set, or none. */
struct notify {
	const char *const *command; /* as a decider's; the id and a line about it are its last arguments */
	bool network;		    /* as a decider's: the command has the host's */
	const char *socket;	    /* absolute path of a unix socket */
	const char *url;	    /* http://, of a loopback address */
};

/* What leaves the daemon for other systems of the host, by a netpawl-export each; NULL: it does not. */
struct exports {
	const char *metrics;  /* ADDRESS:PORT of loopback */
	const char *otlp;     /* http:// URL of a loopback address */
	const char *journald; /* absolute path of its socket */
	bool no_journald;     /* not even under systemd, where it is on by itself */
};

/* How a person answers ask rules. */
struct approval {
	uint64_t timeout_ms;
	uint64_t hold_ms;   /* that a client waits for the answer */
	const char *grants; /* the file for answers that stay, beside the first one; NULL: there is none */
	const char *group;  /* of approve.sock, or its number; NULL: root's alone */
	bool four_eyes;	    /* who starts something in a session does not answer for it */
	struct notify notify;
	bool once;	 /* remember: once. An answer is for one request: nothing is granted for longer */
	struct place at; /* line 0: not written */
};
