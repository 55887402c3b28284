/* SPDX-License-Identifier: MIT */
/* Inside netpawl-init. main.c: up to the confined process 1, and one command; serve.c: many of them. */
#pragma once

#include "launch/orders.h"

/* Where reports go: ORDERS_REPORT, or a run's connection. */
extern int report_fd;

void report_put(const struct init_report *report);
__attribute__((format(printf, 3, 4))) _Noreturn void init_fail(int exit_code, int error, const char *fmt, ...);
/* Becomes the command; its environment is ours. */
_Noreturn void command_execute(char **argv, const sigset_t *mask);
/* What became of it. */
void status_note(int status, struct init_report *report);

/* As process 1, confined, with SIGCHLD in `children` (signalfd) and the socket at ORDERS_CONTROL. */
_Noreturn void serve(int children);
