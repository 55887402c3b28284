/* SPDX-License-Identifier: MIT */
/* A whole worker with credentials: what an origin gets, what comes back, and what goes nowhere, with HTTP/1.1 and HTTP/2 on either side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

#include "link/secret_message.h"
#include "secrets/placeholder.h"

#define VALUE	"R3al-S3cret-Value-0123456789"
#define REFUSED "An0ther-S3cret-Value-98765432"
#define ALWAYS	"Alw4ys-Th3re-Value-1122334455"

static const char *const credentials_policy =
	"version: 1\n"
	"credentials:\n"
	"  token: {source: {env: A}, for: [origin.test, h2.test], as: [bearer, json, {header: x-key}], levels: "
	"[INTERNAL],\n"
	"          placeholder: {like: 'sk-{40}'}}\n"
	"  strict: {source: {env: B}, for: get.test, placeholder: {like: 'ghp_{36}'}, echo: refuse}\n"
	"  always: {source: {env: C}, for: always.test, inject: always}\n"
	"rules:\n"
	"  - allow: seen.test\n"
	"    capture: 1KiB\n"
	"  - allow: [origin.test, h2.test, get.test, always.test, evil.test]\n"
	"    capture: 1KiB\n";

static char words[2][NP_PLACEHOLDER_MAX + 1]; /* placeholders of token and strict */

static void secret_send(const char *name, const char *value, uint64_t expires_ns)
{
	struct link_secret message = { .len = (uint32_t)strlen(value), .expires_ns = expires_ns };

	snprintf(message.policy, sizeof(message.policy), "%s", worker->policy->hash);
	snprintf(message.name, sizeof(message.name), "%s", name);
	memcpy(message.value, value, message.len);
	message_send(LINK_SECRET, &message, LINK_SECRET_SIZE(message.len), -1);
	settle();
}

static int credentials_start(void **state)
{
	struct link_placeholder_key key;

	world_start(state);
	memset(&key, 5, sizeof(key));
	message_send(LINK_PLACEHOLDER_KEY, &key, sizeof(key), -1);
	policy_send(credentials_policy);
	settle();
	placeholder_make(&worker->placeholder_key, "test/s", "token", "sk-{40}", words[0]);
	placeholder_make(&worker->placeholder_key, "test/s", "strict", "ghp_{36}", words[1]);
	secret_send("token", VALUE, 0);
	secret_send("strict", REFUSED, 0);
	secret_send("always", ALWAYS, 0);
	return 0;
}

static const char *bearer(const char *word)
{
	static char text[NP_PLACEHOLDER_MAX + 16];

	snprintf(text, sizeof(text), "Bearer %s", word);
	return text;
}

static struct talk *far_talk(void)
{
	assert_true(last_asked && last_asked->n > 0);
	return &last_asked->talks[last_asked->n - 1];
}

static const struct seen_report *last_report(void)
{
	assert_true(n_reports > 0);
	return &reports[n_reports - 1];
}

static void assert_nowhere(const char *value)
{
	for (unsigned i = 0; i < n_clients; i++)
		assert_null(clients[i].raw.len ? memmem(clients[i].raw.data, clients[i].raw.len, value, strlen(value))
					       : NULL);
	for (unsigned i = 0; i < n_reports; i++) {
		assert_null(strstr(reports[i].url, value));
		for (int k = 0; k < LINK_TAILS; k++)
			assert_null(strstr(reports[i].tails[k], value));
	}
}

/* -- there and back --------------------------------------------------------------------------------- */

