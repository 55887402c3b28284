/* SPDX-License-Identifier: MIT */
/* The API as its clients see it. */
#include "fixture.h"
#include "vocab/limits.h"

static void health(void **state)
{
	char expected[512];

	(void)state;
	assert_int_equal(ask("GET", "/v1/health", NULL), 200);
	snprintf(expected, sizeof(expected),
		 "{\"status\":\"ok\",\"version\":\"" NETPAWL_VERSION
		 "\",\"pid\":%d,\"sessions\":0,\"sessions_ended\":0,\"levels_remembered\":0,\"sandboxes\":0,"
		 "\"questions\":{\"pending\":0,\"waiting\":0,\"answers\":0,\"asked\":0,\"allowed\":0,\"denied\":0,"
		 "\"expired\":0,\"void\":0,\"runs_pending\":0},"
		 "\"upstream_proxies\":[],\"extra\":["
		 "1,2]}",
		 getpid());
	assert_string_equal(body_of(received), expected);
	expect_in("\r\nContent-Type: application/json\r\n");
	expect_in("\r\nCache-Control: no-store\r\n");
	assert_null(strstr(received, "\r\nServer:"));
}

static void launch(void **state)
{
	(void)state;
	assert_int_equal(ask("GET", "/v1/launch", NULL), 200);
	assert_string_equal(
		body_of(received),
		"{\"netns\":\"4026\",\"run_dir\":\"/r\",\"state_dir\":\"/s\",\"data_dir\":\"/d\","
		"\"pin_dir\":\"/p\",\"inspectors\":2,\"sandbox\":{\"binds\":[],\"devices\":[],\"memory\":null,"
		"\"cpus\":null,\"pids\":null,\"timeout\":null,\"output_limit\":null,\"disk\":null,\"idle\":\"1h\"},"
		"\"unknown_containers\":\"ignore\",\"credentials\":0}");
}

/* A new sandbox comes with its session's authority, when there is one. */
static void authority(void **state)
{
	(void)state;
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"trusted/one\"}"), 201);
	expect_in("\"ca\":\"PEM\\n\"");
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"trusted/two\"}"), 201);
	expect_in("\"ca\":null");
}

static void socket_is_0660(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(lstat(world.socket, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0660);
	snprintf(received, sizeof(received), "%s.new", world.socket);
	assert_int_equal(access(received, F_OK), -1);
}

static void head_has_no_body(void **state)
{
	(void)state;
	assert_int_equal(ask("HEAD", "/v1/health", NULL), 200);
	assert_string_equal(body_of(received), "");
	assert_int_equal(ask("HEAD", "/v1/events?follow=1", NULL), 200);
	assert_string_equal(body_of(received), "");
}

static void sessions(void **state)
{
	(void)state;
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"alice/demo\"}"), 201);
	expect_in("{\"session\":\"alice/demo\",\"level\":\"PUBLIC\",\"mode\":\"FULL\",\"generation\":");
	expect_in("\"ended\":null,\"datasets\":0}");
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"alice/demo\",\"level\":\"internal\"}"), 200);
	expect_in("\"level\":\"INTERNAL\"");
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"alice/demo\",\"level\":\"PUBLIC\"}"), 200);
	expect_in("\"level\":\"INTERNAL\"");
	assert_int_equal(ask("GET", "/v1/sessions", NULL), 200);
	expect_in("{\"sessions\":[{\"session\":\"alice/demo\",");
	assert_int_equal(ask("GET", "/v1/sessions/alice/demo", NULL), 200);
	expect_in("\"datasets\":[],\"sandboxes\":[],\"forwards\":[],\"workspace\":null}");
	assert_int_equal(ask("GET", "/v1/sessions/alice%2Fdemo", NULL), 200);
	assert_int_equal(ask("DELETE", "/v1/sessions/alice/demo", NULL), 200);
	assert_string_equal(body_of(received), "{\"session\":\"alice/demo\",\"ended\":true}");
	assert_int_equal(ask("GET", "/v1/sessions", NULL), 200);
	assert_string_equal(body_of(received), "{\"sessions\":[]}");
	assert_int_equal(ask("GET", "/v1/sessions?ended=1", NULL), 200);
	expect_in("\"ended\":\"20");
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"alice/demo\"}"), 201);
	expect_in("\"level\":\"INTERNAL\"");
}

