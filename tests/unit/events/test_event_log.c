/* SPDX-License-Identifier: MIT */
#include "tempdir.h"
#include "vocab/limits.h"

#include <jansson.h>

#include "events/event_log.c"

static const struct keep_limits limits = KEEP_DEFAULTS;
static struct event_log *events;
static struct buf out = { .max = 8 << 20 };

static int setup(void **state)
{
	if (tempdir_make(state) < 0)
		return -1;
	return event_log_open(tempdir, &limits, &events);
}

static int teardown(void **state)
{
	event_log_close(events);
	events = NULL;
	buf_free(&out);
	return tempdir_remove(state);
}

static void reopen(void)
{
	event_log_close(events);
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
}

static uint64_t put(const char *session, unsigned reason, const char *text)
{
	struct event event = { .wall_us = 1767225600000000, .session = session, .reason = reason, .text = text };

	event_log_put(events, &event);
	return event.seq;
}

/* How many events the answer has; the first and the last seq in it. */
static unsigned query(const char *session, const char *reason, uint64_t after, unsigned limit, json_int_t *first,
		      json_int_t *last)
{
	unsigned count = 0;

	buf_clear(&out);
	assert_int_equal(event_log_query(events, session, reason, after, limit, &out), 0);
	for (char *p = out.data; p && *p; count++) {
		char *end = strchr(p, '\n');
		json_t *json;
		json_int_t seq;

		assert_non_null(end);
		json = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(json);
		seq = json_integer_value(json_object_get(json, "seq"));
		if (!count)
			*first = seq;
		else
			assert_true(seq > *last);
		*last = seq;
		json_decref(json);
		p = end + 1;
	}
	return count;
}

/* A daemon that was killed: its journal is all there, its history is not. */
static void test_the_history_gets_what_a_crash_kept_from_it(void **state)
{
	static const char hostile[] = "\",\"session\":\"eve/x\",\"reason\":\"stands\"";
	struct event_log *killed = events;
	json_int_t first, last;
	struct event many = {
		.wall_us = 1767225600123456, .session = "a/b", .reason = NP_R_MODE_NONE, .suppressed = 7
	};

	(void)state;
	put("a/b", NP_R_RAISED, hostile);
	put(NULL, NP_R_DAEMON_READY, NULL);
	assert_int_equal(query("a/b", NULL, 0, 10, &first, &last), 1); /* which stores it */
	event_log_put(events, &many);
	put("a/c", NP_R_REQUESTS_LOST, hostile);
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(query(NULL, NULL, 0, 10, &first, &last), 4);
	assert_true(first == 1 && last == 4);
	assert_int_equal(query("a/b", "mode_none", 0, 10, &first, &last), 1);
	assert_non_null(strstr(out.data, "\"suppressed\":7"));
	assert_int_equal(query("a/c", "requests_lost", 0, 10, &first, &last), 1);
	assert_int_equal(query("eve/x", NULL, 0, 10, &first, &last), 0);
	assert_int_equal(put("a/b", NP_R_RAISED, NULL), 5);
	reopen(); /* nothing comes twice */
	assert_int_equal(query(NULL, NULL, 0, 10, &first, &last), 5);
	event_log_close(killed);
}

static void test_all_three_get_the_same_line(void **state)
{
	static const char hostile[] = "a\n{\"seq\":9}\xff\xe2\x80\xae\"";
	struct event_feed *feed = NULL;
	char fed[1024] = "", *journal;

	(void)state;
	assert_int_equal(event_feed_new(events, NULL, NULL, NULL, &feed), 0);
	assert_int_equal(put("alice/demo", NP_R_RAISED, hostile), 1);
	assert_true(event_feed_read(feed, fed, sizeof(fed)) > 0);
	journal = temp_read("events.ndjson");
	assert_string_equal(fed, journal);
	assert_int_equal(event_log_query(events, NULL, NULL, 0, 10, &out), 0);
	assert_string_equal(out.data, journal);
	assert_memory_equal(journal, "{\"seq\":1,\"time\":\"2026-01-01T00:00:00.000000Z\",", 46);
	assert_ptr_equal(strchr(journal, '\n'), journal + strlen(journal) - 1);
	free(journal);
	event_feed_free(feed);
}

