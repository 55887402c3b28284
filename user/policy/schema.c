/* SPDX-License-Identifier: MIT */
/*
 * The JSON Schema of a policy file, for editors. It checks keys and shapes; names, addresses, globs and what goes together
 * are left to `netpawl policy check`. It takes whatever the reader takes: the reader sees scalars as text, an editor's
 * YAML as numbers and booleans, so both are written wherever that can differ.
 */
#include "base/json.h"
#include "policy/keys.h"

#define TEXT	    "{\"type\":[\"string\",\"number\",\"boolean\"]}"
#define NAME	    "^[a-z0-9_-]{1,64}$"
#define ABOUT_MAX   200
#define ANY_LETTERS "^([Ff][Uu][Ll][Ll]|[Pp][Rr][Oo][Xx][Ii][Ee][Dd]|[Nn][Oo][Nn][Ee])$"

static void put_set(struct buf *out, const struct key_set *set);

static void put_words(struct buf *out, const char *const *words)
{
	buf_puts(out, "{\"enum\":[");
	for (const char *const *word = words; *word; word++) {
		buf_puts(out, word == words ? "" : ",");
		json_quote(out, *word, ABOUT_MAX);
	}
	buf_puts(out, "]}");
}

/* item, or a list of it. */
static void put_one_or_more(struct buf *out, const char *item)
{
	buf_puts(out, "\"anyOf\":[");
	buf_puts(out, item);
	buf_puts(out, ",{\"type\":\"array\",\"minItems\":1,\"items\":");
	buf_puts(out, item);
	buf_puts(out, "}]");
}

static void put_words_or_more(struct buf *out, const char *const *words)
{
	_buf_ struct buf item = BUF_INIT(4096);

	put_words(&item, words);
	put_one_or_more(out, item.data ? item.data : "{}");
}

static void put_modes(struct buf *out, const char *const *words)
{
	buf_puts(out, "\"anyOf\":[");
	put_words(out, words);
	buf_puts(out, ",{\"type\":\"string\",\"pattern\":\"" ANY_LETTERS "\"}]");
}

static void put_below(struct buf *out, const char *before, const struct key_set *set, const char *after)
{
	buf_puts(out, before);
	put_set(out, set);
	buf_puts(out, after);
}

static void put_text_or_maps(struct buf *out, const struct key_set *set)
{
	put_below(out, "\"anyOf\":[" TEXT ",", set, ",");
	put_below(out, "{\"type\":\"array\",\"minItems\":1,\"items\":", set, "}]");
}

static void put_words_or_maps(struct buf *out, const struct key *key)
{
	_buf_ struct buf item = BUF_INIT(16384);

	buf_puts(&item, "{\"anyOf\":[");
	put_words(&item, key->words);
	put_below(&item, ",", key->below, "]}");
	put_one_or_more(out, item.data ? item.data : "{}");
}

/* Shapes that are the same for every key. */
static const char *const fixed_shapes[KEY_NAMED_LISTS + 1] = {
	[KEY_VERSION] = "\"enum\":[1,\"1\"]",
	[KEY_TEXT] = "\"type\":[\"string\",\"number\",\"boolean\"]",
	[KEY_TEXT_LIST] = "\"type\":\"array\",\"minItems\":1,\"items\":" TEXT,
	[KEY_FLAG] = "\"enum\":[true,false,\"true\",\"false\"]",
	[KEY_SIZE] = "\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},"
		     "{\"type\":\"string\",\"pattern\":\"^[0-9]+([kMG]|[KMG]i)?B?$\"}]",
	[KEY_TIME] = "\"type\":\"string\",\"pattern\":\"^[0-9]{1,9}(ms|s|m|h)$\"",
	[KEY_AGE] = "\"type\":\"string\",\"pattern\":\"^([0-9]{1,9}[smhd]|forever)$\"",
	[KEY_COUNT] = "\"anyOf\":[{\"type\":\"integer\",\"minimum\":1},"
		      "{\"type\":\"string\",\"pattern\":\"^[0-9]+$\"}]",
	[KEY_CPUS] = "\"anyOf\":[{\"type\":\"number\",\"exclusiveMinimum\":0},"
		     "{\"type\":\"string\",\"pattern\":\"^[0-9]+([.][0-9]{1,3})?$\"}]",
	[KEY_PORTS] = "\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"anyOf\":["
		      "{\"type\":\"integer\",\"minimum\":1,\"maximum\":65535},"
		      "{\"type\":\"string\",\"pattern\":\"^[1-9][0-9]{0,4}$\"}]}",
};

static void put_shape(struct buf *out, const struct key *key)
{
	switch (key->shape) {
	case KEY_TEXTS:
		put_one_or_more(out, TEXT);
		break;
	case KEY_WORD:
		buf_puts(out, "\"allOf\":[");
		put_words(out, key->words);
		buf_puts(out, "]");
		break;
	case KEY_WORD_OR_MAP:
		buf_puts(out, "\"anyOf\":[");
		put_words(out, key->words);
		put_below(out, ",", key->below, "]");
		break;
	case KEY_WORDS:
		put_words_or_more(out, key->words);
		break;
	case KEY_WORDS_OR_MAPS:
		put_words_or_maps(out, key);
		break;
	case KEY_MODE:
		put_modes(out, key->words);
		break;
	case KEY_MAP:
		put_below(out, "\"allOf\":[", key->below, "]");
		break;
	case KEY_MAP_LIST:
		put_below(out, "\"type\":\"array\",\"items\":", key->below, "");
		break;
	case KEY_TEXT_OR_MAPS:
		put_text_or_maps(out, key->below);
		break;
	case KEY_NAMED_MAPS:
		put_below(out,
			  "\"type\":\"object\",\"additionalProperties\":false,\"patternProperties\":{\"" NAME "\":",
			  key->below, "}");
		break;
	case KEY_NAMED_LISTS:
		put_below(out,
			  "\"type\":\"object\",\"additionalProperties\":false,\"patternProperties\":{\"" NAME
			  "\":{\"anyOf\":[{\"type\":\"array\",\"minItems\":1,\"items\":" TEXT "},",
			  key->below, "]}}");
		break;
	default:
		buf_puts(out, fixed_shapes[key->shape]);
		break;
	}
}

static void put_key(struct buf *out, const struct key *key)
{
	json_quote(out, key->name, ABOUT_MAX);
	buf_puts(out, ":{\"description\":");
	json_quote(out, key->about, ABOUT_MAX);
	buf_puts(out, ",");
	put_shape(out, key);
	buf_puts(out, "}");
}

static void put_set(struct buf *out, const struct key_set *set)
{
	buf_puts(out, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
	for (size_t i = 0; i < set->count; i++) {
		buf_puts(out, i ? "," : "");
		put_key(out, &set->keys[i]);
	}
	buf_puts(out, "}");
	for (size_t i = 0; i < set->exactly_one; i++) {
		buf_puts(out, i ? "," : ",\"oneOf\":[");
		buf_puts(out, "{\"required\":[");
		json_quote(out, set->keys[i].name, ABOUT_MAX);
		buf_puts(out, "]}");
	}
	buf_puts(out, set->exactly_one ? "]}" : "}");
}

void policy_schema(struct buf *out)
{
	buf_puts(out, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"netpawl policy\","
		      "\"description\":\"What sandboxes may reach: netpawl-policy(5)\",\"allOf\":[");
	put_set(out, &keys_file);
	buf_puts(out, "]}");
}
