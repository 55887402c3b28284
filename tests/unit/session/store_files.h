/* SPDX-License-Identifier: MIT */
/* The files of a store. */
#pragma once

#include <stdio.h>
#include <unistd.h>

static const char *const store_files[] = { "", "-wal", "-shm", "-raises" };
#define STORE_FILES (sizeof(store_files) / sizeof(*store_files))

static inline void store_files_remove(const char *db)
{
	char file[256];

	for (size_t i = 0; i < STORE_FILES; i++) {
		snprintf(file, sizeof(file), "%s%s", db, store_files[i]);
		unlink(file);
	}
}
