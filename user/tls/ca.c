/* SPDX-License-Identifier: MIT */
#include "tls/ca.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tls/certificate.h"
#include "tls/host_key.h"
#include "vocab/limits.h"
#include "loop/loop.h"

#define TICKET_KEYS   80    /* a name, a key to sign and one to encrypt: what OpenSSL asks for */
#define EXPORT_MAX    4096  /* two P-256 keys and a certificate are about 1,000 bytes */
#define RENEW_S	      86400 /* a leaf that expires sooner is made anew */
#define TICKET_LIFE_S 7200

static const char export_magic[8] = "NPCA\0\0\0\1";

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	SSL_CTX *server;
	struct lru *leaves; /* host -> X509 */
	unsigned char ticket_keys[TICKET_KEYS];
};

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	lru_free(ca->leaves);
	SSL_CTX_free(ca->server);
	X509_free(ca->cert);
	EVP_PKEY_free(ca->leaf_key);
	EVP_PKEY_free(ca->key);
	OPENSSL_cleanse(ca, sizeof(*ca));
	free(ca);
}

static void ca_free_cleanup(struct ca **ca)
{
	ca_free(*ca);
}
#define _ca_ cleanup(ca_free_cleanup)

/* -- the server's side of TLS ---------------------------------------------- */

static bool alpn_offers(const unsigned char *list, unsigned len, const unsigned char *wanted, unsigned wanted_len,
			const unsigned char **ret)
{
	for (unsigned i = 0; i < len && list[i] < len - i; i += list[i] + 1u)
		if (list[i] == wanted_len && !memcmp(list + i + 1, wanted, wanted_len)) {
			*ret = list + i + 1;
			return true;
		}
	return false;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
		   unsigned in_len, void *arg)
{
	static const char *const protocols[] = { "h2", "http/1.1" };

	(void)ssl;
	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		size_t len = strlen(protocols[i]);

		*out_len = (unsigned char)len;
		if (alpn_offers(in, in_len, (const unsigned char *)protocols[i], (unsigned)len, out))
			return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static void free_leaf(void *leaf)
{
	X509_free(leaf);
}

/* What is made from the keys and the certificate, for the first that it serves: most CAs only wait. */
static int ca_complete(struct ca *ca)
{
	SSL_CTX *ctx;
	int r;

	SSL_CTX_free(ca->server); /* an attempt that failed */
	ca->server = ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx)
		return -ENOMEM;
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* the tickets hold all */
	SSL_CTX_set_num_tickets(ctx, 1);			 /* a resumed connection brings another */
	SSL_CTX_set_timeout(ctx, TICKET_LIFE_S);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
	    !SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") ||
	    !SSL_CTX_set_ciphersuites(ctx,
				      "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") ||
	    !SSL_CTX_set1_groups_list(ctx, "X25519:P-256:P-384") ||
	    !SSL_CTX_set_tlsext_ticket_keys(ctx, ca->ticket_keys, sizeof(ca->ticket_keys)))
		return -ENOMEM;
	r = lru_new(NP_LEAVES_MAX, free_leaf, &ca->leaves);
	return r;
}

/* Also one whose time has not come: the clock was put back. The last day of the CA itself is no reason: a new leaf would
 * not live longer. */
static bool leaf_is_good(const struct ca *ca, X509 *leaf, time_t now)
{
	time_t soon = now + RENEW_S;

	return X509_cmp_time(X509_get0_notBefore(leaf), &now) < 0 &&
	       (X509_cmp_time(X509_get0_notAfter(leaf), &soon) > 0 ||
		ASN1_TIME_compare(X509_get0_notAfter(leaf), X509_get0_notAfter(ca->cert)) >= 0);
}

static time_t wall_s(void)
{
	return (time_t)(loop_wall_us() / 1000000);
}

static X509 *ca_leaf(struct ca *ca, const struct host *host, const unsigned char *key, size_t key_len)
{
	X509 *leaf = lru_get(ca->leaves, key, key_len);
	time_t now = wall_s();

	if (leaf && leaf_is_good(ca, leaf, now))
		return leaf;
	if (certificate_leaf(ca->leaf_key, host, ca->cert, ca->key, now, &leaf) < 0)
		return NULL;
	if (lru_put(ca->leaves, key, key_len, leaf) < 0) {
		X509_free(leaf);
		return NULL;
	}
	return leaf;
}

