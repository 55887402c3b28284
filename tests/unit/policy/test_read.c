/* SPDX-License-Identifier: MIT */
/* Every section but the rules, which test_read_rules.c has: what it means, and each error with its sentence and place. */
#include "policy/read.c"

#include "found.h"
#include "vocab/limits.h"

#define P "p.yaml:"

static void the_shortest(void **state)
{
	(void)state;
	loads("version: 1\n");
	assert_int_equal(policy->n_files, 1);
	assert_string_equal(policy->files[0], "p.yaml");
	assert_memory_equal(&policy->modes, &level_modes_default, sizeof(policy->modes));
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].action, ACTION_DENY);
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].at.line, 0);
	assert_int_equal(policy->n_rules, 0);
	assert_int_equal(policy->n_full, 0);
	assert_int_equal(policy->n_patterns, 0);
	assert_int_equal(policy->n_inspect_ports, 2);
	assert_int_equal(policy->inspect_ports[0], 80);
	assert_int_equal(policy->inspect_ports[1], 443);
	assert_int_equal(policy->n_host_loopback, 0);
	assert_int_equal(policy->n_deciders, 0);
	assert_int_equal(policy->approval.timeout_ms, 10 * 60 * 1000);
	assert_int_equal(policy->approval.hold_ms, 12000);
	assert_false(policy->approval.once);
	assert_int_equal(policy->approval.at.line, 0);
	assert_non_null(policy->names);
	assert_non_null(policy->nets);
	assert_non_null(policy->full_nets);
	loads("version: \"1\"\n");
	loads("{\"version\": 1, \"rules\": [], \"lists\": {}, \"full\": [], \"deciders\": {}, \"levels\": {}, "
	      "\"host_loopback\": [], \"inspect_ports\": [], \"approval\": {}}");
	assert_int_equal(policy->n_inspect_ports, 0);
	loads("\xef\xbb\xbfversion: 1\r\nrules:\r\n  - allow: a.example\r\n");
	assert_int_equal(policy->rules[0].at.line, 3);
	assert_int_equal(policy->rules[0].at.column, 5);
}

static void the_file_as_a_whole(void **state)
{
	(void)state;
	tells("", P "1:1: error: the file is empty; a policy starts with \"version: 1\"\n");
	tells("# nothing\n", P "1:1: error: the file is empty; a policy starts with \"version: 1\"\n");
	tells("nonsense", P "1:1: error: a policy file is a mapping that starts with \"version: 1\"\n");
	tells("- version: 1\n", P "1:1: error: a policy file is a mapping that starts with \"version: 1\"\n");
	tells("rules: []\n", P "1:1: error: \"version: 1\" is missing\n");
	tells("version:\nrulez: []\n", P "1:1: error: \"version\" has no value\n");
	tells("version: 2\nrulez: []\n", P "1:10: error: version \"2\" is not known; this netpawl reads version 1\n");
	tells("version: 01\n", P "1:10: error: version \"01\" is not known; this netpawl reads version 1\n");
	tells("version: [1]\n", P "1:10: error: \"version\" takes one value, not a list\n");
	tells("version: 1\nversion: 1\n", P "2:1: error: the key \"version\" is there twice, first in line 1\n");
	tells("version: 1\nrule: []\nLevels: {}\nx: 1\n",
	      P "2:1: error: unknown key \"rule\" in a policy file; did you mean \"rules\"?\n" P
		"3:1: error: unknown key \"Levels\" in a policy file; did you mean \"levels\"?\n" P
		"4:1: error: unknown key \"x\" in a policy file\n");
	tells("version: 1\n\"\\u00e9\\\"\": 1\n", P "2:1: error: unknown key \"\xc3\xa9\\\"\" in a policy file\n");
	tells("version: 1\nrules:\nlists:\nfull: ~\ninspect_ports: null\n",
	      P "2:1: error: \"rules\" has no value\n" P "3:1: error: \"lists\" has no value\n" P
		"4:1: error: \"full\" has no value\n" P "5:1: error: \"inspect_ports\" has no value\n");
	tells("version: 1\nrules: {}\nlists: []\nfull: 1\n",
	      P "3:8: error: \"lists\" takes a mapping of names to lists of destinations\n" P
		"2:8: error: \"rules\" takes a list of rules\n" P "4:7: error: \"full\" takes a list of rules\n");
	tells("version: 1\nlevels: 1\ndefault: [deny]\ninspect_ports: 80\nhost_loopback: {}\ndeciders: []\napproval: "
	      "x\n",
	      P "2:9: error: \"levels\" takes a mapping of levels to modes\n" P
		"3:10: error: \"default\" takes one value, not a list\n" P
		"4:16: error: \"inspect_ports\" takes a list of ports\n" P
		"5:16: error: \"host_loopback\" takes a list of ports\n" P
		"7:11: error: \"approval\" takes a mapping of \"timeout\", \"hold\" and \"remember\"\n" P
		"6:11: error: \"deciders\" takes a mapping of names to deciders\n");
	tells("version: 1\ninclude: more.yaml\n", P
	      "2:10: error: cannot read \"more.yaml\": this policy was not read from a file, so it can include none\n");
}

