/* SPDX-License-Identifier: MIT */
#include "kernel/sock_diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

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
	memcpy(ret->idiag_src, flow->near_addr.b + skip, 16 - skip);
	memcpy(ret->idiag_dst, flow->far_addr.b + skip, 16 - skip);
}

int diag_destroy(const struct np_cut_order *order)
{
	const struct timeval patience = { .tv_sec = 2 }; /* a kernel that does not answer may not hang the daemon */
	struct diag_request request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DESTROY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.body = { .sdiag_family = (__u8)order->family,
			  .sdiag_protocol = (__u8)order->flow.protocol,
			  .idiag_states = ~0u },
	};
	_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer = { 0 };

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	diag_fill(order, &request.body.id);
	if (send(fd, &request, sizeof(request), 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer))
		return -EIO;
	return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}
