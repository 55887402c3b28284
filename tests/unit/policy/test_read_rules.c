/* SPDX-License-Identifier: MIT */
/* rules: and full: - what they mean, and each error with its sentence and place. */
#include "policy/read_rules.c"

#include <arpa/nameser.h>

#include "found.h"
#include "wire/dns.h"
#include "vocab/limits.h"

#define P    "p.yaml:"
#define BOTH (PATTERN_TCP | PATTERN_UDP)

static const struct rule *rule(void)
{
	assert_int_equal(policy->n_rules, 1);
	return policy->rules;
}

static void actions(void **state)
{
	static const enum action actions[] = { ACTION_ALLOW, ACTION_DENY, ACTION_ASK, ACTION_DECIDE };

	(void)state;
	loads("version: 1\nrules:\n  - allow: a.example\n  - deny: b.example\n  - ask: c.example\n"
	      "  - decide: d.example\n    by: guard\ndeciders: {guard: {socket: /x}}\n");
	assert_int_equal(policy->n_rules, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct rule *r = &policy->rules[i];

		assert_int_equal(r->action, actions[i]);
		assert_int_equal(r->number, i);
		assert_int_equal(r->levels, 0xf);
		assert_int_equal(r->pattern, i);
		assert_int_equal(r->n_patterns, 1);
		assert_int_equal(policy->patterns[i].rule, i);
		assert_null(r->methods);
		assert_null(r->paths);
		assert_null(r->headers);
		assert_true(r->inspect);
		assert_false(r->websocket);
		assert_true(r->max_body == UINT64_MAX);
		assert_int_equal(r->at.file, 0);
		assert_int_equal(r->at.line, 3 + i);
		assert_int_equal(r->at.column, 5);
	}
	assert_ptr_equal(policy->rules[3].by, policy->deciders[0].name);
	assert_null(policy->rules[0].by);
}

static void actions_that_are_none(void **state)
{
	(void)state;
	RULE_TELLS("a.example", P "3:5: error: a rule is a mapping, as in \"- allow: example.com\"\n");
	RULE_TELLS("[]", P "3:5: error: a rule is a mapping, as in \"- allow: example.com\"\n");
	RULE_TELLS("{}", P "3:5: error: a rule needs one of allow, deny, ask and decide\n");
	RULE_TELLS("methods: GET", P "3:5: error: a rule needs one of allow, deny, ask and decide\n");
	RULE_TELLS("allow:", P "3:5: error: \"allow\" has no value\n");
	RULE_TELLS("allow: ~", P "3:5: error: \"allow\" has no value\n");
	RULE_TELLS("allow: ''", P "3:5: error: \"allow\" has no value\n");
	RULE_TELLS("alow: a.example", P "3:5: error: unknown key \"alow\" in a rule; did you mean \"allow\"?\n");
	RULE_TELLS("allow: a.example\n    method: GET",
		   P "4:5: error: unknown key \"method\" in a rule; did you mean \"methods\"?\n");
	RULE_TELLS("allow: a.example\n    colour: red", P "4:5: error: unknown key \"colour\" in a rule\n");
	RULE_TELLS("deny: a.example\n    allow: b.example",
		   P "4:5: error: a rule has one action, and this one is \"deny\"\n");
	RULE_TELLS("ask: a.example\n    deny: a.example\n    allow: b.example",
		   P "5:5: error: a rule has one action, and this one is \"ask\"\n" P
		     "4:5: error: a rule has one action, and this one is \"ask\"\n");
	RULE_TELLS("allow: a.example\n    allow: b.example",
		   P "4:5: error: the key \"allow\" is there twice, first in line 3\n");
	RULE_TELLS("allow: []", P "3:12: error: the list of \"allow\" is empty\n");
	RULE_TELLS("allow: {}", P "3:12: error: \"allow\" takes a value or a list of them, not a mapping\n");
	RULE_TELLS("allow: [a.example, [b.example], {c: d}, ~, '']",
		   P "3:24: error: an entry of \"allow\" is one value, not a list\n" P
		     "3:37: error: an entry of \"allow\" is one value, not a mapping\n" P
		     "3:45: error: an entry of \"allow\" is empty\n" P "3:48: error: an entry of \"allow\" is empty\n");
}

