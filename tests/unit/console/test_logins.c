/* SPDX-License-Identifier: MIT */
#include "console/logins.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct logins *fresh(void)
{
	struct logins *logins = NULL;

	assert_int_equal(logins_new(&logins), 0);
	return logins;
}

static void a_token_is_good_once_and_for_a_while(void **state)
{
	char token[SECRET_SIZE], cookie[SECRET_SIZE], key[SECRET_SIZE], other[SECRET_SIZE];
	_free_ struct logins *logins = fresh();

	(void)state;
	assert_int_equal(logins_invite(logins, 100, token), 0);
	assert_int_equal(logins_enter(logins, 100, "", cookie, key), -EACCES);
	assert_int_equal(logins_enter(logins, 100, "00000000000000000000000000000000", cookie, key), -EACCES);
	assert_int_equal(logins_enter(logins, 100 + NP_CONSOLE_TOKEN_S - 1, token, cookie, key), 0);
	assert_int_equal(logins_enter(logins, 101, token, other, other), -EACCES);
	assert_true(logins_know(logins, cookie, key));
	assert_false(logins_know(logins, key, cookie));
	assert_false(logins_know(logins, cookie, NULL));
	assert_false(logins_know(logins, NULL, key));
	assert_false(logins_know(logins, cookie, ""));
	assert_false(logins_know(logins, "", ""));
	assert_int_equal(logins_invite(logins, 100, token), 0);
	assert_int_equal(logins_enter(logins, 100 + NP_CONSOLE_TOKEN_S, token, other, other), -EACCES);
}

static void the_oldest_goes(void **state)
{
	char token[NP_CONSOLE_TOKENS + 1][SECRET_SIZE], cookie[NP_CONSOLE_LOGINS + 1][SECRET_SIZE],
		key[NP_CONSOLE_LOGINS + 1][SECRET_SIZE], unused[SECRET_SIZE];
	_free_ struct logins *logins = fresh();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(token); i++)
		assert_int_equal(logins_invite(logins, 1, token[i]), 0);
	assert_int_equal(logins_enter(logins, 1, token[0], unused, unused), -EACCES);
	assert_int_equal(logins_enter(logins, 1, token[1], unused, unused), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cookie); i++) {
		assert_int_equal(logins_invite(logins, 1, token[0]), 0);
		assert_int_equal(logins_enter(logins, 1, token[0], cookie[i], key[i]), 0);
	}
	assert_false(logins_know(logins, cookie[0], key[0]));
	for (size_t i = 1; i < ARRAY_SIZE(cookie); i++) {
		assert_true(logins_know(logins, cookie[i], key[i]));
		assert_false(logins_know(logins, cookie[i], key[i - 1]));
	}
}

static void cookies(void **state)
{
#define A "0123456789abcdef0123456789abcdef"
	static const struct {
		const char *header;
		bool there;
	} cases[] = {
		{ "np=" A, true },
		{ "a=b; np=" A, true },
		{ "np=" A "; a=b", true },
		{ "  ;; np=" A, true },
		{ "", false },
		{ "np", false },
		{ "np=", false },
		{ "np=" A "0", false },
		{ "np=0", false },
		{ "xnp=" A, false },
		{ "npx=" A, false },
		{ "np=" A "; np=" A, false },
		{ "np =" A, false },
		{ "NP=" A, false },
		{ "a=np=" A, false },
		{ "np=\"" A "\"", false },
		{ "np=" A "; np=x", false },
	};
	char got[SECRET_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cookie_find(cases[i].header, "np", got), cases[i].there ? 0 : -ENOENT);
	assert_int_equal(cookie_find(NULL, "np", got), -ENOENT);
	assert_int_equal(cookie_find("np=" A, "np", got), 0);
	assert_string_equal(got, A);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_good_once_and_for_a_while),
		cmocka_unit_test(the_oldest_goes),
		cmocka_unit_test(cookies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
