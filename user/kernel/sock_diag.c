/* SPDX-License-Identifier: MIT */
#include "kernel/sock_diag.h"

#include <errno.h>
#include <stddef.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH 128 /* their answers fit into a receive buffer of the usual size */

struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

static void diag_fill(const struct np_cut_order *order, struct inet_diag_sockid *ret)
{
	const struct np_cut_flow *flow = &order->flow;
	/* An IPv4 address is the last word of ours, and the first of theirs. */
	size_t skip = order->family == AF_INET ? 12 : 0;

	*ret = (struct inet_diag_sockid){
		.idiag_sport = htons(flow->near_port),
		.idiag_dport = htons(flow->far_port),
		.idiag_if = order->device,
		.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
	};
	if (order->cookie) {
		ret->idiag_cookie[0] = (__u32)order->cookie;
		ret->idiag_cookie[1] = (__u32)(order->cookie >> 32);
	}
	memcpy(ret->idiag_src, flow->near_addr.b + skip, 16 - skip);
	memcpy(ret->idiag_dst, flow->far_addr.b + skip, 16 - skip);
}

int diag_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static void diag_count(int error, struct diag_result *ret)
{
	switch (error) {
	case 0:
		ret->destroyed++;
		break;
	case -ENOENT:
	case -ESTALE: /* the address is another socket's by now */
		ret->gone++;
		break;
	default:
		ret->failed++;
		ret->unsupported |= error == -EOPNOTSUPP;
	}
}

struct diag_answer {
	struct nlmsghdr header;
	struct nlmsgerr error;
	char rest[128]; /* of the request, which comes back with an error */
};

/* The kernel does what a datagram asks for, one message after the other, before send() returns; by then its answers are
 * there: of each that failed, and of the last. One for which there was no room makes recv() fail, once: then none of them is
 * taken for ended. */
static void diag_destroy_batch(int fd, const struct np_cut_order *orders, size_t n, struct diag_result *ret)
{
	struct diag_request requests[BATCH] = { 0 };
	struct diag_result failed = { 0 };
	struct diag_answer answer;
	size_t others = n - 1; /* of which nothing bad was heard */
	bool last = false;

	for (size_t i = 0; i < n; i++) {
		requests[i] = (struct diag_request){
			.header = { .nlmsg_len = sizeof(requests[i]),
				    .nlmsg_type = SOCK_DESTROY,
				    .nlmsg_flags = NLM_F_REQUEST | (i == n - 1 ? NLM_F_ACK : 0),
				    .nlmsg_seq = (__u32)i },
			.body = { .sdiag_family = (__u8)orders[i].family,
				  .sdiag_protocol = (__u8)orders[i].flow.protocol,
				  .idiag_states = ~0u },
		};
		diag_fill(&orders[i], &requests[i].body.id);
	}
	if (send(fd, requests, n * sizeof(*requests), 0) == (ssize_t)(n * sizeof(*requests))) {
		while (!last && recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)offsetof(struct diag_answer, rest) &&
		       answer.header.nlmsg_type == NLMSG_ERROR) {
			diag_count(answer.error.error, &failed);
			last = answer.header.nlmsg_seq == n - 1;
			others -= !last && others;
		}
	}
	if (last) {
		ret->destroyed += failed.destroyed + (unsigned)others;
		ret->gone += failed.gone;
		ret->failed += failed.failed;
		ret->unsupported |= failed.unsupported;
		return;
	}
	ret->failed += (unsigned)n;
	for (size_t i = 0; i <= n && (recv(fd, &answer, sizeof(answer), 0) > 0 || errno == ENOBUFS); i++)
		; /* late answers are not those of the next batch */
}

void diag_destroy(int fd, const struct np_cut_order *orders, size_t n, struct diag_result *ret)
{
	while (n) {
		size_t batch = n < BATCH ? n : BATCH;

		diag_destroy_batch(fd, orders, batch, ret);
		orders += batch;
		n -= batch;
	}
}
