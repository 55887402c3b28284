/* SPDX-License-Identifier: MIT */
/* Reading: what is a message, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h1.c"

#include "h1_tape.h"
#include "vocab/limits.h"

#define BYTES(text) text, sizeof(text) - 1
#define HOST	    "Host: a.example\r\n"

/* What the client has asked before a response is read. */
static void ask(struct h1 *h1, const char *method, const char *upgrade)
{
	_buf_ struct buf out = BUF_INIT(4096);
	struct head head;

	head_init(&head);
	head.method = method;
	head.authority = "a.example";
	head.target = "/";
	head.upgrade = upgrade;
	assert_int_equal(h1_write_head(h1, &head, false, &out), 0);
}

static void assert_tape(enum h1_role role, const char *method, const char *data, size_t len, const char *expected)
{
	const size_t pieces[] = { SIZE_MAX, 1, 2, 3, 7 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct tape tape;
		struct h1 *h1;
		ssize_t n;

		tape_init(&tape);
		assert_int_equal(h1_new(role, &tape_events, &tape, &h1), 0);
		if (role == H1_CLIENT)
			ask(h1, method, NULL);
		n = tape_feed(h1, data, len, pieces[i], role == H1_SERVER);
		if (n != (ssize_t)len)
			print_message("%.*s\n%zd: %s\n", (int)len, data, n, h1_problem(h1));
		assert_int_equal(n, len);
		assert_string_equal(h1_problem(h1), "");
		assert_string_equal(tape_text(&tape), expected);
		h1_free(h1);
		tape_free(&tape);
	}
}
#define assert_request(text, expected)		assert_tape(H1_SERVER, NULL, BYTES(text), expected)
#define assert_response(method, text, expected) assert_tape(H1_CLIENT, method, BYTES(text), expected)

/* -- requests ----------------------------------------------------------------------- */

