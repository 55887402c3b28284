/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "dns/judge.c"

#include "base/cleanup.h"
#include "../policy/make.h"
#include "query_bytes.h"
#include "vocab/limits.h"

#define HTTPS 65
#define SVCB  64

static const struct hash_key key = { { 0x0123456789abcdef, 0xfedcba9876543211 } };

static const char rules[] = "deciders: {guard: {socket: /run/guard}}\n"
			    "rules:\n"
			    "- deny: bad.wild.example\n"
			    "- allow: web.example\n"
			    "- allow: '**.wild.example'\n"
			    "- allow: db.example:5432\n"
			    "- allow: clock.example:123/udp\n"
			    "- ask: ask.example\n"
			    "- decide: decide.example\n"
			    "  by: guard\n"
			    "- allow: secret.example\n"
			    "  for: SECRET\n"
			    "- deny: wild.example\n"
			    "- allow: wild.example\n"
			    "- allow: 192.0.2.0/24\n"
			    "- deny: shut.example\n"
			    "- allow: [mail.example, shut.example, '_sip._tcp.mail.example']\n"
			    "  dns: [MX, SRV]\n"
			    "- allow: clock.example\n"
			    "  dns: TXT\n"
			    "  for: SECRET\n";

static struct policy *policy;
static struct names *names;
static struct dns_facts facts;
static uint8_t message[512];
static size_t message_len;

static int setup(void **state)
{
	(void)state;
	policy = policy_of(rules);
	assert_int_equal(names_new(&key, &names), 0);
	facts = (struct dns_facts){ .policy = policy,
				    .rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL },
				    .names = names };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	names_free(names);
	policy_free(policy);
	return 0;
}

static void query(const char *name, unsigned type)
{
	message_len = query_bytes(message, name, type, true);
}

static int judge(const char *name, unsigned type, struct dns_judged *ret)
{
	query(name, type);
	return dns_judge(&facts, message, message_len, ret);
}

static void assert_refused(const char *name, unsigned type)
{
	/* Those that a rule denies, for whom it is named. */
	const bool denied =
		facts.rung.mode == NP_PROXIED &&
		(!strcmp(name, "wild.example") || !strcmp(name, "bad.wild.example") || !strcmp(name, "shut.example"));
	struct dns_judged j;

	assert_int_equal(judge(name, type, &j), 0);
	assert_int_equal(j.reason, denied ? NP_R_RULE_DENIES : NP_R_NOT_IN_POLICY);
	assert_int_equal(j.rule != NULL, denied);
	assert_int_equal(j.answer.rcode, ns_r_nxdomain);
	assert_int_equal(j.answer.ede, DNS_EDE_BLOCKED);
	assert_true(strlen(j.answer.words) > 10 && strlen(j.answer.words) <= NP_DNS_WORDS_MAX);
	assert_int_equal(j.answer.n_addrs, 0);
	assert_null(j.answer.ptr);
}

static void assert_nodata(const char *name, unsigned type)
{
	struct dns_judged j;

	assert_int_equal(judge(name, type, &j), 0);
	assert_int_equal(j.reason, NP_R_RULE_ALLOWS);
	assert_int_equal(j.answer.rcode, ns_r_noerror);
	assert_int_equal(j.answer.n_addrs, 0);
	assert_int_equal(j.answer.ede, DNS_EDE_NONE);
	assert_null(j.answer.ptr);
}

static void assert_answered(const char *name, uint32_t index)
{
	const struct np_addr v4 = np_synth_v4(index), v6 = np_synth_v6(index);

	for (int i = 0; i < 2; i++) {
		struct dns_judged j;

		assert_int_equal(judge(name, i ? ns_t_aaaa : ns_t_a, &j), 0);
		assert_int_equal(j.reason, NP_R_RULE_ALLOWS);
		assert_int_equal(j.answer.rcode, ns_r_noerror);
		assert_int_equal(j.answer.ede, DNS_EDE_NONE);
		assert_int_equal(j.answer.ttl_s, NP_DNS_TTL_S);
		assert_int_equal(j.answer.n_addrs, 2);
		assert_memory_equal(&j.answer.addrs[0], &v4, sizeof(v4));
		assert_memory_equal(&j.answer.addrs[1], &v6, sizeof(v6));
	}
}