static void escalation(void **state)
{
	(void)state;
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"bob/run\"}"), 201);
	assert_int_equal(ask("POST", "/v1/sessions/bob/run/datasets",
			     "{\"level\":\"SECRET\",\"dataset\":\"keys.txt\",\"reason\":\"found \\u00e9\"}"),
			 200);
	expect_in("{\"session\":\"bob/run\",\"level\":\"SECRET\",\"mode\":\"NONE\",\"generation\":");
	expect_in("\"cut\":3,\"applied_us\":");
	expect_in("\"raised\":true,\"created\":false}");
	assert_int_equal(ask("POST", "/v1/sessions/bob/run/datasets", "{\"level\":\"PUBLIC\"}"), 200);
	expect_in("\"level\":\"SECRET\",\"mode\":\"NONE\"");
	expect_in("\"raised\":false,\"created\":false}");
	assert_int_equal(ask("GET", "/v1/sessions/bob/run", NULL), 200);
	expect_in("\"datasets\":[{\"name\":\"keys.txt\",\"level\":\"SECRET\",\"added\":\"20");
	expect_in("\"reason\":\"found \xc3\xa9\"}]");
	expect_in("\"sandboxes\":[{\"sandbox\":\"");
	assert_int_equal(ask("GET", "/v1/events?session=bob/run&reason=raised", NULL), 200);
	expect_in("\r\nContent-Type: application/x-ndjson\r\n");
	expect_in("\"dataset\":\"keys.txt\"");
	snprintf(received + sizeof(received) / 2, 64, "\"who\":\"uid %u pid %d\"", getuid(), getpid());
	expect_in(received + sizeof(received) / 2);
}

static void sandboxes(void **state)
{
	char path[256], id[200];
	const char *at;

	(void)state;
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"bob/run\"}"), 201);
	expect_in("\"cgroup_id\":\"9007199254740993\",\"mode\":\"FULL\"");
	expect_in("\"adopted\":false");
	assert_null(strstr(received, "\"cut\""));
	expect_in("\"uid\":210");
	expect_in("/data/bob/run\"");
	at = strstr(received, "{\"sandbox\":\"");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "{\"sandbox\":\"%199[^\"]\"", id), 1);
	snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
	assert_int_equal(ask("GET", path, NULL), 200);
	expect_in(id);
	assert_int_equal(ask("GET", "/v1/sandboxes", NULL), 200);
	expect_in("{\"sandboxes\":[{\"sandbox\":\"");
	assert_int_equal(ask("GET", "/v1/health", NULL), 200);
	expect_in("\"sessions\":1,\"sessions_ended\":0,\"levels_remembered\":0,\"sandboxes\":1,");
	assert_int_equal(ask("DELETE", path, NULL), 200);
	expect_in("\"removed\":true}");
	assert_int_equal(ask("GET", path, NULL), 404);
	expect_error("no_such_sandbox", id);
	assert_int_equal(ask("DELETE", path, NULL), 404);

	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"bob/run\",\"cgroup\":\"/sys/fs/cgroup/x\"}"),
			 201);
	expect_in("\"cgroup\":\"/sys/fs/cgroup/x\"");
	expect_in("\"adopted\":true");
	expect_in("\"cut\":");
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"bob/run\",\"cgroup\":\"/bad\"}"), 409);
	expect_error("bad_cgroup", "/bad is bad");
}

static void busy_sandbox_is_409(void **state)
{
	(void)state;
	assert_int_equal(ask("POST", "/v1/sandboxes", "{\"session\":\"bob/run\",\"cgroup\":\"/sys/fs/cgroup/x\"}"),
			 201);
	world.populated = true;
	assert_int_equal(ask("DELETE", "/v1/sessions/bob/run", NULL), 409);
	expect_error("sandbox_busy", NULL);
	world.populated = false;
	assert_int_equal(ask("DELETE", "/v1/sessions/bob/run", NULL), 200);
}

