/* SPDX-License-Identifier: MIT */
#include "session/tenants.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char dir[] = "/tmp/np-unit-tenants-XXXXXX", data[64];
static struct tenants *tenants;

static struct session_name name_of(const char *text)
{
	struct session_name name;
	const char *problem;

	assert_int_equal(session_name_parse(text, &name, &problem), 0);
	return name;
}

static int enter(const char *session, struct tenant *ret)
{
	struct session_name name = name_of(session);

	return tenants_enter(tenants, &name, ret);
}

static void again(void)
{
	tenants_free(tenants);
	assert_int_equal(tenants_open(data, &tenants), 0);
}

static void one_user_for_each_session(void **state)
{
	struct tenant one, two, same;
	char path[FS_PATH_SIZE];
	struct session_name name = name_of("a/none");
	struct stat st;

	(void)state;
	assert_int_equal(enter("a/one", &one), 0);
	assert_int_equal(enter("a/two", &two), 0);
	assert_int_equal(enter("a/one", &same), 0);
	assert_int_equal(one.uid, same.uid);
	assert_int_not_equal(one.uid, two.uid);
	assert_true(uid_is_ours(one.uid) && uid_is_ours(two.uid));
	assert_int_equal(stat(one.workspace, &st), 0);
	assert_int_equal(st.st_uid, one.uid);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(stat(data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(tenants_find(tenants, &name, path), -ENOENT);
	/* The owner is the record. */
	again();
	assert_int_equal(enter("a/one", &same), 0);
	assert_int_equal(one.uid, same.uid);
	assert_true(tenants->taken[(two.uid - NP_UID_FIRST) / 8] & 1u << (two.uid - NP_UID_FIRST) % 8);
}

static void what_was_half_made_is_finished(void **state)
{
	char path[128];
	struct tenant tenant;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/half", data);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(enter("a/half", &tenant), 0);
	assert_true(uid_is_ours(tenant.uid));
}

static void nobody_elses(void **state)
{
	char path[128];
	struct tenant tenant;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/other", data);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 1000, 1000), 0);
	assert_int_equal(enter("a/other", &tenant), -EEXIST);
	snprintf(path, sizeof(path), "%s/a/link", data);
	assert_int_equal(symlink(dir, path), 0);
	assert_int_equal(enter("a/link", &tenant), -EEXIST);
	snprintf(path, sizeof(path), "%s/linked", data);
	assert_int_equal(symlink(dir, path), 0);
	assert_int_equal(enter("linked/x", &tenant), -EEXIST);
	snprintf(path, sizeof(path), "%s/a/file", data);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(enter("a/file", &tenant), -EEXIST);
	again(); /* none of them is in the way */
}

static void users_run_out_and_come_back(void **state)
{
	unsigned first = uid_take(tenants);

	(void)state;
	assert_true(uid_is_ours(first));
	memset(tenants->taken, 0xff, sizeof(tenants->taken));
	assert_int_equal(uid_take(tenants), NO_UID);
	assert_int_equal(alone_add(tenants, 7, first), 0);
	tenants_leave(tenants, 8); /* unknown */
	assert_int_equal(uid_take(tenants), NO_UID);
	tenants_leave(tenants, 7);
	assert_int_equal(uid_take(tenants), first);
	again();
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(data, sizeof(data), "%s/deep/data", dir);
	return tenants_open(data, &tenants);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	tenants_free(tenants);
	snprintf(command, sizeof(command), "rm -rf -- %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_for_each_session),
		cmocka_unit_test(what_was_half_made_is_finished),
		cmocka_unit_test(nobody_elses),
		cmocka_unit_test(users_run_out_and_come_back),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
