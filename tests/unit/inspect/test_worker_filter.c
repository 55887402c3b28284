/* SPDX-License-Identifier: MIT */
/* Stages that change what passes: heads and bodies, both ways, with HTTP/1.1 and HTTP/2 on either side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "worker_world.h"

/* -- a stage that changes heads ------------------------------------------------------------------ */

static bool rewrites;

static enum stage_result head_start(struct exchange *ex)
{
	struct head *out = rewrites ? exchange_outgoing(ex) : NULL;

	if (!out)
		return STAGE_NEXT;
	assert_ptr_equal(exchange_outgoing(ex), out);
	fields_remove(&out->fields, "authorization");
	assert_int_equal(fields_add(&out->fields, "authorization", 13, "real", 4), 0);
	assert_int_equal(head_set_target(out, "/?key=real", 10), 0);
	return STAGE_NEXT;
}

static enum stage_result head_response(struct exchange *ex, struct head *head)
{
	(void)ex;
	if (rewrites)
		fields_remove(&head->fields, "x-echo");
	return STAGE_NEXT;
}

static const struct stage stage_head = {
	.name = "head", .role = STAGE_MODIFIES, .start = head_start, .response = head_response
};

/* -- a stage that changes bodies ------------------------------------------------------------------ */

static const char *find, *put; /* in its place; NULL: nothing is */
static enum stage_want want;
static const char *forbidden; /* ends it */
static unsigned inflates;     /* so many bytes for each */
static unsigned ends;	      /* that it saw */
static const struct stage stage_body;

/* Of what it is looking for, perhaps the beginning is here and the rest comes. */
static size_t body_used(const char *data, size_t len, const char *text)
{
	const size_t most = strlen(text) - 1 < len ? strlen(text) - 1 : len;

	for (size_t n = most; n > 0; n--)
		if (!memcmp(data + len - n, text, n))
			return len - n;
	return len;
}

static enum stage_result body_inflate(struct piece *piece)
{
	static char block[1024];
	size_t n = 0;

	memset(block, 'x', sizeof(block));
	for (; n < piece->len && piece->out->len < NP_BACKLOG_LOW; n++)
		for (unsigned i = 0; i < inflates; i += sizeof(block))
			buf_append(piece->out, block, sizeof(block));
	piece->used = n;
	return n < piece->len ? STAGE_MORE : STAGE_REPLACED;
}

static enum stage_result on_body(struct exchange *ex, struct piece *piece)
{
	const char *at = piece->data, *end = at + piece->len, *hit;

	ends += piece->end;
	if (inflates)
		return body_inflate(piece);
	if (forbidden && piece->len && memmem(piece->data, piece->len, forbidden, strlen(forbidden))) {
		exchange_stop(ex, NP_R_RULE_DENIES, NULL, "a word that must not pass");
		return STAGE_OVER;
	}
	if (!find)
		return STAGE_NEXT;
	while (at < end && (hit = memmem(at, (size_t)(end - at), find, strlen(find)))) {
		buf_append(piece->out, at, (size_t)(hit - at));
		buf_puts(piece->out, put);
		at = hit + strlen(find);
	}
	if (at < end) {
		size_t n = piece->end ? (size_t)(end - at) : body_used(at, (size_t)(end - at), find);

		buf_append(piece->out, at, n);
		at += n;
	}
	piece->used = (size_t)(at - piece->data);
	return STAGE_REPLACED;
}

static enum stage_result body_start(struct exchange *ex)
{
	if (find || forbidden || inflates) {
		stage_wants(ex, &stage_body, WAY_REQUEST, want);
		stage_wants(ex, &stage_body, WAY_RESPONSE, want);
	}
	return STAGE_NEXT;
}

static const struct stage stage_body = {
	.name = "body", .role = STAGE_MODIFIES, .start = body_start, .request_body = on_body, .response_body = on_body
};

const struct stage *const stages[] = {
	&stage_place,	 &stage_judge,	&stage_capture, &stage_canonical, &stage_head, &stage_body,
	&stage_upstream, &stage_report, NULL,
};

