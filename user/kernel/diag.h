/* SPDX-License-Identifier: MIT */
/* Sockets by netlink (sock_diag): listing them with their cgroup, and destroying one. */
#ifndef NP_KERNEL_DIAG_H
#define NP_KERNEL_DIAG_H

#include <stdint.h>

struct diag_socket {
	uint8_t family;	  /* AF_INET, AF_INET6 */
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP */
	uint8_t state;	  /* TCP_* */
	uint32_t inode;
	uint64_t cgroup_id;  /* of the socket; 0 when the kernel does not tell */
	const void *message; /* struct inet_diag_msg, for diag_destroy() */
};

/* Calls fn for every TCP and UDP socket of this network namespace; stops at a negative answer and returns it. */
int diag_each(int (*fn)(void *data, const struct diag_socket *socket), void *data);
/* Destroys a socket that diag_each() showed: its owner gets ECONNABORTED. From within fn, too. */
int diag_destroy(const struct diag_socket *socket);

#endif
