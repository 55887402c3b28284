/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/ask_screen.c"

#include "ask_screen_check.h"

#define BEGIN "\033[H\033[2J\033[7m"

static void drawn(const struct ask_screen *screen, struct buf *out)
{
	ask_screen_draw(screen, out);
	assert_int_equal(buf_error(out), 0);
	assert_null(screen_problem(screen, out));
}

static void test_what_is_drawn(void **state)
{
	const struct ask_screen screen = { .rows = 12,
					   .columns = 40,
					   .head = " netpawl ask",
					   .text = "1  pending\n    rule x\n    ! look out\n",
					   .clock = "0:10 left",
					   .message = "hello",
					   .keys = "q ends",
					   .prompt = "deny 1; reason: " };
	_buf_ struct buf out = BUF_INIT(1 << 16);

	(void)state;
	drawn(&screen, &out);
	assert_string_equal(out.data, BEGIN " netpawl ask\r\n\033[m"
					    "1  pending\r\n    ! look out\r\n    rule x\r\n"
					    "\r\n0:10 left\r\nhello\r\nq ends\r\ndeny 1; reason: ");
}

static void test_nothing_to_show(void **state)
{
	_buf_ struct buf out = BUF_INIT(1 << 16);

	(void)state;
	drawn(&(struct ask_screen){ .head = "" }, &out);
	assert_string_equal(out.data, BEGIN "\r\n\033[m\r\n\r\n\r\n\r\n");
}

/* Every byte that a stranger may have written, in every row and at every width. */
static void test_hostile_bytes(void **state)
{
	char all[256], lines[600];

	(void)state;
	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	snprintf(lines, sizeof(lines), "%s\n    ! %s", all, all);
	for (unsigned columns = 0; columns < 300; columns += 7) {
		for (unsigned rows = 0; rows < 40; rows += 3) {
			_buf_ struct buf out = BUF_INIT(1 << 20);

			drawn(&(struct ask_screen){ rows, columns, all, lines, all, all, all, all }, &out);
		}
	}
}

/* A terminal's own commands do not arrive at it. */
static void test_escapes(void **state)
{
	const char *hostile = "\033]0;owned\007\033[2J\033[1;1Happroved\x9b"
			      "31m\r\nq\b\b";
	const struct ask_screen screen = { 24, 80, "h", hostile, hostile, hostile, "k", hostile };
	_buf_ struct buf out = BUF_INIT(1 << 16);

	(void)state;
	drawn(&screen, &out);
	assert_null(strstr(out.data + strlen(BEGIN) + strlen("h\r\n\033[m"), "\033"));
	assert_null(strchr(out.data, '\007'));
	assert_null(strchr(out.data, '\b'));
}

static size_t rows_of(const struct buf *out)
{
	size_t n = 1;

	for (const char *at = out->data; (at = strstr(at, "\r\n")); at += 2)
		n++;
	return n;
}

/* Whatever is asked, the warnings are on the screen, and so are the rows at its end. */
static void test_nothing_pushes_warnings_off_the_screen(void **state)
{
	_buf_ struct buf text = BUF_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < 2047; i++)
		buf_puts(&text, "u");
	buf_puts(&text, "\n");
	for (int i = 0; i < 500; i++)
		buf_puts(&text, "    header: value\n");
	buf_puts(&text, "    ! the name looks like another\n    ! it is new\n");
	for (unsigned rows = 0; rows < 60; rows++) {
		for (unsigned columns = 40; columns < 200; columns += 20) {
			_buf_ struct buf out = BUF_INIT(1 << 20);

			drawn(&(struct ask_screen){ rows, columns, "h", text.data, "clock", "message", "keys", "p" },
			      &out);
			assert_true(rows_of(&out) <= (rows < ROWS_MIN ? ROWS_MIN : rows));
			assert_non_null(strstr(out.data, "    ! the name looks like another"));
			assert_non_null(strstr(out.data, "\r\n    (there is more"));
			assert_non_null(strstr(out.data, "\r\nclock\r\nmessage\r\nkeys\r\np"));
		}
	}
}

static void test_a_long_line_is_cut_and_that_is_seen(void **state)
{
	char url[2048];
	_buf_ struct buf out = BUF_INIT(1 << 16);

	(void)state;
	memset(url, 'u', sizeof(url) - 1);
	url[sizeof(url) - 1] = '\0';
	drawn(&(struct ask_screen){ 24, 80, "h", url, NULL, NULL, NULL, NULL }, &out);
	assert_non_null(strstr(out.data, "uuu ...\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_drawn),
		cmocka_unit_test(test_nothing_to_show),
		cmocka_unit_test(test_hostile_bytes),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_nothing_pushes_warnings_off_the_screen),
		cmocka_unit_test(test_a_long_line_is_cut_and_that_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
