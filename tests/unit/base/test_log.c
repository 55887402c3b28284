/* SPDX-License-Identifier: MIT */
#include "base/log.c"

#include <fcntl.h>
#include <setjmp.h>
#include <cmocka.h>

/* What is written to stderr between the two. */
static int kept = -1, pipes[2];

static void listen_to(void)
{
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	kept = dup(STDERR_FILENO);
	dup2(pipes[1], STDERR_FILENO);
	close(pipes[1]);
}

static void heard(char *text, size_t size)
{
	ssize_t n;

	dup2(kept, STDERR_FILENO);
	close(kept);
	n = read(pipes[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
}

static void lines(void **state)
{
	char text[1024];

	(void)state;
	log_setup("prog", LOG_LEVEL_DEBUG);
	listen_to();
	log_error("one %d", 1);
	log_warning("two");
	log_info("three");
	log_debug("four");
	heard(text, sizeof(text));
	assert_string_equal(text, "prog: error: one 1\nprog: warning: two\nprog: three\nprog: debug: four\n");
}

static void what_is_not_wanted_is_not_written(void **state)
{
	char text[1024];

	(void)state;
	log_setup("prog", LOG_LEVEL_WARNING);
	listen_to();
	log_info("three");
	log_debug("four");
	log_warning("two");
	heard(text, sizeof(text));
	assert_string_equal(text, "prog: warning: two\n");
}

static void a_strangers_name_makes_no_line_of_its_own(void **state)
{
	char text[1024];

	(void)state;
	log_setup("prog", LOG_LEVEL_INFO);
	listen_to();
	log_info("%s", "a\nprog: error: forged\r\x1b[2J\x7f\t.");
	heard(text, sizeof(text));
	assert_string_equal(text, "prog: a?prog: error: forged??[2J??.\n");
}

static void a_long_one_is_cut_and_still_a_line(void **state)
{
	static char word[5000], text[8192];

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	log_setup("prog", LOG_LEVEL_INFO);
	listen_to();
	log_info("%s", word);
	heard(text, sizeof(text));
	assert_in_range(strlen(text), 2000, 2048);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void nobody_is_there_to_read(void **state)
{
	(void)state;
	kept = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	log_info("into nothing"); /* no crash, and errno is nobody's business */
	dup2(kept, STDERR_FILENO);
	close(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(what_is_not_wanted_is_not_written),
		cmocka_unit_test(a_strangers_name_makes_no_line_of_its_own),
		cmocka_unit_test(a_long_one_is_cut_and_still_a_line),
		cmocka_unit_test(nobody_is_there_to_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
