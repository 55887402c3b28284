/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "session/notification.c"

static const char *of_question(const char *host, const char *method, bool write)
{
	static struct notification news;
	struct question_row row = { .id = 7,
				    .session = { "alice/demo" },
				    .port = 443,
				    .write = write,
				    .url = "https://secret/url",
				    .headers = "secret: header",
				    .preview = "secret",
				    .preview_len = 6 };

	snprintf(row.host, sizeof(row.host), "%s", host);
	snprintf(row.method, sizeof(row.method), "%s", method);
	notification_of_question(&row, &news);
	assert_string_equal(news.id, "7");
	assert_null(strstr(news.summary, "secret"));
	return news.summary;
}

static void test_a_question(void **state)
{
	char longest[QUESTION_HOST_SIZE];

	(void)state;
	assert_string_equal(of_question("h.example", "GET", false), "alice/demo asks to read from h.example:443");
	assert_string_equal(of_question("h.example", "PUT", true), "alice/demo asks to write to h.example:443");
	assert_string_equal(of_question("2001:db8::1", "", true), "alice/demo asks to connect to 2001:db8::1:443");
	/* An inspector has seen to names; nobody relies on that. */
	assert_string_equal(of_question("\x1b[2J\n\xe2\x80\xae<b>", "GET", false),
			    "alice/demo asks to read from ?[2J???"
			    "?<b>:443");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(strlen(of_question(longest, "GET", false)), strlen("alice/demo asks to read from :443") + 100);
}

static const char *of_run(const char *command)
{
	static struct notification news;
	static struct run_row row = { .id = 3, .session = { "alice/demo" } };

	snprintf(row.command, sizeof(row.command), "%s", command);
	notification_of_run(&row, &news);
	assert_string_equal(news.id, "run-3");
	return news.summary;
}

static void test_a_run(void **state)
{
	(void)state;
	assert_string_equal(of_run("[\"/usr/bin/git\",\"push\",\"https://token@h\"]"),
			    "alice/demo asks to run git with class write");
	assert_string_equal(of_run("[\"a b\"]"), "alice/demo asks to run a b with class write");
	/* What is escaped, and what is no such list, shows no more than a word. */
	assert_string_equal(of_run("[\"x\\u001b[2J\",\"secret\"]"), "alice/demo asks to run x with class write");
	assert_string_equal(of_run("[\"\xe2\x80\xae\"]"), "alice/demo asks to run ??? with class write");
	assert_string_equal(of_run("[\"/\"]"), "alice/demo asks to run  with class write");
	assert_string_equal(of_run("[]"), "alice/demo asks to run [] with class write");
	assert_string_equal(of_run(""), "alice/demo asks to run  with class write");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_question),
		cmocka_unit_test(test_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
