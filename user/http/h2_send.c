/* SPDX-License-Identifier: MIT */
/* What goes out on a stream: heads, bodies, trailers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/h2_internal.h"
#include "vocab/limits.h"

#define CHUNK_MIN 4096 /* small writes share a chunk */

struct nv_list {
	nghttp2_nv items[NP_HEAD_FIELDS + 8];
	size_t n;
	char number[24];
};

static void nv_add(struct nv_list *list, const char *name, size_t name_len, const char *value, size_t value_len)
{
	list->items[list->n++] = (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, name_len, value_len, 0 };
}

static void nv_text(struct nv_list *list, const char *name, const char *value)
{
	nv_add(list, name, strlen(name), value, strlen(value));
}

static void nv_fields(struct nv_list *list, const struct fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->items[i];
		enum h2_field kind = h2_field_kind(f->name, f->name_len);

		if (kind == H2_FIELD_OTHER || kind == H2_FIELD_COOKIE)
			nv_add(list, f->name, f->name_len, f->value, f->value_len);
	}
}

static void nv_length(struct nv_list *list, const struct head *head)
{
	if (!head->has_length)
		return;
	snprintf(list->number, sizeof(list->number), "%llu", (unsigned long long)head->length);
	nv_text(list, "content-length", list->number);
}

static bool is_empty(const char *text)
{
	return !text || !*text;
}

static int nv_request(struct nv_list *list, const struct head *head)
{
	bool connects;

	if (is_empty(head->method) || is_empty(head->authority))
		return -EINVAL;
	connects = !strcmp(head->method, "CONNECT");
	if (!connects && is_empty(head->target))
		return -EINVAL;
	list->n = 0;
	nv_text(list, ":method", head->method);
	if (!connects)
		nv_text(list, ":scheme", head->scheme ? head->scheme : "https");
	nv_text(list, ":authority", head->authority);
	if (!connects)
		nv_text(list, ":path", head->target);
	nv_fields(list, &head->fields);
	nv_length(list, head);
	if (head->te_trailers)
		nv_text(list, "te", "trailers");
	if (head->expects_continue)
		nv_text(list, "expect", "100-continue");
	return 0;
}

static int nv_response(struct nv_list *list, const struct head *head, char status[static 4])
{
	if (head->status < 100 || head->status == 101 || head->status > 999)
		return -EINVAL;
	for (unsigned i = 3, left = head->status; i--; left /= 10)
		status[i] = (char)('0' + left % 10);
	status[3] = '\0';
	list->n = 0;
	nv_text(list, ":status", status);
	nv_fields(list, &head->fields);
	if (head->status >= 200 && head->status != 204) /* the others may not have one */
		nv_length(list, head);
	return 0;
}

/* How much of the body goes into the next frame; h2_on_body_send() follows at once and takes it. */
static ssize_t on_body_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len, uint32_t *flags,
			    nghttp2_data_source *source, void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);

	(void)buf;
	(void)source;
	(void)ctx;
	if (!stream || stream->reset)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (!stream->queued && !stream->ended) {
		stream->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (stream->queued)
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (stream->queued > len)
		return (ssize_t)len;
	if (stream->ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (stream->trailers) {
			int e = nghttp2_submit_trailer(session, id, stream->trailers->items, stream->trailers->n);

			if (e != 0)
				return nghttp2_is_fatal(e) ? NGHTTP2_ERR_CALLBACK_FAILURE
							   : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			free(stream->trailers);
			stream->trailers = NULL;
		}
	}
	return (ssize_t)stream->queued;
}

int h2_request(struct h2 *h2, const struct head *head, bool end, void *user, struct h2_stream **ret)
{
	nghttp2_data_provider body = { .read_callback = on_body_read };
	struct h2_stream *stream;
	struct nv_list list;
	int e;

	if (h2->role != H2_CLIENT)
		return -EINVAL;
	if (!h2_room(h2))
		return -EAGAIN;
	e = nv_request(&list, head);
	if (e < 0)
		return e;
	stream = h2_stream_new(h2);
	if (!stream)
		return -ENOMEM;
	stream->user = user;
	stream->is_head = !strcmp(head->method, "HEAD");
	stream->sends = !end;
	stream->ended = end;
	stream->id = nghttp2_submit_request(h2->session, NULL, list.items, list.n, end ? NULL : &body, stream);
	if (stream->id < 0) {
		e = stream->id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EAGAIN;
		h2_stream_free(stream);
		return e;
	}
	*ret = stream;
	return 0;
}