static void levels(void **state)
{
	(void)state;
	loads("version: 1\nlevels:\n  PUBLIC: full\n  INTERNAL: Proxied\n  CONFIDENTIAL: proxied\n  SECRET: NONE\n");
	assert_int_equal(policy->modes.of[LEVEL_INTERNAL], NP_PROXIED);
	assert_int_equal(policy->modes.of[LEVEL_SECRET], NP_NONE);
	loads("version: 1\nlevels: {INTERNAL: proxied}\n");
	assert_int_equal(policy->modes.of[LEVEL_PUBLIC], NP_FULL);
	assert_int_equal(policy->modes.of[LEVEL_INTERNAL], NP_PROXIED);
	tells("version: 1\nlevels:\n  public: full\n  TOP: none\n  SECRET: open\n  INTERNAL: proxyed\n  "
	      "CONFIDENTIAL:\n",
	      P "3:3: error: unknown key \"public\" in levels; did you mean \"PUBLIC\"?\n" P
		"4:3: error: unknown key \"TOP\" in levels\n" P "7:3: error: \"CONFIDENTIAL\" has no value\n" P
		"6:13: error: no mode \"proxyed\"; did you mean \"proxied\"?\n" P
		"5:11: error: no mode \"open\"; there are full, proxied and none\n");
	tells("version: 1\nlevels: {SECRET: full}\n",
	      P "2:18: error: level SECRET may not mean a looser mode (FULL) than level CONFIDENTIAL below it "
		"(PROXIED)\n");
	/* The one below was made stricter, and this one was not written. */
	tells("version: 1\nlevels: {PUBLIC: proxied}\n",
	      P "2:18: error: level INTERNAL may not mean a looser mode (FULL) than level PUBLIC below it (PROXIED)\n");
	tells("version: 1\nlevels: {SECRET: [none]}\n", P "2:18: error: \"SECRET\" takes one value, not a list\n");
	tells("version: 1\nlevels: {SECRET: none, SECRET: none}\n",
	      P "2:24: error: the key \"SECRET\" is there twice, first in line 2\n");
}

static void fallback(void **state)
{
	(void)state;
	loads("version: 1\ndefault: deny\n");
	assert_int_equal(policy->fallback[LEVEL_SECRET].action, ACTION_DENY);
	assert_int_equal(policy->fallback[LEVEL_SECRET].at.line, 2);
	assert_int_equal(policy->fallback[LEVEL_SECRET].at.column, 1);
	loads("version: 1\ndefault: ask\n");
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].action, ACTION_ASK);
	loads("version: 1\ndefault: allow\n");
	assert_int_equal(policy->fallback[LEVEL_CONFIDENTIAL].action, ACTION_ALLOW);
	tells("version: 1\ndefault: decide\n",
	      P "2:10: error: \"decide\" is no default; there are deny, ask and allow\n");
}

