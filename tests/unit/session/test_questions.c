/* SPDX-License-Identifier: MIT */
/* Questions: who waits for which, what an answer lets pass, and what ends either. */
#include "fake.h"
#include "policy/policy.h"
#include "vocab/limits.h"

#include "session/questions.c"

#define HEAD "version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\napproval: {timeout: 1m}\n"
#define ASKS HEAD "rules:\n  - ask: ['**.example']\n"

static struct policy *loaded;

static void policy_use(const char *text)
{
	_problems_ struct problems problems = { 0 };
	struct policy *policy = NULL;

	assert_int_equal(policy_load_text("p.yaml", text, strlen(text), &policy, &problems), 0);
	policy_free(loaded);
	fake.policy = loaded = policy;
}

static int setup(void **state)
{
	if (fake_setup(state))
		return -1;
	policy_use(ASKS);
	fake.modes = loaded->modes;
	fake_stop();
	fake_start();
	fake_replies[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	policy_free(loaded);
	loaded = NULL;
	return fake_teardown(state);
}

#define question_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const char *held_policy; /* that an inspector judged by; NULL: the one in force */

static const char *asked_path = "/";

/* An inspector holds something of the sandbox. method empty: nothing of it is seen. */
static void asks_by(const struct sandbox_info *sandbox, const char *host, const char *method, uint64_t number,
		    unsigned inspector)
{
	char url[NP_QUESTION_URL];
	const struct question_ask ask = { .cgroup_id = sandbox->cgroup.id,
					  .rung = sandbox->rung,
					  .policy = held_policy ? held_policy : loaded->hash,
					  .rule = loaded->n_rules ? loaded->rules[0].mark : 0,
					  .place = "p.yaml:5",
					  .tls = *method,
					  .host = host,
					  .port = 443,
					  .write = strcmp(method, "GET") != 0,
					  .method = method,
					  .url = url };
	const struct question_waiter waiter = { .inspector = inspector, .pid = 10, .number = number };

	snprintf(url, sizeof(url), *method ? "https://%s%s" : "%s:443", host, asked_path);
	service_question_ask(fake.service, &ask, &waiter);
}

static void asks_at(const struct sandbox_info *sandbox, const char *host, bool write, uint64_t number,
		    unsigned inspector)
{
	asks_by(sandbox, host, write ? "POST" : "GET", number, inspector);
}

static void asks(const struct sandbox_info *sandbox, const char *host, uint64_t number)
{
	asks_at(sandbox, host, false, number, 0);
}

static int answers(uint64_t id, enum question_answer answer, uint64_t for_ms)
{
	const struct question_given given = { .answer = answer, .for_ms = for_ms, .reason = "" };
	struct question_row row;

	return service_question_answer(fake.service, id, &given, "boss", &row, &fake.failure);
}

static int answers_by(const char *who, uint64_t id, enum question_answer answer)
{
	const struct question_given given = { .answer = answer, .reason = "" };
	struct question_row row;

	return service_question_answer(fake.service, id, &given, who, &row, &fake.failure);
}

static int answers_as(const char *who, uint64_t id)
{
	return answers_by(who, id, ANSWER_HOST);
}

static struct question_row shown(uint64_t id)
{
	struct question_row row;

	assert_int_equal(service_question_show(fake.service, id, &row, &fake.failure), 0);
	return row;
}

/* What the inspectors were sent since this was asked last. */
static void assert_replies(const char *want)
{
	assert_string_equal(fake_replies, want);
	fake_replies[0] = '\0';
}

static void test_what_waits_for_the_same_shares_a_question(void **state)
{
	const struct sandbox_info *one = made("a/b"), *two = made("a/b"), *other = made("c/d");
	struct question_row row;

	(void)state;
	asks(one, "h.example", 1);
	asks(two, "h.example", 2);
	asks_at(one, "h.example", true, 3, 0);
	asks(one, "i.example", 4);
	asks(other, "h.example", 5);
	assert_replies("1 pending 1\n2 pending 1\n3 pending 2\n4 pending 3\n5 pending 4\n");
	row = shown(1);
	assert_int_equal(service_question_waiting(fake.service, &row), 2);
	service_question_leave(fake.service, &(struct question_waiter){ .number = 2 });
	assert_int_equal(service_question_waiting(fake.service, &row), 1);
	assert_int_equal(answers(1, ANSWER_HOST, 0), 0);
	assert_replies("1 allowed 1\n");
	asks(two, "h.example", 6);
	assert_replies("6 allowed 1\n");
	asks_at(two, "h.example", true, 7, 0); /* another kind waits on */
	assert_replies("7 pending 2\n");
	assert_int_equal(answers(1, ANSWER_DENY, 0), -EALREADY);
	assert_int_equal(fake.failure.reason, NP_R_QUESTION_OVER);
	assert_int_equal(answers(77, ANSWER_DENY, 0), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_QUESTION);
}

static void test_once_goes_to_who_has_waited_longest(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "h.example", 2);
	assert_replies("1 pending 1\n2 pending 1\n");
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	assert_replies("2 again 1\n1 allowed 1\n");
	assert_true(shown(1).over_us > 0);
	asks(sandbox, "h.example", 2);
	assert_replies("2 pending 2\n");
	/* Nobody waits: the next that comes has it, and nobody else. */
	service_question_leave(fake.service, &(struct question_waiter){ .number = 2 });
	assert_int_equal(answers(2, ANSWER_ONCE, 0), 0);
	assert_replies("");
	assert_true(shown(2).over_us == 0 && shown(2).until_us > fake.wall);
	asks(sandbox, "h.example", 3);
	asks(sandbox, "h.example", 4);
	assert_replies("3 allowed 2\n4 pending 3\n");
}

