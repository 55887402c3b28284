/* SPDX-License-Identifier: MIT */
/* What a rule wants of its requests in events: headers without their secrets, and the first bytes of bodies. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/chars.h"
#include "inspect/capture.h"
#include "vocab/limits.h"

struct capture {
	size_t max; /* of a body */
	struct buf parts[LINK_TAILS];
};

struct capture *capture_new(uint32_t max)
{
	struct capture *capture = max ? calloc(1, sizeof(*capture)) : NULL;

	for (unsigned i = 0; capture && i < LINK_TAILS; i++)
		capture->parts[i] = BUF_INIT(LINK_TAIL_MAX - 1);
	if (capture)
		capture->max = max;
	return capture;
}

void capture_free(struct capture *capture)
{
	for (unsigned i = 0; capture && i < LINK_TAILS; i++)
		buf_free(&capture->parts[i]);
	free(capture);
}

/* Names of headers that carry what opens doors. Parts of names: there is no end of x-something-token. */
static bool is_secret(const char *name)
{
	static const char *const words[] = { "auth", "cookie",	   "token", "secret", "pass", "key",	   "bearer",
					     "sess", "credential", "sign",  "jwt",    "csrf", "assertion", "dpop" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static void capture_append(struct buf *to, const char *data, size_t len, size_t max)
{
	size_t room = max > to->len ? max - to->len : 0;

	buf_append(to, data, len < room ? len : room);
}

void fields_shown(const struct fields *fields, size_t max, struct buf *to)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->items[i];
		const char *value = is_secret(f->name) ? "(redacted)" : f->value;

		capture_append(to, f->name, f->name_len, max);
		capture_append(to, ": ", 2, max);
		capture_append(to, value, value == f->value ? f->value_len : strlen(value), max);
		capture_append(to, "\n", 1, max);
	}
}

void capture_head(struct capture *capture, enum link_tail tail, const struct fields *fields)
{
	if (capture)
		fields_shown(fields, NP_CAPTURE_MAX, &capture->parts[tail]);
}

void capture_body(struct capture *capture, enum link_tail tail, const char *data, size_t len)
{
	if (capture)
		capture_append(&capture->parts[tail], data, len, capture->max);
}

/* UTF-8 without control bytes; a character that the bound cut is fine. */
static bool is_text(const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t c;
		unsigned n = char_decode(data + at, len - at < 4 ? len - at : 4, &c);

		if (!n && len - at < 4 && (data[at] & 0xc0) == 0xc0 && !memchr(data + at, '\0', len - at))
			return true;
		if (!n || (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
			return false;
		at += n;
	}
	return true;
}

/* In place: binary becomes base64. True then. */
static uint8_t body_finish(struct buf *body)
{
	struct buf raw = *body;

	if (!raw.len || is_text(raw.data, raw.len))
		return 0;
	*body = BUF_INIT(LINK_TAIL_MAX - 1);
	body->cap = (raw.len + 2) / 3 * 4 + 1;
	body->data = malloc(body->cap);
	if (body->data)
		body->len = (size_t)EVP_EncodeBlock((unsigned char *)body->data, (const unsigned char *)raw.data,
						    (int)raw.len);
	buf_free(&raw);
	return 1;
}

void capture_finish(struct capture *capture, struct link_request *report)
{
	if (!capture)
		return;
	report->request_base64 = body_finish(&capture->parts[LINK_REQUEST_BODY]);
	report->response_base64 = body_finish(&capture->parts[LINK_RESPONSE_BODY]);
}

const char *capture_part(const struct capture *capture, enum link_tail tail)
{
	return capture && capture->parts[tail].len ? capture->parts[tail].data : NULL;
}
