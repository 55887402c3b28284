/* SPDX-License-Identifier: MIT */
/* approval: notify: who is told that a question waits. */
#include <errno.h>
#include <string.h>

#include "addr.h"
#include "base/arena.h"
#include "policy/quote.h"
#include "policy/read.h"
#include "wire/url.h"

/* To this host and in the clear, for nothing of it is encrypted; whoever sends it on listens there. */
int read_loopback_url(struct reader *reader, const struct node *key, const char *example, const char **ret)
{
	const struct node *value = field_scalar(reader, key);
	struct url url;

	if (!value)
		return 0;
	for (size_t i = 0; i < value->len; i++)
		if (value->text[i] <= ' ' || value->text[i] > '~') {
			error_at(reader, value, "the URL has a character that URLs do not have");
			return 0;
		}
	if (strlen(value->text) != value->len || url_parse(value->text, &url) < 0 || url.tls || !url.host.is_addr ||
	    !np_addr_is_loopback(&url.host.addr)) {
		error_at(reader, value, "\"%s\" is http:// with a loopback address, as in %s, not %s", key->text,
			 example, QUOTE(value->text, value->len));
		return 0;
	}
	*ret = arena_text(reader->policy->arena, value->text, value->len);
	return *ret ? 0 : -ENOMEM;
}

int read_notify(struct reader *reader, const struct node *key, struct notify *ret)
{
	const struct node *fields[NOTIFY_KEYS];
	unsigned n = 0;
	int e = 0;

	if (key->next->kind != NODE_MAP) {
		error_at(reader, key->next, "\"notify\" takes a mapping with \"command\", \"socket\" or \"url\"");
		return 0;
	}
	if (!map_fields(reader, key->next, &keys_notify, fields))
		return 0;
	for (unsigned i = NOTIFY_COMMAND; i <= NOTIFY_URL; i++)
		n += fields[i] != NULL;
	if (n != 1)
		error_at(reader, key, "\"notify\" needs one of \"command\", \"socket\" and \"url\"");
	if (fields[NOTIFY_COMMAND])
		e = read_command(reader, fields[NOTIFY_COMMAND], &ret->command);
	if (e == 0 && fields[NOTIFY_SOCKET])
		e = read_socket(reader, fields[NOTIFY_SOCKET], &ret->socket);
	if (e == 0 && fields[NOTIFY_URL])
		e = read_loopback_url(reader, fields[NOTIFY_URL], "http://127.0.0.1:8080/notify", &ret->url);
	if (fields[NOTIFY_NETWORK])
		field_flag(reader, fields[NOTIFY_NETWORK], &ret->network);
	if (fields[NOTIFY_NETWORK] && !fields[NOTIFY_COMMAND])
		error_at(reader, fields[NOTIFY_NETWORK], "\"network\" is for a command");
	return e;
}
