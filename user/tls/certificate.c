/* SPDX-License-Identifier: MIT */
#include "tls/certificate.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "base/cleanup.h"

#define DAY_S	      86400L
#define NAME_TEXT_MAX 64 /* of a common name, by X.520 */

/*
 * The CA's certificate outlives every session. Programs read what they trust once, when they start: a CA that is exchanged
 * for another breaks whatever is running, however early the files are updated. Its end would protect nobody: its key never
 * leaves the memory of this host and goes with the session, and only the session's own sandboxes trust it. What is renewed
 * as time goes by are the leaves.
 * It is valid since long ago, too: the clock of a host may be wrong when a session starts, and be put back later.
 */
#define CA_DAYS		 (20 * 365L + 5)
#define CA_BACKDATED_S	 (366 * DAY_S)
#define LEAF_DAYS	 8
#define LEAF_BACKDATED_S 3600 /* clocks of clients differ */

static void x509_free_cleanup(X509 **cert)
{
	X509_free(*cert);
}
#define _x509_ cleanup(x509_free_cleanup)

EVP_PKEY *certificate_key(void)
{
	return EVP_EC_gen("P-256");
}

/* One extension, freed whatever happens. */
static bool add_extension(X509 *cert, int nid, void *value, int critical, void (*release)(void *))
{
	bool ok = value && X509_add1_ext_i2d(cert, nid, value, critical, X509V3_ADD_REPLACE) == 1;

	release(value);
	return ok;
}

static void release_string(void *p)
{
	ASN1_STRING_free(p);
}

static bool add_usage(X509 *cert, const int *bits, size_t n)
{
	ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();

	for (size_t i = 0; usage && i < n; i++)
		if (!ASN1_BIT_STRING_set_bit(usage, bits[i], 1)) {
			ASN1_BIT_STRING_free(usage);
			return false;
		}
	return add_extension(cert, NID_key_usage, usage, 1, release_string);
}

static void release_constraints(void *p)
{
	BASIC_CONSTRAINTS_free(p);
}

static bool add_constraints(X509 *cert, bool is_ca)
{
	BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new();

	if (constraints && is_ca) {
		constraints->ca = 0xff;
		constraints->pathlen = ASN1_INTEGER_new(); /* 0 */
		if (!constraints->pathlen) {
			BASIC_CONSTRAINTS_free(constraints);
			return false;
		}
	}
	return add_extension(cert, NID_basic_constraints, constraints, 1, release_constraints);
}

static void release_key_id(void *p)
{
	AUTHORITY_KEYID_free(p);
}

/* Whose key it is, and whose signed it: both are hashes of the public key's bits. */
static bool add_key_ids(X509 *cert, X509 *issuer)
{
	AUTHORITY_KEYID *akid = AUTHORITY_KEYID_new();
	ASN1_OCTET_STRING *skid = ASN1_OCTET_STRING_new();
	unsigned char own[EVP_MAX_MD_SIZE], other[EVP_MAX_MD_SIZE];
	unsigned own_len, other_len;

	if (!akid || !skid || !X509_pubkey_digest(cert, EVP_sha1(), own, &own_len) ||
	    !X509_pubkey_digest(issuer, EVP_sha1(), other, &other_len) ||
	    !ASN1_OCTET_STRING_set(skid, own, (int)own_len) || !(akid->keyid = ASN1_OCTET_STRING_new()) ||
	    !ASN1_OCTET_STRING_set(akid->keyid, other, (int)other_len)) {
		AUTHORITY_KEYID_free(akid);
		ASN1_OCTET_STRING_free(skid);
		return false;
	}
	if (!add_extension(cert, NID_subject_key_identifier, skid, 0, release_string)) {
		AUTHORITY_KEYID_free(akid);
		return false;
	}
	return add_extension(cert, NID_authority_key_identifier, akid, 0, release_key_id);
}

static void release_purposes(void *p)
{
	EXTENDED_KEY_USAGE_free(p);
}

static bool add_purpose(X509 *cert)
{
	EXTENDED_KEY_USAGE *purposes = EXTENDED_KEY_USAGE_new();

	if (purposes && !sk_ASN1_OBJECT_push(purposes, OBJ_nid2obj(NID_server_auth))) {
		EXTENDED_KEY_USAGE_free(purposes);
		return false;
	}
	return add_extension(cert, NID_ext_key_usage, purposes, 0, release_purposes);
}

