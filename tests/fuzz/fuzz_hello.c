/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as a ClientHello. What is accepted needs every byte and none of those behind it, is the same in other
 * records, and OpenSSL reads the same name and protocols.
 */
#include "http/client_hello.c"

#include <openssl/ssl.h>
#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const unsigned char *data, size_t len, struct hello *ret)
{
	unsigned char *copy = malloc(len ? len : 1);
	size_t need;
	int e;

	check(copy);
	memcpy(copy, data, len);
	e = hello_parse(copy, len, ret, &need);
	check(e != -EAGAIN || need > len);
	free(copy);
	return e;
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	const struct hello *hello = arg;
	const unsigned char *ext;
	char name[NAME_SIZE];
	size_t len;

	(void)alert;
	check(SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext, &len) ==
	      (hello->has_name || hello->has_addr));
	if (hello->has_name) {
		check(len > 5 && name_canonical((const char *)ext + 5, len - 5, name) == 0);
		check(strcmp(name, hello->name) == 0);
	}
	check(SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext, &len) ==
	      hello->has_alpn);
	return SSL_CLIENT_HELLO_ERROR;
}

static void check_openssl(const unsigned char *data, size_t len, struct hello *hello)
{
	static SSL_CTX *ctx;
	SSL *ssl;
	BIO *in;

	if (!ctx)
		ctx = SSL_CTX_new(TLS_server_method());
	SSL_CTX_set_client_hello_cb(ctx, on_hello, hello);
	ssl = SSL_new(ctx);
	in = BIO_new_mem_buf(data, (int)len);
	check(ssl && in);
	SSL_set_bio(ssl, in, BIO_new(BIO_s_null()));
	SSL_accept(ssl);
	SSL_free(ssl);
}

/* The same message, so many bytes a record. */
static void check_records(const unsigned char *data, size_t len, size_t each, const struct hello *hello)
{
	struct hello again = { 0 };
	unsigned char *cut = malloc(len * 6);
	size_t n = 0, in_record = 0;

	check(cut);
	for (size_t i = 0; i < len;) {
		size_t record = (size_t)data[i + 3] << 8 | data[i + 4];

		for (size_t k = 0; k < record; k++) {
			if (in_record % each == 0) {
				memcpy(cut + n, "\x16\x03\x03\0", 4);
				cut[n + 4] = 0;
				n += 5;
			}
			cut[n - in_record % each - 1]++;
			cut[n++] = data[i + 5 + k];
			in_record++;
		}
		i += 5 + record;
	}
	check(parse(cut, n, &again) == 0 && memcmp(&again, hello, sizeof(again)) == 0);
	free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello hello, again = { 0 };
	size_t len = size;
	int e;

	memset(&hello, 0x5a, sizeof(hello));
	e = parse(data, size, &hello);
	check(e == 0 || e == -EAGAIN || e == -EPROTO || e == -E2BIG);
	if (e == -EAGAIN) {
		for (size_t i = 0; i < sizeof(hello); i++)
			check(((unsigned char *)&hello)[i] == 0x5a);
		return 0;
	}
	if (e < 0) {
		/* The alert that is due, and nothing that could be taken for a name. */
		again.alert = hello.alert;
		check(hello.alert && memcmp(&hello, &again, sizeof(hello)) == 0);
		return 0;
	}
	check(!hello.alert && !(hello.has_name && hello.has_addr));
	check(hello.has_alpn || (!hello.h2 && !hello.http1));
	check(!hello.has_name || hello.name[0]);
	/* Where it ends: one byte fewer is not enough, and one more changes nothing. */
	while (len && parse(data, len - 1, &again) == 0)
		len--;
	check(memcmp(&again, &hello, sizeof(hello)) == 0 || len == size);
	for (size_t n = 0; n < len; n += 1 + len / 50) {
		size_t need;

		check(parse(data, n, &again) == -EAGAIN);
		check(hello_parse(data, n, &again, &need) == -EAGAIN && need <= len);
	}
	check_records(data, len, 1, &hello);
	check_records(data, len, 200, &hello);
	check_openssl(data, len, &hello);
	return 0;
}
