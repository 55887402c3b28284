/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "policy/grant.h"
#include "policy/quote.h"
#include "policy/read.h"
#include "wire/url.h"

/* "https://HOST:PORT", "http://HOST:PORT" or "tcp://HOST:PORT", and nothing behind it. */
static bool destination_read(const char *text, struct grant *grant)
{
	const bool tcp = !strncmp(text, "tcp://", 6);
	char http[320];
	struct url url;

	if (tcp && (size_t)snprintf(http, sizeof(http), "http://%s", text + 6) >= sizeof(http))
		return false;
	if (url_parse(tcp ? http : text, &url) < 0 || strcmp(url.target, "/") != 0 || (tcp && !url.has_port))
		return false;
	grant->kind = tcp ? GRANT_CONNECT : GRANT_READ;
	grant->host = url.host;
	grant->port = url.port;
	grant->tls = url.tls;
	return true;
}

static void read_kind(struct reader *reader, const struct node *map, const struct node *key, struct grant *grant)
{
	const struct node *value = key ? field_scalar(reader, key) : NULL;

	if (grant->kind == GRANT_CONNECT) {
		if (key)
			error_at(reader, key, "of a connection nobody sees what it does: it has no \"kind\"");
	} else if (value && !strcmp(value->text, "write")) {
		grant->kind = GRANT_WRITE;
	} else if (!key || (value && strcmp(value->text, "read") != 0)) {
		error_at(reader, value ? value : map, "a grant of requests needs its \"kind\": read or write");
	}
}

static int read_grant(struct reader *reader, const struct node *map, struct grant *grant)
{
	const struct node *fields[GRANT_KEYS], *of_rule[RULE_KEYS] = { 0 }, *value;
	bool complete = map_fields(reader, map, &keys_grant, fields);
	int e;

	value = fields[GRANT_ALLOW] ? field_scalar(reader, fields[GRANT_ALLOW]) : NULL;
	if (!value) {
		if (complete)
			error_at(reader, map, "a grant needs \"allow\"");
		return 0;
	}
	if (!destination_read(value->text, grant)) {
		error_at(reader, value, "%s is none of https://HOST:PORT, http://HOST:PORT and tcp://HOST:PORT",
			 QUOTE(value->text, value->len));
		return 0;
	}
	read_kind(reader, map, fields[GRANT_KIND], grant);
	of_rule[RULE_FOR] = fields[GRANT_FOR];
	of_rule[RULE_SESSIONS] = fields[GRANT_SESSIONS];
	e = read_conditions(reader, of_rule, complete, &grant->rule);
	grant->rule.text = arena_text(reader->policy->arena, value->text, value->len);
	return e == 0 && !grant->rule.text ? -ENOMEM : e;
}

int read_grants(struct reader *reader, const struct file *file)
{
	const struct node *key = file->sections[SECTION_GRANTS], *map = key ? key->next->first : NULL;
	int e = 0;

	if (!key)
		return 0;
	if (key->next->kind != NODE_LIST) {
		error_at(reader, key->next, "\"grants\" takes a list of grants");
		return 0;
	}
	for (; map && e == 0; map = map->next) {
		struct grant grant = { .rule = { .action = ACTION_ALLOW,
						 .levels = (1u << LEVEL_COUNT) - 1,
						 .inspect = true,
						 .max_body = UINT64_MAX,
						 .at = node_place(map) } };

		if (map->kind != NODE_MAP) {
			error_at(reader, map,
				 "a grant is a mapping, as in \"- {allow: https://example.com:443, kind: read}\"");
			continue;
		}
		if (reader->n_grants == NP_POLICY_GRANTS) {
			error_at(reader, map, "more than %u grants", NP_POLICY_GRANTS);
			break;
		}
		e = array_reserve((void **)&reader->grants, &reader->max_grants, reader->n_grants + 1, sizeof(grant));
		if (e == 0)
			e = read_grant(reader, map, &grant);
		if (e == 0)
			reader->grants[reader->n_grants++] = grant;
	}
	return e;
}
