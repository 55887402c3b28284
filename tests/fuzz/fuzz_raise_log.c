/* SPDX-License-Identifier: MIT */
/* A block of the log of raises, from a file that a crash or somebody's editor has left: what is read of it is in bounds, and is
 * written again as it was. With a digest that fits, or hardly any would get beyond it. */
#include <stdlib.h>

#include "session/raise_log.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char block[RAISE_BLOCK], again[RAISE_BLOCK];
	struct block_head head;
	struct raise_read read, reread;

	memset(block, 0, sizeof(block));
	memcpy(block, data, size < sizeof(block) ? size : sizeof(block));
	memcpy(&head, block, sizeof(head));
	if (head.magic[0] & 1) { /* as a digest would have it */
		head.len %= RAISE_BLOCK - sizeof(head) + 1;
		memcpy(block, &head, sizeof(head));
		block_digest(block, head.digest);
		memcpy(head.magic, MAGIC, sizeof(head.magic));
		memcpy(block, &head, sizeof(head));
	}
	if (raise_block_read(block, &read) < 0)
		return 0;
	check(np_rung_is_valid(&read.entry.rung) && read.dataset.level < LEVEL_COUNT);
	check(!read.entry.notice || (read.notice.text >= block && read.notice.text < block + RAISE_BLOCK));
	check(raise_block_write(&read.entry, read.number, again) == 0 && raise_block_read(again, &reread) == 0);
	check(!strcmp(read.entry.session, reread.entry.session) && read.number == reread.number);
	check(!read.entry.dataset == !reread.entry.dataset && !read.entry.notice == !reread.entry.notice);
	check(!read.entry.notice || !strcmp(read.entry.notice->text, reread.entry.notice->text));
	check(!read.entry.dataset || !strcmp(read.entry.dataset->reason, reread.entry.dataset->reason));
	return 0;
}
