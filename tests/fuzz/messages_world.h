/* SPDX-License-Identifier: MIT */
/*
 * A websocket whose messages are searched, without connections: bytes of its client or of its origin go in, and what the other end would
 * read comes out, as messages. Its session has a placeholder of which messages may have the value, and one of which they may not.
 */
#pragma once

/* What they would ask of a whole worker is answered here. */
#define echo_set    test_echo_set
#define leak_report test_leak_report
#include "inspect/tunnel_messages.c"

#include "check.h"
#include "policy/policy.h"

#define GOOD_VALUE  "R3al-S3cret-Value-0123456789"
#define OTHER_VALUE "An0ther-S3cret-Value-98765432"

static const char messages_policy[] =
	"version: 1\ncredentials:\n"
	"  good: {source: {env: A}, for: ws.test, as: [websocket], placeholder: {like: 'sk-{40}'}}\n"
	"  other: {source: {env: B}, for: other.test, placeholder: {like: 'ghp_{36}'}, echo: refuse}\n"
	"rules:\n- allow: [ws.test, other.test]\n  websocket: true\n";

static struct worker fake_worker = { .link = -1 };
static struct session fake_session = { .name = "test/s" };
static struct sandbox fake_sandbox = { .session = &fake_session,
				       .rung = { .level = LEVEL_CONFIDENTIAL, .mode = NP_PROXIED } };
static struct client fake_client = { .worker = &fake_worker, .sandbox = &fake_sandbox, .port = 443 };
static struct carried fake_carried;
static struct tunnel fake_tunnel;
static char word_texts[2][NP_PLACEHOLDER_MAX + 1];
static const char *good_word = "", *other_word = "";
static const char *leaked; /* the credential whose value was about to leave */
static bool echo_searched; /* what the origin says is searched */

struct secret_set *test_echo_set(const struct exchange *ex)
{
	struct secret_set *set = NULL;

	check(secret_watch(ex->client->worker, &set) == 0 && set);
	return echo_searched ? set : NULL;
}

const char *test_leak_report(const struct client *client, const struct secret_set *set, int found)
{
	(void)client;
	return leaked = set->names[found];
}

static void messages_setup(void)
{
	_problems_ struct problems problems = { 0 };
	const struct policy *policy;

	check(policy_load_text("t", messages_policy, strlen(messages_policy), &fake_worker.policy, &problems) == 0);
	policy = fake_worker.policy;
	memset(&fake_worker.placeholder_key, 7, sizeof(fake_worker.placeholder_key));
	fake_worker.secret_watch.generation = UINT64_MAX;
	check(secrets_put(&fake_worker.secrets, policy->hash, "good", GOOD_VALUE, strlen(GOOD_VALUE), 0) == 0);
	check(secrets_put(&fake_worker.secrets, policy->hash, "other", OTHER_VALUE, strlen(OTHER_VALUE), 0) == 0);
	check(host_parse("ws.test", 7, &fake_client.host) == 0);
}

/* It is this session's. Placeholders differ: of some sessions one ends with what the other begins with. */
static void messages_session(unsigned number)
{
	const struct policy *policy = fake_worker.policy;

	snprintf(fake_session.name, sizeof(fake_session.name), "test/s%u", number);
	session_drop_placeholders(&fake_session);
	for (unsigned i = 0; i < 2; i++)
		placeholder_make(&fake_worker.placeholder_key, fake_session.name, policy->credentials[i].name,
				 policy->credentials[i].like, word_texts[i]);
	good_word = word_texts[0];
	other_word = word_texts[1];
}

