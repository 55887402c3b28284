/* SPDX-License-Identifier: MIT */
/* Refusals in words: every kind, merged, bounded, and nothing of a stranger's gets out of its line. */
#include "control/refusals.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "events/event.h"
#include "vocab/limits.h"

static struct refusals refusals;
static char text[64u << 10];
static uint64_t not_kept;

static int clear(void **state)
{
	(void)state;
	refusals_clear(&refusals);
	not_kept = 0;
	return 0;
}

/* Through the one JSON form of events, oldest first. */
static void read_events(const struct event *events, size_t n, size_t max, enum np_mode mode)
{
	_buf_ struct buf lines = BUF_INIT(1u << 20), out = BUF_INIT(sizeof(text) - 1);

	refusals_clear(&refusals);
	for (size_t i = 0; i < n; i++) {
		struct event event = events[i];

		event.wall_us = event.wall_us ? event.wall_us : 1000000 * (i + 1);
		event_to_json(&event, &lines);
	}
	refusals_read(lines.data, lines.len, max, &refusals);
	refusals.not_kept = not_kept;
	refusals.since_us = 1767225600000000;
	refusals.until_us = 1767225700000000;
	refusals_text(&refusals, mode, &out);
	assert_int_equal(buf_error(&out), 0);
	strcpy(text, out.data);
}

#define READ(mode, ...)                                              \
	do {                                                         \
		const struct event events_[] = { __VA_ARGS__ };      \
		read_events(events_, ARRAY_SIZE(events_), 10, mode); \
	} while (0)

static void expect(const char *what, const char *where, const char *line)
{
	assert_int_equal(refusals.count, 1);
	assert_string_equal(refusals.items[0].what, what);
	assert_string_equal(refusals.items[0].where, where);
	if (!strstr(text, line))
		fail_msg("no \"%s\" in:\n%s", line, text);
}

#define TCP 6
#define UDP 17

static void kinds(void **state)
{
	(void)state;
	READ(NP_PROXIED, { .reason = NP_R_NOT_IN_POLICY,
			   .hook = NP_HOOK_CONNECT,
			   .protocol = TCP,
			   .address = "192.0.2.7",
			   .port = 5432,
			   .comm = "psql",
			   .pid = 3 });
	expect("TCP connection", "192.0.2.7:5432",
	       "1. TCP connection to 192.0.2.7:5432 by psql, at 1970-01-01T00:00:01Z: the sandbox's mode is PROXIED "
	       "and no "
	       "rule allows this destination.\n");
	READ(NP_PROXIED, { .reason = NP_R_NOT_IN_POLICY,
			   .hook = NP_HOOK_SEND,
			   .protocol = UDP,
			   .address = "2001:db8::1",
			   .port = 9 });
	expect("UDP datagram", "[2001:db8::1]:9", "1. UDP datagram to [2001:db8::1]:9, at ");
	READ(NP_PROXIED, { .reason = NP_R_NO_DNS_GATE,
			   .hook = NP_HOOK_SEND,
			   .protocol = UDP,
			   .address = "127.0.0.53",
			   .port = 53 });
	expect("DNS query", "127.0.0.53:53", "1. DNS query to 127.0.0.53:53, at ");
	READ(NP_PROXIED, { .reason = NP_R_NOT_IN_POLICY, .protocol = UDP, .port = 53, .query = "leak.example" });
	expect("DNS query", "leak.example", "1. DNS query for leak.example, at ");
	READ(NP_PROXIED, { .reason = NP_R_RULE_DENIES,
			   .protocol = TCP,
			   .method = "POST",
			   .status = 403,
			   .url = "https://paste.example/a?token=hush",
			   .rule = "p.yaml:4",
			   .text = "detail" });
	expect("HTTP request", "POST https://paste.example/a",
	       "1. HTTP request POST https://paste.example/a, at 1970-01-01T00:00:01Z: a rule of the policy denies it "
	       "(p.yaml:4): detail.\n");
	READ(NP_PROXIED, { .reason = NP_R_NO_SERVER_NAME, .protocol = TCP, .address = "192.0.2.7", .port = 443 });
	expect("connection", "192.0.2.7:443", "1. connection to 192.0.2.7:443, at ");
	READ(NP_FULL, { .reason = NP_R_FOREIGN_UNIX, .hook = NP_HOOK_UNIX_CONNECT, .address = "@name" });
	expect("unix socket connection", "@name", "1. unix socket connection to @name, at ");
	READ(NP_FULL, { .reason = NP_R_FOREIGN_UNIX, .hook = NP_HOOK_UNIX_SEND, .address = "/run/x" });
	expect("unix socket datagram", "/run/x", "1. unix socket datagram to /run/x, at ");
	READ(NP_FULL,
	     { .reason = NP_R_PORT_TAKEN, .hook = NP_HOOK_BIND, .protocol = TCP, .address = "127.0.0.1", .port = 80 });
	expect("TCP listener", "127.0.0.1:80", "1. TCP listener on 127.0.0.1:80, at ");
	READ(NP_FULL, { .reason = NP_R_PROTOCOL, .hook = NP_HOOK_CREATE, .protocol = 1 });
	expect("ICMP socket", "", "1. ICMP socket, at ");
	READ(NP_FULL, { .reason = NP_R_SOCKET_OPTION, .hook = NP_HOOK_OPTION });
	expect("socket option", "", "1. socket option, at ");
	READ(NP_NONE,
	     { .reason = NP_R_INBOUND, .hook = NP_HOOK_INGRESS, .protocol = TCP, .address = "192.0.2.9", .port = 7 });
	expect("incoming TCP", "192.0.2.9:7", "1. incoming TCP from 192.0.2.9:7, at ");
	READ(NP_NONE, { .reason = NP_R_INBOUND,
			.hook = NP_HOOK_SK_LOOKUP,
			.protocol = TCP,
			.address = "192.0.2.9",
			.port = 7,
			.listener_port = 8000 });
	expect("incoming TCP", "port 8000 from 192.0.2.9", "1. incoming TCP to port 8000 from 192.0.2.9, at ");
	READ(NP_NONE, { .reason = NP_R_MODE_NONE, .hook = NP_HOOK_EGRESS, .protocol = 1, .address = "192.0.2.9" });
	expect("ICMP packet", "192.0.2.9", "1. ICMP packet to 192.0.2.9, at ");
	READ(NP_NONE, { .reason = NP_R_MODE_NONE, .hook = NP_HOOK_DEVICE });
	expect("packet", "", "1. packet, at ");
}

