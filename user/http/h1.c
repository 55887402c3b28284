/* SPDX-License-Identifier: MIT */
/* Where messages begin and end. */
#include "http/h1_internal.h"
#include "vocab/limits.h"

#include <llhttp.h>
#include <stdlib.h>
#include <string.h>

static int event_error(struct h1 *h1, int error)
{
	if (error < 0 && !h1->error)
		h1->error = error;
	return error < 0 ? HPE_USER : HPE_OK;
}

/* -- what llhttp says ---------------------------------------------------------------- */

/* A span is one piece, for heads and trailers are given to it whole; two pieces would be a folded line. */
static int on_span(const char **start, size_t *len, const char *at, size_t n)
{
	if (*start && *start + *len != at)
		return HPE_USER;
	if (!*start)
		*start = at;
	*len += n;
	return HPE_OK;
}

static int on_url(llhttp_t *parser, const char *at, size_t n)
{
	struct h1 *h1 = parser->data;

	return on_span(&h1->url, &h1->url_len, at, n);
}

static int on_header_field(llhttp_t *parser, const char *at, size_t n)
{
	struct h1 *h1 = parser->data;

	return on_span(&h1->name, &h1->name_len, at, n);
}

static int on_header_value(llhttp_t *parser, const char *at, size_t n)
{
	struct h1 *h1 = parser->data;

	return on_span(&h1->value, &h1->value_len, at, n);
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct h1 *h1 = parser->data;
	const char *name = h1->name ? h1->name : "", *value = h1->value ? h1->value : "";
	size_t name_len = h1->name_len, value_len = h1->value_len;

	h1->name = h1->value = NULL;
	h1->name_len = h1->value_len = 0;
	return event_error(h1, h1_head_field(h1, name, name_len, value, value_len));
}

/* Pauses behind the head: bodies are read without it. */
static int on_border(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_border,
};

static const char *parser_problem(const llhttp_t *parser)
{
	const char *reason = llhttp_get_error_reason(parser);

	switch (llhttp_get_errno(parser)) {
	case HPE_INVALID_URL:
		return "the target has a byte that does not belong there";
	case HPE_INVALID_HEADER_TOKEN:
		return "a field has a byte that does not belong there";
	case HPE_UNEXPECTED_CONTENT_LENGTH:
		return reason && strstr(reason, "Transfer-Encoding") ? "both content-length and transfer-encoding"
								     : "several content-length";
	case HPE_INVALID_CONTENT_LENGTH:
		return "content-length is not a plain number";
	case HPE_INVALID_TRANSFER_ENCODING:
		return "transfer-encoding is not \"chunked\"";
	default:
		return "it is not HTTP/1.1";
	}
}

/* All of a head: llhttp must end where we say it ends. It knows some methods and no others, and what a method means is
 * not its business: it gets one that it knows. CONNECT alone has another kind of target. */
static int parser_run(struct h1 *h1, const char *data, size_t len)
{
	size_t method_len = h1->role == H1_SERVER && !h1->is_connect ? strlen(h1->head.method) : 0;
	llhttp_errno_t e = HPE_OK;

	if (method_len)
		e = llhttp_execute(h1->parser, "POST", 4);
	if (e == HPE_OK)
		e = llhttp_execute(h1->parser, data + method_len, len - method_len);
	if (e != HPE_OK && e != HPE_PAUSED)
		return h1->error ? h1->error : h1_refuse(h1, parser_problem(h1->parser));
	if (e != HPE_PAUSED || llhttp_get_error_pos(h1->parser) != data + len)
		return h1_refuse(h1, "it is not clear where the head ends");
	return 0;
}

/* -- messages ------------------------------------------------------------------------------- */

static int message_end(struct h1 *h1)
{
	static const struct fields none;

	h1->state = H1_READ_DONE;
	h1->ended = true;
	return h1->events->end(h1->ctx, h1->trailers ? h1->trailers : &none);
}

static void head_forget(struct h1 *h1)
{
	head_clear(&h1->head);
	h1->notes = (struct h1_notes){ 0 };
	h1->name = h1->value = h1->url = NULL;
	h1->name_len = h1->value_len = h1->url_len = 0;
	llhttp_reset(h1->parser);
}

