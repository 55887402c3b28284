/* SPDX-License-Identifier: MIT */
/*
 * Forwards: an operator's way to a listener of a sandbox. The client that forwards makes the connections. The service
 * records which sockets of that client may call which sandbox, and the kernel enforces it: nothing passes once the mode
 * is NONE, whatever becomes of the client. The client has to renew a forward, or it ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "session/service_internal.h"
#include "vocab/limits.h"

static void forward_free(struct service *service, struct forward *forward)
{
	for (size_t i = 0; i < forward->n_cookies; i++)
		service->config.gate.unforward(service->config.gate.ctx, forward->cookies[i]);
	LIST_REMOVE(forward, next);
	service->forward_count--;
	free(forward);
}

static void forward_event(struct service *service, const struct forward *forward, unsigned reason, const char *who,
			  const char *text)
{
	struct event event = {
		.reason = reason,
		.who = who,
		.session = forward->pub.session.text,
		.sandbox = forward->pub.sandbox,
		.port = forward->pub.port,
		.text = text,
	};

	service_emit(service, &event, NULL, NULL);
}

/* cause: a sentence for the operator. */
static void forward_end(struct service *service, struct forward *forward, const char *who, const char *cause)
{
	struct forward_end *end = &service->forward_ends[forward->pub.id % NP_FORWARDS_MAX];

	end->id = forward->pub.id;
	snprintf(end->cause, sizeof(end->cause), "%s", cause);
	forward_event(service, forward, NP_R_FORWARD_ENDED, who, cause);
	forward_free(service, forward);
}

static struct forward *forward_find(struct service *service, uint64_t id)
{
	struct forward *forward;

	LIST_FOREACH(forward, &service->forwards, next)
		if (forward->pub.id == id)
			return forward;
	return NULL;
}

/* What ends this forward, if it has to end; else NULL. */
static const char *forward_over(struct service *service, const struct forward *forward)
{
	const struct sandbox_info *sandbox = service_sandbox_by_id(service, forward->pub.sandbox);

	if (!sandbox || sandbox->cgroup.id != forward->cgroup_id)
		return "its sandbox has ended, or was removed";
	if (sandbox->rung.mode == NP_NONE)
		return "its sandbox was raised to NONE";
	if (service->config.now_ns() - forward->seen_ns > NP_FORWARD_SILENT_S * 1000000000ull)
		return "nothing was heard of netpawl forward for too long";
	return NULL;
}

/* Of a number that no forward has. */
static int forward_unknown(const struct service *service, uint64_t id, struct failure *ret_failure)
{
	const struct forward_end *end = &service->forward_ends[id % NP_FORWARDS_MAX];

	if (id && end->id == id)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -ENOENT, "it is over: %s", end->cause);
	if (!service->forward_first || id < service->forward_first)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -ENOENT,
				    "it is over: netpawld was started anew, and knows no forward %llu",
				    (unsigned long long)id);
	return service_fail(ret_failure, NP_R_NO_FORWARD, -ENOENT, "there is no forward %llu", (unsigned long long)id);
}

/* Where to call a listener: at its own address, or on loopback when it listens on all of them. */
static int forward_address(struct service *service, uint64_t cgroup_id, unsigned port, char text[static ADDR_TEXT_SIZE])
{
	const struct gate *gate = &service->config.gate;
	struct np_addr addr;
	int r = gate->listens(gate->ctx, cgroup_id, port, &addr);

	if (r < 0)
		return r;
	if (!addr.d[0] && !addr.d[1])
		addr.b[15] = 1; /* ::1 */
	else if (!addr.d[0] && addr.w[2] == htonl(0xffff) && !addr.w[3])
		addr.w[3] = htonl(INADDR_LOOPBACK);
	addr_format(&addr, text);
	return 0;
}

/* -- which sandbox ------------------------------------------------------------------ */

struct search {
	struct service *service;
	unsigned port;
	const struct sandbox_info *found;
	unsigned listening, closed, all;
	char names[400];
};

static int search_one(void *data, const struct sandbox_info *sandbox)
{
	struct search *search = data;
	size_t len = strlen(search->names);
	char address[ADDR_TEXT_SIZE];

	search->all++;
	if (sandbox->rung.mode == NP_NONE) {
		search->closed++;
		return 0;
	}
	if (forward_address(search->service, sandbox->cgroup.id, search->port, address) < 0)
		return 0;
	search->listening++;
	search->found = sandbox;
	snprintf(search->names + len, sizeof(search->names) - len, "%s%s", len ? ", " : "", sandbox->id);
	return 0;
}

static int sandbox_search(struct service *service, const struct session_name *name, unsigned port,
			  const struct sandbox_info **ret, struct failure *ret_failure)
{
	struct search search = { .service = service, .port = port };
	struct session_row row;
	int r = service_session_show(service, name->text, &row, ret_failure);

	if (r < 0)
		return r;
	service_sandboxes_each(service, name->text, search_one, &search);
	if (search.listening > 1)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -EEXIST,
				    "several sandboxes listen on port %u, name one: %s", port, search.names);
	if (!search.all)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -ENOENT, "%s has no sandbox at this moment",
				    name->text);
	if (!search.found && search.all == search.closed)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -EPERM, "the mode of %s is NONE", name->text);
	if (!search.found)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -ENOENT, "no sandbox of %s listens on port %u",
				    name->text, port);
	*ret = search.found;
	return 0;
}

/* -- verbs ---------------------------------------------------------------------------- */

