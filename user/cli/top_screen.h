/* SPDX-License-Identifier: MIT */
/* The screen of netpawl top: draws what the model says. Knows curses, and nothing of sockets. */
#pragma once

#include "cli/top_model.h"

enum top_view { TOP_TRAFFIC, TOP_SESSIONS, TOP_QUESTIONS, TOP_CREDENTIALS, TOP_HELP };

/* What is shown of the model. */
struct top_screen {
	enum top_view view;
	size_t selected; /* row of the view */
	bool detail;	 /* of the selected row */
	bool typing;	 /* a filter */
	char filter[FILTER_TEXT_MAX + 1];
	char problem[FILTER_PROBLEM_SIZE]; /* of what was typed; "": none */
};

/* CLI_OK, or CLI_REFUSED with a message: what it writes to is no terminal, or one that cannot be drawn on. */
int top_screen_open(void);
void top_screen_close(void); /* the terminal is as it was; more than once is fine */
void top_screen_draw(const struct top_screen *screen, const struct top_model *model, unsigned long long now_us);
int top_screen_key(void); /* a key of curses, or ERR: none */
/* Rows of the view: what may be selected. */
size_t top_screen_rows(const struct top_screen *screen, const struct top_model *model);
