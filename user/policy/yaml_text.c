/* SPDX-License-Identifier: MIT */
#include "policy/yaml_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "policy/quote.h"

/* In comments too. Characters without width pass there: some scripts and emoji need them. */
static bool char_is_refused(uint32_t c)
{
	if (c < 0x20)
		return c != '\t' && c != '\n' && c != '\r';
	return (c >= 0x7f && c <= 0x9f) ||     /* DEL, C1 controls; U+0085 ends a line for YAML and for nobody else */
	       (c >= 0x2028 && c <= 0x202e) || /* the same; bidi embeddings and overrides */
	       (c >= 0x2066 && c <= 0x2069) || /* bidi isolates */
	       c == 0xfeff || c == 0xfffe || c == 0xffff;
}

int yaml_text_check(struct problems *problems, const char *shown, const char *text, size_t len)
{
	uint32_t line = 1, column = 1, c = 0;

	for (size_t i = 0, n; i < len; i += n) {
		if (text[i] >= ' ' && text[i] <= '~') {
			n = 1;
			column++;
			continue;
		}
		n = char_decode(text + i, len - i, &c);
		if (!n) {
			problem_add(problems, false, shown, line, column, "not UTF-8 (byte 0x%02x)",
				    (unsigned char)text[i]);
			return -EINVAL;
		}
		if (c == '\r' && (i + 1 == len || text[i + 1] != '\n')) {
			problem_add(problems, false, shown, line, column,
				    "a carriage return without a line feed behind it");
			return -EINVAL;
		}
		if (char_is_refused(c)) {
			problem_add(problems, false, shown, line, column,
				    "character U+%04X may not be in a policy file", (unsigned)c);
			return -EINVAL;
		}
		column++;
		if (c == '\n') {
			line++;
			column = 1;
		}
	}
	return 0;
}

struct piece {
	const char *text;
	size_t len;
};

static struct piece line_find(const char *text, size_t len, size_t line)
{
	const char *end = text + len, *eol;

	while (line-- && text < end) {
		eol = memchr(text, '\n', (size_t)(end - text));
		text = eol ? eol + 1 : end;
	}
	eol = memchr(text, '\n', (size_t)(end - text));
	return (struct piece){ text, (size_t)((eol ? eol : end) - text) };
}

/* From a column, in characters, up to where a word ends in YAML. */
static struct piece word_find(struct piece line, size_t column)
{
	uint32_t c = 0;
	size_t at = 0, n = 0;

	while (column-- && at < line.len)
		at += char_decode(line.text + at, line.len - at, &c);
	while (at + n < line.len && !strchr(" \t\r,]}#", line.text[at + n]))
		n++;
	return (struct piece){ line.text + at, n };
}

static int star_problem(struct problems *problems, const char *shown, const yaml_mark_t *mark, const char *word,
			size_t len)
{
	problem_add(problems, false, shown, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1,
		    "without quotes \"*\" starts a YAML alias, which a policy may not have; write %s",
		    QUOTE(word, len));
	return -EINVAL;
}

int yaml_unquoted_star(struct problems *problems, const char *shown, const yaml_mark_t *mark, const char *name)
{
	char word[QUOTE_SIZE];

	snprintf(word, sizeof(word), "*%s", name);
	return star_problem(problems, shown, mark, word, strlen(word));
}

static bool line_has_tab_indent(struct piece line)
{
	size_t n = 0;

	while (n < line.len && (line.text[n] == ' ' || line.text[n] == '\t'))
		n++;
	return memchr(line.text, '\t', n) != NULL;
}

/* A line such as "allow: [2001:db8::1]:443": brackets are a list in YAML. */
static bool line_has_bare_brackets(struct piece line)
{
	for (size_t i = 0; i + 1 < line.len; i++)
		if (line.text[i] == ']' && (line.text[i + 1] == ':' || line.text[i + 1] == '/'))
			return true;
	return false;
}

/* What people trip over most, in better words than the parser's. */
static void syntax_explain(char why[static 320], const yaml_parser_t *parser, struct piece line, struct piece word)
{
	if (line_has_tab_indent(line))
		snprintf(why, 320, "a tab cannot indent; use spaces");
	else if (line_has_bare_brackets(line))
		snprintf(why, 320, "brackets with something behind them need quotes, as in \"[2001:db8::/32]:443\"");
	else if (word.len && (word.text[0] == '@' || word.text[0] == '`'))
		snprintf(why, 320, "a value that starts with \"%c\" needs quotes: %s", word.text[0],
			 QUOTE(word.text, word.len));
	else if (parser->context && parser->error != YAML_READER_ERROR)
		snprintf(why, 320, "%s, %s from line %zu on", parser->problem, parser->context,
			 parser->context_mark.line + 1);
	else
		snprintf(why, 320, "%s", parser->problem ? parser->problem : "it cannot be read");
}

int yaml_syntax_problem(struct problems *problems, const char *shown, const yaml_parser_t *parser, const char *text,
			size_t len)
{
	yaml_mark_t mark = parser->error == YAML_READER_ERROR ? parser->mark : parser->problem_mark;
	struct piece line = line_find(text, len, mark.line);
	char why[320];

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->context && strstr(parser->context, "scanning an alias")) {
		struct piece word =
			word_find(line_find(text, len, parser->context_mark.line), parser->context_mark.column);

		return star_problem(problems, shown, &parser->context_mark, word.text, word.len);
	}
	syntax_explain(why, parser, line, word_find(line, mark.column));
	problem_add(problems, false, shown, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, "not YAML: %s", why);
	return -EINVAL;
}