static uint32_t learn(const char *name)
{
	uint32_t index;

	assert_int_equal(names_get(names, NAMES_ALLOWED, name, 1, &index), 0);
	return index;
}

static void names_that_may_be_reached(void **state)
{
	static const char *const may[] = {
		"web.example", "a.wild.example", "a.b.wild.example",	   "db.example",
		"ask.example", "decide.example", "_443._tcp.wild.example", "x.bad.wild.example",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(may) / sizeof(may[0]); i++) {
		struct dns_judged j;
		uint32_t index;

		/* Without an address it waits, and nothing was given out. */
		assert_int_equal(judge(may[i], ns_t_a, &j), -EAGAIN);
		assert_int_equal(judge(may[i], ns_t_aaaa, &j), -EAGAIN);
		assert_string_equal(j.query.name, may[i]);
		assert_int_equal(names_count(names, NAMES_ALLOWED), i);
		index = learn(may[i]);
		assert_int_equal(index, i + 1);
		assert_answered(may[i], index);
		assert_int_equal(names_count(names, NAMES_ALLOWED), i + 1);
	}
}

static void names_that_may_not(void **state)
{
	static const char *const may_not[] = {
		"other.example",
		"example",
		"x.web.example",
		"wild.example" /* denied before it is allowed */,
		"bad.wild.example",
		"clock.example" /* UDP alone */,
		"secret.example" /* at another level */,
		"192.0.2.7",
		"wpad",
		"com",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(may_not) / sizeof(may_not[0]); i++) {
		assert_refused(may_not[i], ns_t_a);
		assert_refused(may_not[i], ns_t_aaaa);
		assert_refused(may_not[i], HTTPS);
		assert_refused(may_not[i], ns_t_txt);
	}
	/* An address that was given out before does not count any more. */
	learn("other.example");
	learn("bad.wild.example");
	assert_refused("other.example", ns_t_a);
	assert_refused("bad.wild.example", ns_t_a);
}

static void words_tell_why(void **state)
{
	struct dns_judged j;

	(void)state;
	judge("clock.example", ns_t_a, &j);
	assert_non_null(strstr(j.answer.words, "UDP is allowed by address only"));
	judge("other.example", ns_t_a, &j);
	assert_non_null(strstr(j.answer.words, "no rule of the policy"));
}

static void modes_and_levels(void **state)
{
	struct dns_judged j;

	(void)state;
	facts.rung.level = LEVEL_SECRET;
	assert_int_equal(judge("secret.example", ns_t_a, &j), -EAGAIN);
	facts.rung.mode = NP_NONE;
	assert_refused("secret.example", ns_t_a);
	assert_refused("web.example", ns_t_a);
	facts.rung.mode = (enum np_mode)77;
	assert_refused("web.example", ns_t_a);
}

/* Types other than addresses: NODATA, and no address is spent on them. No ech, no h3. */
static void other_types(void **state)
{
	static const unsigned types[] = {
		HTTPS, SVCB, ns_t_txt, ns_t_mx, ns_t_ns, ns_t_null, ns_t_cname, ns_t_any, 4711
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_nodata("a.wild.example", types[i]);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 0);
	learn("a.wild.example");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_nodata("a.wild.example", types[i]);
}

static void assert_asks(const char *name, unsigned type, struct dns_judged *ret)
{
	assert_int_equal(judge(name, type, ret), -EINPROGRESS);
	assert_int_equal(ret->reason, NP_R_RULE_ALLOWS);
	assert_non_null(ret->rule);
	assert_true(ret->rule->dns & dns_record_bit((uint16_t)type));
}

