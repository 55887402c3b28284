/* SPDX-License-Identifier: MIT */
#include "kernel/diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#ifndef INET_DIAG_CGROUP_ID
#define INET_DIAG_CGROUP_ID 21
#endif

struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

static int diag_open(void)
{
	struct timeval patience = { .tv_sec = 2 }; /* a kernel that does not answer may not hang the daemon */
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd < 0 ? -errno : fd;
}

static int diag_send(int fd, const struct diag_request *request)
{
	return send(fd, request, sizeof(*request), 0) < 0 ? -errno : 0;
}

static void diag_parse(const struct nlmsghdr *header, uint8_t protocol, struct diag_socket *ret)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	int len = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*message));

	*ret = (struct diag_socket){
		.family = message->idiag_family,
		.protocol = protocol,
		.state = message->idiag_state,
		.inode = message->idiag_inode,
		.message = message,
	};
	for (const struct rtattr *a = (const void *)(message + 1); RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == INET_DIAG_CGROUP_ID && RTA_PAYLOAD(a) >= sizeof(ret->cgroup_id))
			memcpy(&ret->cgroup_id, RTA_DATA(a), sizeof(ret->cgroup_id));
}

/* Reads answers until the kernel says that it is done. */
static int diag_receive(int fd, uint8_t protocol, int (*fn)(void *data, const struct diag_socket *socket), void *data)
{
	static _Alignas(struct nlmsghdr) char buffer[32768];

	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
		int len = (int)n;

		if (n < 0)
			return -errno;
		for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			struct diag_socket socket;
			int r;

			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			diag_parse(h, protocol, &socket);
			r = fn(data, &socket);
			if (r < 0)
				return r;
		}
	}
}

int diag_each(int (*fn)(void *data, const struct diag_socket *socket), void *data)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 }, protocols[] = { IPPROTO_TCP, IPPROTO_UDP };

	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
			struct diag_request request = {
				.header = { .nlmsg_len = sizeof(request),
					    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
				.body = { .sdiag_family = families[f],
					  .sdiag_protocol = protocols[p],
					  .idiag_states = ~0u },
			};
			_close_ int fd = diag_open();
			int r = fd < 0 ? fd : diag_send(fd, &request);

			if (r == 0)
				r = diag_receive(fd, protocols[p], fn, data);
			if (r < 0)
				return r;
		}
	return 0;
}

int diag_destroy(const struct diag_socket *socket)
{
	const struct inet_diag_msg *message = socket->message;
	struct diag_request request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DESTROY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.body = { .sdiag_family = socket->family,
			  .sdiag_protocol = socket->protocol,
			  .idiag_states = 1u << socket->state,
			  .id = message->id },
	};
	_close_ int fd = diag_open();
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer = { 0 };

	if (fd < 0)
		return fd;
	if (diag_send(fd, &request) < 0 || recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer))
		return -EIO;
	return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}
