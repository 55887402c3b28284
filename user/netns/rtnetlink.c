/* SPDX-License-Identifier: MIT */
#include "netns/rtnetlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OVERFULL UINT32_MAX /* as the length: it did not fit */

int rtnl_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

void rtnl_append(struct rtnl_request *rq, const void *data, size_t size)
{
	size_t at = NLMSG_ALIGN(rq->header.nlmsg_len);

	if (rq->header.nlmsg_len == OVERFULL || size > sizeof(*rq) || at + NLMSG_ALIGN(size) > sizeof(*rq)) {
		rq->header.nlmsg_len = OVERFULL;
		return;
	}
	memcpy((char *)rq + at, data, size);
	rq->header.nlmsg_len = (__u32)(at + size);
}

void rtnl_begin(struct rtnl_request *rq, unsigned type, unsigned flags, const void *body, size_t size)
{
	memset(rq, 0, sizeof(*rq));
	rq->header = (struct nlmsghdr){ .nlmsg_len = sizeof(rq->header),
					.nlmsg_type = (__u16)type,
					.nlmsg_flags = (__u16)(NLM_F_REQUEST | flags) };
	rtnl_append(rq, body, size);
}

void rtnl_put(struct rtnl_request *rq, unsigned type, const void *data, size_t size)
{
	struct rtattr attr = { .rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = (unsigned short)type };

	rtnl_append(rq, &attr, sizeof(attr));
	if (size)
		rtnl_append(rq, data, size);
}

struct rtattr *rtnl_nest(struct rtnl_request *rq, unsigned type)
{
	size_t at = NLMSG_ALIGN(rq->header.nlmsg_len);

	rtnl_put(rq, type, NULL, 0);
	return rq->header.nlmsg_len == OVERFULL ? NULL : (struct rtattr *)((char *)rq + at);
}

void rtnl_nest_end(struct rtnl_request *rq, struct rtattr *nest)
{
	if (nest && rq->header.nlmsg_len != OVERFULL)
		nest->rta_len = (unsigned short)((char *)rq + rq->header.nlmsg_len - (char *)nest);
}

int rtnl_ask(int fd, struct rtnl_request *rq, char *answer, size_t size)
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	const struct nlmsgerr *error = NLMSG_DATA(header);
	ssize_t n;

	if (rq->header.nlmsg_len == OVERFULL)
		return -EMSGSIZE;
	if (send(fd, rq, rq->header.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, answer, size, 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(*header) || header->nlmsg_len > (size_t)n)
		return -EPROTO;
	if (header->nlmsg_type != NLMSG_ERROR)
		return 0;
	return header->nlmsg_len < NLMSG_LENGTH(sizeof(*error)) ? -EPROTO : error->error;
}

int rtnl_send(int fd, struct rtnl_request *rq)
{
	char answer[1024] __attribute__((aligned(8)));

	rq->header.nlmsg_flags |= NLM_F_ACK;
	return rtnl_ask(fd, rq, answer, sizeof(answer));
}

struct dump {
	int (*fn)(void *data, const struct nlmsghdr *message);
	void *data;
	bool over, changed;
};

/* One datagram of it. */
static int dump_read(struct dump *dump, const char *part, size_t n)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)part;

	for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
		const struct nlmsgerr *error = NLMSG_DATA(message);
		int r;

		dump->changed |= message->nlmsg_flags & NLM_F_DUMP_INTR;
		dump->over = message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR;
		if (dump->over) /* both begin with an errno */
			return message->nlmsg_len < NLMSG_LENGTH(sizeof(int)) ? -EPROTO : error->error;
		r = dump->fn(dump->data, message);
		if (r)
			return r;
	}
	return 0;
}

int rtnl_dump(int fd, struct rtnl_request *rq, int (*fn)(void *data, const struct nlmsghdr *message), void *data)
{
	char part[32768] __attribute__((aligned(8)));
	struct dump dump = { .fn = fn, .data = data };
	int r = 0;

	if (rq->header.nlmsg_len == OVERFULL)
		return -EMSGSIZE;
	rq->header.nlmsg_flags |= NLM_F_DUMP;
	if (send(fd, rq, rq->header.nlmsg_len, 0) < 0)
		return -errno;
	while (r == 0 && !dump.over) {
		ssize_t n = recv(fd, part, sizeof(part), 0);

		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : n == 0 ? -EPROTO : dump_read(&dump, part, (size_t)n);
	}
	return r == 0 && dump.changed ? -EINTR : r;
}