static void test_query_sees_what_waits(void **state)
{
	json_int_t first = 0, last = 0;

	(void)state;
	put("a/1", NP_R_RAISED, NULL);
	put("a/2", NP_R_CUT, NULL);
	put("a/1", NP_R_CUT, NULL);
	put(NULL, NP_R_DAEMON_READY, NULL);
	assert_int_equal(query(NULL, NULL, 0, 100, &first, &last), 4);
	assert_int_equal(first, 1);
	assert_int_equal(last, 4);
	put("a/1", NP_R_CUT, NULL);
	assert_int_equal(query("a/1", "cut", 0, 100, &first, &last), 2);
	assert_int_equal(first, 3);
	assert_int_equal(last, 5);
	assert_int_equal(query("a/1", NULL, 3, 100, &first, &last), 1);
	assert_int_equal(query(NULL, "lost", 0, 100, &first, &last), 0);
	assert_int_equal(event_log_query(events, NULL, "unknown", 0, 1, &out), -EINVAL);
	assert_int_equal(event_log_query(events, NULL, "", 0, 1, &out), -EINVAL);
	assert_int_equal(event_log_query(events, NULL, "Cut", 0, 1, &out), -EINVAL);
}

static void test_limit_is_bounded(void **state)
{
	json_int_t first = 0, last = 0;

	(void)state;
	for (unsigned i = 0; i < NP_EVENTS_PAGE + 50; i++)
		put(NULL, NP_R_CUT, NULL);
	assert_int_equal(query(NULL, NULL, 0, UINT32_MAX, &first, &last), NP_EVENTS_PAGE);
	assert_int_equal(first, 51);
	assert_int_equal(last, NP_EVENTS_PAGE + 50);
}

static void test_seq_goes_on(void **state)
{
	json_int_t first = 0, last = 0;

	(void)state;
	put(NULL, NP_R_CUT, NULL);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 2);
	reopen();
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 3);
	event_log_close(events); /* only the journal is left */
	unlink(temp_path("events.db"));
	unlink(temp_path("changes.ndjson"));
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 4);
	event_log_close(events); /* only the history is left */
	unlink(temp_path("events.ndjson"));
	unlink(temp_path("changes.ndjson"));
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 5);
	event_log_close(events); /* the journal has more, as after a crash that lost a batch, and a torn line */
	temp_puts("events.ndjson", "{\"seq\":70,\"x\":1}\n{\"seq\":71,\"x");
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 72);
	event_log_close(events); /* the journal has less */
	temp_puts("events.ndjson", "{\"seq\":70,\"x\":1}\n");
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 73);
	/* Those before the history was lost came back from the journal. */
	assert_int_equal(query(NULL, NULL, 0, 100, &first, &last), 7);
	assert_int_equal(first, 1);
	assert_int_equal(last, 73);
}

static void test_flush(void **state)
{
	struct event_log *other = NULL;

	(void)state;
	put(NULL, NP_R_CUT, NULL);
	event_log_flush(events, 1, 1);
	assert_int_equal(event_log_open(tempdir, &limits, &other), 0);
	assert_int_equal(event_log_query(other, NULL, NULL, 0, 10, &out), 0);
	assert_true(out.len > 0);
	event_log_close(other);
}

#define HOUR_US 3600000000ull
#define DAY_US	(24 * HOUR_US)
#define TODAY	(1767225600000000 + HOUR_US) /* an hour after what put() says */

/* How many events are gone, at that time of the wall's clock, after two looks that are so far apart by a clock that nobody sets. */
static uint64_t gone_at(uint64_t wall_us, uint64_t boot_us, uint64_t passed_us)
{
	struct keep_dropped dropped;

	event_log_flush(events, wall_us, boot_us);
	event_log_flush(events, wall_us + passed_us, boot_us + passed_us);
	assert_int_equal(event_log_dropped(events, NULL, &dropped), 0);
	return dropped.count[KEEP_CHANGE];
}

