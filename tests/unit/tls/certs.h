/* SPDX-License-Identifier: MIT */
/* Certificates, staples and TLS servers of the tests, made in memory. */
#pragma once

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/buf.h"

#define TEST_DAY 86400L

struct test_cert {
	X509 *cert;
	EVP_PKEY *key;
};

struct test_spec {
	const char *cn;		 /* of the subject; NULL: "test" */
	const char *san;	 /* as in openssl.cnf: "DNS:a.test,IP:192.0.2.1"; NULL: none */
	const char *constraints; /* "critical,CA:TRUE"; NULL: none */
	const char *purpose;	 /* extended key usage; NULL: none */
	bool must_staple;
	long from_s, to_s; /* relative to now; both 0: a day each */
	unsigned rsa_bits; /* 0: P-256 */
	const EVP_MD *md;  /* NULL: SHA-256 */
};

static inline void test_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;

	if (!value)
		return;
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
	assert_non_null(ext);
	assert_int_equal(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

/* issuer NULL: signed by itself. */
static inline struct test_cert test_cert(const struct test_spec *spec, const struct test_cert *issuer)
{
	static long serial = 1000;
	struct test_cert made = {
		.cert = X509_new(),
		.key = spec->rsa_bits ? EVP_RSA_gen(spec->rsa_bits) : EVP_EC_gen("P-256"),
	};
	X509_NAME *name = X509_get_subject_name(made.cert);
	const char *cn = spec->cn ? spec->cn : "test";
	bool has_time = spec->from_s || spec->to_s;

	if (!issuer)
		issuer = &made;
	assert_non_null(made.key);
	X509_set_version(made.cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial++);
	X509_set_pubkey(made.cert, made.key);
	X509_gmtime_adj(X509_getm_notBefore(made.cert), has_time ? spec->from_s : -TEST_DAY);
	X509_gmtime_adj(X509_getm_notAfter(made.cert), has_time ? spec->to_s : TEST_DAY);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(made.cert, X509_get_subject_name(issuer->cert));
	test_extension(made.cert, issuer->cert, NID_basic_constraints, spec->constraints);
	test_extension(made.cert, issuer->cert, NID_subject_alt_name, spec->san);
	test_extension(made.cert, issuer->cert, NID_ext_key_usage, spec->purpose);
	test_extension(made.cert, issuer->cert, NID_tlsfeature, spec->must_staple ? "status_request" : NULL);
	test_extension(made.cert, issuer->cert, NID_subject_key_identifier, "hash");
	assert_true(X509_sign(made.cert, issuer->key, spec->md ? spec->md : EVP_sha256()) > 0);
	return made;
}

static inline void test_cert_free(struct test_cert *cert)
{
	X509_free(cert->cert);
	EVP_PKEY_free(cert->key);
	*cert = (struct test_cert){ 0 };
}

static inline void test_pem(X509 *cert, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;

	assert_int_equal(PEM_write_bio_X509(bio, cert), 1);
	len = BIO_get_mem_data(bio, &text);
	buf_append(out, text, (size_t)len);
	BIO_free(bio);
}

struct test_staple {
	unsigned char *der;
	int len;
};

/* What signer says of cert; this_s and next_s relative to now, next_s 0: without an end. */
static inline struct test_staple test_staple(X509 *cert, X509 *issuer, const struct test_cert *signer, int status,
					     long this_s, long next_s)
{
	OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
	OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), cert, issuer);
	ASN1_TIME *this_update = X509_gmtime_adj(NULL, this_s),
		  *next_update = next_s ? X509_gmtime_adj(NULL, next_s) : NULL;
	ASN1_TIME *revoked = status == V_OCSP_CERTSTATUS_REVOKED ? X509_gmtime_adj(NULL, -60) : NULL;
	struct test_staple made = { 0 };
	OCSP_RESPONSE *response;

	assert_non_null(OCSP_basic_add1_status(basic, id, status, 0, revoked, this_update, next_update));
	assert_int_equal(OCSP_basic_sign(basic, signer->cert, signer->key, EVP_sha256(), NULL, 0), 1);
	response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
	made.len = i2d_OCSP_RESPONSE(response, &made.der);
	assert_true(made.len > 0);
	OCSP_RESPONSE_free(response);
	OCSP_BASICRESP_free(basic);
	OCSP_CERTID_free(id);
	ASN1_TIME_free(this_update);
	ASN1_TIME_free(next_update);
	ASN1_TIME_free(revoked);
	return made;
}

static inline int test_on_status(SSL *ssl, void *arg)
{
	struct test_staple *staple = arg;
	unsigned char *copy;

	if (!staple->der)
		return SSL_TLSEXT_ERR_NOACK;
	copy = OPENSSL_memdup(staple->der, (size_t)staple->len);
	SSL_set_tlsext_status_ocsp_resp(ssl, copy, staple->len);
	return SSL_TLSEXT_ERR_OK;
}

/* A server that shows leaf and chain, as weak as they may be. staple may be NULL. */
static inline SSL_CTX *test_server(const struct test_cert *leaf, const struct test_cert *const *chain, size_t n,
				   struct test_staple *staple)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"test", 4);
	assert_int_equal(SSL_CTX_use_certificate(ctx, leaf->cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, leaf->key), 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(SSL_CTX_add1_chain_cert(ctx, chain[i]->cert), 1);
	if (staple) {
		SSL_CTX_set_tlsext_status_cb(ctx, test_on_status);
		SSL_CTX_set_tlsext_status_arg(ctx, staple);
	}
	return ctx;
}

/* Both shake hands over a socket pair until each has succeeded or failed; then bytes both ways, so that the client
 * has seen the tickets. True when both succeeded. Both must have a role. */
static inline bool test_shake(SSL *client, SSL *server)
{
	int fds[2], done[2] = { 0, 0 };
	SSL *both[2] = { client, server };
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		SSL_set_fd(both[i], fds[i]);
	for (int turn = 0; turn < 100 && (!done[0] || !done[1]); turn++) {
		int i = turn % 2, r;

		if (done[i])
			continue;
		ERR_clear_error();
		r = SSL_do_handshake(both[i]);
		if (r == 1)
			done[i] = 1;
		else if (SSL_get_error(both[i], r) != SSL_ERROR_WANT_READ)
			done[i] = -1;
	}
	if (done[0] == 1 && done[1] == 1) {
		assert_int_equal(SSL_write(server, "x", 1), 1);
		assert_int_equal(SSL_read(client, &byte, 1), 1);
		assert_int_equal(SSL_write(client, "y", 1), 1);
		assert_int_equal(SSL_read(server, &byte, 1), 1);
		for (int i = 0; i < 2; i++)
			SSL_set_shutdown(both[i], SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	}
	ERR_clear_error();
	close(fds[0]);
	close(fds[1]);
	return done[0] == 1 && done[1] == 1;
}
