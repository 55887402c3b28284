/* SPDX-License-Identifier: MIT */
/* Two sockets with a splice between them: what one end says the other one hears, ends and breaks too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>

#include "net/splice.c"

#define BULK (3u << 20)

static struct loop *loop;
static struct splice *splice_;
static int ends[2]; /* of the client and of the origin */
static bool over;
static uint64_t known_all_of[2];

static void on_closed(void *ctx, uint64_t sent, uint64_t received)
{
	assert_ptr_equal(ctx, &over);
	over = true;
	known_all_of[0] = sent;
	known_all_of[1] = received;
	splice_free(splice_);
	splice_ = NULL;
	loop_stop(loop);
}

static int set_up(void **state)
{
	int near[2], far[2];

	(void)state;
	over = false;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, near), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, far), 0);
	ends[0] = near[0];
	ends[1] = far[0];
	return splice_start(loop, NULL, near[1], far[1], on_closed, &over, &splice_);
}

static int tear_down(void **state)
{
	(void)state;
	splice_free(splice_);
	splice_ = NULL;
	loop_free(loop);
	for (unsigned i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return 0;
}

/* Bulk on its way from one end to the other; each end writes and reads as far as it can whenever it may. */
static struct end {
	size_t to_write, read;
	bool closes, eof;
	unsigned char next_in, next_out;
} end[2];

static void end_turn(unsigned i)
{
	unsigned char data[8192];
	ssize_t n = 1;

	while (end[i].to_write && n > 0) {
		size_t len = end[i].to_write < sizeof(data) ? end[i].to_write : sizeof(data);

		for (size_t k = 0; k < len; k++)
			data[k] = (unsigned char)(end[i].next_out + k);
		n = write(ends[i], data, len);
		if (n > 0) {
			end[i].to_write -= (size_t)n;
			end[i].next_out = (unsigned char)(end[i].next_out + n);
		}
	}
	if (!end[i].to_write && end[i].closes) {
		end[i].closes = false;
		shutdown(ends[i], SHUT_WR);
	}
	while ((n = read(ends[i], data, sizeof(data))) > 0) {
		for (ssize_t k = 0; k < n; k++)
			assert_int_equal(data[k], end[i].next_in++);
		end[i].read += (size_t)n;
	}
	end[i].eof |= n == 0;
}

static void on_tick(void *data)
{
	static unsigned turns;

	(void)data;
	end_turn(0);
	end_turn(1);
	if (++turns > 20000)
		loop_stop(loop); /* the test fails below */
}

static void bulk_both_ways(void **state)
{
	(void)state;
	end[0] = end[1] = (struct end){ .to_write = BULK, .closes = true };
	loop_every(loop, 1, on_tick, NULL);
	assert_int_equal(loop_run(loop), 0);
	assert_true(over);
	end_turn(0);
	end_turn(1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(end[i].read, BULK);
		assert_true(end[i].eof);
		assert_int_equal(known_all_of[i], BULK);
	}
}

/* One end has said all; the other one goes on for long. */
static void half_closed(void **state)
{
	(void)state;
	end[0] = (struct end){ .to_write = 5, .closes = true };
	end[1] = (struct end){ .to_write = BULK, .closes = true };
	loop_every(loop, 1, on_tick, NULL);
	assert_int_equal(loop_run(loop), 0);
	end_turn(0);
	assert_true(over && end[0].eof && end[1].eof);
	assert_int_equal(end[0].read, BULK);
	assert_int_equal(known_all_of[0], 5);
}

/* Nobody reads what is sent to an end that is gone: the other one is told, and it is over. */
static void broken(void **state)
{
	(void)state;
	end[0] = (struct end){ .to_write = BULK };
	end[1] = (struct end){ 0 };
	close(ends[1]);
	ends[1] = open("/dev/null", O_RDWR | O_CLOEXEC); /* end_turn() writes nothing there and reads nothing */
	loop_every(loop, 1, on_tick, NULL);
	assert_int_equal(loop_run(loop), 0);
	assert_true(over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bulk_both_ways, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(broken, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
