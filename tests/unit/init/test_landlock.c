/* SPDX-License-Identifier: MIT */
#include "init/landlock.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cmocka.h>

#include "../child.h"

#define NO_SCOPES 77

static struct sockaddr_un abstract;
static socklen_t abstract_len;

static int listener_open(const char *suffix)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	abstract = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(abstract.sun_path + 1, 64, "np-scope-%d-%s", getpid(), suffix);
	abstract_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract.sun_path + 1));
	if (fd < 0 || bind(fd, (struct sockaddr *)&abstract, abstract_len) < 0 || listen(fd, 8) < 0)
		abort();
	return fd;
}

static int abstract_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&abstract, abstract_len) < 0 ? -errno : 0;
}

static int confined(void)
{
	int r;

	CHECK(abstract_connect() == 0); /* the control: before, it works */
	CHECK(kill(getppid(), 0) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	r = scope_close();
	CHECK(r >= 0);
	if (r == 0)
		return NO_SCOPES;
	CHECK(abstract_connect() == -EPERM);
	CHECK(kill(getppid(), 0) < 0 && errno == EPERM);
	CHECK(child_run(abstract_connect) != 0); /* children are in it as well */
	listener_open("inside");
	CHECK(abstract_connect() == 0); /* its own stay open */
	return 0;
}

static void nobody_outside_is_reached(void **state)
{
	int fd = listener_open("outside"), code;

	(void)state;
	code = child_run(confined);
	close(fd);
	if (code == NO_SCOPES)
		skip();
	assert_int_equal(code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nobody_outside_is_reached) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
