/* SPDX-License-Identifier: MIT */
/* What a refusal says. */
#pragma once

#include "http/head.h"
#include "policy/verdict.h"
#include "wire/url.h"

struct client;

/* A whole response: head and body. host and verdict may be NULL; question is what a person is, or was, asked; 0: nothing. */
int refusal_make(const struct client *client, enum np_reason reason, const struct head *request,
		 const struct host *host, const struct verdict *verdict, uint64_t question, const char *detail,
		 struct head *ret_head, struct buf *ret_body);
