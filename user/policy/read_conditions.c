/* SPDX-License-Identifier: MIT */
/* What a rule says beside its destinations: conditions on a request, and what an allow grants. */
#include "policy/read.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "vocab/words.h"
#include "policy/credential.h"
#include "policy/quote.h"
#include "policy/suggest.h"
#include "wire/dns.h"
#include "wire/url_path.h"
#include "vocab/limits.h"

#define DIGITS "0123456789"

/* RFC 9110, 5.6.2 */
static bool word_is_token(const char *text)
{
	return !text[strspn(text, DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&'*+-.^_`|~")];
}

/* One word of a condition, from an entry of its list. 0, or -EINVAL when it is wrong and that is told. */
#define WORD_SIZE (NP_POLICY_SCALAR + 1)
_Static_assert(WORD_SIZE > NP_GLOB_MAX, "a normalised glob is a word");
typedef int (*word_read)(struct reader *reader, const struct node *entry, char word[static WORD_SIZE]);

static int read_method(struct reader *reader, const struct node *entry, char word[static WORD_SIZE])
{
	bool upper = true;

	if (!word_is_token(entry->text)) {
		error_at(reader, entry, "%s is no method", QUOTE(entry->text, entry->len));
		return -EINVAL;
	}
	memcpy(word, entry->text, entry->len + 1);
	for (char *c = word; *c; c++) {
		if (*c >= 'a' && *c <= 'z') {
			*c = (char)(*c - 'a' + 'A');
			upper = false;
		}
	}
	if (!upper)
		error_at(reader, entry, "methods are written in upper case: %s", QUOTE(word, entry->len));
	return upper ? 0 : -EINVAL;
}

static int read_header(struct reader *reader, const struct node *entry, char word[static WORD_SIZE])
{
	if (!word_is_token(entry->text)) {
		error_at(reader, entry, "%s is no name of a header", QUOTE(entry->text, entry->len));
		return -EINVAL;
	}
	memcpy(word, entry->text, entry->len + 1);
	for (char *c = word; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return 0;
}

static int read_path(struct reader *reader, const struct node *entry, char word[static WORD_SIZE])
{
	const char *problem = "it is no path";

	if (glob_normalise(entry->text, entry->len, word, &problem) == 0)
		return 0;
	error_at(reader, entry, "path %s: %s", QUOTE(entry->text, entry->len), problem);
	return -EINVAL;
}

/* USER/SESSION, each with stars. What names may hold is checked where sessions are made: here only what no name has. */
bool session_glob_is_valid(const char *text, size_t len)
{
	const char *slash = strchr(text, '/');
	bool good = len <= NP_SESSION_MAX && strlen(text) == len && slash && slash != text && slash[1] &&
		    !strchr(slash + 1, '/') && !strstr(text, "**");

	for (const char *c = text; good && *c; c++)
		good = *c > ' ' && *c < 0x7f;
	return good;
}

static int read_session(struct reader *reader, const struct node *entry, char word[static WORD_SIZE])
{
	const bool good = session_glob_is_valid(entry->text, entry->len);

	if (good)
		memcpy(word, entry->text, entry->len + 1);
	else
		error_at(reader, entry, "%s is no session, as in \"alice/build\", \"alice/*\" or \"*/ci-*\"",
			 QUOTE(entry->text, entry->len));
	return good ? 0 : -EINVAL;
}

/* The words below key as a NULL-terminated array. */
static int read_words(struct reader *reader, const struct node *key, word_read read, const char *const **ret)
{
	const struct node *entry = NULL;
	size_t n = field_entries(reader, key, &entry), kept = 0;
	char word[WORD_SIZE];
	const char **words;

	if (n > NP_RULE_WORDS) {
		error_at(reader, key, "more than %u %s in one rule", NP_RULE_WORDS, key->text);
		return 0;
	}
	words = arena_alloc(reader->policy->arena, n + 1, sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (; n; n--, entry = entry->next) {
		if (!entry_is_text(reader, key, entry) || read(reader, entry, word) < 0)
			continue;
		words[kept] = arena_text(reader->policy->arena, word, strlen(word));
		if (!words[kept++])
			return -ENOMEM;
	}
	*ret = words;
	return 0;
}

int read_session_globs(struct reader *reader, const struct node *key, const char *const **ret)
{
	return read_words(reader, key, read_session, ret);
}

int read_method_words(struct reader *reader, const struct node *key, const char *const **ret)
{
	return read_words(reader, key, read_method, ret);
}

int read_path_globs(struct reader *reader, const struct node *key, const char *const **ret)
{
	return read_words(reader, key, read_path, ret);
}

int read_header_name(struct reader *reader, const struct node *value, const char **ret)
{
	char word[WORD_SIZE];

	*ret = NULL;
	if (read_header(reader, value, word) < 0)
		return 0;
	*ret = arena_text(reader->policy->arena, word, strlen(word));
	return *ret ? 0 : -ENOMEM;
}

void field_flag(struct reader *reader, const struct node *key, bool *ret)
{
	const struct node *value = field_scalar(reader, key);

	if (!value)
		return;
	if (!strcmp(value->text, "true"))
		*ret = true;
	else if (!strcmp(value->text, "false"))
		*ret = false;
	else
		error_at(reader, value, "\"%s\" is true or false, not %s", key->text, QUOTE(value->text, value->len));
}

static void read_max_body(struct reader *reader, const struct node *key, struct rule *rule)
{
	const struct node *value = field_scalar(reader, key);
	uint64_t bytes = 0;

	if (!value)
		return;
	if (size_parse(value->text, &bytes))
		rule->max_body = bytes;
	else
		error_at(reader, value, "%s is no number of bytes, as in \"1234\", \"500kB\" or \"10MiB\"",
			 QUOTE(value->text, value->len));
}

static void read_timeouts(struct reader *reader, const struct node *key, struct timeouts *timeouts)
{
	static const uint32_t most[TIMEOUT_KEYS] = { NP_TIMEOUT_MAX_MS, NP_TIMEOUT_MAX_MS, NP_CONNECT_MAX_MS };
	uint32_t *const set[TIMEOUT_KEYS] = { &timeouts->idle, &timeouts->first_byte, &timeouts->connect };
	const struct node *map = section_map(reader, key, "\"idle\", \"first_byte\" and \"connect\""),
			  *fields[TIMEOUT_KEYS];

	if (!map)
		return;
	map_fields(reader, map, &keys_timeouts, fields);
	for (unsigned i = 0; i < TIMEOUT_KEYS; i++) {
		uint64_t ms = 0;

		if (!fields[i] || !field_duration(reader, fields[i], &ms))
			continue;
		if (ms < NP_TIMEOUT_MIN_MS || ms > most[i])
			error_at(reader, fields[i]->next, "\"%s\" is from %us to %us, not %s", fields[i]->text,
				 NP_TIMEOUT_MIN_MS / 1000, most[i] / 1000,
				 QUOTE(fields[i]->next->text, fields[i]->next->len));
		else
			*set[i] = (uint32_t)ms;
	}
}

static void read_capture(struct reader *reader, const struct node *key, struct rule *rule)
{
	const struct node *value = field_scalar(reader, key);
	uint64_t bytes = 0;

	if (value && (!size_parse(value->text, &bytes) || bytes > NP_CAPTURE_MAX))
		error_at(reader, value, "%s is no number of bytes up to %u", QUOTE(value->text, value->len),
			 NP_CAPTURE_MAX);
	else if (value)
		rule->capture = (uint32_t)bytes;
}

static void read_dns(struct reader *reader, const struct node *key, struct rule *rule)
{
	const struct node *entry = NULL;

	for (size_t n = field_entries(reader, key, &entry); n; n--, entry = entry->next) {
		unsigned bit = dns_record_bit(dns_record_parse(entry->kind == NODE_SCALAR ? entry->text : ""));

		if (entry_is_text(reader, key, entry) && !bit)
			error_at(reader, entry, "%s cannot be looked up; there are " DNS_RECORD_TYPES,
				 QUOTE(entry->text, entry->len));
		rule->dns |= (uint8_t)bit;
	}
}

/* -- for ------------------------------------------------------------------------ */

static void check_for(struct reader *reader, const struct node *key, const struct rule *rule)
{
	unsigned lowest = LEVEL_COUNT;

	for (unsigned i = 0; rule->action == ACTION_DENY && i < LEVEL_COUNT; i++)
		if (rule->levels & 1u << i && reader->policy->modes.of[i] == NP_FULL)
			warn_at(reader, key, "%s is full, where rules do not hold; see \"full\"", level_name(i));
	/* What is refused at one level and not at a higher one is seldom meant. */
	for (unsigned i = 0; rule->action == ACTION_DENY && i < LEVEL_COUNT; i++) {
		if (rule->levels & 1u << i) {
			lowest = i < lowest ? i : lowest;
		} else if (lowest < i && reader->policy->modes.of[i] == NP_PROXIED) {
			warn_at(reader, key, "denied for %s, but not for %s, which is higher", level_name(lowest),
				level_name(i));
			return;
		}
	}
}

uint8_t read_levels_of(struct reader *reader, const struct node *key)
{
	const struct node *entry = NULL;
	size_t n = field_entries(reader, key, &entry);
	const char *levels[LEVEL_COUNT];
	bool good = n > 0;
	uint8_t bits = 0;

	for (unsigned i = 0; i < LEVEL_COUNT; i++)
		levels[i] = level_name(i);
	for (; n; n--, entry = entry->next) {
		unsigned level = 0;
		const char *near;

		if (!entry_is_text(reader, key, entry)) {
			good = false;
			continue;
		}
		while (level < LEVEL_COUNT && strcmp(entry->text, levels[level]) != 0)
			level++;
		if (level < LEVEL_COUNT) {
			bits |= (uint8_t)(1u << level);
			continue;
		}
		good = false;
		near = error_is_kept(reader) ? suggest_word(entry->text, levels, LEVEL_COUNT) : NULL;
		if (near)
			error_at(reader, entry, "no level %s; did you mean \"%s\"?", QUOTE(entry->text, entry->len),
				 near);
		else
			error_at(reader, entry, "no level %s; there are PUBLIC, INTERNAL, CONFIDENTIAL and SECRET",
				 QUOTE(entry->text, entry->len));
	}
	return good ? bits : 0;
}

static void read_for(struct reader *reader, const struct node *key, struct rule *rule)
{
	rule->levels = read_levels_of(reader, key);
	if (rule->levels)
		check_for(reader, key, rule);
}

/* -- what other sections have -------------------------------------------------- */

/* One of n things of another section, by its name, which is their first member. SIZE_MAX when there is none, and that is told. */
static size_t read_named(struct reader *reader, const struct node *key, const char *what, const void *things, size_t n,
			 size_t size)
{
	const struct node *value = field_scalar(reader, key);
	struct suggestion suggestion = { .text = value ? value->text : "" };

	for (size_t i = 0; value && i < n; i++) {
		const char *name = *(const char *const *)((const char *)things + i * size);

		if (!strcmp(value->text, name))
			return i;
		if (error_is_kept(reader))
			suggestion_offer(&suggestion, name);
	}
	if (value && suggestion.best)
		error_at(reader, value, "unknown %s %s; did you mean \"%s\"?", what, QUOTE(value->text, value->len),
			 suggestion.best);
	else if (value)
		error_at(reader, value, "unknown %s %s; it is not in \"%ss\"", what, QUOTE(value->text, value->len),
			 what);
	return SIZE_MAX;
}

static void read_by(struct reader *reader, const struct node *key, struct rule *rule)
{
	size_t i = read_named(reader, key, "decider", reader->deciders, reader->n_deciders, sizeof(struct decider));

	if (i != SIZE_MAX)
		rule->by = reader->deciders[i].name;
}

static void read_credential(struct reader *reader, const struct node *key, struct rule *rule)
{
	size_t i = read_named(reader, key, "credential", reader->credentials, reader->n_credentials,
			      sizeof(struct credential));

	if (i != SIZE_MAX)
		rule->credential = &reader->credentials[i];
}

/* -- all of it ------------------------------------------------------------------ */

/* Keys that make no sense together. */
static void check_keys(struct reader *reader, const struct node *const *fields, bool complete, const struct rule *rule)
{
	for (unsigned i = RULE_METHODS; i <= RULE_CREDENTIAL; i++) {
		if (!fields[i])
			continue;
		if (i >= RULE_INSPECT && rule->action == ACTION_DENY)
			error_at(reader, fields[i], "\"%s\" is for allow, ask and decide, not for deny",
				 fields[i]->text);
		else if (i != RULE_INSPECT && !rule->inspect)
			error_at(reader, fields[i],
				 "\"%s\" needs a look at requests, and \"inspect: false\" forbids it", fields[i]->text);
	}
	if (fields[RULE_DNS] && rule->action != ACTION_ALLOW)
		error_at(reader, fields[RULE_DNS], "\"dns\" is for allow: nobody is asked about a lookup");
	if (fields[RULE_QUIET] && rule->action != ACTION_DENY)
		error_at(reader, fields[RULE_QUIET], "\"quiet\" is for deny");
	if (fields[RULE_BY] && rule->action != ACTION_DECIDE)
		error_at(reader, fields[RULE_BY], "\"by\" is for decide");
	else if (complete && !fields[RULE_BY] && rule->action == ACTION_DECIDE)
		error_at(reader, fields[RULE_DECIDE], "\"decide\" needs \"by\": the name of a decider");
}

int read_conditions(struct reader *reader, const struct node *const *fields, bool complete, struct rule *rule)
{
	int e = 0;

	if (fields[RULE_FOR])
		read_for(reader, fields[RULE_FOR], rule);
	if (fields[RULE_SESSIONS])
		e = read_session_globs(reader, fields[RULE_SESSIONS], &rule->sessions);
	if (e == 0 && fields[RULE_METHODS])
		e = read_words(reader, fields[RULE_METHODS], read_method, &rule->methods);
	if (e == 0 && fields[RULE_PATHS])
		e = read_words(reader, fields[RULE_PATHS], read_path, &rule->paths);
	if (e == 0 && fields[RULE_HEADERS])
		e = read_words(reader, fields[RULE_HEADERS], read_header, &rule->headers);
	if (fields[RULE_INSPECT])
		field_flag(reader, fields[RULE_INSPECT], &rule->inspect);
	if (fields[RULE_WEBSOCKET])
		field_flag(reader, fields[RULE_WEBSOCKET], &rule->websocket);
	if (fields[RULE_MAX_BODY])
		read_max_body(reader, fields[RULE_MAX_BODY], rule);
	if (fields[RULE_TIMEOUTS])
		read_timeouts(reader, fields[RULE_TIMEOUTS], &rule->timeouts);
	if (fields[RULE_CAPTURE])
		read_capture(reader, fields[RULE_CAPTURE], rule);
	if (fields[RULE_CREDENTIAL])
		read_credential(reader, fields[RULE_CREDENTIAL], rule);
	if (fields[RULE_DNS])
		read_dns(reader, fields[RULE_DNS], rule);
	if (fields[RULE_BY])
		read_by(reader, fields[RULE_BY], rule);
	if (fields[RULE_QUIET])
		field_flag(reader, fields[RULE_QUIET], &rule->quiet);
	check_keys(reader, fields, complete, rule);
	return e;
}
