/* SPDX-License-Identifier: MIT */
/* HTTP/2 frames that are well formed, from bytes that are not: what is in them is still anybody's. */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* 0x00 ends a word; words of the list are one byte from 0x80 on. */
static const char *const frame_words[] = {
	":method",
	"GET",
	"CONNECT",
	"OPTIONS",
	":scheme",
	"https",
	":authority",
	"example.com",
	":path",
	"/",
	"*",
	"host",
	":status",
	"200",
	"content-length",
	"0",
	"5",
	"cookie",
	"a=1",
	"te",
	"trailers",
	"expect",
	"100-continue",
	"connection",
	"transfer-encoding",
	"x-a",
	":protocol",
	"upgrade",
	"priority",
	"u=0",
	"http2-settings",
	"HEAD",
	"POST",
	"http",
	"origin.test",
	"h2.test",
	"get.test",
	"paths.test",
	"small.test",
	"/open/a",
	"/open/../b",
	"100",
};

static inline void frame_word(const uint8_t **data, const uint8_t *end, struct buf *block)
{
	char text[100];
	size_t n = 0;

	while (*data < end && n < sizeof(text)) {
		uint8_t c = *(*data)++;

		if (c >= 0x80 && c < 0x80 + ARRAY_SIZE(frame_words)) {
			const char *word = frame_words[c - 0x80];

			n = strlen(word);
			memcpy(text, word, n);
			break;
		}
		if (!c)
			break;
		text[n++] = (char)c;
	}
	buf_append(block, &(char){ (char)n }, 1);
	buf_append(block, text, n);
}

static inline void frame_add(struct buf *in, unsigned type, unsigned flags, unsigned id, const void *data, size_t len)
{
	const uint8_t header[9] = { 0, (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)type, (uint8_t)flags, 0, 0,
				    0, (uint8_t)id };

	buf_append(in, header, sizeof(header));
	buf_append(in, data, len);
}

/* A byte of type and flags, one of stream, one of length or count: frames that are well formed. */
static inline void frames_make(const uint8_t *data, size_t size, struct buf *in)
{
	static const uint8_t zeros[16384];
	const uint8_t *end = data + size;

	while (end - data >= 3 && in->len < 200000) {
		unsigned type = data[0] & 0x0f, flags = data[0] >> 4, id = data[1], n = data[2];

		data += 3;
		if (type == NGHTTP2_HEADERS) {
			_buf_ struct buf block = BUF_INIT(65536);

			for (n %= 32; n-- && data < end;) {
				buf_append(&block, "", 1);
				frame_word(&data, end, &block);
				frame_word(&data, end, &block);
			}
			frame_add(in, type, (flags & 1) | NGHTTP2_FLAG_END_HEADERS, id, block.data, block.len);
		} else if (type == NGHTTP2_DATA) {
			frame_add(in, type, flags & 1, id, zeros, n * 64);
		} else {
			size_t len = type == NGHTTP2_PING || type == NGHTTP2_GOAWAY ? 8
				     : type == NGHTTP2_PRIORITY			    ? 5
										    : 4;

			if (type == NGHTTP2_SETTINGS)
				len = flags & 1 ? 0 : 6;
			if ((size_t)(end - data) < len)
				return;
			frame_add(in, type, flags, id, data, len);
			data += len;
		}
	}
}
