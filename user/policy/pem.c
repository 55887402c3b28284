/* SPDX-License-Identifier: MIT */
#include "policy/pem.h"

#include <nettle/base64.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

const char *pem_problem(const char *text, size_t len)
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
