/* SPDX-License-Identifier: MIT */
#include "session/raise_log.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/disk_write.h"
#include "base/fs.h"

#define RAISE_BLOCKS 64 /* raises between two times that the store is on the disk, which it is each second at least */
#define MAGIC	     "npraise1"

/* How a block begins; the texts follow, with their zeros: session, dataset, reason, words of the notice. */
struct block_head {
	char magic[8];
	uint8_t digest[SHA256_DIGEST_SIZE]; /* of all of the block that comes behind it */
	uint64_t number;
	struct np_rung rung;
	uint64_t dataset_us, notice_us;
	uint32_t dataset_level;
	uint8_t has_dataset, has_notice;
	uint16_t len; /* of the texts */
};
_Static_assert(sizeof(struct block_head) == 80, "block_head layout: also that nothing is padded");

struct raise_log {
	_Alignas(RAISE_BLOCK) char block[RAISE_BLOCK]; /* of the entry that was put last */
	struct disk_write write;		       /* its way to the disk */
	int fd;
	char path[FS_PATH_SIZE];
	uint64_t last, settled; /* numbers: of the newest entry, and as raise_log_settled() says */
};

/* -- one block ---------------------------------------------------------------------------- */

static void block_digest(const char block[static RAISE_BLOCK], uint8_t digest[static SHA256_DIGEST_SIZE])
{
	const size_t from = offsetof(struct block_head, number);
	struct sha256_ctx sha;
	struct block_head head;

	memcpy(&head, block, sizeof(head));
	sha256_init(&sha);
	sha256_update(&sha, sizeof(head) - from + head.len, (const uint8_t *)block + from);
	sha256_digest(&sha, SHA256_DIGEST_SIZE, digest);
}

static bool text_put(char block[static RAISE_BLOCK], size_t *at, const char *text)
{
	size_t len = strlen(text) + 1;

	if (len > RAISE_BLOCK - *at)
		return false;
	memcpy(block + *at, text, len);
	*at += len;
	return true;
}

int raise_block_write(const struct raise_entry *entry, uint64_t number, char block[static RAISE_BLOCK])
{
	const struct dataset_row *dataset = entry->dataset;
	const struct notice_row *notice = entry->notice;
	struct block_head head = { .number = number, .rung = entry->rung };
	size_t at = sizeof(head);

	if (dataset) {
		head.has_dataset = true;
		head.dataset_us = dataset->added_us;
		head.dataset_level = dataset->level;
	}
	if (notice) {
		head.has_notice = true;
		head.notice_us = notice->made_us;
	}
	/* A notice names the dataset and the reason of the raise that it tells of. */
	if (!text_put(block, &at, entry->session) ||
	    !text_put(block, &at,
		      dataset  ? dataset->name
		      : notice ? notice->dataset
			       : "") ||
	    !text_put(block, &at,
		      dataset  ? dataset->reason
		      : notice ? notice->reason
			       : "") ||
	    !text_put(block, &at, notice ? notice->text : ""))
		return -E2BIG;
	head.len = (uint16_t)(at - sizeof(head));
	memcpy(block, &head, sizeof(head));
	memset(block + at, 0, RAISE_BLOCK - at);
	block_digest(block, head.digest);
	memcpy(head.magic, MAGIC, sizeof(head.magic));
	memcpy(block, &head, sizeof(head));
	return 0;
}

/* The next text; NULL: there is none, or it does not fit. */
static const char *text_next(const char **at, const char *end, size_t size)
{
	const char *text = *at, *zero = memchr(text, 0, (size_t)(end - text));

	if (!zero || (size_t)(zero - text) >= size)
		return NULL;
	*at = zero + 1;
	return text;
}

static bool head_is_whole(const char block[static RAISE_BLOCK], const struct block_head *head)
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0 || head->len > RAISE_BLOCK - sizeof(*head))
		return false;
	block_digest(block, digest);
	return memcmp(digest, head->digest, sizeof(digest)) == 0 && np_rung_is_valid(&head->rung) &&
	       head->dataset_level < LEVEL_COUNT;
}

int raise_block_read(const char block[static RAISE_BLOCK], struct raise_read *ret)
{
	const char *at = block + sizeof(struct block_head), *end, *session, *dataset, *reason, *text, *problem;
	struct block_head head;

	memcpy(&head, block, sizeof(head));
	if (!head_is_whole(block, &head))
		return -ENOENT;
	end = at + head.len;
	session = text_next(&at, end, sizeof(ret->session.text));
	dataset = session ? text_next(&at, end, sizeof(ret->dataset.name)) : NULL;
	reason = dataset ? text_next(&at, end, sizeof(ret->dataset.reason)) : NULL;
	text = reason ? text_next(&at, end, RAISE_BLOCK) : NULL;
	if (!text || session_name_parse(session, &ret->session, &problem))
		return -ENOENT;
	ret->number = head.number;
	ret->dataset = (struct dataset_row){ .level = head.dataset_level, .added_us = head.dataset_us };
	ret->notice = (struct notice_row){ .made_us = head.notice_us, .rung = head.rung, .text = text };
	strcpy(ret->dataset.name, dataset);
	strcpy(ret->dataset.reason, reason);
	strcpy(ret->notice.dataset, dataset);
	strcpy(ret->notice.reason, reason);
	ret->entry = (struct raise_entry){
		.session = ret->session.text,
		.rung = head.rung,
		.dataset = head.has_dataset ? &ret->dataset : NULL,
		.notice = head.has_notice ? &ret->notice : NULL,
	};
	return 0;
}

