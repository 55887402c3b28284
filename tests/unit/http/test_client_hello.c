/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/client_hello.c"

#include <stdlib.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "vocab/limits.h"

/* -- hellos made by hand --------------------------------------------------------------- */

static void put(struct buf *b, size_t value, size_t width)
{
	while (width--) {
		char c = (char)(value >> (8 * width));

		buf_append(b, &c, 1);
	}
}

static void put_vector(struct buf *b, const void *data, size_t len, size_t width)
{
	put(b, len, width);
	buf_append(b, data, len);
}

static void put_extension(struct buf *b, unsigned type, const void *data, size_t len)
{
	put(b, type, 2);
	put_vector(b, data, len, 2);
}

static void put_name(struct buf *b, const char *name, size_t len)
{
	_buf_ struct buf ext = BUF_INIT(65536);

	put(&ext, len + 3, 2);
	put(&ext, 0, 1);
	put_vector(&ext, name, len, 2);
	put_extension(b, EXT_SERVER_NAME, ext.data, ext.len);
}

/* A message with these extensions, or none at all. */
static struct buf message(const struct buf *extensions)
{
	_buf_ struct buf body = BUF_INIT(65536);
	struct buf all = BUF_INIT(65536);

	put(&body, 0x0303, 2);
	for (int i = 0; i < 32; i++)
		put(&body, (size_t)i, 1);
	put_vector(&body, "session", 7, 1);
	put_vector(&body, "\x13\x01\x13\x02", 4, 2);
	put_vector(&body, "\0", 1, 1);
	if (extensions)
		put_vector(&body, extensions->data, extensions->len, 2);
	put(&all, CLIENT_HELLO, 1);
	put_vector(&all, body.data, body.len, 3);
	return all;
}

/* The message in records of so many bytes. */
static struct buf records(const struct buf *message, size_t each)
{
	struct buf all = BUF_INIT(1u << 20);

	for (size_t i = 0; i < message->len; i += each) {
		put(&all, RECORD_HANDSHAKE, 1);
		put(&all, 0x0301, 2);
		put_vector(&all, message->data + i, message->len - i < each ? message->len - i : each, 2);
	}
	return all;
}

/* Each input has its own memory, so that ASan sees every read beyond it. */
static int parse(const void *data, size_t len, struct hello *ret)
{
	unsigned char *copy = malloc(len ? len : 1);
	size_t need;
	int e;

	assert_non_null(copy);
	memcpy(copy, data, len);
	e = hello_parse(copy, len, ret, &need);
	assert_true(e != -EAGAIN || need > len);
	free(copy);
	return e;
}

/* However it is cut into records and reads, it is the same; and not all of it is not enough. */
static void assert_hello(const struct buf *msg, int expected, struct hello *ret)
{
	const size_t sizes[] = { 16384, 1, 2, 3, 5, 100 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_buf_ struct buf all = records(msg, sizes[i]);
		struct hello hello = { 0 };

		assert_int_equal(parse(all.data, all.len, &hello), expected);
		if (expected == 0) {
			if (i)
				assert_memory_equal(&hello, ret, sizeof(hello));
			*ret = hello;
			for (size_t n = 0; n < all.len; n += (i ? 7 : 1) + all.len / 3000)
				assert_int_equal(parse(all.data, n, &hello), -EAGAIN);
			/* What comes behind it is nobody's business. */
			buf_puts(&all, "more");
			assert_int_equal(parse(all.data, all.len, &hello), 0);
		}
	}
}

