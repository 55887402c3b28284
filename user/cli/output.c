/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include "base/chars.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/words.h"
#include "cli/cli.h"

void output_text(struct buf *out, const char *text, size_t len)
{
	while (len) {
		uint32_t c;
		size_t n = char_decode(text, len, &c);

		if (n && char_is_printable(c))
			buf_append(out, text, n);
		else
			buf_puts(out, "?");
		text += n ? n : 1;
		len -= n ? n : 1;
	}
}

void output_clean(FILE *to, const char *text)
{
	cleanup(buf_free) struct buf out = BUF_INIT(OUTPUT_TEXT_MAX);

	output_text(&out, text, strlen(text));
	if (out.len)
		fwrite(out.data, 1, out.len, to);
}

void output_clean_line(FILE *to, const char *fmt, ...)
{
	_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text)
		output_clean(to, text);
	fputc('\n', to);
}

int output_finish(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (code != CLI_OK)
		return code;
	fprintf(stderr, "netpawl: cannot write to standard output\n");
	return CLI_REFUSED;
}

void complain_text(const char *subject, const char *sentence, const char *token, const char *detail)
{
	output_clean_line(stderr, "netpawl: %s%s%s (%s)%s%s", subject ? subject : "", subject ? ": " : "", sentence,
			  token, detail && *detail ? ": " : "", detail ? detail : "");
}

void error_print(const char *subject, unsigned reason, const char *detail)
{
	complain_text(subject, reason_sentence(reason), reason_token(reason), detail);
}

void table_free(struct table *table)
{
	for (size_t i = 0; i < table->used; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct table){ .columns = table->columns };
}

void table_row(struct table *table, const char *const *cells)
{
	if (table->used + table->columns > table->size) {
		size_t size = (table->size + table->columns) * 2;
		char **grown = realloc(table->cells, size * sizeof(*grown));

		if (!grown)
			return;
		table->cells = grown;
		table->size = size;
	}
	for (size_t i = 0; i < table->columns; i++) {
		struct buf clean = BUF_INIT(OUTPUT_TEXT_MAX);
		const char *text = cells[i] && *cells[i] ? cells[i] : "-";

		output_text(&clean, text, strlen(text));
		table->cells[table->used++] = buf_take(&clean);
		buf_free(&clean);
	}
}

/* Characters, not bytes: continuation bytes take no place. */
static size_t cell_width(const char *cell)
{
	size_t width = 0;

	for (; cell && *cell; cell++)
		width += ((unsigned char)*cell & 0xc0) != 0x80;
	return width;
}

static size_t column_width(const struct table *table, size_t column)
{
	size_t width = 0;

	for (size_t i = column; i < table->used; i += table->columns) {
		size_t w = cell_width(table->cells[i]);

		width = w > width ? w : width;
	}
	return width;
}

void table_print(const struct table *table, FILE *to)
{
	bool bold = table->heading && isatty(fileno(to)) && !getenv("NO_COLOR");
	size_t widths[TABLE_COLUMNS_MAX] = { 0 };

	if (!table->columns || table->columns > TABLE_COLUMNS_MAX)
		return;
	for (size_t column = 0; column < table->columns; column++)
		widths[column] = column_width(table, column);
	for (size_t i = 0; i < table->used; i++) {
		size_t column = i % table->columns;
		const char *cell = table->cells[i] ? table->cells[i] : "?";

		if (bold && i == 0)
			fputs("\033[1m", to);
		fputs(cell, to);
		if (column + 1 < table->columns) {
			fprintf(to, "%*s", (int)(widths[column] - cell_width(table->cells[i])) + 2, "");
			continue;
		}
		fputs(bold && i < table->columns ? "\033[0m\n" : "\n", to);
	}
}

const char *member_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

char *scalar_text(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		return strdup(json_string_value(value));
	case JSON_TRUE:
		return strdup("yes");
	case JSON_FALSE:
		return strdup("no");
	case JSON_INTEGER:
	case JSON_REAL:
		return json_dumps(value, JSON_ENCODE_ANY);
	case JSON_NULL:
		return strdup("none");
	default:
		return NULL;
	}
}
