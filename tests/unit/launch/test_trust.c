/* SPDX-License-Identifier: MIT */
#include "launch/trust.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Not certificates, but DER as far as this goes: a sequence. */
#define ONE PEM_BEGIN "\nMAMCAQE=\n" PEM_END "\n" /* 30 03 02 01 01 */
#define TWO PEM_BEGIN "\nMAMCAQI=\n" PEM_END "\n"

static int make(const char *system, const char *ca, struct trust *trust)
{
	return trust_make(system, strlen(system), ca, strlen(ca), trust);
}

static void a_bundle_and_a_store(void **state)
{
	static const uint8_t head[] = { 0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 9 };
	struct trust trust;

	(void)state;
	assert_int_equal(make("# roots\n" TWO, ONE, &trust), 0);
	assert_string_equal(trust.ca.data, ONE);
	assert_string_equal(trust.bundle.data, ONE "\n# roots\n" TWO);
	assert_memory_equal(trust.store.data, head, sizeof(head));
	/* head, twice (tag, name, time, type, certificate), checksum */
	assert_int_equal(trust.store.len, 12 + 2 * (4 + 2 + 9 + 8 + 2 + 5 + 4 + 5) + 20);
	trust_free(&trust);
}

static void what_is_no_certificate(void **state)
{
	static const char *const none[] = { "",
					    "text",
					    PEM_BEGIN,
					    PEM_BEGIN "MAMCAQE=",
					    PEM_BEGIN "!!!" PEM_END,
					    PEM_BEGIN PEM_END,
					    PEM_BEGIN "AAAA" PEM_END,
					    PEM_END PEM_BEGIN };
	struct trust trust;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		assert_int_equal(make(ONE, none[i], &trust), -EINVAL);
		trust_free(&trust);
		/* In the bundle it is passed over; what follows it is not. */
		assert_int_equal(make(none[i], ONE, &trust), 0);
		assert_int_equal((uint8_t)trust.store.data[11], 1);
		trust_free(&trust);
	}
	assert_int_equal(make(PEM_BEGIN "!!" PEM_END TWO, ONE, &trust), 0);
	assert_int_equal((uint8_t)trust.store.data[11], 2);
	trust_free(&trust);
}

static void the_variables(void **state)
{
	_buf_ struct buf java = BUF_INIT(1000);
	bool node = false;

	(void)state;
	for (size_t i = 0; i < trust_variables(); i++) {
		_buf_ struct buf value = BUF_INIT(1000);
		const char *name;

		trust_variable(i, "/d", &name, &value);
		assert_true(!strncmp(value.data, "/d/", 3) || !strcmp(name, "SSL_CERT_DIR"));
		node = node || (!strcmp(name, "NODE_EXTRA_CA_CERTS") && !strcmp(value.data, "/d/authority.pem"));
	}
	assert_true(node);
	trust_java("/d", &java);
	assert_non_null(strstr(java.data, "-Djavax.net.ssl.trustStore=/d/bundle.jks "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bundle_and_a_store),
		cmocka_unit_test(what_is_no_certificate),
		cmocka_unit_test(the_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
