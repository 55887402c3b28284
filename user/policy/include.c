/* SPDX-License-Identifier: MIT */
#include "policy/include.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/quote.h"
#include "vocab/limits.h"

const char *source_words(int e)
{
	switch (-e) {
	case ENOENT:
		return "there is no such file";
	case EXDEV:
		return "it leads out of the directory of the policy's first file";
	case EISDIR:
		return "it is a directory";
	case ENXIO:
		return "it is no regular file";
	case E2BIG:
		return "it is too large";
	case ENOTSUP:
		return "this policy was not read from a file, so it can include none";
	default:
		return strerror(-e);
	}
}

static int read_failed(struct loading *l, const char *name, const struct node *at, int e)
{
	char path[PROBLEM_FILE_SIZE * 2];

	if (e == -ENOMEM)
		return e;
	if (e == -ENOENT && l->optional)
		return 0;
	if (at) {
		error_at(&l->reader, at, "cannot read %s: %s", QUOTE(name, strlen(name)), source_words(e));
		return 0;
	}
	snprintf(path, sizeof(path), "%s%s", l->shown, name);
	problem_add(l->reader.problems, false, path, 0, 0, "cannot read it: %s", source_words(e));
	return e;
}

int file_count(struct loading *l, const char *name, const struct node *at, const char *text, size_t len)
{
	char number[24];

	if (len > NP_POLICY_BYTES - l->bytes) {
		if (at) {
			error_at(&l->reader, at, "the files of the policy have more than %u bytes", NP_POLICY_BYTES);
			return -EINVAL;
		}
		return read_failed(l, name, at, -E2BIG);
	}
	l->bytes += len;
	snprintf(number, sizeof(number), "%zu", len);
	sha256_update(&l->hash, strlen(name) + 1, (const uint8_t *)name);
	sha256_update(&l->hash, strlen(number) + 1, (const uint8_t *)number);
	sha256_update(&l->hash, len, (const uint8_t *)text);
	return 0;
}

/* Makes the file known, so that messages can name it. */
static int file_register(struct loading *l, const char *name, const struct node *at, struct file **ret)
{
	struct policy *policy = l->reader.policy;
	size_t shown = strlen(l->shown), len = strlen(name);
	char *path = arena_alloc(policy->arena, shown + len + 1, 1), *kept = arena_text(policy->arena, name, len);

	if (!path || !kept)
		return -ENOMEM;
	memcpy(path, l->shown, shown);
	memcpy(path + shown, name, len);
	policy->files[policy->n_files++] = path;
	*ret = &l->reader.files[l->reader.n_files++];
	**ret = (struct file){ .name = kept, .at = at };
	return 0;
}

bool file_is_welcome(struct loading *l, const char *name, const struct node *at)
{
	struct reader *reader = &l->reader;

	for (unsigned i = 0; i < reader->n_files; i++) {
		const struct node *other = reader->files[i].at;
		const struct node first = { .line = 1 };

		if (strcmp(reader->files[i].name, name) != 0)
			continue;
		if (other)
			problem_other(reader,
				      error_at(reader, at, "%s is already included in %s:%u", QUOTE(name, strlen(name)),
					       node_file(reader, other), other->line),
				      other);
		else
			problem_other(reader,
				      error_at(reader, at, "%s is the first file, and cannot be included again",
					       QUOTE(name, strlen(name))),
				      &first);
		return false;
	}
	if (reader->n_files == NP_POLICY_FILES) {
		error_at(reader, at, "more than %u files", NP_POLICY_FILES);
		return false;
	}
	return true;
}

/* -- include ------------------------------------------------------------------------- */

