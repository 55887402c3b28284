/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Synthetic addresses: what the DNS gate answers instead of a host's own. They stand
 * for a number and lead nowhere; TCP to them is steered to the inspector, in PROXIED.
 *
 *   IPv4  198.18.0.0/15                 (RFC 2544: never routed), the number in the low 17 bits
 *   IPv6  fd6e:6574:7061:776c::/96      (a ULA), the number in the low 32 bits
 */
#pragma once

#include "addr.h"

#define NP_SYNTH4_NET	0xc6120000u
#define NP_SYNTH4_MASK	0xfffe0000u
#define NP_SYNTH4_COUNT (1u << 17) /* numbers that have an IPv4 address: 0 and up */
#define NP_SYNTH6_HIGH	0xfd6e6574u
#define NP_SYNTH6_LOW	0x7061776cu

/* In whatever disguise: see np_addr_carried(). */
np_pure bool np_addr_is_synthetic(const struct np_addr *addr)
{
	struct np_addr a = np_addr_carried(addr);

	if (np_addr_is_v4(&a))
		return (a.w[3] & np_net32(NP_SYNTH4_MASK)) == np_net32(NP_SYNTH4_NET);
	return a.w[0] == np_net32(NP_SYNTH6_HIGH) && a.w[1] == np_net32(NP_SYNTH6_LOW) && a.w[2] == 0;
}

/* number < NP_SYNTH4_COUNT; a larger one is cut. */
np_pure struct np_addr np_synth_v4(__u32 number)
{
	return np_addr_v4(np_net32(NP_SYNTH4_NET | (number & ~NP_SYNTH4_MASK)));
}

np_pure struct np_addr np_synth_v6(__u32 number)
{
	struct np_addr a = { .w = { np_net32(NP_SYNTH6_HIGH), np_net32(NP_SYNTH6_LOW), 0, np_net32(number) } };

	return a;
}

/* Of a synthetic address. */
np_pure __u32 np_synth_number(const struct np_addr *addr)
{
	struct np_addr a = np_addr_carried(addr);
	__u32 low = np_net32(a.w[3]);

	return np_addr_is_v4(&a) ? low & ~NP_SYNTH4_MASK : low;
}