static void destinations_of_each_kind(void **state)
{
	const struct pattern *p;

	(void)state;
	loads("version: 1\nrules:\n  - allow: [A.example, \"b.example:8443\", 192.0.2.0/24, "
	      "\"[2001:db8::/32]:443/udp\"]\n"
	      "  - deny: [\"**.c.example\", 10.0.0.0/8:22]\n");
	p = policy->patterns;
	assert_int_equal(policy->n_patterns, 6);
	assert_string_equal(p[0].name, "a.example");
	assert_true(p[0].inspected && p[0].protocols == PATTERN_TCP && !p[0].first_port);
	assert_true(!p[1].inspected && p[1].protocols == PATTERN_TCP && p[1].first_port == 8443);
	assert_true(p[2].inspected && p[2].kind == PATTERN_NET && p[2].v4 && p[2].bits == 120);
	assert_true(!p[3].inspected && p[3].protocols == PATTERN_UDP && !p[3].v4 && p[3].bits == 32);
	assert_int_equal(p[3].at.line, 3);
	assert_int_equal(p[3].at.column, 56);
	assert_true(!p[4].inspected && p[4].protocols == BOTH && p[4].first_port == 1 && p[4].last_port == 65535);
	assert_true(!p[5].inspected && p[5].protocols == BOTH && p[5].first_port == 22 && p[5].last_port == 22);
	/* The sentences of pattern.c, at the place of the entry. */
	RULE_TELLS("allow: [a.example, 10.1.2.3/8]",
		   P "3:24: error: \"10.1.2.3/8\" has bits set behind its prefix; write \"10.0.0.0/8\"\n");
	RULE_TELLS("deny: 127.0.0.1",
		   P "3:11: error: \"127.0.0.1\": rules do not reach the host; host_loopback does\n");
}

static void port_53(void **state)
{
	(void)state;
	RULE_TELLS("allow: 10.0.0.1:53",
		   P "3:12: error: \"10.0.0.1:53\": port 53 belongs to the DNS gate; a rule can only deny it\n");
	RULE_TELLS("ask: a.example:53/udp",
		   P "3:10: error: \"a.example:53/udp\": port 53 belongs to the DNS gate; a rule can only deny it\n");
	RULE_LOADS("deny: 10.0.0.1:53");
	RULE_LOADS("deny: 10.0.0.1:*");
	RULE_TELLS("allow: 10.0.0.1:1-100",
		   P "3:12: warning: \"10.0.0.1:1-100\" leaves port 53 out: it belongs to the DNS gate\n");
	assert_int_equal(policy->patterns[0].first_port, 1);
	RULE_TELLS("ask: 10.0.0.1:*/udp",
		   P "3:10: warning: \"10.0.0.1:*/udp\" leaves port 53 out: it belongs to the DNS gate\n");
	/* In a list: the place is the entry's, the rule is named, and the warning comes once. */
	tells("version: 1\nlists:\n  dns: [10.0.0.1:53, a.example]\nrules:\n  - deny: \"@dns\"\n  - allow: \"@dns\"\n",
	      P
	      "3:9: error: \"10.0.0.1:53\": port 53 belongs to the DNS gate; a rule can only deny it (used by the rule "
	      "in p.yaml:6)\n");
	assert_int_equal(found.items[0].other_line, 6);
	assert_string_equal(found.items[0].other_file, "p.yaml");
	tells("version: 1\nlists:\n  l: [10.0.0.1:1-99]\nrules:\n  - allow: \"@l\"\n    for: PUBLIC\n  - ask: \"@l\"\n "
	      "   for: SECRET\n",
	      P "3:7: warning: \"10.0.0.1:1-99\" leaves port 53 out: it belongs to the DNS gate\n");
}

static void udp_by_name(void **state)
{
	(void)state;
	RULE_TELLS("allow: a.example:123/udp",
		   P "3:12: warning: \"a.example:123/udp\" opens nothing: UDP is allowed by address only\n");
	RULE_TELLS("ask: '**.a.example:123/udp'",
		   P "3:10: warning: \"**.a.example:123/udp\" opens nothing: UDP is allowed by address only\n");
	assert_int_equal(policy->patterns[0].protocols, PATTERN_UDP);
	RULE_LOADS("deny: a.example:123/udp");
	RULE_LOADS("allow: [10.0.0.1:123/udp, a.example:123/tcp, b.example:123]");
	tells("version: 1\nlists:\n  l: [a.example:9/udp]\nrules:\n  - allow: \"@l\"\n    for: PUBLIC\n  - ask: "
	      "\"@l\"\n "
	      "   for: SECRET\n",
	      P "3:7: warning: \"a.example:9/udp\" opens nothing: UDP is allowed by address only\n");
}

