/* SPDX-License-Identifier: MIT */
#include "wire/dns_answer.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

static uint8_t message[65536];
static size_t message_len;

static void put(const void *data, size_t len)
{
	assert_true(message_len + len <= sizeof(message));
	memcpy(message + message_len, data, len);
	message_len += len;
}
#define PUT(literal) put(literal, sizeof(literal) - 1)

/* An answer for "a.test", from byte 12 on; "test" is at byte 14. */
static void start(unsigned type, unsigned rcode)
{
	message_len = 0;
	PUT("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\1a\4test\0\0\0\0\1");
	message[3] |= (uint8_t)rcode;
	message[12 + 9] = (uint8_t)type;
}

static void record(const char *owner, size_t owner_len, unsigned type, uint32_t ttl_s, const void *data, size_t len)
{
	const uint8_t fixed[] = { 0,
				  (uint8_t)type,
				  0,
				  1,
				  (uint8_t)(ttl_s >> 24),
				  (uint8_t)(ttl_s >> 16),
				  (uint8_t)(ttl_s >> 8),
				  (uint8_t)ttl_s,
				  (uint8_t)(len >> 8),
				  (uint8_t)len };

	put(owner, owner_len);
	put(fixed, sizeof(fixed));
	put(data, len);
	message[7]++;
	message[6] += !message[7];
}
#define RECORD(owner, type, ttl_s, data) record(owner, sizeof(owner) - 1, type, ttl_s, data, sizeof(data) - 1)
#define SELF				 "\xc0\x0c"

static struct addresses found;
static struct alias_names names;
static uint32_t ttl;

/* On a copy of just that size, so that ASan sees every step too far. */
static int read_message(enum family family)
{
	uint8_t *copy = malloc(message_len ? message_len : 1);
	int e;

	assert_non_null(copy);
	memcpy(copy, message, message_len);
	found.count = 99;
	ttl = 4711;
	e = answer_read(copy, message_len, family, &found, &names, &ttl);
	free(copy);
	if (e < 0) {
		assert_int_equal(found.count, 99);
		assert_int_equal(ttl, 4711);
	}
	return e;
}

