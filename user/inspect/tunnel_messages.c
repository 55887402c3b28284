/* SPDX-License-Identifier: MIT */
/*
 * The frames of a websocket, which are checked as they pass, and where the policy has credentials the messages in them. What the client
 * says is searched for secrets and for placeholders, which become values in text where the policy says so; what the origin says is
 * searched for secrets if a credential goes with the websocket. Both while they stream: frames are written anew, with what is decided of
 * a message, and only bytes that could be the beginning of something wait. Without credentials they pass as they are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/echo_words.h"
#include "inspect/leak.h"
#include "inspect/secret_watch.h"
#include "inspect/stage_credentials.h"
#include "inspect/tunnel_internal.h"

#define CONTROL_MAX 125

/* One direction. */
struct way {
	struct tunnel *tunnel;
	struct websocket *frames;
	enum websocket_opcode opcode; /* of the message that is under way */
	bool begun;		      /* some of it has gone: what follows is a continuation */
	bool typed, json;	      /* its first character is known; it begins a JSON text */
	struct buf held;	      /* of the message: not decided yet */
	char control[CONTROL_MAX];    /* the payload of a control frame: it is looked at as a whole */
	size_t control_len;
	struct buf *out; /* frames go there */
};

struct messages {
	struct way ways[2]; /* the origin's, the client's, as tunnel->frames */
	struct echo_words echo;
};

static int way_end(const struct way *way, enum np_reason reason, const char *words)
{
	struct link_request *report = &way->tunnel->report;

	report->reason = reason;
	snprintf(report->text, sizeof(report->text), "%s", words);
	return -EACCES;
}

static int way_fail(const struct way *way)
{
	return way_end(way, NP_R_INTERNAL, "a message could not be searched for secrets");
}

static void frame_put(struct way *way, enum websocket_opcode opcode, bool fin, const char *data, size_t len)
{
	websocket_write(way->out, opcode, fin, way->frames->from_client ? way->frames->frame.mask : NULL, data, len);
}

static void message_put(struct way *way, const char *data, size_t len, bool end)
{
	if (!len && !end)
		return;
	frame_put(way, way->begun ? WEBSOCKET_CONTINUATION : way->opcode, end, data, len);
	way->begun = !end;
}

/* -- what leaves ------------------------------------------------------------------------------- */

/* found: the number of a secret, or without a set of a token; -1: there is none; or less: it could not be searched. */
static int leak_judge(const struct way *way, const struct secret_set *set, int found)
{
	struct link_request *report = &way->tunnel->report;
	char words[NP_NAME_MAX + 80];
	const char *name;

	if (found == -1)
		return 0;
	if (found < -1)
		return way_fail(way);
	name = set ? leak_report(way->tunnel->client, set, found) : leak_report_token(way->tunnel->client, found);
	snprintf(report->credential, sizeof(report->credential), "%s", name);
	snprintf(words, sizeof(words), "%s of the credential %s is in a message", set ? "the value" : "a token", name);
	return way_end(way, NP_R_SECRET_LEAVING, words);
}

/* No secret is in what the client says; *used as scrub_look() has it. */
static int leak_look(const struct way *way, const char *data, size_t len, bool end, size_t *used)
{
	struct worker *worker = way->tunnel->client->worker;
	struct secret_set *set = NULL;
	size_t of_tokens;
	int r;

	*used = len;
	if (secret_watch(worker, &set) < 0)
		return way_fail(way);
	r = set ? leak_judge(way, set, scrub_look(secret_scrubber(worker, set), data, len, end, used)) : 0;
	if (r == 0)
		r = leak_judge(way, NULL, token_watch_look(way->tunnel->client, data, len, end, &of_tokens));
	if (r == 0 && of_tokens < *used)
		*used = of_tokens;
	return r;
}

static int look_end(const struct way *way, struct credential_look *look)
{
	char words[LOOK_WORDS_SIZE];

	if (!look->refused)
		return way_fail(way);
	credential_look_report(look, words);
	return way_end(way, look->reason, words);
}

