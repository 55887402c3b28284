/* SPDX-License-Identifier: MIT */
#include "vocab/words.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/chars.h"
#include "base/cleanup.h"

static const char *const reason_tokens[NP_REASON_COUNT] = {
#define X(name, code, token, sentence) [code] = token,
	NP_REASONS(X)
#undef X
};

static const char *const reason_sentences[NP_REASON_COUNT] = {
#define X(name, code, token, sentence) [code] = sentence,
	NP_REASONS(X)
#undef X
};

static const char *const hook_tokens[] = {
#define X(name, code, token) [code] = token,
	NP_HOOKS(X)
#undef X
};

static const char *const mode_names[] = {
	[NP_FULL] = "FULL",
	[NP_PROXIED] = "PROXIED",
	[NP_NONE] = "NONE",
};

static const char *text_of(const char *const *table, size_t size, unsigned index, const char *otherwise)
{
	return index < size && table[index] ? table[index] : otherwise;
}

const char *reason_token(unsigned reason)
{
	return text_of(reason_tokens, ARRAY_SIZE(reason_tokens), reason, "unknown");
}

const char *reason_sentence(unsigned reason)
{
	return text_of(reason_sentences, ARRAY_SIZE(reason_sentences), reason,
		       "a reason that this version does not know");
}

int reason_parse(const char *token)
{
	for (unsigned i = 0; i < NP_REASON_COUNT; i++)
		if (reason_tokens[i] && !strcmp(token, reason_tokens[i]))
			return (int)i;
	return -EINVAL;
}

const char *hook_token(unsigned hook)
{
	return text_of(hook_tokens, ARRAY_SIZE(hook_tokens), hook, "unknown");
}

const char *level_name(unsigned level)
{
	static const char *const names[NP_LEVELS] = { "PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET" };

	return level < NP_LEVELS ? names[level] : "?";
}

const char *mode_name(unsigned mode)
{
	return text_of(mode_names, ARRAY_SIZE(mode_names), mode, "?");
}

unsigned mode_parse(const char *name)
{
	for (unsigned m = NP_FULL; m <= NP_NONE; m++)
		if (!strcasecmp(name, mode_names[m]))
			return m;
	return 0;
}

const char *protocol_name(unsigned protocol)
{
	static const struct {
		unsigned number;
		const char *name;
	} protocols[] = {
		{ IPPROTO_TCP, "tcp" },		{ IPPROTO_UDP, "udp" },	  { IPPROTO_ICMP, "icmp" },
		{ IPPROTO_ICMPV6, "icmpv6" },	{ IPPROTO_SCTP, "sctp" }, { IPPROTO_DCCP, "dccp" },
		{ IPPROTO_UDPLITE, "udplite" }, { IPPROTO_RAW, "raw" },	  { IPPROTO_MPTCP, "mptcp" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].number == protocol)
			return protocols[i].name;
	return NULL;
}

void addr_format(const struct np_addr *addr, char text[static ADDR_TEXT_SIZE])
{
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)addr->b))
		inet_ntop(AF_INET, addr->b + 12, text, ADDR_TEXT_SIZE);
	else
		inet_ntop(AF_INET6, addr->b, text, ADDR_TEXT_SIZE);
}

/* Writes exactly `width` decimal digits and returns the place after them. */
static char *digits_put(char *p, unsigned value, unsigned width)
{
	for (unsigned i = width; i-- > 0; value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + width;
}

void time_format(uint64_t wall_us, char text[static TIME_TEXT_SIZE])
{
	const uint64_t last_us = 253402300799999999u; /* 9999-12-31T23:59:59.999999Z */
	struct tm tm;
	time_t seconds;
	char *p = text;

	if (wall_us > last_us)
		wall_us = last_us;
	seconds = (time_t)(wall_us / 1000000);
	gmtime_r(&seconds, &tm);
	p = digits_put(p, (unsigned)tm.tm_year + 1900, 4);
	*p++ = '-';
	p = digits_put(p, (unsigned)tm.tm_mon + 1, 2);
	*p++ = '-';
	p = digits_put(p, (unsigned)tm.tm_mday, 2);
	*p++ = 'T';
	p = digits_put(p, (unsigned)tm.tm_hour, 2);
	*p++ = ':';
	p = digits_put(p, (unsigned)tm.tm_min, 2);
	*p++ = ':';
	p = digits_put(p, (unsigned)tm.tm_sec, 2);
	*p++ = '.';
	p = digits_put(p, (unsigned)(wall_us % 1000000), 6);
	*p++ = 'Z';
	*p = '\0';
}

bool time_parse(const char *text, uint64_t *ret_us)
{
	struct tm tm = { 0 }, given;
	const char *rest = strptime(text, "%Y-%m-%d", &tm);
	uint64_t fraction = 0;
	time_t seconds;

	if (rest && !*rest)
		rest = "Z";
	else if (rest)
		rest = strptime(rest, "T%H:%M:%S", &tm);
	if (!rest)
		return false;
	if (*rest == '.') {
		size_t digits = strspn(++rest, "0123456789");

		if (digits != 6)
			return false;
		fraction = strtoull(rest, NULL, 10);
		rest += digits;
	}
	given = tm;
	seconds = timegm(&tm);
	if (strcmp(rest, "Z") != 0 || seconds < 0)
		return false;
	/* timegm() makes the second of March of the thirtieth of February. */
	if (tm.tm_mday != given.tm_mday || tm.tm_sec != given.tm_sec)
		return false;
	*ret_us = (uint64_t)seconds * 1000000 + fraction;
	return true;
}

bool size_parse(const char *text, uint64_t *ret)
{
	static const struct {
		const char *unit;
		uint64_t bytes;
	} units[] = {
		{ "", 1 },	    { "k", 1000 },	{ "M", 1000000 },   { "G", 1000000000 },
		{ "Ki", 1u << 10 }, { "Mi", 1u << 20 }, { "Gi", 1u << 30 },
	};
	size_t digits = strspn(text, "0123456789"), len = strlen(text);
	uint64_t value = 0, bytes;

	if (number_parse(text, digits, UINT64_MAX, &value) < 0)
		return false;
	text += digits;
	len -= digits;
	if (len && text[len - 1] == 'B')
		len--;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (len != strlen(units[i].unit) || memcmp(text, units[i].unit, len) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].bytes, &bytes) || bytes == UINT64_MAX)
			return false;
		*ret = bytes;
		return true;
	}
	return false;
}

bool duration_parse(const char *text, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 60 * 60 * 1000 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t value = 0;

	if (digits > 9 || number_parse(text, digits, UINT64_MAX, &value) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(text + digits, units[i].unit) != 0)
			continue;
		*ret_ms = value * units[i].ms;
		return value;
	}
	return false;
}

bool count_parse(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t count;

	if (number_parse(text, strlen(text), max, &count) < 0 || !count)
		return false;
	*ret = count;
	return true;
}

bool milli_parse(const char *text, uint64_t max, uint64_t *ret_milli)
{
	size_t digits = strspn(text, "0123456789");
	const char *rest = text + digits + (text[digits] == '.');
	size_t places = rest == text + digits ? 0 : strspn(rest, "0123456789");
	uint64_t milli = 0;

	if (!digits || digits > 9 || places > 3 || rest[places] || (text[digits] && !places))
		return false;
	for (size_t i = 0; i < digits; i++)
		milli = milli * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < 3; i++)
		milli = milli * 10 + (i < places ? (uint64_t)(rest[i] - '0') : 0);
	if (!milli || milli > max * 1000)
		return false;
	*ret_milli = milli;
	return true;
}
