/* SPDX-License-Identifier: MIT */
/* The files of the stage `credentials`, among themselves and for the messages of websockets. */
#pragma once

#include "inspect/carried.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "secrets/slots.h"

/* A look at the head of one request, at a piece of its body, or of a message of the websocket that it became. */
struct credential_look {
	struct exchange *ex; /* NULL: a websocket's */
	const struct client *client;
	struct credential_facts facts;
	bool tls;
	struct carried *carried; /* who goes with it; NULL: not yet */
	struct link_request *report;
	const struct policy *policy;
	struct slot_finder finder;	  /* without a set of placeholders: no credential is left, or no memory */
	const struct credential *refused; /* the one that is the reason, ... */
	enum np_reason reason;		  /* ... which is this one, ... */
	const char *words;		  /* ... in words */
	const struct credential *signs;	  /* the request is to be signed with this one ... */
	const char *body_hash;		  /* ... and has a body with this hash; NULL: it is not known */
	bool needs_body;		  /* it is, and that is needed: the request has to wait for its body */
};

#define NOBODYS_TOKEN \
	"a placeholder of a token that is none of this session: it was issued to another one, or was changed"

/* -- stage_credentials_look.c */
void credential_look_begin(struct credential_look *look, struct exchange *exchange);
void credential_look_message(struct credential_look *look, const struct client *client,
			     const struct credential_facts *facts, struct carried *carried,
			     struct link_request *report);
/* The value, which the request carries from now on; NULL: the look says why not. */
const struct secret *credential_look_value(struct credential_look *look, const struct credential *credential);
/* A placeholder stands at this place: NULL if it must not. */
const struct secret *credential_look_placeholder(struct credential_look *look, const struct placeholder *placeholder,
						 const struct slot_place *place);
/* NULL, always. */
const struct secret *credential_look_refuse(struct credential_look *look, const struct credential *credential,
					    enum np_reason reason, const char *words);
/* What the report says, the name of the credential among it, and the words for it. */
#define LOOK_WORDS_SIZE (NP_NAME_MAX + 128)
void credential_look_report(struct credential_look *look, char words[static LOOK_WORDS_SIZE]);
/* The exchange ends for what the look says, or for want of memory if it says nothing. */
enum stage_result credential_look_end(struct credential_look *look);
struct credential_facts credential_facts_of(const struct exchange *exchange);
/* Is it for this request? Whether it has a value is another matter. */
bool credential_fits(const struct exchange *exchange, const struct policy *policy, const struct credential *credential);
/* The same of tokens that were captured for it. */
bool credential_token_fits(const struct exchange *exchange, const struct policy *policy,
			   const struct credential *credential);
int carried_get(struct exchange *exchange); /* makes exchange->carried, unless it is there */

/* -- stage_credentials_head.c: -EACCES: the look says why */
int credentials_head_rewrite(struct credential_look *look);
int credentials_head_sign(struct credential_look *look, const struct credential *credential);

/* -- stage_credentials_body.c */
void credentials_body_open(struct exchange *exchange, const struct policy *policy);
enum stage_result credentials_body_look(struct exchange *exchange, struct piece *piece);
