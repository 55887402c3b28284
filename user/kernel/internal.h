/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/table.h"
#include "base/cleanup.h"
#include "cut.h"
#include "kernel/cgroup.h"
#include "kernel/kernel.h"
#include "rules.h"

/* bpftool's skeleton is not written for our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "gate.skel.h"
#pragma GCC diagnostic pop

/* Attach types that the libbpf headers we build with do not name yet. */
enum {
	NP_ATTACH_TCX_INGRESS = 46,
	NP_ATTACH_TCX_EGRESS = 47,
	NP_ATTACH_UNIX_CONNECT = 49,
	NP_ATTACH_UNIX_SENDMSG = 50,
};

struct features {
	bool unix_hooks;   /* connect_unix and sendmsg_unix */
	bool sock_destroy; /* bpf_sock_destroy; otherwise SOCK_DESTROY by netlink */
	bool casts;	   /* bpf_rdonly_cast; otherwise every member is read by a helper */
	bool sees_cgroups; /* bpf_cgroup_from_id in syscall programs */
	bool tcx;	   /* otherwise clsact */
	bool lsm;	   /* BPF LSM programs load, and the kernel asks them */
};

/* A program that is loaded, by us or by a predecessor. */
struct gate_program {
	const struct bpf_program *prog;
	int fd;
	uint32_t id; /* the kernel's, of this boot */
};
#define PROGRAMS_MAX 64

enum link_kind { LINK_CGROUP, LINK_NETNS, LINK_DEVICE, LINK_LSM };

/* A link that is held open, and what it must be attached to. */
struct held_link {
	int fd;
	enum link_kind kind;
	uint64_t target;
};

/* Where links are held: "slice", "inspector", "lsm", "net", "c1234" (an adopted cgroup), "if2" (a device),
 * "n4711-if2" (a device in a container's network namespace). */
struct place {
	struct table_node node;
	char name[40];
	struct held_link links[PROGRAMS_MAX]; /* as in struct kernel */
	bool whole;			      /* of a cgroup: no link is missing */
};

struct link_want {
	const char *path; /* of its pin; the folder is there */
	enum link_kind kind;
	uint64_t target;
	int target_fd; /* the same, as bpf_link_create() takes it */
	int attach_type;
};

/* cut_table.c: what it takes to cut by np_sockets */
struct cut_lists {
	int diag_fd, timer_fd;
	const struct np_cut_order *orders; /* np_cut_orders, mapped */
	bool off;			   /* this kernel has no SOCK_DESTROY */
	bool marked;			   /* the pins say that no socket is missing */
	unsigned attached;		   /* programs that came to a cgroup, so far */
	bool all_unnoted;		   /* sockets of any sandbox may be missing */
	uint64_t unnoted[NP_SANDBOXES_PER_SESSION], recheck[NP_SANDBOXES_PER_SESSION]; /* sandboxes */
	size_t n_unnoted, n_recheck;
	uint64_t missed; /* sockets that were found by a pass over the host's, and should have been by the lists */
	unsigned left;	 /* sockets that the last pass has found and not ended: see cut_job.most */
	struct loop_task note;
};

/* cut_tail.c: sandboxes whose last sockets are ended when their cut is acknowledged */
struct cut_tail {
	int wake_fd;
	uint64_t ids[NP_SANDBOXES_PER_SESSION];
	size_t n;
	unsigned turns; /* that are left for them */
};

/* What is to be cut, or looked at. */
struct cut_job {
	const uint64_t *ids; /* of sandboxes */
	size_t n;
	enum gate_cut why;
	bool listed;  /* by the sandboxes' lists, rather than the host's tables */
	unsigned all; /* of every sandbox, NP_CUT_NOTE only: 1, or NP_CUT_ALL_ANEW */
	unsigned
		most; /* sockets that are ended in one pass, listed ones: those of a walk that has more are counted, and left; 0: no bound */
};

