/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as one direction of a websocket. However they are cut, the same frames come out; and what was accepted,
 * written anew from what the events told, is the same bytes.
 */
#include "http/websocket.c"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct frames_seen {
	bool from_client;
	struct buf bytes;
	uint64_t left;
};

static int on_frame(void *ctx, const struct websocket_frame *frame)
{
	struct frames_seen *seen = ctx;
	unsigned char header[14] = { (unsigned char)((frame->fin ? 0x80 : 0) | (frame->compressed ? 0x40 : 0) |
						     frame->opcode) };
	unsigned mask = seen->from_client ? 0x80 : 0, n = 2,
		 width = frame->len < 126     ? 0
			 : frame->len < 65536 ? 2
					      : 8;

	check(!seen->left);
	check(!(frame->opcode & 8) || (frame->fin && frame->len < 126 && !frame->compressed));
	seen->left = frame->len;
	header[1] = (unsigned char)(mask | (width == 0 ? (unsigned)frame->len : width == 2 ? 126 : 127));
	for (unsigned i = width; i--;)
		header[n++] = (unsigned char)(frame->len >> (8 * i));
	for (unsigned i = 0; mask && i < 4; i++)
		header[n++] = frame->mask[i];
	buf_append(&seen->bytes, header, n);
	return 0;
}

static int on_payload(void *ctx, const struct websocket_frame *frame, uint64_t at, const char *data, size_t len)
{
	struct frames_seen *seen = ctx;
	char *plain = malloc(len);

	check(plain && len && len <= seen->left && at == frame->len - seen->left);
	seen->left -= len;
	websocket_unmask(frame, at, data, len, plain);
	websocket_unmask(frame, at, plain, len, plain); /* masked again */
	buf_append(&seen->bytes, plain, len);
	free(plain);
	return 0;
}

static const struct websocket_events events = { .frame = on_frame, .payload = on_payload };

static int read_in_pieces(const uint8_t *data, size_t size, size_t each, bool from_client, bool deflate,
			  struct frames_seen *ret, struct websocket *ws)
{
	int r = 0;

	*ret = (struct frames_seen){ .from_client = from_client, .bytes = BUF_INIT(16u << 20) };
	websocket_init(ws, from_client, deflate, &events, ret);
	for (size_t at = 0; at < size && r == 0; at += each) {
		size_t n = size - at < each ? size - at : each;
		char *copy = malloc(n); /* no byte beyond it is read */

		check(copy);
		memcpy(copy, data + at, n);
		r = websocket_read(ws, copy, n);
		free(copy);
	}
	check(r == 0 || (r == -EPROTO && *websocket_problem(ws)));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frames_seen whole, cut;
	struct websocket a, b;
	bool from_client, deflate;
	size_t each, same;
	int r;

	if (size < 2)
		return 0;
	from_client = data[0] & 1;
	deflate = data[0] & 2;
	each = 1 + data[1] % 16;
	data += 2;
	size -= 2;
	r = read_in_pieces(data, size, size ? size : 1, from_client, deflate, &whole, &a);
	check(read_in_pieces(data, size, each, from_client, deflate, &cut, &b) == r);
	check(a.problem == b.problem);
	/* Of a frame that is refused more or less was told of, by how it was cut. */
	check(r < 0 || whole.bytes.len == cut.bytes.len);
	same = whole.bytes.len < cut.bytes.len ? whole.bytes.len : cut.bytes.len;
	check(!same || (!memcmp(whole.bytes.data, cut.bytes.data, same) && same <= size &&
			!memcmp(whole.bytes.data, data, same)));
	/* Only a header that is not complete is not told of. */
	check(r < 0 || size - same == (a.in_payload ? 0 : a.have));
	buf_free(&whole.bytes);
	buf_free(&cut.bytes);
	return 0;
}
