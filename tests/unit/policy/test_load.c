/* SPDX-License-Identifier: MIT */
/* The files of a policy together, from memory; and the bounds of the whole. */
#include "policy/load.c"

#include <time.h>

#include "found.h"
#include "vocab/limits.h"

#define P "etc/p.yaml:"

struct entry {
	const char *name, *text;
	size_t len; /* 0: strlen(text) */
	int error;
};
static const struct entry *entries;
static char reads[8192]; /* the names asked for, each with a newline */

static int entry_read(void *ctx, const char *name, char **ret_text, size_t *ret_len)
{
	assert_ptr_equal(ctx, &entries);
	snprintf(reads + strlen(reads), sizeof(reads) - strlen(reads), "%s\n", name);
	for (const struct entry *e = entries; e->name; e++) {
		if (strcmp(e->name, name) != 0)
			continue;
		if (e->error)
			return e->error;
		*ret_len = e->len ? e->len : strlen(e->text);
		*ret_text = malloc(*ret_len + 1);
		assert_non_null(*ret_text);
		memcpy(*ret_text, e->text, *ret_len);
		return 0;
	}
	return -ENOENT;
}

static int load_from(const struct entry *from)
{
	const struct policy_source source = { .read = entry_read, .ctx = &entries };
	int r;

	found_clear(NULL);
	entries = from;
	reads[0] = '\0';
	r = policy_load(&source, "etc/", "p.yaml", &policy, &found);
	assert_int_equal(r == 0, policy != NULL);
	assert_int_equal(r == 0, found.errors == 0);
	return r;
}

#define F(file, content)                      \
	{                                     \
		.name = file, .text = content \
	}
#define FILES(...) ((const struct entry[]){ __VA_ARGS__, { 0 } })
#define FILES_TELL(lines, ...)                            \
	do {                                              \
		load_from(FILES(__VA_ARGS__));            \
		assert_string_equal(found_join(), lines); \
	} while (0)

static void included_files_come_first(void **state)
{
	static const char *const names[] = { "deep.example", "sub.example", "b.example", "top.example" };
	static const char *const places[] = { "etc/sub/deep/d.yaml:2", "etc/sub/a.yaml:3", "etc/b.yaml:2",
					      "etc/p.yaml:3" };
	char place[PLACE_TEXT_SIZE];

	(void)state;
	assert_int_equal(
		load_from(FILES(
			F("p.yaml", "version: 1\ninclude: [sub/a.yaml, ./b.yaml]\nrules: [allow: top.example]\n"),
			F("sub/a.yaml", "version: 1\ninclude: deep/../deep//d.yaml\nrules: [allow: sub.example]\n"),
			F("sub/deep/d.yaml", "version: 1\nrules: [allow: deep.example]\n"),
			F("b.yaml", "version: 1\nrules: [allow: b.example]\n"))),
		0);
	assert_string_equal(found_join(), "");
	assert_string_equal(reads, "p.yaml\nsub/a.yaml\nsub/deep/d.yaml\nb.yaml\n");
	assert_int_equal(policy->n_files, 4);
	assert_string_equal(policy->files[0], "etc/p.yaml");
	assert_string_equal(policy->files[2], "etc/sub/deep/d.yaml");
	assert_int_equal(policy->n_rules, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(policy->rules[i].number, i);
		assert_string_equal(policy->patterns[policy->rules[i].pattern].name, names[i]);
		place_format(policy, &policy->rules[i].at, place);
		assert_string_equal(place, places[i]);
	}
}

