/* SPDX-License-Identifier: MIT */
/* Answers byte by byte, and as others read them: c-ares and the C library's resolver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/dns_write.c"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

static uint8_t out[DNS_TCP_MAX];
static size_t out_len;

/* A query that was read from a message: this name in wire form, this type; and an OPT record or none. */
static struct dns_query wanted(const void *name, size_t len, unsigned type, const void *opt, size_t opt_len)
{
	uint8_t message[1024] = "\x12\x34\1\0\0\1\0\0\0\0\0";
	size_t n = NS_HFIXEDSZ;
	struct dns_query query;

	message[11] = opt_len > 0;
	memcpy(message + n, name, len);
	n += len;
	memcpy(message + n, (uint8_t[]){ (uint8_t)(type >> 8), (uint8_t)type, 0, 1 }, 4);
	n += 4;
	memcpy(message + n, opt, opt_len);
	assert_int_equal(dns_query_read(message, n + opt_len, &query), 0);
	return query;
}
#define NAME		    "\7Example\3COM\0"
#define NAME_LEN	    (sizeof(NAME) - 1)
#define OPT		    "\0\0\x29\x10\0\0\0\x80\0\0\0"
#define PLAIN(type)	    wanted(NAME, NAME_LEN, type, "", 0)
#define EXTENDED(type)	    wanted(NAME, NAME_LEN, type, OPT, sizeof(OPT) - 1)
#define HEAD(flags, counts) "\x12\x34" flags "\0\1" counts NAME

/* Into memory of just that size, so that ASan sees every step too far. */
static void write_limited(const struct dns_query *query, const struct dns_answer *answer, size_t limit)
{
	uint8_t *exact = malloc(limit);

	assert_non_null(exact);
	out_len = dns_answer_write(query, answer, exact, limit);
	assert_true(out_len <= limit);
	memcpy(out, exact, out_len);
	free(exact);
}

static void write_udp(const struct dns_query *query, const struct dns_answer *answer)
{
	write_limited(query, answer, dns_answer_limit(query, false));
}

static void expect(const void *bytes, size_t len)
{
	assert_int_equal(out_len, len);
	assert_memory_equal(out, bytes, len);
}
#define EXPECT(literal) expect(literal, sizeof(literal) - 1)

static struct np_addr addrs[4000];

/* One IPv4 and one IPv6 address. */
static struct dns_answer both_families(void)
{
	addrs[0] = np_addr_v4(np_net32(0xc6120001)); /* 198.18.0.1 */
	addrs[1] = (struct np_addr){ .b = { 0xfd, 1, [15] = 7 } };
	return (struct dns_answer){ .addrs = addrs, .n_addrs = 2, .ttl_s = 30, .ede = DNS_EDE_NONE };
}

/* -- byte by byte ------------------------------------------------------------------ */

#define SOA "\0\0\6\0\1\0\0\0\5\0\x16\0\0\0\0\0\1\0\0\x0e\x10\0\0\2\x58\0\1\x51\x80\0\0\0\5"

static void addresses(void **state)
{
	struct dns_query a = PLAIN(ns_t_a), aaaa = PLAIN(ns_t_aaaa);
	struct dns_answer answer = both_families();

	(void)state;
	write_udp(&a, &answer);
	EXPECT(HEAD("\x81\x80", "\0\1\0\0\0\0") "\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\0\1");
	write_udp(&aaaa, &answer);
	EXPECT(HEAD("\x81\x80",
		    "\0\1\0\0\0\0") "\0\x1c\0\1\xc0\x0c\0\x1c\0\1\0\0\0\x1e\0\x10\xfd\1\0\0\0\0\0\0\0\0\0\0\0\0"
				    "\0\7");
	/* A family that there is not */
	answer.n_addrs = 1;
	write_udp(&aaaa, &answer);
	EXPECT(HEAD("\x81\x80", "\0\0\0\1\0\0") "\0\x1c\0\1" SOA);
}

static void nothing_there(void **state)
{
	struct dns_query mx = PLAIN(ns_t_mx), a = EXTENDED(ns_t_a);
	struct dns_answer answer = both_families();

	(void)state;
	/* Addresses are no answer to other types. */
	write_udp(&mx, &answer);
	EXPECT(HEAD("\x81\x80", "\0\0\0\1\0\0") "\0\x0f\0\1" SOA);
	/* Nor do they go with an error. */
	answer.rcode = ns_r_nxdomain;
	write_udp(&a, &answer);
	EXPECT(HEAD("\x81\x83", "\0\0\0\1\0\1") "\0\1\0\1" SOA "\0\0\x29\4\xd0\0\0\x80\0\0\0");
	answer.rcode = ns_r_servfail;
	write_udp(&a, &answer);
	EXPECT(HEAD("\x81\x82", "\0\0\0\0\0\1") "\0\1\0\1\0\0\x29\4\xd0\0\0\x80\0\0\0");
}

