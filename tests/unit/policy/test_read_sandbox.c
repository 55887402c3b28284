/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "policy/read_sandbox.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "vocab/limits.h"

static struct policy *load(const char *section, char text[static 256])
{
	_problems_ struct problems problems = { 0 };
	struct policy *policy = NULL;
	char line[PROBLEM_LINE_SIZE] = "";
	char all[4096];
	int r;

	snprintf(all, sizeof(all), "version: 1\nsandbox:\n%s", section);
	r = policy_load_text("p", all, strlen(all), &policy, &problems);
	if (r < 0)
		problems_first(&problems, line);
	snprintf(text, 256, "%.250s", line);
	assert_int_equal(r < 0, line[0] != '\0');
	return policy;
}

static void everything(void **state)
{
	char text[256];
	_policy_ struct policy *policy =
		load("  binds: [/srv/a, '/srv/b:ro', /]\n  memory: 64MiB\n  cpus: 1.5\n  pids: 100\n  timeout: 5m\n"
		     "  output_limit: 10k\n  disk: 1GiB\n",
		     text);
	const struct sandbox_policy *s;

	(void)state;
	assert_non_null(policy);
	s = &policy->sandbox;
	assert_int_equal(s->n_binds, 3);
	assert_string_equal(s->binds[0].path, "/srv/a");
	assert_false(s->binds[0].readonly);
	assert_string_equal(s->binds[1].path, "/srv/b");
	assert_true(s->binds[1].readonly);
	assert_int_equal(s->limits.memory, 64 << 20);
	assert_int_equal(s->limits.cpus, 1500);
	assert_int_equal(s->limits.pids, 100);
	assert_int_equal(s->limits.timeout, 300000);
	assert_int_equal(s->limits.output_limit, 10000);
	assert_int_equal(s->limits.disk, 1 << 30);
}