static void addresses_are_read(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_a, 60, "\300\0\2\1");
	RECORD("\1A\4tEsT\0", ns_t_a, 30, "\300\0\2\2");
	RECORD("\1A\xc0\x0e", ns_t_a, 90, "\300\0\2\3");
	RECORD(SELF, ns_t_aaaa, 1, "\40\1\15\270\0\0\0\0\0\0\0\0\0\0\0\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(found.count, 3);
	assert_int_equal(ttl, 30);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(found.addrs[i].w[3], np_net32(0xc0000201 + i));
	assert_true(np_addr_is_v4(&found.addrs[0]));

	message[12 + 9] = ns_t_aaaa;
	assert_int_equal(read_message(FAMILY_V6), 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(ttl, 1);
	assert_int_equal(found.addrs[0].w[0], np_net32(0x20010db8));
}

/* -- records ----------------------------------------------------------------------- */

static struct record_bytes bytes;

static int read_records(unsigned type)
{
	uint8_t *copy = malloc(message_len);
	int e;

	assert_non_null(copy);
	memcpy(copy, message, message_len);
	e = answer_read_records(copy, message_len, (uint16_t)type, &bytes, &ttl);
	free(copy);
	return e;
}

static void expect_bytes(unsigned count, const char *data, size_t len)
{
	assert_int_equal(bytes.count, count);
	assert_int_equal(bytes.len, len);
	assert_memory_equal(bytes.data, data, len);
}
#define EXPECT_BYTES(count, literal) expect_bytes(count, literal, sizeof(literal) - 1)

static void records_are_read(void **state)
{
	(void)state;
	start(ns_t_mx, 0);
	RECORD(SELF, ns_t_mx, 60, "\0\12\4Mail\xc0\x0e"); /* compressed, in upper case */
	RECORD(SELF, ns_t_mx, 30, "\0\24\0");		  /* the root: there is none */
	RECORD(SELF, ns_t_a, 1, "\300\0\2\1");
	assert_int_equal(read_records(ns_t_mx), 0);
	EXPECT_BYTES(2, "\0\15\0\12\4mail\4test\0\0\3\0\24\0");
	assert_int_equal(ttl, 30);

	start(ns_t_srv, 0);
	RECORD(SELF, ns_t_srv, 60, "\0\1\0\2\1\273\2_x\xc0\x0e");
	assert_int_equal(read_records(ns_t_srv), 0);
	EXPECT_BYTES(1, "\0\17\0\1\0\2\1\273\2_x\4test\0");

	start(ns_t_txt, 0);
	RECORD(SELF, ns_t_txt, 60, "\3a b\0\1\377");
	RECORD(SELF, ns_t_txt, 60, "\0");
	assert_int_equal(read_records(ns_t_txt), 0);
	EXPECT_BYTES(2, "\0\7\3a b\0\1\377\0\1\0");
}

static void records_of_an_alias(void **state)
{
	(void)state;
	start(ns_t_txt, 0);
	RECORD(SELF, ns_t_cname, 7, "\1b\xc0\x0e");
	RECORD("\1b\xc0\x0e", ns_t_txt, 60, "\2hi");
	RECORD(SELF, ns_t_txt, 60, "\4mine"); /* an alias has no records of its own */
	assert_int_equal(read_records(ns_t_txt), 0);
	EXPECT_BYTES(1, "\0\3\2hi");
	assert_int_equal(ttl, 7);
}

static void records_that_are_left_out(void **state)
{
	(void)state;
	start(ns_t_mx, 0);
	RECORD(SELF, ns_t_mx, 60, "\0\12");			/* no name */
	RECORD(SELF, ns_t_mx, 60, "\0\12\1 \xc0\x0e");		/* no host's name */
	RECORD(SELF, ns_t_mx, 60, "\0\12\1\0\xc0\x0e");		/* ... */
	RECORD(SELF, ns_t_mx, 60, "\0\12\1m\xc0\x0e\0");	/* something behind it */
	RECORD(SELF, ns_t_mx, 60, "\0\12\77");			/* a label that is not there */
	RECORD("\1b\xc0\x0e", ns_t_mx, 60, "\0\12\1m\xc0\x0e"); /* another's */
	assert_int_equal(read_records(ns_t_mx), -ENODATA);
	start(ns_t_txt, 0);
	RECORD(SELF, ns_t_txt, 60, "");
	RECORD(SELF, ns_t_txt, 60, "\3ab");
	RECORD(SELF, ns_t_txt, 60, "\1a\377");
	assert_int_equal(read_records(ns_t_txt), -ENODATA);
	start(ns_t_txt, 0); /* what follows the answers says nothing */
	RECORD(SELF, ns_t_txt, 60, "\1a");
	message[7] = 0;
	message[11] = 1;
	assert_int_equal(read_records(ns_t_txt), -ENODATA);
}

static void records_that_are_none(void **state)
{
	char text[256] = "\377";

	(void)state;
	start(ns_t_txt, ns_r_nxdomain);
	assert_int_equal(read_records(ns_t_txt), -ENOENT);
	start(ns_t_txt, ns_r_refused);
	assert_int_equal(read_records(ns_t_txt), -EREMOTEIO);
	start(ns_t_mx, 0);
	assert_int_equal(read_records(ns_t_txt), -EBADMSG); /* another question */
	start(ns_t_txt, 0);
	RECORD(SELF, ns_t_txt, 60, "\1a");
	message_len--;
	assert_int_equal(read_records(ns_t_txt), -EBADMSG);
	start(ns_t_txt, 0);
	for (int i = 0; i < NP_RECORDS_BYTES / 258; i++)
		record(SELF, 2, ns_t_txt, 60, text, 256);
	assert_int_equal(read_records(ns_t_txt), 0);
	assert_int_equal(bytes.count, NP_RECORDS_BYTES / 258);
	record(SELF, 2, ns_t_txt, 60, text, 256);
	assert_int_equal(read_records(ns_t_txt), -EMSGSIZE);
}

static void answers_without_addresses(void **state)
{
	(void)state;
	start(ns_t_a, ns_r_noerror);
	assert_int_equal(read_message(FAMILY_V4), -ENODATA);
	start(ns_t_a, ns_r_nxdomain);
	assert_int_equal(read_message(FAMILY_V4), -ENOENT);
	start(ns_t_a, ns_r_servfail);
	assert_int_equal(read_message(FAMILY_V4), -EREMOTEIO);
	start(ns_t_a, ns_r_nxdomain); /* with an alias on the way */
	RECORD(SELF, ns_t_cname, 60, "\1b\xc0\x0e");
	assert_int_equal(read_message(FAMILY_V4), -ENOENT);
}

static void what_is_not_asked_for_is_not_taken(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD("\1b\xc0\x0e", ns_t_a, 60, "\300\0\2\1"); /* another name */
	RECORD("\xc0\x0e", ns_t_a, 60, "\300\0\2\1");	 /* its parent */
	RECORD("\1x\xc0\x0c", ns_t_a, 60, "\300\0\2\1"); /* its child */
	RECORD(SELF, ns_t_a, 60, "\300\0\2");		 /* too short */
	RECORD(SELF, ns_t_a, 60, "\300\0\2\1\1");	 /* too long */
	RECORD(SELF, ns_t_txt, 60, "\3abc");
	RECORD(SELF, ns_t_a, 60, "\300\0\2\7");
	message[message_len - 4 - 7] = 3; /* class CHAOS */
	assert_int_equal(read_message(FAMILY_V4), -ENODATA);
}

static void aliases_in_any_order(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD("\1c\xc0\x0e", ns_t_a, 60, "\300\0\2\1");
	RECORD("\1b\xc0\x0e", ns_t_cname, 50, "\1C\xc0\x0e");
	RECORD("\1z\xc0\x0e", ns_t_cname, 1, "\1y\xc0\x0e"); /* of no use */
	RECORD(SELF, ns_t_cname, 70, "\1B\xc0\x0e");
	RECORD(SELF, ns_t_a, 2, "\300\0\2\2"); /* an alias has no address of its own */
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.addrs[0].b[15], 1);
	assert_int_equal(ttl, 50);
	/* Those that it went through, and no others. */
	assert_int_equal(names.len, 14);
	assert_memory_equal(names.text, "b.test\0c.test\0", 15);
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(names.len, 0);
	assert_string_equal(names.text, "");
}

