/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/hostname.c"

#include <stdio.h>

#include "vocab/words.h"

#define TEN	 "abcdefghij"
#define SIXTY	 TEN TEN TEN TEN TEN TEN
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void assert_name(const char *text, const char *expected)
{
	char name[NAME_SIZE], again[NAME_SIZE];

	assert_int_equal(name_canonical(text, strlen(text), name), 0);
	assert_string_equal(name, expected);
	assert_int_equal(name_canonical(name, strlen(name), again), 0);
	assert_string_equal(again, name);
}

static void assert_no_name(const char *text, size_t len)
{
	char name[NAME_SIZE] = "untouched";

	if (name_canonical(text, len, name) != -EINVAL)
		fail_msg("accepted: %s", text);
	assert_string_equal(name, "untouched");
}

static void test_plain_names(void **state)
{
	(void)state;
	assert_name("example.com", "example.com");
	assert_name("EXAMPLE.Com", "example.com");
	assert_name("example.com.", "example.com");
	assert_name("localhost", "localhost");
	assert_name("_dmarc.example.com", "_dmarc.example.com");
	assert_name("a-b--c.example", "a-b--c.example");
	assert_name("r3---sn-x.example", "r3---sn-x.example");
	assert_name("1.2.3.4.example", "1.2.3.4.example");
	assert_name("4chan.0x1g", "4chan.0x1g");
	assert_name("a", "a");
}

