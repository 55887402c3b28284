/* SPDX-License-Identifier: MIT */
#include "http/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/bytes.h"
#include "vocab/limits.h"

/* In front of fields->text. Text never moves, so that a head may point into it: a block that is full stays where it
 * is until the list is cleared, and a larger one takes what comes. */
struct block {
	struct block *older;
	size_t before; /* bytes used in all older ones */
};

/* Most heads are smaller. These are what malloc() keeps at hand (up to 1,032 bytes), for they come and go with requests. */
#define FIRST_BLOCK 1008
#define FIRST_ROOM  16

static struct block *fields_block(const struct fields *fields)
{
	return fields->text ? (struct block *)fields->text - 1 : NULL;
}

static void blocks_free(struct block *block)
{
	while (block) {
		struct block *older = block->older;

		free(block);
		block = older;
	}
}

void fields_init(struct fields *fields)
{
	*fields = (struct fields){ 0 };
}

void fields_clear(struct fields *fields)
{
	struct block *newest = fields_block(fields);

	if (newest) {
		blocks_free(newest->older);
		*newest = (struct block){ 0 };
	}
	fields->n = 0;
	fields->used = 0;
}

void fields_free(struct fields *fields)
{
	blocks_free(fields_block(fields));
	free(fields->items);
	fields_init(fields);
}

static __attribute__((noinline)) int fields_grow(struct fields *fields, size_t len)
{
	struct block *newest = fields_block(fields), *block;
	size_t size = fields->size ? fields->size : FIRST_BLOCK / 2;

	do
		size *= 2;
	while (size < len);
	if (size > NP_HEAD_BYTES)
		size = NP_HEAD_BYTES;
	block = malloc(sizeof(*block) + size);
	if (!block)
		return -ENOMEM;
	*block = (struct block){ .older = newest, .before = newest ? newest->before + fields->used : 0 };
	fields->text = (char *)(block + 1);
	fields->used = 0;
	fields->size = size;
	return 0;
}

/* Room for len bytes of text. */
static inline int fields_take(struct fields *fields, size_t len, char **ret)
{
	const struct block *newest = fields_block(fields);
	size_t before = newest ? newest->before : 0;
	int e;

	if (len > NP_HEAD_BYTES - before - fields->used)
		return -E2BIG;
	if (!fields->text || len > fields->size - fields->used) {
		e = fields_grow(fields, len);
		if (e < 0)
			return e;
	}
	*ret = fields->text + fields->used;
	fields->used += len;
	return 0;
}

static __attribute__((noinline)) int fields_widen(struct fields *fields)
{
	uint32_t room = fields->room ? 2 * fields->room : FIRST_ROOM;
	struct field *items;

	_Static_assert(NP_HEAD_FIELDS % FIRST_ROOM == 0, "it is doubled up to the bound");
	if (room > NP_HEAD_FIELDS)
		return -E2BIG;
	items = realloc(fields->items, room * sizeof(*items));
	if (!items)
		return -ENOMEM;
	fields->items = items;
	fields->room = room;
	return 0;
}

int fields_add(struct fields *fields, const char *name, size_t name_len, const char *value, size_t value_len)
{
	char *text;
	int e;

	/* Each by itself first: a sum could wrap. */
	if (name_len > NP_HEAD_BYTES || value_len > NP_HEAD_BYTES)
		return -E2BIG;
	e = fields->n == fields->room ? fields_widen(fields) : 0;
	if (e < 0)
		return e;
	e = fields_take(fields, name_len + value_len + 2, &text);
	if (e < 0)
		return e;
	fields->items[fields->n++] =
		(struct field){ text, text + name_len + 1, (uint32_t)name_len, (uint32_t)value_len };
	bytes_lower(text, name, name_len);
	text[name_len] = '\0';
	text += name_len + 1;
	if (value_len)
		memcpy(text, value, value_len);
	text[value_len] = '\0';
	return 0;
}

int fields_set(struct fields *fields, uint32_t at, const char *value, size_t len)
{
	char *text;
	int e = len > NP_HEAD_BYTES ? -E2BIG : fields_take(fields, len + 1, &text);

	if (e < 0)
		return e;
	memcpy(text, value, len);
	text[len] = '\0';
	fields->items[at].value = text;
	fields->items[at].value_len = (uint32_t)len;
	return 0;
}

void fields_wipe(struct fields *fields)
{
	struct block *block = fields_block(fields);
	size_t used = fields->used;

	while (block) {
		explicit_bzero(block + 1, used);
		used = block->older ? block->before - block->older->before : 0;
		block = block->older;
	}
}

const struct field *fields_find(const struct fields *fields, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < fields->n; i++)
		if (fields->items[i].name_len == len && memcmp(fields->items[i].name, name, len) == 0)
			return &fields->items[i];
	return NULL;
}

static void head_forget(struct head *head)
{
	head->method = NULL;
	head->authority = NULL;
	head->target = NULL;
	head->scheme = NULL;
	head->status = 0;
	head->has_body = false;
	head->length = BODY_UNKNOWN;
	head->has_length = false;
	head->expects_continue = false;
	head->upgrade = NULL;
	head->te_trailers = false;
}