/* What no host is called has its labels all the same, and they stay apart. */
static void odd_aliases(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_cname, 60, "\3a.b\2\377_\xc0\x0e");
	RECORD("\3a.b\2\377_\xc0\x0e", ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_string_equal(names.text, "a?b.?_.test");
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_cname, 60, "\0");
	RECORD("\0", ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(names.len, 0);
}

static void long_aliases(void **state)
{
	char owner[256] = "", target[256];

	(void)state;
	for (int n = 4; n <= 5; n++) {
		start(ns_t_a, 0);
		strcpy(owner, SELF);
		for (int i = 0; i < n; i++) {
			/* 253 characters: three labels of 63 and one of 61 */
			for (int label = 0; label < 4; label++) {
				target[label * 64] = label < 3 ? 63 : 61;
				memset(target + label * 64 + 1, 'a' + i, 63);
			}
			target[254] = '\0';
			record(owner, i ? 255 : 2, ns_t_cname, 60, target, 255);
			memcpy(owner, target, 255);
		}
		record(owner, 255, ns_t_a, 60, "\300\0\2\1", 4);
		assert_int_equal(read_message(FAMILY_V4), n == 4 ? 0 : -EBADMSG);
		if (n == 4)
			assert_int_equal(names.len, 4 * 254);
	}
}

static void aliases_are_bounded(void **state)
{
	(void)state;
	for (unsigned n = NP_CNAMES_MAX; n <= NP_CNAMES_MAX + 1; n++) {
		char owner[] = "\1a\xc0\x0e", target[] = "\1a\xc0\x0e";

		start(ns_t_a, 0);
		for (unsigned i = 0; i < n; i++) {
			owner[1] = (char)('a' + i);
			target[1] = (char)('a' + i + 1);
			record(owner, 4, ns_t_cname, 60, target, 4);
		}
		record(target, 4, ns_t_a, 60, "\300\0\2\1", 4);
		assert_int_equal(read_message(FAMILY_V4), n == NP_CNAMES_MAX ? 0 : -EBADMSG);
	}
	start(ns_t_a, 0); /* a circle */
	RECORD(SELF, ns_t_cname, 60, "\1b\xc0\x0e");
	RECORD("\1b\xc0\x0e", ns_t_cname, 60, SELF);
	assert_int_equal(read_message(FAMILY_V4), -ENODATA);
}

