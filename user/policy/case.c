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
#include "policy/parse_attempt.h"
#include "vocab/limits.h"

#define BLANKS " \t\r"
#define ARROW  "->"

struct reading {
	const char *name;
	struct problems *problems;
	struct case_file *file;
	struct case_item *items;
	char *policy; /* the inline one: as long as the file, so that its lines keep their numbers */
	size_t policy_len;
	bool in_policy; /* indented lines belong to it */
	bool has_policy;
	struct np_rung rung; /* without a mode: the policy gives it to the level */
	const char *session; /* NULL: none is named */
	/* The line at hand, in words. */
	uint32_t number;
	char *line, *word, *next;
};

/* About the word read last. Never fails the reading at once: one run shows every error. */
static void complain_word(struct reading *r, const char *what)
{
	const char *word = r->word ? r->word : "";

	problem_add(r->problems, false, r->name, r->number, r->word ? (uint32_t)(r->word - r->line) + 1 : 1,
		    "%s%s%.100s%s", what, *word ? ": \"" : "", word, *word ? "\"" : "");
}

static void complain_line(struct reading *r, const char *what)
{
	problem_add(r->problems, false, r->name, r->number, 1, "%s", what);
}

/* The next word of the line, now the current one; NULL at its end. */
static char *word_take(struct reading *r)
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

static bool word_comes(const struct reading *r, const char *word)
{
	const char *p = r->next + strspn(r->next, BLANKS);
	size_t len = strlen(word);

	return !strncmp(p, word, len) && (!p[len] || strchr(BLANKS, p[len]));
}

/* Takes the next word if it is this one. */
static bool word_skip(struct reading *r, const char *word)
{
	return word_comes(r, word) && word_take(r);
}

/* Header names, with commas between them and blanks wherever one likes. */
static int list_read(struct reading *r, attempt_list_fn *attempt, struct facts *facts, const char **ret_problem)
{
	_buf_ struct buf list = BUF_INIT(NP_CASE_LINE);
	char *word;

	do {
		if (word_comes(r, ARROW))
			break;
		word = word_take(r);
		if (word)
			buf_puts(&list, word);
	} while (word && (word[strlen(word) - 1] == ',' || r->next[strspn(r->next, BLANKS)] == ','));
	if (buf_error(&list))
		return buf_error(&list);
	return attempt(r->file->arena, list.data ? list.data : "", facts, ret_problem);
}

/* What stands between the destination and the arrow. */
static int clause_read(struct reading *r, struct facts *facts, const char **ret_problem)
{
	const char *word = word_take(r);

	if (!strcmp(word, "with") && (word_skip(r, "header") || word_skip(r, "headers"))) {
		if (!facts->headers)
			return list_read(r, attempt_headers, facts, ret_problem);
		*ret_problem = "the headers are given twice; write them as one list";
		return -EINVAL;
	}
	if (!strcmp(word, "body"))
		return attempt_body(word_comes(r, ARROW) ? "" : word_take(r) ?: "", facts, ret_problem);
	if (!strcmp(word, "websocket"))
		return attempt_websocket(facts, ret_problem);
	if (!strcmp(word, "resolving") && word_skip(r, "to"))
		return attempt_resolving(word_comes(r, ARROW) ? "" : word_take(r) ?: "", facts, ret_problem);
	if (!strcmp(word, "on") && word_skip(r, "this") && word_skip(r, "host"))
		return attempt_local(facts, ret_problem);
	if (!strcmp(word, "alias") && word_skip(r, "of"))
		return list_read(r, attempt_aliases, facts, ret_problem);
	*ret_problem = "not understood; there are \"with header NAME, ...\", \"body SIZE\", \"websocket\", "
		       "\"resolving to ADDRESS\", \"on this host\" and \"alias of NAME, ...\"";
	return -EINVAL;
}

/* The destination is the current word. */
static int destination_read(struct reading *r, const char *first, struct facts *facts, const char **ret_problem)
{
	const char *type = r->word;

	if (!strcmp(first, "connect"))
		return attempt_connect(r->file->arena, r->word, facts, ret_problem);
	if (strcmp(first, "lookup") != 0)
		return attempt_request(r->file->arena, first, r->word, facts, ret_problem);
	if (!word_comes(r, ARROW) && word_take(r))
		return attempt_query(r->file->arena, type, r->word, facts, ret_problem);
	*ret_problem = "a lookup is written lookup TYPE NAME -> ACTION";
	return -EINVAL;
}

static int attempt_read(struct reading *r, struct facts *facts, const char **ret_problem)
{
	const char *first = word_take(r);
	int e;

	if (!strcmp(first, ARROW) || word_comes(r, ARROW) || !r->next[strspn(r->next, BLANKS)]) {
		*ret_problem = "a case is written METHOD URL -> ACTION, connect HOST:PORT -> ACTION, or "
			       "lookup TYPE NAME -> ACTION";
		return -EINVAL;
	}
	if (!attempt_is_method(first)) {
		*ret_problem = "not a method like GET";
		return -EINVAL;
	}
	word_take(r);
	e = destination_read(r, first, facts, ret_problem);
	while (e == 0 && !word_comes(r, ARROW)) {
		if (!r->next[strspn(r->next, BLANKS)]) {
			*ret_problem = "the expected verdict is missing: ... -> allow, deny, ask or decide";
			return -EINVAL;
		}
		e = clause_read(r, facts, ret_problem);
	}
	return e;
}

