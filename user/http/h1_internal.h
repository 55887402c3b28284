/* SPDX-License-Identifier: MIT */
/*
 * Inside of HTTP/1.1. Files: h1.c (where messages begin and end), h1_lines.c (lines), h1_start.c (what the first line of a head
 * means), h1_head.c (its fields), h1_chunks.c (chunked bodies and trailers), h1_write.c. The reader does not look at a head
 * before all of it is there: then it is one piece, and how it was cut on the way makes no difference.
 */
#pragma once

#include <errno.h>

#include "http/h1.h"

enum h1_body {
	H1_BODY_NONE,
	H1_BODY_LENGTH,
	H1_BODY_CHUNKED,
	H1_BODY_CLOSE, /* until the connection closes */
};

#define H1_NOMINATED_MAX 8  /* fields that one message takes back by naming them in connection */
#define H1_UPGRADE_MAX	 31 /* bytes of a protocol's name: "websocket" has 9 */
#define H1_CHUNK_DIGITS	 16 /* a larger number than any */

/* Where in a chunked body. */
enum h1_chunk {
	H1_CHUNK_SIZE,
	H1_CHUNK_BLANK, /* space in front of the ";" of an extension */
	H1_CHUNK_EXT,	/* behind it */
	H1_CHUNK_NAME,
	H1_CHUNK_NAME_END, /* space behind the name */
	H1_CHUNK_EQUALS,
	H1_CHUNK_VALUE,
	H1_CHUNK_QUOTED,
	H1_CHUNK_ESCAPED,
	H1_CHUNK_QUOTED_END,
	H1_CHUNK_LF, /* of the size's line */
	H1_CHUNK_DATA,
	H1_CHUNK_DATA_CR,
	H1_CHUNK_DATA_LF,
	H1_CHUNK_BROKEN,
};

/* What the fields of one head said that do not become fields of struct head. */
struct h1_notes {
	unsigned n_fields, n_hosts, n_lengths, n_codings, n_expects, n_upgrades, n_nominated;
	const char *host, *upgrade;
	size_t host_len, upgrade_len;
	bool close, upgrades; /* in connection */
	struct {
		const char *name;
		size_t len;
	} nominated[H1_NOMINATED_MAX];
};

struct h1 {
	enum h1_role role;
	const struct h1_events *events;
	void *ctx;
	int error; /* sticky */
	const char *problem;

	enum {
		H1_READ_HEAD,
		H1_READ_BODY,
		H1_READ_TRAILERS,
		H1_READ_DONE,
		H1_READ_SWITCHED,
	} state;
	enum h1_body body; /* of the message that is read */
	uint64_t left;	   /* bytes of it, H1_BODY_LENGTH; of the chunk, H1_BODY_CHUNKED */
	struct buf raw;	   /* a head or trailers that are not complete yet */
	size_t scanned;	   /* bytes of it that are known to be in order */
	enum h1_chunk chunk;
	unsigned chunk_digits; /* of the size, so far */
	size_t chunk_extra;    /* bytes of extensions, less those of the chunks */
	bool ended;	       /* during the current h1_read() */
	bool blank;	       /* an empty line in front of the request was skipped */
	unsigned interims;
	bool old_version; /* HTTP/1.0 */
	struct head head;
	struct h1_notes notes;
	struct fields *trailers; /* NULL until there are some */

	/* The field that llhttp is in, and where it saw the target. */
	const char *name, *value;
	size_t name_len, value_len;
	const char *url;
	size_t url_len;
	struct llhttp__internal_s *parser;

	/* What one direction has to know of the other. */
	bool asked;			  /* CLIENT: a request was written */
	bool is_head, is_connect;	  /* the request's method */
	bool tunnels;			  /* h1_expect_tunnel() */
	bool peer_old;			  /* SERVER: the client speaks HTTP/1.0 */
	char upgrade[H1_UPGRADE_MAX + 1]; /* what the request asked for, or "" */
	bool read_closes, write_closes;	  /* who said that it is the last exchange */

	enum h1_body out;  /* body of the message that is written */
	uint64_t out_left; /* bytes of it, H1_BODY_LENGTH */
};

static inline int h1_refuse(struct h1 *h1, const char *problem)
{
	h1->problem = problem;
	return -EPROTO;
}

/* Fields with a meaning for one connection, or for where a message ends. */
enum h1_field {
	H1_FIELD_OTHER,
	H1_FIELD_HOST,
	H1_FIELD_LENGTH,
	H1_FIELD_CODING,
	H1_FIELD_CONNECTION,
	H1_FIELD_UPGRADE,
	H1_FIELD_EXPECT,
	H1_FIELD_TE,
	H1_FIELD_DROPPED,   /* keep-alive, proxy-connection, http2-settings */
	H1_FIELD_LOOKALIKE, /* would be a length or coding to who takes an underscore for a hyphen */
};
enum h1_field h1_field_kind(const char *name, size_t len); /* name is in lower case */

/*
 * Collects the lines of a head or of trailers up to the empty line behind them, in h1->raw as long as they are not
 * all there. Returns how many bytes of data it took; *ret is where the lines are, or NULL. -EPROTO, -E2BIG, -ENOMEM.
 */
ssize_t h1_lines_collect(struct h1 *h1, const char *data, size_t len, const char **ret, size_t *ret_len);

/* In this order; each returns 0, -EPROTO, -E2BIG or -ENOMEM. Method, target and version are in h1->head and
 * h1->old_version after the first, the rest of the head and h1->body after h1_head_finish(). */
int h1_request_line(struct h1 *h1, const char *line, size_t len);
int h1_status_line(struct h1 *h1, const char *line, size_t len);
int h1_head_field(struct h1 *h1, const char *name, size_t name_len, const char *value, size_t value_len);
int h1_head_finish(struct h1 *h1);
/* Host must not name another host than a target that names one. */
int h1_authority_check(struct h1 *h1);
bool h1_authority_is_plain(const char *text, size_t len); /* bytes of a host and a port, at least one */
/* One step of a chunked body: how many bytes it took, at least one; H1_READ_TRAILERS is the state behind the last chunk. */
ssize_t h1_chunks_read(struct h1 *h1, const char *data, size_t len);
/* All of them, as h1_lines_collect() gave them. */
int h1_trailers_parse(struct h1 *h1, const char *lines, size_t len);
/* One of them. Those that belong in front of the body are refused in a request, and dropped from a response. */
int h1_trailer(struct h1 *h1, const char *name, size_t name_len, const char *value, size_t value_len);
