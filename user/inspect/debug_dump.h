/* SPDX-License-Identifier: MIT */
/* What a worker shows of itself: link/debug_page.h. */
#pragma once

#include "link/debug_page.h"

struct worker;

/* Answers, without waiting and without memory of its own: a page that has no room on its way is not sent. */
void debug_answer(struct worker *worker, const struct debug_ask *ask);
/* The page: its length. It is good until the next one is made. */
size_t debug_page_make(struct worker *worker, const struct debug_ask *ask, const struct debug_page **ret);
