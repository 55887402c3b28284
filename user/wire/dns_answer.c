/* SPDX-License-Identifier: MIT */
#include "wire/dns_answer.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "addr.h"
#include "vocab/limits.h"
#include "wire/dns_message.h"

struct alias {
	size_t owner, target; /* offsets into the message */
	uint32_t ttl_s;
};

static bool name_same(const struct dns_wire_name *a, const struct dns_wire_name *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static int record_read(const struct dns_message *m, size_t *at, struct dns_record *ret)
{
	int r = dns_record_read(m, at, true, ret);

	if (r == 0 && ret->ttl_s > INT32_MAX) /* RFC 2181, 8 */
		ret->ttl_s = 0;
	return r;
}

static int question_read(const struct dns_message *m, unsigned type, struct dns_wire_name *ret_name, size_t *ret_next)
{
	size_t p;

	if (m->len < NS_HFIXEDSZ || !(m->data[2] & 0x80) || m->data[2] & 0x78 || dns_read16(m, 4) != 1)
		return -EBADMSG;
	if (dns_name_read(m, NS_HFIXEDSZ, true, ret_name, &p) < 0 || p + NS_QFIXEDSZ > m->len ||
	    dns_read16(m, p) != type || dns_read16(m, p + 2) != ns_c_in)
		return -EBADMSG;
	*ret_next = p + NS_QFIXEDSZ;
	return 0;
}

static int aliases_read(const struct dns_message *m, size_t at, struct alias aliases[static NP_CNAMES_MAX],
			size_t *ret_n)
{
	unsigned records = dns_read16(m, 6);
	struct dns_record record;
	size_t n = 0;

	for (unsigned i = 0; i < records; i++) {
		size_t owner = at;

		if (record_read(m, &at, &record) < 0)
			return -EBADMSG;
		if (record.class != ns_c_in || record.type != ns_t_cname)
			continue;
		if (n == NP_CNAMES_MAX)
			return -EBADMSG;
		aliases[n++] = (struct alias){ .owner = owner, .target = record.data, .ttl_s = record.ttl_s };
	}
	*ret_n = n;
	return 0;
}

/* Letters, digits, "-" and "_", as hosts and services have them. */
static bool is_host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int alias_add(struct alias_names *names, const struct dns_wire_name *name)
{
	char *to = names->text + names->len;

	if (name->len <= 1) /* the root */
		return 0;
	/* Each label has a dot or the NUL in place of its length; the empty name behind the last takes a byte more. */
	if (names->len + name->len > sizeof(names->text))
		return -EBADMSG;
	for (size_t at = 0; name->bytes[at]; at += 1u + name->bytes[at]) {
		for (size_t i = at + 1; i <= at + name->bytes[at]; i++)
			*to++ = is_host_byte(name->bytes[i]) ? (char)name->bytes[i] : '?';
		*to++ = '.';
	}
	to[-1] = '\0';
	names->len = (size_t)(to - names->text);
	*to = '\0';
	return 0;
}

/* Replaces name by what it stands for in the end. As many steps as there are aliases: a circle ends somewhere in it,
 * and has no addresses there. */
static int aliases_follow(const struct dns_message *m, const struct alias *aliases, size_t n,
			  struct dns_wire_name *name, struct alias_names *names, uint32_t *ttl_s)
{
	struct dns_wire_name owner;
	size_t next;

	for (size_t step = 0; step < n; step++) {
		const struct alias *found = NULL;

		for (size_t i = 0; i < n && !found; i++) {
			if (dns_name_read(m, aliases[i].owner, true, &owner, &next) < 0)
				return -EBADMSG;
			if (name_same(&owner, name))
				found = &aliases[i];
		}
		if (!found)
			break;
		if (dns_name_read(m, found->target, true, name, &next) < 0 || alias_add(names, name) < 0)
			return -EBADMSG;
		if (found->ttl_s < *ttl_s)
			*ttl_s = found->ttl_s;
	}
	return 0;
}

static void address_add(struct addresses *addresses, const uint8_t *data, enum family family)
{
	struct np_addr addr = np_addr_v4(0);

	if (addresses->count == NP_ADDRS_PER_NAME)
		return;
	if (family == FAMILY_V4)
		memcpy(addr.b + 12, data, 4);
	else
		memcpy(addr.b, data, 16);
	addresses->addrs[addresses->count++] = addr;
}

/* What stands in front of the records: 0, the name that has them, and where they begin. */
static int head_read(const struct dns_message *m, unsigned type, struct dns_wire_name *ret_name,
		     struct alias_names *ret_names, size_t *ret_at, uint32_t *ret_ttl_s)
{
	struct alias aliases[NP_CNAMES_MAX];
	size_t n_aliases;
	unsigned rcode;

	if (question_read(m, type, ret_name, ret_at) < 0)
		return -EBADMSG;
	rcode = m->data[3] & 0xf;
	if (rcode != ns_r_noerror)
		return rcode == ns_r_nxdomain ? -ENOENT : -EREMOTEIO;
	*ret_ttl_s = UINT32_MAX;
	if (aliases_read(m, *ret_at, aliases, &n_aliases) < 0)
		return -EBADMSG;
	ret_names->len = 0;
	ret_names->text[0] = '\0';
	return aliases_follow(m, aliases, n_aliases, ret_name, ret_names, ret_ttl_s);
}

static bool record_is(const struct dns_record *record, unsigned type, const struct dns_wire_name *name)
{
	return record->type == type && record->class == ns_c_in && name_same(&record->owner, name);
}

int answer_read(const uint8_t *data, size_t len, enum family family, struct addresses *ret,
		struct alias_names *ret_names, uint32_t *ret_ttl_s)
{
	const unsigned type = family == FAMILY_V4 ? ns_t_a : ns_t_aaaa;
	const size_t size = family == FAMILY_V4 ? 4 : 16;
	const struct dns_message m = { data, len };
	struct addresses addresses = { 0 };
	struct dns_wire_name name = { 0 };
	struct dns_record record;
	uint32_t ttl_s;
	size_t at;
	int r = head_read(&m, type, &name, ret_names, &at, &ttl_s);

	if (r < 0)
		return r;
	for (unsigned i = dns_read16(&m, 6); i > 0; i--) {
		if (record_read(&m, &at, &record) < 0)
			return -EBADMSG;
		if (!record_is(&record, type, &name) || record.data_len != size)
			continue;
		address_add(&addresses, data + record.data, family);
		if (record.ttl_s < ttl_s)
			ttl_s = record.ttl_s;
	}
	if (!addresses.count)
		return -ENODATA;
	*ret = addresses;
	*ret_ttl_s = ttl_s;
	return 0;
}

/* -- other records --------------------------------------------------------------- */

static bool name_is_host(const struct dns_wire_name *name)
{
	for (size_t at = 0; name->bytes[at]; at += 1u + name->bytes[at])
		for (size_t i = at + 1; i <= at + name->bytes[at]; i++)
			if (!is_host_byte(name->bytes[i]))
				return false;
	return true;
}

/* Strings of up to 255 bytes, at least one, each with its length in front. */
static bool text_adds_up(const struct dns_message *m, const struct dns_record *record)
{
	size_t at = record->data, end = at + record->data_len;

	while (at < end)
		at += 1u + m->data[at];
	return record->data_len && at == end;
}

/* Numbers, and then a name to which it leads. */
static bool numbers_and_name(const struct dns_message *m, const struct dns_record *record, size_t numbers,
			     struct dns_wire_name *ret)
{
	size_t next;

	return record->data_len > numbers && dns_name_read(m, record->data + numbers, true, ret, &next) == 0 &&
	       next == record->data + record->data_len && name_is_host(ret);
}

static int bytes_add(struct record_bytes *bytes, const uint8_t *front, size_t front_len, const uint8_t *name,
		     size_t name_len)
{
	size_t len = front_len + name_len;
	uint8_t *to = bytes->data + bytes->len;

	if (sizeof(bytes->data) - bytes->len < 2 + len)
		return -EMSGSIZE;
	to[0] = (uint8_t)(len >> 8);
	to[1] = (uint8_t)len;
	memcpy(to + 2, front, front_len);
	if (name_len)
		memcpy(to + 2 + front_len, name, name_len);
	bytes->len += 2 + len;
	bytes->count++;
	return 0;
}

/* 0, also when it is left out. */
static int record_add(const struct dns_message *m, const struct dns_record *record, struct record_bytes *bytes)
{
	const size_t numbers = record->type == ns_t_mx ? 2 : 6; /* a preference; or priority, weight and port */
	const uint8_t *data = m->data + record->data;
	struct dns_wire_name name;

	if (record->type == ns_t_txt)
		return text_adds_up(m, record) ? bytes_add(bytes, data, record->data_len, NULL, 0) : 0;
	if (!numbers_and_name(m, record, numbers, &name))
		return 0;
	return bytes_add(bytes, data, numbers, name.bytes, name.len);
}

int answer_read_records(const uint8_t *data, size_t len, uint16_t type, struct record_bytes *ret, uint32_t *ret_ttl_s)
{
	const struct dns_message m = { data, len };
	struct alias_names names;
	struct dns_wire_name name = { 0 };
	struct dns_record record;
	uint32_t ttl_s;
	size_t at;
	int r = head_read(&m, type, &name, &names, &at, &ttl_s);

	ret->count = 0;
	ret->len = 0;
	for (unsigned i = r < 0 ? 0 : dns_read16(&m, 6); i > 0; i--) {
		if (record_read(&m, &at, &record) < 0)
			return -EBADMSG;
		if (!record_is(&record, type, &name))
			continue;
		r = record_add(&m, &record, ret);
		if (r < 0)
			return r;
		if (record.ttl_s < ttl_s)
			ttl_s = record.ttl_s;
	}
	if (r < 0)
		return r;
	*ret_ttl_s = ttl_s;
	return ret->count ? 0 : -ENODATA;
}
