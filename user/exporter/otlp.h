/* SPDX-License-Identifier: MIT */
/* Events as OpenTelemetry's logs: ExportLogsServiceRequest in its JSON form. Pure. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* host: the name of this one. Ask buf_error(). */
void otlp_put(json_t *const *events, size_t n, const char *host, struct buf *out);
