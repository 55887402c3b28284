/* SPDX-License-Identifier: MIT */
/*
 * A second thread for the moments in which one thing can be done while another waits for the disk. There is no other
 * concurrency: whoever starts a task waits for it in the same function, and meanwhile touches nothing that the task does.
 */
#pragma once

struct beside;

/* The thread is made with the first task. NULL: no memory. */
struct beside *beside_new(void);
void beside_free(struct beside *beside); /* may be NULL */
/* Begins fn(data). Without a thread (beside is NULL, or none can be had) it is done when this returns. */
void beside_begin(struct beside *beside, void (*fn)(void *data), void *data);
void beside_wait(struct beside *beside); /* until it is done; does it, if it has not begun yet */
