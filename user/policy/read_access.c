/* SPDX-License-Identifier: MIT */
/* access: who may call the control API. Names are words here: who has them on this host is for the daemon to find out. */
#include "policy/read.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/quote.h"

static int caller_add(struct reader *reader, const struct node *entry, unsigned role, const char *const *sessions)
{
	struct policy *policy = reader->policy;
	bool is_group = !strncmp(entry->text, "group:", 6);
	const char *name = is_group ? entry->text + 6 : !strncmp(entry->text, "user:", 5) ? entry->text + 5 : "";

	if (!*name || strlen(entry->text) != entry->len || strpbrk(name, ": \t\n/*,")) {
		error_at(reader, entry, "%s is nobody; write user:NAME or group:NAME", QUOTE(entry->text, entry->len));
		return 0;
	}
	if (policy->n_access == NP_ACCESS_CALLERS) {
		error_at(reader, entry, "more than %d users and groups", NP_ACCESS_CALLERS);
		return 0;
	}
	name = arena_text(policy->arena, name, strlen(name));
	if (!name)
		return -ENOMEM;
	policy->access[policy->n_access++] = (struct access_caller){ is_group, name, role, sessions };
	return 0;
}

static int callers_read(struct reader *reader, const struct node *key, unsigned role, const char *const *sessions)
{
	const struct node *entry;
	size_t n = field_entries(reader, key, &entry);
	int e = 0;

	for (; n && e == 0; n--, entry = entry->next)
		if (entry_is_text(reader, key, entry))
			e = caller_add(reader, entry, role, sessions);
	return e;
}

/* Both keys are required: a platform without sessions could do nothing, and one that may use all of them says so ("*"). */
static int platform_read(struct reader *reader, const struct node *map)
{
	const struct node *fields[PLATFORM_KEYS];
	const char *const *sessions = NULL;
	bool complete;
	int e;

	if (map->kind != NODE_MAP) {
		error_at(reader, map, "a platform is a mapping of \"callers\" and \"sessions\"");
		return 0;
	}
	complete = map_fields(reader, map, &keys_platform, fields);
	if (!fields[PLATFORM_CALLERS] || !fields[PLATFORM_SESSIONS]) {
		if (complete)
			error_at(reader, map, "a platform needs both \"callers\" and \"sessions\"");
		return 0;
	}
	e = read_session_globs(reader, fields[PLATFORM_SESSIONS], &sessions);
	return e || !sessions ? e : callers_read(reader, fields[PLATFORM_CALLERS], ROLE_PLATFORM, sessions);
}

int read_access(struct reader *reader, const struct node *key)
{
	static const struct {
		enum access_key key;
		enum role role;
	} plain[] = { { ACCESS_OPERATOR, ROLE_OPERATOR },
		      { ACCESS_APPROVER, ROLE_APPROVER },
		      { ACCESS_EDITOR, ROLE_EDITOR },
		      { ACCESS_READER, ROLE_READER } };
	const struct node *map = section_map(reader, key, "roles to users and groups"), *fields[ACCESS_KEYS], *entry;
	int e = 0;

	if (!map)
		return 0;
	map_fields(reader, map, &keys_access, fields);
	for (size_t i = 0; i < ARRAY_SIZE(plain) && e == 0; i++)
		if (fields[plain[i].key])
			e = callers_read(reader, fields[plain[i].key], plain[i].role, NULL);
	if (!fields[ACCESS_PLATFORM] || e)
		return e;
	if (fields[ACCESS_PLATFORM]->next->kind != NODE_LIST) {
		error_at(reader, fields[ACCESS_PLATFORM]->next, "\"platform\" takes a list of mappings");
		return 0;
	}
	for (entry = fields[ACCESS_PLATFORM]->next->first; entry && e == 0; entry = entry->next)
		e = platform_read(reader, entry);
	return e;
}
