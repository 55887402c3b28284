/* SPDX-License-Identifier: MIT */
/* The way of what was received to the owner of a channel. */
#include <errno.h>

#include "net/channel_internal.h"
#include "vocab/limits.h"

#define READ_BYTES (64u << 10) /* one call of data() */

/* Payload on its way to data(). Shared, so that an idle channel has none of it. */
static _Thread_local char scratch[READ_BYTES];

static ssize_t channel_pull(struct channel *c, char *data, size_t len)
{
	ssize_t n;

	if (c->ssl) {
		n = tls_read(c, data, len);
	} else {
		n = channel_recv(c, data, len);
		c->eof = n == 0;
		if (n == -EAGAIN)
			n = 0;
	}
	if (n < 0)
		c->error = (int)n;
	return n;
}

static void channel_offer(struct channel *c, const char *data, size_t len)
{
	bool was_tls = c->ssl, is_rest = data != scratch;
	size_t used;
	int r = 0;

	c->resumed = false;
	c->offering = true;
	used = c->events->data(c->ctx, data, len);
	c->offering = false;
	if (c->freed)
		return;
	if (used > len)
		used = len;
	/* Twice: what kept the owner from it may have been settled in the same call, behind the look at these bytes. */
	c->wants_more = c->resumed && used == 0 && c->tried;
	c->tried = c->resumed && used == 0 && !c->wants_more;
	if (c->ssl && !was_tls) {
		r = leftover_add(&c->first, data + used, len - used);
		leftover_clear(&c->rest);
	} else if (used == len) {
		leftover_clear(&c->rest);
	} else {
		if (is_rest) {
			c->rest.at += used;
			c->rest.len -= used;
		} else {
			r = leftover_add(&c->rest, data + used, len - used);
		}
		if (!c->resumed)
			c->paused = true;
	}
	if (r < 0)
		c->error = r;
}

/* Some payload to offer: what is left of the last time first. False: nothing now. */
static bool channel_next(struct channel *c, const char **ret_data, size_t *ret_len)
{
	struct leftover *rest = &c->rest;
	size_t more = QUEUE_CHUNK;
	ssize_t n;

	if (rest->len > 0 && !c->wants_more) {
		*ret_data = rest->data + rest->at;
		*ret_len = rest->len;
		return true;
	}
	if (c->eof)
		return false;
	if (rest->len == 0) {
		n = channel_pull(c, scratch, sizeof(scratch));
		if (n <= 0)
			return false;
		*ret_data = scratch;
		*ret_len = (size_t)n;
		return true;
	}
	if (more > NP_BACKLOG_HIGH - rest->len)
		more = NP_BACKLOG_HIGH - rest->len;
	c->error = more == 0 ? -EMSGSIZE : leftover_reserve(rest, more);
	if (c->error)
		return false;
	n = channel_pull(c, rest->data + rest->at + rest->len, more);
	if (n <= 0)
		return false;
	rest->len += (size_t)n;
	*ret_data = rest->data + rest->at;
	*ret_len = rest->len;
	return true;
}

void channel_read(struct channel *c)
{
	const char *data;
	size_t len;

	while (!c->freed && !c->error && !c->paused && (!c->ssl || c->up)) {
		/* Requests that were sent ahead: one, then it is someone else's turn. */
		if (c->rest.len > 0 && c->reoffered) {
			c->starved = true;
			return;
		}
		if (!channel_next(c, &data, &len))
			break;
		c->reoffered = data != scratch;
		channel_offer(c, data, len);
	}
	if (c->freed || c->error || c->paused || !c->eof || c->eof_reported)
		return;
	c->eof_reported = true;
	c->events->eof(c->ctx);
}
