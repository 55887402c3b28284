/* SPDX-License-Identifier: MIT */
#include "policy/yaml.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#include "vocab/limits.h"

static struct arena *arena;
static struct problems problems;
static const struct node *root;
static size_t nodes;

static int reset(void **state)
{
	(void)state;
	arena_free(arena);
	arena = NULL;
	problems_clear(&problems);
	nodes = 0;
	root = NULL;
	return 0;
}

static int read_n(const char *text, size_t len)
{
	/* A copy of its own size, so that ASan sees every read beyond it. */
	char *copy = malloc(len ? len : 1);
	int e;

	reset(NULL);
	assert_non_null(copy);
	memcpy(copy, text, len);
	assert_int_equal(arena_new(NP_POLICY_MEMORY, &arena), 0);
	e = yaml_read(arena, copy, len, "p.yaml", 7, &nodes, &problems, &root);
	free(copy);
	if (e < 0)
		assert_true(e == -EINVAL && problems.errors == 1 && !root);
	return e;
}

static void reads(const char *text)
{
	char line[PROBLEM_LINE_SIZE];

	if (read_n(text, strlen(text)) == 0)
		return;
	problems_first(&problems, line);
	fail_msg("%s", line);
}

#define REFUSED(text, line) refused(text, sizeof(text) - 1, line)
static void refused(const char *text, size_t len, const char *expected)
{
	char line[PROBLEM_LINE_SIZE];

	assert_int_equal(read_n(text, len), -EINVAL);
	problems_first(&problems, line);
	assert_string_equal(line, expected);
	assert_int_equal(problems.count, 1);
}

static void assert_scalar(const struct node *node, const char *text, uint32_t line, uint32_t column)
{
	assert_non_null(node);
	assert_int_equal(node->kind, NODE_SCALAR);
	assert_string_equal(node->text, text);
	assert_int_equal(node->len, strlen(text));
	assert_int_equal(node->line, line);
	assert_int_equal(node->column, column);
	assert_int_equal(node->file, 7);
}

static void makes_a_tree(void **state)
{
	const struct node *key, *list, *map;

	(void)state;
	reads("version: 1\n# comment\nrules:\n  - allow: \"a\"\n    for: [X, 'Y']\n  - b\nempty:\n");
	assert_int_equal(root->kind, NODE_MAP);
	assert_int_equal(root->len, 3);
	assert_int_equal(root->line, 1);
	key = root->first;
	assert_scalar(key, "version", 1, 1);
	assert_scalar(key->next, "1", 1, 10);
	key = key->next->next;
	assert_scalar(key, "rules", 3, 1);
	list = key->next;
	assert_int_equal(list->kind, NODE_LIST);
	assert_int_equal(list->len, 2);
	map = list->first;
	assert_int_equal(map->kind, NODE_MAP);
	assert_int_equal(map->len, 2);
	assert_int_equal(map->line, 4);
	assert_int_equal(map->column, 5);
	assert_scalar(map->first, "allow", 4, 5);
	assert_scalar(map->first->next, "a", 4, 12);
	assert_int_equal(map->first->quote, 0);
	assert_int_equal(map->first->next->quote, '"');
	assert_scalar(map->first->next->next, "for", 5, 5);
	assert_int_equal(map->first->next->next->next->len, 2);
	assert_int_equal(map->first->next->next->next->first->next->quote, '\'');
	assert_null(map->first->next->next->next->next);
	assert_scalar(map->next, "b", 6, 5);
	assert_null(map->next->next);
	key = list->next;
	assert_scalar(key, "empty", 7, 1);
	assert_true(node_is_null(key->next));
	assert_null(key->next->next);
	assert_int_equal(nodes, 15);
}

static void nothing_is_no_tree(void **state)
{
	static const char *const texts[] = { "", "\n\n", "# only a comment\n", "\xef\xbb\xbf", " " };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(read_n(texts[i], strlen(texts[i])), 0);
		assert_null(root);
	}
}

