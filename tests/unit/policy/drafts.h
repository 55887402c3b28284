/* SPDX-License-Identifier: MIT */
/* Random policies, as data and as a person would write them, and random attempts at getting through. Few labels, few
 * addresses and few ports, so that they meet. */
#pragma once

#include <arpa/inet.h>

#include "make.h"

#define RULES_MAX 14
#define DESTS_MAX 3

struct dest {
	char name[40]; /* empty: a range */
	uint8_t addr[16];
	int bits; /* of 128 */
	bool v4;
	int first, last;      /* 0: no port is written */
	const char *protocol; /* "": none is written */
};

struct draft {
	const char *action;
	struct dest dests[DESTS_MAX];
	int n_dests;
	bool levels[4], asks, pinned, websocket;
	int max_body; /* 0: none */
	const char *method, *glob, *header, *session;
};

struct drafts {
	struct draft rules[RULES_MAX], full[RULES_MAX];
	int n_rules, n_full;
	bool default_ask;
};

struct attempt {
	struct facts facts;
	char name[40];
	const char *normal_path; /* NULL: it has none */
	const char *headers[3];
	bool unmeant; /* default: does not speak of its name: test_name_reachable.c checks that */
};

/* -- chance ----------------------------------------------------------------------- */

static uint32_t chance_state;

static int chance(int n)
{
	chance_state = chance_state * 1664525u + 1013904223u;
	return (int)((chance_state >> 8) % (uint32_t)n);
}
#define WORD(...)                                                          \
	({                                                                 \
		static const char *const words_[] = { __VA_ARGS__ };       \
		words_[chance((int)(sizeof(words_) / sizeof(words_[0])))]; \
	})
#define NUMBER(...)                                                              \
	({                                                                       \
		static const int numbers_[] = { __VA_ARGS__ };                   \
		numbers_[chance((int)(sizeof(numbers_) / sizeof(numbers_[0])))]; \
	})

static void random_name(char *name, bool pattern)
{
	int labels = NUMBER(0, 1, 1, 2, 3);

	*name = '\0';
	if (pattern && chance(20) == 0) {
		strcpy(name, "**");
		return;
	}
	if (pattern && chance(5) == 0) { /* a domain and all below it, which has no stars */
		strcpy(name, ".");
		pattern = false;
	} else if (pattern && chance(4) == 0) {
		strcpy(name, "**.");
	}
	while (labels-- > 0) {
		strcat(name, pattern && chance(3) == 0 ? "*" : WORD("a", "a", "b"));
		strcat(name, ".");
	}
	strcat(name, pattern && chance(8) == 0 ? "*" : WORD("x", "x", "x", "y"));
}

/* Of paths, and of sessions. */
static inline bool glob_fits(const char *glob, const char *path)
{
	if (!strncmp(glob, "**", 2))
		return glob_fits(glob + 2, path) || (*path && glob_fits(glob, path + 1));
	if (*glob == '*')
		return glob_fits(glob + 1, path) || (*path && *path != '/' && glob_fits(glob, path + 1));
	return *glob == *path && (!*glob || glob_fits(glob + 1, path + 1));
}

/* Does a pattern match? From the left, unlike the trie. */
static inline bool name_fits(const char *pattern, const char *name)
{
	const char *p = strchr(pattern, '.'), *n = strchr(name, '.');

	if (*pattern == '.') {
		for (n = name; n; n = strchr(n, '.') ? strchr(n, '.') + 1 : NULL)
			if (!strcmp(pattern + 1, n))
				return true;
		return false;
	}
	if (!strncmp(pattern, "**", 2)) {
		if (!p)
			return true;
		for (; n; n = strchr(n + 1, '.'))
			if (name_fits(p + 1, n + 1))
				return true;
		return false;
	}
	if (*pattern != '*' && strcspn(pattern, ".") != strcspn(name, "."))
		return false;
	if (*pattern != '*' && strncmp(pattern, name, strcspn(name, ".")) != 0)
		return false;
	return p && n ? name_fits(p + 1, n + 1) : !p && !n;
}

/* Few addresses, so that ranges meet; many of them metadata. */
static void random_addr(uint8_t addr[16])
{
	const char *text =
		WORD("10.0.0.", "10.0.1.", "10.1.0.", "10.0.0.", "169.254.169.", "169.254.0.", "100.100.100.20",
		     "192.0.2.", "2001:db8::", "2001:db8:1::", "fe80::", "fd00:ec2::", "fd00:42::4");
	char one[64];
	uint8_t v4[4];

	sprintf(one, "%s%d", text, chance(4));
	memset(addr, 0, 16);
	if (inet_pton(AF_INET6, one, addr) == 1)
		return;
	if (inet_pton(AF_INET, one, v4) != 1)
		fail_msg("%s", one);
	memset(addr + 10, 0xff, 2);
	memcpy(addr + 12, v4, 4);
}

