/* SPDX-License-Identifier: MIT */
#include "policy/case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/chars.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "policy/case_internal.h"
#include "policy/parse_attempt.h"
#include "vocab/limits.h"

/* About the word read last. Never fails the reading at once: one run shows every error. */
static void complain_word(struct case_reading *r, const char *what)
{
	const char *word = r->word ? r->word : "";

	problem_add(r->problems, false, r->name, r->number, r->word ? (uint32_t)(r->word - r->line) + 1 : 1,
		    "%s%s%.100s%s", what, *word ? ": \"" : "", word, *word ? "\"" : "");
}

static void complain_line(struct case_reading *r, const char *what)
{
	problem_add(r->problems, false, r->name, r->number, 1, "%s", what);
}

char *case_word_take(struct case_reading *r)
{
	char *word = r->next + strspn(r->next, BLANKS);

	if (!*word) {
		r->word = NULL;
		return NULL;
	}
	r->next = word + strcspn(word, BLANKS);
	if (*r->next)
		*r->next++ = '\0';
	r->word = word;
	return word;
}

bool case_word_comes(const struct case_reading *r, const char *word)
{
	const char *p = r->next + strspn(r->next, BLANKS);
	size_t len = strlen(word);

	return !strncmp(p, word, len) && (!p[len] || strchr(BLANKS, p[len]));
}

/* Takes the next word if it is this one. */
static bool word_skip(struct case_reading *r, const char *word)
{
	return case_word_comes(r, word) && case_word_take(r);
}

/* Header names, with commas between them and blanks wherever one likes. */
static int list_read(struct case_reading *r, attempt_list_fn *attempt, struct facts *facts, const char **ret_problem)
{
	_buf_ struct buf list = BUF_INIT(NP_CASE_LINE);
	char *word;

	do {
		if (case_word_comes(r, ARROW))
			break;
		word = case_word_take(r);
		if (word)
			buf_puts(&list, word);
	} while (word && (word[strlen(word) - 1] == ',' || r->next[strspn(r->next, BLANKS)] == ','));
	if (buf_error(&list))
		return buf_error(&list);
	return attempt(r->file->arena, list.data ? list.data : "", facts, ret_problem);
}

/* What stands between the destination and the arrow. */
static int clause_read(struct case_reading *r, struct facts *facts, const char **ret_problem)
{
	const char *word = case_word_take(r);

	if (!strcmp(word, "with") && (word_skip(r, "header") || word_skip(r, "headers"))) {
		if (!facts->headers)
			return list_read(r, attempt_headers, facts, ret_problem);
		*ret_problem = "the headers are given twice; write them as one list";
		return -EINVAL;
	}
	if (!strcmp(word, "body"))
		return attempt_body(case_word_comes(r, ARROW) ? "" : case_word_take(r) ?: "", facts, ret_problem);
	if (!strcmp(word, "websocket"))
		return attempt_websocket(facts, ret_problem);
	if (!strcmp(word, "resolving") && word_skip(r, "to"))
		return attempt_resolving(case_word_comes(r, ARROW) ? "" : case_word_take(r) ?: "", facts, ret_problem);
	if (!strcmp(word, "on") && word_skip(r, "this") && word_skip(r, "host"))
		return attempt_local(facts, ret_problem);
	if (!strcmp(word, "alias") && word_skip(r, "of"))
		return list_read(r, attempt_aliases, facts, ret_problem);
	*ret_problem = "not understood; there are \"with header NAME, ...\", \"body SIZE\", \"websocket\", "
		       "\"resolving to ADDRESS\", \"on this host\" and \"alias of NAME, ...\"";
	return -EINVAL;
}

/* The destination is the current word. */
static int destination_read(struct case_reading *r, const char *first, struct facts *facts, const char **ret_problem)
{
	const char *type = r->word;

	if (!strcmp(first, "connect"))
		return attempt_connect(r->file->arena, r->word, facts, ret_problem);
	if (strcmp(first, "lookup") != 0)
		return attempt_request(r->file->arena, first, r->word, facts, ret_problem);
	if (!case_word_comes(r, ARROW) && case_word_take(r))
		return attempt_query(r->file->arena, type, r->word, facts, ret_problem);
	*ret_problem = "a lookup is written lookup TYPE NAME -> ACTION";
	return -EINVAL;
}

