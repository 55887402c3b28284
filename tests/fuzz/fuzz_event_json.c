/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as an event: whatever is in its strings, the JSON parses, is one line within its bound, and holds
 * nothing that a terminal or a reader of lines would take for more than text.
 */
#include "events/event.c"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/chars.h"
#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static uint64_t take_number(struct input *in, size_t width)
{
	uint64_t value = 0;

	for (; width && in->size; width--, in->size--)
		value = value << 8 | *in->data++;
	return value;
}

/* Up to the next zero byte; a leading 0x01 stands for an absent string. Its own allocation, so that ASan sees
 * every read beyond it. */
static char *take_string(struct input *in)
{
	size_t len = strnlen((const char *)in->data, in->size);
	char *text;

	if (len == 1 && in->data[0] == 1) {
		text = NULL;
	} else {
		text = strndup((const char *)in->data, len);
		check(text);
	}
	in->data += len;
	in->size -= len;
	if (in->size) {
		in->data++;
		in->size--;
	}
	return text;
}

static void check_line(const char *line, size_t len)
{
	check(len && len <= NP_EVENT_LINE_MAX);
	check(strlen(line) == len);
	check(strchr(line, '\n') == line + len - 1);
	for (size_t i = 0; i + 1 < len;) {
		uint32_t c;
		unsigned n = char_decode(line + i, len - i, &c);

		check(n && char_is_printable(c));
		i += n;
	}
}

/* What was UTF-8 and not too long comes back as it was. */
static void check_member(const json_t *json, const char *key, const char *text)
{
	json_t *value = json_object_get(json, key), *expected;

	check(!value == !text);
	if (!text || strlen(text) > NP_EVENT_STRING_MAX)
		return;
	expected = json_string(text);
	check(!expected || json_equal(value, expected));
	json_decref(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = { "session", "sandbox", "rule", "address", "comm", "dataset", "text", "who" };
	struct input in = { data, size };
	struct buf out = BUF_INIT(NP_EVENT_LINE_MAX);
	char *strings[8];
	struct event event = {
		.seq = take_number(&in, 4),
		.wall_us = take_number(&in, 8),
		.reason = (unsigned)take_number(&in, 2),
		.rung = { .mode = (enum np_mode)take_number(&in, 1),
			  .level = (uint8_t)take_number(&in, 1),
			  .generation = (uint32_t)take_number(&in, 1) },
		.hook = (unsigned)take_number(&in, 1),
		.protocol = (unsigned)take_number(&in, 2),
		.uid = (uint32_t)take_number(&in, 1),
	};
	json_t *json;

	for (size_t i = 0; i < 8; i++)
		strings[i] = take_string(&in);
	event.session = strings[0];
	event.sandbox = strings[1];
	event.rule = strings[2];
	event.address = strings[3];
	event.comm = strings[4];
	event.dataset = strings[5];
	event.text = strings[6];
	event.who = strings[7];

	event_to_json(&event, &out);
	check(!buf_error(&out));
	check_line(out.data, out.len);
	json = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	check(json_is_object(json));
	for (size_t i = 0; i < 8; i++)
		check_member(json, keys[i], strings[i]);
	json_decref(json);
	for (size_t i = 0; i < 8; i++)
		free(strings[i]);
	buf_free(&out);
	return 0;
}
