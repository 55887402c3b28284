/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "supervisor/ca_store.c"

static struct supervisor supervisor;
static struct link_ca alice;
static char dir[] = "/dev/shm/np-cas-XXXXXX";

/* -- instead of the supervisor's other files ---------------------------------------------- */

void session_file(const char *session, char name[static NP_LABEL_SIZE])
{
	snprintf(name, NP_LABEL_SIZE, "%s", session);
	*strchr(name, '/') = ',';
}

static const char *swept[4];

void files_sweep(int from, struct supervisor *w, bool (*is_used)(void *data, const char *session), void *data,
		 void (*drop)(int dir, const char *name))
{
	(void)w, (void)is_used, (void)data;
	for (size_t i = 0; swept[i]; i++)
		drop(from, swept[i]);
}

/* -- shorthands ---------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	memset(swept, 0, sizeof(swept));
	supervisor = (struct supervisor){ .cas_dir = -1 };
	assert_int_equal(cas_open(&supervisor, dir), 0);
	assert_true(supervisor.cas_kept);
	alice = (struct link_ca){ .len = 700, .pem_len = 3 };
	strcpy(alice.session, "alice/demo");
	for (size_t i = 0; i < alice.len; i++)
		alice.data[i] = (char)(i * 7 + 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlinkat(supervisor.cas_dir, "alice,demo", 0);
	unlinkat(supervisor.cas_dir, "bob,demo", 0);
	close(supervisor.cas_dir);
	return rmdir(dir);
}

static bool has(const char *session)
{
	struct link_ca got = { 0 };
	bool good = ca_kept(&supervisor, session, &got);

	assert_int_equal(got.len, good ? alice.len : 0);
	if (good)
		assert_memory_equal(got.data, alice.data, alice.len);
	return good;
}

/* -- tests ----------------------------------------------------------------------------------- */

static void what_is_kept_comes_back(void **state)
{
	struct stat before, after;

	(void)state;
	assert_false(has("alice/demo"));
	ca_keep(&supervisor, &alice);
	assert_true(has("alice/demo"));
	assert_false(has("bob/demo"));
	assert_int_equal(fstatat(supervisor.cas_dir, "alice,demo", &before, 0), 0);
	assert_int_equal(before.st_mode & 07777, 0600);
	ca_keep(&supervisor, &alice); /* the same again is not written */
	assert_int_equal(fstatat(supervisor.cas_dir, "alice,demo", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	alice.data[3] ^= 1;
	ca_keep(&supervisor, &alice); /* another one is */
	assert_true(has("alice/demo"));
	ca_forget(&supervisor, "alice/demo");
	assert_false(has("alice/demo"));
}

/* Every byte of it counts, and its length. */
static void a_damaged_file_is_none(void **state)
{
	int fd;

	(void)state;
	ca_keep(&supervisor, &alice);
	fd = openat(supervisor.cas_dir, "alice,demo", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t at = 0; at < (off_t)(CA_FILE_HEAD + alice.len); at++) {
		char byte, other;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = (char)(byte ^ 0x10);
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		assert_false(has("alice/demo"));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_true(has("alice/demo"));
	for (off_t len = (off_t)(CA_FILE_HEAD + alice.len) - 1; len >= 0; len -= 97) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_false(has("alice/demo"));
	}
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_false(has("alice/demo"));
	close(fd);
}

static void another_sessions_file_is_none(void **state)
{
	(void)state;
	ca_keep(&supervisor, &alice);
	assert_int_equal(renameat(supervisor.cas_dir, "alice,demo", supervisor.cas_dir, "bob,demo"), 0);
	assert_false(has("bob/demo"));
}

static void what_goes_is_wiped(void **state)
{
	char text[sizeof(struct ca_file)];
	ssize_t n;
	int fd;

	(void)state;
	ca_keep(&supervisor, &alice);
	fd = openat(supervisor.cas_dir, "alice,demo", O_RDONLY | O_CLOEXEC);
	swept[0] = "alice,demo";
	supervisor_cas_wipe(dir);
	assert_false(has("alice/demo"));
	n = pread(fd, text, sizeof(text), 0);
	assert_true(n > 0);
	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(text[i], 0);
	close(fd);
}

/* Keys touch no disk. What was there is removed. */
static void nothing_is_kept_on_a_disk(void **state)
{
	(void)state;
	supervisor.cas_kept = false;
	ca_keep(&supervisor, &alice);
	assert_int_equal(faccessat(supervisor.cas_dir, "alice,demo", F_OK, 0), -1);
	supervisor.cas_kept = true;
	ca_keep(&supervisor, &alice);
	supervisor.cas_kept = false;
	assert_false(has("alice/demo"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_file_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(another_sessions_file_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(what_goes_is_wiped, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_kept_on_a_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
