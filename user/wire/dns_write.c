/* SPDX-License-Identifier: MIT */
#include <arpa/nameser.h>
#include <string.h>

#include "addr.h"
#include "base/chars.h"
#include "wire/dns.h"
#include "vocab/limits.h"

#define FLAG_QR	      0x8000
#define FLAG_TC	      0x0200
#define FLAG_RD	      0x0100
#define FLAG_RA	      0x0080
#define FLAG_CD	      0x0010
#define OPT_SIZE      11 /* without options */
#define OPTION_EDE    15
#define EDE_SIZE      6 /* code, length and INFO-CODE */
#define EDNS_DO	      0x8000
#define NAME_IS_ASKED 0xc00c /* a pointer to the question, which is behind the header */

/* Bytes that do not fit are not written, and then full is set. */
struct writer {
	uint8_t *out;
	size_t len, limit;
	bool full;
};

static void dns_writer_put(struct writer *w, const void *data, size_t len)
{
	if (w->limit - w->len < len) {
		w->full = true;
		return;
	}
	memcpy(w->out + w->len, data, len);
	w->len += len;
}

static void put8(struct writer *w, unsigned value)
{
	dns_writer_put(w, &(uint8_t){ (uint8_t)value }, 1);
}

static void put16(struct writer *w, unsigned value)
{
	dns_writer_put(w, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void put32(struct writer *w, uint32_t value)
{
	put16(w, value >> 16);
	put16(w, value & 0xffff);
}

/* A canonical name, not compressed: it has neither an empty label nor one that is too long. */
static void put_name(struct writer *w, const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");

		put8(w, (unsigned)len);
		dns_writer_put(w, name, len);
		name += len + (name[len] == '.');
	}
	put8(w, 0);
}

static void put_fixed(struct writer *w, unsigned type, uint32_t ttl_s, size_t data_len)
{
	put16(w, type);
	put16(w, ns_c_in);
	put32(w, ttl_s);
	put16(w, (unsigned)data_len);
}

/* -- sections ------------------------------------------------------------------- */

static void put_header(struct writer *w, const struct dns_query *q, unsigned rcode)
{
	put16(w, q->id);
	put16(w, FLAG_QR | (unsigned)q->opcode << 11 | (q->recursion ? FLAG_RD : 0) | FLAG_RA |
			 (q->unchecked ? FLAG_CD : 0) | (rcode & 0xf));
	put16(w, q->question_len ? 1 : 0);
	put16(w, 0); /* the others are counted when they are known */
	put16(w, 0);
	put16(w, q->edns ? 1 : 0);
	dns_writer_put(w, q->question, q->question_len);
}

static unsigned put_addresses(struct writer *w, const struct dns_query *q, const struct dns_answer *a)
{
	unsigned n = 0;

	for (size_t i = 0; i < a->n_addrs && !w->full; i++) {
		const struct np_addr *addr = &a->addrs[i];
		bool v4 = np_addr_is_v4(addr);

		if (v4 != (q->type == ns_t_a))
			continue;
		put16(w, NAME_IS_ASKED);
		put_fixed(w, q->type, a->ttl_s, v4 ? 4 : 16);
		dns_writer_put(w, addr->b + (v4 ? 12 : 0), v4 ? 4 : 16);
		n++;
	}
	return n;
}

static unsigned put_records(struct writer *w, const struct dns_query *q, const struct dns_answer *a)
{
	const uint8_t *data = a->records->data;

	for (unsigned i = 0; i < a->records->count && !w->full; i++) {
		size_t len = (size_t)data[0] << 8 | data[1];

		put16(w, NAME_IS_ASKED);
		put_fixed(w, q->type, a->ttl_s, len);
		dns_writer_put(w, data + 2, len);
		data += 2 + len;
	}
	return a->records->count;
}

static unsigned put_answers(struct writer *w, const struct dns_query *q, const struct dns_answer *a)
{
	if (a->rcode != ns_r_noerror || !q->question_len)
		return 0;
	if (q->type == ns_t_a || q->type == ns_t_aaaa)
		return put_addresses(w, q, a);
	if (a->records)
		return put_records(w, q, a);
	if (q->type != ns_t_ptr || !a->ptr)
		return 0;
	put16(w, NAME_IS_ASKED);
	put_fixed(w, ns_t_ptr, a->ttl_s, strlen(a->ptr) + 2);
	put_name(w, a->ptr);
	return 1;
}

/* The root's, above any name. Its last number is how long it may be remembered that there is nothing (RFC 2308). */
static void put_soa(struct writer *w)
{
	static const uint32_t numbers[] = { 1 /* serial */, 3600, 600, 86400, NP_DNS_NEGATIVE_S };

	put8(w, 0);
	put_fixed(w, ns_t_soa, NP_DNS_NEGATIVE_S, 2 + sizeof(numbers));
	put8(w, 0); /* no primary server */
	put8(w, 0); /* and nobody to write to */
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put32(w, numbers[i]);
}

/* As many of the words as may go, whole characters only. */
static size_t words_len(const struct dns_answer *a)
{
	size_t len = 0, all = a->words ? strlen(a->words) : 0;

	while (len < all) {
		uint32_t c;
		size_t n = char_decode(a->words + len, all - len, &c);

		if (!n || len + n > NP_DNS_WORDS_MAX)
			break;
		len += n;
	}
	return len;
}

static void put_opt(struct writer *w, const struct dns_query *q, const struct dns_answer *a)
{
	size_t room = w->limit - w->len, words = words_len(a), options = 0;

	if (a->ede != DNS_EDE_NONE && room >= OPT_SIZE + EDE_SIZE) {
		if (room < OPT_SIZE + EDE_SIZE + words)
			words = 0;
		options = EDE_SIZE + words;
	}
	put8(w, 0);
	put16(w, ns_t_opt);
	put16(w, DNS_UDP_MAX);
	put8(w, a->rcode >> 4);
	put8(w, 0); /* version */
	put16(w, q->dnssec ? EDNS_DO : 0);
	put16(w, (unsigned)options);
	if (!options)
		return;
	put16(w, OPTION_EDE);
	put16(w, (unsigned)(2 + words));
	put16(w, a->ede);
	if (words)
		dns_writer_put(w, a->words, words);
}

/* -- the whole -------------------------------------------------------------------- */

size_t dns_answer_limit(const struct dns_query *query, bool tcp)
{
	if (tcp)
		return DNS_TCP_MAX;
	return query->udp_size < DNS_UDP_MAX ? query->udp_size : DNS_UDP_MAX;
}

size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out, size_t limit)
{
	struct writer w = { .out = out, .limit = limit };
	unsigned answers;
	size_t start;

	put_header(&w, query, answer->rcode);
	start = w.len;
	if (query->edns)
		w.limit -= OPT_SIZE;
	answers = put_answers(&w, query, answer);
	if (!answers && (answer->rcode == ns_r_noerror || answer->rcode == ns_r_nxdomain)) {
		put_soa(&w);
		out[9] = 1;
	}
	if (w.full) {
		w.len = start;
		answers = out[9] = 0;
		out[2] |= FLAG_TC >> 8;
	}
	out[6] = (uint8_t)(answers >> 8);
	out[7] = (uint8_t)answers;
	w.limit = limit;
	if (query->edns)
		put_opt(&w, query, answer);
	return w.len;
}

void dns_frame_write(uint8_t out[static DNS_FRAME_SIZE], size_t len)
{
	out[0] = (uint8_t)(len >> 8);
	out[1] = (uint8_t)len;
}
