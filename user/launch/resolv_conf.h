/* SPDX-License-Identifier: MIT */
/*
 * The /etc/resolv.conf of a sandbox that has a network of its own with a way out: name servers on the host's loopback (systemd-resolved,
 * dnsmasq) are not reached from there. Pure: text in, text out.
 */
#pragma once

#include "base/buf.h"

/* text: the host's; upstream: the servers that the host's own resolver asks, in the same form; NULL: not known. 1: *out has what
 * to show instead. 0: the host's will do. -ENOENT: no server is known that could be reached; -ENOMEM. */
int resolv_conf_make(const char *text, const char *upstream, struct buf *out);
