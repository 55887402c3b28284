/* SPDX-License-Identifier: MIT */
#include "launch/kept.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void reports(void **state)
{
	struct init_report raw = { .kind = REPORT_ENDED, .exit_code = 255, .signal = 64, .error = 4095 }, got;
	const struct init_report wrong[] = {
		{ .kind = 0 },
		{ .kind = REPORT_ENDED + 1 },
		{ .kind = REPORT_ENDED, .exit_code = -1 },
		{ .kind = REPORT_ENDED, .exit_code = 256 },
		{ .kind = REPORT_ENDED, .signal = NSIG },
		{ .kind = REPORT_ENDED, .signal = -1 },
		{ .kind = REPORT_FAILED, .error = 4096 },
		{ .kind = REPORT_FAILED, .error = -1 },
	};

	(void)state;
	memset(raw.text, 'x', sizeof(raw.text));
	assert_true(report_read(&raw, sizeof(raw), &got));
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
	assert_true(got.exit_code == 255 && got.signal == 64);
	assert_false(report_read(&raw, sizeof(raw) - 1, &got));
	assert_false(report_read(&raw, 0, &got));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(report_read(&wrong[i], sizeof(wrong[i]), &got));
}

static char folder[] = "/tmp/netpawl-test-XXXXXX";

static int socket_of(int dir)
{
	return kept_connect(dir);
}

static void the_socket(void **state)
{
	int dir, listener, one, two;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(socket_of(dir), -ENOENT);
	listener = kept_listen(dir);
	assert_true(listener >= 0);
	one = socket_of(dir);
	two = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(one >= 0 && two >= 0);
	close(one);
	close(two);
	close(listener);
	assert_int_equal(socket_of(dir), -ECONNREFUSED);
	listener = kept_listen(dir); /* in the place of a dead one */
	assert_true(listener >= 0);
	one = socket_of(dir);
	assert_true(one >= 0);
	close(one);
	close(listener);
	assert_int_equal(unlinkat(dir, NP_KEPT_SOCKET, 0), 0);
	close(dir);
	assert_int_equal(rmdir(folder), 0);
}

static void an_order(void **state)
{
	char *argv[] = { "a", "", "b c", NULL }, *environment[] = { "X=1", "Y=", NULL };
	const struct plan plan = { .argv = argv, .environ = environment, .directory = "/d" };
	struct stdio stdio = { .inside = { -1, -1, -1 } };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(KEPT_FDS * sizeof(int))];
	} control;
	struct kept_order order;
	struct iovec iov = { &order, sizeof(order) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int pair[2], fds[KEPT_FDS];
	char text[64];
	sigset_t mask;

	(void)state;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	umask(027);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(kept_order(pair[0], &plan, &mask, &stdio, STDIN_FILENO), 0);
	assert_int_equal(recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC), sizeof(order));
	assert_int_equal(control.head.cmsg_len, CMSG_LEN(sizeof(fds)));
	memcpy(fds, CMSG_DATA(&control.head), sizeof(fds));
	assert_true(order.size == sizeof(order) && order.n_words == 3 && order.n_environ == 2 && order.umask == 027);
	assert_true(sigismember(&order.mask, SIGUSR1));
	assert_int_equal(order.bytes, 17);
	assert_int_equal(pread(fds[3], text, sizeof(text), 0), 17);
	assert_memory_equal(text, "/d\0a\0\0b c\0X=1\0Y=\0", 17);
	for (int i = 0; i < KEPT_FDS; i++)
		close(fds[i]);
	close(pair[1]);
	assert_int_equal(kept_order(pair[0], &plan, &mask, &stdio, STDIN_FILENO), -EPIPE);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports),
		cmocka_unit_test(the_socket),
		cmocka_unit_test(an_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
