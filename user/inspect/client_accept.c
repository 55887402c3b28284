/* SPDX-License-Identifier: MIT */
/* A connection of a sandbox when it is new: whose it is, whom it is meant for, and whether we may look inside. */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vocab/words.h"
#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "inspect/judge.h"
#include "inspect/tunnel.h"
#include "dns/synthetic_names.h"
#include "net/channel.h"
#include "tls/ca.h"
#include "synth.h"
#include "http/client_hello.h"
#include "vocab/limits.h"

#define HELLO_TRIES 64 /* a hello that trickles is not read anew for each byte after these */

/* -- what its first bytes say ------------------------------------------------------- */

static int client_handshake(struct client *client)
{
	SSL *ssl = NULL;
	int r = ca_server(session_ca(client->sandbox->session), &client->host, &ssl);

	if (r < 0)
		return r;
	client->state = CLIENT_HANDSHAKE;
	client->tls = true;
	client_wait(client, NP_HANDSHAKE_MS);
	r = channel_tls(client->leg.channel, ssl, client->first.data, client->first.len);
	buf_free(&client->first);
	return r;
}

void client_ca_ready(struct client *client)
{
	if (client->state == CLIENT_WAIT_CA && client_handshake(client) < 0)
		client_close(client);
}

void client_look(struct client *client)
{
	if (!session_ca(client->sandbox->session)) {
		client->state = CLIENT_WAIT_CA;
		channel_pause(client->leg.channel);
	} else if (client_handshake(client) < 0) {
		client_close(client);
	}
}

/* The name in SNI; after a CONNECT it must be the one given there. Without SNI it is what the address stands for. An
 * address in SNI says nothing new, and must be the one that was dialled. */
static bool hello_host(const struct client *client, const struct hello *hello, struct host *ret)
{
	if (hello->has_addr) {
		*ret = client->host;
		return ret->is_addr && memcmp(&ret->addr, &hello->addr, sizeof(ret->addr)) == 0;
	}
	if (hello->has_name)
		memcpy(ret->name, hello->name, sizeof(ret->name));
	else
		*ret = client->host;
	if (!client->named)
		return true;
	if (!hello->has_name)
		return client->host.is_addr;
	return !client->host.is_addr && !strcmp(ret->name, client->host.name);
}

static void client_hello(struct client *client, const struct hello *hello)
{
	struct host host = { 0 };
	struct verdict verdict;

	if (!hello_host(client, hello, &host)) {
		client_report(client, NP_R_HOST_MISMATCH, 0, "SNI names another host than the connection was made for");
		client_reset(client);
		return;
	}
	client->host = host;
	client->named = true;
	verdict = judge_connection(client, &host, client->port, NULL);
	if (host.is_addr && !judge_goes_on(&verdict)) {
		client_report(client, hello->has_addr ? verdict.reason : NP_R_NO_SERVER_NAME, 0, NULL);
		client_reset(client);
	} else if (judge_goes_on(&verdict) && !verdict.inspect) {
		tunnel_start(client, &verdict);
	} else {
		client_look(client);
	}
}

#define ALERT_INTERNAL_ERROR 80

