/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/websocket.c"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* -- what came, as the events tell it ------------------------------------------------------- */

struct heard {
	struct buf text;
	unsigned frames;
};

static int on_frame(void *ctx, const struct websocket_frame *frame)
{
	struct heard *heard = ctx;

	heard->frames++;
	buf_printf(&heard->text, "[%x%s%s %llu]", frame->opcode, frame->fin ? "!" : "", frame->compressed ? "z" : "",
		   (unsigned long long)frame->len);
	return 0;
}

static int on_payload(void *ctx, const struct websocket_frame *frame, uint64_t at, const char *data, size_t len)
{
	struct heard *heard = ctx;
	char plain[4096];

	assert_true(len <= sizeof(plain) && at + len <= frame->len);
	websocket_unmask(frame, at, data, len, plain);
	buf_append(&heard->text, plain, len);
	return 0;
}

static const struct websocket_events events = { .frame = on_frame, .payload = on_payload };

/* Reads it in pieces of each length, which must make no difference; what the events said, or the problem. */
static void expect(bool from_client, bool deflate, const char *data, size_t len, const char *want)
{
	for (size_t each = 1; each <= len; each++) {
		struct heard heard = { .text = BUF_INIT(64u << 10) };
		struct websocket ws;
		int r = 0;

		websocket_init(&ws, from_client, deflate, &events, &heard);
		for (size_t at = 0; at < len && r == 0; at += each)
			r = websocket_read(&ws, data + at, len - at < each ? len - at : each);
		buf_append(&heard.text, "", 1);
		if (r < 0) {
			assert_int_equal(r, -EPROTO);
			assert_non_null(strstr(websocket_problem(&ws), want));
			assert_int_equal(websocket_read(&ws, "\x81\x00", 2), -EPROTO);
		} else {
			assert_string_equal(heard.text.data, want);
			assert_string_equal(websocket_problem(&ws), "");
		}
		buf_free(&heard.text);
	}
}

#define CLIENT(data, want)  expect(true, false, data, sizeof(data) - 1, want)
#define ORIGIN(data, want)  expect(false, false, data, sizeof(data) - 1, want)
#define DEFLATE(data, want) expect(false, true, data, sizeof(data) - 1, want)

