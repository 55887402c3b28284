/* SPDX-License-Identifier: MIT */
#include "tls/origin.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "certs.h"
#include "vocab/limits.h"

/* One hierarchy for all tests: a root that is trusted, an intermediate, and whatever leaf a test makes. */
static struct test_cert root, middle, other_root;
static struct roots *roots;
static struct origins *origins;

static struct host host_of(const char *text)
{
	struct host host;

	assert_int_equal(host_parse(text, strlen(text), &host), 0);
	return host;
}

static int group_setup(void **state)
{
	_buf_ struct buf pem = BUF_INIT(1 << 20);

	(void)state;
	root = test_cert(&(struct test_spec){ .cn = "root", .constraints = "critical,CA:TRUE" }, NULL);
	other_root = test_cert(&(struct test_spec){ .cn = "other root", .constraints = "critical,CA:TRUE" }, NULL);
	middle = test_cert(&(struct test_spec){ .cn = "middle", .constraints = "critical,CA:TRUE" }, &root);
	test_pem(root.cert, &pem);
	return roots_new(pem.data, pem.len, &roots);
}

static int group_teardown(void **state)
{
	(void)state;
	roots_free(roots);
	test_cert_free(&root);
	test_cert_free(&middle);
	test_cert_free(&other_root);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return origins_new(roots, &origins);
}

static int teardown(void **state)
{
	(void)state;
	origins_free(origins);
	return 0;
}

/* Connects to host as port 443; what is wrong, or NULL. */
static const char *connect_to(SSL_CTX *ctx, const char *host, int version, bool *ret_reused)
{
	struct host to = host_of(host);
	const char *problem = NULL;
	SSL *client, *server = SSL_new(ctx);

	assert_int_equal(origin_ssl(origins, &to, 443, &client), 0);
	SSL_set_accept_state(server);
	if (version) {
		SSL_set_min_proto_version(server, version);
		SSL_set_max_proto_version(server, version);
	}
	if (!test_shake(client, server)) {
		problem = origin_problem(client);
		if (!problem)
			problem = "?";
	}
	if (ret_reused)
		*ret_reused = SSL_session_reused(client);
	SSL_free(client);
	SSL_free(server);
	return problem;
}

/* The leaf of spec behind the chain, seen with both versions of TLS. */
static const char *shown(const struct test_spec *spec, const struct test_cert *issuer, bool with_middle,
			 const char *host)
{
	struct test_cert leaf = test_cert(spec, issuer);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, with_middle, NULL);
	const char *problem = connect_to(ctx, host, TLS1_3_VERSION, NULL);
	const char *problem12 = connect_to(ctx, host, TLS1_2_VERSION, NULL);

	if (problem || problem12) {
		assert_non_null(problem);
		assert_non_null(problem12);
		assert_string_equal(problem, problem12);
	}
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
	return problem;
}

#define GOOD(...) assert_null(shown(__VA_ARGS__))
#define BAD(say, ...)                                      \
	do {                                               \
		const char *problem_ = shown(__VA_ARGS__); \
		assert_non_null(problem_);                 \
		assert_string_equal(problem_, say);        \
	} while (0)

static void test_good(void **state)
{
	struct test_spec spec = { .san = "DNS:www.good.test,DNS:good.test", .purpose = "serverAuth" };

	(void)state;
	GOOD(&spec, &middle, true, "www.good.test");
	GOOD(&spec, &middle, true, "good.test");
	GOOD(&spec, &root, false, "good.test");
	GOOD(&(struct test_spec){ .san = "DNS:good.test", .rsa_bits = 2048 }, &middle, true, "good.test");
}

static void test_times(void **state)
{
	(void)state;
	BAD("certificate has expired", &(struct test_spec){ .san = "DNS:a.test", .from_s = -2 * TEST_DAY, .to_s = -60 },
	    &middle, true, "a.test");
	BAD("certificate is not yet valid", &(struct test_spec){ .san = "DNS:a.test", .from_s = 600, .to_s = TEST_DAY },
	    &middle, true, "a.test");
}

