/* SPDX-License-Identifier: MIT */
/* Events as entries of systemd's journal, in its native protocol: a datagram of fields. */
#pragma once

#include "base/buf.h"
#include "exporter/pump.h"

/* A socket that is connected there; -errno. */
int journald_connect(const char *path);

/* One entry. Pure. A value with a byte that would end its line has its length in front, and cannot become a field. */
void journald_put(json_t *event, struct buf *out);

struct receiver journald_receiver(int *fd);
