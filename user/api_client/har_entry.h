/* SPDX-License-Identifier: MIT */
/* An event as an entry of an HTTP archive (HAR 1.2). Pure: an event in, JSON out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* Is it about a request or a connection by name, and over? */
bool har_is_entry(const json_t *event);
void har_entry_put(const json_t *event, struct buf *out);
