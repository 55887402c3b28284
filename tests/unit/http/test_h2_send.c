/* SPDX-License-Identifier: MIT */
/* Bodies that go: flow control stops their sender, and nothing is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h2_send.c"

#include "h2_pair.h"
#include "vocab/limits.h"

static void app_download_head(struct side *side, struct seen *seen, struct head *head, bool end)
{
	(void)side;
	(void)head;
	(void)end;
	assert_int_equal(respond(seen->stream, 200, false), 0);
	feed_start(seen, 3 << 20);
}

/* Nobody takes the body: the window fills and the sender stops. Then it is taken, bit by bit. */
static void slow_body(struct side *from, struct side *to, struct seen *sends, size_t total)
{
	struct seen *takes = NULL;
	size_t got;

	to->hoards = true;
	glue(&p);
	for (size_t i = 0; i < to->n; i++)
		takes = &to->seen[i];
	assert_non_null(takes);
	(void)from;
	assert_int_equal(takes->bytes, NP_H2_WINDOW);
	assert_true(h2_backlog(sends->stream) > NP_BACKLOG_LOW);
	while (takes->bytes < total) {
		got = takes->bytes;
		h2_consume(takes->stream, 100000);
		glue(&p);
		assert_true(takes->bytes <= got + NP_H2_WINDOW);
		if (takes->bytes == got)
			h2_consume(takes->stream, SIZE_MAX); /* as much as there is */
	}
	glue(&p);
	assert_int_equal(takes->bytes, total);
	assert_int_equal(takes->sum, sends->feed.sum);
	assert_int_equal(takes->ends, 1);
	assert_true(sends->drained > 1);
}

static void test_slow_download(void **state)
{
	const struct app app = { .head = app_download_head };
	struct seen *c;

	(void)state;
	pair_start(&p, &app);
	c = get("GET", "/", true);
	slow_body(&p.server, &p.client, &p.server.seen[0], 3 << 20);
	assert_true(c->closed && c->error == 0 && p.server.seen[0].closed);
	pair_stop(&p);
}

static void test_slow_upload(void **state)
{
	struct seen *c;

	(void)state;
	pair_start(&p, NULL);
	c = get("POST", "/", false);
	feed_start(c, 3 << 20);
	slow_body(&p.client, &p.server, c, 3 << 20);
	assert_int_equal(respond(p.server.seen[0].stream, 204, true), 0);
	glue(&p);
	assert_true(c->closed && c->error == 0 && c->head_end && !c->has_body);
	pair_stop(&p);
}

/* drained() only after the backlog was above the one mark and is below the other. */
static void test_drained(void **state)
{
	static char data[NP_BACKLOG_HIGH + 1];
	struct seen *c;

	(void)state;
	pair_start(&p, NULL);
	c = get("POST", "/", false);
	c->feed.end = true;
	assert_int_equal(h2_send_body(c->stream, data, NP_BACKLOG_HIGH), 0);
	glue(&p);
	assert_int_equal(h2_backlog(c->stream), 0);
	assert_int_equal(c->drained, 0);
	assert_int_equal(h2_send_body(c->stream, data, NP_BACKLOG_HIGH + 1), 0);
	assert_int_equal(h2_backlog(c->stream), NP_BACKLOG_HIGH + 1);
	glue(&p);
	assert_int_equal(h2_backlog(c->stream), 0);
	assert_int_equal(c->drained, 1);
	assert_int_equal(h2_send_body(c->stream, data, 1000), 0);
	glue(&p);
	assert_int_equal(c->drained, 1);
	pair_stop(&p);
}

/* Streams that are not read hold their own windows, and no other stream's: the connection is as wide as all. */
static void test_connection_window(void **state)
{
	const struct app app = { .head = app_download_head };
	struct seen *c[6], *late;

	(void)state;
	pair_start(&p, &app);
	p.client.hoards = true;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = get("GET", "/", true);
	glue(&p);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(c[i]->bytes, NP_H2_WINDOW);
	late = get("GET", "/", true);
	glue(&p);
	assert_int_equal(late->bytes, NP_H2_WINDOW);
	/* What a stream held comes back when it is reset, by either side. */
	h2_reset(c[0]->stream, H2_CANCEL);
	h2_reset(p.server.seen[1].stream, H2_INTERNAL_ERROR);
	glue(&p);
	late = get("GET", "/", true);
	glue(&p);
	assert_int_equal(late->bytes, NP_H2_WINDOW);
	pair_stop(&p);
}

/* One body does not wait for the end of another. */
static void test_turns(void **state)
{
	const struct app app = { .head = app_download_head };

	(void)state;
	pair_start(&p, &app);
	get("GET", "/", true);
	get("GET", "/", true);
	glue(&p);
	assert_non_null(memchr(p.client.order, 'b', 20));
	assert_int_equal(p.client.seen[0].bytes, 3 << 20);
	assert_int_equal(p.client.seen[1].bytes, 3 << 20);
	pair_stop(&p);
}

static void test_left_streams(void **state)
{
	const struct app app = { .head = app_download_head };
	struct seen *c;

	(void)state;
	h2_free(NULL);
	pair_start(&p, &app);
	p.client.hoards = true;
	c = get("POST", "/", false);
	glue(&p);
	pair_stop(&p);
	assert_true(c->closed && c->error == H2_CANCEL && p.server.seen[0].closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_download), cmocka_unit_test(test_slow_upload),
		cmocka_unit_test(test_drained),	      cmocka_unit_test(test_connection_window),
		cmocka_unit_test(test_turns),	      cmocka_unit_test(test_left_streams),
	};

	return cmocka_run_group_tests_name("h2_send", tests, NULL, NULL);
}
