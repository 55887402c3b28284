/* SPDX-License-Identifier: MIT */
/* Certificates that the inspector makes. */
#pragma once

#include <openssl/x509.h>

#include "wire/hostname.h"

EVP_PKEY *certificate_key(void); /* a new P-256 key; NULL */

/* A CA that signs itself, and leaves only. now: in seconds since 1970. 0, -ENOMEM, or -EINVAL when session is no text. */
int certificate_of_ca(EVP_PKEY *key, const char *session, time_t now, X509 **ret);
/* A server's that is host, never longer valid than its issuer. 0 or -ENOMEM. */
int certificate_leaf(EVP_PKEY *key, const struct host *host, X509 *issuer, EVP_PKEY *issuer_key, time_t now,
		     X509 **ret);
