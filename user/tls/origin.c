/* SPDX-License-Identifier: MIT */
#include "tls/origin.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "base/cleanup.h"
#include "tls/openssl_ctx.h"
#include "tls/host_key.h"
#include "tls/ocsp.h"
#include "vocab/limits.h"
#include "loop/loop.h"

#define CHAIN_MAX 8    /* certificates between an origin's and a root; the web has three */
#define RESUME_S  3600 /* a resumed connection shows no certificate: this long the last one counts */
#define VAIN_MAX  3    /* offers in a row that an origin did not take: for RESUME_S none is made */

struct roots {
	X509_STORE *store;
	unsigned users;
};

struct origins {
	struct roots *roots;
	SSL_CTX *client;
	struct lru *tickets; /* host and port -> struct ticket */
	unsigned users;
};

struct ticket {
	SSL_SESSION *session; /* NULL: the origin gives some, and takes none back */
	time_t until;	      /* the certificate is to be seen again, or a session to be offered again */
	unsigned vain;	      /* how many were offered in a row before it, and not taken */
};

/* What the callbacks must know of one connection. It hangs on its SSL. */
struct attempt {
	struct origins *origins;
	SSL_SESSION *offered; /* counted */
	time_t until;	      /* of the ticket that was offered */
	unsigned vain;	      /* likewise */
	const char *problem;
	size_t key_len;
	unsigned char key[]; /* host and port */
};

/* -- roots ----------------------------------------------------------------- */

void roots_free(struct roots *roots)
{
	if (!roots || --roots->users > 0)
		return;
	X509_STORE_free(roots->store);
	free(roots);
}

static int roots_read(X509_STORE *store, BIO *bio)
{
	X509 *cert = X509_new_ex(lean_libctx(), NULL);
	unsigned n = 0;

	while (cert && PEM_read_bio_X509_AUX(bio, &cert, NULL, "")) {
		int ok = X509_STORE_add_cert(store, cert);

		X509_free(cert);
		if (!ok)
			return -ENOMEM;
		n++;
		cert = X509_new_ex(lean_libctx(), NULL);
	}
	X509_free(cert);
	/* The end of the text is no error; a certificate that cannot be read is. */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE || n == 0)
		return -EINVAL;
	return 0;
}

static int roots_copy(X509_STORE *to, const struct roots *from)
{
	STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(from->store);

	for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

		if (cert && !X509_STORE_add_cert(to, cert))
			return -ENOMEM;
	}
	return 0;
}

int roots_new(const char *pem, size_t len, struct roots **ret)
{
	return roots_extend(NULL, pem, len, ret);
}

int roots_extend(const struct roots *base, const char *pem, size_t len, struct roots **ret)
{
	_free_ struct roots *roots = calloc(1, sizeof(*roots));
	BIO *bio = len <= INT_MAX ? BIO_new_mem_buf(len ? pem : "", (int)len) : NULL;
	X509_STORE *store = X509_STORE_new();
	int r = -ENOMEM;

	ERR_clear_error();
	if (roots && bio && store)
		r = base ? roots_copy(store, base) : 0;
	if (r == 0 && len)
		r = roots_read(store, bio);
	ERR_clear_error();
	BIO_free(bio);
	if (r < 0) {
		X509_STORE_free(store);
		return r; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	}
	*roots = (struct roots){ .store = store, .users = 1 };
	*ret = take_ptr(roots);
	return 0;
}

/* -- sessions -------------------------------------------------------------- */

static void ticket_free(void *value)
{
	struct ticket *ticket = value;

	SSL_SESSION_free(ticket->session);
	free(ticket);
}

static void free_attempt(void *parent, void *value, CRYPTO_EX_DATA *data, int index, long argl, void *argp)
{
	struct attempt *attempt = value;
	struct ticket *ticket;

	(void)data;
	(void)index;
	(void)argl;
	(void)argp;
	if (!attempt)
		return;
	/* A session with which no handshake succeeds is not offered again. */
	ticket = attempt->offered ? lru_get(attempt->origins->tickets, attempt->key, attempt->key_len) : NULL;
	if (ticket && ticket->session == attempt->offered && !SSL_is_init_finished(parent))
		lru_drop(attempt->origins->tickets, attempt->key, attempt->key_len);
	SSL_SESSION_free(attempt->offered);
	origins_free(attempt->origins);
	free(attempt);
}

