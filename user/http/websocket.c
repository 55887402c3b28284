/* SPDX-License-Identifier: MIT */
#include "http/websocket.h"

#include <errno.h>

#include "base/buf.h"

#define BIT_FIN	    0x80
#define BIT_RSV1    0x40
#define BIT_RSVS    0x30
#define BIT_MASK    0x80
#define LEN_16	    126
#define LEN_64	    127
#define CONTROL_MAX 125

void websocket_init(struct websocket *ws, bool from_client, bool deflate, const struct websocket_events *events,
		    void *ctx)
{
	static const struct websocket_events none;

	*ws = (struct websocket){
		.from_client = from_client, .deflate = deflate, .events = events ? events : &none, .ctx = ctx
	};
}

static int websocket_refuse(struct websocket *ws, const char *problem)
{
	ws->problem = problem;
	return -EPROTO;
}

const char *websocket_problem(const struct websocket *ws)
{
	return ws->problem ? ws->problem : "";
}

void websocket_unmask(const struct websocket_frame *frame, uint64_t at, const char *data, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(data[i] ^ (char)frame->mask[(at + i) % 4]);
}

static bool is_control(const struct websocket *ws)
{
	return ws->frame.opcode & 8;
}

/* -- the header ---------------------------------------------------------------------- */

static int first_byte(struct websocket *ws, unsigned byte)
{
	struct websocket_frame *frame = &ws->frame;
	unsigned opcode = byte & 0x0f;

	*frame = (struct websocket_frame){ .opcode = (enum websocket_opcode)opcode, .fin = byte & BIT_FIN };
	if (byte & BIT_RSVS || (byte & BIT_RSV1 && !ws->deflate))
		return websocket_refuse(ws, "a frame has a reserved bit that no extension was agreed on for");
	switch (opcode) {
	case WEBSOCKET_CONTINUATION:
		if (!ws->open)
			return websocket_refuse(ws, "a message goes on that did not begin");
		break;
	case WEBSOCKET_TEXT:
	case WEBSOCKET_BINARY:
		if (ws->open)
			return websocket_refuse(ws, "a message begins inside of another");
		break;
	case WEBSOCKET_CLOSE:
	case WEBSOCKET_PING:
	case WEBSOCKET_PONG:
		if (!frame->fin)
			return websocket_refuse(ws, "a control frame is fragmented");
		break;
	default:
		return websocket_refuse(ws, "a frame has an opcode that is not known");
	}
	if (byte & BIT_RSV1 && opcode != WEBSOCKET_TEXT && opcode != WEBSOCKET_BINARY)
		return websocket_refuse(ws, "a frame that begins no message says that it is compressed");
	if (ws->closed && (!is_control(ws) || opcode == WEBSOCKET_CLOSE))
		return websocket_refuse(ws, "there are frames behind the close frame");
	frame->compressed = byte & BIT_RSV1;
	return 0;
}

static int second_byte(struct websocket *ws, unsigned byte)
{
	if (ws->from_client != !!(byte & BIT_MASK))
		return websocket_refuse(ws, ws->from_client ? "a frame of the client is not masked"
							    : "a frame of the origin is masked");
	if (is_control(ws) && (byte & ~BIT_MASK) > CONTROL_MAX)
		return websocket_refuse(ws, "a control frame is longer than 125 bytes");
	if (ws->frame.opcode == WEBSOCKET_CLOSE && (byte & ~BIT_MASK) == 1)
		return websocket_refuse(ws, "a close frame has half a code");
	return 0;
}

/* Bytes of the length behind the second byte. */
static unsigned length_bytes(const struct websocket *ws)
{
	switch (ws->header[1] & ~BIT_MASK) {
	case LEN_16:
		return 2;
	case LEN_64:
		return 8;
	default:
		return 0;
	}
}

static unsigned header_bytes(const struct websocket *ws)
{
	if (ws->have < 2)
		return 2;
	return 2 + length_bytes(ws) + (ws->from_client ? 4 : 0);
}

