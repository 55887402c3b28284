/* SPDX-License-Identifier: MIT */
/* Messages of websockets: what becomes of placeholders and values in them, however they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "../../fuzz/messages_world.h"
#include "base/cleanup.h"

static const unsigned char mask[4] = { 0x11, 0x22, 0x33, 0x44 };
static struct hearing hearing;

static int world_start(void **state)
{
	(void)state;
	if (!fake_worker.policy)
		messages_setup();
	messages_session(0);
	return 0;
}

static int world_stop(void **state)
{
	(void)state;
	messages_teardown();
	return 0;
}

static void frame_add(struct buf *out, bool from_client, unsigned opcode, bool fin, const char *data, size_t len)
{
	websocket_write(out, opcode, fin, from_client ? mask : NULL, data, len);
}

/* One message in frames of so many bytes (0: one frame), of which so many come at a time. */
static int say_cut(bool from_client, unsigned opcode, const char *text, size_t frame, size_t each)
{
	_buf_ struct buf bytes = BUF_INIT(4u << 20);
	const size_t len = strlen(text), size = frame ? frame : len + 1;
	size_t at = 0;

	do {
		const size_t n = len - at < size ? len - at : size;

		frame_add(&bytes, from_client, at ? WEBSOCKET_CONTINUATION : opcode, at + n == len, text + at, n);
		at += n;
	} while (at < len);
	hearing_init(&hearing, from_client);
	return messages_say(from_client, bytes.data, bytes.len, each, &hearing);
}

static int say(bool from_client, unsigned opcode, const char *text)
{
	return say_cut(from_client, opcode, text, 0, 65536);
}

static void assert_heard(unsigned i, const char *text)
{
	assert_true(i < hearing.n && hearing.all[i].whole);
	assert_int_equal(hearing.all[i].text.len, strlen(text));
	assert_memory_equal(hearing.all[i].text.data ?: "", text, strlen(text));
}

static void assert_ended(int r, enum np_reason reason, const char *credential, const char *words)
{
	assert_int_equal(r, -EACCES);
	assert_int_equal(fake_tunnel.report.reason, reason);
	assert_string_equal(fake_tunnel.report.credential, credential);
	assert_non_null(strstr(fake_tunnel.report.text, words));
	for (unsigned i = 0; i < hearing.n; i++)
		assert_false(hearing.all[i].whole);
}

static void done(void)
{
	hearing_free(&hearing);
	messages_close();
}

/* -- what leaves ------------------------------------------------------------------------------------ */

static void test_a_placeholder_becomes_the_value_however_it_is_cut(void **state)
{
	char text[512], want[512];

	(void)state;
	snprintf(text, sizeof(text), "a %s b %s%s sk-", good_word, good_word, good_word);
	snprintf(want, sizeof(want), "a %s b %s%s sk-", GOOD_VALUE, GOOD_VALUE, GOOD_VALUE);
	for (size_t frame = 0; frame <= strlen(text); frame++)
		for (size_t each = 1; each < 8; each += 3) {
			messages_open(false);
			assert_int_equal(say_cut(true, WEBSOCKET_TEXT, text, frame, each), 0);
			assert_int_equal(hearing.n, 1);
			assert_heard(0, want);
			assert_int_equal(hearing.all[0].opcode, WEBSOCKET_TEXT);
			assert_int_equal(fake_carried.n, 1);
			assert_string_equal(fake_tunnel.report.credential, "good");
			done();
		}
}

static void test_a_ping_in_the_middle_goes_first(void **state)
{
	_buf_ struct buf bytes = BUF_INIT(4096);
	const size_t half = strlen(good_word) / 2;

	(void)state;
	messages_open(false);
	frame_add(&bytes, true, WEBSOCKET_TEXT, false, good_word, half);
	frame_add(&bytes, true, WEBSOCKET_PING, true, "ping", 4);
	frame_add(&bytes, true, WEBSOCKET_CONTINUATION, true, good_word + half, strlen(good_word) - half);
	frame_add(&bytes, true, WEBSOCKET_TEXT, true, "", 0);
	hearing_init(&hearing, true);
	assert_int_equal(messages_say(true, bytes.data, bytes.len, 3, &hearing), 0);
	assert_int_equal(hearing.n, 3);
	assert_heard(0, "ping");
	assert_heard(1, GOOD_VALUE);
	assert_heard(2, "");
	done();
}

