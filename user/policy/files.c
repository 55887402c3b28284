/* SPDX-License-Identifier: MIT */
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "policy/include.h"
#include "policy/snapshot.h"
#include "vocab/limits.h"

struct directory {
	int fd;
	struct buf *record; /* may be NULL */
	const char *other;  /* NULL, or the name of a file whose text is not read from the disk: */
	const char *text;
};

static int file_read(void *ctx, const char *name, char **ret_text, size_t *ret_len)
{
	const struct directory *dir = ctx;
	/* The kernel follows the links, and refuses those that lead out: no check of ours could be raced. O_NONBLOCK, because
	 * opening a pipe would wait until somebody writes to it. */
	_close_ int fd = fs_open_beneath(dir->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	_buf_ struct buf text = BUF_INIT(NP_POLICY_BYTES);
	struct stat st;
	int e;

	if (dir->other && !strcmp(dir->other, name)) {
		if (!dir->text)
			return -ENOENT;
		*ret_len = strlen(dir->text);
		*ret_text = strdup(dir->text);
		return *ret_text ? 0 : -ENOMEM;
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	e = fs_read_fd(fd, &text);
	if (e < 0)
		return e;
	if (dir->record)
		snapshot_add(dir->record, name, text.data, text.len);
	*ret_len = text.len;
	*ret_text = buf_take(&text);
	return *ret_text ? 0 : -ENOMEM;
}

static int load_from(const char *path, struct directory *dir, struct policy **ret, struct problems *problems)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	_free_ char *shown = strndup(path, (size_t)(name - path));
	_close_ int dirfd = -1;
	struct policy_source source = { .read = file_read, .ctx = dir };
	int e = 0;

	if (shown)
		dirfd = open(*shown ? shown : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!shown)
		e = -ENOMEM;
	else if (dirfd < 0)
		e = -errno;
	else if (!*name)
		e = *path ? -EISDIR : -ENOENT;
	if (e < 0) {
		problem_add(problems, false, path, 0, 0, "cannot read it: %s", source_words(e));
		return e;
	}
	dir->fd = dirfd;
	if (dir->record)
		snapshot_begin(dir->record, shown, name);
	return policy_load(&source, shown, name, ret, problems);
}

int policy_load_file(const char *path, struct policy **ret, struct problems *problems)
{
	return policy_record_file(path, NULL, ret, problems);
}

int policy_record_file(const char *path, struct buf *record, struct policy **ret, struct problems *problems)
{
	return load_from(path, &(struct directory){ .record = record }, ret, problems);
}

int policy_load_with(const char *path, const char *other, const char *text, struct policy **ret,
		     struct problems *problems)
{
	return load_from(path, &(struct directory){ .other = other, .text = text }, ret, problems);
}
