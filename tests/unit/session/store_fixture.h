/* SPDX-License-Identifier: MIT */
/* A store in a directory of its own. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session/store.h"
#include "store_files.h"

static char dir[64], path[96];
static struct store *store;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/netpawl-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/sessions.db", dir);
	return store_open(path, &store);
}

static int teardown(void **state)
{
	(void)state;
	store_close(store);
	store = NULL;
	store_files_remove(path);
	return rmdir(dir);
}

__attribute__((unused)) static void reopen(void)
{
	store_close(store);
	store = NULL;
	assert_int_equal(store_open(path, &store), 0);
}