/* In a string of JSON it is written as that has it; in other text it is not. */
static void test_json(void **state)
{
	static const char value[] = "R3al-\"S3cret\\Value";
	char text[256];

	(void)state;
	assert_int_equal(secrets_put(&fake_worker.secrets, fake_worker.policy->hash, "good", value, strlen(value), 0),
			 0);
	messages_open(false);
	snprintf(text, sizeof(text), " \n {\"k\": \"%s\"}", good_word);
	assert_int_equal(say_cut(true, WEBSOCKET_TEXT, text, 5, 1), 0);
	assert_heard(0, " \n {\"k\": \"R3al-\\\"S3cret\\\\Value\"}");
	done();
	messages_open(false);
	snprintf(text, sizeof(text), "k=%s", good_word);
	assert_int_equal(say_cut(true, WEBSOCKET_TEXT, text, 5, 1), 0);
	assert_heard(0, "k=R3al-\"S3cret\\Value");
	done();
	assert_int_equal(
		secrets_put(&fake_worker.secrets, fake_worker.policy->hash, "good", GOOD_VALUE, strlen(GOOD_VALUE), 0),
		0);
}

static void test_elsewhere(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "a%sb", good_word);
	for (unsigned i = 0; i < 3; i++) { /* not in text: nowhere */
		static const unsigned opcodes[] = { WEBSOCKET_BINARY, WEBSOCKET_PING, WEBSOCKET_PONG };

		messages_open(false);
		assert_ended(say(true, opcodes[i], text), NP_R_CREDENTIAL_ELSEWHERE, "good", "another place");
		done();
	}
	snprintf(text, sizeof(text), "a%sb", other_word);
	messages_open(false);
	assert_ended(say_cut(true, WEBSOCKET_TEXT, text, 3, 1), NP_R_CREDENTIAL_ELSEWHERE, "other",
		     "not for this host");
	done();
	messages_open(false);
	fake_carried.tls = false;
	assert_ended(say(true, WEBSOCKET_TEXT, good_word), NP_R_CREDENTIAL_ELSEWHERE, "good", "without TLS");
	done();
}

/* What comes back would not be searched for a value that this websocket had no claim to when it began. */
static void test_values_that_came_later(void **state)
{
	(void)state;
	messages_open(false);
	fake_worker.secrets.generation++;
	assert_ended(say(true, WEBSOCKET_TEXT, good_word), NP_R_CREDENTIAL_MISSING, "good", "values have changed");
	done();
	messages_open(false);
	fake_carried.body_values = false;
	assert_ended(say(true, WEBSOCKET_TEXT, good_word), NP_R_CREDENTIAL_ELSEWHERE, "good", "when that began");
	done();
	messages_open(false);
	assert_int_equal(say(true, WEBSOCKET_TEXT, good_word), 0); /* the control */
	done();
}

static void test_a_rise_takes_it_away(void **state)
{
	(void)state;
	messages_open(false);
	fake_sandbox.rung.mode = NP_NONE;
	assert_ended(say(true, WEBSOCKET_TEXT, good_word), NP_R_CREDENTIAL_ELSEWHERE, "good", "at its level");
	fake_sandbox.rung.mode = NP_PROXIED;
	done();
}