/* -- the file ----------------------------------------------------------------------------- */

/* Zeros are written, for room that is only reserved would have to be noted as used when an entry comes. */
static int file_lay_out(int fd)
{
	static const char zeros[RAISE_BLOCK];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	for (off_t at = st.st_size / RAISE_BLOCK * RAISE_BLOCK; at < (off_t)RAISE_BLOCKS * RAISE_BLOCK;
	     at += RAISE_BLOCK) {
		ssize_t n = pwrite(fd, zeros, sizeof(zeros), at);

		if (n != sizeof(zeros))
			return n < 0 ? -errno : -ENOSPC;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int last_note(void *data, const struct raise_read *read)
{
	struct raise_log *log = data;

	if (read->number > log->last)
		log->last = read->number;
	return 0;
}

int raise_log_open(const char *path, struct raise_log **ret)
{
	struct raise_log *log = aligned_alloc(RAISE_BLOCK, sizeof(*log));
	int r;

	if (!log)
		return -ENOMEM;
	*log = (struct raise_log){ .write = DISK_WRITE_INIT };
	log->fd = fs_open_private(path);
	r = log->fd < 0 ? log->fd : fs_path(log->path, "%s", path);
	if (r == 0)
		r = file_lay_out(log->fd);
	if (r == 0)
		r = fs_sync_name(path);
	if (r == 0)
		r = raise_log_each(log, last_note, log);
	if (r == 0)
		r = disk_write_open(&log->write, log->fd);
	log->settled = log->last;
	if (r < 0) {
		raise_log_close(log);
		return r;
	}
	*ret = log;
	return 0;
}

void raise_log_close(struct raise_log *log)
{
	if (!log)
		return;
	disk_write_close(&log->write);
	cleanup_close(&log->fd);
	free(log);
}

static off_t block_at(uint64_t number)
{
	return (off_t)(number % RAISE_BLOCKS) * RAISE_BLOCK;
}

struct found {
	uint64_t number;
	off_t at;
};

static int found_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct found *)a)->number, y = ((const struct found *)b)->number;

	return (x > y) - (x < y);
}

/* -ENOENT: there is no entry. */
static int block_load(const struct raise_log *log, off_t at, char block[static RAISE_BLOCK], struct raise_read *ret)
{
	ssize_t n = pread(log->fd, block, RAISE_BLOCK, at);

	if (n < 0)
		return -errno;
	return n == RAISE_BLOCK ? raise_block_read(block, ret) : -ENOENT;
}

int raise_log_each(const struct raise_log *log, int (*fn)(void *data, const struct raise_read *read), void *data)
{
	struct found found[RAISE_BLOCKS] = { 0 };
	char block[RAISE_BLOCK];
	struct raise_read read;
	size_t n = 0;
	int r = 0;

	for (off_t at = 0; at < (off_t)RAISE_BLOCKS * RAISE_BLOCK && r >= 0; at += RAISE_BLOCK) {
		r = block_load(log, at, block, &read);
		if (r == 0)
			found[n++] = (struct found){ read.number, at };
		r = r == -ENOENT ? 0 : r;
	}
	qsort(found, n, sizeof(*found), found_compare);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = block_load(log, found[i].at, block, &read);
		if (r == 0)
			r = fn(data, &read);
	}
	return r < 0 ? r : 0;
}

/* What is written to a file without a name goes with the last descriptor. */
static bool file_is_there(const struct raise_log *log)
{
	struct stat named, held;

	return stat(log->path, &named) == 0 && fstat(log->fd, &held) == 0 && named.st_ino == held.st_ino &&
	       named.st_dev == held.st_dev;
}

int raise_log_put(struct raise_log *log, const struct raise_entry *entry, uint64_t *ret_number)
{
	const uint64_t number = log->last + 1;
	int r;

	if (number - log->settled > RAISE_BLOCKS)
		return -EAGAIN;
	if (!file_is_there(log))
		return -ESTALE;
	disk_write_wait(&log->write); /* one that nobody waited for has the block */
	r = raise_block_write(entry, number, log->block);
	if (r < 0)
		return r;
	*ret_number = log->last = number;
	disk_write_take(&log->write, log->block, RAISE_BLOCK, block_at(number));
	return 0;
}

void raise_log_write(struct raise_log *log)
{
	disk_write_begin(&log->write);
}

int raise_log_wait(struct raise_log *log)
{
	return disk_write_wait(&log->write);
}

int raise_log_last(const struct raise_log *log, struct raise_read *ret)
{
	return raise_block_read(log->block, ret);
}

uint64_t raise_log_follow(struct raise_log *log, uint64_t number)
{
	if (number > log->last)
		log->last = log->settled = number;
	return log->last;
}

void raise_log_settled(struct raise_log *log, uint64_t number)
{
	if (number > log->settled)
		log->settled = number;
}
