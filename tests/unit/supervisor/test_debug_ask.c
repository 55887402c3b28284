/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

static uint64_t now_ns = 1000000000;
#include "loop/loop.h"
static uint64_t clock_fake_ns(void)
{
	return now_ns;
}
#define loop_now_ns clock_fake_ns
#include "supervisor/debug_ask.c"

#include <jansson.h>
#include <stdio.h>
#include <sys/socket.h>

#define PROCESSES 3

static struct supervisor supervisor;
static struct briefed briefed;
static struct session_brief session;
static int inspectors[PROCESSES]; /* their ends of the links */
static unsigned wakes;

struct briefed *known_find(struct supervisor *w, uint64_t cgroup_id)
{
	assert_ptr_equal(w, &supervisor);
	return cgroup_id == briefed.sandbox.cgroup_id ? &briefed : NULL;
}

struct session_brief *session_brief_find(struct supervisor *w, const char *name)
{
	assert_ptr_equal(w, &supervisor);
	return strcmp(name, session.ca.session) == 0 ? &session : NULL;
}

uint64_t ledgers_unread(const struct ledgers *ledgers, unsigned index)
{
	(void)ledgers;
	return 100 + index;
}

static void on_debug(void *data)
{
	assert_ptr_equal(data, &wakes);
	wakes++;
}

