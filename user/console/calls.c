/* SPDX-License-Identifier: MIT */
#include "console/calls.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"

struct call {
	const char *method, *pattern;
	unsigned kind;
};

static const struct call calls[] = {
	{ "GET", "/v1/health", CALL_READS },
	{ "GET", "/v1/metrics", CALL_READS },
	{ "GET", "/v1/node", CALL_READS },
	{ "GET", "/v1/sessions", CALL_READS },
	{ "GET", "/v1/sessions/*/*", CALL_READS },
	{ "GET", "/v1/sessions/*/*/why", CALL_READS },
	{ "GET", "/v1/sessions/*/*/notices", CALL_READS },
	{ "GET", "/v1/sandboxes", CALL_READS },
	{ "GET", "/v1/sandboxes/*", CALL_READS },
	{ "GET", "/v1/runs", CALL_READS | CALL_INBOX },
	{ "GET", "/v1/runs/*", CALL_READS | CALL_INBOX },
	{ "GET", "/v1/questions", CALL_READS | CALL_INBOX },
	{ "GET", "/v1/questions/*", CALL_READS | CALL_INBOX },
	{ "GET", "/v1/policy", CALL_READS },
	{ "GET", "/v1/policy/source", CALL_READS },
	{ "GET", "/v1/credentials", CALL_READS },
	{ "GET", "/v1/events", CALL_READS },
	{ "POST", "/v1/questions/*/answer", CALL_ANSWERS | CALL_INBOX },
	{ "POST", "/v1/questions/*/revoke", CALL_ANSWERS | CALL_INBOX },
	{ "POST", "/v1/runs/*/approve", CALL_ANSWERS | CALL_INBOX },
	{ "POST", "/v1/runs/*/reject", CALL_ANSWERS | CALL_INBOX },
	{ "POST", "/v1/runs/*/cancel", CALL_CHANGES },
	{ "POST", "/v1/sessions/*/*/datasets", CALL_CHANGES },
	{ "DELETE", "/v1/sessions/*/*", CALL_CHANGES },
	{ "DELETE", "/v1/sandboxes/*", CALL_CHANGES },
	{ "POST", "/v1/policy/reload", CALL_CHANGES },
	{ "PUT", "/v1/policy/file", CALL_CHANGES },
};

/* Letters, digits, and what names are made of; escaped: everything but what would make the daemon see another path. */
static bool segment_is_plain(const char *text, size_t len)
{
	if (len == 0 || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		int high, low;

		if ((text[i] >= '0' && text[i] <= '9') || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z') ||
		    (text[i] && strchr("._~@+:=-", text[i])))
			continue;
		if (text[i] != '%' || len - i < 3)
			return false;
		high = hex_digit(text[i + 1]);
		low = hex_digit(text[i + 2]);
		if (high < 2 || low < 0 || high * 16 + low == '/' || high * 16 + low == '.' || high * 16 + low == 0x7f)
			return false;
		i += 2;
	}
	return true;
}

static bool pattern_matches(const char *pattern, const char *path)
{
	while (*pattern == '/' && *path == '/') {
		size_t want = strcspn(++pattern, "/"), have = strcspn(++path, "/");

		if (want == 1 && *pattern == '*') {
			if (!segment_is_plain(path, have))
				return false;
		} else if (want != have || memcmp(pattern, path, want) != 0) {
			return false;
		}
		pattern += want;
		path += have;
	}
	return *pattern == '\0' && *path == '\0';
}

/* What goes into a request line as it is. */
static bool query_is_plain(const char *query)
{
	for (; *query; query++)
		if (*query <= ' ' || *query > '~' || strchr("\"#<>\\^`{|}", *query))
			return false;
	return true;
}

int call_find(const struct console_rights *rights, const char *method, const char *path, const char *query,
	      enum call_kind *ret)
{
	if (query && !query_is_plain(query))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct call *call = &calls[i];

		if (strcmp(call->method, method) != 0 || !pattern_matches(call->pattern, path))
			continue;
		if (rights->read_only && !(call->kind & CALL_READS))
			return -EACCES;
		if (rights->approver && !(call->kind & CALL_INBOX))
			return -EACCES;
		*ret = (enum call_kind)(call->kind & ~(unsigned)CALL_INBOX);
		return 0;
	}
	return -ENOENT;
}

bool call_streams(const char *query)
{
	while (query && *query) {
		size_t len = strcspn(query, "&");

		if (len == 8 && !memcmp(query, "follow=1", 8))
			return true;
		query += len + (query[len] == '&');
	}
	return false;
}
