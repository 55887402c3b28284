/* SPDX-License-Identifier: MIT */
/* What the daemon says, and the worker's answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "inspect/ask.h"
#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "inspect/debug_dump.h"
#include "link/ask_message.h"
#include "link/secret_message.h"
#include "net/dial.h"
#include "policy/snapshot.h"
#include "tls/ca.h"
#include "tls/origin.h"

#define PATIENCE_MS 2000 /* for what the daemon waits for */

static int ca_learn(struct worker *worker, struct link_ca *message)
{
	struct session *session = session_find(worker, message->session);
	int r = 0;

	if (session && message->len && message->len <= sizeof(message->data))
		r = session_set_ca(worker, session, message->data, message->len);
	explicit_bzero(message->data, sizeof(message->data));
	return r;
}

/* The one that was kept, if it is whole; else a new one. */
static int ca_choose(const struct link_ca *message, struct ca **ret)
{
	if (message->len && message->len <= sizeof(message->data) && ca_import(message->data, message->len, ret) == 0)
		return 0;
	if (message->len)
		log_warning("the CA that was kept of %s is not understood: it gets a new one", message->session);
	return ca_new(message->session, ret);
}

/* The daemon gives it to all workers, to us as well. */
static int ca_make(struct worker *worker, struct link_ca *message)
{
	_buf_ struct buf secret = BUF_INIT(LINK_CA_BYTES), pem = BUF_INIT(LINK_CA_BYTES);
	struct link_ca answer = { 0 };
	struct ca *ca = NULL;
	int r = ca_choose(message, &ca);

	explicit_bzero(message->data, sizeof(message->data));
	if (r == 0)
		r = ca_export(ca, &secret);
	if (r == 0)
		r = ca_pem(ca, &pem);
	if (r == 0 && secret.len + pem.len > sizeof(answer.data))
		r = -E2BIG;
	if (r == 0) {
		memcpy(answer.session, message->session, sizeof(answer.session));
		answer.len = (uint32_t)secret.len;
		answer.pem_len = (uint32_t)pem.len;
		memcpy(answer.data, secret.data, secret.len);
		memcpy(answer.data + secret.len, pem.data, pem.len);
		r = link_send_patiently(worker->link, LINK_CA, &answer, sizeof(answer), -1, PATIENCE_MS);
	}
	if (secret.data)
		explicit_bzero(secret.data, secret.len);
	explicit_bzero(&answer, sizeof(answer));
	ca_free(ca);
	return r;
}

/* Whom origins are trusted by has changed: what was vouched for by others is over. */
static void roots_turn(struct worker *worker)
{
	const struct policy *policy = worker->policy;
	struct roots *roots = NULL;
	struct session *session;
	int r = 0;

	if (policy->extra_roots_len)
		r = roots_extend(worker->system, policy->extra_roots, policy->extra_roots_len, &roots);
	if (r < 0) {
		log_error("extra_roots: a certificate was not understood, so none of them counts");
		roots = NULL;
	}
	roots_free(worker->roots);
	worker->roots = roots;
	LIST_FOREACH(session, &worker->sessions, of_worker)
		session_renew_origins(session);
}

static bool roots_differ(const struct policy *a, const struct policy *b)
{
	return a->extra_roots_len != b->extra_roots_len || memcmp(a->extra_roots, b->extra_roots, a->extra_roots_len);
}

static void proxy_logins_drop(struct link_proxy_logins **logins)
{
	if (*logins)
		explicit_bzero(*logins, sizeof(**logins));
	free(*logins);
	*logins = NULL;
}

/* They count when their policy comes: of another one they would be told to the wrong proxy. */
static int proxy_logins_learn(struct worker *worker, struct link_proxy_logins *message)
{
	bool whole = true;

	for (size_t i = 0; i < NP_PROXIES_MAX; i++)
		whole = whole && !message->of[i][NP_PROXY_LOGIN_SIZE - 1];
	proxy_logins_drop(&worker->next_proxy_logins);
	worker->next_proxy_logins = whole ? malloc(sizeof(*message)) : NULL;
	if (worker->next_proxy_logins)
		memcpy(worker->next_proxy_logins, message, sizeof(*message));
	explicit_bzero(message, sizeof(*message));
	return !whole ? -EPROTO : worker->next_proxy_logins ? 0 : -ENOMEM;
}

const char *worker_proxy_login(const struct worker *worker, const struct upstream_proxy *proxy)
{
	const char *text = worker->proxy_logins ? worker->proxy_logins->of[proxy - worker->policy->proxies] : "";

	return *text ? text : NULL;
}

