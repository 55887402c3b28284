/* SPDX-License-Identifier: MIT */
/*
 * What arrives at an origin. Read by a parser that shares nothing with the inspector's and takes nothing that two
 * readers could understand differently; then held against what the policies allow, in words of its own.
 */
#pragma once

#include <ctype.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "vocab/limits.h"

static const char *const policies[] = {
	"version: 1\n"
	"rules:\n"
	"  - deny: bad.test\n"
	"  - allow: get.test\n"
	"    methods: [GET, HEAD]\n"
	"  - deny: get.test\n"
	"  - allow: paths.test\n"
	"    paths: [\"/open/**\"]\n"
	"  - deny: paths.test\n"
	"  - allow: small.test\n"
	"    max_body: 64\n"
	"    timeouts: {idle: 2s, first_byte: 1s, connect: 1s}\n"
	"  - allow: ws.test\n"
	"    websocket: true\n"
	"  - allow: pinned.test\n"
	"    inspect: false\n"
	"  - allow: \"raw.test:2222\"\n"
	"  - allow: [origin.test, h2.test, loop.test, meta.test]\n"
	"  - allow: 198.51.100.10\n",

	"version: 1\n"
	"rules:\n"
	"  - allow: paths.test\n"
	"    paths: [\"/other/**\"]\n"
	"  - deny: paths.test\n"
	"  - allow: [get.test, h2.test]\n"
	"    methods: [GET]\n",
};

struct origin_request {
	char method[32];
	struct buf path, authority;
	bool has_length, chunked, upgrade;
	unsigned hosts;
	uint64_t length, body;
};

struct origin_stream {
	uint32_t id;
	bool ended;
	struct origin_request request;
};

enum origin_state {
	ORIGIN_START, /* of a request */
	ORIGIN_FIELDS,
	ORIGIN_LENGTH,
	ORIGIN_CHUNK,
	ORIGIN_CHUNK_DATA,
	ORIGIN_CHUNK_END,
	ORIGIN_TRAILERS,
};

/* One connection, as its origin sees it. */
struct origin {
	char name[300]; /* of the host, or its address */
	uint16_t port;
	char authority[320]; /* as a request has to name both */
	unsigned policy;     /* that is live */
	bool opaque;	     /* a tunnel: nobody reads it */
	bool closed;	     /* nothing may arrive any more */
	bool changing;	     /* to these, behind so many bytes that are not read yet */
	unsigned next_policy;
	bool next_closed;
	size_t unread;
	bool h2;
	struct buf in;
	/* HTTP/1.1 */
	enum origin_state state;
	uint64_t left;
	struct origin_request request;
	bool asked; /* there was a request */
	/* HTTP/2 */
	nghttp2_hd_inflater *inflater;
	bool greeted;
	struct buf block;
	uint32_t block_id;
	bool block_ends;
	struct origin_stream *streams;
	size_t n_streams;
};

static inline void request_clear(struct origin_request *r)
{
	buf_free(&r->path);
	buf_free(&r->authority);
	*r = (struct origin_request){ .path = BUF_INIT(2 * NP_HEAD_BYTES), .authority = BUF_INIT(2 * NP_HEAD_BYTES) };
}

static inline void origin_init(struct origin *o)
{
	*o = (struct origin){ .in = BUF_INIT(16u << 20), .block = BUF_INIT(1u << 20) };
	request_clear(&o->request);
}

static inline void origin_clear(struct origin *o)
{
	buf_free(&o->in);
	buf_free(&o->block);
	request_clear(&o->request);
	for (size_t i = 0; i < o->n_streams; i++)
		request_clear(&o->streams[i].request);
	free(o->streams);
	if (o->inflater)
		nghttp2_hd_inflate_del(o->inflater);
}

/* -- the policies, in other words ----------------------------------------------------- */

/* Below prefix, whoever reads it: no segment that leads up, no byte that some servers take for a slash. */
static inline bool path_below(const char *path, const char *prefix)
{
	size_t len = strcspn(path, "?");

	if (strncmp(path, prefix, strlen(prefix)))
		return false;
	for (size_t i = 0; i < len; i++) {
		bool dot = path[i] == '.' || !strncasecmp(path + i, "%2e", 3);

		if (path[i] == '\\' || path[i] == ';' || !strncasecmp(path + i, "%2f", 3) ||
		    !strncasecmp(path + i, "%5c", 3) || !strncasecmp(path + i, "%00", 3))
			return false;
		if (dot && path[i - 1] == '/') {
			size_t at = i;

			while (path[at] == '.' || !strncasecmp(path + at, "%2e", 3))
				at += path[at] == '.' ? 1 : 3;
			if (path[at] == '/' || at >= len)
				return false;
		}
	}
	return true;
}

static inline bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list))
		list++;
	return *list;
}

static inline bool request_is_allowed(const struct origin *o, const struct origin_request *r)
{
	static const char *const open[] = { "ws.test", "origin.test", "h2.test", "198.51.100.10", "pinned.test", NULL };
	bool get = !strcmp(r->method, "GET"), head = !strcmp(r->method, "HEAD");
	const char *name = o->name;

	if (r->upgrade && strcmp(name, "ws.test"))
		return false;
	if (o->port != 80 && o->port != 443)
		return o->policy == 0 && o->port == 2222 && !strcmp(name, "raw.test");
	if (o->policy == 1)
		return (!strcmp(name, "paths.test") && path_below(r->path.data, "/other/")) ||
		       ((!strcmp(name, "get.test") || !strcmp(name, "h2.test")) && get);
	if (!strcmp(name, "get.test"))
		return get || head;
	if (!strcmp(name, "paths.test"))
		return path_below(r->path.data, "/open/");
	if (!strcmp(name, "small.test"))
		return r->body <= 64 && (!r->has_length || r->length <= 64);
	return is_one_of(name, open);
}

/* A head is complete. */
static inline void request_check(const struct origin *o, const struct origin_request *r)
{
	check(!buf_error(&r->path) && !buf_error(&r->authority) && r->path.len && r->authority.len);
	check(*r->method && strcmp(r->method, "CONNECT"));
	check(*r->path.data == '/' || (!strcmp(r->path.data, "*") && !strcmp(r->method, "OPTIONS")));
	for (const char *p = r->path.data; *p; p++)
		check(*p > ' ' && *p < 0x7f && *p != '#');
	check(!strcmp(r->authority.data, o->authority));
	check(!(r->has_length && r->chunked));
	check(request_is_allowed(o, r));
}

static inline void request_field(struct origin_request *r, const char *name, const char *value)
{
	/* Between neighbours, and gone with the one that the request came over. */
	static const char *const hops[] = { "proxy-connection", "proxy-authorization", "keep-alive", "http2-settings",
					    "trailer,te" };

	for (size_t i = 0; i < ARRAY_SIZE(hops); i++)
		check(strcasecmp(name, hops[i]));
	if (!strcasecmp(name, "host")) {
		check(r->hosts++ == 0);
		buf_puts(&r->authority, value);
	} else if (!strcasecmp(name, "content-length")) {
		check(!r->has_length && *value && strlen(value) < 20 && strspn(value, "0123456789") == strlen(value));
		r->has_length = true;
		r->length = strtoull(value, NULL, 10);
	} else if (!strcasecmp(name, "transfer-encoding")) {
		check(!r->chunked && !strcmp(value, "chunked"));
		r->chunked = true;
	} else if (!strcasecmp(name, "upgrade")) {
		r->upgrade = true;
	}
}
