/* SPDX-License-Identifier: MIT */
#include "policy/grant.h"

#include <errno.h>
#include <string.h>

#include "vocab/words.h"

const char grant_file_head[] =
	"# What people have answered \"always\" to. netpawld adds to this file; \"netpawl answer ID --revoke\"\n"
	"# takes from it, and so may you.\n"
	"version: 1\n"
	"grants:\n";

static bool host_fits(const struct grant *grant, const struct facts *facts)
{
	if (grant->host.is_addr)
		return !facts->name && facts->has_addr && !memcmp(&grant->host.addr, &facts->addr, sizeof(facts->addr));
	return facts->name && !strcmp(grant->host.name, facts->name);
}

static bool kind_fits(const struct grant *grant, const struct facts *facts, const struct verdict *verdict)
{
	if (!facts->method)
		return grant->kind == GRANT_CONNECT && !verdict->inspect;
	return grant->kind == (facts_read(facts) ? GRANT_READ : GRANT_WRITE) &&
	       facts->leg == (grant->tls ? LEG_TLS : LEG_CLEAR);
}

const struct grant *grant_find(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	for (size_t i = 0; i < policy->n_grants; i++) {
		const struct grant *grant = &policy->grants[i];

		if (grant->port == facts->port && facts->protocol == PATTERN_TCP &&
		    (grant->rule.levels & 1u << facts->rung.level) && host_fits(grant, facts) &&
		    kind_fits(grant, facts, verdict) && rule_is_for(&grant->rule, facts->session))
			return grant;
	}
	return NULL;
}

/* -- writing ---------------------------------------------------------------------- */

/* A comment ends with its line, and YAML knows more ends of lines than one. */
static void comment_put(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_printf(out, "%c", *text >= ' ' && *text <= '~' ? *text : '?');
}

/* The inspector has seen to that; it is not relied on here. */
bool grant_host_is_plain(const char *host)
{
	return *host && strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:") == strlen(host);
}

int grant_write(const struct grant_facts *facts, struct buf *out)
{
	static const char *const kinds[] = { ", kind: read", ", kind: write", "" };
	const bool v6 = strchr(facts->host, ':');
	char time[TIME_TEXT_SIZE];

	if (!grant_host_is_plain(facts->host))
		return -EINVAL;
	time_format(facts->answered_us, time);
	buf_printf(out, "  # question %llu, always: %s, %s", (unsigned long long)facts->question, facts->who, time);
	if (*facts->reason)
		buf_puts(out, ": ");
	comment_put(out, facts->reason);
	buf_printf(out, "\n  - {allow: \"%s://%s%s%s:%u\"%s, for: [",
		   facts->kind == GRANT_CONNECT ? "tcp"
		   : facts->tls			? "https"
						: "http",
		   v6 ? "[" : "", facts->host, v6 ? "]" : "", facts->port, kinds[facts->kind]);
	for (unsigned level = 0; level <= (unsigned)facts->level; level++)
		buf_printf(out, "%s%s", level ? ", " : "", level_name(level));
	buf_printf(out, "], sessions: \"%.*s/*\"}\n", (int)strcspn(facts->session, "/"), facts->session);
	return buf_error(out);
}