static int attempt_read(struct case_reading *r, struct facts *facts, const char **ret_problem)
{
	const char *first = case_word_take(r);
	int e;

	if (!strcmp(first, ARROW) || case_word_comes(r, ARROW) || !r->next[strspn(r->next, BLANKS)]) {
		*ret_problem = "a case is written METHOD URL -> ACTION, connect HOST:PORT -> ACTION, or "
			       "lookup TYPE NAME -> ACTION";
		return -EINVAL;
	}
	if (!attempt_is_method(first)) {
		*ret_problem = "not a method like GET";
		return -EINVAL;
	}
	case_word_take(r);
	e = destination_read(r, first, facts, ret_problem);
	while (e == 0 && !case_word_comes(r, ARROW)) {
		if (!r->next[strspn(r->next, BLANKS)]) {
			*ret_problem = "the expected verdict is missing: ... -> allow, deny, ask or decide";
			return -EINVAL;
		}
		e = clause_read(r, facts, ret_problem);
	}
	return e;
}

/* The attempt as a person wrote it: up to the arrow. */
static const char *attempt_text(struct arena *arena, const char *line)
{
	const char *arrow = strstr(line, ARROW);
	size_t len = arrow ? (size_t)(arrow - line) : strlen(line);

	while (len && strchr(BLANKS, line[len - 1]))
		len--;
	return arena_text(arena, line, len);
}

static int item_read(struct case_reading *r)
{
	struct case_item item = { .line = r->number,
				  .reason = -1,
				  .facts = { .rung = r->rung, .session = r->session } };
	const char *problem = "";
	int e;

	item.text = attempt_text(r->file->arena, r->line + strspn(r->line, BLANKS));
	if (!item.text)
		return -ENOMEM;
	e = attempt_read(r, &item.facts, &problem);
	if (e == 0) {
		case_word_take(r); /* the arrow */
		e = case_expected_read(r, &item, &problem);
	}
	if (e == -EINVAL)
		complain_word(r, problem);
	if (e == 0)
		r->items[r->file->n_items++] = item;
	return e == -EINVAL ? 0 : e;
}

static int policy_line_read(struct case_reading *r, const char *rest)
{
	size_t len;

	rest += strspn(rest, BLANKS);
	len = strlen(rest);
	while (len && strchr(BLANKS, rest[len - 1]))
		len--;
	if (r->has_policy) {
		complain_line(r, "a case file has one policy, and this is the second");
		return 0;
	}
	if (r->file->n_items)
		complain_line(r, "the policy comes before the cases");
	r->has_policy = true;
	r->in_policy = !len;
	if (!len)
		return 0;
	if (*rest == '/')
		complain_line(r, "the policy's path is relative to the case file");
	r->file->path = arena_text(r->file->arena, rest, len);
	return r->file->path ? 0 : -ENOMEM;
}

static int level_line_read(struct case_reading *r)
{
	const char *word;
	enum level level;

	case_word_take(r); /* at */
	word = case_word_take(r);
	r->rung.flags = 0;
	r->session = NULL;
	if (!word || level_parse(word, &level) < 0) {
		complain_word(r, "the levels are PUBLIC, INTERNAL, CONFIDENTIAL, SECRET");
		return 0;
	}
	r->rung.level = (uint8_t)level;
	if (word_skip(r, "class") && word_skip(r, "read_only"))
		r->rung.flags = NP_READ_ONLY;
	if (word_skip(r, "session") && (word = case_word_take(r))) {
		r->session = arena_text(r->file->arena, word, strlen(word));
		if (!r->session)
			return -ENOMEM;
	}
	if (case_word_take(r))
		complain_word(r, "nothing comes behind the level but \"class read_only\" and \"session USER/SESSION\"");
	return 0;
}