static void there_and_back(const char *host, bool h2)
{
	struct peer *client = client_tls(host, h2);
	struct talk *asked = ask_with(client, "GET", "/a", NO_BODY, "authorization", bearer(words[0])), *got;

	settle();
	got = far_talk();
	assert_string_equal(talk_field(got, "authorization"), "Bearer " VALUE);
	assert_string_equal(talk_field(got, "accept-encoding"), "identity");
	answer_with(last_asked, got, 200, CHUNKED, "x-got", "it was Bearer " VALUE);
	send_body(last_asked, got, "you said R3al-S3", 16);
	settle();
	assert_body(
		asked,
		"you said"); /* the rest may be the beginning of it, and in base64 the byte in front has a part in it */
	send_body(last_asked, got, "cret-Value-0123456789 to me", 27);
	send_end(last_asked, got, NULL);
	settle();
	assert_memory_equal(talk_field(asked, "x-got"), "it was Bearer sk-", 17);
	assert_string_equal(talk_field(asked, "x-got") + 14, words[0]);
	assert_int_equal(asked->body.len, 9 + strlen(words[0]) + 6);
	assert_memory_equal(asked->body.data + 9, words[0], strlen(words[0]));
	assert_true(asked->ended);
	pass_ms(50);
	assert_int_equal(last_report()->request.reason, NP_R_RULE_ALLOWS);
	assert_string_equal(last_report()->request.credential, "token");
}

static void test_there_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		there_and_back(i & 1 ? "h2.test" : "origin.test", i & 2);
	assert_nowhere(VALUE);
}

static void test_in_a_body_in_pieces(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_tls(i & 1 ? "h2.test" : "origin.test", i & 2);
		struct talk *asked = ask_with(client, "POST", "/", CHUNKED, "content-type", "application/json");

		send_body(client, asked, "{\"k\": \"", 7);
		for (size_t n = 0; n < strlen(words[0]); n += 5) {
			const size_t left = strlen(words[0]) - n;

			send_body(client, asked, words[0] + n, left < 5 ? left : 5);
			settle();
			assert_body(far_talk(),
				    left > 5 ? "{\"k\": \"" : "{\"k\": \"" VALUE); /* all of it or nothing */
		}
		send_body(client, asked, "\"}", 2);
		send_end(client, asked, NULL);
		settle();
		assert_body(far_talk(), "{\"k\": \"" VALUE "\"}");
		assert_true(far_talk()->ended);
		answer(last_asked, far_talk(), 204, NO_BODY);
		settle();
	}
	assert_nowhere(VALUE);
}

static void test_always(void **state)
{
	struct peer *client = client_tls("always.test", false);

	(void)state;
	ask_with(client, "GET", "/", NO_BODY, "authorization", "Basic bWluZQ==");
	settle();
	assert_string_equal(talk_field(far_talk(), "authorization"), "Bearer " ALWAYS);
}

/* -- nowhere else ----------------------------------------------------------------------------------- */

static void refused(struct peer *client, struct talk *asked, unsigned status, enum np_reason reason, const char *name)
{
	char begin[8];

	settle();
	snprintf(begin, sizeof(begin), "%u ", status);
	assert_memory_equal(asked->words, begin, strlen(begin));
	assert_int_equal(last_report()->request.reason, reason);
	assert_string_equal(last_report()->request.credential, name);
	end_close(&client->end);
	settle();
}

static void test_elsewhere(void **state)
{
	static const struct {
		const char *host, *method, *field;
		bool tls;
	} cases[] = {
		{ "evil.test", "GET", "authorization", true },	  { "get.test", "GET", "x-any", true },
		{ "origin.test", "GET", "x-other", true },	  { "origin.test", "TRACE", "authorization", true },
		{ "origin.test", "GET", "authorization", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int h2 = 0; h2 <= cases[i].tls; h2++) {
			struct peer *client =
				cases[i].tls ? client_tls(cases[i].host, h2) : client_plain(cases[i].host);
			struct talk *asked =
				ask_with(client, cases[i].method, "/", NO_BODY, cases[i].field, bearer(words[0]));

			refused(client, asked, 403, NP_R_CREDENTIAL_ELSEWHERE, "token");
		}
	assert_int_equal(n_fars, 0); /* nobody was dialled */
}

static void test_elsewhere_in_a_body_that_has_begun(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_tls("evil.test", h2);
		struct talk *asked = ask(client, "POST", "/", CHUNKED);

		send_body(client, asked, "some text ", 10);
		settle();
		assert_body(far_talk(), "some text ");
		send_body(client, asked, words[0], 20);
		settle();
		send_body(client, asked, words[0] + 20, strlen(words[0]) - 20);
		refused(client, asked, 403, NP_R_CREDENTIAL_ELSEWHERE, "token");
		assert_false(far_talk()->ended);
		assert_true(far_talk()->body.len < 10 + strlen(words[0]));
		assert_true(last_asked->eof || last_asked->end.fd < 0);
	}
}