static void metadata(void **state)
{
	(void)state;
	RULE_TELLS("allow: 0.0.0.0/0",
		   P "3:12: warning: \"0.0.0.0/0\" holds cloud metadata addresses, and these stay refused\n");
	RULE_TELLS("ask: \"fd00::/8\"",
		   P "3:10: warning: \"fd00::/8\" holds cloud metadata addresses, and these stay refused\n");
	RULE_LOADS("allow: 169.254.169.254");
	RULE_LOADS("allow: 169.254.0.0/16");
	RULE_LOADS("deny: 0.0.0.0/0");
	RULE_LOADS("allow: 10.0.0.0/8");
	tells("version: 1\nfull:\n  - allow: 100.64.0.0/10\n",
	      P "3:12: warning: \"100.64.0.0/10\" holds cloud metadata addresses, and these stay refused\n");
}

static void methods(void **state)
{
	char text[4096] = "allow: a.example\n    methods: [GET";

	(void)state;
	RULE_LOADS("allow: a.example\n    methods: [GET, M-SEARCH, \"X1!\"]");
	assert_string_equal(rule()->methods[0], "GET");
	assert_string_equal(rule()->methods[1], "M-SEARCH");
	assert_string_equal(rule()->methods[2], "X1!");
	assert_null(rule()->methods[3]);
	RULE_LOADS("allow: a.example\n    methods: POST");
	assert_string_equal(rule()->methods[0], "POST");
	assert_null(rule()->methods[1]);
	RULE_LOADS("deny: a.example:443\n    methods: DELETE");
	RULE_TELLS("allow: a.example\n    methods: [get, Post, \"GE T\", \"\", \"G:\", \"\xc3\x84\"]",
		   P "4:15: error: methods are written in upper case: \"GET\"\n" P
		     "4:20: error: methods are written in upper case: \"POST\"\n" P
		     "4:26: error: \"GE T\" is no method\n" P "4:34: error: an entry of \"methods\" is empty\n" P
		     "4:38: error: \"G:\" is no method\n" P "4:44: error: \"\xc3\x84\" is no method\n");
	RULE_TELLS("allow: a.example\n    methods: []", P "4:14: error: the list of \"methods\" is empty\n");
	RULE_TELLS("allow: a.example\n    methods:", P "4:5: error: \"methods\" has no value\n");
	for (unsigned i = 1; i < NP_RULE_WORDS; i++)
		strcat(text, ", GET");
	strcat(text, "]");
	RULE_LOADS(text);
	strcpy(strchr(text, ']'), ", PUT]");
	RULE_TELLS(text, P "4:5: error: more than 256 methods in one rule\n");
}

static void paths(void **state)
{
	char text[NP_GLOB_MAX + 64] = "allow: a.example\n    paths: /";

	(void)state;
	RULE_LOADS("allow: a.example\n    paths: [/repos/**, \"/%7eme/*\"]");
	assert_string_equal(rule()->paths[0], "/repos/**");
	assert_string_equal(rule()->paths[1], "/~me/*");
	assert_null(rule()->paths[2]);
	RULE_TELLS(
		"allow: a.example\n    paths: [repos, /a/../b]",
		P "4:13: error: path \"repos\": a path starts with a slash (or **)\n" P
		  "4:20: error: path \"/a/../b\": no path that reaches a rule has a . or .. segment, or a semicolon\n");
	memset(text + strlen(text), 'x', NP_GLOB_MAX - 1);
	RULE_LOADS(text);
	text[strlen(text)] = 'x';
	load_n(one_rule(text), strlen(one_rule(text)));
	assert_non_null(strstr(found.items[0].text, "...\": too long"));
}

static void headers(void **state)
{
	(void)state;
	RULE_LOADS("allow: a.example\n    headers: [X-Api-Key, accept]");
	assert_string_equal(rule()->headers[0], "x-api-key");
	assert_string_equal(rule()->headers[1], "accept");
	assert_null(rule()->headers[2]);
	RULE_TELLS("allow: a.example\n    headers: [\"x:\", \":path\", a b]", P
		   "4:15: error: \"x:\" is no name of a header\n" P "4:21: error: \":path\" is no name of a header\n" P
		   "4:30: error: \"a b\" is no name of a header\n");
}

