/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as the answer to a request; the first one says to which. However they are cut, they are read as the
 * same; and what is accepted, written anew as to a client and read there, is the same once more.
 */
#include "http/h1.c"

#include "h1_nowhere.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	const char *method, *upgrade;
	bool tunnel;
} requests[] = {
	{ "GET", NULL, false },	 { "HEAD", NULL, false },    { "GET", "websocket", false },
	{ "POST", NULL, false }, { "CONNECT", NULL, false }, { "CONNECT", NULL, true },
};

static void query(struct h1 *h1, unsigned which, struct buf *out)
{
	struct head head;

	head_init(&head);
	head.method = requests[which].method;
	head.authority = "a.example:443";
	head.target = "/";
	head.upgrade = requests[which].upgrade;
	check(h1_write_head(h1, &head, false, out) == 0);
	check(h1_write_end(h1, NULL, out) == 0);
	if (requests[which].tunnel)
		h1_expect_tunnel(h1);
}

/* A server that was asked the same. */
static struct h1 *server_new(unsigned which)
{
	struct buf out = BUF_INIT(4096);
	struct h1 *client, *server;

	check(h1_new(H1_CLIENT, &nowhere, NULL, &client) == 0);
	check(h1_new(H1_SERVER, &nowhere, NULL, &server) == 0);
	query(client, which, &out);
	check(h1_read(server, out.data, out.len) == (ssize_t)out.len);
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

	check(h1_new(H1_CLIENT, &tape_events, tape, &h1) == 0);
	query(h1, which, &out);
	buf_free(&out);
	n = tape_feed(h1, data, size, at_a_time, false);
	check((n >= 0) == !*h1_problem(h1));
	check(n >= 0 ? n <= (ssize_t)size : n == -EPROTO || n == -E2BIG);
	/* Less than all is used only behind the end. */
	check(n < 0 || n == (ssize_t)size || tape->ends || tape->status == 101);
	*ret_closed = h1_read_eof(h1);
	check(*ret_closed == 0 ? n >= 0 && (tape->ends == 1 || tape->status == 101) : *ret_closed == -EPROTO || n < 0);
	h1_free(h1);
	return n;
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
	check(read_it(which, (const char *)data, size, 1, &bytes, &other) == n && other == closed);
	check(whole.write_error == 0);
	if (whole.out.len && !whole.brim) {
		check(read_it(which, whole.out.data, whole.out.len, SIZE_MAX, &again, &other) ==
		      (ssize_t)whole.out.len);
		check(closed < 0 || other == 0);
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