void head_init(struct head *head)
{
	head_forget(head);
	fields_init(&head->fields);
}

void head_clear(struct head *head)
{
	head_forget(head);
	fields_clear(&head->fields);
}

void head_free(struct head *head)
{
	head_forget(head);
	fields_free(&head->fields);
}

static int head_set(struct head *head, const char **member, const char *text, size_t len)
{
	char *copy;
	int e;

	if (len > NP_HEAD_BYTES)
		return -E2BIG;
	e = fields_take(&head->fields, len + 1, &copy);
	if (e < 0)
		return e;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	*member = copy;
	return 0;
}

int head_set_method(struct head *head, const char *text, size_t len)
{
	return head_set(head, &head->method, text, len);
}

int head_set_authority(struct head *head, const char *text, size_t len)
{
	return head_set(head, &head->authority, text, len);
}

int head_set_target(struct head *head, const char *text, size_t len)
{
	return head_set(head, &head->target, text, len);
}

int head_set_scheme(struct head *head, const char *text, size_t len)
{
	return head_set(head, &head->scheme, text, len);
}

int head_set_upgrade(struct head *head, const char *text, size_t len)
{
	return head_set(head, &head->upgrade, text, len);
}

int fields_copy(struct fields *to, const struct fields *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++) {
		const struct field *f = &from->items[i];

		r = fields_add(to, f->name, f->name_len, f->value, f->value_len);
	}
	return r;
}

int fields_clone(struct fields **ret, const struct fields *from)
{
	struct fields *copy = malloc(sizeof(*copy));
	int r = copy ? 0 : -ENOMEM;

	if (copy) {
		fields_init(copy);
		r = fields_copy(copy, from);
	}
	if (r < 0)
		fields_delete(&copy);
	*ret = copy;
	return r;
}

void fields_delete(struct fields **fields)
{
	if (*fields)
		fields_free(*fields);
	free(*fields);
	*fields = NULL;
}

void fields_remove(struct fields *fields, const char *name)
{
	const size_t len = strlen(name);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->items[i];

		if (f->name_len != len || memcmp(f->name, name, len) != 0)
			fields->items[kept++] = *f;
	}
	fields->n = kept;
}

int head_copy(struct head *to, const struct head *from)
{
	static int (*const set[])(struct head *, const char *, size_t) = { head_set_method, head_set_authority,
									   head_set_target, head_set_scheme,
									   head_set_upgrade };
	const char *const texts[] = { from->method, from->authority, from->target, from->scheme, from->upgrade };
	int r;

	*to = *from;
	to->method = to->authority = to->target = to->scheme = to->upgrade = NULL;
	fields_init(&to->fields);
	r = fields_copy(&to->fields, &from->fields);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(set); i++)
		if (texts[i])
			r = set[i](to, texts[i], strlen(texts[i]));
	if (r < 0)
		head_free(to);
	return r;
}

void head_move(struct head *to, struct head *from)
{
	*to = *from;
	head_init(from);
}

bool field_name_is_valid(const char *text, size_t len)
{
	static const bool token[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['!'] = true,	 ['#'] = true,
		['$'] = true,	      ['%'] = true,	    ['&'] = true,	  ['\''] = true, ['*'] = true,
		['+'] = true,	      ['-'] = true,	    ['.'] = true,	  ['^'] = true,	 ['_'] = true,
		['`'] = true,	      ['|'] = true,	    ['~'] = true,
	};
	const unsigned char *name = (const unsigned char *)text;
	unsigned all = len > 0;
	size_t i = 0;

	for (; len - i >= 4; i += 4)
		all &= token[name[i]] & token[name[i + 1]] & token[name[i + 2]] & token[name[i + 3]];
	for (; i < len; i++)
		all &= token[name[i]];
	return all;
}

bool method_is_valid(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= 'A' && text[i] <= 'Z') &&
		    !(i && ((text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '_')))
			return false;
	return len > 0 && len <= NP_METHOD_BYTES;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool field_value_is_valid(const char *text, size_t len)
{
	size_t i;

	if (len && (is_blank(text[0]) || is_blank(text[len - 1])))
		return false;
	for (i = bytes_find_control(text, 0, len); i < len; i = bytes_find_control(text, i + 1, len))
		if (text[i] != '\t')
			return false;
	return true;
}

/* Framing, routing, modifiers, authentication, cookies, and what says how to read the body. */
bool field_is_for_heads(const char *name, size_t len)
{
	static const char *const words[] = {
		"age",
		"authorization",
		"cache-control",
		"connection",
		"content-encoding",
		"content-length",
		"content_length",
		"content-range",
		"content-type",
		"cookie",
		"expect",
		"host",
		"http2-settings",
		"keep-alive",
		"location",
		"max-forwards",
		"pragma",
		"proxy-authenticate",
		"proxy-authorization",
		"proxy-connection",
		"range",
		"retry-after",
		"set-cookie",
		"te",
		"trailer",
		"transfer-encoding",
		"transfer_encoding",
		"upgrade",
		"vary",
		"www-authenticate",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == len && memcmp(words[i], name, len) == 0)
			return true;
	return false;
}
