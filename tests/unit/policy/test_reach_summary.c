/* SPDX-License-Identifier: MIT */
#include "policy/reach_summary.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "make.h"
#include "vocab/limits.h"

static struct reach reach;

/* The items of a policy, one a line. */
static const char *reaches(const char *yaml, enum np_mode mode, enum level level)
{
	static char lines[NP_REACH_ITEMS * REACH_ITEM_SIZE];
	_policy_ struct policy *policy = policy_of(yaml);

	lines[0] = '\0';
	policy_reach(policy, &(struct np_rung){ .mode = mode, .level = (uint8_t)level }, "alice/build", &reach);
	for (size_t i = 0; i < reach.count; i++)
		sprintf(lines + strlen(lines), "%s\n", reach.items[i]);
	return lines;
}

static const char *proxied(const char *yaml)
{
	return reaches(yaml, NP_PROXIED, LEVEL_CONFIDENTIAL);
}

static const char *text_of_reach(const char *yaml, enum np_mode mode)
{
	static char text[8192];
	_policy_ struct policy *policy = policy_of(yaml);
	_buf_ struct buf out = BUF_INIT(sizeof(text) - 1);

	policy_reach(policy, &(struct np_rung){ .mode = mode, .level = LEVEL_CONFIDENTIAL }, NULL, &reach);
	reach_text(policy, mode, &reach, &out);
	assert_int_equal(buf_error(&out), 0);
	strcpy(text, out.data);
	return text;
}

static void forms(void **state)
{
	(void)state;
	assert_string_equal(proxied("rules:\n"
				    "  - allow: [a.example, \"**.b.example\", c.example:5432, \"d.example:*\"]\n"
				    "  - allow: [\"e.example:53-60/udp\", 192.0.2.7, 192.0.2.0/24:22]\n"
				    "  - allow: [\"[2001:db8::/32]:8443\", \"2001:db8::7\"]\n"),
			    "a.example\n**.b.example\nc.example:5432/tcp\nd.example:*/tcp\n"
			    "e.example:53-60/udp\n192.0.2.7\n192.0.2.0/24:22/tcp\n"
			    "[2001:db8::/32]:8443/tcp\n2001:db8::7\n");
	assert_string_equal(proxied("rules:\n"
				    "  - {allow: a.example, methods: [GET, HEAD]}\n"
				    "  - {allow: b.example, paths: [\"/x/**\", \"/y\"]}\n"
				    "  - {allow: c.example, methods: GET, paths: \"/z\", headers: [x-key]}\n"
				    "  - {allow: d.example, headers: [x-key]}\n"),
			    "a.example (only GET, HEAD)\nb.example (only /x/**, /y)\n"
			    "c.example (only GET on /z with x-key)\nd.example (only with x-key)\n");
	assert_string_equal(proxied("host_loopback: [11434]\n"), "localhost:11434\n");
	assert_string_equal(proxied(""), "");
}

/* What a rule seems to open and the policy does not is no alternative. */
static void only_what_is_open(void **state)
{
	(void)state;
	assert_string_equal(proxied("rules:\n"
				    "  - deny: [a.example, 192.0.2.7, \"**.c.example\"]\n"
				    "  - {deny: b.example, methods: POST}\n" /* others pass */
				    "  - allow: [a.example, b.example, 192.0.2.7, x.c.example, 192.0.2.8]\n"),
			    "b.example\n192.0.2.8\n");
	assert_string_equal(proxied("rules:\n  - ask: a.example\n  - deny: b.example\n  - allow: 169.254.169.254\n"
				    "  - allow: 10.0.0.0/8\n"),
			    "169.254.169.254\n10.0.0.0/8\n"); /* the first is an allow of its own */
	assert_string_equal(proxied("inspect_ports: []\nrules:\n  - allow: a.example\n"), "");
	assert_string_equal(proxied("inspect_ports: []\nrules:\n  - allow: [192.0.2.7:25]\n"), "192.0.2.7:25/tcp\n");
}

