/* SPDX-License-Identifier: MIT */
/* The client's side of exchanges: HTTP/1.1, one after another, or HTTP/2, many at once. */
#include <errno.h>
#include <string.h>

#include "http/h1.h"
#include "http/h2.h"
#include "base/table.h"
#include "inspect/client.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/refuse.h"
#include "inspect/tunnel.h"
#include "net/channel.h"
#include "vocab/limits.h"

#define H2_TURN 8   /* requests */
#define H2_STEP 256 /* bytes in which to look for them: a browser's first, or a dozen of a client's that means harm */

/* -- HTTP/1.1 ------------------------------------------------------------------------- */

/* A client that knows us as its proxy, or believes that somebody here is one. Where the requests inside can be judged
 * they are, so only what is refused by host and port is refused here. */
static int h1_connect(struct client *client, const struct turn *turn, struct head *head)
{
	struct verdict verdict = { .action = ACTION_DENY, .reason = NP_R_NO_TUNNEL };
	struct authority to;

	if (!client->tls && !client->by_connect &&
	    authority_parse(head->authority, strlen(head->authority), true, &to) == 0)
		verdict = judge_connection(client, &to.host, to.port, NULL);
	if (!judge_goes_on(&verdict)) {
		request_refuse(client, turn, head, &verdict);
		return 0;
	}
	client->host = to.host;
	client->port = to.port;
	client->named = client->by_connect = client->connect = true;
	client->opaque = !judge_inspects(client->worker, to.port); /* elsewhere the name in the hello is judged first */
	leg_dirty(&client->leg);
	buf_puts(&client->leg.out, "HTTP/1.1 200 Connection established\r\n\r\n");
	return 0;
}

/* What cannot be read is answered if it looks like HTTP at all, else reset. */
static void h1_malformed(struct client *client, const char *data, size_t len)
{
	_buf_ struct buf body = BUF_INIT(16u << 10);
	const char *problem = h1_problem(client->leg.h1);
	struct head head;
	size_t word = 0;

	while (word < len && data[word] >= 'A' && data[word] <= 'Z')
		word++;
	if (client_at_hand(client) || !word || word == len || data[word] != ' ') {
		client_report(client, NP_R_BAD_HTTP, 0, problem);
		client_reset(client);
		return;
	}
	client_report(client, NP_R_BAD_HTTP, 400, problem);
	head_init(&head);
	leg_advance(&client->leg, LEG_CLOSING);
	h1_next(client->leg.h1);
	if (refusal_make(client, NP_R_BAD_HTTP, NULL, client->named ? &client->host : NULL, NULL, 0, problem, &head,
			 &body) < 0 ||
	    h1_write_head(client->leg.h1, &head, true, &client->leg.out) < 0 ||
	    h1_write_body(client->leg.h1, body.data, body.len, &client->leg.out) < 0 ||
	    h1_write_end(client->leg.h1, NULL, &client->leg.out) < 0)
		leg_advance(&client->leg, LEG_BROKEN);
	leg_dirty(&client->leg);
	head_free(&head);
}

/* A CONNECT was granted: what follows is another connection inside of this one. */
static void h1_into_tunnel(struct client *client)
{
	struct verdict verdict;

	h1_free(client->leg.h1);
	client->leg.h1 = NULL;
	client->connect = client->request_read = client->answered = false;
	client->state = CLIENT_SNIFF;
	client_wait(client, NP_HEAD_MS);
	if (!client->opaque)
		return;
	if (channel_write(client->leg.channel, client->leg.out.data, client->leg.out.len) < 0) {
		client_close(client);
		return;
	}
	buf_clear(&client->leg.out);
	verdict = judge_connection(client, &client->host, client->port, NULL);
	if (!judge_goes_on(&verdict)) { /* any more, since it was granted */
		client_report_refusal(client,
				      &(struct client_refusal){ .reason = verdict.reason, .verdict = &verdict });
		client_reset(client);
		return;
	}
	tunnel_start(client, &verdict);
}

/* So many bytes of a request's body, and it is not read on. */
static size_t client_mark(const struct client *client)
{
	const struct exchange *ex = client_at_hand(client);

	return ex && hold_is_on(&ex->hold) ? ex->hold.terms.body : NP_BACKLOG_HIGH;
}

static size_t h1_feed(struct client *client, const char *data, size_t len)
{
	size_t used = 0;

	/* One request at a time; the next is read when this one is answered. */
	while (used < len && client->leg.life < LEG_CLOSING && !client->request_read) {
		ssize_t n = h1_read(client->leg.h1, data + used, len - used);

		if (n == -ECANCELED && !leg_is_dead(&client->leg))
			client_reset(client);
		else if (n < 0 && !leg_is_dead(&client->leg))
			h1_malformed(client, data + used, len - used);
		if (n < 0 || leg_is_dead(&client->leg))
			return len;
		used += (size_t)n;
		if (client->connect) {
			h1_into_tunnel(client);
			if (!leg_is_dead(&client->leg) && !client->opaque) {
				client->leg.paused = true; /* so that the rest is offered again */
				client->leg.unread = 0;
				leg_dirty(&client->leg);
			}
			return used;
		}
	}
	if (client->leg.unread > client_mark(client)) {
		client->leg.paused = true;
		channel_pause(client->leg.channel);
	}
	return client->leg.life >= LEG_CLOSING ? len : used;
}

