/* SPDX-License-Identifier: MIT */
/* Bytes that wait for a socket, in chunks: taking from the front costs nothing, and an empty queue no memory. */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

#define QUEUE_CHUNK 16384u /* the payload of one TLS record */

struct chunk;

struct queue {
	struct chunk *first, *last;
	size_t len;
};

int queue_add(struct queue *queue, const void *data, size_t len); /* 0, or -ENOMEM: perhaps only a part was added */
size_t queue_peek(const struct queue *queue, struct iovec *iov, size_t n); /* from the front; how many it filled */
void queue_drop(struct queue *queue, size_t len);			   /* at most what it holds */
void queue_clear(struct queue *queue);
