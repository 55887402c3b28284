/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "wire/dns.h"

/* The number in front of the dot at *at, one of at most digits digits without leading zeros; *at is left behind the dot. */
static bool number_read(const char **at, unsigned base, size_t digits, uint8_t *ret)
{
	size_t len = strcspn(*at, ".");
	unsigned long value;
	char *end;

	if (!len || len > digits || (*at)[len] != '.' || (len > 1 && **at == '0'))
		return false;
	if (strspn(*at, base == 16 ? "0123456789abcdef" : "0123456789") != len)
		return false;
	value = strtoul(*at, &end, (int)base);
	if (value > UINT8_MAX)
		return false;
	*ret = (uint8_t)value;
	*at = end + 1;
	return true;
}

int dns_reverse_parse(const char *name, struct np_addr *ret)
{
	struct np_addr v4 = np_addr_v4(0), v6 = { 0 };
	const char *at = name;
	uint8_t low, high;
	int i = 16;

	while (i > 12 && number_read(&at, 10, 3, &v4.b[i - 1]))
		i--;
	if (i == 12 && strcmp(at, "in-addr.arpa") == 0) {
		*ret = v4;
		return 0;
	}
	at = name;
	for (i = 16; i > 0 && number_read(&at, 16, 1, &low) && number_read(&at, 16, 1, &high); i--)
		v6.b[i - 1] = (uint8_t)(high << 4 | low);
	if (i || strcmp(at, "ip6.arpa") != 0)
		return -EINVAL;
	*ret = v6;
	return 0;
}
