/* SPDX-License-Identifier: MIT */
/*
 * A credential: a secret that the inspector puts into requests, so that no sandbox ever holds it. The policy says where its
 * value comes from and where it may go; the value itself is never here. What a sandbox holds is a placeholder
 * (secrets/placeholder.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/proxy.h"
#include "policy/rule.h"
#include "vocab/limits.h"

struct policy;

enum source_kind {
	SOURCE_SYSTEMD, /* a file of $CREDENTIALS_DIRECTORY */
	SOURCE_FILE,
	SOURCE_COMMAND,
	SOURCE_ENV, /* of netpawld */
};

/* Where the daemon has a value from. */
struct credential_source {
	enum source_kind kind;
	const char *name;	    /* SYSTEMD, ENV: the name; FILE: the whole path */
	const char *const *command; /* NULL-terminated; the first is an absolute path */
	uint64_t ttl_ms; /* it is fetched again before it is that old, and not used after; 0: as long as it lasts */
	struct place at;
};

/* A place in a request that the value may stand in. */
enum slot_kind {
	SLOT_BEARER,	/* Authorization: Bearer VALUE, or "token VALUE" */
	SLOT_BASIC,	/* Authorization: Basic, as user or password */
	SLOT_HEADER,	/* the header of that name */
	SLOT_QUERY,	/* the parameter of that name */
	SLOT_PATH,	/* anywhere in the path */
	SLOT_FORM,	/* a body of application/x-www-form-urlencoded */
	SLOT_JSON,	/* a body of JSON */
	SLOT_WEBSOCKET, /* the text messages of a websocket */
	SLOT_SIGV4,	/* the value is KEY_ID:SECRET or KEY_ID:SECRET:TOKEN, and signs the request */
	SLOT_KINDS,
};
const char *slot_name(enum slot_kind kind); /* "bearer", ... */

struct credential_slot {
	enum slot_kind kind;
	const char *name;   /* BASIC: the user; HEADER: in lower case; QUERY; SIGV4: the service */
	const char *region; /* SIGV4 */
};

/* What becomes of a value that an origin sends back. */
enum credential_echo {
	ECHO_IS_SCRUBBED, /* replaced by the placeholder; what cannot be searched is refused */
	ECHO_IS_REFUSED,
	ECHO_PASSES,
};

/* A file that a tool reads its credentials from. */
enum placeholder_file {
	PLACEHOLDER_NO_FILE,
	PLACEHOLDER_NETRC,
	PLACEHOLDER_NPMRC,
	PLACEHOLDER_PIP,
	PLACEHOLDER_GIT,
	PLACEHOLDER_AWS,
	PLACEHOLDER_DOCKER,
	PLACEHOLDER_FILES,
};
const char *placeholder_file_name(enum placeholder_file file); /* "netrc", ... */

#define CREDENTIAL_NO_RAISE  LEVEL_COUNT /* on_leak: it is refused, and no more */
#define CREDENTIAL_READ_ONLY 1		 /* classes of runs: bits */
#define CREDENTIAL_WRITE     2

/* Tokens that an origin issues in responses to requests that a credential is for: sandboxes get them sealed (secrets/token.h). Names are
 * NULL-terminated lists; NULL: none. */
struct credential_capture {
	const char *const *json;    /* members of JSON, at any depth */
	const char *const *cookies; /* of set-cookie */
	const char *const
		*paths; /* globs of requests whose responses have some, NULL-terminated; NULL: any that it is for */
	struct pattern_run hosts;			   /* for: that get them, beside those of the credential */
	struct credential_slot slots[NP_CREDENTIAL_SLOTS]; /* that they may stand in, beside those of the credential */
	size_t n_slots;
};

struct credential {
	const char *name;
	uint32_t number; /* its index in policy->credentials */
	struct credential_source source;
	struct pattern_run hosts;   /* for: names and ports, 443 where none is written. None: rules name it */
	const char *const *paths;   /* globs, NULL-terminated; NULL: any */
	const char *const *methods; /* upper case, NULL-terminated; NULL: any */
	struct credential_slot slots[NP_CREDENTIAL_SLOTS];
	size_t n_slots;		     /* 1 at least */
	bool always;		     /* inject: always. The first slot gets it, whatever the client wrote there */
	const char *env;	     /* the variable of sandboxes that holds its placeholder; NULL: none does */
	const char *like;	     /* shape of the placeholder */
	enum placeholder_file file;  /* of the sandbox, that holds it */
	uint8_t levels;		     /* bit (1 << level): at which it may be used */
	const char *const *sessions; /* scope: globs of USER/SESSION, NULL-terminated; NULL: every session */
	uint8_t classes;	     /* scope: CREDENTIAL_READ_ONLY, CREDENTIAL_WRITE */
	enum credential_echo echo;
	unsigned on_leak; /* the level that a session is raised to that sends its value; CREDENTIAL_NO_RAISE */
	const struct credential_capture *capture; /* NULL: what its origins issue is theirs to give */
	struct place at;
};

/* What there is to know of a credential's value, without it. */
struct credential_state {
	const struct credential *credential;
	bool has_value;
	bool busy;		/* its command runs */
	char problem[160];	/* of the last try, in words; "" when that went well */
	uint64_t fetched_us;	/* CLOCK_REALTIME; 0: never */
	uint64_t expires_us;	/* likewise; 0: it does not */
	uint64_t used_us, uses; /* last use, likewise, and how many since netpawld started */
	uint64_t tokens;	/* that were captured since then */
};

/* What a request is, as far as credentials ask. */
struct credential_facts {
	const struct host *host;
	uint16_t port;
	const char *method; /* NULL: any; then the path does not count either */
	const char *path;   /* as sent, with or without its query */
	const char *session;
	struct np_rung rung;
	const struct credential *named; /* by the rule that allows it; may be NULL */
};

/* May it use it, now or at a higher level? */
bool credential_is_offered(const struct credential *credential, const char *session, const struct np_rung *rung);
/* May it be put into this request? TLS is the caller's business. */
bool credential_is_bound(const struct policy *policy, const struct credential *credential,
			 const struct credential_facts *facts);
/* The same of a token that was captured for it. */
bool credential_token_is_bound(const struct policy *policy, const struct credential *credential,
			       const struct credential_facts *facts);
/* Are tokens to be captured from the cookies of the response to this request? From those of every request that may have such a token:
 * an origin that gets a cookie may renew it. */
bool credential_captures_cookies(const struct policy *policy, const struct credential *credential,
				 const struct credential_facts *facts);
/* From its JSON, which it has to be then? From that of requests that the credential is bound to; where paths are written, of these paths of
 * all hosts that get tokens. */
bool credential_captures_json(const struct policy *policy, const struct credential *credential,
			      const struct credential_facts *facts);
/* NULL: there is none of that name. */
const struct credential *credential_find(const struct policy *policy, const char *name);
