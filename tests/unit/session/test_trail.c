/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "session/trail.c"

static const struct hash_key key = { { 1, 2 } };
static struct trails trails;

static void note(const char *session, const char *url, uint64_t sent)
{
	trails_note(&trails, &key,
		    &(struct trail_request){ .session = session, .method = "GET", .url = url, .sent = sent });
}

static void assert_told(const char *session, const char *host, const char *want)
{
	_buf_ struct buf out = BUF_INIT(65536);

	json_open_object(&out, NULL);
	trails_put(&trails, &key, session, host, &out);
	json_close_object(&out);
	assert_string_equal(out.data, want);
}

static void test_bytes_are_counted_by_host(void **state)
{
	(void)state;
	trails_init(&trails);
	assert_told("a/b", "h.example", "{\"sent_to_host\":0,\"recent\":[]}");
	note("a/b", "https://h.example/x", 5);
	note("a/b", "http://h.example:8080?y", 7);
	note("a/b", "tcp.example:9000", 9);
	note("a/b", "https://[2001:db8::1]:443/", 3);
	note("c/d", "https://h.example/", 100);
	for (unsigned i = 0; i < NP_TRAIL_REQUESTS - 1; i++)
		note("a/b", "https://none.example/", 0);
	note("a/b", "https://last.example/", 1);
	trail_find(&trails, &key, "a/b")->last = 1; /* the list is long */
	trail_find(&trails, &key, "a/b")->recent[0] = (struct recent){ .url = "u" };
#define LAST "\"recent\":[{\"method\":null,\"url\":\"u\",\"reason\":\""
	for (unsigned i = 0; i < 4; i++) {
		static const char *const hosts[] = { "h.example", "tcp.example", "2001:db8::1", "last.example" };
		static const uint64_t bytes[] = { 12, 9, 3, 1 };
		char want[256];

		snprintf(want, sizeof(want), "{\"sent_to_host\":%d," LAST "%s\",\"status\":0}]}", (int)bytes[i],
			 reason_token(0));
		assert_told("a/b", hosts[i], want);
	}
	trails_free(&trails);
}

static void test_memory_is_bounded(void **state)
{
	char text[64];

	(void)state;
	trails_init(&trails);
	for (unsigned i = 0; i < NP_TRAILS + 5; i++) {
		snprintf(text, sizeof(text), "u/s%u", i);
		note(text, "https://h.example/", 1);
		note("busy/one", "https://h.example/", 1);
	}
	assert_int_equal(trails.n, NP_TRAILS);
	assert_null(trail_find(&trails, &key, "u/s0"));
	assert_non_null(trail_find(&trails, &key, "busy/one"));
	for (unsigned i = 0; i < NP_TRAIL_HOSTS + 5; i++) {
		snprintf(text, sizeof(text), "https://h%u.example/", i);
		note("busy/one", text, i + 1);
	}
	assert_int_equal(trail_find(&trails, &key, "busy/one")->n_sent, NP_TRAIL_HOSTS);
	trails_forget(&trails, &key, "busy/one");
	assert_null(trail_find(&trails, &key, "busy/one"));
	trails_free(&trails);
	assert_int_equal(trails.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_are_counted_by_host),
		cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
