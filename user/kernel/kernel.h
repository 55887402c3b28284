/* SPDX-License-Identifier: MIT */
/*
 * The kernel side as the rest of the daemon sees it. This folder is the only one that knows libbpf. Enforcement belongs to the
 * kernel: nothing here undoes it except kernel_uninstall().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "event.h"
#include "loop/loop.h"
#include "netns/netns.h"
#include "policy/tables.h"
#include "session/gate.h"

struct kernel;

struct kernel_config {
	const char *pin_dir; /* on a bpf file system, or below /sys/fs/bpf, which is then mounted */
	const char *slice;   /* relative to the cgroup v2 mount */
	struct loop *loop;
	void (*on_event)(void *data, const struct np_event *event);
	/* A cgroup of a sandbox became populated or empty. */
	void (*on_cgroup)(void *data, uint64_t cgroup_id);
	void *data;
};

/* Loads or takes over the gate and attaches it to the slice and every device. When it returns 0 the kernel
 * enforces. On failure a sentence is in problem, and whatever a predecessor left goes on enforcing. */
int kernel_open(const struct kernel_config *config, struct kernel **ret, char problem[static 512]);
void kernel_close(struct kernel *kernel); /* the gate stays */
bool kernel_took_over(const struct kernel *kernel);
/* Detaches and unpins the gate of an older ABI version that is there beside ours: when the record is joined with the
 * kernel and a policy holds. *ret_from: its version; 0: there was none. *ret_sandboxes: how many came over. */
int kernel_upgrade_finish(struct kernel *kernel, unsigned *ret_from, unsigned *ret_sandboxes);
bool kernel_is_upgrade(const struct kernel *kernel); /* what the gate has counted begins anew with this start */

struct gate kernel_gate(struct kernel *kernel);

/* Writes a policy beside the live one; nothing else fails after that. Events of the gate name it by the epoch. */
int kernel_policy_prepare(struct kernel *kernel, const struct gate_tables *tables, uint32_t *ret_epoch);
/* Makes the one that was prepared the live one, in one step. Before the first, nothing is allowed by rule, or a
 * predecessor's policy holds. */
void kernel_policy_commit(struct kernel *kernel);

/* The cgroup that the inspector must be started in, and its sockets made in: only there it is told whose connection it has. */
const char *kernel_inspector_cgroup(const struct kernel *kernel);
uint64_t kernel_inspector_cgroup_id(const struct kernel *kernel); /* another one: it was removed, and made again */
/* Steers there from now on, in the host's network namespace or (netns) in another. NULL: there is no inspector, and
 * what it should see is refused. The gate also notices when they are closed. */
struct kernel_netns;
int kernel_inspector_set(struct kernel *kernel, const struct kernel_netns *netns,
			 const struct inspector_sockets *sockets);

/* A network namespace other than the host's that sandboxes live in (namespaces.c). Those of a predecessor that live on are there
 * from the start. */
struct kernel_netns {
	uint64_t cookie;    /* the kernel's number of it */
	unsigned sandboxes; /* that live there */
	ino_t inode;
	int fd;
	bool wired; /* it has devices: a container's, or one that has a way out */
};
/* Where the processes of a cgroup live, by the first of them. *ret_fd -1: in the host's, or there is none (*ret_cookie 0). */
int kernel_netns_look(struct kernel *kernel, const struct gate_cgroup *cg, uint64_t *ret_cookie, int *ret_fd);
/* Makes it the home of a sandbox. wired: it has devices of its own, and the sandbox is not to leave it. Takes fd, also when it
 * fails. -ENOSPC: there are NP_NAMESPACES_MAX. */
int kernel_netns_add(struct kernel *kernel, uint64_t cgroup_id, int fd, bool wired, const struct kernel_netns **ret);
/* Attaches to devices of the host that are new, at once: the kernel's news of them come a moment later. */
int kernel_devices_look(struct kernel *kernel);
bool kernel_cgroup_is_there(const struct kernel *kernel, uint64_t cgroup_id);
/* It goes with the last of its sandboxes. An unknown one is fine. */
void kernel_netns_remove(struct kernel *kernel, uint64_t cgroup_id);
/* Tries once more to take over homes of a predecessor's that failed (descriptors, memory), and returns how many still do. *ret_tried: there
 * were any. */
unsigned kernel_netns_mend(struct kernel *kernel, bool *ret_tried);
/* A predecessor knew its home, and nobody was there when this daemon looked. */
bool kernel_netns_lost(const struct kernel *kernel, uint64_t cgroup_id);
const struct kernel_netns *kernel_netns_find(const struct kernel *kernel, uint64_t cgroup_id);
const struct kernel_netns *kernel_netns_next(const struct kernel *kernel, const struct kernel_netns *after);
/* The map that tells whose queries come from which port (dns_origin.h), to be mapped for reading; nobody can write it. It
 * stays the kernel's. */
int kernel_dns_origins_fd(const struct kernel *kernel);

/* True when pid is in a sandbox or below the slice, or when that cannot be told. */
bool kernel_is_sandboxed(struct kernel *kernel, pid_t pid);

/* Counts of one sandbox; -ENOENT when the kernel does not hold it. */
void kernel_drain(struct kernel *kernel); /* hands over the events that are in the ring */
int kernel_meter(struct kernel *kernel, uint64_t cgroup_id, struct np_meter *ret);

/* Looks whether every part of the gate is where it must be, and puts back what is not; once a second. -errno with words for
 * what could not be put back. */
int kernel_check(struct kernel *kernel, char problem[static 512]);
/* What was put back since the last call; false: nothing was. */
bool kernel_mended(struct kernel *kernel, char text[static 512]);

/* Appends JSON members to an open object: "cgroup", "pins", "devices", "refused", "helper_errors", "cut_late", and last "features",
 * an array that is left open for the caller's own. */
void kernel_describe(struct kernel *kernel, struct buf *out);
/* "maps", which it counts, and "programs". */
void kernel_node(struct kernel *kernel, struct buf *out);

void kernel_metrics(struct kernel *kernel, struct buf *out); /* begins with numbers of netpawl_refusals_total */
void feature_describe(struct buf *out, const char *name, bool present, const char *yes, const char *no);

/* Detaches and unpins everything below pin_dir, kills and removes the sandboxes of the slice. Refuses with -EBUSY
 * while processes run in an adopted cgroup, which would get their network back, unless force is set. */
int kernel_uninstall(const char *pin_dir, const char *slice, bool force, char problem[static 512]);

/* What this kernel can do, tried and not guessed. Appends the JSON member "features". Needs root. */
void kernel_probe(struct buf *out);
