/* SPDX-License-Identifier: MIT */
/*
 * Heads and trailers as they come. nghttp2 has seen to the grammar of names and values, to the order and number of
 * pseudo headers, to connection-specific fields and to lengths; here is what it leaves open.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "http/h2_internal.h"
#include "vocab/limits.h"

static bool text_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(text, word, len);
}

enum h2_field h2_field_kind(const char *name, size_t len)
{
	switch (len) {
	case 2:
		return text_is(name, len, "te") ? H2_FIELD_TE : H2_FIELD_OTHER;
	case 4:
		return text_is(name, len, "host") ? H2_FIELD_HOST : H2_FIELD_OTHER;
	case 6:
		if (text_is(name, len, "cookie"))
			return H2_FIELD_COOKIE;
		return text_is(name, len, "expect") ? H2_FIELD_EXPECT : H2_FIELD_OTHER;
	case 7:
		return text_is(name, len, "upgrade") ? H2_FIELD_HOP : H2_FIELD_OTHER;
	case 10:
		return text_is(name, len, "connection") || text_is(name, len, "keep-alive") ? H2_FIELD_HOP
											    : H2_FIELD_OTHER;
	case 14:
		if (text_is(name, len, "content-length"))
			return H2_FIELD_LENGTH;
		return text_is(name, len, "http2-settings") ? H2_FIELD_HOP : H2_FIELD_OTHER;
	case 16:
		return text_is(name, len, "proxy-connection") ? H2_FIELD_HOP : H2_FIELD_OTHER;
	case 17:
		return text_is(name, len, "transfer-encoding") ? H2_FIELD_HOP : H2_FIELD_OTHER;
	default:
		return H2_FIELD_OTHER;
	}
}

void h2_head_begin(struct h2 *h2, bool trailers)
{
	/* One large head should not cost its memory for as long as the connection is kept. */
	if (h2->in.fields.size > NP_HEAD_BYTES / 4)
		head_free(&h2->in), head_init(&h2->in);
	else
		head_clear(&h2->in);
	if (h2->cookie.cap > NP_HEAD_BYTES / 4)
		buf_free(&h2->cookie);
	else
		buf_clear(&h2->cookie);
	h2->in.length = BODY_UNKNOWN;
	h2->in_trailers = trailers;
}

static int head_pseudo(struct h2 *h2, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct head *head = &h2->in;

	if (text_is(name, name_len, ":method")) {
		if (method_is_valid(value, value_len))
			return head_set_method(head, value, value_len);
		h2_explain(h2, "a method that is not in capital letters");
		return -EPROTO;
	}
	if (text_is(name, name_len, ":path"))
		return head_set_target(head, value, value_len);
	if (text_is(name, name_len, ":authority"))
		return head_set_authority(head, value, value_len);
	if (text_is(name, name_len, ":scheme"))
		return head_set_scheme(head, value, value_len);
	if (text_is(name, name_len, ":status") && value_len == 3) {
		for (size_t i = 0; i < 3; i++)
			head->status = head->status * 10 + (unsigned)(value[i] - '0');
		return 0;
	}
	h2_explain(h2, "a pseudo header that is not known here");
	return -EPROTO;
}

/* Pseudo headers come first, so that :authority is known by now if there is one. */
static int head_host(struct h2 *h2, const char *value, size_t len)
{
	const char *authority = h2->in.authority;

	if (!authority)
		return head_set_authority(&h2->in, value, len);
	if (strlen(authority) == len && !strncasecmp(authority, value, len))
		return 0;
	h2_explain(h2, "host and :authority differ");
	return -EPROTO;
}

static int head_length(struct h2 *h2, const char *value, size_t len)
{
	uint64_t length = 0;

	if (h2->in.has_length || !len || len > 18)
		goto odd;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9')
			goto odd;
		length = length * 10 + (uint64_t)(value[i] - '0');
	}
	h2->in.length = length;
	h2->in.has_length = true;
	return 0;
odd:
	h2_explain(h2, "content-length is no length");
	return -EPROTO;
}

/* A client may cut its cookies in pieces, for the sake of compression; the next leg gets them as one again. */
static int head_cookie(struct h2 *h2, const char *value, size_t len)
{
	if (!len)
		return 0;
	if (h2->cookie.len)
		buf_append(&h2->cookie, "; ", 2);
	buf_append(&h2->cookie, value, len);
	return buf_error(&h2->cookie);
}

