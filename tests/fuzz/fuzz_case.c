/* SPDX-License-Identifier: MIT */
/* Any bytes give cases that can be run, or an error that names the file. */
#include <stdint.h>

#include "policy/case.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_item(const struct case_item *item, size_t lines)
{
	const struct facts *facts = &item->facts;

	check(item->line >= 1 && item->line <= lines && *item->text);
	check(item->action >= ACTION_ALLOW && item->action <= ACTION_DECIDE);
	check(item->reason >= -1 && item->reason < 128);
	check(!item->file || item->at);
	check(!item->credential || !strpbrk(item->credential, " \t"));
	check(facts->rung.level < LEVEL_COUNT);
	if (facts->query) /* it goes to no port */
		check(facts->name && !facts->port && !facts->method);
	else
		check(facts->port && (facts->protocol == PATTERN_TCP || facts->protocol == PATTERN_UDP));
	check(facts->name || facts->has_addr);
	check(facts->method ? facts->path && facts->path[0] == '/' : !facts->path && !facts->headers && !facts->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_problems_ struct problems problems = { 0 };
	_case_file_ struct case_file *file = NULL;
	const char *text = size ? (const char *)data : "";
	int e = case_file_parse("fuzz.case", text, size, &file, &problems);

	if (e < 0) {
		check(!file && problems.errors && !strcmp(problems.items[0].file, "fuzz.case"));
		return 0;
	}
	check(!problems.errors && file->n_items && !(file->path && file->text));
	for (size_t i = 0; i < file->n_items; i++)
		check_item(&file->items[i], lines_count(text, size));
	/* What stands in the file keeps its lines. */
	check(!file->text || lines_count(file->text, file->len) == lines_count(text, size));
	return 0;
}
