/* SPDX-License-Identifier: MIT */
#include "policy/pattern.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "addr.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "policy/metadata.h"
#include "policy/net.h"
#include "policy/quote.h"

#define DNS_PORT 53

struct span {
	const char *text; /* NULL: not written */
	size_t len;
};

/* A destination in its parts, nothing of them checked yet. */
struct parts {
	struct span host; /* with its prefix length */
	struct span ports, protocol;
	bool v6; /* the host has colons */
};

static int pattern_fail(char problem[static PATTERN_PROBLEM_SIZE], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int pattern_fail(char problem[static PATTERN_PROBLEM_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(problem, PATTERN_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static struct span span_from(struct span span, size_t at)
{
	return (struct span){ span.text + at, span.len - at };
}

static bool span_is(struct span span, const char *word)
{
	return span.len == strlen(word) && !memcmp(span.text, word, span.len);
}

/* Only these bytes, and at least one. */
static bool span_holds(struct span span, const char *bytes)
{
	size_t n = 0;

	while (n < span.len && span.text[n] && strchr(bytes, span.text[n]))
		n++;
	return n && n == span.len;
}

/* A decimal number up to most, without a sign or leading zeros. */
static bool span_number(struct span span, unsigned most, unsigned *ret)
{
	uint64_t value;

	if (number_parse(span.text, span.len, most, &value) < 0 || (span.len > 1 && span.text[0] == '0'))
		return false;
	*ret = (unsigned)value;
	return true;
}

#define SHOWN(span) QUOTE((span).text, (span).len)

/* -- the parts -------------------------------------------------------------- */

/* "443/tcp" behind the colon. */
static void split_ports(struct span rest, struct parts *parts)
{
	const char *slash = memchr(rest.text, '/', rest.len);

	parts->ports = rest;
	if (slash) {
		parts->ports.len = (size_t)(slash - rest.text);
		parts->protocol = span_from(rest, parts->ports.len + 1);
	}
}

static int split_brackets(struct span text, struct parts *parts, char *problem)
{
	const char *close = memchr(text.text, ']', text.len);
	struct span rest;

	if (!close)
		return pattern_fail(problem, "%s has no \"]\" behind the address", SHOWN(text));
	parts->v6 = true;
	parts->host = (struct span){ text.text + 1, (size_t)(close - text.text) - 1 };
	rest = span_from(text, parts->host.len + 2);
	if (!memchr(parts->host.text, ':', parts->host.len))
		return pattern_fail(problem, "brackets are for IPv6 addresses, and %s is none", SHOWN(parts->host));
	if (rest.len && rest.text[0] == ':')
		split_ports(span_from(rest, 1), parts);
	else if (rest.len > 1 && rest.text[0] == '/' && rest.text[1] >= '0' && rest.text[1] <= '9')
		return pattern_fail(problem,
				    "%s: the prefix length goes inside of the brackets, as in \"[2001:db8::/32]\"",
				    SHOWN(text));
	else if (rest.len && rest.text[0] == '/')
		parts->protocol = span_from(rest, 1);
	else if (rest.len)
		return pattern_fail(problem, "behind \"]\" comes \":PORT\", not %s", SHOWN(rest));
	return 0;
}

static int split_url(struct span text, char *problem)
{
	const char *host = memmem(text.text, text.len, "://", 3);
	struct span rest = span_from(text, (size_t)(host - text.text) + 3);
	const char *slash = memchr(rest.text, '/', rest.len);

	if (slash)
		rest.len = (size_t)(slash - rest.text);
	return pattern_fail(problem, "%s is a URL; write the host alone: %s", SHOWN(text), SHOWN(rest));
}

static int pattern_split(struct span text, struct parts *parts, char *problem)
{
	const char *colon = memchr(text.text, ':', text.len), *slash = memrchr(text.text, '/', text.len);

	if (text.len && text.text[0] == '[')
		return split_brackets(text, parts, problem);
	if (memmem(text.text, text.len, "://", 3))
		return split_url(text, problem);
	if (colon && memchr(colon + 1, ':', text.len - (size_t)(colon + 1 - text.text))) {
		parts->v6 = true;
		if (slash && !span_holds(span_from(text, (size_t)(slash + 1 - text.text)), "0123456789"))
			return pattern_fail(problem,
					    "%s: an IPv6 address with a port or a protocol needs brackets: "
					    "\"[2001:db8::/32]:443/tcp\"",
					    SHOWN(text));
		return 0;
	}
	if (colon) {
		parts->host.len = (size_t)(colon - text.text);
		split_ports(span_from(text, parts->host.len + 1), parts);
	} else if (slash && !span_holds(span_from(text, (size_t)(slash + 1 - text.text)), "0123456789")) {
		parts->host.len = (size_t)(slash - text.text);
		parts->protocol = span_from(text, parts->host.len + 1);
	}
	if (!parts->host.len)
		return pattern_fail(problem, "%s names no host; every name is \"**\"", SHOWN(text));
	return 0;
}

/* -- ports and protocols ------------------------------------------------------ */

static int parse_ports(struct span ports, struct pattern *pattern, char *problem)
{
	const char *dash = memchr(ports.text, '-', ports.len);
	struct span first = ports, last = ports;
	unsigned from = 0, to = 0;

	if (span_is(ports, "*")) {
		pattern->first_port = 1;
		pattern->last_port = 65535;
		return 0;
	}
	if (dash) {
		first.len = (size_t)(dash - ports.text);
		last = span_from(ports, first.len + 1);
	}
	if (!span_number(first, 65535, &from) || !from)
		return pattern_fail(problem, "%s is no port; ports are 1 to 65535, or \"*\" for all", SHOWN(first));
	if (!span_number(last, 65535, &to) || !to)
		return pattern_fail(problem, "%s is no port; ports are 1 to 65535, or \"*\" for all", SHOWN(last));
	if (from > to)
		return pattern_fail(problem, "the ports %s end before they start", SHOWN(ports));
	pattern->first_port = (uint16_t)from;
	pattern->last_port = (uint16_t)to;
	return 0;
}

static int parse_protocol(struct span protocol, struct pattern *pattern, bool ports, char *problem)
{
	if (span_is(protocol, "tcp")) {
		pattern->protocols = PATTERN_TCP;
		return 0;
	}
	if (!span_is(protocol, "udp"))
		return pattern_fail(problem, "%s is no protocol; there are tcp and udp%s", SHOWN(protocol),
				    ports ? "" : ", and the path of a request goes into \"paths\"");
	if (!ports)
		return pattern_fail(problem, "udp needs a port, as in \":443/udp\", or \":*/udp\" for all");
	pattern->protocols = PATTERN_UDP;
	return 0;
}

/* -- addresses ---------------------------------------------------------------- */

static void net_format(char text[static ADDR_TEXT_SIZE + 8], const struct np_addr *addr, unsigned bits)
{
	char plain[ADDR_TEXT_SIZE];

	addr_format(addr, plain);
	snprintf(text, ADDR_TEXT_SIZE + 8, "%s/%u", plain, np_addr_is_v4(addr) && bits >= 96 ? bits - 96 : bits);
}

static struct np_addr net_mask(const struct np_addr *addr, unsigned bits)
{
	struct np_addr masked = *addr;

	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits <= 8 * i ? 0 : bits - 8 * i;

		if (keep < 8)
			masked.b[i] &= (uint8_t)(0xff00u >> keep);
	}
	return masked;
}

/* Ranges that no rule can name, because something else decides about them. */
static int check_special(const struct pattern *pattern, struct span host, char *problem)
{
	static const struct {
		struct np_addr addr;
		uint8_t bits;
		bool many;
	} ranges[] = {
		{ { .b = { [10] = 0xff, 0xff, 127 } }, 96 + 8, false },
		{ { .b = { [10] = 0xff, 0xff, 0 } }, 96 + 8, false },
		{ { .b = { 0 } }, 127, false }, /* :: and ::1 */
		{ { .b = { [10] = 0xff, 0xff, 224 } }, 96 + 4, true },
		{ { .b = { [10] = 0xff, 0xff, 255, 255, 255, 255 } }, 128, true },
		{ { .b = { 0xff } }, 8, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (pattern->bits < ranges[i].bits || !net_holds(&ranges[i].addr, ranges[i].bits, &pattern->addr))
			continue;
		return pattern_fail(problem, "%s: %s", SHOWN(host),
				    ranges[i].many ? "multicast is refused in every mode"
						   : "rules do not reach the host; host_loopback does");
	}
	return 0;
}

/* The gate takes an IPv4 address inside of an IPv6 one for the IPv4 address, so a rule on the outer form would never match. */
static int check_carried(const struct pattern *pattern, struct span host, char *problem)
{
	static const struct np_addr nat64 = { .b = { 0x00, 0x64, 0xff, 0x9b } }, six = { .b = { 0x20, 0x02 } };
	char text[ADDR_TEXT_SIZE + 8];
	struct np_addr v4 = np_addr_carried(&pattern->addr);
	unsigned bits;

	if (pattern->bits >= 96 && net_holds(&nat64, 96, &pattern->addr))
		bits = pattern->bits;
	else if (pattern->bits >= 16 && net_holds(&six, 16, &pattern->addr))
		bits = pattern->bits >= 48 ? 128 : 96 + pattern->bits - 16u;
	else
		return 0;
	v4 = net_mask(&v4, bits);
	net_format(text, &v4, bits);
	return pattern_fail(problem, "%s carries IPv4 addresses; write the IPv4 range: \"%s\"", SHOWN(host), text);
}

static int parse_net(struct span host, bool v6, struct pattern *pattern, char *problem)
{
	const char *slash = memchr(host.text, '/', host.len);
	struct span addr = host, prefix = { 0 };
	unsigned bits = v6 ? 128 : 32;
	char right[ADDR_TEXT_SIZE + 8];
	struct np_addr masked;

	if (slash) {
		addr.len = (size_t)(slash - host.text);
		prefix = span_from(host, addr.len + 1);
	}
	if (addr_parse(addr.text, addr.len, &pattern->addr) < 0) {
		if (v6)
			return pattern_fail(problem, "%s is no IPv6 address", SHOWN(addr));
		if (!span_holds(addr, "0123456789."))
			return pattern_fail(problem, "%s is no address, and a name takes no prefix length",
					    SHOWN(addr));
		return pattern_fail(problem, "%s is no IPv4 address: four numbers from 0 to 255, without leading zeros",
				    SHOWN(addr));
	}
	if (slash && !span_number(prefix, bits, &bits))
		return pattern_fail(problem, "%s is no prefix length; there are 0 to %u", SHOWN(prefix),
				    v6 ? 128u : 32u);
	pattern->kind = PATTERN_NET;
	pattern->bits = (uint8_t)(v6 ? bits : bits + 96);
	pattern->v4 = np_addr_is_v4(&pattern->addr) && pattern->bits >= 96;
	if (check_special(pattern, host, problem) < 0 || check_carried(pattern, host, problem) < 0)
		return -EINVAL;
	masked = net_mask(&pattern->addr, pattern->bits);
	if (memcmp(&masked, &pattern->addr, sizeof(masked)) != 0) {
		net_format(right, &masked, pattern->bits);
		return pattern_fail(problem, "%s has bits set behind its prefix; write \"%s\"", SHOWN(host), right);
	}
	return 0;
}

/* -- the whole ---------------------------------------------------------------- */

int pattern_parse(const char *text, size_t len, char name[static NAME_SIZE], struct pattern *ret,
		  char problem[static PATTERN_PROBLEM_SIZE])
{
	struct pattern pattern = { 0 };
	struct parts parts = { .host = { text, len } };
	int e = pattern_split(parts.host, &parts, problem);

	if (e < 0)
		return e;
	if (parts.v6 || memchr(parts.host.text, '/', parts.host.len) ||
	    (span_holds(parts.host, "0123456789.") && !span_holds(parts.host, ".")))
		e = parse_net(parts.host, parts.v6, &pattern, problem);
	else
		e = pattern_name(parts.host.text, parts.host.len, name, problem);
	if (e == 0 && parts.ports.text)
		e = parse_ports(parts.ports, &pattern, problem);
	if (e == 0 && parts.protocol.text)
		e = parse_protocol(parts.protocol, &pattern, parts.ports.text != NULL, problem);
	if (e < 0)
		return e;
	if (pattern.kind == PATTERN_NAME)
		pattern.name = name;
	*ret = pattern;
	return 0;
}

const char *pattern_settle(struct pattern *pattern, enum pattern_use use)
{
	bool ports = pattern->first_port != 0;

	if (use == PATTERN_FULL && pattern->kind == PATTERN_NAME)
		return "in FULL nothing looks at names; only addresses can be refused there";
	if (use == PATTERN_READ && pattern->kind == PATTERN_NAME)
		return "a run that may only read reaches names through the inspector; list addresses";
	if ((use == PATTERN_GRANT || use == PATTERN_READ) && pattern->first_port == DNS_PORT &&
	    pattern->last_port == DNS_PORT)
		return "port 53 belongs to the DNS gate; a rule can only deny it";
	if (use == PATTERN_CREDENTIAL && pattern->kind != PATTERN_NAME)
		return "a credential is for names: an address proves nothing about who is there";
	if (use == PATTERN_CREDENTIAL && pattern->protocols & PATTERN_UDP)
		return "a credential is for TLS over TCP";
	if (use == PATTERN_CREDENTIAL) {
		pattern->protocols = PATTERN_TCP;
		pattern->first_port = ports ? pattern->first_port : 443;
		pattern->last_port = ports ? pattern->last_port : 443;
		return NULL;
	}
	if (!pattern->protocols)
		pattern->protocols = use == PATTERN_GRANT ? PATTERN_TCP : PATTERN_TCP | PATTERN_UDP;
	pattern->inspected = use == PATTERN_GRANT && !ports;
	if (use != PATTERN_GRANT && !ports) {
		pattern->first_port = 1;
		pattern->last_port = 65535;
	}
	return NULL;
}

bool pattern_spans_dns(const struct pattern *pattern)
{
	return pattern->first_port <= DNS_PORT && pattern->last_port >= DNS_PORT &&
	       pattern->first_port != pattern->last_port;
}

bool pattern_spans_metadata(const struct pattern *pattern)
{
	if (pattern->kind != PATTERN_NET || metadata_holds(&pattern->addr, pattern->bits, pattern->v4))
		return false;
	for (size_t i = 0; i < n_metadata_ranges; i++)
		if (metadata_ranges[i].v4 == pattern->v4 &&
		    net_holds(&pattern->addr, pattern->bits, &metadata_ranges[i].addr))
			return true;
	return false;
}
