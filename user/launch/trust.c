/* SPDX-License-Identifier: MIT */
#include "launch/trust.h"

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/nssdb.h"
#include "vocab/limits.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END	  "-----END CERTIFICATE-----"

/* Java's own format for key stores. The password keeps no secret: it goes into the checksum. */
#define JKS_MAGIC    0xfeedfeedu
#define JKS_VERSION  2u
#define JKS_TRUSTED  2u
#define JKS_PASSWORD "changeit"
#define JKS_SALT     "Mighty Aphrodite"

struct cursor {
	const char *at, *end;
};

static const char *text_find(const char *from, const char *end, const char *what)
{
	return memmem(from, (size_t)(end - from), what, strlen(what));
}

/* The next block between the two lines: its bytes, to be freed. 1; 0 at the end; -ENOMEM. A block that is no base64 is
 * passed over. */
static int certificate_next(struct cursor *cursor, uint8_t **ret_der, size_t *ret_len)
{
	const char *begin, *end;

	while ((begin = text_find(cursor->at, cursor->end, PEM_BEGIN))) {
		struct base64_decode_ctx decode;
		_free_ uint8_t *der = NULL;
		size_t len;

		begin += strlen(PEM_BEGIN);
		end = text_find(begin, cursor->end, PEM_END);
		if (!end)
			break;
		cursor->at = end + strlen(PEM_END);
		len = BASE64_DECODE_LENGTH((size_t)(end - begin));
		der = malloc(len + 1);
		if (!der)
			return -ENOMEM;
		base64_decode_init(&decode);
		if (!base64_decode_update(&decode, &len, der, (size_t)(end - begin), begin) ||
		    !base64_decode_final(&decode) || len < 2 || der[0] != 0x30)
			continue;
		*ret_der = take_ptr(der);
		*ret_len = len;
		return 1;
	}
	cursor->at = cursor->end;
	return 0;
}

static void u16_put(struct buf *out, size_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	buf_append(out, bytes, sizeof(bytes));
}

static void u32_put(struct buf *out, size_t value)
{
	u16_put(out, value >> 16);
	u16_put(out, value & 0xffff);
}

static void word_put(struct buf *out, const char *word)
{
	u16_put(out, strlen(word));
	buf_puts(out, word);
}

static void entry_put(struct buf *out, unsigned number, const uint8_t *der, size_t len)
{
	_buf_ struct buf alias = BUF_INIT(32);

	buf_printf(&alias, "netpawl-%u", number);
	u32_put(out, JKS_TRUSTED);
	word_put(out, alias.data ? alias.data : "");
	u32_put(out, 0); /* made at: milliseconds since 1970, in 64 bits. Nobody asks */
	u32_put(out, 0);
	word_put(out, "X.509");
	u32_put(out, len);
	buf_append(out, der, len);
}

/* SHA-1 over the password in UTF-16, the salt and the store. */
static void checksum_put(struct buf *out)
{
	static const char password[] = JKS_PASSWORD;
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx sha;

	sha1_init(&sha);
	for (size_t i = 0; i < strlen(password); i++)
		sha1_update(&sha, 2, (const uint8_t[]){ 0, (uint8_t)password[i] });
	sha1_update(&sha, strlen(JKS_SALT), (const uint8_t *)JKS_SALT);
	if (out->data)
		sha1_update(&sha, out->len, (const uint8_t *)out->data);
	sha1_digest(&sha, sizeof(digest), digest);
	buf_append(out, digest, sizeof(digest));
}

/* Adds the certificates of one PEM text; their number, or -ENOMEM. */
static int entries_add(const struct buf *pem, struct buf *out)
{
	struct cursor cursor = { pem->data, pem->data + pem->len };
	unsigned n = 0;
	int r;

	for (;;) {
		_free_ uint8_t *der = NULL;
		size_t len;

		r = certificate_next(&cursor, &der, &len);
		if (r <= 0)
			return r < 0 ? r : (int)n;
		entry_put(out, ++n, der, len);
	}
}

static int store_make(const struct buf *bundle, struct buf *store)
{
	_buf_ struct buf entries = BUF_INIT(NP_BUNDLE_BYTES);
	int n = entries_add(bundle, &entries);

	if (n < 0 || buf_error(&entries))
		return n < 0 ? n : buf_error(&entries);
	u32_put(store, JKS_MAGIC);
	u32_put(store, JKS_VERSION);
	u32_put(store, (size_t)n);
	buf_append(store, entries.data, entries.len);
	checksum_put(store);
	return buf_error(store);
}

