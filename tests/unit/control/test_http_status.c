/* SPDX-License-Identifier: MIT */
#include "control/http_status.c"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void fills(void **state)
{
	struct failure f = { 0 };
	char longer[2000];

	(void)state;
	assert_int_equal(failure_put(&f, -5, NP_R_BAD_NAME, "\"%s\"", "x"), -5);
	assert_int_equal(f.reason, NP_R_BAD_NAME);
	assert_string_equal(f.text, "\"x\"");
	memset(longer, 'y', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	failure_put(&f, -5, NP_R_BAD_NAME, "%s", longer);
	assert_int_equal(strlen(f.text), sizeof(f.text) - 1);
}

static void every_error_has_a_status(void **state)
{
	static const struct {
		unsigned reason, status;
	} table[] = {
		{ NP_R_BAD_REQUEST, 400 },
		{ NP_R_BAD_JSON, 400 },
		{ NP_R_UNKNOWN_FIELD, 400 },
		{ NP_R_BAD_FIELD, 400 },
		{ NP_R_BAD_NAME, 400 },
		{ NP_R_BAD_LEVEL, 400 },
		{ NP_R_FROM_SANDBOX, 403 },
		{ NP_R_NOT_PERMITTED, 403 },
		{ NP_R_NO_SUCH_SESSION, 404 },
		{ NP_R_NO_SUCH_SANDBOX, 404 },
		{ NP_R_NO_SUCH_PATH, 404 },
		{ NP_R_BAD_METHOD, 405 },
		{ NP_R_BAD_CGROUP, 409 },
		{ NP_R_SANDBOX_BUSY, 409 },
		{ NP_R_HELD_SOCKETS, 409 },
		{ NP_R_FOREIGN_NETNS, 409 },
		{ NP_R_TOO_LARGE, 413 },
		{ NP_R_TOO_MANY, 429 },
		{ NP_R_FAILED, 500 },
		{ NP_R_NOT_APPLIED, 500 },
		{ NP_R_UNSUPPORTED, 501 },
		{ NP_R_NOT_RECORDED, 507 },
		{ 0, 500 },
		{ NP_R_MODE_NONE, 500 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(failure_status(table[i].reason), table[i].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills),
		cmocka_unit_test(every_error_has_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
