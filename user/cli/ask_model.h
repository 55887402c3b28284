/* SPDX-License-Identifier: MIT */
/* What `netpawl ask` knows: what waits, which of it is shown, and what a line of the stream or a key changes. No descriptor, no clock. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "vocab/limits.h"

#define ASK_MESSAGE_SIZE 256

enum ask_stage {
	ASK_LOOK,   /* at a question, or at none */
	ASK_REASON, /* a key was pressed: nothing is taken away until it is sent or left */
};

/* What is to be called after a key. */
enum ask_wish {
	ASK_NOTHING,
	ASK_SEND,  /* the answer goes */
	ASK_RENEW, /* how does it stand now? */
};

struct ask_model {
	json_t **items; /* that wait, in the order they came */
	size_t n, size;
	json_t *shown;	/* NULL: nothing waits */
	char last[160]; /* session of the one before */
	enum ask_stage stage;
	const char *answer; /* that was chosen */
	char reason[NP_REASON_TEXT_MAX];
	size_t reason_len;
	char message[ASK_MESSAGE_SIZE], clock[ASK_MESSAGE_SIZE];
	bool away;     /* the daemon is not there */
	bool rung;     /* one has come: whoever draws it clears this */
	bool over;     /* q */
	bool refused;  /* the daemon's last word is in message */
	time_t looked; /* when it was asked how the one that is shown stands; 0: not yet */
};

void ask_model_free(struct ask_model *ask);
const char *ask_id(const json_t *question); /* never NULL */
bool ask_is_run(const json_t *question);
__attribute__((format(printf, 2, 3))) void ask_message(struct ask_model *ask, const char *fmt, ...);
/* A line of ask_stream.h; how one of them stands. */
void ask_take_line(struct ask_model *ask, const char *line);
void ask_take(struct ask_model *ask, json_t *question);
void ask_remove(struct ask_model *ask, const char *id); /* it waits no more */
/* Another session's, if one waits; skip: not the one that is shown. */
void ask_show_next(struct ask_model *ask, bool skip);
/* The message says what became of it, when it was not by us. */
void ask_report_over(struct ask_model *ask, const json_t *question);
enum ask_wish ask_key(struct ask_model *ask, char key);
/* How long there is to answer, and who waits. Stands still while somebody answers. */
void ask_set_clock(struct ask_model *ask, time_t now);
/* The answer that is being given; of a long reason the end. */
void ask_prompt_text(const struct ask_model *ask, size_t columns, char *out, size_t size);
