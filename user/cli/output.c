/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/api.h"
#include "reason.h"

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

void rows_print(const json_t *list, const char *const (*columns)[2], size_t n, bool heading)
{
	_table_ struct table table = { .columns = n, .heading = heading };
	const char *cells[TABLE_COLUMNS_MAX] = { NULL };
	const json_t *object;
	size_t i;

	for (i = 0; i < n; i++)
		cells[i] = columns[i][0];
	if (heading)
		table_row(&table, cells);
	json_array_foreach(list, i, object)
	{
		char *texts[TABLE_COLUMNS_MAX] = { NULL };

		for (size_t c = 0; c < n; c++) {
			const json_t *value = json_object_get(object, columns[c][1]);

			if (value && !json_is_null(value))
				texts[c] = scalar_text(value) ?: json_dumps(value, JSON_COMPACT);
			cells[c] = texts[c];
		}
		table_row(&table, cells);
		for (size_t c = 0; c < n; c++)
			free(texts[c]);
	}
	table_print(&table, stdout);
}

void table_members(struct table *table, const json_t *object, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(object, names[i]);
		_free_ char *text = json_is_null(value) ? NULL : scalar_text(value);

		if (text)
			table_row(table, (const char *const[TABLE_COLUMNS_MAX]){ names[i], text });
	}
}

char *scalar_text(const json_t *value)
{
	if (!value)
		return NULL;
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

int json_print(json_t *json, int code)
{
	_json_ json_t *owned = json;
	_free_ char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;

	if (!text) {
		error_print(NULL, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	puts(text);
	return code;
}

void json_text_print(const char *text)
{
	size_t len = strlen(text);

	fputs(text, stdout);
	if (!len || text[len - 1] != '\n')
		fputc('\n', stdout);
}

int api_show(const struct cli *cli, const char *subject, const char *method, const char *path, json_t *body,
	     void (*print)(const json_t *answer))
{
	_api_answer_ struct api_answer answer;
	int code = api_call(cli->socket, subject, method, path, body, &answer);

	if (cli->json && answer.text)
		json_text_print(answer.text);
	else if (code == CLI_OK)
		print(answer.json);
	return code;
}
