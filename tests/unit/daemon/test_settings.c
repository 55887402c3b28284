/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/settings.c"

/* What it says is not looked at here. */
static int parse(struct options *ret, const char *const *words)
{
	char *argv[16] = { (char *)"netpawld" };
	FILE *before = stderr;
	int argc = 1, r;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	optind = 0;
	opterr = 0;
	stderr = fopen("/dev/null", "w");
	r = options_parse(argc, argv, ret);
	fclose(stderr);
	stderr = before;
	return r;
}
#define PARSE(ret, ...) parse(ret, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void test_defaults(void **state)
{
	const struct keep_limits defaults = KEEP_DEFAULTS;
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o), 0);
	assert_int_equal(o.task, TASK_RUN);
	assert_null(o.policy);
	assert_null(o.data_dir);
	assert_null(o.resolvers);
	assert_string_equal(o.run_dir, "/run/netpawl");
	assert_string_equal(o.state_dir, "/var/lib/netpawl");
	assert_string_equal(o.pin_dir, "/sys/fs/bpf/netpawl");
	assert_string_equal(o.cgroup, "netpawl.slice");
	assert_true(o.inspectors == -1 && o.inspector_uid == 65533 && o.decider_uid == 65532);
	assert_false(o.force || o.verbose);
	assert_memory_equal(&o.events, &defaults, sizeof(defaults));
}

static void test_each_goes_to_its_place(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "--policy", "p", "--run-dir", "/r", "--state-dir=/s", "--data-dir", "/d"), 0);
	assert_string_equal(o.policy, "p");
	assert_string_equal(o.run_dir, "/r");
	assert_string_equal(o.state_dir, "/s");
	assert_string_equal(o.data_dir, "/d");
	assert_int_equal(PARSE(&o, "--pin-dir", "/b", "--cgroup", "c", "--roots", "x", "--resolvers", "1.2.3.4"), 0);
	assert_string_equal(o.pin_dir, "/b");
	assert_string_equal(o.cgroup, "c");
	assert_string_equal(o.roots, "x");
	assert_string_equal(o.resolvers, "1.2.3.4");
	assert_int_equal(PARSE(&o, "--inspectors", "0", "--inspector-uid", "7", "--decider-uid", "4294967294"), 0);
	assert_true(o.inspectors == 0 && o.inspector_uid == 7 && o.decider_uid == 4294967294);
	assert_int_equal(PARSE(&o, "--events-session", "1MiB", "--events-total", "2MiB", "--changes-total", "3MiB",
			       "--journal-size", "4MiB"),
			 0);
	assert_true(o.events.session_bytes == 1 << 20 && o.events.total_bytes == 2 << 20 &&
		    o.events.change_bytes == 3 << 20 && o.events.journal_bytes == 4 << 20);
	assert_int_equal(PARSE(&o, "--events-days", "2", "--changes-days", "3"), 0);
	assert_true(o.events.total_age_us == 2 * 86400000000 && o.events.change_age_us == 3 * 86400000000);
	assert_int_equal(PARSE(&o, "--uninstall", "--force", "--verbose"), 0);
	assert_true(o.task == TASK_UNINSTALL && o.force && o.verbose);
	assert_int_equal(PARSE(&o, "--probe"), 0);
	assert_int_equal(o.task, TASK_PROBE);
}

static void test_what_is_refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "--inspectors", "65" },
		{ "--inspectors", "-1" },
		{ "--inspectors", "" },
		{ "--inspector-uid", "0" },
		{ "--inspector-uid", "root" },
		{ "--decider-uid", "4294967295" },
		{ "--events-session", "10KiB" },
		{ "--events-total", "much" },
		{ "--changes-total", "9999999GiB" },
		{ "--journal-size", "" },
		{ "--events-days", "36501" },
		{ "--changes-days", "1d" },
		{ "--run-dir", "relative" },
		{ "--state-dir", "/a\"b" },
		{ "--pin-dir", "/a\nb" },
		{ "--data-dir", "/a\\b" },
		{ "--cgroup", "../x" },
		{ "--cgroup", "/x" },
		{ "--cgroup", "" },
		{ "--policy", "" },
		{ "--roots", "" },
		{ "--run-dir", "" },
		{ "--state-dir", "" },
		{ "--data-dir", "" },
		{ "--pin-dir", "" },
		{ "--resolvers", "" },
		{ "--resolvers", "foo" },
		{ "--resolvers", "192.0.2.1,foo" },
		{ "--resolvers", "1.2.3.4:99999" },
		{ "--force", "word" },
		{ "--nothing", NULL },
		{ "--policy", NULL },
		{ "word", NULL },
	};
	struct options o = { .inspectors = 12345 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(PARSE(&o, wrong[i][0], wrong[i][1]), 3);
	assert_int_equal(o.inspectors, 12345); /* untouched */
}

static void test_each_option_is_written_out(void **state)
{
	static const char *const wrong[][2] = {
		{ "--unin", NULL },  { "--uninstal", NULL }, { "--pro", NULL },		{ "--verb", NULL },
		{ "--polic", "/p" }, { "--polic=/p", NULL }, { "--roo=--roots", NULL }, { "--roo", "--roots" },
		{ "--vers", NULL },  { "--hel", NULL },
	};
	struct options o = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(PARSE(&o, wrong[i][0], wrong[i][1]), 3);
	assert_int_equal(PARSE(&o, "--roots", "--roots", "--policy=--policy", "--verbose"), 0);
	assert_string_equal(o.roots, "--roots");
	assert_string_equal(o.policy, "--policy");
}

static void test_one_task(void **state)
{
	struct options o = { 0 };

	(void)state;
	assert_int_equal(PARSE(&o, "--probe", "--uninstall"), 3);
	assert_int_equal(PARSE(&o, "--uninstall", "--probe"), 3);
	assert_int_equal(PARSE(&o, "--force"), 3);
	assert_int_equal(PARSE(&o, "--probe", "--force"), 3);
	assert_int_equal(PARSE(&o, "--uninstall", "--uninstall"), 0);
	assert_int_equal(PARSE(&o, "--force", "--uninstall"), 0);
	assert_true(o.task == TASK_UNINSTALL && o.force);
}

static void test_users_are_apart(void **state)
{
	struct options o = { 0 };

	(void)state;
	assert_int_equal(PARSE(&o, "--inspector-uid", "7", "--decider-uid", "7"), 3);
	assert_int_equal(PARSE(&o, "--inspector-uid", "7", "--exporter-uid", "7"), 3);
	assert_int_equal(PARSE(&o, "--decider-uid", "7", "--exporter-uid", "7"), 3);
	assert_int_equal(PARSE(&o, "--inspector-uid", "65532"), 3); /* the decider's, unless it is said */
	assert_int_equal(PARSE(&o, "--inspector-uid", "65532", "--decider-uid", "65533"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),	cmocka_unit_test(test_each_goes_to_its_place),
		cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_each_option_is_written_out),
		cmocka_unit_test(test_one_task),	cmocka_unit_test(test_users_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
