/* SPDX-License-Identifier: MIT */
#include "vocab/run_options.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"

#define WORD_ROW(n, k, p, v, a) \
	{ .name = #n,           \
	  .kind = RUN_##k,      \
	  .places = (p),        \
	  .value = (v),         \
	  .about = (a),         \
	  .word = offsetof(struct run_options, n) },
#define LIMIT_ROW(n, k, low, high, whole, v, a, w)     \
	{ .name = #n,                                  \
	  .kind = RUN_##k,                             \
	  .places = RUN_CLI | RUN_RECORD | RUN_LAUNCH, \
	  .value = (v),                                \
	  .about = (a),                                \
	  .word = offsetof(struct run_options, n),     \
	  .limit = offsetof(struct limits, n),         \
	  .least = (low),                              \
	  .most = (high),                              \
	  .of_sandbox = (whole),                       \
	  .wrong = (w) },

const struct run_option run_options[RUN_N_OPTIONS] = { RUN_WORDS(WORD_ROW) RUN_LIMITS(LIMIT_ROW) };
const struct run_option *const run_limits = run_options + RUN_N_OPTIONS - RUN_N_LIMITS;

const struct run_option *run_option_find(const char *name, unsigned places)
{
	for (size_t i = 0; i < RUN_N_OPTIONS; i++)
		if ((run_options[i].places & places) && !strcmp(run_options[i].name, name))
			return &run_options[i];
	return NULL;
}

const char *run_option_dashed(const struct run_option *option, char text[static RUN_DASHED_SIZE])
{
	snprintf(text, RUN_DASHED_SIZE, "%s", option->name);
	for (char *c = text; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return text;
}

const char **run_option_word(const struct run_option *option, struct run_options *options)
{
	return (const char **)(void *)((char *)options + option->word);
}

struct run_texts *run_option_texts(const struct run_option *option, struct run_options *options)
{
	return (struct run_texts *)(void *)((char *)options + option->word);
}

bool *run_option_flag(const struct run_option *option, struct run_options *options)
{
	return (bool *)(void *)((char *)options + option->word);
}

uint64_t *run_limit_of(const struct run_option *limit, struct limits *limits)
{
	return (uint64_t *)(void *)((char *)limits + limit->limit);
}

bool terminal_parse(const char *text, unsigned *ret_columns, unsigned *ret_rows)
{
	uint64_t columns = 0, rows = 0;
	char first[8];
	size_t len = strcspn(text, "x");

	if (!text[len] || len >= sizeof(first))
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)len, text);
	if (!count_parse(first, NP_TERMINAL_MAX, &columns) || !count_parse(text + len + 1, NP_TERMINAL_MAX, &rows))
		return false;
	*ret_columns = (unsigned)columns;
	*ret_rows = (unsigned)rows;
	return columns && rows;
}

const char *env_check(const char *word, bool has_caller)
{
	size_t len = strcspn(word, "=");

	if (!len || (!has_caller && !word[len]))
		return has_caller ? "it is written NAME or NAME=VALUE" : "it is written NAME=VALUE";
	if (strcspn(word, " \t\n\v\f\r") < len)
		return "there is a blank in the name";
	return strncmp(word, "NETPAWL_", strlen("NETPAWL_")) != 0 ? NULL : "variables of that name are netpawl's own";
}

const char *limit_parse(const char *name, const char *text, uint64_t *ret)
{
	const struct run_option *limit = run_option_find(name, RUN_CLI);

	if (!limit || !limit->wrong)
		return "not a limit";
	if (limit->kind == RUN_CPUS)
		return milli_parse(text, limit->most, ret) && *ret >= limit->least ? NULL : limit->wrong;
	if (limit->kind == RUN_COUNT)
		return count_parse(text, limit->most, ret) ? NULL : limit->wrong;
	if (limit->kind == RUN_TIME)
		return duration_parse(text, ret) ? NULL : limit->wrong;
	if (!size_parse(text, ret) || *ret > limit->most || (*ret < limit->least && limit->least < NP_LIMIT_BYTES_MIN))
		return limit->wrong;
	return *ret < limit->least ? "less than 1MiB" : NULL;
}

const char *limit_format(const struct run_option *limit, uint64_t value, char text[static LIMIT_TEXT_SIZE])
{
	static const struct {
		enum run_kind kind;
		uint64_t of;
		const char *name;
	} units[] = {
		{ RUN_SIZE, 1u << 30, "GiB" }, { RUN_SIZE, 1u << 20, "MiB" }, { RUN_SIZE, 1u << 10, "KiB" },
		{ RUN_TIME, 3600000, "h" },    { RUN_TIME, 60000, "m" },      { RUN_TIME, 1000, "s" },
		{ RUN_TIME, 1, "ms" },
	};
	unsigned long long n = value;

	if (limit->kind == RUN_CPUS) {
		int len = snprintf(text, LIMIT_TEXT_SIZE, "%llu.%03llu", n / 1000, n % 1000);

		while (text[len - 1] == '0')
			text[--len] = '\0';
		if (text[len - 1] == '.')
			text[len - 1] = '\0';
		return text;
	}
	snprintf(text, LIMIT_TEXT_SIZE, "%llu", n);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].kind == limit->kind && n % units[i].of == 0) {
			snprintf(text, LIMIT_TEXT_SIZE, "%llu%s", n / units[i].of, units[i].name);
			break;
		}
	return text;
}