int service_forward_open(struct service *service, const char *session, const char *sandbox_id, unsigned port,
			 const char *who, const struct forward_row **ret, struct failure *ret_failure)
{
	const struct sandbox_info *sandbox = NULL;
	struct session_name name;
	struct forward *forward;
	int r = service_name_read(session, &name, ret_failure);

	if (r == 0 && sandbox_id) {
		sandbox = service_sandbox_by_id(service, sandbox_id);
		if (!sandbox || strcmp(sandbox->session.text, name.text) != 0)
			r = service_fail(ret_failure, NP_R_NO_SUCH_SANDBOX, -ENOENT, "%.200s", sandbox_id);
		else if (sandbox->rung.mode == NP_NONE)
			r = service_fail(ret_failure, NP_R_NO_FORWARD, -EPERM, "the mode of %s is NONE", sandbox->id);
	} else if (r == 0) {
		r = sandbox_search(service, &name, port, &sandbox, ret_failure);
	}
	if (r < 0 || !sandbox) /* both or neither */
		return r;
	if (service->forward_count >= NP_FORWARDS_MAX)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "there are %d forwards already",
				    NP_FORWARDS_MAX);
	forward = calloc(1, sizeof(*forward));
	if (!forward)
		return service_fail(ret_failure, NP_R_FAILED, -ENOMEM, "out of memory");
	/* Numbers that the daemon before this one cannot have given: whoever still has one of its forwards must not speak
	 * of somebody else's. */
	if (!service->forward_last)
		service->forward_first = service->forward_last = service->config.now_ns() / 1000000;
	forward->pub.id = ++service->forward_last;
	forward->pub.session = name;
	memcpy(forward->pub.sandbox, sandbox->id, sizeof(forward->pub.sandbox));
	own_network_is(service, sandbox->cgroup.id, &forward->pub.netns);
	forward->pub.port = port;
	if (forward_address(service, sandbox->cgroup.id, port, forward->pub.address) < 0) /* with --sandbox: not yet */
		snprintf(forward->pub.address, sizeof(forward->pub.address), "127.0.0.1");
	snprintf(forward->pub.who, sizeof(forward->pub.who), "%s", who);
	forward->cgroup_id = sandbox->cgroup.id;
	forward->seen_ns = service->config.now_ns();
	LIST_INSERT_HEAD(&service->forwards, forward, next);
	service->forward_count++;
	forward_event(service, forward, NP_R_FORWARD_OPENED, who, NULL);
	*ret = &forward->pub;
	return 0;
}

static int forward_read(struct service *service, uint64_t id, struct forward **ret, struct failure *ret_failure)
{
	struct forward *forward = forward_find(service, id);
	const char *cause = forward ? forward_over(service, forward) : NULL;

	if (cause)
		forward_end(service, forward, "daemon", cause);
	if (!forward || cause)
		return forward_unknown(service, id, ret_failure);
	forward->seen_ns = service->config.now_ns();
	*ret = forward;
	return 0;
}

int service_forward_socket(struct service *service, uint64_t id, uint64_t cookie, const struct forward_row **ret,
			   struct failure *ret_failure)
{
	const struct gate *gate = &service->config.gate;
	struct forward *forward = NULL;
	int r = forward_read(service, id, &forward, ret_failure);

	if (r < 0 || !forward) /* both or neither */
		return r;
	*ret = &forward->pub;
	r = forward_address(service, forward->cgroup_id, forward->pub.port, forward->pub.address);
	if (!cookie)
		return 0;
	if (forward->n_cookies == NP_FORWARD_SOCKETS)
		return service_fail(ret_failure, NP_R_TOO_MANY, -E2BIG, "it has %d connections open",
				    NP_FORWARD_SOCKETS);
	if (r < 0)
		return service_fail(ret_failure, NP_R_NO_FORWARD, -ECONNREFUSED,
				    "the sandbox does not listen on port %u", forward->pub.port);
	r = gate->forward(gate->ctx, cookie, forward->cgroup_id);
	if (r < 0)
		return service_fail(ret_failure, NP_R_NOT_APPLIED, r, "%s", strerror(-r));
	forward->cookies[forward->n_cookies++] = cookie;
	return 0;
}

int service_forward_socket_gone(struct service *service, uint64_t id, uint64_t cookie, struct failure *ret_failure)
{
	struct forward *forward = NULL;
	int r = forward_read(service, id, &forward, ret_failure);

	for (size_t i = 0; forward && i < forward->n_cookies; i++) {
		if (forward->cookies[i] != cookie)
			continue;
		service->config.gate.unforward(service->config.gate.ctx, cookie);
		forward->cookies[i] = forward->cookies[--forward->n_cookies];
		break;
	}
	return r;
}

int service_forward_close(struct service *service, uint64_t id, const char *who, struct failure *ret_failure)
{
	struct forward *forward = forward_find(service, id);
	char cause[96];

	if (!forward)
		return forward_unknown(service, id, ret_failure);
	snprintf(cause, sizeof(cause), "it was ended by %s", who);
	forward_end(service, forward, who, cause);
	return 0;
}

int service_forwards_each(struct service *service, const char *session,
			  int (*fn)(void *data, const struct forward_row *forward), void *data)
{
	struct forward *forward;
	int r = 0;

	LIST_FOREACH(forward, &service->forwards, next) {
		if (!session || !strcmp(forward->pub.session.text, session))
			r = fn(data, &forward->pub);
		if (r < 0)
			break;
	}
	return r;
}

void forwards_sweep(struct service *service)
{
	struct forward *forward, *next;
	const char *cause;

	for (forward = LIST_FIRST(&service->forwards); forward; forward = next) {
		next = LIST_NEXT(forward, next);
		cause = forward_over(service, forward);
		if (cause)
			forward_end(service, forward, "daemon", cause);
	}
}

/* What it let in stays shut out by the next daemon, which forgets it; until then it goes on. */
void forwards_free(struct service *service)
{
	struct forward *forward;

	while ((forward = LIST_FIRST(&service->forwards)))
		forward_free(service, forward);
}
