/* SPDX-License-Identifier: MIT */
/* credentials: secrets that the inspector puts into requests. What is wrong is said without a text that may be one. */
#include "policy/read.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/credential.h"
#include "policy/placeholder_shape.h"
#include "policy/quote.h"
#include "vocab/limits.h"

#define PLACEHOLDER_LIKE_DEFAULT "netpawl_{32}"
#define ALL_LEVELS		 ((1u << LEVEL_COUNT) - 1)

/* Which of the key's words it is; -1: none of them, and that is told. */
static int word_find(struct reader *reader, const struct key *key, const struct node *value)
{
	for (int i = 0; key->words[i]; i++)
		if (value->kind == NODE_SCALAR && !strcmp(value->text, key->words[i]))
			return i;
	error_at(reader, value, "\"%s\" is none of what it may be: see netpawl-policy(5)", key->name);
	return -1;
}

static int text_keep(struct reader *reader, const struct node *key, const char **ret)
{
	const struct node *value = field_scalar(reader, key);

	if (!value)
		return 0;
	*ret = arena_text(reader->policy->arena, value->text, value->len);
	return *ret ? 0 : -ENOMEM;
}

static bool name_is_variable(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return len && len <= NP_NAME_MAX && !text[len] && !(text[0] >= '0' && text[0] <= '9');
}

/* -- source ---------------------------------------------------------------------- */

static void source_check_name(struct reader *reader, const struct node *key, const struct credential_source *source)
{
	const char *text = source->name;

	if (!text)
		return;
	if (source->kind == SOURCE_FILE && text[0] != '/')
		error_at(reader, key->next, "this is no whole path; a value is in a file like \"/etc/netpawl/token\"");
	else if (source->kind == SOURCE_ENV && !name_is_variable(text))
		error_at(reader, key->next, "this is no name of a variable; the value itself does not belong here");
	else if (source->kind == SOURCE_SYSTEMD && (strchr(text, '/') || text[0] == '.' || strlen(text) > NP_NAME_MAX))
		error_at(reader, key->next,
			 "this is no name of a credential of systemd, as in LoadCredential=NAME:PATH");
}

static int read_source(struct reader *reader, const struct node *key, struct credential *credential)
{
	static const enum source_kind kinds[] = { SOURCE_SYSTEMD, SOURCE_FILE, SOURCE_COMMAND, SOURCE_ENV };
	const struct node *map = section_map(reader, key, "one of \"systemd\", \"file\", \"command\" and \"env\"");
	struct credential_source *source = &credential->source;
	const struct node *fields[SOURCE_KEYS], *at = NULL;
	bool complete;
	int e = 0;

	if (!map)
		return 0;
	complete = map_fields(reader, map, &keys_source, fields);
	source->at = node_place(map);
	for (unsigned i = SOURCE_KEY_SYSTEMD; i <= SOURCE_KEY_ENV; i++) {
		if (!fields[i])
			continue;
		if (at)
			error_at(reader, fields[i],
				 "a source is one of \"systemd\", \"file\", \"command\" and \"env\"");
		else
			source->kind = kinds[i];
		at = at ? at : fields[i];
	}
	if (!at) {
		if (complete)
			error_at(reader, map, "a source needs one of \"systemd\", \"file\", \"command\" and \"env\"");
		return 0;
	}
	e = source->kind == SOURCE_COMMAND ? read_command(reader, at, &source->command)
					   : text_keep(reader, at, &source->name);
	if (e == 0)
		source_check_name(reader, at, source);
	if (e == 0 && fields[SOURCE_KEY_TTL] && field_duration(reader, fields[SOURCE_KEY_TTL], &source->ttl_ms) &&
	    source->ttl_ms < NP_SECRET_TTL_MIN_MS)
		error_at(reader, fields[SOURCE_KEY_TTL]->next, "a value is good for %us at least",
			 NP_SECRET_TTL_MIN_MS / 1000);
	return e;
}

/* -- as ---------------------------------------------------------------------------- */

static int read_sigv4(struct reader *reader, const struct node *key, struct credential_slot *slot)
{
	const struct node *map = section_map(reader, key, "\"service\" and \"region\""), *fields[SIGV4_KEYS];
	int e = 0;

	if (!map)
		return 0;
	if (map_fields(reader, map, &keys_sigv4, fields) && (!fields[SIGV4_SERVICE] || !fields[SIGV4_REGION]))
		error_at(reader, map, "\"sigv4\" needs \"service\" and \"region\"");
	if (fields[SIGV4_SERVICE])
		e = text_keep(reader, fields[SIGV4_SERVICE], &slot->name);
	if (e == 0 && fields[SIGV4_REGION])
		e = text_keep(reader, fields[SIGV4_REGION], &slot->region);
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
	return text_keep(reader, at, &slot->name);
}

static int read_slot(struct reader *reader, const struct key *key, const struct node *value,
		     struct credential *credential)
{
	static const enum slot_kind of_words[] = { SLOT_BEARER, SLOT_PATH, SLOT_FORM, SLOT_JSON, SLOT_WEBSOCKET };
	struct credential_slot slot = { 0 };
	int word, e;

