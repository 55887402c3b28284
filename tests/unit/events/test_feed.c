/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "events/feed.c"

#include "vocab/limits.h"

#define LINE_LEN 1000

static struct feed_list list;
static unsigned woken;

static void wake(void *data)
{
	assert_ptr_equal(data, &woken);
	woken++;
}

static struct event_feed *follow(const char *session)
{
	struct event_feed *feed = NULL;

	assert_int_equal(feed_list_add(&list, session, wake, &woken, &feed), 0);
	woken = 0;
	return feed;
}

static void put(uint64_t seq, const char *session)
{
	struct event event = { .seq = seq, .wall_us = 1000000 * seq, .reason = NP_R_CUT, .session = session };
	char line[64];
	int n = snprintf(line, sizeof(line), "%u\n", (unsigned)seq);

	feed_list_put(&list, &event, line, (size_t)n);
}

/* A line of LINE_LEN bytes. */
static void put_long(uint64_t seq)
{
	struct event event = { .seq = seq, .wall_us = 1000000 * seq, .reason = NP_R_CUT };
	char line[LINE_LEN + 1];

	snprintf(line, sizeof(line), "{\"seq\":%*u}\n", LINE_LEN - 9, (unsigned)seq);
	feed_list_put(&list, &event, line, LINE_LEN);
}

static void assert_reads(struct event_feed *feed, const char *text)
{
	char data[256] = "";

	assert_int_equal(event_feed_read(feed, data, sizeof(data)), strlen(text));
	assert_string_equal(data, text);
}

static void test_filter(void **state)
{
	struct event_feed *all = follow(NULL), *one = follow("a/1");

	(void)state;
	put(1, "a/1");
	put(2, "a/2");
	put(3, NULL);
	put(4, "a/1");
	assert_reads(all, "1\n2\n3\n4\n");
	assert_reads(one, "1\n4\n");
	assert_reads(all, "");
	event_feed_free(all);
	put(5, "a/1");
	assert_reads(one, "5\n");
	event_feed_free(one);
	event_feed_free(NULL);
	put(6, "a/1");
	assert_int_equal(list.count, 0);
}

static void test_wakes_when_empty(void **state)
{
	struct event_feed *feed = follow("a/1");
	char byte;

	(void)state;
	put(1, "a/2");
	assert_int_equal(woken, 0);
	put(2, "a/1");
	put(3, "a/1");
	assert_int_equal(woken, 1);
	assert_int_equal(event_feed_read(feed, &byte, 1), 1);
	put(4, "a/1");
	assert_int_equal(woken, 1);
	assert_reads(feed, "\n3\n4\n");
	put(5, "a/1");
	assert_int_equal(woken, 2);
	event_feed_free(feed);
}

static void test_followers_are_bounded(void **state)
{
	struct event_feed *feeds[NP_FOLLOWERS_MAX], *more = NULL;

	(void)state;
	for (size_t i = 0; i < NP_FOLLOWERS_MAX; i++)
		feeds[i] = follow(NULL);
	assert_int_equal(feed_list_add(&list, NULL, NULL, NULL, &more), -EMFILE);
	assert_null(more);
	event_feed_free(feeds[7]);
	feeds[7] = follow(NULL);
	put(1, NULL);
	for (size_t i = 0; i < NP_FOLLOWERS_MAX; i++) {
		assert_reads(feeds[i], "1\n");
		event_feed_free(feeds[i]);
	}
	assert_int_equal(list.count, 0);
	assert_null(list.first);
}

/* How much to read next. Small pieces are for where something happens, which is at half of NP_FEED_BYTES, where a gap is
 * reported, and at the end: each read moves all that is behind it. */
static size_t piece_at(size_t unread, size_t piece)
{
	static const size_t near = 3000;

	if (piece > near || unread <= near)
		return piece;
	if (unread > RESUME_BYTES + near)
		return unread - RESUME_BYTES - near;
	return unread > RESUME_BYTES - near ? piece : unread - near;
}

/* Reads all, in pieces of this size, and adds up what came and what was reported lost. Lines must be whole and in
 * order. */
static void read_out(struct event_feed *feed, size_t piece, uint64_t *last, uint64_t *came, uint64_t *lost)
{
	static char text[3 * NP_FEED_BYTES];
	size_t len = 0, n, ask;

	do {
		ask = piece_at(feed->unread.len, piece);
		assert_true(len + ask < sizeof(text));
		n = event_feed_read(feed, text + len, ask);
		assert_true(n <= ask);
		len += n;
	} while (n == ask);
	text[len] = '\0';
	for (char *p = text; *p;) {
		char *end = strchr(p, '\n');
		json_t *json;

		assert_non_null(end);
		json = json_loadb(p, (size_t)(end - p), 0, NULL);
		assert_non_null(json);
		if (json_object_get(json, "reason")) {
			assert_string_equal(json_string_value(json_object_get(json, "reason")), "lost");
			assert_string_equal(json_string_value(json_object_get(json, "kind")), "change");
			*lost += (uint64_t)json_integer_value(json_object_get(json, "suppressed"));
			*last += (uint64_t)json_integer_value(json_object_get(json, "suppressed"));
		} else {
			(*came)++;
			(*last)++;
			assert_int_equal(json_integer_value(json_object_get(json, "seq")), *last);
		}
		json_decref(json);
		p = end + 1;
	}
}

