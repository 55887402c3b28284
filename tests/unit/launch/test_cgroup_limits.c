/* SPDX-License-Identifier: MIT */
/* Against a directory that looks like a cgroup of v2; tests/vm has real ones, tests/e2e the groups of a hybrid host. */
#include "launch/cgroup_limits.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char root[] = "/tmp/np-unit-groups-XXXXXX", box[64];
static struct groups groups;
static char problem[GROUPS_PROBLEM_SIZE];

static void put(const char *file, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", box, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void has(const char *file, const char *wanted)
{
	char path[128];
	_free_ char *text = NULL;

	snprintf(path, sizeof(path), "%s/%s", box, file);
	assert_int_equal(fs_read_at(AT_FDCWD, path, 1000, &text), 0);
	assert_string_equal(text, wanted);
}

static void limits_of_v2(void **state)
{
	const struct limits limits = { .memory = 1 << 20, .cpus = 1500, .pids = 7 };

	(void)state;
	put("memory.max", "");
	put("memory.swap.max", "");
	put("pids.max", "");
	put("cpu.max", "");
	assert_int_equal(groups_make(box, &limits, &groups, problem), 0);
	has("memory.max", "1048576");
	has("memory.swap.max", "0");
	has("pids.max", "7");
	has("cpu.max", "150000 100000");
	assert_int_equal(groups.n_v1, 0);
	assert_string_equal(groups.memory, box);
	assert_int_equal(groups_enter(&groups), 0);
	groups_remove(&groups);
}

static void what_was_used(void **state)
{
	const struct limits none = { 0 };
	struct usage usage;

	(void)state;
	put("cpu.stat", "usage_usec 1234\nuser_usec 1000\n");
	put("memory.peak", "");
	assert_int_equal(groups_make(box, &none, &groups, problem), 0);
	put("memory.peak", "4096\n");
	put("memory.events", "low 0\noom 2\noom_kill 1\n");
	groups_usage(&groups, &usage);
	assert_int_equal(usage.cpu_us, 1234);
	assert_int_equal(usage.memory_peak, 4096);
	assert_int_equal(usage.memory_kills, 1);
	put("cgroup.kill", "");
	assert_int_equal(groups_kill(&groups), 0);
	has("cgroup.kill", "1");
	groups_remove(&groups);
}

static void a_limit_that_cannot_be_set(void **state)
{
	static const struct control control = { .option = "--odd", .name = "np-no-such", .probe = "np-no-such.max" };

	(void)state;
	groups.missing[0] = '\0';
	assert_int_equal(control_set(&control, false, &groups, problem), -ENOENT);
	assert_non_null(strstr(problem, "--odd cannot be set: this host has no controller np-no-such; --best-effort"));
	assert_int_equal(control_set(&control, true, &groups, problem), 0);
	assert_int_equal(control_set(&control, true, &groups, problem), 0);
	assert_string_equal(groups.missing, "--odd, --odd");
}

static void words(void **state)
{
	char prefix[FS_PATH_SIZE];

	(void)state;
	assert_true(words_have("rw,cpu,cpuacct", "cpu"));
	assert_true(words_have("cpu", "cpu"));
	assert_false(words_have("cpuset", "cpu"));
	assert_false(words_have("rw,cpuacct", "cpu"));
	assert_false(words_have("", "cpu"));
	snprintf(groups.unified, sizeof(groups.unified), "/sys/fs/cgroup/np.slice/a.b.1");
	assert_int_equal(v1_prefix(&groups, prefix), 0);
	assert_string_equal(prefix, "netpawl.np.slice.");
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(box, sizeof(box), "%s/slice", root);
	if (mkdir(box, 0700) < 0)
		return -1;
	snprintf(box, sizeof(box), "%s/slice/box", root);
	return mkdir(box, 0700);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf -- %s", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_of_v2),
		cmocka_unit_test(what_was_used),
		cmocka_unit_test(a_limit_that_cannot_be_set),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