static void test_no_names(void **state)
{
	static const char *const bad[] = {
		"",	  ".",	      "..",	".a",	   "a..b",     "a..",	 "-a.b",     "a-.b",
		"a.-",	  "a b",      "a\tb",	"a\nb",	   "a/b",      "a\\b",	 "a%2eb",    "a:80",
		"user@a", "*.a",      "*",	"a*",	   "[::1]",    "a,b",	 "a\x7f",    "a#b",
		"a?b",	  "a'b",      "a\"b",	"1.2.3.4", "123",      "a.123",	 "a.0x1f",   "a.0X",
		"a.0x",	  "1.2.3.4.", "0x7f.1", "a.00",	   "\xff.com", "\xc3.a", "\xc0\xae", "a\xed\xa0\x80",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_no_name(bad[i], strlen(bad[i]));
	assert_no_name("a\0b", 3);
	assert_no_name("a.com\0", 6);
	assert_no_name("b\xc3\xbc\0.de", 7);
}

static void test_lengths(void **state)
{
	char text[1200], name[NAME_SIZE];

	(void)state;
	assert_name(SIXTY "abc.example", SIXTY "abc.example");
	assert_no_name(SIXTY "abcd.example", 72);
	/* 253 bytes, then one more */
	snprintf(text, sizeof(text), "%s.%s.%s.%s.%s", SIXTY, SIXTY, SIXTY, SIXTY, "abcdefghi");
	assert_int_equal(strlen(text), 253);
	assert_name(text, text);
	strcat(text, ".");
	assert_int_equal(name_canonical(text, strlen(text), name), 0);
	text[253] = 'x';
	assert_no_name(text, 254);
	/* Sixty letters of a label that is too long once it is encoded. */
	memset(text, 0, sizeof(text));
	for (int i = 0; i < 60; i++)
		strcat(text, i % 2 ? "\xe4\xb8\xad" : "\xe5\x9b\xbd");
	assert_no_name(text, strlen(text));
	/* More bytes than any name has code points. */
	memset(text, 'a', sizeof(text));
	memcpy(text, "\xc3\xbc", 2);
	assert_no_name(text, sizeof(text));
}

static void test_other_scripts(void **state)
{
	(void)state;
	assert_name("b\xc3\xbc"
		    "cher.example",
		    "xn--bcher-kva.example");
	assert_name("B\xc3\x9c"
		    "CHER.Example",
		    "xn--bcher-kva.example");
	assert_name("bu\xcc\x88"
		    "cher.example",
		    "xn--bcher-kva.example"); /* u and a combining diaeresis */
	assert_name("XN--BCHER-KVA.example", "xn--bcher-kva.example");
	assert_name("fa\xc3\x9f.de", "xn--fa-hia.de"); /* not "fass": non-transitional */
	assert_name("_a.b\xc3\xbc"
		    "cher.example",
		    "_a.xn--bcher-kva.example");
	assert_name("\xef\xbd\x85xample.com", "example.com"); /* a fullwidth e */
	assert_name("exam\xc2\xadple.com", "example.com");    /* a soft hyphen */
	/* Dots that become dots only by mapping */
	assert_name("a\xe3\x80\x82"
		    "b",
		    "a.b");
	assert_name("a\xef\xbc\x8e"
		    "b\xef\xbd\xa1"
		    "c",
		    "a.b.c");
	assert_name("a\xe3\x80\x82", "a");
}

static void test_what_maps_to_something_else(void **state)
{
	static const char *const bad[] = {
		"a\xe3\x80\x82\xe3\x80\x82"
		"b",		  /* an empty label */
		"a.\xe3\x80\x82", /* two trailing dots */
		"\xe3\x80\x82"
		"a",
		"\xe2\x84\x80.com", /* U+2100 is "a/c" */
		"a\xef\xbc\x8f"
		"b.com", /* a fullwidth slash */
		"a\xef\xbc\xa0"
		"b.com", /* a fullwidth at */
		"a\xef\xbc\x85"
		"2e.com", /* a fullwidth percent */
		"a\xc2\xa0"
		"b.com",					       /* a space that does not break */
		"\xef\xbc\x91.\xef\xbc\x92.\xef\xbc\x93.\xef\xbc\x94", /* 1.2.3.4 in fullwidth digits */
		"a.\xe2\x91\xa0",				       /* a circled 1 */
		"\xe2\x98\x83.example",				       /* a snowman has no place in IDNA 2008 */
		"\xe2\x80\x8d.com",				       /* a joiner alone */
		"\xcc\x88"
		"a.com", /* starts with a combining mark */
		"-\xc3\xbc.de",
		"\xc2\xad.com", /* nothing is left of the label */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_no_name(bad[i], strlen(bad[i]));
}

static void test_xn_labels_that_lie(void **state)
{
	static const char *const bad[] = {
		"xn--.de",	     /* nothing in it */
		"xn--abc-.de",	     /* decodes to plain "abc" */
		"xn--abc.de",	     /* decodes to what nobody encodes so */
		"xn--a",	     /* no punycode */
		"xn--n3h.ws",	     /* a snowman */
		"xn--xn---epa.de",   /* xn-- once more inside */
		"xn--bcher-kva-.de", /* a hyphen at the end */
		"xn--fiq\xc3\xbc.de",
		"xn--BCHER-KV.de",
		"xn--mgba3gch31f060k.com\xe3\x80\x82\xe3\x80\x82",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_no_name(bad[i], strlen(bad[i]));
}

/* libidn2 looks at that as well; should it ever look away, this is what stands behind it. */
static void test_there_and_back(void **state)
{
	static const struct plain good = { .text = "a.xn--bcher-kva.de" }, other = { .text = "a.xn--Bcher-kva.de" },
				  empty = { .text = "xn--abc-.de" };

	(void)state;
	assert_int_equal(idn_verify(&good), 0);
	assert_int_equal(idn_verify(&other), -EINVAL);
	assert_int_equal(idn_verify(&empty), -EINVAL);
	assert_true(ace_labels_decode("a.xn--bcher-kva.de", "a.b\xc3\xbc"
							    "cher.de"));
	assert_true(ace_labels_decode("a.de", "a.de"));
	assert_false(ace_labels_decode("xn--abc-.de", "abc.de"));
	assert_false(ace_labels_decode("xn--abc-.de", "xn--abc-.de"));
	assert_false(ace_labels_decode("xn--tda.de", "\xc3\xbc.d.e"));
	assert_false(ace_labels_decode("xn--tda.de", "\xc3\xbc"));
}

static void test_labels(void **state)
{
	static const char *const bad[] = {
		"",
		".",
		"a.b",
		"a.",
		".a",
		"*",
		"**",
		"a*",
		"-a",
		"a-",
		"a b",
		"a\xe3\x80\x82"
		"b",
		"a\xe3\x80\x82",
		"a\xef\xbd\xa1",
		"xn--abc-",
		"\xe2\x84\x80",
		SIXTY "abcd",
		"\xef\xbc\x8a" /* a star */,
	};
	char label[64] = "untouched";

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (label_canonical(bad[i], strlen(bad[i]), label) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_string_equal(label, "untouched");
	}
	assert_int_equal(label_canonical("a\0b", 3, label), -EINVAL);
	assert_int_equal(label_canonical("API", 3, label), 0);
	assert_string_equal(label, "api");
	assert_int_equal(label_canonical("123", 3, label), 0); /* not the last one, perhaps */
	assert_string_equal(label, "123");
	assert_int_equal(label_canonical("B\xc3\xbc"
					 "cher",
					 7, label),
			 0);
	assert_string_equal(label, "xn--bcher-kva");
	assert_int_equal(label_canonical(SIXTY "abc", 63, label), 0);
	assert_string_equal(label, SIXTY "abc");
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *expected;
	} good[] = {
		{ "192.0.2.1", "192.0.2.1" },	     { "0.0.0.0", "0.0.0.0" },
		{ "2001:DB8::1", "2001:db8::1" },    { "::", "::" },
		{ "::ffff:192.0.2.1", "192.0.2.1" }, { "::ffff:c000:201", "192.0.2.1" },
		{ "64:ff9b::1", "64:ff9b::1" },
	};
	static const char *const bad[] = { "",		"1.2.3",    "1.2.3.4.5", "01.2.3.4",   "1.2.3.04", "0x1.2.3.4",
					   "1.2.3.256", "1.2.3.4 ", " 1.2.3.4",	 "fe80::1%lo", ":::",	   "1::2::3",
					   "[::1]",	"12345::",  "example",	 "1.2.3.4/8" };
	char text[ADDR_TEXT_SIZE];
	struct np_addr addr = { .w = { 1 } };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(addr_parse(bad[i], strlen(bad[i]), &addr), -EINVAL);
	assert_int_equal(addr_parse("1.2.3.4\0", 8, &addr), -EINVAL);
	assert_int_equal(addr.w[0], 1);
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(addr_parse(good[i].text, strlen(good[i].text), &addr), 0);
		addr_format(&addr, text);
		assert_string_equal(text, good[i].expected);
	}
	/* Only the first len bytes count. */
	assert_int_equal(addr_parse("1.2.3.45", 7, &addr), 0);
	assert_int_equal(addr.b[15], 4);
}

static void test_hosts(void **state)
{
	static const char *const bad[] = { "",	       "[]",	   "[1.2.3.4]",	     "[::1",
					   "::1",      "[::1]x",   "[fe80::1%25lo]", "1.2.3",
					   "01.2.3.4", "1.2.3.4.", "[[::1]]",	     "127.1",
					   "0x7f.1",   "a:80",	   "2130706433" };
	struct host host = { .name = "untouched" };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (host_parse(bad[i], strlen(bad[i]), &host) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_string_equal(host.name, "untouched");
	}
	assert_int_equal(host_parse("Example.COM.", 12, &host), 0);
	assert_false(host.is_addr);
	assert_string_equal(host.name, "example.com");
	assert_int_equal(host_parse("[2001:db8::7]", 13, &host), 0);
	assert_true(host.is_addr);
	assert_int_equal(host.addr.b[15], 7);
	assert_int_equal(host_parse("192.0.2.9", 9, &host), 0);
	assert_true(host.is_addr);
	assert_int_equal(host.addr.b[10], 0xff);
	assert_int_equal(host.addr.b[15], 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_other_scripts),
		cmocka_unit_test(test_what_maps_to_something_else),
		cmocka_unit_test(test_xn_labels_that_lie),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
