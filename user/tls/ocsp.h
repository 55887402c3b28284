/* SPDX-License-Identifier: MIT */
/* Stapled OCSP: what an origin brings along to show that its certificate still holds. */
#pragma once

#include <openssl/x509.h>
#include <stdbool.h>

bool staple_is_required(const X509 *cert); /* TLS feature status_request (RFC 7633) */

enum staple_verdict {
	STAPLE_GOOD,
	STAPLE_REVOKED,
	STAPLE_NONE, /* there is none, or it says nothing of this certificate */
	STAPLE_BAD,  /* it cannot be read, is not signed by whom it should be, or is too old */
};

/* chain is verified, the certificate first. */
enum staple_verdict staple_check(const unsigned char *der, long len, STACK_OF(X509) * chain, X509_STORE *roots);