int trust_make(const char *system, size_t system_len, const char *ca, size_t ca_len, struct trust *ret)
{
	struct cursor cursor = { ca, ca + ca_len };
	_free_ uint8_t *der = NULL;
	size_t len;
	int r;

	*ret = (struct trust){
		.ca = BUF_INIT(NP_BUNDLE_BYTES),
		.bundle = BUF_INIT(2 * NP_BUNDLE_BYTES),
		.store = BUF_INIT(2 * NP_BUNDLE_BYTES),
		.nss_certificates = BUF_INIT(NP_BUNDLE_BYTES),
		.nss_keys = BUF_INIT(NP_BUNDLE_BYTES),
	};
	r = certificate_next(&cursor, &der, &len);
	if (r <= 0)
		return r < 0 ? r : -EINVAL;
	buf_append(&ret->ca, ca, ca_len);
	/* Ours first: who reads one certificate of a bundle reads that. */
	buf_append(&ret->bundle, ca, ca_len);
	buf_puts(&ret->bundle, "\n");
	buf_append(&ret->bundle, system, system_len);
	r = buf_error(&ret->ca) ? buf_error(&ret->ca) : buf_error(&ret->bundle);
	if (r == 0)
		r = store_make(&ret->bundle, &ret->store);
	if (r)
		return r;
	r = nssdb_make(der, len, &ret->nss_certificates, &ret->nss_keys);
	if (r == -EINVAL || r == -E2BIG) {
		buf_free(&ret->nss_certificates);
		buf_free(&ret->nss_keys);
		return 0;
	}
	return r;
}

void trust_free(struct trust *trust)
{
	buf_free(&trust->ca);
	buf_free(&trust->bundle);
	buf_free(&trust->store);
	buf_free(&trust->nss_certificates);
	buf_free(&trust->nss_keys);
}

/* -- variables ---------------------------------------------------------------- */

static const struct {
	const char *name, *file; /* file NULL: the directory of the system's certificates */
} variables[] = {
	{ "SSL_CERT_FILE", TRUST_BUNDLE },	  /* OpenSSL, Go, Ruby, rustls-native-certs, Python's ssl */
	{ "SSL_CERT_DIR", NULL },		  /* the same; the file has the CA */
	{ "CURL_CA_BUNDLE", TRUST_BUNDLE },	  /* curl, libcurl's users in scripts */
	{ "REQUESTS_CA_BUNDLE", TRUST_BUNDLE },	  /* Python requests, httpx, az */
	{ "PIP_CERT", TRUST_BUNDLE },		  /* pip */
	{ "AWS_CA_BUNDLE", TRUST_BUNDLE },	  /* AWS' tools */
	{ "GIT_SSL_CAINFO", TRUST_BUNDLE },	  /* git */
	{ "CARGO_HTTP_CAINFO", TRUST_BUNDLE },	  /* cargo */
	{ "DENO_CERT", TRUST_BUNDLE },		  /* deno */
	{ "NODE_EXTRA_CA_CERTS", TRUST_CA_LINK }, /* node: beside the roots that it brings */
	{ "NIX_SSL_CERT_FILE", TRUST_BUNDLE },	  /* nix */
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TRUST_BUNDLE },
	{ "HEX_CACERTS_PATH", TRUST_BUNDLE },			/* Elixir's hex */
	{ "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", TRUST_BUNDLE }, /* gcloud */
	{ "npm_config_cafile", TRUST_BUNDLE },			/* npm, which does not ask node */
	{ "BUNDLE_SSL_CA_CERT", TRUST_BUNDLE },			/* Ruby's bundler */
	{ "PERL_LWP_SSL_CA_FILE", TRUST_BUNDLE },		/* Perl's LWP */
};

size_t trust_variables(void)
{
	return ARRAY_SIZE(variables);
}

void trust_variable(size_t index, const char *dir, const char **ret_name, struct buf *value)
{
	*ret_name = variables[index].name;
	if (variables[index].file)
		buf_printf(value, "%s/%s", dir, variables[index].file);
	else
		buf_puts(value, "/etc/ssl/certs");
}

void trust_java(const char *dir, struct buf *value)
{
	buf_printf(value,
		   "-Djavax.net.ssl.trustStore=%s/%s -Djavax.net.ssl.trustStoreType=JKS "
		   "-Djavax.net.ssl.trustStorePassword=%s",
		   dir, TRUST_STORE, JKS_PASSWORD);
}
