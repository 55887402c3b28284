/* SPDX-License-Identifier: MIT */
/* What deciders are asked, and what their answers are worth: for whom, how long, and what ends it. */
#include "fake_with_policy.h"
#include "vocab/limits.h"

#include "session/decisions.c"

#define POLICY                                                                                            \
	"version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\ndeciders: {g: {socket: /g}}\nrules:\n" \
	"  - decide: ['**.example']\n    by: g\n"

static int setup(void **state)
{
	int r = fake_policy_setup(state, POLICY);

	fake_replies[0] = fake_asked[0] = '\0';
	fake_deaf = false;
	return r;
}

static void asks(const struct sandbox_info *sandbox, const char *host, const char *method, uint64_t number)
{
	char url[300];
	const struct question_ask ask = { .cgroup_id = sandbox->cgroup.id,
					  .rung = sandbox->rung,
					  .policy = loaded->hash,
					  .place = "p.yaml:5",
					  .rule = loaded->rules[0].mark,
					  .tls = true,
					  .host = host,
					  .port = 443,
					  .write = strcmp(method, "GET") != 0,
					  .method = method,
					  .url = url,
					  .decider = 1,
					  .headers = "" };

	snprintf(url, sizeof(url), "https://%s/", host);
	service_question_ask(fake.service, &ask,
			     &(struct question_waiter){ .inspector = 0, .pid = 10, .number = number });
}

static void says(uint64_t id, enum decision_kind kind, enum decision_scope remember, uint32_t ttl_s)
{
	service_decision(fake.service,
			 &(struct decision){ .id = id, .kind = kind, .remember = remember, .ttl_s = ttl_s });
}

#define ASSERT_SENT(asked, replies)                         \
	do {                                                \
		assert_string_equal(fake_asked, asked);     \
		assert_string_equal(fake_replies, replies); \
		fake_asked[0] = fake_replies[0] = '\0';     \
	} while (0)

static void test_each_is_asked_about_unless_it_is_remembered(void **state)
{
	const struct sandbox_info *box = made("a/b"), *other = made("c/d");

	(void)state;
	asks(box, "h.example", "GET", 1);
	asks(box, "h.example", "GET", 2);
	ASSERT_SENT("g 1\ng 2\n", "");
	says(2, DECISION_DENY, REMEMBER_NONE, 0);
	says(1, DECISION_ALLOW, REMEMBER_HOST, 0);
	ASSERT_SENT("", "2 denied 0\n1 allowed 0\n");
	says(1, DECISION_DENY, REMEMBER_HOST, 0); /* nobody asked that */
	asks(box, "h.example", "GET", 3);
	ASSERT_SENT("", "3 allowed 0\n");
	asks(box, "h.example", "POST", 4);
	asks(box, "i.example", "GET", 5);
	asks(other, "h.example", "GET", 6);
	ASSERT_SENT("g 3\ng 4\ng 5\n", "");
	says(4, DECISION_DENY, REMEMBER_SESSION, 0);
	ASSERT_SENT("", "5 denied 0\n");
	asks(box, "j.example", "POST", 7);
	asks(box, "h.example", "GET", 8);
	ASSERT_SENT("", "7 denied 0\n8 allowed 0\n");
}

static void shows(uint64_t number, const char *bytes, bool whole)
{
	service_question_body(fake.service, &(struct question_waiter){ .inspector = 0, .pid = 10, .number = number },
			      bytes, strlen(bytes), whole);
}

static void needs(uint64_t id, uint32_t max)
{
	service_decision(fake.service, &(struct decision){ .id = id, .kind = DECISION_NEED_BODY, .max = max });
}