static void test_frames(void **state)
{
	(void)state;
	/* RFC 6455, 5.7 */
	ORIGIN("\x81\x05Hello", "[1! 5]Hello");
	CLIENT("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "[1! 5]Hello");
	ORIGIN("\x01\x03Hel\x80\x02lo", "[1 3]Hel[0! 2]lo");
	ORIGIN("\x89\x05Hello\x8a\x05Hello", "[9! 5]Hello[a! 5]Hello");
	/* A control frame between the pieces of a message, and empty ones. */
	ORIGIN("\x02\x01"
	       "a\x89\x00\x00\x00\x80\x01"
	       "b\x82\x00",
	       "[2 1]a[9! 0][0 0][0! 1]b[2! 0]");
	CLIENT("\x88\x80"
	       "abcd",
	       "[8! 0]");
	CLIENT("\x88\x82\0\0\0\0\x03\xe8", "[8! 2]\x03\xe8");
	ORIGIN("\x88\x04\x13\x87ok\x8a\x00", "[8! 4]\x13\x87ok[a! 0]");
}

static void test_broken_frames(void **state)
{
	(void)state;
	CLIENT("\x81\x05Hello", "is not masked");
	ORIGIN("\x81\x85"
	       "abcdHello",
	       "is masked");
	ORIGIN("\x83\x00", "opcode");
	ORIGIN("\x87\x00", "opcode");
	ORIGIN("\x8b\x00", "opcode");
	ORIGIN("\x8f\x00", "opcode");
	ORIGIN("\xc1\x00", "reserved bit");
	ORIGIN("\xa1\x00", "reserved bit");
	ORIGIN("\x91\x00", "reserved bit");
	ORIGIN("\x80\x00", "did not begin");
	ORIGIN("\x01\x00\x01\x00", "inside of another");
	ORIGIN("\x01\x00\x82\x00", "inside of another");
	ORIGIN("\x81\x00\x80\x00", "did not begin");
	ORIGIN("\x09\x00", "fragmented");
	ORIGIN("\x08\x00", "fragmented");
	ORIGIN("\x89\x7e\x00\x7e", "longer than 125");
	ORIGIN("\x88\x7f", "longer than 125");
	ORIGIN("\x88\x01\x03", "half a code");
	ORIGIN("\x88\x00\x81\x00", "behind the close frame");
	ORIGIN("\x88\x00\x88\x00", "behind the close frame");
	/* What came first on this connection was no websocket. */
	CLIENT("GET / HTTP/1.1\r\n", "reserved bit");
	CLIENT("\x16\x03\x01\x02", "reserved bit");
}

static void test_lengths(void **state)
{
	static const struct {
		const char *header;
		size_t len;
		const char *problem;
		uint64_t payload;
	} cases[] = {
		{ "\x82\x7d", 2, NULL, 125 },
		{ "\x82\x7e\x00\x7e", 4, NULL, 126 },
		{ "\x82\x7e\xff\xff", 4, NULL, 65535 },
		{ "\x82\x7f\0\0\0\0\0\1\0\0", 10, NULL, 65536 },
		{ "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10, NULL, INT64_MAX },
		{ "\x82\x7e\x00\x7d", 4, "more bytes than it needs", 0 },
		{ "\x82\x7f\0\0\0\0\0\0\xff\xff", 10, "more bytes than it needs", 0 },
		{ "\x82\x7f\x80\0\0\0\0\0\0\0", 10, "2^63", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct websocket ws;

		websocket_init(&ws, false, false, NULL, NULL);
		if (cases[i].problem) {
			assert_int_equal(websocket_read(&ws, cases[i].header, cases[i].len), -EPROTO);
			assert_non_null(strstr(websocket_problem(&ws), cases[i].problem));
			continue;
		}
		assert_int_equal(websocket_read(&ws, cases[i].header, cases[i].len), 0);
		assert_true(ws.in_payload && ws.frame.len == cases[i].payload);
	}
}

static void test_compressed(void **state)
{
	(void)state;
	DEFLATE("\xc1\x01x\x41\x01x\x80\x01y", "[1!z 1]x[1z 1]x[0! 1]y");
	DEFLATE("\x81\x01x", "[1! 1]x"); /* a message need not be */
	DEFLATE("\x41\x01x\xc0\x01y", "begins no message");
	DEFLATE("\xc9\x00", "begins no message");
	DEFLATE("\xa1\x00", "reserved bit");
}

static void test_close_codes(void **state)
{
	(void)state;
	for (unsigned code = 0; code <= UINT16_MAX; code++) {
		char data[] = { (char)0x88, 2, (char)(code >> 8), (char)code };
		bool good =
			(code >= 1000 && code < 1004) || (code >= 1007 && code < 1015) || (code >= 3000 && code < 5000);
		struct websocket ws;

		websocket_init(&ws, false, false, NULL, NULL);
		assert_int_equal(websocket_read(&ws, data, 4), good ? 0 : -EPROTO);
	}
}

/* -- the handshake ------------------------------------------------------------------------- */

static void head_make(struct head *head, const char *const *fields)
{
	head_init(head);
	for (; *fields; fields += 2)
		assert_int_equal(fields_add(&head->fields, fields[0], strlen(fields[0]), fields[1], strlen(fields[1])),
				 0);
}

#define KEY	"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="
#define VERSION "sec-websocket-version", "13"
#define ACCEPT	"sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static const char *asked(const char *method, const char *upgrade, const char *const *fields)
{
	struct head head;
	const char *problem;

	head_make(&head, fields);
	assert_int_equal(head_set_method(&head, method, strlen(method)), 0);
	assert_int_equal(head_set_upgrade(&head, upgrade, strlen(upgrade)), 0);
	problem = websocket_request_check(&head);
	head_free(&head);
	return problem ? problem : "";
}

#define ASK(...) asked("GET", "websocket", (const char *const[]){ __VA_ARGS__, NULL, NULL })

static void test_requests(void **state)
{
	(void)state;
	assert_string_equal(ASK(KEY, VERSION), "");
	assert_string_equal(ASK(KEY, VERSION, "sec-websocket-protocol", "chat, super.chat"), "");
	assert_non_null(strstr(asked("POST", "websocket", (const char *const[]){ KEY, VERSION, NULL, NULL }), "GET"));
	assert_non_null(
		strstr(asked("GET", "foo", (const char *const[]){ KEY, VERSION, NULL, NULL }), "another protocol"));
	assert_non_null(
		strstr(asked("GET", "websocket/2", (const char *const[]){ KEY, VERSION, NULL, NULL }), "another"));
	assert_non_null(strstr(asked("GET", "tls/1.0", (const char *const[]){ KEY, VERSION, NULL, NULL }), "another"));
	assert_non_null(strstr(ASK(VERSION), "Key"));
	assert_non_null(strstr(ASK(KEY, KEY, VERSION), "Key"));
	assert_non_null(strstr(ASK("sec-websocket-key", "", VERSION), "Key"));
	assert_non_null(strstr(ASK("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=", VERSION), "Key"));
	assert_non_null(strstr(ASK("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZXM=", VERSION), "Key"));
	assert_non_null(strstr(ASK("sec-websocket-key", "dGhlIHNhbXBsZSBub25j!Q==", VERSION), "Key"));
	assert_non_null(strstr(ASK("sec-websocket-key", "dGhlIHNh XBsZSBub25jZQ==", VERSION), "Key"));
	assert_non_null(strstr(ASK(KEY), "Version"));
	assert_non_null(strstr(ASK(KEY, "sec-websocket-version", "8"), "Version"));
	assert_non_null(strstr(ASK(KEY, "sec-websocket-version", "13, 8"), "Version"));
	assert_non_null(strstr(ASK(KEY, VERSION, VERSION), "Version"));
	assert_non_null(strstr(ASK(KEY, VERSION, "sec-websocket-protocol", "a b"), "Protocol"));
}

/* What of the extensions the origin gets to see. */
static void test_offers(void **state)
{
	static const struct {
		const char *offer;
		bool kept;
	} cases[] = {
		{ "permessage-deflate", true },
		{ "permessage-deflate; client_max_window_bits", true },
		{ "permessage-deflate; x=\"a,b\", Permessage-Deflate", true },
		{ "x-webkit-deflate-frame", false },
		{ "permessage-deflate, other", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct head head;

		head_make(&head,
			  (const char *const[]){ KEY, VERSION, "sec-websocket-extensions", cases[i].offer, NULL });
		assert_int_equal(head_set_method(&head, "GET", 3), 0);
		assert_int_equal(head_set_upgrade(&head, "websocket", 9), 0);
		assert_null(websocket_request_check(&head));
		assert_int_equal(fields_find(&head.fields, "sec-websocket-extensions") != NULL, cases[i].kept);
		assert_non_null(fields_find(&head.fields, "sec-websocket-key"));
		head_free(&head);
	}
}

static const char *answered(const char *const *fields, bool *ret_deflate)
{
	struct head request, response;
	const char *problem;

	head_make(&request, (const char *const[]){ KEY, VERSION, "sec-websocket-protocol", "chat, two",
						   "sec-websocket-extensions", "permessage-deflate", NULL });
	head_make(&response, fields);
	problem = websocket_response_check(&request, &response, ret_deflate);
	head_free(&request);
	head_free(&response);
	return problem ? problem : "";
}

#define ANSWER(...) answered((const char *const[]){ __VA_ARGS__, NULL, NULL }, &deflate)

static void test_responses(void **state)
{
	struct head request, response;
	bool deflate = true;

	(void)state;
	assert_string_equal(ANSWER(ACCEPT), ""); /* RFC 6455, 1.3 */
	assert_false(deflate);
	assert_string_equal(ANSWER(ACCEPT, "sec-websocket-protocol", "two"), "");
	assert_string_equal(
		ANSWER(ACCEPT, "sec-websocket-extensions", "permessage-deflate; server_no_context_takeover"), "");
	assert_true(deflate);
	assert_non_null(strstr(ANSWER("x", "y"), "Accept"));
	assert_non_null(strstr(ANSWER(ACCEPT, ACCEPT), "Accept"));
	assert_non_null(strstr(ANSWER("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="), "Accept"));
	assert_non_null(strstr(ANSWER("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo"), "Accept"));
	assert_non_null(strstr(ANSWER(ACCEPT, "sec-websocket-protocol", "three"), "subprotocol"));
	assert_non_null(strstr(ANSWER(ACCEPT, "sec-websocket-protocol", "Chat"), "subprotocol"));
	assert_non_null(strstr(ANSWER(ACCEPT, "sec-websocket-protocol", "chat, two"), "subprotocol"));
	assert_non_null(
		strstr(ANSWER(ACCEPT, "sec-websocket-protocol", "chat", "sec-websocket-protocol", "two"), "sub"));
	assert_non_null(strstr(ANSWER(ACCEPT, "sec-websocket-extensions", "other"), "extension"));
	assert_non_null(strstr(ANSWER(ACCEPT, "sec-websocket-extensions", "permessage-deflate, other"), "extension"));
	head_make(&request, (const char *const[]){ KEY, VERSION, NULL });
	head_make(&response, (const char *const[]){ ACCEPT, "sec-websocket-extensions", "permessage-deflate", NULL });
	assert_non_null(strstr(websocket_response_check(&request, &response, &deflate), "extension"));
	head_free(&request);
	head_free(&response);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),	    cmocka_unit_test(test_broken_frames),
		cmocka_unit_test(test_lengths),	    cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_close_codes), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_offers),	    cmocka_unit_test(test_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