static void files_share_lists_and_deciders(void **state)
{
	(void)state;
	/* Either way: what the first file has, an included one can use, and the other way round. */
	assert_int_equal(
		load_from(FILES(F("p.yaml", "version: 1\ninclude: a.yaml\nlists: {top: [a.example]}\n"
					    "rules: [allow: \"@sub\"]\ninspect_ports: [8080]\n"),
				F("a.yaml", "version: 1\nlists: {sub: [b.example]}\nfull: [deny: 10.0.0.1]\n"
					    "deciders: {g: {socket: /x}}\nrules:\n- decide: \"@top\"\n  by: g\n"
					    "- allow: c.example:8080\n  methods: GET\n"))),
		0);
	assert_string_equal(found_join(), "");
	assert_int_equal(policy->n_rules, 3);
	assert_int_equal(policy->n_full, 1);
	assert_int_equal(policy->deciders[0].at.file, 1);
	assert_int_equal(policy->patterns[policy->rules[0].pattern].at.file, 0);
	assert_int_equal(policy->rules[0].at.file, 1);
}

#define PEM(text) "-----BEGIN CERTIFICATE-----\n" text "\n-----END CERTIFICATE-----\n"
#define ROOTS_TELL(words, text)                                                                                       \
	FILES_TELL("etc/p.yaml:2:14: error: \"c.pem\": " words "\n", F("p.yaml", "version: 1\nextra_roots: c.pem\n"), \
		   F("c.pem", text))

static void extra_roots_are_read(void **state)
{
	(void)state;
	assert_int_equal(load_from(FILES(F("p.yaml", "version: 1\nextra_roots: [c.pem, d.pem]\n"),
					 F("c.pem", "# ours\n" PEM("MAMBAf8=")), F("d.pem", PEM("MAA=") PEM("MAA=")))),
			 0);
	assert_string_equal(found_join(), "");
	assert_string_equal(policy->extra_roots, "# ours\n" PEM("MAMBAf8=") "\n" PEM("MAA=") PEM("MAA=") "\n");
	assert_int_equal(policy->extra_roots_len, strlen(policy->extra_roots));
	ROOTS_TELL("it holds no certificate in PEM", "");
	ROOTS_TELL("it holds no certificate in PEM", "MAA=\n");
	ROOTS_TELL("it holds something that is no certificate",
		   PEM("MAA=") "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n");
	ROOTS_TELL("it holds a certificate that cannot be read", PEM("MAMB"));
	ROOTS_TELL("it holds a certificate that cannot be read", PEM("MAMBAf8=MAA="));
	ROOTS_TELL("it holds a certificate that cannot be read", PEM("!"));
	ROOTS_TELL("it holds a certificate that cannot be read", "-----BEGIN CERTIFICATE-----\nMAA=\n");
	FILES_TELL("etc/p.yaml:2:15: error: extra_roots takes paths relative to the file, not \"/c.pem\"\n"
		   "etc/p.yaml:2:23: error: \"../c.pem\" leads out of the directory of the policy's first file\n"
		   "etc/p.yaml:2:33: error: cannot read \"none.pem\": there is no such file\n",
		   F("p.yaml", "version: 1\nextra_roots: [/c.pem, ../c.pem, none.pem]\n"));
	load_from(FILES(F("p.yaml", "version: 1\nextra_roots: {a: b}\n")));
	assert_int_equal(found.errors, 1);
}

static void names_are_there_once(void **state)
{
	(void)state;
	FILES_TELL("etc/p.yaml:4:12: error: decider \"g\" is already in etc/a.yaml:3\n"
		   "etc/p.yaml:3:9: error: list \"l\" is already in etc/a.yaml:2\n",
		   F("p.yaml", "version: 1\ninclude: a.yaml\nlists: {l: [a.example]}\ndeciders: {g: {socket: /x}}\n"
			       "rules: [allow: \"@l\"]\n"),
		   F("a.yaml", "version: 1\nlists: {l: [b.example]}\ndeciders: {g: {socket: /x}}\n"));
	assert_string_equal(found.items[0].other_file, "etc/a.yaml");
	assert_int_equal(found.items[0].other_line, 3);
	assert_string_equal(found.items[1].other_file, "etc/a.yaml");
	assert_int_equal(found.items[1].other_line, 2);
}

