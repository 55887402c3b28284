/* SPDX-License-Identifier: MIT */
#include "policy/parse_attempt.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "vocab/words.h"
#include "wire/dns.h"
#include "wire/url.h"
#include "vocab/limits.h"

static int attempt_refuse(const char **ret_problem, const char *why)
{
	*ret_problem = why;
	return -EINVAL;
}

/* A token as RFC 9110 has it: methods and field names are such. */
static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && (!text[i] || !strchr("!#$%&'*+-.^_`|~", text[i])))
			return false;
	return len > 0;
}

bool attempt_is_method(const char *word)
{
	return is_token(word, strlen(word));
}

static int host_set(struct arena *arena, const struct host *host, struct facts *facts)
{
	if (host->is_addr) {
		facts->has_addr = true;
		facts->addr = host->addr;
		return 0;
	}
	facts->name = arena_text(arena, host->name, strlen(host->name));
	return facts->name ? 0 : -ENOMEM;
}

int attempt_request(struct arena *arena, const char *method, const char *url, struct facts *facts,
		    const char **ret_problem)
{
	char *kept_method, *kept_url;
	struct url parsed;

	if (!attempt_is_method(method))
		return attempt_refuse(ret_problem, "the method is not one like GET");
	kept_method = arena_text(arena, method, strlen(method));
	kept_url = arena_text(arena, url, strlen(url));
	if (!kept_method || !kept_url)
		return -ENOMEM;
	if (url_parse(kept_url, &parsed) < 0)
		return attempt_refuse(ret_problem, "not a URL of the form http://HOST/PATH or https://HOST:PORT/PATH");
	facts->method = kept_method;
	facts->path = parsed.target;
	facts->port = parsed.port;
	facts->leg = parsed.tls ? LEG_TLS : LEG_CLEAR;
	facts->protocol = PATTERN_TCP;
	return host_set(arena, &parsed.host, facts);
}

int attempt_connect(struct arena *arena, const char *text, struct facts *facts, const char **ret_problem)
{
	static const char form[] = "not a destination of the form HOST:PORT or HOST:PORT/udp";
	const char *slash = strrchr(text, '/'), *end = slash ? slash : text + strlen(text);
	const char *colon = memrchr(text, ':', (size_t)(end - text));
	uint8_t protocol = PATTERN_TCP;
	struct host host;
	uint16_t port;

	if (slash && !strcmp(slash, "/udp"))
		protocol = PATTERN_UDP;
	else if (slash && strcmp(slash, "/tcp") != 0)
		return attempt_refuse(ret_problem, "the protocol of a connection is tcp or udp");
	if (!colon || host_parse(text, (size_t)(colon - text), &host) < 0)
		return attempt_refuse(ret_problem, form);
	if (port_parse(colon + 1, (size_t)(end - colon - 1), &port) < 0)
		return attempt_refuse(ret_problem, "a port is a number from 1 to 65535");
	facts->protocol = protocol;
	facts->port = port;
	return host_set(arena, &host, facts);
}

int attempt_query(struct arena *arena, const char *type, const char *name, struct facts *facts,
		  const char **ret_problem)
{
	struct host host;

	facts->query = dns_record_parse(type);
	if (!facts->query)
		return attempt_refuse(ret_problem, "not a type of records that can be looked up: " DNS_RECORD_TYPES);
	if (host_parse(name, strlen(name), &host) < 0 || host.is_addr)
		return attempt_refuse(ret_problem, "not a name");
	return host_set(arena, &host, facts);
}

/* The next name of the list, without the blanks around it; moves *list behind its comma, to NULL after the last. */
static const char *name_next(const char **list, size_t *ret_len)
{
	const char *start = *list + strspn(*list, " \t"), *comma = strchr(start, ',');
	size_t len = comma ? (size_t)(comma - start) : strlen(start);

	while (len && (start[len - 1] == ' ' || start[len - 1] == '\t'))
		len--;
	*list = comma ? comma + 1 : NULL;
	*ret_len = len;
	return start;
}

int attempt_headers(struct arena *arena, const char *list, struct facts *facts, const char **ret_problem)
{
	const char **names;
	size_t n = 1;

	if (!facts->method)
		return attempt_refuse(ret_problem, "a connection has no headers; only a request has");
	for (const char *p = list; *p; p++)
		n += *p == ',';
	if (n > NP_RULE_WORDS)
		return attempt_refuse(ret_problem, "too many headers");
	names = arena_alloc(arena, n + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; list; i++) {
		size_t len;
		const char *name = name_next(&list, &len);
		char *kept;

		if (!is_token(name, len))
			return attempt_refuse(ret_problem,
					      "headers are given by name, without values: x-api-key, content-type");
		kept = arena_text(arena, name, len);
		if (!kept)
			return -ENOMEM;
		for (char *p = kept; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		names[i] = kept;
	}
	facts->headers = names;
	return 0;
}

int attempt_body(const char *size, struct facts *facts, const char **ret_problem)
{
	if (!facts->method)
		return attempt_refuse(ret_problem, "a connection has no body; only a request has");
	if (!size_parse(size, &facts->body))
		return attempt_refuse(ret_problem, "not a size like 1234, 500kB or 20MiB");
	facts->has_body = facts->body;
	return 0;
}

int attempt_resolving(const char *addr, struct facts *facts, const char **ret_problem)
{
	struct np_addr parsed;

	if (facts->query)
		return attempt_refuse(ret_problem, "a lookup of records leads to no address");
	if (!facts->name)
		return attempt_refuse(ret_problem, "the host is an address already; only a name resolves to one");
	if (addr_parse(addr, strlen(addr), &parsed) < 0)
		return attempt_refuse(ret_problem, "not an address like 192.0.2.7 or 2001:db8::7");
	facts->addr = parsed;
	facts->has_addr = true;
	return 0;
}

int attempt_local(struct facts *facts, const char **ret_problem)
{
	if (!facts->has_addr)
		return attempt_refuse(ret_problem, "it is not known yet to which address it leads");
	facts->local = true;
	return 0;
}

int attempt_aliases(struct arena *arena, const char *list, struct facts *facts, const char **ret_problem)
{
	size_t room = strlen(list) + 2, used = 0;
	char *names = arena_alloc(arena, 4 * room, 1); /* other scripts take more bytes in their xn-- form */
	struct host host;

	if (!facts->name || facts->query)
		return attempt_refuse(ret_problem, "only a name that is connected to is an alias of another");
	if (!names)
		return -ENOMEM;
	while (list) {
		size_t len;
		const char *name = name_next(&list, &len);

		if (host_parse(name, len, &host) < 0 || host.is_addr || used + strlen(host.name) + 2 > 4 * room)
			return attempt_refuse(ret_problem,
					      "aliases are names, with commas between them: a.example, b.example");
		used = (size_t)(stpcpy(names + used, host.name) + 1 - names);
	}
	names[used] = '\0';
	facts->aliases = names;
	return 0;
}

int attempt_websocket(struct facts *facts, const char **ret_problem)
{
	if (!facts->method)
		return attempt_refuse(ret_problem, "a connection asks for no websocket; only a request does");
	facts->websocket = true;
	return 0;
}
