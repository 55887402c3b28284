/* SPDX-License-Identifier: MIT */
#include "session/workspaces.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "vocab/limits.h"

static char dir[] = "/tmp/np-unit-tenants-XXXXXX", data[64];
static struct workspaces *workspaces;

static struct session_name name_of(const char *text)
{
	struct session_name name;
	const char *problem;

	assert_int_equal(session_name_parse(text, &name, &problem), 0);
	return name;
}

static int enter(const char *session, struct workspace *ret)
{
	struct session_name name = name_of(session);

	return workspaces_enter(workspaces, &name, ret);
}

static void again(void)
{
	workspaces_free(workspaces);
	assert_int_equal(workspaces_open(data, &workspaces), 0);
}

static void one_user_for_each_session(void **state)
{
	struct workspace one, two, same;
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
	assert_int_equal(stat(one.path, &st), 0);
	assert_int_equal(st.st_uid, one.uid);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(stat(data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(workspaces_find(workspaces, &name, path), -ENOENT);
	/* The owner is the record. */
	again();
	assert_int_equal(enter("a/one", &same), 0);
	assert_int_equal(one.uid, same.uid);
	assert_true(workspaces->taken[(two.uid - NP_UID_FIRST) / 8] & 1u << (two.uid - NP_UID_FIRST) % 8);
}

static void what_was_half_made_is_finished(void **state)
{
	char path[128];
	struct workspace workspace;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/half", data);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(enter("a/half", &workspace), 0);
	assert_true(uid_is_ours(workspace.uid));
}

static void nobody_elses(void **state)
{
	char path[128];
	struct workspace workspace;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/other", data);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 1000, 1000), 0);
	assert_int_equal(enter("a/other", &workspace), -EEXIST);
	snprintf(path, sizeof(path), "%s/a/link", data);
	assert_int_equal(symlink(dir, path), 0);
	assert_int_equal(enter("a/link", &workspace), -EEXIST);
	snprintf(path, sizeof(path), "%s/linked", data);
	assert_int_equal(symlink(dir, path), 0);
	assert_int_equal(enter("linked/x", &workspace), -EEXIST);
	snprintf(path, sizeof(path), "%s/a/file", data);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(enter("a/file", &workspace), -EEXIST);
	again(); /* none of them is in the way */
}

static void users_run_out_and_come_back(void **state)
{
	unsigned first = uid_take(workspaces);

	(void)state;
	assert_true(uid_is_ours(first));
	memset(workspaces->taken, 0xff, sizeof(workspaces->taken));
	assert_int_equal(uid_take(workspaces), NO_UID);
	assert_int_equal(alone_add(workspaces, 7, first), 0);
	workspaces_leave(workspaces, 8); /* unknown */
	assert_int_equal(uid_take(workspaces), NO_UID);
	workspaces_leave(workspaces, 7);
	assert_int_equal(uid_take(workspaces), first);
	again();
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(data, sizeof(data), "%s/deep/data", dir);
	return workspaces_open(data, &workspaces);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	workspaces_free(workspaces);
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