/* Without the memory for it there is none, and requests that need it are refused. */
static int secret_learn(struct worker *worker, struct link_secret *message, size_t len)
{
	bool whole = len >= LINK_SECRET_SIZE(0) && message->len <= NP_SECRET_MAX &&
		     len == LINK_SECRET_SIZE(message->len) && !message->policy[sizeof(message->policy) - 1] &&
		     !message->name[sizeof(message->name) - 1];
	int r = whole ? secrets_put(&worker->secrets, message->policy, message->name, message->value, message->len,
				    message->expires_ns)
		      : -EPROTO;

	explicit_bzero(message, len);
	if (!worker->secrets.n) /* no sandbox is inspected any more: tokens go with the values */
		token_watch_free(worker);
	if (r < 0 && whole)
		log_error("the value of a credential cannot be kept: %s", strerror(-r));
	return whole ? 0 : r;
}

static int policy_learn(struct worker *worker, const char *data, size_t len)
{
	_problems_ struct problems problems = { 0 };
	struct policy *policy = NULL, *old = worker->policy;
	struct session *session;
	struct sandbox *sandbox;
	int r = policy_load_snapshot(data, len, &policy, &problems);

	if (r < 0)
		return r;
	worker->policy = policy;
	proxy_logins_drop(&worker->proxy_logins);
	worker->proxy_logins = worker->next_proxy_logins;
	worker->next_proxy_logins = NULL;
	secrets_keep(&worker->secrets, policy->hash);
	dns_server_policy(worker->dns, policy);
	reporter_forget_rules(&worker->reporter);
	if (old ? roots_differ(old, policy) : policy->extra_roots_len > 0)
		roots_turn(worker);
	policy_free(old);
	LIST_FOREACH(session, &worker->sessions, of_worker) {
		session_drop_placeholders(session);
		upstream_retire(session);
	}
	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox))
		sandbox_rejudge(worker, sandbox, NP_R_ENDED_BY_RELOAD);
	worker_cancel_unwanted(worker);
	return 0;
}

static void name_learn(struct worker *worker, const struct link_name *message)
{
	struct session *session = session_find(worker, message->session);

	if (session && !message->name[sizeof(message->name) - 1])
		dns_server_named(worker->dns, &session->dns, message->index, message->name);
}

static int settings_learn(struct worker *worker, const char *data, size_t len)
{
	struct dialer_config config = { .loop = worker->loop, .resolvers = data };
	const char *nul = memchr(data, '\0', len);
	int r;

	if (worker->dialer)
		return 0; /* once, at the start */
	if (!nul || !len || data[len - 1])
		return -EPROTO;
	config.hosts = nul + 1 < data + len ? nul + 1 : NULL;
	r = dns_server_resolvers(worker->dns, config.resolvers);
	return r < 0 ? r : dialer_new(&config, &worker->dialer);
}

static int message_take(struct worker *worker, enum link_type type, void *data, size_t len, int fd);

