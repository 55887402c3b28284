/* SPDX-License-Identifier: MIT */
/* How many descriptors this process may have open. */
#pragma once

#include <stdbool.h>

/* Raises the soft limit to this many, as far as the hard limit allows. A program is usually started with room for 1,024, for the sake of select(). */
void descriptors_raise(unsigned wanted);
/* Programs that are started between these two calls get the soft limit that this one was started with. */
void descriptors_lower(void);
void descriptors_raise_again(void);
/* Is there room for so many more? fd was opened just now: all numbers below it are taken. */
bool descriptors_left(int fd, unsigned more);
