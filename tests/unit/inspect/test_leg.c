/* SPDX-License-Identifier: MIT */
/* What an exchange sees of its legs must not tell HTTP/1.1 from HTTP/2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "inspect/leg.c"

#include "leg_pair.h"

static void test_one_exchange(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		assert_int_equal(request_send("POST", true), 0);
		assert_int_equal(leg_body(&far.turn, "ask", 3), 0);
		assert_int_equal(leg_end(&far.turn, NULL), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(near.seen, h2 ? "POST /a ask end " : "POST /a ask read end ");
		assert_int_equal(response_send(200, true), 0);
		assert_int_equal(leg_body(&near.turn, "answer", 6), 0);
		assert_int_equal(leg_end(&near.turn, NULL), 0);
		assert_int_equal(glue(), 0);
		if (h2) /* the streams are over, and the exchanges were told so */
			assert_true(near.turn.gone && far.turn.gone);
		assert_string_equal(far.seen, h2 ? "200 answer end closed:0 " : "200 answer read end ");
		assert_int_equal(near.leg.unread + far.leg.unread, 0);
		pair_stop();
	}
}

/* An interim response is not the end of anything. */
static void test_interim(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		assert_int_equal(request_send("GET", false), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(near.seen, h2 ? "GET /a. " : "GET /a read end ");
		assert_int_equal(response_send(103, h2), 0); /* HTTP/1.1: it has no body, and yet more comes */
		assert_int_equal(response_send(204, false), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(far.seen, h2 ? "103 204. closed:0 " : "103 204 read end ");
		pair_stop();
	}
}

/* The rest of a request that was answered: HTTP/1.1 asks the owner how long, HTTP/2 gives the window back. */
static void test_stray(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		near.refuses = true;
		assert_int_equal(request_send("POST", true), 0);
		assert_int_equal(leg_body(&far.turn, "ask", 3), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(near.seen, h2 ? "POST /a " : "POST /a stray:3 ");
		near.stray = -ECANCELED;
		assert_int_equal(leg_body(&far.turn, "more", 4), 0);
		assert_int_equal(glue(), h2 ? 0 : -ECANCELED);
		pair_stop();
	}
}

static void test_stray_window(void **state)
{
	const size_t len = 4u << 20; /* more than any window */
	char *bytes = calloc(1, len);

	(void)state;
	assert_non_null(bytes);
	pair_start(true);
	near.refuses = true;
	assert_int_equal(request_send("POST", true), 0);
	assert_int_equal(leg_body(&far.turn, bytes, len), 0);
	assert_int_equal(glue(), 0);
	assert_int_equal(leg_held(&far.leg), 0);
	pair_stop();
	free(bytes);
}

/* An origin that nobody listens to is not read on; a client is. */
static void test_nobody_listens(void **state)
{
	(void)state;
	pair_start(false);
	assert_int_equal(request_send("GET", false), 0);
	assert_int_equal(glue(), 0);
	leg_detach(&far.turn);
	assert_int_equal(response_send(200, true), 0);
	assert_int_equal(leg_body(&near.turn, "answer", 6), 0);
	assert_int_equal(glue(), -ECANCELED);
	assert_string_equal(far.seen, "");
	pair_stop();
}

static void test_unread(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		near.keeps = true;
		assert_int_equal(request_send("POST", true), 0);
		assert_int_equal(leg_body(&far.turn, "ask", 3), 0);
		assert_int_equal(glue(), 0);
		assert_int_equal(near.leg.unread, h2 ? 0 : 3); /* HTTP/2 has its windows */
		leg_consume(&near.turn, 2);
		assert_int_equal(near.leg.unread, h2 ? 0 : 1);
		leg_consume(&near.turn, 5);
		assert_int_equal(near.leg.unread, 0);
		pair_stop();
	}
}

