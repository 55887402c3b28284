/* SPDX-License-Identifier: MIT */
/*
 * Requests to rtnetlink: devices, addresses, routes and neighbours of the network namespace that the socket was made
 * in. A request is built in place and sent; the kernel's answer is waited for. A request that was filled beyond its
 * room fails with -EMSGSIZE when it is sent.
 */
#pragma once

#include <linux/rtnetlink.h>
#include <stddef.h>

#define RTNL_ROOM 512

struct rtnl_request {
	struct nlmsghdr header;
	char room[RTNL_ROOM];
};

int rtnl_open(void); /* in the caller's namespace; a descriptor or -errno */

/* body: ifinfomsg, ifaddrmsg, rtmsg or ndmsg. */
void rtnl_begin(struct rtnl_request *rq, unsigned type, unsigned flags, const void *body, size_t size);
void rtnl_put(struct rtnl_request *rq, unsigned type, const void *data, size_t size);
struct rtattr *rtnl_nest(struct rtnl_request *rq, unsigned type); /* what is put from now on is in it; NULL: no room */
void rtnl_nest_end(struct rtnl_request *rq, struct rtattr *nest);
void rtnl_append(struct rtnl_request *rq, const void *data, size_t size); /* as it is, without an attribute */

/* 0 or the kernel's -errno. */
int rtnl_send(int fd, struct rtnl_request *rq);
/* The same, and the message that answers (RTM_GETLINK of one device). */
int rtnl_ask(int fd, struct rtnl_request *rq, char *answer, size_t size);
/* All that there is of what is asked for, message by message, until fn returns something else than 0: that, 0, -errno, or -EINTR when
 * something has changed meanwhile and may be missing. */
int rtnl_dump(int fd, struct rtnl_request *rq, int (*fn)(void *data, const struct nlmsghdr *message), void *data);
