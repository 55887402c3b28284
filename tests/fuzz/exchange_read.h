/* SPDX-License-Identifier: MIT */
/* The bytes of a connection, as its origin reads them: see exchange_origin.h. */
#pragma once

#include "exchange_origin.h"
#include "vocab/limits.h"

/* -- HTTP/1.1 --------------------------------------------------------------------------- */

static inline bool text_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !memchr("!#$%&'*+-.^_`|~", text[i], 15))
			return false;
	return len;
}

/* The next line, without its end; false: it is not here yet. */
static inline bool line_take(struct buf *in, struct buf *ret)
{
	const char *end = in->len ? memchr(in->data, '\n', in->len) : NULL;
	size_t len;

	if (!end)
		return false;
	len = (size_t)(end - in->data);
	check(len && in->data[len - 1] == '\r');
	buf_clear(ret);
	buf_append(ret, in->data, len - 1);
	for (size_t i = 0; i + 1 < len; i++)
		check((unsigned char)ret->data[i] >= ' ' ? ret->data[i] != 0x7f : ret->data[i] == '\t');
	buf_append(ret, "", 0);
	buf_drop(in, len + 1);
	return true;
}

static inline void start_line(struct origin *o, char *line)
{
	struct origin_request *r = &o->request;
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

	check(version && !strcmp(version, " HTTP/1.1"));
	check(text_is_token(line, (size_t)(target - line)) && (size_t)(target - line) < sizeof(r->method));
	request_clear(r);
	memcpy(r->method, line, (size_t)(target - line));
	buf_append(&r->path, target + 1, (size_t)(version - target - 1));
	o->state = ORIGIN_FIELDS;
	o->asked = true;
}

static inline void field_line(struct origin_request *r, char *line)
{
	char *colon = strchr(line, ':'), *value;

	check(colon && text_is_token(line, (size_t)(colon - line)));
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	check(!*value || !strchr(" \t", value[strlen(value) - 1]));
	request_field(r, line, value);
}

static inline void head_end(struct origin *o)
{
	struct origin_request *r = &o->request;

	request_check(o, r);
	check(r->hosts == 1);
	o->left = r->length;
	o->state = r->chunked ? ORIGIN_CHUNK : r->length ? ORIGIN_LENGTH : ORIGIN_START;
}

static inline void chunk_line(struct origin *o, const char *line)
{
	check(*line && strlen(line) < 16 && strspn(line, "0123456789abcdefABCDEF") == strlen(line));
	o->left = strtoull(line, NULL, 16);
	o->state = o->left ? ORIGIN_CHUNK_DATA : ORIGIN_TRAILERS;
}

static inline void on_line(struct origin *o, char *line)
{
	struct origin_request unused = { 0 };

	switch (o->state) {
	case ORIGIN_START:
		start_line(o, line);
		break;
	case ORIGIN_FIELDS:
		if (*line)
			field_line(&o->request, line);
		else
			head_end(o);
		break;
	case ORIGIN_CHUNK:
		chunk_line(o, line);
		break;
	case ORIGIN_CHUNK_END:
		check(!*line);
		o->state = ORIGIN_CHUNK;
		break;
	default:
		if (*line)
			field_line(&unused, line);
		else
			o->state = ORIGIN_START;
		check(!unused.hosts && !unused.has_length && !unused.chunked && !unused.upgrade);
		buf_free(&unused.authority);
		break;
	}
}

static inline void origin_read_h1(struct origin *o)
{
	_buf_ struct buf line = BUF_INIT(2 * NP_HEAD_BYTES);

	while (o->in.len) {
		if (o->state == ORIGIN_LENGTH || o->state == ORIGIN_CHUNK_DATA) {
			size_t n = o->in.len < o->left ? o->in.len : o->left;

			buf_drop(&o->in, n);
			o->left -= n;
			o->request.body += n;
			check(request_is_allowed(o, &o->request));
			if (!o->left)
				o->state = o->state == ORIGIN_LENGTH ? ORIGIN_START : ORIGIN_CHUNK_END;
		} else if (line_take(&o->in, &line)) {
			check(!buf_error(&line));
			on_line(o, line.data);
		} else {
			break;
		}
	}
}

/* -- HTTP/2 ------------------------------------------------------------------------------- */

static inline struct origin_stream *stream_find(struct origin *o, uint32_t id)
{
	for (size_t i = 0; i < o->n_streams; i++)
		if (o->streams[i].id == id)
			return &o->streams[i];
	return NULL;
}

static inline struct origin_stream *stream_get(struct origin *o, uint32_t id)
{
	struct origin_stream *stream = stream_find(o, id);

	for (size_t i = 0; !stream && i < o->n_streams; i++)
		if (o->streams[i].ended)
			stream = &o->streams[i];
	if (!stream) {
		o->streams = realloc(o->streams, (o->n_streams + 1) * sizeof(*stream));
		stream = &o->streams[o->n_streams++];
		*stream = (struct origin_stream){ 0 };
	}
	if (stream->id != id) {
		request_clear(&stream->request);
		stream->id = id;
		stream->ended = false;
	}
	return stream;
}

static inline void pseudo_field(struct origin_request *r, const char *name, const char *value)
{
	if (!strcmp(name, ":method")) {
		check(!*r->method && text_is_token(value, strlen(value)) && strlen(value) < sizeof(r->method));
		memcpy(r->method, value, strlen(value));
	} else if (!strcmp(name, ":path")) {
		check(!r->path.len);
		buf_puts(&r->path, value);
	} else if (!strcmp(name, ":authority")) {
		check(!r->authority.len);
		buf_puts(&r->authority, value);
	} else {
		check(!strcmp(name, ":scheme"));
	}
}