static void grants(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "0", 0 },
		     { "1234", 1234 },
		     { "1234B", 1234 },
		     { "500kB", 500000 },
		     { "2k", 2000 },
		     { "3M", 3000000 },
		     { "3MB", 3000000 },
		     { "4G", 4000000000 },
		     { "1Ki", 1024 },
		     { "1KiB", 1024 },
		     { "10MiB", 10 << 20 },
		     { "5Gi", 5ull << 30 },
		     { "17179869183GiB", 17179869183ull << 30 } };
	static const char *const bad[] = { "-1",   "x",	   "10mb", "10KB",	     "10 MiB",
					   "1.5M", "10TB", "MiB",  "17179869184GiB", "99999999999999999999",
					   "1BB",  "1i" };
	char text[128], line[256];

	(void)state;
	RULE_LOADS("allow: a.example\n    inspect: false");
	assert_false(rule()->inspect);
	RULE_LOADS("allow: a.example\n    inspect: true\n    websocket: true\n    max_body: 10MiB");
	assert_true(rule()->inspect);
	assert_true(rule()->websocket);
	assert_int_equal(rule()->max_body, 10 << 20);
	RULE_LOADS("ask: a.example\n    websocket: \"false\"");
	assert_false(rule()->websocket);
	RULE_TELLS("allow: a.example\n    inspect: no\n    websocket: TRUE\n    max_body: [1]",
		   P "4:14: error: \"inspect\" is true or false, not \"no\"\n" P
		     "5:16: error: \"websocket\" is true or false, not \"TRUE\"\n" P
		     "6:15: error: \"max_body\" takes one value, not a list\n");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "allow: a.example\n    max_body: %s", good[i].text);
		RULE_LOADS(text);
		assert_true(rule()->max_body == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "allow: a.example\n    max_body: %s", bad[i]);
		snprintf(line, sizeof(line),
			 P "4:15: error: \"%s\" is no number of bytes, as in \"1234\", \"500kB\" or \"10MiB\"\n",
			 bad[i]);
		RULE_TELLS(text, line);
	}
}

static void timeouts(void **state)
{
	(void)state;
	RULE_LOADS("allow: a.example");
	assert_int_equal(rule()->timeouts.idle, 0);
	assert_int_equal(rule()->timeouts.first_byte, 0);
	assert_int_equal(rule()->timeouts.connect, 0);
	RULE_LOADS("ask: a.example\n    timeouts: {idle: 24h, first_byte: 1s, connect: 60s}");
	assert_int_equal(rule()->timeouts.idle, 24 * 60 * 60 * 1000);
	assert_int_equal(rule()->timeouts.first_byte, 1000);
	assert_int_equal(rule()->timeouts.connect, 60000);
	RULE_LOADS("allow: a.example\n    timeouts:\n      idle: 1500ms");
	assert_int_equal(rule()->timeouts.idle, 1500);
	assert_int_equal(rule()->timeouts.first_byte, 0);
	RULE_TELLS("allow: a.example\n    timeouts: 5s",
		   P "4:15: error: \"timeouts\" takes a mapping of \"idle\", \"first_byte\" and \"connect\"\n");
	RULE_TELLS("allow: a.example\n    timeouts: {idle: 999ms, first_byte: 25h, connect: 61s}", P
		   "4:22: error: \"idle\" is from 1s to 86400s, not \"999ms\"\n" P
		   "4:41: error: \"25h\" is no time from 1ms to 24h; write a number and ms, s, m or h, as in \"5s\"\n" P
		   "4:55: error: \"connect\" is from 1s to 60s, not \"61s\"\n");
	RULE_TELLS("allow: a.example\n    timeouts: {idel: 5s, connect: [5s], first_byte: 0}",
		   P "4:16: error: unknown key \"idel\" in timeouts; did you mean \"idle\"?\n" P
		     "4:53: error: \"0\" is no time from 1ms to 24h; write a number and ms, s, m or h, as in \"5s\"\n" P
		     "4:35: error: \"connect\" takes one value, not a list\n");
	RULE_TELLS("deny: a.example\n    timeouts: {idle: 5s}",
		   P "4:5: error: \"timeouts\" is for allow, ask and decide, not for deny\n");
	RULE_TELLS("allow: a.example\n    inspect: false\n    timeouts: {idle: 5s}",
		   P "5:5: error: \"timeouts\" needs a look at requests, and \"inspect: false\" forbids it\n");
}

