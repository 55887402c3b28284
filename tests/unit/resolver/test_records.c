/* SPDX-License-Identifier: MIT */
#include "vocab/limits.h"
#undef NP_RECORDS_MAX
#define NP_RECORDS_MAX 4
#include "dns.h"

#include "base/cleanup.h"

#include "resolver/records.c"

static const struct zone zones[] = {
	{ "a.test", .txt = "\2hi", .ttl_s = 60 },
	{ "tcp.test", .txt = "\3far", .ttl_s = 60, .quirk = { FINE, TRUNCATED } },
	{ "alias.test", .cname = "a.test", .ttl_s = 60 },
	{ "short.test", .txt = "\2hi", .ttl_s = 0 },
	{ "long.test", .txt = "\2hi", .ttl_s = 1000000 },
	{ "none.test", .ttl_s = 60 },
	{ "servfail.test", .quirk = { FINE, FAILING } },
	{ "garbled.test", .txt = "\2hi", .quirk = { FINE, GARBLED } },
	{ "silent.test", .quirk = { FINE, SILENT } },
	{ "silent1.test", .quirk = { FINE, SILENT } },
	{ "silent2.test", .quirk = { FINE, SILENT } },
	{ "silent3.test", .quirk = { FINE, SILENT } },
	{ 0 },
};

static struct records *records;
static int on_known;
static char heard_name[64];

static void on_heard(void *ctx, const char *name, uint16_t type)
{
	assert_ptr_equal(ctx, &on_known);
	assert_int_equal(type, ns_t_txt);
	snprintf(heard_name, sizeof(heard_name), "%s", name);
	on_known++;
}

static void tick(void)
{
	records_tick(records);
}

static int setup(void **state)
{
	(void)state;
	dns_new(zones);
	assert_int_equal(records_new(dns.loop, dns.servers, on_heard, &on_known, &records), 0);
	dns.tick = tick;
	on_known = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	records_free(records);
	dns_free();
	return 0;
}

/* Not known yet; then it is. */
static struct records_known ask(const char *name)
{
	struct records_known known;
	int before = on_known;

	assert_false(records_get(records, name, ns_t_txt, &known));
	assert_int_equal(on_known, before);
	run_until(&on_known, before + 1);
	assert_string_equal(heard_name, name);
	assert_true(records_get(records, name, ns_t_txt, &known));
	return known;
}

static void expect_text(const struct records_known *known, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(known->error, 0);
	assert_int_equal(known->records.count, 1);
	assert_int_equal(known->records.len, 2 + len);
	assert_int_equal(known->records.data[1], len);
	assert_memory_equal(known->records.data + 2, text, len);
}

static void records_are_found_and_remembered(void **state)
{
	struct records_known known = ask("a.test");
	int wanted;

	(void)state;
	expect_text(&known, "\2hi");
	assert_in_range(known.ttl_s, 55, 60);
	assert_true(records_get(records, "a.test", ns_t_txt, &known));
	wanted = dns.wanted[FAMILY_V4];
	clock_skew_ns += 61 * 1000000000ull;
	known = ask("a.test");
	expect_text(&known, "\2hi");
	assert_true(dns.wanted[FAMILY_V4] > wanted);
	known = ask("tcp.test");
	expect_text(&known, "\3far");
	known = ask("alias.test");
	expect_text(&known, "\2hi");
}

static void lives_are_bounded(void **state)
{
	struct records_known known = ask("short.test");

	(void)state;
	expect_text(&known, "\2hi");
	assert_true(known.ttl_s <= NP_NAME_TTL_MIN_S);
	known = ask("long.test");
	assert_in_range(known.ttl_s, NP_NAME_TTL_MAX_S - 5, NP_NAME_TTL_MAX_S);
}

