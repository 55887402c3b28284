/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "control/why_files.c"

static struct why_files files;
static struct server_config config;
static char last[NP_LABEL_SIZE];
static unsigned n_published;

void why_publish(const struct server_config *given, const char *session)
{
	assert_ptr_equal(given, &config);
	snprintf(last, sizeof(last), "%s", session);
	n_published++;
}

static const char *next(void)
{
	unsigned before = n_published;

	why_files_tick(&files, &config);
	return n_published > before ? last : NULL;
}

static void one_at_a_time_each_once(void **state)
{
	(void)state;
	assert_null(next());
	why_files_mark(&files, "a/1");
	why_files_mark(&files, "a/2");
	why_files_mark(&files, "a/1");
	assert_string_equal(next(), "a/1");
	why_files_mark(&files, "a/1"); /* refused again since */
	assert_string_equal(next(), "a/2");
	assert_string_equal(next(), "a/1");
	assert_null(next());
}

static void bounded(void **state)
{
	char name[NP_LABEL_SIZE + 10];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < NP_WHY_STALE + 10; i++) {
			snprintf(name, sizeof(name), "a/%u", i);
			why_files_mark(&files, name);
		}
		assert_int_equal(files.n, NP_WHY_STALE);
	}
	for (unsigned i = 0; i < NP_WHY_STALE; i++) {
		snprintf(name, sizeof(name), "a/%u", i);
		assert_string_equal(next(), name);
	}
	assert_null(next());
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	why_files_mark(&files, name); /* no session's */
	assert_null(next());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time_each_once),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
