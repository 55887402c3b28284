/* SPDX-License-Identifier: MIT */
/* Name servers as an operator writes them: "192.0.2.53,[2001:db8::53]:5353". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* An address as resolv.conf has it: no brackets, no port, of IPv6 perhaps with a zone. */
bool resolver_address_is_valid(const char *text, size_t len);

/* The first word of the list that is not ADDRESS[:PORT], with its length; NULL: each is. IPv6 is in brackets where a port follows. An
 * empty list is one empty word. */
const char *resolver_list_wrong(const char *list, size_t *ret_len);
