/* SPDX-License-Identifier: MIT */
#include "net/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "net/linger.h"
#include "resolver/resolver.h"
#include "vocab/limits.h"

#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

struct attempt {
	struct dial *dial;
	int fd;		    /* -1: free */
	struct route route; /* its names are the dial's */
};

struct dial {
	LIST_ENTRY(dial) link;
	struct dialer *dialer;
	dial_may_fn *may;
	dial_done_fn *done;
	void *ctx;
	uint16_t port;
	bool finished;
	struct resolution resolution;
	struct loop_task task; /* to tell the result */
	bool known_all_of[FAMILY_COUNT];
	struct addresses left[FAMILY_COUNT]; /* still to be tried, from next on */
	unsigned next[FAMILY_COUNT];
	struct aliases *aliases[FAMILY_COUNT]; /* on the way to these */
	enum family turn;
	unsigned tried, refused, flying;
	struct attempt attempts[NP_EYEBALLS_MAX];
	uint64_t started_ns;
	uint64_t v4_ns;	     /* when IPv4 addresses came */
	uint64_t connect_ns; /* first attempt; 0 before */
	uint64_t latest_ns;  /* last attempt */
	uint32_t connect_ms; /* from the first attempt on */
	struct dial_result result;
};

LIST_HEAD(dial_list, dial);

struct dialer {
	struct loop *loop;
	struct resolver *resolver;
	struct dial_list dials; /* those that are not finished */
};

static const char *error_words(int error)
{
	switch (-error) {
	case ECONNREFUSED:
		return "connection refused";
	case ETIMEDOUT:
		return "timed out";
	case ENETUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return "the network cannot be reached";
	case EHOSTUNREACH:
	case EHOSTDOWN:
		return "the host cannot be reached";
	case ECONNRESET:
	case ECONNABORTED:
		return "connection reset";
	case EACCES:
	case EPERM:
		return "connection not permitted";
	case EMFILE:
	case ENFILE:
		return "too many open connections";
	case ENOMEM:
	case ENOBUFS:
		return "out of memory";
	default:
		return "the connection failed";
	}
}

/* -- the end of a dial --------------------------------------------------------- */

static void attempt_end(struct attempt *a)
{
	if (a->fd < 0)
		return;
	loop_unwatch(a->dial->dialer->loop, a->fd);
	close(a->fd);
	a->fd = -1;
	a->dial->flying--;
}

static void dial_release(struct dial *d)
{
	resolution_cancel(&d->resolution);
	for (size_t i = 0; i < NP_EYEBALLS_MAX; i++)
		attempt_end(&d->attempts[i]);
	if (!d->finished)
		LIST_REMOVE(d, link);
	d->finished = true;
}

static void dial_free(struct dial *d)
{
	for (enum family f = 0; f < FAMILY_COUNT; f++)
		aliases_unref(d->aliases[f]);
	free(d);
}

static void dial_notify(void *data)
{
	struct dial *d = data;
	const struct dial_result result = d->result;
	dial_done_fn *done = d->done;
	void *ctx = d->ctx;

	aliases_ref(result.route.aliases);
	dial_free(d);
	done(ctx, &result);
	aliases_unref(result.route.aliases);
}

/* The result is complete but for its times. The caller gets it from the loop and from nowhere else, so that done()
 * may start and cancel any dial (re-entrancy). */
static void dial_finish(struct dial *d)
{
	uint64_t now = loop_now_ns();

	dial_release(d);
	d->result.dns_us = ((d->connect_ns ? d->connect_ns : now) - d->started_ns) / NS_PER_US;
	d->result.connect_us = d->connect_ns ? (now - d->connect_ns) / NS_PER_US : 0;
	loop_later(d->dialer->loop, &d->task);
}

static void dial_fail(struct dial *d, int error, const char *words)
{
	d->result.error = error;
	d->result.words = words;
	dial_finish(d);
}

void dial_set_connect(struct dial *d, uint32_t ms)
{
	d->connect_ms = ms;
}

bool dial_is_resolving(const struct dial *d)
{
	return !d->connect_ns;
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	dial_release(d);
	loop_cancel(d->dialer->loop, &d->task);
	if (d->result.fd >= 0)
		close(d->result.fd);
	dial_free(d);
}

/* -- attempts ------------------------------------------------------------------ */

static void dial_advance(struct dial *d, bool at_once);

static void attempt_event(void *data, uint32_t events)
{
	struct attempt *a = data;
	struct dial *d = a->dial;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)events;
	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	d->result.route = a->route;
	if (error) {
		d->result.error = -error;
		attempt_end(a);
		dial_advance(d, true);
		return;
	}
	loop_unwatch(d->dialer->loop, a->fd);
	d->result.error = 0;
	d->result.fd = take_fd(a->fd);
	d->flying--;
	dial_finish(d);
}

/* To the very address that may() has seen: an IPv4 address inside an IPv6 one is dialled as IPv4. */
static int attempt_start(struct dial *d, const struct route *route)
{
	struct attempt *a = d->attempts;
	union sockaddr_inet to = sockaddr_of(&route->addr, d->port);
	_close_ int fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	const int one = 1;
	int e;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		return -errno;
	reset_on_close(fd);
	if (connect(fd, &to.sa, sockaddr_len(&to)) < 0 && errno != EINPROGRESS)
		return -errno;
	while (a->fd >= 0)
		a++;
	e = loop_watch(d->dialer->loop, fd, EPOLLOUT, attempt_event, a);
	if (e < 0)
		return e;
	a->fd = take_fd(fd);
	a->route = *route;
	d->flying++;
	return 0;
}

