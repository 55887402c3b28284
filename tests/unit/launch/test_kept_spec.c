/* SPDX-License-Identifier: MIT */
/* What a kept sandbox was made with, and what fits into it. */
#include "launch/kept_spec.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct run run;
static struct kept_spec spec;

static void write_down(const struct groups *groups, const char *missing)
{
	FILE *file = tmpfile();

	assert_int_equal(kept_spec_write(fileno(file), &run, groups, missing), 0);
	kept_spec_free(&spec);
	spec = (struct kept_spec){ 0 };
	assert_int_equal(kept_spec_read(fileno(file), "/cg/slice/a.b.1", &spec), 0);
	fclose(file);
}

static bool fits(const char *why)
{
	_buf_ struct buf words = BUF_INIT(4096);
	bool r = kept_spec_fits(&spec, &run, &words);

	if (!r && (!why || !strstr(words.data, why)))
		fail_msg("%s, not %s", words.data, why ? why : "(fits)");
	return r;
}

static void all_of_it(void **state)
{
	struct host_path system[] = { { "/usr", HOST_DIRECTORY, NULL }, { "/bin", HOST_LINK, "usr/bin" } };
	struct groups groups = { .n_v1 = 2, .memory = "/v1/memory/netpawl.x" };

	(void)state;
	strcpy(groups.v1[0].path, "/v1/memory/netpawl.x");
	strcpy(groups.v1[1].path, "/v1/pids/netpawl.x");
	run = (struct run){ .limits = { .memory = 1 << 20, .pids = 5 }, .notices = (char *)"x" };
	run.options.user = "nobody";
	run.options.bind.n = 2;
	run.binds[0] = (struct bind){ "/a", "/b", true, 0, 0 };
	run.binds[1] = (struct bind){ "/c=d", "/e", false, 0, 0 };
	run.host.system = system;
	run.host.n_system = 2;
	write_down(&groups, "--cpus");
	assert_true(spec.limits.memory == 1 << 20 && spec.limits.pids == 5 && !spec.limits.disk);
	assert_string_equal(spec.user, "nobody");
	assert_string_equal(spec.missing, "--cpus");
	assert_true(spec.notices && !spec.trust && spec.n_binds == 2 && spec.n_seen == 1);
	assert_string_equal(spec.binds[1], "/c=d:/e");
	assert_string_equal(spec.seen[0].path, "/usr");
	assert_string_equal(spec.groups.unified, "/cg/slice/a.b.1");
	assert_string_equal(spec.groups.memory, "/v1/memory/netpawl.x");
	assert_true(spec.groups.n_v1 == 2 && spec.groups.v1[0].tasks == -1 && spec.whole);
	assert_false(fits("--cpus could not be set"));
	run.options.best_effort = true;
	assert_true(fits(NULL));
	run.binds[0].readonly = false;
	assert_false(fits("--bind was /a:/b:ro /c=d:/e"));
	run.binds[0].readonly = true;
	run.options.bind.n = 1;
	assert_false(fits("--bind was"));
	run.options.user = NULL;
	assert_false(fits("--user was nobody"));
}

static void other_users(void **state)
{
	struct groups groups = { 0 };

	(void)state;
	run = (struct run){ .identity = { .uid = 2100000007 } };
	write_down(&groups, "");
	assert_true(spec.whole && spec.uid == 2100000007 && fits(NULL));
	run.identity.uid++;
	assert_false(fits("its user was number 2100000007"));
	run.identity.uid = 0;
	assert_false(fits("its user was number 2100000007"));
	write_down(&groups, "");
	assert_true(fits(NULL));
	write_down(NULL, NULL);
	assert_false(spec.whole);
}

static void limits(void **state)
{
	(void)state;
	run = (struct run){ .limits = { .memory = 1000 } };
	write_down(NULL, NULL);
	assert_true(fits(NULL)); /* what the policy wants is there */
	run.limits.memory = 2000;
	assert_true(fits(NULL)); /* it is stricter */
	run.limits.memory = 0;
	assert_true(fits(NULL));
	run.limits.memory = 500;
	assert_false(fits("--memory was 1000 and would have to be 500"));
	run.limits.memory = 2000;
	run.options.memory = "2000";
	assert_false(fits("--memory was 1000")); /* asked for by name: as asked, or not at all */
	run.limits.memory = 1000;
	assert_true(fits(NULL));
	run.limits.cpus = 500; /* a policy that came later */
	assert_false(fits("there was no --cpus"));
	run.limits.timeout = 5;
	run.limits.cpus = 0;
	assert_true(fits(NULL)); /* each run's own */
}

static void strange_notes(void **state)
{
	static const char *const texts[] = { "x",      "x=1", "memory=", "memory=-1", "memory=x",
					     "pids=0", "=",   "group",	 "uid=x",     "whole=2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct kept_spec strange = { 0 };
		FILE *file = tmpfile();

		fprintf(file, "%s\n", texts[i]);
		fflush(file);
		assert_int_equal(kept_spec_read(fileno(file), "/cg", &strange), -EINVAL);
		kept_spec_free(&strange);
		fclose(file);
	}
	run = (struct run){ 0 };
	run.options.bind.n = 1;
	run.binds[0] = (struct bind){ "/a\nuser=root", "/b", true, 0, 0 };
	assert_int_equal(kept_spec_write(-1, &run, NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it),
		cmocka_unit_test(other_users),
		cmocka_unit_test(limits),
		cmocka_unit_test(strange_notes),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	kept_spec_free(&spec);
	return r;
}