static void test_names(void **state)
{
	struct test_spec wild = { .san = "DNS:*.a.test" }, partial = { .san = "DNS:w*.a.test" };

	(void)state;
	BAD("hostname mismatch", &(struct test_spec){ .san = "DNS:b.test" }, &middle, true, "a.test");
	/* The common name is not a name: not without a subjectAltName either. */
	BAD("hostname mismatch", &(struct test_spec){ .cn = "a.test", .san = "DNS:b.test" }, &middle, true, "a.test");
	BAD("hostname mismatch", &(struct test_spec){ .cn = "a.test" }, &middle, true, "a.test");
	GOOD(&wild, &middle, true, "www.a.test");
	BAD("hostname mismatch", &wild, &middle, true, "a.test");
	BAD("hostname mismatch", &wild, &middle, true, "x.www.a.test");
	BAD("hostname mismatch", &partial, &middle, true, "www.a.test");
	BAD("hostname mismatch", &(struct test_spec){ .san = "DNS:*" }, &middle, true, "a.test");
	BAD("hostname mismatch", &(struct test_spec){ .san = "DNS:*.test" }, &middle, true, "a.test");
	BAD("hostname mismatch", &(struct test_spec){ .san = "DNS:www.*.test" }, &middle, true, "www.a.test");
}

static void test_addresses(void **state)
{
	struct test_spec v4 = { .san = "IP:192.0.2.7" }, v6 = { .san = "IP:2001:db8::7" };

	(void)state;
	GOOD(&v4, &middle, true, "192.0.2.7");
	BAD("IP address mismatch", &v4, &middle, true, "192.0.2.8");
	GOOD(&v6, &middle, true, "[2001:db8::7]");
	BAD("IP address mismatch", &v6, &middle, true, "[2001:db8::8]");
	/* An address as a name is no address. */
	BAD("IP address mismatch", &(struct test_spec){ .san = "DNS:192.0.2.7" }, &middle, true, "192.0.2.7");
	BAD("IP address mismatch", &(struct test_spec){ .cn = "192.0.2.7", .san = "DNS:a.test" }, &middle, true,
	    "192.0.2.7");
	BAD("hostname mismatch", &v4, &middle, true, "a.test");
}

static void test_chains(void **state)
{
	struct test_spec leaf = { .san = "DNS:a.test" };
	struct test_cert fake;

	(void)state;
	BAD("self-signed certificate", &leaf, NULL, false, "a.test");
	BAD("unable to get local issuer certificate", &leaf, &other_root, false, "a.test");
	BAD("unable to get local issuer certificate", &leaf, &middle, false, "a.test");
	BAD("unsuitable certificate purpose", &(struct test_spec){ .san = "DNS:a.test", .purpose = "clientAuth" },
	    &middle, true, "a.test");

	/* A leaf that signs a leaf. */
	fake = middle;
	middle = test_cert(&(struct test_spec){ .cn = "leaf", .constraints = "critical,CA:FALSE" }, &root);
	BAD("invalid CA certificate", &leaf, &middle, true, "a.test");
	test_cert_free(&middle);
	middle = test_cert(&(struct test_spec){ .cn = "leaf without constraints", .san = "DNS:b.test" }, &root);
	BAD("invalid CA certificate", &leaf, &middle, true, "a.test");
	test_cert_free(&middle);
	middle = fake;
}

static void test_weak(void **state)
{
	struct test_cert strong = middle;

	(void)state;
	BAD("EE certificate key too weak", &(struct test_spec){ .san = "DNS:a.test", .rsa_bits = 1024 }, &middle, true,
	    "a.test");
	BAD("CA signature digest algorithm too weak", &(struct test_spec){ .san = "DNS:a.test", .md = EVP_sha1() },
	    &middle, true, "a.test");
	middle = test_cert(&(struct test_spec){ .cn = "weak", .constraints = "critical,CA:TRUE", .rsa_bits = 1024 },
			   &root);
	BAD("CA certificate key too weak", &(struct test_spec){ .san = "DNS:a.test" }, &middle, true, "a.test");
	test_cert_free(&middle);
	middle = test_cert(&(struct test_spec){ .cn = "sha1", .constraints = "critical,CA:TRUE", .md = EVP_sha1() },
			   &root);
	BAD("CA signature digest algorithm too weak", &(struct test_spec){ .san = "DNS:a.test" }, &middle, true,
	    "a.test");
	test_cert_free(&middle);
	middle = strong;
}

