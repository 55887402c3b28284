/* SPDX-License-Identifier: MIT */
#include "policy/read.h"

#include <errno.h>
#include <sys/un.h>

#include "base/arena.h"
#include "policy/quote.h"
#include "vocab/limits.h"

#define DECIDER_TIMEOUT_MS     5000
#define DECIDER_TIMEOUT_MAX_MS (NP_HOLD_MAX_MS / 2) /* what is held waits for longer than it */

int read_command(struct reader *reader, const struct node *key, const char *const **ret)
{
	const struct node *entry = key->next->first;
	const char **words;
	size_t n = 0;

	if (key->next->kind != NODE_LIST || !key->next->len) {
		error_at(reader, key->next, "\"command\" takes a list: the program and its arguments");
		return 0;
	}
	if (key->next->len > NP_RULE_WORDS) {
		error_at(reader, key->next, "a command of more than %u words", NP_RULE_WORDS);
		return 0;
	}
	words = arena_alloc(reader->policy->arena, key->next->len + 1u, sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (; entry; entry = entry->next) {
		if (!entry_is_text(reader, key, entry))
			continue;
		if (n == 0 && entry->text[0] != '/')
			error_at(reader, entry, "the program needs its whole path, from \"/\"");
		words[n] = arena_text(reader->policy->arena, entry->text, entry->len);
		if (!words[n++])
			return -ENOMEM;
	}
	*ret = words;
	return 0;
}

int read_socket(struct reader *reader, const struct node *key, const char **ret)
{
	const struct node *value = field_scalar(reader, key);

	if (!value)
		return 0;
	if (value->text[0] != '/')
		error_at(reader, value, "the socket %s needs its whole path, from \"/\"",
			 QUOTE(value->text, value->len));
	if (value->len >= sizeof(((struct sockaddr_un *)0)->sun_path))
		error_at(reader, value, "the path of a unix socket has at most %zu bytes",
			 sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	*ret = arena_text(reader->policy->arena, value->text, value->len);
	return *ret ? 0 : -ENOMEM;
}

static int read_decider(struct reader *reader, const struct node *key, struct decider *decider)
{
	const struct node *fields[DECIDER_KEYS];
	bool good;
	int e = 0;

	if (key->next->kind != NODE_MAP) {
		error_at(reader, key->next, "decider %s takes a mapping with \"command\" or \"socket\"",
			 QUOTE(key->text, key->len));
		return 0;
	}
	good = map_fields(reader, key->next, &keys_decider, fields);
	if (fields[DECIDER_COMMAND] && fields[DECIDER_SOCKET])
		error_at(reader, fields[DECIDER_SOCKET],
			 "decider %s has both a command and a socket; it needs one of them",
			 QUOTE(key->text, key->len));
	else if (good && !fields[DECIDER_COMMAND] && !fields[DECIDER_SOCKET])
		error_at(reader, key, "decider %s needs a \"command\" or a \"socket\"", QUOTE(key->text, key->len));
	if (fields[DECIDER_COMMAND])
		e = read_command(reader, fields[DECIDER_COMMAND], &decider->command);
	if (e == 0 && fields[DECIDER_SOCKET])
		e = read_socket(reader, fields[DECIDER_SOCKET], &decider->socket);
	if (e == 0 && fields[DECIDER_TIMEOUT])
		field_duration(reader, fields[DECIDER_TIMEOUT], &decider->timeout_ms);
	if (decider->timeout_ms > DECIDER_TIMEOUT_MAX_MS)
		error_at(reader, fields[DECIDER_TIMEOUT],
			 "a decider has 5m at most: hardly a client waits for so long");
	if (fields[DECIDER_NETWORK])
		field_flag(reader, fields[DECIDER_NETWORK], &decider->network);
	if (fields[DECIDER_NETWORK] && fields[DECIDER_SOCKET])
		error_at(reader, fields[DECIDER_NETWORK],
			 "\"network\" is for a command: who listens at a socket has what it has");
	return e;
}

static bool decider_is_new(struct reader *reader, const struct node *key)
{
	for (size_t i = 0; i < reader->n_deciders; i++)
		if (!key_is_new(reader, key, "decider", reader->deciders[i].name, &reader->deciders[i].at))
			return false;
	return true;
}

int read_deciders(struct reader *reader, const struct file *file)
{
	const struct node *section = file->sections[SECTION_DECIDERS];
	const struct node *map = section ? section_map(reader, section, "names to deciders") : NULL;
	int e = 0;

	for (const struct node *key = map ? map->first : NULL; key && e == 0; key = key->next->next) {
		struct decider decider = { .timeout_ms = DECIDER_TIMEOUT_MS, .at = node_place(key) };

		if (!key_is_name(reader, key, "decider") || !decider_is_new(reader, key))
			continue;
		if (reader->n_deciders == NP_POLICY_DECIDERS) {
			error_at(reader, key, "more than %u deciders", NP_POLICY_DECIDERS);
			break;
		}
		decider.name = arena_text(reader->policy->arena, key->text, key->len);
		if (!decider.name)
			return -ENOMEM;
		e = read_decider(reader, key, &decider);
		reader->deciders[reader->n_deciders++] = decider;
	}
	return e;
}
