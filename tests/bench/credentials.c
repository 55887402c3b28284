/* SPDX-License-Identifier: MIT */
/*
 * credentials: what the stage of credentials does to the head of a request, by how many credentials the policy binds to its host:
 * a head without a placeholder, which is only looked at, and one with it. One JSON list on stdout.
 */
#include "bench.h"

#include "policy/policy.h"
#include "secrets/slots.h"

#define ROUNDS 15
#define BATCH  20000

static const char *const heads[][2] = {
	{ "accept", "application/vnd.github+json" },
	{ "user-agent",
	  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36" },
	{ "accept-language", "en-US,en;q=0.9,de;q=0.8" },
	{ "x-github-api-version", "2022-11-28" },
	{ "cookie", "session=0123456789abcdef0123456789abcdef; theme=dark; tz=Europe%2FBerlin; consent=yes" },
	{ "content-type", "application/json; charset=utf-8" },
	{ "x-request-id", "6f9619ff-8b86-d011-b42d-00cf4fc964ff" },
};
#define N_HEADS (sizeof(heads) / sizeof(heads[0]))

static char value_text[] = "ghp_bench89abcdefghijABCDEFGHIJ012345678";
static const struct secret value = { .value = value_text, .len = sizeof(value_text) - 1 };

static const struct secret *on_found(void *ctx, const struct placeholder *placeholder, const struct slot_place *place)
{
	const struct policy *policy = ctx;

	return slot_fits(&policy->credentials[placeholder->credential], place) ? &value : NULL;
}

static void head_pass(const struct slot_finder *finder, const char *authorization)
{
	static const char target[] = "/repos/torvalds/linux/issues?state=open&per_page=100&page=3";
	struct buf out = BUF_INIT(64u << 10);
	int r = 0;

	for (size_t i = 0; i < N_HEADS; i++)
		r |= slot_header(finder, heads[i][0], strlen(heads[i][0]), heads[i][1], strlen(heads[i][1]), &out);
	r |= slot_header(finder, "authorization", 13, authorization, strlen(authorization), &out);
	r |= slot_target(finder, target, strlen(target), &out);
	if (r < 0)
		errx(1, "refused");
	buf_wipe(&out);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double measure(const struct slot_finder *finder, const char *authorization)
{
	double ns[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

		for (unsigned i = 0; i < BATCH; i++)
			head_pass(finder, authorization);
		ns[round] = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / BATCH;
	}
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return ns[ROUNDS / 2];
}

int main(void)
{
	static const unsigned sizes[] = { 1, 10, 100 };
	static const struct placeholder_key key = { .bytes = { 1 } };

	printf("[");
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		_problems_ struct problems problems = { 0 };
		struct placeholder_set *set = NULL;
		struct slot_finder finder = { .value = on_found };
		struct policy *policy = NULL;
		char *text = malloc(256 * (sizes[s] + 1)), *at = text, authorization[256];

		at += sprintf(at, "version: 1\ncredentials:\n");
		for (unsigned i = 0; i < sizes[s]; i++)
			at += sprintf(
				at, "  c%u: {source: {env: C%u}, for: api.example, placeholder: {like: 'ghp_{36}'}}\n",
				i, i);
		if (policy_load_text("bench.yaml", text, (size_t)(at - text), &policy, &problems) < 0 ||
		    placeholder_set_new(policy, &key, "alice/demo", &set) < 0)
			errx(1, "the policy");
		finder.set = set;
		finder.ctx = policy;
		snprintf(authorization, sizeof(authorization), "Bearer %s", set->items[sizes[s] / 2].text);
		printf("%s{\"credentials\":%u,\"look_ns\":%.1f,\"replace_ns\":%.1f}", s ? "," : "", sizes[s],
		       measure(&finder, "Bearer nothing-of-ours"), measure(&finder, authorization));
		placeholder_set_free(set);
		policy_free(policy);
		free(text);
	}
	puts("]");
	return 0;
}