/* The next address that may be dialled, the families taking turns. */
static bool dial_pick(struct dial *d, struct route *ret)
{
	while (d->tried + d->refused < NP_ADDRS_PER_NAME) {
		enum family f = d->turn;

		if (d->next[f] == d->left[f].count)
			f = !f;
		if (d->next[f] == d->left[f].count)
			return false;
		*ret = (struct route){ d->left[f].addrs[d->next[f]++], d->aliases[f] };
		d->turn = !f;
		if (d->may(d->ctx, ret)) {
			d->tried++;
			return true;
		}
		d->refused++;
		if (!d->tried)
			d->result.route = *ret;
	}
	return false;
}

/* Is it time for another attempt? */
static bool dial_is_due(const struct dial *d, uint64_t now)
{
	if (d->flying == NP_EYEBALLS_MAX)
		return false;
	if (!d->connect_ns && !d->known_all_of[FAMILY_V6])
		return d->known_all_of[FAMILY_V4] && now - d->v4_ns >= NP_LAGGARD_MS * NS_PER_MS;
	return !d->flying || now - d->latest_ns >= NP_EYEBALL_MS * NS_PER_MS;
}

/* Starts what is due, and ends the dial when nothing is left of it. */
static void dial_advance(struct dial *d, bool at_once)
{
	uint64_t now = loop_now_ns();
	struct route route;

	if (d->connect_ns && now - d->connect_ns >= d->connect_ms * NS_PER_MS) {
		dial_fail(d, -ETIMEDOUT, error_words(-ETIMEDOUT));
		return;
	}
	while ((at_once && d->flying < NP_EYEBALLS_MAX) || dial_is_due(d, now)) {
		int e;

		if (!dial_pick(d, &route))
			break;
		d->result.route = route;
		d->latest_ns = now;
		if (!d->connect_ns)
			d->connect_ns = now;
		e = attempt_start(d, &route);
		if (e == 0) {
			at_once = false;
			continue;
		}
		d->result.error = e;
		at_once = true;
	}
	if (d->flying || !d->known_all_of[FAMILY_V6] || !d->known_all_of[FAMILY_V4])
		return;
	if (d->tried) {
		dial_fail(d, d->result.error, error_words(d->result.error));
	} else {
		d->result.refused = true;
		dial_fail(d, -EACCES, "the address may not be reached");
	}
}

/* -- names --------------------------------------------------------------------- */

static void dial_resolved(void *ctx, const struct known *known)
{
	struct dial *d = ctx;

	if (d->finished)
		return;
	for (enum family f = 0; f < FAMILY_COUNT; f++) {
		if (d->known_all_of[f] || !known->known_all_of[f])
			continue;
		d->known_all_of[f] = true;
		d->aliases[f] = aliases_ref(known->aliases[f]);
		d->left[f].count = known->family[f].count;
		memcpy(d->left[f].addrs, known->family[f].addrs, known->family[f].count * sizeof(struct np_addr));
		if (f == FAMILY_V4)
			d->v4_ns = loop_now_ns();
	}
	if (known->error)
		dial_fail(d, known->error, known->words);
	else
		dial_advance(d, false);
}

int dial_start(struct dialer *dialer, const struct dial_terms *terms, struct dial **ret)
{
	const struct host *host = terms->host;
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->dialer = dialer;
	d->may = terms->may;
	d->done = terms->done;
	d->ctx = terms->ctx;
	d->port = terms->port;
	d->resolution.owner = terms->owner;
	d->resolution.on_known = dial_resolved;
	d->resolution.ctx = d;
	d->task.fn = dial_notify;
	d->task.data = d;
	d->started_ns = loop_now_ns();
	d->connect_ms = NP_CONNECT_MS;
	d->result.fd = -1;
	for (size_t i = 0; i < NP_EYEBALLS_MAX; i++)
		d->attempts[i] = (struct attempt){ .dial = d, .fd = -1 };
	LIST_INSERT_HEAD(&dialer->dials, d, link);
	if (host->is_addr) {
		struct addresses *left = &d->left[np_addr_is_v4(&host->addr) ? FAMILY_V4 : FAMILY_V6];

		left->count = 1;
		left->addrs[0] = host->addr;
		d->known_all_of[FAMILY_V6] = d->known_all_of[FAMILY_V4] = true;
		dial_advance(d, false);
	} else {
		dial_resolved(d, resolver_get(dialer->resolver, host->name, &d->resolution));
	}
	*ret = d;
	return 0;
}

/* -- the dialer ---------------------------------------------------------------- */

/* may() is called in here, and done() is not: the next one stays. */
void dialer_tick(struct dialer *dialer)
{
	resolver_tick(dialer->resolver);
	for (struct dial *d = LIST_FIRST(&dialer->dials), *next; d; d = next) {
		next = LIST_NEXT(d, link);
		dial_advance(d, false);
	}
}

void dialer_cancel(struct dialer *dialer)
{
	resolver_cancel(dialer->resolver);
}

int dialer_new(const struct dialer_config *config, struct dialer **ret)
{
	_free_ struct dialer *dialer = calloc(1, sizeof(*dialer));
	int e;

	if (!dialer)
		return -ENOMEM;
	dialer->loop = config->loop;
	LIST_INIT(&dialer->dials);
	e = resolver_new(config->loop, config->resolvers, config->hosts, &dialer->resolver);
	if (e < 0)
		return e; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	*ret = take_ptr(dialer);
	return 0;
}

void dialer_free(struct dialer *dialer)
{
	if (!dialer)
		return;
	resolver_free(dialer->resolver);
	free(dialer);
}
