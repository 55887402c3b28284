/* SPDX-License-Identifier: MIT */
/*
 * Following the inbox. A line says how an item stands when the line is written, and not how it stood when its event
 * came: a slow reader costs what a feed costs, and reads what is true in the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "control/body.h"
#include "control/inbox.h"
#include "control/reply.h"
#include "vocab/limits.h"

struct refs {
	struct inbox_ref *items;
	size_t n, size;
};

struct inbox_state {
	struct peer peer;
	struct session_name session;
	struct inbox_query query;
	struct refs todo; /* to be told ... */
	size_t done;	  /* ... but for so many of them */
	struct refs open; /* that were told as pending: looked at again when events were lost */
	bool again;	  /* that has to be done */
	bool first;	  /* the empty line is still to come */
};

static void inbox_state_free(void *data)
{
	struct inbox_state *state = data;

	if (!state)
		return;
	free(state->todo.items);
	free(state->open.items);
	free(state);
}

static bool ref_equal(const struct inbox_ref *a, const struct inbox_ref *b)
{
	return a->run == b->run && a->id == b->id;
}

static int refs_add(struct refs *refs, const struct inbox_ref *ref)
{
	if (ARRAY_RESERVE(refs->items, refs->size, refs->n + 1) < 0)
		return -ENOMEM;
	refs->items[refs->n++] = *ref;
	return 0;
}

static void refs_drop(struct refs *refs, const struct inbox_ref *ref)
{
	for (size_t i = 0; i < refs->n; i++) {
		if (!ref_equal(&refs->items[i], ref))
			continue;
		refs->items[i] = refs->items[--refs->n];
		return;
	}
}

static bool refs_have(const struct refs *refs, const struct inbox_ref *ref)
{
	for (size_t i = 0; i < refs->n; i++)
		if (ref_equal(&refs->items[i], ref))
			return true;
	return false;
}

/* A member of the event; a string of it cannot imitate one, since its quotes are escaped. */
static bool member_number(const char *line, size_t len, const char *member, uint64_t *ret)
{
	const char *at = memmem(line, len, member, strlen(member));

	if (at)
		*ret = strtoull(at + strlen(member), NULL, 10); /* the line ends in a newline */
	return at;
}

static void inbox_look(void *data, const char *line, size_t len, bool lost)
{
	struct inbox_state *state = data;
	struct inbox_ref ref = { .run = false };

	if (!lost && !member_number(line, len, "\"question\":", &ref.id))
		ref.run = member_number(line, len, "\"run\":", &ref.id);
	if (!lost && !ref.id)
		return;
	if (lost || state->todo.n >= NP_INBOX_BEHIND || refs_add(&state->todo, &ref) < 0)
		state->again = true;
}

/* What waits and was not told, and what was told as pending and may be so no longer. */
static int inbox_again(const struct request *rq, struct inbox_state *state)
{
	const struct inbox_query pending = { .session = state->query.session, .state = QUESTION_PENDING };
	cleanup(inbox_free) struct inbox inbox = { 0 };
	bool ignored;
	int r = inbox_read(rq, &pending, &inbox, &ignored);

	state->todo.n = state->done = 0;
	for (size_t i = 0; i < state->open.n && r == 0; i++)
		r = refs_add(&state->todo, &state->open.items[i]);
	for (size_t i = 0; i < inbox.n && r == 0; i++)
		if (!refs_have(&state->open, &inbox.items[i].ref))
			r = refs_add(&state->todo, &inbox.items[i].ref);
	state->again = r < 0;
	return r;
}

static int inbox_line(const struct request *rq, struct inbox_state *state, const struct inbox_ref *ref, struct buf *out)
{
	enum question_state stands = QUESTION_PENDING;
	_free_ char *line = NULL;
	_json_ json_t *object = NULL;
	int r = inbox_show(rq, ref, &state->query, &object, &stands);

	refs_drop(&state->open, ref);
	if (r < 0 || !object)
		return r;
	if (stands == QUESTION_PENDING && refs_add(&state->open, ref) < 0)
		return -ENOMEM;
	line = json_dumps(object, JSON_COMPACT);
	if (!line)
		return -ENOMEM;
	buf_puts(out, line);
	buf_puts(out, "\n");
	return buf_error(out);
}

static int inbox_more(const struct server_config *config, void *data, struct buf *out)
{
	struct inbox_state *state = data;
	const struct request rq = { .config = config, .peer = state->peer };
	int r = state->again ? inbox_again(&rq, state) : 0;

	while (r == 0 && state->done < state->todo.n) {
		const struct inbox_ref ref = state->todo.items[state->done++];

		if (out->len > NP_INBOX_PIECE) {
			state->done--;
			return 1;
		}
		r = inbox_line(&rq, state, &ref, out);
	}
	if (r < 0)
		return r;
	state->todo.n = state->done = 0;
	if (state->first)
		buf_puts(out, "\n");
	state->first = false;
	return buf_error(out);
}

int inbox_follow(struct request *rq, const struct inbox_query *query, struct answer *ret, struct failure *ret_failure)
{
	static const struct follow_subject subject = {
		.matches = { "\"reason\":\"question_", "\"reason\":\"run_" },
		.look = inbox_look,
		.more = inbox_more,
		.free = inbox_state_free,
	};
	_buf_ struct buf none = BUF_INIT(NP_FEED_BYTES);
	struct inbox_state *state = calloc(1, sizeof(*state));
	struct follow_options options = { .subject = &subject, .state = state, .peer = rq->peer };
	int r;

	if (!state)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	state->peer = rq->peer;
	state->query = *query;
	state->again = state->first = true;
	if (query->session) {
		snprintf(state->session.text, sizeof(state->session.text), "%s", query->session);
		state->query.session = options.session = state->session.text;
	}
	r = follow_answer(rq, &options, &none, ret, ret_failure);
	if (r < 0)
		inbox_state_free(state);
	return r;
}
