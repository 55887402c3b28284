/* SPDX-License-Identifier: MIT */
/*
 * A policy: read once from YAML, checked, compiled, then never changed. Whoever
 * wants another one loads another one.
 *
 *   files --read--> rules --compile--> names (a trie over labels), nets (ranges of addresses)
 *   facts --policy_decide (decide.h)--> verdict
 *
 * Pure but for files.c, which opens what include: names.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "vocab/level.h"
#include "policy/lifetime.h"
#include "policy/problem.h"
#include "policy/proxy.h"
#include "policy/rule.h"
#include "vocab/limits.h"
#include "vocab/run_options.h"

struct arena;	   /* base/arena.h */
struct credential; /* credential.h */
struct grant;	   /* grant.h */
struct name_table; /* name_table.h */
struct net_table;  /* nets.h */

/* Where sandboxes live that `netpawl run` makes. */
enum sandbox_network {
	NETWORK_PRIVATE, /* unless written. Those that start in PROXIED or NONE in a network namespace of their own */
	NETWORK_SHARED,	 /* all of them in the host's */
	NETWORK_NAT,	 /* all of them; those that start in FULL with a way out of it */
};

/* For sandboxes that `netpawl run` makes. 0: no limit. */
struct sandbox_policy {
	struct {
		const char *path; /* what --bind may take from: this, and what is below */
		bool readonly;
	} binds[NP_BINDS_MAX];
	size_t n_binds;
	const char *devices[NP_DEVICES_MAX]; /* patterns below /dev */
	size_t n_devices;
	struct limits limits;
	uint64_t idle_ms; /* after which a kept one goes; never 0 */
	enum sandbox_network network;
};

/* What a caller of the control API may be; bits. Root is an operator, and nobody else is anything unless access: says so. */
enum role {
	ROLE_OPERATOR = 1, /* everything */
	ROLE_PLATFORM = 2, /* sessions that are named, and their runs */
	ROLE_APPROVER = 4, /* decides on runs */
	ROLE_READER = 8,   /* sees, and changes nothing */
	ROLE_EDITOR = 32,  /* writes files of the policy, see policy/editors.h */
	ROLE_INBOX = 16,   /* sees what waits for a person, and answers: who calls approve.sock, and nobody else */
};

/* An entry of access:. */
struct access_caller {
	bool is_group;
	const char *name; /* of a user or a group of the host, or its number */
	unsigned roles;
	const char *const *sessions; /* of ROLE_PLATFORM: globs of USER/SESSION, NULL-terminated */
};

/* What happens when no rule matches. */
struct fallback {
	enum action action; /* ACTION_DENY, ACTION_ASK or ACTION_ALLOW */
	struct place at;    /* line 0: not written in any file */
};

/* What becomes of a container that the OCI hook meets and that names no session. */
#define UNKNOWN_IGNORE "ignore"
#define UNKNOWN_REFUSE "refuse"

#define POLICY_HASH_SIZE 65 /* SHA-256 in hexadecimal, and its NUL */

struct policy {
	struct arena *arena;	     /* all memory below is in it */
	char hash[POLICY_HASH_SIZE]; /* of every file's name and bytes, in the order they were read */

	const char **files; /* as named in messages; rule->at.file is an index */
	size_t n_files;

	struct level_modes modes;
	struct fallback fallback[LEVEL_COUNT]; /* default:, by level; a higher one is never looser */

	const struct rule *rules; /* for PROXIED, top to bottom */
	size_t n_rules;
	const struct rule *full; /* for FULL: address rules only */
	size_t n_full;
	struct rule read_only; /* an allow of the addresses that such runs may reach past the inspector, of those
					 * that rules allow; no pattern: none */
	const struct pattern *patterns; /* of all rules; a rule has a run of them */
	size_t n_patterns;

	uint16_t inspect_ports[NP_INSPECT_PORTS_MAX];
	size_t n_inspect_ports;
	uint16_t host_loopback[NP_HOST_PORTS_MAX];
	size_t n_host_loopback;
	uint16_t inbound[NP_INBOUND_MAX]; /* where callers from beyond the host reach sandboxes in FULL, TCP and UDP */
	size_t n_inbound;

	const char *extra_roots; /* PEM: certificates that origins are trusted by beside the system's; "" */
	size_t extra_roots_len;

	struct upstream_proxy proxies[NP_PROXIES_MAX]; /* the first that is for a host is its way */
	size_t n_proxies;

	const struct decider *deciders;
	size_t n_deciders;
	const struct credential *credentials; /* credential.h */
	size_t n_credentials;
	struct approval approval;
	struct exports exports;
	const char *unknown_containers; /* UNKNOWN_IGNORE, UNKNOWN_REFUSE, or USER/SESSION */
	const struct grant *grants;	/* grant.h */
	size_t n_grants;
	bool refused_synthetic;		  /* dns: refused: a name that no rule allows has an address all the same */
	const char *notices[NP_NONE + 1]; /* by mode: what notice_write() says; NULL: its own words */
	struct sandbox_policy sandbox;
	struct lifetime lifetime;
	struct access_caller access[NP_ACCESS_CALLERS];
	size_t n_access;

	/* What the compiler makes of the rules, for policy_decide(). */
	struct name_table *names;
	struct net_table *nets;	     /* of rules */
	struct net_table *full_nets; /* of full */
	struct net_table *read_nets; /* of read_only */
};

/* Where include: finds its files. name is relative to the directory of the first file, with no "." or ".." left in
 * it. 0 with text that the caller frees; -errno. */
struct policy_source {
	int (*read)(void *ctx, const char *name, char **ret_text, size_t *ret_len);
	void *ctx;
	bool trusted; /* it was checked before: no warnings */
};

/* name is that of the first file in source; shown is how messages call its directory ("" or "etc/netpawl/", with
 * the slash). 0, with what is worth a warning in problems; or -errno with at least one error there. problems may
 * not be NULL and is to be cleared by the caller. */
int policy_load(const struct policy_source *source, const char *shown, const char *name, struct policy **ret,
		struct problems *problems);
/* The same from disk (files.c): nothing outside of path's directory is ever opened, however its links lead. */
int policy_load_file(const char *path, struct policy **ret, struct problems *problems);
/* The same, but for one file that it is made of, which says this, or (NULL) is not there. */
int policy_load_with(const char *path, const char *other, const char *text, struct policy **ret,
		     struct problems *problems);
/* From memory: no includes. */
int policy_load_text(const char *name, const char *text, size_t len, struct policy **ret, struct problems *problems);
/* What holds without a file: version: 1 and nothing else. */
int policy_default(struct policy **ret);
void policy_free(struct policy *policy);

/* "coding-agent.yaml:14"; "default" when the place is in no file. */
#define PLACE_TEXT_SIZE 320
void place_format(const struct policy *policy, const struct place *place, char text[static PLACE_TEXT_SIZE]);

static inline void policy_free_cleanup(struct policy **policy)
{
	policy_free(*policy);
}
#define _policy_ __attribute__((__cleanup__(policy_free_cleanup)))