static void test_it_may_need_the_body(void **state)
{
	const struct sandbox_info *box = made("a/b");
	struct escalation done;

	(void)state;
	asks(box, "h.example", "POST", 1);
	shows(1, "nobody wants it", true);
	ASSERT_SENT("g 1\n", "");
	needs(1, 64);
	needs(9, 64); /* nobody asked that */
	ASSERT_SENT("", "1 body 0\n");
	shows(2, "another one's", true);
	shows(1, "hello", true);
	shows(1, "again", true);
	ASSERT_SENT("{\"type\":\"body\",\"id\":1,\"base64\":\"aGVsbG8=\",\"whole\":true}\n", "");
	says(1, DECISION_DENY, REMEMBER_HOST, 0);
	ASSERT_SENT("", "1 denied 0\n");
	asks(box, "h.example", "POST", 3); /* an answer that has seen the body counts as others do */
	ASSERT_SENT("", "3 denied 0\n");
	/* It answers before it was shown anything, or the channel breaks: what comes then is nobody's. */
	asks(box, "i.example", "POST", 4);
	needs(2, 1);
	says(2, DECISION_ALLOW, REMEMBER_NONE, 0);
	shows(4, "x", false);
	ASSERT_SENT("g 2\n", "4 body 0\n4 allowed 0\n");
	asks(box, "i.example", "POST", 5);
	needs(3, 1);
	fake_deaf = true;
	shows(5, "x", false);
	fake_deaf = false;
	ASSERT_SENT("g 3\nwithdraw 3\n", "5 body 0\n5 refused 0\n");
	/* The level rises meanwhile. */
	asks(box, "i.example", "POST", 6);
	needs(4, 1);
	ASSERT_SENT("g 4\n", "6 body 0\n");
	assert_int_equal(
		service_escalate(fake.service, "a/b", LEVEL_INTERNAL, NULL, NULL, false, "root", &done, &fake.failure),
		0);
	shows(6, "x", true);
	ASSERT_SENT("withdraw 4\n", "6 again 0\n");
	/* A client that hangs up. */
	asks(box, "i.example", "POST", 7);
	needs(5, 1);
	service_question_leave(fake.service, &(struct question_waiter){ .inspector = 0, .pid = 10, .number = 7 });
	shows(7, "x", true);
	ASSERT_SENT("g 5\nwithdraw 5\n", "7 body 0\n");
}

static void test_what_is_remembered_ends(void **state)
{
	const struct sandbox_info *box = made("a/b");
	struct escalation done;

	(void)state;
	asks(box, "h.example", "GET", 1);
	says(1, DECISION_ALLOW, REMEMBER_HOST, 60);
	fake.later_ns += 61000000000ull;
	asks(box, "h.example", "GET", 2);
	ASSERT_SENT("g 1\ng 2\n", "1 allowed 0\n");
	says(2, DECISION_ALLOW, REMEMBER_HOST, 600);
	ASSERT_SENT("", "2 allowed 0\n");
	asks(box, "i.example", "GET", 3);
	assert_int_equal(
		service_escalate(fake.service, "a/b", LEVEL_INTERNAL, NULL, NULL, false, "root", &done, &fake.failure),
		0);
	ASSERT_SENT("g 3\nwithdraw 3\n", "3 again 0\n");
	says(3, DECISION_ALLOW, REMEMBER_NONE, 0); /* late */
	asks(box, "h.example", "GET", 4);
	ASSERT_SENT("g 4\n", "");
	says(4, DECISION_DENY, REMEMBER_HOST, 0);
	ASSERT_SENT("", "4 denied 0\n");
	questions_reload(fake.service);
	asks(box, "h.example", "GET", 5);
	ASSERT_SENT("g 5\n", "");
}

static void test_failures_are_not_remembered_and_who_leaves_takes_it_back(void **state)
{
	const struct sandbox_info *box = made("a/b");

	(void)state;
	fake_deaf = true;
	asks(box, "h.example", "GET", 1);
	ASSERT_SENT("", "1 refused 0\n");
	fake_deaf = false;
	asks(box, "h.example", "GET", 2);
	says(1, DECISION_NONE, REMEMBER_NONE, 0);
	says(2, DECISION_NONE, REMEMBER_NONE, 0);
	ASSERT_SENT("g 2\n", "2 refused 0\n");
	asks(box, "h.example", "GET", 3);
	service_question_leave(fake.service, &(struct question_waiter){ .number = 3 });
	ASSERT_SENT("g 3\nwithdraw 3\n", "");
	asks(box, "h.example", "GET", 4);
	service_question_lost(fake.service, 0);
	ASSERT_SENT("g 4\nwithdraw 4\n", "");
}

