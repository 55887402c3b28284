/* SPDX-License-Identifier: MIT */
/*
 * The store's write-ahead log, so that a commit is one fdatasync and nothing else. What SQLite would do in a commit that
 * happens to be the one is done between commits: the log goes into the database, and so that a commit overwrites bytes instead
 * of growing the file, which is dearer to sync, there are zeros in front of it. They are no frames: SQLite, which writes
 * each frame at its place and reads none whose checksum is wrong, takes them for what an earlier round of the log has left.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/fs.h"
#include "session/store_internal.h"

#define FRAME_BYTES (4096 + 24)
#define AHEAD	    256	 /* frames that shall have their place, a megabyte: some eighty escalations */
#define AHEAD_LEAST 64	 /* with fewer it does not wait for the next look */
#define SETTLE_AT   500	 /* frames that go into the database between commits */
#define SETTLE_MUST 4000 /* in the next commit, if nobody came by */

bool wal_has_room(const struct store *store)
{
	return store->placed >= store->frames + AHEAD_LEAST;
}

/* The log has grown by as many as go into the database at once, or is about to reach what has its place: busy times do not wait
 * for the next look, for each of their commits would pay for a file that grows. */
static bool wal_is_due(const struct store *store)
{
	return store->frames - store->settled >= SETTLE_AT || !wal_has_room(store);
}

void store_on_due(struct store *store, void (*fn)(void *data), void *data)
{
	store->on_due = fn;
	store->on_due_data = data;
}

/* Nobody else writes to the log, and we are not in a commit. */
static int wal_extend(struct store *store)
{
	static const char zeros[AHEAD * FRAME_BYTES];
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	struct stat st;
	int r = fs_path(path, "%s-wal", sqlite3_db_filename(store->db, "main"));

	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (store->frames + AHEAD / 2) * (off_t)FRAME_BYTES) {
		if (pwrite(fd, zeros, sizeof(zeros), st.st_size) < 0 || fdatasync(fd) < 0)
			return -errno;
		st.st_size += sizeof(zeros);
	}
	store->placed = (int)(st.st_size / FRAME_BYTES);
	return 0;
}

/* -- a disk that fails -------------------------------------------------------------------- */

/*
 * What Linux could not write it takes for written from then on, and tells of it once for each descriptor: whoever only tries
 * again hears that all is well, while the log on the disk has a hole that ends it for whoever reads it after a power failure. So
 * this asks by a descriptor of its own, which hears of what SQLite's heard of, and writes the log again where something has failed.
 */
static bool wal_has_failed(const struct store *store)
{
	return store->wal_fd >= 0 && sync_file_range(store->wal_fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) < 0;
}

static int wal_write_again(const struct store *store)
{
	sqlite3_file *file = NULL;
	char piece[16 << 10];
	off_t at = 0;
	ssize_t n;
	int r;

	/* SQLite's descriptor hears of it here, and not in the next commit, which would be all right. */
	if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK && file &&
	    file->pMethods)
		file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	r = sql_begin(
		store->db); /* whoever else has it open puts nothing between what is read here and what is written */
	if (r)
		return r;
	while ((n = pread(store->wal_fd, piece, sizeof(piece), at)) > 0 &&
	       pwrite(store->wal_fd, piece, (size_t)n, at) == n)
		at += n;
	r = n < 0 ? -errno : n > 0 ? -EIO : 0;
	sql_end(store->db, -ECANCELED);
	return r;
}

/* What was committed is on the disk when this returns 0. */
static int wal_sync(struct store *store)
{
	int r;

	store->wal_torn |= wal_has_failed(store);
	r = store->wal_torn ? wal_write_again(store) : 0;
	if (!r && fdatasync(store->wal_fd) < 0)
		r = -errno;
	store->wal_torn = r != 0;
	return r;
}

int wal_mend(struct store *store)
{
	store->wal_torn |= wal_has_failed(store);
	return store->wal_torn ? wal_sync(store) : 0;
}

int wal_open(struct store *store)
{
	char path[FS_PATH_SIZE];
	struct stat st;
	int r = fs_path(path, "%s-wal", sqlite3_db_filename(store->db, "main"));

	if (r < 0)
		return r;
	store->wal_fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (store->wal_fd < 0 || fstat(store->wal_fd, &st) < 0)
		return -errno;
	/* Of one that was killed: nobody knows what its disk said. */
	store->wal_torn = st.st_size > 0;
	r = wal_mend(store);
	return r == -EBUSY
		       ? 0
		       : r; /* somebody has it locked: nothing is said to be on the disk until it was written again */
}

/* Only of a log that is on the disk: what the database gets has to be in a log that a start reads to its end. */
static void wal_checkpoint(struct store *store)
{
	if (wal_mend(store) == 0)
		sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static int on_commit(void *data, sqlite3 *db, const char *name, int frames)
{
	struct store *store = data;

	(void)db;
	(void)name;
	if (frames < store->frames) /* it began anew */
		store->settled = 0;
	store->frames = frames;
	if (!store->unsynced && !store->wal_torn)
		raises_settle(store);
	if (frames >= SETTLE_MUST)
		wal_checkpoint(store);
	if (store->on_due && wal_is_due(store))
		store->on_due(store->on_due_data);
	return SQLITE_OK;
}

void wal_watch(struct store *store)
{
	sqlite3_wal_hook(store->db, on_commit, store);
}

int store_sync(struct store *store)
{
	int r = wal_mend(
		store); /* asked also when nothing waits: what fails is told of once, and may be forgotten before the next commit */

	if (!r && store->synced != store->written)
		r = wal_sync(store);
	if (!r)
		raises_settle(store);
	return r;
}

void store_tend(struct store *store)
{
	if (store->behind)
		failpoint("before_catch_up");
	if (store_catch_up(store))
		return; /* whoever writes next meets it, too */
	if (store->frames - store->settled >= SETTLE_AT) {
		wal_checkpoint(store);
		store->settled = store->frames;
	}
	/* What fails here costs commits their time, and nothing else. It is not tried again at each of them. */
	if (store->placed < store->frames + AHEAD / 2 && wal_extend(store) < 0)
		store->placed = store->frames + AHEAD / 2;
}
