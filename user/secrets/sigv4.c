/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include "base/buf.h"
#include "base/chars.h"
#include "base/cleanup.h"
#include "secrets/sigv4.h"
#include "vocab/limits.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define DATE_LEN  16 /* 20150830T123600Z */
#define DAY_LEN	  8

static const char empty_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static const struct sigv4_header *header_find(const struct sigv4_request *r, const char *name)
{
	const size_t len = strlen(name);

	for (size_t i = 0; i < r->n; i++)
		if (r->headers[i].name_len == len && memcmp(r->headers[i].name, name, len) == 0)
			return &r->headers[i];
	return NULL;
}

static bool value_begins(const struct sigv4_header *h, const char *text)
{
	const size_t len = strlen(text);

	return h->value_len >= len && memcmp(h->value, text, len) == 0;
}

/* -- what the client has done ---------------------------------------------------------------------- */

/* A parameter of this name, in any case: servers differ in what they take. */
static bool query_has(const char *target, const char *name)
{
	const size_t len = strlen(name);
	const char *p = strchr(target, '?');

	while (p) {
		p++;
		if (strncasecmp(p, name, len) == 0 && (p[len] == '=' || p[len] == '&' || !p[len]))
			return true;
		p = strchr(p, '&');
	}
	return false;
}

enum sigv4_kind sigv4_look(const struct sigv4_request *r, bool has_body, const char **problem)
{
	const struct sigv4_header *signature = header_find(r, "authorization"), *date = header_find(r, "x-amz-date"),
				  *hash = header_find(r, "x-amz-content-sha256");

	if (query_has(r->target, "x-amz-signature") || query_has(r->target, "x-amz-credential")) {
		*problem = "it is presigned: the signature is in its URL, and would be good for whoever has that";
		return SIGV4_REFUSED;
	}
	if (!signature || !value_begins(signature, "AWS4-"))
		return SIGV4_NONE;
	if (!value_begins(signature, ALGORITHM " ")) {
		*problem = "it is signed by another algorithm than " ALGORITHM;
		return SIGV4_REFUSED;
	}
	if (!date || date->value_len != DATE_LEN) {
		*problem = "it has no header x-amz-date";
		return SIGV4_REFUSED;
	}
	if (hash && (value_begins(hash, "STREAMING-AWS4-"))) {
		*problem = "its body is signed chunk by chunk: have the client sign the whole "
			   "(payload_signing_enabled), or none of it";
		return SIGV4_REFUSED;
	}
	return hash || !has_body ? SIGV4_READY : SIGV4_BODY;
}

/* -- the canonical request ------------------------------------------------------------------------- */

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == '.' || c == '~';
}

static void put_encoded(struct buf *out, char c, bool keep_slash)
{
	if (is_unreserved(c) || (keep_slash && c == '/'))
		buf_append(out, &c, 1);
	else
		buf_printf(out, "%%%02X", (unsigned char)c);
}

/* Every byte that is escaped is undone once and escaped again as AWS does. */
static void put_escaped_anew(struct buf *out, const char *text, size_t len, bool keep_slash)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
			c = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			/* An escaped slash is none that parts segments. */
			put_encoded(out, c, false);
			i += 2;
		} else {
			put_encoded(out, c, keep_slash);
		}
	}
}

/* Without empty segments and those of dots (RFC 3986, 5.2.4), as all services but S3 want it. */
static void put_normal_path(struct buf *out, const char *path, size_t len)
{
	_buf_ struct buf normal = BUF_INIT(NP_HEAD_BYTES);
	bool open = true; /* it ends as a folder */

	for (size_t i = 0; i < len;) {
		const char *slash;
		size_t n;

		if (path[i] == '/') {
			i++;
			open = true;
			continue;
		}
		slash = memchr(path + i, '/', len - i);
		n = slash ? (size_t)(slash - path) - i : len - i;
		if (n == 2 && memcmp(path + i, "..", 2) == 0) {
			while (normal.len && normal.data[--normal.len] != '/')
				;
			open = true;
		} else if (n == 1 && path[i] == '.') {
			open = true;
		} else {
			buf_append(&normal, "/", 1);
			buf_append(&normal, path + i, n);
			open = false;
		}
		i += n;
	}
	if (open || !normal.len)
		buf_append(&normal, "/", 1);
	if (buf_error(&normal))
		out->error = buf_error(&normal);
	/* What is escaped is escaped once more. */
	for (size_t i = 0; i < normal.len; i++)
		put_encoded(out, normal.data[i], true);
}

struct parameter {
	char *name, *value; /* escaped */
};

static int parameter_compare(const void *a, const void *b)
{
	const struct parameter *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->value, y->value);
}

