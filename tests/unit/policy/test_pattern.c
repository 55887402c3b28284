/* SPDX-License-Identifier: MIT */
#include "policy/pattern.c"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static struct pattern pattern;
static char name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE];

static int parse_n(const char *text, size_t len)
{
	/* A copy of its own size, so that ASan sees every read beyond it. */
	char *copy = malloc(len ? len : 1);
	int e;

	assert_non_null(copy);
	memcpy(copy, text, len);
	memset(&pattern, 0xee, sizeof(pattern));
	strcpy(problem, "untouched");
	e = pattern_parse(copy, len, name, &pattern, problem);
	free(copy);
	return e;
}

static void parses(const char *text)
{
	if (parse_n(text, strlen(text)) < 0)
		fail_msg("%s: %s", text, problem);
	assert_string_equal(problem, "untouched");
}

static void refused(const char *text, const char *why)
{
	struct pattern untouched;

	memset(&untouched, 0xee, sizeof(untouched));
	assert_int_equal(parse_n(text, strlen(text)), -EINVAL);
	assert_string_equal(problem, why);
	assert_memory_equal(&pattern, &untouched, sizeof(pattern));
}

static void assert_ports(unsigned first, unsigned last, unsigned protocols)
{
	assert_int_equal(pattern.first_port, first);
	assert_int_equal(pattern.last_port, last);
	assert_int_equal(pattern.protocols, protocols);
	assert_false(pattern.inspected);
}

static void is_name(const char *text, const char *expected, unsigned first, unsigned last, unsigned protocols)
{
	parses(text);
	assert_int_equal(pattern.kind, PATTERN_NAME);
	assert_ptr_equal(pattern.name, name);
	assert_string_equal(name, expected);
	assert_ports(first, last, protocols);
}

static void is_net(const char *text, const char *addr, unsigned bits, bool v4)
{
	struct np_addr expected = { .b = { [10] = 0xff, [11] = 0xff } };

	parses(text);
	if (v4)
		assert_int_equal(inet_pton(AF_INET, addr, expected.b + 12), 1);
	else
		assert_int_equal(inet_pton(AF_INET6, addr, expected.b), 1);
	assert_int_equal(pattern.kind, PATTERN_NET);
	assert_null(pattern.name);
	assert_memory_equal(&pattern.addr, &expected, sizeof(expected));
	assert_int_equal(pattern.bits, bits);
	assert_int_equal(pattern.v4, v4);
}

static void names(void **state)
{
	(void)state;
	is_name("example.com", "example.com", 0, 0, 0);
	is_name("EXAMPLE.com.", "example.com", 0, 0, 0);
	is_name("b\xc3\xbc"
		"cher.example",
		"xn--bcher-kva.example", 0, 0, 0);
	is_name("localhost", "localhost", 0, 0, 0);
	is_name("_dmarc.example.com", "_dmarc.example.com", 0, 0, 0);
	is_name("1.2.3.com", "1.2.3.com", 0, 0, 0);
	is_name("tcp", "tcp", 0, 0, 0);
}

/* The domain itself and everything below it. */
static void a_dot_in_front(void **state)
{
	char longest[256] = ".";

	(void)state;
	is_name(".example.com", ".example.com", 0, 0, 0);
	is_name(".Example.COM.", ".example.com", 0, 0, 0);
	is_name(".example.com:8443", ".example.com", 8443, 8443, 0);
	is_name(".com", ".com", 0, 0, 0);
	/* With its dot it has to fit where a name does. */
	for (size_t i = 1; i < 253; i++)
		longest[i] = i % 2 ? 'a' : '.';
	longest[252] = 'b';
	longest[253] = '\0';
	parses(longest);
	longest[253] = 'c';
	longest[254] = '\0';
	assert_int_equal(parse_n(longest, strlen(longest)), -EINVAL);
}

static void stars(void **state)
{
	(void)state;
	is_name("*", "*", 0, 0, 0);
	is_name("**", "**", 0, 0, 0);
	is_name("*.example.com", "*.example.com", 0, 0, 0);
	is_name("**.Example.COM.", "**.example.com", 0, 0, 0);
	is_name("api.*.example.com", "api.*.example.com", 0, 0, 0);
	is_name("*.*.example.*", "*.*.example.*", 0, 0, 0);
	is_name("**.*.example", "**.*.example", 0, 0, 0);
	is_name("*.b\xc3\xbc"
		"cher.example:443",
		"*.xn--bcher-kva.example", 443, 443, 0);
	is_name("*.1.example", "*.1.example", 0, 0, 0);
}

