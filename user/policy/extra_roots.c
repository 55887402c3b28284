/* SPDX-License-Identifier: MIT */
/*
 * extra_roots: certificates as PEM, for the inspector. Here only their form is looked at, so that a file that holds
 * none, or a key, is told of where the policy names it; what they say is OpenSSL's business.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/include.h"
#include "policy/quote.h"
#include "vocab/limits.h"

#define BEGIN	 "-----BEGIN "
#define CERT	 "CERTIFICATE-----"
#define END_CERT "-----END CERTIFICATE-----"

/* Is the text in base64 one DER sequence, from its first byte to its last? */
static bool is_sequence(const char *text, size_t len)
{
	_free_ uint8_t *der = malloc(BASE64_DECODE_LENGTH(len) + 1);
	struct base64_decode_ctx ctx;
	size_t n = 0, body = 0, lengths;

	base64_decode_init(&ctx);
	if (!der || !base64_decode_update(&ctx, &n, der, len, text) || !base64_decode_final(&ctx))
		return false;
	if (n < 2 || der[0] != 0x30)
		return false;
	if (der[1] < 0x80)
		return n == 2u + der[1];
	lengths = der[1] & 0x7f;
	if (!lengths || lengths > 3 || n < 2 + lengths)
		return false;
	for (size_t i = 0; i < lengths; i++)
		body = body << 8 | der[2 + i];
	return n == 2 + lengths + body;
}

static const char *pem_find(const char *text, const char *end, const char *word)
{
	return memmem(text, (size_t)(end - text), word, strlen(word));
}

/* What is wrong with it; NULL: nothing. */
static const char *pem_problem(const char *text, size_t len)
{
	const char *at = text, *end = text + len, *stop;
	unsigned n = 0;

	while ((at = pem_find(at, end, BEGIN))) {
		at += strlen(BEGIN);
		if (pem_find(at, end, CERT) != at)
			return "it holds something that is no certificate";
		at += strlen(CERT);
		stop = pem_find(at, end, END_CERT);
		if (!stop || !is_sequence(at, (size_t)(stop - at)))
			return "it holds a certificate that cannot be read";
		at = stop + strlen(END_CERT);
		n++;
	}
	return n ? NULL : "it holds no certificate in PEM";
}

static int root_load(struct loading *l, const struct node *entry, const char *name, struct buf *pem)
{
	_free_ char *text = NULL;
	const char *problem;
	size_t len;
	int e = text_load(l, name, entry, &text, &len);

	if (e < 0 || !text)
		return e;
	problem = pem_problem(text, len);
	if (problem) {
		error_at(&l->reader, entry, "%s: %s", QUOTE(name, strlen(name)), problem);
		return 0;
	}
	buf_append(pem, text, len);
	buf_puts(pem, "\n");
	return buf_error(pem);
}

int roots_load(struct loading *l, const struct file *first)
{
	const struct node *key = first->sections[SECTION_EXTRA_ROOTS], *entry = NULL;
	size_t n = key ? field_entries(&l->reader, key, &entry) : 0;
	_buf_ struct buf pem = BUF_INIT(2 * NP_POLICY_BYTES);
	_free_ char *name = malloc(PATH_MAX);
	struct policy *policy = l->reader.policy;
	int e = name ? 0 : -ENOMEM;

	for (; n && e == 0; n--, entry = entry->next)
		if (entry_is_text(&l->reader, key, entry) && path_resolve(&l->reader, first, key, entry, name) == 0)
			e = root_load(l, entry, name, &pem);
	if (e < 0)
		return e;
	policy->extra_roots = arena_text(policy->arena, pem.data ? pem.data : "", pem.len);
	policy->extra_roots_len = pem.len;
	return policy->extra_roots ? 0 : -ENOMEM;
}
