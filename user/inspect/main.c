/* SPDX-License-Identifier: MIT */
/*
 * netpawl-inspect: a process that reads bytes of hostile code, so it has next to nothing: no user of note, no capability, no
 * file, and of the system calls those that move bytes. Started by netpawld, with its descriptors in place.
 */
#include <malloc.h>
#include <linux/sockios.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "net/slab.h"
#include "inspect/worker.h"
#include "link/helper.h"

static const struct worker_fds fds = { .link = LINK_FD,
				       .listeners = { LINK_FD_TCP4, LINK_FD_TCP6 },
				       .dns = { LINK_FD_DNS4, LINK_FD_DNS6 },
				       .dns_origins = LINK_FD_DNS_ORIGINS };

static int filter_load(void)
{
	static const int calls[] = {
		/* bytes */
		SCMP_SYS(readv),
		SCMP_SYS(writev),
		SCMP_SYS(recvmmsg),
		SCMP_SYS(shutdown),
		SCMP_SYS(splice),
		SCMP_SYS(pipe2),
		SCMP_SYS(fcntl),
		/* connections */
		SCMP_SYS(accept4),
		SCMP_SYS(connect),
		SCMP_SYS(bind),
		SCMP_SYS(getsockname),
		SCMP_SYS(getpeername),
		SCMP_SYS(getsockopt),
		SCMP_SYS(setsockopt),
		/* waiting */
		SCMP_SYS(epoll_create1),
		SCMP_SYS(epoll_ctl),
		SCMP_SYS(epoll_wait),
		SCMP_SYS(epoll_pwait),
		SCMP_SYS(timerfd_create),
		SCMP_SYS(timerfd_settime),
		SCMP_SYS(eventfd2),
		SCMP_SYS(gettimeofday),
		SCMP_SYS(clock_nanosleep),
		SCMP_SYS(nanosleep),
		/* memory */
		SCMP_SYS(mlock), /* secrets/locked.c */
		SCMP_SYS(fstat),
		SCMP_SYS(newfstatat),
		/* itself */
		SCMP_SYS(getrandom),
		SCMP_SYS(set_robust_list),
		SCMP_SYS(rseq),
	};
	scmp_filter_ctx ctx;
	int r = call_filter_make(calls, ARRAY_SIZE(calls), &ctx);

	/* Sockets of the internet. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_INET));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_INET6));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, FIONREAD));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, SIOCOUTQ));
	return call_filter_load(ctx, r);
}

int main(int argc, char **argv)
{
	const struct rlimit locked = { NP_LOCKED_BYTES, NP_LOCKED_BYTES };
	struct worker *worker = NULL;
	unsigned char seed[32];
	const uid_t uid = helper_begin("netpawl-inspect", argc, 3, argv);
	int r;

	if (!uid)
		return 2;
	r = slab_init();
	if (r < 0) {
		log_error("memory for records cannot be had: %s", strerror(-r));
		return 1;
	}
	mallopt(M_TRIM_THRESHOLD,
		1 << 20); /* records' buffers come and go at the top of the heap, many times a second */
	/* While there are files: OpenSSL's configuration, and its random numbers. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL) || RAND_bytes(seed, sizeof(seed)) != 1) {
		log_error("OpenSSL does not start");
		return 1;
	}
	setrlimit(RLIMIT_MEMLOCK, &locked); /* while root; who cannot lock memory gets no secrets */
	r = privileges_give_up(uid, argv[2], 65536);
	if (r == 0)
		r = filter_load();
	if (r == 0)
		r = worker_new(&fds, &worker);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	r = worker_run(worker);
	worker_free(worker);
	return r < 0;
}
