/* SPDX-License-Identifier: MIT */
#include "secrets/locked.h"

#include <string.h>
#include <sys/mman.h>

void *locked_alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (mlock(p, size) == 0 && madvise(p, size, MADV_DONTDUMP) == 0 && madvise(p, size, MADV_WIPEONFORK) == 0)
		return p;
	munmap(p, size);
	return NULL;
}

void locked_free(void *memory, size_t size)
{
	if (!memory)
		return;
	explicit_bzero(memory, size);
	munmap(memory, size);
}
