/* SPDX-License-Identifier: MIT */
/* as: the places of a request that the value of a credential may stand in, or a token that was captured for it. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/credential.h"
#include "policy/read.h"
#include "vocab/limits.h"

int field_word(struct reader *reader, const struct key *key, const struct node *value)
{
	for (int i = 0; key->words[i]; i++)
		if (value->kind == NODE_SCALAR && !strcmp(value->text, key->words[i]))
			return i;
	error_at(reader, value, "\"%s\" is none of what it may be: see netpawl-policy(5)", key->name);
	return -1;
}

int field_text(struct reader *reader, const struct node *key, const char **ret)
{
	const struct node *value = field_scalar(reader, key);

	if (!value)
		return 0;
	*ret = arena_text(reader->policy->arena, value->text, value->len);
	return *ret ? 0 : -ENOMEM;
}

static int read_sigv4(struct reader *reader, const struct node *key, struct credential_slot *slot)
{
	const struct node *map = section_map(reader, key, "\"service\" and \"region\""), *fields[SIGV4_KEYS];
	int e = 0;

	if (!map)
		return 0;
	if (map_fields(reader, map, &keys_sigv4, fields) && (!fields[SIGV4_SERVICE] || !fields[SIGV4_REGION]))
		error_at(reader, map, "\"sigv4\" needs \"service\" and \"region\"");
	if (fields[SIGV4_SERVICE])
		e = field_text(reader, fields[SIGV4_SERVICE], &slot->name);
	if (e == 0 && fields[SIGV4_REGION])
		e = field_text(reader, fields[SIGV4_REGION], &slot->region);
	return e;
}

/* Files of tools, and helpers of git, are made of it. */
static bool text_is_word(const char *text)
{
	return *text && !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@+-")];
}

/* They say where the request goes and where it ends. */
static bool header_is_taken(const char *name)
{
	static const char *const names[] = { "host",	"content-length",  "transfer-encoding",	  "connection",
					     "te",	"upgrade",	   "proxy-authorization", "expect",
					     "trailer", "accept-encoding", "content-type",	  "content-encoding" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* A mapping of as:. */
static int read_slot_map(struct reader *reader, const struct node *map, struct credential_slot *slot)
{
	static const enum slot_kind kinds[AS_KEYS] = { SLOT_BASIC, SLOT_HEADER, SLOT_QUERY, SLOT_SIGV4 };
	const struct node *fields[AS_KEYS], *at = NULL, *value;
	bool complete = map_fields(reader, map, &keys_as, fields);

	for (unsigned i = 0; i < AS_KEYS; i++) {
		if (fields[i] && at)
			error_at(reader, fields[i], "an entry of \"as\" is one place; a list names several");
		else if (fields[i])
			slot->kind = kinds[i];
		at = at ? at : fields[i];
	}
	if (!at) {
		if (complete)
			error_at(reader, map, "an entry of \"as\" needs \"basic\", \"header\", \"query\" or \"sigv4\"");
		return 0;
	}
	if (slot->kind == SLOT_SIGV4)
		return read_sigv4(reader, at, slot);
	value = field_scalar(reader, at);
	if (!value)
		return 0;
	if (slot->kind == SLOT_HEADER) {
		int e = read_header_name(reader, value, &slot->name);

		if (e == 0 && slot->name && header_is_taken(slot->name))
			error_at(reader, value, "no credential stands in the header \"%s\"", slot->name);
		return e;
	}
	if (slot->kind == SLOT_BASIC && !text_is_word(value->text))
		error_at(reader, value, "a user of Basic has letters, digits and _.@+-");
	if (slot->kind == SLOT_QUERY && !text_is_word(value->text))
		error_at(reader, value, "a parameter has letters, digits and _.@+-");
	return field_text(reader, at, &slot->name);
}

static int read_slot(struct reader *reader, const struct key *key, const struct node *value,
		     struct credential_slot *slots, size_t *n)
{
	static const enum slot_kind of_words[] = { SLOT_BEARER, SLOT_PATH, SLOT_FORM, SLOT_JSON, SLOT_WEBSOCKET };
	struct credential_slot slot = { 0 };
	int word, e;

	if (value->kind == NODE_MAP) {
		e = read_slot_map(reader, value, &slot);
		if (e < 0)
			return e;
	} else {
		word = field_word(reader, key, value);
		if (word < 0)
			return 0;
		slot.kind = of_words[word];
	}
	if (*n == NP_CREDENTIAL_SLOTS)
		error_at(reader, value, "more than %u places of one credential", NP_CREDENTIAL_SLOTS);
	else
		slots[(*n)++] = slot;
	return 0;
}

int read_slots(struct reader *reader, const struct node *key, struct credential_slot *slots, size_t *n)
{
	const struct key *of = &keys_credential.keys[CREDENTIAL_AS];
	const struct node *value = key->next;
	int e = 0;

	if (value->kind != NODE_LIST)
		return read_slot(reader, of, value, slots, n);
	if (!value->first)
		error_at(reader, value, "the list of \"as\" is empty");
	for (const struct node *entry = value->first; entry && e == 0; entry = entry->next)
		e = read_slot(reader, of, entry, slots, n);
	return e;
}
