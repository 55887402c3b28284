/* SPDX-License-Identifier: MIT */
/* Heads are written from their parts, each looked at again: nothing that was read can become a line of its own. */
#include "http/h1_internal.h"

#include <string.h>

#include "base/cleanup.h"

/* Collects small pieces, so that the buffer grows once or twice and not for each of them. */
struct writer {
	struct buf *out;
	size_t n;
	char data[2048];
};

static void writer_flush(struct writer *w)
{
	buf_append(w->out, w->data, w->n);
	w->n = 0;
}

static void writer_put(struct writer *w, const char *text, size_t len)
{
	if (len > sizeof(w->data) - w->n) {
		writer_flush(w);
		if (len > sizeof(w->data)) {
			buf_append(w->out, text, len);
			return;
		}
	}
	memcpy(w->data + w->n, text, len);
	w->n += len;
}

static inline void put_text(struct writer *w, const char *text)
{
	writer_put(w, text, strlen(text));
}

static void put_number(struct writer *w, uint64_t number, unsigned base)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = "0123456789abcdef"[number % base];
	while (number /= base);
	writer_put(w, digits + i, sizeof(digits) - i);
}

static int put_field(struct writer *w, const struct field *field)
{
	size_t len;
	char *at;

	if (!field_name_is_valid(field->name, field->name_len) || !field_value_is_valid(field->value, field->value_len))
		return -EINVAL;
	len = (size_t)field->name_len + field->value_len + 4;
	if (len > sizeof(w->data) - w->n)
		writer_flush(w);
	if (len > sizeof(w->data)) {
		buf_append(w->out, field->name, field->name_len);
		buf_append(w->out, ": ", 2);
		buf_append(w->out, field->value, field->value_len);
		buf_append(w->out, "\r\n", 2);
		return 0;
	}
	at = mempcpy(w->data + w->n, field->name, field->name_len);
	at = mempcpy(at, ": ", 2);
	at = mempcpy(at, field->value, field->value_len);
	memcpy(at, "\r\n", 2);
	w->n += len;
	return 0;
}

static const char *const status_reasons[600] = {
	[100] = "Continue",
	[101] = "Switching Protocols",
	[103] = "Early Hints",
	[200] = "OK",
	[201] = "Created",
	[202] = "Accepted",
	[204] = "No Content",
	[206] = "Partial Content",
	[207] = "Multi-Status",
	[301] = "Moved Permanently",
	[302] = "Found",
	[303] = "See Other",
	[304] = "Not Modified",
	[307] = "Temporary Redirect",
	[308] = "Permanent Redirect",
	[400] = "Bad Request",
	[401] = "Unauthorized",
	[403] = "Forbidden",
	[404] = "Not Found",
	[405] = "Method Not Allowed",
	[408] = "Request Timeout",
	[409] = "Conflict",
	[410] = "Gone",
	[412] = "Precondition Failed",
	[413] = "Content Too Large",
	[415] = "Unsupported Media Type",
	[416] = "Range Not Satisfiable",
	[421] = "Misdirected Request",
	[422] = "Unprocessable Content",
	[426] = "Upgrade Required",
	[429] = "Too Many Requests",
	[431] = "Request Header Fields Too Large",
	[451] = "Unavailable For Legal Reasons",
	[500] = "Internal Server Error",
	[501] = "Not Implemented",
	[502] = "Bad Gateway",
	[503] = "Service Unavailable",
	[504] = "Gateway Timeout",
};

static const char *status_reason(unsigned status)
{
	return status < ARRAY_SIZE(status_reasons) && status_reasons[status] ? status_reasons[status] : "";
}

/* No byte of it ends a word of the first line. */
static bool is_word(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return false;
	return len > 0;
}

static int put_request_line(struct h1 *h1, struct writer *w, const struct head *head)
{
	size_t method_len = strlen(head->method), authority_len = strlen(head->authority);
	const char *target = h1->is_connect ? head->authority : head->target;
	size_t target_len = strlen(target);

	if (!field_name_is_valid(head->method, method_len) || !is_word(target, target_len) ||
	    !h1_authority_is_plain(head->authority, authority_len))
		return -EINVAL;
	writer_put(w, head->method, method_len);
	writer_put(w, " ", 1);
	writer_put(w, target, target_len);
	put_text(w, " HTTP/1.1\r\nHost: ");
	writer_put(w, head->authority, authority_len);
	writer_put(w, "\r\n", 2);
	return 0;
}

static int put_status_line(struct writer *w, unsigned status)
{
	if (status < 100 || status > 999)
		return -EINVAL;
	put_text(w, "HTTP/1.1 ");
	put_number(w, status, 10);
	writer_put(w, " ", 1);
	put_text(w, status_reason(status));
	writer_put(w, "\r\n", 2);
	return 0;
}

/* What a recipient makes of a message without content-length and transfer-encoding. */
static bool needs_zero(const struct h1 *h1, const struct head *head)
{
	if (h1->role == H1_SERVER || head->has_length)
		return true;
	return strcmp(head->method, "POST") == 0 || strcmp(head->method, "PUT") == 0 ||
	       strcmp(head->method, "PATCH") == 0;
}

static void put_length(struct writer *w, uint64_t length)
{
	put_text(w, "content-length: ");
	put_number(w, length, 10);
	writer_put(w, "\r\n", 2);
}

