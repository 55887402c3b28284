/* SPDX-License-Identifier: MIT */
/* Sockets that steered connections come to: in the host's network namespace, and in those of sandboxes that have their own. */
#pragma once

#include <stdint.h>

struct worker;

/* netns: the kernel's cookie of its namespace; 0: the host's, and the socket stays the caller's. Others are taken over, also when
 * it fails. Connections are taken from there when the worker is ready, and is not stopping. */
int listener_add(struct worker *worker, uint64_t netns, int fd);
/* Closes all listeners of that namespace, the DNS server's as well, with the next tick: the caller may be in the
 * middle of handling what came there. */
void listeners_remove(struct worker *worker, uint64_t netns);
void listeners_tick(struct worker *worker);
int listeners_open(struct worker *worker);  /* connections may come */
void listeners_shut(struct worker *worker); /* no more of them */
void listeners_free(struct worker *worker);
