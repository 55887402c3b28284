/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/asked_whom.c"

#include "base/arena.h"
#include "policy/outcome.h"
#include "policy/parse_attempt.h"

#include "make.h"

static struct asked_whom whom;

/* Is anybody asked about it? */
static bool asks(const struct policy *policy, const char *method, const char *where, uint64_t body)
{
	_arena_ struct arena *arena = NULL;
	struct facts facts = { .rung = { .mode = NP_PROXIED, .level = LEVEL_INTERNAL }, .session = "a/b" };
	const char *problem;
	struct verdict verdict;

	assert_int_equal(arena_new(1 << 16, &arena), 0);
	assert_int_equal(method ? attempt_request(arena, method, where, &facts, &problem)
				: attempt_connect(arena, where, &facts, &problem),
			 0);
	facts.body = body;
	facts.has_body = body;
	verdict = policy_outcome(policy, &facts);
	return asked_whom(policy, &facts, &verdict, &whom);
}

static void test_a_person(void **state)
{
	_policy_ struct policy *policy =
		policy_of("approval: {hold: 1500ms, timeout: 2h, group: '77', four_eyes: true}\n"
			  "access:\n"
			  "  approver: [user:1001]\n"
			  "  operator: group:55\n"
			  "  reader: user:1002\n"
			  "rules:\n"
			  "- deny: never.example\n"
			  "- allow: open.example\n"
			  "- ask: ['**.example', 'db.test:5432', '2001:db8::/32']\n");

	(void)state;
	assert_false(asks(policy, "GET", "https://never.example/", 0));
	assert_false(asks(policy, "GET", "https://open.example/", 0));
	assert_true(asks(policy, "GET", "https://a.example/x", 0));
	assert_null(whom.decider);
	assert_string_equal(whom.whom,
			    "a person: root, group 55, user 1001, group 77 at approve.sock; not who has started "
			    "something in the session (four_eyes)");
	assert_string_equal(whom.about, "reading from a.example:443, in TLS");
	assert_string_equal(whom.waits, "for 1500 ms, then 403 needs_approval with retry_after; people have 2 h");
	assert_string_equal(whom.retry, "it joins the question, or meets its answer");
	/* What an answer is for. */
	assert_true(asks(policy, "GET", "http://a.example:80/x", 9));
	assert_string_equal(whom.about, "writing to a.example:80, in the clear");
	assert_true(asks(policy, NULL, "db.test:5432", 0));
	assert_string_equal(whom.about, "a connection to db.test:5432");
	assert_true(asks(policy, "PUT", "https://[2001:db8::1]/", 0));
	assert_string_equal(whom.about, "writing to [2001:db8::1]:443, in TLS");
}

static void test_a_decider(void **state)
{
	_policy_ struct policy *policy =
		policy_of("deciders:\n"
			  "  guard: {command: [/bin/guard, --secret], timeout: 2s, network: true}\n"
			  "  other: {socket: /run/x.sock, timeout: 1m}\n"
			  "approval: {remember: once}\n"
			  "default: ask\n"
			  "rules:\n"
			  "- {decide: a.example, by: guard}\n"
			  "- {decide: b.example, by: other}\n");

	(void)state;
	assert_true(asks(policy, "GET", "https://a.example/x", 0));
	assert_string_equal(whom.decider->name, "guard");
	assert_string_equal(whom.whom, "the decider \"guard\" (command /bin/guard), which has a network");
	assert_string_equal(whom.waits,
			    "for 2 s, then 403 needs_decider with retry_after; a person, if it hands it on");
	assert_true(asks(policy, "GET", "https://b.example/x", 0));
	assert_string_equal(whom.whom, "the decider \"other\" (socket /run/x.sock)");
	assert_memory_equal(whom.waits, "for 1 min, ", 11);
	assert_true(asks(policy, "GET", "https://c.example/x", 0));
	assert_string_equal(whom.whom, "a person: root");
	assert_string_equal(whom.retry,
			    "it joins the question, or meets its answer, which is for one request (remember: once)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_person),
		cmocka_unit_test(test_a_decider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