static void refusals_say_why(void **state)
{
	struct dns_query a = EXTENDED(ns_t_a), plain = PLAIN(ns_t_a);
	struct dns_answer answer = { .rcode = ns_r_refused, .ede = DNS_EDE_BLOCKED, .words = "no rule" };

	(void)state;
	write_udp(&a, &answer);
	EXPECT(HEAD("\x81\x85", "\0\0\0\0\0\1") "\0\1\0\1\0\0\x29\4\xd0\0\0\x80\0\0\x0d\0\x0f\0\x09\0\x0fno rule");
	answer.words = NULL;
	write_udp(&a, &answer);
	EXPECT(HEAD("\x81\x85", "\0\0\0\0\0\1") "\0\1\0\1\0\0\x29\4\xd0\0\0\x80\0\0\6\0\x0f\0\2\0\x0f");
	/* Who does not speak EDNS gets none. */
	write_udp(&plain, &answer);
	EXPECT(HEAD("\x81\x85", "\0\0\0\0\0\0") "\0\1\0\1");
}

static void long_words_are_cut(void **state)
{
	struct dns_query a = EXTENDED(ns_t_a);
	char words[NP_DNS_WORDS_MAX + 10];
	struct dns_answer answer = { .rcode = ns_r_refused, .ede = DNS_EDE_BLOCKED, .words = words };
	const size_t before = NS_HFIXEDSZ + NAME_LEN + 4 + OPT_SIZE + EDE_SIZE;

	(void)state;
	memset(words, 'a', sizeof(words));
	words[sizeof(words) - 1] = '\0';
	write_udp(&a, &answer);
	assert_int_equal(out_len, before + NP_DNS_WORDS_MAX);
	/* Not in the middle of a character */
	memcpy(words + NP_DNS_WORDS_MAX - 1, "\xc3\xbc", 2);
	write_udp(&a, &answer);
	assert_int_equal(out_len, before + NP_DNS_WORDS_MAX - 1);
	/* Not beyond what is no text */
	memcpy(words, "ab\xff", 3);
	write_udp(&a, &answer);
	assert_int_equal(out_len, before + 2);
}

static void queries_that_could_not_be_read(void **state)
{
	static const uint8_t update[] = { 0xab, 0xcd, 0x29, 0x10, 0, 1, 0, 0, 0, 0, 0, 0 };
	static const uint8_t version[] = "\x12\x34\1\0\0\1\0\0\0\0\0\1" NAME "\0\1\0\1\0\0\x29\x10\0\0\7\0\0\0\0";
	struct dns_answer answer = { .ede = DNS_EDE_NONE };
	struct dns_query query;

	(void)state;
	/* RD and CD are repeated, and the opcode. */
	answer.rcode = (unsigned)dns_query_read(update, sizeof(update), &query);
	write_udp(&query, &answer);
	EXPECT("\xab\xcd\xa9\x94\0\0\0\0\0\0\0\0");
	query.opcode = 0;
	answer.rcode = ns_r_formerr;
	write_udp(&query, &answer);
	EXPECT("\xab\xcd\x81\x91\0\0\0\0\0\0\0\0");
	/* The upper bits of an extended RCODE are in OPT. */
	answer.rcode = (unsigned)dns_query_read(version, sizeof(version) - 1, &query);
	assert_int_equal(answer.rcode, ns_r_badvers);
	write_udp(&query, &answer);
	EXPECT(HEAD("\x81\x80", "\0\0\0\0\0\1") "\0\1\0\1\0\0\x29\4\xd0\1\0\0\0\0\0");
}

/* -- limits ---------------------------------------------------------------------------- */

static void limits(void **state)
{
	struct dns_query query = PLAIN(ns_t_a);

	(void)state;
	assert_int_equal(dns_answer_limit(&query, false), 512);
	assert_int_equal(dns_answer_limit(&query, true), 65535);
	query = EXTENDED(ns_t_a);
	assert_int_equal(dns_answer_limit(&query, false), 1232);
	query.udp_size = 1000;
	assert_int_equal(dns_answer_limit(&query, false), 1000);
}