static void keys_that_do_not_go_together(void **state)
{
	(void)state;
	RULE_TELLS("allow: a.example\n    inspect: false\n    methods: GET\n    paths: /x\n    headers: x\n"
		   "    websocket: true\n    max_body: 1",
		   P "5:5: error: \"methods\" needs a look at requests, and \"inspect: false\" forbids it\n" P
		     "6:5: error: \"paths\" needs a look at requests, and \"inspect: false\" forbids it\n" P
		     "7:5: error: \"headers\" needs a look at requests, and \"inspect: false\" forbids it\n" P
		     "8:5: error: \"websocket\" needs a look at requests, and \"inspect: false\" forbids it\n" P
		     "9:5: error: \"max_body\" needs a look at requests, and \"inspect: false\" forbids it\n");
	RULE_TELLS("deny: a.example\n    inspect: false\n    websocket: true\n    max_body: 1",
		   P "4:5: error: \"inspect\" is for allow, ask and decide, not for deny\n" P
		     "5:5: error: \"websocket\" is for allow, ask and decide, not for deny\n" P
		     "6:5: error: \"max_body\" is for allow, ask and decide, not for deny\n");
	RULE_LOADS("deny: a.example\n    methods: DELETE\n    paths: /x\n    headers: x");
}

static void only_http_has_requests(void **state)
{
	static const char *const keys[] = { "methods: GET",
					    "paths: /x",
					    "headers: x",
					    "inspect: false",
					    "websocket: true",
					    "max_body: 1",
					    "timeouts: {connect: 5s}",
					    "capture: 1" };
	static const char *const straight[] = { "a.example:22", "10.0.0.0/8:443/udp", "a.example:80-81",
						"a.example:1000-65535", "a.example:442-443" };
	static const char *const http[] = { "a.example",     "a.example:443", "a.example:80-80/tcp",  "10.0.0.0/8",
					    "10.0.0.0/8:80", "a.example/tcp", "\"[2001:db8::1]:443\"" };
	char text[256], line[256];

	(void)state;
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		for (size_t i = 0; i < sizeof(straight) / sizeof(straight[0]); i++) {
			snprintf(text, sizeof(text), "allow: [b.example, %s]\n    %s", straight[i], keys[k]);
			snprintf(line, sizeof(line),
				 P "4:5: error: \"%.*s\" needs HTTP, and \"%s\" is not on a port of inspect_ports\n",
				 (int)strcspn(keys[k], ":"), keys[k], straight[i]);
			RULE_TELLS(text, line);
			snprintf(text, sizeof(text), "allow: [b.example, %s]", straight[i]);
			RULE_LOADS(text);
		}
		for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++) {
			snprintf(text, sizeof(text), "allow: %s\n    %s", http[i], keys[k]);
			RULE_LOADS(text);
		}
	}
	/* Which ports are inspected is for the file to say, before or behind the rules. */
	loads("version: 1\nrules:\n  - allow: a.example:8080-8081\n    methods: GET\ninspect_ports: [8081, 8080]\n");
	tells("version: 1\nlists: {l: [a.example:22]}\nrules:\n  - deny: \"@l\"\n    methods: GET\n",
	      P "5:5: error: \"methods\" needs HTTP, and \"a.example:22\" is not on a port of inspect_ports\n");
	tells("version: 1\ninspect_ports: []\nrules:\n  - allow: a.example:443\n    methods: GET\n",
	      P "5:5: error: \"methods\" needs HTTP, and \"a.example:443\" is not on a port of inspect_ports\n");
}

static void by(void **state)
{
	(void)state;
	RULE_TELLS("allow: a.example\n    by: guard",
		   P "4:9: error: unknown decider \"guard\"; it is not in \"deciders\"\n" P
		     "4:5: error: \"by\" is for decide\n");
	RULE_TELLS("decide: a.example", P "3:5: error: \"decide\" needs \"by\": the name of a decider\n");
	RULE_TELLS("decide: a.example\n    by:", P "4:5: error: \"by\" has no value\n");
	RULE_TELLS("decide: a.example\n    by: [x]", P "4:9: error: \"by\" takes one value, not a list\n");
	tells("version: 1\nrules:\n  - decide: a.example\n    by: gard\ndeciders: {guard: {socket: /x}}\n",
	      P "4:9: error: unknown decider \"gard\"; did you mean \"guard\"?\n");
}

