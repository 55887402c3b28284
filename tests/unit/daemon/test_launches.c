/* SPDX-License-Identifier: MIT */
/* Output of runs as lines of JSON: whatever the bytes, wherever they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <jansson.h>

#include "daemon/launches.c"

#include "vocab/limits.h"

static struct launch launch;
static struct stream *stream = &launch.streams[0];

static int setup(void **state)
{
	(void)state;
	launch = (struct launch){ .lines = BUF_INIT(NP_LAUNCH_OUTPUT) };
	*stream = (struct stream){ .launch = &launch, .name = "stdout", .fd = -1 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_free(&launch.lines);
	return 0;
}

/* What all lines say together; each of them must be JSON. */
static void reported(struct buf *out)
{
	const char *at = launch.lines.data, *end = launch.lines.len ? at + launch.lines.len : at;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		json_t *line;

		assert_non_null(newline);
		line = json_loadb(at, (size_t)(newline - at), JSON_ALLOW_NUL, NULL);
		assert_non_null(line);
		if (json_object_get(line, "stream")) {
			const json_t *data = json_object_get(line, "data");

			assert_string_equal(json_string_value(json_object_get(line, "stream")), "stdout");
			buf_append(out, json_string_value(data), json_string_length(data));
		}
		json_decref(line);
		at = newline + 1;
	}
}

static const char mixed[] =
	"a\"\\\n\x7f\0z\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc0\x80\xed\xa0\x80\xe2\x82|\xf0\x9f\xc3";
#define NOT "\xef\xbf\xbd"
static const char want[] =
	"a\"\\\n\x7f\0z\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" NOT NOT NOT NOT NOT NOT NOT NOT "|" NOT NOT NOT;

static void cut_anywhere(void **state)
{
	size_t len = sizeof(mixed) - 1;

	for (size_t a = 0; a <= len; a++)
		for (size_t b = a; b <= len; b++) {
			_buf_ struct buf out = BUF_INIT(4096);

			stream_take(stream, mixed, a, false);
			stream_take(stream, mixed + a, b - a, false);
			stream_take(stream, mixed + b, len - b, false);
			stream_take(stream, "", 0, true);
			reported(&out);
			assert_int_equal(out.len, sizeof(want) - 1);
			assert_memory_equal(out.data, want, out.len);
			teardown(state);
			setup(state);
		}
}

static void byte_by_byte(void **state)
{
	_buf_ struct buf out = BUF_INIT(4096);

	(void)state;
	for (size_t i = 0; i < sizeof(mixed) - 1; i++)
		stream_take(stream, mixed + i, 1, false);
	stream_take(stream, "", 0, true);
	reported(&out);
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
}

/* The longest that bytes can become is bounded, and the end is said. */
static void bounded(void **state)
{
	_buf_ struct buf out = BUF_INIT(2 * NP_LAUNCH_OUTPUT);
	char block[READ_BYTES];

	(void)state;
	memset(block, 1, sizeof(block));
	for (int i = 0; i < 1000; i++)
		stream_take(stream, block, sizeof(block), false);
	assert_int_equal(buf_error(&launch.lines), 0);
	assert_true(launch.truncated && launch.lines.len <= NP_LAUNCH_OUTPUT &&
		    launch.lines.len > NP_LAUNCH_OUTPUT / 2);
	assert_memory_equal(launch.lines.data + launch.lines.len - 19, "{\"truncated\":true}\n", 19);
	reported(&out);
	assert_int_equal(out.len % sizeof(block), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(byte_by_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
