/* SPDX-License-Identifier: MIT */
#include "dns.h"

#include <seccomp.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "vocab/words.h"
#include "vocab/limits.h"

static const struct zone zones[] = {
	{ "v4.test", .text = { NULL, "192.0.2.1" }, .ttl_s = 60 },
	{ "v6.test", .text = { "2001:db8::1", NULL }, .ttl_s = 60 },
	{ "both.test", .text = { "2001:db8::1 2001:db8::2", "192.0.2.1 192.0.2.2" }, .ttl_s = 60 },
	{ "none.test", .ttl_s = 60 },
	{ "servfail.test", .quirk = { FAILING, FAILING } },
	{ "refused.test", .quirk = { REFUSING, REFUSING } },
	{ "silent.test", .quirk = { SILENT, SILENT } },
	{ "half.test", .text = { NULL, "192.0.2.1" }, .ttl_s = 60, .quirk = { SILENT, FINE } },
	{ "half-failed.test", .text = { "2001:db8::1", NULL }, .ttl_s = 60, .quirk = { FINE, FAILING } },
	{ "half-missing.test", .text = { NULL, "192.0.2.1" }, .ttl_s = 60, .quirk = { MISSING, FINE } },
	{ "tcp.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { TRUNCATED, TRUNCATED } },
	{ "broken-tcp.test", .quirk = { TRUNCATED_TWICE, TRUNCATED_TWICE } },
	{ "old.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { NO_EDNS, NO_EDNS } },
	{ "old2.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { NO_EDNS, NO_EDNS } },
	{ "alias.test", .cname = "alias2.test", .ttl_s = 90 },
	{ "alias2.test", .cname = "alias3.test", .ttl_s = 7 },
	{ "alias3.test", .text = { "2001:db8::3", "192.0.2.3" }, .ttl_s = 60 },
	{ "dangling.test", .cname = "none.test", .ttl_s = 60 },
	{ "endless.test", .cname = "endless.test", .ttl_s = 60 },
	{ "circle.test", .quirk = { CIRCLE, CIRCLE } },
	{ "short.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 0 },
	{ "long.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 1000000 },
	{ "negative.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 0x80000001 },
	{ "id.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { WRONG_ID, WRONG_ID } },
	{ "question.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60,
	  .quirk = { WRONG_QUESTION, WRONG_QUESTION } },
	{ "answer.test", .quirk = { FINE, WRONG_ANSWER } },
	{ "garbage.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { GARBAGE, GARBAGE } },
	{ "garbled.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { GARBLED, GARBLED } },
	{ "notquite.test", .text = { "2001:db8::1", "192.0.2.1" }, .ttl_s = 60, .quirk = { NOT_QUITE, NOT_QUITE } },
	{ "huge.test", .quirk = { HUGE, HUGE } },
	{ "half.test", .text = { NULL, "192.0.2.1" }, .ttl_s = 60, .quirk = { SILENT, FINE } },
	{ 0 },
};

static const char hosts_text[] = "192.0.2.80 hosted.test\n2001:db8::80 hosted.test v4.invalid\n";

static struct resolver *resolver;

static void tick(void)
{
	resolver_tick(resolver);
}

static int setup(void **state)
{
	(void)state;
	dns_new(zones);
	assert_int_equal(resolver_new(dns.loop, dns.servers, hosts_text, &resolver), 0);
	dns.tick = tick;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	resolver_free(resolver);
	dns_free();
	return 0;
}

/* -- somebody who asks --------------------------------------------------------- */

struct caller {
	struct resolution resolution;
	struct known known;
	int on_known, all;
};

static int all_told;

static void caller_heard(void *ctx, const struct known *known)
{
	struct caller *c = ctx;

	c->on_known++;
	c->known = *known;
	if (known_all(known)) {
		c->all++;
		all_told++;
		assert_false(c->resolution.waiting);
	}
}

static void caller_ask_for(struct caller *c, uint64_t owner, const char *name)
{
	*c = (struct caller){ .resolution = { .owner = owner, .on_known = caller_heard, .ctx = c } };
	c->known = *resolver_get(resolver, name, &c->resolution);
	assert_int_equal(c->on_known, 0);
	assert_int_equal(c->resolution.waiting, !known_all(&c->known));
}

static void caller_ask(struct caller *c, const char *name)
{
	caller_ask_for(c, 0, name);
}

static struct known ask(const char *name)
{
	struct caller c;

	caller_ask(&c, name);
	if (!known_all(&c.known)) {
		run_until(&c.all, 1);
		assert_int_equal(c.all, 1);
	}
	return c.known;
}

static int wanted(void)
{
	return dns.wanted[FAMILY_V6] + dns.wanted[FAMILY_V4];
}

static void expect_addresses(const struct known *known, const char *v6, const char *v4)
{
	const char *texts[] = { [FAMILY_V6] = v6, [FAMILY_V4] = v4 };

	assert_int_equal(known->error, 0);
	assert_null(known->words);
	for (enum family f = 0; f < FAMILY_COUNT; f++) {
		char text[NP_ADDRS_PER_NAME * ADDR_TEXT_SIZE] = "";

		assert_true(known->known_all_of[f]);
		for (unsigned i = 0; i < known->family[f].count; i++) {
			char one[ADDR_TEXT_SIZE];

			addr_format(&known->family[f].addrs[i], one);
			strcat(strcat(text, i ? " " : ""), one);
		}
		assert_string_equal(text, texts[f]);
	}
}

static void expect_failure(const struct known *known, int error, const char *words)
{
	assert_true(known_all(known));
	assert_int_equal(known->error, error);
	assert_string_equal(known->words, words);
	assert_int_equal(known->family[FAMILY_V6].count, 0);
	assert_int_equal(known->family[FAMILY_V4].count, 0);
}

/* -- tests --------------------------------------------------------------------- */

static void both_families_are_asked_for(void **state)
{
	struct known known;

	(void)state;
	known = ask("v4.test");
	expect_addresses(&known, "", "192.0.2.1");
	known = ask("v6.test");
	expect_addresses(&known, "2001:db8::1", "");
	known = ask("both.test");
	expect_addresses(&known, "2001:db8::1 2001:db8::2", "192.0.2.1 192.0.2.2");
	assert_int_equal(dns.wanted[FAMILY_V6], 3);
	assert_int_equal(dns.wanted[FAMILY_V4], 3);
	assert_int_equal(dns.with_edns, 6);
	assert_int_equal(dns.over_tcp, 0);
}

static void failures_have_words(void **state)
{
	struct known known;

	(void)state;
	known = ask("missing.test");
	expect_failure(&known, -ENOENT, "the name does not exist");
	known = ask("none.test");
	expect_failure(&known, -ENOENT, "the name has no address");
	known = ask("servfail.test");
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
	known = ask("refused.test");
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
	known = ask("hidden.onion");
	expect_failure(&known, -ENOENT, "the name does not exist");
}

static void one_family_is_enough(void **state)
{
	struct known known;

	(void)state;
	known = ask("half-failed.test");
	expect_addresses(&known, "2001:db8::1", "");
	known = ask("half-missing.test");
	expect_addresses(&known, "", "192.0.2.1");
}

static void silence_ends(void **state)
{
	uint64_t start = loop_now_ns();
	struct known known;
	unsigned ms;
	int before;

	(void)state;
	known = ask("silent.test");
	ms = (unsigned)((loop_now_ns() - start) / NS_PER_MS);
	expect_failure(&known, -ETIMEDOUT, "the resolvers did not answer in time");
	if (ms + 20 < NP_RESOLVE_MS || ms > NP_RESOLVE_MS + 300)
		fail_msg("after %u ms", ms);
	assert_int_equal(wanted(), 6); /* three tries each */

	/* It is remembered, and then asked again. */
	before = wanted();
	known = ask("silent.test");
	expect_failure(&known, -ETIMEDOUT, "the resolvers did not answer in time");
	assert_int_equal(wanted(), before);
	run_for(NP_RESOLVE_MS);
	clock_skew_ns += NP_NAME_FAILED_S * NS_PER_S;
	ask("silent.test");
	assert_true(wanted() > before);
}

/* What one family has is told while the other is silent. */
static void half_an_answer_is_told(void **state)
{
	struct caller first, second;

	(void)state;
	caller_ask(&first, "half.test");
	run_until(&first.on_known, 1);
	assert_true(first.known.known_all_of[FAMILY_V4]);
	assert_false(first.known.known_all_of[FAMILY_V6]);
	assert_int_equal(first.known.family[FAMILY_V4].count, 1);
	assert_int_equal(first.known.error, 0);

	caller_ask(&second, "half.test"); /* late, and knows as much */
	assert_int_equal(second.known.family[FAMILY_V4].count, 1);
	run_until(&second.all, 1);
	expect_addresses(&first.known, "", "192.0.2.1");
	expect_addresses(&second.known, "", "192.0.2.1");
	assert_int_equal(dns.wanted[FAMILY_V4], 1);
}

static void truncated_answers_come_by_tcp(void **state)
{
	struct known known = ask("tcp.test");

	(void)state;
	expect_addresses(&known, "2001:db8::1", "192.0.2.1");
	assert_int_equal(dns.over_tcp, 2);
	known = ask("broken-tcp.test");
	assert_true(known.error < 0 && known.words);
}

static void huge_answers_are_cut(void **state)
{
	struct known known = ask("huge.test");

	(void)state;
	assert_int_equal(known.error, 0);
	assert_int_equal(known.family[FAMILY_V6].count, NP_ADDRS_PER_NAME);
	assert_int_equal(known.family[FAMILY_V4].count, NP_ADDRS_PER_NAME);
	assert_int_equal(dns.over_tcp, 2);
}

static void servers_without_edns_work(void **state)
{
	struct known known = ask("old.test");

	(void)state;
	expect_addresses(&known, "2001:db8::1", "192.0.2.1");
	known = ask("old2.test");
	expect_addresses(&known, "2001:db8::1", "192.0.2.1");
	dns.with_edns = 0;
	known = ask("v4.test");
	expect_addresses(&known, "", "192.0.2.1");
	assert_int_equal(dns.with_edns, 0);
}

static void aliases_are_followed(void **state)
{
	struct known known = ask("alias.test");
	int before = wanted();

	(void)state;
	expect_addresses(&known, "2001:db8::3", "192.0.2.3");
	/* They hold as long as the shortest of the chain. */
	clock_skew_ns += 7 * NS_PER_S - NS_PER_S / 2;
	ask("alias.test");
	assert_int_equal(wanted(), before);
	clock_skew_ns += NS_PER_S / 2;
	ask("alias.test");
	assert_int_equal(wanted(), before + 2);

	known = ask("dangling.test");
	expect_failure(&known, -ENOENT, "the name has no address");
	known = ask("circle.test");
	expect_failure(&known, -ENOENT, "the name has no address");
	known = ask("endless.test"); /* 40 aliases */
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
}

static void expect_life(const char *name, unsigned s)
{
	int before;

	ask(name);
	before = wanted();
	clock_skew_ns += s * NS_PER_S - NS_PER_S / 2;
	ask(name);
	if (wanted() != before)
		fail_msg("%s was asked for too early", name);
	clock_skew_ns += NS_PER_S / 2;
	ask(name);
	if (wanted() != before + 2)
		fail_msg("%s was not asked for again", name);
}

static void names_live_as_long_as_they_say(void **state)
{
	(void)state;
	expect_life("v4.test", 60); /* that it has no v6 is known as long */
	expect_life("v6.test", 60);
	expect_life("both.test", 60);
	expect_life("short.test", NP_NAME_TTL_MIN_S);
	expect_life("negative.test", NP_NAME_TTL_MIN_S);
	expect_life("long.test", NP_NAME_TTL_MAX_S);
	expect_life("missing.test", NP_NAME_FAILED_S);
	expect_life("none.test", NP_NAME_FAILED_S);
}

static void hostile_answers_are_seen_through(void **state)
{
	static const char *const names[] = { "id.test", "question.test", "garbage.test" };
	struct known known;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		known = ask(names[i]);
		expect_addresses(&known, "2001:db8::1", "192.0.2.1");
	}
	known = ask("answer.test");
	expect_failure(&known, -ENOENT, "the name has no address");
	known = ask("garbled.test");
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
	known = ask("notquite.test");
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
	known = ask("v4.test");
	expect_addresses(&known, "", "192.0.2.1");
}

static void one_question_serves_all(void **state)
{
	struct caller callers[50];

	(void)state;
	all_told = 0;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		caller_ask(&callers[i], "both.test");
	run_until(&all_told, ARRAY_SIZE(callers));
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		expect_addresses(&callers[i].known, "2001:db8::1 2001:db8::2", "192.0.2.1 192.0.2.2");
		assert_int_equal(callers[i].all, 1);
	}
	assert_int_equal(wanted(), 2);
}

static struct caller *to_cancel;

static void caller_heard_and_cancels(void *ctx, const struct known *known)
{
	struct caller *c = ctx;

	caller_heard(c, known);
	resolution_cancel(&c->resolution);
	resolution_cancel(&to_cancel->resolution);
}

static void nobody_hears_after_cancel(void **state)
{
	struct caller callers[3], last;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		caller_ask(&callers[i], "half.test");
	to_cancel = &callers[0]; /* the last one is told first */
	callers[2].resolution.on_known = caller_heard_and_cancels;
	resolution_cancel(&callers[1].resolution);
	resolution_cancel(&callers[1].resolution);
	run_until(&callers[2].on_known, 1);
	caller_ask(&last, "half.test");
	run_until(&last.all, 1);
	assert_int_equal(callers[0].on_known, 0);
	assert_int_equal(callers[1].on_known, 0);
	assert_int_equal(callers[2].on_known, 1);
}

static void the_memory_is_bounded(void **state)
{
	struct known known;
	char name[32];

	(void)state;
	ask("v4.test");
	for (int i = 0; i < 3 * NP_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		ask(name);
		assert_true(resolver->entries.count <= NP_NAMES_MAX);
		ask("v4.test"); /* in use, and so never forgotten */
	}
	assert_int_equal(dns.wanted[FAMILY_V4], 1 + 3 * NP_NAMES_MAX);
	snprintf(name, sizeof(name), "n%d.test", 3 * NP_NAMES_MAX - 1);
	ask(name);
	assert_int_equal(dns.wanted[FAMILY_V4], 1 + 3 * NP_NAMES_MAX);
	known = ask("n0.test"); /* long gone */
	assert_int_equal(known.error, -ENOENT);
	assert_int_equal(dns.wanted[FAMILY_V4], 2 + 3 * NP_NAMES_MAX);
}

static void too_many_at_once_are_refused(void **state)
{
	static struct zone silent[NP_NAMES_MAX + 2];
	static char names[NP_NAMES_MAX + 1][32];
	static struct caller callers[NP_NAMES_MAX + 1];
	struct known known;

	(void)state;
	for (int i = 0; i <= NP_NAMES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "s%d.test", i);
		silent[i] = (struct zone){ .name = names[i] }; /* one of the families is enough to be busy */
		silent[i].quirk[i % 2 ? FAMILY_V4 : FAMILY_V6] = SILENT;
	}
	dns.zones = silent;
	all_told = 0;
	for (int i = 0; i < NP_NAMES_MAX; i++)
		caller_ask(&callers[i], names[i]);
	caller_ask(&callers[NP_NAMES_MAX], names[NP_NAMES_MAX]);
	expect_failure(&callers[NP_NAMES_MAX].known, -EAGAIN, "too many names are being looked up");
	run_until(&dns.wanted[FAMILY_V4], NP_NAMES_MAX);
	run_for(20);
	clock_skew_ns += NP_RESOLVE_MS * NS_PER_MS; /* the time is up, but c-ares does not know */
	run_until(&all_told, NP_NAMES_MAX);
	expect_failure(&callers[0].known, -ETIMEDOUT, "the resolvers did not answer in time");
	known = ask("v4.test");
	expect_failure(&known, -EAGAIN, "too many names are being looked up");
	run_for(2 * NP_RESOLVE_MS);
	dns.zones = zones;
	known = ask("v4.test");
	expect_addresses(&known, "", "192.0.2.1");
}

/* Whoever asks for names that nobody answers for takes no room from others. */
static void each_owner_has_a_share(void **state)
{
	static struct zone silent[NP_NAMES_PER_OWNER + 2];
	static char names[NP_NAMES_PER_OWNER + 1][32];
	static struct caller callers[NP_NAMES_PER_OWNER + 1];
	struct caller other;

	(void)state;
	for (int i = 0; i <= NP_NAMES_PER_OWNER; i++) {
		snprintf(names[i], sizeof(names[i]), "s%d.test", i);
		silent[i] = (struct zone){ .name = names[i], .quirk = { SILENT, SILENT } };
	}
	dns.zones = silent;
	all_told = 0;
	for (int i = 0; i <= NP_NAMES_PER_OWNER; i++)
		caller_ask_for(&callers[i], 7, names[i]);
	expect_failure(&callers[NP_NAMES_PER_OWNER].known, -EAGAIN, "too many names are being looked up");
	caller_ask_for(&other, 7, names[0]); /* what is looked up already costs nothing more */
	assert_true(other.resolution.waiting);
	resolution_cancel(&other.resolution);
	caller_ask_for(&other, 8, names[NP_NAMES_PER_OWNER]);
	assert_true(other.resolution.waiting);
	assert_int_equal(resolver->shares.by_owner.count, 2);
	run_until(&all_told, NP_NAMES_PER_OWNER + 1);
	run_for(2 * NP_RESOLVE_MS); /* c-ares knows it, too */
	assert_int_equal(resolver->shares.by_owner.count, 0);
	dns.zones = zones;
	caller_ask_for(&other, 7, "v4.test");
	run_until(&other.all, 1);
	expect_addresses(&other.known, "", "192.0.2.1");
	assert_int_equal(resolver->shares.by_owner.count, 0);
}

static void a_late_answer_is_of_use(void **state)
{
	static const uint8_t found[] = "\0\1\x81\x80\0\1\0\1\0\0\0\0\6silent\4test\0\0\1\0\1"
				       "\xc0\x0c\0\1\0\1\0\0\0\74\0\4\300\0\2\7";
	struct known known = ask("silent.test");
	struct entry *e = entry_find(resolver, "silent.test", hash_bytes(&resolver->key, "silent.test", 11));

	(void)state;
	expect_failure(&known, -ETIMEDOUT, "the resolvers did not answer in time");
	query_done(&e->queries[FAMILY_V6], -EREMOTEIO, NULL, 0);
	query_done(&e->queries[FAMILY_V4], 0, found, sizeof(found) - 1);
	known = ask("silent.test");
	expect_addresses(&known, "", "192.0.2.7");
	run_for(20);
	assert_true(e->idle || e->queries[FAMILY_V6].pending || e->queries[FAMILY_V4].pending);
}

static void hosts_come_first(void **state)
{
	struct known known = ask("hosted.test");

	(void)state;
	expect_addresses(&known, "2001:db8::80", "192.0.2.80");
	known = ask("v4.invalid");
	expect_addresses(&known, "2001:db8::80", "");
	known = ask("localhost");
	expect_addresses(&known, "::1", "127.0.0.1");
	assert_int_equal(wanted(), 0);
}

static void without_resolvers_there_are_only_hosts(void **state)
{
	struct resolver *with = resolver;
	struct known known;

	(void)state;
	assert_int_equal(resolver_new(dns.loop, "", hosts_text, &resolver), 0);
	known = ask("v4.test");
	expect_failure(&known, -EHOSTUNREACH, "there is no resolver to ask");
	known = ask("hosted.test");
	expect_addresses(&known, "2001:db8::80", "192.0.2.80");
	resolver_tick(resolver);
	resolver_free(resolver);
	resolver = with;
}

static void bad_settings_are_refused(void **state)
{
	struct resolver *r = NULL;
	char *text = malloc(NP_HOSTS_BYTES + 2);

	(void)state;
	assert_int_equal(resolver_new(dns.loop, "not an address", NULL, &r), -EINVAL);
	assert_non_null(text);
	memset(text, '#', NP_HOSTS_BYTES + 1);
	text[NP_HOSTS_BYTES + 1] = '\0';
	assert_int_equal(resolver_new(dns.loop, dns.servers, text, &r), -E2BIG);
	assert_null(r);
	free(text);
	assert_int_equal(resolver_new(dns.loop, "127.0.0.1,[::1]:5353,127.0.0.2:54", NULL, &r), 0);
	resolver_free(r);
}

static void a_dead_resolver_is_passed_over(void **state)
{
	struct resolver *alone = resolver;
	char servers[128];
	struct known known;

	(void)state;
	snprintf(servers, sizeof(servers), "127.0.0.1:9,%s", dns.servers);
	assert_int_equal(resolver_new(dns.loop, servers, NULL, &resolver), 0);
	known = ask("both.test");
	expect_addresses(&known, "2001:db8::1 2001:db8::2", "192.0.2.1 192.0.2.2");
	resolver_free(resolver);

	assert_int_equal(resolver_new(dns.loop, "127.0.0.1:9", NULL, &resolver), 0);
	known = ask("both.test");
	expect_failure(&known, -EREMOTEIO, "the resolvers gave no usable answer");
	resolver_free(resolver);
	resolver = alone;
}

static void questions_may_be_open_at_the_end(void **state)
{
	struct caller c;

	(void)state;
	caller_ask(&c, "silent.test");
	run_for(30);
	resolution_cancel(&c.resolution);
}

/* A name that is resolved for nobody any more is asked for again until it is cancelled, and not once after that. */
static void what_nobody_wants_is_taken_back(void **state)
{
	struct caller gone, stays;
	struct known known;
	int before;

	(void)state;
	caller_ask(&gone, "silent.test");
	run_until(&dns.wanted[FAMILY_V4], 1);
	resolution_cancel(&gone.resolution);
	run_until(&dns.wanted[FAMILY_V4], 2); /* the control: it is repeated */
	caller_ask(&stays, "silent.test");
	resolver_cancel(resolver);
	assert_false(LIST_EMPTY(&resolver->nameservers->pending)); /* somebody waits */
	resolution_cancel(&stays.resolution);
	resolver_cancel(resolver);
	assert_true(LIST_EMPTY(&resolver->nameservers->pending));
	run_for(20); /* what is in the server's socket */
	before = wanted();
	run_for(2 * NP_RESOLVE_MS);
	assert_int_equal(wanted(), before);
	/* It is no failure that others would be told of. */
	known = ask("silent.test");
	expect_failure(&known, -ETIMEDOUT, "the resolvers did not answer in time");
	assert_int_equal(wanted(), before + 6);
}

/* What is known of one family is not lost with the other. */
static void half_an_answer_is_kept(void **state)
{
	struct caller c;
	struct known known;

	(void)state;
	caller_ask(&c, "half.test");
	run_until(&c.on_known, 1);
	assert_true(c.known.known_all_of[FAMILY_V4] && !c.known.known_all_of[FAMILY_V6]);
	resolution_cancel(&c.resolution);
	resolver_cancel(resolver);
	known = ask("half.test");
	expect_addresses(&known, "", "192.0.2.1");
	assert_int_equal(dns.wanted[FAMILY_V4], 1);
}

static int query_error;

static void query_noted(struct query *query, int error, const uint8_t *data, size_t len)
{
	(void)query, (void)data, (void)len;
	query_error = error;
}

static void c_ares_fails_in_many_ways(void **state)
{
	static const struct {
		int status, error;
	} cases[] = {
		{ ARES_ETIMEOUT, -ETIMEDOUT }, { ARES_ECONNREFUSED, -EREMOTEIO }, { ARES_ESERVFAIL, -EREMOTEIO },
		{ ARES_ENOMEM, -EREMOTEIO },   { ARES_SUCCESS, -EREMOTEIO }, /* without a message */
	};
	struct query query = {
		.nameservers = resolver->nameservers, .name = "any.test", .type = ns_t_a, .known_all_of = query_noted
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		query_error = 1;
		query.pending = true;
		query.transmission = transmission_new(resolver->nameservers);
		LIST_INSERT_HEAD(&query.transmission->queries, &query, of_transmission);
		query_answered(&query, cases[i].status, 0, NULL, 0);
		assert_int_equal(query_error, cases[i].error);
		assert_false(query.pending);
	}
	assert_true(LIST_EMPTY(&resolver->nameservers->pending));
}

/* As it is in its process: no file can be opened, and yet the ids are not those of c-ares without /dev/urandom. */
static void child_without_files(int to)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	struct resolver *r;
	struct known known;
	char name[32];

	if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(openat), 0) ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(open), 0) || seccomp_load(filter))
		_exit(2);
	if (resolver_new(dns.loop, dns.servers, NULL, &r) < 0)
		_exit(3);
	resolver = r;
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		ask(name);
	}
	known = ask("tcp.test");
	if (known.error || dns.n_ids < 8 || write(to, dns.ids, 8 * sizeof(dns.ids[0])) != 8 * sizeof(dns.ids[0]))
		_exit(4);
	_exit(0);
}

static void it_needs_no_files(void **state)
{
	uint16_t ids[2][8];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fds[2], status;
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child_without_files(fds[1]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(read(fds[0], ids[i], sizeof(ids[i])), sizeof(ids[i]));
		close(fds[0]);
		close(fds[1]);
	}
	assert_memory_not_equal(ids[0], ids[1], sizeof(ids[0]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(both_families_are_asked_for),
		TEST(what_nobody_wants_is_taken_back),
		TEST(half_an_answer_is_kept),
		TEST(failures_have_words),
		TEST(one_family_is_enough),
		TEST(silence_ends),
		TEST(half_an_answer_is_told),
		TEST(truncated_answers_come_by_tcp),
		TEST(huge_answers_are_cut),
		TEST(servers_without_edns_work),
		TEST(aliases_are_followed),
		TEST(names_live_as_long_as_they_say),
		TEST(hostile_answers_are_seen_through),
		TEST(one_question_serves_all),
		TEST(nobody_hears_after_cancel),
		TEST(the_memory_is_bounded),
		TEST(too_many_at_once_are_refused),
		TEST(each_owner_has_a_share),
		TEST(a_late_answer_is_of_use),
		TEST(hosts_come_first),
		TEST(without_resolvers_there_are_only_hosts),
		TEST(bad_settings_are_refused),
		TEST(a_dead_resolver_is_passed_over),
		TEST(questions_may_be_open_at_the_end),
		TEST(c_ares_fails_in_many_ways),
		TEST(it_needs_no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