static void levels(void **state)
{
	(void)state;
	RULE_LOADS("allow: a.example\n    for: SECRET");
	assert_int_equal(rule()->levels, 1 << LEVEL_SECRET);
	RULE_LOADS("allow: a.example\n    for: [PUBLIC, CONFIDENTIAL, PUBLIC]");
	assert_int_equal(rule()->levels, 1 << LEVEL_PUBLIC | 1 << LEVEL_CONFIDENTIAL);
	RULE_TELLS("allow: a.example\n    for: []", P "4:10: error: the list of \"for\" is empty\n");
	RULE_TELLS("allow: a.example\n    for:", P "4:5: error: \"for\" has no value\n");
	RULE_TELLS("allow: a.example\n    for: {}",
		   P "4:10: error: \"for\" takes a value or a list of them, not a mapping\n");
	RULE_TELLS("allow: a.example\n    for: [Secret, TOP, ~]",
		   P "4:11: error: no level \"Secret\"; did you mean \"SECRET\"?\n" P
		     "4:19: error: no level \"TOP\"; there are PUBLIC, INTERNAL, CONFIDENTIAL and SECRET\n" P
		     "4:24: error: an entry of \"for\" is empty\n");
}

static void a_deny_that_ends_too_low(void **state)
{
	(void)state;
	RULE_TELLS("deny: a.example\n    for: PUBLIC",
		   P "4:5: warning: PUBLIC is full, where rules do not hold; see \"full\"\n" P
		     "4:5: warning: denied for PUBLIC, but not for CONFIDENTIAL, which is higher\n");
	RULE_TELLS("deny: a.example\n    for: [PUBLIC, SECRET]",
		   P "4:5: warning: PUBLIC is full, where rules do not hold; see \"full\"\n" P
		     "4:5: warning: denied for PUBLIC, but not for CONFIDENTIAL, which is higher\n");
	RULE_LOADS("deny: a.example\n    for: CONFIDENTIAL"); /* SECRET is closed */
	RULE_TELLS("deny: a.example\n    for: [PUBLIC, CONFIDENTIAL]",
		   P "4:5: warning: PUBLIC is full, where rules do not hold; see \"full\"\n");
	RULE_LOADS("deny: a.example\n    for: SECRET");
	RULE_LOADS("allow: a.example\n    for: PUBLIC");
	tells("version: 1\nlevels: {SECRET: proxied}\nrules:\n  - deny: a.example\n    for: [INTERNAL, CONFIDENTIAL]\n",
	      P "5:5: warning: INTERNAL is full, where rules do not hold; see \"full\"\n" P
		"5:5: warning: denied for INTERNAL, but not for SECRET, which is higher\n");
}

static void texts(void **state)
{
	char text[1024] = "allow: ", name[300];

	(void)state;
	RULE_LOADS("allow: a.example");
	assert_string_equal(rule()->text, "allow: a.example");
	RULE_LOADS("deny: \"*.internal.example.com\"");
	assert_string_equal(rule()->text, "deny: \"*.internal.example.com\"");
	RULE_LOADS("deny: '*.internal.example.com'");
	assert_string_equal(rule()->text, "deny: '*.internal.example.com'");
	RULE_LOADS("ask: [a.example]");
	assert_string_equal(rule()->text, "ask: a.example");
	RULE_LOADS("allow: [a.example, b.example, c.example, d.example]");
	assert_string_equal(rule()->text, "allow: a.example (and 3 more)");
	loads("version: 1\nlists: {llm: [a.example]}\nrules: [allow: \"@llm\"]\n");
	assert_string_equal(rule()->text, "allow: @llm");
	for (unsigned i = 0; i < 240; i++)
		name[i] = i % 60 == 59 ? '.' : 'x';
	strcpy(name + 240, "example");
	snprintf(text, sizeof(text), "allow: [%s, b.example]", name);
	RULE_LOADS(text);
	assert_true(strlen(rule()->text) <= RULE_TEXT_MAX + 16);
	assert_non_null(strstr(rule()->text, "xxx... (and 1 more)"));
}

static void full(void **state)
{
	(void)state;
	loads("version: 1\nlists: {l: [192.0.2.0/24]}\nfull:\n  - allow: 10.0.0.1:22\n  - deny: [10.0.0.0/8, \"@l\"]\n"
	      "  - deny: 198.51.100.0/24/tcp\nrules:\n  - allow: a.example\n");
	assert_int_equal(policy->n_full, 3);
	assert_int_equal(policy->n_rules, 1);
	assert_int_equal(policy->n_patterns, 5);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(policy->full[i].number, i);
	for (unsigned i = 0; i < policy->full[1].n_patterns; i++) {
		const struct pattern *p = &policy->patterns[policy->full[1].pattern + i];

		assert_int_equal(p->rule, 1);
		assert_true(p->protocols == BOTH && p->first_port == 1 && p->last_port == 65535 && !p->inspected);
	}
	assert_int_equal(policy->patterns[policy->full[0].pattern].first_port, 22);
	assert_int_equal(policy->patterns[policy->full[0].pattern].protocols, BOTH);
	assert_int_equal(policy->patterns[policy->full[2].pattern].protocols, PATTERN_TCP);
	assert_string_equal(policy->full[1].text, "deny: 10.0.0.0/8 (and 1 more)");
	loads("version: 1\nfull: [allow: 10.0.0.1:53, deny: 10.0.0.2:1-100]\n");
	/* port 53 is a port like others there, and so is a range around it */
	loads("version: 1\nfull:\n  - allow: 10.0.0.1:1-100\n");
}

