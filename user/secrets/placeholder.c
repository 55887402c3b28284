/* SPDX-License-Identifier: MIT */
#include "secrets/placeholder.h"

#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <string.h>

#include "policy/placeholder_shape.h"

/* Bytes that look random to whoever lacks the key: HMAC of a counter and of what it is for. */
struct stream {
	struct hmac_sha256_ctx start;
	uint8_t block[SHA256_DIGEST_SIZE];
	size_t used;
	uint32_t count;
};

static void stream_open(struct stream *s, const struct placeholder_key *key, const char *const words[3])
{
	*s = (struct stream){ .used = sizeof(s->block) };
	hmac_sha256_set_key(&s->start, sizeof(key->bytes), key->bytes);
	for (int i = 0; i < 3; i++)
		hmac_sha256_update(&s->start, strlen(words[i]) + 1, (const uint8_t *)words[i]);
}

static uint8_t stream_next(struct stream *s)
{
	if (s->used == sizeof(s->block)) {
		struct hmac_sha256_ctx ctx = s->start;

		hmac_sha256_update(&ctx, sizeof(s->count), (const uint8_t *)&s->count);
		hmac_sha256_digest(&ctx, sizeof(s->block), s->block);
		s->count++;
		s->used = 0;
	}
	return s->block[s->used++];
}

/* Each character as likely as the others: bytes beyond the last whole multiple are passed over. */
static void stream_text(struct stream *s, const char *alphabet, size_t len, char *out)
{
	const unsigned n = (unsigned)strlen(alphabet), bound = 256 - 256 % n;

	while (len) {
		unsigned byte = stream_next(s);

		if (byte >= bound)
			continue;
		*out++ = alphabet[byte % n];
		len--;
	}
}

static size_t base64url_put(const char *text, char *out)
{
	size_t n = strlen(text), len = BASE64_ENCODE_RAW_LENGTH(n);

	base64_encode_raw(out, n, (const uint8_t *)text);
	while (len && out[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i]);
	return len;
}

/* Whole, signed by nobody, and never to expire: a client that looks inside finds what it looks for. */
static size_t jwt_make(struct stream *s, char *out)
{
	static const char hex[] = "0123456789abcdef",
			  letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	char payload[] = "{\"jti\":\"0123456789abcdef0123456789abcdef\",\"iss\":\"netpawl\",\"iat\":1700000000,"
			 "\"exp\":4102444800}";
	size_t n = base64url_put("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", out);

	stream_text(s, hex, 32, strchr(payload, '0')); /* the id, in its place */
	out[n++] = '.';
	n += base64url_put(payload, out + n);
	out[n++] = '.';
	stream_text(s, letters, 43, out + n);
	out[n + 43] = '\0';
	return n + 43;
}

size_t placeholder_make(const struct placeholder_key *key, const char *session, const char *credential,
			const char *like, char ret[static NP_PLACEHOLDER_MAX + 1])
{
	struct shape_part part;
	struct stream stream;
	size_t n = 0;

	stream_open(&stream, key, (const char *const[]){ session, credential, like });
	if (!strcmp(like, PLACEHOLDER_JWT))
		return jwt_make(&stream, ret);
	for (const char *at = like; shape_next(&at, &part) > 0 && n + part.len <= NP_PLACEHOLDER_MAX; n += part.len)
		if (part.alphabet)
			stream_text(&stream, part.alphabet, part.len, ret + n);
		else
			memcpy(ret + n, part.text, part.len);
	ret[n] = '\0';
	return n;
}