static void ports(void **state)
{
	(void)state;
	is_name("a.example:443", "a.example", 443, 443, 0);
	is_name("a.example:1", "a.example", 1, 1, 0);
	is_name("a.example:65535/udp", "a.example", 65535, 65535, PATTERN_UDP);
	is_name("a.example:80-90", "a.example", 80, 90, 0);
	is_name("a.example:80-80/tcp", "a.example", 80, 80, PATTERN_TCP);
	is_name("a.example:*", "a.example", 1, 65535, 0);
	is_name("a.example:*/udp", "a.example", 1, 65535, PATTERN_UDP);
	is_name("a.example/tcp", "a.example", 0, 0, PATTERN_TCP);
	is_name("**:443", "**", 443, 443, 0);
	is_name("*:*/tcp", "*", 1, 65535, PATTERN_TCP);
}

static void nets(void **state)
{
	(void)state;
	is_net("192.0.2.1", "192.0.2.1", 128, true);
	assert_ports(0, 0, 0);
	is_net("192.0.2.0/24", "192.0.2.0", 120, true);
	is_net("192.0.2.1/32", "192.0.2.1", 128, true);
	is_net("0.0.0.0/0", "0.0.0.0", 96, true);
	is_net("10.0.0.0/8:5432", "10.0.0.0", 104, true);
	assert_ports(5432, 5432, 0);
	is_net("10.0.0.0/8:1-2/udp", "10.0.0.0", 104, true);
	assert_ports(1, 2, PATTERN_UDP);
	is_net("10.0.0.0/8/tcp", "10.0.0.0", 104, true);
	assert_ports(0, 0, PATTERN_TCP);
	is_net("10.1.2.3/tcp", "10.1.2.3", 128, true);
	is_net("2001:db8::/32", "2001:db8::", 32, false);
	is_net("2001:DB8::1", "2001:db8::1", 128, false);
	is_net("[2001:db8::/32]:8443/tcp", "2001:db8::", 32, false);
	assert_ports(8443, 8443, PATTERN_TCP);
	is_net("[2001:db8::1]", "2001:db8::1", 128, false);
	is_net("[2001:db8::1]/tcp", "2001:db8::1", 128, false);
	assert_ports(0, 0, PATTERN_TCP);
	is_net("[2001:db8::1]:*", "2001:db8::1", 128, false);
	assert_ports(1, 65535, 0);
	is_net("::/0", "::", 0, false);
	is_net("::/80", "::", 80, false);
	/* An IPv4 range in IPv6 clothes is the IPv4 range. */
	is_net("::ffff:0:0/96", "0.0.0.0", 96, true);
	is_net("::ffff:192.0.2.0/120", "192.0.2.0", 120, true);
	is_net("::ffff:192.0.2.1", "192.0.2.1", 128, true);
	is_net("[::ffff:10.0.0.0/104]:443", "10.0.0.0", 104, true);
	/* Around the ranges that cannot be named. */
	is_net("126.0.0.0/8", "126.0.0.0", 104, true);
	is_net("128.0.0.0/8", "128.0.0.0", 104, true);
	is_net("240.0.0.0/4", "240.0.0.0", 100, true);
	is_net("192.0.0.0/2", "192.0.0.0", 98, true);
	is_net("0.0.0.0/7", "0.0.0.0", 103, true);
	is_net("255.255.255.254", "255.255.255.254", 128, true);
	is_net("::2", "::2", 128, false);
	is_net("::/126", "::", 126, false);
	is_net("fe00::/8", "fe00::", 8, false);
	is_net("fe00::/7", "fe00::", 7, false);
	is_net("64:ff9b::/95", "64:ff9b::", 95, false);
	is_net("64:ff9b:1::/48", "64:ff9b:1::", 48, false);
	is_net("2002::/15", "2002::", 15, false);
	is_net("2003::/16", "2003::", 16, false);
}

