/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Makes room for len more bytes and a NUL. False after an error, now or earlier. */
static bool buf_reserve(struct buf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 128;
	char *data;

	if (b->error)
		return false;
	if (len > b->max - b->len) {
		b->error = -E2BIG;
		return false;
	}
	if (b->len + len + 1 <= b->cap)
		return true;
	while (cap < b->len + len + 1)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data) {
		b->error = -ENOMEM;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (!buf_reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_drop(struct buf *b, size_t len)
{
	if (len >= b->len) {
		b->len = 0;
	} else {
		memmove(b->data, b->data + len, b->len - len);
		b->len -= len;
	}
	if (b->data)
		b->data[b->len] = '\0';
}

int buf_error(const struct buf *b)
{
	return b->error;
}

char *buf_take(struct buf *b)
{
	char *s;

	buf_append(b, "", 0); /* an empty buffer becomes "" rather than NULL */
	if (b->error)
		return NULL;
	s = b->data;
	*b = (struct buf){ .max = b->max };
	return s;
}