static void asks_for(const struct sandbox_info *sandbox, const char *path, uint64_t number)
{
	asked_path = path;
	asks(sandbox, "h.example", number);
	asked_path = "/";
}

/* Who shows one request does not have another one go. */
static void test_once_is_for_what_was_shown(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	char longest[NP_QUESTION_URL];

	(void)state;
	asks_for(sandbox, "/shown", 1);
	asks_for(sandbox, "/other", 2);
	asks_for(sandbox, "/shown", 3);
	service_question_leave(fake.service, &(struct question_waiter){ .number = 1 });
	assert_replies("1 pending 1\n2 pending 1\n3 pending 1\n");
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	assert_replies("2 again 1\n3 allowed 1\n");
	asks_for(sandbox, "/shown", 4);
	asks_for(sandbox, "/other", 5);
	service_question_leave(fake.service, &(struct question_waiter){ .number = 4 });
	assert_replies("4 pending 2\n5 pending 2\n");
	assert_int_equal(answers(2, ANSWER_ONCE, 0), 0);
	assert_replies("5 again 2\n");
	asks_for(sandbox, "/other", 5); /* beside the answer, which waits for its own */
	asks_for(sandbox, "/shown", 6);
	assert_replies("5 pending 3\n6 allowed 2\n");
	assert_int_equal(answers(3, ANSWER_ONCE, 0), 0);
	assert_replies("5 allowed 3\n");
	/* What was cut may go on in another way: only the very one that is shown is it. */
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1 - strlen("https://h.example")] = '\0';
	asks_for(sandbox, longest, 7);
	asks_for(sandbox, longest, 8);
	assert_replies("7 pending 4\n8 pending 4\n");
	assert_int_equal(answers(4, ANSWER_ONCE, 0), 0);
	assert_replies("8 again 4\n7 allowed 4\n");
	asks_by(sandbox, "h.example", "A-METHOD-OF-31-BYTES-IS-CUT-...", 9, 0);
	asks_by(sandbox, "h.example", "A-METHOD-OF-31-BYTES-IS-CUT-...", 10, 0);
	assert_replies("9 pending 5\n10 pending 5\n");
	assert_int_equal(answers(5, ANSWER_ONCE, 0), 0);
	assert_replies("10 again 5\n9 allowed 5\n");
}

static void leaves(uint64_t number)
{
	service_question_leave(fake.service, &(struct question_waiter){ .number = number });
}

static void takes(uint64_t number)
{
	service_question_taken(fake.service, &(struct question_waiter){ .number = number });
}

/* The answer and the end of the wait cross: nothing has gone on by it, so who comes next has it. */
static void test_once_comes_back_from_who_has_left(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct question_counts counts;

	(void)state;
	asks_for(sandbox, "/shown", 1);
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	assert_replies("1 pending 1\n1 allowed 1\n");
	assert_true(shown(1).over_us > 0);
	service_questions_count(fake.service, &counts);
	assert_true(!counts.waiting && !counts.answers);
	leaves(1);
	assert_true(shown(1).over_us == 0);
	leaves(1); /* once */
	takes(1);
	asks_for(sandbox, "/other", 2);
	asks_for(sandbox, "/shown", 3);
	assert_replies("2 pending 2\n3 allowed 1\n");
	takes(3);
	leaves(3); /* it went on, whatever it says then */
	assert_true(shown(1).over_us > 0);
	asks_for(sandbox, "/shown", 4);
	assert_replies("4 pending 2\n");
}