static void host_is_not_reached(void **state)
{
	static const char *const host[] = {
		"127.0.0.1",  "127.0.0.0/8", "127.255.255.255", "0.0.0.0", "0.0.0.0/8",	       "0.1.2.3",
		"::1",	      "::",	     "::1/128",		"::/127",  "::ffff:127.0.0.1", "::ffff:127.0.0.0/104",
		"127.0.0.1/8"
	};
	static const char *const many[] = { "224.0.0.1", "224.0.0.0/4", "239.255.255.250", "255.255.255.255",
					    "ff02::1",	 "ff00::/8",	"ff05::/16" };
	char expected[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(host); i++) {
		snprintf(expected, sizeof(expected), "\"%s\": rules do not reach the host; host_loopback does",
			 host[i]);
		refused(host[i], expected);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		snprintf(expected, sizeof(expected), "\"%s\": multicast is refused in every mode", many[i]);
		refused(many[i], expected);
	}
	refused("127.0.0.1:8080", "\"127.0.0.1\": rules do not reach the host; host_loopback does");
	refused("[::1]:80", "\"::1\": rules do not reach the host; host_loopback does");
}

static void bits_behind_the_prefix(void **state)
{
	(void)state;
	refused("10.1.2.3/8", "\"10.1.2.3/8\" has bits set behind its prefix; write \"10.0.0.0/8\"");
	refused("192.0.2.1/31", "\"192.0.2.1/31\" has bits set behind its prefix; write \"192.0.2.0/31\"");
	refused("10.0.0.1/0", "\"10.0.0.1/0\" has bits set behind its prefix; write \"0.0.0.0/0\"");
	refused("2001:db8::1/64", "\"2001:db8::1/64\" has bits set behind its prefix; write \"2001:db8::/64\"");
	refused("[2001:db8::1/64]:443", "\"2001:db8::1/64\" has bits set behind its prefix; write \"2001:db8::/64\"");
	refused("::ffff:10.1.0.0/104", "\"::ffff:10.1.0.0/104\" has bits set behind its prefix; write \"10.0.0.0/8\"");
	refused("::ffff:0:0/90", "\"::ffff:0:0/90\" has bits set behind its prefix; write \"::ffc0:0:0/90\"");
	refused("2001:db8:ffff::/35",
		"\"2001:db8:ffff::/35\" has bits set behind its prefix; write \"2001:db8:e000::/35\"");
}

static void ipv4_inside_of_ipv6(void **state)
{
	(void)state;
	refused("64:ff9b::/96", "\"64:ff9b::/96\" carries IPv4 addresses; write the IPv4 range: \"0.0.0.0/0\"");
	refused("64:ff9b::10.0.0.0/104",
		"\"64:ff9b::10.0.0.0/104\" carries IPv4 addresses; write the IPv4 range: \"10.0.0.0/8\"");
	refused("64:ff9b::192.0.2.1",
		"\"64:ff9b::192.0.2.1\" carries IPv4 addresses; write the IPv4 range: \"192.0.2.1/32\"");
	refused("2002::/16", "\"2002::/16\" carries IPv4 addresses; write the IPv4 range: \"0.0.0.0/0\"");
	refused("2002:a00::/24", "\"2002:a00::/24\" carries IPv4 addresses; write the IPv4 range: \"10.0.0.0/8\"");
	refused("2002:c000:201::/48",
		"\"2002:c000:201::/48\" carries IPv4 addresses; write the IPv4 range: \"192.0.2.1/32\"");
	refused("2002:c000:201:1::1",
		"\"2002:c000:201:1::1\" carries IPv4 addresses; write the IPv4 range: \"192.0.2.1/32\"");
}

static void bad_names(void **state)
{
	char text[400];

	(void)state;
	refused("exa mple.com", "\"exa mple.com\" is no host name");
	refused("-a.example", "\"-a.example\" is no host name");
	refused("a..example", "\"a..example\" is no host name: it has an empty label");
	refused(".", "\".\" is no host name");
	refused("..example.com", "\"..example.com\" is no host name: it has an empty label");
	refused(".*.example.com",
		"\".*.example.com\": a dot in front already means everything below; leave the stars out");
	refused(".-a.example", "\".-a.example\" is no host name");
	refused("user@example.com", "\"user@example.com\" is no host name; a list is \"@\" and its name, alone");
	refused("xn--a.example", "\"xn--a.example\" is no host name");
	refused("a.0x7f", "\"a.0x7f\" is no host name");
	refused(".", "\".\" is no host name");
	refused("..", "\"..\" is no host name: it has an empty label");
	refused("", "\"\" names no host; every name is \"**\"");
	refused(":443", "\":443\" names no host; every name is \"**\"");
	refused("/tcp", "\"/tcp\" names no host; every name is \"**\"");
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse_n(text, strlen(text)), -EINVAL);
	assert_non_null(strstr(problem, "...\" is no host name: it is too long"));
}