void client_next(struct client *client)
{
	if (!h1_persists(client->leg.h1) || client->leg.life >= LEG_LAST) {
		leg_advance(&client->leg, LEG_CLOSING);
		channel_finish(client->leg.channel);
		client_wait(client, 5000);
		return;
	}
	client->request_read = client->answered = false;
	client->leg.unread = 0;
	client->leg.paused = false;
	h1_next(client->leg.h1);
	client_wait(client, NP_IDLE_MS);
	channel_resume(client->leg.channel);
}

/* -- HTTP/2 ------------------------------------------------------------------------------ */

/* A few requests, then it is someone else's turn; of bodies as much as there is. */
static size_t h2_feed(struct client *client, const char *data, size_t len)
{
	size_t used = 0, step = H2_STEP;

	client->heads = 0;
	while (used < len && client->heads < H2_TURN) {
		size_t n = len - used < step ? len - used : step;

		if (h2_read(client->leg.h2, data + used, n) < 0 && !leg_is_dead(&client->leg)) {
			client_report(client, NP_R_BAD_HTTP, 0, h2_problem(client->leg.h2));
			leg_advance(&client->leg, LEG_CLOSING);
		}
		if (client->leg.life >= LEG_CLOSING)
			n = len - used; /* whatever it is, it comes too late */
		used += n;
		step *= 2;
	}
	leg_dirty(&client->leg);
	if (used < len)
		channel_resume(client->leg.channel); /* the rest is offered again, in turn */
	return used;
}

/* -- both ------------------------------------------------------------------------------------ */

static int on_request(struct leg *leg, const struct turn *turn, struct head *head, bool end)
{
	struct client *client = container_of(leg, struct client, leg);
	struct verdict no_tunnel = { .action = ACTION_DENY, .reason = NP_R_NO_TUNNEL };

	client->deadline_ns = 0;
	client->heads++;
	client->discarded = 0;
	client->request_read = client->answered = false;
	if (strcmp(head->method, "CONNECT") != 0)
		exchange_start(client, turn, head, end);
	else if (leg->h1)
		return h1_connect(client, turn, head);
	else
		request_refuse(client, turn, head, &no_tunnel);
	return 0;
}

/* The body of a request that was answered. */
static int on_stray(struct leg *leg, size_t len)
{
	struct client *client = container_of(leg, struct client, leg);

	client->discarded += len;
	return client->discarded > NP_REFUSED_BODY ? -ECANCELED : 0; /* it does not stop */
}

static int on_read(struct leg *leg)
{
	struct client *client = container_of(leg, struct client, leg);

	client->request_read = true;
	leg_dirty(leg);
	return 0;
}

static void on_closed(struct leg *leg, struct turn *turn, uint32_t error)
{
	(void)leg, (void)error;
	leg_detach(turn);
	exchange_client_gone(container_of(turn, struct exchange, at_client.turn));
}

static void on_refused(struct leg *leg, const char *problem)
{
	client_report(container_of(leg, struct client, leg), NP_R_BAD_HTTP, 0, problem);
}

const struct leg_events client_leg_events = { .request = on_request,
					      .stray = on_stray,
					      .read = on_read,
					      .closed = on_closed,
					      .refused = on_refused,
					      .flush = client_flush };

int client_speak(struct client *client)
{
	client_wait(client, NP_HEAD_MS);
	if (channel_speaks_h2(client->leg.channel) || client->prior) {
		client->state = CLIENT_H2;
		leg_dirty(&client->leg); /* our settings */
		return leg_speak(&client->leg, true);
	}
	client->state = CLIENT_H1;
	return leg_speak(&client->leg, false);
}

size_t client_feed(struct client *client, const char *data, size_t len)
{
	switch (client->state) {
	case CLIENT_H1:
		return h1_feed(client, data, len);
	case CLIENT_H2:
		return h2_feed(client, data, len);
	default:
		return 0;
	}
}

void client_close_after(struct client *client)
{
	leg_advance(&client->leg, LEG_LAST);
	if (!client->leg.h2)
		return;
	h2_goaway(client->leg.h2);
	leg_dirty(&client->leg);
}

/* -- what an exchange does ------------------------------------------------------------------ */

void client_attach(struct exchange *ex, const struct turn *turn)
{
	ex->at_client.turn = *turn;
	leg_attach(&ex->at_client.turn, turn->leg, &exchange_client_events);
	LIST_INSERT_HEAD(&ex->client->exchanges, ex, at_client.of_client);
	ex->client->sandbox->n_exchanges++;
}

static void client_detach(struct exchange *ex)
{
	leg_detach(&ex->at_client.turn);
	LIST_REMOVE(ex, at_client.of_client);
	ex->client->sandbox->n_exchanges--;
}

void client_turn_away(struct client *client, const struct turn *turn)
{
	if (turn->stream)
		h2_reset(turn->stream, H2_ENHANCE_YOUR_CALM);
	else
		client_close(client);
}

void client_done(struct exchange *ex)
{
	struct client *client = ex->client;

	if (client->leg.turn == &ex->at_client.turn)
		client->answered = true;
	client_detach(ex);
	if (LIST_EMPTY(&client->exchanges) && client->leg.h2)
		client_wait(client, NP_IDLE_MS);
	leg_dirty(&client->leg);
}

struct channel *client_take(struct exchange *ex)
{
	struct client *client = ex->client;

	client_detach(ex);
	client->host = ex->host;
	client->port = ex->port;
	return client_release(client);
}
