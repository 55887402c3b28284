/* SPDX-License-Identifier: MIT */
/* What a browser, or whoever else connects to the console, sends: lines of a method, a path, a query, Host, Origin, Sec-Fetch-Site, a cookie, a
 * token, and the rest a policy file. Only what the tables name is passed on, a name of the console's own alone gets in, and an outline has no more
 * values than it may. */
#include "console/calls.c"
#include "console/guard.c"
#include "console/logins.c"
#include "console/outline.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t outline_count(const json_t *node)
{
	const json_t *below = json_object_get(node, "map") ?: json_object_get(node, "list"), *one;
	size_t n = 1, i;

	check(json_integer_value(json_object_get(node, "line")) > 0 &&
	      json_integer_value(json_object_get(node, "column")) > 0);
	json_array_foreach(below, i, one) n += outline_count(one);
	return n;
}

static void call_check(char *const *lines)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct console_rights rights = { .read_only = i & 1, .approver = i & 2 };
		enum call_kind kind;

		if (call_find(&rights, lines[0], lines[1], lines[2], &kind) < 0)
			continue;
		check(!strncmp(lines[1], "/v1/", 4) && !strstr(lines[1], "/.") && !strpbrk(lines[1], " \t\r\n?#\\"));
		check(!strpbrk(lines[2], " \t\r\n#"));
		check(!(rights.read_only && kind != CALL_READS));
	}
	(void)call_streams(lines[2]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guard guard = { .origins = { "http://127.0.0.1:8080" }, .n = 1 };
	char text[8192], *lines[8], *at = text, secret[SECRET_SIZE];
	struct logins *logins = NULL;
	struct guard_headers headers;
	json_t *outline;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		lines[i] = at;
		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
	}
	call_check(lines);
	headers =
		(struct guard_headers){ .host = lines[3], .origin = lines[4], .sec_fetch = lines[5], .changes = true };
	check(guard_refuses(&guard, &headers) != NULL); /* there is no Content-Type */
	headers = (struct guard_headers){ .host = lines[3], .origin = *lines[4] ? lines[4] : NULL };
	if (!guard_refuses(&guard, &headers))
		check(!strcasecmp(lines[3], "127.0.0.1:8080") &&
		      (!*lines[4] || !strcasecmp(lines[4], guard.origins[0])));
	(void)guard_add(&guard, lines[4]);
	if (cookie_find(lines[6], "np", secret) == 0)
		check(strlen(secret) == SECRET_SIZE - 1 && strstr(lines[6], secret));
	check(logins_new(&logins) == 0);
	check(logins_enter(logins, 1, lines[7], secret, secret) == -EACCES && !logins_know(logins, lines[6], lines[7]));
	free(logins);
	outline = outline_make(at, (size_t)(text + size - at));
	check(!outline || outline_count(outline) <= NP_CONSOLE_OUTLINE);
	json_decref(outline);
	return 0;
}