/* The retry was faster than the news that the first one had left, by another inspector. */
static void test_once_that_comes_back_finds_who_was_asked_about_meanwhile(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks_for(sandbox, "/shown", 1);
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	asks_for(sandbox, "/shown", 2);
	assert_replies("1 pending 1\n1 allowed 1\n2 pending 2\n");
	leaves(1);
	assert_replies("2 again 2\n");
	assert_int_equal(shown(2).state, QUESTION_VOID);
	asks_for(sandbox, "/shown", 2);
	assert_replies("2 allowed 1\n");
	/* It waits among others for a question that shows another. */
	takes(2);
	asks_for(sandbox, "/shown", 3);
	assert_int_equal(answers(3, ANSWER_ONCE, 0), 0);
	asks_for(sandbox, "/other", 4);
	asks_for(sandbox, "/shown", 5);
	assert_replies("3 pending 3\n3 allowed 3\n4 pending 4\n5 pending 4\n");
	leaves(3);
	assert_replies("4 again 4\n5 again 4\n");
	asks_for(sandbox, "/other", 4);
	asks_for(sandbox, "/shown", 5);
	assert_replies("4 pending 4\n5 allowed 3\n");
}

static void test_once_that_does_not_come_back(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	uint64_t number = 10;

	(void)state;
	/* Where the record does not know it. */
	asks(sandbox, "h.example", 1);
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	fake.disk_full = true;
	leaves(1);
	fake.disk_full = false;
	assert_true(shown(1).over_us > 0);
	asks(sandbox, "h.example", 2);
	assert_replies("1 pending 1\n1 allowed 1\n2 pending 2\n");
	/* From an inspector that has ended: nobody knows whether it went on. */
	assert_int_equal(answers(2, ANSWER_ONCE, 0), 0);
	service_question_lost(fake.service, 0);
	leaves(2);
	assert_true(shown(2).over_us > 0);
	/* After a rise it is void, and so is what would come back. */
	asks(sandbox, "h.example", 3);
	assert_int_equal(answers(3, ANSWER_ONCE, 0), 0);
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	leaves(3);
	assert_true(shown(3).over_us > 0);
	/* More often than is worth a write to the disk each time. */
	fake_replies[0] = '\0';
	asks(sandbox, "h.example", number);
	assert_replies("10 pending 4\n");
	assert_int_equal(answers(4, ANSWER_ONCE, 0), 0);
	for (int i = 0; i < NP_ANSWER_RETURNS; i++) {
		leaves(number);
		assert_true(shown(4).over_us == 0);
		asks(sandbox, "h.example", ++number);
	}
	leaves(number);
	assert_true(shown(4).over_us > 0);
	fake_replies[0] = '\0';
	asks(sandbox, "h.example", 90);
	assert_replies("90 pending 5\n");
}

static void test_once_for_a_time_comes_back_for_the_rest_of_it(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks(sandbox, "h.example", 1);
	assert_int_equal(answers(1, ANSWER_ONCE, 10000), 0);
	leaves(1);
	asks(sandbox, "h.example", 2);
	takes(2);
	assert_replies("1 pending 1\n1 allowed 1\n2 allowed 1\n");
	fake.wall += 11000000;
	service_sweep(fake.service);
	assert_replies("0 over 1\n");
	/* Without one, its time is for who would come: what was given it in the last moment goes on. */
	asks(sandbox, "h.example", 3);
	assert_int_equal(answers(2, ANSWER_ONCE, 0), 0);
	fake.wall += 61000000;
	service_sweep(fake.service);
	assert_replies("3 pending 2\n3 allowed 2\n");
	takes(3);
	service_sweep(fake.service);
	assert_replies("");
}

/* The record comes first: what it does not take does not pass. */
static void test_what_cannot_be_recorded_does_not_pass(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	fake.disk_full = true;
	asks(sandbox, "h.example", 1);
	assert_replies("1 refused 0\n");
	fake.disk_full = false;
	asks(sandbox, "h.example", 1);
	assert_replies("1 pending 1\n");
	fake.disk_full = true;
	assert_true(answers(1, ANSWER_HOST, 0) < 0);
	assert_int_equal(fake.failure.reason, NP_R_NOT_RECORDED);
	assert_replies("");
	fake.disk_full = false;
	service_question_leave(fake.service, &(struct question_waiter){ .number = 1 });
	assert_int_equal(answers(1, ANSWER_ONCE, 0), 0);
	fake.disk_full = true;
	asks(sandbox, "h.example", 2);
	assert_replies("2 refused 1\n");
	fake.disk_full = false;
	asks(sandbox, "h.example", 3);
	assert_replies("3 allowed 1\n");
}

static void test_a_rise_voids_questions_and_answers(void **state)
{
	const struct sandbox_info *sandbox = made("a/b"), *other = made("c/d");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	asks(other, "h.example", 3);
	assert_int_equal(answers(1, ANSWER_HOST, 0), 0);
	assert_replies("1 pending 1\n2 pending 2\n3 pending 3\n1 allowed 1\n");
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	assert_replies("0 over 1\n2 again 2\n");
	assert_int_equal(shown(2).state, QUESTION_VOID);
	assert_true(shown(1).over_us > 0);
	assert_int_equal(shown(3).state, QUESTION_PENDING);
	assert_int_equal(answers(2, ANSWER_HOST, 0), -EALREADY);
	asks(sandbox, "h.example", 4);
	assert_replies("4 pending 4\n");
	assert_int_equal(shown(4).rung.level, LEVEL_INTERNAL);
	/* The same level once more is no rise. */
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, "data", NULL), 0);
	assert_replies("");
}