/* The whole name, one of the rule's types, at one of its levels: else it is as if the key was not there. */
static void records_that_a_rule_names(void **state)
{
	struct dns_judged j;

	(void)state;
	assert_asks("mail.example", ns_t_mx, &j);
	assert_asks("MAIL.example", ns_t_srv, &j);
	assert_string_equal(j.query.name, "mail.example"); /* what is asked for says nothing by its case */
	assert_asks("_sip._tcp.mail.example", ns_t_srv, &j);
	assert_nodata("mail.example", ns_t_txt);
	assert_nodata("mail.example", HTTPS);
	assert_int_equal(judge("mail.example", ns_t_a, &j), -EAGAIN);
	assert_null(j.rule);
	assert_refused("x.mail.example", ns_t_mx);
	assert_refused("shut.example", ns_t_mx); /* denied before it is allowed */
	assert_refused("clock.example", ns_t_txt);
	facts.rung.level = LEVEL_SECRET;
	assert_asks("clock.example", ns_t_txt, &j);
	facts.rung.mode = NP_NONE;
	assert_refused("mail.example", ns_t_mx);
	facts.rung.mode = NP_FULL;
	assert_int_equal(judge("mail.example", ns_t_mx, &j), 0);
}

static void records_in_answers(void **state)
{
	const struct dns_records records = { 2, 8, (const uint8_t *)"\0\3\0\12\0\0\1\0" };
	struct dns_judged j;
	uint8_t out[DNS_UDP_MAX];
	size_t len;

	(void)state;
	assert_asks("mail.example", ns_t_mx, &j);
	dns_judged_records(&j, 0, NULL, &records, 77);
	len = dns_answer_write(&j.query, &j.answer, out, sizeof(out));
	assert_int_equal(out[7], 2);
	assert_int_equal(out[9] + out[8], 0); /* no authority */
	assert_int_equal(out[11], 1);	      /* OPT */
	assert_memory_equal(out + 12 + 18, "\xc0\x0c\0\17\0\1\0\0\0\115\0\3\0\12\0\xc0\x0c\0\17\0\1", 21);
	assert_true(len > 12 + 18 + 21);

	assert_asks("mail.example", ns_t_mx, &j);
	dns_judged_records(&j, -ENOENT, NULL, NULL, 0);
	assert_int_equal(j.answer.rcode, ns_r_noerror);
	assert_null(j.answer.records);
	assert_asks("mail.example", ns_t_mx, &j);
	dns_judged_records(&j, -ETIMEDOUT, "too late", NULL, 0);
	assert_int_equal(j.answer.rcode, ns_r_servfail);
	assert_int_equal(j.answer.ede, DNS_EDE_OTHER);
	assert_string_equal(j.answer.words, "too late");
}

/* More than a datagram takes: it says so, and over TCP they are there. */
static void records_that_do_not_fit(void **state)
{
	static uint8_t data[4 * 302], out[DNS_TCP_MAX];
	const struct dns_records records = { 4, sizeof(data), data };
	struct dns_judged j;
	size_t len;

	(void)state;
	for (int i = 0; i < 4; i++) {
		data[i * 302] = 300 >> 8;
		data[i * 302 + 1] = 300 & 0xff;
	}
	assert_asks("mail.example", ns_t_mx, &j);
	dns_judged_records(&j, 0, NULL, &records, 1);
	len = dns_answer_write(&j.query, &j.answer, out, dns_answer_limit(&j.query, false));
	assert_true(len < DNS_UDP_MIN && out[2] & 0x02 && out[7] == 0);
	len = dns_answer_write(&j.query, &j.answer, out, dns_answer_limit(&j.query, true));
	assert_true(len > sizeof(data) && !(out[2] & 0x02) && out[7] == 4);
}

static void localhost(void **state)
{
	const struct np_addr v4 = addr_of("127.0.0.1"), v6 = addr_of("::1");
	static const char *const ours[] = { "localhost", "x.localhost", "LocalHost" };
	struct dns_judged j;

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		assert_int_equal(judge(ours[i], ns_t_a, &j), 0);
		assert_int_equal(j.answer.n_addrs, 2);
		assert_memory_equal(&j.answer.addrs[0], &v4, sizeof(v4));
		assert_memory_equal(&j.answer.addrs[1], &v6, sizeof(v6));
	}
	assert_refused("localhost.example", ns_t_a);
	assert_refused("notlocalhost", ns_t_a);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 0);
}

static void assert_reverse(const char *arpa, const char *name)
{
	struct dns_judged j;

	assert_int_equal(judge(arpa, ns_t_ptr, &j), 0);
	assert_int_equal(j.answer.rcode, ns_r_noerror);
	assert_string_equal(j.answer.ptr, name);
	assert_int_equal(j.answer.n_addrs, 0);
}

