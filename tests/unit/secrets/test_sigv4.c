/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "secrets/sigv4.c"

#include <string.h>

#define DATE   "20150830T123600Z"
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

static const struct sigv4_key key = { "AKIDEXAMPLE", SECRET, NULL, "service", "us-east-1" };
static const struct sigv4_key s3 = { "AKIDEXAMPLE", SECRET, NULL, "s3", "us-east-1" };

#define H(name, value)                                         \
	{                                                      \
		name, sizeof(name) - 1, value, sizeof(value) - 1 \
	}
#define SIGNED(names) H("authorization", "AWS4-HMAC-SHA256 Credential=PLACEHOLDER/x, SignedHeaders=" names ", Signature=00")
#define HEADERS	      8

struct vector {
	const char *name;
	const struct sigv4_key *key;
	const char *method, *target, *host;
	struct sigv4_header headers[HEADERS];
	const char *body;
	const char *names, *signature;
};

static void expect(const struct vector *v)
{
	struct sigv4_request request = { .method = v->method, .target = v->target, .host = v->host, .headers = v->headers };
	_buf_ struct buf out = BUF_INIT(8192), want = BUF_INIT(8192);
	char hash[SIGV4_HASH];

	while (request.n < HEADERS && v->headers[request.n].name)
		request.n++;
	if (v->body)
		sigv4_hash(v->body, strlen(v->body), hash);
	assert_int_equal(sigv4_sign(&request, v->key, v->body ? hash : NULL, &out), 0);
	buf_printf(&want, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/%s/aws4_request, SignedHeaders=%s, Signature=%s",
		   v->key->service, v->names, v->signature);
	if (strcmp(out.data, want.data) != 0)
		print_error("%s\n", v->name);
	assert_string_equal(out.data, want.data);
}

/* AWS's own suite: requests as they are, what is signed, and the signature. */
static void test_suite(void **state)
{
	static const struct vector vectors[] = {
#define VANILLA(name, method, target, signature) \
	{ name, &key, method, target, "example.amazonaws.com", { H("x-amz-date", DATE) }, NULL, "host;x-amz-date", signature }
		VANILLA("get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
		VANILLA("get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1",
			"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
		VANILLA("get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			"07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
		VANILLA("get-utf8", "GET", "/\xe1\x88\xb4", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
		VANILLA("get-space", "GET", "/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
		VANILLA("get-slashes", "GET", "//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
		VANILLA("get-relative", "GET", "/example/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
		VANILLA("get-slash-dot-slash", "GET", "/./", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
		VANILLA("post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
		{ "post-x-www-form-urlencoded",
		  &key,
		  "POST",
		  "/",
		  "example.amazonaws.com",
		  { H("content-type", "application/x-www-form-urlencoded"), H("x-amz-date", DATE), SIGNED("content-type;host;x-amz-date") },
		  "Param1=value1",
		  "content-type;host;x-amz-date",
		  "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a" },
		{ "get-header-value-trim",
		  &key,
		  "GET",
		  "/",
		  "example.amazonaws.com",
		  { H("my-header1", "value1"), H("my-header2", "\"a   b   c\""), H("x-amz-date", DATE),
		    SIGNED("host;my-header1;my-header2;x-amz-date") },
		  NULL,
		  "host;my-header1;my-header2;x-amz-date",
		  "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++)
		expect(&vectors[i]);
}

/* As botocore 1.29 signs them. */
static void test_botocore(void **state)
{
	static const struct vector vectors[] = {
		{ "a path and a query with escapes", &key, "GET", "/a%20b/c%2Fd?z=1&a=x%20y&a=b&empty=", "example.amazonaws.com",
		  { H("x-amz-date", DATE) }, NULL, "host;x-amz-date",
		  "a319decc9c63121faab498385e3b8a9825729fcada421ecbea0315d7f7c3d4a3" },
		{ "a token", &key, "POST", "/path//x/../y/", "example.amazonaws.com",
		  { H("content-type", "application/x-www-form-urlencoded"), H("x-amz-date", DATE), H("x-amz-security-token", "AQoEXAMPLETOKEN//=="),
		    H("x-two", "a   b  c"), SIGNED("content-type;host;x-amz-date;x-two") },
		  "Param1=value1", "content-type;host;x-amz-date;x-amz-security-token;x-two",
		  "26d53d4f76456546dc7b7c3852c6b2159cdd32abcbd26438de1a11ba7df1fde8" },
		{ "s3: the path as it is", &s3, "GET", "/a%20b/c//d/../e?list-type=2&prefix=x%2Fy", "bucket.s3.amazonaws.com",
		  { H("x-amz-date", DATE), H("x-amz-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), SIGNED("host;x-amz-date") }, NULL,
		  "host;x-amz-content-sha256;x-amz-date",
		  "6a70d1c00378a22f49edb3dcb1c4b95687e1b90959677cd35bbbb37700fe678b" },
		{ "s3: an upload", &s3, "PUT", "/key~%28x%29", "bucket.s3.amazonaws.com",
		  { H("content-type", "text/plain"), H("x-amz-date", DATE), H("x-amz-security-token", "AQoEXAMPLETOKEN//=="),
		    H("x-amz-content-sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"), SIGNED("content-type;host") }, NULL,
		  "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token",
		  "7533cacd8f7752989f77aa040b944bc8e07b7f8d0381f20317f662ee386a8e8d" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++)
		expect(&vectors[i]);
}

static enum sigv4_kind look(const char *target, const char *hash, const char *authorization, bool has_body, const char **problem)
{
	const struct sigv4_header headers[] = {
		H("x-amz-date", DATE),
		{ "authorization", 13, authorization, strlen(authorization) },
		{ "x-amz-content-sha256", 20, hash, hash ? strlen(hash) : 0 },
	};
	struct sigv4_request request = { "PUT", target, "example.amazonaws.com", headers, hash ? 3 : 2 };

	*problem = NULL;
	return sigv4_look(&request, has_body, problem);
}

static void test_look(void **state)
{
	static const char ours[] = "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=0";
	const char *problem;

	(void)state;
	assert_int_equal(look("/", empty_hash, ours, true, &problem), SIGV4_READY);
	assert_int_equal(look("/", "UNSIGNED-PAYLOAD", ours, true, &problem), SIGV4_READY);
	assert_int_equal(look("/", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", ours, true, &problem), SIGV4_READY);
	assert_int_equal(look("/", NULL, ours, true, &problem), SIGV4_BODY);
	assert_int_equal(look("/", NULL, ours, false, &problem), SIGV4_READY);
	assert_int_equal(look("/", NULL, "Bearer x", false, &problem), SIGV4_NONE);
	assert_int_equal(look("/", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", ours, true, &problem), SIGV4_REFUSED);
	assert_non_null(strstr(problem, "chunk"));
	assert_int_equal(look("/?x=y&X-Amz-Signature=0", NULL, "Bearer x", false, &problem), SIGV4_REFUSED);
	assert_non_null(strstr(problem, "presigned"));
	assert_int_equal(look("/", NULL, "AWS4-ECDSA-P256-SHA256 Credential=x", false, &problem), SIGV4_REFUSED);
	assert_non_null(strstr(problem, "algorithm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),
		cmocka_unit_test(test_botocore),
		cmocka_unit_test(test_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
