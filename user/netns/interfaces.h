/* SPDX-License-Identifier: MIT */
/*
 * The network devices and addresses of the namespace that the calling thread is in. As if_nameindex() and getifaddrs(), but without
 * the statistics of every device that those have the kernel add up: with hundreds of containers a host has as many devices, and
 * each that comes makes us look again.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "addr.h"

struct interface {
	unsigned index;
	char name[IF_NAMESIZE];
	int peer_netns; /* of a pair whose other end is in another namespace: that one's number here; -1: none */
};

/* The number by which the caller's namespace knows another one, if it has a device that leads there; -1: it has none yet. */
int interfaces_netns_number(int netns);

/* 0; 1 when the list changed each time that it was read, and some may be missing; or -errno. *ret is for free(). */
int interfaces_list(struct interface **ret, size_t *ret_n);

/* Each address, IPv4 ones as mapped; broadcast: one of a network that a device is in. A result other than 0 ends it, and is returned.
 * -EINTR: they changed each time that they were read, and some may be missing. */
int interfaces_each_addr(int (*fn)(void *data, const struct np_addr *addr, bool broadcast), void *data);