static void bad_stars(void **state)
{
	char text[300] = "*.", expected[NAME_SIZE];

	(void)state;
	refused("api-*.example.com", "\"api-*\": \"*\" stands for a whole label, never for a part of one");
	refused("*api.example.com", "\"*api\": \"*\" stands for a whole label, never for a part of one");
	refused("***.example.com", "\"***\": \"*\" stands for a whole label, never for a part of one");
	refused("a.**.example.com", "\"**\" is one or more labels, and only the first part of a name can be that");
	refused("example.**", "\"**\" is one or more labels, and only the first part of a name can be that");
	refused("**.**", "\"**\" is one or more labels, and only the first part of a name can be that");
	refused("10.*", "\"10.*\": a range of addresses has a prefix length, not \"*\": \"10.0.0.0/8\"");
	refused("１０.*", "\"１０.*\": a range of addresses has a prefix length, not \"*\": \"10.0.0.0/8\"");
	refused("10.0.*.*:443", "\"10.0.*.*\": a range of addresses has a prefix length, not \"*\": \"10.0.0.0/8\"");
	refused("*.example.5", "\"*.example.5\": the last label of a name is never a number");
	refused("*.example.0x1f", "\"*.example.0x1f\": the last label of a name is never a number");
	refused("*.example.0x", "\"*.example.0x\": the last label of a name is never a number");
	refused("*..example", "\"\" is no host name");
	refused("*..", "\"\" is no host name");
	refused("*.a b", "\"a b\" is no host name");
	refused("*.a\xe3\x80\x82"
		"b",
		"\"a\xe3\x80\x82"
		"b\" is no host name"); /* a dot in disguise */
	/* 253 bytes fit, 254 do not. */
	while (strlen(text) < 252)
		strcat(text, "a.");
	strcat(text, "a");
	assert_int_equal(strlen(text), 253);
	parses(text);
	memcpy(expected, text, sizeof(expected));
	assert_string_equal(name, expected);
	strcpy(text + 252, "ab");
	assert_int_equal(parse_n(text, 254), -EINVAL);
	assert_non_null(strstr(problem, "is longer than a name can be"));
}

static void bad_ports(void **state)
{
	static const char *const bad[] = { "0",	  "65536", "99999", "100000", "080",  "+80",
					   "-80", "x",	   "",	    "80 ",    "0x50", "**" };
	char text[64], expected[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "a.example:%s", bad[i]);
		snprintf(expected, sizeof(expected), "\"%s\" is no port; ports are 1 to 65535, or \"*\" for all",
			 bad[i][0] == '-' ? "" : bad[i]);
		refused(text, expected);
	}
	refused("a.example:1-", "\"\" is no port; ports are 1 to 65535, or \"*\" for all");
	refused("a.example:1-0", "\"0\" is no port; ports are 1 to 65535, or \"*\" for all");
	refused("a.example:1-2-3", "\"2-3\" is no port; ports are 1 to 65535, or \"*\" for all");
	refused("a.example:1-*", "\"*\" is no port; ports are 1 to 65535, or \"*\" for all");
	refused("a.example:90-80", "the ports \"90-80\" end before they start");
	refused("a.example:443/TCP", "\"TCP\" is no protocol; there are tcp and udp");
	refused("a.example:443/", "\"\" is no protocol; there are tcp and udp");
	refused("a.example:443/tcp/udp", "\"tcp/udp\" is no protocol; there are tcp and udp");
	refused("10.0.0.1:443/sctp", "\"sctp\" is no protocol; there are tcp and udp");
	refused("a.example/icmp",
		"\"icmp\" is no protocol; there are tcp and udp, and the path of a request goes into \"paths\"");
	refused("a.example/udp", "udp needs a port, as in \":443/udp\", or \":*/udp\" for all");
	refused("10.0.0.0/8/udp", "udp needs a port, as in \":443/udp\", or \":*/udp\" for all");
	refused("[2001:db8::1]/udp", "udp needs a port, as in \":443/udp\", or \":*/udp\" for all");
}

