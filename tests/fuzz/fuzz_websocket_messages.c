/* SPDX-License-Identifier: MIT */
/*
 * Messages of a websocket with placeholders and values in them, cut into frames and pieces as the input says, from either end. What the
 * other end reads is what a slow search makes of each message as a whole: a placeholder has become the value where that may be, a
 * value has become the placeholder in what comes back, and a message with what must not pass does not arrive whole.
 */
#include "messages_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGES     8
#define TEXT_BYTES   2048
#define REASON_CODES 256

struct message {
	enum websocket_opcode opcode;
	char text[TEXT_BYTES];
	size_t len;
	uint8_t cut; /* into frames of so many bytes; 0: it is one */
};

/* Letters, and for bytes from 0xe0 on a word, or (with 8) its beginning. No escapes: what is one is for fuzz_scrub. */
static size_t text_make(const uint8_t *data, size_t size, size_t room, char *text)
{
	const char *const words[] = { good_word, other_word, GOOD_VALUE, OTHER_VALUE };
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		const char *word = words[data[i] & 3];
		size_t len = data[i] & 8 && i + 1 < size ? data[i + 1] % strlen(word) : strlen(word);

		if (data[i] < 0xe0 && n < room)
			text[n++] = (char)('a' + data[i] % 26);
		if (data[i] < 0xe0 || n + len > room)
			continue;
		memcpy(text + n, word, len);
		n += len;
	}
	return n;
}

/* "\xff\xfe" ends a message; its first byte says what it is, the second how it is cut. */
static unsigned messages_make(const uint8_t *data, size_t size, struct message *messages)
{
	unsigned n = 0;

	while (size >= 2 && n < MESSAGES) {
		static const enum websocket_opcode opcodes[] = { WEBSOCKET_TEXT, WEBSOCKET_BINARY, WEBSOCKET_PING,
								 WEBSOCKET_PONG };
		const uint8_t *end = memmem(data, size, "\xff\xfe", 2);
		const size_t len = end ? (size_t)(end - data) : size;
		struct message *message = &messages[n];

		if (len >= 2) {
			message->opcode = opcodes[data[0] & 3];
			message->cut = data[1];
			message->len = text_make(data + 2, len - 2, message->opcode & 8 ? CONTROL_MAX : TEXT_BYTES,
						 message->text);
			n++;
		}
		data += end ? len + 2 : len;
		size -= end ? len + 2 : len;
	}
	return n;
}

static void frames_put(const struct message *message, bool from_client, struct buf *out)
{
	static const unsigned char mask[4] = { 1, 0x80, 0, 0x55 };
	size_t each = message->cut && !(message->opcode & 8) ? message->cut : message->len + 1, at = 0;

	do {
		const size_t n = message->len - at < each ? message->len - at : each;

		websocket_write(out, at ? WEBSOCKET_CONTINUATION : message->opcode, at + n == message->len,
				from_client ? mask : NULL, message->text + at, n);
		at += n;
	} while (at < message->len);
}

static bool has(const struct message *message, const char *word)
{
	return memmem(message->text, message->len, word, strlen(word));
}

/* The slow one. */
static void slow_replace(const struct message *message, const char *word, const char *by, struct buf *out)
{
	const size_t len = strlen(word);

	for (size_t at = 0; at < message->len;) {
		if (message->len - at >= len && !memcmp(message->text + at, word, len)) {
			buf_puts(out, by);
			at += len;
		} else {
			buf_append(out, message->text + at++, 1);
		}
	}
}

/* Must it not arrive? The reasons that are right then. */
static bool is_refused(const struct message *message, bool from_client, bool reasons[REASON_CODES])
{
	const bool text = message->opcode == WEBSOCKET_TEXT, control = message->opcode & 8;

	if (from_client) {
		reasons[NP_R_SECRET_LEAVING] = has(message, GOOD_VALUE) || has(message, OTHER_VALUE);
		reasons[NP_R_CREDENTIAL_ELSEWHERE] = has(message, other_word) || (!text && has(message, good_word));
	} else if (echo_searched) {
		reasons[NP_R_SECRET_RETURNED] = has(message, OTHER_VALUE) || (control && has(message, GOOD_VALUE));
	}
	return reasons[NP_R_SECRET_LEAVING] || reasons[NP_R_CREDENTIAL_ELSEWHERE] || reasons[NP_R_SECRET_RETURNED];
}

static void compare(const struct message *message, const struct heard *heard, bool from_client)
{
	_buf_ struct buf want = BUF_INIT(1u << 20);
	const bool text = message->opcode == WEBSOCKET_TEXT, replaced = from_client ? text : echo_searched;

	if (replaced)
		slow_replace(message, from_client ? good_word : GOOD_VALUE, from_client ? GOOD_VALUE : good_word,
			     &want);
	else
		buf_append(&want, message->text, message->len);
	check(heard->whole && heard->opcode == message->opcode && heard->text.len == want.len);
	check(!want.len || !memcmp(heard->text.data, want.data, want.len));
}

static void judge(const struct message *messages, unsigned n, bool from_client, int r, const struct hearing *hearing)
{
	unsigned i = 0;

	for (; i < n; i++) {
		bool reasons[REASON_CODES] = { 0 };

		if (is_refused(&messages[i], from_client, reasons)) {
			check(r == -EACCES && reasons[fake_tunnel.report.reason]);
			check(hearing->n <= i + 1 && (hearing->n <= i || !hearing->all[i].whole));
			check((fake_tunnel.report.reason == NP_R_SECRET_LEAVING) == (leaked != NULL));
			return;
		}
		check(i < hearing->n);
		compare(&messages[i], &hearing->all[i], from_client);
	}
	check(r == 0 && hearing->n == n && !fake_tunnel.report.reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct message messages[MESSAGES];
	static bool ready;
	_buf_ struct buf bytes = BUF_INIT(1u << 20);
	struct hearing hearing;
	bool from_client;
	unsigned n;
	size_t each;
	int r;

	if (size < 3)
		return 0;
	if (!ready)
		messages_setup();
	ready = true;
	messages_session(data[0] >> 2);
	from_client = data[0] & 1;
	each = 1 + data[1] % 97;
	n = messages_make(data + 2, size - 2, messages);
	for (unsigned i = 0; i < n; i++)
		frames_put(&messages[i], from_client, &bytes);
	check(!buf_error(&bytes));
	messages_open(data[0] & 2);
	hearing_init(&hearing, from_client);
	if (!from_client && !echo_searched) { /* as they come: the tunnel passes them on by itself */
		messages_close();
		return 0;
	}
	r = messages_say(from_client, bytes.data ?: "", bytes.len, each, &hearing);
	judge(messages, n, from_client, r, &hearing);
	hearing_free(&hearing);
	messages_close();
	return 0;
}
