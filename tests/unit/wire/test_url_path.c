/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/url_path.c"

#include <stdlib.h>
#include <time.h>

#include "vocab/limits.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_normal_forms(void **state)
{
	static const struct {
		const char *target, *expected;
	} good[] = {
		{ "/", "/" },
		{ "/?a=b", "/" },
		{ "/a/b?c=/../d#e", "/a/b" },
		{ "/a/", "/a/" },
		{ "/...", "/..." },
		{ "/.a/..b/c..", "/.a/..b/c.." },
		{ "/%61%7E%41", "/a~A" },
		{ "/a%20b", "/a b" },
		{ "/a%3Fb%23", "/a?b#" },
		{ "/100%25", "/100%" },
		{ "/100%25x", "/100%x" },
		{ "/%25a", "/%a" },
		{ "/%25/aa", "/%/aa" },
		{ "/%c3%bc", "/%C3%BC" },
		{ "/%C3%BC/%e2%82%ac/%f0%9f%98%80", "/%C3%BC/%E2%82%AC/%F0%9F%98%80" },
		{ "/a:b@c!$&'()*+,=\"<>^`{|}", "/a:b@c!$&'()*+,=\"<>^`{|}" },
	};
	char path[NP_PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		if (path_normalise(good[i].target, strlen(good[i].target), path) != 0)
			fail_msg("refused: %s", good[i].target);
		assert_string_equal(path, good[i].expected);
	}
}

static void test_what_can_be_read_in_two_ways(void **state)
{
	static const char *const bad[] = {
		"",
		"?",
		"a",
		"*",
		"http://a/",
		"%2fa",
		"//",
		"//a",
		"/a//b",
		"/a//",
		"/a/.//b",
		"/.",
		"/./",
		"/a/.",
		"/a/./b",
		"/a/..",
		"/a/../",
		"/a/b/../../c",
		"/a/%2e%2E/b",
		"/a/.%2e/b",
		"/%2e/b",
		"/a;b=c/d",
		"/...;x",
		"/v1/;/x",
		"/a%3bb",
		"/a/..//b",
		"/a%2fb",
		"/a%2Fb",
		"/a%5cb",
		"/a\\b",
		"/a%00b",
		"/a%0ab",
		"/a%7f",
		"/a%1F",
		"/a b",
		"/a#b",
		"/a\tb",
		"/a\x7f",
		"/\xc3\xbc",
		"/%",
		"/%4",
		"/%4g",
		"/%g4",
		"/a%",
		"/%%41",
		"/%252e",
		"/%252E%252e/",
		"/%25%32%65",
		"/%2541",
		"/%25aa",
		"/%ff",
		"/%c3",
		"/%c3/%bc",
		"/%c3a",
		"/%bc",
		"/%c0%af",
		"/%e0%80%af",
		"/%ed%a0%80",
		"/%f4%90%80%80",
		"/%f5%80%80%80",
		"/%c3?%bc",
		"/..",
		"/../a",
		"/a/../..",
		"/a/../../b",
		"/./..",
		"/%2e%2e",
		"/..;",
		"/..;/a",
		"/a/..;x=y/b",
		"/.;/a",
		"/a/%2e%2e;/b",
		"/a/..%3bx/b",
	};
	char path[NP_PATH_MAX + 1] = "untouched";

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (path_normalise(bad[i], strlen(bad[i]), path) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_string_equal(path, "untouched");
	}
	assert_int_equal(path_normalise("/a\0b", 4, path), -EINVAL);
	/* What lies behind len is not looked at. */
	assert_int_equal(path_normalise("/%4", 2, path), -EINVAL);
	assert_int_equal(path_normalise("/a%2fb", 2, path), 0);
	assert_string_equal(path, "/a");
}