/* What is cut short must look so. */
static void test_abort(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		assert_int_equal(request_send("GET", false), 0);
		assert_int_equal(glue(), 0);
		assert_int_equal(response_send(200, true), 0);
		leg_abort(&near.turn);
		assert_int_equal(near.leg.life, h2 ? LEG_OPEN : LEG_BROKEN);
		assert_true(near.leg.dirty);
		assert_int_equal(glue(), 0);
		if (h2)
			assert_non_null(strstr(far.seen, "closed:2 "));
		pair_stop();
	}
}

/* An exchange that does not want its answer any more; the other streams stay. */
static void test_cancel(void **state)
{
	(void)state;
	pair_start(true);
	assert_int_equal(request_send("GET", false), 0);
	assert_int_equal(glue(), 0);
	leg_abort(&far.turn);
	leg_detach(&far.turn);
	assert_int_equal(glue(), 0);
	assert_string_equal(near.seen, "GET /a. closed:8 ");
	assert_string_equal(far.seen, "");
	assert_int_equal(near.leg.life, LEG_OPEN);
	assert_int_equal(far.leg.life, LEG_OPEN);
	pair_stop();
}

/* Who has no place on a leg writes nothing, and is told. */
static void test_gone(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		assert_int_equal(request_send("POST", true), 0);
		assert_int_equal(glue(), 0);
		leg_detach(&near.turn);
		leg_detach(&near.turn); /* once more is nothing */
		assert_int_equal(response_send(200, true), -EPIPE);
		assert_int_equal(leg_body(&near.turn, "x", 1), -EPIPE);
		assert_int_equal(leg_end(&near.turn, NULL), -EPIPE);
		assert_int_equal(leg_backlog(&near.turn) + leg_waiting(&near.turn), 0);
		leg_consume(&near.turn, 1);
		leg_abort(&near.turn);
		assert_int_equal(near.leg.life, LEG_OPEN);
		pair_stop();
	}
}

