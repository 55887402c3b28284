/* SPDX-License-Identifier: MIT */
/*
 * DNS messages as a server sees them: what a client asks, and what it is told. Names and numbers of types and RCODEs are
 * those of <arpa/nameser.h>.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"
#include "wire/hostname.h"

#define DNS_QUESTION_SIZE 259  /* a name of 255 bytes, its type and its class */
#define DNS_UDP_MIN	  512  /* what every client takes; no limit of an answer is lower */
#define DNS_UDP_MAX	  1232 /* fits one packet on any path (DNS flag day 2020): no fragments */
#define DNS_TCP_MAX	  65535
#define DNS_TEXT_SIZE	  1012 /* a name as people write it, each of 253 bytes escaped, at the most */

struct dns_query {
	uint16_t id;
	uint8_t opcode;
	bool recursion, unchecked; /* RD and CD, which an answer repeats */
	uint16_t type;

	/* As it was sent, for the answer to repeat byte by byte: clients that mix upper and lower case look for it. Empty
	 * when it could not be read. */
	uint8_t question[DNS_QUESTION_SIZE];
	size_t question_len;

	/* Canonical (wire/hostname.h), where the name is a host's: _443._tcp.example is one, a label with other bytes, the root
	 * and 7.example.0x1 are none, and then this is empty. No rule can match such a name. */
	char name[NAME_SIZE];

	bool edns;	   /* an OPT record is there, and understood */
	bool dnssec;	   /* DO, which an answer repeats */
	uint16_t udp_size; /* what the client takes; DNS_UDP_MIN at least, also without EDNS */
};

/* 0: one question of class IN that can be judged. Above 0: the RCODE to answer with (ns_r_formerr, ns_r_notimpl,
 * ns_r_refused, ns_r_badvers, ns_r_servfail when memory ran out); ret has what dns_answer_write() needs for that.
 * -EBADMSG: nothing may be answered (shorter than a header, or a response, which could go on for ever); ret is untouched.
 * The work is linear in len and nothing is allocated but by libidn2. */
int dns_query_read(const uint8_t *data, size_t len, struct dns_query *ret);

/* The question's name for people: printable ASCII, all else as \DDD (RFC 1035, 5.1). "." for the root, "" for none. */
void dns_query_text(const struct dns_query *query, char ret[static DNS_TEXT_SIZE]);

/* "A", "AAAA", ...; "TYPE1234" for those without a name here. */
#define DNS_TYPE_SIZE 12
void dns_type_text(uint16_t type, char ret[static DNS_TYPE_SIZE]);

/* Types whose records can be looked up for a sandbox, where a rule says so. Their bits, for sets; 0: not one of them. No
 * such type leads to an address or to another way to speak (as HTTPS does): that would not be judged. */
#define DNS_RECORD_TYPES "MX, SRV and TXT"
unsigned dns_record_bit(uint16_t type);
uint16_t dns_record_parse(const char *word); /* "MX"; 0: not one of them */
uint16_t dns_record_next(unsigned *bits);    /* takes one type out of a set; 0: it is empty */

/* Of one name and type: each RDATA with its length, two bytes, in front of it. Names in it are whole. */
struct dns_records {
	unsigned count;
	size_t len;
	const uint8_t *data;
};

/* How long an answer may be. */
size_t dns_answer_limit(const struct dns_query *query, bool tcp);

/* INFO-CODEs of RFC 8914 */
#define DNS_EDE_NONE  UINT16_MAX
#define DNS_EDE_OTHER 0
#define DNS_EDE_BLOCKED \
	15 /* by a policy of whoever runs the server: what every refusal by policy says, whatever its RCODE */

struct dns_answer {
	unsigned rcode; /* NOERROR without records of the type asked for is NODATA */
	/* Those of the family asked for are written; others may be there. */
	const struct np_addr *addrs;
	size_t n_addrs;
	const char *ptr;		   /* canonical; for PTR, else NULL */
	const struct dns_records *records; /* of the type asked for, else NULL */
	uint32_t ttl_s;			   /* of these records */
	/* Why, for clients with EDNS: an INFO-CODE or DNS_EDE_NONE, and words (UTF-8) or NULL. What is longer than
	 * NP_DNS_WORDS_MAX is cut. */
	uint16_t ede;
	const char *words;
};

/* Writes at most limit bytes (DNS_UDP_MIN at least) and returns how many. What does not fit: first the words go, then
 * the records, and TC tells the client to come again over TCP. NXDOMAIN and NODATA carry a SOA, so that they are forgotten
 * after NP_DNS_NEGATIVE_S. */
size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out, size_t limit);

/* The address that a canonical name below in-addr.arpa or ip6.arpa speaks of. -EINVAL when it is no whole address. */
int dns_reverse_parse(const char *name, struct np_addr *ret);

/* A message over TCP has its length in front. 0 and the message; -EAGAIN while it is not all there; -EMSGSIZE when it is
 * longer than NP_DNS_QUERY_MAX, and never worth waiting for. */
#define DNS_FRAME_SIZE 2
int dns_frame_read(const uint8_t *data, size_t len, const uint8_t **ret_message, size_t *ret_len);
void dns_frame_write(uint8_t out[static DNS_FRAME_SIZE], size_t len); /* for a message of DNS_TCP_MAX at most */
