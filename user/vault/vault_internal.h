/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "loop/loop.h"
#include "vault/source.h"
#include "vault/vault.h"

/* A command that is to print a value: command.c's. */
struct command {
	pid_t pid;	   /* 0: none runs */
	int output;	   /* of it; when that is at its end, a descriptor of the process, which has yet to end */
	uint64_t until_ns; /* it is killed then */
	char *text;	   /* locked, SOURCE_ROOM bytes */
	size_t len;
};

struct kept {
	struct vault *vault;
	const struct credential *credential;
	struct command command;
	char problem[160];
	uint64_t fetched_us, used_us, uses, tokens;
	uint64_t due_ns; /* when it is to be fetched again; 0: never */
};

struct vault {
	struct vault_config config;
	const struct policy *policy;
	struct secrets *secrets;
	struct placeholder_key *key; /* locked */
	struct kept *kept;	     /* one for each credential of the policy */
	size_t n;
};

/* -- vault.c */
/* What a source gave; text NULL: nothing, and problem says why. */
void kept_fetched(struct kept *kept, const char *text, size_t len, const char *problem);

/* -- command.c */
int command_start(struct kept *kept); /* kept_fetched() is called when it has ended. 0 or -errno */
void command_stop(struct kept *kept); /* fine when none runs */
void command_tick(struct kept *kept, uint64_t now_ns);

/* -- key.c: the placeholder key, which outlives a daemon */
int placeholder_key_open(const char *path, struct placeholder_key *ret);
