/* SPDX-License-Identifier: MIT */
#include "wire/dns_message.h"

#include <errno.h>

/* Each pointer leads to a place in front of the piece it ends, so there is no way round; the number of them is bound
 * because a long row of pointers to pointers could be walked again for each record. */
int dns_name_read(const struct dns_message *m, size_t at, bool pointers, struct dns_wire_name *ret, size_t *ret_next)
{
	size_t next = 0, piece = at;
	unsigned hops = 0;

	ret->len = 0;
	for (;;) {
		unsigned n;

		if (at >= m->len)
			return -EBADMSG;
		n = m->data[at];
		if (pointers && (n & NS_CMPRSFLGS) == NS_CMPRSFLGS) {
			size_t target;

			if (at + 2 > m->len || ++hops > NS_MAXLABEL)
				return -EBADMSG;
			target = dns_read16(m, at) & 0x3fff;
			if (target >= piece)
				return -EBADMSG;
			if (!next)
				next = at + 2;
			piece = at = target;
			continue;
		}
		if (n > NS_MAXLABEL || at + 1 + n > m->len || ret->len + 1 + n > sizeof(ret->bytes))
			return -EBADMSG;
		ret->bytes[ret->len++] = (uint8_t)n;
		for (size_t i = at + 1; i <= at + n; i++) {
			uint8_t c = m->data[i];

			ret->bytes[ret->len++] = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
		}
		at += 1 + n;
		if (!n)
			break;
	}
	*ret_next = next ? next : at;
	return 0;
}

int dns_record_read(const struct dns_message *m, size_t *at, bool pointers, struct dns_record *ret)
{
	size_t p;

	if (dns_name_read(m, *at, pointers, &ret->owner, &p) < 0 || p + NS_RRFIXEDSZ > m->len)
		return -EBADMSG;
	ret->type = dns_read16(m, p);
	ret->class = dns_read16(m, p + 2);
	ret->ttl_s = (uint32_t)dns_read16(m, p + 4) << 16 | dns_read16(m, p + 6);
	ret->data_len = dns_read16(m, p + 8);
	ret->data = p + NS_RRFIXEDSZ;
	if (ret->data + ret->data_len > m->len)
		return -EBADMSG;
	*at = ret->data + ret->data_len;
	return 0;
}
