/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Of NDJSON lines of events, lines {event, entry}; entry only where it is a request. 0, -E2BIG or -ENOMEM. */
int har_page_make(const struct buf *events, struct buf *out);
