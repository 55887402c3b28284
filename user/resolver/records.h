/* SPDX-License-Identifier: MIT */
/* Records of names other than addresses, as the resolvers have them: what is remembered, and questions for the rest. */
#pragma once

#include "loop/loop.h"
#include "wire/dns.h"

struct records;

/* What is known of a name and a type. */
struct records_known {
	int error;		    /* 0; -ENOENT no such name, -ENODATA no such record; else there is no answer, and */
	const char *words;	    /* this is why */
	struct dns_records records; /* borrowed until the loop goes on */
	uint32_t ttl_s;		    /* how long this will be known */
};

/* The resolvers have answered, or it is certain that they will not. */
typedef void records_ready_fn(void *ctx, const char *name, uint16_t type);

/* resolvers: see nameservers_new(); NULL or "": nobody to ask. 0, -ENOMEM, -EINVAL. */
int records_new(struct loop *loop, const char *resolvers, records_ready_fn *on_known, void *ctx, struct records **ret);
void records_free(struct records *records); /* NULL is fine */
void records_tick(struct records *records); /* every 50 ms or so */

/* True: that is what is known of the name (canonical) and the type (dns_record_bit()). False: it is asked for, and
 * on_known() will be called, but not from here. */
bool records_get(struct records *records, const char *name, uint16_t type, struct records_known *ret);

/* Takes back the questions that are not wanted any more: they are not repeated on the wire, and on_known() is not called. */
typedef bool records_wanted_fn(void *ctx, const char *name, uint16_t type);
void records_cancel(struct records *records, records_wanted_fn *wanted);
