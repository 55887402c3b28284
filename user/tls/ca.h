/* SPDX-License-Identifier: MIT */
/* A session's own certificate authority and the leaves that it signs. */
#pragma once

#include <openssl/ssl.h>

#include "base/buf.h"
#include "wire/hostname.h"

struct ca;

/* P-256, a random serial, valid for twenty years: longer than any session, see certificate.c. Its name says netpawl and the
 * session. */
int ca_new(const char *session, struct ca **ret);
/* For the other workers, and those of the next daemon: the same authority from what ca_export() wrote, so that a session
 * which one of them started another resumes. -EINVAL for anything else. */
int ca_import(const void *data, size_t len, struct ca **ret);
int ca_export(const struct ca *ca, struct buf *out); /* keys, certificate, ticket keys; wipe it after use */
int ca_pem(const struct ca *ca, struct buf *out);    /* the certificate alone */
void ca_free(struct ca *ca);			     /* wipes the keys; an SSL of it may live on */

/* A server that is host, in accept state: leaf (P-256, the key shared by all leaves of the authority), TLS 1.2 and 1.3,
 * tickets for resumption by the same host only, ALPN: h2 if the client offers it, else http/1.1, else none. At most
 * NP_LEAVES_MAX leaves (3 KiB each) are kept, the least used goes first. All share one SSL_CTX (13 KiB). */
int ca_server(struct ca *ca, const struct host *host, SSL **ret);