static void reverse(void **state)
{
	(void)state;
	learn("web.example");
	learn("db.example");
	assert_reverse("1.0.18.198.in-addr.arpa", "web.example");
	assert_reverse("2.0.18.198.IN-ADDR.arpa", "db.example");
	assert_reverse("2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.c.6.7.7.1.6.0.7.4.7.5.6.e.6.d.f.ip6.arpa", "db.example");
	/* Neither what was never given out, nor what is none of ours, nor half an address. */
	assert_refused("0.0.18.198.in-addr.arpa", ns_t_ptr);
	assert_refused("3.0.18.198.in-addr.arpa", ns_t_ptr);
	assert_refused("1.0.0.127.in-addr.arpa", ns_t_ptr);
	assert_refused("7.2.0.192.in-addr.arpa", ns_t_ptr);
	assert_refused("18.198.in-addr.arpa", ns_t_ptr);
	assert_refused("web.example", ns_t_ptr);
	assert_refused("a.wild.example", ns_t_ptr);
	assert_refused("1.0.18.198.in-addr.arpa", ns_t_a);
}

static void odd_names(void **state)
{
	struct dns_judged j;

	(void)state;
	/* The root is there, with nothing in it. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(judge("", i ? ns_t_ns : ns_t_a, &j), 0);
		assert_int_equal(j.reason, NP_R_NOT_IN_POLICY);
		assert_int_equal(j.answer.rcode, ns_r_noerror);
		assert_int_equal(j.answer.ede, DNS_EDE_BLOCKED);
		assert_int_equal(j.answer.n_addrs, 0);
	}
	assert_refused("a b.wild.example", ns_t_a);
	assert_refused("\377\1.wild.example", ns_t_a);
	assert_refused("7.example.0x1", ns_t_a);
	judge("a b.wild.example", ns_t_a, &j);
	assert_string_equal(j.query.name, "");
}

/* Clients that mix cases look for what they sent. */
static void mixed_case(void **state)
{
	struct dns_judged j;
	uint8_t out[DNS_UDP_MAX];
	size_t len;

	(void)state;
	learn("a.wild.example");
	assert_answered("A.wIlD.eXaMpLe", 1);
	assert_int_equal(judge("A.wIlD.eXaMpLe", ns_t_a, &j), 0);
	len = dns_answer_write(&j.query, &j.answer, out, sizeof(out));
	assert_true(len > 12 + 16);
	assert_memory_equal(out + 12, "\1A\4wIlD\7eXaMpLe", 16);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 1);
}

static void bad_queries(void **state)
{
	struct dns_judged j;

	(void)state;
	query("web.example", ns_t_a);
	assert_int_equal(dns_judge(&facts, message, 11, &j), -EBADMSG);
	message[2] |= 0x80; /* a response */
	assert_int_equal(dns_judge(&facts, message, message_len, &j), -EBADMSG);

	query("web.example", ns_t_a);
	assert_int_equal(dns_judge(&facts, message, message_len - 12, &j), 0); /* the question is cut */
	assert_int_equal(j.reason, NP_R_BAD_DNS);
	assert_int_equal(j.answer.rcode, ns_r_formerr);
	assert_int_equal(j.answer.n_addrs, 0);

	query("web.example", ns_t_a);
	message[2] |= ns_o_update << 3;
	assert_int_equal(dns_judge(&facts, message, message_len, &j), 0);
	assert_int_equal(j.reason, NP_R_BAD_DNS);
	assert_int_equal(j.answer.rcode, ns_r_notimpl);

	query("web.example", ns_t_a);
	message[12 + 13 + 3] = ns_c_chaos;
	assert_int_equal(dns_judge(&facts, message, message_len, &j), 0);
	assert_int_equal(j.reason, NP_R_BAD_DNS);
	assert_int_equal(j.answer.rcode, ns_r_refused);
}