static void test_a_value_does_not_leave(void **state)
{
	static const struct {
		unsigned opcode;
		const char *text, *name;
	} cases[] = {
		{ WEBSOCKET_TEXT, "x " GOOD_VALUE " y", "good" },
		{ WEBSOCKET_BINARY, "x " OTHER_VALUE, "other" },
		{ WEBSOCKET_PING, GOOD_VALUE, "good" },
		{ WEBSOCKET_TEXT, "523361", NULL },
		{ WEBSOCKET_TEXT, "526561", NULL },
		{ WEBSOCKET_TEXT, "x R3al%2dS3cret%2DValue-01%32%33456789", "good" },
		{ WEBSOCKET_TEXT, "UjNhbC1TM2NyZXQtVmFsdWUtMDEyMzQ1Njc4OQ==", "good" },
		{ WEBSOCKET_BINARY, "\\u00523al-S3cret-Value-0123456789", "good" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t frame = 0; frame < 20; frame += 7) {
			int r;

			messages_open(false);
			r = say_cut(true, cases[i].opcode, cases[i].text, cases[i].opcode & 8 ? 0 : frame, 1);
			if (!cases[i].name) {
				assert_int_equal(r, 0); /* the control */
				assert_heard(0, cases[i].text);
			} else {
				assert_ended(r, NP_R_SECRET_LEAVING, cases[i].name, "is in a message");
				assert_string_equal(leaked, cases[i].name);
			}
			done();
		}
}

/* -- what comes back -------------------------------------------------------------------------------- */

static void test_a_value_comes_back_as_the_placeholder(void **state)
{
	char want[256];

	(void)state;
	snprintf(want, sizeof(want), "you said %s R3al-S3", good_word);
	for (size_t frame = 0; frame < 40; frame++) {
		messages_open(true);
		assert_int_equal(
			say_cut(false, WEBSOCKET_TEXT, "you said " GOOD_VALUE " R3al-S3", frame, 1 + frame % 5), 0);
		assert_int_equal(hearing.n, 1);
		assert_heard(0, want);
		done();
	}
}

static void test_or_ends_it(void **state)
{
	(void)state;
	messages_open(true);
	assert_ended(say_cut(false, WEBSOCKET_TEXT, "you said " OTHER_VALUE, 4, 1), NP_R_SECRET_RETURNED, "", "other");
	done();
	messages_open(true); /* it has no room for a placeholder */
	assert_ended(say(false, WEBSOCKET_PONG, GOOD_VALUE), NP_R_SECRET_RETURNED, "", "in a control frame");
	done();
}

static void test_what_a_client_may_not_say_an_origin_may(void **state)
{
	(void)state;
	messages_open(true);
	assert_int_equal(say(false, WEBSOCKET_BINARY, good_word), 0);
	assert_heard(0, good_word);
	done();
}

/* -- frames ----------------------------------------------------------------------------------------- */

static void test_long_messages_wait_for_nobody(void **state)
{
	const size_t len = 1u << 20;
	char *text = malloc(len + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 's', len); /* each could be the beginning of a placeholder */
	text[len] = '\0';
	for (int from_client = 0; from_client < 2; from_client++) {
		messages_open(true);
		assert_int_equal(say_cut(from_client, WEBSOCKET_BINARY, text, 70000, 16384), 0);
		assert_heard(0, text);
		assert_true(tunnel_messages_held(&fake_tunnel) <= 4 * NP_WITHHELD_BYTES);
		done();
	}
	free(text);
}

static void test_frames_that_are_none(void **state)
{
	_buf_ struct buf bytes = BUF_INIT(256);

	(void)state;
	websocket_write(&bytes, WEBSOCKET_TEXT, true, NULL, "not masked", 10);
	messages_open(false);
	hearing_init(&hearing, true);
	assert_true(messages_say(true, bytes.data, bytes.len, 64, &hearing) < 0);
	assert_int_equal(fake_tunnel.report.reason, NP_R_WEBSOCKET_BROKEN);
	assert_int_equal(hearing.n, 0);
	done();
	/* Nobody can have agreed on compression: it is taken out of the handshake. Whoever compresses all the same is not read. */
	buf_clear(&bytes);
	frame_add(&bytes, true, WEBSOCKET_TEXT, true, "deflated", 8);
	bytes.data[0] = (char)(bytes.data[0] | 0x40);
	messages_open(false);
	fake_tunnel.frames[1].deflate = true;
	hearing_init(&hearing, true);
	assert_ended(messages_say(true, bytes.data, bytes.len, 64, &hearing), NP_R_UNSEARCHABLE, "", "compressed");
	done();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_placeholder_becomes_the_value_however_it_is_cut),
		cmocka_unit_test(test_a_ping_in_the_middle_goes_first),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_values_that_came_later),
		cmocka_unit_test(test_a_rise_takes_it_away),
		cmocka_unit_test(test_a_value_does_not_leave),
		cmocka_unit_test(test_a_value_comes_back_as_the_placeholder),
		cmocka_unit_test(test_or_ends_it),
		cmocka_unit_test(test_what_a_client_may_not_say_an_origin_may),
		cmocka_unit_test(test_long_messages_wait_for_nobody),
		cmocka_unit_test(test_frames_that_are_none),
	};

	return cmocka_run_group_tests(tests, world_start, world_stop);
}
