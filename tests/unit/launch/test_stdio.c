/* SPDX-License-Identifier: MIT */
#include "launch/stdio.c"

#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "../child.h"

static bool passes_once(int fd)
{
	bool passes = stdio_passes(fd);

	close(fd);
	return passes;
}

static void what_passes(void **state)
{
	int ends[2], master, slave;
	FILE *file = tmpfile();

	(void)state;
	assert_true(stdio_passes(fileno(file)));
	fclose(file);
	assert_int_equal(pipe(ends), 0);
	assert_true(passes_once(ends[0]) && passes_once(ends[1]));
	assert_true(passes_once(open("/dev/null", O_RDWR)));
	assert_true(passes_once(open("/dev/urandom", O_RDONLY)));
	if (openpty(&master, &slave, NULL, NULL, NULL) == 0) {
		assert_true(passes_once(slave));
		close(master);
	}
}

static void what_does_not(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_false(passes_once(pair[0]) || passes_once(pair[1]));
	assert_false(passes_once(socket(AF_INET, SOCK_STREAM, 0)));
	assert_false(passes_once(epoll_create1(0)));
	assert_false(passes_once(open("/", O_RDONLY)));
	assert_false(passes_once(open("/proc/self/ns/net", O_RDONLY)));
	assert_false(passes_once(open("/proc/self/comm", O_RDWR)));
	assert_false(stdio_passes(-1));
}

/* Carries bytes until both sides have ended, as launch.c does. */
static void serve(struct stdio *stdio, bool input_too)
{
	struct pollfd fds[STDIO_POLLFDS];

	while (stdio_busy(stdio) || (input_too && stdio->relays[0].to >= 0)) {
		stdio_watch(stdio, fds);
		if (poll(fds, STDIO_POLLFDS, -1) < 0)
			return;
		stdio_move(stdio, fds);
	}
}

/* A process whose standard input, output and error are `fd`, with relays, and a command inside that runs fn.
 * Returns what fn returned. */
static int relayed(int fd, int (*fn)(void))
{
	struct stdio stdio = { .left = STDIO_UNLIMITED };
	int status;
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 3; i++)
		if (dup2(fd, i) < 0)
			return 100;
	close(fd);
	if (stdio_prepare(&stdio) < 0)
		return 101;
	pid = fork();
	if (pid == 0) {
		if (stdio_enter(&stdio) < 0 || close_range(3, ~0U, 0) < 0)
			_exit(102);
		signal(SIGPIPE, SIG_DFL);
		_exit(fn());
	}
	stdio_leave(&stdio);
	serve(&stdio, false);
	stdio_end_input(&stdio);
	stdio_free(&stdio);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 103;
}

static pid_t relayed_start(int pair[2], int (*fn)(void))
{
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		_exit(relayed(pair[1], fn));
	}
	close(pair[1]);
	return pid;
}

