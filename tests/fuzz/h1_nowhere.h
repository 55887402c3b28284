/* SPDX-License-Identifier: MIT */
/* What the fuzz targets of HTTP/1.1 share. */
#pragma once

#include "../unit/http/h1_tape.h"
#include "check.h"

static int nowhere_head(void *ctx, struct head *head)
{
	(void)ctx;
	(void)head;
	return 0;
}

static int nowhere_body(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}

static int nowhere_end(void *ctx, const struct fields *trailers)
{
	(void)ctx;
	(void)trailers;
	return 0;
}

static const struct h1_events nowhere = { nowhere_head, nowhere_body, nowhere_end };

static void check_same(struct tape *a, struct tape *b)
{
	check(a->heads == b->heads && a->ends == b->ends);
	check(a->text.len == b->text.len && memcmp(a->text.data, b->text.data, a->text.len) == 0);
}
