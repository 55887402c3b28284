/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The sandbox as the kernel knows it, and the calls that change it.
 * Shared by bpf/ and user/: fixed widths, explicit padding, pinned by asserts.
 */
#pragma once

#include <linux/types.h>

#include "gate_limits.h"
#include "rung.h"

/* Version of everything in include/ that crosses the kernel boundary; also the
 * name of the directory below --pin-dir. A daemon takes over from the older
 * versions that user/kernel/old_gate.c can read; whoever changes this adds the
 * layout of the one before there. Beside any other it does not start. */
#define NP_ABI_VERSION 8

/* A token bucket. CPUs share it without a lock. */
struct np_bucket {
	__u64 last_ns; /* when tokens were last added */
	__u64 tokens;  /* in thousandths */
};

/* Rate limit and counts of one sandbox's events. Written by the gate only. */
struct np_meter {
	struct np_bucket events; /* that may still be sent */
	__u64 refused;		 /* refusals decided, sent or not */
	__u64 suppressed;	 /* events not sent: over the rate, or the ring was full */
};

/* Value of np_sandboxes; the key is the 64-bit cgroup id of the sandbox. */
struct np_sandbox {
	struct np_rung rung; /* read with np_rung_of() */
	__u64 raised_ns;     /* CLOCK_MONOTONIC of the last raise of the mode */
	__u32 flows;	     /* connections on their way to the inspector */
	__u32 slots;	     /* of np_sockets that it uses, and NP_SLOTS_LOST; see cut.h */
	struct np_meter meter;
	struct np_bucket queries;    /* to the DNS gate */
	struct np_bucket callers;    /* events of those who call it: they crowd out none of its own */
	__s32 sockets;		     /* that are open; see ports.h */
	__u32 released;		     /* struct np_hold_key of the last one that was closed; 0: none */
	char session[NP_LABEL_SIZE]; /* USER/SESSION, for people who look with bpftool */
};
_Static_assert(sizeof(struct np_sandbox) == 96 + NP_LABEL_SIZE, "np_sandbox layout");

/* Context of the np_raise program. */
struct np_raise {
	__u32 version; /* NP_ABI_VERSION, else -EPROTO */
	__u32 depth;   /* of the cgroup below the v2 root, 1..NP_DEPTH_MAX-1 */
	__u64 cgroup_id;
	struct np_rung rung; /* in: what is asked for; out: what stands now, the stricter of each member */
	char session[NP_LABEL_SIZE];
};
_Static_assert(sizeof(struct np_raise) == 24 + NP_LABEL_SIZE, "np_raise layout");

/* Context of the np_retire program: forgets a sandbox whose cgroup is gone. */
struct np_retire {
	__u32 version;
	__u32 pad;
	__u64 cgroup_id;
};
_Static_assert(sizeof(struct np_retire) == 16, "np_retire layout");

/* Key of np_errors: which helper failed where, and how. Errors are data. */
enum np_place {
	NP_AT_SOCK_LOOKUP = 1,
	NP_AT_RING_RESERVE,
	NP_AT_PACKET_LOAD,
	NP_AT_CGROUP_READ,
	NP_AT_SANDBOX_INSERT,
	NP_AT_SET_RETVAL,
	NP_AT_SOCK_DESTROY,
	NP_AT_FLOW_INSERT,
	NP_AT_UNIX_READ,
	NP_AT_HOLD_INSERT,
	NP_AT_SOCKET_NOTE,
	NP_AT_PAGES,
};
struct np_error_key {
	enum np_place place;
	__s32 error; /* negative errno; 0 where the helper gives only NULL */
};
_Static_assert(sizeof(struct np_error_key) == 8, "np_error_key layout");

/* Values of np_host_addrs. */
enum {
	NP_ADDR_OWN = 1,
	NP_ADDR_BROADCAST = 2,
};

/* 16-byte addresses everywhere; an IPv4 address is ::ffff:a.b.c.d. Network order. */
struct np_addr {
	union {
		__u8 b[16];
		__u32 w[4];
		__u64 d[2];
	};
};

/* Key of np_host_addrs: an address of a device, and in which network namespace that is (the kernel's cookie of it). */
struct np_own_addr {
	__u64 netns;
	struct np_addr addr;
};
_Static_assert(sizeof(struct np_own_addr) == 24, "np_own_addr layout");

/* Value of np_homes, for a sandbox that lives in another network namespace than the host's; the key is its cgroup id. */
struct np_home {
	__u64 netns; /* the kernel's cookie of it */
	__u32 bound; /* its sockets are made there, or not at all: a container, which has a way out of its own */
	__u32 pad;
};
_Static_assert(sizeof(struct np_home) == 16, "np_home layout");