static void test_what_was_judged_by_another_rung_or_policy_is_judged_again(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct sandbox_info before = *sandbox;
	const struct question_given stale = { .answer = ANSWER_HOST, .reason = "", .policy = "another" };
	const struct question_given older = {
		.answer = ANSWER_HOST, .reason = "", .has_generation = true, .generation = 0
	};
	struct question_row row;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	asks(&before, "h.example", 1);
	assert_replies("1 again 0\n");
	asks(sandbox, "h.example", 1);
	assert_replies("1 pending 1\n");
	held_policy = "another";
	asks(sandbox, "h.example", 2);
	held_policy = NULL;
	assert_replies("2 again 0\n");
	assert_int_equal(service_question_answer(fake.service, 1, &stale, "boss", &row, &fake.failure), -ESTALE);
	assert_int_equal(fake.failure.reason, NP_R_QUESTION_CHANGED);
	assert_int_equal(service_question_answer(fake.service, 1, &older, "boss", &row, &fake.failure), -ESTALE);
	assert_int_equal(shown(1).state, QUESTION_PENDING);
}

static void test_a_policy_that_does_not_ask_any_more(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct policy_effect effect = { 0 };

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	assert_replies("1 pending 1\n2 pending 2\n2 allowed 2\n");
	policy_use(ASKS "# the same rules\n");
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	assert_replies("");
	policy_use(HEAD "rules:\n  - allow: ['**.example']\n");
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	assert_replies("1 again 1\n0 over 2\n");
	assert_int_equal(shown(1).state, QUESTION_VOID);
}

static void test_time_ends_questions_and_answers(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(2, ANSWER_HOST, 30000), 0);
	assert_replies("1 pending 1\n2 pending 2\n2 allowed 2\n");
	fake.wall += 30000000;
	asks(sandbox, "i.example", 3); /* before the sweep has seen it */
	assert_replies("0 over 2\n3 pending 3\n");
	fake.wall += 30000000;
	assert_int_equal(answers(1, ANSWER_HOST, 0), -EALREADY);
	service_sweep(fake.service);
	assert_replies("1 refused 1\n");
	assert_int_equal(shown(1).state, QUESTION_EXPIRED);
	asks(sandbox, "h.example", 4);
	assert_replies("4 pending 4\n");
}

/* A request that may write is seen, a connection is not: who allowed the one was not asked about the other. */
static void test_a_connection_is_of_another_kind(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks_by(sandbox, "h.example", "POST", 1, 0);
	asks_by(sandbox, "h.example", "", 2, 0);
	assert_replies("1 pending 1\n2 pending 2\n");
	assert_int_equal(answers(1, ANSWER_HOST, 0), 0);
	asks_by(sandbox, "h.example", "", 3, 0);
	asks_by(sandbox, "h.example", "PUT", 4, 0);
	assert_replies("1 allowed 1\n3 pending 2\n4 allowed 1\n");
}

/* What was allowed once, for a time, ends with it; the next is asked about meanwhile. Without a time it ends by itself. */
static void test_time_ends_what_once_has_opened(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(1, ANSWER_ONCE, 30000), 0);
	assert_int_equal(answers(2, ANSWER_ONCE, 0), 0);
	asks(sandbox, "h.example", 3);
	assert_replies("1 pending 1\n2 pending 2\n1 allowed 1\n2 allowed 2\n3 pending 3\n");
	fake.wall += 30000000;
	service_sweep(fake.service);
	assert_replies("0 over 1\n");
	fake.wall += 30000000;
	service_sweep(fake.service);
	assert_replies("3 refused 3\n");
}

/* The rung of a session may come from a cgroup that another had: at the generation that it has itself. */
static void test_a_level_of_the_same_generation(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct session *session;

	(void)state;
	asks(sandbox, "h.example", 1);
	assert_int_equal(answers(1, ANSWER_HOST, 0), 0);
	assert_replies("1 pending 1\n1 allowed 1\n");
	session = session_find(fake.service, "a/b");
	questions_raised(fake.service, session);
	assert_replies("");
	session->stands.level++;
	questions_raised(fake.service, session);
	session->stands.level--;
	assert_replies("0 over 1\n");
	assert_true(shown(1).over_us > 0);
}

static void test_the_end_of_a_session(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(shown(1).state, QUESTION_VOID);
	assert_true(shown(2).over_us > 0);
	fake_replies[0] = '\0';
	asks(made("a/b"), "i.example", 3); /* it comes back at the same generation, and the answer does not */
	assert_replies("3 pending 3\n");
}