int ca_server(struct ca *ca, const struct host *host, SSL **ret)
{
	unsigned char key[LRU_KEY_MAX], context[SHA256_DIGEST_LENGTH];
	size_t len = host_key(host, 0, key);
	X509 *leaf;
	SSL *ssl;

	if (!ca->leaves && ca_complete(ca) < 0)
		return -ENOMEM;
	leaf = ca_leaf(ca, host, key, len);
	ssl = leaf ? SSL_new(ca->server) : NULL;

	/* The context is in the ticket: one that was given by another host is not accepted. */
	SHA256(key, len, context);
	if (!ssl || !SSL_use_cert_and_key(ssl, leaf, ca->leaf_key, NULL, 1) ||
	    !SSL_set_session_id_context(ssl, context, sizeof(context))) {
		SSL_free(ssl);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_accept_state(ssl);
	*ret = ssl;
	return 0;
}

/* -- making it ------------------------------------------------------------- */

int ca_new(const char *session, struct ca **ret)
{
	_ca_ struct ca *ca = calloc(1, sizeof(*ca));
	int r;

	if (!ca)
		return -ENOMEM;
	ca->key = certificate_key();
	ca->leaf_key = certificate_key();
	if (!ca->key || !ca->leaf_key || RAND_bytes(ca->ticket_keys, sizeof(ca->ticket_keys)) != 1)
		return -ENOMEM; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	r = certificate_of_ca(ca->key, session, wall_s(), &ca->cert);
	ERR_clear_error();
	if (r == 0)
		*ret = take_ptr(ca);
	return r;
}

/* -- handing it to other workers ------------------------------------------- */

/* The magic, then three pieces of DER, each behind its length in two bytes, then the ticket keys. */
int ca_export(const struct ca *ca, struct buf *out)
{
	unsigned char blob[EXPORT_MAX], *der[3] = { 0 };
	int len[3] = { i2d_PrivateKey(ca->key, &der[0]), i2d_PrivateKey(ca->leaf_key, &der[1]),
		       i2d_X509(ca->cert, &der[2]) };
	size_t used = sizeof(export_magic);
	int r = 0;

	memcpy(blob, export_magic, sizeof(export_magic));
	for (size_t i = 0; i < ARRAY_SIZE(der); i++) {
		if (len[i] <= 0 || used + 2 + (size_t)len[i] + TICKET_KEYS > sizeof(blob)) {
			r = -ENOMEM;
			continue;
		}
		blob[used++] = (unsigned char)(len[i] >> 8);
		blob[used++] = (unsigned char)len[i];
		memcpy(blob + used, der[i], (size_t)len[i]);
		used += (size_t)len[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(der); i++)
		if (der[i])
			OPENSSL_clear_free(der[i], len[i] > 0 ? (size_t)len[i] : 0);
	if (r == 0) {
		memcpy(blob + used, ca->ticket_keys, TICKET_KEYS);
		/* In one piece: a buffer that grows leaves copies behind. */
		buf_append(out, blob, used + TICKET_KEYS);
		r = buf_error(out);
	}
	OPENSSL_cleanse(blob, sizeof(blob));
	return r;
}

static const unsigned char *take_piece(const unsigned char **at, const unsigned char *end, long *ret_len)
{
	const unsigned char *piece = *at + 2;

	if (end - *at < 2)
		return NULL;
	*ret_len = (*at)[0] << 8 | (*at)[1];
	if (end - piece < *ret_len)
		return NULL;
	*at = piece + *ret_len;
	return piece;
}

static EVP_PKEY *import_key(const unsigned char **at, const unsigned char *end)
{
	const unsigned char *p;
	EVP_PKEY *key;
	char group[32];
	size_t len;
	long size;

	p = take_piece(at, end, &size);
	key = p ? d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, size) : NULL;
	if (key && p == *at && EVP_PKEY_get_group_name(key, group, sizeof(group), &len) && !strcmp(group, "prime256v1"))
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

static int import_blob(struct ca *ca, const unsigned char *at, const unsigned char *end)
{
	const unsigned char *p;
	long size;

	if (end - at < (ptrdiff_t)sizeof(export_magic) || memcmp(at, export_magic, sizeof(export_magic)) != 0)
		return -EINVAL;
	at += sizeof(export_magic);
	ca->key = import_key(&at, end);
	ca->leaf_key = ca->key ? import_key(&at, end) : NULL;
	p = ca->leaf_key ? take_piece(&at, end, &size) : NULL;
	ca->cert = p ? d2i_X509(NULL, &p, size) : NULL;
	if (!ca->cert || p != at || end - at != TICKET_KEYS)
		return -EINVAL;
	/* Its own signature, too: it may have lain somewhere since it was made. */
	if (X509_check_private_key(ca->cert, ca->key) != 1 || X509_check_ca(ca->cert) != 1 ||
	    X509_verify(ca->cert, ca->key) != 1)
		return -EINVAL;
	memcpy(ca->ticket_keys, at, TICKET_KEYS);
	return 0;
}

int ca_import(const void *data, size_t len, struct ca **ret)
{
	_ca_ struct ca *ca = calloc(1, sizeof(*ca));
	int r;

	if (!ca)
		return -ENOMEM;
	r = import_blob(ca, data, (const unsigned char *)data + len);
	ERR_clear_error();
	if (r == 0)
		*ret = take_ptr(ca);
	return r;
}

int ca_pem(const struct ca *ca, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;
	int r = -ENOMEM;

	if (bio && PEM_write_bio_X509(bio, ca->cert)) {
		len = BIO_get_mem_data(bio, &text);
		buf_append(out, text, (size_t)len);
		r = buf_error(out);
	}
	BIO_free(bio);
	return r;
}
