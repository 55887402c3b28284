/* SPDX-License-Identifier: MIT */
#include "session/workspaces.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "vocab/limits.h"

static char dir[] = "/tmp/np-unit-tenants-XXXXXX", data[64];
static struct workspaces *workspaces;
static uint64_t clock_now;
static char told[FS_PATH_SIZE];

static uint64_t clock_read(void)
{
	return ++clock_now;
}

static void on_report_of(void *unused, const char *session, bool failed, const char *text)
{
	(void)unused;
	snprintf(told, sizeof(told), "%s%s: %.3000s", failed ? "FAILED " : "", session, text);
}

static const struct workspaces_config config = {
	.data_dir = data, .wall_us = clock_read, .now_ns = clock_read, .report = on_report_of
};

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
	assert_int_equal(workspaces_open(&config, &workspaces), 0);
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

/* The sweep until nothing is left to do. */
static void sweep(uint64_t archive_max)
{
	for (int i = 0; i < 40000 && (workspaces->pending || workspaces->job.pid); i++) {
		workspaces_sweep(workspaces, archive_max);
		usleep(5000);
	}
	assert_false(workspaces->pending || workspaces->job.pid);
}

static void filled(const char *session, struct workspace *ret)
{
	char command[FS_PATH_SIZE + 512];

	assert_int_equal(enter(session, ret), 0);
	/* Hostile names, a file with a hole of a terabyte, a socket, a link that leads out. */
	snprintf(command, sizeof(command),
		 "cd '%s' && mkdir -p -- 'a b/--c' && echo kept > 'a b/--c/-x' && truncate -s 1T hole && ln -s / out &&"
		 " mkfifo pipe && chmod 000 'a b/--c/-x' && touch \"$(printf 'new\\nline')\"",
		 ret->path);
	assert_int_equal(system(command), 0);
}

static int count_in(const char *name)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *entries = NULL;
	int n = 0;

	snprintf(path, sizeof(path), "%s/%s", data, name);
	entries = opendir(path);
	assert_non_null(entries);
	for (const struct dirent *entry; (entry = readdir(entries));)
		n += entry->d_name[0] != '.';
	return n;
}

static bool uid_is_taken(unsigned uid)
{
	return workspaces->taken[(uid - NP_UID_FIRST) / 8] & 1u << (uid - NP_UID_FIRST) % 8;
}

static int end(const char *session, enum workspace_fate fate)
{
	struct session_name name = name_of(session);

	return workspaces_end(workspaces, &name, fate);
}

/* A level is forgotten when there are no files: not being able to look is no such word. */
static void who_cannot_look_does_not_say_none(void **state)
{
	struct rlimit before, none;
	struct workspace one;

	(void)state;
	assert_int_equal(enter("f/one", &one), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(end("f/one", WORKSPACE_KEEP), -EMFILE);
	assert_int_equal(end("f/none", WORKSPACE_REMOVE), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(end("f/one", WORKSPACE_KEEP), 0);
}

static void kept_archived_or_removed(void **state)
{
	struct workspace one, next;
	char command[FS_PATH_SIZE * 2], path[FS_PATH_SIZE];
	struct stat st;

	(void)state;
	assert_int_equal(end("e/none", WORKSPACE_REMOVE), -ENOENT);
	filled("e.x/one", &one);
	assert_int_equal(end("e.x/one", WORKSPACE_KEEP), 0);
	sweep(1 << 30);
	assert_int_equal(stat(one.path, &st), 0);

	assert_int_equal(end("e.x/one", WORKSPACE_ARCHIVE), 0);
	assert_int_equal(stat(one.path, &st), -1);
	assert_true(uid_is_taken(one.uid)); /* as long as a file of his is there */
	again();			    /* a restart goes on with it */
	assert_true(uid_is_taken(one.uid));
	assert_int_equal(enter("e.x/one", &next), 0); /* whoever comes back meanwhile finds it empty, as another user */
	assert_int_not_equal(next.uid, one.uid);
	sweep(1 << 30);
	assert_false(uid_is_taken(one.uid));
	assert_int_equal(count_in(".ended"), 0);
	assert_int_equal(count_in(".archives"), 1);
	snprintf(command, sizeof(command),
		 "cd '%s' && mkdir out && tar -C out -xf .archives/*.e.x,one.tar && grep -q kept 'out/a b/--c/-x' &&"
		 " test $(stat -c %%s out/hole) = 1099511627776 && test \"$(readlink out/out)\" = / &&"
		 " test $(stat -c %%a .archives/*.tar) = 600 && rm -rf out .archives/*",
		 data);
	assert_int_equal(system(command), 0);

	filled("e/two", &one);
	assert_int_equal(end("e/two", WORKSPACE_REMOVE), 0);
	sweep(1 << 30);
	assert_string_equal(told, "e/two: removed");
	assert_int_equal(count_in(".ended"), 0);
	assert_int_equal(count_in(".archives"), 0);
	assert_false(uid_is_taken(one.uid));
	snprintf(path, sizeof(path), "%s/e", data);
	assert_int_equal(stat(path, &st), -1); /* nobody else of that user */
}

/* An archive that would be too large is none, and nothing is lost. */
static void what_is_too_large_stays(void **state)
{
	struct workspace one;
	char command[FS_PATH_SIZE * 2];

	(void)state;
	filled("f/big", &one);
	snprintf(command, sizeof(command), "head -c 3000000 /dev/zero | tr '\\0' x > '%s/much'", one.path);
	assert_int_equal(system(command), 0);
	assert_int_equal(end("f/big", WORKSPACE_ARCHIVE), 0);
	sweep(1 << 20);
	assert_int_equal(count_in(".archives"), 0);
	assert_int_equal(count_in(".ended"), 1);
	assert_non_null(strstr(told, "FAILED f/big: it could not be archived (it is larger than archive_max)"));
	assert_true(uid_is_taken(one.uid));
	snprintf(command, sizeof(command), "grep -q kept '%s'/.ended/*.f,big.failed/'a b/--c/-x'", data);
	assert_int_equal(system(command), 0);
	again(); /* it is not tried for ever */
	sweep(1 << 20);
	assert_int_equal(count_in(".ended"), 1);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(data, sizeof(data), "%s/deep/data", dir);
	return workspaces_open(&config, &workspaces);
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
		cmocka_unit_test(who_cannot_look_does_not_say_none),
		cmocka_unit_test(kept_archived_or_removed),
		cmocka_unit_test(what_is_too_large_stays),
		cmocka_unit_test(users_run_out_and_come_back),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
