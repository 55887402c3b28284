/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "secrets/decode.c"

#include <brotli/encode.h>
#include <string.h>

/* -- what is coded here, to be decoded there -------------------------------------------------------- */

static size_t code(const char *how, const char *from, size_t len, char *to, size_t room)
{
	if (strcmp(how, "br") == 0) {
		size_t n = room;

		assert_true(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, len, (const uint8_t *)from, &n, (uint8_t *)to));
		return n;
	}
	if (strcmp(how, "zstd") == 0) {
		size_t n = ZSTD_compress(to, room, from, len, 3);

		assert_false(ZSTD_isError(n));
		return n;
	} else {
		int bits = strcmp(how, "gzip") == 0 ? 31 : strcmp(how, "raw") == 0 ? -15 : 15;
		z_stream z = { .next_in = (unsigned char *)(uintptr_t)from,
			       .avail_in = (unsigned)len,
			       .next_out = (unsigned char *)to,
			       .avail_out = (unsigned)room };

		assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(deflateEnd(&z), Z_OK);
		return room - z.avail_out;
	}
}

/* In pieces; the last answer. */
static enum decoded decode(const char *codings, const char *data, size_t len, size_t each, bool end, struct buf *out)
{
	struct decoder *d;
	enum decoded r = DECODED_ALL;

	assert_int_equal(decoder_new(codings, strlen(codings), &d), 0);
	for (size_t at = 0; at < len && (r == DECODED_ALL);) {
		size_t n = len - at < each ? len - at : each, used = 0;

		do {
			size_t before = out->len;

			r = decoder_read(d, data + at, n, end && at + n == len, 1000, out, &used);
			assert_true(used <= n && out->len - before <= 1000 + STEP);
			at += used;
			n -= used;
		} while (r == DECODED_MORE);
		if (r == DECODED_ALL)
			assert_int_equal(n, 0);
	}
	decoder_free(d);
	return r;
}

static char text[100000], coded[200000], twice[200000];

static void text_fill(void)
{
	unsigned seed = 7;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)((seed = seed * 1103515245 + 12345) >> 16 & (i & 64 ? 15 : 127));
}

static void test_codings(void **state)
{
	static const char *const cases[][2] = {
		{ "gzip", "gzip" }, { "gzip", "X-GZip" },	{ "deflate", "deflate" }, { "raw", "deflate" },
		{ "br", "br" },	    { "zstd", "identity, zstd" },
	};

	(void)state;
	text_fill();
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = code(cases[i][0], text, sizeof(text), coded, sizeof(coded));

		for (size_t each = 1; each < 2 * n; each = each * 7 + 1) {
			_buf_ struct buf out = BUF_INIT(1u << 20);

			assert_int_equal(decode(cases[i][1], coded, n, each, true, &out), DECODED_ALL);
			assert_int_equal(out.len, sizeof(text));
			assert_memory_equal(out.data, text, sizeof(text));
		}
		/* What ends too early is not passed for whole; nor is what is something else. */
		for (size_t cut = 1; cut < 20; cut++) {
			_buf_ struct buf out = BUF_INIT(1u << 20);

			assert_int_equal(decode(cases[i][1], coded, n - cut, 5000, true, &out), DECODED_BROKEN);
		}
		memcpy(coded + n, "trailing bytes", 14);
		_buf_ struct buf out = BUF_INIT(1u << 20);
		assert_int_equal(decode(cases[i][1], coded, n + 14, 5000, true, &out), DECODED_BROKEN);
	}
}

static void test_one_upon_the_other(void **state)
{
	_buf_ struct buf out = BUF_INIT(1u << 20);
	size_t n;

	(void)state;
	text_fill();
	n = code("gzip", text, sizeof(text), coded, sizeof(coded));
	n = code("br", coded, n, twice, sizeof(twice));
	assert_int_equal(decode("gzip, br", twice, n, 333, true, &out), DECODED_ALL);
	assert_int_equal(out.len, sizeof(text));
	assert_memory_equal(out.data, text, sizeof(text));
}

/* gzip(1) and zstd(1) take files that were put one behind the other. */
static void test_members(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		_buf_ struct buf out = BUF_INIT(1u << 20);
		size_t n = code(i ? "zstd" : "gzip", "one", 3, coded, sizeof(coded));

		n += code(i ? "zstd" : "gzip", "two", 3, coded + n, sizeof(coded) - n);
		assert_int_equal(decode(i ? "zstd" : "gzip", coded, n, 1, true, &out), DECODED_ALL);
		assert_int_equal(out.len, 6);
		assert_memory_equal(out.data, "onetwo", 6);
	}
}

static void test_unknown(void **state)
{
	struct decoder *d = NULL;

	(void)state;
	assert_int_equal(decoder_new("compress", 8, &d), -ENOTSUP);
	assert_int_equal(decoder_new("gzip, aes128gcm", 15, &d), -ENOTSUP);
	assert_int_equal(decoder_new("gzip, gzip, gzip", 16, &d), -ENOTSUP);
	assert_int_equal(decoder_new("gzip br", 7, &d), -EINVAL);
	assert_int_equal(decoder_new("identity", 8, &d), 0);
	assert_null(d);
	assert_int_equal(decoder_new("", 0, &d), 0);
	assert_null(d);
}

/* 64 MiB of zeros, of 60 bytes. */
static void test_bomb(void **state)
{
	const size_t size = 64u << 20;
	char *zeros = calloc(1, size);
	struct decoder *d;
	enum decoded r;
	size_t n, at = 0, total = 0;

	(void)state;
	n = code("br", zeros, size, coded, sizeof(coded));
	free(zeros);
	assert_true(n < 1000);
	assert_int_equal(decoder_new("br", 2, &d), 0);
	do {
		_buf_ struct buf out = BUF_INIT(1u << 20);
		size_t used;

		r = decoder_read(d, coded + at, n - at, true, 64u << 10, &out, &used);
		at += used;
		total += out.len;
		assert_true(out.len <= (64u << 10) + STEP);
	} while (r == DECODED_MORE);
	assert_int_equal(r, DECODED_BOMB);
	assert_true(total <= NP_DECODED_FREE + (1u << 20));
	decoder_free(d);
}

static void test_narrow(void **state)
{
	static const char *const cases[][2] = {
		{ "gzip, deflate, br, zstd", "gzip, deflate, br, zstd" },
		{ "gzip;q=1.0, compress;q=0.5 , *;q=0", "gzip;q=1.0" },
		{ "sdch,br ;q=0.1", "br ;q=0.1" },
		{ "*", "identity" },
		{ "", "identity" },
		{ "dcb, dcz", "identity" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		_buf_ struct buf out = BUF_INIT(1000);

		decoder_narrow(cases[i][0], strlen(cases[i][0]), &out);
		assert_string_equal(out.data, cases[i][1]);
	}
	_buf_ struct buf out = BUF_INIT(1000);
	decoder_narrow(NULL, 0, &out);
	assert_string_equal(out.data, "identity");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codings), cmocka_unit_test(test_one_upon_the_other), cmocka_unit_test(test_members),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_bomb),		   cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
