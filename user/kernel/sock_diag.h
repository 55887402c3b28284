/* SPDX-License-Identifier: MIT */
/* Destroying a socket by netlink (sock_diag), for kernels without bpf_sock_destroy. */
#ifndef NP_KERNEL_SOCK_DIAG_H
#define NP_KERNEL_SOCK_DIAG_H

#include "cut.h"

/* Its owner gets ECONNABORTED. -ENOENT when there is no such socket any more. */
int diag_destroy(const struct np_cut_order *order);

#endif
