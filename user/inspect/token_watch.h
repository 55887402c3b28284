/* SPDX-License-Identifier: MIT */
/*
 * The tokens that a worker has seen last, issued to a session or used by it: it searches what comes back to that session and what leaves it
 * for them, as for the values of credentials. Not what others of its sessions say and are told: an origin can issue what it likes, a sandbox
 * can have it issue that, and whoever could have any text found as a token would have others' requests refused for it, and their sessions
 * raised. A token that was pushed out is as sealed as before, and no longer searched for.
 */
#pragma once

#include <sys/queue.h>

#include "link/link.h"
#include "secrets/scrub.h"
#include "secrets/secrets.h"
#include "secrets/token.h"

struct buf;
struct client;
struct head;
struct session;
struct watched_token;
struct worker;

TAILQ_HEAD(watched_token_list, watched_token);
LIST_HEAD(token_watch_list, token_watch);

/* A session's, as long as it has some: it may be gone, and come again. */
struct token_watch {
	LIST_ENTRY(token_watch) of_worker;
	struct session *session; /* NULL: it is gone */
	char name[NP_LABEL_SIZE];
	struct watched_token_list tokens; /* the oldest first */
	unsigned n;
	bool stale;		  /* search is for others */
	struct search *search;	  /* NULL: for none */
	struct scrubber scrubber; /* memory */
};

/* Where a worker keeps them. */
struct token_slots {
	struct watched_token *items;	 /* NP_TOKENS_ALL of them, locked; NULL: there was none yet */
	struct watched_token_list free;	 /* of these */
	struct token_watch_list watches; /* those that have some */
	struct secret lent;		 /* token_watch_lend() */
};

/* A session comes, and goes. */
void token_watch_come(const struct worker *worker, struct session *session);
void token_watch_go(struct session *session);
/* It is one that is watched from now on, on behalf of the client's session. */
void token_watch_note(const struct client *client, const struct token *token);
/* It as a value, good until the next call. */
const struct secret *token_watch_lend(struct worker *worker, const struct token *token);
void token_watch_free(struct worker *worker); /* all are forgotten */

bool token_watch_is_empty(const struct client *client); /* there are none of its session */
/* To search for those of the client's session; *ret NULL: there are none. -errno: nothing may pass that would have to be
 * searched. Numbers of what it finds are for the two below. */
int token_watch_scrubber(const struct client *client, struct scrubber **ret);
const char *token_watch_credential(const struct client *client, int number);
/* What stands for it in what its session gets, into out: sealed, if it is short enough, or a word. */
void token_watch_word(const struct client *client, int number, struct buf *out);

/* As scrub_look() and secret_in_head() have it. -1, and all is used, if there are none. */
int token_watch_look(const struct client *client, const char *data, size_t len, bool end, size_t *ret_used);
int token_watch_look_head(const struct client *client, const struct head *head);