	if (value->kind == NODE_MAP) {
		e = read_slot_map(reader, value, &slot);
		if (e < 0)
			return e;
	} else {
		word = word_find(reader, key, value);
		if (word < 0)
			return 0;
		slot.kind = of_words[word];
	}
	if (credential->n_slots == NP_CREDENTIAL_SLOTS)
		error_at(reader, value, "more than %u places of one credential", NP_CREDENTIAL_SLOTS);
	else
		credential->slots[credential->n_slots++] = slot;
	return 0;
}

static int read_as(struct reader *reader, const struct node *key, struct credential *credential)
{
	const struct key *of = &keys_credential.keys[CREDENTIAL_AS];
	const struct node *value = key->next;
	int e = 0;

	if (value->kind != NODE_LIST)
		return read_slot(reader, of, value, credential);
	if (!value->first)
		error_at(reader, value, "the list of \"as\" is empty");
	for (const struct node *entry = value->first; entry && e == 0; entry = entry->next)
		e = read_slot(reader, of, entry, credential);
	return e;
}

/* -- the rest ---------------------------------------------------------------------- */

static int read_placeholder(struct reader *reader, const struct node *key, struct credential *credential)
{
	const struct node *map = section_map(reader, key, "\"env\", \"like\" and \"file\""), *fields[PLACEHOLDER_KEYS];
	const char *problem;
	int e = 0, word;

	if (!map)
		return 0;
	map_fields(reader, map, &keys_placeholder, fields);
	if (fields[PLACEHOLDER_ENV])
		e = text_keep(reader, fields[PLACEHOLDER_ENV], &credential->env);
	if (e == 0 && fields[PLACEHOLDER_ENV] && credential->env && !name_is_variable(credential->env))
		error_at(reader, fields[PLACEHOLDER_ENV]->next, "%s is no name of a variable",
			 QUOTE(credential->env, strlen(credential->env)));
	if (e == 0 && fields[PLACEHOLDER_LIKE])
		e = text_keep(reader, fields[PLACEHOLDER_LIKE], &credential->like);
	problem = e == 0 && fields[PLACEHOLDER_LIKE] ? placeholder_shape_problem(credential->like) : NULL;
	if (problem)
		error_at(reader, fields[PLACEHOLDER_LIKE]->next, "\"like\": %s", problem);
	if (fields[PLACEHOLDER_FILE]) {
		word = word_find(reader, &keys_placeholder.keys[PLACEHOLDER_FILE], fields[PLACEHOLDER_FILE]->next);
		credential->file = word < 0 ? PLACEHOLDER_NO_FILE : (enum placeholder_file)(word + 1);
	}
	return e;
}

/* Entries with a slash are sessions; the others are classes of runs. */
static int read_scope(struct reader *reader, const struct node *key, struct credential *credential)
{
	const struct node *entry = NULL;
	size_t n = field_entries(reader, key, &entry), kept = 0;
	uint8_t classes = 0;
	const char **globs;

	if (n > NP_RULE_WORDS) {
		error_at(reader, key, "more than %u entries of \"scope\"", NP_RULE_WORDS);
		return 0;
	}
	globs = arena_alloc(reader->policy->arena, n + 1, sizeof(*globs));
	if (!globs)
		return -ENOMEM;
	for (; n; n--, entry = entry->next) {
		if (!entry_is_text(reader, key, entry))
			continue;
		if (!strcmp(entry->text, "read_only"))
			classes |= CREDENTIAL_READ_ONLY;
		else if (!strcmp(entry->text, "write"))
			classes |= CREDENTIAL_WRITE;
		else if (session_glob_is_valid(entry->text, entry->len))
			globs[kept] = arena_text(reader->policy->arena, entry->text, entry->len);
		else
			error_at(reader, entry,
				 "%s is no session, as in \"alice/*\", and no class of runs: read_only, write",
				 QUOTE(entry->text, entry->len));
		if (globs[kept])
			kept++;
	}
	if (classes)
		credential->classes = classes;
	if (kept)
		credential->sessions = globs;
	return 0;
}

static int read_hosts(struct reader *reader, const struct node *key, struct credential *credential)
{
	struct rule rule = { .action = ACTION_ALLOW };
	const struct node *not_http;
	int e = read_destinations(reader, key, PATTERN_CREDENTIAL, &rule, &not_http);

	credential->hosts = (struct pattern_run){ rule.pattern, rule.n_patterns };
	if (rule.n_patterns > NP_CREDENTIAL_HOSTS)
		error_at(reader, key, "more than %u hosts of one credential, lists unfolded", NP_CREDENTIAL_HOSTS);
	return e;
}