static void bad_addresses(void **state)
{
	static const char v4[] = " is no IPv4 address: four numbers from 0 to 255, without leading zeros";
	static const char *const bad[] = { "127.1", "10.0.0.256", "010.0.0.1", "1.2.3.4.5", "1", "1.2.3.", ".5" };
	char expected[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(expected, sizeof(expected), "\"%s\"%s", bad[i], v4);
		refused(bad[i], expected);
	}
	refused("10.0.0.0/33", "\"33\" is no prefix length; there are 0 to 32");
	refused("10.0.0.0/08", "\"08\" is no prefix length; there are 0 to 32");
	refused("10.0.0.0/8/24", "\"8/24\" is no prefix length; there are 0 to 32");
	refused("2001:db8::/129", "\"129\" is no prefix length; there are 0 to 128");
	refused("example.com/24", "\"example.com\" is no address, and a name takes no prefix length");
	refused("*.example.com/24:80", "\"*.example.com\" is no address, and a name takes no prefix length");
	refused("2001:db8::/32/tcp", "\"2001:db8::/32/tcp\": an IPv6 address with a port or a protocol needs brackets: "
				     "\"[2001:db8::/32]:443/tcp\"");
	refused("a:b:c", "\"a:b:c\" is no IPv6 address");
	refused("2001:db8::1%eth0", "\"2001:db8::1%eth0\" is no IPv6 address");
	refused("1:2", "\"1\" is no IPv4 address: four numbers from 0 to 255, without leading zeros");
	refused("[2001:db8::1", "\"[2001:db8::1\" has no \"]\" behind the address");
	refused("[", "\"[\" has no \"]\" behind the address");
	refused("[]", "brackets are for IPv6 addresses, and \"\" is none");
	refused("[10.0.0.1]:80", "brackets are for IPv6 addresses, and \"10.0.0.1\" is none");
	refused("[a.example]", "brackets are for IPv6 addresses, and \"a.example\" is none");
	refused("[2001:db8::]/32",
		"\"[2001:db8::]/32\": the prefix length goes inside of the brackets, as in \"[2001:db8::/32]\"");
	refused("[2001:db8::1]443", "behind \"]\" comes \":PORT\", not \"443\"");
	refused("[zz::1]:443", "\"zz::1\" is no IPv6 address");
	refused("https://a.example:443/x",
		"\"https://a.example:443/x\" is a URL; write the host alone: \"a.example:443\"");
	refused("https://", "\"https://\" is a URL; write the host alone: \"\"");
}

static void a_nul_ends_nothing(void **state)
{
	(void)state;
	assert_int_equal(parse_n("a.example\0.evil", 15), -EINVAL);
	assert_string_equal(problem, "\"a.example\\u0000.evil\" is no host name");
	assert_int_equal(parse_n("*.a\0b", 5), -EINVAL);
	assert_int_equal(parse_n("10.0.0.1\0", 9), -EINVAL);
	assert_int_equal(parse_n("a.example:80\0", 13), -EINVAL);
	assert_int_equal(parse_n("a.example:80/tcp\0", 17), -EINVAL);
}

static void settle(const char *text, enum pattern_use use, bool inspected, unsigned first, unsigned last,
		   unsigned protocols)
{
	parses(text);
	assert_null(pattern_settle(&pattern, use));
	assert_int_equal(pattern.inspected, inspected);
	assert_int_equal(pattern.first_port, first);
	assert_int_equal(pattern.last_port, last);
	assert_int_equal(pattern.protocols, protocols);
}