static char *escaped_anew(const char *text, size_t len)
{
	struct buf out = BUF_INIT(3 * NP_HEAD_BYTES);

	put_escaped_anew(&out, text, len, false);
	buf_append(&out, "", 1);
	return buf_take(&out);
}

static int put_query(struct buf *out, const char *query)
{
	struct parameter *list = NULL;
	size_t n = 1, made = 0;
	int r = 0;

	for (const char *p = query; *p; p++)
		n += *p == '&';
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	while (*query && r == 0) {
		const size_t len = strcspn(query, "&");
		const char *equals = memchr(query, '=', len);
		const size_t name_len = equals ? (size_t)(equals - query) : len;
		struct parameter *p = &list[made];

		if (len) {
			made++;
			p->name = escaped_anew(query, name_len);
			p->value = escaped_anew(equals ? equals + 1 : "", equals ? len - name_len - 1 : 0);
			r = p->name && p->value ? 0 : -ENOMEM;
		}
		query += len + (query[len] == '&');
	}
	if (r == 0 && made)
		qsort(list, made, sizeof(*list), parameter_compare);
	for (size_t i = 0; i < made; i++) {
		if (r == 0)
			buf_printf(out, "%s%s=%s", i ? "&" : "", list[i].name, list[i].value);
		free(list[i].name);
		free(list[i].value);
	}
	free(list);
	return r;
}

/* Runs of spaces are one; none at the ends. */
static void put_trimmed(struct buf *out, const char *value, size_t len)
{
	bool space = false, any = false;

	for (size_t i = 0; i < len; i++) {
		if (value[i] == ' ' || value[i] == '\t') {
			space = true;
			continue;
		}
		if (space && any)
			buf_append(out, " ", 1);
		buf_append(out, &value[i], 1);
		space = false;
		any = true;
	}
}

static void put_header(struct buf *out, const struct sigv4_request *r, const char *name, size_t len)
{
	bool first = true;

	buf_append(out, name, len);
	buf_append(out, ":", 1);
	if (len == 4 && memcmp(name, "host", 4) == 0) {
		buf_puts(out, r->host);
		first = false;
	}
	for (size_t i = 0; i < r->n && !(len == 4 && memcmp(name, "host", 4) == 0); i++) {
		if (r->headers[i].name_len != len || memcmp(r->headers[i].name, name, len) != 0)
			continue;
		if (!first)
			buf_append(out, ",", 1);
		put_trimmed(out, r->headers[i].value, r->headers[i].value_len);
		first = false;
	}
	buf_append(out, "\n", 1);
}

/* -- which headers are signed ----------------------------------------------------------------------- */

struct signed_names {
	struct {
		const char *name;
		size_t len;
	} items[NP_HEAD_FIELDS];
	size_t n;
};

static int name_compare(const void *a, const void *b)
{
	const struct {
		const char *name;
		size_t len;
	} *x = a, *y = b;
	const size_t least = x->len < y->len ? x->len : y->len;
	int r = memcmp(x->name, y->name, least);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

static int names_add(struct signed_names *names, const struct sigv4_request *r, const char *name, size_t len)
{
	bool there = len == 4 && memcmp(name, "host", 4) == 0;

	for (size_t i = 0; i < r->n && !there; i++)
		there = r->headers[i].name_len == len && memcmp(r->headers[i].name, name, len) == 0;
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].len == len && memcmp(names->items[i].name, name, len) == 0)
			return 0;
	if (!there) /* it was taken away on the way: the token of a key that has none */
		return 0;
	if (names->n == NP_HEAD_FIELDS)
		return -EINVAL;
	names->items[names->n].name = name;
	names->items[names->n++].len = len;
	return 0;
}

/* Those that the client has signed, and those that say who, when and what. */
static int names_collect(struct signed_names *names, const struct sigv4_request *r)
{
	static const char *const always[] = { "host", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256" };
	const struct sigv4_header *signature = header_find(r, "authorization");
	const char *p = signature ? memmem(signature->value, signature->value_len, "SignedHeaders=", 14) : NULL;
	const char *end = signature ? signature->value + signature->value_len : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (names_add(names, r, always[i], strlen(always[i])) < 0)
			return -EINVAL;
	for (p = p ? p + 14 : NULL; p && p < end && *p != ','; p++) {
		const char *from = p;

		while (p < end && *p != ';' && *p != ',' && *p != ' ')
			p++;
		if (p > from && !(p - from == 13 && memcmp(from, "authorization", 13) == 0) &&
		    names_add(names, r, from, (size_t)(p - from)) < 0)
			return -EINVAL;
		if (p < end && *p != ';')
			break;
	}
	qsort(names->items, names->n, sizeof(names->items[0]), name_compare);
	return 0;
}

static void put_names(struct buf *out, const struct signed_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		buf_append(out, ";", i > 0);
		buf_append(out, names->items[i].name, names->items[i].len);
	}
}