static void assert_refused(struct buf *extensions)
{
	struct buf msg = message(extensions);
	struct hello hello;

	assert_hello(&msg, -EPROTO, &hello);
	buf_free(&msg);
	buf_free(extensions);
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{ "example.com", "example.com" },
		{ "EXAMPLE.Com.", "example.com" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "localhost", "localhost" },
	};
	static const char *const addrs[] = { "192.0.2.1", "2001:db8::1" };
	static const char *const bad[] = {
		"",	     "a..b", "192.0.2", "[::1]", "a b", "example.com:443", "b\xc3\xbc.de",
		"*.example", "-a.b", "a/b",	"..",	 "a\\b"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_buf_ struct buf ext = BUF_INIT(65536);
		_buf_ struct buf msg;
		struct hello hello;

		put_extension(&ext, 23, "", 0);
		put_name(&ext, cases[i].name, strlen(cases[i].name));
		msg = message(&ext);
		assert_hello(&msg, 0, &hello);
		assert_true(hello.has_name);
		assert_string_equal(hello.name, cases[i].expected);
		assert_false(hello.has_alpn || hello.h2 || hello.http1);
	}
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		_buf_ struct buf ext = BUF_INIT(65536);
		_buf_ struct buf msg;
		struct np_addr addr;
		struct hello hello;

		put_name(&ext, addrs[i], strlen(addrs[i]));
		msg = message(&ext);
		assert_hello(&msg, 0, &hello);
		assert_true(hello.has_addr && !hello.has_name);
		assert_int_equal(addr_parse(addrs[i], strlen(addrs[i]), &addr), 0);
		assert_memory_equal(&hello.addr, &addr, sizeof(addr));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf ext = BUF_INIT(65536);

		put_name(&ext, bad[i], strlen(bad[i]));
		assert_refused(&ext);
	}
}

static void test_nul_in_name(void **state)
{
	struct buf ext = BUF_INIT(65536);

	(void)state;
	put_name(&ext, "good.example\0.evil.example", 26);
	assert_refused(&ext);
}

static void test_without_extensions(void **state)
{
	_buf_ struct buf none = BUF_INIT(16), msg = message(NULL), empty;
	struct hello hello;

	(void)state;
	assert_hello(&msg, 0, &hello);
	assert_false(hello.has_name || hello.has_alpn);
	buf_append(&none, "", 0);
	empty = message(&none);
	assert_hello(&empty, 0, &hello);
	assert_false(hello.has_name || hello.has_alpn);
}