static void nulls(void **state)
{
	static const char *const yes[] = { "a:", "a: ~", "a: null", "a: Null", "a: NULL", "a: ''", "a: \"\"" };
	static const char *const no[] = { "a: \"null\"", "a: '~'", "a: nULL", "a: 0", "a: []", "a: {}", "a: nil" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		reads(yes[i]);
		assert_true(node_is_null(root->first->next));
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		reads(no[i]);
		assert_false(node_is_null(root->first->next));
	}
}

static void line_endings_and_marks(void **state)
{
	(void)state;
	reads("a: 1\r\nb: 2\r\n");
	assert_scalar(root->first->next, "1", 1, 4);
	assert_scalar(root->first->next->next, "b", 2, 1);
	assert_scalar(root->first->next->next->next, "2", 2, 4);
	reads("\xef\xbb\xbf"
	      "a: 1\n");
	assert_scalar(root->first, "a", 1, 1);
	assert_scalar(root->first->next, "1", 1, 4);
	/* Columns count characters, as editors do. */
	reads("\xc3\xa9: \xe2\x82\xac x\n");
	assert_scalar(root->first->next, "\xe2\x82\xac x", 1, 4);
	reads("---\na: 1\n...\n");
	reads("%YAML 1.1\n---\na: 1\n");
	reads("a:\tb\n"); /* a tab that does not indent */
	assert_scalar(root->first->next, "b", 1, 4);
	REFUSED("a: 1\rb: 2\n", "p.yaml:1:5: error: a carriage return without a line feed behind it");
	REFUSED("a: 1\r", "p.yaml:1:5: error: a carriage return without a line feed behind it");
}

static void text_that_is_none(void **state)
{
	(void)state;
	REFUSED("a: 1\nb: \xff\n", "p.yaml:2:4: error: not UTF-8 (byte 0xff)");
	REFUSED("a: \xc3", "p.yaml:1:4: error: not UTF-8 (byte 0xc3)");
	REFUSED("\xff\xfe"
		"a\0:\0",
		"p.yaml:1:1: error: not UTF-8 (byte 0xff)"); /* UTF-16 */
	REFUSED("a: x\0y\n", "p.yaml:1:5: error: character U+0000 may not be in a policy file");
	REFUSED("a: x # \x1b[2J\n", "p.yaml:1:8: error: character U+001B may not be in a policy file");
	REFUSED("a: \x7f\n", "p.yaml:1:4: error: character U+007F may not be in a policy file");
	REFUSED("a: \xc2\x85"
		"b\n",
		"p.yaml:1:4: error: character U+0085 may not be in a policy file");
	REFUSED("# \xe2\x80\xa8"
		"a: b\n",
		"p.yaml:1:3: error: character U+2028 may not be in a policy file");
	REFUSED("# \xe2\x80\xae\n", "p.yaml:1:3: error: character U+202E may not be in a policy file");
	REFUSED("a: 1\n\xef\xbb\xbf", "p.yaml:2:1: error: character U+FEFF may not be in a policy file");
	reads("a: 1 # \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\n"); /* joined emoji in a comment */
}

static void scalars_that_hide_something(void **state)
{
	(void)state;
	REFUSED("a: \"x\\0y\"\n", "p.yaml:1:4: error: \"x\\u0000y\" holds a character that does not show (U+0000)");
	REFUSED("a: \"x\\ny\"\n", "p.yaml:1:4: error: \"x\\u000ay\" holds a character that does not show (U+000A)");
	REFUSED("a: \"\\e[2J\"\n", "p.yaml:1:4: error: \"\\u001b[2J\" holds a character that does not show (U+001B)");
	REFUSED("a: |\n  x\n", "p.yaml:1:4: error: \"x\\u000a\" holds a character that does not show (U+000A)");
	REFUSED("a: x\ty\n", "p.yaml:1:4: error: \"x\\u0009y\" holds a character that does not show (U+0009)");
	REFUSED("a: x\xe2\x80\x8by\n",
		"p.yaml:1:4: error: \"x\\u200by\" holds a character that does not show (U+200B)");
	REFUSED("\"\\0\": 1\n", "p.yaml:1:1: error: \"\\u0000\" holds a character that does not show (U+0000)");
	reads("a: |-\n  x\n");
	assert_string_equal(root->first->next->text, "x");
}