static void test_versions(void **state)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &middle);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, NULL);

	(void)state;
	SSL_CTX_set_min_proto_version(ctx, 0);
	assert_string_equal(connect_to(ctx, "a.test", TLS1_1_VERSION, NULL), "?");
	assert_null(connect_to(ctx, "a.test", TLS1_2_VERSION, NULL));
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
}

/* -- stapled OCSP ----------------------------------------------------------- */

enum staple_kind {
	NO_STAPLE,
	GARBAGE,
	FROM_ISSUER,
	FROM_LEAF,
	FROM_STRANGER,
	FROM_DELEGATE,
	FROM_PRETENDER,
	OF_ANOTHER
};

static const char *stapled(bool must, enum staple_kind kind, int status, long this_s, long next_s)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test", .must_staple = must }, &middle);
	struct test_cert another = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &middle);
	struct test_cert delegate =
		test_cert(&(struct test_spec){ .cn = "responder", .purpose = "OCSPSigning" }, &middle);
	struct test_cert pretender =
		test_cert(&(struct test_spec){ .cn = "pretender", .purpose = "serverAuth" }, &middle);
	const struct test_cert *signers[] = { NULL, NULL, &middle, &leaf, &other_root, &delegate, &pretender, &middle };
	const struct test_cert *chain[] = { &middle };
	struct test_staple staple = { 0 };
	const char *problem, *problem12;
	SSL_CTX *ctx;

	if (kind == GARBAGE)
		staple = (struct test_staple){ OPENSSL_memdup("\x30\x03\x0a\x01", 4), 4 };
	else if (kind != NO_STAPLE)
		staple = test_staple(kind == OF_ANOTHER ? another.cert : leaf.cert, middle.cert, signers[kind], status,
				     this_s, next_s);
	ctx = test_server(&leaf, chain, 1, &staple);
	problem = connect_to(ctx, "a.test", TLS1_3_VERSION, NULL);
	problem12 = connect_to(ctx, "a.test", TLS1_2_VERSION, NULL);
	assert_true(problem == problem12 || (problem && problem12 && !strcmp(problem, problem12)));
	SSL_CTX_free(ctx);
	OPENSSL_free(staple.der);
	test_cert_free(&leaf);
	test_cert_free(&another);
	test_cert_free(&delegate);
	test_cert_free(&pretender);
	return problem;
}

#define OK_STATUS V_OCSP_CERTSTATUS_GOOD, -60, 3600

static void test_must_staple(void **state)
{
	static const char without[] = "certificate must come with stapled OCSP, and came without";
	static const char invalid[] = "stapled OCSP, which the certificate must have, is not valid";

	(void)state;
	assert_null(stapled(true, FROM_ISSUER, OK_STATUS));
	assert_null(stapled(true, FROM_DELEGATE, OK_STATUS));
	assert_string_equal(stapled(true, NO_STAPLE, OK_STATUS), without);
	assert_string_equal(stapled(true, OF_ANOTHER, OK_STATUS), without);
	assert_string_equal(stapled(true, GARBAGE, OK_STATUS), invalid);
	assert_string_equal(stapled(true, FROM_LEAF, OK_STATUS), invalid);
	assert_string_equal(stapled(true, FROM_STRANGER, OK_STATUS), invalid);
	assert_string_equal(stapled(true, FROM_PRETENDER, OK_STATUS), invalid);
	assert_string_equal(stapled(true, FROM_ISSUER, V_OCSP_CERTSTATUS_GOOD, -7200, -3600), invalid);
	assert_string_equal(stapled(true, FROM_ISSUER, V_OCSP_CERTSTATUS_GOOD, 3600, 7200), invalid);
	assert_string_equal(stapled(true, FROM_ISSUER, V_OCSP_CERTSTATUS_GOOD, -60, 0), invalid);
	assert_string_equal(stapled(true, FROM_ISSUER, V_OCSP_CERTSTATUS_UNKNOWN, -60, 3600), invalid);
	assert_string_equal(stapled(true, FROM_ISSUER, V_OCSP_CERTSTATUS_REVOKED, -60, 3600), "certificate revoked");
}