static void merged(void **state)
{
	const struct event one = { .reason = NP_R_NOT_IN_POLICY,
				   .hook = NP_HOOK_CONNECT,
				   .protocol = TCP,
				   .address = "192.0.2.7",
				   .port = 1,
				   .rung.mode = NP_PROXIED };
	struct event other = one, rule = one, mode = one, reason = one;

	(void)state;
	other.port = 2;
	rule.rule = "p.yaml:1";
	mode.rung.mode = NP_NONE;
	reason.reason = NP_R_MODE_NONE;
	READ(NP_NONE, one, other, one, rule, mode, one, reason);
	assert_int_equal(refusals.count, 5);
	assert_int_equal(refusals.items[1].count, 3);
	assert_string_equal(refusals.items[1].first, "1970-01-01T00:00:01.000000Z");
	assert_non_null(strstr(text, "2. TCP connection to 192.0.2.7:1, 3 times, last at 1970-01-01T00:00:06Z: "));
	assert_int_equal(refusals.others, 0);
}

static void bounded(void **state)
{
	struct event events[80];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(events); i++)
		events[i] = (struct event){ .reason = NP_R_NOT_IN_POLICY,
					    .hook = NP_HOOK_CONNECT,
					    .protocol = TCP,
					    .address = "192.0.2.7",
					    .port = i + 1,
					    .suppressed = 2 };
	read_events(events, ARRAY_SIZE(events), 3, NP_PROXIED);
	assert_int_equal(refusals.count, 3);
	assert_string_equal(refusals.items[0].where, "192.0.2.7:80");
	assert_int_equal(refusals.others, 77);
	assert_int_equal(refusals.suppressed, 160);
	assert_non_null(
		strstr(text, "Before these, 77 more were refused.\nAnd 160 came too fast to be told one by one.\n"));
	read_events(events, ARRAY_SIZE(events), 1000, NP_PROXIED);
	assert_int_equal(refusals.count, NP_WHY_MAX);
	/* Only counted ones are no refusals of anything. */
	events[0] = (struct event){ .reason = NP_R_SUPPRESSED, .suppressed = 5 };
	read_events(events, 1, 10, NP_PROXIED);
	assert_int_equal(refusals.count, 0);
	assert_int_equal(refusals.suppressed, 5);
	read_events(events, 0, 10, NP_PROXIED);
	assert_string_equal(text, "Nothing was refused.\n");
}