static void failures_say_why(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *words;
	} cases[] = {
		{ "none.test", -ENODATA, NULL },
		{ "missing.test", -ENOENT, NULL },
		{ "servfail.test", -EREMOTEIO, "the resolvers gave no usable answer" },
		{ "garbled.test", -EBADMSG, "the resolvers gave no usable answer" },
		{ "silent.test", -ETIMEDOUT, "the resolvers did not answer in time" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct records_known known = ask(cases[i].name);

		assert_int_equal(known.error, cases[i].error);
		assert_int_equal(known.records.count, 0);
		if (cases[i].words)
			assert_string_equal(known.words, cases[i].words);
	}
}

static void one_question_at_a_time(void **state)
{
	struct records_known known;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_false(records_get(records, "a.test", ns_t_txt, &known));
	run_until(&on_known, 1);
	assert_in_range(dns.wanted[FAMILY_V4], 1, 3); /* c-ares tries so often */
	assert_int_equal(on_known, 1);
}

static void memory_is_bounded(void **state)
{
	static const char *const silent[] = { "silent.test", "silent1.test", "silent2.test", "silent3.test" };
	struct records_known known;

	(void)state;
	ask("a.test");
	ask("none.test");
	ask("missing.test");
	ask("alias.test");
	assert_int_equal(records->count, NP_RECORDS_MAX);
	ask("tcp.test"); /* in the place of the one that was not used for longest */
	assert_int_equal(records->count, NP_RECORDS_MAX);
	ask("a.test");
	/* What is being asked for stays, and then there is no room. */
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		assert_false(records_get(records, silent[i], ns_t_txt, &known));
	assert_true(records_get(records, "a.test", ns_t_txt, &known));
	assert_int_equal(known.error, -EAGAIN);
	assert_string_equal(known.words, "too many names are being looked up");
	assert_int_equal(records->count, NP_RECORDS_MAX);
}

static void nobody_to_ask(void **state)
{
	struct records *none;
	struct records_known known;

	(void)state;
	assert_int_equal(records_new(dns.loop, "", on_heard, NULL, &none), 0);
	assert_true(records_get(none, "a.test", ns_t_txt, &known));
	assert_int_equal(known.error, -EHOSTUNREACH);
	records_tick(none);
	records_free(none);
	assert_int_equal(records_new(dns.loop, "nonsense", on_heard, NULL, &none), -EINVAL);
	/* .onion is told at once: nobody is asked, and nobody hears of it but who asks */
	assert_true(records_get(records, "a.onion", ns_t_txt, &known));
	assert_int_equal(known.error, -ENOENT);
	assert_int_equal(on_known, 0);
}

static void questions_may_be_open_at_the_end(void **state)
{
	struct records_known known;

	(void)state;
	assert_false(records_get(records, "silent.test", ns_t_txt, &known));
	run_for(30);
}

static bool is_wanted(void *ctx, const char *name, uint16_t type)
{
	assert_ptr_equal(ctx, &on_known);
	assert_int_equal(type, ns_t_txt);
	return !strcmp(name, "silent1.test");
}

static void what_nobody_wants_is_taken_back(void **state)
{
	struct records_known known;
	int before;

	(void)state;
	assert_false(records_get(records, "silent.test", ns_t_txt, &known));
	assert_false(records_get(records, "silent1.test", ns_t_txt, &known));
	run_until(&dns.wanted[FAMILY_V4], 4); /* the control: both are repeated */
	records_cancel(records, is_wanted);
	assert_false(item_find(records, "silent.test", ns_t_txt)->query.pending);
	run_for(20); /* what is in the server's socket */
	before = dns.wanted[FAMILY_V4];
	run_until(&on_known, 1);
	assert_string_equal(heard_name, "silent1.test");
	assert_int_equal(dns.wanted[FAMILY_V4], before + 1); /* the third try of the other one */
	run_for(2 * NP_RESOLVE_MS);
	assert_int_equal(on_known, 1);
	assert_false(records_get(records, "silent.test", ns_t_txt, &known)); /* it is asked for anew */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_are_found_and_remembered),
		TEST(lives_are_bounded),
		TEST(failures_say_why),
		TEST(one_question_at_a_time),
		TEST(memory_is_bounded),
		TEST(nobody_to_ask),
		TEST(questions_may_be_open_at_the_end),
		TEST(what_nobody_wants_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
