/* SPDX-License-Identifier: MIT */
#include "exporter/pump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "api_client/message.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "exporter/daemon_calls.h"
#include "vocab/limits.h"
#include "vocab/words.h"

struct pump {
	const struct receiver *receiver;
	struct cursor cursor;
	struct export_state state;
	uint64_t known;	   /* until_seq of the last not_kept */
	unsigned limit;	   /* events of the next batch */
	unsigned failures; /* one after the other */
};

/* -- pages ------------------------------------------------------------------------------------ */

void page_free(struct page *page)
{
	for (size_t i = 0; i < page->n; i++)
		json_decref(page->events[i]);
	*page = (struct page){ 0 };
}

/* As the daemon's own tells of what a follower lost. */
static json_t *gap_event(uint64_t from, uint64_t to)
{
	struct timespec now;
	char time[TIME_TEXT_SIZE], text[96];

	clock_gettime(CLOCK_REALTIME, &now);
	time_format((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000, time);
	snprintf(text, sizeof(text), "events %llu to %llu are not in the record", (unsigned long long)from,
		 (unsigned long long)to);
	return json_pack("{s:s, s:s, s:s, s:s, s:I}", "time", time, "kind", "error", "reason", "lost", "message", text,
			 "suppressed", (json_int_t)(to - from + 1));
}

static int page_add(struct page *page, json_t *event)
{
	if (!event)
		return -ENOMEM;
	if (page->n == ARRAY_SIZE(page->events)) {
		json_decref(event);
		return -E2BIG;
	}
	page->events[page->n++] = event;
	return 0;
}

/* What was not kept is told once, and not with each page that reaches back so far. */
static int not_kept_add(struct page *page, json_t *event, uint64_t *known)
{
	const uint64_t until = (uint64_t)member_number(event, "until_seq");

	if (until <= *known) {
		json_decref(event);
		return 0;
	}
	*known = until;
	page->missed += (uint64_t)member_number(event, "dropped");
	return page_add(page, event);
}

static int line_add(struct page *page, const char *line, size_t len, uint64_t *known)
{
	json_t *event = json_loadb(line, len, 0, NULL);
	const uint64_t seq = (uint64_t)member_number(event, "seq"), next = page->last + 1;
	int r = 0;

	if (!json_is_object(event)) {
		json_decref(event);
		return -EPROTO;
	}
	if (!seq)
		return not_kept_add(page, event, known);
	if (seq > next && seq - 1 > *known) {
		page->missed += seq - next;
		r = page_add(page, gap_event(next, seq - 1));
	}
	page->last = seq;
	if (r == 0)
		return page_add(page, event);
	json_decref(event);
	return r;
}

int page_read(const char *text, size_t len, uint64_t after, uint64_t *known, struct page *ret)
{
	const char *end = text + len, *newline;
	int r = 0;

	*ret = (struct page){ .last = after };
	for (; r == 0 && text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		if (newline > text)
			r = line_add(ret, text, (size_t)(newline - text), known);
	}
	if (r < 0)
		page_free(ret);
	return r;
}

/* -- the pump ------------------------------------------------------------------------------------ */

/* 0 and a page, perhaps an empty one. */
static int pump_fetch(struct pump *pump, struct page *ret)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	char path[96];
	int r;

	for (;;) {
		snprintf(path, sizeof(path), "/v1/events?after=%llu&limit=%u", (unsigned long long)pump->cursor.seq,
			 pump->limit);
		r = daemon_get(path, NULL, &answer);
		if (r < 0)
			return r;
		if (answer.status == 200)
			return page_read(answer.body.data, answer.body.len, pump->cursor.seq, &pump->known, ret);
		if (answer.status != 429 || pump->limit == 1)
			return -EIO;
		pump->limit = pump->limit > 4 ? pump->limit / 4 : 1; /* with long ones, fewer fit */
		client_answer_free(&answer);
		answer = (struct client_answer){ 0 };
	}
}

/* Doubled with each failure, up to a minute; what the receiver asked for, within five. A little of it is left to chance, so that
 * exporters of many hosts do not come together. */