static void test_it_hands_on_and_raises(void **state)
{
	const struct sandbox_info *box = made("a/b");
	struct question_row row;

	(void)state;
	asks(box, "h.example", "GET", 1);
	says(1, DECISION_ASK, REMEMBER_NONE, 0);
	asks(box, "h.example", "GET", 2);
	says(2, DECISION_ASK, REMEMBER_NONE, 0);
	ASSERT_SENT("g 1\ng 2\n", "1 pending 1\n2 pending 1\n");
	assert_int_equal(service_question_answer(fake.service, 1,
						 &(struct question_given){ .answer = ANSWER_HOST, .reason = "" },
						 "boss", &row, &fake.failure),
			 0);
	ASSERT_SENT("", "1 allowed 1\n2 allowed 1\n");
	/* What a person has allowed is what it hands over, and nothing else. */
	asks(box, "h.example", "GET", 3);
	says(3, DECISION_ASK, REMEMBER_NONE, 0);
	asks(box, "h.example", "GET", 4);
	says(4, DECISION_DENY, REMEMBER_NONE, 0);
	ASSERT_SENT("g 3\ng 4\n", "3 allowed 1\n4 denied 0\n");
	asks(box, "i.example", "GET", 4);
	asks(box, "j.example", "GET", 5);
	service_decision(fake.service,
			 &(struct decision){ .id = 5, .kind = DECISION_RAISE, .level = LEVEL_INTERNAL, .words = "w" });
	assert_int_equal(box->rung.level, LEVEL_INTERNAL);
	ASSERT_SENT("g 5\ng 6\nwithdraw 6\n", "5 again 0\n0 over 1\n4 denied 0\n");
}

/* A person's deny is final: a decider is not asked whether it should be. */
static void test_what_a_person_denied_it_is_not_asked_about(void **state)
{
	const struct sandbox_info *box = made("a/b");
	struct question_row row;

	(void)state;
	asks(box, "h.example", "GET", 1);
	says(1, DECISION_ASK, REMEMBER_NONE, 0);
	assert_int_equal(service_question_answer(fake.service, 1,
						 &(struct question_given){ .answer = ANSWER_DENY, .reason = "" },
						 "boss", &row, &fake.failure),
			 0);
	asks(box, "h.example", "GET", 2);
	ASSERT_SENT("g 1\n", "1 pending 1\n1 denied 1\n2 denied 1\n");
}

static void test_memory_is_bounded(void **state)
{
	const struct sandbox_info *box = made("a/b");
	char host[32];

	(void)state;
	for (unsigned i = 0; i < NP_DECISIONS_REMEMBERED + 10; i++) {
		snprintf(host, sizeof(host), "h%u.example", i);
		asks(box, host, "GET", 1);
		says(i + 1, DECISION_ALLOW, REMEMBER_HOST, 0);
		fake_asked[0] = fake_replies[0] = '\0';
	}
	assert_int_equal(fake.service->decisions.n_known, NP_DECISIONS_REMEMBERED);
	asks(box, "h4.example", "GET", 1);
	ASSERT_SENT("g 4107\n", "");
	asks(box, "h400.example", "GET", 1);
	ASSERT_SENT("", "1 allowed 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_is_asked_about_unless_it_is_remembered, setup,
						fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_it_may_need_the_body, setup, fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_remembered_ends, setup, fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_failures_are_not_remembered_and_who_leaves_takes_it_back, setup,
						fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_it_hands_on_and_raises, setup, fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_what_a_person_denied_it_is_not_asked_about, setup,
						fake_policy_teardown),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, setup, fake_policy_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
