/* SPDX-License-Identifier: MIT */
#include "init/mount_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "launch/hidden_mounts.h"

struct mount {
	unsigned id, parent;
	const char *root, *point, *type;
};

static struct mount mounts[WINDOWS_MOUNTS]; /* too large for a stack */

/* The next word, and what follows it. NULL at the end. */
static char *word_take(char **text)
{
	char *word = *text;
	size_t len = strcspn(word, " ");

	if (!len)
		return NULL;
	*text = word + len + (word[len] == ' ');
	word[len] = '\0';
	return word;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS" */
static bool mount_read(char *line, struct mount *ret)
{
	char *end = strstr(line, " - "), *id, *parent, *type;

	if (!end)
		return false;
	*end = '\0';
	end += 3;
	id = word_take(&line);
	parent = id ? word_take(&line) : NULL;
	if (!parent || !word_take(&line))
		return false;
	ret->root = word_take(&line);
	ret->point = ret->root ? word_take(&line) : NULL;
	type = word_take(&end);
	ret->type = type;
	ret->id = (unsigned)strtoul(id, NULL, 10);
	ret->parent = (unsigned)strtoul(parent, NULL, 10);
	return ret->point && type;
}

/* What every sandbox has: see plan.h. */
static bool is_planned(const struct mount *m)
{
	if (!strcmp(m->type, "proc"))
		return path_below(m->point, "/proc");
	if (!strcmp(m->type, "sysfs"))
		return (!strcmp(m->point, "/sys/class") && !strcmp(m->root, "/class")) ||
		       (!strcmp(m->point, "/sys/devices") && !strcmp(m->root, "/devices"));
	if (!strcmp(m->type, "devpts"))
		return path_below(m->point, "/dev");
	/* The few devices of every sandbox, and the one that is put over files that are not to be seen. */
	return !strcmp(m->type, "devtmpfs") && (path_below(m->point, "/dev") || !strcmp(m->root, "/null"));
}

/* True when something is mounted over it, or over what it is mounted in: but what lies on the way to it hides nothing. */
static bool is_covered(size_t n, const struct mount *m)
{
	const struct mount *from = NULL;

	for (size_t depth = 0; m && depth < n; depth++) {
		const struct mount *around = NULL;

		for (size_t i = 0; i < n; i++) {
			const struct mount *other = &mounts[i];

			if (other != m && other != from && other->parent == m->id && !strcmp(other->point, m->point))
				return true;
			if (other != m && other->id == m->parent)
				around = other;
		}
		from = m;
		m = around;
	}
	return false;
}

const char *windows_find(char *table)
{
	size_t n = 0;

	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (n == ARRAY_SIZE(mounts) || !mount_read(line, &mounts[n++]))
			return "the mount table";
	for (size_t i = 0; i < n; i++)
		if (type_is_window(mounts[i].type) && !is_planned(&mounts[i]) && !is_covered(n, &mounts[i]))
			return mounts[i].point;
	return n ? NULL : "the mount table";
}