static void test_alpn(void **state)
{
	static const struct {
		const char *list;
		size_t len;
		bool ok, h2, http1;
	} cases[] = {
		{ "\x02h2\x08http/1.1", 12, true, true, true },
		{ "\x02h2", 3, true, true, false },
		{ "\x08http/1.1", 9, true, false, true },
		{ "\x08http/1.0\x02H2\x03h2c", 16, true, false, false },
		{ "", 0, false, false, false },
		{ "\0", 1, false, false, false },
		{ "\x03h2", 3, false, false, false },
		{ "\x02h2\0", 4, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_buf_ struct buf ext = BUF_INIT(65536), list = BUF_INIT(65536), msg;
		struct hello hello;

		put_vector(&list, cases[i].list, cases[i].len, 2);
		put_extension(&ext, EXT_ALPN, list.data, list.len);
		msg = message(&ext);
		assert_hello(&msg, cases[i].ok ? 0 : -EPROTO, &hello);
		if (cases[i].ok) {
			assert_true(hello.has_alpn);
			assert_int_equal(hello.h2, cases[i].h2);
			assert_int_equal(hello.http1, cases[i].http1);
		}
	}
}

/* Two servers could pick two of them. */
static void test_twice(void **state)
{
	struct buf ext = BUF_INIT(65536);
	_buf_ struct buf list = BUF_INIT(65536);

	(void)state;
	put_name(&ext, "a.example", 9);
	put_name(&ext, "b.example", 9);
	assert_refused(&ext);
	put_name(&ext, "a.example", 9);
	put_extension(&ext, 43, "\x02\x03\x04", 3);
	put_name(&ext, "a.example", 9);
	assert_refused(&ext);
	put_extension(&ext, 65535, "", 0);
	put_extension(&ext, 65535, "", 0);
	assert_refused(&ext);
	/* Two names in one list, and a type that nobody knows. */
	put(&list, 16, 2);
	put(&list, 0, 1);
	put_vector(&list, "a.example", 5, 2);
	put(&list, 0, 1);
	put_vector(&list, "b.ex.ample", 5, 2);
	put_extension(&ext, EXT_SERVER_NAME, list.data, list.len);
	assert_refused(&ext);
	buf_clear(&list);
	put(&list, 8, 2);
	put(&list, 1, 1);
	put_vector(&list, "a.exa", 5, 2);
	put_extension(&ext, EXT_SERVER_NAME, list.data, list.len);
	assert_refused(&ext);
}

/* Every length, one off in both directions. */
static void test_lengths(void **state)
{
	_buf_ struct buf ext = BUF_INIT(65536), msg, all;
	struct hello hello;

	(void)state;
	put_name(&ext, "a.example", 9);
	msg = message(&ext);
	all = records(&msg, 16384);
	assert_int_equal(parse(all.data, all.len, &hello), 0);
	/* record, message, session, ciphers, compression, extensions, extension, list, name; from the front */
	const size_t at[] = { 4, 8, 43, 52, 57, 60, 64, 66, 69 };
	const unsigned char value[] = { 74, 70, 7, 4, 1, 18, 14, 12, 9 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal((unsigned char)all.data[at[i]], value[i]);
		for (int off = -1; off <= 1; off += 2) {
			int e;

			all.data[at[i]] = (char)(value[i] + off);
			e = parse(all.data, all.len, &hello);
			/* A longer message may go on in the next record. */
			assert_int_equal(e, off > 0 && i == 1 ? -EAGAIN : -EPROTO);
			all.data[at[i]] = (char)value[i];
		}
	}
}

static void test_not_a_hello(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int expected;
		unsigned char alert;
	} cases[] = {
		{ "", 0, -EAGAIN, 0 },
		{ "\x16", 1, -EAGAIN, 0 },
		{ "\x16\x03\x01", 3, -EAGAIN, 0 },
		{ "G", 1, -EPROTO, 10 },
		{ "\x80\x2e\x01", 3, -EPROTO, 10 },	      /* SSLv2 */
		{ "\x15\x03\x01", 3, -EPROTO, 10 },	      /* an alert */
		{ "\x16\x02", 2, -EPROTO, 70 },		      /* no such version */
		{ "\x16\x03\x01\0\0", 5, -EPROTO, 10 },	      /* an empty record */
		{ "\x16\x03\x01\x40\x01", 5, -EPROTO, 22 },   /* one too long */
		{ "\x16\x03\x01\0\x04\x02", 6, -EPROTO, 10 }, /* a ServerHello */
		{ "\x16\x03\x01\0\x04\x01\0\xff\xfd", 9, -E2BIG, 47 },
		{ "\x16\x03\x01\0\x04\x01\xff\xff\xff", 9, -E2BIG, 47 },
		{ "\x16\x03\x01\0\x04\x01\0\0\0", 9, -EPROTO, 50 },
		{ "\x16\x03\x01\0\x01\x01\x17\x03\x03", 9, -EPROTO, 10 }, /* something in between */
	};
	struct hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hello.alert = 0;
		assert_int_equal(parse(cases[i].bytes, cases[i].len, &hello), cases[i].expected);
		assert_int_equal(hello.alert, cases[i].alert);
	}
}

static void test_largest(void **state)
{
	static char filler[NP_HELLO_BYTES];
	_buf_ struct buf ext = BUF_INIT(65536), msg;
	struct hello hello;

	(void)state;
	put_name(&ext, "a.example", 9);
	/* 4 of the message, 57 of its front, 2 + 18 of extensions so far, 4 of this one */
	put_extension(&ext, 21, filler, NP_HELLO_BYTES - 4 - 34 - 8 - 6 - 2 - 2 - 18 - 4);
	msg = message(&ext);
	assert_int_equal(msg.len, NP_HELLO_BYTES);
	assert_hello(&msg, 0, &hello);
	assert_string_equal(hello.name, "a.example");
}

/* -- a real client ------------------------------------------------------------------------ */

static void test_openssl(void **state)
{
	static const unsigned char alpn[] = "\x02h2\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct hello hello;
	char *data;
	long len;

	(void)state;
	SSL_set_bio(ssl, in, out);
	SSL_set_tlsext_host_name(ssl, "Api.Example.COM");
	SSL_set_alpn_protos(ssl, alpn, sizeof(alpn) - 1);
	assert_true(SSL_connect(ssl) < 0);
	len = BIO_get_mem_data(out, &data);
	assert_int_equal(parse(data, (size_t)len, &hello), 0);
	assert_true(hello.has_name && hello.has_alpn && hello.h2 && hello.http1);
	assert_string_equal(hello.name, "api.example.com");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nul_in_name),
		cmocka_unit_test(test_without_extensions),
		cmocka_unit_test(test_alpn),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_not_a_hello),
		cmocka_unit_test(test_largest),
		cmocka_unit_test(test_openssl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