static int attempt_index(void)
{
	static int index = -1;

	if (index < 0)
		index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_attempt);
	return index;
}

/* When the earliest of the certificates that prove the origin ends. */
static time_t chain_end(const SSL *ssl, time_t end)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);

	for (int i = 0; i < sk_X509_num(chain); i++) {
		const ASN1_TIME *after = X509_get0_notAfter(sk_X509_value(chain, i));
		struct tm tm;

		if (X509_cmp_time(after, &end) < 0 && ASN1_TIME_to_tm(after, &tm))
			end = timegm(&tm);
	}
	return end;
}

/* What is kept of a connection that gave a session. */
static struct ticket ticket_make(const SSL *ssl, const struct attempt *attempt, SSL_SESSION *session, time_t now)
{
	/* A resumed connection does not make the certificate fresher. */
	if (SSL_session_reused(ssl))
		return (struct ticket){ .session = session, .until = attempt->until };
	/* Some origins have forgotten what they gave, and an offer is not for nothing: it is signed with a key of its own. */
	if (attempt->offered && attempt->vain + 1 >= VAIN_MAX)
		return (struct ticket){ .until = now + RESUME_S };
	return (struct ticket){ .session = session,
				.until = chain_end(ssl, now + RESUME_S),
				.vain = attempt->offered ? attempt->vain + 1 : 0 };
}

/* Called when the handshake has succeeded, certificate and all. 1: the session is ours now. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct attempt *attempt = SSL_get_ex_data(ssl, attempt_index());
	time_t now = (time_t)(loop_wall_us() / 1000000);
	struct ticket *ticket, *known;

	if (!attempt || SSL_get_verify_result(ssl) != X509_V_OK || !SSL_SESSION_is_resumable(session))
		return 0;
	known = lru_get(attempt->origins->tickets, attempt->key, attempt->key_len);
	if (known && !known->session && now < known->until)
		return 0;
	ticket = malloc(sizeof(*ticket));
	if (!ticket)
		return 0;
	*ticket = ticket_make(ssl, attempt, session, now);
	if (lru_put(attempt->origins->tickets, attempt->key, attempt->key_len, ticket) < 0) {
		free(ticket);
		return 0;
	}
	return ticket->session != NULL;
}

static void offer_session(SSL *ssl, struct attempt *attempt)
{
	struct lru *tickets = attempt->origins->tickets;
	struct ticket *ticket = lru_get(tickets, attempt->key, attempt->key_len);
	time_t now = (time_t)(loop_wall_us() / 1000000);

	if (!ticket || (!ticket->session && now < ticket->until))
		return;
	if (!ticket->session || now >= ticket->until || !SSL_SESSION_is_resumable(ticket->session) ||
	    !SSL_set_session(ssl, ticket->session)) {
		lru_drop(tickets, attempt->key, attempt->key_len);
		return;
	}
	SSL_SESSION_up_ref(ticket->session);
	attempt->offered = ticket->session;
	attempt->until = ticket->until;
	attempt->vain = ticket->vain;
}

/* -- certificates ---------------------------------------------------------- */

/* Called once the certificate is verified; 0 ends the handshake. */
static int on_status(SSL *ssl, void *arg)
{
	struct origins *origins = arg;
	struct attempt *attempt = SSL_get_ex_data(ssl, attempt_index());
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	const unsigned char *der = NULL;
	enum staple_verdict verdict;
	bool required;
	long len;

	if (SSL_session_reused(ssl))
		return 1; /* the certificate was seen, with its staple, when the session began */
	if (sk_X509_num(chain) < 1)
		return 0;
	required = staple_is_required(sk_X509_value(chain, 0));
	len = SSL_get_tlsext_status_ocsp_resp(ssl, &der);
	verdict = staple_check(der, len, chain, origins->roots->store);
	ERR_clear_error();
	if (verdict == STAPLE_REVOKED) {
		SSL_set_verify_result(ssl, X509_V_ERR_CERT_REVOKED);
		return 0;
	}
	if (!required || verdict == STAPLE_GOOD)
		return 1;
	SSL_set_verify_result(ssl,
			      verdict == STAPLE_NONE ? X509_V_ERR_OCSP_VERIFY_NEEDED : X509_V_ERR_OCSP_VERIFY_FAILED);
	attempt->problem = verdict == STAPLE_NONE ? "certificate must come with stapled OCSP, and came without"
						  : "stapled OCSP, which the certificate must have, is not valid";
	return 0;
}