int path_resolve(struct reader *reader, const struct file *file, const struct node *key, const struct node *entry,
		 char name[static PATH_MAX])
{
	const char *slash = strrchr(file->name, '/'), *text = entry->text;
	size_t at = slash ? (size_t)(slash - file->name) : 0;

	if (text[0] == '/') {
		error_at(reader, entry, "%s takes paths relative to the file, not %s", key->text,
			 QUOTE(text, entry->len));
		return -EINVAL;
	}
	if (at >= PATH_MAX) {
		error_at(reader, entry, "%s is too long for a path", QUOTE(text, entry->len));
		return -EINVAL;
	}
	memcpy(name, file->name, at); /* no slash behind it */
	while (*text) {
		size_t len = strcspn(text, "/");
		const char *segment = text;

		text += len + (text[len] == '/');
		if (len == 0 || (len == 1 && segment[0] == '.'))
			continue;
		if (len == 2 && !memcmp(segment, "..", 2)) {
			if (!at) {
				error_at(reader, entry, "%s leads out of the directory of the policy's first file",
					 QUOTE(entry->text, entry->len));
				return -EINVAL;
			}
			while (at && name[--at] != '/')
				;
			continue;
		}
		if (at + len + 2 > PATH_MAX) {
			error_at(reader, entry, "%s is too long for a path", QUOTE(entry->text, entry->len));
			return -EINVAL;
		}
		if (at)
			name[at++] = '/';
		memcpy(name + at, segment, len);
		at += len;
	}
	name[at] = '\0';
	if (!at)
		error_at(reader, entry, "%s is a directory", QUOTE(entry->text, entry->len));
	return at ? 0 : -EINVAL;
}

static int load_includes(struct loading *l, const struct file *file)
{
	const struct node *key = file->sections[SECTION_INCLUDE], *entry = NULL;
	size_t n = key ? field_entries(&l->reader, key, &entry) : 0;
	int e = 0;

	for (; n && e == 0; n--, entry = entry->next) {
		_free_ char *name = malloc(PATH_MAX); /* not on the stack: this is called again for each file below */

		if (!name)
			return -ENOMEM;
		if (!entry_is_text(&l->reader, key, entry) || path_resolve(&l->reader, file, key, entry, name) < 0)
			continue;
		if (file_is_welcome(l, name, entry))
			e = file_load(l, name, entry);
	}
	return e;
}

int text_load(struct loading *l, const char *name, const struct node *at, char **ret_text, size_t *ret_len)
{
	_free_ char *text = NULL;
	size_t len = 0;
	int e = l->source->read(l->source->ctx, name, &text, &len);

	*ret_text = NULL;
	if (e < 0)
		return read_failed(l, name, at, e);
	e = file_count(l, name, at, text, len);
	if (e < 0)
		return at ? 0 : e;
	*ret_len = len;
	*ret_text = take_ptr(text);
	return 0;
}

/* The tree of a file. 0 with NULL when there is none, and that is told. */
static int file_parse(struct loading *l, const char *name, const struct node *at, const struct node **ret)
{
	struct reader *reader = &l->reader;
	_free_ char *text = NULL;
	struct file *file;
	const char *shown;
	size_t len = 0;
	int e;

	*ret = NULL;
	e = text_load(l, name, at, &text, &len);
	if (e < 0 || !text)
		return e;
	e = file_register(l, name, at, &file);
	if (e < 0)
		return e;
	shown = reader->policy->files[reader->n_files - 1];
	e = yaml_read(reader->trees, text, len, shown, (uint16_t)(reader->n_files - 1), &l->nodes, reader->problems,
		      ret);
	if (e == 0 && !*ret)
		problem_add(reader->problems, false, shown, 1, 1,
			    "the file is empty; a policy starts with \"version: 1\"");
	return e == -ENOMEM ? e : 0;
}

int file_load(struct loading *l, const char *name, const struct node *at)
{
	unsigned index = l->reader.n_files;
	const struct node *root;
	int e = file_parse(l, name, at, &root);

	if (e < 0 || !root)
		return e;
	if (!file_open(&l->reader, &l->reader.files[index], root))
		return 0;
	e = load_includes(l, &l->reader.files[index]);
	l->order[l->n_order++] = index;
	return e;
}
