/* SPDX-License-Identifier: MIT */
/* Random bytes as a coded body: however they are cut, the same comes out, and no more of it than was wanted. */
#include "secrets/decode.c"

#include <stdint.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST (1u << 20) /* bytes of output that are looked at */

static enum decoded run(const char *codings, const char *data, size_t len, size_t each, size_t want, struct buf *all)
{
	struct decoder *d;
	enum decoded r = DECODED_ALL;
	size_t at = 0;

	check(decoder_new(codings, strlen(codings), &d) == 0 && d);
	while (at < len && r == DECODED_ALL && all->len < MOST) {
		size_t n = len - at < each ? len - at : each;

		do {
			size_t used, before = all->len;

			r = decoder_read(d, data + at, n, at + n == len, want, all, &used);
			check(used <= n && all->len - before <= want + STEP);
			check(r != DECODED_MORE || used || all->len > before);
			at += used;
			n -= used;
		} while (r == DECODED_MORE && all->len < MOST);
		check(r != DECODED_ALL || !n);
	}
	decoder_free(d);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const codings[] = { "gzip", "deflate", "br", "zstd", "gzip, deflate", "zstd, br" };
	_buf_ struct buf whole = BUF_INIT(4 * MOST), cut = BUF_INIT(4 * MOST);
	enum decoded a, b;

	if (size < 2)
		return 0;
	a = run(codings[data[0] % 6], (const char *)data + 2, size - 2, size, 10000, &whole);
	b = run(codings[data[0] % 6], (const char *)data + 2, size - 2, 1 + data[1] % 50, 1 + data[1] * 10u, &cut);
	if (whole.len < MOST && cut.len < MOST) {
		check(a == b);
		check(a != DECODED_ALL || (whole.len == cut.len && (!cut.len || !memcmp(whole.data, cut.data, cut.len))));
	}
	return 0;
}
