/* SPDX-License-Identifier: MIT */
#include "console/calls.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static int found(bool read_only, bool approver, const char *method, const char *path, const char *query)
{
	const struct console_rights rights = { .read_only = read_only, .approver = approver };
	enum call_kind kind;

	return call_find(&rights, method, path, query, &kind);
}

static void what_is_passed_on(void **state)
{
	static const struct {
		const char *method, *path, *query;
		int all, read_only, approver;
	} cases[] = {
		{ "GET", "/v1/health", NULL, 0, 0, -EACCES },
		{ "GET", "/v1/questions", "state=pending", 0, 0, 0 },
		{ "POST", "/v1/questions/7/answer", NULL, 0, -EACCES, 0 },
		{ "PUT", "/v1/policy/file", NULL, 0, -EACCES, -EACCES },
		{ "DELETE", "/v1/sessions/a/b", NULL, 0, -EACCES, -EACCES },
		{ "POST", "/v1/sandboxes", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "/v1/runs/1/output", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "/v1/sessions/a/b/ca", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "/v1/sessions/a/b/placeholders", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "PATCH", "/v1/health", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "/v1/health/", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "v1/health", NULL, -ENOENT, -ENOENT, -ENOENT },
		{ "GET", "", NULL, -ENOENT, -ENOENT, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(found(false, false, cases[i].method, cases[i].path, cases[i].query), cases[i].all);
		assert_int_equal(found(true, false, cases[i].method, cases[i].path, cases[i].query),
				 cases[i].read_only);
		assert_int_equal(found(false, true, cases[i].method, cases[i].path, cases[i].query), cases[i].approver);
	}
}

static void names_that_would_lead_elsewhere(void **state)
{
	static const char *const wrong[] = { "",    ".",   "..",  ".a",	 "%2e%2e", "a%2fb", "a%00", "%",   "%4",
					     "%zz", "a b", "a\n", "a?b", "a#b",	   "a\\b",  "%7f",  "%0d", "\xc3\xa9" };
	static const char *const right[] = { "a", "a.b", "a-b_c~1", "a@b+c:d=e", "%20", "%c3%a9", "%41" };
	char path[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(path, sizeof(path), "/v1/sandboxes/%s", wrong[i]);
		assert_int_equal(found(false, false, "GET", path, NULL), -ENOENT);
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		snprintf(path, sizeof(path), "/v1/sandboxes/%s", right[i]);
		assert_int_equal(found(false, false, "GET", path, NULL), 0);
	}
	assert_int_equal(found(false, false, "GET", "/v1/events", "after=1 HTTP/1.1"), -EINVAL);
	assert_int_equal(found(false, false, "GET", "/v1/events", "after=1\r\nX: y"), -EINVAL);
	assert_int_equal(found(false, false, "GET", "/v1/events", "session=a%2fb&limit=1"), 0);
}

static void which_ones_go_on(void **state)
{
	(void)state;
	assert_true(call_streams("follow=1"));
	assert_true(call_streams("after=3&follow=1&limit=2"));
	assert_false(call_streams("follow=0"));
	assert_false(call_streams("xfollow=1"));
	assert_false(call_streams("follow=11"));
	assert_false(call_streams(""));
	assert_false(call_streams(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_passed_on),
		cmocka_unit_test(names_that_would_lead_elsewhere),
		cmocka_unit_test(which_ones_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
