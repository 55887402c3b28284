/* SPDX-License-Identifier: MIT */
#include "base/sockaddr.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static struct np_addr addr_of(const char *text)
{
	struct np_addr addr;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return np_addr_v4(v4.s_addr);
	assert_int_equal(inet_pton(AF_INET6, text, &addr), 1);
	return addr;
}

static void there_and_back(void **state)
{
	static const struct {
		const char *addr;
		sa_family_t family;
		socklen_t len;
	} cases[] = {
		{ "192.0.2.7", AF_INET, sizeof(struct sockaddr_in) },
		{ "2001:db8::7", AF_INET6, sizeof(struct sockaddr_in6) },
		{ "::ffff:192.0.2.7", AF_INET, sizeof(struct sockaddr_in) }, /* is the IPv4 address that it carries */
		{ "64:ff9b::192.0.2.7", AF_INET6, sizeof(struct sockaddr_in6) },
		{ "::", AF_INET6, sizeof(struct sockaddr_in6) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct np_addr addr = addr_of(cases[i].addr), back;
		union sockaddr_inet name = sockaddr_of(&addr, 443);
		uint16_t port;

		assert_int_equal(name.sa.sa_family, cases[i].family);
		assert_int_equal(sockaddr_len(&name), cases[i].len);
		assert_int_equal(name.sa.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port, htons(443));
		assert_true(sockaddr_parts(&name, &back, &port));
		assert_memory_equal(&back, &addr, sizeof(addr));
		assert_int_equal(port, 443);
	}
}

/* The gate reads a cgroup id from the rest of it: no byte is left to chance. */
static void the_rest_is_zero(void **state)
{
	static const unsigned char zero[16];
	struct np_addr addr = addr_of("192.0.2.7");
	union sockaddr_inet name = sockaddr_of(&addr, 1);

	(void)state;
	assert_memory_equal(name.v4.sin_zero, zero, sizeof(name.v4.sin_zero));
	addr = addr_of("2001:db8::7");
	name = sockaddr_of(&addr, 1);
	assert_int_equal(name.v6.sin6_flowinfo, 0);
	assert_int_equal(name.v6.sin6_scope_id, 0);
}

static void other_families(void **state)
{
	const union sockaddr_inet name = { .sa.sa_family = AF_UNIX };
	struct np_addr addr = addr_of("192.0.2.7"), before = addr;
	uint16_t port = 9;

	(void)state;
	assert_false(sockaddr_parts(&name, &addr, &port));
	assert_memory_equal(&addr, &before, sizeof(addr));
	assert_int_equal(port, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(the_rest_is_zero),
		cmocka_unit_test(other_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