static int setup(void **state)
{
	static struct table_node *bucket;

	(void)state;
	memset(&supervisor, 0, sizeof(supervisor));
	memset(&briefed, 0, sizeof(briefed));
	memset(&session, 0, sizeof(session));
	wakes = 0;
	supervisor.config = (struct supervisor_config){ .count = PROCESSES, .on_debug = on_debug, .data = &wakes };
	for (int i = 0; i < PROCESSES; i++) {
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		supervisor.processes[i] =
			(struct process){ .supervisor = &supervisor, .pid = 10 + i, .link = pair[0], .ready = true };
		inspectors[i] = pair[1];
	}
	briefed.sandbox = (struct link_sandbox){ .cgroup_id = 77, .rung = { NP_PROXIED, 2, 0, 0, 4 } };
	bucket = &briefed.node;
	supervisor.sandboxes = (struct table){ .buckets = &bucket, .size = 1 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	debug_clear(&supervisor);
	for (int i = 0; i < PROCESSES; i++) {
		close(supervisor.processes[i].link);
		close(inspectors[i]);
	}
	return 0;
}

/* -- shorthands -------------------------------------------------------------------------- */

static union {
	struct debug_page page;
	char bytes[LINK_BYTES_MAX];
} out;

static struct debug_entry *page_begin(uint32_t number)
{
	memset(&out, 0, sizeof(out));
	out.page.number = number;
	snprintf(out.page.policy, sizeof(out.page.policy), "abc");
	return &out.page.entries[0];
}

static void page_sandbox(const struct np_rung *rung)
{
	out.page.sums.count[DEBUG_SANDBOX]++;
	out.page.entries[out.page.n++] =
		(struct debug_entry){ .kind = DEBUG_SANDBOX, .cgroup_id = 77, .rung = *rung, .session = "a/b" };
}

static int page_learn(unsigned i)
{
	return debug_learn(&supervisor.processes[i], out.bytes,
			   sizeof(out.page) + out.page.n * sizeof(out.page.entries[0]));
}

static uint32_t ask(void)
{
	uint32_t number = 0;

	assert_int_equal(debug_ask(&supervisor, "a/b", 0, &number), 0);
	assert_true(number > 0);
	return number;
}

static json_t *written(uint32_t number, bool agree)
{
	_buf_ struct buf text = BUF_INIT(1u << 20);
	json_t *json;

	json_open_object(&text, NULL);
	json_open_object(&text, "sandbox");
	assert_int_equal(debug_rungs(&supervisor, number, 77, &briefed.sandbox.rung, &text), agree);
	json_close_object(&text);
	debug_inspectors(&supervisor, number, &text);
	json_close_object(&text);
	json = json_loads(text.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	return json;
}

static const json_t *inspector(const json_t *json, size_t i)
{
	const json_t *array = json_object_get(json, "inspectors");

	assert_int_equal(json_array_size(array), PROCESSES);
	return json_array_get(array, i);
}

static bool answered(const json_t *json, size_t i)
{
	return json_is_true(json_object_get(inspector(json, i), "answered"));
}

/* -- tests ------------------------------------------------------------------------------- */

static void each_is_asked_and_answers_once(void **state)
{
	const struct np_rung rung = briefed.sandbox.rung;
	uint32_t number = ask();
	json_t *json;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
		const struct debug_ask *got = (const void *)data;
		enum link_type type;
		size_t len;

		assert_int_equal(link_receive(inspectors[i], &type, data, &len, NULL), 0);
		assert_int_equal(type, LINK_DEBUG);
		assert_int_equal(len, sizeof(*got));
		assert_int_equal(got->number, number);
		assert_string_equal(got->session, "a/b");
		assert_false(debug_done(&supervisor, number));
		page_begin(number);
		page_sandbox(&rung);
		assert_int_equal(page_learn((unsigned)i), 0);
	}
	assert_int_equal(wakes, PROCESSES);
	assert_true(debug_done(&supervisor, number));
	/* A second page of the same one is not looked at. */
	page_begin(number)->session[0] = 'x';
	assert_int_equal(page_learn(0), 0);
	json = written(number, true);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_true(answered(json, i));
	assert_int_equal(json_array_size(json_object_get(json_object_get(json, "sandbox"), "inspectors")), PROCESSES);
	json_decref(json);
}

static void who_does_not_answer_is_not_waited_for(void **state)
{
	uint32_t number, other;
	json_t *json;

	(void)state;
	supervisor.processes[2].ready = false;
	number = ask();
	page_begin(number);
	page_sandbox(&briefed.sandbox.rung);
	page_learn(0);
	assert_false(debug_done(&supervisor, number));
	assert_int_equal(debug_ask(&supervisor, "", 0, &other), -EBUSY);
	debug_tick(&supervisor);
	assert_int_equal(wakes, 1);
	now_ns += NP_DEBUG_MS * 1000000ull;
	assert_true(debug_done(&supervisor, number));
	debug_tick(&supervisor);
	assert_int_equal(wakes, 2);
	/* The answer is there for who asked for it; who says nothing does not disagree. */
	assert_int_equal(debug_ask(&supervisor, "", 0, &other), -EBUSY);
	json = written(number, true);
	assert_true(answered(json, 0) && !answered(json, 1) && !answered(json, 2));
	assert_null(json_object_get(inspector(json, 1), "counts"));
	json_decref(json);
	/* What comes late is of no question any more. */
	number = ask();
	page_begin(number - 1);
	assert_int_equal(page_learn(1), 0);
	assert_null(supervisor.debug.of[1].page);
	/* One that dies is not waited for, and what it said is not its successor's. */
	page_begin(number);
	page_learn(0);
	supervisor.processes[0].pid = 99;
	supervisor.processes[1].pid = 0;
	assert_true(debug_done(&supervisor, number));
	json = written(number, true);
	assert_false(answered(json, 0));
	json_decref(json);
	/* And a question that nobody collects is over by itself. */
	number = ask();
	now_ns += (NP_DEBUG_MS + COLLECT_MS) * 1000000ull;
	debug_tick(&supervisor);
	assert_int_equal(supervisor.debug.until_ns, 0);
	assert_true(ask() != number);
}

static void a_disagreement_is_marked(void **state)
{
	struct np_rung other = briefed.sandbox.rung;
	uint32_t number;
	json_t *json;

	(void)state;
	/* Another generation, mode, level or flag. */
	for (int i = 0; i < 4; i++) {
		other = briefed.sandbox.rung;
		other.generation += i == 0;
		other.mode = i == 1 ? NP_NONE : other.mode;
		other.level = i == 2 ? 3 : other.level;
		other.flags = i == 3 ? NP_READ_ONLY : 0;
		number = ask();
		page_begin(number);
		page_sandbox(&other);
		page_learn(1);
		json = written(number, false);
		json_decref(json);
	}
	/* It does not know the sandbox at all; but on a later page it would not be. */
	number = ask();
	page_begin(number);
	page_learn(1);
	json = written(number, false);
	json_decref(json);
	number = ask();
	page_begin(number);
	out.page.sums.count[DEBUG_SANDBOX] = 5;
	page_learn(1);
	json = written(number, true);
	json_decref(json);
	/* Raised after the question: what it showed was right then. */
	other = briefed.sandbox.rung;
	number = ask();
	briefed.sandbox.rung.generation++;
	page_begin(number);
	page_sandbox(&other);
	page_learn(1);
	json = written(number, true);
	json_decref(json);
	/* The service has another than was sent. */
	number = ask();
	other = briefed.sandbox.rung;
	other.mode = NP_NONE;
	{
		_buf_ struct buf text = BUF_INIT(1u << 16);

		json_open_object(&text, NULL);
		assert_false(debug_rungs(&supervisor, number, 77, &other, &text));
		assert_false(debug_rungs(&supervisor, number, 78, &other, &text)); /* never sent */
	}
}

static void every_kind_of_entry(void **state)
{
	static const char *const names[] = { "sandboxes", "connections", "exchanges", "origins", "queries" };
	uint32_t number = ask();
	json_t *json;

	(void)state;
	page_begin(number);
	for (unsigned kind = 0; kind < DEBUG_KINDS; kind++)
		for (unsigned i = 0; debug_state_name(kind, i); i++) {
			struct debug_entry *entry = &out.page.entries[out.page.n++];

			*entry = (struct debug_entry){ .kind = (uint8_t)kind,
						       .state = (uint8_t)i,
						       .port = 443,
						       .cgroup_id = UINT64_MAX,
						       .held = UINT64_MAX,
						       .unsent = UINT64_MAX };
			snprintf(entry->host, sizeof(entry->host), "h\"\377\033.example");
			snprintf(entry->session, sizeof(entry->session), "a/b");
		}
	assert_int_equal(page_learn(0), 0);
	json = written(number, false); /* none of them is the sandbox that there is */
	for (unsigned kind = 0; kind < DEBUG_KINDS; kind++) {
		const json_t *array = json_object_get(inspector(json, 0), names[kind]), *entry;
		size_t i;

		json_array_foreach(array, i, entry)
			assert_true(kind == DEBUG_SANDBOX || !strcmp(json_string_value(json_object_get(entry, "state")),
								     debug_state_name(kind, (unsigned)i)));
		assert_null(debug_state_name(kind, (unsigned)i));
	}
	json_decref(json);
}

/* An inspector is taken to be lost to an attacker one day. */
static void nonsense_is_no_page(void **state)
{
	uint32_t number = ask();

	(void)state;
	page_begin(number);
	page_sandbox(&briefed.sandbox.rung);
	assert_int_equal(debug_learn(&supervisor.processes[0], out.bytes, sizeof(out.page)), -EPROTO);
	assert_int_equal(debug_learn(&supervisor.processes[0], out.bytes, 3), -EPROTO);
	out.page.n = 0xffffffff;
	assert_int_equal(debug_learn(&supervisor.processes[0], out.bytes, sizeof(out)), -EPROTO);
	for (int i = 0; i < 6; i++) {
		struct debug_entry *entry = page_begin(number);

		page_sandbox(&briefed.sandbox.rung);
		entry->kind = i == 0 ? DEBUG_KINDS : entry->kind;
		entry->state = i == 1 ? 1 : 0;
		entry->life = i == 2 ? 6 : 0;
		entry->tls = i == 3 ? 2 : 0;
		memset(entry->host, i == 4 ? 'x' : 0, sizeof(entry->host));
		memset(out.page.policy, i == 5 ? 'x' : 0, sizeof(out.page.policy));
		assert_int_equal(page_learn(0), -EPROTO);
	}
	assert_null(supervisor.debug.of[0].page);
	assert_int_equal(wakes, 0);
}

static void the_fingerprint_of_a_ca(void **state)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n"; /* "abc" */
	_buf_ struct buf text = BUF_INIT(4096);

	(void)state;
	snprintf(session.ca.session, sizeof(session.ca.session), "a/b");
	session.ca.len = 5;
	session.ca.pem_len = sizeof(pem) - 1;
	session.names_fd = -1;
	assert_int_equal(names_new(&(struct hash_key){ { 1, 2 } }, &session.names), 0);
	memcpy(session.ca.data + 5, pem, sizeof(pem));
	json_open_object(&text, NULL);
	debug_session(&supervisor, "a/b", &text);
	assert_non_null(strstr(text.data,
			       "\"BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:"
			       "FF:61:F2:00:15:AD\""));
	assert_null(strstr(text.data, "BEGIN"));
	/* What is no certificate has none, nor has a session that is not known. */
	session.ca.pem_len = 40;
	buf_clear(&text);
	json_open_object(&text, NULL);
	debug_session(&supervisor, "a/b", &text);
	debug_session(&supervisor, "a/c", &text);
	assert_null(strstr(text.data, "BA:78"));
	names_free(session.names);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_is_asked_and_answers_once),
		TEST(who_does_not_answer_is_not_waited_for),
		TEST(a_disagreement_is_marked),
		TEST(every_kind_of_entry),
		TEST(nonsense_is_no_page),
		TEST(the_fingerprint_of_a_ca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
