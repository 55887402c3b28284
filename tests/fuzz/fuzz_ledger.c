/* SPDX-License-Identifier: MIT */
/* A ledger that an inspector which was taken over has written: what netpawld takes from it is in bounds, and the reading
 * ends. The first bytes say where reading begins and how much is said to be there; the rest is the ring, over and over. */
#include <stdbool.h>
#include <stdlib.h>

#include "link/ledger.c"

#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ledger ledger;
	static char copy[LINK_BYTES_MAX];
	const char *tails[LINK_TAILS];
	struct link_request report;
	uint64_t at, there, next;
	ssize_t n;

	if (size < sizeof(at) + sizeof(there) + 1)
		return 0;
	memcpy(&at, data, sizeof(at));
	memcpy(&there, data + sizeof(at), sizeof(there));
	data += sizeof(at) + sizeof(there);
	size -= sizeof(at) + sizeof(there);
	if (at & 1) /* mostly what could be; else anything */
		there %= NP_LEDGER_RING + 1;
	at &= ~7ull;
	ledger.written = at + there;
	for (size_t i = 0; i < 64 * size && i < NP_LEDGER_RING; i++)
		ledger.ring[(at + i) % NP_LEDGER_RING] = (char)data[i % size];
	while ((n = ledger_next(&ledger, at, copy, &next)) > 0) {
		ssize_t used = link_request_next(copy, (size_t)n, &report, tails);

		check((size_t)n <= LINK_BYTES_MAX && next - at <= there && next != at && used <= n);
		for (unsigned i = 0; used > 0 && i < LINK_TAILS; i++)
			check(!tails[i] || (tails[i] >= copy && tails[i] + report.tails[i] <= copy + n &&
					    !tails[i][report.tails[i] - 1]));
		there -= next - at;
		at = next;
	}
	return 0;
}