static void fallback_by_level(void **state)
{
	static const enum action two[] = { ACTION_ALLOW, ACTION_ASK, ACTION_ASK, ACTION_DENY };

	(void)state;
	loads("version: 1\ndefault:\n  CONFIDENTIAL: ask\n  PUBLIC: allow\n");
	for (unsigned level = 0; level < LEVEL_COUNT; level++)
		assert_int_equal(policy->fallback[level].action, two[level]);
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].at.line, 4);
	assert_int_equal(policy->fallback[LEVEL_INTERNAL].at.line, 3);
	assert_int_equal(policy->fallback[LEVEL_SECRET].at.line, 0);
	loads("version: 1\ndefault: {}\n");
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].action, ACTION_DENY);
	tells("version: 1\ndefault: {PUBLIC: ask, CONFIDENTIAL: allow}\n",
	      P "2:19: error: level PUBLIC may not have a stricter default (ask) than a level above it (allow)\n");
	tells("version: 1\ndefault: {CONFIDENTAL: ask}\n",
	      P "2:11: error: unknown key \"CONFIDENTAL\" in default; did you mean \"CONFIDENTIAL\"?\n");
	tells("version: 1\ndefault: {SECRET: maybe}\n",
	      P "2:19: error: \"maybe\" is no default; there are deny, ask and allow\n");
	tells("version: 1\ndefault: {SECRET: [ask]}\n", P "2:19: error: \"SECRET\" takes one value, not a list\n");
	tells("version: 1\ndefault: {SECRET: ask}\n",
	      P "2:11: warning: never used: the mode of level SECRET is none\n");
}