static void full_has_less(void **state)
{
	(void)state;
	tells("version: 1\nlists: {l: [b.example]}\nfull:\n  - deny: a.example\n  - deny: \"@l\"\n",
	      P "4:11: error: \"a.example\": in FULL nothing looks at names; only addresses can be refused there\n" P
		"2:13: error: \"b.example\": in FULL nothing looks at names; only addresses can be refused there (used "
		"by "
		"the rule in p.yaml:5)\n");
	tells("version: 1\nfull:\n  - ask: 10.0.0.1\n  - decide: 10.0.0.1\n    by: x\n  - deny: 10.0.0.1\n    for: "
	      "PUBLIC\n"
	      "    methods: GET\n    inspect: true\n  - {}\n  - 10.0.0.1\n  - {dney: 10.0.0.1}\n  - deny:\n",
	      P "3:5: error: \"ask\" cannot be in \"full\"; there are allow and deny\n" P
		"4:5: error: \"decide\" cannot be in \"full\"; there are allow and deny\n" P
		"5:5: error: \"by\" cannot be in \"full\": nothing looks at requests there\n" P
		"8:5: error: \"methods\" cannot be in \"full\": nothing looks at requests there\n" P
		"9:5: error: \"inspect\" cannot be in \"full\": nothing looks at requests there\n" P
		"7:5: error: \"for\" cannot be in \"full\": it holds for every level in FULL\n" P
		"10:5: error: a rule of \"full\" needs allow or deny\n" P
		"11:5: error: a rule is a mapping, as in \"- allow: example.com\"\n" P
		"12:6: error: unknown key \"dney\" in a rule; did you mean \"deny\"?\n" P
		"13:5: error: \"deny\" has no value\n");
	tells("version: 1\nfull:\n  - deny: 10.0.0.0/8/udp\n",
	      P "3:11: error: udp needs a port, as in \":443/udp\", or \":*/udp\" for all\n");
}

static void all_errors_in_one_run(void **state)
{
	char text[8192] = "version: 1\nrules:\n";

	(void)state;
	for (unsigned i = 0; i < 2 * NP_POLICY_PROBLEMS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "  - deny: 10.0.0.1/8\n");
	load_n(text, strlen(text));
	assert_int_equal(found.errors, 2 * NP_POLICY_PROBLEMS);
	assert_int_equal(found.count, NP_POLICY_PROBLEMS);
	for (unsigned i = 0; i < NP_POLICY_PROBLEMS; i++)
		assert_int_equal(found.items[i].line, i + 3);
}

static void lookups(void **state)
{
	(void)state;
	loads("version: 1\nlists: {mail: [a.example, b.example]}\nrules:\n  - allow: [\"@mail\", c.example:25]\n"
	      "    dns: [TXT, MX]\n  - allow: d.example\n    dns: SRV\n    methods: GET\n  - allow: e.example\n");
	assert_int_equal(policy->rules[0].dns, dns_record_bit(ns_t_mx) | dns_record_bit(ns_t_txt));
	assert_int_equal(policy->rules[1].dns, dns_record_bit(ns_t_srv));
	assert_int_equal(policy->rules[2].dns, 0);
	RULE_TELLS("allow: a.example\n    dns: [MX, HTTPS, mx]",
		   P "4:15: error: \"HTTPS\" cannot be looked up; there are MX, SRV and TXT\n" P
		     "4:22: error: \"mx\" cannot be looked up; there are MX, SRV and TXT\n");
	RULE_TELLS("allow: a.example\n    dns: []", P "4:10: error: the list of \"dns\" is empty\n");
	RULE_TELLS("allow: a.example\n    dns: [[MX]]",
		   P "4:11: error: an entry of \"dns\" is one value, not a list\n");
	RULE_TELLS("deny: a.example\n    dns: MX",
		   P "4:5: error: \"dns\" is for allow: nobody is asked about a lookup\n");
	RULE_TELLS("ask: a.example\n    dns: MX",
		   P "4:5: error: \"dns\" is for allow: nobody is asked about a lookup\n");
}

