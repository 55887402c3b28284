/* SPDX-License-Identifier: MIT */
#include "policy/decide.h"

/* Many servers take "_" in the name of a header for "-". */
static bool header_is(const char *header, const char *name)
{
	for (; *header && (*header == *name || (*header == '_' && *name == '-')); header++)
		name++;
	return !*header && !*name;
}

/* Servers that let a header name the method would write for a GET; and what is in a body leaves, by whatever method. */
bool facts_read(const struct facts *facts)
{
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS", NULL };
	static const char *const other[] = { "x-http-method", "x-http-method-override", "x-method-override", NULL };

	for (const char *const *header = facts->headers; header && *header; header++)
		for (const char *const *name = other; *name; name++)
			if (header_is(*header, *name))
				return false;
	return !facts->websocket && !facts->has_body && list_has(safe, facts->method);
}