static void settings_are_for_the_first_file(void **state)
{
	(void)state;
	FILES_TELL("etc/a.yaml:2:1: error: \"levels\" belongs in the first file, not in an included one\n"
		   "etc/a.yaml:3:1: error: \"default\" belongs in the first file, not in an included one\n"
		   "etc/a.yaml:4:1: error: \"inspect_ports\" belongs in the first file, not in an included one\n"
		   "etc/a.yaml:5:1: error: \"host_loopback\" belongs in the first file, not in an included one\n"
		   "etc/a.yaml:6:1: error: \"approval\" belongs in the first file, not in an included one\n",
		   F("p.yaml", "version: 1\ninclude: [a.yaml]\n"),
		   F("a.yaml", "version: 1\nlevels: {}\ndefault: deny\ninspect_ports: [80]\nhost_loopback: []\n"
			       "approval: {}\n"));
	FILES_TELL("etc/a.yaml:1:1: error: \"version: 1\" is missing\n", F("p.yaml", "version: 1\ninclude: [a.yaml]\n"),
		   F("a.yaml", "rules: []\n"));
	FILES_TELL("etc/a.yaml:1:1: error: the file is empty; a policy starts with \"version: 1\"\n",
		   F("p.yaml", "version: 1\ninclude: [a.yaml]\n"), F("a.yaml", ""));
	FILES_TELL("etc/a.yaml:1:1: error: a policy file is a mapping that starts with \"version: 1\"\n",
		   F("p.yaml", "version: 1\ninclude: [a.yaml]\n"), F("a.yaml", "x"));
}

static void errors_of_all_files_in_one_run(void **state)
{
	(void)state;
	FILES_TELL(
		"etc/a.yaml:2:9: error: not YAML: did not find expected node content, while parsing a flow node from "
		"line 2 on\n"
		"etc/p.yaml:2:19: error: cannot read \"none.yaml\": there is no such file\n"
		"etc/b.yaml:2:16: error: \"a b\" is no host name\n"
		"etc/p.yaml:3:14: error: \"c d\" is no host name\n",
		F("p.yaml", "version: 1\ninclude: [a.yaml, none.yaml, b.yaml]\nrules: [ask: c d]\n"),
		F("a.yaml", "version: 1\nrules: [}\n"), F("b.yaml", "version: 1\nrules: [allow: a b]\n"));
}

static void a_file_is_there_once(void **state)
{
	(void)state;
	FILES_TELL("etc/p.yaml:2:10: error: \"p.yaml\" is the first file, and cannot be included again\n",
		   F("p.yaml", "version: 1\ninclude: p.yaml\n"));
	assert_string_equal(found.items[0].other_file, "etc/p.yaml");
	assert_int_equal(found.items[0].other_line, 1);
	FILES_TELL("etc/p.yaml:2:19: error: \"a.yaml\" is already included in etc/p.yaml:2\n",
		   F("p.yaml", "version: 1\ninclude: [a.yaml, ./x/../a.yaml]\n"), F("a.yaml", "version: 1\n"));
	/* a circle */
	FILES_TELL("etc/sub/b.yaml:2:10: error: \"sub/a.yaml\" is already included in etc/p.yaml:3\n",
		   F("p.yaml", "version: 1\ninclude:\n  sub/a.yaml\n"),
		   F("sub/a.yaml", "version: 1\ninclude: b.yaml\n"), F("sub/b.yaml", "version: 1\ninclude: a.yaml\n"));
	assert_string_equal(found.items[0].other_file, "etc/p.yaml");
	assert_int_equal(found.items[0].other_line, 3);
	/* a diamond */
	FILES_TELL("etc/b.yaml:2:10: error: \"c.yaml\" is already included in etc/a.yaml:2\n",
		   F("p.yaml", "version: 1\ninclude: [a.yaml, b.yaml]\n"), F("a.yaml", "version: 1\ninclude: c.yaml\n"),
		   F("b.yaml", "version: 1\ninclude: c.yaml\n"), F("c.yaml", "version: 1\n"));
	FILES_TELL("etc/a.yaml:2:10: error: \"p.yaml\" is the first file, and cannot be included again\n",
		   F("p.yaml", "version: 1\ninclude: a.yaml\n"), F("a.yaml", "version: 1\ninclude: p.yaml\n"));
}

