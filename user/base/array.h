/* SPDX-License-Identifier: MIT */
/* Arrays that grow. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Room for at least need items of each bytes. 0, or -ENOMEM and nothing changed. */
static inline int array_reserve(void **items, size_t *size, size_t need, size_t each)
{
	size_t next = *size ? *size : 16;
	void *p;

	if (need <= *size)
		return 0;
	if (need > SIZE_MAX / 2 / each) /* next, less than twice that, or its bytes would wrap around */
		return -ENOMEM;
	while (next < need)
		next *= 2;
	p = reallocarray(*items, next, each);
	if (!p)
		return -ENOMEM;
	*items = p;
	*size = next;
	return 0;
}
#define ARRAY_RESERVE(items, size, need) array_reserve((void **)&(items), &(size), need, sizeof(*(items)))