static void test_long_paths(void **state)
{
	size_t size = 4 * NP_PATH_MAX;
	char *text = malloc(size), path[NP_PATH_MAX + 1];

	(void)state;
	assert_non_null(text);
	memset(text, 'a', size);
	text[0] = '/';
	assert_int_equal(path_normalise(text, NP_PATH_MAX, path), 0);
	assert_int_equal(strlen(path), NP_PATH_MAX);
	assert_int_equal(path_normalise(text, NP_PATH_MAX + 1, path), -E2BIG);
	assert_int_equal(path_normalise(text, size, path), -E2BIG);
	/* Its query does not count. */
	text[100] = '?';
	assert_int_equal(path_normalise(text, size, path), 0);
	assert_int_equal(strlen(path), 100);
	free(text);
}

/* -- globs ---------------------------------------------------------------------- */

static void test_globs(void **state)
{
	static const struct {
		const char *glob, *path;
		bool matches;
	} rows[] = {
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "/a", "/a", true },
		{ "/a", "/ab", false },
		{ "/ab", "/a", false },
		{ "/*", "/", true },
		{ "/*", "/a", true },
		{ "/*", "/a/b", false },
		{ "/**", "/", true },
		{ "/**", "/a/b", true },
		{ "**", "/", true },
		{ "/a/**", "/a/", true },
		{ "/a/**", "/a", false },
		{ "/a**", "/a", true },
		{ "/a**", "/ab/c", true },
		{ "/*/b", "/a/b", true },
		{ "/*/b", "/a/c/b", false },
		{ "/**/b", "/a/c/b", true },
		{ "/**/b", "/b", false },
		{ "/**b", "/b", true },
		{ "/a*b*c", "/aXbYbc", true },
		{ "/a*b*c", "/aXbYb", false },
		{ "/a*b*c", "/aXb/c", false },
		{ "/a*/b*/c", "/a1/b2/c", true },
		{ "/a*/b*/c", "/a1/b2/d/c", false },
		{ "/**/x*y/z", "/x/xay/xby/z", true },
		{ "/**/x*y/z", "/xay/xby/q/z", false },
		{ "/**a*b", "/a/ab", true },
		{ "/**a*b", "/ab/", false },
		{ "/***", "/a/b", true },
		{ "/a.c", "/abc", false },
		{ "/a?c", "/abc", false },
		{ "/[a]", "/a", false },
		{ "/**/**/x", "/a/b/x", true },
		{ "/**/**/x", "/a/x", false },
		{ "/*.git/**", "/r.git/info", true },
		{ "/**.git", "/a/b.git", true },
		{ "/**.git", "/a/b.gits", false },
		{ "/a*", "/a*", true },
		{ "/%C3*", "/%C3%BC", true },
		{ "/*a", "/aa", true },
		{ "/*aab", "/aaaaab", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (path_matches(rows[i].glob, rows[i].path) != rows[i].matches)
			fail_msg("%s %s %s", rows[i].glob, rows[i].matches ? "should match" : "should not match",
				 rows[i].path);
}

/* By definition, and exponential. */
static bool slow_match(const char *glob, const char *path)
{
	if (glob[0] == '*' && glob[1] == '*')
		return slow_match(glob + 2, path) || (*path && slow_match(glob, path + 1));
	if (glob[0] == '*')
		return slow_match(glob + 1, path) || (*path && *path != '/' && slow_match(glob, path + 1));
	if (!*glob || !*path)
		return *glob == *path;
	return *glob == *path && slow_match(glob + 1, path + 1);
}

static void test_globs_by_definition(void **state)
{
	unsigned matched = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 200000; round++) {
		char glob[12] = "", path[12] = "";

		for (int i = rand() % 11; i-- > 0;)
			glob[i] = "ab/**"[rand() % 5];
		for (int i = rand() % 11; i-- > 0;)
			path[i] = "ab/"[rand() % 3];
		if (path_matches(glob, path) != slow_match(glob, path))
			fail_msg("glob \"%s\", path \"%s\"", glob, path);
		matched += path_matches(glob, path);
	}
	assert_in_range(matched, 10000, 100000);
}