static void what_yaml_has_and_we_do_not(void **state)
{
	(void)state;
	REFUSED("a: &x 1\n", "p.yaml:1:4: error: anchors (&name) are not read in a policy; use \"lists\"");
	REFUSED("a: &x [1]\n", "p.yaml:1:4: error: anchors (&name) are not read in a policy; use \"lists\"");
	REFUSED("a: &x {b: 1}\n", "p.yaml:1:4: error: anchors (&name) are not read in a policy; use \"lists\"");
	REFUSED("&x a: 1\n", "p.yaml:1:1: error: anchors (&name) are not read in a policy; use \"lists\"");
	REFUSED("a: *x\n", "p.yaml:1:4: error: without quotes \"*\" starts a YAML alias, which a policy may not have; "
			   "write \"*x\"");
	REFUSED("a: *.example.com\n", "p.yaml:1:4: error: without quotes \"*\" starts a YAML alias, which a policy may "
				      "not have; write \"*.example.com\"");
	REFUSED("a: [**, b]\n", "p.yaml:1:5: error: without quotes \"*\" starts a YAML alias, which a policy may not "
				"have; write \"**\"");
	REFUSED("a: !!str 1\n", "p.yaml:1:4: error: tags (!name) are not read in a policy");
	REFUSED("a: ! 1\n", "p.yaml:1:4: error: tags (!name) are not read in a policy");
	REFUSED("a: !x [1]\n", "p.yaml:1:4: error: tags (!name) are not read in a policy");
	REFUSED("a: !x {}\n", "p.yaml:1:4: error: tags (!name) are not read in a policy");
	REFUSED("%TAG ! tag:x,2000:\n---\na: 1\n", "p.yaml:1:1: error: tags are not read in a policy, nor %TAG");
	REFUSED("a: 1\n---\nb: 1\n", "p.yaml:2:1: error: a second document; a policy file has one");
	REFUSED("a: 1\n---\n", "p.yaml:2:1: error: a second document; a policy file has one");
	REFUSED("a: 1\nb:\n  <<: {c: 1}\n",
		"p.yaml:3:3: error: merge keys (<<) are not read in a policy; write the keys out");
	REFUSED("[a, b]: 1\n", "p.yaml:1:1: error: a key is one word, not a list or a mapping");
	REFUSED("? {a: b}\n: 1\n", "p.yaml:1:3: error: a key is one word, not a list or a mapping");
	REFUSED("?\n: 1\n", "p.yaml:1:2: error: a key is missing before \":\"");
	REFUSED("~: 1\n", "p.yaml:1:1: error: a key is missing before \":\"");
}

static void what_is_no_yaml(void **state)
{
	(void)state;
	REFUSED("a: [1, 2\n", "p.yaml:2:1: error: not YAML: did not find expected ',' or ']', "
			      "while parsing a flow sequence from line 1 on");
	REFUSED("a: 1\n b: 2\n", "p.yaml:2:3: error: not YAML: mapping values are not allowed in this context");
	REFUSED("a:\n\tb: 1\n", "p.yaml:2:1: error: not YAML: a tab cannot indent; use spaces");
	REFUSED("\t", "p.yaml:1:1: error: not YAML: a tab cannot indent; use spaces");
	REFUSED("a: @llm\n", "p.yaml:1:4: error: not YAML: a value that starts with \"@\" needs quotes: \"@llm\"");
	REFUSED("a: [b, @llm]\n", "p.yaml:1:8: error: not YAML: a value that starts with \"@\" needs quotes: \"@llm\"");
	REFUSED("a: [2001:db8::/32]:443\n", "p.yaml:1:19: error: not YAML: brackets with something behind them need "
					    "quotes, as in \"[2001:db8::/32]:443\"");
	REFUSED("a: \"b\n", "p.yaml:2:1: error: not YAML: found unexpected end of stream, "
			    "while scanning a quoted scalar from line 1 on");
	REFUSED("a: }\n", "p.yaml:1:4: error: not YAML: did not find expected node content, "
			  "while parsing a block node from line 1 on");
}