static void hints(void **state)
{
	const struct event http = { .reason = NP_R_ORIGIN_UNREACHABLE, .method = "GET", .url = "https://a.example/" };
	const struct event tcp = { .reason = NP_R_NOT_IN_POLICY, .hook = NP_HOOK_CONNECT, .port = 1 };
	const struct event denied = { .reason = NP_R_RULE_DENIES, .hook = NP_HOOK_CONNECT, .port = 2 };
	const struct event local = { .reason = NP_R_FOREIGN_UNIX, .hook = NP_HOOK_UNIX_CONNECT, .address = "/x" };
	char want[512];

	(void)state;
	READ(NP_PROXIED, local, denied, http, tcp); /* newest first: tcp is 1 */
	snprintf(want, sizeof(want), "About 1, 3: %s\nAbout 2: %s\nAbout 4: %s\n", reason_hint(NP_R_NOT_IN_POLICY),
		 reason_hint(NP_R_ORIGIN_UNREACHABLE), reason_hint(NP_R_FOREIGN_UNIX));
	assert_non_null(strstr(text, want));
	/* Since then the network was closed: nothing of it comes back by waiting. */
	READ(NP_NONE, local, denied, http, tcp);
	snprintf(want, sizeof(want), "About 1, 2, 3: %s\nAbout 4: %s\n", reason_hint(NP_R_MODE_NONE),
		 reason_hint(NP_R_FOREIGN_UNIX));
	assert_non_null(strstr(text, want));
}

static void strangers(void **state)
{
	static char url[1020];
	size_t lines = 0;

	(void)state;
	memset(url, 'u', sizeof(url) - 1);
	READ(NP_PROXIED,
	     { .reason = NP_R_FOREIGN_UNIX,
	       .hook = NP_HOOK_UNIX_CONNECT,
	       .address = "/x\n2. all is well\x1b[2J",
	       .comm = "a\nb",
	       .pid = 1 },
	     { .reason = NP_R_BAD_HTTP, .method = "G\xe2\x80\xaeT", .url = url, .text = "t\n", .rule = "r\n:1" });
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 1 + 2 + 2);
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(text, "\xe2\x80\xae"));
	assert_non_null(strstr(text, "to \"/x?2. all is well?[2J\" by a?b,"));
	assert_int_equal(strlen(refusals.items[0].where), NP_WHY_WHERE - 1);
}

static void objects(void **state)
{
	_json_ json_t *object = NULL;

	(void)state;
	READ(NP_PROXIED, { .reason = NP_R_RULE_DENIES,
			   .hook = NP_HOOK_CONNECT,
			   .protocol = TCP,
			   .address = "192.0.2.7",
			   .port = 9,
			   .rule = "p.yaml:4",
			   .rung.mode = NP_PROXIED,
			   .sandbox = "a.b.1" });
	object = refusal_object(&refusals.items[0], NP_PROXIED);
	assert_string_equal(text_of(object, "what"), "TCP connection");
	assert_string_equal(text_of(object, "where"), "192.0.2.7:9");
	assert_string_equal(text_of(object, "reason"), "rule_denies");
	assert_string_equal(text_of(object, "hint"), reason_hint(NP_R_RULE_DENIES));
	assert_string_equal(text_of(object, "rule"), "p.yaml:4");
	assert_string_equal(text_of(object, "last"), "1970-01-01T00:00:01.000000Z");
	assert_int_equal(json_integer_value(json_object_get(object, "count")), 1);
	assert_null(json_object_get(object, "url"));
}

static void rubbish(void **state)
{
	static const char lines[] =
		"{\"reason\":\"mode_none\"}\nnothing\n\n[1]\n{\"reason\":7}\n{\"reason\":\"nonsense\"}\n{}";

	(void)state;
	refusals_read(lines, strlen(lines), 10, &refusals);
	assert_int_equal(refusals.count, 1);
	assert_string_equal(refusals.items[0].what, "connection");
}

/* A gap is never taken for peace. */
static void what_was_not_kept(void **state)
{
	(void)state;
	not_kept = 1204;
	read_events(NULL, 0, 10, NP_PROXIED);
	assert_null(strstr(text, "Nothing was refused"));
	assert_non_null(strstr(
		text, "1,204 older refusals were not kept, from 2026-01-01T00:00:00Z to 2026-01-01T00:01:40Z.\n"));
	not_kept = 1;
	READ(NP_PROXIED,
	     { .reason = NP_R_NOT_IN_POLICY, .hook = NP_HOOK_CONNECT, .protocol = TCP, .address = "192.0.2.1" });
	assert_non_null(strstr(text, "1. TCP connection to 192.0.2.1"));
	assert_non_null(strstr(text, "\n1 older refusal was not kept, from "));
	not_kept = 1000000;
	READ(NP_PROXIED, { .reason = NP_R_NOT_IN_POLICY });
	assert_non_null(strstr(text, "\n1,000,000 older refusals were"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(kinds, clear),     cmocka_unit_test_teardown(merged, clear),
		cmocka_unit_test_teardown(bounded, clear),   cmocka_unit_test_teardown(hints, clear),
		cmocka_unit_test_teardown(strangers, clear), cmocka_unit_test_teardown(objects, clear),
		cmocka_unit_test_teardown(rubbish, clear),   cmocka_unit_test_teardown(what_was_not_kept, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