static void when_it_can_get_none(void **state)
{
	struct dns_judged j;

	(void)state;
	assert_int_equal(judge("web.example", ns_t_a, &j), -EAGAIN);
	for (int i = 0; i < 2; i++) {
		enum np_reason reason = i ? NP_R_TOO_MANY_QUERIES : NP_R_TOO_MANY_NAMES;

		dns_judged_full(&j, reason);
		assert_int_equal(j.reason, reason);
		assert_int_equal(j.answer.rcode, ns_r_servfail);
		assert_int_equal(j.answer.n_addrs, 0);
		assert_true(strlen(j.answer.words) <= NP_DNS_WORDS_MAX);
	}
}

/* dns: refused: synthetic */
static void refused_names_may_have_addresses(void **state)
{
	static const char *const explained[] = { "other.example", "bad.wild.example", "a.b.c.d.e.f.g.h.other.example" };
	static const char *const not [] = {
		"other",			    /* a search list begins so */
		"web.example.default.svc.corp.lan", /* and so it goes on: of an allowed name */
		"a.wild.example.lan",
		"host.local",
		"x.onion",
		"7.2.0.192.in-addr.arpa",
		"clock.example", /* UDP alone: no connection would be told */
	};
	struct policy *synthetic = policy_of(
		"dns: {refused: synthetic}\nrules:\n"
		"- deny: bad.wild.example\n- allow: [web.example, '**.wild.example', clock.example:123/udp]\n");
	struct dns_judged j;

	(void)state;
	facts.policy = synthetic;
	for (size_t i = 0; i < ARRAY_SIZE(explained); i++) {
		const enum np_reason reason = i == 1 ? NP_R_RULE_DENIES : NP_R_NOT_IN_POLICY;
		uint32_t index;

		assert_int_equal(judge(explained[i], ns_t_a, &j), -EAGAIN);
		assert_true(j.refused && j.reason == reason);
		dns_judged_unnamed(&j); /* none is left */
		assert_true(j.answer.rcode == ns_r_nxdomain && j.reason == reason && j.answer.ede == DNS_EDE_BLOCKED);
		assert_int_equal(names_get(names, NAMES_REFUSED, explained[i], 1, &index), 0);
		for (int v6 = 0; v6 < 2; v6++) {
			const struct np_addr v4 = np_synth_v4(index);

			assert_int_equal(judge(explained[i], v6 ? ns_t_aaaa : ns_t_a, &j), 0);
			assert_true(j.reason == reason && j.answer.rcode == ns_r_noerror && j.answer.n_addrs == 2);
			assert_int_equal(j.rule != NULL, i == 1);
			assert_int_equal(j.answer.ede, DNS_EDE_BLOCKED);
			assert_memory_equal(&j.answer.addrs[0], &v4, sizeof(v4));
		}
		/* It is there, and has no other records. */
		assert_int_equal(judge(explained[i], HTTPS, &j), 0);
		assert_true(j.reason == reason && j.answer.rcode == ns_r_noerror && j.answer.n_addrs == 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(not ); i++) {
		assert_int_equal(judge(not [i], ns_t_a, &j), 0);
		assert_true(j.reason == NP_R_NOT_IN_POLICY && j.answer.rcode == ns_r_nxdomain && j.answer.n_addrs == 0);
	}
	/* Allowed ones have theirs from the others. */
	assert_int_equal(judge("web.example", ns_t_a, &j), -EAGAIN);
	assert_true(!j.refused && j.reason == NP_R_RULE_ALLOWS);
	/* One that was allowed keeps what it had. */
	learn("x.other.example");
	assert_int_equal(judge("x.other.example", ns_t_a, &j), 0);
	assert_true(j.reason == NP_R_NOT_IN_POLICY && j.answer.n_addrs == 2);
	facts.rung.mode = NP_NONE;
	assert_refused("other.example", ns_t_a);
	policy_free(synthetic);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_that_may_be_reached),
		TEST(names_that_may_not),
		TEST(words_tell_why),
		TEST(modes_and_levels),
		TEST(other_types),
		TEST(records_that_a_rule_names),
		TEST(records_in_answers),
		TEST(records_that_do_not_fit),
		TEST(localhost),
		TEST(reverse),
		TEST(odd_names),
		TEST(mixed_case),
		TEST(bad_queries),
		TEST(when_it_can_get_none),
		TEST(refused_names_may_have_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
