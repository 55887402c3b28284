/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/dns_read.c"

#include <stdlib.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

static uint8_t message[65536];
static size_t message_len;
static struct dns_query query;

static void put(const void *data, size_t len)
{
	assert_true(message_len + len <= sizeof(message));
	memcpy(message + message_len, data, len);
	message_len += len;
}
#define PUT(literal) put(literal, sizeof(literal) - 1)

/* A header with RD and these counts. */
static void start(unsigned questions, unsigned additionals)
{
	message_len = 0;
	PUT("\x12\x34\1\0\0\0\0\0\0\0\0\0");
	message[5] = (uint8_t)questions;
	message[11] = (uint8_t)additionals;
}

/* On a copy of just that size, so that ASan sees every step too far. */
static int read_len(size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, message, len);
	memset(&query, 0x5a, sizeof(query));
	r = dns_query_read(copy, len, &query);
	free(copy);
	return r;
}

static int read_message(void)
{
	return read_len(message_len);
}

#define IN_A	"\0\1\0\1"
#define QUERY_A "\7Example\3COM\0" IN_A
#define OPT	"\0\0\x29\x10\0\0\0\x80\0\0\0" /* 4096 bytes, version 0, DO */

static void a_question_is_read(void **state)
{
	(void)state;
	start(1, 0);
	PUT(QUERY_A);
	assert_int_equal(read_message(), 0);
	assert_int_equal(query.id, 0x1234);
	assert_int_equal(query.opcode, 0);
	assert_true(query.recursion);
	assert_false(query.unchecked);
	assert_int_equal(query.type, ns_t_a);
	assert_string_equal(query.name, "example.com");
	assert_int_equal(query.question_len, sizeof(QUERY_A) - 1);
	assert_memory_equal(query.question, QUERY_A, sizeof(QUERY_A) - 1);
	assert_false(query.edns);
	assert_false(query.dnssec);
	assert_int_equal(query.udp_size, 512);
	/* Bits of no meaning in a question: AA, Z, AD; and CD, which is repeated. */
	message[2] = 0x04;
	message[3] = 0x70;
	assert_int_equal(read_message(), 0);
	assert_false(query.recursion);
	assert_true(query.unchecked);
}

static void no_answer_is_possible(void **state)
{
	(void)state;
	start(1, 0);
	PUT(QUERY_A);
	for (size_t len = 0; len < NS_HFIXEDSZ; len++) {
		assert_int_equal(read_len(len), -EBADMSG);
		assert_int_equal(query.id, 0x5a5a);
	}
	/* Responses, of whatever kind */
	for (unsigned byte = 0x80; byte <= 0xff; byte++) {
		message[2] = (uint8_t)byte;
		assert_int_equal(read_message(), -EBADMSG);
	}
}

static void every_cut_is_refused(void **state)
{
	(void)state;
	start(1, 1);
	PUT(QUERY_A);
	PUT(OPT);
	assert_int_equal(read_message(), 0);
	for (size_t len = NS_HFIXEDSZ; len < message_len; len++) {
		assert_int_equal(read_len(len), ns_r_formerr);
		assert_false(query.edns);
		assert_int_equal(query.question_len, len < NS_HFIXEDSZ + sizeof(QUERY_A) - 1 ? 0 : sizeof(QUERY_A) - 1);
	}
	PUT("\0");
	assert_int_equal(read_message(), ns_r_formerr);
}