struct kernel {
	struct kernel_config config;
	struct features features;
	struct gate_bpf *skel; /* its programs' descriptors are in the table: program_fd() */
	struct gate_program programs[PROGRAMS_MAX];
	size_t n_programs;
	char mount[4096]; /* of cgroup v2 */
	char pins[4096];  /* pin_dir/vN */
	struct gate_cgroup slice;
	struct gate_cgroup inspector;
	int lock_fd, slice_lock_fd; /* one daemon for each pin_dir, and for each slice: pins_lock(), slice_lock() */
	int slice_fd;		    /* its cgroup */
	int netlink_fd;
	int inotify_fd;
	struct table watches; /* by inotify descriptor */
	struct ring_buffer *ring;
	int cut_tcp, cut_udp;	  /* iterators */
	uint64_t *in_force;	  /* np_in_force, mapped */
	struct np_in_force next;  /* prepared */
	struct table places;	  /* by name */
	bool sweep_due;		  /* of np_holds: sandboxes went */
	struct table namespaces;  /* by cookie */
	struct table homes;	  /* of sandboxes in them, by cgroup */
	unsigned homes_failed;	  /* of a predecessor's, whose namespace is there and could not be taken over */
	unsigned namespaces_turn; /* of namespaces_check() */
	uint64_t netns;		  /* cookie of our own: the host's */
	bool started;		  /* what is missing from here on was taken away */
	bool broken;		  /* ... and could not be put back */
	unsigned mended;	  /* things that were put back since somebody asked ... */
	char mended_what[4096];	  /* ... the first of them */
	unsigned adopted_turn;	  /* adopted cgroups that were looked at */
	struct cut_lists lists;
	struct cut_tail tail;
	bool took_over;
	bool same_build;	/* its programs are those of our build, and were not loaded anew */
	bool had_links;		/* a predecessor of our own version has attached programs */
	unsigned upgraded_from; /* ABI version of an older gate that is there; 0: none */
	unsigned carried_over;	/* sandboxes of it */
	unsigned devices;	/* that carry np_device */
	uint64_t devices_seen;	/* which these are, in one number; 0: not looked at */
	struct {
		struct table by_netns, by_address;
	} addresses; /* of np_host_addrs */
};

/* kernel.c */
void kernel_quiet(void); /* libbpf speaks only when NETPAWL_DEBUG is set */

/* load_gate.c */
int object_load(struct kernel *kernel, char problem[static 512]);
int object_pin(struct kernel *kernel);
int object_repin(struct kernel *kernel); /* what was unpinned */
int object_prepare(struct kernel *kernel, struct gate_bpf *skel, const struct features *features);
/* Takes it over, with its LSM programs attached; or destroys it, when r says so or that fails. 0 or the error. */
int object_settle(struct kernel *kernel, struct gate_bpf *skel, const struct features *features, int r);
int map_path(const struct kernel *kernel, const struct bpf_map *map, char path[static 4096]); /* of its pin */
int program_path(const struct kernel *kernel, const struct bpf_program *prog, char path[static 4096]);
size_t program_index(const struct kernel *kernel, const struct bpf_program *prog); /* SIZE_MAX: it is not loaded */
int program_fd(const struct kernel *kernel, const struct bpf_program *prog);	/* -1: this kernel does not take it */
int program_add(struct kernel *kernel, const struct bpf_program *prog, int fd); /* takes fd, also when it fails */
void programs_close(struct kernel *kernel);

/* same_build.c: a gate that is ours to the last byte */
int build_take(struct kernel *kernel); /* 0: it is there, and taken; -errno: it must be loaded, nothing was changed */
void build_forget(const struct kernel *kernel); /* before another is loaded */
int build_note(struct kernel *kernel);		/* when ours is in place */

/* pins.c: directories and names on the bpf file system */
/* Keep a place for this process as long as *ret_fd is open. -EWOULDBLOCK: another one has it. -ENOENT: it is not there. */
int pins_lock(const char *pin_dir, int *ret_fd, char problem[static 512]);
int slice_lock(const char *slice, int *ret_fd, char problem[static 512]);
int pins_open(struct kernel *kernel, char problem[static 512]);
int pins_folders(const struct kernel *kernel, char problem[static 512]);
void pins_remove_tree(const char *path);
int pins_link_replace(int link_fd, const char *path); /* pins under path, replacing what is there in one step */

/* upgrade.c: a gate of an older version */
/* -EPROTO with a sentence when what is below pin_dir cannot be taken over. *ret_old: an older gate is there. */
int upgrade_check(const char *pin_dir, bool *ret_old, char problem[static 512]);
int upgrade_copy(struct kernel *kernel, char problem[static 512]); /* every rung, raise-only */
int upgrade_attach(struct kernel *kernel);			   /* to the cgroups that it was attached to */
int upgrade_remove_old(const char *pin_dir);