static void test_a_restart(void **state)
{
	const struct sandbox_info *sandbox = made("a/b"), *risen = made("c/d");

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	asks(risen, "h.example", 3);
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	fake_stop();
	fake_start();
	fake_replies[0] = '\0';
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(escalate("c/d", LEVEL_INTERNAL, NULL, NULL), 0); /* before the questions are back */
	assert_int_equal(service_questions_recover(fake.service, &fake.failure), 0);
	assert_int_equal(shown(1).state, QUESTION_PENDING);
	assert_int_equal(shown(3).state, QUESTION_VOID);
	sandbox = service_sandbox_by_cgroup(fake.service, fake.cgroups[0].id);
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_replies("1 pending 1\n2 allowed 2\n");
}

static void test_bounds(void **state)
{
	const struct sandbox_info *sandbox = made("a/b"), *other = made("c/d");
	char host[32];

	(void)state;
	for (uint64_t i = 1; i <= NP_QUESTIONS_PER_SESSION; i++) {
		snprintf(host, sizeof(host), "h%d.example", (int)i);
		asks(sandbox, host, i);
	}
	fake_replies[0] = '\0';
	asks(sandbox, "more.example", 100);
	assert_replies("100 refused 0\n");
	asks(sandbox, "h1.example", 101); /* one that is there is shared */
	asks(other, "h1.example", 102);	  /* another session has its own */
	assert_replies("101 pending 1\n102 pending 33\n");
	assert_int_equal(answers(5, ANSWER_DENY, 0), 0);
	asks(sandbox, "more.example", 103);
	assert_replies("5 denied 5\n103 pending 34\n");
	/* What an inspector says it holds is bounded, too. */
	fake.service->n_held[1] = NP_HELD_MAX;
	asks_at(sandbox, "h2.example", false, 104, 1);
	assert_replies("104 refused 2\n");
	fake.service->n_held[1] = 0;
	asks_at(sandbox, "h2.example", false, 105, 1);
	service_question_lost(fake.service, 1);
	assert_int_equal(fake.service->n_held[1], 0);
	fake_replies[0] = '\0';
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	assert_replies("2 allowed 2\n");
}

/* A rule is what it says: on another line it is the same, beside another on its line it is not that one. */
static void test_a_rule_that_moves(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct policy_effect effect = { 0 };
	uint64_t mark = loaded->rules[0].mark;

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	assert_replies("1 pending 1\n2 pending 2\n2 allowed 2\n");
	policy_use(HEAD "# a line more\nrules:\n  - deny: no.example\n  - {ask: '**.example'}\n");
	assert_true(loaded->rules[1].mark != mark); /* a list is not a word */
	policy_use(HEAD "# a line more\nrules:\n  - deny: no.example\n  - {ask: ['**.example']}\n");
	assert_true(loaded->rules[1].mark == mark);
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	assert_replies("");
	policy_use(HEAD "rules: [{ask: ['h.example']}, {ask: ['**.example']}, {ask: ['**.example'], methods: GET}]\n");
	assert_true(loaded->rules[0].mark != mark && loaded->rules[1].mark == mark && loaded->rules[2].mark != mark);
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	assert_replies("1 again 1\n"); /* another rule asks about it now */
}

static void test_an_answer_for_the_domain(void **state)
{
	const struct sandbox_info *sandbox = made("a/b"), *other = made("c/d");

	(void)state;
	policy_use(HEAD "rules:\n  - ask: ['**']\n");
	asks(sandbox, "a.example.org", 1);
	asks(sandbox, "b.example.org", 2);
	asks(sandbox, "no.example.org", 3);
	asks(sandbox, "other.org", 4);
	asks(other, "a.example.org", 5);
	asks_at(sandbox, "c.example.org", true, 6, 0);
	fake_replies[0] = '\0';
	assert_int_equal(answers(3, ANSWER_DENY, 0), 0);
	assert_replies("3 denied 3\n");
	assert_int_equal(answers(1, ANSWER_DOMAIN, 0), 0);
	assert_replies("2 again 2\n1 allowed 1\n");
	assert_string_equal(shown(1).domain, "example.org");
	assert_int_equal(shown(2).state, QUESTION_VOID);
	asks(sandbox, "b.example.org", 7);
	asks(sandbox, "example.org", 8);
	asks(sandbox, "x.y.example.org", 9);
	asks(sandbox, "no.example.org", 10); /* what was said of the host itself stands */
	asks(sandbox, "notexample.org", 11);
	asks_at(sandbox, "d.example.org", true, 12, 0);
	asks(other, "b.example.org", 13);
	assert_replies(
		"7 allowed 1\n8 allowed 1\n9 allowed 1\n10 denied 3\n11 pending 7\n12 pending 8\n13 pending 9\n");
	/* It comes back with a restart, and goes with a rise. */
	fake_stop();
	fake_start();
	fake_replies[0] = '\0';
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(service_questions_recover(fake.service, &fake.failure), 0);
	asks(service_sandbox_by_cgroup(fake.service, fake.cgroups[0].id), "e.example.org", 14);
	assert_replies("14 allowed 1\n");
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	assert_non_null(strstr(fake_replies, "0 over 1\n"));
	fake_replies[0] = '\0';
	asks(service_sandbox_by_cgroup(fake.service, fake.cgroups[0].id), "e.example.org", 15);
	assert_replies("15 pending 10\n");
}

