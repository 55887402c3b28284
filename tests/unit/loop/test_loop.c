/* SPDX-License-Identifier: MIT */
#include "loop/loop.c"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <cmocka.h>

static struct loop *loop;
static char trace[64];

static int setup(void **state)
{
	(void)state;
	trace[0] = '\0';
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

static void note(const char *what)
{
	strncat(trace, what, sizeof(trace) - strlen(trace) - 1);
}

/* -- file descriptors ---------------------------------------------------- */

struct pair {
	int fd[2];
	int count;
};

static void kill_other(void *data, uint32_t events)
{
	struct pair *pair = data;

	assert_true(events & EPOLLIN);
	pair->count++;
	loop_unwatch(loop, pair->fd[0]);
	loop_unwatch(loop, pair->fd[1]);
	loop_stop(loop);
}

/* Both are ready in one round: whichever comes first silences the other. */
static void test_unwatch_drops_queued_event(void **state)
{
	struct pair pair = { .fd = { eventfd(1, 0), eventfd(1, 0) } };

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(loop_watch(loop, pair.fd[i], EPOLLIN, kill_other, &pair), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(pair.count, 1);
	close(pair.fd[0]);
	close(pair.fd[1]);
}

static void never(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	note("never");
}

static void on_stop(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	note("fd ");
	loop_stop(loop);
}

static void replace(void *data, uint32_t events)
{
	struct pair *pair = data;

	(void)events;
	pair->count++;
	/* The same number anew, in the round in which an event for the old one is queued. */
	loop_unwatch(loop, pair->fd[0]);
	loop_unwatch(loop, pair->fd[1]);
	for (int i = 0; i < 2; i++) {
		int fd = eventfd(0, 0);

		assert_int_equal(dup2(fd, pair->fd[i]), pair->fd[i]);
		close(fd);
		assert_int_equal(loop_watch(loop, pair->fd[i], EPOLLIN, never, NULL), 0);
	}
	loop_stop(loop);
}

static void test_reused_number_gets_no_old_event(void **state)
{
	struct pair pair = { .fd = { eventfd(1, 0), eventfd(1, 0) } };

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(loop_watch(loop, pair.fd[i], EPOLLIN, replace, &pair), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(pair.count, 1);
	assert_string_equal(trace, "");
	for (int i = 0; i < 2; i++) {
		loop_unwatch(loop, pair.fd[i]);
		close(pair.fd[i]);
	}
}

static void test_watch_errors(void **state)
{
	int fd = eventfd(0, 0), file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(loop_watch(loop, -1, EPOLLIN, never, NULL), -EBADF);
	assert_int_equal(loop_watch(loop, 900, EPOLLIN, never, NULL), -EBADF);
	assert_int_equal(loop_watch(loop, file, EPOLLIN, never, NULL), -EPERM);
	assert_int_equal(loop_watch(loop, fd, EPOLLIN, never, NULL), 0);
	assert_int_equal(loop_watch(loop, fd, EPOLLIN, never, NULL), -EEXIST);
	loop_unwatch(loop, fd);
	loop_unwatch(loop, fd);
	loop_unwatch(loop, -1);
	loop_unwatch(loop, 1 << 20);
	assert_int_equal(loop_watch(loop, fd, EPOLLIN, never, NULL), 0);
	close(fd);
	close(file);
}

/* As many as an inspector has: each comes and goes by itself, and the one that is ready is the one that is called. */
static void test_thousands(void **state)
{
	enum { MANY = 16000 };
	struct rlimit limit;
	static int fds[MANY];
	size_t n;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (n = 0; n < MANY; n++) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		if (fds[n] < 0)
			break;
	}
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < n; i++)
			assert_int_equal(loop_watch(loop, fds[i], EPOLLIN, never, NULL), 0);
		for (size_t i = 0; i < n; i++)
			loop_unwatch(loop, fds[i]);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(loop_watch(loop, fds[i], EPOLLIN, i == n / 2 ? on_stop : never, NULL), 0);
	assert_int_equal(eventfd_write(fds[n / 2], 1), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(trace, "fd ");
	for (size_t i = 0; i < n; i++) {
		loop_unwatch(loop, fds[i]);
		close(fds[i]);
	}
}

/* -- work for later ------------------------------------------------------ */

static struct loop_task first, second, third;
static int stop_fd;

static void on_first(void *data)
{
	note(data);
	loop_cancel(loop, &second);
	loop_later(loop, &third);
	loop_later(loop, &first); /* again: after another look at the fds, which stops the loop */
	assert_int_equal(eventfd_write(stop_fd, 1), 0);
}

static void on_task(void *data)
{
	note(data);
}

static void test_later(void **state)
{
	(void)state;
	stop_fd = eventfd(0, 0);
	first = (struct loop_task){ .fn = on_first, .data = "1 " };
	second = (struct loop_task){ .fn = on_task, .data = "2 " };
	third = (struct loop_task){ .fn = on_task, .data = "3 " };
	assert_int_equal(loop_watch(loop, stop_fd, EPOLLIN, on_stop, NULL), 0);
	loop_later(loop, &first);
	loop_later(loop, &first);
	loop_later(loop, &second);
	loop_later(loop, &second);
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(trace, "1 fd 3 1 ");
	loop_cancel(loop, &second);
	loop_unwatch(loop, stop_fd);
	close(stop_fd);
}

static void test_cancel_keeps_order(void **state)
{
	(void)state;
	first = (struct loop_task){ .fn = on_task, .data = "1 " };
	second = (struct loop_task){ .fn = on_task, .data = "2 " };
	third = (struct loop_task){ .fn = on_task, .data = "3 " };
	loop_later(loop, &first);
	loop_later(loop, &second);
	loop_later(loop, &third);
	loop_cancel(loop, &third);
	loop_cancel(loop, &first);
	loop_later(loop, &first);
	loop_run_later(loop);
	assert_string_equal(trace, "2 1 ");
	assert_false(loop_has_work(loop));
	loop_later(loop, &third);
	loop_cancel(loop, &third);
	loop_cancel(loop, &third);
	loop_run_later(loop);
	assert_string_equal(trace, "2 1 ");
}

/* -- lanes ------------------------------------------------------------------ */

struct busy {
	struct loop_task task;
	int fd, turns;
};

static void on_busy(void *data)
{
	struct busy *busy = data;

	for (uint64_t start = loop_now_ns(); loop_now_ns() - start < 2 * LOOK_NS;)
		;
	if (++busy->turns == 3) /* comes while there is much to do */
		assert_int_equal(eventfd_write(busy->fd, 1), 0);
	loop_later(loop, &busy->task);
}

static struct lane other;

static void on_other(void *data)
{
	note(data);
	loop_stop(loop);
}

static void on_other_fd(void *data, uint32_t events)
{
	uint64_t value;

	(void)events;
	assert_int_equal(eventfd_read(((struct busy *)data)->fd, &value), 0);
	loop_later(loop, &first);
}

/* Twenty in one lane have always something to do: who comes in another does not wait for all of them. */
static void test_lanes(void **state)
{
	enum { MANY = 20 };
	struct lane lane = { 0 };
	struct busy busy[MANY] = { 0 };
	int turns = 0, fd = eventfd(0, 0);

	(void)state;
	first = (struct loop_task){ .fn = on_other, .data = "other ", .lane = &other };
	assert_int_equal(loop_watch(loop, fd, EPOLLIN, on_other_fd, &busy[0]), 0);
	for (int i = 0; i < MANY; i++) {
		busy[i] = (struct busy){ .task = { .fn = on_busy, .data = &busy[i], .lane = &lane }, .fd = fd };
		loop_later(loop, &busy[i].task);
	}
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(trace, "other ");
	for (int i = 0; i < MANY; i++) {
		turns += busy[i].turns;
		loop_cancel(loop, &busy[i].task);
	}
	assert_true(turns <= 2 * MANY + 2); /* the third of the first one, and the one behind it */
	loop_forget(loop, &lane);
	loop_forget(loop, &other);
	loop_unwatch(loop, fd);
	close(fd);
}

static void on_again(void *data)
{
	note(data);
	if (strlen(trace) < 12)
		loop_later(loop, &second);
	else
		loop_stop(loop);
}

/* What has no lane waits until all that waited in lanes is done: here "-" is a round of them. */
static void test_later_is_behind_lanes(void **state)
{
	struct lane lanes[2] = { 0 };
	struct busy busy[2] = { 0 };

	(void)state;
	second = (struct loop_task){ .fn = on_again, .data = "- " };
	loop_later(loop, &second);
	for (int i = 0; i < 2; i++) {
		busy[i] = (struct busy){ .task = { .fn = on_busy, .data = &busy[i], .lane = &lanes[i] }, .turns = 3 };
		loop_later(loop, &busy[i].task);
	}
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(trace, "- - - - - - ");
	for (int i = 0; i < 2; i++) {
		assert_true(busy[i].turns >= 3 + 5);
		loop_cancel(loop, &busy[i].task);
		loop_forget(loop, &lanes[i]);
	}
}

static void on_tick(void *data)
{
	if (++*(int *)data == 3)
		loop_stop(loop);
}

static void test_timer(void **state)
{
	int ticks = 0;

	(void)state;
	assert_int_equal(loop_every(loop, 1, on_tick, &ticks), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ticks, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unwatch_drops_queued_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_number_gets_no_old_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thousands, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel_keeps_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lanes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later_is_behind_lanes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
