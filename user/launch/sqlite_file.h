/* SPDX-License-Identifier: MIT */
/* Small files of SQLite's format, written from nothing: each table and each index is one page. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define SQLITE_PAGE 4096

/* All 0 at first. Room for two tables. */
struct sqlite_file {
	uint8_t pages[5][SQLITE_PAGE];
	unsigned n;    /* pages that are used */
	bool overfull; /* something did not fit */
};

struct sqlite_value {
	enum { NONE, NUMBER, TEXT, BYTES } kind;
	uint32_t number;
	const void *data;
	size_t len;
};

static inline struct sqlite_value value_text(const char *words)
{
	return (struct sqlite_value){ .kind = TEXT, .data = words, .len = strlen(words) };
}

static inline struct sqlite_value value_number(uint32_t n)
{
	return (struct sqlite_value){ .kind = NUMBER, .number = n };
}

static inline struct sqlite_value value_bytes(const void *data, size_t len)
{
	return (struct sqlite_value){ .kind = BYTES, .data = data, .len = len };
}

/* A table, whose SQL has a primary key; its first column is that key. The number of its page. */
unsigned sqlite_table_add(struct sqlite_file *file, const char *name, const char *sql);
/* The next row. Rows come in the order of their keys. */
void sqlite_table_put(struct sqlite_file *file, unsigned table, const struct sqlite_value *values, size_t n);
int sqlite_file_finish(struct sqlite_file *file, struct buf *out); /* 0, -E2BIG, -ENOMEM */