static int put_canonical(struct buf *out, const struct sigv4_request *r, const struct signed_names *names, bool s3,
			 const char *body)
{
	const char *query = strchr(r->target, '?');
	const size_t path_len = query ? (size_t)(query - r->target) : strlen(r->target);
	const struct sigv4_header *hash = header_find(r, "x-amz-content-sha256");
	int e;

	buf_printf(out, "%s\n", r->method);
	if (s3)
		put_escaped_anew(out, r->target, path_len, true);
	else
		put_normal_path(out, r->target, path_len);
	buf_append(out, "\n", 1);
	e = query ? put_query(out, query + 1) : 0;
	if (e < 0)
		return e;
	buf_append(out, "\n", 1);
	for (size_t i = 0; i < names->n; i++)
		put_header(out, r, names->items[i].name, names->items[i].len);
	buf_append(out, "\n", 1);
	put_names(out, names);
	buf_append(out, "\n", 1);
	if (hash)
		buf_append(out, hash->value, hash->value_len);
	else
		buf_append(out, body ? body : empty_hash, SIGV4_HASH);
	return buf_error(out);
}

/* -- the signature ---------------------------------------------------------------------------------- */

static void hex_of(const uint8_t digest[static SHA256_DIGEST_SIZE], char ret[static SIGV4_HASH])
{
	for (unsigned i = 0; i < SHA256_DIGEST_SIZE; i++) {
		ret[2 * i] = "0123456789abcdef"[digest[i] >> 4];
		ret[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
	}
}

void sigv4_hash(const char *data, size_t len, char ret[static SIGV4_HASH])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, len, (const uint8_t *)data);
	sha256_digest(&sha, sizeof(digest), digest);
	hex_of(digest, ret);
}

static void hmac_step(uint8_t key[static SHA256_DIGEST_SIZE], const char *text, size_t len)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, SHA256_DIGEST_SIZE, key);
	hmac_sha256_update(&hmac, len, (const uint8_t *)text);
	hmac_sha256_digest(&hmac, SHA256_DIGEST_SIZE, key);
	explicit_bzero(&hmac, sizeof(hmac));
}

static void signature_make(const struct sigv4_key *key, const char *date, const struct buf *text,
			   char ret[static SIGV4_HASH])
{
	char first[4 + NP_SECRET_MAX];
	uint8_t derived[SHA256_DIGEST_SIZE];
	const size_t len = strlen(key->secret);
	struct hmac_sha256_ctx hmac;

	memcpy(first, "AWS4", 4);
	memcpy(first + 4, key->secret, len);
	hmac_sha256_set_key(&hmac, 4 + len, (const uint8_t *)first);
	hmac_sha256_update(&hmac, DAY_LEN, (const uint8_t *)date);
	hmac_sha256_digest(&hmac, sizeof(derived), derived);
	hmac_step(derived, key->region, strlen(key->region));
	hmac_step(derived, key->service, strlen(key->service));
	hmac_step(derived, "aws4_request", 12);
	hmac_step(derived, text->data, text->len);
	hex_of(derived, ret);
	explicit_bzero(first, sizeof(first));
	explicit_bzero(derived, sizeof(derived));
	explicit_bzero(&hmac, sizeof(hmac));
}

int sigv4_sign(const struct sigv4_request *r, const struct sigv4_key *key, const char *body, struct buf *out)
{
	const struct sigv4_header *date = header_find(r, "x-amz-date");
	const bool s3 = strcmp(key->service, "s3") == 0;
	_buf_ struct buf canonical = BUF_INIT(8 * NP_HEAD_BYTES), text = BUF_INIT(4096);
	struct signed_names names = { .n = 0 };
	char hash[SIGV4_HASH], signature[SIGV4_HASH];
	int e;

	if (!date || date->value_len != DATE_LEN || strlen(key->secret) > NP_SECRET_MAX || r->target[0] != '/')
		return -EINVAL;
	e = names_collect(&names, r);
	if (e == 0)
		e = put_canonical(&canonical, r, &names, s3, body);
	if (e < 0)
		return e;
	sigv4_hash(canonical.data, canonical.len, hash);
	buf_printf(&text, ALGORITHM "\n%.*s\n%.*s/%s/%s/aws4_request\n", DATE_LEN, date->value, DAY_LEN, date->value,
		   key->region, key->service);
	buf_append(&text, hash, sizeof(hash));
	if (buf_error(&text))
		return buf_error(&text);
	signature_make(key, date->value, &text, signature);
	buf_printf(out, ALGORITHM " Credential=%s/%.*s/%s/%s/aws4_request, SignedHeaders=", key->id, DAY_LEN,
		   date->value, key->region, key->service);
	put_names(out, &names);
	buf_puts(out, ", Signature=");
	buf_append(out, signature, sizeof(signature));
	return buf_error(out);
}