static void counts_that_lie_are_refused(void **state)
{
	static const struct {
		uint8_t at, value;
	} lies[] = { { 5, 0 }, { 5, 2 }, { 4, 1 }, { 7, 1 }, { 6, 1 }, { 9, 1 }, { 8, 1 }, { 11, 1 }, { 10, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		start(1, 0);
		PUT(QUERY_A);
		message[lies[i].at] = lies[i].value;
		assert_int_equal(read_message(), ns_r_formerr);
	}
	start(1, 0);
	PUT(QUERY_A);
	message[2] |= 2; /* TC */
	assert_int_equal(read_message(), ns_r_formerr);
	start(0, 0);
	assert_int_equal(read_message(), ns_r_formerr);
	start(2, 0);
	PUT(QUERY_A QUERY_A);
	assert_int_equal(read_message(), ns_r_formerr);
	/* Records where there should be none, be they well-formed */
	start(1, 0);
	PUT(QUERY_A "\xc0\x0c" IN_A "\0\0\0\1\0\4\1\2\3\4");
	message[7] = 1;
	assert_int_equal(read_message(), ns_r_formerr);
}

static void pointers_are_refused(void **state)
{
	static const char *const names[] = {
		"\xc0\x0c",					  /* itself */
		"\xc0\x00",					  /* the header */
		"\xc0\x0d",					  /* its own second half */
		"\xc0\x10",					  /* behind it */
		"\xff\xff", "\1a\xc0\x0c", "\1a\xc0\x0e", "\x40", /* a label of a kind that there is not */
		"\x80",	    "\x41\1",				  /* a bit string, RFC 2673 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		start(1, 0);
		put(names[i], strlen(names[i]));
		PUT("\0" IN_A); /* a zero more than needed: it is the name that is wrong */
		assert_int_equal(read_message(), ns_r_formerr);
		assert_int_equal(query.question_len, 0);
	}
	start(1, 1);
	PUT(QUERY_A "\xc0\x0c\0\x29\x10\0\0\0\0\0\0\0");
	assert_int_equal(read_message(), ns_r_formerr);
	assert_int_equal(query.question_len, sizeof(QUERY_A) - 1);
}

static void opcodes_and_classes(void **state)
{
	(void)state;
	for (unsigned opcode = 1; opcode < 16; opcode++) {
		start(1, 0);
		PUT(QUERY_A);
		message[2] = (uint8_t)(opcode << 3 | 1);
		assert_int_equal(read_message(), ns_r_notimpl);
		assert_int_equal(query.opcode, opcode);
		assert_int_equal(query.question_len, 0);
		assert_false(query.edns);
	}
	start(1, 0);
	PUT("\7version\4bind\0\0\x10\0\3"); /* CHAOS */
	assert_int_equal(read_message(), ns_r_refused);
	assert_true(query.question_len > 0);
	start(1, 0);
	PUT("\1a\0\0\1\0\xff"); /* any class */
	assert_int_equal(read_message(), ns_r_refused);
	start(1, 0);
	PUT("\1a\0\0\1\1\1");
	assert_int_equal(read_message(), ns_r_refused);
}

static void types(void **state)
{
	static const struct {
		uint16_t type;
		int result;
	} all[] = { { 0, ns_r_formerr },
		    { 1, 0 },
		    { 12, 0 },
		    { 28, 0 },
		    { 41, ns_r_formerr },
		    { 64, 0 },
		    { 65, 0 },
		    { 127, 0 },
		    { 128, ns_r_notimpl },
		    { 250, ns_r_notimpl },
		    { 251, ns_r_notimpl },
		    { 252, ns_r_notimpl },
		    { 254, ns_r_notimpl },
		    { 255, 0 },
		    { 256, 0 },
		    { 65535, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		start(1, 0);
		PUT("\1a\0");
		put((uint8_t[]){ (uint8_t)(all[i].type >> 8), (uint8_t)all[i].type, 0, 1 }, 4);
		assert_int_equal(read_message(), all[i].result);
		assert_int_equal(query.type, all[i].type);
	}
}

/* The name of a question in wire form, and what people and the policy get of it. */
static void check_name(const void *wire, size_t len, const char *name, const char *text)
{
	char shown[DNS_TEXT_SIZE];

	start(1, 0);
	put(wire, len);
	PUT("\0" IN_A);
	assert_int_equal(read_message(), 0);
	assert_string_equal(query.name, name);
	dns_query_text(&query, shown);
	assert_string_equal(shown, text);
}
#define NAME(wire, name, text) check_name(wire, sizeof(wire) - 1, name, text)

static void names(void **state)
{
	(void)state;
	NAME("\1a", "a", "a");
	NAME("\3wWw\7EXAMPLE\3oRg", "www.example.org", "wWw.EXAMPLE.oRg");
	NAME("\6_dmarc\7example", "_dmarc.example", "_dmarc.example");
	NAME("\4_443\4_tcp\1a\7example", "_443._tcp.a.example", "_443._tcp.a.example");
	NAME("\011xn--bcher\7example", "", "xn--bcher.example"); /* encodes nothing */
	NAME("\015XN--bcher-kva\7example", "xn--bcher-kva.example", "XN--bcher-kva.example");
	/* No host names */
	NAME("", "", ".");
	NAME("\3a.b\3com", "", "a\\046b.com");
	NAME("\2a\0\3com", "", "a\\000.com");
	NAME("\3a b\3com", "", "a\\032b.com");
	NAME("\2\\\"\3com", "", "\\092\".com");
	NAME("\1*\7example", "", "*.example");
	NAME("\2-a\7example", "", "-a.example");
	NAME("\2a-\7example", "", "a-.example");
	NAME("\007b\xc3\xbc"
	     "cher\7example",
	     "", "b\\195\\188cher.example");
	NAME("\5a\xe3\x80\x82"
	     "b",
	     "", "a\\227\\128\\130b"); /* a full stop of other scripts */
	NAME("\0013\0012\0011\0011", "", "3.2.1.1");
	NAME("\7example\0030x7", "", "example.0x7");
}

static void limits_of_names(void **state)
{
	char wire[300], text[300];
	size_t len = 0;

	(void)state;
	/* Three labels of 63 and one of 61: 255 bytes with the root */
	for (unsigned i = 0; i < 4; i++) {
		unsigned n = i < 3 ? 63 : 61;

		wire[len++] = (char)n;
		memset(wire + len, 'a' + (int)i, n);
		memset(text + len - 1, 'a' + (int)i, n);
		len += n;
		text[len - 1] = '.';
	}
	text[len - 1] = '\0';
	assert_int_equal(strlen(text), 253);
	check_name(wire, len, text, text);
	assert_int_equal(query.question_len, DNS_QUESTION_SIZE);
	/* Every byte escaped */
	for (size_t at = 0; at < len; at += 1 + (size_t)(uint8_t)wire[at])
		memset(wire + at + 1, 0xff, (size_t)(uint8_t)wire[at]);
	start(1, 0);
	put(wire, len);
	PUT("\0" IN_A);
	assert_int_equal(read_message(), 0);
	assert_string_equal(query.name, "");
	{
		char shown[DNS_TEXT_SIZE];

		dns_query_text(&query, shown);
		assert_int_equal(strlen(shown), 4 * 250 + 3);
	}
	/* One byte more */
	wire[3 * 64] = 62;
	wire[len++] = 'd';
	start(1, 0);
	put(wire, len);
	PUT("\0" IN_A);
	assert_int_equal(read_message(), ns_r_formerr);
	/* 127 labels of one byte, and 128 */
	for (unsigned n = 127; n <= 128; n++) {
		start(1, 0);
		for (unsigned i = 0; i < n; i++)
			PUT("\1a");
		PUT("\0" IN_A);
		assert_int_equal(read_message(), n == 127 ? 0 : ns_r_formerr);
		assert_int_equal(query.question_len > 0, n == 127);
	}
	assert_string_equal(query.name, "");
}

static void edns(void **state)
{
	(void)state;
	start(1, 1);
	PUT(QUERY_A OPT);
	assert_int_equal(read_message(), 0);
	assert_true(query.edns && query.dnssec);
	assert_int_equal(query.udp_size, 4096);
	/* A size that is too small counts as 512. */
	message[12 + sizeof(QUERY_A) - 1 + 3] = 0;
	message[12 + sizeof(QUERY_A) - 1 + 7] = 0;
	assert_int_equal(read_message(), 0);
	assert_true(query.edns);
	assert_false(query.dnssec);
	assert_int_equal(query.udp_size, 512);
	/* A cookie, an unknown option and an empty one */
	start(1, 1);
	PUT(QUERY_A "\0\0\x29\4\xd0\0\0\0\0\0\x17\0\x0a\0\x08"
		    "12345678\xff\xfe\0\3abc\0\x0c\0\0");
	assert_int_equal(read_message(), 0);
	assert_int_equal(query.udp_size, 1232);
	/* Its options do not add up. */
	for (uint8_t by = 1; by <= 3; by++) {
		start(1, 1);
		PUT(QUERY_A "\0\0\x29\4\xd0\0\0\0\0\0\7\0\x0a\0\3abc");
		assert_int_equal(read_message(), 0);
		message[message_len - 4] = (uint8_t)(3 + by);
		assert_int_equal(read_message(), ns_r_formerr);
		assert_false(query.edns);
		message[message_len - 4] = (uint8_t)(3 - by);
		assert_int_equal(read_message(), ns_r_formerr);
	}
	/* Twice, not the root's, or in the wrong place */
	start(1, 2);
	PUT(QUERY_A OPT OPT);
	assert_int_equal(read_message(), ns_r_formerr);
	start(1, 1);
	PUT(QUERY_A "\1a" OPT);
	assert_int_equal(read_message(), ns_r_formerr);
	start(1, 0);
	PUT(QUERY_A OPT);
	assert_int_equal(read_message(), ns_r_formerr);
	/* Another record beside it is passed over. */
	start(1, 2);
	PUT(QUERY_A "\1k\0\0\xfa\0\xff\0\0\0\0\0\3abc" OPT);
	assert_int_equal(read_message(), 0);
	assert_true(query.edns);
}

static void edns_versions(void **state)
{
	(void)state;
	for (unsigned version = 1; version < 256; version += 127) {
		start(1, 1);
		PUT(QUERY_A OPT);
		message[12 + sizeof(QUERY_A) - 1 + 6] = (uint8_t)version;
		assert_int_equal(read_message(), ns_r_badvers);
		assert_true(query.edns && query.dnssec);
		assert_int_equal(query.question_len, sizeof(QUERY_A) - 1);
	}
}

static void frames(void **state)
{
	static const uint8_t whole[] = { 0, 3, 'a', 'b', 'c', 0 };
	const uint8_t *found = NULL;
	size_t len = 99;
	uint8_t head[DNS_FRAME_SIZE];

	(void)state;
	for (size_t n = 0; n < 5; n++)
		assert_int_equal(dns_frame_read(whole, n, &found, &len), -EAGAIN);
	assert_null(found);
	for (size_t n = 5; n <= 6; n++) {
		assert_int_equal(dns_frame_read(whole, n, &found, &len), 0);
		assert_ptr_equal(found, whole + 2);
		assert_int_equal(len, 3);
	}
	assert_int_equal(dns_frame_read((const uint8_t[]){ 0, 0 }, 2, &found, &len), 0);
	assert_int_equal(len, 0);
	dns_frame_write(head, NP_DNS_QUERY_MAX);
	assert_int_equal(dns_frame_read(head, 2, &found, &len), -EAGAIN);
	dns_frame_write(head, NP_DNS_QUERY_MAX + 1);
	assert_int_equal(dns_frame_read(head, 2, &found, &len), -EMSGSIZE);
	dns_frame_write(head, DNS_TCP_MAX);
	assert_memory_equal(head, "\xff\xff", 2);
}

static void types_in_words(void **state)
{
	static const struct {
		uint16_t type;
		const char *text;
	} rows[] = {
		{ ns_t_a, "A" },      { ns_t_aaaa, "AAAA" },  { ns_t_ptr, "PTR" }, { 65, "HTTPS" },
		{ 64, "SVCB" },	      { 255, "ANY" },	      { 48, "DNSKEY" },	   { 0, "TYPE0" },
		{ 1234, "TYPE1234" }, { 65535, "TYPE65535" },
	};
	char text[DNS_TYPE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		dns_type_text(rows[i].type, text);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(no_answer_is_possible),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(counts_that_lie_are_refused),
		cmocka_unit_test(pointers_are_refused),
		cmocka_unit_test(opcodes_and_classes),
		cmocka_unit_test(types),
		cmocka_unit_test(names),
		cmocka_unit_test(limits_of_names),
		cmocka_unit_test(edns),
		cmocka_unit_test(edns_versions),
		cmocka_unit_test(frames),
		cmocka_unit_test(types_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
