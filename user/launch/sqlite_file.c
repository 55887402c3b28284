/* SPDX-License-Identifier: MIT */
/*
 * A file of pages. Each of our tables and indexes is one page, a leaf of a tree that has nothing else: cells from its end
 * downwards, and their places in order behind its head. A cell of a table is its length, its number and a record; of an index
 * its length and a record. A record is the types of its columns and behind them their values.
 */
#include "launch/sqlite_file.h"

#include <errno.h>
#include <stdio.h>

#define PAGE	  SQLITE_PAGE
#define FILE_HEAD 100 /* in front of the first page's own */

enum { TABLE = 13, INDEX = 10 };

static void u16_write(uint8_t *at, size_t n)
{
	at[0] = (uint8_t)(n >> 8);
	at[1] = (uint8_t)n;
}

static void u32_write(uint8_t *at, uint32_t n)
{
	u16_write(at, n >> 16);
	u16_write(at + 2, n & 0xffff);
}

static size_t u16_read(const uint8_t *at)
{
	return (size_t)at[0] << 8 | at[1];
}

/* Seven bits a byte, the highest first. Nothing here takes more than two. */
static void varint_put(struct buf *out, size_t n)
{
	const uint8_t two[] = { (uint8_t)(0x80 | n >> 7), (uint8_t)(n & 0x7f) };

	if (n < 0x80)
		buf_append(out, two + 1, 1);
	else
		buf_append(out, two, 2);
}

static void record_put(struct buf *out, const struct sqlite_value *values, size_t n)
{
	static const uint8_t more_than_a_page[PAGE + 1];
	_buf_ struct buf types = BUF_INIT(PAGE), body = BUF_INIT(PAGE);
	uint8_t word[4];

	for (size_t i = 0; i < n; i++) {
		const struct sqlite_value *v = &values[i];

		varint_put(&types, v->kind == NONE     ? 0
				   : v->kind == NUMBER ? 4 /* of four bytes */
				   : v->kind == TEXT   ? 13 + 2 * v->len
						       : 12 + 2 * v->len);
		u32_write(word, v->number);
		if (v->kind == NUMBER)
			buf_append(&body, word, sizeof(word));
		else if (v->kind != NONE)
			buf_append(&body, v->data, v->len);
	}
	/* The length of the types counts itself. */
	varint_put(out, types.len + (types.len + 1 < 0x80 ? 1 : 2));
	if (buf_error(&types) || buf_error(&body)) {
		buf_append(out, more_than_a_page, sizeof(more_than_a_page)); /* it fits nowhere */
		return;
	}
	buf_append(out, types.data, types.len);
	if (body.len)
		buf_append(out, body.data, body.len);
}

static uint8_t *page_head(struct sqlite_file *file, unsigned page)
{
	return file->pages[page] + (page ? 0 : FILE_HEAD);
}

static unsigned page_add(struct sqlite_file *file, uint8_t kind)
{
	uint8_t *head = page_head(file, file->n);

	head[0] = kind;
	u16_write(head + 5, PAGE);
	return file->n++;
}

/* Rows come in the order of their numbers, and so do those of an index: of each table here the two are one order. */
static void row_add(struct sqlite_file *file, unsigned page, const struct sqlite_value *values, size_t n)
{
	uint8_t *head = page_head(file, page);
	const size_t cells = u16_read(head + 3), end = u16_read(head + 5);
	const size_t used = (size_t)(head - file->pages[page]) + 8 + 2 * (cells + 1);
	_buf_ struct buf cell = BUF_INIT(PAGE), record = BUF_INIT(PAGE);

	record_put(&record, values, n);
	varint_put(&cell, record.len);
	if (head[0] == TABLE)
		varint_put(&cell, cells + 1);
	buf_append(&cell, record.data, record.len);
	if (buf_error(&record) || buf_error(&cell) || used + cell.len > end) {
		file->overfull = true;
		return;
	}
	memcpy(file->pages[page] + end - cell.len, cell.data, cell.len);
	u16_write(head + 3, cells + 1);
	u16_write(head + 5, end - cell.len);
	u16_write(head + 8 + 2 * cells, end - cell.len);
}

/* With the index that "PRIMARY KEY" stands for. The first page has the rows about tables: kind, name, table, page, SQL. */
unsigned sqlite_table_add(struct sqlite_file *file, const char *name, const char *sql)
{
	const unsigned schema = file->n ? 0 : page_add(file, TABLE), table = page_add(file, TABLE),
		       index = page_add(file, INDEX);
	char index_name[64];

	snprintf(index_name, sizeof(index_name), "sqlite_autoindex_%s_1", name);
	row_add(file, schema,
		(struct sqlite_value[]){ value_text("table"), value_text(name), value_text(name),
					 value_number(table + 1), value_text(sql) },
		5);
	row_add(file, schema,
		(struct sqlite_value[]){ value_text("index"),
					 value_text(index_name),
					 value_text(name),
					 value_number(index + 1),
					 { .kind = NONE } },
		5);
	return table;
}

void sqlite_table_put(struct sqlite_file *file, unsigned table, const struct sqlite_value *values, size_t n)
{
	const uint32_t row = (uint32_t)u16_read(page_head(file, table) + 3) + 1;

	row_add(file, table, values, n);
	row_add(file, table + 1, (struct sqlite_value[]){ values[0], value_number(row) }, 2);
}

int sqlite_file_finish(struct sqlite_file *file, struct buf *out)
{
	static const char magic[] = "SQLite format 3";
	uint8_t *head = file->pages[0];

	if (file->overfull)
		return -E2BIG;
	memcpy(head, magic, sizeof(magic));
	u16_write(head + 16, PAGE);
	memcpy(head + 18, (const uint8_t[]){ 1, 1, 0, 64, 32, 32 },
	       6);		 /* a rollback journal; fractions, which are fixed */
	u32_write(head + 24, 1); /* changes */
	u32_write(head + 28, file->n);
	u32_write(head + 40, 1); /* the schema's */
	u32_write(head + 44, 4); /* its format */
	u32_write(head + 56, 1); /* UTF-8 */
	u32_write(head + 92, 1); /* the changes at which the version was noted */
	u32_write(head + 96, 3037000);
	buf_append(out, file->pages, (size_t)file->n * PAGE);
	return buf_error(out);
}