static int head_field(struct h2 *h2, const char *name, size_t name_len, const char *value, size_t value_len)
{
	bool request = h2->role == H2_SERVER;
	enum h2_field kind = h2_field_kind(name, name_len);

	if (h2->in_trailers && field_is_for_heads(name, name_len))
		return 0; /* whoever merges it is at fault, and the message is none the worse */
	switch (kind) {
	case H2_FIELD_HOP:
		return 0;
	case H2_FIELD_COOKIE:
		if (!request)
			break;
		return head_cookie(h2, value, value_len);
	case H2_FIELD_EXPECT:
		if (!request)
			return 0;
		if (value_len == 12 && !strncasecmp(value, "100-continue", 12)) {
			h2->in.expects_continue = true;
			return 0;
		}
		h2_explain(h2, "an expectation other than 100-continue");
		return -EPROTO;
	case H2_FIELD_HOST:
		return request ? head_host(h2, value, value_len) : 0;
	case H2_FIELD_LENGTH:
		return head_length(h2, value, value_len);
	case H2_FIELD_TE: /* nghttp2 refuses any other value than this */
		h2->in.te_trailers = request;
		return 0;
	case H2_FIELD_OTHER:
		break;
	}
	return fields_add(&h2->in.fields, name, name_len, value, value_len);
}

int h2_head_field(struct h2 *h2, const char *name, size_t name_len, const char *value, size_t value_len)
{
	int e;

	/* Only origins get so far with a space at either end: see option_new() in h2_session.c. */
	while (value_len && (*value == ' ' || *value == '\t'))
		value++, value_len--;
	while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
		value_len--;
	if (*name == ':')
		e = head_pseudo(h2, name, name_len, value, value_len);
	else
		e = head_field(h2, name, name_len, value, value_len);
	if (e == -E2BIG)
		h2_explain(h2, "a head of more than %u bytes or %u fields", NP_HEAD_BYTES, NP_HEAD_FIELDS);
	return e;
}

static const char *target_problem(const struct head *head)
{
	if (!strcmp(head->method, "CONNECT"))
		return NULL;
	if (!head->scheme || (strcmp(head->scheme, "https") && strcmp(head->scheme, "http")))
		return "a scheme other than http and https";
	if (!head->target)
		return "a request without a path";
	if (!strcmp(head->target, "*"))
		return strcmp(head->method, "OPTIONS") ? "a path that does not start with a slash" : NULL;
	if (head->target[0] != '/')
		return "a path that does not start with a slash";
	for (const char *p = head->target; *p; p++) {
		if (*p <= ' ' || *p > '~' || *p == '#')
			return "a path with a byte that does not belong there";
	}
	return NULL;
}

static int request_finish(struct h2 *h2)
{
	struct head *head = &h2->in;
	const char *problem = NULL;
	int e;

	if (h2->cookie.len) {
		e = fields_add(&head->fields, "cookie", 6, h2->cookie.data, h2->cookie.len);
		if (e < 0)
			return e;
	}
	if (!head->method)
		problem = "a request without a method";
	else if (!head->authority || !*head->authority)
		problem = "a request without an authority";
	else if (strchr(head->authority, '@'))
		problem = "an authority with a user name";
	else
		problem = target_problem(head);
	if (problem) {
		h2_explain(h2, "%s", problem);
		return -EPROTO;
	}
	return strcmp(head->method, "CONNECT") ? 0 : head_set_target(head, "", 0);
}

int h2_head_finish(struct h2 *h2, const struct h2_stream *stream, bool end)
{
	unsigned status;
	int e;

	if (h2->role == H2_SERVER) {
		e = request_finish(h2);
		if (e == -E2BIG)
			h2_explain(h2, "a head of more than %u bytes or %u fields", NP_HEAD_BYTES, NP_HEAD_FIELDS);
		if (e < 0)
			return e;
		h2->in.has_body = !end;
		return 0;
	}
	status = h2->in.status;
	if (status < 100 || status == 101 || status > 999) {
		h2_explain(h2, "a response with status %u", status);
		return -EPROTO;
	}
	h2->in.has_body = !end && !stream->is_head && status >= 200 && status != 204 && status != 304;
	return 0;
}