static int exit_code(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int copy_through(void)
{
	char data[4096];
	ssize_t n;

	for (int fd = 0; fd < 3; fd++)
		if (!stdio_passes(fd))
			return 50; /* a socket is still there */
	while ((n = read(0, data, sizeof(data))) > 0)
		for (ssize_t done = 0, w; done < n; done += w)
			if ((w = write(1, data + done, (size_t)(n - done))) <= 0)
				return 51;
	return n < 0 ? 52 : 0;
}

static void bytes_both_ways_and_half_close(void **state)
{
	enum { TOTAL = 1 << 20 };
	char *sent = malloc(TOTAL), *got = malloc(TOTAL + 1);
	size_t len = 0;
	ssize_t n;
	int pair[2];
	pid_t pid = relayed_start(pair, copy_through), writer;

	(void)state;
	for (size_t i = 0; i < TOTAL; i++)
		sent[i] = (char)(i * 31 + (i >> 8));
	writer = fork();
	if (writer == 0) {
		for (size_t done = 0; done < TOTAL; done += (size_t)n)
			if ((n = send(pair[0], sent + done, TOTAL - done, MSG_NOSIGNAL)) <= 0)
				_exit(1);
		shutdown(pair[0], SHUT_WR); /* our end; answers still come */
		_exit(0);
	}
	while (len < TOTAL + 1 && (n = recv(pair[0], got + len, TOTAL + 1 - len, 0)) > 0)
		len += (size_t)n;
	assert_int_equal(len, TOTAL);
	assert_memory_equal(sent, got, TOTAL);
	assert_int_equal(exit_code(writer), 0);
	assert_int_equal(exit_code(pid), 0);
	close(pair[0]);
	free(sent);
	free(got);
}

static int out_and_err(void)
{
	for (int i = 0; i < 100; i++)
		if (write(1 + i % 2, i % 2 ? "e" : "o", 1) != 1)
			return 1;
	return 0;
}

static void output_and_error_keep_their_order(void **state)
{
	char got[128];
	size_t len = 0;
	ssize_t n;
	int pair[2];
	pid_t pid = relayed_start(pair, out_and_err);

	(void)state;
	while (len < sizeof(got) && (n = recv(pair[0], got + len, sizeof(got) - len, 0)) > 0)
		len += (size_t)n;
	assert_int_equal(len, 100);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(got[i], i % 2 ? 'e' : 'o');
	assert_int_equal(exit_code(pid), 0);
	close(pair[0]);
}

static int write_for_ever(void)
{
	char data[4096] = { 0 };

	signal(SIGPIPE, SIG_IGN);
	while (write(1, data, sizeof(data)) > 0)
		;
	return errno == EPIPE ? 0 : 60;
}

static void a_reader_that_leaves(void **state)
{
	char data[100];
	int pair[2];
	pid_t pid = relayed_start(pair, write_for_ever);

	(void)state;
	assert_true(recv(pair[0], data, sizeof(data), 0) > 0);
	close(pair[0]);
	assert_int_equal(exit_code(pid), 0);
}

static int deaf(void)
{
	return 0;
}

/* The command never reads; what waits for it must not keep the relay. */
static void a_command_that_does_not_read(void **state)
{
	char data[65536] = { 0 };
	int pair[2];
	pid_t pid = relayed_start(pair, deaf);

	(void)state;
	while (send(pair[0], data, sizeof(data), MSG_NOSIGNAL) > 0)
		;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	assert_int_equal(exit_code(pid), 0);
	close(pair[0]);
}

static int kernel_file(void)
{
	struct stdio stdio = { .left = STDIO_UNLIMITED };
	int fd = open("/proc/self/comm", O_RDWR);

	CHECK(fd >= 0 && dup2(fd, 1) == 1);
	CHECK(stdio_prepare(&stdio) == -EACCES);
	stdio_free(&stdio);
	fd = open("/dev/null", O_RDWR);
	CHECK(dup2(fd, 1) == 1);
	fd = open("/proc/self/comm", O_RDONLY);
	CHECK(dup2(fd, 0) == 0);
	CHECK(stdio_prepare(&stdio) == 0);
	CHECK(stdio.inside[0] >= 0 && stdio.inside[1] < 0);
	stdio_free(&stdio);
	return 0;
}

static void kernel_files_are_for_reading(void **state)
{
	(void)state;
	assert_int_equal(child_run(kernel_file), 0);
}

/* What was written before the end of the command comes; who holds its output and goes on does not keep us. */
static void output_that_somebody_holds(void **state)
{
	struct stdio stdio = { .left = STDIO_UNLIMITED, .keep = true };
	static char block[40000];

	(void)state;
	memset(block, 'x', sizeof(block));
	for (int fd = 0; fd < 3; fd++)
		stdio.kept[fd] = BUF_INIT(1 << 20);
	assert_int_equal(stdio_prepare(&stdio), 0);
	assert_int_equal(write(stdio.inside[1], block, sizeof(block)), sizeof(block));
	stdio_end_output(&stdio);
	assert_true(stdio_busy(&stdio));
	assert_int_equal(write(stdio.inside[1], "late", 4), 4);
	assert_int_equal(write(stdio.inside[2], "late", 4), -1); /* nothing was there: it has ended */
	serve(&stdio, false);					 /* with both still open */
	assert_int_equal(stdio.kept[1].len, sizeof(block));
	assert_int_equal(stdio.kept[2].len, 0);
	stdio_free(&stdio);
	for (int fd = 0; fd < 3; fd++)
		buf_free(&stdio.kept[fd]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes),
		cmocka_unit_test(what_does_not),
		cmocka_unit_test(bytes_both_ways_and_half_close),
		cmocka_unit_test(output_and_error_keep_their_order),
		cmocka_unit_test(a_reader_that_leaves),
		cmocka_unit_test(a_command_that_does_not_read),
		cmocka_unit_test(kernel_files_are_for_reading),
		cmocka_unit_test(output_that_somebody_holds),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(600); /* a relay that hangs is a failure, not a wait */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