static unsigned pump_backoff(const struct pump *pump, unsigned wanted_ms)
{
	unsigned ms = NP_EXPORT_BACKOFF_MS;
	uint16_t chance = 0;

	for (unsigned i = 1; i < pump->failures && ms < NP_EXPORT_BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > NP_EXPORT_BACKOFF_MAX_MS)
		ms = NP_EXPORT_BACKOFF_MAX_MS;
	if (wanted_ms)
		ms = wanted_ms < NP_EXPORT_RETRY_AFTER_MAX_MS ? wanted_ms : NP_EXPORT_RETRY_AFTER_MAX_MS;
	(void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
	return ms + ms / 8 * chance / 65536;
}

static int pump_acknowledge(struct pump *pump, uint64_t seq)
{
	int r = cursor_put(&pump->cursor, seq);

	if (pump->failures)
		log_info("%s takes events again", pump->receiver->name);
	pump->failures = 0;
	pump->state.acked = seq;
	return r;
}

/* Returns how long to wait for the next step, or -errno. */
static int pump_deliver(struct pump *pump, const struct page *page)
{
	unsigned wait_ms = 0;
	char why[128] = "";
	const enum delivery came = pump->receiver->deliver(pump->receiver->data, page->events, page->n, &wait_ms, why);
	int r;

	if (came == DELIVERED) {
		pump->state.sent += page->n;
		pump->state.gaps += page->missed;
		pump->limit = pump->limit > NP_EXPORT_BATCH / 2 ? NP_EXPORT_BATCH : pump->limit * 2;
		return pump_acknowledge(pump, page->last);
	}
	pump->state.failures++;
	if (came == DELIVERY_REFUSED && pump->limit > 1) { /* which of them is it? */
		pump->limit = page->n < pump->limit ? (unsigned)page->n : pump->limit;
		pump->limit = pump->limit > 1 ? pump->limit / 2 : 1;
		return 0;
	}
	if (came == DELIVERY_REFUSED) {
		log_warning("%s does not want event %llu: %s", pump->receiver->name, (unsigned long long)page->last,
			    why);
		pump->state.rejected++;
		r = pump_acknowledge(pump, page->last);
		return r < 0 ? r : NP_EXPORT_REFUSED_MS;
	}
	if (!pump->failures++) /* once: it is tried again and again */
		log_warning("%s: %s", pump->receiver->name, why);
	return (int)pump_backoff(pump, wait_ms);
}

static int pump_step(struct pump *pump)
{
	const uint64_t known = pump->known;
	struct page page;
	int r = pump_fetch(pump, &page);

	if (r < 0) {
		log_warning("%s: the events cannot be read: %s", pump->receiver->name, strerror(-r));
		return r == -EPIPE ? r : NP_EXPORT_BACKOFF_MS;
	}
	if (!page.n || page.last == pump->cursor.seq) {
		pump->known = known; /* it goes with the next event */
		page_free(&page);
		return NP_EXPORT_POLL_MS;
	}
	r = pump_deliver(pump, &page);
	if (pump->cursor.seq != page.last)
		pump->known = known;
	page_free(&page);
	daemon_report(&pump->state);
	return r;
}

/* The daemon has written where to begin. Whose place is damaged begins with all there is, for one of them was not sent. */
static int pump_begin(struct pump *pump, int cursor_fd)
{
	int r = cursor_open(&pump->cursor, cursor_fd);

	if (r != -EPROTO && r != -ENOENT)
		return r;
	log_warning("%s: the place in the record is damaged: all of the record is sent", pump->receiver->name);
	return cursor_put(&pump->cursor, 0);
}

int pump_run(const struct receiver *receiver, int cursor_fd)
{
	struct pump pump = { .receiver = receiver, .limit = NP_EXPORT_BATCH };
	int r = pump_begin(&pump, cursor_fd);

	if (r >= 0)
		daemon_ready();
	pump.state.acked = pump.cursor.seq;
	daemon_report(&pump.state);
	while (r >= 0 && daemon_wait(r))
		r = pump_step(&pump);
	return r == -EPIPE || r > 0 ? 0 : r;
}
