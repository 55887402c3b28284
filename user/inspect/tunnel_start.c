/* SPDX-License-Identifier: MIT */
/* The beginning of a tunnel where a rule lets bytes pass unseen: the stages, perhaps a hold, the dial, and the relay
 * that then moves the bytes. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/table.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/tunnel_internal.h"
#include "vocab/limits.h"

static const struct relay_events unseen_events = { .closed = tunnel_over };

/* The kernel moves the bytes (splice), unless some of them are in our memory. What was sent of `first` is removed
 * from it. */
static bool tunnel_splice(struct tunnel *tunnel, int far, struct buf *first)
{
	struct client *client = tunnel->client;
	size_t first_len = first->len;
	ssize_t n = first->len ? send(far, first->data, first->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	int near;

	if (n > 0)
		buf_drop(first, (size_t)n);
	near = first->len ? -1 : client_release_fd(client);
	if (near < 0)
		return false;
	tunnel->first = first_len;
	if (splice_start(client->worker->loop, &client->sandbox->session->lane, near, far, tunnel_over, tunnel,
			 &tunnel->splice) < 0)
		client_close(client);
	return true;
}

static bool may_pass(void *ctx, const struct route *route)
{
	struct tunnel *tunnel = ctx;
	const struct client *client = tunnel->client;

	if (!route_may(client, &client->host, client->port, route, NULL, &tunnel->ask))
		return false;
	/* Once it is known where the name leads, a deny may have to see what the name alone let pass. */
	if (!judge_connection(client, &client->host, client->port, route).inspect)
		return true;
	tunnel->looks = true;
	return false;
}

/* A tunnel may be silent for as long as it likes: keepalive probes find an end that is gone. */
static void keep_alive(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ NP_IDLE_MS / 1000 }, sizeof(int));
}

/* The name leads to an address where the client may not go: the rule that says so is named. */
static void tunnel_route_refused(struct tunnel *tunnel, const struct route *route, const char *words)
{
	const struct client *client = tunnel->client;
	struct verdict verdict = route_refusal(client, &client->host, client->port, route, NULL, &tunnel->ask);

	tunnel_end(tunnel, &(struct client_refusal){ .reason = NP_R_ADDRESS_REFUSED,
						     .text = words,
						     .verdict = &verdict,
						     .addr = route ? &route->addr : NULL });
}

static void on_dialled(void *ctx, const struct origin_dial_result *result)
{
	struct tunnel *tunnel = ctx;
	struct client *client = tunnel->client;
	static const struct channel_events no_events;
	_buf_ struct buf first = BUF_INIT(0);
	struct verdict verdict;
	struct channel *far;

	tunnel->dial = NULL;
	tunnel->proxy = result->proxy;
	tunnel->report.dns_us = (uint32_t)result->dns_us;
	tunnel->report.connect_us = (uint32_t)result->connect_us;
	/* What may be dialled may have changed since it was. */
	if (!result->error && !may_pass(tunnel, result->route)) {
		close(result->fd);
		tunnel_route_refused(tunnel, result->route, "the address may not be reached");
		return;
	}
	if (!result->error) {
		tunnel_set_route(tunnel, result->route);
		if (tunnel->routed)
			addr_format(&tunnel->route.addr, tunnel->report.address);
		keep_alive(result->fd);
		keep_alive(channel_fd(client->leg.channel));
		first = client_take_first(client);
		if (tunnel_splice(tunnel, result->fd, &first))
			return;
	}
	if (result->error && result->refused && tunnel->looks) {
		tunnel_withdraw(tunnel); /* its requests are reported */
		tunnel_free(tunnel);
		client_set_tunnel(client, NULL);
		client_look(client);
		return;
	}
	if (result->error && result->refused) {
		tunnel_route_refused(tunnel, result->route, result->words);
		return;
	}
	if (result->error || channel_new(client->worker->loop, &client->sandbox->session->lane, result->fd, &no_events,
					 NULL, &far) < 0) {
		verdict = judge_request(client, &client->host, client->port, NULL, NULL, &tunnel->ask);
		tunnel_refuse(tunnel, result->reason ?: NP_R_ORIGIN_UNREACHABLE, &verdict, result->words);
		return;
	}
	tunnel_relay(tunnel, client_release(client), far, &first, &unseen_events);
}

/* Through the stages that are left, and on to the dial. */
static void tunnel_go_on(struct tunnel *tunnel)
{
	struct client *client = tunnel->client;
	const struct origin_dial_terms terms = { .host = &client->host,
						 .port = client->port,
						 .session = client->sandbox->session,
						 .may = may_pass,
						 .done = on_dialled,
						 .ctx = tunnel };

	if (stages_connect(tunnel, &tunnel->stage) != STAGE_NEXT)
		return;
	client_wait(client, NP_CONNECT_MS + NP_RESOLVE_MS + NP_PROXY_MS);
	if (origin_dial_start(client->worker, &terms, &tunnel->dial) < 0) {
		tunnel_withdraw(tunnel); /* there is nothing to tell */
		client_reset(client);
	}
}

static void on_resume(struct hold *hold)
{
	struct tunnel *tunnel = container_of(hold, struct tunnel, hold);
	const struct client *client = tunnel->client;
	struct verdict verdict =
		judge_request(client, &client->host, client->port, NULL, NULL, &tunnel->ask); /* what holds now */

	report_verdict(&tunnel->report, client->worker, client->sandbox, &verdict);
	if (verdict.action == ACTION_ALLOW && !verdict.inspect)
		tunnel_go_on(tunnel);
	else
		tunnel_refuse(tunnel, verdict.reason, &verdict, NULL);
}

static void on_refuse(struct hold *hold, enum np_reason reason, const char *words)
{
	struct tunnel *tunnel = container_of(hold, struct tunnel, hold);
	const struct client *client = tunnel->client;
	struct verdict verdict = judge_connection(client, &client->host, client->port, NULL); /* to name the rule */

	tunnel_refuse(tunnel, reason, &verdict, words);
}

static const struct hold_events hold_events = { .resume = on_resume, .refuse = on_refuse };

enum stage_result tunnel_hold(struct tunnel *tunnel, const struct hold_terms *terms)
{
	struct client *client = tunnel->client;

	if (hold_begin(&tunnel->hold, client->worker, client->sandbox, terms, &hold_events) < 0) {
		tunnel_refuse(tunnel, NP_R_TOO_MANY_REQUESTS, NULL, "too many of them wait for an answer");
		return STAGE_OVER;
	}
	client_wait(client, 0);
	return STAGE_HELD;
}

void tunnel_start(struct client *client, const struct verdict *verdict)
{
	struct worker *worker = client->worker;
	struct tunnel *tunnel;

	if (client->tunnel)
		return;
	tunnel = tunnel_new(client);
	if (!tunnel) {
		client_reset(client);
		return;
	}
	report_begin(&tunnel->report, worker, client->sandbox);
	tunnel->report.pid = client->flow.pid;
	report_verdict(&tunnel->report, worker, client->sandbox, verdict);
	tunnel->report.port = client->port;
	if (client->host.is_addr) /* of a name when it is known */
		addr_format(&client->host.addr, tunnel->report.address);
	if (judge_asks(verdict))
		ask_want(&tunnel->ask, client, &client->host, client->port, NULL, NULL, NULL, false);
	channel_pause(client->leg.channel);
	tunnel_go_on(tunnel);
}
