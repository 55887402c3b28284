/* SPDX-License-Identifier: MIT */
/* netpawl ask: lines of the stream and keys (a line that begins with "k") in any order. What is drawn is for eyes alone, and no answer is
 * on its way without a question. The first two bytes are the screen's size. */
#include "cli/ask_model.c"
#include "cli/ask_screen.c"

#include <stdint.h>

#include "cli/questions.h"
#include "check.h"
#include "../unit/cli/ask_screen_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drawn(struct ask_model *ask, unsigned rows, unsigned columns)
{
	_buf_ struct buf out = BUF_INIT(1u << 20);
	_free_ char *text = NULL;
	char prompt[1024] = "";
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	check(memory);
	if (ask->shown)
		question_write(memory, ask->shown);
	fclose(memory);
	ask_set_clock(ask, 1700000000);
	if (ask->stage == ASK_REASON)
		ask_prompt_text(ask, columns, prompt, sizeof(prompt));
	const struct ask_screen screen = { rows, columns, "head", text, ask->clock, ask->message, "keys", prompt };

	ask_screen_draw(&screen, &out);
	check(!buf_error(&out) && !screen_problem(&screen, &out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ask_model ask = { 0 };
	_free_ char *lines = size > 2 ? strndup((const char *)data + 2, size - 2) : NULL;
	char *rest = lines;

	for (char *line; rest && !ask.over && (line = strsep(&rest, "\n"));) {
		if (*line == 'k')
			for (line++; *line && !ask.over; line++)
				check(ask_key(&ask, *line) == ASK_NOTHING || ask.shown);
		else
			ask_take_line(&ask, line);
		check(ask.shown || ask.stage == ASK_LOOK);
		check(ask.reason_len == strlen(ask.reason));
	}
	if (size > 2)
		drawn(&ask, data[0], data[1]);
	ask_model_free(&ask);
	return 0;
}