static void names_are_bounded(void **state)
{
	char longest[256];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	for (size_t i = 0; i < 4; i++)
		longest[i * 62] = 61; /* 248 bytes; with ".test." 254 */
	start(ns_t_a, 0);
	put(longest, 248);
	PUT("\xc0\x0e\0\x10\0\1\0\0\0\1\0\0");
	message[7] = 1;
	assert_int_equal(read_message(FAMILY_V4), -ENODATA);
	start(ns_t_a, 0);
	put(longest, 248);
	PUT("\2yy\xc0\x0e\0\x10\0\1\0\0\0\1\0\0");
	message[7] = 1;
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
}

static void pointers_lead_back(void **state)
{
	static const struct {
		const char *owner;
		size_t len;
	} bad[] = {
		{ "\xc0\x18", 2 },    /* itself */
		{ "\1x\xc0\x18", 4 }, /* its own start */
		{ "\xc0\x1a", 2 },    /* forward */
		{ "\xff\xff", 2 },    /* out of the message */
		{ "\x80", 1 },	      /* a kind of label that does not exist */
		{ "\x40", 1 },	      /* another */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		start(ns_t_a, 0);
		assert_int_equal(message_len, 0x18);
		record(bad[i].owner, bad[i].len, ns_t_a, 60, "\300\0\2\1", 4);
		assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	}

	/* A row of pointers to pointers is not walked to its end. */
	for (unsigned n = 60; n < 70; n += 8) {
		uint8_t row[2 * 70] = { 0xc0, 0x0c };

		for (unsigned i = 1; i < n; i++) {
			row[2 * i] = 0xc0;
			row[2 * i + 1] = (uint8_t)(0x18 + 11 + 2 * (i - 1));
		}
		start(ns_t_a, 0);
		record("\0", 1, ns_t_txt, 60, row, 2 * n); /* starts at 0x18 + 11 */
		row[0] = 0xc0;
		row[1] = (uint8_t)(0x18 + 11 + 2 * (n - 1));
		record((char *)row, 2, ns_t_a, 60, "\300\0\2\1", 4);
		assert_int_equal(read_message(FAMILY_V4), n < NS_MAXLABEL - 1 ? 0 : -EBADMSG);
	}
}

static void no_answer_to_this(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V6), -EBADMSG);
	message[2] &= 0x7f; /* a question */
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	message[2] = 0x91; /* an opcode */
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	message[2] = 0x81;
	assert_int_equal(read_message(FAMILY_V4), 0);
	message[5] = 2;
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	message[5] = 0;
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	message[5] = 1;
	message[7] = 2; /* more records than there are */
	assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
}

static void cut_anywhere_it_is_none(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_cname, 60, "\1b\xc0\x0e");
	RECORD("\1b\xc0\x0e", ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	while (message_len > 0) {
		message_len--;
		assert_int_equal(read_message(FAMILY_V4), -EBADMSG);
	}
}

static void many_addresses_are_cut(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	while (message_len + 16 < sizeof(message))
		RECORD(SELF, ns_t_a, 60, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(found.count, NP_ADDRS_PER_NAME);
}

static void lives_beyond_31_bits_are_none(void **state)
{
	(void)state;
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_a, 0x80000000, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(ttl, 0);
	start(ns_t_a, 0);
	RECORD(SELF, ns_t_a, 0x7fffffff, "\300\0\2\1");
	assert_int_equal(read_message(FAMILY_V4), 0);
	assert_int_equal(ttl, 0x7fffffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(answers_without_addresses),
		cmocka_unit_test(what_is_not_asked_for_is_not_taken),
		cmocka_unit_test(aliases_in_any_order),
		cmocka_unit_test(odd_aliases),
		cmocka_unit_test(long_aliases),
		cmocka_unit_test(aliases_are_bounded),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(pointers_lead_back),
		cmocka_unit_test(no_answer_to_this),
		cmocka_unit_test(cut_anywhere_it_is_none),
		cmocka_unit_test(many_addresses_are_cut),
		cmocka_unit_test(lives_beyond_31_bits_are_none),
		cmocka_unit_test(records_are_read),
		cmocka_unit_test(records_of_an_alias),
		cmocka_unit_test(records_that_are_left_out),
		cmocka_unit_test(records_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
