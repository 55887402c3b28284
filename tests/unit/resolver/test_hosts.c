/* SPDX-License-Identifier: MIT */
#include "resolver/hosts.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "vocab/words.h"
#include "vocab/limits.h"

/* "v6 v6 | v4 v4", or "-" for a name that is not there. */
static void expect(const char *text, const char *name, const char *wanted)
{
	struct addresses found[FAMILY_COUNT];
	char got[4096] = "-", one[ADDR_TEXT_SIZE];
	struct hosts *hosts;

	assert_int_equal(hosts_new(text, &hosts), 0);
	if (hosts_find(hosts, name, found)) {
		got[0] = '\0';
		for (enum family f = 0; f < FAMILY_COUNT; f++) {
			for (unsigned i = 0; i < found[f].count; i++) {
				addr_format(&found[f].addrs[i], one);
				strcat(strcat(got, one), " ");
			}
			if (f == FAMILY_V6)
				strcat(got, "| ");
		}
		got[strlen(got) - 1] = '\0';
	}
	hosts_free(hosts);
	if (strcmp(got, wanted) != 0)
		fail_msg("%s is %s, not %s", name, got, wanted);
}

static void lines_are_read(void **state)
{
	static const char text[] = "# a comment\n"
				   "127.0.0.1\tlocalhost here\n"
				   "\n"
				   "   192.0.2.1   one.test  ONE-alias.test.   # the first\n"
				   "2001:db8::1 one.test#glued\n"
				   "192.0.2.2 one.test\r\n"
				   "::ffff:192.0.2.3 mapped.test\n"
				   "192.0.2.4 b\xc3\xbc"
				   "cher.test\n"
				   "192.0.2.5 last.test";

	(void)state;
	expect(text, "one.test", "2001:db8::1 | 192.0.2.1 192.0.2.2");
	expect(text, "one-alias.test", "| 192.0.2.1");
	expect(text, "here", "| 127.0.0.1");
	expect(text, "mapped.test", "| 192.0.2.3");
	expect(text, "xn--bcher-kva.test", "| 192.0.2.4");
	expect(text, "last.test", "| 192.0.2.5");
	expect(text, "first", "-");
	expect(text, "glued", "-");
	expect(text, "two.test", "-");
	expect(text, "", "-");
}

static void nonsense_is_skipped(void **state)
{
	static const char text[] = "one.test 192.0.2.1\n"
				   "fe80::1%lo0 zone.test\n"
				   "192.0.2.256 bad.test\n"
				   "192.0.02.1 octal.test\n"
				   "192.0.2.1\n"
				   "192.0.2.1 -bad.test bad..test 1.2 good.test\n"
				   "192.0.2.1# hidden.test\n"
				   "\xff\xfe\x01 x\n";

	(void)state;
	expect(text, "one.test", "-");
	expect(text, "zone.test", "-");
	expect(text, "bad.test", "-");
	expect(text, "octal.test", "-");
	expect(text, "1.2", "-");
	expect(text, "hidden.test", "-");
	expect(text, "good.test", "| 192.0.2.1");
	expect(NULL, "good.test", "-");
	expect("", "good.test", "-");
	expect("\n\n\n", "good.test", "-");
}

static void localhost_is_the_loopback(void **state)
{
	(void)state;
	expect(NULL, "localhost", "::1 | 127.0.0.1");
	expect(NULL, "a.b.localhost", "::1 | 127.0.0.1");
	expect(NULL, "notlocalhost", "-");
	expect(NULL, "localhost.test", "-");
	expect("192.0.2.9 localhost\n", "localhost", "| 192.0.2.9");
	expect("192.0.2.9 localhost\n", "a.localhost", "::1 | 127.0.0.1");
}

static void it_is_bounded(void **state)
{
	static const char line[] = "192.0.2.1 a\n";
	char *text = malloc(NP_HOSTS_BYTES + 2);
	struct addresses found[FAMILY_COUNT];
	struct hosts *hosts = NULL;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', NP_HOSTS_BYTES + 1);
	text[NP_HOSTS_BYTES + 1] = '\0';
	assert_int_equal(hosts_new(text, &hosts), -E2BIG);
	assert_null(hosts);

	for (size_t i = 0; i + sizeof(line) <= NP_HOSTS_BYTES; i += sizeof(line) - 1)
		memcpy(text + i, line, sizeof(line));
	assert_int_equal(hosts_new(text, &hosts), 0);
	assert_true(hosts_find(hosts, "a", found));
	assert_int_equal(found[FAMILY_V4].count, NP_ADDRS_PER_NAME);
	hosts_free(hosts);

	/* As many names as fit. */
	memcpy(text, "192.0.2.1 ", 10);
	for (size_t i = 10; i < NP_HOSTS_BYTES; i++)
		text[i] = i % 2 ? ' ' : (char)('a' + i % 26);
	text[NP_HOSTS_BYTES] = '\0';
	assert_int_equal(hosts_new(text, &hosts), 0);
	assert_true(hosts_find(hosts, "c", found));
	hosts_free(hosts);
	free(text);
}

static void many_names_are_found(void **state)
{
	char *text = malloc(NP_HOSTS_BYTES), name[32];
	struct addresses found[FAMILY_COUNT];
	struct hosts *hosts;
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < 20000; i++)
		len += (size_t)sprintf(text + len, "10.1.%u.%u n%u.test\n", i >> 8, i & 0xff, i * 7919 % 20000);
	assert_int_equal(hosts_new(text, &hosts), 0);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "n%u.test", i * 7919 % 20000);
		assert_true(hosts_find(hosts, name, found));
		assert_int_equal(found[FAMILY_V4].count, 1);
		assert_int_equal(found[FAMILY_V4].addrs[0].b[14], i >> 8);
		assert_int_equal(found[FAMILY_V4].addrs[0].b[15], i & 0xff);
	}
	assert_false(hosts_find(hosts, "n20000.test", found));
	hosts_free(hosts);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read),
		cmocka_unit_test(nonsense_is_skipped),
		cmocka_unit_test(localhost_is_the_loopback),
		cmocka_unit_test(it_is_bounded),
		cmocka_unit_test(many_names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
