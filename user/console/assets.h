/* SPDX-License-Identifier: MIT */
/* The files of the page, which are in the program itself. The build makes the table of user/console/page/. */
#pragma once

#include <stddef.h>

struct asset {
	const char *path; /* "/app.js" */
	const char *type; /* "text/javascript; charset=utf-8" */
	const unsigned char *data;
	size_t len;
};

/* NULL: there is none. "/" is the page. */
const struct asset *asset_find(const char *path);

extern const struct asset assets[];
extern const size_t n_assets;
