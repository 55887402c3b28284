/* SPDX-License-Identifier: MIT */
/*
 * np_host_addrs: which addresses are "this host", for the host's network namespace and for each container's. What is true is read from
 * the kernel anew each time. What the map has is remembered here, by namespace: with hundreds of containers, each of which is
 * looked at again and again, nobody goes through the addresses of all others.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "kernel/internal.h"
#include "netns/interfaces.h"

struct own_addr {
	struct table_node node; /* by netns and address */
	LIST_ENTRY(own_addr) next;
	struct np_own_addr key;
	unsigned look; /* that has found it last */
};

struct own_addrs {
	struct table_node node; /* by netns */
	uint64_t netns;
	unsigned look;
	LIST_HEAD(own_addr_list, own_addr) list;
};

static uint64_t addrs_hash(uint64_t netns)
{
	return hash_mark(&netns, sizeof(netns));
}

static uint64_t addr_hash(const struct np_own_addr *key)
{
	return hash_mark(key, sizeof(*key));
}

static struct own_addrs *addrs_find(const struct kernel *kernel, uint64_t netns)
{
	return TABLE_FIND(&kernel->addresses.by_netns, addrs_hash(netns), struct own_addrs, node, it,
			  it->netns == netns);
}

static struct own_addrs *addrs_get(struct kernel *kernel, uint64_t netns)
{
	struct table *table = &kernel->addresses.by_netns;
	struct own_addrs *addrs = addrs_find(kernel, netns);

	if (addrs)
		return addrs;
	addrs = table_reserve(table) == 0 ? calloc(1, sizeof(*addrs)) : NULL;
	if (!addrs)
		return NULL;
	addrs->netns = netns;
	table_add(table, &addrs->node, addrs_hash(netns));
	return addrs;
}

static struct own_addr *addr_find(const struct kernel *kernel, const struct np_own_addr *key)
{
	return TABLE_FIND(&kernel->addresses.by_address, addr_hash(key), struct own_addr, node, it,
			  !memcmp(&it->key, key, sizeof(*key)));
}

static int addr_remember(struct kernel *kernel, struct own_addrs *addrs, const struct np_own_addr *key)
{
	struct table *table = &kernel->addresses.by_address;
	struct own_addr *addr = addr_find(kernel, key);

	if (!addr) {
		addr = table_reserve(table) == 0 ? calloc(1, sizeof(*addr)) : NULL;
		if (!addr)
			return -ENOMEM;
		addr->key = *key;
		table_add(table, &addr->node, addr_hash(key));
		LIST_INSERT_HEAD(&addrs->list, addr, next);
	}
	addr->look = addrs->look;
	return 0;
}

static void addr_forget(struct kernel *kernel, struct own_addr *addr)
{
	table_remove(&kernel->addresses.by_address, &addr->node);
	LIST_REMOVE(addr, next);
	free(addr);
}

/* Those that the last look has not found; all: all of them, and the namespace. */
static void addrs_forget(struct kernel *kernel, struct own_addrs *addrs, bool all)
{
	struct own_addr *addr, *next;

	for (addr = LIST_FIRST(&addrs->list); addr; addr = next) {
		next = LIST_NEXT(addr, next);
		if (!all && addr->look == addrs->look)
			continue;
		bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.np_host_addrs), &addr->key);
		addr_forget(kernel, addr);
	}
	if (!all)
		return;
	table_remove(&kernel->addresses.by_netns, &addrs->node);
	free(addrs);
}

/* -- the kernel's ---------------------------------------------------------------------------------- */

struct look {
	struct kernel *kernel;
	struct own_addrs *addrs;
	unsigned left;
	int result; /* the last error: what else has room is put there */
};

static int addr_put(void *data, const struct np_addr *addr, bool broadcast)
{
	struct look *look = data;
	const struct np_own_addr key = { .netns = look->addrs->netns, .addr = *addr };
	const __u8 kind = broadcast ? NP_ADDR_BROADCAST : NP_ADDR_OWN;
	const struct own_addr *known = addr_find(look->kernel, &key);
	int r = 0;

	/* A list that changed meanwhile is read again, and an address may be another device's as well. */
	if (!known || known->look != look->addrs->look) {
		if (!look->left)
			return 1;
		look->left--;
		r = addr_remember(look->kernel, look->addrs, &key);
	}
	if (r == 0 &&
	    bpf_map_update_elem(bpf_map__fd(look->kernel->skel->maps.np_host_addrs), &key, &kind, BPF_ANY) < 0)
		r = -errno;
	look->result = r < 0 ? r : look->result;
	return 0;
}

/* A container may give itself addresses: most of it are nobody's but its own. What has no room is no more than an address that
 * its sockets cannot be bound to. */
int addresses_update(struct kernel *kernel, const struct namespace *ns)
{
	struct look look = { .kernel = kernel,
			     .addrs = addrs_get(kernel, ns ? ns->pub.cookie : kernel->netns),
			     .left = ns ? NP_NETNS_ADDRS_MAX : UINT_MAX };
	int r;

	if (!look.addrs)
		return -ENOMEM;
	look.addrs->look++;
	r = interfaces_each_addr(addr_put, &look);
	if (r == -EINTR) /* one that was missed is this host's all the same: netlink has more to tell */
		return look.result;
	if (r < 0)
		return r;
	addrs_forget(kernel, look.addrs, false);
	return look.result;
}

/* -- namespaces come and go -------------------------------------------------------------------------- */

int addresses_open(struct kernel *kernel)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_host_addrs), r = 0;
	struct np_own_addr key, previous;
	bool more = bpf_map_get_next_key(fd, NULL, &key) == 0;

	while (r == 0 && more) {
		struct own_addrs *addrs = addrs_get(kernel, key.netns);

		r = addrs ? addr_remember(kernel, addrs, &key) : -ENOMEM;
		previous = key;
		more = bpf_map_get_next_key(fd, &previous, &key) == 0;
	}
	return r;
}

void addresses_leave(struct kernel *kernel, uint64_t netns)
{
	struct own_addrs *addrs = addrs_find(kernel, netns);

	if (addrs)
		addrs_forget(kernel, addrs, true);
}

void addresses_forget_gone(struct kernel *kernel, const __u64 *but, size_t n_but)
{
	struct table_node *n = table_walk(&kernel->addresses.by_netns, NULL), *next;

	for (; n; n = next) {
		struct own_addrs *addrs = container_of(n, struct own_addrs, node);

		next = table_walk(&kernel->addresses.by_netns, n);
		if (namespace_is_gone(kernel, addrs->netns, but, n_but))
			addrs_forget(kernel, addrs, true);
	}
}

void addresses_close(struct kernel *kernel)
{
	struct table_node *n;

	while ((n = table_walk(&kernel->addresses.by_address, NULL)))
		addr_forget(kernel, container_of(n, struct own_addr, node));
	table_clear(&kernel->addresses.by_address);
	while ((n = table_walk(&kernel->addresses.by_netns, NULL))) {
		table_remove(&kernel->addresses.by_netns, n);
		free(container_of(n, struct own_addrs, node));
	}
	table_clear(&kernel->addresses.by_netns);
}
