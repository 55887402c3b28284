/* SPDX-License-Identifier: MIT */
#include "console/assets.h"

#include <string.h>

const struct asset *asset_find(const char *path)
{
	if (!strcmp(path, "/"))
		path = "/index.html";
	for (size_t i = 0; i < n_assets; i++)
		if (!strcmp(assets[i].path, path))
			return &assets[i];
	return NULL;
}