static void test_requests(void **state)
{
	(void)state;
	assert_request("GET / HTTP/1.1\r\n" HOST "\r\n", "GET a.example /\n[]\n.\n");
	assert_request(
		"GET /p?q=%20&r HTTP/1.1\r\nhOsT:\t a.example:8080 \t\r\nAccept: */*\r\nX-Empty:\r\nX-Blank:  "
		"\r\nX-Tab: a\tb\r\nX-High: \xc3\xbc\r\n\r\n",
		"GET a.example:8080 /p?q=%20&r\naccept=*/*\nx-empty=\nx-blank=\nx-tab=a\tb\nx-high=\xc3\xbc\n[]\n.\n");
	assert_request("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
		       "POST a.example / length=5 body\n[hello]\n.\n");
	assert_request("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "POST a.example / length=0\n[]\n.\n");
	assert_request("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0b\r\n, "
		       "chunked!\n\r\n0\r\n\r\n",
		       "POST a.example / body\n[hello, chunked!\n]\n.\n");
	assert_request("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5;a=b;c=d\r\nhello\r\n00003 ; a = "
		       "\"b; \\\" c\" \t;\td\r\n, c\r\n6;x\r\nhunked\r\n1;"
		       "chunk-signature=0a\r\n!\r\n0;last\r\n\r\n",
		       "POST a.example / body\n[hello, chunked!]\n.\n");
	assert_request("QUERY /a HTTP/1.1\r\n" HOST "\r\n", "QUERY a.example /a\n[]\n.\n");
	assert_request("VERSION-CONTROL /a HTTP/1.1\r\n" HOST "\r\n", "VERSION-CONTROL a.example /a\n[]\n.\n");
	assert_request("PUT / HTTP/1.1\r\n" HOST "transfer-encoding:chunked\r\nTrailer: x-sum\r\n\r\n"
		       "1;a;d=\"e f\"\r\nx\r\n1;b=c\r\ny\r\n000\r\nX-Sum: 1\r\nx-more:\r\n\r\n",
		       "PUT a.example / body\ntrailer=x-sum\n[xy]\nx-sum=1\nx-more=\n.\n");
	/* Pipelined, and an empty line behind a body. */
	assert_request("POST /1 HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n"
		       "GET /3 HTTP/1.1\r\n" HOST "\r\n",
		       "POST a.example /1 length=1 body\n[x]\n.\nGET a.example /2\n[]\n.\nGET a.example /3\n[]\n.\n");
}

static void test_targets(void **state)
{
	(void)state;
	assert_request("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS a.example *\n[]\n.\n");
	assert_request("OPTIONS http://a.example HTTP/1.1\r\n" HOST "\r\n", "OPTIONS a.example * http\n[]\n.\n");
	assert_request("GET http://a.example HTTP/1.1\r\n" HOST "\r\n", "GET a.example / http\n[]\n.\n");
	assert_request("GET HTTPS://A.Example:443/x?y@z HTTP/1.1\r\n" HOST "\r\n",
		       "GET A.Example:443 /x?y@z https\n[]\n.\n");
	assert_request("GET http://a.example./ HTTP/1.1\r\nHost: A.EXAMPLE:80\r\n\r\n",
		       "GET a.example. / http\n[]\n.\n");
	assert_request("GET http://[2001:DB8::1]:80/ HTTP/1.1\r\nHost: [2001:db8:0::1]\r\n\r\n",
		       "GET [2001:DB8::1]:80 / http\n[]\n.\n");
	assert_request("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
		       "CONNECT a.example:443 \n[]\n.\n");
	assert_request("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n",
		       "CONNECT [2001:db8::1]:443 \n[]\n.\n");
	assert_request("GET /a//b/../{c}|\"<>\\^` HTTP/1.1\r\n" HOST "\r\n",
		       "GET a.example /a//b/../{c}|\"<>\\^`\n[]\n.\n");
}

static void test_connection_fields(void **state)
{
	(void)state;
	assert_request("GET / HTTP/1.1\r\nX-A: 1\r\nX-B: 2\r\n" HOST
		       "Connection: keep-alive, x-B ,,\tX-c\r\nKeep-Alive: "
		       "5\r\nProxy-Connection: close\r\nX-C: 3\r\nX-D: 4\r\nx-b: 5\r\n\r\n",
		       "GET a.example /\nx-a=1\nx-d=4\n[]\n.\n");
	assert_request("GET / HTTP/1.1\r\n" HOST "TE: gzip;q=0.5, Trailers\r\nConnection: TE\r\n\r\n",
		       "GET a.example / te\n[]\n.\n");
	assert_request("GET / HTTP/1.1\r\n" HOST "TE: gzip\r\n\r\n", "GET a.example /\n[]\n.\n");
	assert_request("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
		       "PUT a.example / length=1 body continue\n[x]\n.\n");
	assert_request("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
		       "GET a.example / upgrade=websocket\n[]\n.\n");
	assert_request("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
		       "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		       "GET a.example / upgrade=h2c\n[]\n.\n");
	/* Not named by connection, or a choice: it may be ignored. */
	assert_request("GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", "GET a.example /\n[]\n.\n");
	assert_request("GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: a, b/2\r\n\r\n",
		       "GET a.example /\n[]\n.\n");
	assert_request("GET / HTTP/1.0\r\n" HOST "Connection: upgrade\r\nUpgrade: a\r\nExpect: 100-continue\r\n\r\n",
		       "GET a.example /\n[]\n.\n");
	/* A body in front of the other protocol. */
	assert_request("POST / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: a/1\r\nContent-Length: 2\r\n\r\nhi",
		       "POST a.example / length=2 body upgrade=a/1\n[hi]\n.\n");
}

static void test_persists(void **state)
{
	static const struct {
		const char *text;
		bool persists;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: Close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\nConnection: x, close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\n" HOST "\r\n", false },
		{ "GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tape tape;
		struct h1 *h1;

		tape_init(&tape);
		assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
		assert_true(h1_persists(h1));
		assert_int_equal(h1_read(h1, cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
		assert_int_equal(h1_persists(h1), cases[i].persists);
		h1_free(h1);
		tape_free(&tape);
	}
}

/* -- what is refused ------------------------------------------------------------------- */

struct bad {
	const char *text;
	size_t len;
	const char *problem; /* part of it */
};

static void assert_refused(enum h1_role role, const char *method, const char *upgrade, const struct bad *bad)
{
	const size_t pieces[] = { SIZE_MAX, 1, 5 };
	char *tapes[3];

	for (size_t i = 0; i < 3; i++) {
		struct tape tape;
		struct h1 *h1;
		ssize_t n;

		tape_init(&tape);
		assert_int_equal(h1_new(role, &tape_events, &tape, &h1), 0);
		if (role == H1_CLIENT)
			ask(h1, method, upgrade);
		n = tape_feed(h1, bad->text, bad->len, pieces[i], role == H1_SERVER);
		if (n != -EPROTO || !strstr(h1_problem(h1), bad->problem))
			print_message("%.*s\n%zd: \"%s\", expected \"%s\"\n", (int)bad->len, bad->text, n,
				      h1_problem(h1), bad->problem);
		assert_int_equal(n, -EPROTO);
		assert_non_null(strstr(h1_problem(h1), bad->problem));
		/* It stays so. */
		assert_int_equal(h1_read(h1, "x", 1), -EPROTO);
		assert_int_equal(h1_read_eof(h1), -EPROTO);
		assert_false(h1_persists(h1));
		tape_flush(&tape);
		tapes[i] = buf_take(&tape.text);
		assert_string_equal(tapes[i], tapes[0]);
		h1_free(h1);
		tape_free(&tape);
	}
	for (size_t i = 0; i < 3; i++)
		free(tapes[i]);
}

#define GET	"GET / HTTP/1.1\r\n" HOST
#define POST	"POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define BAD(text, why)           \
	{                        \
		BYTES(text), why \
	}

static void test_bad_lengths(void **state)
{
	static const struct bad cases[] = {
		/* CL.TE and TE.CL */
		BAD(POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", "both content-length"),
		BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n",
		    "both content-length"),
		/* TE.TE */
		BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: chunked, identity\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: identity, chunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: chunked,\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: ,chunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: xchunked\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: chunkedx\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: chunked;q=1\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: \"chunked\"\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: identity\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding:\r\n\r\n", "transfer-encoding"),
		BAD(POST "Transfer-Encoding: \x0b"
			 "chunked\r\n\r\n",
		    "control byte"),
		BAD(POST "Transfer-Encoding: chunked\x0b\r\n\r\n", "control byte"),
		BAD(POST "Transfer-Encoding: chunked\0\r\n\r\n", "control byte"),
		BAD(POST "Transfer-Encoding: \xc2\xa0"
			 "chunked\r\n\r\n",
		    "transfer-encoding"),
		BAD(POST "Transfer-Encoding : chunked\r\n\r\n", "does not belong"),
		BAD(POST "Transfer-Encoding\t: chunked\r\n\r\n", "does not belong"),
		BAD(POST " Transfer-Encoding: chunked\r\n\r\n", "begins with space"),
		BAD(POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n", "begins with space"),
		BAD(POST "X: y\rTransfer-Encoding: chunked\r\n\r\n", "CR without LF"),
		BAD(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n", "without CR"),
		BAD(POST "Transfer-Encoding:\n chunked\r\n\r\n", "without CR"),
		BAD(POST "Transfer-Encoding:\r\n chunked\r\n\r\n", "begins with space"),
		BAD(POST "Transfer_Encoding: chunked\r\n\r\n", "looks like"),
		BAD(POST "Content_Length: 5\r\n\r\n", "looks like"),
		BAD("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"),
		/* lengths */
		BAD(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "several content-length"),
		BAD(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "several content-length"),
		BAD(POST "Content-Length: 0\r\nContent-Length: 6\r\n\r\nhello", "several content-length"),
		BAD(POST "Content-Length: 5, 5\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: +5\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: -5\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 0x5\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 5.0\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 1 2\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 5 \t\r\n\r\nhello\r\n", "plain number"),
		BAD(POST "Content-Length: 05\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 00\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length:\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: \r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: a\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 18446744073709551621\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 18446744073709551615\r\n\r\nhello", "plain number"),
		BAD(POST "Content-Length: 9999999999999999999\r\n\r\nhello", "plain number"),
		BAD("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\n\r\nabc", "CONNECT with a body"),
		BAD("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: chunked\r\n\r\n", "CONNECT with a body"),
		BAD("CONNECT a.example HTTP/1.0\r\n\r\n", "without a port"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(H1_SERVER, NULL, NULL, &cases[i]);
}

static void test_bad_chunks(void **state)
{
	static const struct bad cases[] = {
		BAD(CHUNKED "+5\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "-5\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED " 5\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5 \r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5\t\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5_0\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "g\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5\rhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5\r\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5\0\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "fffffffffffffffff\r\nhello", "chunk"),
		BAD(CHUNKED "00000000000000005\r\nhello\r\n0\r\n\r\n", "too many digits"),
		/* llhttp that is not strict takes any two bytes there */
		BAD(CHUNKED "5\r\nhelloXX0\r\n\r\n", "chunks are not framed"),
		BAD(CHUNKED "5\r\nhello\n\n0\r\n\r\n", "chunks are not framed"),
		BAD(CHUNKED "5\r\nhello\r\r0\r\n\r\n", "chunks are not framed"),
		BAD(CHUNKED "5\r\nhello0\r\n\r\n", "chunks are not framed"),
		BAD(CHUNKED "5\r\nhello!\r\n0\r\n\r\n", "chunks are not framed"),
		BAD(CHUNKED "5;\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;;a\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=b=c\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\"b\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\"\\\r\n\"\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a \r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5 a\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a\rX\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED ";a\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "5;a=\x01\r\nhello\r\n0\r\n\r\n", "chunk"),
		BAD(CHUNKED "0\r\n\nX", "without CR"),
		BAD(CHUNKED "0\r\n\r\r\n", "CR without LF"),
		BAD(CHUNKED "0\r\nX: y\n\r\n", "without CR"),
		BAD(CHUNKED "0\r\nX: y\r\n z\r\n\r\n", "begins with space"),
		BAD(CHUNKED "0\r\n X: y\r\n\r\n", "begins with space"),
		BAD(CHUNKED "0\r\nX : y\r\n\r\n", "does not belong"),
		BAD(CHUNKED "0\r\nX\r\n\r\n", "does not belong"),
		BAD(CHUNKED "0\r\n: y\r\n\r\n", "does not belong"),
		BAD(CHUNKED "0\r\nX: \x7f\r\n\r\n", "control byte"),
		BAD(CHUNKED "0\r\nHost: b.example\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nX: y\r\nContent-Length: 5\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nCookie: a=b\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nauthorization: x\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nConnection: close\r\n\r\n", "trailer"),
		BAD(CHUNKED "0\r\nUpgrade: x\r\n\r\n", "trailer"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(H1_SERVER, NULL, NULL, &cases[i]);
}

static void test_bad_lines(void **state)
{
	static const struct bad cases[] = {
		/* the first line */
		BAD("GET  / HTTP/1.1\r\n" HOST "\r\n", "spaces"),
		BAD("GET /  HTTP/1.1\r\n" HOST "\r\n", "spaces"),
		BAD("GET / HTTP/1.1 \r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/1.1x\r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/1.1 HTTP/1.1\r\n" HOST "\r\n", "spaces"),
		BAD("GET /a b HTTP/1.1\r\n" HOST "\r\n", "spaces"),
		BAD("GET\t/ HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("GET /\tHTTP/1.1\r\n" HOST "\r\n", "version"),
		BAD("GET /\t HTTP/1.1\r\n" HOST "\r\n", "does not belong"),
		BAD(" GET / HTTP/1.1\r\n" HOST "\r\n", "begins with space"),
		BAD("GET / HTTP/1.1\n" HOST "\r\n", "without CR"),
		BAD("GET / HTTP/1.1\r" HOST "\r\n", "CR without LF"),
		BAD("GET / HTTP/1.1\r\r\n" HOST "\r\n", "CR without LF"),
		BAD("GET /\0 HTTP/1.1\r\n" HOST "\r\n", "control byte"),
		BAD("GET /\x7f HTTP/1.1\r\n" HOST "\r\n", "control byte"),
		BAD("GET /\xc3\xbc HTTP/1.1\r\n" HOST "\r\n", "does not belong"),
		BAD("GET /\r\n" HOST "\r\n", "version"),
		BAD("GET\r\n" HOST "\r\n", "method"),
		BAD("/ HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("GET HTTP/1.1\r\n" HOST "\r\n", "version"),
		BAD("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "empty line"),
		BAD("\nGET / HTTP/1.1\r\n" HOST "\r\n", "without CR"),
		BAD("get / HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("Get / HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("G.T / HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("-GET / HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" HOST "\r\n", "method"),
		BAD("GET / HTTP/1.2\r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/2.0\r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/0.9\r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/1.10\r\n" HOST "\r\n", "version"),
		BAD("GET / HTTP/01.1\r\n" HOST "\r\n", "version"),
		BAD("GET / http/1.1\r\n" HOST "\r\n", "version"),
		BAD("GET / RTSP/1.0\r\n" HOST "\r\n", "version"),
		BAD("SOURCE / ICE/1.0\r\n" HOST "\r\n", "version"),
		BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"),
		/* targets */
		BAD("GET /#f HTTP/1.1\r\n" HOST "\r\n", "fragment"),
		BAD("GET http://a.example/#f HTTP/1.1\r\n" HOST "\r\n", "fragment"),
		BAD("GET * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS"),
		BAD("OPTIONS *a HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET a HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET ?a HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET a.example:80 HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET ftp://a.example/ HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET http:/a.example/ HTTP/1.1\r\n" HOST "\r\n", "target"),
		BAD("GET http:///x HTTP/1.1\r\n" HOST "\r\n", "authority"),
		BAD("GET http://b.example/ HTTP/1.1\r\n" HOST "\r\n", "two hosts"),
		BAD("GET http://a.example:8080/ HTTP/1.1\r\n" HOST "\r\n", "two hosts"),
		BAD("GET https://a.example/ HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "two hosts"),
		BAD("GET http://a.example/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "two hosts"),
		BAD("GET http://127.0.0.1/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "two hosts"),
		BAD("GET http://2130706433/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "authority"),
		BAD("GET http://u@a.example/ HTTP/1.1\r\n" HOST "\r\n", "user name"),
		BAD("GET http://u:p@a.example/ HTTP/1.1\r\n" HOST "\r\n", "user name"),
		BAD("GET http://a.example?x HTTP/1.1\r\n" HOST "\r\n", "authority"),
		BAD("GET http://a.example\\@b.example/ HTTP/1.1\r\n" HOST "\r\n", "user name"),
		BAD("GET http://a.example:/ HTTP/1.1\r\n" HOST "\r\n", "authority"),
		BAD("GET http://a.example:080/ HTTP/1.1\r\n" HOST "\r\n", "authority"),
		BAD("CONNECT a.example HTTP/1.1\r\n" HOST "\r\n", "without a port"),
		BAD("CONNECT [::1] HTTP/1.1\r\nHost: [::1]\r\n\r\n", "without a port"),
		BAD("CONNECT / HTTP/1.1\r\n" HOST "\r\n", "CONNECT needs"),
		BAD("CONNECT http://a.example:80 HTTP/1.1\r\n" HOST "\r\n", "CONNECT needs"),
		BAD("CONNECT u@a.example:80 HTTP/1.1\r\n" HOST "\r\n", "CONNECT needs"),
		BAD("CONNECT b.example:443 HTTP/1.1\r\n" HOST "\r\n", "two hosts"),
		BAD("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "two hosts"),
		/* hosts */
		BAD("GET / HTTP/1.1\r\n\r\n", "no Host"),
		BAD("GET / HTTP/1.0\r\n\r\n", "no Host"),
		BAD("GET http://a.example/ HTTP/1.1\r\n\r\n", "no Host"),
		BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n", "Host is not"),
		BAD("GET / HTTP/1.1\r\nHost: \t\r\n\r\n", "Host is not"),
		BAD(GET HOST "\r\n", "several Host"),
		BAD(GET "host: b.example\r\n\r\n", "several Host"),
		BAD("GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n", "Host is not"),
		BAD("GET / HTTP/1.1\r\nHost: a.example/x\r\n\r\n", "Host is not"),
		BAD("GET / HTTP/1.1\r\nHost: u@a.example\r\n\r\n", "Host is not"),
		BAD("GET / HTTP/1.1\r\nHost: a.example\xc2\xa0\r\n\r\n", "Host is not"),
		BAD("GET / HTTP/1.1\r\nHost: a%2eexample\r\n\r\n", "Host is not"),
		/* fields */
		BAD(GET "X : y\r\n\r\n", "does not belong"),
		BAD(GET ": y\r\n\r\n", "does not belong"),
		BAD(GET "X\r\n\r\n", "does not belong"),
		BAD(GET "X y: z\r\n\r\n", "does not belong"),
		BAD(GET "X\xc3\xbc: z\r\n\r\n", "does not belong"),
		BAD(GET "X(: z\r\n\r\n", "does not belong"),
		BAD(GET "X\0: z\r\n\r\n", "control byte"),
		BAD(GET "X: a\0b\r\n\r\n", "control byte"),
		BAD(GET "X: a\x08"
			"b\r\n\r\n",
		    "control byte"),
		BAD(GET "X: a\x7f"
			"b\r\n\r\n",
		    "control byte"),
		BAD(GET "X: a\rb\r\n\r\n", "CR without LF"),
		BAD(GET "X: a\r\n\tb\r\n\r\n", "begins with space"),
		BAD(GET "X: a\r\n \r\n\r\n", "begins with space"),
		BAD(GET "X: a\n\r\n", "without CR"),
		BAD(GET "X: a\r\n\n", "without CR"),
		BAD(GET "\n\r\n", "without CR"),
		BAD(GET "X:\rY: z\r\n\r\n", "CR without LF"),
		BAD(GET "X:\r\rY: z\r\n\r\n", "CR without LF"),
		/* connection and kin */
		BAD(GET "Connection: host\r\n\r\n", "taken back"),
		BAD(GET "Connection: close, Content-Length\r\n\r\n", "taken back"),
		BAD(GET "Connection: transfer-encoding\r\n\r\n", "taken back"),
		BAD(GET "Connection: Cookie\r\n\r\n", "taken back"),
		BAD(GET "Connection: keep-alive\r\nConnection: authorization\r\n\r\n", "taken back"),
		BAD(GET "Connection: a b\r\n\r\n", "list of names"),
		BAD(GET "Connection: a,b,c,d,e,f,g,h,i\r\n\r\n", "too many"),
		BAD(GET "Expect: 200-ok\r\n\r\n", "expect"),
		BAD(GET "Expect:\r\n\r\n", "expect"),
		BAD(GET "Expect: 100-continue, x\r\n\r\n", "expect"),
		BAD(GET "Connection: upgrade\r\nUpgrade: a b\r\n\r\n", "list of protocols"),
		BAD(GET "Connection: upgrade\r\nUpgrade: a/\r\n\r\n", "list of protocols"),
		BAD(GET "Connection: upgrade\r\nUpgrade: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n", "overlong"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(H1_SERVER, NULL, NULL, &cases[i]);
}

/* By the grammar, byte for byte: in a name, in a value and in a target. */
static void test_every_byte(void **state)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char *const texts[] = { "GET / HTTP/1.1\r\nHost: a\r\nX@Y: z\r\n\r\n",
					     "GET / HTTP/1.1\r\nHost: a\r\n@: z\r\n\r\n",
					     "GET / HTTP/1.1\r\nHost: a\r\nx: y@z\r\n\r\n",
					     "GET /@ HTTP/1.1\r\nHost: a\r\n\r\n" };

	(void)state;
	for (size_t f = 0; f < 4; f++) {
		for (int c = 0; c < 256; c++) {
			size_t len = strlen(texts[f]);
			char text[100];
			bool valid = c && strchr(token, c);
			struct tape tape;
			struct h1 *h1;

			strcpy(text, texts[f]);
			*strchr(text, '@') = (char)c;
			if (f == 0 && c == ':')
				valid = true; /* it ends there */
			if (f == 2)
				valid = c == '\t' || (c >= 0x20 && c != 0x7f);
			if (f == 3)
				valid = c > 0x20 && c < 0x7f && c != '#';
			tape_init(&tape);
			assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
			assert_int_equal(h1_read(h1, text, len), valid ? (ssize_t)len : -EPROTO);
			h1_free(h1);
			tape_free(&tape);
		}
	}
}

/* -- bounds -------------------------------------------------------------------------------- */

static ssize_t read_all(const struct buf *text, size_t at_a_time)
{
	struct tape tape;
	struct h1 *h1;
	ssize_t n;

	tape_init(&tape);
	assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
	n = tape_feed(h1, text->data, text->len, at_a_time, true);
	if (n == -E2BIG)
		assert_string_equal(h1_problem(h1), "the head is too large");
	assert_int_equal(tape.heads, n == -E2BIG ? 0 : 1);
	h1_free(h1);
	tape_free(&tape);
	return n;
}

static void test_head_bounds(void **state)
{
	_buf_ struct buf text = BUF_INIT(1u << 20);
	const size_t pieces[] = { SIZE_MAX, 1000, 1 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		/* fields: Host is one of them */
		for (size_t n = NP_HEAD_FIELDS; n <= NP_HEAD_FIELDS + 1; n++) {
			buf_clear(&text);
			buf_puts(&text, GET);
			for (size_t k = 1; k < n; k++)
				buf_puts(&text, "Keep-Alive: x\r\n");
			buf_puts(&text, "\r\n");
			assert_int_equal(read_all(&text, pieces[i]), n == NP_HEAD_FIELDS ? (ssize_t)text.len : -E2BIG);
		}
		/* bytes */
		for (size_t n = NP_HEAD_BYTES; n <= NP_HEAD_BYTES + 1; n++) {
			buf_clear(&text);
			buf_puts(&text, GET "X:");
			while (text.len < n - 5)
				buf_puts(&text, " ");
			buf_puts(&text, "y\r\n\r\n");
			assert_int_equal(text.len, n);
			assert_int_equal(read_all(&text, pieces[i]), n == NP_HEAD_BYTES ? (ssize_t)text.len : -E2BIG);
		}
		/* no end in sight */
		buf_clear(&text);
		while (text.len < NP_HEAD_BYTES + 100)
			buf_puts(&text, "GET / ");
		assert_int_equal(read_all(&text, pieces[i]), -E2BIG);
	}
}

/* Of extensions: on one chunk, and on many. Those of a long body are as many as its chunks are large. */
static void test_extension_bounds(void **state)
{
	static const struct {
		size_t chunks, extension, chunk;
		bool fits;
	} cases[] = {
		{ 1, NP_CHUNK_EXTENSIONS, 5, true },
		{ 1, NP_CHUNK_EXTENSIONS + 1, 5, false },
		{ 100, NP_CHUNK_EXTENSIONS / 50, 1, false },
		{ 100, NP_CHUNK_EXTENSIONS / 50, 1024, true },
	};
	_buf_ struct buf text = BUF_INIT(1u << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ssize_t n;

		buf_clear(&text);
		buf_puts(&text, CHUNKED);
		for (size_t k = 0; k < cases[i].chunks; k++) {
			buf_printf(&text, "%zx;%0*d\r\n", cases[i].chunk, (int)cases[i].extension - 1, 0);
			buf_printf(&text, "%0*d\r\n", (int)cases[i].chunk, 0);
		}
		buf_puts(&text, "0\r\n\r\n");
		n = read_all(&text, 1000);
		assert_int_equal(n, cases[i].fits ? (ssize_t)text.len : -EPROTO);
	}
}

static void test_trailer_bounds(void **state)
{
	_buf_ struct buf text = BUF_INIT(1u << 20);

	(void)state;
	for (size_t n = NP_HEAD_FIELDS; n <= NP_HEAD_FIELDS + 1; n++) {
		struct tape tape;
		struct h1 *h1;

		buf_clear(&text);
		buf_puts(&text, CHUNKED "0\r\n");
		for (size_t k = 0; k < n; k++)
			buf_puts(&text, "X: y\r\n");
		buf_puts(&text, "\r\n");
		tape_init(&tape);
		assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
		assert_int_equal(h1_read(h1, text.data, text.len), n == NP_HEAD_FIELDS ? (ssize_t)text.len : -E2BIG);
		assert_int_equal(tape.ends, n == NP_HEAD_FIELDS);
		h1_free(h1);
		tape_free(&tape);
	}
}

/* -- responses ------------------------------------------------------------------------------- */

static void test_responses(void **state)
{
	(void)state;
	assert_response("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer: x\r\n\r\nhi",
			"200 length=2 body\nserver=x\n[hi]\n.\n");
	assert_response("GET", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", "404 length=0\n[]\n.\n");
	assert_response("GET", "HTTP/1.1 999 \r\nContent-Length: 0\r\n\r\n", "999 length=0\n[]\n.\n");
	assert_response(
		"GET",
		"HTTP/1.1 200 S\xc3\xbc\xc3\x9f\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n",
		"200 body\n[hi]\nx=y\n.\n");
	assert_response(
		"GET",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c\r\nhi\r\n0\r\nX: y\r\nSet-Cookie: a=b\r\n"
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nZ: z\r\n\r\n",
		"200 body\n[hi]\nx=y\nz=z\n.\n");
	assert_response("GET", "HTTP/1.1 204 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "204\n[]\n.\n");
	assert_response("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "200 length=2\n[]\n.\n");
	assert_response("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200\n[]\n.\n");
	assert_response("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "304 length=7\n[]\n.\n");
	assert_response("GET", "HTTP/1.1 204 No Content\r\n\r\n", "204\n[]\n.\n");
	assert_response("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "204\n[]\n.\n");
	assert_response("GET",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
			"Content-Length: 1\r\n\r\n!",
			"100\n103\nlink=x\n200 length=1 body\n[!]\n.\n");
	assert_response("GET", "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: h2,h2c\r\nContent-Length: 0\r\n\r\n",
			"200 length=0\n[]\n.\n");
	assert_response("CONNECT", "HTTP/1.1 403 Forbidden\r\nContent-Length: 1\r\n\r\n!",
			"403 length=1 body\n[!]\n.\n");
	/* Until the connection closes. */
	assert_response("GET", "HTTP/1.1 200 OK\r\n\r\nGET / HTTP/1.1\r\n\r\n", "200 body\n");
}

static void test_until_close(void **state)
{
	static const char *const heads[] = { "HTTP/1.1 200 OK\r\n\r\n",
					     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tape tape;
		struct h1 *h1;

		tape_init(&tape);
		assert_int_equal(h1_new(H1_CLIENT, &tape_events, &tape, &h1), 0);
		ask(h1, "GET", NULL);
		assert_int_equal(h1_read(h1, heads[i], strlen(heads[i])), strlen(heads[i]));
		assert_int_equal(h1_read(h1, "abc", 3), 3);
		assert_int_equal(tape.ends, 0);
		assert_false(h1_persists(h1));
		assert_int_equal(h1_read_eof(h1), 0);
		assert_int_equal(tape.ends, 1);
		assert_string_equal(tape_text(&tape), "200 body\n[abc]\n.\n");
		assert_int_equal(h1_read_eof(h1), 0);
		assert_int_equal(tape.ends, 1);
		h1_free(h1);
		tape_free(&tape);
	}
}

static void test_eof(void **state)
{
	static const struct {
		enum h1_role role;
		const char *text;
		int expected;
	} cases[] = {
		{ H1_SERVER, "", 0 },
		{ H1_SERVER, "\r\n", 0 },
		{ H1_SERVER, "G", -EPROTO },
		{ H1_SERVER, "GET / HTTP/1.1\r\n" HOST, -EPROTO },
		{ H1_SERVER, GET "\r\n", 0 },
		{ H1_SERVER, POST "Content-Length: 5\r\n\r\nhell", -EPROTO },
		{ H1_SERVER, POST "Content-Length: 5\r\n\r\nhello", 0 },
		{ H1_SERVER, CHUNKED "5\r\nhello\r\n", -EPROTO },
		{ H1_SERVER, CHUNKED "5\r\nhello\r\n0\r\n", -EPROTO },
		{ H1_SERVER, CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0 },
		{ H1_CLIENT, "", -EPROTO },
		{ H1_CLIENT, "HTTP/1.1 100 Continue\r\n\r\n", -EPROTO },
		{ H1_CLIENT, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", -EPROTO },
		{ H1_CLIENT, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", -EPROTO },
		{ H1_CLIENT, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tape tape;
		struct h1 *h1;

		tape_init(&tape);
		assert_int_equal(h1_new(cases[i].role, &tape_events, &tape, &h1), 0);
		if (cases[i].role == H1_CLIENT)
			ask(h1, "GET", NULL);
		assert_int_equal(h1_read(h1, cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
		assert_int_equal(h1_read_eof(h1), cases[i].expected);
		assert_int_equal(!!strstr(h1_problem(h1), "the connection closed"), cases[i].expected != 0);
		h1_free(h1);
		tape_free(&tape);
	}
}

static void test_switch(void **state)
{
	static const char text[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n"
				   "Sec-WebSocket-Accept: x\r\n\r\n\x81\x05hello";
	struct tape tape;
	struct h1 *h1;

	(void)state;
	tape_init(&tape);
	assert_int_equal(h1_new(H1_CLIENT, &tape_events, &tape, &h1), 0);
	ask(h1, "GET", "websocket");
	assert_int_equal(h1_read(h1, BYTES(text)), sizeof(text) - 1 - 7);
	assert_string_equal(tape_text(&tape), "101 upgrade=websocket\nsec-websocket-accept=x\n");
	assert_int_equal(h1_read(h1, "\x81", 1), 0);
	assert_false(h1_persists(h1));
	assert_int_equal(h1_read_eof(h1), 0);
	assert_int_equal(tape.ends, 0);
	h1_free(h1);
	tape_free(&tape);
}

static void test_bad_responses(void **state)
{
	static const struct {
		const char *method, *upgrade;
		struct bad bad;
	} cases[] = {
		{ "GET", NULL,
		  BAD("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "several content-length") },
		{ "GET", NULL,
		  BAD("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both") },
		{ "HEAD", NULL,
		  BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "both") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer-encoding") },
		{ "GET", NULL,
		  BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer-encoding") },
		{ "GET", NULL,
		  BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "transfer-encoding") },
		{ "GET", NULL, BAD("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", "without CR") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nX: y\nContent-Length: 0\r\n\r\n", "without CR") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", "begins with space") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "does not belong") },
		{ "GET", NULL, BAD("HTTP/1.1 200 O\0K\r\n\r\n", "control byte") },
		{ "GET", NULL, BAD("\r\nHTTP/1.1 200 OK\r\n\r\n", "empty line") },
		{ "GET", NULL, BAD("HTTP/1.1  200 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 20 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 2000 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 099 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 +20 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 200OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1200 OK\r\n\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/2.0 200 OK\r\n\r\n", "version") },
		{ "GET", NULL, BAD("ICY 200 OK now what\r\n\r\n", "status") },
		{ "GET", NULL, BAD("GET / HTTP/1.1\r\n" HOST "\r\n", "status") },
		{ "GET", NULL, BAD("HTTP/1.1 204 OK\r\nContent-Length: 5\r\n\r\nhello", "cannot have one") },
		{ "GET", NULL, BAD("HTTP/1.1 100 OK\r\nContent-Length: 5\r\n\r\nhello", "cannot have one") },
		{ "GET", NULL,
		  BAD("HTTP/1.1 103 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "cannot have one") },
		{ "GET", NULL,
		  BAD("HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "did not ask") },
		{ "GET", "websocket",
		  BAD("HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "another protocol") },
		{ "GET", "websocket", BAD("HTTP/1.1 101 OK\r\nUpgrade: websocket\r\n\r\n", "another protocol") },
		{ "GET", "websocket", BAD("HTTP/1.1 101 OK\r\nConnection: upgrade\r\n\r\n", "another protocol") },
		{ "GET", "websocket",
		  BAD("HTTP/1.0 101 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "another protocol") },
		{ "CONNECT", NULL, BAD("HTTP/1.1 200 OK\r\n\r\n", "tunnel") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nConnection: content-length\r\n\r\n", "taken back") },
		{ "GET", NULL, BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", "chunk") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(H1_CLIENT, cases[i].method, cases[i].upgrade, &cases[i].bad);
}

static void test_interim_flood(void **state)
{
	static const char text[] = "HTTP/1.1 102 Processing\r\n\r\n";
	struct tape tape;
	struct h1 *h1;

	(void)state;
	tape_init(&tape);
	assert_int_equal(h1_new(H1_CLIENT, &tape_events, &tape, &h1), 0);
	ask(h1, "GET", NULL);
	for (unsigned i = 0; i < NP_INTERIM_MAX; i++)
		assert_int_equal(h1_read(h1, BYTES(text)), sizeof(text) - 1);
	assert_int_equal(h1_read(h1, BYTES(text)), -EPROTO);
	h1_free(h1);
	tape_free(&tape);
}

/* -- one after the other ----------------------------------------------------------------------- */

static void test_response_needs_request(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct tape tape;
	struct h1 *h1;

	(void)state;
	tape_init(&tape);
	assert_int_equal(h1_new(H1_CLIENT, &tape_events, &tape, &h1), 0);
	assert_int_equal(h1_read_eof(h1), 0);
	h1_free(h1);
	assert_int_equal(h1_new(H1_CLIENT, &tape_events, &tape, &h1), 0);
	for (unsigned i = 0; i < 3; i++) {
		ask(h1, "GET", NULL);
		assert_int_equal(h1_read(h1, BYTES(text)), sizeof(text) - 1);
		/* The end was reached: nothing more is ours. */
		assert_int_equal(h1_read(h1, BYTES(text)), 0);
		assert_true(h1_persists(h1));
		h1_next(h1);
	}
	assert_int_equal(h1_read(h1, BYTES(text)), -EPROTO);
	assert_string_equal(h1_problem(h1), "a response that nobody asked for");
	h1_free(h1);
	tape_free(&tape);
}

static void test_trailers_do_not_stay(void **state)
{
	static const char first[] = CHUNKED "0\r\nX-Sum: 1\r\n\r\n", second[] = CHUNKED "0\r\n\r\n";
	struct tape tape;
	struct h1 *h1;

	(void)state;
	tape_init(&tape);
	assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
	assert_int_equal(h1_read(h1, BYTES(first)), sizeof(first) - 1);
	h1_next(h1);
	assert_int_equal(h1_read(h1, BYTES(second)), sizeof(second) - 1);
	h1_next(h1);
	assert_int_equal(h1_read(h1, BYTES(GET "\r\n")), sizeof(GET) + 1);
	assert_string_equal(
		tape_text(&tape),
		"POST a.example / body\n[]\nx-sum=1\n.\nPOST a.example / body\n[]\n.\nGET a.example /\n[]\n.\n");
	h1_free(h1);
	tape_free(&tape);
}

/* An event may stop it, at any point. */
static void test_event_errors(void **state)
{
	static const char text[] = CHUNKED "1\r\nx\r\n0\r\n\r\n";
	const size_t stops[] = { sizeof(CHUNKED) - 2, sizeof(CHUNKED) + 2, sizeof(text) - 2 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tape tape;
		struct h1 *h1;

		tape_init(&tape);
		assert_int_equal(h1_new(H1_SERVER, &tape_events, &tape, &h1), 0);
		assert_int_equal(h1_read(h1, text, stops[i]), stops[i]);
		tape.fail = -ECANCELED;
		assert_int_equal(h1_read(h1, text + stops[i], sizeof(text) - 1 - stops[i]), -ECANCELED);
		assert_int_equal(h1_read(h1, "x", 1), -ECANCELED);
		h1_free(h1);
		tape_free(&tape);
	}
}

/* Where one h1_read() ends. */
struct eager {
	struct h1 *h1;
	unsigned ends;
};
static int eager_head(void *ctx, struct head *head)
{
	(void)ctx;
	(void)head;
	return 0;
}
static int eager_body(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}
static int eager_end(void *ctx, const struct fields *trailers)
{
	struct eager *eager = ctx;

	assert_int_equal(trailers->n, 0);
	eager->ends++;
	h1_next(eager->h1);
	return 0;
}

static void test_next_in_end(void **state)
{
	static const struct h1_events events = { eager_head, eager_body, eager_end };
	static const char text[] = GET "\r\n" CHUNKED "0\r\n\r\n" POST "Content-Length: 1\r\n\r\nx";
	struct eager eager = { 0 };
	size_t used = 0;

	(void)state;
	assert_int_equal(h1_new(H1_SERVER, &events, &eager, &eager.h1), 0);
	for (unsigned i = 1; i <= 3; i++) {
		ssize_t n = h1_read(eager.h1, text + used, sizeof(text) - 1 - used);

		assert_true(n > 0);
		used += (size_t)n;
		assert_int_equal(eager.ends, i);
	}
	assert_int_equal(used, sizeof(text) - 1);
	h1_free(eager.h1);
	h1_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_connection_fields),
		cmocka_unit_test(test_persists),
		cmocka_unit_test(test_bad_lengths),
		cmocka_unit_test(test_bad_chunks),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_extension_bounds),
		cmocka_unit_test(test_head_bounds),
		cmocka_unit_test(test_trailer_bounds),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_until_close),
		cmocka_unit_test(test_eof),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_bad_responses),
		cmocka_unit_test(test_interim_flood),
		cmocka_unit_test(test_response_needs_request),
		cmocka_unit_test(test_trailers_do_not_stay),
		cmocka_unit_test(test_event_errors),
		cmocka_unit_test(test_next_in_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