int h2_respond(struct h2_stream *stream, const struct head *head, bool end)
{
	nghttp2_data_provider body = { .read_callback = on_body_read };
	struct h2 *h2 = stream->h2;
	struct nv_list list;
	char status[4];
	int e;

	if (h2->dead || h2->error || stream->reset)
		return -EPIPE;
	if (h2->role != H2_SERVER || (head->status < 200 && end))
		return -EINVAL;
	if (stream->answered)
		return -EALREADY;
	e = nv_response(&list, head, status);
	if (e < 0)
		return e;
	if (head->status < 200) {
		e = nghttp2_submit_headers(h2->session, NGHTTP2_FLAG_NONE, stream->id, NULL, list.items, list.n, NULL);
	} else {
		e = nghttp2_submit_response(h2->session, stream->id, list.items, list.n, end ? NULL : &body);
		if (e == 0) {
			stream->answered = true;
			stream->sends = !end;
			stream->ended = end;
		}
	}
	if (e == 0)
		return 0;
	return e == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
}

void h2_queue_clear(struct h2_stream *stream)
{
	while (stream->first) {
		struct h2_chunk *next = stream->first->next;

		free(stream->first);
		stream->first = next;
	}
	stream->last = NULL;
	stream->h2->queued -= stream->queued;
	stream->queued = 0;
	free(take_ptr(stream->trailers));
}

static bool stream_is_open(const struct h2_stream *stream)
{
	return stream->sends && !stream->ended && !stream->reset && !stream->h2->dead && !stream->h2->error;
}

static void stream_resume(struct h2_stream *stream)
{
	if (!stream->deferred)
		return;
	stream->deferred = false;
	h2_check(stream->h2, nghttp2_session_resume_data(stream->h2->session, stream->id));
}

int h2_send_body(struct h2_stream *stream, const char *data, size_t len)
{
	struct h2_chunk *last = stream->last;
	size_t part = last ? last->size - last->end : 0;
	struct h2_chunk *chunk = NULL;

	if (!stream_is_open(stream))
		return -EPIPE;
	if (!len)
		return 0;
	if (part > len)
		part = len;
	if (len > part) {
		size_t size = len - part > CHUNK_MIN ? len - part : CHUNK_MIN;

		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return -ENOMEM;
		*chunk = (struct h2_chunk){ .end = len - part, .size = size };
		memcpy(chunk->data, data + part, len - part);
	}
	if (part) {
		memcpy(last->data + last->end, data, part);
		last->end += part;
	}
	if (chunk) {
		if (last)
			last->next = chunk;
		else
			stream->first = chunk;
		stream->last = chunk;
	}
	stream->queued += len;
	stream->h2->queued += len;
	if (stream->queued > NP_BACKLOG_HIGH)
		stream->above = true;
	stream_resume(stream);
	return 0;
}

static int trailers_copy(const struct fields *fields, struct h2_trailers **ret)
{
	struct h2_trailers *copy;
	struct nv_list list = { .n = 0 };
	size_t size = 0;
	char *text;

	nv_fields(&list, fields);
	if (!list.n)
		return 0;
	for (size_t i = 0; i < list.n; i++)
		size += list.items[i].namelen + list.items[i].valuelen;
	copy = malloc(sizeof(*copy) + list.n * sizeof(*copy->items) + size);
	if (!copy)
		return -ENOMEM;
	copy->n = list.n;
	text = (char *)(copy->items + list.n);
	for (size_t i = 0; i < list.n; i++) {
		nghttp2_nv nv = list.items[i];

		memcpy(text, nv.name, nv.namelen);
		nv.name = (uint8_t *)text;
		text += nv.namelen;
		memcpy(text, nv.value, nv.valuelen);
		nv.value = (uint8_t *)text;
		text += nv.valuelen;
		copy->items[i] = nv;
	}
	*ret = copy;
	return 0;
}

int h2_send_end(struct h2_stream *stream, const struct fields *trailers)
{
	int e;

	if (!stream_is_open(stream))
		return -EPIPE;
	if (trailers) {
		e = trailers_copy(trailers, &stream->trailers);
		if (e < 0)
			return e;
	}
	stream->ended = true;
	stream_resume(stream);
	return 0;
}

size_t h2_backlog(const struct h2_stream *stream)
{
	return stream->queued;
}

size_t h2_unsent(const struct h2 *h2)
{
	return h2->queued;
}

static void queue_take(struct h2_stream *stream, size_t len, struct buf *out)
{
	struct h2_chunk *chunk;

	stream->queued -= len;
	stream->h2->queued -= len;
	while (len && (chunk = stream->first)) {
		size_t part = chunk->end - chunk->start;

		if (part > len)
			part = len;
		buf_append(out, chunk->data + chunk->start, part);
		chunk->start += part;
		len -= part;
		if (chunk->start < chunk->end)
			continue;
		stream->first = chunk->next;
		if (!stream->first)
			stream->last = NULL;
		free(chunk);
	}
}

int h2_on_body_send(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t len,
		    nghttp2_data_source *source, void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct h2 *h2 = ctx;

	(void)source;
	if (!stream || stream->queued < len)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	buf_append(h2->out, header, 9);
	queue_take(stream, len, h2->out);
	if (buf_error(h2->out))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream->above && stream->queued < NP_BACKLOG_LOW) {
		stream->above = false;
		stream->drained = true;
		h2->drained = true;
	}
	return h2->out->len < h2->limit ? 0 : NGHTTP2_ERR_PAUSE;
}
