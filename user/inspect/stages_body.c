/* SPDX-License-Identifier: MIT */
/*
 * Bodies on their way through the stages. A piece that no stage wants goes on as it came, without a copy; of one that some
 * do, each gets what the one before it has made of it. What a stage withholds is kept here, so that no stage can forget to
 * bound it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "vocab/limits.h"

/* What was withheld, and what comes behind it: at most what may come before somebody waits. */
#define JOINED_BYTES (NP_WITHHELD_BYTES + 2 * NP_BACKLOG_HIGH)

/* What a stage has not used yet. */
struct withheld {
	struct withheld *next;
	unsigned stage;
	bool due; /* STAGE_MORE: what is there makes more, and is not waiting for what comes */
	bool end; /* nothing comes behind it */
	struct fields *trailers;
	struct buf data;
};

static struct withheld *withheld_find(const struct exchange *ex, enum stage_way way, unsigned stage)
{
	struct withheld *w = ex->bodies[way].withheld;

	while (w && w->stage != stage)
		w = w->next;
	return w;
}

static struct withheld *withheld_get(struct exchange *ex, enum stage_way way, unsigned stage)
{
	struct withheld *w = withheld_find(ex, way, stage);

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->stage = stage;
	w->data = BUF_INIT(JOINED_BYTES);
	w->next = ex->bodies[way].withheld;
	ex->bodies[way].withheld = w;
	return w;
}

static void withheld_free(struct withheld *w)
{
	fields_delete(&w->trailers);
	buf_free(&w->data);
	free(w);
}

void stages_body_forget(struct exchange *ex)
{
	for (enum stage_way way = 0; way < WAYS; way++)
		while (ex->bodies[way].withheld) {
			struct withheld *w = ex->bodies[way].withheld;

			ex->bodies[way].withheld = w->next;
			withheld_free(w);
		}
}

size_t stages_body_withheld(const struct exchange *ex)
{
	size_t n = 0;

	for (enum stage_way way = 0; way < WAYS; way++)
		for (const struct withheld *w = ex->bodies[way].withheld; w; w = w->next)
			n += w->data.len;
	return n;
}

/* The one that is furthest on: what others make comes to it. */
static struct withheld *withheld_due(const struct exchange *ex, enum stage_way way)
{
	struct withheld *due = NULL;

	for (struct withheld *w = ex->bodies[way].withheld; w; w = w->next)
		if (w->due && (!due || (way == WAY_REQUEST) == (w->stage > due->stage)))
			due = w;
	return due;
}

bool stages_body_due(const struct exchange *ex, enum stage_way way)
{
	return withheld_due(ex, way);
}

/* A stage does not keep to its bounds, or there is no memory for it: nothing passes that it has not seen. */
static enum stage_result body_fail(struct exchange *ex, unsigned stage)
{
	char words[96];

	snprintf(words, sizeof(words), "the body does not fit into stage %s", stages[stage]->name);
	exchange_stop(ex, ex->response >= RESPONSE_GOES ? NP_R_RESPONSE_BROKEN : NP_R_INTERNAL, NULL, words);
	return STAGE_OVER;
}

/* The next stage that wants it, in the direction that the body goes; -1: none. */
static int stage_next(const struct exchange *ex, enum stage_way way, int at)
{
	const int step = way == WAY_REQUEST ? 1 : -1;

	for (at += step; at >= 0 && at < STAGES_MAX && (way == WAY_RESPONSE || (unsigned)at < ex->stage); at += step)
		if (ex->bodies[way].wanted & 1u << at)
			return at;
	return -1;
}

static enum stage_result body_pass(struct exchange *ex, enum stage_way way, int at, const struct piece *piece);

/* Its rest waits, if there is one. 0 or -errno. */
static int rest_keep(struct exchange *ex, enum stage_way way, unsigned at, const struct piece *seen, bool more)
{
	struct withheld *w = withheld_find(ex, way, at);
	const size_t rest = seen->len - seen->used;

	if (!rest && !more) {
		if (w)
			w->due = false;
		return 0;
	}
	w = withheld_get(ex, way, at);
	if (!w || (!more && rest > NP_WITHHELD_BYTES))
		return -ENOBUFS;
	buf_append(&w->data, seen->data + seen->used, rest);
	w->due = more;
	w->end = more && seen->end;
	fields_delete(&w->trailers);
	if (w->end && seen->trailers && fields_clone(&w->trailers, seen->trailers) < 0)
		return -ENOMEM;
	return buf_error(&w->data);
}

