/* SPDX-License-Identifier: MIT */
#include "policy/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* shown NUL first NUL, then for each file: name NUL, length in 8 bytes, bytes. */

static void put_text(struct buf *record, const char *text)
{
	buf_append(record, text, strlen(text) + 1);
}

void snapshot_begin(struct buf *record, const char *shown, const char *first)
{
	put_text(record, shown);
	put_text(record, first);
}

void snapshot_add(struct buf *record, const char *name, const char *text, size_t len)
{
	uint64_t length = len;

	put_text(record, name);
	buf_append(record, &length, sizeof(length));
	if (len)
		buf_append(record, text, len);
}

int policy_record_default(struct buf *record, struct policy **ret)
{
	static const char text[] = "version: 1\n";

	snapshot_begin(record, "", "default");
	snapshot_add(record, "default", text, strlen(text));
	return policy_default(ret);
}

struct cursor {
	const char *at, *end;
};

static const char *take_text(struct cursor *c)
{
	const char *text = c->at, *nul = memchr(c->at, '\0', (size_t)(c->end - c->at));

	if (!nul)
		return NULL;
	c->at = nul + 1;
	return text;
}

/* The next file; false at the end, or when the record is broken. */
static bool take_file(struct cursor *c, const char **ret_name, const char **ret_text, size_t *ret_len)
{
	const char *name = take_text(c);
	uint64_t len;

	if (!name || (size_t)(c->end - c->at) < sizeof(len))
		return false;
	memcpy(&len, c->at, sizeof(len));
	c->at += sizeof(len);
	if (len > (size_t)(c->end - c->at))
		return false;
	*ret_name = name;
	*ret_text = c->at;
	*ret_len = (size_t)len;
	c->at += len;
	return true;
}

static int snapshot_read(void *ctx, const char *name, char **ret_text, size_t *ret_len)
{
	struct cursor c = *(const struct cursor *)ctx;
	const char *found, *text;
	size_t len;

	while (take_file(&c, &found, &text, &len)) {
		char *copy;

		if (strcmp(found, name) != 0)
			continue;
		copy = malloc(len + 1);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, text, len);
		copy[len] = '\0';
		*ret_text = copy;
		*ret_len = len;
		return 0;
	}
	return -ENOENT;
}

int policy_load_snapshot(const void *data, size_t len, struct policy **ret, struct problems *problems)
{
	struct cursor files = { data, (const char *)data + len };
	const struct policy_source source = { .read = snapshot_read, .ctx = &files, .trusted = true };
	const char *shown = take_text(&files), *first = shown ? take_text(&files) : NULL;

	return first ? policy_load(&source, shown, first, ret, problems) : -EINVAL;
}

int snapshot_each(const void *data, size_t len, const char **ret_shown, const char **ret_first, snapshot_file_fn *fn,
		  void *ctx)
{
	struct cursor files = { data, (const char *)data + len };
	const char *name, *text;
	size_t n;
	int r = 0;

	*ret_shown = take_text(&files);
	*ret_first = *ret_shown ? take_text(&files) : NULL;
	if (!*ret_first)
		return -EINVAL;
	while (r == 0 && take_file(&files, &name, &text, &n))
		r = fn(ctx, name, text, n);
	return r;
}