/* What a TLS client understands, in the clear: there are no keys yet. */
static void client_alert(struct client *client, unsigned char alert)
{
	const unsigned char record[] = { 21 /* alert */, 3, 3, 0, 2, 2 /* fatal */, alert };
	int fd = channel_fd(client->leg.channel);

	/* There is room: nothing was ever sent. */
	if (send(fd, record, sizeof(record), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(record))
		shutdown(fd, SHUT_WR);
	client_close(client);
}

static void client_sniff_tls(struct client *client, const char *data, size_t len)
{
	struct hello hello = { .alert = ALERT_INTERNAL_ERROR };
	int r;

	buf_append(&client->first, data, len);
	r = buf_error(&client->first);
	if (r == 0 && client->first.len < client->first_need && client->first_tries++ > HELLO_TRIES)
		return;
	if (r == 0)
		r = hello_parse((const unsigned char *)client->first.data, client->first.len, &hello,
				&client->first_need);
	if (r == 0) {
		client_hello(client, &hello);
	} else if (r != -EAGAIN) {
		client_report(client, NP_R_BAD_HTTP, 0, "a ClientHello that cannot be read in one way");
		client_alert(client, hello.alert);
	}
}

bool client_sniff(struct client *client, const char *data, size_t len)
{
	if (client->first.len || data[0] == 0x16) {
		client_sniff_tls(client, data, len);
		return false;
	}
	client->prior = len >= 4 && !memcmp(data, "PRI ", 4);
	if (client_speak(client) == 0)
		return true;
	client_close(client);
	return false;
}

/* -- what the gate says ------------------------------------------------------------- */

/* Whose is it? The gate knows, and says it once. */
static struct sandbox *flow_sandbox(struct worker *worker, int fd, struct np_flow *ret)
{
	socklen_t len = sizeof(*ret);
	struct sandbox *sandbox;

	if (getsockopt(fd, NP_SOL_FLOW, NP_SO_FLOW, ret, &len) < 0 || len != sizeof(*ret))
		return NULL;
	sandbox = sandbox_find(worker, ret->cgroup_id);
	if (!sandbox ||
	    (int32_t)(ret->generation - sandbox->rung.generation) > 0 || /* the daemon's word is still on its way */
	    (np_addr_is_synthetic(&ret->addr) &&
	     !names_find(sandbox->session->dns.names, np_synth_number(&ret->addr)))) {
		/* Here, where nothing is held that its word may take away. */
		worker_drain(worker);
		sandbox = sandbox_find(worker, ret->cgroup_id);
	}
	return sandbox && sandbox->rung.mode == NP_PROXIED ? sandbox : NULL;
}

/* What is refused is reported, as a request would be. */
static void flow_report(struct worker *worker, const struct sandbox *sandbox, const struct np_flow *flow,
			enum np_reason reason, const char *text)
{
	struct link_request report = { .reason = reason, .port = flow->port, .pid = flow->pid };

	report_decide(&report, worker, sandbox);
	addr_format(&flow->addr, report.address);
	snprintf(report.text, sizeof(report.text), "%s", text);
	report_send(worker, &report, &(struct report_texts){ .url = { report.address } });
}

/* A client that reset its connection has sent a request and does not want to be found when it is judged: what it sent is
 * not read. If it sent nothing, there is nothing to report. */
static bool client_is_there(struct worker *worker, const struct sandbox *sandbox, int fd, const struct np_flow *flow)
{
	int unread = 0;

	if (!flow->client_gone)
		return true;
	if (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0)
		flow_report(worker, sandbox, flow, NP_R_CLIENT_GONE, "");
	return false;
}

static bool sandbox_has_room(struct worker *worker, const struct sandbox *sandbox, const struct np_flow *flow)
{
	if (sandbox->n_clients < NP_CONNS_PER_SANDBOX)
		return true;
	flow_report(worker, sandbox, flow, NP_R_TOO_MANY_REQUESTS, "too many connections");
	return false;
}

/* No HTTP is spoken there, and perhaps the server speaks first: the name that the address stands for, and the port, are
 * all that can be judged. */
static void client_pass(struct client *client)
{
	struct verdict verdict = judge_connection(client, &client->host, client->port, NULL);

	client->named = true;
	if (judge_goes_on(&verdict)) {
		tunnel_start(client, &verdict);
		return;
	}
	client_report_refusal(client, &(struct client_refusal){ .reason = verdict.reason, .verdict = &verdict });
	client_reset(client);
}

/* What it is, as far as its destination tells. */
static void client_meet(struct client *client)
{
	const char *name;

	if (client->port == NS_DEFAULTPORT) {
		client->state = CLIENT_DNS;
		return;
	}
	client->state = CLIENT_SNIFF;
	if (!np_addr_is_synthetic(&client->flow.addr))
		return;
	name = dns_server_reverse(client->worker->dns, &client->sandbox->session->dns, &client->flow.addr);
	if (!name) {
		client_report(client, NP_R_NAME_FORGOTTEN, 0, NULL);
		client_reset(client);
		return;
	}
	client->host = (struct host){ .is_addr = false };
	memcpy(client->host.name, name, strlen(name) + 1);
	if (!judge_inspects(client->worker, client->port))
		client_pass(client);
}

void client_accept(struct worker *worker, int fd)
{
	struct np_flow flow;
	struct sandbox *sandbox = worker->n_clients < NP_CONNS_MAX ? flow_sandbox(worker, fd, &flow) : NULL;
	bool welcome =
		sandbox && client_is_there(worker, sandbox, fd, &flow) && sandbox_has_room(worker, sandbox, &flow);
	struct client *client = welcome ? calloc(1, sizeof(*client)) : NULL;

	if (!client) {
		reset_on_close(fd);
		close(fd);
		return;
	}
	client->worker = worker;
	client->sandbox = sandbox;
	client->flow = flow;
	client->port = flow.port;
	client->host = (struct host){ .is_addr = true, .addr = flow.addr };
	client->first = BUF_INIT(NP_HELLO_BYTES);
	leg_init(&client->leg, LEG_CLIENT, worker, &client_leg_events);
	LIST_INSERT_HEAD(&sandbox->clients, client, of_sandbox);
	if (sandbox->n_clients++ == 0)
		LIST_INSERT_HEAD(&worker->talking, sandbox, of_talking);
	worker->n_clients++;
	client_wait(client, NP_HEAD_MS);
	if (channel_new(worker->loop, &sandbox->session->lane, fd, &client_events, client, &client->leg.channel) < 0)
		client_close(client);
	else
		client_meet(client);
}
