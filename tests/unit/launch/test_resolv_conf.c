/* SPDX-License-Identifier: MIT */
#include "launch/resolv_conf.c"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void servers(void **state)
{
	static const struct {
		const char *text, *upstream, *want; /* NULL: the host's will do */
		int r;
	} cases[] = {
		{ "nameserver 192.0.2.53\n", NULL, NULL, 0 },
		{ "search a.test\nnameserver 2001:db8::53\n", "nameserver 9.9.9.9\n", NULL, 0 },
		{ "# stub\nnameserver 127.0.0.53\noptions edns0\n",
		  "nameserver 192.0.2.1\nsearch up.test\nnameserver 192.0.2.2\n",
		  "nameserver 192.0.2.1\nnameserver 192.0.2.2\n# stub\noptions edns0\n", 1 },
		{ "nameserver 127.0.0.1\nnameserver 192.0.2.53\n", NULL, "nameserver 192.0.2.53\n", 1 },
		{ "nameserver ::1\nnameserver\t::1a\n", NULL, "nameserver\t::1a\n", 1 },
		{ "nameserver   127.1", "nameserver 192.0.2.1", "nameserver 192.0.2.1\n", 1 },
		{ "nameserver 127.0.0.53\n", "nameserver 127.0.0.1\n", NULL, -ENOENT },
		{ "nameserver 127.0.0.53\n", NULL, NULL, -ENOENT },
		{ "", NULL, NULL, -ENOENT },
		{ "", "nameserver 192.0.2.1\n", "nameserver 192.0.2.1\n", 1 },
		{ "nameserver", NULL, NULL, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_buf_ struct buf out = BUF_INIT(4096);

		assert_int_equal(resolv_conf_make(cases[i].text, cases[i].upstream, &out), cases[i].r);
		if (cases[i].r == 1)
			assert_true(out.len == strlen(cases[i].want) && !memcmp(out.data, cases[i].want, out.len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
