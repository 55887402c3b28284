/* SPDX-License-Identifier: MIT */
#include "net/queue.h"

#include <errno.h>
#include <string.h>

#include "net/slab.h"

struct chunk {
	struct chunk *next;
	size_t from, to;
	char data[QUEUE_CHUNK];
};

static struct chunk *queue_grow(struct queue *queue)
{
	struct chunk *chunk = slab_alloc(sizeof(*chunk));

	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->from = chunk->to = 0;
	if (queue->last)
		queue->last->next = chunk;
	else
		queue->first = chunk;
	queue->last = chunk;
	return chunk;
}

int queue_add(struct queue *queue, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		struct chunk *chunk = queue->last;
		size_t room;

		if (!chunk || chunk->to == QUEUE_CHUNK)
			chunk = queue_grow(queue);
		if (!chunk)
			return -ENOMEM;
		room = QUEUE_CHUNK - chunk->to;
		if (room > len)
			room = len;
		memcpy(chunk->data + chunk->to, p, room);
		chunk->to += room;
		queue->len += room;
		p += room;
		len -= room;
	}
	return 0;
}

size_t queue_peek(const struct queue *queue, struct iovec *iov, size_t n)
{
	size_t i = 0;

	for (struct chunk *chunk = queue->first; chunk && i < n; chunk = chunk->next, i++)
		iov[i] = (struct iovec){ chunk->data + chunk->from, chunk->to - chunk->from };
	return i;
}

void queue_drop(struct queue *queue, size_t len)
{
	while (len > 0 && queue->first) {
		struct chunk *chunk = queue->first;
		size_t n = chunk->to - chunk->from;

		if (n > len) {
			chunk->from += len;
			queue->len -= len;
			return;
		}
		queue->first = chunk->next;
		if (!queue->first)
			queue->last = NULL;
		queue->len -= n;
		len -= n;
		slab_free(chunk);
	}
}

void queue_clear(struct queue *queue)
{
	queue_drop(queue, queue->len);
}