static void paths_that_lead_out(void **state)
{
	(void)state;
	FILES_TELL(P "2:11: error: include takes paths relative to the file, not \"/etc/passwd\"\n" P
		     "2:24: error: \"../x.yaml\" leads out of the directory of the policy's first file\n" P
		     "2:35: error: \"a/../../x.yaml\" leads out of the directory of the policy's first file\n" P
		     "2:51: error: \".\" is a directory\n" P "2:54: error: \"a/..\" is a directory\n" P
		     "2:60: error: an entry of \"include\" is empty\n" P
		     "2:64: error: an entry of \"include\" is one value, not a list\n",
		   F("p.yaml", "version: 1\ninclude: [/etc/passwd, ../x.yaml, a/../../x.yaml, ., a/.., \"\", [x]]\n"));
	assert_string_equal(reads, "p.yaml\n");
	FILES_TELL("etc/a/b.yaml:2:10: error: \"../../x.yaml\" leads out of the directory of the policy's first file\n",
		   F("p.yaml", "version: 1\ninclude: a/b.yaml\n"),
		   F("a/b.yaml", "version: 1\ninclude: ../../x.yaml\n"));
	FILES_TELL("", F("p.yaml", "version: 1\ninclude: a/b.yaml\n"),
		   F("a/b.yaml", "version: 1\ninclude: ../x.yaml\n"), F("x.yaml", "version: 1\n"));
	FILES_TELL(P "2:10: error: \"include\" takes a value or a list of them, not a mapping\n",
		   F("p.yaml", "version: 1\ninclude: {a: b}\n"));
}

static void long_paths(void **state)
{
	static char text[3 * 1024 + 64], more[4096 + 64];

	(void)state;
	/* Each is short enough by itself. */
	strcpy(text, "version: 1\ninclude: ");
	memset(text + strlen(text), 'd', 3 * 1024);
	strcat(text, "/a");
	strcpy(more, "version: 1\ninclude: ");
	memset(more + strlen(more), 'e', 1023);
	load_from(FILES(F("p.yaml", text), F(text + 20, more), { 0 }));
	assert_int_equal(found.errors, 1);
	assert_int_equal(found.items[0].line, 2);
	assert_non_null(strstr(found.items[0].text, "is too long for a path"));
	assert_non_null(strstr(found.items[0].file, "d/a"));
	/* The longest there is. */
	memset(more + 20, 'e', NP_POLICY_SCALAR);
	more[20 + NP_POLICY_SCALAR - 2] = '\0';
	load_from(FILES(F("p.yaml", more)));
	assert_non_null(strstr(found.items[0].text, "there is no such file"));
	more[20 + NP_POLICY_SCALAR - 2] = 'e';
	load_from(FILES(F("p.yaml", more)));
	assert_non_null(strstr(found.items[0].text, "is too long for a path"));
}

