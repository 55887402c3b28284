/* SPDX-License-Identifier: MIT */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "policy/compile.h"
#include "policy/include.h"
#include "policy/quote.h"
#include "policy/shipped.h"
#include "vocab/limits.h"

#define APPROVAL_TIMEOUT_MS (10 * 60 * 1000)

const char *action_name(enum action action)
{
	static const char *const names[] = {
		[ACTION_ALLOW] = "allow",
		[ACTION_DENY] = "deny",
		[ACTION_ASK] = "ask",
		[ACTION_DECIDE] = "decide",
	};

	return (unsigned)action < ARRAY_SIZE(names) && names[action] ? names[action] : "?";
}

void place_format(const struct policy *policy, const struct place *place, char text[static PLACE_TEXT_SIZE])
{
	char file[PLACE_TEXT_SIZE - 16];
	const char *name;
	size_t len;

	if (!place->line || place->file >= policy->n_files) {
		snprintf(text, PLACE_TEXT_SIZE, "default");
		return;
	}
	name = policy->files[place->file];
	len = strlen(name);
	/* Of a name that is too long the end says more. */
	if (len >= sizeof(file)) {
		name += len - (sizeof(file) - 1);
		len = sizeof(file) - 1;
	}
	text_clean(file, sizeof(file), name, len);
	snprintf(text, PLACE_TEXT_SIZE, "%s:%u", file, place->line);
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	arena_free(policy->arena);
	free(policy);
}

static int policy_new(struct policy **ret)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	int e = policy ? arena_new(NP_POLICY_MEMORY, &policy->arena) : -ENOMEM;

	if (e == 0) {
		policy->files = arena_alloc(policy->arena, NP_POLICY_FILES, sizeof(*policy->files));
		if (!policy->files)
			e = -ENOMEM;
	}
	if (e < 0) {
		policy_free(policy);
		return e;
	}
	policy->modes = level_modes_default;
	for (unsigned level = 0; level < LEVEL_COUNT; level++)
		policy->fallback[level].action = ACTION_DENY;
	policy->inspect_ports[policy->n_inspect_ports++] = 80;
	policy->inspect_ports[policy->n_inspect_ports++] = 443;
	policy->approval.timeout_ms = APPROVAL_TIMEOUT_MS;
	policy->approval.hold_ms = NP_APPROVAL_HOLD_MS;
	policy->sandbox.idle_ms = NP_KEPT_IDLE_MS;
	policy->unknown_containers = UNKNOWN_IGNORE;
	policy->lifetime = (struct lifetime){ .keep_s = NP_SESSIONS_KEEP_S,
					      .keep_count = NP_SESSIONS_KEPT,
					      .archive_max = NP_ARCHIVE_BYTES };
	*ret = policy;
	return 0;
}

/* The file of approval: grants:. Until somebody has answered so there is none. */
static int grants_load(struct loading *l)
{
	struct reader *reader = &l->reader;
	const struct node *at = reader->grants_at;
	unsigned index = reader->n_files;
	int e;

	if (!at || !file_is_welcome(l, at->text, at))
		return 0;
	reader->policy->approval.grants = arena_text(reader->policy->arena, at->text, at->len);
	if (!reader->policy->approval.grants)
		return -ENOMEM;
	l->optional = true;
	e = file_load(l, at->text, at);
	l->optional = false;
	for (unsigned i = SECTION_VERSION + 1; e == 0 && index < reader->n_files && i < SECTION_COUNT; i++)
		if (i != SECTION_GRANTS && reader->files[index].sections[i])
			error_at(reader, reader->files[index].sections[i],
				 "\"%s\" cannot be here: there are grants and nothing else",
				 reader->files[index].sections[i]->text);
	return e;
}