static inline void h2_field(struct origin_request *r, const nghttp2_nv *nv, bool trailers)
{
	char *name = strndup((char *)nv->name, nv->namelen), *value = strndup((char *)nv->value, nv->valuelen);

	check(strlen(name) == nv->namelen && strlen(value) == nv->valuelen && nv->namelen);
	if (*name == ':') {
		check(!trailers);
		pseudo_field(r, name, value);
	} else {
		check(text_is_token(name, strlen(name)) && !strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
		check(!strpbrk(value, "\r\n") && strcmp(name, "connection") && strcmp(name, "transfer-encoding"));
		check(strcmp(name, "host") && strcmp(name, "upgrade"));
		request_field(r, name, value);
	}
	free(name);
	free(value);
}

static inline void stream_end(struct origin_stream *stream)
{
	stream->ended = true;
	check(!stream->request.has_length || stream->request.length == stream->request.body);
}

static inline void block_end(struct origin *o)
{
	struct origin_stream *stream = stream_get(o, o->block_id);
	struct origin_request *r = &stream->request;
	const uint8_t *in = (const uint8_t *)o->block.data;
	bool trailers;
	size_t len = o->block.len;
	int flags = 0;

	trailers = *r->method;
	check(!trailers || o->block_ends);
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(o->inflater, &nv, &flags, in, len, 1);

		check(n >= 0);
		in += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			h2_field(r, &nv, trailers);
	}
	nghttp2_hd_inflate_end_headers(o->inflater);
	buf_clear(&o->block);
	if (!trailers)
		request_check(o, r);
	if (o->block_ends)
		stream_end(stream);
}

static inline void on_frame(struct origin *o, const uint8_t *frame, size_t size)
{
	unsigned type = frame[3], flags = frame[4];
	uint32_t id =
		((uint32_t)frame[5] << 24 | (uint32_t)frame[6] << 16 | (uint32_t)frame[7] << 8 | frame[8]) & 0x7fffffff;
	struct origin_stream *stream;

	check(!o->block_id || type == NGHTTP2_CONTINUATION);
	check(type <= NGHTTP2_CONTINUATION && type != NGHTTP2_PUSH_PROMISE && !(flags & NGHTTP2_FLAG_PADDED));
	if (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) {
		size_t skip = type == NGHTTP2_HEADERS && (flags & NGHTTP2_FLAG_PRIORITY) ? 5 : 0;

		if (type == NGHTTP2_HEADERS) {
			o->block_id = id;
			o->block_ends = flags & NGHTTP2_FLAG_END_STREAM;
		}
		buf_append(&o->block, frame + 9 + skip, size - skip);
		if (flags & NGHTTP2_FLAG_END_HEADERS) {
			block_end(o);
			o->block_id = 0;
		}
	} else if (type == NGHTTP2_DATA) {
		stream = stream_find(o, id);
		check(stream && *stream->request.method && !stream->ended);
		stream->request.body += size;
		check(request_is_allowed(o, &stream->request));
		if (flags & NGHTTP2_FLAG_END_STREAM)
			stream_end(stream);
	} else if (type == NGHTTP2_RST_STREAM) {
		stream = stream_find(o, id);
		if (stream)
			stream->ended = true;
	}
}

static inline void origin_read_h2(struct origin *o)
{
	static const char magic[24] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

	if (!o->greeted && o->in.len >= sizeof(magic)) {
		check(!memcmp(o->in.data, magic, sizeof(magic)));
		check(nghttp2_hd_inflate_new(&o->inflater) == 0);
		buf_drop(&o->in, sizeof(magic));
		o->greeted = true;
	}
	while (o->greeted && o->in.len >= 9) {
		const uint8_t *frame = (const uint8_t *)o->in.data;
		size_t size = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];

		check(size <= 16384);
		if (o->in.len < 9 + size)
			break;
		on_frame(o, frame, size);
		buf_drop(&o->in, 9 + size);
	}
}

/* -- both ----------------------------------------------------------------------------------- */

static inline void origin_settle(struct origin *o)
{
	o->changing = false;
	o->policy = o->next_policy;
	if (!o->h2 && !o->opaque && o->asked && !request_is_allowed(o, &o->request))
		o->closed = true;
	o->closed |= o->next_closed;
}

static inline void origin_parse(struct origin *o, const char *data, size_t len)
{
	check(!o->closed || !len);
	if (o->opaque)
		return;
	buf_append(&o->in, data, len);
	check(!buf_error(&o->in));
	if (o->h2)
		origin_read_h2(o);
	else
		origin_read_h1(o);
}

static inline void origin_read(struct origin *o, const char *data, size_t len)
{
	size_t before = o->changing && o->unread < len ? o->unread : len;

	origin_parse(o, data, before);
	if (!o->changing)
		return;
	o->unread -= before;
	if (o->unread)
		return;
	origin_settle(o);
	origin_parse(o, data + before, len - before);
}

/* Another policy, or a session that is closed: what it now refuses may not go on. unread: bytes that were on their way. */
static inline void origin_rejudge(struct origin *o, unsigned policy, bool closed, size_t unread)
{
	if (o->changing)
		o->opaque = true; /* twice before it looked: whose bytes are whose is not known any more */
	o->next_policy = policy;
	o->next_closed |= closed;
	o->changing = true;
	o->unread = unread;
	if (!unread)
		origin_settle(o);
}
