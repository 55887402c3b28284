/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as the answer to a request; the first one says to which. However they are cut, they are read as the
 * same; and what is accepted, written anew as to a client and read there, is the same once more.
 */
#include "http/h1.c"

#include "../unit/http/h1_tape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static const struct {
	const char *method, *upgrade;
} requests[] = { { "GET", NULL }, { "HEAD", NULL }, { "GET", "websocket" }, { "POST", NULL } };

static int nowhere_head(void *ctx, struct head *head)
{
	(void)ctx;
	(void)head;
	return 0;
}

static int nowhere_body(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}

static int nowhere_end(void *ctx, const struct fields *trailers)
{
	(void)ctx;
	(void)trailers;
	return 0;
}

static const struct h1_events nowhere = { nowhere_head, nowhere_body, nowhere_end };

static void query(struct h1 *h1, unsigned which, struct buf *out)
{
	struct head head;

	head_init(&head);
	head.method = requests[which].method;
	head.authority = "a.example";
	head.target = "/";
	head.upgrade = requests[which].upgrade;
	CHECK(h1_write_head(h1, &head, false, out) == 0);
	CHECK(h1_write_end(h1, NULL, out) == 0);
}

/* A server that was asked the same. */
static struct h1 *server_new(unsigned which)
{
	struct buf out = BUF_INIT(4096);
	struct h1 *client, *server;

	CHECK(h1_new(H1_CLIENT, &nowhere, NULL, &client) == 0);
	CHECK(h1_new(H1_SERVER, &nowhere, NULL, &server) == 0);
	query(client, which, &out);
	CHECK(h1_read(server, out.data, out.len) == (ssize_t)out.len);
	h1_free(client);
	buf_free(&out);
	return server;
}

/* Returns how much was used, or the error. closed: what the end of the connection was. */
static ssize_t read_it(unsigned which, const char *data, size_t size, size_t at_a_time, struct tape *tape,
		       int *ret_closed)
{
	struct buf out = BUF_INIT(4096);
	struct h1 *h1;
	ssize_t n;

	CHECK(h1_new(H1_CLIENT, &tape_events, tape, &h1) == 0);
	query(h1, which, &out);
	buf_free(&out);
	n = tape_feed(h1, data, size, at_a_time, false);
	CHECK((n >= 0) == !*h1_problem(h1));
	CHECK(n >= 0 ? n <= (ssize_t)size : n == -EPROTO || n == -E2BIG);
	/* Less than all is used only behind the end. */
	CHECK(n < 0 || n == (ssize_t)size || tape->ends || tape->status == 101);
	*ret_closed = h1_read_eof(h1);
	CHECK(*ret_closed == 0 ? n >= 0 && (tape->ends == 1 || tape->status == 101) : *ret_closed == -EPROTO || n < 0);
	h1_free(h1);
	return n;
}

static void check_same(struct tape *a, struct tape *b)
{
	CHECK(a->heads == b->heads && a->ends == b->ends);
	CHECK(a->text.len == b->text.len && memcmp(a->text.data, b->text.data, a->text.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tape whole, bytes, again;
	int closed, other;
	unsigned which;
	ssize_t n;

	if (!size)
		return 0;
	which = data[0] % (sizeof(requests) / sizeof(requests[0]));
	data++;
	size--;
	tape_init(&whole);
	tape_init(&bytes);
	tape_init(&again);
	whole.writer = server_new(which);

	n = read_it(which, (const char *)data, size, SIZE_MAX, &whole, &closed);
	CHECK(read_it(which, (const char *)data, size, 1, &bytes, &other) == n && other == closed);
	CHECK(whole.write_error == 0);
	if (whole.out.len && !whole.brim) {
		CHECK(read_it(which, whole.out.data, whole.out.len, SIZE_MAX, &again, &other) ==
		      (ssize_t)whole.out.len);
		CHECK(closed < 0 || other == 0);
	}
	tape_flush(&whole);
	tape_flush(&bytes);
	tape_flush(&again);
	check_same(&whole, &bytes);
	if (!whole.brim)
		check_same(&whole, &again);

	h1_free(whole.writer);
	tape_free(&whole);
	tape_free(&bytes);
	tape_free(&again);
	return 0;
}
