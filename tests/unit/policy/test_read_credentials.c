/* SPDX-License-Identifier: MIT */
/* credentials: what may be written, and which requests of whom one is for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/credential.c"

#include "found.h"
#include "vocab/limits.h"

#define P "p.yaml:"

/* A policy with one credential, whose keys are in line 3 from column 7 on. */
static const char *one(const char *keys)
{
	static char text[8192];

	snprintf(text, sizeof(text),
		 "version: 1\ncredentials:\n  a: {%s}\nrules:\n- allow: [.example, \"b.example:8443\"]\n"
		 "inspect_ports: [80, 443, 8443]\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\n",
		 keys);
	return text;
}

static const struct credential *read_one(const char *keys)
{
	loads(one(keys));
	assert_int_equal(policy->n_credentials, 1);
	return &policy->credentials[0];
}

static void refused(const char *keys, const char *words)
{
	load_n(one(keys), strlen(one(keys)));
	assert_null(policy);
	if (!strstr(found_join(), words))
		fail_msg("%s: %s is not in: %s", keys, words, found_join());
}

static void test_defaults(void **state)
{
	const struct credential *a = read_one("source: {env: A}, for: b.example");

	(void)state;
	assert_int_equal(a->source.kind, SOURCE_ENV);
	assert_int_equal(a->n_slots, 1);
	assert_int_equal(a->slots[0].kind, SLOT_BEARER);
	assert_int_equal(a->levels, (1u << LEVEL_COUNT) - 1);
	assert_int_equal(a->classes, CREDENTIAL_READ_ONLY | CREDENTIAL_WRITE);
	assert_int_equal(a->echo, ECHO_IS_SCRUBBED);
	assert_int_equal(a->on_leak, CREDENTIAL_NO_RAISE);
	assert_false(a->always);
	assert_string_equal(a->like, "netpawl_{32}");
	assert_null(a->sessions);
}

static void test_sources(void **state)
{
	const struct credential *a;

	(void)state;
	a = read_one("source: {command: [/bin/x, y], ttl: 30m}, for: b.example");
	assert_int_equal(a->source.ttl_ms, 1800000);
	assert_string_equal(a->source.command[1], "y");
	assert_int_equal(read_one("source: {systemd: t}, for: b.example")->source.kind, SOURCE_SYSTEMD);
	assert_int_equal(read_one("source: {file: /f}, for: b.example")->source.kind, SOURCE_FILE);
	refused("for: b.example", "needs a \"source\"");
	refused("source: {}", "needs one of");
	refused("source: {env: A, file: /f}", "is one of");
	refused("source: {systemd: ../t}", "LoadCredential=");
	refused("source: {command: [/bin/x], ttl: 10ms}", "1s at least");
	refused("source: {value: x}", "value");
}

/* Who writes the secret itself where its name belongs does not find it in an error, which logs and answers of the API have. */
static void test_what_may_be_a_value_is_not_repeated(void **state)
{
	static const char *const sources[] = { "{file: ghp_S3cret}",	  "{env: ghp-S3cret}",
					       "{systemd: /ghp_S3cret}",  "ghp_S3cret",
					       "{value: ghp_S3cret}",	  "{command: ghp_S3cret}",
					       "{command: [ghp_S3cret]}", "[ghp_S3cret]",
					       "{file: [ghp_S3cret]}",	  "{env: {ghp: ghp_S3cret}}" };
	char keys[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		snprintf(keys, sizeof(keys), "source: %s, for: b.example", sources[i]);
		refused(keys, P "3:");
		if (strstr(found_join(), "S3cret"))
			fail_msg("%s", found_join());
	}
}

static void test_places(void **state)
{
	const struct credential *a;

	(void)state;
	a = read_one("source: {env: A}, for: b.example, as: [bearer, {basic: u}, {header: X-Key}, {query: k}, path, "
		     "form, json, websocket]");
	assert_int_equal(a->n_slots, 8);
	assert_string_equal(a->slots[2].name, "x-key");
	a = read_one("source: {env: A}, for: b.example, as: {sigv4: {service: s3, region: eu-test-1}}");
	assert_int_equal(a->slots[0].kind, SLOT_SIGV4);
	assert_string_equal(a->slots[0].region, "eu-test-1");
	refused("source: {env: A}, as: cookie", "none of what it may be");
	refused("source: {env: A}, as: {header: Host}", "no credential stands in the header");
	refused("source: {env: A}, as: {header: Content-Length}", "no credential stands in the header");
	refused("source: {env: A}, as: {basic: \"a:b\"}", "a user of Basic");
	refused("source: {env: A}, as: {query: \"a&b\"}", "a parameter");
	refused("source: {env: A}, as: [{sigv4: {service: s3, region: r}}, bearer]", "stands nowhere else");
	refused("source: {env: A}, as: {sigv4: {service: s3}}", "needs \"service\" and \"region\"");
	refused("source: {env: A}, as: []", "empty");
	refused("source: {env: A}, as: json, inject: always", "a place of its own");
	refused("source: {env: A}, placeholder: {like: 'ghp_{4}'}", "too little of it is random");
	refused("source: {env: A}, placeholder: {env: 1X}", "no name of a variable");
	refused("source: {env: A}, echo: maybe", "none of what it may be");
	refused("source: {env: A}, on_leak: lower PUBLIC", "none of what it may be");
	refused("source: {env: A}, scope: [root]", "no class of runs");
}

