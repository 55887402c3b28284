/* SPDX-License-Identifier: MIT */
/* The client's side of TLS: who an origin must prove to be. */
#pragma once

#include <openssl/ssl.h>

#include "wire/hostname.h"

struct origins; /* one session's: resumption never crosses sessions */
struct roots;	/* trusted certificates, shared by all */

/* PEM text of all roots (the system's bundle and extra_roots), read by someone who may. No text at all is no root: then no origin is
 * trusted. -EINVAL: it cannot be read, or there is none in it. */
int roots_new(const char *pem, size_t len, struct roots **ret);
/* Those of base and these. */
int roots_extend(const struct roots *base, const char *pem, size_t len, struct roots **ret);
void roots_free(struct roots *roots); /* counted: may be called while origins still use it */

int origins_new(struct roots *roots, struct origins **ret);
void origins_free(struct origins *origins); /* counted likewise by the SSLs that it made */

/* A client, in connect state, that will accept only a certificate for host (name or address), chained to the roots,
 * valid now, with keys of at least 2048 bits RSA or 224 bits EC and no SHA-1 or MD5 in the chain, and stapled OCSP that
 * says good if the certificate must staple; a staple that says revoked is heeded in any case. ALPN: h2 and http/1.1.
 * Offers a session of an earlier connection to the same host and port, for an hour after the certificate was seen. */
int origin_ssl(struct origins *origins, const struct host *host, uint16_t port, SSL **ret);
/* After a failed handshake: what was wrong with the certificate, in words ("certificate has expired"). NULL when it was
 * not that; channel_problem() knows more then. */
const char *origin_problem(const SSL *ssl);
