/* SPDX-License-Identifier: MIT */
#include "http/client_hello.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "vocab/limits.h"

#define RECORD_HEADER	 5
#define RECORD_MAX	 16384
#define RECORD_HANDSHAKE 22
#define MESSAGE_HEADER	 4
#define CLIENT_HELLO	 1

enum { EXT_SERVER_NAME = 0, EXT_ALPN = 16 };

/* As servers in wide use send them. */
enum {
	ALERT_UNEXPECTED_MESSAGE = 10,
	ALERT_RECORD_OVERFLOW = 22,
	ALERT_ILLEGAL_PARAMETER = 47,
	ALERT_DECODE_ERROR = 50,
	ALERT_PROTOCOL_VERSION = 70,
	ALERT_UNRECOGNIZED_NAME = 112,
};

static int hello_refuse(struct hello *hello, unsigned char alert)
{
	*hello = (struct hello){ .alert = alert };
	return -EPROTO;
}

static int too_long(struct hello *hello)
{
	hello_refuse(hello, ALERT_ILLEGAL_PARAMETER);
	return -E2BIG;
}

/* Bytes that are left of something that has a length. */
struct span {
	const unsigned char *at;
	size_t len;
};

static int hello_take(struct span *from, size_t len, struct span *ret)
{
	if (len > from->len)
		return -EPROTO;
	*ret = (struct span){ from->at, len };
	from->at += len;
	from->len -= len;
	return 0;
}

/* A length of so many bytes, and what it is the length of. */
static int take_vector(struct span *from, size_t width, struct span *ret)
{
	struct span digits;
	size_t len = 0;

	if (hello_take(from, width, &digits) < 0)
		return -EPROTO;
	for (size_t i = 0; i < width; i++)
		len = len << 8 | digits.at[i];
	return hello_take(from, len, ret);
}

/* -- extensions ------------------------------------------------------------------ */

static int server_name_parse(struct span ext, struct hello *hello)
{
	struct span list, name;

	if (take_vector(&ext, 2, &list) < 0 || ext.len)
		return hello_refuse(hello, ALERT_DECODE_ERROR);
	/* One entry, and it is a host name: there never was another type. */
	if (!list.len || *list.at != 0)
		return hello_refuse(hello, ALERT_DECODE_ERROR);
	list.at++;
	list.len--;
	if (take_vector(&list, 2, &name) < 0 || list.len)
		return hello_refuse(hello, ALERT_DECODE_ERROR);
	/* It is in ASCII on the wire. What a server makes of other bytes is up to it. */
	for (size_t i = 0; i < name.len; i++)
		if (name.at[i] >= 0x80)
			return hello_refuse(hello, ALERT_UNRECOGNIZED_NAME);
	if (name_canonical((const char *)name.at, name.len, hello->name) == 0)
		hello->has_name = true;
	else if (addr_parse((const char *)name.at, name.len, &hello->addr) == 0)
		hello->has_addr = true;
	else
		return hello_refuse(hello, ALERT_UNRECOGNIZED_NAME);
	return 0;
}

static int alpn_parse(struct span ext, struct hello *hello)
{
	struct span list, protocol;

	if (take_vector(&ext, 2, &list) < 0 || ext.len || !list.len)
		return hello_refuse(hello, ALERT_DECODE_ERROR);
	while (list.len) {
		if (take_vector(&list, 1, &protocol) < 0 || !protocol.len)
			return hello_refuse(hello, ALERT_DECODE_ERROR);
		if (protocol.len == 2 && memcmp(protocol.at, "h2", 2) == 0)
			hello->h2 = true;
		if (protocol.len == 8 && memcmp(protocol.at, "http/1.1", 8) == 0)
			hello->http1 = true;
	}
	hello->has_alpn = true;
	return 0;
}

static int extensions_parse(struct span list, struct hello *hello)
{
	uint64_t seen[65536 / 64] = { 0 };
	struct span type, ext;

	while (list.len) {
		unsigned number;
		int e = 0;

		if (hello_take(&list, 2, &type) < 0 || take_vector(&list, 2, &ext) < 0)
			return hello_refuse(hello, ALERT_DECODE_ERROR);
		number = (unsigned)type.at[0] << 8 | type.at[1];
		if (seen[number / 64] & (uint64_t)1 << number % 64)
			return hello_refuse(hello, ALERT_ILLEGAL_PARAMETER);
		seen[number / 64] |= (uint64_t)1 << number % 64;
		if (number == EXT_SERVER_NAME)
			e = server_name_parse(ext, hello);
		else if (number == EXT_ALPN)
			e = alpn_parse(ext, hello);
		if (e < 0)
			return e;
	}
	return 0;
}

