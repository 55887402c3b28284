/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The registrable domain of a canonical host name, by the public suffix list with its private section: example.org of
 * a.b.example.org, alice.github.io of x.alice.github.io. Never a suffix that several owners share. -EINVAL: it has none (it is a
 * suffix itself, or an address), or its top-level domain is in no list, so that nobody knows who shares it; -ENOTSUP: there is
 * no list.
 */
int registrable_domain(const char *host, char ret[static 256]);