static int length_read(struct websocket *ws)
{
	unsigned n = length_bytes(ws);
	uint64_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len = len << 8 | ws->header[2 + i];
	if (n == 0)
		len = ws->header[1] & ~BIT_MASK;
	if (len >> 63)
		return websocket_refuse(ws, "a frame is longer than 2^63 bytes");
	if ((n == 2 && len < LEN_16) || (n == 8 && len <= UINT16_MAX))
		return websocket_refuse(ws, "a length is written with more bytes than it needs");
	ws->frame.len = len;
	return 0;
}

/* -- the payload --------------------------------------------------------------------- */

/* RFC 6455, 7.4: those that are reserved say what happened without a close frame. */
static bool code_may_be_sent(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static int close_read(struct websocket *ws, const char *data, size_t len)
{
	for (size_t i = 0; i < len && ws->at + i < 2; i++) {
		char byte;

		websocket_unmask(&ws->frame, ws->at + i, data + i, 1, &byte);
		ws->code = ws->code << 8 | (unsigned char)byte;
		if (ws->at + i == 1 && !code_may_be_sent(ws->code))
			return websocket_refuse(ws, "a close frame has a code that must not be sent");
	}
	return 0;
}

static void frame_end(struct websocket *ws)
{
	ws->in_payload = false;
	ws->have = 0;
	if (ws->frame.opcode == WEBSOCKET_CLOSE)
		ws->closed = true;
	else if (!is_control(ws))
		ws->open = !ws->frame.fin;
}

static int header_end(struct websocket *ws)
{
	int r;

	if (ws->from_client)
		for (unsigned i = 0; i < 4; i++)
			ws->frame.mask[i] = ws->header[ws->have - 4 + i];
	r = length_read(ws);
	if (r < 0)
		return r;
	ws->in_payload = true;
	ws->at = 0;
	ws->code = 0;
	r = ws->events->frame ? ws->events->frame(ws->ctx, &ws->frame) : 0;
	if (r == 0 && !ws->frame.len)
		frame_end(ws);
	return r;
}

static int header_read(struct websocket *ws, unsigned char byte)
{
	int r = 0;

	ws->header[ws->have++] = byte;
	if (ws->have == 1)
		r = first_byte(ws, byte);
	else if (ws->have == 2)
		r = second_byte(ws, byte);
	if (r == 0 && ws->have >= 2 && ws->have == header_bytes(ws))
		r = header_end(ws);
	return r;
}

static int payload_read(struct websocket *ws, const char *data, size_t len)
{
	int r = ws->frame.opcode == WEBSOCKET_CLOSE ? close_read(ws, data, len) : 0;

	if (r == 0 && ws->events->payload)
		r = ws->events->payload(ws->ctx, &ws->frame, ws->at, data, len);
	ws->at += len;
	if (ws->at == ws->frame.len)
		frame_end(ws);
	return r;
}

int websocket_read(struct websocket *ws, const char *data, size_t len)
{
	while (len && !ws->error) {
		size_t n = 1;

		if (!ws->in_payload) {
			ws->error = header_read(ws, (unsigned char)*data);
		} else {
			n = ws->frame.len - ws->at < len ? (size_t)(ws->frame.len - ws->at) : len;
			ws->error = payload_read(ws, data, n);
		}
		data += n;
		len -= n;
	}
	return ws->error;
}

void websocket_write(struct buf *out, enum websocket_opcode opcode, bool fin, const unsigned char *mask,
		     const char *data, size_t len)
{
	const unsigned width = len < LEN_16 ? 0 : len <= UINT16_MAX ? 2 : 8;
	char header[14] = { (char)((fin ? BIT_FIN : 0) | opcode),
			    (char)((mask ? BIT_MASK : 0) | (width == 0	 ? len
							    : width == 2 ? LEN_16
									 : LEN_64)) };
	struct websocket_frame frame;
	size_t at;

	for (unsigned i = 0; i < width; i++)
		header[2 + i] = (char)(len >> 8 * (width - 1 - i));
	for (unsigned i = 0; mask && i < 4; i++) {
		header[2 + width + i] = (char)mask[i];
		frame.mask[i] = mask[i];
	}
	buf_append(out, header, 2 + width + (mask ? 4 : 0));
	at = out->len;
	buf_append(out, data, len);
	if (mask && !buf_error(out))
		websocket_unmask(&frame, 0, out->data + at, len, out->data + at);
}