static void networks(void **state)
{
	static const struct {
		const char *section;
		enum sandbox_network network;
		const char *wrong;
	} cases[] = {
		{ "  network: private\n", NETWORK_PRIVATE, "" },
		{ "  network: shared\n", NETWORK_SHARED, "" },
		{ "  network: nat\n", NETWORK_NAT, "" },
		{ "  network: own\n", 0, "p:3:12: error: \"own\" is no network; there are shared, private" },
		{ "  network: {full: private}\n", 0, "p:3:12: error: " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		_policy_ struct policy *policy = load(cases[i].section, text);

		assert_int_equal(strncmp(text, cases[i].wrong, strlen(cases[i].wrong)), 0);
		assert_int_equal(!policy, cases[i].wrong[0] != '\0');
		if (policy)
			assert_int_equal(policy->sandbox.network, cases[i].network);
	}
}

/* Sections that take back what the other says. */
static void networks_and_ports(void **state)
{
	static const struct {
		const char *section, *warning;
	} cases[] = {
		{ "  network: nat\ninbound: [8000]\n", "nobody calls sandboxes" },
		{ "  network: nat\nhost_loopback: [9]\ninbound: [8000]\n", "share the host's network" },
		{ "  network: private\nhost_loopback: [9]\ninbound: [8000]\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_problems_ struct problems problems = { 0 };
		_policy_ struct policy *policy = NULL;
		char all[256];

		snprintf(all, sizeof(all), "version: 1\nsandbox:\n%s", cases[i].section);
		assert_int_equal(policy_load_text("p", all, strlen(all), &policy, &problems), 0);
		assert_int_equal(problems.warnings, cases[i].warning != NULL);
		if (cases[i].warning)
			assert_non_null(strstr(problems.items[0].text, cases[i].warning));
	}
}

/* One name everywhere: what it was called once is not known, and the error has the right one. */
static void the_spelling_of_the_option(void **state)
{
	char text[256];
	_policy_ struct policy *policy = load("  output: 10k\n", text);

	(void)state;
	assert_null(policy);
	assert_non_null(strstr(text, "output_limit"));
}

/* One place needs no list, and what comes behind it is no place. */
static void one_bind(void **state)
{
	char text[256];
	_policy_ struct policy *policy = load("  binds: /srv/a\n  memory: 64MiB\n", text);

	(void)state;
	assert_non_null(policy);
	assert_int_equal(policy->sandbox.n_binds, 1);
	assert_int_equal(policy->sandbox.limits.memory, 64u << 20);
}

static void without_it_nothing_is_permitted(void **state)
{
	struct policy *policy = NULL;

	(void)state;
	assert_int_equal(policy_default(&policy), 0);
	assert_int_equal(policy->sandbox.n_binds, 0);
	assert_int_equal(policy->sandbox.limits.memory, 0);
	policy_free(policy);
}

static void wrong_ones(void **state)
{
	static const char *const sections[] = {
		"  binds: [relative]\n",
		"  binds: [/a/]\n",
		"  binds: [/a//b]\n",
		"  binds: [/a/../b]\n",
		"  binds: [/a/.]\n",
		"  binds: ['/a:rw']\n",
		"  binds: ['/a:b:ro']\n",
		"  binds: [':ro']\n",
		"  binds: [[/a]]\n",
		"  binds: {}\n",
		"  binds: []\n",
		"  memory: 1k\n",
		"  memory: lots\n",
		"  cpus: 0\n",
		"  cpus: -1\n",
		"  cpus: 0.001\n",
		"  cpus: 1.\n",
		"  cpus: 1.0001\n",
		"  pids: 0\n",
		"  pids: 5k\n",
		"  timeout: 5\n",
		"  output_limit: 0\n",
		"  memroy: 1GiB\n",
		"  read_only: [a.example]\n",
		"  read_only: ['a.example:5432/tcp']\n",
		"  read_only: ['10.0.0.0/8:53']\n",
		"  read_only: ['10.0.0.1/8']\n",
		"  read_only: [127.0.0.1]\n",
		"  read_only: ['@none']\n",
		"  read_only: [[10.0.0.0/8]]\n",
		"  read_only: []\n",
		"  read_only: {}\n",
		"  - a\n",
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		struct policy *policy = load(sections[i], text);

		if (policy)
			fail_msg("%s was taken", sections[i]);
		assert_non_null(strstr(text, "p:3:"));
	}
}

static void addresses_to_read_from(void **state)
{
	char text[256];
	_policy_ struct policy *policy = load("  read_only: ['10.0.0.0/8:5432/tcp', '@more', 2001:db8::/32]\nlists: "
					      "{more: ['192.0.2.7:9000-9001']}\n",
					      text);
	const struct pattern *p;

	(void)state;
	assert_string_equal(text, "");
	assert_int_equal(policy->read_only.n_patterns, 3);
	assert_int_equal(policy->n_rules, 0);
	p = &policy->patterns[policy->read_only.pattern];
	assert_int_equal(p[0].protocols, PATTERN_TCP);
	assert_int_equal(p[0].first_port, 5432);
	assert_int_equal(p[1].protocols, PATTERN_TCP | PATTERN_UDP);
	assert_int_equal(p[1].last_port, 9001);
	assert_int_equal(p[2].first_port, 1); /* no port written: all of them */
	assert_int_equal(p[2].last_port, 65535);
	assert_false(p[2].inspected);
	assert_string_equal(policy->read_only.text, "read_only: '10.0.0.0/8:5432/tcp' (and 2 more)");
}

static void a_bound(void **state)
{
	char section[2048] = "  binds: [/x", text[256];

	(void)state;
	for (int i = 0; i < NP_BINDS_MAX; i++)
		snprintf(section + strlen(section), 32, ", /d%d", i);
	strcat(section, "]\n");
	assert_null(load(section, text));
	assert_non_null(strstr(text, "more than 32 binds"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(networks),
		cmocka_unit_test(networks_and_ports),
		cmocka_unit_test(the_spelling_of_the_option),
		cmocka_unit_test(one_bind),
		cmocka_unit_test(without_it_nothing_is_permitted),
		cmocka_unit_test(wrong_ones),
		cmocka_unit_test(addresses_to_read_from),
		cmocka_unit_test(a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
