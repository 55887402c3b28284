/* SPDX-License-Identifier: MIT */
#include "tls/openssl_ctx.h"

#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <string.h>

#define KEPT_MAX 32

static OSSL_PROVIDER *whole; /* OpenSSL's default one, in a context of its own: what works behind ours */
static OSSL_ALGORITHM keys[KEPT_MAX + 1], decoders[KEPT_MAX + 1];

/* names is "EC:id-ecPublicKey:1.2.840.10045.2.1" */
static bool is_one_of(const char *names, const char *const *list)
{
	size_t len = strcspn(names, ":");

	for (; *list; list++)
		if (strlen(*list) == len && !memcmp(*list, names, len))
			return true;
	return false;
}

/* How keys are handled: those of certificates and of key exchanges, and what TLS makes of secrets. */
static bool keeps_key(const OSSL_ALGORITHM *a)
{
	static const char *const kept[] = { "RSA",  "RSA-PSS", "EC",   "ED25519",  "ED448", "X25519",
					    "X448", "DH",      "HMAC", "TLS1-PRF", "HKDF",  NULL };

	return is_one_of(a->algorithm_names, kept);
}

/* How they are read: as certificates have them. */
static bool keeps_decoder(const OSSL_ALGORITHM *a)
{
	static const char *const kept[] = { "RSA", "RSA-PSS", "EC", "ED25519", "ED448", "DER", NULL };

	return is_one_of(a->algorithm_names, kept) &&
	       strstr(a->property_definition, "structure=SubjectPublicKeyInfo") != NULL;
}

static bool algorithms_keep(int operation, bool (*wanted)(const OSSL_ALGORITHM *),
			    OSSL_ALGORITHM kept[static KEPT_MAX + 1])
{
	int no_cache = 0;
	const OSSL_ALGORITHM *a = OSSL_PROVIDER_query_operation(whole, operation, &no_cache);
	size_t n = 0;

	for (; a && a->algorithm_names && n < KEPT_MAX; a++)
		if (wanted(a))
			kept[n++] = *a;
	return n > 0 && !no_cache && !a->algorithm_names;
}

static const OSSL_ALGORITHM *lean_query(void *ctx, int operation, int *no_cache)
{
	(void)ctx;
	*no_cache = 0;
	if (operation == OSSL_OP_KEYMGMT)
		return keys;
	if (operation == OSSL_OP_DECODER)
		return decoders;
	return OSSL_PROVIDER_query_operation(whole, operation, no_cache);
}

/* Which groups TLS may use. */
static int lean_capabilities(void *ctx, const char *capability, OSSL_CALLBACK *cb, void *arg)
{
	(void)ctx;
	return OSSL_PROVIDER_get_capabilities(whole, capability, cb, arg);
}

static int lean_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **ret_ctx)
{
	static const OSSL_DISPATCH calls[] = {
		{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))lean_query },
		{ OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))lean_capabilities },
		{ 0, NULL },
	};

	(void)handle;
	(void)in;
	*out = calls;
	*ret_ctx = OSSL_PROVIDER_get0_provider_ctx(whole);
	return 1;
}

static OSSL_LIB_CTX *lean_new(void)
{
	OSSL_LIB_CTX *behind = OSSL_LIB_CTX_new(), *ctx = OSSL_LIB_CTX_new();

	whole = behind ? OSSL_PROVIDER_load(behind, "default") : NULL;
	if (ctx && whole && algorithms_keep(OSSL_OP_KEYMGMT, keeps_key, keys) &&
	    algorithms_keep(OSSL_OP_DECODER, keeps_decoder, decoders) &&
	    OSSL_PROVIDER_add_builtin(ctx, "lean", lean_init) && OSSL_PROVIDER_load(ctx, "lean"))
		return ctx;
	OSSL_LIB_CTX_free(ctx);
	OSSL_LIB_CTX_free(behind);
	ERR_clear_error();
	return NULL;
}

OSSL_LIB_CTX *lean_libctx(void)
{
	static bool tried;
	static OSSL_LIB_CTX *ctx; /* for good */

	if (!tried && !EVP_default_properties_is_fips_enabled(NULL))
		ctx = lean_new();
	tried = true;
	return ctx;
}