static void by_level_and_mode(void **state)
{
	static const char yaml[] = "host_loopback: [1]\nrules:\n  - {allow: a.example, for: [CONFIDENTIAL, SECRET]}\n"
				   "  - {allow: b.example, for: PUBLIC}\n";

	(void)state;
	assert_string_equal(reaches(yaml, NP_PROXIED, LEVEL_CONFIDENTIAL), "a.example\nlocalhost:1\n");
	assert_string_equal(reaches(yaml, NP_PROXIED, LEVEL_PUBLIC), "b.example\nlocalhost:1\n");
	assert_string_equal(reaches(yaml, NP_PROXIED, LEVEL_INTERNAL), "localhost:1\n");
	assert_string_equal(reaches(yaml, NP_NONE, LEVEL_SECRET), "");
	assert_string_equal(reaches(yaml, NP_FULL, LEVEL_PUBLIC), "");
}

static void bounds(void **state)
{
	char yaml[8192] = "rules:\n  - allow: [a.example, a.example:443";

	(void)state;
	assert_string_equal(proxied("rules:\n  - allow: a.example\n  - allow: [a.example, b.example]\n"),
			    "a.example\nb.example\n");
	for (int i = 0; i < 40; i++)
		sprintf(yaml + strlen(yaml), ", n%d.example", i);
	strcat(yaml, "]\n  - allow: z.example\n");
	proxied(yaml);
	assert_int_equal(reach.count, NP_REACH_ITEMS);
	assert_int_equal(reach.more, 43 - NP_REACH_ITEMS);
	/* One item is cut, not the list. */
	strcpy(yaml, "rules:\n  - {allow: a.example, paths: [");
	for (int i = 0; i < 100; i++)
		sprintf(yaml + strlen(yaml), "\"/path/%d\", ", i);
	strcat(yaml, "\"/end\"]}\n  - allow: b.example\n");
	proxied(yaml);
	assert_int_equal(reach.count, 2);
	assert_int_equal(strlen(reach.items[0]), REACH_ITEM_SIZE - 1);
	assert_string_equal(reach.items[0] + REACH_ITEM_SIZE - 4, "...");
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(text_of_reach("", NP_FULL),
			    "everything but cloud metadata, the host's own listeners and other sandboxes");
	assert_string_equal(text_of_reach("rules:\n  - allow: a.example\n", NP_NONE),
			    "nothing but itself (its own loopback and unix sockets)");
	assert_string_equal(text_of_reach("", NP_PROXIED), "nothing but itself (its own loopback and unix sockets)");
	assert_string_equal(
		text_of_reach("rules:\n  - allow: [a.example, b.example:22]\n", NP_PROXIED),
		"only a.example, b.example:22/tcp (those without a port: HTTP and HTTPS on port 80 or 443), "
		"and itself");
	assert_string_equal(
		text_of_reach("inspect_ports: [80, 443, 8443]\nrules:\n  - allow: a.example\n", NP_PROXIED),
		"only a.example (those without a port: HTTP and HTTPS on port 80, 443 or 8443), and itself");
	assert_string_equal(text_of_reach("rules:\n  - allow: b.example:22\n", NP_PROXIED),
			    "only b.example:22/tcp, and itself");
	assert_string_equal(text_of_reach("rules:\n  - allow: b.example:22\n  - ask: .c.example\n", NP_PROXIED),
			    "only b.example:22/tcp, and itself; about some others a person is asked first, and what is "
			    "tried waits for the answer");
	assert_string_equal(text_of_reach("default: ask\n", NP_PROXIED),
			    "nothing but itself (its own loopback and unix sockets); about some others a person is "
			    "asked first, and what is tried waits for the answer");
	assert_string_equal(text_of_reach("rules:\n  - {ask: c.example, for: PUBLIC}\n", NP_PROXIED),
			    "nothing but itself (its own loopback and unix sockets)");
	assert_string_equal(text_of_reach("default: ask\n", NP_NONE),
			    "nothing but itself (its own loopback and unix sockets)");
}

static void lookups(void **state)
{
	(void)state;
	assert_string_equal(proxied("rules:\n  - allow: a.example\n    dns: [TXT, MX]\n    methods: GET\n"
				    "  - allow: b.example:25\n    dns: SRV\n"),
			    "a.example (only GET) (and lookups of its MX, TXT records)\n"
			    "b.example:25/tcp (and lookups of its SRV records)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(only_what_is_open),
		cmocka_unit_test(by_level_and_mode),
		cmocka_unit_test(bounds),
		cmocka_unit_test(words),
		cmocka_unit_test(lookups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
