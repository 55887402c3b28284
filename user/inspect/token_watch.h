/* SPDX-License-Identifier: MIT */
/*
 * The tokens that a worker has seen last, issued or used: it searches what comes back and what leaves for them, as for the values of
 * credentials. They are few, because any sandbox can have an origin issue more; a token that was pushed out is as sealed as
 * before, and no longer searched for.
 */
#pragma once

#include "secrets/scrub.h"
#include "secrets/secrets.h"
#include "secrets/token.h"

struct buf;
struct head;
struct worker;
struct watched_token;

struct token_watch {
	struct watched_token *items; /* NP_TOKENS_WATCHED of them, locked; NULL: there was none yet */
	unsigned next;		     /* that is overwritten by one more */
	unsigned n;
	bool stale;		  /* search is for others */
	struct search *search;	  /* NULL: for none */
	struct scrubber scrubber; /* memory */
	struct secret lent;	  /* token_watch_lend() */
};

/* It is one that is watched from now on, on behalf of this session. */
void token_watch_note(struct worker *worker, const char *session, const struct token *token);
/* It as a value, good until the next call. */
const struct secret *token_watch_lend(struct worker *worker, const struct token *token);
void token_watch_free(struct token_watch *watch); /* all are forgotten */

/* To search for them; *ret NULL: there are none. -errno: nothing may pass that would have to be
 * searched. Numbers of what it finds are for the two below. */
int token_watch_scrubber(struct worker *worker, struct scrubber **ret);
const char *token_watch_credential(const struct worker *worker, int number);
/* What stands for it in what this session gets, into out: sealed, if that is its own and short enough, or a word. */
void token_watch_word(const struct worker *worker, const char *session, int number, struct buf *out);

/* As scrub_look() and secret_in_head() have it. -1, and all is used, if there are none. */
int token_watch_look(struct worker *worker, const char *data, size_t len, bool end, size_t *ret_used);
int token_watch_look_head(struct worker *worker, const struct head *head);