/* A clock that is set makes no event old; one that stays there does. */
static void test_age_by_a_clock_that_jumps(void **state)
{
	struct keep_limits aged = limits;
	const struct timespec then[2] = { { .tv_sec = TODAY / 1000000 }, { .tv_sec = TODAY / 1000000 } };
	struct stat st;

	(void)state;
	event_log_close(events);
	aged.total_age_us = aged.change_age_us = DAY_US;
	assert_int_equal(event_log_open(tempdir, &aged, &events), 0);
	put(NULL, NP_R_CUT, NULL);
	event_log_flush(events, TODAY, HOUR_US);
	assert_int_equal(utimensat(AT_FDCWD, temp_path("changes.ndjson"), then, 0), 0);
	assert_int_equal(gone_at(TODAY + 1000 * DAY_US, HOUR_US, HOUR_US / 2), 0);
	assert_int_equal(gone_at(TODAY, 2 * HOUR_US, 2 * HOUR_US), 0); /* and back */
	assert_int_equal(gone_at(TODAY + 1000 * DAY_US, 4 * HOUR_US, HOUR_US - 1), 0);
	assert_int_equal(stat(temp_path("changes.ndjson"), &st), 0);
	assert_int_equal(gone_at(TODAY + 1000 * DAY_US, 4 * HOUR_US, HOUR_US), 1);
	assert_int_equal(stat(temp_path("changes.ndjson"), &st), -1);
}

static json_t *first_line(const char *session, const char *reason, uint64_t after, unsigned limit)
{
	json_t *json;

	buf_clear(&out);
	assert_int_equal(event_log_query(events, session, reason, after, limit, &out), 0);
	json = json_loadb(out.data, strcspn(out.data, "\n"), 0, NULL);
	assert_non_null(json);
	return json;
}

static void assert_gap(json_t *line, json_int_t dropped, json_int_t until)
{
	bool told = strcmp(json_string_value(json_object_get(line, "reason")), "not_kept") == 0;

	assert_int_equal(told, dropped > 0);
	assert_int_equal(json_integer_value(json_object_get(line, "dropped")), dropped);
	assert_int_equal(json_integer_value(json_object_get(line, "until_seq")), until);
	assert_int_equal(json_object_get(line, "seq") == NULL, told);
	assert_int_equal(json_object_get(line, "since") != NULL, told);
	json_decref(line);
}

/* An answer that reaches back to what was not kept says so; one that does not, does not. */
static void test_gaps_are_told(void **state)
{
	struct keep_limits small = limits;
	json_int_t first = 0, last = 0;
	struct keep_dropped dropped;
	uint64_t until;

	(void)state;
	event_log_close(events);
	small.session_bytes = 4096;
	assert_int_equal(event_log_open(tempdir, &small, &events), 0);
	put("b/1", NP_R_MODE_NONE, NULL);
	put("a/1", NP_R_RAISED, NULL);
	for (unsigned i = 0; i < 100; i++)
		put("a/1", NP_R_MODE_NONE, NULL);
	put("a/1", NP_R_CUT, NULL);
	event_log_flush(events, 1, 1);
	assert_int_equal(event_log_dropped(events, "a/1", &dropped), 0);
	until = dropped.until_seq[KEEP_REFUSED];
	assert_true(dropped.count[KEEP_REFUSED] > 50 && until == 2 + dropped.count[KEEP_REFUSED]);
	assert_gap(first_line("a/1", NULL, 0, 1000), (json_int_t)dropped.count[KEEP_REFUSED], (json_int_t)until);
	assert_gap(first_line(NULL, NULL, 0, 1000), (json_int_t)dropped.count[KEEP_REFUSED], (json_int_t)until);
	assert_gap(first_line("a/1", "mode_none", 0, 1000), (json_int_t)dropped.count[KEEP_REFUSED], (json_int_t)until);
	assert_gap(first_line("a/1", NULL, until - 1, 1000), (json_int_t)dropped.count[KEEP_REFUSED],
		   (json_int_t)until);
	assert_gap(first_line("a/1", "cut", 0, 1000), 0, 0); /* no change was dropped */
	assert_gap(first_line("b/1", NULL, 0, 1000), 0, 0);
	assert_gap(first_line("a/1", NULL, until, 1000), 0, 0);
	assert_gap(first_line("a/1", NULL, 0, 3), 0, 0); /* the newest three are all there */
	assert_int_equal(query("b/1", NULL, 0, 100, &first, &last), 1);
}