/* What a star stands for would be sent to whoever serves the name. */
static void lookups_need_whole_names(void **state)
{
	(void)state;
	RULE_TELLS("allow: ['*.a.example', b.example, '**']\n    dns: MX", P
		   "3:13: error: \"*.a.example\": \"dns\" needs a whole name: in place of a star a lookup could carry "
		   "anything out\n" P
		   "3:39: error: \"**\": \"dns\" needs a whole name: in place of a star a lookup could carry anything "
		   "out\n");
	RULE_TELLS("allow: 192.0.2.7\n    dns: MX",
		   P "3:12: error: \"192.0.2.7\": \"dns\" is about names, and this is an address\n");
	tells("version: 1\nlists:\n  some: [a.example, \"*.b.example\"]\nrules:\n  - allow: \"@some\"\n    dns: TXT\n",
	      P "3:21: error: \"*.b.example\": \"dns\" needs a whole name: in place of a star a lookup could carry "
		"anything "
		"out (used by the rule in p.yaml:5)\n");
	tells("version: 1\nfull:\n  - deny: 192.0.2.7\n    dns: MX\n",
	      P "4:5: error: \"dns\" cannot be in \"full\": nothing looks at names there\n");
}

static void sessions(void **state)
{
	(void)state;
	loads("version: 1\nrules:\n  - allow: a.example\n    sessions: [alice/build, 'alice/*', '*/ci-*']\n");
	assert_string_equal(policy->rules[0].sessions[2], "*/ci-*");
	assert_null(policy->rules[0].sessions[3]);
	/* The kernel's tables are everybody's: an address cannot be one session's. */
	RULE_TELLS("allow: [a.example, 192.0.2.7]\n    sessions: a/b",
		   P "3:24: error: \"192.0.2.7\": \"sessions\" is about names: addresses are judged by the kernel, "
		     "which knows no sessions\n");
	RULE_TELLS("deny: 10.0.0.0/8\n    sessions: a/b",
		   P "3:11: error: \"10.0.0.0/8\": \"sessions\" is about names: addresses are judged by the kernel, "
		     "which knows no sessions\n");
	tells("version: 1\nfull:\n  - deny: 192.0.2.7\n    sessions: a/b\n",
	      P "4:5: error: \"sessions\" cannot be in \"full\": the kernel decides there, and knows no sessions\n");
	RULE_TELLS("allow: a.example\n    sessions: [alice, 'a/b/c', '/b', 'a/', 'a/**', 'a b/c']",
		   P "4:16: error: \"alice\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n" P
		     "4:23: error: \"a/b/c\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n" P
		     "4:32: error: \"/b\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n" P
		     "4:38: error: \"a/\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n" P
		     "4:44: error: \"a/**\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n" P
		     "4:52: error: \"a b/c\" is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(actions, found_clear),
		cmocka_unit_test_teardown(actions_that_are_none, found_clear),
		cmocka_unit_test_teardown(destinations_of_each_kind, found_clear),
		cmocka_unit_test_teardown(port_53, found_clear),
		cmocka_unit_test_teardown(udp_by_name, found_clear),
		cmocka_unit_test_teardown(metadata, found_clear),
		cmocka_unit_test_teardown(methods, found_clear),
		cmocka_unit_test_teardown(paths, found_clear),
		cmocka_unit_test_teardown(headers, found_clear),
		cmocka_unit_test_teardown(grants, found_clear),
		cmocka_unit_test_teardown(timeouts, found_clear),
		cmocka_unit_test_teardown(keys_that_do_not_go_together, found_clear),
		cmocka_unit_test_teardown(only_http_has_requests, found_clear),
		cmocka_unit_test_teardown(by, found_clear),
		cmocka_unit_test_teardown(levels, found_clear),
		cmocka_unit_test_teardown(a_deny_that_ends_too_low, found_clear),
		cmocka_unit_test_teardown(texts, found_clear),
		cmocka_unit_test_teardown(full, found_clear),
		cmocka_unit_test_teardown(full_has_less, found_clear),
		cmocka_unit_test_teardown(all_errors_in_one_run, found_clear),
		cmocka_unit_test_teardown(lookups, found_clear),
		cmocka_unit_test_teardown(lookups_need_whole_names, found_clear),
		cmocka_unit_test_teardown(sessions, found_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
