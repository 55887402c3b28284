/* SPDX-License-Identifier: MIT */
/* What OCSF 1.6 requires of each class, and of the objects in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/ocsf.c"

/* Paths; "a|b": one of them at least. A path below an object that is not there asks for nothing unless the object is required. */
static const char *const of_all[] = { "activity_id",
				      "category_uid",
				      "class_uid",
				      "severity_id",
				      "time",
				      "type_uid",
				      "metadata.version",
				      "metadata.product.vendor_name",
				      "device.type_id",
				      "device.hostname|device.ip",
				      NULL };
static const struct {
	int class;
	const char *const paths[8];
} required[] = {
	{ 4001, { "src_endpoint|dst_endpoint", "action_id", "disposition_id" } },
	{ 4002,
	  { "src_endpoint|dst_endpoint", "http_request|http_response", "action_id", "http_request.url.url_string" } },
	{ 4003, { "src_endpoint|dst_endpoint", "query.hostname" } },
	{ 2004, { "finding_info.uid", "finding_info.title" } },
	{ 5019, { "device" } },
	{ 6003, { "actor", "api.operation", "src_endpoint" } },
};
/* Objects that may not be empty: what they need to have one of. */
static const char *const not_empty[] = { "src_endpoint", "dst_endpoint", "actor",	  "actor.process",
					 "actor.user",	 "traffic",	 "firewall_rule", NULL };

static const json_t *find(const json_t *object, const char *path, size_t len)
{
	while (object && len) {
		const char *dot = memchr(path, '.', len);
		const size_t n = dot ? (size_t)(dot - path) : len;
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		object = json_object_get(object, name);
		path += dot ? n + 1 : n;
		len -= dot ? n + 1 : n;
	}
	return object;
}

static void require(const json_t *event, const char *paths)
{
	const char *bar = strchr(paths, '|');

	if (!find(event, paths, bar ? (size_t)(bar - paths) : strlen(paths)) &&
	    !(bar && find(event, bar + 1, strlen(bar + 1))))
		fail_msg("%s is missing in %s", paths, json_dumps(event, 0));
}

static json_t *ocsf_of(const char *text, int class)
{
	json_t *event = json_loads(text, 0, NULL), *got;
	struct buf out = BUF_INIT(1 << 16);

	assert_non_null(event);
	ocsf_put(event, "host.test", &out);
	assert_int_equal(buf_error(&out), 0);
	got = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(got);
	json_decref(event);
	buf_free(&out);
	assert_int_equal(member_number(got, "class_uid"), class);
	assert_int_equal(member_number(got, "category_uid"), class / 1000);
	assert_int_equal(member_number(got, "type_uid"), class * 100 + member_number(got, "activity_id"));
	for (const char *const *path = of_all; *path; path++)
		require(got, *path);
	for (size_t i = 0; i < ARRAY_SIZE(required); i++)
		for (const char *const *path = required[i].paths; required[i].class == class && *path; path++)
			require(got, *path);
	for (const char *const *path = not_empty; *path; path++)
		assert_true(!find(got, *path, strlen(*path)) || json_object_size(find(got, *path, strlen(*path))));
	if (member_number(got, "activity_id") == 99)
		require(got, "activity_name");
	return got;
}

#define TIME "\"time\":\"2026-01-31T00:00:00.000001Z\",\"seq\":7,\"session\":\"a/b\",\"message\":\"m\""

static void test_every_class_has_what_it_must(void **state)
{
	static const struct {
		int class;
		const char *text;
	} events[] = {
		{ 4002, "{" TIME ",\"kind\":\"allow\",\"reason\":\"rule_allows\",\"method\":\"GET\",\"url\":\"https://"
				 "x/\",\"status\":200}" },
		{ 4002, "{" TIME ",\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"method\":\"BREW\",\"url\":"
				 "\"https://x/\",\"pid\":4}" },
		{ 4001, "{" TIME ",\"kind\":\"allow\",\"reason\":\"rule_allows\",\"url\":\"x:22\",\"rule\":\"p:1\"}" },
		{ 4001,
		  "{" TIME
		  ",\"kind\":\"refuse\",\"reason\":\"raw_socket\",\"hook\":\"create\",\"pid\":4,\"comm\":\"c\"}" },
		{ 4001,
		  "{" TIME ",\"kind\":\"refuse\",\"reason\":\"host_local\",\"hook\":\"unix\",\"address\":\"/run/x\"}" },
		{ 4003, "{" TIME ",\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"lookup\":\"x.test\"}" },
		{ 2004,
		  "{" TIME
		  ",\"kind\":\"refuse\",\"reason\":\"secret_leaving\",\"method\":\"GET\",\"url\":\"https://x/\"}" },
		{ 2004, "{\"kind\":\"error\",\"reason\":\"lost\"}" },
		{ 5019,
		  "{" TIME ",\"kind\":\"change\",\"reason\":\"raised\",\"level\":\"SECRET\",\"who\":\"uid 0 pid 1\"}" },
		{ 6003, "{" TIME ",\"kind\":\"change\",\"reason\":\"session_created\",\"who\":\"uid 0 pid 1\"}" },
		{ 6003, "{" TIME ",\"kind\":\"change\",\"reason\":\"session_ended\"}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		json_decref(ocsf_of(events[i].text, events[i].class));
}

static void test_a_finding_is_new(void **state)
{
	json_t *got = ocsf_of("{" TIME ",\"kind\":\"refuse\",\"reason\":\"credential_elsewhere\"}", 2004);

	(void)state;
	assert_int_equal(member_number(got, "status_id"), 1);
	assert_int_equal(member_number(got, "severity_id"), SEVERITY_HIGH);
	assert_true(json_is_true(json_object_get(got, "is_alert")));
	json_decref(got);
}

static void test_no_answer_has_no_code(void **state)
{
	json_t *got = ocsf_of(
		"{" TIME ",\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"method\":\"GET\",\"url\":\"https://x/\"}",
		4002);

	(void)state;
	assert_null(json_object_get(got, "http_response"));
	json_decref(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_class_has_what_it_must),
		cmocka_unit_test(test_a_finding_is_new),
		cmocka_unit_test(test_no_answer_has_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