static int filter_start(void **state)
{
	rewrites = false;
	find = put = forbidden = NULL;
	want = WANT_REPLACE;
	inflates = ends = 0;
	return world_start(state);
}

#define filter_test(name) cmocka_unit_test_setup_teardown(name, filter_start, world_stop)

static struct peer *client_between(bool near_h2, bool far_h2)
{
	if (!near_h2 && !far_h2)
		return client_plain("origin.test");
	return client_tls(far_h2 ? "h2.test" : "origin.test", near_h2);
}

static struct peer *last_far(struct talk **ret)
{
	*ret = &last_asked->talks[last_asked->n - 1];
	return last_asked;
}

/* -- heads -------------------------------------------------------------------------------------------- */

/* The origin gets another one than the client sent; who reads the event sees the client's. */
static void test_head(void **state)
{
	(void)state;
	rewrites = true;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked =
			ask_with(client, "GET", "/?key=placeholder", NO_BODY, "authorization", "placeholder");
		struct talk *heard;

		settle();
		origin = last_far(&heard);
		assert_string_equal(heard->words, "GET /?key=real end ");
		assert_string_equal(talk_field(heard, "authorization"), "real");
		assert_int_equal(heard->fields.n, 1);
		answer_with(origin, heard, 204, NO_BODY, "x-echo", "real");
		settle();
		assert_string_equal(asked->words, "204 end ");
		assert_int_equal(asked->fields.n, 0);
		pass_ms(50);
		assert_non_null(strstr(reports[i].url, "/?key=placeholder"));
	}
}

/* Interim heads go through it as well. */
static void test_head_interim(void **state)
{
	struct peer *client = client_plain("origin.test"), *origin;
	struct talk *asked = ask(client, "GET", "/", NO_BODY), *heard;

	(void)state;
	rewrites = true;
	settle();
	origin = last_far(&heard);
	answer_with(origin, heard, 103, NO_BODY, "x-echo", "real");
	settle();
	assert_string_equal(asked->words, "103 ");
	assert_int_equal(asked->fields.n, 0);
}

/* -- bodies --------------------------------------------------------------------------------------------- */

/* Of another length than before, cut anywhere, announced or not. */
static void test_replaced(void **state)
{
	(void)state;
	find = "SECRET";
	put = "(a placeholder)";
	for (int i = 0; i < 8; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", i & 4 ? 14 : CHUNKED), *heard;

		send_body(client, asked, "<SEC", 4);
		settle();
		origin = last_far(&heard);
		assert_string_equal(heard->words, "POST / ");
		assert_body(heard, "<");
		send_body(client, asked, "RET> SECR!", 10);
		send_end(client, asked, NULL);
		settle();
		assert_string_equal(heard->words, "POST / end ");
		assert_body(heard, "<(a placeholder)> SECR!");
		answer(origin, heard, 200, i & 4 ? 10 : CHUNKED);
		send_body(origin, heard, "[SECR", 5);
		settle();
		assert_string_equal(asked->words, "200 ");
		assert_body(asked, "[");
		send_body(origin, heard, "ET]SE", 5);
		send_end(origin, heard, NULL);
		settle();
		assert_string_equal(asked->words, "200 end ");
		assert_body(asked, "[(a placeholder)]SE");
		pass_ms(50);
		assert_int_equal(reports[i].request.sent, 23);
		assert_int_equal(reports[i].request.received, 10);
	}
	assert_int_equal(ends, 16);
}

/* A body that is there before its head goes is announced with the length that it has then. */
static void test_length_known(void **state)
{
	(void)state;
	find = "SECRET";
	put = "-";
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2);
		struct talk *asked, *heard;

		/* The dial is made when all has been read. */
		asked = ask(client, "POST", "/", 8);
		send_body(client, asked, "<SECRET>", 8);
		send_end(client, asked, NULL);
		settle();
		last_far(&heard);
		if (i < 3) /* over a connection that is there the head goes at once */
			assert_string_equal(heard->words, "POST / len=3 end ");
		assert_body(heard, "<->");
	}
}

