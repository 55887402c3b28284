/* SPDX-License-Identifier: MIT */
/*
 * Carries connections from a port of 127.0.0.1 to a listener of this host, as netpawl forward does. What it has in its hands is
 * small on purpose: NP_FORWARD_BUFFER bytes each way, and as much in the kernel.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

struct carrier;

struct carrier_config {
	uint16_t local; /* where to listen; 0: on port where that is free, else where there is room */
	uint16_t port;	/* which to call */
	/* A socket with this cookie is about to call; *ret: whom, its port left out. Nonzero: it must not. */
	int (*on_call)(void *data, uint64_t cookie, struct sockaddr_storage *ret);
	void (*on_end)(void *data, uint64_t cookie); /* it is closed */
	void *data;
};

int carrier_new(const struct carrier_config *config, struct carrier **ret); /* 0 or -errno */
void carrier_free(struct carrier *carrier);
uint16_t carrier_port(const struct carrier *carrier); /* where it listens */
/* Waits for something to do, and does it. 0; -1 with errno. */
int carrier_turn(struct carrier *carrier, int timeout_ms);