/* A second request on a connection that is kept, by another exchange. */
static void test_next(void **state)
{
	(void)state;
	pair_start(false);
	for (int i = 0; i < 2; i++) {
		near.seen[0] = far.seen[0] = '\0';
		assert_int_equal(request_send("GET", false), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(near.seen, "GET /a read end ");
		assert_int_equal(response_send(204, false), 0);
		assert_int_equal(glue(), 0);
		assert_string_equal(far.seen, "204 read end ");
		assert_true(h1_persists(near.leg.h1) && h1_persists(far.leg.h1));
		leg_detach(&near.turn);
		leg_detach(&far.turn);
		h1_next(near.leg.h1);
		h1_next(far.leg.h1);
		leg_attach(&far.turn, &far.leg, &turn_events);
	}
	pair_stop();
}

/* The last exchange of a client's connection says so; an origin's need not. */
static void test_last(void **state)
{
	(void)state;
	pair_start(false);
	leg_advance(&far.leg, LEG_LAST);
	assert_int_equal(request_send("GET", false), 0);
	flush_all();
	buf_append(&far.channel.written, "", 1);
	assert_null(strstr(far.channel.written.data, "close"));
	far.channel.written.len--;
	assert_int_equal(glue(), 0);
	leg_advance(&near.leg, LEG_LAST);
	assert_int_equal(response_send(204, false), 0);
	flush_all();
	buf_append(&near.channel.written, "", 1);
	assert_non_null(strstr(near.channel.written.data, "connection: close"));
	near.channel.written.len--;
	assert_int_equal(glue(), 0);
	assert_false(h1_persists(far.leg.h1));
	pair_stop();
}

static void test_life(void **state)
{
	(void)state;
	pair_start(false);
	leg_advance(&near.leg, LEG_CLOSING);
	leg_advance(&near.leg, LEG_LAST);
	assert_int_equal(near.leg.life, LEG_CLOSING);
	leg_advance(&near.leg, LEG_DEAD);
	leg_advance(&near.leg, LEG_BROKEN);
	assert_true(leg_is_dead(&near.leg));
	leg_dirty(&near.leg);
	assert_false(near.leg.dirty);
	/* One that dies after it was dirty is not written to. */
	leg_dirty(&far.leg);
	leg_advance(&far.leg, LEG_DEAD);
	flush_all();
	assert_int_equal(near.flushes + far.flushes, 0);
	pair_stop();
}

/* A leg that waits has no memory of its own: one lends it to the other. */
static void test_spare(void **state)
{
	const char *memory;

	(void)state;
	pair_start(false);
	assert_int_equal(request_send("GET", false), 0);
	memory = far.leg.out.data;
	assert_non_null(memory);
	flush_all();
	assert_null(far.leg.out.data);
	assert_ptr_equal(worker.spare.data, memory);
	leg_dirty(&near.leg);
	assert_ptr_equal(near.leg.out.data, memory);
	assert_null(worker.spare.data);
	flush_all();
	assert_int_equal(far.flushes, 1);
	pair_stop();
}

static void test_backlog(void **state)
{
	char *bytes = calloc(1, 2 * NP_BACKLOG_HIGH);

	(void)state;
	assert_non_null(bytes);
	for (int h2 = 0; h2 < 2; h2++) {
		pair_start(h2);
		assert_int_equal(request_send("GET", false), 0);
		assert_int_equal(glue(), 0);
		near.channel.held = true;
		assert_int_equal(response_send(200, true), 0);
		assert_int_equal(leg_body(&near.turn, bytes, 2 * NP_BACKLOG_HIGH), 0);
		assert_true(leg_backlog(&near.turn) >= 2 * NP_BACKLOG_HIGH);
		flush_all();
		assert_true(leg_held(&near.leg) >= 2 * NP_BACKLOG_HIGH);
		assert_true(leg_unsent(&near.leg) >= 2 * NP_BACKLOG_HIGH);
		assert_true(leg_waiting(&near.turn) > 0);
		near.channel.held = false;
		assert_int_equal(glue(), 0);
		assert_int_equal(leg_held(&near.leg), 0);
		assert_int_equal(leg_backlog(&near.turn), 0);
		/* Of HTTP/1.1 the channel says so itself. */
		assert_true(!h2 || strstr(near.seen, "drained "));
		pair_stop();
	}
	free(bytes);
}

/* After a 101 the connection is somebody else's, with all that was written. */
static void test_take(void **state)
{
	(void)state;
	pair_start(false);
	assert_int_equal(request_send("GET", false), 0);
	assert_int_equal(leg_take_fd(&far.leg), -1); /* something is gathered */
	assert_ptr_equal(leg_take(&far.leg), &far.channel);
	assert_true(far.channel.written.len > 0 && !far.leg.out.len && !far.leg.channel);
	flush_all();
	assert_int_equal(far.flushes, 0);
	assert_int_equal(leg_backlog(&far.turn), 0);
	assert_int_equal(leg_take_fd(&near.leg), 7);
	assert_null(near.leg.channel);
	pair_stop();
}

/* Who frees a leg hears of every exchange that was on it. */
static void test_leg_freed(void **state)
{
	(void)state;
	pair_start(true);
	assert_int_equal(request_send("POST", true), 0);
	assert_int_equal(glue(), 0);
	leg_advance(&near.leg, LEG_DEAD);
	leg_free(&near.leg);
	assert_non_null(strstr(near.seen, "closed:"));
	assert_true(near.turn.gone && !near.turn.leg);
	near.leg.h2 = NULL;
	pair_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_exchange),   cmocka_unit_test(test_interim),
		cmocka_unit_test(test_stray),	       cmocka_unit_test(test_stray_window),
		cmocka_unit_test(test_nobody_listens), cmocka_unit_test(test_unread),
		cmocka_unit_test(test_abort),	       cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_gone),	       cmocka_unit_test(test_next),
		cmocka_unit_test(test_last),	       cmocka_unit_test(test_life),
		cmocka_unit_test(test_spare),	       cmocka_unit_test(test_backlog),
		cmocka_unit_test(test_take),	       cmocka_unit_test(test_leg_freed),
	};

	return cmocka_run_group_tests_name("leg", tests, NULL, NULL);
}