/* Who promises to keep the length is held to that. */
static void test_same_length(void **state)
{
	(void)state;
	find = "SECRET";
	want = WANT_SAME;
	for (int i = 0; i < 2; i++) {
		struct peer *client = client_plain("origin.test"), *origin;
		struct talk *asked = ask(client, "POST", "/", 8), *heard;

		put = "HIDDEN";
		settle();
		origin = last_far(&heard);
		assert_string_equal(heard->words, "POST / len=8 ");
		put = i ? "TOO MUCH" : put;
		send_body(client, asked, "<SECRET>", 8);
		send_end(client, asked, NULL);
		settle();
		if (!i) {
			assert_body(heard, "<HIDDEN>");
			assert_true(heard->ended);
			answer(origin, heard, 204, NO_BODY);
			settle();
			assert_string_equal(asked->words, "204 end ");
		} else {
			assert_memory_equal(asked->words, "502 ", 4);
			assert_true(origin->eof && !heard->ended);
		}
	}
}

static void test_stopped(void **state)
{
	(void)state;
	forbidden = "SECRET";
	want = WANT_LOOK;
	for (int i = 0; i < 8; i++) {
		const bool response = i & 4;
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", 12), *heard;

		send_body(client, asked, "first ", 6);
		settle();
		origin = last_far(&heard);
		assert_string_equal(heard->words, "POST / len=12 ");
		if (response) {
			answer(origin, heard, 200, 12);
			send_body(origin, heard, "first ", 6);
			settle();
			send_body(origin, heard, "SECRET", 6);
		} else {
			send_body(client, asked, "SECRET", 6);
			send_end(client, asked, NULL);
		}
		settle();
		pass_ms(50);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, NP_R_RULE_DENIES);
		assert_string_equal(reports[i].request.text, "a word that must not pass");
		assert_false(heard->ended);
		assert_body(heard, "first ");
		if (i & 2)
			assert_non_null(strstr(heard->words, "reset:8 "));
		else
			assert_true(origin->eof);
		if (!response)
			assert_memory_equal(asked->words, "403 ", 4);
		else if (i & 1)
			assert_string_equal(asked->words, "200 len=12 reset:2 ");
		else
			assert_true(client->eof && !asked->ended);
	}
}

/* Trailers come behind what was made of the body. */
static void test_trailers(void **state)
{
	struct peer *client = client_tls("h2.test", true), *origin;
	struct talk *asked = ask(client, "POST", "/", CHUNKED), *heard;

	(void)state;
	find = "SECRET";
	put = "-";
	send_body(client, asked, "SEC", 3);
	send_end(client, asked, "x-sum");
	settle();
	origin = last_far(&heard);
	assert_string_equal(heard->words, "POST / end x-sum=1 ");
	assert_body(heard, "SEC");
	answer(origin, heard, 200, CHUNKED);
	send_body(origin, heard, "RET", 3);
	send_end(origin, heard, "x-end");
	settle();
	assert_string_equal(asked->words, "200 end x-end=1 ");
}

/* A response without a body has none afterwards either. */
static void test_no_body(void **state)
{
	struct peer *client = client_plain("origin.test"), *origin;
	struct talk *asked = ask(client, "HEAD", "/", NO_BODY), *heard;

	(void)state;
	find = "SECRET";
	put = "-";
	settle();
	origin = last_far(&heard);
	say(origin, "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n");
	settle();
	assert_string_equal(asked->words, "200 end "); /* of what length it would be nobody knows */
	assert_int_equal(ends, 0);
}