static void release_names(void *p)
{
	GENERAL_NAMES_free(p);
}

static bool add_host(X509 *cert, const struct host *host)
{
	const void *data = host->name;
	size_t len = strlen(host->name);
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *text = ASN1_STRING_type_new(host->is_addr ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);

	if (host->is_addr) {
		bool v4 = np_addr_is_v4(&host->addr);

		data = v4 ? host->addr.b + 12 : host->addr.b;
		len = v4 ? 4 : 16;
	}
	if (!names || !name || !text || !ASN1_STRING_set(text, data, (int)len) || !sk_GENERAL_NAME_push(names, name)) {
		GENERAL_NAMES_free(names);
		GENERAL_NAME_free(name);
		ASN1_STRING_free(text);
		return false;
	}
	GENERAL_NAME_set0_value(name, host->is_addr ? GEN_IPADD : GEN_DNS, text);
	return add_extension(cert, NID_subject_alt_name, names, 0, release_names);
}

static bool set_subject(X509 *cert, const char *common_name)
{
	X509_NAME *name = X509_get_subject_name(cert);

	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)"netpawl", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0);
}

/* Version 3, a serial of 127 random bits, valid from a while before now for some days. */
static X509 *certificate_begin(EVP_PKEY *key, time_t now, long backdated_s, long days)
{
	_x509_ X509 *cert = X509_new();
	unsigned char serial[16];
	BIGNUM *number;
	bool ok;

	if (!cert || RAND_bytes(serial, sizeof(serial)) != 1)
		return NULL;
	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40);
	number = BN_bin2bn(serial, sizeof(serial), NULL);
	ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
	BN_free(number);
	if (!ok || !X509_set_version(cert, X509_VERSION_3) || !X509_set_pubkey(cert, key) ||
	    !X509_time_adj_ex(X509_getm_notBefore(cert), 0, -backdated_s, &now) ||
	    !X509_time_adj_ex(X509_getm_notAfter(cert), (int)days, 0, &now))
		return NULL;
	return take_ptr(cert);
}

int certificate_of_ca(EVP_PKEY *key, const char *session, time_t now, X509 **ret)
{
	static const int usage[] = { 5 /* keyCertSign */, 6 /* cRLSign */ };
	char name[NAME_TEXT_MAX + 1];
	_x509_ X509 *cert = certificate_begin(key, now, CA_BACKDATED_S, CA_DAYS);

	if (!cert)
		return -ENOMEM;
	if ((size_t)snprintf(name, sizeof(name), "netpawl %s", session) >= sizeof(name))
		memcpy(name + sizeof(name) - 4, "...", 4);
	if (!set_subject(cert, name))
		return -EINVAL;
	if (!X509_set_issuer_name(cert, X509_get_subject_name(cert)) || !add_constraints(cert, true) ||
	    !add_usage(cert, usage, ARRAY_SIZE(usage)) || !add_key_ids(cert, cert) ||
	    !X509_sign(cert, key, EVP_sha256()))
		return -ENOMEM;
	*ret = take_ptr(cert);
	return 0;
}

int certificate_leaf(EVP_PKEY *key, const struct host *host, X509 *issuer, EVP_PKEY *issuer_key, time_t now, X509 **ret)
{
	static const int usage[] = { 0 /* digitalSignature */ };
	bool named = !host->is_addr && strlen(host->name) <= NAME_TEXT_MAX;
	_x509_ X509 *cert = certificate_begin(key, now, LEAF_BACKDATED_S, LEAF_DAYS);

	if (!cert)
		return -ENOMEM;
	if (ASN1_TIME_compare(X509_get0_notAfter(cert), X509_get0_notAfter(issuer)) > 0 &&
	    !X509_set1_notAfter(cert, X509_get0_notAfter(issuer)))
		return -ENOMEM;
	/* Clients read the subjectAltName; the common name is for people. */
	if (!set_subject(cert, named ? host->name : "inspected host") ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(issuer)) || !add_constraints(cert, false) ||
	    !add_usage(cert, usage, ARRAY_SIZE(usage)) || !add_purpose(cert) || !add_host(cert, host) ||
	    !add_key_ids(cert, issuer) || !X509_sign(cert, issuer_key, EVP_sha256()))
		return -ENOMEM;
	*ret = take_ptr(cert);
	return 0;
}