static void what_does_not_fit_is_truncated(void **state)
{
	struct dns_query plain = PLAIN(ns_t_a), extended = EXTENDED(ns_t_a);
	struct dns_answer answer = both_families();
	const size_t question = NS_HFIXEDSZ + NAME_LEN + 4;
	size_t most = (512 - question) / 16;

	(void)state;
	answer.ede = DNS_EDE_OTHER;
	answer.words = "words that may go";
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		addrs[i] = np_addr_v4(np_net32(0xc6120000u + (uint32_t)i));
	answer.n_addrs = most;
	write_udp(&plain, &answer);
	assert_int_equal(out_len, question + 16 * most);
	assert_int_equal(out[7], most);
	answer.n_addrs++;
	write_udp(&plain, &answer);
	EXPECT(HEAD("\x83\x80", "\0\0\0\0\0\0") "\0\1\0\1");
	/* All that fit, with OPT, but without its words. */
	most = (1232 - question - OPT_SIZE) / 16;
	answer.n_addrs = most;
	write_udp(&extended, &answer);
	assert_int_equal(out[2], 0x81);
	assert_int_equal(out[7], most);
	assert_int_equal(out[11], 1);
	assert_true(out_len >= question + 16 * most + OPT_SIZE &&
		    out_len <= question + 16 * most + OPT_SIZE + EDE_SIZE);
	answer.n_addrs++;
	write_udp(&extended, &answer);
	assert_int_equal(out[2], 0x83);
	assert_int_equal(out[7], 0);
	assert_int_equal(out[11], 1);
	assert_int_equal(out_len, question + OPT_SIZE + EDE_SIZE + strlen(answer.words));
	/* Over TCP there is room for 4,000. */
	answer.n_addrs = ARRAY_SIZE(addrs);
	write_limited(&extended, &answer, dns_answer_limit(&extended, true));
	assert_int_equal(out[2], 0x81);
	assert_int_equal(out[6] << 8 | out[7], ARRAY_SIZE(addrs));
}

static void the_longest_question_has_an_answer(void **state)
{
	char words[NP_DNS_WORDS_MAX + 1], name[NAME_SIZE];
	struct dns_answer answer = { .rcode = ns_r_nxdomain, .ede = DNS_EDE_BLOCKED, .words = words, .ptr = name };
	struct dns_query query;
	uint8_t wire[255];

	(void)state;
	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	memset(wire, 'a', sizeof(wire));
	wire[0] = wire[64] = wire[128] = 63;
	wire[192] = 61;
	wire[254] = 0;
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	query = wanted(wire, sizeof(wire), ns_t_a, OPT, sizeof(OPT) - 1);
	write_limited(&query, &answer, DNS_UDP_MIN);
	assert_int_equal(out[2], 0x81);
	assert_int_equal(out_len, 12 + 259 + sizeof(SOA) - 1 + OPT_SIZE + EDE_SIZE + NP_DNS_WORDS_MAX);
	/* Two such names are too many for the smallest answer. */
	query = wanted(wire, sizeof(wire), ns_t_ptr, "", 0);
	answer.rcode = 0;
	write_limited(&query, &answer, DNS_UDP_MIN);
	assert_int_equal(out[2], 0x83);
	assert_int_equal(out_len, 12 + 259);
	write_limited(&query, &answer, DNS_UDP_MAX);
	assert_int_equal(out[2], 0x81);
	assert_int_equal(out_len, 12 + 259 + 12 + 255);
}

/* -- as others read it --------------------------------------------------------------------- */

static void ares_reads_addresses(void **state)
{
	struct dns_query a = EXTENDED(ns_t_a), aaaa = PLAIN(ns_t_aaaa);
	struct dns_answer answer = both_families();
	struct ares_addrttl found[4];
	struct ares_addr6ttl found6[4];
	struct hostent *host = NULL;
	int n = 4, n6 = 4;

	(void)state;
	write_udp(&a, &answer);
	assert_int_equal(ares_parse_a_reply(out, (int)out_len, &host, found, &n), ARES_SUCCESS);
	assert_int_equal(n, 1);
	assert_int_equal(found[0].ttl, 30);
	assert_int_equal(found[0].ipaddr.s_addr, np_net32(0xc6120001));
	assert_string_equal(host->h_name, "Example.COM");
	ares_free_hostent(host);
	write_udp(&aaaa, &answer);
	assert_int_equal(ares_parse_aaaa_reply(out, (int)out_len, &host, found6, &n6), ARES_SUCCESS);
	assert_int_equal(n6, 1);
	assert_memory_equal(&found6[0].ip6addr, addrs[1].b, 16);
	ares_free_hostent(host);
	answer.n_addrs = 0;
	write_udp(&a, &answer);
	assert_int_equal(ares_parse_a_reply(out, (int)out_len, &host, NULL, NULL), ARES_ENODATA);
}

