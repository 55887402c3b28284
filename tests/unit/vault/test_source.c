/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "vault/source.c"

static char folder[] = "/tmp/np-source-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[FS_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void file_write(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path_of(name), mode), 0);
}

static const char *read_one(enum source_kind kind, const char *name, char value[static SOURCE_ROOM], size_t *len)
{
	const struct credential_source source = { .kind = kind, .name = name };

	return source_read(&source, value, len);
}

static void test_systemd(void **state)
{
	char value[SOURCE_ROOM];
	size_t len = 0;

	(void)state;
	unsetenv("CREDENTIALS_DIRECTORY");
	assert_non_null(strstr(read_one(SOURCE_SYSTEMD, "token", value, &len), "LoadCredential="));
	setenv("CREDENTIALS_DIRECTORY", folder, 1);
	file_write("token", "a-value-of-systemd\n", 0400);
	assert_null(read_one(SOURCE_SYSTEMD, "token", value, &len));
	assert_int_equal(len, strlen("a-value-of-systemd"));
	assert_memory_equal(value, "a-value-of-systemd", len);
	assert_non_null(read_one(SOURCE_SYSTEMD, "other", value, &len));
	file_write("token", "another-value\n", 0400); /* it is read anew each time */
	assert_null(read_one(SOURCE_SYSTEMD, "token", value, &len));
	assert_memory_equal(value, "another-value", len);
}

static void test_file(void **state)
{
	char value[SOURCE_ROOM];
	size_t len = 0;

	(void)state;
	file_write("file", "a-value-of-a-file\r\n", 0600);
	assert_null(read_one(SOURCE_FILE, path_of("file"), value, &len));
	assert_int_equal(len, strlen("a-value-of-a-file"));
	file_write("file", "a-value-of-a-file", 0640);
	assert_non_null(strstr(read_one(SOURCE_FILE, path_of("file"), value, &len), "chmod 600"));
	assert_int_equal(symlink("file", path_of("link")), 0);
	assert_non_null(read_one(SOURCE_FILE, path_of("link"), value, &len));
	file_write("file", "two\nlines of it", 0600);
	assert_non_null(strstr(read_one(SOURCE_FILE, path_of("file"), value, &len), "more than one line"));
	file_write("file", "short", 0600);
	assert_non_null(strstr(read_one(SOURCE_FILE, path_of("file"), value, &len), "too short"));
	file_write("file", "", 0600);
	assert_non_null(strstr(read_one(SOURCE_FILE, path_of("file"), value, &len), "empty"));
}

/* It is taken out of the environment, wiped where it was, and known from then on. */
static void test_env(void **state)
{
	char value[SOURCE_ROOM], *was;
	size_t len = 0;

	(void)state;
	assert_non_null(strstr(read_one(SOURCE_ENV, "NP_TEST_TOKEN", value, &len), "no such variable"));
	setenv("NP_TEST_TOKEN", "a-value-of-a-variable", 1);
	was = getenv("NP_TEST_TOKEN");
	for (int i = 0; i < 2; i++) {
		assert_null(read_one(SOURCE_ENV, "NP_TEST_TOKEN", value, &len));
		assert_int_equal(len, strlen("a-value-of-a-variable"));
		assert_memory_equal(value, "a-value-of-a-variable", len);
		assert_null(getenv("NP_TEST_TOKEN"));
	}
	assert_true(was[0] == '\0');
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path_of("token"));
	unlink(path_of("file"));
	unlink(path_of("link"));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_systemd),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_env),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
