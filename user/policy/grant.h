/* SPDX-License-Identifier: MIT */
/*
 * What people have answered "always" to: each opens one host and port for one kind of request, where a rule (or default:) asks
 * about it. It answers in the person's place, so that it never says anything against a deny. Pure.
 */
#pragma once

#include "base/buf.h"
#include "policy/decide.h"
#include "wire/hostname.h"

enum grant_kind { GRANT_READ, GRANT_WRITE, GRANT_CONNECT };

struct grant {
	struct rule rule; /* an allow without patterns: its levels, sessions, place and text */
	struct host host;
	uint16_t port;
	enum grant_kind kind; /* as a question has it: a grant to read is none to write, and the other way round */
	bool tls;	      /* of a request: its origin is spoken to in TLS */
};

/* The one that answers; NULL: a person has to. verdict asks. */
const struct grant *grant_find(const struct policy *policy, const struct facts *facts, const struct verdict *verdict);

/* What is asked, in words that a grant can say. */
struct grant_facts {
	uint64_t question;
	const char *host; /* a name or an address */
	uint16_t port;
	enum grant_kind kind;
	bool tls;
	enum level level;
	const char *session; /* USER/SESSION: it is for all sessions of that user */
	const char *who, *reason;
	uint64_t answered_us;
};

/* Can it stand in a grant: is it a name or an address, and nothing that means something in YAML or in a URL? */
bool grant_host_is_plain(const char *host);
/* Two lines of the file that approval: grants: names: a comment, and the grant. The same facts make the same lines. -EINVAL:
 * the host is none that can stand there. */
int grant_write(const struct grant_facts *facts, struct buf *out);
extern const char grant_file_head[]; /* what stands in front of the first */
