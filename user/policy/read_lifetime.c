/* SPDX-License-Identifier: MIT */
/* sessions: and workspaces: how long they last. */
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "policy/quote.h"
#include "policy/read.h"
#include "vocab/limits.h"
#include "vocab/words.h"

/* "90d" in seconds; "forever" is 0. */
static bool age_parse(const char *text, uint64_t *ret)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t value = 0;

	if (!strcmp(text, "forever")) {
		*ret = 0;
		return true;
	}
	if (digits > 9 || number_parse(text, digits, UINT64_MAX, &value) < 0)
		return false;
	for (size_t i = 0; value && text[digits] && !text[digits + 1] && i < ARRAY_SIZE(units); i++)
		if (text[digits] == units[i].unit) {
			*ret = value * units[i].seconds;
			return *ret <= NP_AGE_MAX_S;
		}
	return false;
}

static void field_age(struct reader *reader, const struct node *key, uint64_t *ret)
{
	const struct node *value = key ? field_scalar(reader, key) : NULL;

	if (value && (strlen(value->text) != value->len || !age_parse(value->text, ret)))
		error_at(reader, value,
			 "%s is no age for \"%s\"; write a number and s, m, h or d, as in \"90d\", or forever",
			 QUOTE(value->text, value->len), key->text);
}

static void read_sessions(struct reader *reader, const struct node *key)
{
	const struct node *map = section_map(reader, key, "how long sessions last"), *fields[SESSIONS_KEYS], *value;
	struct lifetime *lifetime = &reader->policy->lifetime;

	if (!map)
		return;
	map_fields(reader, map, &keys_sessions, fields);
	field_age(reader, fields[SESSIONS_KEEP], &lifetime->keep_s);
	field_age(reader, fields[SESSIONS_REMEMBER], &lifetime->remember_s);
	value = fields[SESSIONS_COUNT] ? field_scalar(reader, fields[SESSIONS_COUNT]) : NULL;
	if (value && !count_parse(value->text, NP_SESSIONS_MAX, &lifetime->keep_count))
		error_at(reader, value, "%s for \"count\": write a number from 1 to %d", QUOTE(value->text, value->len),
			 NP_SESSIONS_MAX);
}

static void read_workspaces(struct reader *reader, const struct node *key)
{
	static const char *const fates[] = {
		[WORKSPACE_KEEP] = "keep", [WORKSPACE_ARCHIVE] = "archive", [WORKSPACE_REMOVE] = "remove"
	};
	const struct node *map = section_map(reader, key, "\"at_end\" and \"archive_max\""), *fields[WORKSPACES_KEYS],
			  *value;
	struct lifetime *lifetime = &reader->policy->lifetime;
	uint64_t bytes;
	int i;

	if (!map)
		return;
	map_fields(reader, map, &keys_workspaces, fields);
	value = fields[WORKSPACES_AT_END] ? field_scalar(reader, fields[WORKSPACES_AT_END]) : NULL;
	i = word_index(fates, ARRAY_SIZE(fates), value ? value->text : NULL);
	if (i >= 0)
		lifetime->at_end = (enum workspace_fate)i;
	else if (value)
		error_at(reader, value, "%s for \"at_end\": there are keep, archive and remove",
			 QUOTE(value->text, value->len));
	value = fields[WORKSPACES_ARCHIVE_MAX] ? field_scalar(reader, fields[WORKSPACES_ARCHIVE_MAX]) : NULL;
	if (value && size_parse(value->text, &bytes) && bytes >= NP_LIMIT_BYTES_MIN && bytes <= INT64_MAX)
		lifetime->archive_max = bytes;
	else if (value)
		error_at(reader, value, "%s for \"archive_max\": write a number of bytes from 1M on, as in 4G",
			 QUOTE(value->text, value->len));
}

void read_lifetime(struct reader *reader, const struct node *sessions, const struct node *workspaces)
{
	if (sessions)
		read_sessions(reader, sessions);
	if (workspaces)
		read_workspaces(reader, workspaces);
}
