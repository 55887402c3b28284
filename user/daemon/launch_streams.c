/* SPDX-License-Identifier: MIT */
/* Input and output of launched runs: bytes of pipes and terminals, lines of JSON. */
#include <errno.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "control/http_status.h"
#include "daemon/launches_internal.h"
#include "reason.h"

#define READ_BYTES 16384

void fd_end(struct launches *l, int *fd)
{
	if (*fd < 0)
		return;
	loop_unwatch(l->config.loop, *fd);
	close(*fd);
	*fd = -1;
}

void input_close(struct launch *launch)
{
	fd_end(launch->launches, &launch->to);
	buf_free(&launch->input);
}

/* -- output ---------------------------------------------------------------------------- */

/* Bytes that may be the start of a character. */
static bool is_start(const char *text, size_t len)
{
	unsigned char c = (unsigned char)text[0];
	size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

	for (size_t i = 1; i < len; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return false;
	return len < want;
}

/* How many of the bytes are whole characters or never will be: all but a character that is cut in two. */
static size_t whole_length(const char *text, size_t len)
{
	for (size_t n = 1; n <= TAIL_MAX && n <= len; n++)
		if (is_start(text + len - n, n))
			return len - n;
	return len;
}

/* A line of what was read, in text, whose last character may have to wait for its end. */
static void text_put(struct stream *stream, const char *data, size_t len, bool last, struct buf *line)
{
	char text[TAIL_MAX + READ_BYTES];
	size_t used, n = stream->n_tail + len;

	memcpy(text, stream->tail, stream->n_tail);
	memcpy(text + stream->n_tail, data, len);
	used = last ? n : whole_length(text, n);
	stream->n_tail = n - used;
	memcpy(stream->tail, text + used, stream->n_tail);
	if (used)
		json_put_bytes(line, "data", text, used);
}

/* Whoever attached wants the bytes. */
static void bytes_put(const char *data, size_t len, struct buf *line)
{
	char text[BASE64_ENCODE_RAW_LENGTH(READ_BYTES)];

	base64_encode_raw(text, len, (const uint8_t *)data);
	if (len)
		json_put_bytes(line, "base64", text, BASE64_ENCODE_RAW_LENGTH(len));
}

static void stream_take(struct stream *stream, const char *data, size_t len, bool last)
{
	struct launch *launch = stream->launch;
	_buf_ struct buf line = BUF_INIT(8 * (TAIL_MAX + READ_BYTES));
	size_t before, *all = &launch->launches->bytes;

	json_open_object(&line, NULL);
	json_put_text(&line, "stream", stream->name, NP_NAME_MAX);
	before = line.len;
	if (launch->attach)
		bytes_put(data, len, &line);
	else
		text_put(stream, data, len, last, &line);
	if (line.len == before || launch->truncated)
		return;
	json_close_object(&line);
	buf_puts(&line, "\n");
	/* Room for the line that says so is kept. */
	if (buf_error(&line) || launch->lines.len + line.len + 64 > NP_LAUNCH_OUTPUT ||
	    !launch_output_room(launch, line.len)) {
		launch->truncated = true;
		buf_clear(&line);
		buf_puts(&line, "{\"truncated\":true}\n");
	}
	buf_append(&launch->lines, line.data, line.len);
	launch_keep_line(launch, line.data, line.len);
	*all += line.len;
}

/* Of an attached one: nothing is thrown away, so what nobody has read holds the command up. */
void streams_hold(struct launch *launch)
{
	struct loop *loop = launch->launches->config.loop;
	bool hold = launch->attach && launch->lines.len > NP_LAUNCH_UNREAD;

	for (size_t i = 0; i < ARRAY_SIZE(launch->streams); i++) {
		struct stream *stream = &launch->streams[i];

		if (stream->fd < 0 || stream->waits == hold)
			continue;
		if (hold)
			loop_unwatch(loop, stream->fd);
		else if (loop_watch(loop, stream->fd, EPOLLIN, on_output, stream) < 0)
			continue; /* at the next look */
		stream->waits = hold;
	}
}

void on_output(void *data, uint32_t events)
{
	struct stream *stream = data;
	struct launches *l = stream->launch->launches;
	char bytes[READ_BYTES];
	ssize_t n = read(stream->fd, bytes, sizeof(bytes));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	stream_take(stream, bytes, n > 0 ? (size_t)n : 0, n <= 0);
	if (n <= 0)
		fd_end(l, &stream->fd);
	streams_hold(stream->launch);
	l->config.on_output(l->config.data);
}

/* -- input -------------------------------------------------------------------------------- */

static void on_input_room(void *data, uint32_t events);

/* As much as goes, and the rest when there is room. */
static void input_send(struct launch *launch)
{
	struct loop *loop = launch->launches->config.loop;
	ssize_t n = launch->input.len ? write(launch->to, launch->input.data, launch->input.len) : 0;
	bool waits;

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		input_close(launch); /* nobody reads it any more */
		return;
	}
	if (n > 0)
		buf_drop(&launch->input, (size_t)n);
	if (!launch->input.len && launch->input_ends) {
		input_close(launch);
		return;
	}
	waits = launch->input.len;
	if (waits && !launch->input_waits && loop_watch(loop, launch->to, EPOLLOUT, on_input_room, launch) < 0)
		input_close(launch); /* an end that is seen, instead of a hole that is not */
	else if (!waits && launch->input_waits)
		loop_unwatch(loop, launch->to);
	launch->input_waits = waits;
}

static void on_input_room(void *data, uint32_t events)
{
	(void)events;
	input_send(data);
}

int launches_input(void *ctx, uint64_t id, const struct run_input *input, struct failure *ret_failure)
{
	struct launch *launch = launch_find(ctx, id);
	const struct winsize size = { .ws_row = (unsigned short)input->rows, .ws_col = (unsigned short)input->columns };

	if (!launch)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_OUTPUT, "the run was not launched by this daemon");
	if (launch->to < 0)
		return failure_put(ret_failure, -EPIPE, NP_R_RUN_OVER, "it has no input, or that has ended");
	if (input->rows && (!launch->terminal || ioctl(launch->to, TIOCSWINSZ, &size) < 0))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "it has no terminal");
	if (launch->input.len + input->len > NP_LAUNCH_INPUT)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_MANY,
				   "the command has not read what came before: try again");
	buf_append(&launch->input, input->data, input->len);
	if (input->end && launch->terminal)
		buf_puts(&launch->input, "\x04"); /* as a person says it there */
	launch->input_ends = launch->input_ends || (input->end && !launch->terminal);
	if (buf_error(&launch->input))
		input_close(launch);
	else
		input_send(launch);
	return 0;
}

int launches_output(void *ctx, uint64_t id, size_t from, struct run_text *ret, bool *ret_ended)
{
	struct launches *l = ctx;
	struct launch *launch = launch_find(l, id);

	if (!launch || from < launch->dropped || from > launch->dropped + launch->lines.len)
		return -ENOENT;
	if (launch->attach) {
		l->bytes -= from - launch->dropped;
		buf_drop(&launch->lines, from - launch->dropped);
		launch->dropped = from;
		streams_hold(launch);
	}
	from -= launch->dropped;
	*ret = (struct run_text){ launch->lines.len ? launch->lines.data + from : "", launch->lines.len - from };
	*ret_ended = launch_ended(launch);
	return 0;
}
