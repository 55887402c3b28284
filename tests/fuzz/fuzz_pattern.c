/* SPDX-License-Identifier: MIT */
/* Any text is a destination that can be written down and read again as the same, or is refused with a sentence. */
#include "policy/pattern.c"
#include "policy/pattern_name.c"
#include "policy/quote.c"
#include "wire/hostname.c"

#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const char *problem)
{
	size_t len = strnlen(problem, PATTERN_PROBLEM_SIZE);

	check(len && len < PATTERN_PROBLEM_SIZE);
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t c = 0;

		n = char_decode(problem + i, len - i, &c);
		check(n && char_is_printable(c));
	}
}

/* The plain way to write it. */
static void format(const struct pattern *p, char text[static 512])
{
	char net[ADDR_TEXT_SIZE + 8];
	int at;

	net_format(net, &p->addr, p->bits);
	if (p->kind == PATTERN_NAME)
		at = snprintf(text, 512, "%s", p->name);
	else
		at = snprintf(text, 512, p->v4 ? "%s" : "[%s]", net);
	if (p->first_port)
		at += snprintf(text + at, 512 - (size_t)at, ":%u-%u", p->first_port, p->last_port);
	if (p->protocols)
		snprintf(text + at, 512 - (size_t)at, "/%s", p->protocols == PATTERN_TCP ? "tcp" : "udp");
}

static bool same(const struct pattern *a, const struct pattern *b)
{
	return a->kind == b->kind && a->protocols == b->protocols && a->inspected == b->inspected &&
	       a->first_port == b->first_port && a->last_port == b->last_port && a->bits == b->bits && a->v4 == b->v4 &&
	       !memcmp(&a->addr, &b->addr, sizeof(a->addr)) && !a->name == !b->name &&
	       (!a->name || !strcmp(a->name, b->name));
}

static void check_settled(const struct pattern *pattern, enum pattern_use use)
{
	struct pattern p = *pattern;
	const char *why = pattern_settle(&p, use);

	if (why) {
		check(why[0] && same(&p, pattern));
		check(use == PATTERN_FULL ? p.kind == PATTERN_NAME : use == PATTERN_GRANT && p.first_port == 53);
		return;
	}
	check(p.protocols && p.inspected == !p.first_port && p.first_port <= p.last_port);
	check(!p.inspected || (use == PATTERN_GRANT && p.protocols == PATTERN_TCP));
	check(!pattern_spans_dns(&p) || (p.first_port <= 53 && p.last_port >= 53));
	check(!pattern_spans_metadata(&p) || p.kind == PATTERN_NET);
}

static void check_pattern(const struct pattern *p)
{
	char text[512], name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];
	struct pattern again;

	check(!p->inspected && !p->first_port == !p->last_port && p->first_port <= p->last_port);
	check(p->protocols != (PATTERN_TCP | PATTERN_UDP) && (p->protocols != PATTERN_UDP || p->first_port));
	if (p->kind == PATTERN_NET && !p->v4)
		check(p->bits < 96 || !np_addr_is_v4(&p->addr));
	format(p, text);
	check(pattern_parse(text, strlen(text), name, &again, problem) == 0);
	check(same(p, &again));
	check_settled(p, PATTERN_GRANT);
	check_settled(p, PATTERN_REFUSE);
	check_settled(p, PATTERN_FULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];
	struct pattern pattern, untouched;
	int r;

	memset(&untouched, 0xee, sizeof(untouched));
	memset(&pattern, 0xee, sizeof(pattern));
	memset(problem, 0xff, sizeof(problem));
	r = pattern_parse((const char *)data, size, name, &pattern, problem);
	check(r == 0 || r == -EINVAL);
	if (r == 0) {
		check_pattern(&pattern);
	} else {
		check_sentence(problem);
		check(!memcmp(&pattern, &untouched, sizeof(pattern)));
	}
	return 0;
}
