/* SPDX-License-Identifier: MIT */
/*
 * The keys of a policy file: their names, the shape of their values, and a sentence each. One table, for two readers: the
 * reader of policies finds keys by it (map_fields()), and the JSON Schema is written from it (policy_schema()). Values are
 * the reader's business; a test holds the shapes against what the reader takes.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "vocab/run_options.h"

enum key_shape {
	KEY_VERSION,	   /* 1 */
	KEY_TEXT,	   /* one scalar */
	KEY_TEXTS,	   /* one scalar or a list of them, not empty */
	KEY_TEXT_LIST,	   /* a list of scalars, not empty */
	KEY_WORD,	   /* one of words */
	KEY_WORD_OR_MAP,   /* one of words, or a mapping with the keys of below */
	KEY_WORDS,	   /* one of words or a list of them, not empty */
	KEY_WORDS_OR_MAPS, /* one of words, a mapping with the keys of below, or a list of these, not empty */
	KEY_MODE,	   /* one of words; case does not matter */
	KEY_FLAG,	   /* true or false */
	KEY_SIZE,	   /* a number of bytes, perhaps with a unit */
	KEY_TIME,	   /* a number with ms, s, m or h */
	KEY_AGE,	   /* a number with s, m, h or d, or forever */
	KEY_COUNT,	   /* a number from 1 on */
	KEY_CPUS,	   /* a number, perhaps with up to three decimals */
	KEY_PORTS,	   /* a list of ports, perhaps empty */
	KEY_MAP,	   /* a mapping with the keys of below */
	KEY_MAP_LIST,	   /* a list of such mappings, perhaps empty */
	KEY_TEXT_OR_MAPS,  /* one scalar, such a mapping, or a list of these, not empty */
	KEY_NAMED_MAPS,	   /* a mapping of names that the author chooses to such mappings */
	KEY_NAMED_LISTS,   /* the same to lists of scalars, or mappings with the keys of below */
};

struct key {
	const char *name;
	enum key_shape shape;
	const char *about;
	const char *const *words;    /* NULL-terminated */
	const struct key_set *below; /* of mappings */
};

struct key_set {
	const char *where; /* "unknown key ... in WHERE" */
	const struct key *keys;
	size_t count;
	size_t exactly_one; /* of so many keys at the beginning one is there, and only one; 0: all may be left out */
};

#define KEY_SET_MAX 32 /* keys of one mapping */

/* Keys of a file. The first eight may be in every file, the others only in the first one. */
enum section {
	SECTION_VERSION,
	SECTION_INCLUDE,
	SECTION_LISTS,
	SECTION_RULES,
	SECTION_FULL,
	SECTION_DECIDERS,
	SECTION_GRANTS,
	SECTION_CREDENTIALS,
	SECTION_LEVELS,
	SECTION_DEFAULT,
	SECTION_INSPECT_PORTS,
	SECTION_HOST_LOOPBACK,
	SECTION_INBOUND,
	SECTION_APPROVAL,
	SECTION_EXTRA_ROOTS,
	SECTION_UPSTREAM_PROXY,
	SECTION_NOTICES,
	SECTION_SANDBOX,
	SECTION_DNS,
	SECTION_SESSIONS,
	SECTION_WORKSPACES,
	SECTION_ACCESS,
	SECTION_CONTAINERS,
	SECTION_METRICS,
	SECTION_EVENTS,
	SECTION_COUNT,
};

enum rule_key {
	RULE_ALLOW,
	RULE_DENY,
	RULE_ASK,
	RULE_DECIDE,
	RULE_METHODS,
	RULE_PATHS,
	RULE_HEADERS,
	RULE_INSPECT,
	RULE_WEBSOCKET,
	RULE_MAX_BODY,
	RULE_TIMEOUTS,
	RULE_CAPTURE,
	RULE_CREDENTIAL,
	RULE_DNS,
	RULE_BY,
	RULE_FOR,
	RULE_SESSIONS,
	RULE_QUIET,
	RULE_KEYS,
};

