/* SPDX-License-Identifier: MIT */
#include "policy/notice_text.h"

#include <stdio.h>
#include <string.h>

#include "vocab/words.h"
#include "policy/quote.h"
#include "policy/reach_summary.h"
#include "vocab/limits.h"

#define NOTICE_WHO "Notice from netpawl, which guards the network of this sandbox: "

static const char *const notice_defaults[NP_NONE + 1] = {
	[NP_PROXIED] = NOTICE_WHO
	"{cause}, so session {session} is now at level {level}, network mode {mode}. It may reach {allowed}. "
	"Everything else is refused from now on: trying again, another client or another address will not help, and "
	"connections that are no longer allowed were cut. Processes, files and work so far are kept. Go on within "
	"these limits, or tell the user what the platform's policy would have to allow.",
	[NP_NONE] =
		NOTICE_WHO "{cause}, so session {session} is now at level {level}, network mode {mode}: its network is "
			   "closed and stays closed. It may reach {allowed}. Trying again, another client or another "
			   "address will not help, and open connections were cut. Processes, files and work so far are "
			   "kept. Go on with what is here already, or tell the user that the rest needs a network.",
};

enum placeholder {
	PLACE_SESSION,
	PLACE_CAUSE,
	PLACE_DATASET,
	PLACE_REASON,
	PLACE_LEVEL,
	PLACE_MODE,
	PLACE_ALLOWED,
	PLACE_COUNT,
};

static const char *const placeholders[PLACE_COUNT] = {
	[PLACE_SESSION] = "session", [PLACE_CAUSE] = "cause", [PLACE_DATASET] = "dataset", [PLACE_REASON] = "reason",
	[PLACE_LEVEL] = "level",     [PLACE_MODE] = "mode",   [PLACE_ALLOWED] = "allowed",
};

enum piece_kind {
	PIECE_TEXT,
	PIECE_PLACE,
	PIECE_UNKNOWN, /* a placeholder that there is not */
	PIECE_BRACE,   /* a brace without its other half */
};

struct piece {
	enum piece_kind kind;
	enum placeholder place;
	const char *text; /* of a placeholder: without its braces */
	size_t len;
};

static enum placeholder placeholder_find(const char *name, size_t len)
{
	unsigned i = 0;

	while (i < PLACE_COUNT && (strlen(placeholders[i]) != len || memcmp(placeholders[i], name, len) != 0))
		i++;
	return (enum placeholder)i;
}

/* Takes the next piece off the text; the text is not empty. */
static struct piece piece_next(const char **text, size_t *len)
{
	struct piece piece = { .kind = PIECE_TEXT, .text = *text };
	const char *at = *text, *end = at + *len, *close;

	if (*at != '{' && *at != '}') {
		while (at < end && *at != '{' && *at != '}')
			at++;
		piece.len = (size_t)(at - piece.text);
	} else if (at + 1 < end && at[1] == *at) {
		piece.len = 1;
		at += 2;
	} else {
		close = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
		piece.kind = PIECE_BRACE;
		piece.len = 1;
		if (close) {
			piece.text = at + 1;
			piece.len = (size_t)(close - piece.text);
			piece.place = placeholder_find(piece.text, piece.len);
			piece.kind = piece.place < PLACE_COUNT ? PIECE_PLACE : PIECE_UNKNOWN;
		}
		at = close ? close + 1 : at + 1;
	}
	*len = (size_t)(end - at);
	*text = at;
	return piece;
}

const char *notice_template_check(const char *text, size_t len, char problem[static NOTICE_PROBLEM_SIZE])
{
	if (len > NP_NOTICE_TEMPLATE) {
		snprintf(problem, NOTICE_PROBLEM_SIZE, "a notice of %zu bytes; it has at most %d", len,
			 NP_NOTICE_TEMPLATE);
		return problem;
	}
	while (len) {
		struct piece piece = piece_next(&text, &len);

		if (piece.kind == PIECE_BRACE) {
			snprintf(problem, NOTICE_PROBLEM_SIZE,
				 "a \"%c\" without its other half; for the brace itself write it twice", *piece.text);
			return problem;
		}
		if (piece.kind == PIECE_UNKNOWN) {
			snprintf(problem, NOTICE_PROBLEM_SIZE,
				 "nothing is called %s; there are {session}, {cause}, {dataset}, {reason}, {level}, "
				 "{mode} and {allowed}",
				 QUOTE(piece.text, piece.len));
			return problem;
		}
	}
	return NULL;
}

void notice_cause(const struct notice_facts *facts, struct buf *out)
{
	if (facts->dataset)
		buf_printf(out, "the dataset \"%s\" came in", facts->dataset);
	else if (facts->starts)
		buf_puts(out, "it began at this level");
	else if (facts->raised)
		buf_puts(out, "its level was raised");
	else
		buf_puts(out, "the platform's policy became stricter");
	if (facts->reason)
		buf_printf(out, " (%s)", facts->reason);
}

static void put_place(const struct policy *policy, const struct notice_facts *facts, enum placeholder place,
		      struct buf *out)
{
	struct reach reach;

	switch (place) {
	case PLACE_SESSION:
		buf_puts(out, facts->session);
		break;
	case PLACE_CAUSE:
		notice_cause(facts, out);
		break;
	case PLACE_DATASET:
		buf_puts(out, facts->dataset ? facts->dataset : "data that was not named");
		break;
	case PLACE_REASON:
		buf_puts(out, facts->reason ? facts->reason : "no reason was given");
		break;
	case PLACE_LEVEL:
		buf_puts(out, level_name(facts->rung.level));
		break;
	case PLACE_MODE:
		buf_puts(out, mode_name(facts->rung.mode));
		break;
	case PLACE_ALLOWED:
		policy_reach(policy, &facts->rung, facts->session, &reach);
		reach_text(policy, facts->rung.mode, &reach, out);
		break;
	case PLACE_COUNT:
		break;
	}
}

/* Appends as much as the bound leaves room for. False when that is not all. */
static bool put_bounded(struct buf *out, size_t most, const char *text, size_t len)
{
	size_t room = most - out->len;

	if (len <= room) {
		buf_append(out, text, len);
		return true;
	}
	while (room && ((unsigned char)text[room] & 0xc0) == 0x80) /* not in the middle of a character */
		room--;
	buf_append(out, text, room);
	buf_puts(out, "...");
	return false;
}

void notice_write(const struct policy *policy, const struct notice_facts *facts, struct buf *out)
{
	const char *text = policy->notices[facts->rung.mode] ? policy->notices[facts->rung.mode]
							     : notice_defaults[facts->rung.mode];
	size_t len = text ? strlen(text) : 0, most = out->len + NP_NOTICE_TEXT - strlen("...");
	bool fits = true;

	while (len && fits) {
		struct piece piece = piece_next(&text, &len);
		_buf_ struct buf fact = BUF_INIT(NP_NOTICE_TEXT);

		if (piece.kind == PIECE_PLACE) {
			put_place(policy, facts, piece.place, &fact);
			piece.text = fact.data ? fact.data : "";
			piece.len = fact.len;
		}
		fits = put_bounded(out, most, piece.text, piece.len);
	}
}
