/* SPDX-License-Identifier: MIT */
#include "exporter/journald.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "api_client/message.h"
#include "base/chars.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "exporter/event_member.h"

#define ENTRY_MAX      (192u << 10) /* of a datagram: a socket's buffer has 208 KiB */
#define LINE_MAX_BYTES 512

int journald_connect(const char *path)
{
	const struct timeval patience = { .tv_sec = NP_EXPORT_MS / 1000 };
	_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	return take_fd(fd);
}

static void field_put(struct buf *out, const char *name, const char *value, size_t len)
{
	const uint64_t length = htole64(len);

	buf_puts(out, name);
	if (memchr(value, '\n', len)) {
		buf_puts(out, "\n");
		buf_append(out, &length, sizeof(length));
	} else {
		buf_puts(out, "=");
	}
	buf_append(out, value, len);
	buf_puts(out, "\n");
}

/* NETPAWL_ and the member's name in capitals. False when it is no name that the journal takes. */
static bool field_name(const char *member, char name[static 64])
{
	size_t at = (size_t)snprintf(name, 64, "NETPAWL_");

	for (; *member; member++) {
		const bool letter = *member >= 'a' && *member <= 'z';

		if ((!letter && *member != '_' && !(*member >= '0' && *member <= '9')) || at == 62)
			return false;
		name[at++] = letter ? (char)(*member - 'a' + 'A') : *member;
	}
	name[at] = '\0';
	return true;
}

/* What people read, without a character that could do something to their terminal. */
static void message_put(struct buf *out, const json_t *event)
{
	const char *url = member_text(event, "url") ?: member_text(event, "lookup") ?: member_text(event, "address");
	const char *method = member_text(event, "method"), *text = member_text(event, "text");
	char line[2048], clean[LINE_MAX_BYTES];

	snprintf(line, sizeof(line), "%s %s %s%s%.64s%s%.256s: %s%s%.200s", member_text(event, "kind") ?: "-",
		 member_text(event, "reason") ?: "-", member_text(event, "session") ?: "-", method ? " " : "",
		 method ? method : "", url ? " " : "", url ? url : "", member_text(event, "message") ?: "",
		 text ? ": " : "", text ? text : "");
	text_printable(clean, sizeof(clean), line);
	field_put(out, "MESSAGE", clean, strlen(clean));
}

void journald_put(json_t *event, struct buf *out)
{
	const char *kind = member_text(event, "kind") ?: "", *name;
	json_t *value;
	char field[64], number[24];

	message_put(out, event);
	buf_printf(out, "PRIORITY=%d\n", !strcmp(kind, "error") ? 3 : !strcmp(kind, "refuse") ? 5 : 6);
	buf_puts(out, "SYSLOG_IDENTIFIER=netpawl\n");
	json_object_foreach(event, name, value)
	{
		if (!strcmp(name, "message") || !member_is_sent(name, value) || !field_name(name, field))
			continue;
		if (json_is_string(value)) {
			field_put(out, field, json_string_value(value), member_text_length(value));
			continue;
		}
		snprintf(number, sizeof(number), "%lld",
			 json_is_integer(value) ? (long long)json_integer_value(value) : json_is_true(value));
		field_put(out, field, number, strlen(number));
	}
}

/* There is another socket at its place, or none: it is looked for by the next process, for this one sees no files any more. */
static void gone_check(int error)
{
	if (error != -ECONNREFUSED && error != -ENOTCONN && error != -ECONNRESET && error != -EPIPE)
		return;
	log_warning("journald's socket is gone");
	_exit(1);
}

/* One by one: what was sent before a failure is sent again, with the same NETPAWL_SEQ. */
static enum delivery journald_deliver(void *data, json_t *const *events, size_t n, unsigned *ret_wait_ms,
				      char why[static 128])
{
	const int *fd = data;
	_buf_ struct buf entry = BUF_INIT(ENTRY_MAX);

	(void)ret_wait_ms;
	for (size_t i = 0; i < n; i++) {
		buf_clear(&entry);
		journald_put(events[i], &entry);
		if (buf_error(&entry) || send(*fd, entry.data, entry.len, MSG_NOSIGNAL) < 0) {
			const int r = buf_error(&entry) ? buf_error(&entry) : -errno;

			gone_check(r);
			snprintf(why, 128, "%s", strerror(-r));
			return r == -E2BIG || r == -EMSGSIZE ? DELIVERY_REFUSED : DELIVERY_LATER;
		}
	}
	return DELIVERED;
}

struct receiver journald_receiver(int *fd)
{
	return (struct receiver){ .deliver = journald_deliver, .data = fd, .name = "journald" };
}