static void test_changes_have_a_journal(void **state)
{
	char *text;

	(void)state;
	put("a/1", NP_R_MODE_NONE, NULL);
	put("a/1", NP_R_RAISED, NULL);
	put("a/1", NP_R_RULE_ALLOWS, NULL);
	put("a/1", NP_R_SUPPRESSED, NULL);
	put(NULL, NP_R_FAILED, NULL);
	text = temp_read("changes.ndjson");
	assert_non_null(strstr(text, "{\"seq\":2,"));
	assert_non_null(strstr(text, "{\"seq\":5,"));
	assert_null(strstr(text, "{\"seq\":1,"));
	assert_null(strstr(text, "{\"seq\":3,"));
	assert_null(strstr(text, "{\"seq\":4,"));
	free(text);
	event_log_close(events); /* nothing else is left */
	unlink(temp_path("events.db"));
	unlink(temp_path("events.ndjson"));
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	assert_int_equal(put(NULL, NP_R_CUT, NULL), 6);
}

static void test_failures_are_counted(void **state)
{
	struct event_log_stats stats;
	json_int_t first = 0, last = 0;

	(void)state;
	assert_int_equal(mkdir(temp_path("events.ndjson"), 0700), 0);
	put(NULL, NP_R_CUT, NULL);
	put(NULL, NP_R_CUT, NULL);
	event_log_stats(events, &stats);
	assert_int_equal(stats.written, 2);
	assert_int_equal(stats.journal_errors, 2);
	assert_int_equal(stats.journal_error, -EISDIR);
	assert_int_equal(stats.history_errors, 0);
	assert_int_equal(query(NULL, NULL, 0, 10, &first, &last), 2);
	assert_int_equal(rmdir(temp_path("events.ndjson")), 0);
	put(NULL, NP_R_CUT, NULL);
	event_log_stats(events, &stats);
	assert_int_equal(stats.written, 3);
	assert_int_equal(stats.journal_errors, 2);
	assert_int_equal(stats.journal_error, 0);
}

static void test_starts_without_a_usable_disk(void **state)
{
	struct event_log_stats stats;

	(void)state;
	event_log_close(events);
	assert_int_equal(unlink(temp_path("events.db")), 0);
	assert_int_equal(mkdir(temp_path("events.db"), 0700), 0);
	assert_int_equal(mkdir(temp_path("events.ndjson"), 0700), 0);
	assert_int_equal(event_log_open(tempdir, &limits, &events), 0);
	for (unsigned i = 0; i < NP_HISTORY_BATCH; i++)
		put(NULL, NP_R_CUT, NULL);
	event_log_stats(events, &stats);
	assert_int_equal(stats.journal_errors, NP_HISTORY_BATCH);
	assert_int_equal(stats.history_errors, NP_HISTORY_BATCH);
	assert_int_equal(stats.history_error, -EISDIR);
	assert_true(event_log_query(events, NULL, NULL, 0, 10, &out) < 0);
	assert_int_equal(rmdir(temp_path("events.db")), 0);
	put(NULL, NP_R_CUT, NULL);
	assert_int_equal(event_log_query(events, NULL, NULL, 0, 10, &out), 0);
	assert_true(out.len > 0);
}

static void test_open_fails(void **state)
{
	struct event_log *other = NULL;
	char dir[128];

	(void)state;
	temp_puts("file", "x");
	assert_int_equal(event_log_open(temp_path("file"), &limits, &other), -ENOTDIR);
	assert_null(other);
	strcpy(dir, temp_path("a/b/c"));
	assert_int_equal(event_log_open(dir, &limits, &other), 0);
	event_log_close(other);
	event_log_close(NULL);
}

static void test_feed_outlives_the_log(void **state)
{
	struct event_feed *feed = NULL;
	char data[1024];

	(void)state;
	assert_int_equal(event_feed_new(events, NULL, NULL, NULL, &feed), 0);
	put(NULL, NP_R_DAEMON_STOPPED, NULL);
	event_log_close(events);
	events = NULL;
	assert_true(event_feed_read(feed, data, sizeof(data)) > 0);
	assert_int_equal(event_feed_read(feed, data, sizeof(data)), 0);
	event_feed_free(feed);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_history_gets_what_a_crash_kept_from_it),
		T(test_all_three_get_the_same_line),
		T(test_query_sees_what_waits),
		T(test_limit_is_bounded),
		T(test_seq_goes_on),
		T(test_flush),
		T(test_age_by_a_clock_that_jumps),
		T(test_gaps_are_told),
		T(test_changes_have_a_journal),
		T(test_failures_are_counted),
		T(test_starts_without_a_usable_disk),
		T(test_open_fails),
		T(test_feed_outlives_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
