/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as requests on one connection. However they are cut, they are read as the same; and what is accepted,
 * written anew as to an origin and read there, is the same once more.
 */
#include "http/h1.c"

#include "h1_nowhere.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t read_it(const char *data, size_t size, size_t at_a_time, struct tape *tape, const char **ret_problem)
{
	struct h1 *h1;
	ssize_t n;

	check(h1_new(H1_SERVER, &tape_events, tape, &h1) == 0);
	n = tape_feed(h1, data, size, at_a_time, true);
	*ret_problem = h1_problem(h1);
	check((n >= 0) == !**ret_problem);
	check(n >= 0 ? n == (ssize_t)size : n == -EPROTO || n == -E2BIG);
	h1_free(h1);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *problem, *other;
	struct tape whole, bytes, threes, again;
	ssize_t n;

	tape_init(&whole);
	tape_init(&bytes);
	tape_init(&threes);
	tape_init(&again);
	whole.canonical = bytes.canonical = threes.canonical = again.canonical = true;
	whole.next = true;
	check(h1_new(H1_CLIENT, &nowhere, NULL, &whole.writer) == 0);

	n = read_it(text, size, SIZE_MAX, &whole, &problem);
	check(read_it(text, size, 1, &bytes, &other) == n && strcmp(problem, other) == 0);
	check(read_it(text, size, 3, &threes, &other) == n && strcmp(problem, other) == 0);
	check(whole.write_error == 0);
	if (whole.out.len && !whole.brim)
		check(read_it(whole.out.data, whole.out.len, 1000, &again, &problem) == (ssize_t)whole.out.len);
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
