/* SPDX-License-Identifier: MIT */
/*
 * decide [RULES ...]: how long a policy of so many host rules takes to load, and a decision by it: one behind the
 * other, and with other work in between that leaves nothing in the caches next to the core. Beside it a plain hash table
 * that knows the same names and nothing else. All sizes take turns. One JSON list on stdout.
 */
#include "bench.h"

#include "policy/decide.h"
#include "vocab/limits.h"

#define SIZES_MAX 8
#define ROUNDS	  15
#define BATCH	  200000
#define NAME_ROOM 48
#define COLD	  100	     /* decisions in a round with other work in between */
#define WORK	  (4u << 20) /* bytes of that work: more than a core's own caches hold */

struct slot {
	uint64_t hash;
	const char *name; /* NULL: free */
};

struct size {
	unsigned rules;
	char (*names)[NAME_ROOM];
	struct policy *policy;
	struct slot *slots; /* the plain table */
	size_t mask;
	double load_ms, decide_ns[ROUNDS], plain_ns[ROUNDS], cold_ns[ROUNDS * COLD];
};

static uint64_t chance_state = 1;

static uint32_t chance(uint32_t n)
{
	chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((chance_state >> 33) % n);
}

static void names_make(struct size *s)
{
	s->names = calloc(s->rules, NAME_ROOM);
	if (!s->names)
		err(1, "memory");
	/* The odd number spreads them: neighbours in the file are none by name. */
	for (unsigned i = 0; i < s->rules; i++)
		snprintf(s->names[i], NAME_ROOM, "svc-%05x.d%03x.example.com", i * 40503u & 0xfffff, i % 1000);
}

static void policy_make(struct size *s)
{
	_problems_ struct problems problems = { 0 };
	char *text = malloc(64 + s->rules * (NAME_ROOM + 16)), *at = text, line[PROBLEM_LINE_SIZE];
	uint64_t start;

	if (!text)
		err(1, "memory");
	at += sprintf(at, "version: 1\nrules:\n");
	for (unsigned i = 0; i < s->rules; i++)
		at += sprintf(at, "- allow: %s\n", s->names[i]);
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (policy_load_text("bench.yaml", text, (size_t)(at - text), &s->policy, &problems) < 0) {
		problems_first(&problems, line);
		errx(1, "%s", line);
	}
	s->load_ms = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
	free(text);
}

static uint64_t fnv1a(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

static bool plain_has(const struct size *s, const char *name)
{
	uint64_t hash = fnv1a(name);

	for (size_t i = hash & s->mask; s->slots[i].name; i = (i + 1) & s->mask)
		if (s->slots[i].hash == hash && strcmp(s->slots[i].name, name) == 0)
			return true;
	return false;
}

static void plain_make(struct size *s)
{
	for (s->mask = 15; s->mask < 2 * (size_t)s->rules; s->mask = 2 * s->mask + 1)
		;
	s->slots = calloc(s->mask + 1, sizeof(*s->slots));
	if (!s->slots)
		err(1, "memory");
	for (unsigned i = 0; i < s->rules; i++) {
		uint64_t hash = fnv1a(s->names[i]);
		size_t k = hash & s->mask;

		while (s->slots[k].name)
			k = (k + 1) & s->mask;
		/* A copy, as a table that outlives its input has it. */
		s->slots[k] = (struct slot){ hash, strdup(s->names[i]) };
	}
}

/* One behind the other, as names come in that have just been read from the wire. */
static void arrivals_make(const struct size *s, char (*arrivals)[NAME_ROOM])
{
	for (unsigned i = 0; i < BATCH; i++)
		memcpy(arrivals[i], s->names[chance(s->rules)], NAME_ROOM);
}

static const struct facts request = { .rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL },
				      .protocol = PATTERN_TCP,
				      .port = 443,
				      .method = "GET",
				      .path = "/v1/things?page=2" };

static double decide_batch(const struct size *s, char (*arrivals)[NAME_ROOM])
{
	struct facts facts = request;
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned allowed = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		facts.name = arrivals[i];
		allowed += policy_decide(s->policy, &facts).action == ACTION_ALLOW;
	}
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (allowed != BATCH)
		errx(1, "%u rules allowed %u of %u", s->rules, allowed, BATCH);
	return (double)start / BATCH;
}

static void cold_batch(const struct size *s, char (*arrivals)[NAME_ROOM], double *ns)
{
	static volatile char work[WORK];
	struct facts facts = request;

	for (unsigned i = 0; i < COLD; i++) {
		uint64_t start;

		for (size_t k = 0; k < WORK; k += 64)
			work[k]++;
		facts.name = arrivals[i];
		start = clock_ns(CLOCK_MONOTONIC); /* read without a system call */
		if (policy_decide(s->policy, &facts).action != ACTION_ALLOW)
			errx(1, "%u rules do not allow %s", s->rules, facts.name);
		ns[i] = (double)(clock_ns(CLOCK_MONOTONIC) - start);
	}
}

static double plain_batch(const struct size *s, char (*arrivals)[NAME_ROOM])
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned found = 0;

	for (unsigned i = 0; i < BATCH; i++)
		found += plain_has(s, arrivals[i]);
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (found != BATCH)
		errx(1, "the plain table has %u of %u", found, BATCH);
	return (double)start / BATCH;
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), double_compare);
	return values[n / 2];
}

int main(int argc, char **argv)
{
	static struct size sizes[SIZES_MAX] = { { .rules = 10 }, { .rules = 1000 }, { .rules = 100000 } };
	char(*arrivals)[NAME_ROOM] = calloc(BATCH, NAME_ROOM);
	int n = argc > 1 ? argc - 1 : 3;

	if (!arrivals || n > SIZES_MAX)
		errx(1, "too many sizes");
	for (int i = 0; i < n; i++) {
		if (argc > 1)
			sizes[i].rules = (unsigned)strtoul(argv[i + 1], NULL, 10);
		if (!sizes[i].rules || sizes[i].rules > NP_POLICY_RULES)
			errx(1, "no number of rules: %s", argv[i + 1]);
		names_make(&sizes[i]);
		policy_make(&sizes[i]);
		plain_make(&sizes[i]);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < n; i++) {
			arrivals_make(&sizes[i], arrivals);
			sizes[i].decide_ns[round] = decide_batch(&sizes[i], arrivals);
			sizes[i].plain_ns[round] = plain_batch(&sizes[i], arrivals);
			cold_batch(&sizes[i], arrivals, sizes[i].cold_ns + round * COLD);
		}
	for (int i = 0; i < n; i++) {
		double ns = median(sizes[i].decide_ns, ROUNDS);

		printf("%s{\"rules\": %u, \"load_ms\": %.1f, \"decisions_per_s\": %.0f, \"ns_per_decision\": %.1f, "
		       "\"cold_ns\": %.1f, \"baseline_ns\": %.1f}",
		       i ? ",\n " : "[", sizes[i].rules, sizes[i].load_ms, 1e9 / ns, ns,
		       median(sizes[i].cold_ns, (size_t)ROUNDS * COLD), median(sizes[i].plain_ns, ROUNDS));
	}
	printf("]\n");
	return 0;
}