/* links.c: cgroups */
/* worker: the programs of the inspector's cgroup rather than those of sandboxes. */
int links_attach(struct kernel *kernel, const struct gate_cgroup *cg, const char *name, bool worker);
bool links_stand(const struct kernel *kernel, const char *name); /* all are attached; of pins it says nothing */
void links_detach(struct kernel *kernel, const char *name);
int links_attach_lsm(struct kernel *kernel, const struct gate_bpf *skel); /* to the whole kernel */
/* The program is attached there by a link that is pinned and held open. A link that is there gets the program, unless it has
 * it, in one step; there is no moment without one. Idempotent. */
int link_hold(struct kernel *kernel, const char *place, const struct bpf_program *prog, const struct link_want *want);
struct place *place_next(const struct kernel *kernel, const struct place *place); /* NULL: the first; none */
bool place_stands(const struct kernel *kernel, const struct place *place);	  /* its links are attached */
bool place_is_adopted(const struct place *place, uint64_t *ret_id);
void place_forget(struct kernel *kernel, const char *name); /* its pins are gone, or go */
void places_close(struct kernel *kernel);

/* check.c */
void mended(struct kernel *kernel, const char *what); /* it was gone, and has been put back */
int gate_whole(void *ctx, char problem[static 512]);
bool gate_stands(void *ctx);

/* devices.c */
int devices_attach(struct kernel *kernel);    /* to all that are there; idempotent */
int devices_start(struct kernel *kernel);     /* watches netlink, attaches, has np_host_addrs filled */
void devices_detach_clsact(unsigned version); /* of the gate with that ABI version, where the calling thread is */
void devices_detach_clsact_in(int netns, unsigned version);
void devices_detach_old_clsact(struct kernel *kernel, unsigned version); /* in every container's namespace */
struct namespace;
int devices_watch(struct namespace *ns);  /* the same as devices_start() in a container's */
int devices_follow(struct namespace *ns); /* attaches to all that are there; idempotent */
void devices_leave(struct namespace *ns); /* nothing is left of them */
/* Of namespaces that nobody lives in any more, but for these: they are some sandbox's home. */
void devices_forget_gone(struct kernel *kernel, const __u64 *but, size_t n_but);

/* addresses.c */
int addresses_open(struct kernel *kernel); /* takes over what a predecessor has put there */
void addresses_close(struct kernel *kernel);
int addresses_update(struct kernel *kernel, const struct namespace *ns); /* NULL: the host's. The caller is there */
void addresses_leave(struct kernel *kernel, uint64_t netns);
void addresses_forget_gone(struct kernel *kernel, const __u64 *but, size_t n_but); /* as devices_forget_gone() */

/* ratchet.c */
int gate_raise(void *ctx, const struct gate_cgroup *cg, const struct np_rung *rung, const char *session,
	       struct np_rung *ret);
int gate_retire(void *ctx, uint64_t cgroup_id);
int gate_read(void *ctx, uint64_t cgroup_id, struct np_rung *ret); /* -ENOENT */
int gate_each(void *ctx, int (*fn)(void *data, const struct gate_sandbox *sandbox), void *data);

/* cut.c */
int cut_open(struct kernel *kernel);
int gate_cut_due(void *ctx, uint64_t id); /* names it before its cut, for the next daemon if this one dies */
bool cut_is_due(struct kernel *kernel, uint64_t id);
int gate_cut(void *ctx, const uint64_t *ids, size_t n, enum gate_cut why, unsigned *ret_cut);
int gate_orphans(void *ctx, const uint64_t *ids, size_t n, bool *ret_has);
int cut_pass(struct kernel *kernel, const struct cut_job *job, enum np_cut_pass pass, bool final,
	     struct np_cut_state *state);
int cut_name(struct kernel *kernel, const struct cut_job *job); /* its sandboxes, in np_cut_targets */
void cut_unname(struct kernel *kernel, const struct cut_job *job);
void cut_forget_flows(struct kernel *kernel);
/* *ret_left: sockets that lead nowhere any more, and are yet to be ended. They are in *ret_cut. */
int cut_rounds(struct kernel *kernel, const struct cut_job *job, unsigned *ret_cut, unsigned *ret_left);

