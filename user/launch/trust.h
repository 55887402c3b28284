/* SPDX-License-Identifier: MIT */
/*
 * What programs in a sandbox trust, so that TLS through the inspector works without a change to them: files, and the
 * variables that lead programs to these files. Pure: bytes in, bytes out.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct trust {
	struct buf ca;	   /* PEM: the session's CA certificate alone */
	struct buf bundle; /* PEM: the system's roots and the session's CA certificate */
	struct buf store;  /* the same for Java: a key store in its own format, JKS */
	/* For NSS, which has roots of its own: a database with the session's CA certificate. Empty: NSS could not take that one. */
	struct buf nss_certificates, nss_keys;
};

/* Where the files are in the sandbox. */
#define TRUST_DIR "/run/netpawl"
#define TRUST_CA  "ca.pem"
/* A link to it. It is what the file was called before: programs were told of it, and sandboxes that were kept from then have
 * nothing else. */
#define TRUST_CA_LINK "authority.pem"
#define TRUST_BUNDLE  "bundle.pem"
#define TRUST_STORE   "bundle.jks"

/* What is no certificate is left out. 0; -EINVAL when ca holds none; -ENOMEM, -E2BIG. trust_free() in any case. */
int trust_make(const char *system, size_t system_len, const char *ca, size_t ca_len, struct trust *ret);
void trust_free(struct trust *trust);

/* The variables: their number; *ret_name and *ret_value of the one at index, the value as it is with the files in dir.
 * JAVA_TOOL_OPTIONS is not among them, for it is added to what is there: trust_java(). */
size_t trust_variables(void);
void trust_variable(size_t index, const char *dir, const char **ret_name, struct buf *value);
void trust_java(const char *dir, struct buf *value);
