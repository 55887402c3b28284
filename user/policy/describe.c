/* SPDX-License-Identifier: MIT */
#include "policy/describe.h"

#include <inttypes.h>

#include "vocab/level.h"
#include "wire/dns.h"

static void key_put(struct buf *out, const char *key)
{
	buf_printf(out, "%s%s: ", out->len ? "; " : "", key);
}

static void words_put(struct buf *out, const char *key, const char *const *words)
{
	if (!words || !*words)
		return;
	key_put(out, key);
	for (size_t i = 0; words[i]; i++)
		buf_printf(out, "%s%s", i ? ", " : "", words[i]);
}

static void levels_put(struct buf *out, uint8_t levels)
{
	const char *names[LEVEL_COUNT + 1] = { NULL };
	size_t n = 0;

	for (unsigned level = 0; level < LEVEL_COUNT; level++)
		if (levels & 1u << level)
			names[n++] = level_name(level);
	if (n < LEVEL_COUNT)
		words_put(out, "for", names);
}

static void bytes_put(struct buf *out, const char *key, uint64_t bytes)
{
	key_put(out, key);
	buf_printf(out, "%" PRIu64 "B", bytes);
}

static void time_put(struct buf *out, const char *name, uint32_t ms)
{
	if (!ms)
		return;
	key_put(out, name);
	buf_printf(out, "%" PRIu32 "ms", ms);
}

static void dns_put(struct buf *out, unsigned types)
{
	char type[DNS_TYPE_SIZE];

	if (types)
		key_put(out, "dns");
	for (const char *comma = ""; types; comma = ", ") {
		dns_type_text(dns_record_next(&types), type);
		buf_printf(out, "%s%s", comma, type);
	}
}

void rule_describe(const struct rule *rule, struct buf *out)
{
	words_put(out, "methods", rule->methods);
	words_put(out, "paths", rule->paths);
	words_put(out, "headers", rule->headers);
	levels_put(out, rule->levels);
	words_put(out, "sessions", rule->sessions);
	if (rule->by)
		words_put(out, "by", (const char *const[]){ rule->by, NULL });
	if (rule->quiet)
		words_put(out, "quiet", (const char *const[]){ "true", NULL });
	if (rule->action == ACTION_DENY)
		return;
	if (!rule->inspect)
		words_put(out, "inspect", (const char *const[]){ "false", NULL });
	if (rule->websocket)
		words_put(out, "websocket", (const char *const[]){ "true", NULL });
	if (rule->max_body != UINT64_MAX)
		bytes_put(out, "max_body", rule->max_body);
	if (rule->capture)
		bytes_put(out, "capture", rule->capture);
	time_put(out, "idle", rule->timeouts.idle);
	time_put(out, "first_byte", rule->timeouts.first_byte);
	time_put(out, "connect", rule->timeouts.connect);
	dns_put(out, rule->dns);
}