/* cut_tail.c */
int tail_open(struct kernel *kernel);
void tail_close(struct kernel *kernel);				/* ends what is left */
bool tail_has(const struct kernel *kernel, uint64_t cgroup_id); /* then it stays named */
bool tail_has_all(const struct kernel *kernel, const struct cut_job *job);
bool tail_has_room(const struct kernel *kernel, const struct cut_job *job);
void tail_add(struct kernel *kernel, const struct cut_job *job, unsigned left); /* left: sockets */

/* cut_table.c */
int lists_open(struct kernel *kernel);
void lists_close(struct kernel *kernel);
void lists_unsure(
	struct kernel *kernel); /* a program is about to come to a cgroup: what is there already it has not seen */
void lists_doubt(struct kernel *kernel); /* the gate was not in place for a while: any socket may be missing */
void lists_adopted(struct kernel *kernel, uint64_t cgroup_id);	    /* it may have sockets from before the gate */
int lists_note(struct kernel *kernel);				    /* sockets that are not in np_sockets yet */
bool lists_serve(struct kernel *kernel, const struct cut_job *job); /* have they all that is to be cut? */
/* -EAGAIN: a list is not complete */
int lists_pass(struct kernel *kernel, const struct cut_job *job, uint32_t *destroyed, uint32_t *failed, uint32_t *gone);
void lists_recheck_later(struct kernel *kernel, const struct cut_job *job);

/* namespaces.c */
struct namespace
{
	struct table_node node; /* by cookie */
	struct kernel_netns pub;
	struct kernel *kernel;
	int diag_fd, netlink_fd;
	uint64_t devices_seen; /* as the host's in struct kernel */
	int number; /* by which the host knows it, while a device of the host leads there; -1: not known to us */
};
int namespaces_open(struct kernel *kernel); /* finds those that a predecessor knew */
void namespaces_close(struct kernel *kernel);
/* Nobody of ours lives there, nor in one of these. */
bool namespace_is_gone(const struct kernel *kernel, uint64_t cookie, const __u64 *but, size_t n_but);
struct namespace *namespace_next(const struct kernel *kernel, const struct namespace *after);
uint64_t namespace_cookie(const struct kernel *kernel, uint64_t cgroup_id); /* where a sandbox lives */
int namespace_diag(const struct kernel *kernel,
		   const struct kernel_netns *netns);		   /* see sock_diag.h. NULL: the host's */
int namespace_iterate(const struct kernel_netns *netns, int link); /* a descriptor, or -errno; likewise */

/* tables.c */
int tables_open(struct kernel *kernel);
void tables_close(struct kernel *kernel);

/* ports.c */
uint32_t ports_share(void);		/* sockets that all sandboxes may have together */
int ports_guard(struct kernel *kernel); /* np_inbound to our network namespace; a predecessor's forwards go */
int ports_check(struct kernel *kernel); /* the same, and forgets sockets that are gone */
int gate_listens(void *ctx, uint64_t cgroup_id, unsigned port, struct np_addr *ret);
int gate_forward(void *ctx, uint64_t cookie, uint64_t cgroup_id);
void gate_unforward(void *ctx, uint64_t cookie);

/* inspector.c */
#define INSPECTOR_SUFFIX "-inspector" /* its cgroup lies beside the slice */
int inspector_open(struct kernel *kernel);
int inspector_clear(struct kernel *kernel); /* of processes; -EBUSY: some cannot be ended */
int inspector_check(struct kernel *kernel); /* makes it again when it is gone */

/* adopt.c */
/* What the processes of a cgroup hold: 0, or -EINVAL with the first objection. */
int gate_cgroup_look(void *ctx, const struct gate_cgroup *cg, struct gate_problem *ret_problem);
int gate_cgroup_inspect(void *ctx, const char *path, pid_t starting, struct gate_cgroup *ret,
			struct gate_problem *ret_problem);

/* watch.c */
int watch_start(struct kernel *kernel);
void watch_add(struct kernel *kernel, const struct gate_cgroup *cg);
void watch_children(struct kernel *kernel, const struct gate_cgroup *cg); /* and when one is made right below it */
bool watch_way(struct kernel *kernel, const char *path);		  /* see way_watch in session/gate.h */
void watch_free(struct kernel *kernel);

/* probe.c */
unsigned features_bits(const struct features *features);
struct features features_of_bits(unsigned bits);
void features_probe(struct features *ret);
void features_describe(const struct features *features, struct buf *out);
