/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What an address is, written once on 16 bytes, for both compilers. Pure. */
#pragma once

#include <stdbool.h>

#include "sandbox.h"

#ifdef __BPF__
#define np_pure static inline __attribute__((always_inline))
#else
#define np_pure static inline
#endif

/* Constants in network order, for both compilers and for case labels. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define np_net32(x) __builtin_bswap32(x)
#else
#define np_net32(x) ((__u32)(x))
#endif

np_pure struct np_addr np_addr_v4(__be32 v4)
{
	struct np_addr a = { .w = { 0, 0, np_net32(0xffff), v4 } };

	return a;
}

np_pure bool np_addr_is_v4(const struct np_addr *a)
{
	return a->d[0] == 0 && a->w[2] == np_net32(0xffff);
}

np_pure bool np_addr_is_any(const struct np_addr *a)
{
	return a->d[0] == 0 && a->w[3] == 0 && (a->w[2] == 0 || a->w[2] == np_net32(0xffff));
}

np_pure bool np_addr_is_loopback(const struct np_addr *a)
{
	if (np_addr_is_v4(a))
		return a->b[12] == 127;
	return a->d[0] == 0 && a->w[2] == 0 && a->w[3] == np_net32(1);
}

/* The one address of its family that every host has, and that no device has as its network's broadcast address. */
np_pure bool np_addr_is_localhost(const struct np_addr *a)
{
	return a->d[0] == 0 && ((a->w[2] == np_net32(0xffff) && a->w[3] == np_net32(0x7f000001)) ||
				(a->w[2] == 0 && a->w[3] == np_net32(1)));
}

/* Multicast and broadcast, as far as the address tells. Subnet broadcasts are in np_host_addrs. */
np_pure bool np_addr_is_many(const struct np_addr *a)
{
	if (np_addr_is_v4(a))
		return (a->b[12] & 0xf0) == 0xe0 || a->w[3] == 0xffffffff ||
		       a->w[3] == np_net32(0x7fffffff); /* 127.255.255.255: every wildcard socket of the host */
	return a->b[0] == 0xff;
}

/* Addresses of IPv6 that mean something on one device only: bind() with one of these binds the socket to a device, even
 * when it fails in the end. */
np_pure bool np_addr_has_device(const struct np_addr *a)
{
	return a->b[0] == 0xff || (a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80);
}

/* An IPv4 address inside an IPv6 one (NAT64 64:ff9b::/96 and 64:ff9b:1::/48, 6to4 2002::/16) is that IPv4 address. */
np_pure struct np_addr np_addr_carried(const struct np_addr *a)
{
	if (a->w[0] == np_net32(0x0064ff9b) && a->w[1] == 0 && a->w[2] == 0)
		return np_addr_v4(a->w[3]);
	if (a->w[0] == np_net32(0x0064ff9b) && (a->w[1] & np_net32(0xffff0000)) == np_net32(0x00010000))
		return np_addr_v4(a->w[3]); /* for local use, RFC 8215, as a /96 of it */
	if (a->b[0] == 0x20 && a->b[1] == 0x02) {
		struct np_addr v4 = np_addr_v4(0);

		v4.b[12] = a->b[2];
		v4.b[13] = a->b[3];
		v4.b[14] = a->b[4];
		v4.b[15] = a->b[5];
		return v4;
	}
	return *a;
}

/* Where clouds keep credentials for whoever asks, and the link-local ranges they are served from. */
np_pure bool np_addr_is_metadata(const struct np_addr *addr)
{
	struct np_addr a = np_addr_carried(addr);

	if (np_addr_is_v4(&a)) {
		switch (a.w[3]) {
		case np_net32(0x646464c8): /* 100.100.100.200, Alibaba */
		case np_net32(0xa83f8110): /* 168.63.129.16, Azure */
		case np_net32(0xc00000c0): /* 192.0.0.192, Oracle */
			return true;
		}
		return a.b[12] == 169 && a.b[13] == 254; /* 169.254.0.0/16 */
	}
	if (a.b[0] == 0xfe)
		return (a.b[1] & 0xc0) == 0x80; /* fe80::/10 */
	if (a.b[0] != 0xfd)
		return false;
	return a.w[0] == np_net32(0xfd000ec2) ||				/* fd00:ec2::/32, AWS */
	       (a.w[0] == np_net32(0xfd2000ce) && a.w[1] == 0 && a.w[2] == 0 && /* fd20:ce::254, */
		a.w[3] == np_net32(0x254)) ||					/*   Google */
	       (a.w[0] == np_net32(0xfd000042) && a.w[1] == 0 && a.w[2] == 0 && /* fd00:42::42, */
		a.w[3] == np_net32(0x42));					/*   Scaleway */
}