static bool begins_json(const struct buf *text, bool *ret)
{
	for (size_t i = 0; i < text->len; i++)
		if (!strchr(" \t\r\n", text->data[i])) {
			*ret = strchr("{[\"", text->data[i]) && text->data[i];
			return true;
		}
	return false;
}

static void look_begin(const struct way *way, struct credential_look *look)
{
	struct tunnel *tunnel = way->tunnel;
	const struct credential_facts facts = tunnel_facts(tunnel);

	credential_look_message(look, tunnel->client, &facts, tunnel->carried, &tunnel->report);
}

static int client_piece(struct way *way, bool end)
{
	_wiped_ struct buf fresh = BUF_INIT(NP_WITHHELD_BYTES * 16);
	struct slot_place place = { .kind = way->opcode == WEBSOCKET_TEXT ? SLOT_WEBSOCKET : SLOT_KINDS };
	struct credential_look look;
	size_t used;
	int r = leak_look(way, way->held.data, way->held.len, end, &used);

	if (r < 0)
		return r;
	look_begin(way, &look);
	if (!look.finder.set && look.policy->n_credentials)
		return way_fail(way);
	if (look.finder.set) {
		way->typed = way->typed || begins_json(&way->held, &way->json);
		place.json = way->json;
		if (!end)
			used -= placeholder_set_pending(look.finder.set, way->held.data, used);
		r = slot_replace(&look.finder, &place, way->held.data, used, &fresh);
		if (r < 0)
			return look_end(way, &look);
	}
	message_put(way, r > 0 ? fresh.data : way->held.data, r > 0 ? fresh.len : used, end);
	buf_drop(&way->held, used);
	return 0;
}

static int client_control(struct way *way)
{
	static const struct slot_place nowhere = { .kind = SLOT_KINDS };
	const struct placeholder *found;
	struct credential_look look;
	size_t at;
	int r = leak_look(way, way->control, way->control_len, true, &at);

	if (r < 0)
		return r;
	look_begin(way, &look);
	found = look.finder.set ? placeholder_set_find(look.finder.set, way->control, way->control_len, &at) : NULL;
	if (!found)
		return 0;
	credential_look_placeholder(&look, found, &nowhere);
	return look_end(way, &look);
}

/* -- what comes back --------------------------------------------------------------------------- */

static int echo_refuse(const struct way *way, const char *name, const char *where)
{
	char words[NP_NAME_MAX + 80];

	snprintf(words, sizeof(words), "the value of the credential %s came back%s", name, where);
	return way_end(way, NP_R_SECRET_RETURNED, words);
}

static int origin_piece(struct way *way, bool end)
{
	struct echo_words *echo = &way->tunnel->messages->echo;
	struct scrubber *scrubber = secret_echo_scrubber(way->tunnel->client->worker, echo->set);
	const struct scrub_words words = { echo_words_find, echo };
	_buf_ struct buf fresh = BUF_INIT(NP_WITHHELD_BYTES * 16);
	size_t used;
	int hits;

	echo->carried = way->tunnel->carried;
	hits = scrub(scrubber, &words, way->held.data, way->held.len, end, &fresh, &used);

	if (hits < 0)
		return way_fail(way);
	if (echo->refused)
		return echo_refuse(way, echo->refused, "");
	message_put(way, hits ? fresh.data : way->held.data, hits ? fresh.len : used, end);
	buf_drop(&way->held, used);
	return 0;
}

/* It has no room for what would take a value's place. */
static int origin_control(struct way *way)
{
	const struct echo_words *echo = &way->tunnel->messages->echo;
	struct scrubber *scrubber = secret_echo_scrubber(way->tunnel->client->worker, echo->set);
	int found = secret_in_text(scrubber, way->control, way->control_len);

	if (found < -1)
		return way_fail(way);
	return found < 0 ? 0 : echo_refuse(way, echo->set->names[found], " in a control frame");
}

/* -- frames ------------------------------------------------------------------------------------ */