static int head_parse(struct h1 *h1, const char *data, size_t len)
{
	const char *line_end = memchr(data, '\r', len);
	size_t line_len = (size_t)(line_end - data);
	const llhttp_t *parser = h1->parser;
	int e;

	head_forget(h1);
	e = h1->role == H1_SERVER ? h1_request_line(h1, data, line_len) : h1_status_line(h1, data, line_len);
	if (e == 0)
		e = parser_run(h1, data, len);
	if (e == 0)
		e = h1_head_finish(h1);
	if (e < 0)
		return e;
	/* Two readers, one meaning. */
	if (h1->role == H1_SERVER &&
	    (h1->url != data + strlen(h1->head.method) + 1 || h1->url + h1->url_len + 9 != line_end))
		return h1_refuse(h1, "it is not clear what the target is");
	if (h1->body == H1_BODY_CHUNKED ? !(parser->flags & F_CHUNKED)
					: h1->body == H1_BODY_LENGTH && parser->content_length != h1->left)
		return h1_refuse(h1, "it is not clear how long the body is");
	return 0;
}

static int head_done(struct h1 *h1)
{
	unsigned status = h1->head.status;
	int e;

	if (h1->role == H1_CLIENT && status < 200 && status != 101) {
		if (h1->interims++ == NP_INTERIM_MAX)
			return h1_refuse(h1, "too many informational responses");
		return h1->events->head(h1->ctx, &h1->head);
	}
	h1->state = status == 101 ? H1_READ_SWITCHED : H1_READ_BODY;
	h1->chunk = H1_CHUNK_SIZE;
	h1->chunk_digits = 0;
	h1->chunk_extra = 0;
	if (h1->body == H1_BODY_CHUNKED)
		h1->left = 0;
	e = h1->events->head(h1->ctx, &h1->head);
	if (e < 0)
		return e;
	return h1->state == H1_READ_BODY && h1->body == H1_BODY_NONE ? message_end(h1) : 0;
}

static ssize_t head_read(struct h1 *h1, const char *data, size_t len)
{
	const char *lines;
	size_t lines_len;
	ssize_t n;
	int e;

	if (h1->role == H1_CLIENT && !h1->asked)
		return h1_refuse(h1, "a response that nobody asked for");
	n = h1_lines_collect(h1, data, len, &lines, &lines_len);
	if (n < 0 || !lines)
		return n;
	if (lines_len == 2) {
		/* RFC 9112, 2.2: old clients send one behind a body. */
		if (h1->role == H1_CLIENT || h1->blank)
			return h1_refuse(h1, "an empty line where a message should begin");
		h1->blank = true;
		buf_free(&h1->raw);
		return n;
	}
	e = head_parse(h1, lines, lines_len);
	buf_free(&h1->raw); /* most heads come in one piece and never are in it */
	if (e == 0)
		e = head_done(h1);
	return e < 0 ? e : n;
}

static ssize_t body_read(struct h1 *h1, const char *data, size_t len)
{
	int e;

	if (h1->body == H1_BODY_CHUNKED)
		return h1_chunks_read(h1, data, len);
	if (h1->body == H1_BODY_LENGTH) {
		if (len > h1->left)
			len = (size_t)h1->left;
		h1->left -= len;
	}
	e = h1->events->body(h1->ctx, data, len);
	if (e == 0 && h1->body == H1_BODY_LENGTH && !h1->left)
		e = message_end(h1);
	return e < 0 ? e : (ssize_t)len;
}

static ssize_t trailers_read(struct h1 *h1, const char *data, size_t len)
{
	const char *lines;
	size_t lines_len;
	ssize_t n = h1_lines_collect(h1, data, len, &lines, &lines_len);
	int e;

	if (n < 0 || !lines)
		return n;
	if (lines_len > 2 && !h1->trailers) {
		h1->trailers = malloc(sizeof(*h1->trailers));
		if (!h1->trailers)
			return -ENOMEM;
		fields_init(h1->trailers);
	}
	e = h1_trailers_parse(h1, lines, lines_len);
	buf_free(&h1->raw);
	if (e == 0)
		e = message_end(h1);
	return e < 0 ? e : n;
}

