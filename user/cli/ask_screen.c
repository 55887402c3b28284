/* SPDX-License-Identifier: MIT */
#include "cli/ask_screen.h"

#include <stdio.h>
#include <string.h>

#define LINE_ROWS 3  /* of one line of the text: a URL may have 2,047 bytes */
#define ROWS_MIN  10 /* smaller screens are drawn as if they had so many */
#define FOOT_ROWS 5  /* the four at the end, and an empty one */

struct canvas {
	struct buf *out;
	unsigned rows, columns; /* that are left, and of each */
	unsigned hidden;	/* lines, or ends of lines, that were left out */
};

static void row_put(struct canvas *canvas, const char *text, size_t len)
{
	for (size_t i = 0; i < len && i < canvas->columns; i++)
		buf_append(canvas->out, text[i] >= ' ' && text[i] <= '~' ? &text[i] : "?", 1);
	buf_puts(canvas->out, "\r\n");
	if (canvas->rows)
		canvas->rows--;
}

/* How much of the line goes onto this row: up to a space, if one is in its second half. */
static size_t row_len(const struct canvas *canvas, const char *text, size_t len)
{
	const char *space;

	if (len <= canvas->columns)
		return len;
	space = memrchr(text, ' ', canvas->columns);
	return space && space > text + canvas->columns / 2 ? (size_t)(space - text) + 1 : canvas->columns;
}

/* A line, over some rows at most. */
static void line_put(struct canvas *canvas, const char *text, size_t len)
{
	for (unsigned row = 0; row == 0 || len; row++) {
		const bool last = row + 1 == LINE_ROWS || canvas->rows == 1;
		size_t n = row_len(canvas, text, len);

		if (!canvas->rows) {
			canvas->hidden++;
			return;
		}
		if (last && n < len && n > 4) {
			char cut[512];

			snprintf(cut, sizeof(cut), "%.*s ...", (int)(n - 4 < 500 ? n - 4 : 500), text);
			row_put(canvas, cut, strlen(cut));
			return;
		}
		row_put(canvas, text, n);
		text += n;
		len -= n;
	}
}

static bool is_warning(const char *line)
{
	return !strncmp(line, WARNING_MARK, strlen(WARNING_MARK));
}

/* The first line says what is asked; then come warnings, which nothing may push off the screen, then the rest. */
static void text_put(struct canvas *canvas, const char *text)
{
	for (unsigned pass = 0; pass < 3; pass++) {
		const char *line = text;

		for (size_t i = 0; *line; i++) {
			const size_t len = strcspn(line, "\n");
			const unsigned turn = i == 0 ? 0 : is_warning(line) ? 1 : 2;

			if (turn == pass)
				line_put(canvas, line, len);
			line += len + (line[len] == '\n');
		}
	}
}

static void foot_put(struct canvas *canvas, const char *text)
{
	row_put(canvas, text ? text : "", text ? strlen(text) : 0);
}

void ask_screen_draw(const struct ask_screen *screen, struct buf *out)
{
	const unsigned rows = screen->rows < ROWS_MIN ? ROWS_MIN : screen->rows;
	struct canvas canvas = { .out = out,
				 .columns = screen->columns > 20 ? screen->columns - 1 : 20, /* the last one wraps */
				 .rows = 1 };

	buf_puts(out, "\033[H\033[2J\033[7m");
	row_put(&canvas, screen->head, strlen(screen->head));
	buf_puts(out, "\033[m");
	canvas.rows = rows - 1 - FOOT_ROWS;
	text_put(&canvas, screen->text ? screen->text : "");
	if (canvas.hidden)
		foot_put(&canvas, "    (there is more: netpawl questions shows all of it)");
	else
		foot_put(&canvas, NULL);
	foot_put(&canvas, screen->clock);
	foot_put(&canvas, screen->message);
	foot_put(&canvas, screen->keys);
	for (size_t i = 0; screen->prompt && screen->prompt[i] && i < canvas.columns; i++)
		buf_append(out, screen->prompt[i] >= ' ' && screen->prompt[i] <= '~' ? &screen->prompt[i] : "?", 1);
}
