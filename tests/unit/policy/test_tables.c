/* SPDX-License-Identifier: MIT */
/* What the gate decides from its tables is what policy_decide() says, on random policies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>

#include "gate.bpf.h"
#include "policy/decide.h"
#include "policy/tables.c"
#include "wire/hostname.h"

static uint32_t seed = 1;
static uint32_t roll(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static struct policy *load(const char *text)
{
	struct problems problems = { 0 };
	struct policy *policy = NULL;
	char line[PROBLEM_LINE_SIZE];
	int r = policy_load_text("t.yaml", text, strlen(text), &policy, &problems);

	problems_first(&problems, line);
	if (r < 0)
		fail_msg("%s\n%s", line, text);
	problems_clear(&problems);
	return policy;
}

/* -- the gate's look-ups, the plain way ---------------------------------------- */

static bool prefix_is(const void *a, const void *b, unsigned bits)
{
	const uint8_t *x = a, *y = b;

	for (unsigned i = 0; i < bits; i++)
		if ((x[i / 8] ^ y[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static const struct np_port_rule *gate_look(const struct gate_tables *t, const struct np_facts *f, uint32_t set)
{
	struct np_net_key net = { .set = (__u8)set, .addr = np_addr_carried(&f->addr) };
	struct np_port_key port = { .protocol = np_is_ported(f->protocol) ? f->protocol : 0, .port = htons(f->port) };
	const struct net_entry *best = NULL;
	const struct port_entry *found = NULL;

	net.family = np_addr_is_v4(&net.addr) ? 4 : 6;
	for (size_t i = 0; i < t->n_nets; i++)
		if (prefix_is(&net.epoch, &t->nets[i].key.epoch, t->nets[i].key.prefixlen) &&
		    (!best || best->key.prefixlen < t->nets[i].key.prefixlen))
			best = &t->nets[i];
	if (!best)
		return NULL;
	port.class = best->class;
	for (size_t i = 0; i < t->n_ports; i++)
		if (prefix_is(&port.epoch, &t->ports[i].key.epoch, t->ports[i].key.prefixlen) &&
		    (!found || found->key.prefixlen < t->ports[i].key.prefixlen))
			found = &t->ports[i];
	return found ? &found->value : NULL;
}

static enum np_reason gate_judge(const struct gate_tables *t, struct np_facts *f, struct np_rung rung)
{
	uint32_t set = f->mode == NP_FULL ? NP_SET_FULL : t->sets >> rung.level * 4 & 15;
	const struct np_port_rule *found = f->mode == NP_FULL && !t->full_rules ? NULL : gate_look(t, f, set);

	if (found) {
		f->action = found->action;
		f->rule = found->rule;
	}
	if (f->action && f->action != NP_DENY && f->action != NP_LOOK && rung.flags & NP_READ_ONLY) {
		found = gate_look(t, f, NP_SET_READ);
		if (!found || found->action != NP_ALLOW)
			f->action = NP_READ;
	}
	for (size_t i = 0; i < t->n_listed; i++)
		if (t->listed[i].port == f->port)
			f->inspected = t->listed[i].value.inspected;
	if (f->mode == NP_PROXIED && f->protocol == IPPROTO_TCP && f->inspected && f->action == NP_READ)
		f->action = NP_LOOK;
	return np_judge_out(f);
}

/* -- random policies ------------------------------------------------------------ */

static const char *const nets[] = {
	"10.0.0.0/8",	   "10.1.0.0/16",     "10.1.2.0/24",   "10.1.2.3",    "0.0.0.0/0",	"::/0",
	"2001:db8::/32",   "2001:db8:1::/48", "2001:db8:1::5", "10.1.2.4/31", "169.254.0.0/16", "169.254.169.254",
	"100.100.100.200", "fd00:ec2::/32",   "fd00:ec2::254", "fd00::/8",    "fe80::/10",	"192.0.2.0/24",
};
static const char *const addresses[] = {
	"10.0.0.1",	   "10.1.0.1",	      "10.1.2.1",	  "10.1.2.3",	     "10.1.2.4",
	"10.1.2.5",	   "11.0.0.1",	      "2001:db8::1",	  "2001:db8:1::1",   "2001:db8:1::5",
	"2001:db9::1",	   "169.254.169.254", "169.254.1.1",	  "169.253.1.1",     "100.100.100.200",
	"100.100.100.201", "fd00:ec2::254",   "fd00:ec2::1",	  "fd00:ec3::1",     "fe80::1",
	"fec0::1",	   "192.0.2.9",	      "64:ff9b::a01:203", "2002:a01:204::1", "64:ff9b::a9fe:a9fe",
};
static const uint16_t ports[] = { 1, 22, 53, 80, 443, 444, 8000, 8080, 8443, 65535 };
static const char *const port_words[] = { "", ":22", ":*", ":8000-8443", ":443", ":80-443", ":1-65535", ":8443" };

static void destination(FILE *out, bool any_port)
{
	const char *net = nets[roll(ARRAY_SIZE(nets))],
		   *port = any_port ? "" : port_words[roll(ARRAY_SIZE(port_words))];
	bool v6 = strchr(net, ':');

	if (*port && v6)
		fprintf(out, "\"[%s]%s%s\"", net, port, roll(3) ? "" : roll(2) ? "/tcp" : "/udp");
	else
		fprintf(out, "\"%s%s%s\"", net, port, !*port || roll(3) ? "" : roll(2) ? "/tcp" : "/udp");
}

static char *random_policy(void)
{
	static const char *const actions[] = { "allow", "deny", "ask", "decide" };
	static const char *const levels[] = { "PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET" };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	uint32_t n = roll(12), n_full = roll(3) ? 0 : roll(6);

	fprintf(out, "version: 1\ndeciders: {g: {command: [/bin/true]}}\n%s",
		roll(4) ? "" : "inspect_ports: [443, 8080]\n");
	fprintf(out, "rules:%s\n", n ? "" : " []");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t action = roll(2) ? roll(2) : roll(4), many = 1 + (roll(4) ? 0 : roll(3));
		bool asks = action == 1 && roll(4) == 0; /* for a request: no connection meets that */
		bool pinned = action == 0 && roll(4) == 0;

		fprintf(out, "  - %s: [", actions[action]);
		for (uint32_t k = 0; k < many; k++) {
			if (k)
				fputs(", ", out);
			destination(out, asks || pinned);
		}
		fputs("]\n", out);
		if (action == 3)
			fputs("    by: g\n", out);
		if (asks)
			fputs("    methods: POST\n", out);
		if (pinned)
			fputs("    inspect: false\n", out);
		if (roll(3) == 0)
			fprintf(out, "    for: [%s]\n", levels[roll(4)]);
	}
	fprintf(out, "full:%s\n", n_full ? "" : " []");
	for (uint32_t i = 0; i < n_full; i++) {
		fprintf(out, "  - %s: ", roll(2) ? "deny" : "allow");
		destination(out, false);
		fputs("\n", out);
	}
	for (uint32_t i = 0, n_read = roll(10); i < n_read; i++) {
		fputs(i ? ", " : "sandbox: {read_only: [", out);
		destination(out, false);
		fputs(i + 1 == n_read ? "]}\n" : "", out);
	}
	fclose(out);
	return text;
}

static struct np_addr parse(const char *text)
{
	struct np_addr a;

	assert_int_equal(addr_parse(text, strlen(text), &a), 0);
	return a;
}

static bool inspects(const struct policy *policy, uint16_t port)
{
	return policy_inspects(policy, port);
}

/* What the gate may say when policy_decide() gives this verdict. */
static enum np_reason expected(const struct policy *policy, const struct facts *facts, const struct verdict *v)
{
	bool tcp = facts->protocol == PATTERN_TCP, metadata = np_addr_is_metadata(&facts->addr);

	if (facts->rung.mode == NP_FULL)
		return v->action == ACTION_ALLOW ? NP_R_OPEN_MODE : metadata ? NP_R_METADATA : v->reason;
	if (facts->port == 53) /* led to the DNS gate, whatever server is named: were it there */
		return NP_R_NO_DNS_GATE;
	if (tcp && inspects(policy, facts->port)) {
		if (v->action == ACTION_ALLOW && !v->inspect)
			return NP_R_RULE_ALLOWS;
		/* Whatever could be granted is led to the inspector, which refuses what is not. */
		return metadata && v->reason == NP_R_METADATA ? NP_R_METADATA : NP_R_NO_INSPECTOR;
	}
	if (metadata && v->action != ACTION_ALLOW)
		return NP_R_METADATA;
	return v->reason;
}

static unsigned allowed, denied, read_denied, read_allowed;

static void compare(const struct policy *policy, const struct gate_tables *tables, const char *text)
{
	for (int i = 0; i < 200; i++) {
		struct facts facts = {
			.rung = { .mode = roll(4) ? NP_PROXIED : NP_FULL,
				  .level = (uint8_t)roll(4),
				  .flags = roll(2) ? NP_READ_ONLY : 0 },
			.protocol = roll(2) ? PATTERN_TCP : PATTERN_UDP,
			.port = ports[roll(ARRAY_SIZE(ports))],
			.has_addr = true,
			.addr = parse(addresses[roll(ARRAY_SIZE(addresses))]),
		};
		struct np_facts f = {
			.mode = facts.rung.mode,
			.protocol = facts.protocol == PATTERN_TCP ? IPPROTO_TCP : IPPROTO_UDP,
			.port = facts.port,
			.addr = facts.addr,
			.opening = true,
		};
		enum np_reason want, got;
		struct verdict v, whole;
		char address[64];

		if (facts.rung.flags & NP_READ_ONLY)
			facts.rung.mode = f.mode = NP_PROXIED;
		v = policy_decide(policy, &facts);
		want = expected(policy, &facts, &v);
		got = gate_judge(tables, &f, facts.rung);

		/* What a rule denies may be granted to other requests, or not: refused it is in either case. */
		if (np_addr_is_metadata(&facts.addr) && v.action == ACTION_DENY && got == NP_R_METADATA &&
		    want == NP_R_NO_INSPECTOR)
			want = got;
		inet_ntop(AF_INET6, &facts.addr, address, sizeof(address));
		if (want != got)
			fail_msg("%s port %u %s level %u mode %u: gate %u, policy %u\n%s", address, facts.port,
				 facts.protocol == PATTERN_TCP ? "tcp" : "udp", facts.rung.level, facts.rung.mode, got,
				 want, text);
		if (got == NP_R_RULE_ALLOWS || got == NP_R_RULE_DENIES)
			if (gate_rule_find(policy, f.rule) != v.rule)
				fail_msg("%s port %u: another rule\n%s", address, facts.port, text);
		if (facts.rung.flags & NP_READ_ONLY) { /* the list opens nothing */
			facts.rung.flags = 0;
			whole = policy_decide(policy, &facts);
			if (NP_REASON_ALLOWS(got) && whole.action != ACTION_ALLOW)
				fail_msg("%s port %u: only for a run that may only read\n%s", address, facts.port,
					 text);
			read_allowed += got == NP_R_RULE_ALLOWS;
			read_denied += got == NP_R_READ_ONLY;
		}
		allowed += NP_REASON_ALLOWS(got);
		denied += !NP_REASON_ALLOWS(got);
	}
}

static void gate_and_policy_agree(void **state)
{
	(void)state;
	for (int round = 0; round < 400; round++) {
		char *text = random_policy();
		struct policy *policy = load(text);
		struct gate_tables tables;

		assert_int_equal(gate_tables_make(policy, &tables), 0);
		compare(policy, &tables, text);
		gate_tables_free(&tables);
		policy_free(policy);
		free(text);
	}
	assert_true(allowed > 5000 && denied > 5000); /* else the comparison says little */
	assert_true(read_allowed > 200 && read_denied > 500);
}

static void levels_with_the_same_rules_share_a_set(void **state)
{
	struct policy *policy = load("version: 1\nrules:\n  - allow: 192.0.2.0/24:8443/tcp\n  - allow: [a.example]\n"
				     "    for: [SECRET]\n");
	struct gate_tables tables;

	(void)state;
	assert_int_equal(gate_tables_make(policy, &tables), 0);
	assert_int_equal(tables.sets, 0);
	for (size_t i = 0; i < tables.n_nets; i++)
		assert_int_equal(tables.nets[i].key.set, 0);
	gate_tables_free(&tables);
	policy_free(policy);
	policy = load("version: 1\nrules:\n  - allow: 192.0.2.0/24:8443/tcp\n    for: [CONFIDENTIAL, PUBLIC]\n");
	assert_int_equal(gate_tables_make(policy, &tables), 0);
	assert_int_equal(tables.sets, 0x1010);
	gate_tables_free(&tables);
	policy_free(policy);
}

/* What PROXIED reaches without the inspector. */
static void what_is_direct(void **state)
{
	static const struct {
		const char *text;
		bool direct;
	} cases[] = {
		{ "rules:\n  - allow: [a.test, 'b.test:5432']\n", false },
		{ "rules:\n  - allow: 192.0.2.1\n", false }, /* inspected ports */
		{ "rules:\n  - deny: '192.0.2.1:*'\n", false },
		{ "full:\n  - deny: 192.0.2.1\n", false },
		{ "rules:\n  - allow: '192.0.2.1:5432'\n", true },
		{ "rules:\n  - allow: '192.0.2.1:53000/udp'\n", true },
		{ "rules:\n  - allow: 192.0.2.1\n    inspect: false\n", true },
		{ "rules:\n  - allow: '192.0.2.1:5432'\n    for: CONFIDENTIAL\n", true },
		{ "host_loopback: [5432]\n", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gate_tables tables;
		struct policy *policy;
		char text[512];

		snprintf(text, sizeof(text), "version: 1\n%s", cases[i].text);
		policy = load(text);
		assert_int_equal(gate_tables_make(policy, &tables), 0);
		if (tables.direct != cases[i].direct)
			fail_msg("%s", text);
		gate_tables_free(&tables);
		policy_free(policy);
	}
}

static bool says(const struct gate_tables *tables, struct np_facts f, enum np_reason reason)
{
	return gate_judge(tables, &f, (struct np_rung){ .level = LEVEL_CONFIDENTIAL }) == reason;
}

/* Later fragments and protocols without ports: not in struct facts, so not in the comparison. */
static void what_has_no_port(void **state)
{
	struct policy *policy =
		load("version: 1\nrules:\n  - allow: [\"10.1.0.0/16:9000/udp\", \"10.4.0.0/16:9000\"]\nfull:\n"
		     "  - deny: 10.2.0.0/16\n  - deny: 10.3.0.0/16:25\n"
		     "sandbox: {read_only: \"10.4.0.0/16:9000/udp\"}\n");
	const struct np_rung reads = { .level = LEVEL_CONFIDENTIAL, .flags = NP_READ_ONLY };
	struct gate_tables tables;
	struct np_facts f = {
		.mode = NP_PROXIED, .protocol = IPPROTO_UDP, .addr = parse("10.1.0.1"), .fragment = true
	};

	(void)state;
	assert_int_equal(gate_tables_make(policy, &tables), 0);
	assert_true(says(&tables, f, NP_R_RULE_ALLOWS));
	f.protocol = IPPROTO_TCP;
	assert_true(says(&tables, f, NP_R_NOT_IN_POLICY));
	f.protocol = IPPROTO_ICMP;
	assert_true(says(&tables, f, NP_R_NOT_IN_POLICY));
	f = (struct np_facts){ NP_PROXIED, .protocol = IPPROTO_UDP, .addr = parse("10.1.0.1"), .fragment = true };
	assert_int_equal(gate_judge(&tables, &f, reads), NP_R_READ_ONLY);
	f = (struct np_facts){ NP_PROXIED, .protocol = IPPROTO_TCP, .addr = parse("10.4.0.1"), .fragment = true };
	assert_true(says(&tables, f, NP_R_RULE_ALLOWS));
	assert_int_equal(gate_judge(&tables, &f, reads), NP_R_READ_ONLY);
	f = (struct np_facts){ .addr = parse("10.1.0.1"), .protocol = IPPROTO_ICMP, .fragment = true };
	f.mode = NP_FULL;
	assert_true(says(&tables, f, NP_R_OPEN_MODE));
	f.addr = parse("10.2.0.1");
	assert_true(says(&tables, f, NP_R_RULE_DENIES)); /* no port written: pings as well */
	f.protocol = IPPROTO_UDP;
	assert_true(says(&tables, f, NP_R_RULE_DENIES));
	f.addr = parse("10.3.0.1");
	assert_true(says(&tables, f, NP_R_RULE_DENIES)); /* it might belong to port 25 */
	f.protocol = IPPROTO_ICMP;
	assert_true(says(&tables, f, NP_R_OPEN_MODE));
	gate_tables_free(&tables);
	policy_free(policy);
}

/* n rules on n networks, each with its own ports. */
static int tables_of(unsigned n, const char *port, struct gate_tables *ret)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct policy *policy;
	int r;

	fputs("version: 1\nrules:\n", out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "  - allow: 10.%u.%u.0/24:%s\n", i >> 8, i & 255, port);
	fclose(out);
	policy = load(text);
	r = gate_tables_make(policy, ret);
	policy_free(policy);
	free(text);
	return r;
}

static void bounds(void **state)
{
	struct gate_tables tables = { 0 };

	(void)state;
	assert_int_equal(tables_of(20000, "8443", &tables), 0);
	assert_in_range(tables.n_nets, 20000, 20000 + n_metadata_ranges);
	gate_tables_free(&tables);
	assert_int_equal(tables_of(NP_NETS_MAX / 2 + 1, "8443", &tables), -E2BIG);
	assert_int_equal(tables_of(10000, "3-65533", &tables), -E2BIG); /* 26 blocks each */
	assert_null(tables.nets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_and_policy_agree),
		cmocka_unit_test(levels_with_the_same_rules_share_a_set),
		cmocka_unit_test(what_is_direct),
		cmocka_unit_test(what_has_no_port),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