static int batch_learn(struct worker *worker, const char *data, size_t len)
{
	static char copy[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct link_message message;
	int r = 0;

	while (r == 0 && len) {
		if (len < sizeof(message))
			return -EPROTO;
		memcpy(&message, data, sizeof(message));
		data += sizeof(message);
		len -= sizeof(message);
		if (message.len > len || message.len > sizeof(copy) || message.type == LINK_BATCH)
			return -EPROTO;
		memcpy(copy, data, message.len);
		r = message_take(worker, message.type, copy, message.len, -1);
		data += message.len;
		len -= message.len;
	}
	explicit_bzero(copy, sizeof(copy));
	return r;
}

/* Before any sandbox is known. */
static int ledger_learn(struct worker *worker, int fd)
{
	return fd < 0 || worker->ready ? -EPROTO : reporter_map(&worker->reporter, fd);
}

static int roots_learn(struct worker *worker, const char *data, size_t len)
{
	int r = worker->system ? 0 : roots_new(data, len, &worker->system);

	if (r == -EINVAL) /* the daemon has looked at their form only */
		log_error("inspector: --roots: a certificate was not understood");
	return r;
}

static int blob_learn(struct worker *worker, enum link_type type, int fd)
{
	const char *data;
	size_t len;
	int r = fd < 0 ? -EPROTO : link_blob_map(fd, LINK_BATCH_MAX, &data, &len);

	if (r < 0)
		return r;
	if (type == LINK_POLICY)
		r = policy_learn(worker, data, len);
	else if (type == LINK_SETTINGS)
		r = settings_learn(worker, data, len);
	else if (type == LINK_BATCH)
		r = batch_learn(worker, data, len);
	else
		r = roots_learn(worker, data, len);
	if (data)
		munmap((void *)data, len);
	return r;
}

/* Takes fd. */
static int listen_learn(struct worker *worker, const struct link_listen *message, int fd)
{
	if (fd < 0 || message->v6 > 1)
		return -EPROTO;
	return message->dns ? dns_server_listen(worker->dns, message->netns, message->v6, fd)
			    : listener_add(worker, message->netns, fd);
}

/* Of those that are one struct: a message that is longer or shorter is none. */
static const size_t message_sizes[] = {
	[LINK_SANDBOX] = sizeof(struct link_sandbox),
	[LINK_GONE] = sizeof(struct link_sandbox),
	[LINK_LEFT] = sizeof(struct link_sandbox),
	[LINK_LISTEN] = sizeof(struct link_listen),
	[LINK_UNLISTEN] = sizeof(struct link_listen),
	[LINK_CA] = sizeof(struct link_ca),
	[LINK_MAKE_CA] = sizeof(struct link_ca),
	[LINK_PROXY_LOGINS] = sizeof(struct link_proxy_logins),
	[LINK_PLACEHOLDER_KEY] = sizeof(((struct worker *)NULL)->placeholder_key),
	[LINK_NAME] = sizeof(struct link_name),
	[LINK_ANSWER] = sizeof(struct link_answer),
	[LINK_DEBUG] = sizeof(struct debug_ask),
	[LINK_SETTLE] = sizeof(uint32_t),
};

static int message_take(struct worker *worker, enum link_type type, void *data, size_t len, int fd)
{
	const struct link_sandbox *about = data;
	const struct link_listen *listen = data;
	struct sandbox *sandbox;

	if (type < ARRAY_SIZE(message_sizes) && message_sizes[type] && len != message_sizes[type])
		return -EPROTO;
	switch (type) {
	case LINK_SETTINGS:
	case LINK_POLICY:
	case LINK_ROOTS:
	case LINK_BATCH:
		return blob_learn(worker, type, fd);
	case LINK_LEDGER:
		return ledger_learn(worker, fd);
	case LINK_SANDBOX:
		return sandbox_learn(worker, data);
	case LINK_GONE:
		sandbox = sandbox_find(worker, about->cgroup_id);
		if (sandbox)
			sandbox_free(worker, sandbox, NP_R_ENDED_BY_REMOVAL);
		return 0;
	case LINK_LEFT:
		sandbox = sandbox_find(worker, about->cgroup_id);
		if (!sandbox || (!sandbox_has_unsent(sandbox) && !sandbox_has_unheard(sandbox)))
			return 0;
		return link_send_patiently(worker->link, LINK_LEFT, data, len, -1, PATIENCE_MS);
	case LINK_UNLISTEN:
		listeners_remove(worker, listen->netns);
		return 0;
	case LINK_CA:
		return ca_learn(worker, data);
	case LINK_PROXY_LOGINS:
		return proxy_logins_learn(worker, data);
	case LINK_SECRET:
		return secret_learn(worker, data, len);
	case LINK_PLACEHOLDER_KEY:
		memcpy(&worker->placeholder_key, data, len);
		sealer_free(worker->sealer);
		worker->sealer = NULL;
		return sealer_new(&worker->placeholder_key, &worker->sealer);
	case LINK_MAKE_CA:
		return ca_make(worker, data);
	case LINK_NAME:
		name_learn(worker, data);
		return 0;
	case LINK_ANSWER:
		asks_answer(worker, data);
		return 0;
	case LINK_DEBUG:
		debug_answer(worker, data);
		return 0;
	case LINK_SYNC:
		sessions_raised(worker);
		worker_flush(worker);
		report_flush(worker); /* who asks has acted on it, and looks for what came of that */
		return link_send_patiently(worker->link, LINK_SYNC, data, len, -1, PATIENCE_MS);
	case LINK_SETTLE:
		worker_settle(worker, *(const uint32_t *)data);
		return 0;
	case LINK_STOP:
		worker_stop(worker);
		return 0;
	default:
		return -EPROTO;
	}
}

void worker_drain(struct worker *worker)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	enum link_type type;
	size_t len;
	int r;

	for (;;) {
		int received = -1;

		r = link_receive(worker->link, &type, data, &len, &received);
		if (r < 0)
			break;
		if (type == LINK_LISTEN)
			r = len == message_sizes[type]
				    ? listen_learn(worker, (const struct link_listen *)(const void *)data,
						   take_fd(received))
				    : -EPROTO;
		else
			r = message_take(worker, type, data, len, received);
		cleanup_close(&received);
		if (r < 0)
			break;
		if (type == LINK_BATCH && !worker->ready) {
			r = worker_open(worker);
			if (r == 0)
				r = link_send_patiently(worker->link, LINK_READY, NULL, 0, -1, PATIENCE_MS);
		}
		if (r < 0)
			break;
	}
	if (r == -EAGAIN)
		return;
	/* Without the daemon's word nothing is allowed, so there is nothing to do any more. */
	if (r != -EPIPE)
		log_error("inspector: the daemon's message was not understood: %s", strerror(-r));
	loop_stop(worker->loop);
}

void worker_forget(struct worker *worker)
{
	if (worker->dialer)
		dialer_free(worker->dialer);
	roots_free(worker->roots);
	roots_free(worker->system);
	policy_free(worker->policy);
	proxy_logins_drop(&worker->proxy_logins);
	proxy_logins_drop(&worker->next_proxy_logins);
	secret_watch_free(&worker->secret_watch);
	token_watch_free(worker);
	sealer_free(worker->sealer);
	worker->sealer = NULL;
	secrets_keep(&worker->secrets, NULL);
	worker->dialer = NULL;
	worker->roots = worker->system = NULL;
	worker->policy = NULL;
}