static void ares_reads_names(void **state)
{
	static const char reverse[] = "\0011\0010\00218\003198\7in-addr\4arpa";
	struct dns_query query = wanted(reverse, sizeof(reverse), ns_t_ptr, OPT, sizeof(OPT) - 1);
	struct dns_answer answer = { .ptr = "db.corp.example", .ttl_s = 9, .ede = DNS_EDE_NONE };
	struct hostent *host = NULL;
	struct in_addr addr = { np_net32(0xc6120001) };

	(void)state;
	write_udp(&query, &answer);
	assert_int_equal(ares_parse_ptr_reply(out, (int)out_len, &addr, sizeof(addr), AF_INET, &host), ARES_SUCCESS);
	assert_string_equal(host->h_name, "db.corp.example");
	ares_free_hostent(host);
}

/* Every section, to the last byte. */
static void libc_reads_all(const struct dns_query *query, unsigned rcode, unsigned answers, unsigned authorities)
{
	ns_msg m;
	ns_rr rr;

	assert_int_equal(ns_initparse(out, (int)out_len, &m), 0); /* which counts, and refuses what is left over */
	assert_int_equal(ns_msg_id(m), 0x1234);
	assert_int_equal(ns_msg_getflag(m, ns_f_qr), 1);
	assert_int_equal(ns_msg_getflag(m, ns_f_aa), 0);
	assert_int_equal(ns_msg_getflag(m, ns_f_ra), 1);
	assert_int_equal(ns_msg_getflag(m, ns_f_rd), 1);
	assert_int_equal(ns_msg_getflag(m, ns_f_rcode), rcode & 0xf);
	assert_int_equal(ns_msg_count(m, ns_s_qd), 1);
	assert_int_equal(ns_msg_count(m, ns_s_an), answers);
	assert_int_equal(ns_msg_count(m, ns_s_ns), authorities);
	assert_int_equal(ns_msg_count(m, ns_s_ar), query->edns);
	assert_int_equal(ns_parserr(&m, ns_s_qd, 0, &rr), 0);
	assert_int_equal(ns_rr_type(rr), query->type);
	assert_string_equal(ns_rr_name(rr), "Example.COM");
	for (unsigned i = 0; i < answers; i++) {
		assert_int_equal(ns_parserr(&m, ns_s_an, (int)i, &rr), 0);
		assert_string_equal(ns_rr_name(rr), "Example.COM");
		assert_int_equal(ns_rr_type(rr), query->type);
	}
	for (unsigned i = 0; i < authorities; i++) {
		assert_int_equal(ns_parserr(&m, ns_s_ns, (int)i, &rr), 0);
		assert_string_equal(ns_rr_name(rr), ".");
		assert_int_equal(ns_rr_type(rr), ns_t_soa);
		assert_int_equal(ns_rr_ttl(rr), NP_DNS_NEGATIVE_S);
		assert_int_equal(ns_get32(ns_rr_rdata(rr) + ns_rr_rdlen(rr) - 4), NP_DNS_NEGATIVE_S);
	}
	if (query->edns) {
		assert_int_equal(ns_parserr(&m, ns_s_ar, 0, &rr), 0);
		assert_int_equal(ns_rr_type(rr), ns_t_opt);
		assert_int_equal(ns_rr_class(rr), DNS_UDP_MAX);
		assert_int_equal(ns_rr_ttl(rr) >> 24, rcode >> 4);
	}
}

static void libc_reads_everything(void **state)
{
	static const unsigned rcodes[] = { ns_r_noerror, ns_r_formerr, ns_r_servfail, ns_r_nxdomain,
					   ns_r_notimpl, ns_r_refused, ns_r_badvers };
	static const unsigned types[] = { ns_t_a, ns_t_aaaa, ns_t_txt, 65, ns_t_any };
	struct dns_answer answer = both_families();

	(void)state;
	answer.words = "because";
	for (size_t i = 0; i < ARRAY_SIZE(rcodes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(types); k++)
			for (int edns = rcodes[i] > 15; edns < 2; edns++) {
				struct dns_query query = edns ? EXTENDED(types[k]) : PLAIN(types[k]);
				bool data = rcodes[i] == ns_r_noerror && types[k] != 65 && types[k] != ns_t_txt &&
					    types[k] != ns_t_any;

				answer.rcode = rcodes[i];
				answer.ede = k % 2 ? DNS_EDE_BLOCKED : DNS_EDE_NONE;
				write_udp(&query, &answer);
				libc_reads_all(&query, rcodes[i], data,
					       !data && (rcodes[i] == ns_r_noerror || rcodes[i] == ns_r_nxdomain));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(nothing_there),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(long_words_are_cut),
		cmocka_unit_test(queries_that_could_not_be_read),
		cmocka_unit_test(limits),
		cmocka_unit_test(what_does_not_fit_is_truncated),
		cmocka_unit_test(the_longest_question_has_an_answer),
		cmocka_unit_test(ares_reads_addresses),
		cmocka_unit_test(ares_reads_names),
		cmocka_unit_test(libc_reads_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