/* errors: how many there were before this policy. */
static int read_all(struct loading *l, unsigned errors)
{
	struct reader *reader = &l->reader;
	int e = 0;

	if (reader->n_files) {
		e = read_settings(reader, &reader->files[0]);
		if (e == 0)
			e = roots_load(l, &reader->files[0]);
		if (e == 0)
			e = grants_load(l);
	}
	for (unsigned i = 0; i < l->n_order && e == 0; i++) {
		e = read_deciders(reader, &reader->files[l->order[i]]);
		if (e == 0)
			e = read_lists(reader, &reader->files[l->order[i]]);
		if (e == 0)
			e = read_grants(reader, &reader->files[l->order[i]]);
	}
	if (e == 0)
		e = shipped_read(l);
	if (e == 0)
		e = lists_link(reader);
	for (unsigned i = 0; i < l->n_order && e == 0; i++)
		e = read_credentials(reader, &reader->files[l->order[i]]);
	for (unsigned i = 0; i < l->n_order && e == 0; i++) {
		e = read_rules(reader, &reader->files[l->order[i]]);
		if (e == 0)
			e = read_full(reader, &reader->files[l->order[i]]);
	}
	if (e == 0)
		e = read_read_only(reader);
	if (e == 0 && reader->n_files)
		e = read_proxies(reader, &reader->files[0]);
	/* After an error a list may seem unused because the rule that uses it was not understood. */
	if (e == 0 && reader->problems->errors == errors)
		lists_warn(reader);
	return e == 0 ? reader_finish(reader) : e;
}

static void hash_finish(struct loading *l)
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_digest(&l->hash, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(l->reader.policy->hash + 2 * i, 3, "%02x", digest[i]);
}

static int load_load_it(struct loading *l, const char *name)
{
	struct problems *problems = l->reader.problems;
	unsigned errors = problems->errors;
	int e;

	sha256_init(&l->hash);
	e = file_load(l, name, NULL);
	if (e == 0)
		e = read_all(l, errors);
	if (e == 0 && problems->errors != errors)
		e = -EINVAL;
	if (e < 0)
		return e;
	hash_finish(l);
	e = policy_compile(l->reader.policy);
	if (e == 0 && !l->source->trusted) {
		policy_check_cover(l->reader.policy, problems);
		policy_check_unseen(l->reader.policy, problems);
		policy_check_hosts(l->reader.policy, problems);
		policy_check_credentials(l->reader.policy, problems);
	}
	return e;
}

int policy_load(const struct policy_source *source, const char *shown, const char *name, struct policy **ret,
		struct problems *problems)
{
	_free_ struct loading *l = calloc(1, sizeof(*l));
	_policy_ struct policy *policy = NULL;
	_arena_ struct arena *trees = NULL;
	unsigned errors = problems->errors;
	char path[PROBLEM_FILE_SIZE * 2];
	int e = l ? policy_new(&policy) : -ENOMEM;

	if (e == 0)
		e = arena_new(NP_POLICY_MEMORY, &trees);
	if (e == 0) {
		l->source = source;
		l->shown = shown;
		l->reader.policy = policy;
		l->reader.trees = trees;
		l->reader.problems = problems;
		e = load_load_it(l, name);
		reader_clear(&l->reader);
	}
	if (e == 0) {
		*ret = take_ptr(policy);
		return 0;
	}
	if (problems->errors == errors) {
		snprintf(path, sizeof(path), "%s%s", shown, name);
		problem_add(problems, false, path, 0, 0, "%s",
			    e == -ENOMEM ? "it takes more memory than there is for a policy" : strerror(-e));
	}
	return e;
}

struct text_source {
	const char *name, *text;
	size_t len;
};

static int text_read(void *ctx, const char *name, char **ret_text, size_t *ret_len)
{
	const struct text_source *source = ctx;
	char *copy;

	if (strcmp(name, source->name) != 0)
		return -ENOTSUP;
	copy = malloc(source->len + 1);
	if (!copy)
		return -ENOMEM;
	if (source->len)
		memcpy(copy, source->text, source->len);
	*ret_text = copy;
	*ret_len = source->len;
	return 0;
}

int policy_load_text(const char *name, const char *text, size_t len, struct policy **ret, struct problems *problems)
{
	struct text_source ctx = { name, text, len };
	const struct policy_source source = { .read = text_read, .ctx = &ctx };

	if (len > NP_POLICY_BYTES) {
		problem_add(problems, false, name, 0, 0, "cannot read it: %s", source_words(-E2BIG));
		return -E2BIG;
	}
	return policy_load(&source, "", name, ret, problems);
}

int policy_default(struct policy **ret)
{
	static const char text[] = "version: 1\n";
	_problems_ struct problems problems = { 0 };

	return policy_load_text("default", text, strlen(text), ret, &problems);
}
