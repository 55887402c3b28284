/* SPDX-License-Identifier: MIT */
#include "cli/events.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../api_client/capture.h"
#include "../api_client/server.h"

static void assert_line(const char *event, const char *expected)
{
	struct cli cli = { 0 };
	struct stream stream = { .cli = &cli };
	struct capture out;
	char line[2048];

	snprintf(line, sizeof(line), "%s", event);
	capture_begin(&out, stdout);
	assert_int_equal(line_print(&stream, line), 0);
	assert_string_equal(capture_end(&out), expected);
}

static void one_line_an_event(void **state)
{
	(void)state;
	assert_line("{\"seq\":1,\"time\":\"T\",\"kind\":\"refuse\",\"reason\":\"mode_none\",\"session\":\"a/"
		    "b\",\"hook\":\"connect\","
		    "\"protocol\":\"tcp\",\"address\":\"192.0.2.1\",\"port\":443,\"pid\":7,\"comm\":\"curl\\u001b[1m\","
		    "\"mode\":\"NONE\","
		    "\"message\":\"closed\",\"suppressed\":3}",
		    "T refuse mode_none       a/b tcp 192.0.2.1:443 curl?[1m[7] closed (and 3 more)\n");
	assert_line(
		"{\"time\":\"T\",\"kind\":\"refuse\",\"reason\":\"metadata\",\"session\":\"a/b\",\"hook\":\"egress\","
		"\"protocol\":\"udp\",\"address\":\"fd00:ec2::254\",\"port\":80,\"message\":\"m\"}",
		"T refuse metadata        a/b udp [fd00:ec2::254]:80 m\n");
	assert_line("{\"time\":\"T\",\"kind\":\"refuse\",\"reason\":\"foreign_unix\",\"session\":\"a/"
		    "b\",\"hook\":\"unix_connect\","
		    "\"address\":\"@x:y\",\"pid\":1,\"comm\":\"c\",\"message\":\"m\"}",
		    "T refuse foreign_unix    a/b unix @x:y c[1] m\n");
	assert_line(
		"{\"time\":\"T\",\"kind\":\"change\",\"reason\":\"raised\",\"session\":\"a/"
		"b\",\"level\":\"SECRET\",\"mode\":\"NONE\","
		"\"dataset\":\"d\\n.csv\",\"cut\":2,\"who\":\"uid 0 pid 1\",\"message\":\"m\",\"text\":\"why\"}",
		"T change raised          a/b level=SECRET mode=NONE dataset=d?.csv cut=2 who=uid 0 pid 1 m: why\n");
	assert_line("{\"time\":\"T\",\"kind\":\"refuse\",\"reason\":\"rule_denies\",\"session\":\"a/b\",\"sandbox\":\"a.b.1\","
		    "\"method\":\"GET\",\"url\":\"https://x.example/\",\"status\":403,\"protocol\":\"tcp\",\"address\":\"192.0.2.1\","
		    "\"port\":443,\"rule\":\"p.yaml:3\",\"hook\":\"request\",\"message\":\"m\",\"text\":\"t\",\"suppressed\":2}",
		    "T refuse rule_denies     a/b GET https://x.example/ 403 tcp 192.0.2.1:443 rule=p.yaml:3 sandbox=a.b.1 m: t "
		    "(and 2 more)\n");
	assert_line("{\"time\":\"T\",\"kind\":\"change\",\"reason\":\"requests_lost\",\"session\":\"a/b\",\"suppressed\":1,"
		    "\"message\":\"m\",\"text\":\"1 request's event was lost\"}",
		    "T change requests_lost   a/b m: 1 request's event was lost\n");
	assert_line("{}", "- -      -               - \n");
}

static void json_is_passed_on(void **state)
{
	struct cli cli = { .json = true };
	struct stream stream = { .cli = &cli };
	char line[] = "{ \"anything\" : 1 }";
	struct capture out;

	(void)state;
	capture_begin(&out, stdout);
	assert_int_equal(line_print(&stream, line), 0);
	assert_string_equal(capture_end(&out), "{ \"anything\" : 1 }\n");
	cli.json = false;
	strcpy(line, "not json");
	assert_int_equal(line_print(&stream, line), -EPROTO);
}

static void queries(void **state)
{
	char *path = query_build(NULL, NULL, NULL, false, NULL);
	uint64_t limit;

	(void)state;
	assert_string_equal(path, "/v1/events");
	free(path);
	path = query_build("a/b&c", "mode_none", "5", true, "2026-01-01T00:00:00Z");
	assert_string_equal(path, "/v1/events?session=a/b%26c&reason=mode_none&limit=5&follow=1&since=2026-01-01T00%3A00%3A00Z");
	free(path);
	assert_int_equal(limit_check("0", &limit), 0);
	assert_int_equal(limit_check("1000", &limit), 0);
	assert_int_equal(limit, 1000);
	assert_int_equal(limit_check("1001", &limit), -EINVAL);
	assert_int_equal(limit_check("-1", &limit), -EINVAL);
	assert_int_equal(limit_check("1x", &limit), -EINVAL);
	assert_int_equal(limit_check("", &limit), -EINVAL);
}

static int events_against(const char *answer, bool follow, struct capture *out, struct capture *err)
{
	char *argv[] = { (char *)"events", (char *)"--follow", NULL };
	struct cli cli = { 0 };
	struct test_server server;
	int code;

	test_server_start(&server, (const char *const[]){ answer, NULL });
	cli.socket = server.path;
	capture_begin(out, stdout);
	capture_begin(err, stderr);
	code = command_events(&cli, follow ? 2 : 1, argv);
	capture_end(err);
	capture_end(out);
	test_server_stop(&server);
	return code;
}

static void streams(void **state)
{
	static const char *const two = "HTTP/1.1 200 OK\r\n\r\n{\"time\":\"1\"}\n\n{\"time\":\"2\"}\n";
	struct capture out, err;

	(void)state;
	assert_int_equal(events_against(two, false, &out, &err), CLI_OK);
	assert_string_equal(out.text, "1 -      -               - \n2 -      -               - \n");
	/* A follower never ends by itself: the daemon went away. */
	assert_int_equal(events_against(two, true, &out, &err), CLI_NO_DAEMON);
	assert_int_equal(
		events_against("HTTP/1.1 400 Bad\r\n\r\n{\"error\":\"bad_name\",\"message\":\"m\"}", false, &out, &err),
		CLI_REFUSED);
	assert_string_equal(err.text, "netpawl: m (bad_name)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_an_event),
		cmocka_unit_test(json_is_passed_on),
		cmocka_unit_test(queries),
		cmocka_unit_test(streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
