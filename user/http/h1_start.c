/* SPDX-License-Identifier: MIT */
/* The first line of a head, and the authority that it or Host names. */
#include "http/h1_internal.h"

#include <string.h>
#include <strings.h>

#include "wire/url.h"

/* -- authorities ------------------------------------------------------------------ */

bool h1_authority_is_plain(const char *text, size_t len)
{
	static const bool bytes[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true, ['.'] = true,
		['_'] = true,	      [':'] = true,	    ['['] = true,	  [']'] = true,
	};

	for (size_t i = 0; i < len; i++)
		if (!bytes[(unsigned char)text[i]])
			return false;
	return len > 0;
}

static int plain_parse(const char *text, size_t len, bool tls, struct authority *ret)
{
	return h1_authority_is_plain(text, len) ? authority_parse(text, len, tls, ret) : -EINVAL;
}

/* The target named a host itself: Host, if it is there, must not name another. */
int h1_authority_check(struct h1 *h1)
{
	bool tls = h1->head.scheme && strcmp(h1->head.scheme, "https") == 0;
	struct authority target, host;

	if (plain_parse(h1->head.authority, strlen(h1->head.authority), tls, &target) < 0)
		return h1_refuse(h1, "the target's authority is not a host with perhaps a port");
	if (h1->is_connect && !target.has_port)
		return h1_refuse(h1, "CONNECT to a host without a port");
	if (!h1->notes.n_hosts)
		return 0;
	if (plain_parse(h1->notes.host, h1->notes.host_len, tls, &host) < 0)
		return h1_refuse(h1, "Host is not a host with perhaps a port");
	if (h1->is_connect && !host.has_port)
		host.port = target.port;
	if (!host_equal(&target.host, &host.host) || target.port != host.port)
		return h1_refuse(h1, "Host and the target name two hosts");
	return 0;
}

/* -- first lines -------------------------------------------------------------------- */

static int version_read(struct h1 *h1, const char *text)
{
	if (memcmp(text, "HTTP/1.1", 8) != 0 && memcmp(text, "HTTP/1.0", 8) != 0)
		return h1_refuse(h1, "the version is neither HTTP/1.1 nor HTTP/1.0");
	h1->old_version = text[7] == '0';
	return 0;
}

static int absolute_form(struct h1 *h1, const char *target, size_t len)
{
	struct head *head = &h1->head;
	const char *authority, *path, *end = target + len;
	bool tls = len >= 8 && strncasecmp(target, "https://", 8) == 0;
	int e;

	if (!tls && (len < 7 || strncasecmp(target, "http://", 7) != 0))
		return h1_refuse(h1, "the target is neither a path nor an http or https URL");
	authority = target + (tls ? 8 : 7);
	path = memchr(authority, '/', (size_t)(end - authority));
	if (!path)
		path = end;
	if (memchr(authority, '@', (size_t)(path - authority)))
		return h1_refuse(h1, "the target has a user name");
	if (!h1_authority_is_plain(authority, (size_t)(path - authority)))
		return h1_refuse(h1, "the target's authority is not a host with perhaps a port");
	e = head_set_scheme(head, tls ? "https" : "http", tls ? 5 : 4);
	if (e == 0)
		e = head_set_authority(head, authority, (size_t)(path - authority));
	if (e < 0)
		return e;
	if (path < end)
		return head_set_target(head, path, (size_t)(end - path));
	/* RFC 9112, 3.2.4: this is how a client asks a proxy for it. */
	return head_set_target(head, strcmp(head->method, "OPTIONS") == 0 ? "*" : "/", 1);
}

static int target_read(struct h1 *h1, const char *target, size_t len)
{
	struct head *head = &h1->head;
	int e;

	if (memchr(target, ' ', len))
		return h1_refuse(h1, "the request line has more than two spaces");
	if (memchr(target, '#', len))
		return h1_refuse(h1, "the target has a fragment");
	/* llhttp sees to other bytes. */
	if (memchr(target, '\t', len))
		return h1_refuse(h1, "the target has a byte that does not belong there");
	if (h1->is_connect) {
		if (!h1_authority_is_plain(target, len))
			return h1_refuse(h1, "CONNECT needs a host and a port");
		e = head_set_authority(head, target, len);
		return e < 0 ? e : head_set_target(head, "", 0);
	}
	if (len == 1 && target[0] == '*' && strcmp(head->method, "OPTIONS") != 0)
		return h1_refuse(h1, "only OPTIONS may have \"*\" as its target");
	if (target[0] == '/' || (len == 1 && target[0] == '*'))
		return head_set_target(head, target, len);
	return absolute_form(h1, target, len);
}

int h1_request_line(struct h1 *h1, const char *line, size_t len)
{
	const char *space = memchr(line, ' ', len);
	size_t method_len = space ? (size_t)(space - line) : 0;
	int e;

	if (!space || !method_is_valid(line, method_len))
		return h1_refuse(h1, "the request line does not begin with a method in capital letters");
	/* The method, a space, at least one byte of target, a space and the version. */
	if (len < method_len + 1 + 1 + 9 || line[len - 9] != ' ')
		return h1_refuse(h1, "the request line does not end with a target and a version");
	e = version_read(h1, line + len - 8);
	if (e == 0)
		e = head_set_method(&h1->head, line, method_len);
	if (e < 0)
		return e;
	h1->is_head = strcmp(h1->head.method, "HEAD") == 0;
	h1->is_connect = strcmp(h1->head.method, "CONNECT") == 0;
	return target_read(h1, space + 1, len - method_len - 10);
}

int h1_status_line(struct h1 *h1, const char *line, size_t len)
{
	unsigned status = 0;
	int e;

	if (len < 12 || line[8] != ' ' || (len > 12 && line[12] != ' '))
		return h1_refuse(h1, "it does not begin with a status line");
	e = version_read(h1, line);
	if (e < 0)
		return e;
	for (size_t i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return h1_refuse(h1, "the status is not a number of three digits");
		status = status * 10 + (unsigned)(line[i] - '0');
	}
	if (status < 100)
		return h1_refuse(h1, "the status is below 100");
	h1->head.status = status;
	return 0;
}