/* -- which requests ------------------------------------------------------------------------------- */

static struct np_rung rung = { .mode = NP_PROXIED, .level = LEVEL_INTERNAL };

static bool bound(const struct credential *credential, const char *host, uint16_t port, const char *method,
		  const char *path, const char *session)
{
	struct host parsed;
	const struct credential_facts facts = {
		.host = &parsed, .port = port, .method = method, .path = path, .session = session, .rung = rung
	};

	assert_int_equal(host_parse(host, strlen(host), &parsed), 0);
	return credential_is_bound(policy, credential, &facts);
}

static void test_hosts_and_ports(void **state)
{
	const struct credential *a = read_one("source: {env: A}, for: [b.example, \"c.example:8443\"]");

	(void)state;
	assert_true(bound(a, "b.example", 443, "GET", "/", "u/s"));
	assert_false(bound(a, "b.example", 8443, "GET", "/", "u/s"));
	assert_false(bound(a, "b.example", 80, "GET", "/", "u/s"));
	assert_true(bound(a, "c.example", 8443, "GET", "/", "u/s"));
	assert_false(bound(a, "c.example", 443, "GET", "/", "u/s"));
	assert_false(bound(a, "x.b.example", 443, "GET", "/", "u/s"));
	assert_false(bound(a, "192.0.2.1", 443, "GET", "/", "u/s"));
}

static void test_paths_and_methods(void **state)
{
	const struct credential *a =
		read_one("source: {env: A}, for: b.example, paths: [\"/v1/**\"], methods: [GET, POST]");

	(void)state;
	assert_true(bound(a, "b.example", 443, "GET", "/v1/x?y=/v2", "u/s"));
	assert_true(bound(a, "b.example", 443, "POST", "/v1/", "u/s"));
	assert_false(bound(a, "b.example", 443, "POST", "/v2/../v1/x", "u/s"));
	assert_false(bound(a, "b.example", 443, "GET", "/v2/x", "u/s"));
	assert_false(bound(a, "b.example", 443, "GET", "/v1/../v2/x", "u/s"));
	assert_false(bound(a, "b.example", 443, "GET", "/v1/%2e%2e/v2/x", "u/s"));
	assert_false(bound(a, "b.example", 443, "DELETE", "/v1/x", "u/s"));
}

static void test_levels(void **state)
{
	const struct credential *a = read_one("source: {env: A}, for: b.example, levels: [INTERNAL, SECRET]");
	const unsigned wants[][2] = {
		{ LEVEL_PUBLIC, 0 }, { LEVEL_INTERNAL, 1 }, { LEVEL_CONFIDENTIAL, 0 }, { LEVEL_SECRET, 1 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		rung.level = (uint8_t)wants[i][0];
		assert_int_equal(bound(a, "b.example", 443, "GET", "/", "u/s"), wants[i][1]);
		assert_true(credential_is_offered(a, "u/s", &rung)); /* now or later */
	}
	a = read_one("source: {env: A}, for: b.example, levels: INTERNAL");
	rung.level = LEVEL_CONFIDENTIAL;
	assert_false(credential_is_offered(a, "u/s", &rung));
	rung.level = LEVEL_INTERNAL;
	assert_true(credential_is_offered(a, "u/s", &rung));
	rung.mode = NP_NONE; /* whatever the levels say */
	assert_false(bound(a, "b.example", 443, "GET", "/", "u/s"));
	assert_false(credential_is_offered(a, "u/s", &rung));
	rung.mode = NP_PROXIED;
}

static void test_scope(void **state)
{
	const struct credential *a = read_one("source: {env: A}, for: b.example, scope: [\"alice/*\", bob/one]");

	(void)state;
	assert_true(bound(a, "b.example", 443, "GET", "/", "alice/any"));
	assert_true(bound(a, "b.example", 443, "GET", "/", "bob/one"));
	assert_false(bound(a, "b.example", 443, "GET", "/", "bob/two"));
	assert_false(credential_is_offered(a, "bob/two", &rung));
	a = read_one("source: {env: A}, for: b.example, scope: [read_only]");
	assert_false(bound(a, "b.example", 443, "GET", "/", "u/s"));
	rung.flags |= NP_READ_ONLY;
	assert_true(bound(a, "b.example", 443, "GET", "/", "u/s"));
	a = read_one("source: {env: A}, for: b.example, scope: [write, \"alice/*\"]");
	assert_false(bound(a, "b.example", 443, "GET", "/", "alice/x"));
	rung.flags = 0;
	assert_true(bound(a, "b.example", 443, "GET", "/", "alice/x"));
	assert_false(bound(a, "b.example", 443, "GET", "/", "u/s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_what_may_be_a_value_is_not_repeated),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_hosts_and_ports),
		cmocka_unit_test(test_paths_and_methods),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_scope),
	};

	return cmocka_run_group_tests(tests, NULL, found_clear);
}