/* Chooses h1->out, and writes the field that says so. */
static void put_framing(struct h1 *h1, struct writer *w, const struct head *head)
{
	bool response = h1->role == H1_SERVER;

	h1->out = H1_BODY_NONE;
	if (response && (head->status < 200 || head->status == 204 || (h1->is_connect && head->status < 300)))
		return;
	if (response && (h1->is_head || head->status == 304)) {
		if (head->has_length && head->length != BODY_UNKNOWN)
			put_length(w, head->length);
		return;
	}
	if (!response && h1->is_connect)
		return;
	if (!head->has_body) {
		if (needs_zero(h1, head))
			put_length(w, 0);
	} else if (head->length != BODY_UNKNOWN) {
		h1->out = H1_BODY_LENGTH;
		h1->out_left = head->length;
		put_length(w, head->length);
	} else if (response && h1->peer_old) {
		h1->out = H1_BODY_CLOSE;
	} else {
		h1->out = H1_BODY_CHUNKED;
		put_text(w, "transfer-encoding: chunked\r\n");
	}
}

static int put_connection(struct h1 *h1, struct writer *w, const struct head *head)
{
	const char *separator = "connection: ";
	bool request = h1->role == H1_CLIENT;
	const char *upgrade = request || head->status == 101 ? head->upgrade : NULL;

	if (h1->write_closes) {
		put_text(w, separator);
		put_text(w, "close");
		separator = ", ";
	}
	if (upgrade) {
		put_text(w, separator);
		put_text(w, "upgrade");
		separator = ", ";
	}
	if (request && head->te_trailers) {
		put_text(w, separator);
		put_text(w, "te");
		separator = ", ";
	}
	if (separator[0] == ',')
		writer_put(w, "\r\n", 2);
	if (upgrade) {
		struct field field = { "upgrade", upgrade, 7, (uint32_t)strlen(upgrade) };
		int e = put_field(w, &field);

		if (e < 0)
			return e;
	}
	if (request && head->te_trailers)
		put_text(w, "te: trailers\r\n");
	if (request && head->expects_continue)
		put_text(w, "expect: 100-continue\r\n");
	return 0;
}

static int put_head(struct h1 *h1, struct writer *w, const struct head *head)
{
	int e = h1->role == H1_CLIENT ? put_request_line(h1, w, head) : put_status_line(w, head->status);

	for (size_t i = 0; e == 0 && i < head->fields.n; i++) {
		const struct field *field = &head->fields.items[i];

		/* Those are ours to write. */
		if (h1_field_kind(field->name, field->name_len) == H1_FIELD_OTHER)
			e = put_field(w, field);
	}
	if (e < 0)
		return e;
	put_framing(h1, w, head);
	if (h1->out == H1_BODY_CLOSE)
		h1->write_closes = true;
	e = put_connection(h1, w, head);
	writer_put(w, "\r\n", 2);
	return e;
}

/* A failure leaves nothing of it in the buffer. */
static int writer_finish(struct writer *w, size_t before, int e)
{
	if (e == 0)
		writer_flush(w);
	if (e == 0)
		e = buf_error(w->out);
	if (e < 0 && w->out->len > before) {
		w->out->len = before;
		w->out->data[before] = '\0';
	}
	return e;
}

static int request_remember(struct h1 *h1, const struct head *head)
{
	if (h1->asked || !head->method || !head->target || !head->authority ||
	    (head->upgrade && strlen(head->upgrade) > H1_UPGRADE_MAX))
		return -EINVAL;
	h1->asked = true;
	h1->is_head = strcmp(head->method, "HEAD") == 0;
	h1->is_connect = strcmp(head->method, "CONNECT") == 0;
	strcpy(h1->upgrade, head->upgrade ? head->upgrade : "");
	return 0;
}

int h1_write_head(struct h1 *h1, const struct head *head, bool last, struct buf *out)
{
	struct writer w;
	size_t before = out->len;
	int e;

	w.out = out;
	w.n = 0;
	if (h1->role == H1_CLIENT) {
		e = request_remember(h1, head);
		if (e < 0)
			return e;
	} else if (head->status < 200) {
		if (h1->peer_old)
			return 0; /* it would take it for the response */
		last = false;	  /* such a head says nothing about the connection */
	} else if (h1->read_closes || h1->error) {
		last = true;
	}
	if (last)
		h1->write_closes = true;
	e = put_head(h1, &w, head);
	return writer_finish(&w, before, e);
}

int h1_write_body(struct h1 *h1, const char *data, size_t len, struct buf *out)
{
	struct writer w;

	if (!len)
		return 0;
	if (h1->out == H1_BODY_NONE || (h1->out == H1_BODY_LENGTH && len > h1->out_left))
		return -EMSGSIZE;
	if (h1->out == H1_BODY_CHUNKED) {
		w.out = out;
		w.n = 0;
		put_number(&w, len, 16);
		writer_put(&w, "\r\n", 2);
		writer_flush(&w);
		buf_append(out, data, len);
		buf_append(out, "\r\n", 2);
		return buf_error(out);
	}
	if (h1->out == H1_BODY_LENGTH)
		h1->out_left -= len;
	buf_append(out, data, len);
	return buf_error(out);
}

int h1_write_end(struct h1 *h1, const struct fields *trailers, struct buf *out)
{
	enum h1_body body = h1->out;
	struct writer w;
	size_t before = out->len;
	int e = 0;

	if (body == H1_BODY_LENGTH && h1->out_left)
		return -EMSGSIZE;
	h1->out = H1_BODY_NONE;
	if (body != H1_BODY_CHUNKED)
		return 0;
	w.out = out;
	w.n = 0;
	put_text(&w, "0\r\n");
	for (size_t i = 0; e == 0 && trailers && i < trailers->n; i++)
		if (!field_is_for_heads(trailers->items[i].name, trailers->items[i].name_len))
			e = put_field(&w, &trailers->items[i]);
	writer_put(&w, "\r\n", 2);
	return writer_finish(&w, before, e);
}