static void refusals(void **state)
{
	static const struct {
		const char *method, *path, *body;
		int status;
		const char *token, *place;
	} cases[] = {
		{ "GET", "/", NULL, 404, "no_such_path", "/" },
		{ "GET", "/v1/nothing", NULL, 404, "no_such_path", "/v1/nothing" },
		{ "GET", "/v1/sessions/a/b", NULL, 404, "no_such_session", NULL },
		{ "GET", "/v1/sessions/-a/b", NULL, 400, "bad_name", "-a" },
		{ "GET", "/v1/sessions/../b", NULL, 400, "bad_name", ".." },
		{ "GET", "/v1/sessions/a/b%00c", NULL, 400, "bad_request", "path" },
		{ "GET", "/v1/sessions/a/b%zz", NULL, 400, "bad_request", "path" },
		{ "DELETE", "/v1/sessions/a/b", NULL, 404, "no_such_session", NULL },
		{ "PUT", "/v1/sessions", NULL, 405, "bad_method", "GET, HEAD" },
		{ "PATCH", "/v1/health", NULL, 405, "bad_method", "PATCH" },
		{ "POST", "/v1/health", "{}", 405, "bad_method", "POST" },
		{ "GET", "/v1/health", "{}", 400, "bad_request", "no body" },
		{ "GET", "/v1/health?x=1", NULL, 400, "bad_request", "\"x\"" },
		{ "GET", "/v1/sessions?ended=2", NULL, 400, "bad_request", "ended" },
		{ "GET", "/v1/sessions?ended", NULL, 400, "bad_request", "ended" },
		{ "GET", "/v1/sessions?ended=1&ended=1", NULL, 400, "bad_request", "twice" },
		{ "GET", "/v1/sessions?ended=%00", NULL, 400, "bad_request", "ended" },
		{ "GET", "/v1/events?limit=1001", NULL, 400, "bad_request", "limit" },
		{ "GET", "/v1/events?limit=-1", NULL, 400, "bad_request", "limit" },
		{ "GET", "/v1/events?after=x", NULL, 400, "bad_request", "after" },
		{ "GET", "/v1/events?reason=never", NULL, 400, "bad_request", "never" },
		{ "GET", "/v1/events?session=x", NULL, 400, "bad_name", "x" },
		{ "GET", "/v1/events?follow=maybe", NULL, 400, "bad_request", "follow" },
		{ "POST", "/v1/sessions", NULL, 400, "bad_json", "empty" },
		{ "POST", "/v1/sessions", "{", 400, "bad_json", "line 1" },
		{ "POST", "/v1/sessions", "{\"session\":\"nobody\"}", 400, "bad_name", "nobody" },
		{ "POST", "/v1/sessions", "{\"session\":\"a/b\",\"level\":\"HIGH\"}", 400, "bad_level", "HIGH" },
		{ "POST", "/v1/sessions", "{\"session\":\"a/b\",\"color\":\"x\"}", 400, "unknown_field", "color" },
		{ "POST", "/v1/sessions", "{\"session\":\"a/b\",\"session\":\"a/b\"}", 400, "bad_json", "session" },
		{ "POST", "/v1/sessions", "{\"session\":\"a/b\\u0000\"}", 400, "bad_json", "u0000" },
		{ "POST", "/v1/sessions/a/b/datasets", "{}", 400, "bad_field", "\"level\" is missing" },
		{ "POST", "/v1/sessions/a/b/datasets", "{\"level\":3}", 400, "bad_field", "\"level\"" },
		{ "POST", "/v1/sandboxes", "{\"session\":\"a/b\",\"cgroup\":null}", 400, "bad_field", "\"cgroup\"" },
		{ "POST", "/v1/sandboxes", "{\"session\":\"a/b\",\"workspace\":\"x\"}", 400, "bad_field",
		  "\"workspace\"" },
		{ "POST", "/v1/sandboxes", "{\"session\":\"a/b\",\"workspace\":\"none\",\"cgroup\":\"/c\"}", 400,
		  "bad_field", "\"workspace\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int status = ask(cases[i].method, cases[i].path, cases[i].body);

		if (status != cases[i].status)
			fail_msg("%s %s: %d, not %d: %s", cases[i].method, cases[i].path, status, cases[i].status,
				 received);
		expect_error(cases[i].token, cases[i].place);
	}
	assert_int_equal(ask("PUT", "/v1/sessions/a/b", NULL), 405);
	expect_in("\r\nAllow: GET, HEAD, DELETE\r\n");
}

static void peer_is_checked_for_each_request(void **state)
{
	int fd;

	(void)state;
	fd = dial();
	send_text(fd, "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(receive_until(fd, "\"extra\":[1,2]}"));
	assert_int_equal(status_of(received), 200);
	world.sandboxed = true;
	send_text(fd, "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(receive_until(fd, "from_sandbox"));
	assert_int_equal(status_of(received), 403);
	close(fd);
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"a/b\"}"), 403);
	expect_error("from_sandbox", "pid");
	assert_int_equal(ask("GET", "/no/such/path", NULL), 403);
	world.sandboxed = false;
	assert_int_equal(ask("GET", "/v1/sessions", NULL), 200);
	assert_string_equal(body_of(received), "{\"sessions\":[]}");
}

static int follow(const char *query)
{
	char text[256];
	int fd = dial();

	snprintf(text, sizeof(text), "GET /v1/events?%s HTTP/1.1\r\nHost: x\r\n\r\n", query);
	send_text(fd, text);
	assert_true(receive_until(fd, "\r\n\r\n"));
	assert_int_equal(status_of(received), 200);
	return fd;
}