static bool is_v4(const uint8_t addr[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(addr, prefix, 12) == 0;
}

static inline bool bit_of(const uint8_t addr[16], int bit)
{
	return addr[bit / 8] >> (7 - bit % 8) & 1;
}

static void random_dest(struct dest *d, bool grants, bool web, bool full)
{
	*d = (struct dest){ .protocol = "" };
	if (full || chance(3) == 0) {
		random_addr(d->addr);
		d->v4 = is_v4(d->addr);
		d->bits = d->v4 ? NUMBER(96, 104, 112, 120, 126, 127, 128) : NUMBER(0, 10, 32, 48, 126, 128);
		for (int bit = d->bits; bit < 128; bit++)
			d->addr[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	} else {
		random_name(d->name, true);
	}
	if (web || chance(3))
		return;
	d->first = NUMBER(1, 22, 50, 80, 443, 8080);
	d->last = chance(2) ? d->first : NUMBER(50, 60, 443, 8080, 65535);
	if (d->last < d->first)
		d->last = d->first;
	d->protocol = WORD("", "/tcp", "/udp");
	if (grants && d->first <= 53 && d->last >= 53 && d->first == d->last)
		d->first = d->last = 54;
}

static void random_draft(struct draft *r, bool full)
{
	bool grants, web;

	*r = (struct draft){ .action = full ? WORD("allow", "deny")
					    : WORD("allow", "allow", "deny", "deny", "ask", "decide"),
			     .levels = { true, true, true, true } };
	grants = strcmp(r->action, "deny") != 0;
	web = !full && chance(3) == 0;
	r->n_dests = 1 + chance(DESTS_MAX);
	for (int i = 0; i < r->n_dests; i++)
		random_dest(&r->dests[i], grants, web, full);
	if (full)
		return;
	r->session = chance(4) == 0 ? WORD("a/x", "a/*", "*/x", "b/*", "*/*") : NULL;
	for (int i = 0; i < r->n_dests; i++)
		if (!*r->dests[i].name) /* of addresses the kernel knows no session */
			r->session = NULL;
	if (chance(3) == 0) {
		for (int i = 0; i < 4; i++)
			r->levels[i] = chance(2);
		r->levels[chance(4)] = true;
	}
	if (!web)
		return;
	if (grants && chance(4) == 0) {
		r->pinned = true;
		return;
	}
	r->method = chance(2) ? WORD("GET", "POST") : NULL;
	r->glob = chance(2) ? WORD("/a", "/a/*", "/a/**", "/**", "/*/b", "/b", "/**b", "/*", "**/c") : NULL;
	r->header = chance(3) ? NULL : WORD("x-a", "x-b");
	r->asks = r->method || r->glob || r->header;
	if (grants) {
		r->websocket = chance(2);
		r->max_body = chance(2) ? 100 : 0;
	}
}

static void random_drafts(struct drafts *d)
{
	d->n_rules = 1 + chance(RULES_MAX);
	d->n_full = chance(4);
	d->default_ask = chance(3) == 0;
	for (int i = 0; i < d->n_rules; i++)
		random_draft(&d->rules[i], false);
	for (int i = 0; i < d->n_full; i++)
		random_draft(&d->full[i], true);
}

static void random_attempt(struct attempt *a)
{
	static const struct {
		const char *raw, *normal;
	} paths[] = { { "/", "/" },	     { "/a", "/a" },   { "/a/b", "/a/b" },   { "/a/b/c?q=/x", "/a/b/c" },
		      { "/a/../b", NULL },   { "/b/", "/b/" }, { "/%61/b", "/a/b" }, { "/c;x/b", NULL },
		      { "/%2e%2e/a", NULL }, { "//a", NULL },  { "/a%2fb", NULL } };
	struct facts *f = &a->facts;
	int path = chance((int)(sizeof(paths) / sizeof(paths[0])));

	*a = (struct attempt){ 0 };
	f->rung.mode = (enum np_mode)NUMBER(NP_PROXIED, NP_PROXIED, NP_PROXIED, NP_PROXIED, NP_PROXIED, NP_PROXIED,
					    NP_PROXIED, NP_PROXIED, NP_FULL, NP_NONE);
	f->rung.level = (uint8_t)chance(4);
	f->session = WORD("a/x", "a/y", "b/x");
	f->protocol = chance(8) ? PATTERN_TCP : PATTERN_UDP;
	f->port = (uint16_t)NUMBER(80, 80, 443, 443, 443, 443, 22, 53, 54, 8080, 65535);
	if (chance(3)) {
		random_name(a->name, false);
		f->name = a->name;
	}
	if (!f->name || chance(3) == 0) {
		f->has_addr = true;
		random_addr(f->addr.b);
		/* The same address in another coat */
		if (is_v4(f->addr.b) && chance(8) == 0)
			memcpy(f->addr.b, (uint8_t[12]){ 0, 0x64, 0xff, 0x9b }, 12);
	}
	if (chance(4) == 0)
		return;
	f->method = WORD("GET", "POST", "get");
	f->path = paths[path].raw;
	a->normal_path = paths[path].normal;
	a->headers[0] = WORD("x-a", "x-b", "x-c");
	a->headers[1] = chance(2) ? "x-b" : NULL;
	f->headers = chance(4) ? a->headers : NULL;
	f->websocket = chance(8) == 0;
	f->body = (uint64_t)NUMBER(0, 0, 100, 101);
}

/* -- as a person would write it ---------------------------------------------------- */

static char *write_dest(char *at, const struct dest *d)
{
	char addr[64];
	bool brackets = false;

	*at++ = '"';
	if (*d->name) {
		at += sprintf(at, "%s", d->name);
	} else {
		inet_ntop(d->v4 ? AF_INET : AF_INET6, d->v4 ? d->addr + 12 : d->addr, addr, sizeof(addr));
		brackets = !d->v4 && d->first;
		at += sprintf(at, "%s%s/%d%s", brackets ? "[" : "", addr, d->v4 ? d->bits - 96 : d->bits,
			      brackets ? "]" : "");
	}
	if (d->first && d->first == d->last)
		at += sprintf(at, ":%d", d->first);
	else if (d->first)
		at += sprintf(at, ":%d-%d", d->first, d->last);
	return at + sprintf(at, "%s\"", d->protocol);
}

static char *write_dests(char *at, const struct draft *r)
{
	*at++ = '[';
	for (int i = 0; i < r->n_dests; i++) {
		at = write_dest(at, &r->dests[i]);
		*at++ = i + 1 < r->n_dests ? ',' : ']';
	}
	return at + sprintf(at, "\n");
}

static char *write_rule(char *at, const struct draft *r, int list)
{
	at += sprintf(at, "- %s: ", r->action);
	if (list >= 0)
		at += sprintf(at, "\"@l%d\"\n", list);
	else
		at = write_dests(at, r);
	if (!strcmp(r->action, "decide"))
		at += sprintf(at, "  by: guard\n");
	if (!(r->levels[0] && r->levels[1] && r->levels[2] && r->levels[3])) {
		at += sprintf(at, "  for:\n");
		for (unsigned i = 0; i < 4; i++)
			if (r->levels[i])
				at += sprintf(at, "  - %s\n", level_name(i));
	}
	if (r->session)
		at += sprintf(at, "  sessions: \"%s\"\n", r->session);
	if (r->method)
		at += sprintf(at, "  methods: %s\n", r->method);
	if (r->glob)
		at += sprintf(at, "  paths: \"%s\"\n", r->glob);
	if (r->header)
		at += sprintf(at, "  headers: %s\n", r->header);
	if (r->pinned)
		at += sprintf(at, "  inspect: false\n");
	if (r->websocket)
		at += sprintf(at, "  websocket: true\n");
	if (r->max_body)
		at += sprintf(at, "  max_body: %d\n", r->max_body);
	return at;
}

static void write_policy(char *at, const struct drafts *d)
{
	at += sprintf(at, "deciders: {guard: {socket: /run/guard}}\ndefault: %s\n", d->default_ask ? "ask" : "deny");
	at += sprintf(at, "lists:\n  unused: [z]\n");
	for (int i = 0; i < d->n_rules; i += 2) {
		at += sprintf(at, "  l%d: ", i);
		at = write_dests(at, &d->rules[i]);
	}
	at += sprintf(at, "rules:\n");
	for (int i = 0; i < d->n_rules; i++)
		at = write_rule(at, &d->rules[i], i % 2 ? -1 : i);
	if (d->n_full)
		at += sprintf(at, "full:\n");
	for (int i = 0; i < d->n_full; i++)
		at = write_rule(at, &d->full[i], -1);
}
