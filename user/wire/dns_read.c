/* SPDX-License-Identifier: MIT */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/dns.h"
#include "wire/dns_message.h"
#include "vocab/limits.h"

#define FLAG_QR	     0x80 /* of byte 2: a response */
#define FLAG_TC	     0x02
#define FLAG_RD	     0x01
#define FLAG_CD	     0x10 /* of byte 3 */
#define EDNS_VERSION 0
#define EDNS_DO	     0x8000
/* From here to ANY: types that are no data, such as transfers (RFC 6895, 3.1). */
#define META_TYPES 128

/* -- the name ----------------------------------------------------------------- */

/* 0; -EINVAL when it is no host name; -ENOMEM. */
static int question_name(const uint8_t *question, char ret[static NAME_SIZE])
{
	char text[NS_MAXCDNAME];
	size_t len = 0;

	for (; *question; question += 1 + *question) {
		for (unsigned i = 1; i <= *question; i++) {
			/* A dot within a label would be taken for a separator, and names in other scripts are xn-- in
			 * DNS: bytes beyond ASCII would become a name that nobody asked for. */
			if (question[i] == '.' || question[i] >= 0x80)
				return -EINVAL;
			text[len++] = (char)question[i];
		}
		text[len++] = '.';
	}
	return len ? name_canonical(text, len, ret) : -EINVAL;
}

static size_t text_put(char *to, uint8_t c)
{
	if (c > ' ' && c < 0x7f && c != '.' && c != '\\') {
		to[0] = (char)c;
		return 1;
	}
	to[0] = '\\';
	to[1] = (char)('0' + c / 100);
	to[2] = (char)('0' + c / 10 % 10);
	to[3] = (char)('0' + c % 10);
	return 4;
}

void dns_query_text(const struct dns_query *query, char ret[static DNS_TEXT_SIZE])
{
	const uint8_t *label = query->question;
	size_t len = 0;

	if (query->question_len && !*label)
		ret[len++] = '.';
	for (; query->question_len && *label; label += 1 + *label) {
		if (len)
			ret[len++] = '.';
		for (unsigned i = 1; i <= *label; i++)
			len += text_put(ret + len, label[i]);
	}
	ret[len] = '\0';
}

/* -- the message --------------------------------------------------------------- */

static bool question_read(const struct dns_message *m, size_t *at, struct dns_query *q)
{
	struct dns_wire_name name;
	size_t start = *at, end;

	/* Nothing stands in front of a question that a pointer could lead to. */
	if (dns_name_read(m, start, false, &name, &end) < 0 || end + NS_QFIXEDSZ > m->len)
		return false;
	q->type = (uint16_t)dns_read16(m, end);
	*at = end + NS_QFIXEDSZ;
	q->question_len = *at - start;
	memcpy(q->question, m->data + start, q->question_len);
	return q->type != ns_t_invalid && q->type != ns_t_opt;
}

/* None of the options changes what is answered, but they have to add up. */
static bool options_skip(const struct dns_message *m, size_t at, size_t end)
{
	while (at < end) {
		if (end - at < 4 || end - at - 4 < dns_read16(m, at + 2))
			return false;
		at += 4 + dns_read16(m, at + 2);
	}
	return true;
}

/* Leaves *at behind the record. Of the records that a question can bring, only OPT says anything to us. */
static bool additional_read(const struct dns_message *m, size_t *at, struct dns_query *q, unsigned *version)
{
	struct dns_record record;

	/* Without pointers: of what comes here only OPT counts, whose name is the root. */
	if (dns_record_read(m, at, false, &record) < 0)
		return false;
	if (record.type != ns_t_opt)
		return true;
	if (q->edns || record.owner.len != 1 || !options_skip(m, record.data, record.data + record.data_len))
		return false;
	q->edns = true;
	*version = record.ttl_s >> 16 & 0xff;
	q->dnssec = record.ttl_s & EDNS_DO;
	if (record.class > DNS_UDP_MIN)
		q->udp_size = (uint16_t)record.class;
	return true;
}

static bool sections_read(const struct dns_message *m, struct dns_query *q, unsigned *version)
{
	size_t at = NS_HFIXEDSZ;

	if (m->data[2] & FLAG_TC || dns_read16(m, 4) != 1 || dns_read16(m, 6) || dns_read16(m, 8) ||
	    !question_read(m, &at, q))
		return false;
	for (unsigned i = dns_read16(m, 10); i > 0; i--)
		if (!additional_read(m, &at, q, version))
			return false;
	return at == m->len;
}

static int query_judge(const struct dns_message *m, struct dns_query *q)
{
	unsigned version = EDNS_VERSION;
	const uint8_t *class;

	if (q->opcode != ns_o_query)
		return ns_r_notimpl;
	if (!sections_read(m, q, &version)) {
		q->edns = false;
		return ns_r_formerr;
	}
	if (version != EDNS_VERSION)
		return ns_r_badvers;
	class = q->question + q->question_len - 2;
	if (class[0] || class[1] != ns_c_in)
		return ns_r_refused;
	if (q->type >= META_TYPES && q->type < ns_t_any)
		return ns_r_notimpl;
	return question_name(q->question, q->name) == -ENOMEM ? ns_r_servfail : ns_r_noerror;
}

int dns_query_read(const uint8_t *data, size_t len, struct dns_query *ret)
{
	const struct dns_message m = { data, len };

	if (len < NS_HFIXEDSZ || data[2] & FLAG_QR)
		return -EBADMSG;
	*ret = (struct dns_query){
		.id = (uint16_t)dns_read16(&m, 0),
		.opcode = data[2] >> 3 & 0xf,
		.recursion = data[2] & FLAG_RD,
		.unchecked = data[3] & FLAG_CD,
		.udp_size = DNS_UDP_MIN,
	};
	return query_judge(&m, ret);
}

/* -- what is not a message ------------------------------------------------------ */

int dns_frame_read(const uint8_t *data, size_t len, const uint8_t **ret_message, size_t *ret_len)
{
	const struct dns_message m = { data, len };

	if (len < DNS_FRAME_SIZE)
		return -EAGAIN;
	if (dns_read16(&m, 0) > NP_DNS_QUERY_MAX)
		return -EMSGSIZE;
	if (len - DNS_FRAME_SIZE < dns_read16(&m, 0))
		return -EAGAIN;
	*ret_message = data + DNS_FRAME_SIZE;
	*ret_len = dns_read16(&m, 0);
	return 0;
}

void dns_type_text(uint16_t type, char ret[static DNS_TYPE_SIZE])
{
	static const struct {
		uint16_t type;
		const char *name;
	} known[] = {
		{ ns_t_a, "A" },	   { ns_t_ns, "NS" },	    { ns_t_cname, "CNAME" },
		{ ns_t_soa, "SOA" },	   { ns_t_null, "NULL" },   { ns_t_ptr, "PTR" },
		{ ns_t_mx, "MX" },	   { ns_t_txt, "TXT" },	    { ns_t_aaaa, "AAAA" },
		{ ns_t_srv, "SRV" },	   { ns_t_naptr, "NAPTR" }, { ns_t_ds, "DS" },
		{ ns_t_dnskey, "DNSKEY" }, { 64, "SVCB" },	    { 65, "HTTPS" },
		{ ns_t_any, "ANY" },	   { 257, "CAA" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].type == type) {
			snprintf(ret, DNS_TYPE_SIZE, "%s", known[i].name);
			return;
		}
	snprintf(ret, DNS_TYPE_SIZE, "TYPE%u", type);
}