static void test_revoked(void **state)
{
	(void)state;
	assert_string_equal(stapled(false, FROM_ISSUER, V_OCSP_CERTSTATUS_REVOKED, -60, 3600), "certificate revoked");
	assert_string_equal(stapled(false, FROM_DELEGATE, V_OCSP_CERTSTATUS_REVOKED, -60, 3600), "certificate revoked");
	assert_string_equal(stapled(false, FROM_ISSUER, V_OCSP_CERTSTATUS_REVOKED, -7200, -3600),
			    "certificate revoked");
	/* Nobody who may not say so is heeded, and nobody needs a staple who did not promise one. */
	assert_null(stapled(false, FROM_STRANGER, V_OCSP_CERTSTATUS_REVOKED, -60, 3600));
	assert_null(stapled(false, FROM_ISSUER, OK_STATUS));
	assert_null(stapled(false, NO_STAPLE, OK_STATUS));
	assert_null(stapled(false, GARBAGE, OK_STATUS));
}

/* -- resumption --------------------------------------------------------------- */

static void resume_with(int version)
{
	struct test_cert leaf =
		test_cert(&(struct test_spec){ .san = "DNS:a.test,DNS:b.test", .must_staple = true }, &middle);
	struct test_staple staple = test_staple(leaf.cert, middle.cert, &middle, OK_STATUS);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, &staple), *stranger;
	struct test_cert fake = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &other_root);
	struct origins *mine = origins;
	bool reused;

	assert_null(connect_to(ctx, "a.test", version, &reused));
	assert_false(reused);
	for (int i = 0; i < 3; i++) {
		assert_null(connect_to(ctx, "a.test", version, &reused));
		assert_true(reused);
	}
	/* Not for another name, */
	assert_null(connect_to(ctx, "b.test", version, &reused));
	assert_false(reused);
	/* not of another of our sessions, */
	assert_int_equal(origins_new(roots, &origins), 0);
	assert_null(connect_to(ctx, "a.test", version, &reused));
	assert_false(reused);
	origins_free(origins);
	origins = mine;
	/* and it does not open the door to someone else, who cannot have kept it. */
	stranger = test_server(&fake, NULL, 0, NULL);
	assert_string_equal(connect_to(stranger, "a.test", version, &reused), "unable to get local issuer certificate");
	assert_false(reused);
	/* That handshake failed: the next one starts afresh. */
	assert_null(connect_to(ctx, "a.test", version, &reused));
	assert_false(reused);
	assert_null(connect_to(ctx, "a.test", version, &reused));
	assert_true(reused);
	SSL_CTX_free(stranger);
	SSL_CTX_free(ctx);
	OPENSSL_free(staple.der);
	test_cert_free(&leaf);
	test_cert_free(&fake);
}

static void test_resume_13(void **state)
{
	(void)state;
	resume_with(TLS1_3_VERSION);
}

static void test_resume_12(void **state)
{
	(void)state;
	resume_with(TLS1_2_VERSION);
}

static struct ticket *ticket_of(const char *host)
{
	unsigned char key[LRU_KEY_MAX];
	struct host to = host_of(host);

	return lru_get(origins->tickets, key, host_key(&to, 443, key));
}

