/* SPDX-License-Identifier: MIT */
/* What queries (dns_read.c) and answers (dns_answer.c) are read with. Offsets count from the start of the message. */
#pragma once

#include <arpa/nameser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dns_message {
	const uint8_t *data;
	size_t len;
};

/* A name in wire form and lower case, with the empty label at its end. */
struct dns_wire_name {
	size_t len;
	uint8_t bytes[NS_MAXCDNAME];
};

struct dns_record {
	struct dns_wire_name owner;
	unsigned type, class;
	uint32_t ttl_s; /* as it stands there: OPT has something else in it */
	size_t data, data_len;
};

/* Both bytes must be there. */
static inline unsigned dns_read16(const struct dns_message *m, size_t at)
{
	return (unsigned)m->data[at] << 8 | m->data[at + 1];
}

/* Without pointers a name that goes on elsewhere is none. ret_next: what comes behind it. 0 or -EBADMSG. */
int dns_name_read(const struct dns_message *m, size_t at, bool pointers, struct dns_wire_name *ret, size_t *ret_next);
/* Reads the record at *at and leaves *at behind it. 0; or -EBADMSG, and *at is as it was. */
int dns_record_read(const struct dns_message *m, size_t *at, bool pointers, struct dns_record *ret);