static void what_the_source_says(void **state)
{
	static const struct {
		int error;
		const char *words;
	} cases[] = { { -ENOENT, "there is no such file" },
		      { -EXDEV, "it leads out of the directory of the policy's first file" },
		      { -EISDIR, "it is a directory" },
		      { -ENXIO, "it is no regular file" },
		      { -E2BIG, "it is too large" },
		      { -EACCES, "Permission denied" } };
	char line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(load_from(FILES({ .name = "p.yaml", .error = cases[i].error })), cases[i].error);
		snprintf(line, sizeof(line), "etc/p.yaml: error: cannot read it: %s\n", cases[i].words);
		assert_string_equal(found_join(), line);
		assert_int_equal(load_from(FILES(F("p.yaml", "version: 1\ninclude: a.yaml\n"),
						 { .name = "a.yaml", .error = cases[i].error })),
				 -EINVAL);
		snprintf(line, sizeof(line), P "2:10: error: cannot read \"a.yaml\": %s\n", cases[i].words);
		assert_string_equal(found_join(), line);
	}
	assert_int_equal(load_from(FILES({ .name = "p.yaml", .error = -ENOMEM })), -ENOMEM);
	assert_string_equal(found_join(), "etc/p.yaml: error: it takes more memory than there is for a policy\n");
}

/* -- the hash ------------------------------------------------------------------ */

static void hash_of(char hash[static POLICY_HASH_SIZE], const struct entry *from)
{
	assert_int_equal(load_from(from), 0);
	memcpy(hash, policy->hash, POLICY_HASH_SIZE);
	assert_int_equal(strspn(hash, "0123456789abcdef"), 64);
	assert_int_equal(hash[64], '\0');
}

static void hashes(void **state)
{
	char hash[6][POLICY_HASH_SIZE];

	(void)state;
	/* printf 'p.yaml\00011\0version: 1\n' | sha256sum */
	hash_of(hash[0], FILES(F("p.yaml", "version: 1\n")));
	assert_string_equal(hash[0], "e6fa4c5a9eda6456de72f21bd8b8c81ca6c2a7074d31ec5af3d29d44d9c27b25");
	hash_of(hash[1], FILES(F("p.yaml", "version: 1\n")));
	assert_string_equal(hash[1], hash[0]);
	hash_of(hash[1], FILES(F("p.yaml", "version: 1\n\n")));
	hash_of(hash[2], FILES(F("p.yaml", "version: 1\ninclude: a\n"), F("a", "version: 1\n")));
	hash_of(hash[3], FILES(F("p.yaml", "version: 1\ninclude: a\n"), F("a", "version: 1\n#\n")));
	hash_of(hash[4], FILES(F("p.yaml", "version: 1\ninclude: b\n"), F("b", "version: 1\n")));
	hash_of(hash[5],
		FILES(F("p.yaml", "version: 1\ninclude: [a, b]\n"), F("a", "version: 1\n"), F("b", "version: 1\n")));
	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(hash[i], hash[j]);
	/* Where the directory is does not count. */
	found_clear(NULL);
	assert_int_equal(policy_load_text("p.yaml", "version: 1\n", 11, &policy, &found), 0);
	assert_string_equal(policy->hash, hash[0]);
}

/* -- bounds -------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Far above what it takes with sanitizers, and far below what anything quadratic would. */
#define SOON 30.0

static void many_files(void **state)
{
	static struct entry many[NP_POLICY_FILES + 2];
	static char names[NP_POLICY_FILES + 1][16], texts[NP_POLICY_FILES + 1][64];

	(void)state;
	/* A chain: each includes the next. */
	for (unsigned i = 0; i <= NP_POLICY_FILES; i++) {
		snprintf(names[i], sizeof(names[i]), i ? "f%u" : "p.yaml", i);
		snprintf(texts[i], sizeof(texts[i]), "version: 1\ninclude: f%u\n", i + 1);
		many[i] = (struct entry){ .name = names[i], .text = texts[i] };
	}
	strcpy(texts[NP_POLICY_FILES - 1], "version: 1\n");
	assert_int_equal(load_from(many), 0);
	assert_int_equal(policy->n_files, NP_POLICY_FILES);
	snprintf(texts[NP_POLICY_FILES - 1], sizeof(texts[0]), "version: 1\ninclude: f%u\n", NP_POLICY_FILES);
	strcpy(texts[NP_POLICY_FILES], "version: 1\n");
	assert_int_equal(load_from(many), -EINVAL);
	assert_string_equal(found_join(), "etc/f63:2:10: error: more than 64 files\n");
	assert_null(strstr(reads, "f64"));
}