/* A chain of resumptions does not outlive what was proved at its beginning. */
static void test_resume_ends(void **state)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &middle);
	struct test_cert brief =
		test_cert(&(struct test_spec){ .san = "DNS:b.test", .from_s = -60, .to_s = 30 }, &middle);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, NULL), *brief_ctx = test_server(&brief, chain, 1, NULL);
	time_t now = time(NULL), until;
	bool reused;

	(void)state;
	assert_null(connect_to(ctx, "a.test", 0, NULL));
	until = ticket_of("a.test")->until;
	assert_in_range(until, now + RESUME_S, now + RESUME_S + 60);
	ticket_of("a.test")->until = until = now + 50;
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_true(reused);
	assert_int_equal(ticket_of("a.test")->until, until);
	ticket_of("a.test")->until = now - 1;
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_false(reused);

	assert_null(connect_to(brief_ctx, "b.test", 0, NULL));
	assert_in_range(ticket_of("b.test")->until, now, now + 40);
	SSL_CTX_free(ctx);
	SSL_CTX_free(brief_ctx);
	test_cert_free(&leaf);
	test_cert_free(&brief);
}

/* An origin that gives sessions and takes none back is offered some, and then none for a while. */
static void test_offers_in_vain(void **state)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &middle);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, NULL), *forgetful = test_server(&leaf, chain, 1, NULL);
	const time_t now = time(NULL);
	bool reused;

	(void)state;
	SSL_CTX_set_options(forgetful, SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(forgetful, SSL_SESS_CACHE_OFF);
	for (int i = 0; i <= VAIN_MAX; i++) {
		if (i)
			assert_non_null(ticket_of("a.test")->session);
		assert_null(connect_to(forgetful, "a.test", TLS1_3_VERSION, &reused));
		assert_false(reused);
	}
	assert_null(ticket_of("a.test")->session);
	/* Meanwhile nothing is kept, and each connection shows its certificate; */
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_false(reused);
	assert_in_range(ticket_of("a.test")->until, now + RESUME_S, now + RESUME_S + 60);
	/* then it is tried again. */
	ticket_of("a.test")->until = now - 1;
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_false(reused);
	assert_null(connect_to(ctx, "a.test", 0, &reused));
	assert_true(reused);
	/* An origin that took one in between has not forgotten them all. */
	for (int i = 0; i < 2 * VAIN_MAX; i++) {
		assert_null(connect_to(i % 2 ? ctx : forgetful, "a.test", TLS1_3_VERSION, NULL));
		assert_non_null(ticket_of("a.test")->session);
		if (i % 2)
			assert_null(connect_to(ctx, "a.test", TLS1_3_VERSION, NULL));
	}
	SSL_CTX_free(forgetful);
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
}

static void test_tickets_are_bounded(void **state)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:*.a.test" }, &middle);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, NULL);
	char name[32];
	bool reused;

	(void)state;
	for (int i = 0; i < NP_TICKETS_MAX + 8; i++) {
		snprintf(name, sizeof(name), "h%d.a.test", i);
		assert_null(connect_to(ctx, name, 0, NULL));
	}
	assert_int_equal(lru_count(origins->tickets), NP_TICKETS_MAX);
	assert_null(connect_to(ctx, "h0.a.test", 0, &reused));
	assert_false(reused);
	assert_null(connect_to(ctx, name, 0, &reused));
	assert_true(reused);
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
}

/* -- the rest ------------------------------------------------------------------- */

static int seen_name;
static char seen[64];

static int on_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	(void)arg;
	seen_name++;
	snprintf(seen, sizeof(seen), "%s", name ? name : "none");
	return SSL_TLSEXT_ERR_OK;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
		   unsigned in_len, void *arg)
{
	(void)ssl;
	(void)arg;
	(void)out;
	(void)out_len;
	assert_int_equal(in_len, 12);
	assert_memory_equal(in, "\2h2\10http/1.1", 12);
	return SSL_TLSEXT_ERR_NOACK;
}

static void test_hello(void **state)
{
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test,IP:192.0.2.7" }, &middle);
	const struct test_cert *chain[] = { &middle };
	SSL_CTX *ctx = test_server(&leaf, chain, 1, NULL);

	(void)state;
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	assert_null(connect_to(ctx, "a.test", 0, NULL));
	assert_string_equal(seen, "a.test");
	assert_null(connect_to(ctx, "192.0.2.7", 0, NULL));
	assert_string_equal(seen, "none");
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
}