/* One stage sees it, then those behind do. */
static enum stage_result stage_pass(struct exchange *ex, enum stage_way way, int at, const struct piece *piece)
{
	const struct stage *stage = stages[at];
	_buf_ struct buf out = BUF_INIT(2 * NP_BACKLOG_HIGH);
	struct piece seen = *piece;
	enum stage_result r;
	bool more;

	seen.used = seen.len;
	seen.out = &out;
	r = (way == WAY_REQUEST ? stage->request_body : stage->response_body)(ex, &seen);
	if (stage->role == STAGE_OBSERVES)
		r = STAGE_NEXT, seen = *piece, seen.used = seen.len;
	if (r == STAGE_OVER)
		return r;
	more = r == STAGE_MORE;
	if (seen.used > seen.len || (seen.end && !more))
		seen.used = seen.len;
	/* One that goes on without getting anywhere would for ever. */
	if (r == STAGE_HELD || buf_error(&out) || (more && !out.len && !seen.used) ||
	    (r != STAGE_NEXT && stage->role != STAGE_MODIFIES) || rest_keep(ex, way, (unsigned)at, &seen, more) < 0)
		return body_fail(ex, (unsigned)at);
	if (r != STAGE_NEXT)
		seen.data = out.data, seen.len = out.len;
	else
		seen.len = seen.used;
	seen.end = seen.end && !more;
	if (!seen.end)
		seen.trailers = NULL;
	if (!seen.len && !seen.end)
		return STAGE_NEXT;
	return body_pass(ex, way, stage_next(ex, way, at), &seen);
}

/* Behind what the stage has withheld. */
static enum stage_result body_pass(struct exchange *ex, enum stage_way way, int at, const struct piece *piece)
{
	struct withheld *w = at < 0 ? NULL : withheld_find(ex, way, (unsigned)at);
	_buf_ struct buf all = BUF_INIT(0);
	struct piece joined = *piece;

	if (at < 0)
		return exchange_pass(ex, way, piece);
	if (!w || (!w->data.len && !w->due))
		return stage_pass(ex, way, at, piece);
	buf_append(&w->data, piece->data, piece->len);
	if (buf_error(&w->data))
		return body_fail(ex, (unsigned)at);
	if (w->due) { /* its turn comes */
		w->end = piece->end;
		if (piece->end && piece->trailers && fields_clone(&w->trailers, piece->trailers) < 0)
			return body_fail(ex, (unsigned)at);
		return STAGE_NEXT;
	}
	all = w->data; /* until all behind have seen it */
	w->data = BUF_INIT(JOINED_BYTES);
	joined.data = all.data;
	joined.len = all.len;
	return stage_pass(ex, way, at, &joined);
}

enum stage_result stages_body(struct exchange *ex, enum stage_way way, const struct piece *piece)
{
	/* The hot path: nobody wants it. */
	if (!ex->bodies[way].wanted)
		return exchange_pass(ex, way, piece);
	if (body_pass(ex, way, stage_next(ex, way, way == WAY_REQUEST ? -1 : STAGES_MAX), piece) == STAGE_OVER)
		return STAGE_OVER;
	return stages_body_more(ex, way);
}

enum stage_result stages_body_late(struct exchange *ex, unsigned stage)
{
	struct buf came = ex->pending;
	struct fields *trailers = ex->trailers;
	struct piece piece = {
		.data = came.data, .len = came.len, .end = ex->request != REQUEST_COMES, .trailers = trailers
	};
	enum stage_result r;

	if (!ex->head.has_body || (!piece.len && !piece.end))
		return STAGE_NEXT;
	ex->pending = BUF_INIT(came.max);
	ex->trailers = NULL;
	ex->request = REQUEST_COMES;
	r = stage_pass(ex, WAY_REQUEST, (int)stage, &piece);
	buf_free(&came);
	fields_delete(&trailers);
	return r;
}

enum stage_result stages_body_more(struct exchange *ex, enum stage_way way)
{
	struct withheld *w;

	while ((w = withheld_due(ex, way)) && exchange_has_room(ex, way)) {
		_buf_ struct buf all = w->data;
		struct fields *trailers = w->trailers;
		struct piece piece = { .data = all.data, .len = all.len, .end = w->end, .trailers = trailers };
		enum stage_result r;

		w->data = BUF_INIT(JOINED_BYTES);
		w->trailers = NULL;
		w->due = w->end = false;
		r = stage_pass(ex, way, (int)w->stage, &piece);
		fields_delete(&trailers);
		if (r != STAGE_NEXT)
			return r;
	}
	return STAGE_NEXT;
}
