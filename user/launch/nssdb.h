/* SPDX-License-Identifier: MIT */
/*
 * The certificate database of NSS, with one CA certificate that is trusted for TLS servers: what Chromium and its kin read, which look
 * at no bundle. Written here, because NSS' own certutil would take longer than all the rest of a sandbox's start, and is
 * seldom installed. Pure: bytes in, bytes out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The two files: cert9.db and key4.db, which has no key but vouches for the trust in the other. 0; -EINVAL when that is no
 * certificate, -E2BIG when it takes more than a page, -ENOMEM. */
int nssdb_make(const uint8_t *der, size_t len, struct buf *certificates, struct buf *keys);
