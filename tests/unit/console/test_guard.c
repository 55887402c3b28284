/* SPDX-License-Identifier: MIT */
#include "console/guard.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"

static struct guard own(void)
{
	struct guard guard = { 0 };

	assert_int_equal(guard_add(&guard, "http://127.0.0.1:8080"), 0);
	assert_int_equal(guard_add(&guard, "http://localhost:8080"), 0);
	return guard;
}

static void names_of_the_console(void **state)
{
	static const char *const wrong[] = { "",	   "127.0.0.1:8080",  "ftp://x",
					     "http://",	   "http://a/b",      "http://a?b",
					     "http://a b", "http://A",	      "https://a@b",
					     "http://a#",  "http://\xc3\xa9", "http://a\r\nX: y" };
	char longest[GUARD_ORIGIN + 16];
	struct guard guard = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(guard_add(&guard, wrong[i]), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "http://", 7);
	assert_int_equal(guard_add(&guard, longest), -E2BIG);
	for (unsigned i = 0; i < GUARD_NAMES; i++)
		assert_int_equal(guard_add(&guard, "https://a.example"), 0);
	assert_int_equal(guard_add(&guard, "https://a.example"), -E2BIG);
}

static void who_is_refused(void **state)
{
	static const struct {
		struct guard_headers headers;
		const char *why; /* a part of it; NULL: it is answered */
	} cases[] = {
		{ { .host = "127.0.0.1:8080" }, NULL },
		{ { .host = "LOCALHOST:8080" }, NULL },
		{ { .host = NULL }, "no Host" },
		{ { .host = "" }, "no name of this console" },
		{ { .host = "127.0.0.1" }, "no name of this console" },
		{ { .host = "127.0.0.1:80801" }, "no name of this console" },
		{ { .host = "evil.example:8080" }, "no name of this console" },
		{ { .host = "127.0.0.1:8080.evil.example" }, "no name of this console" },
		{ { .host = "127.0.0.1:8080", .twice = true }, "twice" },
		{ { .host = "127.0.0.1:8080", .origin = "http://127.0.0.1:8080" }, NULL },
		{ { .host = "127.0.0.1:8080", .origin = "http://localhost:8080" }, "another page" },
		{ { .host = "127.0.0.1:8080", .origin = "https://127.0.0.1:8080" }, "another page" },
		{ { .host = "127.0.0.1:8080", .origin = "null" }, "another page" },
		{ { .host = "127.0.0.1:8080", .sec_fetch = "same-origin" }, NULL },
		{ { .host = "127.0.0.1:8080", .sec_fetch = "none" }, NULL },
		{ { .host = "127.0.0.1:8080", .sec_fetch = "same-site" }, "another page" },
		{ { .host = "127.0.0.1:8080", .sec_fetch = "cross-site" }, "another page" },
		{ { .host = "127.0.0.1:8080", .changes = true }, "no Origin" },
		{ { .host = "127.0.0.1:8080", .changes = true, .origin = "http://127.0.0.1:8080" }, "Content-Type" },
		{ { .host = "127.0.0.1:8080",
		    .changes = true,
		    .origin = "http://127.0.0.1:8080",
		    .type = "text/plain" },
		  "Content-Type" },
		{ { .host = "127.0.0.1:8080",
		    .changes = true,
		    .origin = "http://127.0.0.1:8080",
		    .type = "application/json" },
		  NULL },
	};
	const struct guard guard = own();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *why = guard_refuses(&guard, &cases[i].headers);

		if (cases[i].why)
			assert_true(why && strstr(why, cases[i].why));
		else
			assert_null(why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_console),
		cmocka_unit_test(who_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
