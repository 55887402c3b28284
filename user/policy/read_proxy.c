/* SPDX-License-Identifier: MIT */
/* upstream_proxy: by which proxy the inspector goes where. */
#include "policy/read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "policy/quote.h"
#include "vocab/limits.h"
#include "vocab/words.h"
#include "wire/url.h"

/* What is wrong with it is said without its text where that may hold a password. */
static int url_read(struct reader *reader, const struct node *value, struct upstream_proxy *proxy)
{
	char addr[ADDR_TEXT_SIZE] = "", text[PROXY_URL_SIZE];
	struct url url;

	if (!strcmp(value->text, "direct"))
		return 0;
	if (memchr(value->text, '@', value->len)) {
		error_at(
			reader, value,
			"\"url\" has a user name or a password; these belong in a file: \"credentials: {file: PATH}\"");
		return 0;
	}
	if (!strncasecmp(value->text, "https://", 8) || !strncasecmp(value->text, "socks", 5)) {
		error_at(reader, value,
			 "%s: the upstream proxy is spoken to in HTTP, without TLS: \"http://HOST:PORT\"",
			 QUOTE(value->text, value->len));
		return 0;
	}
	if (strlen(value->text) != value->len || url_parse(value->text, &url) < 0 || !url.has_port ||
	    strcmp(url.target, "/") != 0) {
		error_at(reader, value, "%s is no upstream proxy; write \"http://HOST:PORT\", or \"direct\"",
			 QUOTE(value->text, value->len));
		return 0;
	}
	proxy->host = url.host;
	proxy->port = url.port;
	if (url.host.is_addr)
		addr_format(&url.host.addr, addr);
	snprintf(text, sizeof(text), strchr(addr, ':') ? "http://[%s]:%u" : "http://%s:%u",
		 *addr ? addr : url.host.name, url.port);
	proxy->url = arena_text(reader->policy->arena, text, strlen(text));
	return proxy->url ? 0 : -ENOMEM;
}

static int credentials_read(struct reader *reader, const struct node *key, struct upstream_proxy *proxy)
{
	const struct node *map = section_map(reader, key, "\"file\""), *fields[PROXY_LOGIN_KEYS], *value;
	bool complete;

	if (!map)
		return 0;
	complete = map_fields(reader, map, &keys_proxy_login, fields);
	if (!fields[PROXY_LOGIN_FILE]) {
		if (complete)
			error_at(reader, map, "\"credentials\" needs \"file\"");
		return 0;
	}
	value = field_scalar(reader, fields[PROXY_LOGIN_FILE]);
	if (!value)
		return 0;
	if (value->text[0] != '/' || strlen(value->text) != value->len) {
		/* It may be what belongs into the file. */
		error_at(reader, value, "this is no whole path; credentials are in a file like \"/etc/netpawl/proxy\"");
		return 0;
	}
	proxy->credentials_at = node_place(value);
	proxy->credentials = arena_text(reader->policy->arena, value->text, value->len);
	return proxy->credentials ? 0 : -ENOMEM;
}

/* Every port and either protocol, where none is written. */
static int run_read(struct reader *reader, const struct node *key, struct pattern_run *ret)
{
	struct rule rule = { .action = ACTION_DENY };
	const struct node *not_http;
	int e = key ? read_destinations(reader, key, PATTERN_REFUSE, &rule, &not_http) : 0;

	*ret = (struct pattern_run){ rule.pattern, rule.n_patterns };
	return e;
}

static int entry_read(struct reader *reader, const struct node *map, struct upstream_proxy *proxy)
{
	const struct node *fields[PROXY_KEYS], *value;
	bool complete = map_fields(reader, map, &keys_proxy, fields);
	int e = 0;

	if (!fields[PROXY_URL] && complete)
		error_at(reader, map, "an upstream proxy needs \"url\": \"http://HOST:PORT\", or \"direct\"");
	value = fields[PROXY_URL] ? field_scalar(reader, fields[PROXY_URL]) : NULL;
	if (value)
		e = url_read(reader, value, proxy);
	proxy->all = !fields[PROXY_HOSTS];
	if (e == 0)
		e = run_read(reader, fields[PROXY_HOSTS], &proxy->hosts);
	if (e == 0)
		e = run_read(reader, fields[PROXY_EXCEPT], &proxy->except);
	if (e == 0 && fields[PROXY_CREDENTIALS])
		e = credentials_read(reader, fields[PROXY_CREDENTIALS], proxy);
	if (e == 0 && proxy->credentials && value && !strcmp(value->text, "direct"))
		error_at(reader, fields[PROXY_CREDENTIALS], "\"direct\" is no proxy that could want credentials");
	return e;
}

static int proxy_add(struct reader *reader, const struct node *entry)
{
	struct policy *policy = reader->policy;
	struct upstream_proxy *proxy = &policy->proxies[policy->n_proxies];
	const struct upstream_proxy *before = policy->n_proxies ? proxy - 1 : NULL;

	if (policy->n_proxies == NP_PROXIES_MAX) {
		error_at(reader, entry, "more than %d entries of \"upstream_proxy\"", NP_PROXIES_MAX);
		return 0;
	}
	if (before && before->all && !before->except.n)
		warn_at(reader, entry, "nothing comes here: the entry before it is for every host");
	policy->n_proxies++;
	*proxy = (struct upstream_proxy){ .at = node_place(entry), .all = true };
	return entry->kind == NODE_MAP ? entry_read(reader, entry, proxy) : url_read(reader, entry, proxy);
}

static int list_read(struct reader *reader, const struct node *list)
{
	int e = 0;

	if (!list->first)
		error_at(reader, list, "the list of \"upstream_proxy\" is empty");
	for (const struct node *entry = list->first; entry && e == 0; entry = entry->next)
		if (entry->kind == NODE_MAP)
			e = proxy_add(reader, entry);
		else
			error_at(reader, entry, "an entry of \"upstream_proxy\" is a mapping with \"url\"");
	return e;
}

int read_proxies(struct reader *reader, const struct file *file)
{
	const struct node *key = file->sections[SECTION_UPSTREAM_PROXY];
	size_t before = reader->n_patterns;
	int e;

	if (!key)
		return 0;
	e = key->next->kind == NODE_LIST ? list_read(reader, key->next) : proxy_add(reader, key->next);
	/* They are looked through one by one for each connection. */
	if (reader->n_patterns - before > NP_PROXY_PATTERNS)
		error_at(reader, key, "more than %d destinations in \"upstream_proxy\", lists unfolded",
			 NP_PROXY_PATTERNS);
	return e;
}
