/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/url.c"

static void assert_url(const char *text, bool tls, const char *name, uint16_t port, const char *target)
{
	struct url url;

	assert_int_equal(url_parse(text, &url), 0);
	assert_int_equal(url.tls, tls);
	assert_int_equal(url.host.is_addr, !name);
	if (name)
		assert_string_equal(url.host.name, name);
	assert_int_equal(url.port, port);
	assert_string_equal(url.target, target);
}

static void test_urls(void **state)
{
	(void)state;
	assert_url("http://example.com", false, "example.com", 80, "/");
	assert_url("https://example.com/", true, "example.com", 443, "/");
	assert_url("HTTPS://Example.COM:8443/a/b?c=d", true, "example.com", 8443, "/a/b?c=d");
	assert_url("http://example.com:80", false, "example.com", 80, "/");
	assert_url("http://example.com:65535/", false, "example.com", 65535, "/");
	assert_url("https://192.0.2.1:1/x", true, NULL, 1, "/x");
	assert_url("https://[2001:db8::1]/x@y:z", true, NULL, 443, "/x@y:z");
	assert_url("https://[2001:db8::1]:8443", true, NULL, 8443, "/");
	assert_url("https://b\xc3\xbc"
		   "cher.example/",
		   true, "xn--bcher-kva.example", 443, "/");
}

static void test_no_urls(void **state)
{
	static const char *const bad[] = {
		"",
		"http:",
		"http://",
		"http:///",
		"https:///path",
		"ftp://example.com/",
		"example.com",
		"//example.com/",
		"http:/example.com",
		"http://user@example.com/",
		"http://user:pass@example.com/",
		"http://@example.com",
		"http://example.com:/",
		"http://example.com:0/",
		"http://example.com:080/",
		"http://example.com:65536/",
		"http://example.com:8a/",
		"http://example.com:-1/",
		"http://example.com:123456/",
		"http://:80/",
		"http://example.com?x",
		"http://example.com#x",
		"http://example.com\\@evil.example/",
		"http://exa mple.com/",
		" http://example.com/",
		"http://example.com/a b",
		"http://example.com/\r\nHost: x",
		"http://[::1/",
		"http://[::1]x/",
		"http://[::1]80/",
		"http://::1/",
		"http://1.2.3/",
		"http://0x7f000001/",
		"http://2130706433/",
		"https://*.example.com/",
		"http://[fe80::1%25lo]/",
		"http://a..b/",
		"http://example.com:80:80/",
	};
	struct url url = { .port = 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (url_parse(bad[i], &url) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(url.port, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_no_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