static void test_no_value_no_request(void **state)
{
	struct peer *client = client_tls("origin.test", true);
	struct talk *asked;

	(void)state;
	secret_send("token", "", 0);
	asked = ask_with(client, "GET", "/", NO_BODY, "authorization", bearer(words[0]));
	refused(client, asked, 503, NP_R_CREDENTIAL_MISSING, "token");
	assert_int_equal(n_fars, 0);
}

/* By the worker's own clock, though the daemon says nothing. */
static void test_a_value_that_is_over(void **state)
{
	struct peer *client = client_tls("origin.test", true);
	struct talk *asked;

	(void)state;
	secret_send("token", VALUE, now_ns + 2000000000ull);
	ask_with(client, "GET", "/", NO_BODY, "authorization", bearer(words[0]));
	settle();
	assert_string_equal(talk_field(far_talk(), "authorization"), "Bearer " VALUE);
	pass_ms(2001);
	asked = ask_with(client, "GET", "/", NO_BODY, "authorization", bearer(words[0]));
	refused(client, asked, 503, NP_R_CREDENTIAL_MISSING, "token");
}

static void test_a_value_that_came_while_a_body_did(void **state)
{
	struct peer *client = client_tls("origin.test", false);
	struct talk *asked = ask_with(client, "POST", "/", CHUNKED, "content-type", "application/json");

	(void)state;
	send_body(client, asked, "[\"", 2);
	settle();
	assert_body(far_talk(), "[\"");
	secret_send("token", "An-Even-N3wer-Value-0123456", 0);
	send_body(client, asked, words[0], strlen(words[0]));
	send_body(client, asked, "\"]", 2);
	refused(client, asked, 503, NP_R_CREDENTIAL_MISSING, "token");
	assert_body(far_talk(), "[\"");
}

/* -- a rise ----------------------------------------------------------------------------------------- */

static void test_a_rise_ends_what_carries_it(void **state)
{
	const struct link_ca ca = { .session = "test/s", .len = 1 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct peer *with = client_tls(i & 1 ? "h2.test" : "origin.test", i & 2),
			    *without = client_tls("evil.test", i & 2), *far;
		struct talk *asked = ask_with(with, "GET", "/a", NO_BODY, "authorization", bearer(words[0])), *other;

		settle();
		far = last_asked;
		assert_string_equal(talk_field(far_talk(), "authorization"), "Bearer " VALUE);
		other = ask(without, "GET", "/b", NO_BODY);
		settle();
		raise_to(LEVEL_CONFIDENTIAL, NP_PROXIED);
		assert_memory_equal(asked->words, "403 ", 4);
		assert_true(far->eof); /* nothing that waits in it leaves */
		assert_int_equal(last_report()->request.reason, NP_R_ENDED_BY_RAISE);
		assert_string_equal(last_report()->request.credential, "token");
		assert_string_equal(other->words, ""); /* the control: it goes on */
		answer(last_asked, far_talk(), 204, NO_BODY);
		settle();
		assert_string_equal(other->words, "204 end ");
		asked = ask_with(client_tls("origin.test", i & 2), "GET", "/", NO_BODY, "authorization",
				 bearer(words[0]));
		settle();
		assert_memory_equal(asked->words, "403 ", 4);
		end_close(&with->end);
		end_close(&without->end);
		sandbox_send(LINK_GONE, 1, LEVEL_CONFIDENTIAL, NP_PROXIED);
		sandbox_send(LINK_SANDBOX, 1, LEVEL_INTERNAL, NP_PROXIED);
		message_send(LINK_CA, &ca, sizeof(ca), -1);
		settle();
	}
	assert_nowhere(VALUE);
}