static void what_is_not_written(void **state)
{
	const unsigned both = PATTERN_TCP | PATTERN_UDP;

	(void)state;
	settle("a.example", PATTERN_GRANT, true, 0, 0, PATTERN_TCP);
	settle("a.example/tcp", PATTERN_GRANT, true, 0, 0, PATTERN_TCP);
	settle("a.example:443", PATTERN_GRANT, false, 443, 443, PATTERN_TCP);
	settle("a.example:443/udp", PATTERN_GRANT, false, 443, 443, PATTERN_UDP);
	settle("a.example:*", PATTERN_GRANT, false, 1, 65535, PATTERN_TCP);
	settle("10.0.0.0/8", PATTERN_GRANT, true, 0, 0, PATTERN_TCP);
	settle("a.example", PATTERN_REFUSE, false, 1, 65535, both);
	settle("a.example/tcp", PATTERN_REFUSE, false, 1, 65535, PATTERN_TCP);
	settle("a.example:443", PATTERN_REFUSE, false, 443, 443, both);
	settle("a.example:443/tcp", PATTERN_REFUSE, false, 443, 443, PATTERN_TCP);
	settle("a.example:53", PATTERN_REFUSE, false, 53, 53, both);
	settle("10.0.0.0/8", PATTERN_FULL, false, 1, 65535, both);
	settle("10.0.0.0/8/tcp", PATTERN_FULL, false, 1, 65535, PATTERN_TCP);
	settle("10.0.0.0/8:443", PATTERN_FULL, false, 443, 443, both);
	settle("10.0.0.0/8:53", PATTERN_FULL, false, 53, 53, both);
}

static void what_cannot_be_used_so(void **state)
{
	struct pattern before;

	(void)state;
	parses("10.0.0.1:53");
	before = pattern;
	assert_string_equal(pattern_settle(&pattern, PATTERN_GRANT),
			    "port 53 belongs to the DNS gate; a rule can only deny it");
	assert_memory_equal(&pattern, &before, sizeof(before));
	parses("a.example:53-53/udp");
	assert_non_null(pattern_settle(&pattern, PATTERN_GRANT));
	parses("a.example");
	before = pattern;
	assert_string_equal(pattern_settle(&pattern, PATTERN_FULL),
			    "in FULL nothing looks at names; only addresses can be refused there");
	assert_memory_equal(&pattern, &before, sizeof(before));
}

static void spans_dns(void **state)
{
	static const struct {
		const char *text;
		bool spans;
	} cases[] = { { "a.example", false },	 { "a.example:52-53", true },	  { "a.example:53-54", true },
		      { "a.example:*", true },	 { "a.example:54-100", false },	  { "a.example:1-52", false },
		      { "a.example:80", false }, { "10.0.0.0/8:1-100/udp", true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parses(cases[i].text);
		assert_null(pattern_settle(&pattern, PATTERN_GRANT));
		assert_int_equal(pattern_spans_dns(&pattern), cases[i].spans);
	}
}

static void spans_metadata(void **state)
{
	static const struct {
		const char *text;
		bool spans;
	} cases[] = { { "0.0.0.0/0", true },	    { "169.254.0.0/16", false },
		      { "169.254.169.254", false }, { "169.254.0.0/15", true },
		      { "169.0.0.0/8", true },	    { "100.64.0.0/10", true },
		      { "100.100.100.200", false }, { "100.100.100.0/24", true },
		      { "10.0.0.0/8", false },	    { "::/0", true },
		      { "fd00::/8", true },	    { "fe80::/10", false },
		      { "fd00:ec2::254", false },   { "2001:db8::/32", false },
		      { "a.example", false },	    { "::/80", false },
		      { "fe00::/7", true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parses(cases[i].text);
		assert_int_equal(pattern_spans_metadata(&pattern), cases[i].spans);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(stars),
		cmocka_unit_test(a_dot_in_front),
		cmocka_unit_test(ports),
		cmocka_unit_test(nets),
		cmocka_unit_test(host_is_not_reached),
		cmocka_unit_test(bits_behind_the_prefix),
		cmocka_unit_test(ipv4_inside_of_ipv6),
		cmocka_unit_test(bad_names),
		cmocka_unit_test(bad_stars),
		cmocka_unit_test(bad_ports),
		cmocka_unit_test(bad_addresses),
		cmocka_unit_test(a_nul_ends_nothing),
		cmocka_unit_test(what_is_not_written),
		cmocka_unit_test(what_cannot_be_used_so),
		cmocka_unit_test(spans_dns),
		cmocka_unit_test(spans_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
