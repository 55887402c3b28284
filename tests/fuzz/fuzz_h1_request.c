/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as requests on one connection. However they are cut, they are read as the same; and what is accepted,
 * written anew as to an origin and read there, is the same once more.
 */
#include "http/h1.c"

#include "../unit/http/h1_tape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

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

static ssize_t read_it(const char *data, size_t size, size_t at_a_time, struct tape *tape, const char **ret_problem)
{
	struct h1 *h1;
	ssize_t n;

	CHECK(h1_new(H1_SERVER, &tape_events, tape, &h1) == 0);
	n = tape_feed(h1, data, size, at_a_time, true);
	*ret_problem = h1_problem(h1);
	CHECK((n >= 0) == !**ret_problem);
	CHECK(n >= 0 ? n == (ssize_t)size : n == -EPROTO || n == -E2BIG);
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
	static const struct h1_events nowhere = { nowhere_head, nowhere_body, nowhere_end };
	const char *text = (const char *)data, *problem, *other;
	struct tape whole, bytes, threes, again;
	ssize_t n;

	tape_init(&whole);
	tape_init(&bytes);
	tape_init(&threes);
	tape_init(&again);
	whole.canonical = bytes.canonical = threes.canonical = again.canonical = true;
	whole.next = true;
	CHECK(h1_new(H1_CLIENT, &nowhere, NULL, &whole.writer) == 0);

	n = read_it(text, size, SIZE_MAX, &whole, &problem);
	CHECK(read_it(text, size, 1, &bytes, &other) == n && strcmp(problem, other) == 0);
	CHECK(read_it(text, size, 3, &threes, &other) == n && strcmp(problem, other) == 0);
	CHECK(whole.write_error == 0);
	if (whole.out.len && !whole.brim)
		CHECK(read_it(whole.out.data, whole.out.len, 1000, &again, &problem) == (ssize_t)whole.out.len);
	tape_flush(&whole);
	tape_flush(&bytes);
	tape_flush(&threes);
	tape_flush(&again);
	check_same(&whole, &bytes);
	check_same(&whole, &threes);
	if (!whole.brim)
		check_same(&whole, &again);

	h1_free(whole.writer);
	tape_free(&whole);
	tape_free(&bytes);
	tape_free(&threes);
	tape_free(&again);
	return 0;
}