/* They are told, and the tree is there all the same, so that other errors can be looked for. */
static void repeated_keys(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{ "a: 1\nb: 2\na: 3\n", "p.yaml:3:1: error: the key \"a\" is there twice, first in line 1" },
		{ "x: {a: 1, 'a': 2}\n", "p.yaml:1:11: error: the key \"a\" is there twice, first in line 1" },
		{ "- a: 1\n- b: 2\n  b: 3\n", "p.yaml:3:3: error: the key \"b\" is there twice, first in line 2" },
	};
	char line[PROBLEM_LINE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_n(cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(problems.errors, 1);
		problems_first(&problems, line);
		assert_string_equal(line, cases[i].line);
		assert_int_equal(problems.items[0].other_line, i == 2 ? 2 : 1);
		assert_string_equal(problems.items[0].other_file, "p.yaml");
	}
	reads("- a: 1\n- a: 1\n");
	assert_int_equal(problems.errors, 0);
	reads("a: {a: {a: 1}}\n");
	assert_int_equal(problems.errors, 0);
	/* Each one is told. */
	assert_int_equal(read_n("a: 1\nb: 1\na: 1\nb: 1\na: 1\n", 25), 0);
	assert_int_equal(problems.errors, 3);
	problem_format(&problems.items[1], line);
	assert_string_equal(line, "p.yaml:5:1: error: the key \"a\" is there twice, first in line 1");
}

static void depth(void **state)
{
	char text[64] = "", expected[128];

	(void)state;
	memset(text, '[', NP_POLICY_DEPTH);
	memset(text + NP_POLICY_DEPTH, ']', NP_POLICY_DEPTH);
	reads(text);
	memset(text, '[', NP_POLICY_DEPTH + 1);
	memset(text + NP_POLICY_DEPTH + 1, ']', NP_POLICY_DEPTH + 1);
	snprintf(expected, sizeof(expected), "p.yaml:1:%u: error: nested deeper than %u lists and mappings",
		 NP_POLICY_DEPTH + 1, NP_POLICY_DEPTH);
	refused(text, 2 * (NP_POLICY_DEPTH + 1), expected);
}

static char *big;
static size_t big_len;

static char *big_make(size_t size)
{
	free(big);
	big = malloc(size);
	assert_non_null(big);
	big_len = size;
	return big;
}

static int big_free(void **state)
{
	free(big);
	big = NULL;
	return reset(state);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Far above what it takes with sanitizers, and far below what anything quadratic would. */
#define SOON 20.0

/* Files that are made to be slow. */
static void hostile_shapes(void **state)
{
	static const char *const units[] = { "[",   "{",     "- ",     "? ",  "[{",    "a: ",	   "'", "\"",
					     "#",   "\n",    "- [\n",  "&a ", "*a\n",  "a: [\n",   ",", "|\n ",
					     "%\n", "---\n", "\"\\\n", "a\n", "[a,\n", "{a: b,\n", "!" };
	double start = seconds();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i]);

		big_make(1u << 20);
		for (size_t at = 0; at < big_len; at++)
			big[at] = units[i][at % unit];
		read_n(big, big_len);
	}
	assert_true(seconds() - start < SOON);
}

/* "A billion laughs": aliases of aliases. */
static void bombs(void **state)
{
	static const char text[] = "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
				   "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n";

	(void)state;
	REFUSED(text, "p.yaml:1:4: error: anchors (&name) are not read in a policy; use \"lists\"");
	assert_true(nodes < 10);
	REFUSED("a: &a [*a]\n", "p.yaml:1:4: error: anchors (&name) are not read in a policy; use \"lists\"");
}