static void test_slow_reader(void **state)
{
	static const size_t pieces[] = { 1, 7, 999, 1000, 1001, 65536, NP_FEED_BYTES, NP_FEED_BYTES + 500 };

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct event_feed *feed = follow(NULL);
		uint64_t last = 0, came = 0, lost = 0, seq = 1;

		for (; seq <= 1000; seq++)
			put_long(seq);
		assert_true(feed->unread.len < NP_FEED_BYTES);
		assert_true(feed->unread.cap <= NP_FEED_BYTES);
		/* The report comes without another event, in the same go. */
		read_out(feed, pieces[i], &last, &came, &lost);
		assert_int_equal(came, (NP_FEED_BYTES - 1) / LINE_LEN);
		assert_int_equal(came + lost, 1000);
		assert_int_equal(feed->unread.len, 0);
		for (; seq <= 1100; seq++)
			put_long(seq);
		read_out(feed, pieces[i], &last, &came, &lost);
		assert_int_equal(came + lost, 1100);
		assert_int_equal(last, 1100);
		event_feed_free(feed);
	}
}

/* A reader that takes a little now and then gets few reports of long gaps, each in its place. */
static void test_trickle(void **state)
{
	struct event_feed *feed = follow("a/1");
	char data[3000];
	struct event event = { .wall_us = 1, .reason = NP_R_CUT, .session = "a/1" };
	char line[LINE_LEN];
	unsigned reports = 0;

	(void)state;
	memset(line, 'x', sizeof(line));
	line[LINE_LEN - 1] = '\n';
	for (unsigned i = 0; i < 4000; i++) {
		feed_list_put(&list, &event, line, sizeof(line));
		if (i % 5 == 0) {
			size_t n = event_feed_read(feed, data, sizeof(data));

			for (size_t k = 0; k < n; k++)
				reports += data[k] == '{';
		}
	}
	assert_in_range(reports, 1, 10);
	event_feed_free(feed);
}

/* It takes events again when half was read, not before and not only when all was. */
static void test_resumes_at_half(void **state)
{
	static char data[NP_FEED_BYTES];
	struct event_feed *feed = follow(NULL);
	size_t len;

	(void)state;
	for (unsigned seq = 1; seq <= 600; seq++)
		put_long(seq);
	len = feed->unread.len;
	assert_true(feed->skipped > 0);
	assert_int_equal(event_feed_read(feed, data, len - RESUME_BYTES - 1), len - RESUME_BYTES - 1);
	put_long(601);
	assert_int_equal(feed->unread.len, RESUME_BYTES + 1);
	assert_int_equal(event_feed_read(feed, data, 1), 1);
	assert_int_equal(event_feed_read(feed, data, 1), 1);
	assert_int_equal(feed->skipped, 0);
	len = feed->unread.len;
	put_long(602);
	assert_int_equal(feed->unread.len, len + LINE_LEN);
	event_feed_free(feed);
}

static void test_report(void **state)
{
	struct event_feed *feed = follow("a/1");
	char data[512] = "";

	(void)state;
	feed->skipped = UINT32_MAX - 1;
	put(1, "a/1");
	put(2, "a/1"); /* the count stays at its end */
	put(3, "a/2");
	assert_true(event_feed_read(feed, data, sizeof(data)) > 0);
	assert_non_null(strstr(data, "{\"time\":\"1970-01-01T00:00:02.000000Z\",\"kind\":\"change\",\"reason\":\"lost\""));
	assert_non_null(strstr(data, "\"session\":\"a/1\",\"suppressed\":4294967295,"));
	put(4, "a/1");
	assert_reads(feed, "4\n");
	event_feed_free(feed);
}

static void test_detached(void **state)
{
	struct event_feed *feed = follow(NULL), *other = follow(NULL);

	(void)state;
	put(1, NULL);
	feed_list_detach(&list);
	put(2, NULL);
	assert_reads(feed, "1\n");
	event_feed_free(feed);
	event_feed_free(other);
	assert_int_equal(list.count, 0);
}

static void wake_and_free(void *data)
{
	event_feed_free(*(struct event_feed **)data);
	*(struct event_feed **)data = NULL;
}

static void test_freed_while_woken(void **state)
{
	struct event_feed *first = follow(NULL), *second = NULL, *third;

	(void)state;
	assert_int_equal(feed_list_add(&list, NULL, wake_and_free, &second, &second), 0);
	third = follow(NULL);
	put(1, NULL);
	assert_null(second);
	assert_reads(first, "1\n");
	assert_reads(third, "1\n");
	event_feed_free(first);
	event_feed_free(third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_wakes_when_empty),
		cmocka_unit_test(test_followers_are_bounded),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_trickle),
		cmocka_unit_test(test_resumes_at_half),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_freed_while_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
