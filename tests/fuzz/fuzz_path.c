/* SPDX-License-Identifier: MIT */
/* A request target and, behind a zero byte, a glob. The normal form of a path is its own, and a glob matches what it says. */
#include "wire/url_path.c"

#include <stdio.h>
#include <stdlib.h>

#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_form(const char *path)
{
	size_t len = strlen(path);

	check(len && len <= NP_PATH_MAX && path[0] == '/');
	check(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../") && !strstr(path, "/..;"));
	check(strcmp(path + len - 1, ".") != 0 ||
	      (strcmp(strrchr(path, '/'), "/.") && strcmp(strrchr(path, '/'), "/..")));
	for (size_t i = 0; i < len; i++)
		check(path[i] >= ' ' && path[i] < 0x7f && path[i] != '\\');
}

/* With the bytes escaped that a request cannot have in its path, it is the same path. */
static void check_again(const char *path)
{
	static char target[3 * NP_PATH_MAX + 8];
	char again[NP_PATH_MAX + 1];
	size_t n = 0;

	for (const char *p = path; *p; p++) {
		if (*p == '%' && escape_read(p, strlen(p)) >= 0)
			check(escape_read(p, strlen(p)) >= 0x80);
		if (*p == ' ' || *p == '?' || *p == '#' || (*p == '%' && escape_read(p, strlen(p)) < 0))
			n += (size_t)sprintf(target + n, "%%%02x", (unsigned)*p);
		else
			target[n++] = *p;
	}
	memcpy(target + n, "?x=/..", 6);
	check(path_normalise(target, n, again) == 0 && strcmp(path, again) == 0);
	check(path_normalise(target, n + 6, again) == 0 && strcmp(path, again) == 0);
}

/* Row by row, by definition. */
static bool slow_match(const char *glob, const char *path)
{
	static bool row[2][NP_PATH_MAX + 2];
	size_t n = strlen(path);
	bool *now = row[0], *next = row[1], *swap;

	memset(row, 0, sizeof(row));
	now[0] = true;
	for (; *glob; glob++) {
		bool deep = glob[0] == '*' && glob[1] == '*';

		memset(next, 0, n + 1);
		for (size_t i = 0; i <= n; i++) {
			if (*glob == '*')
				next[i] = now[i] || (i && next[i - 1] && (deep || path[i - 1] != '/'));
			else
				next[i] = i && now[i - 1] && path[i - 1] == *glob;
		}
		glob += deep;
		swap = now;
		now = next;
		next = swap;
	}
	return now[n];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[NP_PATH_MAX + 1] = "", glob[NP_GLOB_MAX + 1] = "", same[NP_GLOB_MAX + 1], *text = malloc(size + 1);
	const char *problem = NULL;
	size_t len = strnlen((const char *)data, size);
	int e;

	check(text);
	memcpy(text, data, size);
	e = path_normalise(text, len, path);
	check(e == 0 || ((e == -EINVAL || (e == -E2BIG && len > NP_PATH_MAX)) && !path[0]));
	if (e == 0) {
		check_form(path);
		check_again(path);
		/* As a glob it is the same, unless the glob refuses what the path had resolved. */
		if (glob_normalise(text, len, same, &problem) == 0)
			check(strcmp(same, path) == 0);
		problem = NULL;
	}
	if (len < size) {
		e = glob_normalise(text + len + 1, size - len - 1, glob, &problem);
		check(e == 0 ? !problem : problem && *problem && !glob[0]);
	}
	if (glob[0]) {
		check(path_matches(glob, glob));
		check(path_matches(glob, path) == slow_match(glob, path));
	}
	free(text);
	return 0;
}