static void long_scalars(void **state)
{
	(void)state;
	big_make(NP_POLICY_SCALAR + 3);
	memcpy(big, "a: ", 3);
	memset(big + 3, 'x', NP_POLICY_SCALAR);
	assert_int_equal(read_n(big, big_len), 0);
	assert_int_equal(root->first->next->len, NP_POLICY_SCALAR);
	big_make(NP_POLICY_SCALAR + 4);
	memcpy(big, "a: ", 3);
	memset(big + 3, 'x', NP_POLICY_SCALAR + 1);
	assert_int_equal(read_n(big, big_len), -EINVAL);
	assert_int_equal(problems.items[0].column, 4);
	assert_non_null(strstr(problems.items[0].text, "xxx...\" is longer than 4096 bytes"));
}

static void too_many_nodes(void **state)
{
	size_t at = 0;

	(void)state;
	big_make(2 * NP_POLICY_NODES + 1);
	for (big[at++] = '['; at + 1 < big_len; at += 2)
		memcpy(big + at, "a,", 2);
	big[big_len - 1] = ']';
	assert_int_equal(read_n(big, big_len), -EINVAL);
	assert_string_equal(problems.items[0].text, "a policy may not have more than 2000000 values");
	assert_int_equal(nodes, NP_POLICY_NODES);
	/* The count goes on in the next file. */
	problems_clear(&problems);
	assert_int_equal(yaml_read(arena, "a", 1, "q.yaml", 8, &nodes, &problems, &root), -EINVAL);
	nodes--;
	assert_int_equal(yaml_read(arena, "a", 1, "q.yaml", 8, &nodes, &problems, &root), 0);
}

static void many_keys(void **state)
{
	const unsigned n = 200000;
	double start = seconds();
	size_t at = 0;

	(void)state;
	big_make(n * 16 + 16);
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(big + at, big_len - at, "key%u: 1\n", i);
	assert_int_equal(read_n(big, at), 0);
	assert_int_equal(root->len, n);
	at += (size_t)snprintf(big + at, big_len - at, "key%u: 1\n", n / 2);
	assert_int_equal(read_n(big, at), 0);
	assert_int_equal(problems.errors, 1);
	assert_int_equal(problems.items[0].line, n + 1);
	assert_int_equal(problems.items[0].other_line, n / 2 + 1);
	/* The same key, over and over. */
	at = 0;
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(big + at, big_len - at, "a: 1\n");
	assert_int_equal(read_n(big, at), 0);
	assert_int_equal(problems.errors, n - 1);
	assert_true(seconds() - start < SOON);
}

static void memory_that_runs_out(void **state)
{
	(void)state;
	for (size_t max = 0; max < 4096; max += 16) {
		const struct node *tree = NULL;
		int e;

		reset(NULL);
		assert_int_equal(arena_new(max, &arena), 0);
		e = yaml_read(arena, "a: {b: [c, d], e: f}\n", 21, "p.yaml", 0, &nodes, &problems, &tree);
		assert_int_equal(problems.errors, 0);
		assert_true(e == -ENOMEM ? !tree : e == 0 && tree);
		if (e == 0)
			return;
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(makes_a_tree, reset),
		cmocka_unit_test_teardown(nothing_is_no_tree, reset),
		cmocka_unit_test_teardown(nulls, reset),
		cmocka_unit_test_teardown(line_endings_and_marks, reset),
		cmocka_unit_test_teardown(text_that_is_none, reset),
		cmocka_unit_test_teardown(scalars_that_hide_something, reset),
		cmocka_unit_test_teardown(what_yaml_has_and_we_do_not, reset),
		cmocka_unit_test_teardown(what_is_no_yaml, reset),
		cmocka_unit_test_teardown(repeated_keys, reset),
		cmocka_unit_test_teardown(depth, reset),
		cmocka_unit_test_teardown(hostile_shapes, big_free),
		cmocka_unit_test_teardown(bombs, reset),
		cmocka_unit_test_teardown(long_scalars, big_free),
		cmocka_unit_test_teardown(too_many_nodes, big_free),
		cmocka_unit_test_teardown(many_keys, big_free),
		cmocka_unit_test_teardown(memory_that_runs_out, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
