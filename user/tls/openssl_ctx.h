/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL with the kinds of keys that TLS on the web has, and none else. OpenSSL 3.0 goes through every kind that it knows, and
 * every form in which a key may be written, for each certificate that it reads: twice the time of checking a signature.
 */
#pragma once

#include <openssl/types.h>

/* One for all, made on first use. NULL, which is OpenSSL's own: where that is to be FIPS, or the other cannot be had. */
OSSL_LIB_CTX *lean_libctx(void);
