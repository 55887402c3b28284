/* SPDX-License-Identifier: MIT */
#include "link/ledger.h"
#include "vocab/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* A report has its length in front, and the next one begins at a multiple of its size: the length is always in one piece. */
typedef uint64_t ledger_len;

static uint64_t record_size(uint64_t len)
{
	return sizeof(ledger_len) + (len + sizeof(ledger_len) - 1) / sizeof(ledger_len) * sizeof(ledger_len);
}

int ledger_map(int fd, struct ledger **ret)
{
	void *p = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

int ledger_put(struct ledger *ledger, const void *data, size_t len)
{
	const uint64_t written = ledger->written, used = written - __atomic_load_n(&ledger->read, __ATOMIC_ACQUIRE);
	const ledger_len head = len;
	size_t at, end;

	if (len > LINK_BYTES_MAX || used > NP_LEDGER_RING || record_size(len) > NP_LEDGER_RING - used)
		return -ENOSPC;
	memcpy(ledger->ring + written % NP_LEDGER_RING, &head, sizeof(head));
	at = (written + sizeof(head)) % NP_LEDGER_RING;
	end = NP_LEDGER_RING - at < len ? NP_LEDGER_RING - at : len;
	memcpy(ledger->ring + at, data, end);
	memcpy(ledger->ring, (const char *)data + end, len - end);
	/* A report is there as a whole or not at all, whenever its writer dies. */
	__atomic_store_n(&ledger->written, written + record_size(len), __ATOMIC_RELEASE);
	return 0;
}

ssize_t ledger_next(const struct ledger *ledger, uint64_t at, char data[static LINK_BYTES_MAX], uint64_t *ret_next)
{
	const uint64_t there = __atomic_load_n(&ledger->written, __ATOMIC_ACQUIRE) - at;
	ledger_len len;
	size_t from, end;

	if (!there)
		return 0;
	if (there > NP_LEDGER_RING || there < sizeof(len) || at % sizeof(len))
		return -EPROTO;
	memcpy(&len, ledger->ring + at % NP_LEDGER_RING, sizeof(len));
	if (!len || len > LINK_BYTES_MAX || record_size(len) > there)
		return -EPROTO;
	from = (at + sizeof(len)) % NP_LEDGER_RING;
	end = NP_LEDGER_RING - from < len ? NP_LEDGER_RING - from : len;
	memcpy(data, ledger->ring + from, end);
	memcpy(data + end, ledger->ring, len - end);
	*ret_next = at + record_size(len);
	return (ssize_t)len;
}