static void test_roots(void **state)
{
	struct roots *made;
	_buf_ struct buf pem = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(roots_new("hello", 5, &made), -EINVAL);
	test_pem(root.cert, &pem);
	buf_puts(&pem, "# a comment\n");
	test_pem(other_root.cert, &pem);
	test_pem(root.cert, &pem); /* twice is fine */
	assert_int_equal(roots_new(pem.data, pem.len, &made), 0);
	assert_int_equal(sk_X509_OBJECT_num(X509_STORE_get0_objects(made->store)), 2);
	roots_free(made);
	pem.data[pem.len / 2 + 10] = '!';
	assert_int_equal(roots_new(pem.data, pem.len, &made), -EINVAL);
	assert_int_equal(ERR_peek_error(), 0);
}

/* Everything is counted: the order of freeing does not matter. */
static void test_no_root_is_no_trust(void **state)
{
	struct test_spec spec = { .san = "DNS:www.good.test", .purpose = "serverAuth" };
	struct origins *before = origins, *made_origins;
	struct roots *made;

	(void)state;
	/* As link_blob_map() has an empty blob, and as text. */
	assert_int_equal(roots_new(NULL, 0, &made), 0);
	roots_free(made);
	assert_int_equal(roots_new("", 0, &made), 0);
	assert_int_equal(origins_new(made, &made_origins), 0);
	origins = made_origins;
	BAD("unable to get local issuer certificate", &spec, &middle, true, "www.good.test");
	origins = before;
	origins_free(made_origins);
	roots_free(made);
	/* None more. */
	assert_int_equal(roots_extend(roots, "", 0, &made), 0);
	assert_int_equal(sk_X509_OBJECT_num(X509_STORE_get0_objects(made->store)), 1);
	roots_free(made);
}

static void test_lifetimes(void **state)
{
	_buf_ struct buf pem = BUF_INIT(1 << 20);
	struct test_cert leaf = test_cert(&(struct test_spec){ .san = "DNS:a.test" }, &root);
	SSL_CTX *ctx = test_server(&leaf, NULL, 0, NULL);
	struct host to = host_of("a.test");
	struct roots *own_roots;
	struct origins *own;
	SSL *client, *server = SSL_new(ctx);

	(void)state;
	test_pem(root.cert, &pem);
	assert_int_equal(roots_new(pem.data, pem.len, &own_roots), 0);
	assert_int_equal(origins_new(own_roots, &own), 0);
	roots_free(own_roots);
	assert_int_equal(origin_ssl(own, &to, 443, &client), 0);
	origins_free(own);
	SSL_set_accept_state(server);
	assert_true(test_shake(client, server));
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(ctx);
	test_cert_free(&leaf);
	roots_free(NULL);
	origins_free(NULL);
}

/* Keys that no origin should have cannot even be read; all others can, so that they are what the tests above are of. */
static void test_lean(void **state)
{
	static const char *const kept[] = { "RSA", "RSA-PSS", "EC", "ED25519", "X25519", "DH", "HKDF" };
	OSSL_LIB_CTX *lean = lean_libctx();

	(void)state;
	assert_non_null(lean);
	assert_ptr_equal(lean, lean_libctx());
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		EVP_KEYMGMT *keys = EVP_KEYMGMT_fetch(lean, kept[i], NULL);

		assert_non_null(keys);
		EVP_KEYMGMT_free(keys);
	}
	assert_null(EVP_KEYMGMT_fetch(lean, "DSA", NULL));
	assert_null(EVP_KEYMGMT_fetch(lean, "SM2", NULL));
	ERR_clear_error();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chains, setup, teardown),
		cmocka_unit_test_setup_teardown(test_weak, setup, teardown),
		cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_must_staple, setup, teardown),
		cmocka_unit_test_setup_teardown(test_revoked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume_13, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume_12, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_offers_in_vain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tickets_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(test_roots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_root_is_no_trust, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lifetimes, setup, teardown),
		cmocka_unit_test(test_lean),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