static void port_lists(void **state)
{
	char text[4096] = "version: 1\nhost_loopback: [1";

	(void)state;
	loads("version: 1\ninbound: [8080, 53]\n");
	assert_int_equal(policy->n_inbound, 2);
	assert_int_equal(policy->inbound[1], 53);
	tells("version: 1\ninbound: [8080, 8080, 0, 5353/udp]\n",
	      P "2:17: error: port 8080 is in \"inbound\" twice\n" P
		"2:23: error: \"0\" is no port; ports are 1 to 65535\n" P
		"2:26: error: \"5353/udp\" is no port; ports are 1 to 65535\n");
	loads("version: 1\ninspect_ports: [80, \"8080\"]\nhost_loopback: [11434, 54, 65535]\n");
	assert_int_equal(policy->n_inspect_ports, 2);
	assert_int_equal(policy->inspect_ports[1], 8080);
	assert_int_equal(policy->n_host_loopback, 3);
	assert_int_equal(policy->host_loopback[2], 65535);
	tells("version: 1\nhost_loopback: [53]\n",
	      P "2:17: warning: port 53 belongs to the DNS gate: this opens nothing in PROXIED\n");
	tells("version: 1\nhost_loopback: [0, 65536, x, -1, 080, 0x50, 80.5, 99999999999]\n",
	      P "2:17: error: \"0\" is no port; ports are 1 to 65535\n" P
		"2:20: error: \"65536\" is no port; ports are 1 to 65535\n" P
		"2:27: error: \"x\" is no port; ports are 1 to 65535\n" P
		"2:30: error: \"-1\" is no port; ports are 1 to 65535\n" P
		"2:34: error: \"080\" is no port; ports are 1 to 65535\n" P
		"2:39: error: \"0x50\" is no port; ports are 1 to 65535\n" P
		"2:45: error: \"80.5\" is no port; ports are 1 to 65535\n" P
		"2:51: error: \"99999999999\" is no port; ports are 1 to 65535\n");
	tells("version: 1\ninspect_ports: [80, 443, 80, 53]\nhost_loopback: [1, 1, [2], ~]\n",
	      P "2:26: error: port 80 is in \"inspect_ports\" twice\n" P
		"2:30: error: port 53 belongs to the DNS gate and cannot be inspected as HTTP\n" P
		"3:20: error: port 1 is in \"host_loopback\" twice\n" P
		"3:23: error: an entry of \"host_loopback\" is one value, not a list\n" P
		"3:28: error: an entry of \"host_loopback\" is empty\n");
	tells("version: 1\ninspect_ports: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]\n",
	      P "2:56: error: more than 16 ports in \"inspect_ports\"\n");
	for (unsigned i = 1; i < NP_HOST_PORTS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%u", 1000 + i);
	strcat(text, "]\n");
	loads(text);
	assert_int_equal(policy->n_host_loopback, NP_HOST_PORTS_MAX);
	strcpy(strchr(text, ']'), ",300]\n");
	load_n(text, strlen(text));
	assert_string_equal(found.items[0].text, "more than 256 ports in \"host_loopback\"");
}

static void approval(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "1ms", 1 }, { "5s", 5000 }, { "10m", 600000 }, { "24h", 86400000 }, { "86400000ms", 86400000 } };
	static const char *const bad[] = { "0s",
					   "5",
					   "s",
					   "5 s",
					   "25h",
					   "86400001ms",
					   "-1s",
					   "1.5s",
					   "5S",
					   "5d",
					   "999999999h",
					   "9999999999s",
					   "18446744073709551616ms" };
	char text[128], line[256];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "version: 1\napproval: {timeout: %s, remember: session}\n", good[i].text);
		loads(text);
		assert_int_equal(policy->approval.timeout_ms, good[i].ms);
		assert_false(policy->approval.once);
		assert_int_equal(policy->approval.at.line, 2);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "version: 1\napproval: {timeout: %s}\n", bad[i]);
		snprintf(line, sizeof(line),
			 P "2:21: error: \"%s\" is no time from 1ms to 24h; write a number and ms, s, m or h, as in "
			   "\"5s\"\n",
			 bad[i]);
		tells(text, line);
	}
	loads("version: 1\napproval: {remember: once, hold: 90s}\n");
	assert_true(policy->approval.once);
	assert_int_equal(policy->approval.hold_ms, 90000);
	tells("version: 1\napproval: {hold: 1h}\n", P "2:12: error: no client waits for longer than 10 minutes\n");
	tells("version: 1\napproval: {remember: always, timout: 5s, timeout: [1s]}\n",
	      P "2:30: error: unknown key \"timout\" in approval; did you mean \"timeout\"?\n" P
		"2:51: error: \"timeout\" takes one value, not a list\n" P
		"2:22: error: \"always\" cannot be remembered; there are once and session\n");
}

