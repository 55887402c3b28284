/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/cursor.c"
#include "exporter/pump.c"

/* The daemon, which has gone. */
static unsigned readies;
static int place = -1;
static struct cursor at_ready;
int daemon_get(const char *path, const char *accept, struct client_answer *ret)
{
	(void)path;
	(void)accept;
	(void)ret;
	return -EPIPE;
}
void daemon_ready(void)
{
	readies++;
	assert_int_equal(cursor_open(&at_ready, place), 0);
}
void daemon_report(const struct export_state *state)
{
	(void)state;
}
bool daemon_wait(int ms)
{
	(void)ms;
	return true;
}

static struct page page;
static uint64_t known;

static int page_of(uint64_t after, const char *text)
{
	page_free(&page);
	return page_read(text, strlen(text), after, &known, &page);
}

static void test_events_in_a_row(void **state)
{
	(void)state;
	known = 0;
	assert_int_equal(page_of(4, "{\"seq\":5}\n{\"seq\":6}\n"), 0);
	assert_int_equal(page.n, 2);
	assert_int_equal(page.last, 6);
	assert_int_equal(page.missed, 0);
	assert_int_equal(page_of(6, ""), 0);
	assert_int_equal(page.n, 0);
	assert_int_equal(page.last, 6);
}

static void test_a_hole_is_an_event_of_its_own(void **state)
{
	(void)state;
	known = 0;
	assert_int_equal(page_of(4, "{\"seq\":5}\n{\"seq\":9}\n"), 0);
	assert_int_equal(page.n, 3);
	assert_int_equal(page.missed, 3);
	assert_string_equal(member_text(page.events[1], "reason"), "lost");
	assert_string_equal(member_text(page.events[1], "message"), "events 6 to 8 are not in the record");
	assert_int_equal(member_number(page.events[1], "suppressed"), 3);
}

static void test_what_was_not_kept_is_told_once(void **state)
{
	static const char text[] =
		"{\"reason\":\"not_kept\",\"dropped\":7,\"until_seq\":30}\n{\"seq\":12}\n{\"seq\":31}\n";

	(void)state;
	known = 0;
	assert_int_equal(page_of(4, text), 0);
	assert_int_equal(page.n, 3); /* and no hole: it explains them */
	assert_int_equal(page.missed, 7);
	assert_int_equal(known, 30);
	assert_int_equal(page_of(4, text), 0);
	assert_int_equal(page.n, 2);
}

static void test_what_is_no_event_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(page_of(4, "{\"seq\":5}\nx\n"), -EPROTO);
	assert_int_equal(page.n, 0);
	assert_int_equal(page_of(4, "[]\n"), -EPROTO);
}

static void test_a_failure_waits_longer_each_time(void **state)
{
	struct pump pump = { 0 };
	unsigned before = 0;

	(void)state;
	for (pump.failures = 1; pump.failures < 40; pump.failures++) {
		const unsigned ms = pump_backoff(&pump, 0);

		assert_true(ms >= NP_EXPORT_BACKOFF_MS && ms <= NP_EXPORT_BACKOFF_MAX_MS * 9 / 8);
		assert_true(pump.failures > 6 || ms > before);
		before = ms;
	}
	assert_in_range(pump_backoff(&pump, 7000), 7000, 7875);
	assert_in_range(pump_backoff(&pump, 4000000000u), NP_EXPORT_RETRY_AFTER_MAX_MS,
			NP_EXPORT_RETRY_AFTER_MAX_MS * 9 / 8);
}

/* Who is told that it is ready relies on it: an event from then on must not be before its place. */
static void test_it_is_ready_when_it_has_its_place(void **state)
{
	const struct receiver receiver = { .name = "test" };
	struct cursor made;

	(void)state;
	place = memfd_create("place", MFD_CLOEXEC);
	assert_true(place >= 0);
	made = (struct cursor){ .fd = place };
	assert_int_equal(cursor_put(&made, 7), 0); /* by the daemon */
	assert_int_equal(pump_run(&receiver, place), 0);
	assert_int_equal(readies, 1);
	assert_int_equal(at_ready.seq, 7);
	assert_int_equal(ftruncate(place, 0), 0); /* there was one, and it is gone: all there is */
	assert_int_equal(pump_run(&receiver, place), 0);
	assert_int_equal(readies, 2);
	assert_int_equal(at_ready.seq, 0);
	close(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_in_a_row),
		cmocka_unit_test(test_a_hole_is_an_event_of_its_own),
		cmocka_unit_test(test_what_was_not_kept_is_told_once),
		cmocka_unit_test(test_what_is_no_event_is_not_read),
		cmocka_unit_test(test_a_failure_waits_longer_each_time),
		cmocka_unit_test(test_it_is_ready_when_it_has_its_place),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	page_free(&page);
	return r;
}
