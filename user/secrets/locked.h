/* SPDX-License-Identifier: MIT */
/* Memory for secrets: never swapped, in no core dump, not in a child after fork(), wiped when it goes. Whole pages: for what
 * is kept, not for what comes and goes. */
#pragma once

#include <stddef.h>

/* Zeroed. NULL: there is none, or it cannot be locked: then there is no place for a secret. */
void *locked_alloc(size_t size);
void locked_free(void *memory, size_t size); /* NULL is fine */
