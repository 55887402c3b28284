/* SPDX-License-Identifier: MIT */
/* A store, and another connection to its file without our settings: foreign keys and recursive triggers are off, as they are by
 * default. Whoever writes there meets the same triggers. */
#pragma once

#include <sqlite3.h>

#include "store_fixture.h"

static sqlite3 *stranger;

static int stranger_setup(void **state)
{
	return setup(state) || sqlite3_open(path, &stranger);
}

static int stranger_teardown(void **state)
{
	sqlite3_close(stranger);
	return teardown(state);
}

static int sql(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return sqlite3_exec(stranger, text, NULL, NULL, NULL);
}

#define REFUSED(...) assert_int_equal(sql(__VA_ARGS__), SQLITE_CONSTRAINT)
