/* SPDX-License-Identifier: MIT */
#include "session/parents.c"

#include "fake.h"

static struct session_name named(const char *text)
{
	struct session_name name;
	const char *problem;

	assert_int_equal(session_name_parse(text, &name, &problem), 0);
	return name;
}

static void test_names(void **state)
{
	static const char *const texts[] = { "alice/demo", "a-b/c", "a_b/c", "a.b/c", "a/b.c", "a+b@c/d" };
	char names[ARRAY_SIZE(texts)][PARENT_NAME_SIZE], slice[PARENT_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct session_name name = named(texts[i]);
		char path[FS_PATH_SIZE], below[FS_PATH_SIZE];

		parent_name(&name, false, names[i]);
		parent_name(&name, true, slice);
		assert_int_equal(strncmp(names[i], PREFIX, strlen(PREFIX)), 0);
		assert_null(strpbrk(names[i] + strlen(PREFIX), "-@+/"));
		assert_int_equal(strncmp(slice, names[i], strlen(names[i])), 0);
		assert_string_equal(slice + strlen(names[i]), SUFFIX);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(names[i], names[k]);
		assert_int_equal(fs_path(path, "/sys/fs/cgroup/netpawl.slice/%s", names[i]), 0);
		assert_int_equal(fs_path(below, "%s/c0ffee", path), 0);
		assert_true(parent_is(&name, path) && !parent_is(&name, below));
		assert_true(parent_holds(&name, below) && !parent_holds(&name, path));
		assert_int_equal(fs_path(path, "/x/%s", slice), 0);
		assert_true(parent_is(&name, path));
		assert_int_equal(fs_path(path, "/x/%s.slices", names[i]), 0);
		assert_false(parent_is(&name, path));
	}
}

/* Where systemd has a slice of this name: a-b-c.slice is a.slice/a-b.slice/a-b-c.slice (systemd.slice(5)). */
static void systemd_path(const char *name, char ret[static FS_PATH_SIZE])
{
	size_t len = 0;

	for (const char *dash = name; (dash = strchr(dash, '-')); dash++)
		len += (size_t)snprintf(ret + len, FS_PATH_SIZE - len, "/%.*s.slice", (int)(dash - name), name);
	snprintf(ret + len, FS_PATH_SIZE - len, "/%s", name);
}

static void test_a_slice_is_where_systemd_has_it(void **state)
{
	static const char *const texts[] = { "alice/demo", "a-b/c-d-e", "a.b/c.slice", "a+b@c/d", "u/netpawl-x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct session_name name = named(texts[i]);
		char slice[PARENT_NAME_SIZE], path[FS_PATH_SIZE], ours[FS_PATH_SIZE];

		parent_name(&name, true, slice);
		systemd_path(slice, path);
		assert_int_equal(fs_path(ours, "/netpawl.slice/%s", slice), 0);
		assert_string_equal(path, ours);
	}
}

static void test_the_longest_name_fits(void **state)
{
	char text[NP_SESSION_MAX + 1], name[PARENT_NAME_SIZE];
	struct session_name session;

	(void)state;
	memset(text, 'a', NP_SESSION_MAX);
	text[NP_NAME_MAX] = '/';
	text[NP_SESSION_MAX] = '\0';
	session = named(text);
	parent_name(&session, true, name);
	assert_string_equal(name + strlen(name) - strlen(SUFFIX), SUFFIX);
	assert_int_equal(strlen(name), strlen(PREFIX) + NP_SESSION_MAX + 1 + 16 + strlen(SUFFIX));
}

static void test_one_of_each_kind(void **state)
{
	const struct sandbox_info *first, *again, *slice;

	(void)state;
	assert_int_equal(service_sandbox_parent(fake.service, "a/b", false, "test", &first, &fake.failure), 0);
	assert_true(first->parent && !first->born && !first->adopted);
	assert_int_equal(service_sandbox_parent(fake.service, "a/b", false, "test", &again, &fake.failure), 0);
	assert_ptr_equal(first, again);
	assert_int_equal(service_sandbox_parent(fake.service, "a/b", true, "test", &slice, &fake.failure), 0);
	assert_ptr_not_equal(first, slice);
	assert_int_equal(service_sandboxes_count(fake.service), 2);
	/* Empty as it is, it stays. */
	for (int i = 0; i < 5; i++)
		service_sweep(fake.service);
	assert_int_equal(service_sandboxes_count(fake.service), 2);
	assert_int_equal(try_remove(slice), 0);
	assert_int_equal(try_remove(first), 0);
	assert_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_names),
		fake_test(test_a_slice_is_where_systemd_has_it),
		fake_test(test_the_longest_name_fits),
		fake_test(test_one_of_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