static void many_bytes(void **state)
{
	char *text = malloc(NP_POLICY_BYTES + 1);
	struct entry from[] = { { "p.yaml", "version: 1\ninclude: [a, b]\n", 0, 0 },
				{ "a", text, NP_POLICY_BYTES / 2, 0 },
				{ "b", text, NP_POLICY_BYTES / 2, 0 },
				{ 0 } };

	(void)state;
	assert_non_null(text);
	memset(text, '#', NP_POLICY_BYTES + 1);
	memcpy(text, "version: 1\n", 11);
	assert_int_equal(load_from(from), -EINVAL);
	assert_string_equal(found_join(), P "2:14: error: the files of the policy have more than 8388608 bytes\n");
	from[2].len -= 100;
	assert_int_equal(load_from(from), 0);
	found_clear(NULL);
	assert_int_equal(policy_load_text("p.yaml", text, NP_POLICY_BYTES, &policy, &found), 0);
	found_clear(NULL);
	assert_int_equal(policy_load_text("p.yaml", text, NP_POLICY_BYTES + 1, &policy, &found), -E2BIG);
	assert_string_equal(found_join(), "p.yaml: error: cannot read it: it is too large\n");
	assert_null(policy);
	from[0] = (struct entry){ "p.yaml", text, NP_POLICY_BYTES + 1, 0 };
	assert_int_equal(load_from(from), -E2BIG);
	assert_string_equal(found_join(), "etc/p.yaml: error: cannot read it: it is too large\n");
	free(text);
}

static char *big;
static size_t big_at;

static int big_free(void **state)
{
	free(big);
	big = NULL;
	return found_clear(state);
}

static void big_start(void)
{
	free(big);
	big = malloc(NP_POLICY_BYTES);
	assert_non_null(big);
	big_at = (size_t)sprintf(big, "version: 1\n");
}

#define BIG(...) (big_at += (size_t)snprintf(big + big_at, NP_POLICY_BYTES - big_at, __VA_ARGS__))

static void many_rules(void **state)
{
	double start = seconds();

	(void)state;
	big_start();
	BIG("rules:\n");
	for (unsigned i = 0; i < 100000; i++)
		BIG("  - allow: host%u.example.com\n", i);
	load_n(big, big_at);
	assert_string_equal(found_join(), "");
	assert_int_equal(policy->n_rules, 100000);
	assert_string_equal(policy->patterns[99999].name, "host99999.example.com");
	assert_int_equal(policy->rules[99999].at.line, 100002);
	big_start();
	BIG("lists:\n  big:\n");
	for (unsigned i = 0; i < 100000; i++)
		BIG("    - host%u.example.com\n", i);
	BIG("rules:\n  - allow: \"@big\"\n");
	load_n(big, big_at);
	assert_string_equal(found_join(), "");
	assert_int_equal(policy->rules[0].n_patterns, 100000);
	assert_true(seconds() - start < SOON);
}

static void too_many_rules(void **state)
{
	(void)state;
	big_start();
	BIG("full:\n- deny: 10.0.0.1\nrules:\n");
	for (unsigned i = 0; i < NP_POLICY_RULES; i++)
		BIG("- deny: a%u\n", i);
	load_n(big, big_at);
	/* One rule of full: is too many; it comes last. */
	assert_string_equal(found_join(), "p.yaml:3:3: error: more than 200000 rules\n");
}

