/* SPDX-License-Identifier: MIT */
/*
 * Headers, targets and bodies with placeholders in them, at the places that the input says: what comes out is what a slow search
 * makes of it that compares every placeholder at every place; a body in pieces becomes what it becomes as a whole; and wherever
 * no value may stand, nothing comes out.
 */
#include "secrets/slots.c"

#include "secrets/placeholder_set.c"

#include "check.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_BYTES 4096

static const char policy_text[] = "version: 1\ncredentials:\n"
				  "  a: {source: {env: A}, placeholder: {like: 'ghp_{36}'}}\n"
				  "  b: {source: {env: B}, placeholder: {like: 'ghp_{22}'}}\n"
				  "  c: {source: {env: C}, placeholder: {like: 'c{24}-{4}c'}}\n" /* ends as it begins */
				  "  d: {source: {env: D}, placeholder: {like: jwt}}\n";
static struct policy *policy;
#define SESSIONS 64
static struct placeholder_set *sets[SESSIONS],
	*set; /* of as many sessions: in some, one ends with what another begins with */
static char value_text[] = "V/\"\\+";
static const struct secret value = { .value = value_text, .len = sizeof(value_text) - 1 };
static unsigned found;

static const struct secret *on_found(void *ctx, const struct placeholder *placeholder, const struct slot_place *place)
{
	(void)placeholder;
	check(place->kind < SLOT_KINDS);
	found++;
	return ctx ? NULL : &value;
}

static const struct placeholder *slow_find(const char *text, size_t len, size_t *ret_at)
{
	for (size_t at = 0; at < len; at++)
		for (size_t i = 0; i < set->n; i++)
			if (set->items[i].len <= len - at &&
			    !memcmp(text + at, set->items[i].text, set->items[i].len)) {
				*ret_at = at;
				return &set->items[i];
			}
	return NULL;
}

/* Bytes from 0xf0 on are a placeholder, or the beginning of one. */
static size_t text_make(const uint8_t *data, size_t size, char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < size && n + 256 < TEXT_BYTES; i++) {
		const struct placeholder *p = &set->items[data[i] & 3];

		if (data[i] < 0xf0) {
			text[n++] = (char)data[i];
			continue;
		}
		memcpy(text + n, p->text, p->len);
		n += data[i] & 4 && i + 1 < size ? data[i + 1] % p->len : p->len;
	}
	return n;
}

static void compare(const char *text, size_t len)
{
	size_t at = 0, slow_at = 0;
	const struct placeholder *is = placeholder_set_find(set, text, len, &at),
				 *slow = slow_find(text, len, &slow_at);

	check(is == slow && at == slow_at);
}

static void body(const struct slot_finder *finder, enum slot_kind kind, const char *text, size_t len, size_t each)
{
	const struct slot_place place = { .kind = kind };
	_buf_ struct buf whole = BUF_INIT(1 << 20), parts = BUF_INIT(1 << 20);
	size_t at = 0, has = 0;

	if (slot_replace(finder, &place, text, len, &whole) == 0)
		buf_append(&whole, text, len);
	while (at < len || has < len) {
		size_t used;

		has = has + each < len ? has + each : len;
		used = has == len ? has - at : has - at - placeholder_set_pending(set, text + at, has - at);
		check(has - at - used < set->longest);
		if (slot_replace(finder, &place, text + at, used, &parts) == 0)
			buf_append(&parts, text + at, used);
		at += used;
	}
	check(!whole.error && !parts.error && whole.len == parts.len && !memcmp(whole.data, parts.data, whole.len));
}

static void nothing_left(const struct buf *out, int r)
{
	size_t at;

	if (r > 0)
		check(!slow_find(out->data, out->len, &at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "authorization", "x-key" };
	struct slot_finder finder = { .value = on_found }, denies = { .value = on_found, .ctx = &found };
	_buf_ struct buf out = BUF_INIT(1 << 20);
	struct problems problems = { 0 };
	char text[TEXT_BYTES];
	size_t len;
	int r;

	if (!policy) {
		static const struct placeholder_key key = { .bytes = { 7 } };

		check(policy_load_text("p", policy_text, strlen(policy_text), &policy, &problems) == 0);
		problems_clear(&problems);
		for (unsigned i = 0; i < SESSIONS; i++) {
			char session[32];

			snprintf(session, sizeof(session), "alice/demo%u", i);
			check(placeholder_set_new(policy, &key, session, &sets[i]) == 0);
		}
	}
	if (size < 3)
		return 0;
	set = sets[data[1] % SESSIONS];
	len = text_make(data + 2, size - 2, text);
	compare(text, len);
	finder.set = denies.set = set;
	body(&finder, data[0] & 1 ? SLOT_FORM : SLOT_JSON, text, len, 1 + data[0] / 2);
	for (size_t i = 0; i < 2; i++) {
		buf_clear(&out);
		found = 0;
		r = slot_header(&finder, names[i], strlen(names[i]), text, len, &out);
		check(r >= 0 && (r > 0) == (found > 0));
		if (i || r == 0 || strncasecmp(text, "basic", 5) != 0)
			nothing_left(&out, r);
		if (found) {
			buf_clear(&out);
			check(slot_header(&denies, names[i], strlen(names[i]), text, len, &out) == -EACCES);
		}
	}
	buf_clear(&out);
	found = 0;
	r = slot_target(&finder, text, len, &out);
	check(r >= 0 && (r > 0) == (found > 0));
	return 0;
}
