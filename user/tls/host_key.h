/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/lru.h"
#include "wire/hostname.h"

/* A host and a port as a key: how long it is. A name and an address never have the same. */
size_t host_key(const struct host *host, uint16_t port, unsigned char ret[static LRU_KEY_MAX]);