/* -- what leaves, what comes back ------------------------------------------------------------------- */

static void test_a_value_does_not_leave(void **state)
{
	struct peer *client = client_tls("evil.test", true);
	struct talk *asked = ask_with(client, "GET", "/" VALUE, NO_BODY, NULL, NULL);

	(void)state;
	refused(client, asked, 403, NP_R_SECRET_LEAVING, "token");
	assert_int_equal(n_fars, 0);
	client = client_tls("origin.test", false); /* nor to where it belongs */
	asked = ask(client, "PUT", "/", CHUNKED);
	send_body(client, asked, "first R3al-S3cret-", 18);
	settle();
	assert_body(far_talk(), "first");
	send_body(client, asked, "Value-0123456789", 16);
	refused(client, asked, 403, NP_R_SECRET_LEAVING, "token");
	assert_body(far_talk(), "first");
	assert_nowhere(VALUE);
}

static void test_refuse_cuts_a_response_short(void **state)
{
	(void)state;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_tls("get.test", h2);
		struct talk *asked = ask_with(client, "GET", "/", NO_BODY, "authorization", bearer(words[1])), *got;

		settle();
		got = far_talk();
		assert_string_equal(talk_field(got, "authorization"), "Bearer " REFUSED);
		answer(last_asked, got, 200, CHUNKED);
		send_body(last_asked, got, "a beginning, ", 13);
		settle();
		send_body(last_asked, got, "and " REFUSED " in it", strlen("and " REFUSED " in it"));
		settle();
		assert_false(asked->ended);
		assert_true(h2 ? asked->closed : client->eof);
		assert_int_equal(last_report()->request.reason, NP_R_SECRET_RETURNED);
		assert_non_null(strstr(last_report()->request.text, "strict"));
		end_close(&client->end);
		settle();
	}
	assert_nowhere(REFUSED);
}

static void test_what_cannot_be_searched(void **state)
{
	struct peer *client = client_tls("origin.test", true);
	struct talk *asked = ask_with(client, "GET", "/", NO_BODY, "authorization", bearer(words[0]));

	(void)state;
	settle();
	answer_with(last_asked, far_talk(), 200, 3, "content-encoding", "compress");
	send_body(last_asked, far_talk(), "abc", 3);
	settle();
	assert_memory_equal(asked->words, "502 ", 4);
	assert_int_equal(last_report()->request.reason, NP_R_UNSEARCHABLE);
	client = client_tls("evil.test", true); /* the control: nobody searches it */
	asked = ask(client, "GET", "/", NO_BODY);
	settle();
	answer_with(last_asked, far_talk(), 200, 3, "content-encoding", "compress");
	send_body(last_asked, far_talk(), "abc", 3);
	send_end(last_asked, far_talk(), NULL);
	settle();
	assert_body(asked, "abc");
}

#define test(name) cmocka_unit_test_setup_teardown(name, credentials_start, world_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_there_and_back),
		test(test_in_a_body_in_pieces),
		test(test_always),
		test(test_elsewhere),
		test(test_elsewhere_in_a_body_that_has_begun),
		test(test_no_value_no_request),
		test(test_a_value_that_is_over),
		test(test_a_value_that_came_while_a_body_did),
		test(test_a_rise_ends_what_carries_it),
		test(test_a_value_does_not_leave),
		test(test_refuse_cuts_a_response_short),
		test(test_what_cannot_be_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
