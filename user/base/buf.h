/* SPDX-License-Identifier: MIT */
/*
 * A byte buffer that grows up to a bound. Failure is sticky: write as much as
 * you like and ask once, at the end, with buf_error().
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated whenever not NULL; owned */
	size_t len;
	size_t cap;
	size_t max; /* never holds more bytes than this */
	int error;  /* 0, -ENOMEM or -E2BIG */
};

#define BUF_INIT(max_bytes) ((struct buf){ .max = (max_bytes) })

void buf_free(struct buf *b);
#define _buf_ __attribute__((__cleanup__(buf_free)))

void buf_clear(struct buf *b); /* empties it and forgets an error; keeps the memory */
void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_drop(struct buf *b, size_t len); /* removes bytes from the front */
int buf_error(const struct buf *b);
char *buf_take(struct buf *b); /* the string, now the caller's; NULL after an error */