static void deciders(void **state)
{
	char text[8192] = "version: 1\ndeciders:\n", path[110];

	(void)state;
	loads("version: 1\ndeciders:\n  guard: {command: [/usr/bin/guard, --fast, \"a b\"]}\n"
	      "  other-1: {socket: /run/guard.sock, timeout: 200ms}\n");
	assert_int_equal(policy->n_deciders, 2);
	assert_string_equal(policy->deciders[0].name, "guard");
	assert_string_equal(policy->deciders[0].command[0], "/usr/bin/guard");
	assert_string_equal(policy->deciders[0].command[2], "a b");
	assert_null(policy->deciders[0].command[3]);
	assert_null(policy->deciders[0].socket);
	assert_int_equal(policy->deciders[0].timeout_ms, 5000);
	assert_int_equal(policy->deciders[0].at.line, 3);
	assert_string_equal(policy->deciders[1].socket, "/run/guard.sock");
	assert_null(policy->deciders[1].command);
	assert_int_equal(policy->deciders[1].timeout_ms, 200);
	tells("version: 1\ndeciders:\n  a: {}\n  b: {command: [/x], socket: /y}\n  c: {command: guard}\n"
	      "  d: {command: [guard]}\n  e: {socket: run/x}\n  F: {socket: /x}\n  g: /x\n  h:\n  i: {command: []}\n"
	      "  j: {comand: [/x]}\n  k: {command: [/x, [y], \"\"]}\n",
	      P "3:3: error: decider \"a\" needs a \"command\" or a \"socket\"\n" P
		"4:22: error: decider \"b\" has both a command and a socket; it needs one of them\n" P
		"5:16: error: \"command\" takes a list: the program and its arguments\n" P
		"6:17: error: the program needs its whole path, from \"/\"\n" P
		"7:15: error: the socket \"run/x\" needs its whole path, from \"/\"\n" P
		"8:3: error: \"F\" is no name for a decider: 1 to 64 of a-z, 0-9, \"_\" and \"-\"\n" P
		"9:6: error: decider \"g\" takes a mapping with \"command\" or \"socket\"\n" P
		"10:5: error: decider \"h\" takes a mapping with \"command\" or \"socket\"\n" P
		"11:16: error: \"command\" takes a list: the program and its arguments\n" P
		"12:7: error: unknown key \"comand\" in a decider; did you mean \"command\"?\n" P
		"13:21: error: an entry of \"command\" is one value, not a list\n" P
		"13:26: error: an entry of \"command\" is empty\n");
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	snprintf(text, sizeof(text), "version: 1\ndeciders: {a: {socket: %.107s}}\n", path);
	loads(text);
	snprintf(text, sizeof(text), "version: 1\ndeciders: {a: {socket: %.108s}}\n", path);
	tells(text, P "2:24: error: the path of a unix socket has at most 107 bytes\n");
	strcpy(text, "version: 1\ndeciders:\n");
	for (unsigned i = 0; i < NP_POLICY_DECIDERS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "  d%u: {socket: /x}\n", i);
	loads(text);
	strcat(text, "  more: {socket: /x}\n");
	tells(text, P "67:3: error: more than 64 deciders\n");
	strcpy(text, "version: 1\ndeciders: {a: {command: [/x");
	for (unsigned i = 1; i < NP_RULE_WORDS; i++)
		strcat(text, ", y");
	strcat(text, "]}}\n");
	loads(text);
	strcpy(strchr(text, ']'), ", z]}}\n");
	tells(text, P "2:25: error: a command of more than 256 words\n");
}

static void lists(void **state)
{
	(void)state;
	loads("version: 1\nlists:\n  llm:\n    - api.a.example\n    - \"b.example:8443\"\n  more: [\"@llm\", "
	      "192.0.2.0/24]\n"
	      "rules:\n  - allow: [\"@more\", c.example]\n    for: CONFIDENTIAL\n  - deny: \"@llm\"\n");
	assert_int_equal(policy->n_rules, 2);
	assert_int_equal(policy->n_patterns, 6);
	assert_int_equal(policy->rules[0].pattern, 0);
	assert_int_equal(policy->rules[0].n_patterns, 4);
	assert_int_equal(policy->rules[1].pattern, 4);
	assert_int_equal(policy->rules[1].n_patterns, 2);
	assert_string_equal(policy->patterns[0].name, "api.a.example");
	assert_true(policy->patterns[0].inspected);
	assert_int_equal(policy->patterns[0].at.line, 4);
	assert_int_equal(policy->patterns[0].at.column, 7);
	assert_int_equal(policy->patterns[0].rule, 0);
	assert_int_equal(policy->patterns[1].first_port, 8443);
	assert_int_equal(policy->patterns[1].protocols, PATTERN_TCP);
	assert_int_equal(policy->patterns[2].kind, PATTERN_NET);
	assert_int_equal(policy->patterns[2].at.line, 6);
	assert_string_equal(policy->patterns[3].name, "c.example");
	assert_int_equal(policy->patterns[3].at.line, 8);
	/* The same entry in a deny means more. */
	assert_string_equal(policy->patterns[4].name, "api.a.example");
	assert_false(policy->patterns[4].inspected);
	assert_int_equal(policy->patterns[4].last_port, 65535);
	assert_int_equal(policy->patterns[4].rule, 1);
	assert_int_equal(policy->patterns[5].protocols, PATTERN_TCP | PATTERN_UDP);
}

