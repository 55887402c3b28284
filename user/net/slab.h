/* SPDX-License-Identifier: MIT */
/*
 * Memory for what is large and short-lived: buffers of TLS records and handshakes, bytes that wait for a socket. Among
 * what stays for as long as a connection does they would leave holes, a quarter of the heap.
 */
#pragma once

#include <stddef.h>

int slab_init(void); /* before OpenSSL takes any memory: it is given these, too. Without it all is malloc()'s */
void *slab_alloc(size_t size);
void *slab_realloc(void *p, size_t size);
void slab_free(void *p);
void slab_trim(void); /* to be called periodically: what was not used since the last call is given back to the kernel */
