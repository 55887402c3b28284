/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Addresses of sandboxes that have a network namespace of their own with a way out (sandbox: network: nat). Nobody beyond the host
 * ever sees one, for what leaves is masqueraded; and no sandbox reaches another's, whatever the host's firewall says.
 *
 *   IPv4  100.127.240.0/20              (RFC 6598: shared address space), the number in the low 12 bits
 *   IPv6  fd6e:6574:7061:7768::/96      (a ULA), the number in the low 32 bits
 */
#pragma once

#include "addr.h"

#define NP_NAT4_NET  0x647ff000u
#define NP_NAT4_MASK 0xfffff000u
#define NP_NAT6_HIGH 0xfd6e6574u
#define NP_NAT6_LOW  0x70617768u

/* In whatever disguise: see np_addr_carried(). */
np_pure bool np_addr_is_natted(const struct np_addr *addr)
{
	struct np_addr a = np_addr_carried(addr);

	if (np_addr_is_v4(&a))
		return (a.w[3] & np_net32(NP_NAT4_MASK)) == np_net32(NP_NAT4_NET);
	return a.w[0] == np_net32(NP_NAT6_HIGH) && a.w[1] == np_net32(NP_NAT6_LOW) && a.w[2] == 0;
}

/* number < NP_NAMESPACES_MAX */
np_pure struct np_addr np_nat_v4(__u32 number)
{
	return np_addr_v4(np_net32(NP_NAT4_NET | (number & ~NP_NAT4_MASK)));
}

np_pure struct np_addr np_nat_v6(__u32 number)
{
	struct np_addr a = { .w = { np_net32(NP_NAT6_HIGH), np_net32(NP_NAT6_LOW), 0, np_net32(number) } };

	return a;
}