static void too_many_destinations(void **state)
{
	double start = seconds();

	(void)state;
	/* 1,000 names, in a list that 400 rules use, and then one rule more. */
	big_start();
	BIG("lists:\n  l:\n");
	for (unsigned i = 0; i < 1000; i++)
		BIG("  - h%u.example\n", i);
	BIG("rules:\n");
	for (unsigned i = 0; i < NP_POLICY_PATTERNS / 1000; i++)
		BIG("- deny: \"@l\"\n  for: SECRET\n");
	load_n(big, big_at);
	assert_int_equal(found.errors, 0);
	assert_int_equal(policy->n_patterns, NP_POLICY_PATTERNS);
	BIG("- deny: a.example\n- deny: \"@l\"\n");
	load_n(big, big_at);
	assert_int_equal(found.errors, 1);
	assert_string_equal(found.items[0].text, "more than 400000 destinations in all rules, lists unfolded");
	assert_int_equal(found.items[0].line, 1004 + 2 * 400 + 1);
	assert_true(seconds() - start < SOON);
}

/* Lists that hold lists, twelve times each: 12^7 names when unfolded. */
static void bombs_of_lists(void **state)
{
	double start = seconds();

	(void)state;
	big_start();
	BIG("lists:\n");
	for (unsigned i = 1; i < NP_POLICY_DEPTH; i++) {
		BIG("  l%u: [", i);
		for (unsigned j = 0; j < 12; j++)
			BIG("\"@l%u\",", i + 1);
		BIG("]\n");
	}
	BIG("  l%u: [a.example]\nrules:\n- deny: \"@l1\"\n- deny: b.example\n", NP_POLICY_DEPTH);
	load_n(big, big_at);
	assert_int_equal(found.errors, 1);
	assert_non_null(strstr(found.items[0].text, "in all rules"));

	/* Wide, and with next to nothing at the end. */
	big_start();
	BIG("lists:\n  z: [a.example]\n");
	for (unsigned i = 0; i < 2000; i++)
		BIG("  y%u: [\"@z\"]\n", i);
	BIG("  x: [");
	for (unsigned i = 0; i < 2000; i++)
		BIG("\"@y%u\",", i);
	BIG("]\nrules:\n");
	for (unsigned i = 0; i < 20000; i++)
		BIG("- deny: \"@x\"\n");
	load_n(big, big_at);
	assert_int_equal(found.errors, 1);
	assert_non_null(strstr(found.items[0].text, "in all rules"));

	/* A chain of lists that would be as deep as a stack is high. */
	big_start();
	BIG("lists:\n");
	for (unsigned i = 0; i < 200000; i++)
		BIG("  l%u: [\"@l%u\"]\n", i, i + 1);
	BIG("  l200000: [a.example]\nrules:\n- deny: \"@l0\"\n");
	load_n(big, big_at);
	assert_int_equal(found.errors, 1);
	assert_string_equal(found.items[0].text, "lists in lists, more than 8 deep");
	assert_true(seconds() - start < SOON);
}

static void many_unknown_lists(void **state)
{
	double start = seconds();

	(void)state;
	big_start();
	BIG("lists:\n");
	for (unsigned i = 0; i < 50000; i++)
		BIG("  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%u: [a.example]\n", i);
	BIG("rules:\n");
	for (unsigned i = 0; i < 50000; i++)
		BIG("- deny: \"@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab%u\"\n", i);
	load_n(big, big_at);
	assert_int_equal(found.errors, 50000);
	assert_true(seconds() - start < SOON);
}

/* -- the rest ---------------------------------------------------------------- */

static void problems_of_the_caller_stay(void **state)
{
	(void)state;
	found_clear(NULL);
	problem_add(&found, false, "other", 1, 1, "before");
	assert_int_equal(policy_load_text("p.yaml", "version: 1\n", 11, &policy, &found), 0);
	assert_int_equal(found.errors, 1);
	policy_free(policy);
	policy = NULL;
	assert_int_equal(policy_load_text("p.yaml", "version: 2\n", 11, &policy, &found), -EINVAL);
	assert_null(policy);
	assert_int_equal(found.errors, 2);
}

