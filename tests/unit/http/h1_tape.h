/* SPDX-License-Identifier: MIT */
/*
 * Writes down what h1_read() says, as text, so that two readings can be compared; and passes it on to a writer, as
 * an exchange would. How the bytes were cut on the way leaves no trace on it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "http/h1.h"
#include "vocab/limits.h"

struct tape {
	struct buf text;
	struct buf body;
	unsigned heads, ends;
	unsigned status;   /* of the last head */
	bool brim;	   /* a head was so large that one more hop could make it too large */
	bool canonical;	   /* leaves out what one more hop changes */
	int fail;	   /* what the events return */
	struct h1 *writer; /* gets everything, or NULL */
	bool next;	   /* h1_next(writer) at the end of a message */
	struct buf out;	   /* what it wrote */
	int write_error;
};

static void tape_init(struct tape *tape)
{
	*tape = (struct tape){ .text = BUF_INIT(16u << 20), .body = BUF_INIT(16u << 20), .out = BUF_INIT(16u << 20) };
}

static void tape_free(struct tape *tape)
{
	buf_free(&tape->text);
	buf_free(&tape->body);
	buf_free(&tape->out);
}

static inline const char *tape_text(struct tape *tape)
{
	buf_append(&tape->text, "", 0);
	return tape->text.data;
}

static void tape_fields(struct tape *tape, const struct fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		buf_printf(&tape->text, "%.*s=%.*s\n", (int)fields->items[i].name_len, fields->items[i].name,
			   (int)fields->items[i].value_len, fields->items[i].value);
}

static bool tape_adds_zero(const struct head *head)
{
	return head->method && !head->has_body &&
	       (!strcmp(head->method, "POST") || !strcmp(head->method, "PUT") || !strcmp(head->method, "PATCH"));
}

static int tape_head(void *ctx, struct head *head)
{
	struct tape *tape = ctx;

	tape->heads++;
	tape->status = head->status;
	if (head->fields.n > NP_HEAD_FIELDS - 8 || head->fields.size > NP_HEAD_BYTES / 2)
		tape->brim = true;
	if (head->method)
		buf_printf(&tape->text, "%s %s %s", head->method, head->authority, head->target);
	else
		buf_printf(&tape->text, "%u", head->status);
	if (head->scheme && !tape->canonical)
		buf_printf(&tape->text, " %s", head->scheme);
	if (head->has_length && !(tape->canonical && tape_adds_zero(head)))
		buf_printf(&tape->text, " length=%llu", (unsigned long long)head->length);
	buf_printf(&tape->text, "%s%s%s", head->has_body ? " body" : "", head->expects_continue ? " continue" : "",
		   head->te_trailers ? " te" : "");
	if (head->upgrade)
		buf_printf(&tape->text, " upgrade=%s", head->upgrade);
	buf_puts(&tape->text, "\n");
	tape_fields(tape, &head->fields);
	if (tape->writer && !tape->write_error)
		tape->write_error = h1_write_head(tape->writer, head, false, &tape->out);
	return tape->fail;
}

static int tape_body(void *ctx, const char *data, size_t len)
{
	struct tape *tape = ctx;

	buf_append(&tape->body, data, len);
	if (tape->writer && !tape->write_error)
		tape->write_error = h1_write_body(tape->writer, data, len, &tape->out);
	return tape->fail;
}

static void tape_flush(struct tape *tape)
{
	buf_append(&tape->text, "[", 1);
	if (tape->body.len)
		buf_append(&tape->text, tape->body.data, tape->body.len);
	buf_append(&tape->text, "]\n", 2);
	buf_clear(&tape->body);
}

static int tape_end(void *ctx, const struct fields *trailers)
{
	struct tape *tape = ctx;

	tape->ends++;
	tape_flush(tape);
	tape_fields(tape, trailers);
	buf_puts(&tape->text, ".\n");
	if (tape->writer && !tape->write_error)
		tape->write_error = h1_write_end(tape->writer, trailers, &tape->out);
	if (tape->writer && tape->next)
		h1_next(tape->writer);
	return tape->fail;
}

static const struct h1_events tape_events = { .head = tape_head, .body = tape_body, .end = tape_end };

/*
 * Gives h1 all the bytes, so many at a time, going on with the next message as long as there is one. Each piece has
 * its own memory, so that ASan sees every read beyond it. Returns how many were used, or the error.
 */
static inline ssize_t tape_feed(struct h1 *h1, const char *data, size_t len, size_t at_a_time, bool next)
{
	size_t used = 0;

	while (used < len) {
		size_t piece = len - used < at_a_time ? len - used : at_a_time, taken = 0;
		char *copy = malloc(piece);

		if (!copy)
			abort();
		memcpy(copy, data + used, piece);
		while (taken < piece) {
			ssize_t n = h1_read(h1, copy + taken, piece - taken);

			if (n < 0 || (n == 0 && !next)) {
				free(copy);
				return n < 0 ? n : (ssize_t)(used + taken);
			}
			/* Nothing is read at the end of a message, and behind a switch for good. */
			if (n == 0) {
				h1_next(h1);
				n = h1_read(h1, copy + taken, piece - taken);
				if (n < 0) {
					free(copy);
					return n;
				}
			}
			taken += (size_t)n;
		}
		free(copy);
		used += piece;
	}
	return (ssize_t)used;
}