/* Nobody else's host: of what several owners share there is no domain. */
static void test_a_domain_that_is_shared(void **state)
{
	static const char *const hosts[] = { "github.io", "co.uk", "org", "h.unlisted", "192.0.2.1", "2001:db8::1" };
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	policy_use(HEAD "rules:\n  - ask: ['**', '0.0.0.0/0', '::/0']\n");
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		asks(sandbox, hosts[i], i + 1);
		assert_int_equal(answers(i + 1, ANSWER_DOMAIN, 0), -EINVAL);
		assert_int_equal(fake.failure.reason, NP_R_BAD_FIELD);
		assert_int_equal(shown(i + 1).state, QUESTION_PENDING);
	}
	fake_replies[0] = '\0';
	asks(sandbox, "x.alice.github.io", 20);
	assert_int_equal(answers(7, ANSWER_DOMAIN, 0), 0);
	assert_string_equal(shown(7).domain, "alice.github.io");
	asks(sandbox, "y.alice.github.io", 21);
	asks(sandbox, "bob.github.io", 22);
	assert_replies("20 pending 7\n20 allowed 7\n21 allowed 7\n22 pending 8\n");
}

static void test_an_answer_is_taken_back(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct question_row row;

	(void)state;
	asks(sandbox, "h.example", 1);
	assert_int_equal(service_question_revoke(fake.service, 1, "", "boss", &row, &fake.failure), -EINVAL);
	assert_int_equal(answers(1, ANSWER_HOST, 0), 0);
	assert_replies("1 pending 1\n1 allowed 1\n");
	assert_int_equal(service_question_revoke(fake.service, 1, "why", "uid 7 pid 8", &row, &fake.failure), 0);
	assert_replies("0 over 1\n");
	assert_string_equal(row.ended_by, "uid 7 pid 8");
	assert_true(row.over_us && row.state == QUESTION_ALLOWED);
	assert_int_equal(service_question_revoke(fake.service, 1, "", "boss", &row, &fake.failure), -EALREADY);
	assert_int_equal(service_question_revoke(fake.service, 9, "", "boss", &row, &fake.failure), -ENOENT);
	asks(sandbox, "h.example", 2);
	assert_replies("2 pending 2\n");
	/* What the disk does not take holds no more all the same, and the sweep goes on trying. */
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	fake.disk_full = true;
	assert_true(service_question_revoke(fake.service, 2, "", "boss", &row, &fake.failure) < 0);
	assert_int_equal(fake.failure.reason, NP_R_NOT_RECORDED);
	assert_replies("2 allowed 2\n0 over 2\n");
	fake.disk_full = false;
	asks(sandbox, "h.example", 3);
	assert_replies("3 pending 3\n");
	assert_true(shown(2).over_us == 0);
	service_sweep(fake.service);
	assert_true(shown(2).over_us > 0);
	assert_string_equal(shown(2).ended_by, "boss");
}

/* What ended and could not be recorded is, as soon as that can be done; a daemon that starts then does not know it otherwise. */
static void test_an_end_that_the_disk_does_not_take(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	struct policy_effect effect = { 0 };

	(void)state;
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers(2, ANSWER_HOST, 0), 0);
	fake_replies[0] = '\0';
	fake.disk_full = true;
	policy_use(HEAD "rules:\n  - allow: ['**.example']\n");
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	assert_replies("1 again 1\n0 over 2\n");
	assert_int_equal(answers(1, ANSWER_HOST, 0), -EALREADY);
	policy_use(ASKS);
	assert_int_equal(service_policy_cut(fake.service, &effect, &fake.failure), 0);
	fake.disk_full = false;
	service_sweep(fake.service);
	assert_int_equal(shown(1).state, QUESTION_VOID);
	assert_true(shown(2).over_us > 0);
	fake_stop();
	fake_start();
	fake_replies[0] = '\0';
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(service_questions_recover(fake.service, &fake.failure), 0);
	asks(service_sandbox_by_cgroup(fake.service, fake.cgroups[0].id), "i.example", 3);
	assert_replies("3 pending 3\n");
}

