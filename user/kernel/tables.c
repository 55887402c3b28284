/* SPDX-License-Identifier: MIT */
/*
 * The policy in the kernel. A new one is written beside the live one, under an
 * epoch of its own; then one store to np_in_force makes it the live one.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel/internal.h"
#include "rules.h"

int tables_open(struct kernel *kernel)
{
	void *p = mmap(NULL, sizeof(struct np_in_force), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(kernel->skel->maps.np_in_force), 0);

	if (p == MAP_FAILED)
		return -errno;
	kernel->in_force = p;
	return 0;
}

void tables_close(struct kernel *kernel)
{
	if (kernel->in_force)
		munmap(kernel->in_force, sizeof(struct np_in_force));
}

static struct np_in_force in_force_get(const struct kernel *kernel)
{
	uint64_t word = __atomic_load_n(kernel->in_force, __ATOMIC_ACQUIRE);
	struct np_in_force in_force;

	memcpy(&in_force, &word, sizeof(in_force));
	return in_force;
}

static void in_force_set(struct kernel *kernel, const struct np_in_force *in_force)
{
	uint64_t word;

	memcpy(&word, in_force, sizeof(word));
	__atomic_store_n(kernel->in_force, word, __ATOMIC_RELEASE);
}

/* Deletes the entries of every epoch but one. All keys have their epoch at the same place. */
static int map_prune(const struct bpf_map *map, size_t epoch_at, uint32_t epoch)
{
	int fd = bpf_map__fd(map);
	size_t size = bpf_map__key_size(map), max = bpf_map__max_entries(map), n = 0;
	_free_ char *keys = calloc(max + 1, size);
	int r = 0;

	if (!keys)
		return -ENOMEM;
	/* Keys first: a deleted key has no next one. */
	for (char *key = keys; n < max && bpf_map_get_next_key(fd, n ? key - size : NULL, key) == 0; key += size)
		n++;
	for (size_t i = 0; i < n; i++) {
		uint32_t of;

		memcpy(&of, keys + i * size + epoch_at, sizeof(of));
		if (of != epoch && bpf_map_delete_elem(fd, keys + i * size) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

/* Until every program that runs now has ended (a grace period of RCU). */
static void grace_wait(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		usleep(100000); /* none of them runs that long */
}

/* What a predecessor left behind when it died within a reload, or an old policy once another one is live. */
static int tables_prune(struct kernel *kernel, uint32_t epoch)
{
	int r = map_prune(kernel->skel->maps.np_nets, offsetof(struct np_net_key, epoch), epoch);
	int r2 = map_prune(kernel->skel->maps.np_net_ports, offsetof(struct np_port_key, epoch), epoch);
	int r3 = map_prune(kernel->skel->maps.np_ports, offsetof(struct np_listed_key, epoch), epoch);

	return r ? r : r2 ? r2 : r3;
}

static int tables_write(struct kernel *kernel, const struct gate_tables *tables, uint32_t epoch)
{
	int nets = bpf_map__fd(kernel->skel->maps.np_nets), net_ports = bpf_map__fd(kernel->skel->maps.np_net_ports);
	int ports = bpf_map__fd(kernel->skel->maps.np_ports);

	for (size_t i = 0; i < tables->n_ports; i++) {
		struct np_port_key key = tables->ports[i].key;

		key.epoch = epoch;
		if (bpf_map_update_elem(net_ports, &key, &tables->ports[i].value, BPF_NOEXIST) < 0)
			return -errno;
	}
	for (size_t i = 0; i < tables->n_nets; i++) {
		struct np_net_key key = tables->nets[i].key;

		key.epoch = epoch;
		if (bpf_map_update_elem(nets, &key, &tables->nets[i].class, BPF_NOEXIST) < 0)
			return -errno;
	}
	for (size_t i = 0; i < tables->n_listed; i++) {
		struct np_listed_key key = { .epoch = epoch, .port = tables->listed[i].port };

		if (bpf_map_update_elem(ports, &key, &tables->listed[i].value, BPF_NOEXIST) < 0)
			return -errno;
	}
	return 0;
}

int kernel_policy_prepare(struct kernel *kernel, const struct gate_tables *tables, uint32_t *ret_epoch)
{
	struct np_in_force now = in_force_get(kernel),
			   next = { .sets = tables->sets, .full_rules = tables->full_rules };
	int r;

	/* The policy before this one may still be in use by a program that began before it was replaced. */
	grace_wait();
	r = tables_prune(kernel, now.epoch);
	if (r < 0)
		return r;
	next.epoch = now.epoch + 1 ? now.epoch + 1 : 1;
	r = tables_write(kernel, tables, next.epoch);
	if (r < 0) {
		tables_prune(kernel, now.epoch);
		return r;
	}
	kernel->next = next;
	*ret_epoch = next.epoch;
	return 0;
}

void kernel_policy_commit(struct kernel *kernel)
{
	in_force_set(kernel, &kernel->next); /* the old one's entries go with the next prepare */
}
