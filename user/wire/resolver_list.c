/* SPDX-License-Identifier: MIT */
#include "wire/resolver_list.h"

#include <net/if.h>
#include <string.h>

#include "base/chars.h"
#include "wire/hostname.h"

/* The name of an interface, or its number: link-local addresses need one. */
static bool zone_is_valid(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '/' || text[i] == '%' || text[i] == '[')
			return false;
	return len > 0 && len < IF_NAMESIZE;
}

bool resolver_address_is_valid(const char *text, size_t len)
{
	const char *zone = memchr(text, '%', len);
	size_t bare = zone ? (size_t)(zone - text) : len;
	struct np_addr addr;

	if (zone && (!memchr(text, ':', bare) || !zone_is_valid(zone + 1, len - bare - 1)))
		return false;
	return addr_parse(text, bare, &addr) == 0;
}

static bool port_is_valid(const char *text, size_t len)
{
	uint64_t port;

	return number_parse(text, len, UINT16_MAX, &port) == 0 && port > 0;
}

static bool resolver_is_valid(const char *text, size_t len)
{
	const char *end = text + len, *close = len && *text == '[' ? memchr(text, ']', len) : NULL;
	const char *colon = memchr(text, ':', len);

	if (close) {
		if (!colon || colon > close || !resolver_address_is_valid(text + 1, (size_t)(close - text) - 1))
			return false;
		return close + 1 == end || (close[1] == ':' && port_is_valid(close + 2, (size_t)(end - close) - 2));
	}
	if (!colon || memchr(colon + 1, ':', (size_t)(end - colon) - 1))
		return resolver_address_is_valid(text, len);
	return resolver_address_is_valid(text, (size_t)(colon - text)) &&
	       port_is_valid(colon + 1, (size_t)(end - colon) - 1);
}

const char *resolver_list_wrong(const char *list, size_t *ret_len)
{
	for (const char *word = list;; word += *ret_len + 1) {
		*ret_len = strcspn(word, ",");
		if (!resolver_is_valid(word, *ret_len))
			return word;
		if (!word[*ret_len])
			return NULL;
	}
}