ssize_t h1_read(struct h1 *h1, const char *data, size_t len)
{
	size_t used = 0;
	ssize_t n;

	h1->ended = false; /* the receiver of end() may call h1_next() already */
	while (!h1->error && !h1->ended && used < len) {
		switch (h1->state) {
		case H1_READ_HEAD:
			n = head_read(h1, data + used, len - used);
			break;
		case H1_READ_BODY:
			n = body_read(h1, data + used, len - used);
			break;
		case H1_READ_TRAILERS:
			n = trailers_read(h1, data + used, len - used);
			break;
		default:
			return (ssize_t)used;
		}
		if (n == 0)
			n = h1_refuse(h1, "it leads nowhere");
		if (n < 0)
			h1->error = (int)n;
		else
			used += (size_t)n;
	}
	return h1->error ? h1->error : (ssize_t)used;
}

int h1_read_eof(struct h1 *h1)
{
	int e = 0;

	if (h1->error)
		return h1->error;
	switch (h1->state) {
	case H1_READ_HEAD:
		if (h1->raw.len)
			e = h1_refuse(h1, "the connection closed inside of a head");
		else if (h1->asked)
			e = h1_refuse(h1, "the connection closed before the response");
		break;
	case H1_READ_BODY:
		e = h1->body == H1_BODY_CLOSE ? message_end(h1)
					      : h1_refuse(h1, "the connection closed inside of a body");
		break;
	case H1_READ_TRAILERS:
		e = h1_refuse(h1, "the connection closed inside of a body");
		break;
	default:
		break;
	}
	h1->read_closes = true;
	h1->error = e;
	return e;
}

bool h1_ends_with_connection(const struct h1 *h1)
{
	return !h1->error && h1->state == H1_READ_BODY && h1->body == H1_BODY_CLOSE;
}

bool h1_peer_is_old(const struct h1 *h1)
{
	return h1->peer_old;
}

const char *h1_problem(const struct h1 *h1)
{
	if (h1->problem)
		return h1->problem;
	return h1->error == -E2BIG ? "the head is too large" : "";
}

void h1_next(struct h1 *h1)
{
	h1->state = H1_READ_HEAD;
	h1->body = H1_BODY_NONE;
	head_free(&h1->head); /* a connection that waits is small */
	h1->blank = false;
	h1->interims = 0;
	h1->asked = false;
	h1->is_head = false;
	h1->is_connect = h1->tunnels = false;
	h1->upgrade[0] = '\0';
	h1->out = H1_BODY_NONE;
	if (h1->trailers)
		fields_clear(h1->trailers);
}

bool h1_persists(const struct h1 *h1)
{
	return !h1->error && !h1->read_closes && !h1->write_closes && h1->state != H1_READ_SWITCHED;
}

void h1_expect_tunnel(struct h1 *h1)
{
	h1->tunnels = true;
}

/* llhttp's part comes with ours: one connection, one allocation. */
struct h1_and_parser {
	struct h1 h1;
	llhttp_t parser;
};

int h1_new(enum h1_role role, const struct h1_events *events, void *ctx, struct h1 **ret)
{
	struct h1_and_parser *both = calloc(1, sizeof(*both));
	struct h1 *h1 = &both->h1;

	if (!both)
		return -ENOMEM;
	h1->role = role;
	h1->events = events;
	h1->ctx = ctx;
	h1->raw = BUF_INIT(NP_HEAD_BYTES);
	h1->parser = &both->parser;
	head_init(&h1->head);
	llhttp_init(h1->parser, role == H1_SERVER ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
	h1->parser->data = h1;
	*ret = h1;
	return 0;
}

void h1_free(struct h1 *h1)
{
	if (!h1)
		return;
	if (h1->trailers)
		fields_free(h1->trailers);
	free(h1->trailers);
	head_free(&h1->head);
	buf_free(&h1->raw);
	free(h1);
}
