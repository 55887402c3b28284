/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox is to be, as data: options, the policy's sandbox: section and facts about the host become a list
 * of steps, an environment and a command. Nothing is touched here; root.c and launch.c carry it out.
 *
 * The sandbox's file system:
 *   /usr /bin /sbin /lib* /etc /opt ...  the host's, read-only; of /var/lib what they read
 *   /proc            fresh, of the sandbox's own pid namespace; the kernel's settings in it read-only
 *   /sys             the devices, read-only: no cgroups, bpf, debugfs and kin
 *   /dev             null zero full random urandom tty, its own pts and shm; others that the policy gives
 *   /tmp /var/tmp /run  empty and private
 *   /workspace       the session's own directory
 *   /run/netpawl     what programs are to trust, and the session's notices, read-only
 *   and what --bind adds. Nothing else: no /home, /root, /srv, no more of /var.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "launch/host.h"
#include "launch/identity.h"
#include "vocab/run_options.h"
#include "launch/placeholders.h"
#include "launch/trust.h"

#define PLAN_WORKSPACE "/workspace"
#define PLAN_PKI       PLAN_WORKSPACE "/.pki" /* in the command's HOME; NSS' database is nssdb in it */
#define PLAN_NOTICES   TRUST_DIR "/notices"
#define PLAN_USER      "sandbox" /* the name of who has none */

enum isolation {
	ISOLATION_FULL,
	ISOLATION_NONE, /* the cgroup, no inherited files, and nothing else */
};

/* What root.c does, one after the other. */
enum step_kind {
	STEP_BIND,	 /* source, dest */
	STEP_RO_BIND,	 /* source, dest */
	STEP_SYMLINK,	 /* source is the target, dest the link */
	STEP_PROC,	 /* dest */
	STEP_DEVPTS,	 /* dest: terminals of the sandbox's own */
	STEP_DEVICE,	 /* source, dest: a device of the host, to be used and not only to be seen */
	STEP_DIR,	 /* dest, mode: unless it is there */
	STEP_TMPFS,	 /* dest, mode, size (0: half of the memory) */
	STEP_FILE,	 /* dest, file: its bytes, read-only */
	STEP_REMOUNT_RO, /* dest, not what is mounted below it */
};

struct step {
	enum step_kind kind;
	unsigned mode;
	const char *source, *dest;
	uint64_t size;
	const struct buf *file; /* borrowed */
	/* A bind by name: what the name led to when it was looked at. 0: anything will do. */
	uint64_t device, inode;
	bool own;  /* STEP_TMPFS, STEP_DIR, STEP_FILE: the command's user owns it, and may write it */
	bool over; /* put over what is there, and if nothing is, nothing is made for it */
};

/* Where the policy lets --bind take files from. */
struct permit {
	const char *path; /* this, and what is below */
	bool readonly;
};

struct bind {
	const char *source; /* as its links lead */
	const char *dest;
	bool readonly;
	uint64_t device, inode;
};

struct plan_request {
	enum isolation isolation;
	bool kept; /* for many commands, which come later; it outlives who makes it */
	const char *session;
	char *const *argv;     /* ends with NULL */
	char *const *environ;  /* the caller's, ends with NULL */
	bool env_all;	       /* all of it; else what a plain environment has */
	char *const *env;      /* NAME=VALUE that were asked for, ends with NULL; NULL: none */
	const char *cwd;       /* the caller's */
	const char *directory; /* asked for; NULL: cwd when the sandbox sees it, else the workspace */
	const char *workspace; /* NULL: a private one in memory */
	uint64_t workspace_device, workspace_inode;
	const char *notices; /* a directory of the host with the file of the session's notices; NULL: there is none */
	uint64_t notices_device, notices_inode;
	const struct identity *identity; /* NULL with ISOLATION_NONE: stay who we are */
	const struct bind *binds;
	size_t n_binds;
	const struct permit *permits;
	size_t n_permits;
	const struct placeholders *placeholders; /* NULL: none */
	const struct trust *trust;		 /* NULL: nothing but the system's own */
	bool own_nssdb; /* the workspace has one that the session's commands made, or something else in its place */
	bool way_out;	/* the sandbox has a network of its own with a way out: the host's loopback is not in it */
	struct limits limits;
};

struct plan {
	struct arena *arena; /* all memory of it, but what was borrowed from the request */
	enum isolation isolation;
	bool kept;
	const struct identity *identity;
	const char *session;
	const char *directory; /* NULL: stay */
	char *const *argv;
	char **environ; /* ends with NULL */
	struct step *steps;
	size_t n_steps;
	struct buf passwd, group; /* the host's, and a line for who has none */
	struct buf resolv_conf;	  /* with servers that are reached from its own network; empty: the host's will do */
	struct limits limits;
};

/* The request, the host and the trust must outlive the plan. 0; -EINVAL or -EACCES with the reason in words;
 * -ENOMEM. */
#define PLAN_PROBLEM_SIZE 512
int plan_make(const struct plan_request *request, const struct host *host, struct plan *ret,
	      char problem[static PLAN_PROBLEM_SIZE]);
/* Of a command in a sandbox that is there: no steps. Of the host it looks at the system's directories only. */
int plan_make_command(const struct plan_request *request, const struct host *host, struct plan *ret,
		      char problem[static PLAN_PROBLEM_SIZE]);
void plan_free(struct plan *plan);

const char *step_name(enum step_kind kind);