static int origins_configure(struct origins *origins)
{
	static const unsigned char protocols[] = "\2h2\10http/1.1";
	SSL_CTX *ctx = origins->client;

	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_verify_depth(ctx, CHAIN_MAX);
	SSL_CTX_set_security_level(ctx, 2); /* 112 bits: RSA 2048, EC 224, no SHA-1 */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set1_cert_store(ctx, origins->roots->store);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	SSL_CTX_set_tlsext_status_type(ctx, TLSEXT_STATUSTYPE_ocsp);
	SSL_CTX_set_tlsext_status_cb(ctx, on_status);
	SSL_CTX_set_tlsext_status_arg(ctx, origins);
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) || !SSL_CTX_set_max_proto_version(ctx, 0) ||
	    !SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:DHE+AES:"
					  "kRSA+AESGCM:kRSA+AES:!aNULL:!aDSS:!PSK:!SRP:!AESCCM") ||
	    !SSL_CTX_set_ciphersuites(ctx,
				      "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") ||
	    SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1) != 0) /* 0 is success, here only */
		return -ENOMEM;
	return 0;
}

void origins_free(struct origins *origins)
{
	if (!origins || --origins->users > 0)
		return;
	lru_free(origins->tickets);
	SSL_CTX_free(origins->client);
	roots_free(origins->roots);
	free(origins);
}

static void origins_free_cleanup(struct origins **origins)
{
	origins_free(*origins);
}

int origins_new(struct roots *roots, struct origins **ret)
{
	cleanup(origins_free_cleanup) struct origins *origins = calloc(1, sizeof(*origins));
	int r;

	if (!origins)
		return -ENOMEM;
	origins->users = 1;
	origins->roots = roots;
	roots->users++;
	origins->client = SSL_CTX_new_ex(lean_libctx(), NULL, TLS_client_method());
	if (!origins->client || attempt_index() < 0)
		return -ENOMEM; /* cppcheck-suppress memleak ; it does not see the cleanup attribute */
	r = origins_configure(origins);
	if (r == 0)
		r = lru_new(NP_TICKETS_MAX, ticket_free, &origins->tickets);
	ERR_clear_error();
	if (r == 0)
		*ret = take_ptr(origins);
	return r;
}

static bool set_identity(SSL *ssl, const struct host *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	if (host->is_addr) {
		bool v4 = np_addr_is_v4(&host->addr);

		return X509_VERIFY_PARAM_set1_ip(param, v4 ? host->addr.b + 12 : host->addr.b, v4 ? 4 : 16);
	}
	X509_VERIFY_PARAM_set_hostflags(param,
					X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return host->name[0] && X509_VERIFY_PARAM_set1_host(param, host->name, 0) &&
	       SSL_set_tlsext_host_name(ssl, host->name);
}

int origin_ssl(struct origins *origins, const struct host *host, uint16_t port, SSL **ret)
{
	unsigned char key[LRU_KEY_MAX];
	size_t key_len = host_key(host, port, key);
	struct attempt *attempt = calloc(1, sizeof(*attempt) + key_len);
	SSL *ssl = SSL_new(origins->client);

	if (!attempt || !ssl || !SSL_set_ex_data(ssl, attempt_index(), attempt)) {
		free(attempt);
		SSL_free(ssl);
		return -ENOMEM;
	}
	attempt->origins = origins; /* freed with ssl from here on */
	origins->users++;
	attempt->key_len = key_len;
	memcpy(attempt->key, key, key_len);
	if (!set_identity(ssl, host)) {
		SSL_free(ssl);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_connect_state(ssl);
	offer_session(ssl, attempt);
	*ret = ssl;
	return 0;
}

const char *origin_problem(const SSL *ssl)
{
	const struct attempt *attempt = SSL_get_ex_data(ssl, attempt_index());
	long verify = SSL_get_verify_result(ssl);

	if (attempt && attempt->problem)
		return attempt->problem;
	return verify == X509_V_OK ? NULL : X509_verify_cert_error_string(verify);
}