static void read_choices(struct reader *reader, const struct node *const *fields, struct credential *credential)
{
	const struct key *keys = keys_credential.keys;
	int word;

	if (fields[CREDENTIAL_INJECT])
		credential->always = word_find(reader, &keys[CREDENTIAL_INJECT], fields[CREDENTIAL_INJECT]->next) == 1;
	if (fields[CREDENTIAL_ECHO]) {
		word = word_find(reader, &keys[CREDENTIAL_ECHO], fields[CREDENTIAL_ECHO]->next);
		credential->echo = word < 0 ? ECHO_IS_SCRUBBED : (enum credential_echo)word;
	}
	if (fields[CREDENTIAL_ON_LEAK]) {
		word = word_find(reader, &keys[CREDENTIAL_ON_LEAK], fields[CREDENTIAL_ON_LEAK]->next);
		credential->on_leak = word > 0 ? (unsigned)word : CREDENTIAL_NO_RAISE;
	}
	if (fields[CREDENTIAL_LEVELS])
		credential->levels = read_levels_of(reader, fields[CREDENTIAL_LEVELS]);
}

static void check_together(struct reader *reader, const struct node *const *fields, const struct credential *credential)
{
	const enum slot_kind first = credential->slots[0].kind;

	if (credential->always &&
	    (first == SLOT_PATH || first == SLOT_FORM || first == SLOT_JSON || first == SLOT_WEBSOCKET))
		error_at(reader, fields[CREDENTIAL_INJECT],
			 "\"inject: always\" needs a place of its own: \"bearer\", \"basic\", \"header\", \"query\" or "
			 "\"sigv4\"");
	for (size_t i = 0; i < credential->n_slots; i++)
		if (credential->slots[i].kind == SLOT_SIGV4 && credential->n_slots > 1)
			error_at(reader, fields[CREDENTIAL_AS], "what signs requests stands nowhere else");
}

static int read_credential(struct reader *reader, const struct node *key, struct credential *credential)
{
	const struct node *fields[CREDENTIAL_KEYS];
	bool complete;
	int e = 0;

	if (key->next->kind != NODE_MAP) {
		error_at(reader, key->next, "credential %s takes a mapping with \"source\"",
			 QUOTE(key->text, key->len));
		return 0;
	}
	complete = map_fields(reader, key->next, &keys_credential, fields);
	if (fields[CREDENTIAL_SOURCE])
		e = read_source(reader, fields[CREDENTIAL_SOURCE], credential);
	else if (complete)
		error_at(reader, key, "credential %s needs a \"source\"", QUOTE(key->text, key->len));
	if (e == 0 && fields[CREDENTIAL_FOR])
		e = read_hosts(reader, fields[CREDENTIAL_FOR], credential);
	if (e == 0 && fields[CREDENTIAL_PATHS])
		e = read_path_globs(reader, fields[CREDENTIAL_PATHS], &credential->paths);
	if (e == 0 && fields[CREDENTIAL_METHODS])
		e = read_method_words(reader, fields[CREDENTIAL_METHODS], &credential->methods);
	if (e == 0 && fields[CREDENTIAL_AS])
		e = read_as(reader, fields[CREDENTIAL_AS], credential);
	if (e == 0 && fields[CREDENTIAL_PLACEHOLDER])
		e = read_placeholder(reader, fields[CREDENTIAL_PLACEHOLDER], credential);
	if (e == 0 && fields[CREDENTIAL_SCOPE])
		e = read_scope(reader, fields[CREDENTIAL_SCOPE], credential);
	read_choices(reader, fields, credential);
	if (!credential->n_slots)
		credential->n_slots = 1; /* SLOT_BEARER */
	check_together(reader, fields, credential);
	return e;
}

static bool credential_is_new(struct reader *reader, const struct node *key)
{
	for (size_t i = 0; i < reader->n_credentials; i++)
		if (!key_is_new(reader, key, "credential", reader->credentials[i].name, &reader->credentials[i].at))
			return false;
	return true;
}

int read_credentials(struct reader *reader, const struct file *file)
{
	const struct node *section = file->sections[SECTION_CREDENTIALS];
	const struct node *map = section ? section_map(reader, section, "names to credentials") : NULL;
	struct arena *arena = reader->policy->arena;
	int e = 0;

	if (map && !reader->credentials)
		reader->credentials = arena_alloc(arena, NP_CREDENTIALS_MAX, sizeof(*reader->credentials));
	if (map && !reader->credentials)
		return -ENOMEM;
	for (const struct node *key = map ? map->first : NULL; key && e == 0; key = key->next->next) {
		struct credential *credential = &reader->credentials[reader->n_credentials];

		if (!key_is_name(reader, key, "credential") || !credential_is_new(reader, key))
			continue;
		if (reader->n_credentials == NP_CREDENTIALS_MAX) {
			error_at(reader, key, "more than %u credentials", NP_CREDENTIALS_MAX);
			break;
		}
		*credential = (struct credential){
			.name = arena_text(arena, key->text, key->len),
			.number = (uint32_t)reader->n_credentials,
			.like = PLACEHOLDER_LIKE_DEFAULT,
			.levels = ALL_LEVELS,
			.classes = CREDENTIAL_READ_ONLY | CREDENTIAL_WRITE,
			.on_leak = CREDENTIAL_NO_RAISE,
			.at = node_place(key),
		};
		if (!credential->name)
			return -ENOMEM;
		e = read_credential(reader, key, credential);
		reader->n_credentials++;
	}
	return e;
}
