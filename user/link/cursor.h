/* SPDX-License-Identifier: MIT */
/*
 * Which event was acknowledged last, in a file that is written in place: whoever has it may not make others. It has two slots that
 * are written in turns, each with a checksum. After a crash in the middle of a write the other one counts: events are sent
 * twice then, and none is left out. The daemon makes it, with the place at which an exporter begins; from then on the exporter writes.
 */
#pragma once

#include <stdint.h>

#define CURSOR_SLOT 64 /* bytes */

struct cursor {
	int fd;
	uint64_t seq;
	uint64_t turn; /* of the slot that has it */
};

/* 0; -ENOENT when nothing was written yet; -EPROTO when both slots are damaged; -errno. */
int cursor_open(struct cursor *cursor, int fd);
int cursor_put(struct cursor *cursor, uint64_t seq); /* on the disk when it returns 0 */
