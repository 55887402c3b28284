/* SPDX-License-Identifier: MIT */
#include "control/run_output.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/limits.h"

struct output {
	struct output *next;
	struct output_set *set;
	struct MHD_Connection *connection;
	int fd; /* MHD's */
	uint64_t id;
	uid_t caller;
	size_t sent;
	bool suspended, over;
	bool reads; /* an attached run: it ends with this */
};

#define STREAM_BLOCK 16384

static void output_free(void *data)
{
	struct output *o = data;

	for (struct output **p = &o->set->first; *p; p = &(*p)->next)
		if (*p == o) {
			*p = o->next;
			break;
		}
	if (o->reads)
		o->set->config->launcher.leave(o->set->config->launcher.ctx, o->id);
	free(o);
}

/* A client that only shut down its writing side is alive. */
static bool output_is_gone(const struct output *o)
{
	struct pollfd p = { .fd = o->fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static ssize_t output_read(void *data, uint64_t pos, char *bytes, size_t max)
{
	struct output *o = data;
	const struct server_config *config = o->set->config;
	struct run_text text;
	bool ended;
	size_t n;

	(void)pos;
	if (o->over || config->launcher.output(config->launcher.ctx, o->id, o->sent, &text, &ended) < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = text.len < max ? text.len : max;
	if (n) {
		memcpy(bytes, text.data, n);
		o->sent += n;
		return (ssize_t)n;
	}
	if (ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	o->suspended = true;
	MHD_suspend_connection(o->connection);
	return 0;
}

int output_open(struct output_set *set, struct MHD_Connection *connection, uint64_t id, uid_t caller,
		struct MHD_Response **ret)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const struct launcher *launcher = &set->config->launcher;
	struct output *o;
	unsigned own = 0;
	int r;

	for (o = set->first; o; o = o->next)
		own += o->caller == caller;
	if (own >= NP_FOLLOWERS_PER_USER)
		return -EMFILE;
	o = info ? calloc(1, sizeof(*o)) : NULL;
	if (!o)
		return -ENOMEM;
	*o = (struct output){ .next = set->first,
			      .set = set,
			      .connection = connection,
			      .fd = info->connect_fd,
			      .id = id,
			      .caller = caller };
	*ret = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, output_read, o, output_free);
	if (!*ret) {
		free(o);
		return -ENOMEM;
	}
	r = launcher->follow(launcher->ctx, id, caller, &o->reads);
	if (r < 0) {
		MHD_destroy_response(*ret);
		return r;
	}
	set->first = o;
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u); /* commands think */
	return 0;
}

static void output_resume(struct output *o)
{
	if (!o->suspended)
		return;
	o->suspended = false;
	MHD_resume_connection(o->connection);
	o->set->kick(o->set->data);
}

void output_wake(struct output_set *set)
{
	for (struct output *o = set->first; o; o = o->next) {
		o->over = o->over || (o->suspended && output_is_gone(o));
		output_resume(o);
	}
}

void output_end_all(struct output_set *set)
{
	for (struct output *o = set->first; o; o = o->next) {
		o->over = true;
		output_resume(o);
	}
}