static void bad_lists(void **state)
{
	char text[256], name[66];

	(void)state;
	tells("version: 1\nlists:\n  Bad: [a.example]\n  b c: [a.example]\n  d:\n  e: a.example\n  f: []\n  g: {}\n"
	      "  h: [a.example, [b], ~, a b, \"@nope\", \"@f:443\", \"@\"]\nrules:\n  - allow: \"@g\"\n",
	      P "3:3: error: \"Bad\" is no name for a list: 1 to 64 of a-z, 0-9, \"_\" and \"-\"\n" P
		"4:3: error: \"b c\" is no name for a list: 1 to 64 of a-z, 0-9, \"_\" and \"-\"\n" P
		"5:3: error: list \"d\" has no value\n" P "6:6: error: list \"e\" takes a list of destinations\n" P
		"7:6: error: list \"f\" is empty\n" P "8:6: error: list \"g\" needs \"hosts\"\n" P
		"9:18: error: an entry of \"h\" is one value, not a list\n" P
		"9:23: error: an entry of \"h\" is empty\n" P "9:26: error: \"a b\" is no host name\n" P
		"9:31: error: unknown list \"@nope\"\n" P
		"9:40: error: \"@f:443\": a list takes no port; write ports in the list\n" P
		"9:50: error: unknown list \"@\"\n");
	tells("version: 1\nlists: {llm: [a.example], a: [b.example]}\nrules:\n  - allow: [\"@lm\", \"@LLM\", "
	      "\"@llm/tcp\"]\n",
	      P "4:13: error: unknown list \"@lm\"; did you mean \"@llm\"?\n" P
		"4:20: error: unknown list \"@LLM\"; did you mean \"@llm\"?\n" P
		"4:28: error: \"@llm/tcp\": a list takes no port; write ports in the list\n");
	tells("version: 1\nlists: {a: [a.example], a: [b.example]}\nrules: [allow: \"@a\"]\n",
	      P "2:25: error: the key \"a\" is there twice, first in line 2\n");
	memset(name, 'x', 65);
	name[65] = '\0';
	snprintf(text, sizeof(text), "version: 1\nlists: {%s: [a.example]}\nrules: [allow: \"@%s\"]\n", name + 1,
		 name + 1);
	loads(text);
	snprintf(text, sizeof(text), "version: 1\nlists: {%s: [a.example]}\n", name);
	load_n(text, strlen(text));
	assert_non_null(strstr(found.items[0].text, "is no name for a list"));
}

static void unused_lists(void **state)
{
	(void)state;
	tells("version: 1\nlists:\n  a: [\"@b\"]\n  b: [a.example]\n  c: [\"@d\"]\n  d: [d.example]\nrules: [allow: "
	      "\"@a\"]\n",
	      P "5:3: warning: list \"c\" is never used\n" P "6:3: warning: list \"d\" is never used\n");
	/* full: counts */
	loads("version: 1\nlists: {a: [10.0.0.0/8]}\nfull: [deny: \"@a\"]\n");
	/* Who knows what the rule was meant to use. */
	tells("version: 1\nlists: {a: [a.example]}\nrules: [allow: \"@zzz\"]\n",
	      P "3:16: error: unknown list \"@zzz\"\n");
}