static void events_in_order(void **state)
{
	(void)state;
	world.flood = 250;
	still_serves();
	assert_int_equal(ask("GET", "/v1/events", NULL), 200);
	expect_in("\"seq\":250,");
	assert_null(strstr(received, "\"seq\":150,"));
	assert_int_equal(ask("GET", "/v1/events?after=248&limit=5", NULL), 200);
	expect_in("\"seq\":249,");
	assert_null(strstr(received, "\"seq\":248,"));
	assert_int_equal(ask("GET", "/v1/events?reason=metadata", NULL), 200);
	assert_null(strstr(received, "mode_none"));
	expect_in("metadata");
}

static void follower_gets_history_then_news(void **state)
{
	int fd;

	(void)state;
	world.flood = 10;
	still_serves();
	fd = follow("follow=1&after=8");
	if (!strstr(received, "\"seq\":10,"))
		assert_true(receive_until(fd, "\"seq\":10,"));
	assert_null(strstr(received, "\"seq\":8,"));
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"new/one\"}"), 201);
	assert_true(receive_until(fd, "\"session\":\"new/one\""));
	assert_null(strstr(received, "\"seq\":10,"));
	/* The server keeps a silent follower beyond the time that it gives others. */
	assert_true(receive_until(fd, "1\r\n\n\r\n"));
	sleep(NP_CLIENT_TIMEOUT_S + NP_REQUEST_S);
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"new/two\"}"), 201);
	assert_true(receive_until(fd, "\"session\":\"new/two\""));
	close(fd);
}

static void follower_filters(void **state)
{
	int by_session, by_reason;

	(void)state;
	by_session = follow("follow=1&session=new/two");
	by_reason = follow("follow=1&reason=metadata");
	world.flood = 300;
	still_serves();
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"new/one\"}"), 201);
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"new/two\"}"), 201);
	assert_true(receive_until(by_session, "\"session\":\"new/two\""));
	assert_null(strstr(received, "new/one"));
	assert_null(strstr(received, "flood"));
	assert_true(receive_until(by_reason, "\"port\":100}"));
	expect_in("\"port\":300}");
	assert_null(strstr(received, "mode_none"));
	assert_null(strstr(received, "new/"));
	close(by_session);
	close(by_reason);
}

static void follower_of_http_1_0(void **state)
{
	int fd = dial();

	(void)state;
	send_text(fd, "GET /v1/events?follow=1 HTTP/1.0\r\n\r\n");
	assert_true(receive_until(fd, "\r\n\r\n"));
	assert_null(strstr(received, "chunked"));
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"new/one\"}"), 201);
	assert_true(receive_until(fd, "\"session\":\"new/one\""));
	close(fd);
}

static void follower_is_ended_in_a_sandbox(void **state)
{
	int fd = follow("follow=1");

	(void)state;
	world.sandboxed = true;
	assert_true(receive_until(fd, NULL));
	close(fd);
	world.sandboxed = false;
}

/* Those who go away make room for others, as many as there are, without waiting for a heartbeat. */
static void followers_are_bounded(void **state)
{
	int fds[NP_FOLLOWERS_PER_USER];

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			fds[i] = follow("follow=1");
		assert_int_equal(ask("GET", "/v1/events?follow=1", NULL), 429);
		expect_error("too_many", "followers");
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			close(fds[i]);
	}
}

/* world_free() stops with this follower suspended and this request half read. */
static void stops_with_open_connections(void **state)
{
	int busy, half;

	(void)state;
	busy = follow("follow=1");
	half = dial();
	send_text(half, "POST /v1/sessions HTTP/1.1\r\nContent-Length: 10\r\n\r\n{");
	still_serves();
	world_free(NULL);
	assert_true(receive_until(busy, NULL));
	assert_true(receive_until(half, NULL));
	close(busy);
	close(half);
	world_new(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
	const struct CMUnitTest tests[] = {
		TEST(health),
		TEST(launch),
		TEST(authority),
		TEST(socket_is_0660),
		TEST(head_has_no_body),
		TEST(sessions),
		TEST(escalation),
		TEST(sandboxes),
		TEST(busy_sandbox_is_409),
		TEST(refusals),
		TEST(peer_is_checked_for_each_request),
		TEST(events_in_order),
		TEST(follower_gets_history_then_news),
		TEST(follower_filters),
		TEST(follower_of_http_1_0),
		TEST(follower_is_ended_in_a_sandbox),
		TEST(followers_are_bounded),
		TEST(stops_with_open_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
