/* SPDX-License-Identifier: MIT */
/* Whose domain is it: by the public suffix list, with the names of shared hosts in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "session/registrable.c"

#include "base/cleanup.h"

static void test_domains(void **state)
{
	static const struct {
		const char *host, *domain; /* NULL: none */
	} cases[] = {
		{ "example.org", "example.org" },
		{ "a.b.example.org", "example.org" },
		{ "www.example.co.uk", "example.co.uk" },
		{ "co.uk", NULL },
		{ "uk", NULL },
		{ "org", NULL },
		/* The private section: each customer is an owner. */
		{ "github.io", NULL },
		{ "alice.github.io", "alice.github.io" },
		{ "x.alice.github.io", "alice.github.io" },
		{ "s3.amazonaws.com", NULL },
		{ "bucket.s3.amazonaws.com", "bucket.s3.amazonaws.com" },
		{ "alice.blogspot.com", "alice.blogspot.com" },
		/* Wildcards and exceptions. */
		{ "a.ck", NULL },
		{ "b.a.ck", "b.a.ck" },
		{ "www.ck", "www.ck" },
		{ "x.www.ck", "www.ck" },
		{ "city.kawasaki.jp", "city.kawasaki.jp" },
		{ "x.kawasaki.jp", NULL },
		/* In other scripts, as names are written on the wire. */
		{ "b.a.xn--55qx5d.cn", "a.xn--55qx5d.cn" },
		{ "xn--55qx5d.cn", NULL },
		/* Nobody knows who shares these. */
		{ "a.b.internal", NULL },
		{ "origin.test", NULL },
		{ "localhost", NULL },
		{ "", NULL },
		{ "192.0.2.1", NULL },
		{ "2001:db8::1", NULL },
		{ "::ffff:192.0.2.1", NULL },
	};
	char domain[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = registrable_domain(cases[i].host, domain);

		if (cases[i].domain ? r || strcmp(domain, cases[i].domain) != 0 : r != -EINVAL)
			fail_msg("%s: %d %s", cases[i].host, r, r ? "" : domain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_domains) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
