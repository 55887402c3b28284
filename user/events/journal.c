/* SPDX-License-Identifier: MIT */
#include "events/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "vocab/limits.h"

#define FILE_NAME_SIZE 40

struct journal {
	int dirfd; /* borrowed */
	const char *name;
	uint64_t file_bytes;
	int fd;	   /* the current file, or -1 */
	bool torn; /* the current file ends in half a line that a crash left */
	bool half; /* it ends in half a line of ours, which begins at `whole` */
	off_t whole;
};

static void file_name(const char *journal, unsigned index, char name[static FILE_NAME_SIZE])
{
	if (index)
		snprintf(name, FILE_NAME_SIZE, "%.16s.%u.ndjson", journal, index);
	else
		snprintf(name, FILE_NAME_SIZE, "%.16s.ndjson", journal);
}

int journal_new(int dirfd, const char *name, uint64_t bytes, struct journal **ret)
{
	struct journal *journal = malloc(sizeof(*journal));

	if (!journal)
		return -ENOMEM;
	*journal = (struct journal){ .dirfd = dirfd, .name = name, .file_bytes = bytes / NP_JOURNAL_FILES, .fd = -1 };
	*ret = journal;
	return 0;
}

static void journal_close(struct journal *journal)
{
	cleanup_close(&journal->fd);
	journal->fd = -1;
	journal->torn = journal->half = false;
}

void journal_free(struct journal *journal)
{
	if (!journal)
		return;
	if (journal->half) /* the last chance; a failure leaves a torn line, as a crash would */
		(void)!ftruncate(journal->fd, journal->whole);
	journal_close(journal);
	free(journal);
}

/* O_NONBLOCK: a fifo in our place is an error, not a wait. */
static int file_open(int dirfd, const char *journal)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	char name[FILE_NAME_SIZE];
	int fd;

	file_name(journal, 0, name);
	fd = openat(dirfd, name, flags);
	if (fd < 0 && errno == ENOENT) {
		fd = openat(dirfd, name, flags | O_CREAT | O_EXCL, 0640);
		if (fd >= 0)
			(void)fchmod(fd, 0640); /* whatever the umask is; if it fails the file is stricter */
	}
	return fd < 0 ? -errno : fd;
}

static int journal_open(struct journal *journal)
{
	_close_ int fd = file_open(journal->dirfd, journal->name);
	struct stat st;
	char last = '\n';

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size && pread(fd, &last, 1, st.st_size - 1) < 0)
		return -errno;
	journal->fd = take_fd(fd);
	journal->torn = last != '\n';
	journal->half = false;
	return 0;
}

/*
 * Makes every file one older. Starts at the first gap rather than at the oldest file, so that a rotation which
 * failed or crashed half way is carried on, and a rotation that keeps failing does not push files out.
 */
static int journal_rotate(struct journal *journal)
{
	char from[FILE_NAME_SIZE], to[FILE_NAME_SIZE];
	unsigned gap = 1;

	for (; gap < NP_JOURNAL_FILES - 1; gap++) {
		file_name(journal->name, gap, to);
		if (faccessat(journal->dirfd, to, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			break;
	}
	for (; gap > 0; gap--) {
		file_name(journal->name, gap - 1, from);
		file_name(journal->name, gap, to);
		/* ENOENT: someone moved our file away. There is nothing to shift then. */
		if (renameat(journal->dirfd, from, journal->dirfd, to) < 0 && errno != ENOENT)
			return -errno;
	}
	journal_close(journal);
	return journal_open(journal);
}

/* Leaves an open file that ends in a whole line (or a torn one, and `torn` says so), and tells its size. */
static int journal_ready(struct journal *journal, off_t *ret_size)
{
	struct stat st;

	/* Asked each time: someone may have removed or emptied the file, and a size that we only remember would
	 * then make the truncation below fill it with zeros. */
	if (journal->fd >= 0 && (fstat(journal->fd, &st) < 0 || !st.st_nlink))
		journal_close(journal);
	if (journal->fd < 0) {
		int r = journal_open(journal);

		if (r < 0)
			return r;
		if (fstat(journal->fd, &st) < 0)
			return -errno;
	}
	if (journal->half && st.st_size > journal->whole) {
		if (ftruncate(journal->fd, journal->whole) < 0)
			return -errno;
		st.st_size = journal->whole;
	}
	journal->half = false;
	*ret_size = st.st_size;
	return 0;
}

int journal_put(struct journal *journal, const char *line, size_t len)
{
	off_t size = 0;
	int r = journal_ready(journal, &size);

	if (r < 0)
		return r;
	if (size && (uint64_t)size + len > journal->file_bytes) {
		r = journal_rotate(journal);
		if (r < 0)
			return r;
		size = 0;
	}
	r = journal->torn ? fs_write_all(journal->fd, "\n", 1) : 0;
	if (r == 0)
		r = fs_write_all(journal->fd, line, len);
	if (r == 0) {
		journal->torn = false;
		return 0;
	}
	/* Back to where the line began, a newline for a torn one included: `torn` still says that it is needed. */
	if (ftruncate(journal->fd, size) < 0) {
		journal->half = true;
		journal->whole = size;
	}
	return r;
}

void journal_expire(struct journal *journal, uint64_t before_us)
{
	for (unsigned index = 0; index < NP_JOURNAL_FILES; index++) {
		char name[FILE_NAME_SIZE];
		struct stat st;

		file_name(journal->name, index, name);
		if (fstatat(journal->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    (uint64_t)st.st_mtim.tv_sec >= before_us / 1000000)
			continue;
		/* A failure leaves it for the next time. The next put finds that its file is gone, and makes a new one. */
		(void)!unlinkat(journal->dirfd, name, 0);
	}
}

/* The highest seq of the lines in text; the first may be the end of a line, which then says nothing. */
static uint64_t lines_seq(const char *text)
{
	static const char start[] = "{\"seq\":";
	uint64_t highest = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		unsigned long long seq;
		char *end;

		line += *line == '\n';
		if (strncmp(line, start, sizeof(start) - 1) != 0)
			continue;
		line += sizeof(start) - 1;
		errno = 0;
		seq = strtoull(line, &end, 10);
		/* Half the range: rubbish in a file may not bring the counter near its end. */
		if (end > line && *end == ',' && !errno && seq <= INT64_MAX / 2 && seq > highest)
			highest = seq;
	}
	return highest;
}

char *journal_tail(int dirfd, const char *journal, unsigned index, size_t max)
{
	char name[FILE_NAME_SIZE];
	_close_ int fd = -1;
	_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	file_name(journal, index, name);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	text = malloc(max + 1);
	if (!text)
		return NULL;
	n = pread(fd, text, max, st.st_size > (off_t)max ? st.st_size - (off_t)max : 0);
	if (n <= 0)
		return NULL;
	for (ssize_t i = 0; i < n; i++) /* a power failure may leave zeros */
		if (!text[i])
			text[i] = ' ';
	text[n] = '\0';
	return take_ptr(text);
}

static uint64_t file_seq(int dirfd, const char *journal, unsigned index)
{
	/* sure to hold whole lines, behind a torn one too */
	_free_ char *text = journal_tail(dirfd, journal, index, (size_t)4 * NP_EVENT_LINE_MAX);

	return text ? lines_seq(text) : 0;
}

uint64_t journal_last_seq(int dirfd, const char *name)
{
	for (unsigned index = 0; index < NP_JOURNAL_FILES; index++) {
		uint64_t seq = file_seq(dirfd, name, index);

		if (seq)
			return seq;
	}
	return 0;
}