static void test_four_eyes(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	policy_use("version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\napproval: {four_eyes: true}\nrules: "
		   "[{ask: ['**.example']}]\n");
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "uid 7 pid 8", &sandbox, &fake.failure), 0);
	asks(sandbox, "h.example", 1);
	assert_int_equal(answers_as("uid 7 pid 99", 1), -EACCES);
	assert_int_equal(fake.failure.reason, NP_R_NO_ROLE);
	assert_int_equal(answers_as("somebody", 1), -EACCES);
	assert_int_equal(shown(1).state, QUESTION_PENDING);
	assert_int_equal(answers_as("uid 77 pid 8", 1), 0);
	/* Who started the session some time ago is still who he is. */
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	asks(service_sandbox_by_cgroup(fake.service, fake.cgroups[0].id), "i.example", 2);
	assert_int_equal(answers_as("uid 7 pid 8", 2), -EACCES);
	policy_use(ASKS);
	assert_int_equal(answers_as("uid 7 pid 8", 2), 0);
}

/* By a raise, by a sandbox that could not be made, and by bringing it back. Who raises one that is there has not made it. */
static void test_four_eyes_of_who_makes_a_session(void **state)
{
	const struct sandbox_info *sandbox;
	struct escalation raised;

	(void)state;
	policy_use("version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\napproval: {four_eyes: true}\nrules: "
		   "[{ask: ['**.example']}]\n");
	assert_int_equal(service_escalate(fake.service, "a/b", LEVEL_INTERNAL, NULL, NULL, false, "uid 7 pid 8",
					  &raised, &fake.failure),
			 0);
	assert_int_equal(service_escalate(fake.service, "a/b", LEVEL_INTERNAL, "x", NULL, false, "uid 5 pid 8", &raised,
					  &fake.failure),
			 0);
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "uid 9 pid 8", &sandbox, &fake.failure), 0);
	asks(sandbox, "h.example", 1);
	assert_int_equal(answers_as("uid 7 pid 99", 1), -EACCES);
	assert_int_equal(answers_as("uid 9 pid 99", 1), -EACCES);
	assert_int_equal(answers_as("uid 5 pid 99", 1), 0);
	assert_int_equal(service_session_end(fake.service, "a/b", "uid 9 pid 8", &fake.failure), 0);
	assert_int_equal(service_escalate(fake.service, "a/b", LEVEL_INTERNAL, NULL, NULL, false, "uid 5 pid 8",
					  &raised, &fake.failure),
			 0);
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "uid 9 pid 8", &sandbox, &fake.failure), 0);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers_as("uid 5 pid 99", 2), -EACCES);
	assert_int_equal(answers_as("uid 6 pid 99", 2), 0);
	/* The session is there, though the sandbox is not. */
	fake_reset(3);
	assert_int_not_equal(service_sandbox_make(fake.service, "c/d", "uid 7 pid 8", &sandbox, &fake.failure), 0);
	fake_reset(0);
	assert_int_equal(service_sandbox_make(fake.service, "c/d", "uid 9 pid 8", &sandbox, &fake.failure), 0);
	asks(sandbox, "j.example", 3);
	assert_int_equal(answers_as("uid 7 pid 99", 3), -EACCES);
	assert_int_equal(answers_as("uid 6 pid 99", 3), 0);
}

/* What is for always is for every session of the user: nobody who started one of them answers so. */
static void test_four_eyes_of_what_is_for_always(void **state)
{
	const struct sandbox_info *sandbox, *other;

	(void)state;
	policy_use("version: 1\nlevels: {PUBLIC: proxied, INTERNAL: proxied}\napproval: {four_eyes: true}\nrules: "
		   "[{ask: ['**.example']}]\n");
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "uid 7 pid 8", &sandbox, &fake.failure), 0);
	assert_int_equal(service_sandbox_make(fake.service, "a/other", "uid 9 pid 8", &other, &fake.failure), 0);
	assert_int_equal(service_sandbox_make(fake.service, "ab/other", "uid 5 pid 8", &other, &fake.failure), 0);
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	assert_int_equal(answers_by("uid 9 pid 1", 1, ANSWER_ALWAYS), -EACCES);
	assert_int_equal(fake.failure.reason, NP_R_NO_ROLE);
	assert_int_equal(answers_by("uid 9 pid 1", 1, ANSWER_HOST), 0);
	assert_int_equal(answers_by("uid 5 pid 1", 2, ANSWER_ALWAYS), 0); /* of another user, whose name begins so */
}