/* A comment begins at a # that stands at the start or behind a blank: a # inside of a word is its own. */
static void comment_cut(char *line)
{
	for (char *p = line; *p; p++) {
		if (*p == '#' && (p == line || strchr(BLANKS, p[-1]))) {
			*p = '\0';
			return;
		}
	}
}

/* line is ours to cut into words. */
static int line_read(struct case_reading *r, char *line)
{
	r->line = r->next = line;
	r->word = NULL;
	comment_cut(line);
	if (!line[strspn(line, BLANKS)])
		return 0;
	r->in_policy = false;
	if (!strncmp(line, "policy:", 7))
		return policy_line_read(r, line + 7);
	if (case_word_comes(r, "cases:")) {
		case_word_take(r);
		if (case_word_take(r))
			complain_word(r, "nothing comes behind the heading");
		return 0;
	}
	return case_word_comes(r, "at") ? level_line_read(r) : item_read(r);
}

/* The inline policy gets the lines that are its own, and an empty one for each of the others. */
static int lines_read(struct case_reading *r, const char *text, size_t len)
{
	for (size_t at = 0; at < len; r->number++) {
		const char *line = text + at, *newline = memchr(line, '\n', len - at);
		size_t n = newline ? (size_t)(newline - line) : len - at;
		char *copy;
		int e;

		at += n + 1;
		if (r->in_policy && n && (*line == ' ' || *line == '\t')) {
			memcpy(r->policy + r->policy_len, line, n);
			r->policy_len += n;
		} else if (n > NP_CASE_LINE) {
			complain_line(r, "the line is too long");
		} else {
			copy = arena_text(r->file->arena, line, n);
			e = copy ? line_read(r, copy) : -ENOMEM;
			if (e < 0)
				return e;
		}
		if (newline)
			r->policy[r->policy_len++] = '\n';
	}
	return 0;
}

static size_t lines_count(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static int file_read(struct case_reading *r, const char *text, size_t len)
{
	size_t lines = lines_count(text, len);
	int e;

	if (len > NP_CASE_BYTES || lines > NP_CASE_LINES) {
		problem_add(r->problems, false, r->name, 0, 0, "more than %u bytes or %u lines", NP_CASE_BYTES,
			    NP_CASE_LINES);
		return -E2BIG;
	}
	if (memchr(text, '\0', len)) {
		problem_add(r->problems, false, r->name, 0, 0, "it holds a NUL byte: not a text");
		return -EINVAL;
	}
	r->items = arena_alloc(r->file->arena, lines, sizeof(*r->items));
	r->policy = arena_alloc(r->file->arena, len + 1, 1);
	if (!r->items || !r->policy)
		return -ENOMEM;
	e = lines_read(r, text, len);
	if (e < 0)
		return e;
	r->file->items = r->items;
	if (r->has_policy && !r->file->path) {
		r->file->text = r->policy;
		r->file->len = r->policy_len;
	}
	/* A test that tests nothing must not pass. */
	if (!r->file->n_items && !r->problems->errors)
		problem_add(r->problems, false, r->name, 0, 0, "it has no case");
	return 0;
}

int case_file_parse(const char *name, const char *text, size_t len, struct case_file **ret, struct problems *problems)
{
	_case_file_ struct case_file *file = calloc(1, sizeof(*file));
	struct case_reading r = {
		.name = name, .problems = problems, .file = file, .rung.level = LEVEL_CONFIDENTIAL, .number = 1
	};
	unsigned errors = problems->errors;
	int e = file ? arena_new(NP_CASE_MEMORY, &file->arena) : -ENOMEM;

	if (e == 0)
		e = file_read(&r, text, len);
	if (e < 0 && problems->errors == errors)
		problem_add(problems, false, name, 0, 0, "%s", strerror(-e));
	if (problems->errors != errors)
		return e < 0 ? e : -EINVAL;
	*ret = take_ptr(file);
	return 0;
}

void case_file_free(struct case_file *file)
{
	if (!file)
		return;
	arena_free(file->arena);
	free(file);
}