enum list_key { LIST_HOSTS, LIST_QUIET, LIST_KEYS };
enum timeout_key { TIMEOUT_IDLE, TIMEOUT_FIRST_BYTE, TIMEOUT_CONNECT, TIMEOUT_KEYS };
enum decider_key { DECIDER_COMMAND, DECIDER_SOCKET, DECIDER_TIMEOUT, DECIDER_NETWORK, DECIDER_KEYS };
enum notify_key { NOTIFY_COMMAND, NOTIFY_SOCKET, NOTIFY_URL, NOTIFY_NETWORK, NOTIFY_KEYS };
enum approval_key {
	APPROVAL_TIMEOUT,
	APPROVAL_HOLD,
	APPROVAL_REMEMBER,
	APPROVAL_GRANTS,
	APPROVAL_GROUP,
	APPROVAL_FOUR_EYES,
	APPROVAL_NOTIFY,
	APPROVAL_KEYS
};
enum grant_key { GRANT_ALLOW, GRANT_KIND, GRANT_FOR, GRANT_SESSIONS, GRANT_KEYS };
enum dns_key { DNS_REFUSED, DNS_KEYS };
enum notice_key { NOTICE_PROXIED, NOTICE_NONE, NOTICE_KEYS };
enum sessions_key { SESSIONS_KEEP, SESSIONS_COUNT, SESSIONS_REMEMBER, SESSIONS_KEYS };
enum workspaces_key { WORKSPACES_AT_END, WORKSPACES_ARCHIVE_MAX, WORKSPACES_KEYS };
enum sandbox_key {
	SANDBOX_BINDS,
	SANDBOX_LIMITS, /* those of vocab/run_options.h, in their order */
	SANDBOX_IDLE = SANDBOX_LIMITS + RUN_N_LIMITS,
	SANDBOX_READ_ONLY,
	SANDBOX_DEVICES,
	SANDBOX_NETWORK,
	SANDBOX_KEYS,
};

enum proxy_key { PROXY_URL, PROXY_HOSTS, PROXY_EXCEPT, PROXY_CREDENTIALS, PROXY_KEYS };
enum proxy_login_key { PROXY_LOGIN_FILE, PROXY_LOGIN_KEYS };
enum credential_key {
	CREDENTIAL_SOURCE,
	CREDENTIAL_FOR,
	CREDENTIAL_PATHS,
	CREDENTIAL_METHODS,
	CREDENTIAL_AS,
	CREDENTIAL_PLACEHOLDER,
	CREDENTIAL_INJECT,
	CREDENTIAL_LEVELS,
	CREDENTIAL_SCOPE,
	CREDENTIAL_ECHO,
	CREDENTIAL_ON_LEAK,
	CREDENTIAL_CAPTURE,
	CREDENTIAL_KEYS,
};
enum capture_key { CAPTURE_JSON, CAPTURE_COOKIES, CAPTURE_PATHS, CAPTURE_FOR, CAPTURE_AS, CAPTURE_KEYS };
enum source_key {
	SOURCE_KEY_SYSTEMD,
	SOURCE_KEY_FILE,
	SOURCE_KEY_COMMAND,
	SOURCE_KEY_ENV,
	SOURCE_KEY_TTL,
	SOURCE_KEYS
};
enum as_key { AS_BASIC, AS_HEADER, AS_QUERY, AS_SIGV4, AS_KEYS };
enum sigv4_key { SIGV4_SERVICE, SIGV4_REGION, SIGV4_KEYS };
enum placeholder_key { PLACEHOLDER_ENV, PLACEHOLDER_LIKE, PLACEHOLDER_FILE, PLACEHOLDER_KEYS };
enum access_key { ACCESS_OPERATOR, ACCESS_PLATFORM, ACCESS_APPROVER, ACCESS_EDITOR, ACCESS_READER, ACCESS_KEYS };
enum metrics_key { METRICS_LISTEN, METRICS_KEYS };
enum events_key { EVENTS_OTLP, EVENTS_JOURNALD, EVENTS_KEYS };
enum containers_key { CONTAINERS_UNKNOWN, CONTAINERS_KEYS };
enum platform_key { PLATFORM_CALLERS, PLATFORM_SESSIONS, PLATFORM_KEYS };

extern const char *const keys_networks[]; /* by enum sandbox_network (policy.h) */
extern const struct key_set keys_file, keys_access, keys_platform, keys_levels, keys_defaults, keys_rule, keys_list,
	keys_timeouts, keys_decider, keys_notify, keys_approval, keys_notices, keys_sandbox, keys_dns, keys_sessions,
	keys_workspaces, keys_proxy, keys_proxy_login, keys_containers, keys_grant, keys_credential, keys_source,
	keys_as, keys_sigv4, keys_placeholder, keys_capture, keys_metrics, keys_events;

/* The JSON Schema (draft 7) of a policy file, as one line of JSON. Ask buf_error(). */
void policy_schema(struct buf *out);
