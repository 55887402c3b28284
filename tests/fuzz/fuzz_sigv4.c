/* SPDX-License-Identifier: MIT */
/* Random requests to be signed. What is signed is a function of what the request means: bytes of the path and the query that are escaped
 * although they need not be make no difference to S3, nor does the order of parameters. */
#include "secrets/sigv4.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int sign(const char *target, const struct sigv4_header *headers, size_t n, const char *service, struct buf *out)
{
	const struct sigv4_request request = { "GET", target, "example.test", headers, n };
	const struct sigv4_key key = { "id", "secret", NULL, service, "region" };

	return sigv4_sign(&request, &key, NULL, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_buf_ struct buf target = BUF_INIT(3 << 16), other = BUF_INIT(3 << 16), first = BUF_INIT(1 << 16), second = BUF_INIT(1 << 16);
	_free_ char *signature = strndup((const char *)data, size);
	const size_t len = strlen(signature);
	const char *problem;
	const struct sigv4_header headers[] = {
		{ "x-amz-date", 10, "20150830T123600Z", 16 },
		{ "authorization", 13, signature, len },
		{ "x-other", 7, signature, len },
	};
	int a, b;

	buf_puts(&target, "/");
	buf_puts(&other, "/");
	for (size_t i = 0; i < len; i++) {
		buf_append(&target, &signature[i], 1);
		/* A letter or a digit, escaped; not within an escape. */
		if (is_unreserved(signature[i]) && !(i > 0 && signature[i - 1] == '%') && !(i > 1 && signature[i - 2] == '%'))
			buf_printf(&other, "%%%02x", (unsigned char)signature[i]);
		else
			buf_append(&other, &signature[i], 1);
	}
	if (buf_error(&target) || buf_error(&other))
		return 0;
	sigv4_look(&(struct sigv4_request){ "GET", target.data, "h", headers, 3 }, true, &problem);
	a = sign(target.data, headers, 3, "s3", &first);
	b = sign(other.data, headers, 3, "s3", &second);
	check(a == b && (a < 0 || strcmp(first.data, second.data) == 0));
	buf_clear(&first);
	check(sign(target.data, headers, 3, "execute-api", &first) == a);
	return 0;
}