/* Verdicts have reasons of the groups allow and refuse; see reason.h. */
static int reason_find(const char *token)
{
	for (int i = 0; i < 128; i++)
		if (!strcmp(reason_token((unsigned)i), token) && strcmp(token, "unknown") != 0)
			return i;
	return -1;
}

static int line_number(const char *text, uint32_t *ret)
{
	uint64_t value;

	if (*text == '0' || number_parse(text, strlen(text), UINT32_MAX, &value) < 0)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* "line 14" or "FILE:14"; the first word is the current one. */
static int place_read(struct reading *r, struct case_item *item)
{
	char *colon = strrchr(r->word, ':');

	if (!strcmp(r->word, "line"))
		return word_take(r) ? line_number(r->word, &item->at) : -EINVAL;
	if (!colon || colon == r->word || line_number(colon + 1, &item->at) < 0)
		return -EINVAL;
	item->file = arena_text(r->file->arena, r->word, (size_t)(colon - r->word));
	return item->file ? 0 : -ENOMEM;
}

/* "credential NAME" or "no credential", the last of a line; the first word is the current one. 0: it is neither. */
static int credential_read(struct reading *r, struct case_item *item, const char **ret_problem)
{
	const bool none = !strcmp(r->word, "no") && word_comes(r, "credential");

	if (!none && strcmp(r->word, "credential") != 0)
		return 0;
	if (!word_take(r) || word_comes(r, ARROW)) {
		*ret_problem = "which credential goes with it is written \"credential NAME\", or \"no credential\"";
		return -EINVAL;
	}
	item->credential = none ? "" : arena_text(r->file->arena, r->word, strlen(r->word));
	if (!item->credential)
		return -ENOMEM;
	if (word_take(r)) {
		*ret_problem = "nothing comes behind the credential";
		return -EINVAL;
	}
	return 1;
}

static int expected_read(struct reading *r, struct case_item *item, const char **ret_problem)
{
	const char *word = word_take(r);
	int e;

	for (int a = ACTION_ALLOW; word && a <= ACTION_DECIDE; a++)
		if (!strcmp(word, action_name((enum action)a)))
			item->action = (enum action)a;
	if (!item->action) {
		*ret_problem = "the expected verdict is one of allow, deny, ask, decide";
		return -EINVAL;
	}
	word = word_take(r);
	e = word ? credential_read(r, item, ret_problem) : 0;
	if (e)
		return e < 0 ? e : 0;
	if (word && item->action == ACTION_DECIDE && !strchr(word, ':') && strcmp(word, "line") != 0 &&
	    reason_find(word) < 0) {
		item->by = arena_text(r->file->arena, word, strlen(word));
		if (!item->by)
			return -ENOMEM;
		word = word_take(r);
	}
	item->reason = word ? reason_find(word) : -1;
	if (item->reason >= 0)
		word = word_take(r);
	e = word ? credential_read(r, item, ret_problem) : 0;
	if (e)
		return e < 0 ? e : 0;
	if (word && place_read(r, item) < 0) {
		*ret_problem = item->reason >= 0
				       ? "the rule is named by \"line N\" or \"FILE:N\""
				       : "neither a reason nor the place of a rule (\"line N\" or \"FILE:N\")";
		return -EINVAL;
	}
	e = word && word_take(r) ? credential_read(r, item, ret_problem) : 1;
	if (e == 0) {
		*ret_problem =
			"nothing comes behind the place of the rule but \"credential NAME\" or \"no credential\"";
		return -EINVAL;
	}
	return e < 0 ? e : 0;
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

static int item_read(struct reading *r)
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
		word_take(r); /* the arrow */
		e = expected_read(r, &item, &problem);
	}
	if (e == -EINVAL)
		complain_word(r, problem);
	if (e == 0)
		r->items[r->file->n_items++] = item;
	return e == -EINVAL ? 0 : e;
}

static int policy_line_read(struct reading *r, const char *rest)
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

static int level_line_read(struct reading *r)
{
	const char *word;
	enum level level;

	word_take(r); /* at */
	word = word_take(r);
	r->rung.flags = 0;
	r->session = NULL;
	if (!word || level_parse(word, &level) < 0) {
		complain_word(r, "the levels are PUBLIC, INTERNAL, CONFIDENTIAL, SECRET");
		return 0;
	}
	r->rung.level = (uint8_t)level;
	if (word_skip(r, "class") && word_skip(r, "read_only"))
		r->rung.flags = NP_READ_ONLY;
	if (word_skip(r, "session") && (word = word_take(r))) {
		r->session = arena_text(r->file->arena, word, strlen(word));
		if (!r->session)
			return -ENOMEM;
	}
	if (word_take(r))
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
static int line_read(struct reading *r, char *line)
{
	r->line = r->next = line;
	r->word = NULL;
	comment_cut(line);
	if (!line[strspn(line, BLANKS)])
		return 0;
	r->in_policy = false;
	if (!strncmp(line, "policy:", 7))
		return policy_line_read(r, line + 7);
	if (word_comes(r, "cases:")) {
		word_take(r);
		if (word_take(r))
			complain_word(r, "nothing comes behind the heading");
		return 0;
	}
	return word_comes(r, "at") ? level_line_read(r) : item_read(r);
}

/* The inline policy gets the lines that are its own, and an empty one for each of the others. */
static int lines_read(struct reading *r, const char *text, size_t len)
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

static int file_read(struct reading *r, const char *text, size_t len)
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
	struct reading r = {
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
