/* SPDX-License-Identifier: MIT */
/* An event in the Open Cybersecurity Schema Framework (OCSF 1.6), for SIEM systems. Pure: an event in, one JSON object out. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Appends one object and no newline. Captured headers and bodies are left out; "unmapped" has what OCSF has no place for. */
void ocsf_put(const json_t *event, const char *host, struct buf *out); /* host: the name of the one that it is of */
