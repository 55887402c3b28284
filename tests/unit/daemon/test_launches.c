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
#include "daemon/launch_streams.c"

#include "vocab/limits.h"

static struct launches launches;
static struct launch launch;
static struct stream *stream = &launch.streams[0];

static int setup(void **state)
{
	(void)state;
	launches = (struct launches){ 0 };
	TAILQ_INIT(&launches.all);
	launch = (struct launch){ .launches = &launches, .lines = BUF_INIT(NP_LAUNCH_OUTPUT), .to = -1 };
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

/* All of them together are bounded, too: root's by what there is, others' by a part of it. */
static void bounded_together(void **state)
{
	launches.bytes = NP_LAUNCH_OUTPUT_ALL - 10;
	stream_take(stream, "some words", 10, false);
	assert_true(launch.truncated);
	assert_string_equal(launch.lines.data, "{\"truncated\":true}\n");
	for (int root = 0; root < 2; root++) {
		teardown(state);
		setup(state);
		launch.caller = root ? 0 : 1000;
		launches.bytes = NP_LAUNCH_OUTPUT_ALL - NP_LAUNCH_OUTPUT_USER;
		stream_take(stream, "some words", 10, false);
		assert_int_equal(launch.truncated, !root);
	}
}

/* A run that has ended and printed so much; running: one that has not ended. */
static struct launch *printed(uid_t caller, size_t len, bool running)
{
	struct launch *one;

	assert_int_equal(
		launch_new(&launches, &(struct run_launch){ .id = launches.count + 1, .caller = caller }, &one), 0);
	one->pid = running;
	one->lines.max = len;
	one->lines.data = calloc(1, len ? len : 1);
	one->lines.len = len;
	launches.bytes += len;
	return one;
}

static unsigned count(uid_t caller)
{
	const struct launch *one;
	unsigned n = 0;

	TAILQ_FOREACH(one, &launches.all, of_all) {
		n += one->caller == caller;
	}
	return n;
}

static void forget_all(void)
{
	while (!TAILQ_EMPTY(&launches.all))
		launch_free(TAILQ_FIRST(&launches.all));
}

/* Who has had much printed loses the oldest of it, and nobody else does. */
static void shared_by_users(void **state)
{
	const size_t share = NP_LAUNCH_OUTPUT_USER;
	struct launch *other, *last;

	(void)state;
	other = printed(2000, 10, false);
	for (int i = 0; i < 8; i++)
		printed(1000, share / 8, false);
	last = printed(1000, 0, true);
	assert_true(launch_output_room(last, 10));
	assert_int_equal(count(1000), 8); /* one is gone */
	assert_true(launch_output_room(last, share / 8));
	assert_int_equal(count(1000), 8);
	assert_ptr_equal(launch_find(&launches, other->id), other);
	forget_all();
	/* Nothing of what still runs goes: what comes is lost, and the mark says so. */
	for (int i = 0; i < 8; i++)
		last = printed(1000, share / 8, true);
	assert_false(launch_output_room(last, 1));
	assert_int_equal(count(1000), 8);
	/* What somebody is attached to takes no part in that. */
	last->attach = true;
	assert_true(launch_output_room(last, 1));
	forget_all();
}

/* When all is taken the user who has most makes room, however little anybody else has. */
static void room_by_who_has_most(void **state)
{
	struct launch *few = printed(3000, 10, false);

	(void)state;
	for (uid_t user = 1000; user < 1003; user++)
		printed(user, NP_LAUNCH_OUTPUT_USER - (user != 1001), false);
	launch.caller = 4000;
	stream_take(stream, "some words", 10, false);
	assert_false(launch.truncated);
	assert_int_equal(count(1000), 1);
	assert_int_equal(count(1001), 0);
	assert_int_equal(count(1002), 1);
	assert_ptr_equal(launch_find(&launches, few->id), few);
	/* Unread output of somebody who is attached does not go, even when the command has ended, if there is somebody. */
	TAILQ_FOREACH(few, &launches.all, of_all) {
		few->attach = true;
		few->read = few->caller != 1002;
	}
	launches.bytes = NP_LAUNCH_OUTPUT_ALL - NP_LAUNCH_OUTPUT_USER;
	stream_take(stream, "some words", 10, false);
	assert_false(launch.truncated);
	assert_int_equal(count(1002), 0);
	launches.bytes = NP_LAUNCH_OUTPUT_ALL;
	stream_take(stream, "some words", 10, false);
	assert_true(launch.truncated);
	forget_all();
}

/* As many as are kept: the oldest goes of who has most. */
static void places_by_who_has_most(void **state)
{
	struct launch *few = printed(3000, 10, false);

	(void)state;
	for (unsigned i = 1; i < NP_LAUNCHES_MAX; i++)
		printed(1000, 10, false);
	assert_true(launch_room_make(&launches));
	assert_ptr_equal(launch_find(&launches, few->id), few);
	assert_null(launch_find(&launches, 2));
	assert_non_null(launch_find(&launches, 3));
	assert_int_equal(count(1000), NP_LAUNCHES_MAX - 2);
	forget_all();
}

/* Whoever has runs started for readers that never come keeps nobody else from having any. */
static void places_of_readers_that_never_come(void **state)
{
	struct launch *one, *whose = printed(3000, 10, false);

	(void)state;
	for (unsigned i = 1; i < NP_LAUNCHES_MAX; i++)
		printed(1000, 10, false);
	TAILQ_FOREACH(one, &launches.all, of_all) {
		one->attach = true;
		one->read = one == whose;
	}
	assert_true(launch_room_make(&launches));
	assert_ptr_equal(launch_find(&launches, whose->id), whose);
	assert_int_equal(count(1000), NP_LAUNCHES_MAX - 2);
	TAILQ_FOREACH(one, &launches.all, of_all) {
		one->read = true;
	}
	printed(1000, 10, false)->attach = true;
	TAILQ_LAST(&launches.all, launch_list)->read = true;
	assert_false(launch_room_make(&launches));
	forget_all();
}

/* Who attached gets bytes, and what was read is forgotten. */
static void attached(void **state)
{
	struct run_text text;
	bool over;

	(void)state;
	launch.attach = true;
	launch.id = 7;
	launch.streams[1].fd = -1;
	TAILQ_INSERT_TAIL(&launches.all, &launch, of_all);
	stream_take(stream, "\xff\0a", 3, false);
	assert_int_equal(launches_output(&launches, 7, 0, &text, &over), 0);
	assert_int_equal(text.len, strlen("{\"stream\":\"stdout\",\"base64\":\"/wBh\"}\n"));
	assert_memory_equal(text.data, "{\"stream\":\"stdout\",\"base64\":\"/wBh\"}\n", text.len);
	assert_true(over && launches.bytes == text.len);
	assert_int_equal(launches_output(&launches, 7, text.len, &text, &over), 0);
	assert_true(text.len == 0 && launches.bytes == 0 && launch.dropped > 0);
	assert_int_equal(launches_output(&launches, 7, 0, &text, &over), -ENOENT);
	assert_int_equal(launches_output(&launches, 7, 999, &text, &over), -ENOENT);
	assert_int_equal(launches_output(&launches, 8, 0, &text, &over), -ENOENT);
}

/* One user's leave room for another's; those that have ended do not count. */
static void bounded_by_user(void **state)
{
	static struct launch many[NP_LAUNCHES_PER_USER];
	struct run_launch how = { .id = 1, .caller = 1000 };
	struct failure failure;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i] = (struct launch){ .launches = &launches, .caller = 1000, .pid = 1 };
		TAILQ_INSERT_TAIL(&launches.all, &many[i], of_all);
	}
	assert_int_equal(launches_start(&launches, &how, &failure), -E2BIG);
	assert_int_equal(failure.reason, NP_R_TOO_MANY);
	assert_non_null(strstr(failure.text, "user 1000"));
	assert_int_equal(launches_of(&launches, 1001), 0);
	many[0].pid = 0;
	many[0].streams[0].fd = many[0].streams[1].fd = -1;
	assert_int_equal(launches_of(&launches, 1000), NP_LAUNCHES_PER_USER - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(byte_by_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_together, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_by_users, setup, teardown),
		cmocka_unit_test_setup_teardown(room_by_who_has_most, setup, teardown),
		cmocka_unit_test_setup_teardown(places_by_who_has_most, setup, teardown),
		cmocka_unit_test_setup_teardown(places_of_readers_that_never_come, setup, teardown),
		cmocka_unit_test_setup_teardown(attached, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_by_user, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
