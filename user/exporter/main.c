/* SPDX-License-Identifier: MIT */
/*
 * netpawl-export: brings what netpawld knows to another system of the host, so that the daemon neither listens to the network nor
 * reads what such a system answers. One process for each, started by the daemon: metrics on a loopback port, events to an
 * OTLP receiver, events to journald. It has a user of its own, no file but its place in the record, and a reader's say.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/loopback.h"
#include "exporter/daemon_calls.h"
#include "exporter/journald.h"
#include "exporter/otlp_post.h"
#include "exporter/scrape.h"
#include "link/export_message.h"
#include "link/helper.h"
#include "vocab/limits.h"

enum kind { KIND_METRICS, KIND_OTLP, KIND_JOURNALD, KIND_COUNT };

/* What it has before it sees no files any more. */
struct means {
	enum kind kind;
	int fd; /* it listens at, or journald's */
	struct otlp_target otlp;
};

static int means_open(struct means *means, const char *kind, const char *where, const char *path)
{
	union sockaddr_inet address;
	int r = 0;

	means->fd = -1;
	if (!strcmp(kind, "metrics")) {
		means->kind = KIND_METRICS;
		r = means->fd = loopback_listen(where, NP_METRICS_CONNECTIONS, &address);
	} else if (!strcmp(kind, "otlp")) {
		means->kind = KIND_OTLP;
		means->otlp = (struct otlp_target){ .host_port = where, .path = path, .ms = NP_EXPORT_MS };
		gethostname(means->otlp.host, sizeof(means->otlp.host) - 1);
		r = loopback_parse(where, &means->otlp.to);
	} else if (!strcmp(kind, "journald")) {
		means->kind = KIND_JOURNALD;
		r = means->fd = journald_connect(where);
	} else {
		r = -EINVAL;
	}
	return r < 0 ? r : 0;
}

static int filter_load(enum kind kind)
{
	/* clang-format off */
	static const int calls[] = {
		SCMP_SYS(writev), SCMP_SYS(shutdown), SCMP_SYS(setsockopt), SCMP_SYS(getsockopt), SCMP_SYS(fcntl), SCMP_SYS(getrandom),
	};
	static const int of_metrics[] = {
		SCMP_SYS(accept4), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
		SCMP_SYS(epoll_pwait), SCMP_SYS(getsockname), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(eventfd2),
		SCMP_SYS(pipe2), SCMP_SYS(newfstatat), SCMP_SYS(fstat), SCMP_SYS(sendfile),
	};
	static const int of_events[] = { SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(fdatasync) };
	/* clang-format on */
	const int *more = kind == KIND_METRICS ? of_metrics : of_events;
	const size_t n = kind == KIND_METRICS ? ARRAY_SIZE(of_metrics) : ARRAY_SIZE(of_events);
	scmp_filter_ctx ctx;
	int r = call_filter_make(calls, ARRAY_SIZE(calls), &ctx);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, more[i], 0);
	if (r == 0 && kind == KIND_OTLP)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(connect), 0);
	if (r == 0 && kind == KIND_OTLP)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET),
				     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM));
	if (r == 0 && kind == KIND_OTLP)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET6),
				     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM));
	return call_filter_load(ctx, r);
}

static int export_run(struct means *means)
{
	struct receiver receiver;

	if (means->kind == KIND_METRICS) {
		daemon_ready();
		return scrape_serve(means->fd);
	}
	receiver = means->kind == KIND_OTLP ? otlp_receiver(&means->otlp) : journald_receiver(&means->fd);
	return pump_run(&receiver, EXPORT_FD_CURSOR);
}

int main(int argc, char **argv)
{
	struct means means = { 0 };
	const uid_t uid = helper_begin("netpawl-export", argc, 6, argv);
	int r;

	if (!uid)
		return 2;
	json_object_seed(0); /* while there are files: its random numbers */
	r = means_open(&means, argv[3], argv[4], argv[5]);
	if (r == 0)
		r = privileges_give_up(uid, argv[2], 64);
	if (r == 0)
		r = filter_load(means.kind);
	if (r == 0)
		r = export_run(&means);
	if (r < 0)
		log_warning("%s %s: %s", argv[3], argv[4], strerror(-r));
	return r < 0;
}
