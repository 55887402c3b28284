/* SPDX-License-Identifier: MIT */
/* SOCK_DESTROY: has the kernel end sockets, so that their owners get an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cut.h"

struct diag_result {
	unsigned destroyed;
	unsigned gone;	  /* there is no such socket any more */
	unsigned failed;  /* for the kernel's reasons, or because we cannot tell */
	bool unsupported; /* this kernel does not do it at all */
};

int diag_open(void); /* a descriptor for diag_destroy(), or -errno */
/* Adds to *ret what became of them. When it returns, they are ended. */
void diag_destroy(int fd, const struct np_cut_order *orders, size_t n, struct diag_result *ret);