static void covered_rules_are_told(void **state)
{
	(void)state;
	load_n(one_rule("deny: \"**\"\n  - allow: a.example"), strlen(one_rule("deny: \"**\"\n  - allow: a.example")));
	assert_int_equal(found.warnings, 1);
	assert_int_equal(found.items[0].line, 4);
	assert_int_equal(found.items[0].other_line, 3);
}

static void the_default(void **state)
{
	const struct place nowhere = { 0 }, elsewhere = { .file = 9, .line = 1 };
	char place[PLACE_TEXT_SIZE];

	(void)state;
	found_clear(NULL);
	assert_int_equal(policy_default(&policy), 0);
	assert_int_equal(policy->n_rules, 0);
	assert_int_equal(policy->fallback[LEVEL_PUBLIC].action, ACTION_DENY);
	assert_int_equal(policy->modes.of[LEVEL_SECRET], NP_NONE);
	assert_non_null(policy->names);
	place_format(policy, &nowhere, place);
	assert_string_equal(place, "default");
	place_format(policy, &policy->fallback[0].at, place);
	assert_string_equal(place, "default");
	place_format(policy, &elsewhere, place);
	assert_string_equal(place, "default");
	policy_free(NULL);
}

static void long_places(void **state)
{
	char name[1000], place[PLACE_TEXT_SIZE];
	const struct place at = { .line = UINT32_MAX };

	(void)state;
	memset(name, 'x', sizeof(name));
	strcpy(name + sizeof(name) - sizeof("\x1b/p.yaml"), "\x1b/p.yaml");
	found_clear(NULL);
	assert_int_equal(policy_load_text(name, "version: 1\n", 11, &policy, &found), 0);
	place_format(policy, &at, place);
	assert_true(strlen(place) < PLACE_TEXT_SIZE);
	assert_non_null(strstr(place, "x?/p.yaml:4294967295"));
}

static void names_of_actions(void **state)
{
	(void)state;
	assert_string_equal(action_name(ACTION_ALLOW), "allow");
	assert_string_equal(action_name(ACTION_DENY), "deny");
	assert_string_equal(action_name(ACTION_ASK), "ask");
	assert_string_equal(action_name(ACTION_DECIDE), "decide");
	assert_string_equal(action_name((enum action)0), "?");
	assert_string_equal(action_name((enum action)5), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(included_files_come_first, found_clear),
		cmocka_unit_test_teardown(files_share_lists_and_deciders, found_clear),
		cmocka_unit_test_teardown(extra_roots_are_read, found_clear),
		cmocka_unit_test_teardown(names_are_there_once, found_clear),
		cmocka_unit_test_teardown(settings_are_for_the_first_file, found_clear),
		cmocka_unit_test_teardown(errors_of_all_files_in_one_run, found_clear),
		cmocka_unit_test_teardown(a_file_is_there_once, found_clear),
		cmocka_unit_test_teardown(paths_that_lead_out, found_clear),
		cmocka_unit_test_teardown(long_paths, found_clear),
		cmocka_unit_test_teardown(what_the_source_says, found_clear),
		cmocka_unit_test_teardown(hashes, found_clear),
		cmocka_unit_test_teardown(many_files, found_clear),
		cmocka_unit_test_teardown(many_bytes, found_clear),
		cmocka_unit_test_teardown(many_rules, big_free),
		cmocka_unit_test_teardown(too_many_rules, big_free),
		cmocka_unit_test_teardown(too_many_destinations, big_free),
		cmocka_unit_test_teardown(bombs_of_lists, big_free),
		cmocka_unit_test_teardown(many_unknown_lists, big_free),
		cmocka_unit_test_teardown(problems_of_the_caller_stay, found_clear),
		cmocka_unit_test_teardown(covered_rules_are_told, found_clear),
		cmocka_unit_test_teardown(the_default, found_clear),
		cmocka_unit_test_teardown(long_places, found_clear),
		cmocka_unit_test_teardown(names_of_actions, found_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