static int piece_pass(struct way *way, bool end)
{
	int r;

	if (buf_error(&way->held))
		return way_fail(way);
	r = way->frames->from_client ? client_piece(way, end) : origin_piece(way, end);
	return r == 0 && (way->held.len > NP_WITHHELD_BYTES || (end && way->held.len)) ? way_fail(way) : r;
}

static int control_pass(struct way *way)
{
	int r = way->frames->from_client ? client_control(way) : origin_control(way);

	if (r == 0)
		frame_put(way, way->frames->frame.opcode, true, way->control, way->control_len);
	return r;
}

static int on_frame(void *ctx, const struct websocket_frame *frame)
{
	struct way *way = ctx;

	way->control_len = 0;
	if (frame->compressed)
		return way_end(way, NP_R_UNSEARCHABLE, "a message is compressed");
	if (frame->opcode & 8)
		return frame->len ? 0 : control_pass(way);
	if (frame->opcode != WEBSOCKET_CONTINUATION) {
		way->opcode = frame->opcode;
		way->typed = way->json = false;
	}
	return frame->len ? 0 : piece_pass(way, frame->fin);
}

static int on_payload(void *ctx, const struct websocket_frame *frame, uint64_t at, const char *data, size_t len)
{
	struct way *way = ctx;
	const bool last = at + len == frame->len;
	size_t had = way->held.len;

	if (frame->opcode & 8) { /* of 125 bytes at most: websocket.c has seen to it */
		websocket_unmask(frame, at, data, len, way->control + at);
		way->control_len = (size_t)at + len;
		return last ? control_pass(way) : 0;
	}
	buf_append(&way->held, data, len);
	if (buf_error(&way->held))
		return way_fail(way);
	websocket_unmask(frame, at, way->held.data + had, len, way->held.data + had);
	return piece_pass(way, last && frame->fin);
}

static const struct websocket_events message_events = { .frame = on_frame, .payload = on_payload };

/* Its frames, read on: 0 or 1 as relay_events have it, or -errno with a report. */
int tunnel_messages_pass(struct tunnel *tunnel, bool from_client, const char *data, size_t len, struct buf *out)
{
	struct websocket *frames = &tunnel->frames[from_client];
	struct way *way = frames->ctx;
	int r;

	if (way)
		way->out = out;
	r = websocket_read(frames, data, len);
	if (r < 0 && websocket_problem(frames)[0]) {
		tunnel->report.reason = NP_R_WEBSOCKET_BROKEN;
		snprintf(tunnel->report.text, sizeof(tunnel->report.text), "%s", websocket_problem(frames));
	}
	return r < 0 ? r : way != NULL;
}

int tunnel_messages_begin(struct tunnel *tunnel, const struct exchange *ex, bool deflate)
{
	struct messages *messages = ex->carried ? calloc(1, sizeof(*messages)) : NULL;
	struct secret_set *set = echo_set(ex);

	if (ex->carried && !messages)
		return -ENOMEM;
	if (messages && set)
		secret_set_ref(set);
	if (messages)
		messages->echo = (struct echo_words){ .client = tunnel->client, .set = set };
	for (unsigned i = 0; i < 2; i++) {
		const bool searched = messages && (i == 1 || set);
		struct way *way = searched ? &messages->ways[i] : NULL;

		websocket_init(&tunnel->frames[i], i == 1, deflate, searched ? &message_events : NULL, way);
		if (way)
			*way = (struct way){ .tunnel = tunnel,
					     .frames = &tunnel->frames[i],
					     .held = BUF_INIT(2 * NP_WITHHELD_BYTES) };
	}
	tunnel->messages = messages;
	return 0;
}

size_t tunnel_messages_held(const struct tunnel *tunnel)
{
	return tunnel->messages ? tunnel->messages->ways[0].held.cap + tunnel->messages->ways[1].held.cap : 0;
}

void tunnel_messages_end(struct tunnel *tunnel)
{
	if (!tunnel->messages)
		return;
	for (unsigned i = 0; i < 2; i++)
		buf_wipe(&tunnel->messages->ways[i].held);
	secret_set_unref(tunnel->messages->echo.set);
	free(tunnel->messages);
	tunnel->messages = NULL;
}
