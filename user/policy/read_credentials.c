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
#define NAME_LETTERS		 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@+:-"

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
					   : field_text(reader, at, &source->name);
	if (e == 0)
		source_check_name(reader, at, source);
	if (e == 0 && fields[SOURCE_KEY_TTL] && field_duration(reader, fields[SOURCE_KEY_TTL], &source->ttl_ms) &&
	    source->ttl_ms < NP_SECRET_TTL_MIN_MS)
		error_at(reader, fields[SOURCE_KEY_TTL]->next, "a value is good for %us at least",
			 NP_SECRET_TTL_MIN_MS / 1000);
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
		e = field_text(reader, fields[PLACEHOLDER_ENV], &credential->env);
	if (e == 0 && fields[PLACEHOLDER_ENV] && credential->env && !name_is_variable(credential->env))
		error_at(reader, fields[PLACEHOLDER_ENV]->next, "%s is no name of a variable",
			 QUOTE(credential->env, strlen(credential->env)));
	if (e == 0 && fields[PLACEHOLDER_LIKE])
		e = field_text(reader, fields[PLACEHOLDER_LIKE], &credential->like);
	problem = e == 0 && fields[PLACEHOLDER_LIKE] ? placeholder_shape_problem(credential->like) : NULL;
	if (problem)
		error_at(reader, fields[PLACEHOLDER_LIKE]->next, "\"like\": %s", problem);
	if (fields[PLACEHOLDER_FILE]) {
		word = field_word(reader, &keys_placeholder.keys[PLACEHOLDER_FILE], fields[PLACEHOLDER_FILE]->next);
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

static int read_hosts(struct reader *reader, const struct node *key, struct pattern_run *ret)
{
	struct rule rule = { .action = ACTION_ALLOW };
	const struct node *not_http;
	int e = read_destinations(reader, key, PATTERN_CREDENTIAL, &rule, &not_http);

	*ret = (struct pattern_run){ rule.pattern, rule.n_patterns };
	if (rule.n_patterns > NP_CREDENTIAL_HOSTS)
		error_at(reader, key, "more than %u hosts of one credential, lists unfolded", NP_CREDENTIAL_HOSTS);
	return e;
}

/* Names of members, or of cookies: text that stands for itself. */
static int read_names(struct reader *reader, const struct node *key, const char *const **ret)
{
	const struct node *entry = NULL;
	size_t n = field_entries(reader, key, &entry), kept = 0;
	const char **names;

	if (n > NP_TOKEN_NAMES) {
		error_at(reader, key, "more than %u names", NP_TOKEN_NAMES);
		return 0;
	}
	names = arena_alloc(reader->policy->arena, n + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (; n; n--, entry = entry->next) {
		if (!entry_is_text(reader, key, entry))
			continue;
		if (!entry->len || entry->len > NP_NAME_MAX || strspn(entry->text, NAME_LETTERS) != entry->len)
			error_at(reader, entry, "a name has up to %u letters, digits and _.@+:-", NP_NAME_MAX);
		else if (!(names[kept++] = arena_text(reader->policy->arena, entry->text, entry->len)))
			return -ENOMEM;
	}
	if (kept)
		*ret = names;
	return 0;
}

static int read_capture(struct reader *reader, const struct node *key, struct credential *credential)
{
	const struct node *map = section_map(reader, key, "\"json\" or \"cookies\", and what the tokens are for");
	const struct node *fields[CAPTURE_KEYS];
	struct credential_capture *capture;
	bool complete;
	int e = 0;

	if (!map)
		return 0;
	capture = arena_alloc(reader->policy->arena, 1, sizeof(*capture));
	if (!capture)
		return -ENOMEM;
	complete = map_fields(reader, map, &keys_capture, fields);
	if (complete && !fields[CAPTURE_JSON] && !fields[CAPTURE_COOKIES])
		error_at(reader, map, "\"capture\" needs \"json\" or \"cookies\": the names of what is a token");
	if (fields[CAPTURE_JSON])
		e = read_names(reader, fields[CAPTURE_JSON], &capture->json);
	if (e == 0 && fields[CAPTURE_COOKIES])
		e = read_names(reader, fields[CAPTURE_COOKIES], &capture->cookies);
	if (e == 0 && fields[CAPTURE_PATHS])
		e = read_path_globs(reader, fields[CAPTURE_PATHS], &capture->paths);
	if (e == 0 && fields[CAPTURE_FOR])
		e = read_hosts(reader, fields[CAPTURE_FOR], &capture->hosts);
	if (e == 0 && fields[CAPTURE_AS])
		e = read_slots(reader, fields[CAPTURE_AS], capture->slots, &capture->n_slots);
	for (size_t i = 0; i < capture->n_slots; i++)
		if (capture->slots[i].kind == SLOT_SIGV4)
			error_at(reader, fields[CAPTURE_AS], "no token signs requests");
	credential->capture = capture;
	return e;
}

static void read_choices(struct reader *reader, const struct node *const *fields, struct credential *credential)
{
	const struct key *keys = keys_credential.keys;
	int word;

	if (fields[CREDENTIAL_INJECT])
		credential->always = field_word(reader, &keys[CREDENTIAL_INJECT], fields[CREDENTIAL_INJECT]->next) == 1;
	if (fields[CREDENTIAL_ECHO]) {
		word = field_word(reader, &keys[CREDENTIAL_ECHO], fields[CREDENTIAL_ECHO]->next);
		credential->echo = word < 0 ? ECHO_IS_SCRUBBED : (enum credential_echo)word;
	}
	if (fields[CREDENTIAL_ON_LEAK]) {
		word = field_word(reader, &keys[CREDENTIAL_ON_LEAK], fields[CREDENTIAL_ON_LEAK]->next);
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
		e = read_hosts(reader, fields[CREDENTIAL_FOR], &credential->hosts);
	if (e == 0 && fields[CREDENTIAL_PATHS])
		e = read_path_globs(reader, fields[CREDENTIAL_PATHS], &credential->paths);
	if (e == 0 && fields[CREDENTIAL_METHODS])
		e = read_method_words(reader, fields[CREDENTIAL_METHODS], &credential->methods);
	if (e == 0 && fields[CREDENTIAL_AS])
		e = read_slots(reader, fields[CREDENTIAL_AS], credential->slots, &credential->n_slots);
	if (e == 0 && fields[CREDENTIAL_PLACEHOLDER])
		e = read_placeholder(reader, fields[CREDENTIAL_PLACEHOLDER], credential);
	if (e == 0 && fields[CREDENTIAL_SCOPE])
		e = read_scope(reader, fields[CREDENTIAL_SCOPE], credential);
	if (e == 0 && fields[CREDENTIAL_CAPTURE])
		e = read_capture(reader, fields[CREDENTIAL_CAPTURE], credential);
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
