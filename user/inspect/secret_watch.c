/* SPDX-License-Identifier: MIT */
#include "inspect/secret_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/head.h"
#include "inspect/worker.h"
#include "policy/credential.h"

/* NULL: the policy in hand is not the one that it belongs to. */
static const struct credential *credential_of(const struct worker *worker, const struct secret *secret)
{
	return worker->policy && strcmp(worker->policy->hash, secret->policy) == 0
		       ? credential_find(worker->policy, secret->name)
		       : NULL;
}

static bool secret_passes(const struct worker *worker, const struct secret *secret)
{
	const struct credential *credential = credential_of(worker, secret);

	return credential && credential->echo == ECHO_PASSES;
}

/* Of a key that signs, its parts are what would be worth having: KEY_ID:SECRET or KEY_ID:SECRET:TOKEN. */
static bool secret_signs(const struct worker *worker, const struct secret *secret)
{
	const struct credential *credential = credential_of(worker, secret);

	for (size_t i = 0; credential && i < credential->n_slots; i++)
		if (credential->slots[i].kind == SLOT_SIGV4)
			return true;
	return false;
}

static int needles_add(struct needle *needles, size_t *n, const char *text, size_t len, uint32_t number)
{
	int r = forms_make(text, len, number, needles + *n);

	if (r > 0)
		*n += (size_t)r;
	return r < 0 ? r : 0;
}

static int needles_of(const struct worker *worker, uint32_t number, struct needle *needles, size_t *n)
{
	const struct secret *secret = &worker->secrets.items[number];
	const char *colon = secret_signs(worker, secret) ? memchr(secret->value, ':', secret->len) : NULL, *end, *token;
	int r;

	if (!colon)
		return needles_add(needles, n, secret->value, secret->len, number);
	end = secret->value + secret->len;
	token = memchr(colon + 1, ':', (size_t)(end - colon - 1));
	r = needles_add(needles, n, colon + 1, (size_t)((token ? token : end) - colon - 1), number);
	if (r == 0 && token)
		r = needles_add(needles, n, token + 1, (size_t)(end - token - 1), number);
	return r;
}

static int search_make(const struct worker *worker, bool echoes, struct search **ret)
{
	const size_t room = worker->secrets.n * 2 * FORMS_MAX;
	struct needle *needles = calloc(room + 1, sizeof(*needles));
	size_t n = 0;
	int r = needles ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < worker->secrets.n; i++)
		if (!echoes || !secret_passes(worker, &worker->secrets.items[i]))
			r = needles_of(worker, i, needles, &n);
	if (r == 0)
		r = search_new(needles, n, ret);
	else
		for (size_t i = 0; i < n; i++)
			needle_free(&needles[i]);
	free(needles);
	return r;
}

static uint32_t first_same(const struct secrets *secrets, uint32_t number)
{
	const struct secret *secret = &secrets->items[number];

	for (uint32_t i = 0; i < number; i++)
		if (secrets->items[i].len == secret->len &&
		    memcmp(secrets->items[i].value, secret->value, secret->len) == 0)
			return i;
	return number;
}

static bool any_passes(const struct worker *worker)
{
	for (size_t i = 0; i < worker->secrets.n; i++)
		if (secret_passes(worker, &worker->secrets.items[i]))
			return true;
	return false;
}

static int set_make(const struct worker *worker, struct secret_set **ret)
{
	struct secret_set *set = calloc(1, sizeof(*set));
	int r = -ENOMEM;

	if (set) {
		set->refs = 1;
		set->n = worker->secrets.n;
		set->names = calloc(set->n, sizeof(*set->names));
		set->same = calloc(set->n, sizeof(*set->same));
	}
	if (set && set->names && set->same)
		r = search_make(worker, false, &set->search);
	if (r == 0 && any_passes(worker))
		r = search_make(worker, true, &set->echoes);
	else if (r == 0)
		set->echoes = set->search;
	if (r < 0) {
		secret_set_unref(set);
		return r;
	}
	for (uint32_t i = 0; i < set->n; i++) {
		memcpy(set->names[i], worker->secrets.items[i].name, sizeof(set->names[i]));
		set->same[i] = first_same(&worker->secrets, i);
	}
	*ret = set;
	return 0;
}

int secret_watch(struct worker *worker, struct secret_set **ret)
{
	struct secret_watch *watch = &worker->secret_watch;
	const char *policy = worker->policy ? worker->policy->hash : "";
	int r = 0;

	if (watch->generation != worker->secrets.generation || strcmp(watch->policy, policy) != 0) {
		secret_watch_free(watch);
		if (worker->secrets.n)
			r = set_make(worker, &watch->set);
		if (r < 0)
			return r;
		watch->generation = worker->secrets.generation;
		memcpy(watch->policy, policy, strlen(policy) + 1);
	}
	*ret = watch->set;
	return 0;
}

void secret_watch_free(struct secret_watch *watch)
{
	scrubber_free(&watch->scrubber);
	secret_set_unref(watch->set);
	*watch = (struct secret_watch){ .generation = UINT64_MAX };
}

void secret_set_ref(struct secret_set *set)
{
	set->refs++;
}

void secret_set_unref(struct secret_set *set)
{
	if (!set || --set->refs)
		return;
	if (set->echoes != set->search)
		search_free(set->echoes);
	search_free(set->search);
	free(set->names);
	free(set->same);
	free(set);
}

struct scrubber *secret_scrubber(struct worker *worker, const struct secret_set *set)
{
	worker->secret_watch.scrubber.search = set->search;
	return &worker->secret_watch.scrubber;
}

struct scrubber *secret_echo_scrubber(struct worker *worker, const struct secret_set *set)
{
	worker->secret_watch.scrubber.search = set->echoes;
	return &worker->secret_watch.scrubber;
}

int secret_in_text(struct scrubber *scrubber, const char *text, size_t len)
{
	size_t used;

	return len < NP_SECRET_MIN ? -1 : scrub_look(scrubber, text, len, true, &used);
}

int secret_in_fields(struct scrubber *scrubber, const struct fields *fields)
{
	int found = -1;

	for (uint32_t i = 0; i < fields->n && found == -1; i++) {
		const struct field *f = &fields->items[i];

		found = secret_in_text(scrubber, f->value, f->value_len);
		if (found == -1)
			found = secret_in_text(scrubber, f->name, f->name_len);
	}
	return found;
}

int secret_in_head(struct scrubber *scrubber, const struct head *head)
{
	const char *const texts[] = { head->method, head->target, head->authority };
	int found = -1;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]) && found == -1; i++)
		if (texts[i])
			found = secret_in_text(scrubber, texts[i], strlen(texts[i]));
	return found == -1 ? secret_in_fields(scrubber, &head->fields) : found;
}

int secret_scrub_fields(struct scrubber *scrubber, const struct scrub_words *words, struct fields *fields)
{
	int all = 0;

	for (uint32_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		_buf_ struct buf out = BUF_INIT(NP_HEAD_BYTES);
		size_t used;
		int hits = 0;

		/* A name that is a secret has no placeholder: it is lower case. */
		if (secret_in_text(scrubber, field->name, field->name_len) != -1)
			return -EINVAL;
		if (field->value_len >= NP_SECRET_MIN)
			hits = scrub(scrubber, words, field->value, field->value_len, true, &out, &used);
		if (hits > 0 && fields_set(fields, i, out.data, out.len) < 0)
			hits = -ENOMEM;
		if (hits < 0)
			return hits;
		all += hits;
	}
	return all;
}