/* A websocket of this moment. searched: its request carries the good one, so what comes back is looked at. */
static void messages_open(bool searched)
{
	static struct exchange ex;

	echo_searched = searched;
	leaked = NULL;
	fake_carried =
		(struct carried){ .generation = fake_worker.secrets.generation, .tls = true, .body_values = true };
	ex = (struct exchange){ .client = &fake_client, .carried = &fake_carried };
	fake_tunnel = (struct tunnel){ .client = &fake_client, .carried = &fake_carried };
	check(head_set_method(&fake_tunnel.head, "GET", 3) == 0 && head_set_target(&fake_tunnel.head, "/", 1) == 0);
	check(tunnel_messages_begin(&fake_tunnel, &ex, false) == 0);
}

static void messages_close(void)
{
	tunnel_messages_end(&fake_tunnel);
	head_free(&fake_tunnel.head);
}

static void messages_teardown(void)
{
	session_drop_placeholders(&fake_session);
	secret_watch_free(&fake_worker.secret_watch);
	secrets_keep(&fake_worker.secrets, NULL);
	policy_free(fake_worker.policy);
}

/* -- what the other end reads ------------------------------------------------------------------ */

#define HEARD_MAX 64

struct heard {
	enum websocket_opcode opcode;
	struct buf text;
	bool whole;
};

struct hearing {
	struct websocket frames;
	struct heard all[HEARD_MAX];
	unsigned n;
	struct heard *message; /* that has begun, and not ended */
};

static struct heard *heard_new(struct hearing *hearing, enum websocket_opcode opcode)
{
	struct heard *heard = &hearing->all[hearing->n++];

	check(hearing->n <= HEARD_MAX);
	*heard = (struct heard){ .opcode = opcode, .text = BUF_INIT(8u << 20) };
	return heard;
}

static int heard_frame(void *ctx, const struct websocket_frame *frame)
{
	struct hearing *hearing = ctx;

	check(!frame->compressed);
	if (frame->opcode & 8)
		heard_new(hearing, frame->opcode)->whole = true;
	else if (frame->opcode != WEBSOCKET_CONTINUATION)
		hearing->message = heard_new(hearing, frame->opcode);
	if (!(frame->opcode & 8) && frame->fin)
		hearing->message->whole = frame->len == 0;
	return 0;
}

static int heard_payload(void *ctx, const struct websocket_frame *frame, uint64_t at, const char *data, size_t len)
{
	struct hearing *hearing = ctx;
	struct heard *heard = frame->opcode & 8 ? &hearing->all[hearing->n - 1] : hearing->message;
	const size_t had = heard->text.len;

	buf_append(&heard->text, data, len);
	websocket_unmask(frame, at, heard->text.data + had, len, heard->text.data + had);
	heard->whole |= frame->fin && at + len == frame->len;
	return 0;
}

static void hearing_init(struct hearing *hearing, bool from_client)
{
	static const struct websocket_events events = { .frame = heard_frame, .payload = heard_payload };

	*hearing = (struct hearing){ 0 };
	websocket_init(&hearing->frames, from_client, false, &events, hearing);
}

static void hearing_free(struct hearing *hearing)
{
	for (unsigned i = 0; i < hearing->n; i++)
		buf_free(&hearing->all[i].text);
}

/* Bytes of one end, in pieces: what the other end reads of them is a websocket's frames. 0, or -EACCES with a report. */
static int messages_say(bool from_client, const char *data, size_t len, size_t each, struct hearing *hearing)
{
	int r = 0;

	for (size_t at = 0; at < len && r >= 0; at += each) {
		_buf_ struct buf out = BUF_INIT(8u << 20);
		const size_t n = len - at < each ? len - at : each;
		char *copy = malloc(n); /* no byte beyond it is read */

		check(copy);
		memcpy(copy, data + at, n);
		r = tunnel_messages_pass(&fake_tunnel, from_client, copy, n, &out);
		free(copy);
		check(!buf_error(&out) && websocket_read(&hearing->frames, out.data ?: "", out.len) == 0);
		check(fake_tunnel.messages->ways[from_client].held.len <= NP_WITHHELD_BYTES);
	}
	return r < 0 ? r : 0;
}