/* A kilobyte of each byte: who takes it slowly is waited for, and nothing is lost. */
static void test_inflated(void **state)
{
	static char bytes[2000];

	(void)state;
	inflates = 1024;
	for (int i = 0; i < 4; i++) {
		struct peer *client = client_between(i & 1, i & 2), *origin;
		struct talk *asked = ask(client, "POST", "/", CHUNKED), *heard;

		ends_small = true;
		settle();
		origin = last_far(&heard);
		origin->end.deaf = true;
		send_body(client, asked, bytes, sizeof(bytes));
		send_end(client, asked, NULL);
		settle();
		assert_in_range(worker->memory.held, 1, 4 * NP_BACKLOG_HIGH);
		origin->end.deaf = false;
		settle();
		assert_int_equal(heard->body.len, sizeof(bytes) * 1024);
		assert_true(heard->ended);
		client->end.deaf = true;
		answer(origin, heard, 200, sizeof(bytes));
		send_body(origin, heard, bytes, sizeof(bytes));
		send_end(origin, heard, NULL);
		settle();
		pass_ms(50);
		assert_in_range(worker->memory.held, 1, 4 * NP_BACKLOG_HIGH);
		assert_false(asked->ended);
		assert_int_equal(n_reports, i);
		/* The origin is not needed for the rest. */
		if (!(i & 2))
			end_close(&origin->end);
		settle();
		client->end.deaf = false;
		settle();
		pass_ms(50);
		assert_int_equal(asked->body.len, sizeof(bytes) * 1024);
		assert_true(asked->ended);
		assert_int_equal(n_reports, i + 1);
		assert_int_equal(reports[i].request.reason, NP_R_RULE_ALLOWS);
	}
}

/* It answers before it has heard all, and the client goes on to send while the rest is still being made. */
static void test_inflated_early(void **state)
{
	static char bytes[2000], upload[1u << 20];

	(void)state;
	inflates = 1024;
	for (int h2 = 0; h2 < 2; h2++) {
		struct peer *client = client_between(h2, false), *origin;
		struct talk *asked = ask(client, "POST", "/", sizeof(upload)), *heard;

		settle();
		origin = last_far(&heard);
		client->end.deaf = true;
		answer(origin, heard, 200, sizeof(bytes));
		send_body(origin, heard, bytes, sizeof(bytes));
		send_end(origin, heard, NULL);
		settle();
		send_body(client, asked, upload, sizeof(upload));
		send_end(client, asked, NULL);
		settle();
		assert_true(origin->eof);
		assert_int_equal(client->end.out.len, 0); /* one that reads when it has said all is read to its end */
		client->end.deaf = false;
		settle();
		assert_int_equal(asked->body.len, sizeof(bytes) * 1024);
		assert_true(asked->ended);
		assert_int_equal(client->end.out.len, 0);
	}
}

/* The client goes while the rest is still being made. */
static void test_inflated_client_goes(void **state)
{
	static char bytes[2000];
	struct peer *client = client_plain("origin.test"), *origin;
	struct talk *heard;

	(void)state;
	inflates = 1024;
	ask(client, "GET", "/", NO_BODY);
	settle();
	origin = last_far(&heard);
	client->end.deaf = true;
	answer(origin, heard, 200, sizeof(bytes));
	send_body(origin, heard, bytes, sizeof(bytes));
	send_end(origin, heard, NULL);
	settle();
	end_reset(&client->end);
	settle();
	pass_ms(50);
	assert_int_equal(n_reports, 1);
	assert_string_equal(reports[0].request.text, "the client went away");
}

/* What was sent is sent again as it was: the stages do not see it twice. */
static void test_sent_again(void **state)
{
	struct peer *client = client_tls("h2.test", true);
	struct talk *asked = ask(client, "POST", "/", 8), *heard;

	(void)state;
	find = "SECRET";
	put = "-";
	send_body(client, asked, "<SECRET>", 8);
	send_end(client, asked, NULL);
	settle();
	last_far(&heard);
	assert_body(heard, "<->");
	h2_reset(heard->stream, H2_REFUSED_STREAM);
	settle();
	assert_int_equal(n_fars, 2);
	last_far(&heard);
	assert_string_equal(heard->words, "POST / len=3 end ");
	assert_body(heard, "<->");
	assert_int_equal(ends, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		filter_test(test_head),	       filter_test(test_head_interim),
		filter_test(test_replaced),    filter_test(test_length_known),
		filter_test(test_same_length), filter_test(test_stopped),
		filter_test(test_trailers),    filter_test(test_no_body),
		filter_test(test_inflated),    filter_test(test_inflated_client_goes),
		filter_test(test_sent_again),  filter_test(test_inflated_early),
	};

	return cmocka_run_group_tests_name("worker_filter", tests, NULL, NULL);
}
