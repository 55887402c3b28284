/* SPDX-License-Identifier: MIT */
#include "net/socket_progress.h"

#include <linux/tcp.h> /* the C library's has an older struct tcp_info, and the two do not go together */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define STATE_ESTABLISHED 1

bool socket_progress(int fd, uint64_t *ret_acked)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	*ret_acked = UINT64_MAX;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    len < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
		return true;
	*ret_acked = info.tcpi_bytes_acked;
	return info.tcpi_state == STATE_ESTABLISHED;
}
