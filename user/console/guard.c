/* SPDX-License-Identifier: MIT */
#include "console/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "127.0.0.1:8080" of "http://127.0.0.1:8080" */
static const char *origin_host(const char *origin)
{
	return strstr(origin, "://") + 3;
}

int guard_add(struct guard *guard, const char *origin)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]";
	const char *host = !strncmp(origin, "http://", 7)    ? origin + 7
			   : !strncmp(origin, "https://", 8) ? origin + 8
							     : NULL;
	int n;

	if (!host || !*host || strspn(host, plain) != strlen(host))
		return -EINVAL;
	if (guard->n == GUARD_NAMES)
		return -E2BIG;
	n = snprintf(guard->origins[guard->n], GUARD_ORIGIN, "%s", origin);
	if (n >= GUARD_ORIGIN)
		return -E2BIG;
	guard->n++;
	return 0;
}

const char *guard_refuses(const struct guard *guard, const struct guard_headers *h)
{
	const char *origin = NULL;

	if (h->twice)
		return "Host or Origin is there twice";
	if (!h->host)
		return "there is no Host";
	for (size_t i = 0; i < guard->n && !origin; i++)
		if (!strcasecmp(h->host, origin_host(guard->origins[i])))
			origin = guard->origins[i];
	if (!origin)
		return "Host is no name of this console: a page of somebody else may have led here";
	if (h->origin && strcasecmp(h->origin, origin) != 0)
		return "Origin is another page's";
	if (h->sec_fetch && strcmp(h->sec_fetch, "same-origin") != 0 && strcmp(h->sec_fetch, "none") != 0)
		return "Sec-Fetch-Site says that another page asks";
	if (!h->changes)
		return NULL;
	/* Every browser names the page whose script changes something. */
	if (!h->origin)
		return "there is no Origin";
	if (!h->type || strcmp(h->type, "application/json") != 0)
		return "Content-Type is not application/json";
	return NULL;
}