static void test_no_glob_takes_long(void **state)
{
	char glob[NP_GLOB_MAX + 1], path[NP_PATH_MAX + 1];
	struct timespec start, end;

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[NP_PATH_MAX] = '\0';
	for (size_t i = 0; i < NP_GLOB_MAX; i++)
		glob[i] = "**a*a"[i % 5];
	glob[0] = '/';
	glob[NP_GLOB_MAX - 1] = 'b';
	glob[NP_GLOB_MAX] = '\0';
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_false(path_matches(glob, path));
	glob[NP_GLOB_MAX - 1] = '*';
	assert_true(path_matches(glob, path));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - start.tv_sec < 20); /* of CPU */
	/* One that no policy can hold. */
	memset(path, '*', sizeof(path) - 1);
	for (size_t i = 0; i < NP_PATH_MAX; i += 2)
		path[i] = 'a';
	assert_false(path_matches(path, "a"));
}

static void test_globs_in_normal_form(void **state)
{
	static const struct {
		const char *text, *expected;
	} good[] = {
		{ "/", "/" },
		{ "/repos/**", "/repos/**" },
		{ "**", "**" },
		{ "**/x", "**/x" },
		{ "/a/*/b/", "/a/*/b/" },
		{ "/%61/%7e", "/a/~" },
		{ "/stra\xc3\x9f"
		  "e",
		  "/stra%C3%9Fe" },
		{ "/stra%c3%9fe", "/stra%C3%9Fe" },
		{ "/a b", "/a b" },
		{ "/a%20b", "/a b" },
		{ "/a%3fb%23", "/a?b#" },
		{ "/100%25", "/100%" },
		{ "/.well-known/*", "/.well-known/*" },
		{ "/.*", "/.*" },
		{ "/..*", "/..*" },
	};
	static const char *const bad[] = {
		"",	   "a",	     "*",	  "*/a",      "?",	"//",	      "/a//b",	 "/.",	   "/..",
		"/a/../b", "/a/./b", "/a/..;x/b", "/a/%2e/b", "/a?b",	"/a#b",	      "/a\\b",	 "/a%5cb", "/a%2fb",
		"/%2a",	   "/%",     "/%4",	  "/%4*",     "/a%00",	"/a%0a",      "/a\n",	 "/%252e", "/%2541",
		"/\xff",   "/%ff",   "/%c3",	  "/%c3*",    "/\xc3*", "/\xc3/\xbc", "**/../a",
	};
	char glob[NP_GLOB_MAX + 1] = "untouched", text[NP_GLOB_MAX + 2];
	const char *problem;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		problem = NULL;
		if (glob_normalise(bad[i], strlen(bad[i]), glob, &problem) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_true(problem && *problem);
		assert_string_equal(glob, "untouched");
	}
	assert_int_equal(glob_normalise("/a\0", 3, glob, &problem), -EINVAL);
	for (size_t i = 0; i < COUNT(good); i++) {
		problem = NULL;
		if (glob_normalise(good[i].text, strlen(good[i].text), glob, &problem) != 0)
			fail_msg("refused: %s: %s", good[i].text, problem);
		assert_null(problem);
		assert_string_equal(glob, good[i].expected);
	}
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(glob_normalise(text, NP_GLOB_MAX, glob, &problem), 0);
	assert_int_equal(glob_normalise(text, NP_GLOB_MAX + 1, glob, &problem), -EINVAL);
	assert_string_equal(problem, "too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_forms),	     cmocka_unit_test(test_what_can_be_read_in_two_ways),
		cmocka_unit_test(test_long_paths),	     cmocka_unit_test(test_globs),
		cmocka_unit_test(test_globs_by_definition),  cmocka_unit_test(test_no_glob_takes_long),
		cmocka_unit_test(test_globs_in_normal_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
