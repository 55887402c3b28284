/* SPDX-License-Identifier: MIT */
#include "link/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

/* "seq turn checksum\n", each with its leading zeros. */
#define NUMBERS 42 /* what the checksum is of: two numbers of 20 digits, and their spaces */

static void slot_write(char slot[static CURSOR_SLOT + 1], uint64_t seq, uint64_t turn)
{
	snprintf(slot, CURSOR_SLOT + 1, "%020" PRIu64 " %020" PRIu64 " ", seq, turn);
	snprintf(slot + NUMBERS, CURSOR_SLOT + 1 - NUMBERS, "%016" PRIx64 "    \n\n", hash_mark(slot, NUMBERS));
}

static int slot_read(const char *slot, uint64_t *ret_seq, uint64_t *ret_turn)
{
	char again[CURSOR_SLOT + 1], text[CURSOR_SLOT + 1];

	memcpy(text, slot, CURSOR_SLOT);
	text[CURSOR_SLOT] = '\0';
	if (sscanf(text, "%20" SCNu64 " %20" SCNu64, ret_seq, ret_turn) != 2)
		return -EPROTO;
	slot_write(again, *ret_seq, *ret_turn);
	return memcmp(again, slot, CURSOR_SLOT) == 0 ? 0 : -EPROTO;
}

int cursor_open(struct cursor *cursor, int fd)
{
	char file[2 * CURSOR_SLOT];
	const ssize_t n = pread(fd, file, sizeof(file), 0);
	uint64_t seq, turn;
	int r = -EPROTO;

	*cursor = (struct cursor){ .fd = fd };
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	for (ssize_t i = 0; (i + 1) * CURSOR_SLOT <= n; i++) {
		if (slot_read(file + i * CURSOR_SLOT, &seq, &turn) < 0 || turn < cursor->turn)
			continue;
		cursor->seq = seq;
		cursor->turn = turn;
		r = 0;
	}
	return r;
}

int cursor_put(struct cursor *cursor, uint64_t seq)
{
	char slot[CURSOR_SLOT + 1];
	const uint64_t turn = cursor->turn + 1;

	slot_write(slot, seq, turn);
	if (pwrite(cursor->fd, slot, CURSOR_SLOT, (off_t)(turn % 2 * CURSOR_SLOT)) != CURSOR_SLOT ||
	    fdatasync(cursor->fd) < 0)
		return errno ? -errno : -EIO;
	cursor->seq = seq;
	cursor->turn = turn;
	return 0;
}