/* What a person is shown: secrets were taken out by the inspector, what is long is cut here, and nothing writes to his screen. */
static void test_what_is_shown_of_a_request(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");
	char headers[4000], preview[300], longest[200];
	struct question_ask ask = { .cgroup_id = sandbox->cgroup.id,
				    .rung = sandbox->rung,
				    .policy = loaded->hash,
				    .rule = loaded->rules[0].mark,
				    .place = "p.yaml:5",
				    .tls = true,
				    .host = "h.example",
				    .port = 443,
				    .write = true,
				    .method = "POST",
				    .url = "https://h.example/",
				    .headers = headers,
				    .preview = preview,
				    .preview_len = sizeof(preview),
				    .pid = 77 };
	struct question_row row;

	(void)state;
	memset(preview, 'p', sizeof(preview));
	memset(longest, 'v', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ask.headers_len =
		(size_t)snprintf(headers, sizeof(headers), "x-a: 1\nx-esc: \33[2J\nx-long: %s\nx-empty: \n", longest);
	service_question_ask(fake.service, &ask, &(struct question_waiter){ .pid = 10, .number = 1 });
	row = shown(1);
	assert_int_equal(row.pid, 77);
	assert_int_equal(row.preview_len, NP_QUESTION_PREVIEW);
	assert_memory_equal(row.preview, preview, NP_QUESTION_PREVIEW);
	assert_non_null(strstr(row.headers, "x-a: 1\nx-esc: ?[2J\nx-long: vvv"));
	assert_non_null(strstr(row.headers, "v...\nx-empty: \n"));
	assert_true(strlen(row.headers) < 200);
	ask.host = "i.example";
	for (ask.headers_len = 0; ask.headers_len < 3000;)
		ask.headers_len += (size_t)snprintf(headers + ask.headers_len, sizeof(headers) - ask.headers_len,
						    "x-%zu: %.90s\n", ask.headers_len, longest);
	service_question_ask(fake.service, &ask, &(struct question_waiter){ .pid = 10, .number = 2 });
	row = shown(2);
	assert_true(strlen(row.headers) > 800);
	assert_string_equal(row.headers + strlen(row.headers) - 20, "...: there are more\n");
}

static void clock_set(int64_t seconds)
{
	fake.wall += (uint64_t)(seconds * 1000000);
	fake.set_us += (uint64_t)(seconds * 1000000);
}

/* The wall's clock is set: an answer holds as long as it was given for. */
static void test_a_clock_that_jumps(void **state)
{
	const struct sandbox_info *sandbox = made("a/b");

	(void)state;
	clock_set(1000000);
	asks(sandbox, "h.example", 1);
	asks(sandbox, "i.example", 2);
	asks(sandbox, "j.example", 3);
	assert_int_equal(answers(1, ANSWER_HOST, 30000), 0);
	clock_set(86400); /* tomorrow */
	service_sweep(fake.service);
	assert_int_equal(answers(2, ANSWER_HOST, 30000), 0); /* it still waits */
	clock_set(-2 * 86400);				     /* yesterday */
	fake_replies[0] = '\0';
	asks(sandbox, "h.example", 4);
	assert_replies("4 allowed 1\n");
	fake.wall += 30000000;
	service_sweep(fake.service);
	assert_replies("0 over 1\n0 over 2\n");
	/* A daemon that starts has the wall's clock alone: one that was set back ends it. */
	fake_stop();
	fake_start();
	fake_replies[0] = '\0';
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(service_questions_recover(fake.service, &fake.failure), 0);
	assert_int_equal(shown(3).state, QUESTION_EXPIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		question_test(test_what_waits_for_the_same_shares_a_question),
		question_test(test_once_goes_to_who_has_waited_longest),
		question_test(test_once_is_for_what_was_shown),
		question_test(test_once_comes_back_from_who_has_left),
		question_test(test_once_that_comes_back_finds_who_was_asked_about_meanwhile),
		question_test(test_once_that_does_not_come_back),
		question_test(test_once_for_a_time_comes_back_for_the_rest_of_it),
		question_test(test_what_cannot_be_recorded_does_not_pass),
		question_test(test_a_rise_voids_questions_and_answers),
		question_test(test_what_was_judged_by_another_rung_or_policy_is_judged_again),
		question_test(test_a_policy_that_does_not_ask_any_more),
		question_test(test_time_ends_questions_and_answers),
		question_test(test_a_connection_is_of_another_kind),
		question_test(test_time_ends_what_once_has_opened),
		question_test(test_a_level_of_the_same_generation),
		question_test(test_the_end_of_a_session),
		question_test(test_a_restart),
		question_test(test_bounds),
		question_test(test_a_rule_that_moves),
		question_test(test_an_answer_for_the_domain),
		question_test(test_a_domain_that_is_shared),
		question_test(test_an_answer_is_taken_back),
		question_test(test_an_end_that_the_disk_does_not_take),
		question_test(test_a_clock_that_jumps),
		question_test(test_four_eyes),
		question_test(test_four_eyes_of_who_makes_a_session),
		question_test(test_four_eyes_of_what_is_for_always),
		question_test(test_what_is_shown_of_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
