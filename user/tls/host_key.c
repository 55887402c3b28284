/* SPDX-License-Identifier: MIT */
#include "tls/host_key.h"

#include <string.h>

size_t host_key(const struct host *host, uint16_t port, unsigned char ret[static LRU_KEY_MAX])
{
	size_t len = host->is_addr ? sizeof(host->addr) : strlen(host->name);

	ret[0] = (unsigned char)(port >> 8);
	ret[1] = (unsigned char)port;
	ret[2] = host->is_addr;
	memcpy(ret + 3, host->is_addr ? (const void *)&host->addr : host->name, len);
	return len + 3;
}