static void lists_in_circles(void **state)
{
	char text[2048] = "version: 1\nlists:\n";

	(void)state;
	tells("version: 1\nlists: {a: [\"@a\"]}\nrules: [allow: \"@a\"]\n", P "2:13: error: list \"a\" holds itself\n");
	tells("version: 1\nlists:\n  a: [x.example, \"@b\"]\n  b: [\"@c\"]\n  c: [y.example, \"@a\"]\nrules: [allow: "
	      "\"@b\"]\n",
	      P "5:18: error: list \"a\" holds itself by way of list \"c\"\n");
	/* Depth: eight lists may hold each other, nine may not. */
	for (unsigned i = 1; i < NP_POLICY_DEPTH; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "  l%u: [\"@l%u\"]\n", i, i + 1);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "  l%u: [x.example]\nrules: [allow: \"@l1\"]\n",
		 NP_POLICY_DEPTH);
	loads(text);
	assert_int_equal(policy->n_patterns, 1);
	*strstr(text, "rules") = '\0';
	strcat(text, "  l0: [\"@l1\"]\n  k: [\"@l0\"]\nrules: [allow: \"@l0\"]\n");
	tells(text, P "11:3: error: lists in lists, more than 8 deep\n");
}

static void notices(void **state)
{
	(void)state;
	loads("version: 1\n");
	assert_null(policy->notices[NP_PROXIED]);
	loads("version: 1\nnotices:\n  proxied: >-\n    {cause}.\n    Use {allowed}.\n  none: \"over\"\n");
	assert_string_equal(policy->notices[NP_PROXIED], "{cause}. Use {allowed}.");
	assert_string_equal(policy->notices[NP_NONE], "over");
	tells("version: 1\nnotices: {full: x, nnoe: x, none: [x], proxied: }\n",
	      P "2:11: error: unknown key \"full\" in notices\n" P
		"2:20: error: unknown key \"nnoe\" in notices; did you mean \"none\"?\n" P
		"2:40: error: \"proxied\" has no value\n" P "2:35: error: \"none\" takes one value, not a list\n");
	tells("version: 1\nnotices:\n  proxied: go to {place}\n  none: \"a } b\"\n",
	      P "3:12: error: nothing is called \"place\"; there are {session}, {cause}, {dataset}, {reason}, {level}, "
		"{mode} and {allowed}\n" P
		"4:9: error: a \"}\" without its other half; for the brace itself write it twice\n");
	tells("version: 1\nnotices: none\n", P "2:10: error: \"notices\" takes a mapping of modes to texts\n");
	/* No line breaks: one notice is one line wherever it is shown. */
	tells("version: 1\nnotices:\n  none: |\n    a\n    b\n",
	      P "3:9: error: \"a\\u000ab\\u000a\" holds a character that does not show (U+000A)\n");
}

static void quiet(void **state)
{
	(void)state;
	loads("version: 1\n"
	      "lists:\n"
	      "  a: {hosts: [a.example, 192.0.2.0/24], quiet: true}\n"
	      "  b: {hosts: [b.example]}\n"
	      "  c: [c.example, \"@a\"]\n"
	      "rules:\n"
	      "- deny: [\"@b\", d.example]\n"
	      "  quiet: true\n"
	      "- deny: \"@c\"\n");
	assert_true(policy->rules[0].quiet && !policy->rules[1].quiet);
	assert_string_equal(policy->patterns[0].list, "@b");
	assert_false(policy->patterns[0].quiet);
	assert_null(policy->patterns[1].list);
	assert_string_equal(policy->patterns[2].list, "@c");
	assert_false(policy->patterns[2].quiet);
	assert_string_equal(policy->patterns[3].list, "@a");
	assert_true(policy->patterns[3].quiet && policy->patterns[4].quiet);
	tells("version: 1\nrules:\n- allow: a.example\n  quiet: true\n", P "4:3: error: \"quiet\" is for deny\n");
	tells("version: 1\nrules:\n- deny: a.example\n  quiet: maybe\n",
	      P "4:10: error: \"quiet\" is true or false, not \"maybe\"\n");
	tells("version: 1\nfull:\n- deny: 192.0.2.1\n  quiet: true\n",
	      P "4:3: error: \"quiet\" cannot be in \"full\"; a list of its own can be quiet\n");
	tells("version: 1\nlists: {a: {hosts: [a.example], quiet: true}}\nrules:\n- ask: \"@a\"\n",
	      P "4:3: error: list \"a\" is quiet, and so it is for deny\n");
	tells("version: 1\nlists: {a: {quiet: true}}\n", P "2:12: error: list \"a\" needs \"hosts\"\n");
	tells("version: 1\nlists: {a: {hosts: []}}\n", P "2:20: error: list \"a\" is empty\n");
	tells("version: 1\nlists: {a: {hosts: a.example}}\n",
	      P "2:20: error: list \"a\" takes a list of destinations\n");
	tells("version: 1\nlists: {a: {hosts: [a.example], quite: true}}\n",
	      P "2:33: error: unknown key \"quite\" in a list; did you mean \"quiet\"?\n");
}