/* -- the message, and the records that it comes in --------------------------------------- */

static int message_parse(struct span body, struct hello *ret)
{
	struct hello hello = { 0 };
	struct span version, random, session, ciphers, compressions, extensions = { 0 };
	int r;

	if (hello_take(&body, 2, &version) < 0)
		return hello_refuse(ret, ALERT_DECODE_ERROR);
	if (version.at[0] != 3)
		return hello_refuse(ret, ALERT_PROTOCOL_VERSION);
	if (hello_take(&body, 32, &random) < 0 || take_vector(&body, 1, &session) < 0 || session.len > 32 ||
	    take_vector(&body, 2, &ciphers) < 0 || ciphers.len % 2 || take_vector(&body, 1, &compressions) < 0)
		return hello_refuse(ret, ALERT_DECODE_ERROR);
	if (!ciphers.len || !memchr(compressions.at, 0, compressions.len))
		return hello_refuse(ret, ALERT_ILLEGAL_PARAMETER);
	/* TLS 1.2 may end here. */
	if (body.len && (take_vector(&body, 2, &extensions) < 0 || body.len))
		return hello_refuse(ret, ALERT_DECODE_ERROR);
	r = extensions_parse(extensions, &hello);
	*ret = hello;
	return r;
}

/* How long the message is with its header; -EAGAIN as long as that is not known. */
static ssize_t message_len(const unsigned char *data, size_t len, struct hello *hello)
{
	size_t body;

	if (len && data[0] != CLIENT_HELLO)
		return hello_refuse(hello, ALERT_UNEXPECTED_MESSAGE);
	if (len < MESSAGE_HEADER)
		return -EAGAIN;
	body = (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
	return body > NP_HELLO_BYTES - MESSAGE_HEADER ? too_long(hello) : (ssize_t)(body + MESSAGE_HEADER);
}

/* What is there of the record's payload; the record as a whole is as long as *ret_len says. */
static int record_take(struct span *data, struct hello *hello, struct span *ret, size_t *ret_len)
{
	static const unsigned char start[] = { RECORD_HANDSHAKE, 3 };
	size_t known = data->len < sizeof(start) ? data->len : sizeof(start);
	struct span header;

	if (memcmp(data->at, start, known) != 0)
		return hello_refuse(hello, data->at[0] == RECORD_HANDSHAKE ? ALERT_PROTOCOL_VERSION
									   : ALERT_UNEXPECTED_MESSAGE);
	if (hello_take(data, RECORD_HEADER, &header) < 0)
		return -EAGAIN;
	*ret_len = (size_t)header.at[3] << 8 | header.at[4];
	if (!*ret_len || *ret_len > RECORD_MAX)
		return hello_refuse(hello, *ret_len ? ALERT_RECORD_OVERFLOW : ALERT_UNEXPECTED_MESSAGE);
	return hello_take(data, *ret_len < data->len ? *ret_len : data->len, ret);
}

int hello_parse(const unsigned char *data, size_t len, struct hello *ret, size_t *ret_need)
{
	struct span left = { data, len }, payload;
	unsigned char joined[NP_HELLO_BYTES];
	size_t have = 0, record;

	*ret_need = len + 1;
	for (;;) {
		const unsigned char *message = joined;
		ssize_t need;
		int e;

		if (!left.len)
			return -EAGAIN;
		e = record_take(&left, ret, &payload, &record);
		if (e < 0)
			return e;
		/* Most come in one record and are read where they are. */
		if (!have && payload.len == record) {
			message = payload.at;
		} else if (payload.len > sizeof(joined) - have) {
			return too_long(ret);
		} else {
			memcpy(joined + have, payload.at, payload.len);
		}
		have += payload.len;
		need = message_len(message, have, ret);
		if (need < 0 && need != -EAGAIN)
			return (int)need;
		if (need > 0 && (size_t)need > have + left.len)
			*ret_need = len + ((size_t)need - have - left.len);
		/* A record may not hold the end of one message and the beginning of another. */
		if (need > 0 && have - payload.len + record > (size_t)need)
			return hello_refuse(ret, ALERT_UNEXPECTED_MESSAGE);
		if (need > 0 && have == (size_t)need)
			return message_parse((struct span){ message + MESSAGE_HEADER, have - MESSAGE_HEADER }, ret);
		if (payload.len < record)
			return -EAGAIN;
		if (message != joined) {
			if (have > sizeof(joined))
				return too_long(ret);
			memcpy(joined, message, have);
		}
	}
}
