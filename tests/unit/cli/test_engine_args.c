/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "cli/engine_args.c"

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

static int count(char *const *words)
{
	int n = 0;

	while (words[n])
		n++;
	return n;
}

/* Is this pair of words in front of the word at end? */
static bool has_pair(char *const *words, const char *end, const char *first, const char *second)
{
	for (int i = 0; words[i + 1] && strcmp(words[i], end) != 0; i++)
		if (!strcmp(words[i], first) && !strcmp(words[i + 1], second))
			return true;
	return false;
}

static void test_what_is_added_and_what_stays(void **state)
{
	char **argv = WORDS("docker", "-H", "unix:///x.sock", "run", "--rm", "-it", "IMAGE", "sh", "-c", "echo run");
	const struct engine_order order = { .session = "alice/demo", .parent = "/np/p", .trust = "/t" };
	int argc = count(argv), verb = engine_verb(argc, argv);
	cleanup(engine_args_free) char **args = engine_args(argc, argv, verb, &order);

	(void)state;
	assert_int_equal(verb, 3);
	assert_non_null(args);
	for (int i = 0; i <= verb; i++)
		assert_string_equal(args[i], argv[i]);
	for (int i = verb + 1; i < argc; i++)
		assert_string_equal(args[count(args) - argc + i], argv[i]);
	assert_true(has_pair(args, "--rm", "--cgroup-parent", "/np/p"));
	assert_true(has_pair(args, "--rm", "--cap-drop", "NET_RAW"));
	assert_true(has_pair(args, "--rm", "--label", "netpawl.dev/session=alice/demo"));
	assert_true(has_pair(args, "--rm", "--volume", "/t:/run/netpawl:ro"));
	assert_true(has_pair(args, "--rm", "--volume", "/t/bundle.pem:/etc/ssl/certs/ca-certificates.crt:ro"));
	assert_true(has_pair(args, "--rm", "--volume", "/t/bundle.pem:/etc/pki/tls/certs/ca-bundle.crt:ro"));
	assert_true(has_pair(args, "--rm", "--volume", "/t/bundle.jks:/etc/ssl/certs/java/cacerts:ro"));
	assert_true(has_pair(args, "--rm", "--env", "SSL_CERT_FILE=/run/netpawl/bundle.pem"));
	assert_true(has_pair(args, "--rm", "--env", "NODE_EXTRA_CA_CERTS=/run/netpawl/authority.pem"));
	assert_false(has_pair(args, "--rm", "--cgroups", "no-conmon"));
}

static void test_bundles_that_are_kept(void **state)
{
	char **argv = WORDS("docker", "run", "IMAGE");
	const struct engine_order order = { .session = "a/b", .parent = "/p", .trust = "/t", .keep_bundles = true };
	cleanup(engine_args_free) char **args = engine_args(3, argv, 1, &order);

	(void)state;
	assert_non_null(args);
	assert_true(has_pair(args, "IMAGE", "--volume", "/t:/run/netpawl:ro"));
	assert_true(has_pair(args, "IMAGE", "--volume", "/t/ca.pem:/usr/local/share/ca-certificates/netpawl.crt:ro"));
	assert_true(has_pair(args, "IMAGE", "--env", "SSL_CERT_FILE=/run/netpawl/bundle.pem"));
	for (char **word = args; *word; word++)
		assert_null(strstr(*word, "/t/bundle."));
}

static void test_podman(void **state)
{
	char **argv = WORDS("podman", "container", "create", "IMAGE");
	const struct engine_order order = { .podman = true, .session = "a/b", .parent = "/p" };
	cleanup(engine_args_free) char **args = engine_args(4, argv, engine_verb(4, argv), &order);

	(void)state;
	assert_non_null(args);
	assert_true(has_pair(args, "IMAGE", "--cgroups", "no-conmon"));
	assert_true(has_pair(args, "IMAGE", "--annotation", "netpawl.dev/session=a/b"));
	for (char **word = args; *word; word++)
		assert_string_not_equal(*word, "--volume"); /* nothing to trust */
}

static void test_verbs(void **state)
{
	(void)state;
	assert_int_equal(engine_verb(2, WORDS("docker", "ps")), -1);
	assert_int_equal(engine_verb(1, WORDS("docker")), -1);
	assert_int_equal(engine_verb(3, WORDS("docker", "create", "run")), 1);
}

static void test_what_leads_out(void **state)
{
	char *const *bad[] = {
		WORDS("docker", "run", "--cgroup-parent", "/x", "IMAGE"),
		WORDS("docker", "run", "--cgroup-parent=/x", "I"),
		WORDS("podman", "run", "--cgroups=disabled", "IMAGE"),
		WORDS("podman", "run", "--pod", "p", "IMAGE"),
		WORDS("podman", "run", "--pod=new:p", "IMAGE"),
		WORDS("docker", "run", "--privileged", "IMAGE"),
		WORDS("docker", "run", "--privileged=true", "IMAGE"),
		WORDS("docker", "run", "--cap-add", "NET_ADMIN", "IMAGE"),
		WORDS("docker", "run", "--cap-add=cap_net_raw", "IMAGE"),
		WORDS("docker", "run", "--cap-add", "all", "IMAGE"),
		WORDS("podman", "run", "--cap-add", "CHOWN,CAP_SYS_ADMIN", "IMAGE"),
	};
	char *const *good[] = {
		WORDS("docker", "run", "--rm", "IMAGE"),
		WORDS("docker", "run", "--cgroupns=private", "IMAGE"),
		WORDS("docker", "run", "--privileged=false", "IMAGE"),
		WORDS("docker", "run", "IMAGE", "--privileged-port", "--podman"),
		WORDS("docker", "run", "--cap-add", "SYS_PTRACE", "--cap-add=CHOWN,NET_BIND_SERVICE,", "IMAGE"),
		WORDS("docker", "run", "--cap-drop", "ALL", "IMAGE", "--cap-add"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(engine_leads_out(count(bad[i]), bad[i], 1));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(engine_leads_out(count(good[i]), good[i], 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_added_and_what_stays),
		cmocka_unit_test(test_bundles_that_are_kept),
		cmocka_unit_test(test_podman),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_what_leads_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