static void shipped(void **state)
{
	char hash[POLICY_HASH_SIZE];

	(void)state;
	loads("version: 1\nrules:\n- allow: \"@llm\"\n");
	assert_int_equal(policy->n_files, 2);
	assert_string_equal(policy->patterns[0].list, "@llm");
	assert_string_equal(policy->files[policy->patterns[0].at.file], "shipped/lists.yaml");
	assert_true(policy->n_patterns > 5);
	memcpy(hash, policy->hash, sizeof(hash));
	/* By way of another list; a list of the author's own takes its place, and nothing of it is in the policy then. */
	loads("version: 1\nlists: {mine: [\"@llm\"]}\nrules:\n- allow: \"@mine\"\n");
	assert_string_equal(policy->patterns[0].list, "@llm");
	loads("version: 1\nlists: {llm: [own.example]}\nrules:\n- allow: \"@llm\"\n");
	assert_int_equal(policy->n_patterns, 1);
	assert_int_equal(policy->n_files, 1);
	assert_string_not_equal(policy->hash, hash);
	tells("version: 1\nrules:\n- allow: \"@lllm\"\n", P "3:10: error: unknown list \"@lllm\"\n");
}

static void containers(void **state)
{
	(void)state;
	loads("version: 1\n");
	assert_string_equal(policy->unknown_containers, UNKNOWN_IGNORE);
	loads("version: 1\ncontainers: {unknown: refuse}\n");
	assert_string_equal(policy->unknown_containers, UNKNOWN_REFUSE);
	loads("version: 1\ncontainers:\n  unknown: pods/default\n");
	assert_string_equal(policy->unknown_containers, "pods/default");
	tells("version: 1\ncontainers: {unknown: pods}\n",
	      P "2:23: error: \"pods\" for \"unknown\": there are ignore, refuse, and a session as USER/SESSION\n");
	tells("version: 1\ncontainers: {unknown: ../x}\n",
	      P "2:23: error: \"../x\" for \"unknown\": there are ignore, refuse, and a session as USER/SESSION\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_shortest, found_clear),
		cmocka_unit_test_teardown(the_file_as_a_whole, found_clear),
		cmocka_unit_test_teardown(levels, found_clear),
		cmocka_unit_test_teardown(quiet, found_clear),
		cmocka_unit_test_teardown(shipped, found_clear),
		cmocka_unit_test_teardown(fallback, found_clear),
		cmocka_unit_test_teardown(fallback_by_level, found_clear),
		cmocka_unit_test_teardown(port_lists, found_clear),
		cmocka_unit_test_teardown(approval, found_clear),
		cmocka_unit_test_teardown(containers, found_clear),
		cmocka_unit_test_teardown(notices, found_clear),
		cmocka_unit_test_teardown(deciders, found_clear),
		cmocka_unit_test_teardown(lists, found_clear),
		cmocka_unit_test_teardown(bad_lists, found_clear),
		cmocka_unit_test_teardown(unused_lists, found_clear),
		cmocka_unit_test_teardown(lists_in_circles, found_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
