/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as a DNS query. What is accepted needs every byte, is what c-ares reads there, and is answered within its
 * limits by a message that repeats the question and that c-ares and this program read to its end.
 */
#include "wire/dns_message.c"
#include "wire/dns_read.c"

#include <ares.h>
#include <stdlib.h>

#include "addr.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_copy(const uint8_t *data, size_t len, struct dns_query *ret)
{
	uint8_t *copy = malloc(len ? len : 1); /* ends where the message ends */
	int r;

	check(copy);
	memcpy(copy, data, len);
	r = dns_query_read(copy, len, ret);
	free(copy);
	return r;
}

static void check_name(const uint8_t *data, size_t len, const struct dns_query *q)
{
	char text[DNS_TEXT_SIZE], again[NAME_SIZE];
	char *name;
	long used;

	check(ares_expand_name(data + NS_HFIXEDSZ, data, (int)len, &name, &used) == ARES_SUCCESS);
	check((size_t)used == q->question_len - NS_QFIXEDSZ);
	if (*q->name) {
		/* The canonical form of a name is its own, and but for case it is the one that was asked for. */
		check(name_canonical(q->name, strlen(q->name), again) == 0 && strcmp(again, q->name) == 0);
		check(strcasecmp(name, q->name) == 0);
	}
	ares_free_string(name);
	dns_query_text(q, text);
	check(strlen(text) > 0);
	for (const char *c = text; *c; c++)
		check(*c > ' ' && *c < 0x7f);
}

/* The answer is no question, has the records it counts, and ends behind them. */
static void check_answer(const uint8_t *out, size_t len, const struct dns_query *q, unsigned rcode)
{
	const struct dns_message m = { out, len };
	size_t at = NS_HFIXEDSZ + q->question_len;
	struct dns_query none;
	unsigned records;

	check(len >= at && read_copy(out, len, &none) == -EBADMSG);
	check(dns_read16(&m, 0) == q->id && (out[3] & 0xf) == (rcode & 0xf) && !(out[2] & 0x04) && out[3] & 0x80);
	check(dns_read16(&m, 4) == (q->question_len ? 1 : 0));
	check(!memcmp(out + NS_HFIXEDSZ, q->question, q->question_len));
	check(dns_read16(&m, 10) == q->edns);
	records = dns_read16(&m, 6) + dns_read16(&m, 8) + dns_read16(&m, 10);
	check(!(out[2] & FLAG_TC) || records == q->edns);
	while (records--) {
		unsigned char *copy;
		long used;

		check(ares_expand_name(out + at, out, (int)len, (char **)&copy, &used) == ARES_SUCCESS);
		ares_free_string(copy);
		at += (size_t)used;
		check(at + NS_RRFIXEDSZ <= len);
		at += NS_RRFIXEDSZ + dns_read16(&m, at + 8);
	}
	check(at == len);
}

static void check_answers(const struct dns_query *q, unsigned read_as, uint8_t choice)
{
	static const unsigned rcodes[] = { ns_r_noerror, ns_r_nxdomain, ns_r_servfail, ns_r_refused };
	struct np_addr addrs[100];
	struct dns_answer answer = {
		.rcode = read_as ? read_as : rcodes[choice & 3],
		.addrs = addrs,
		.n_addrs = choice % 101u,
		.ptr = *q->name && choice & 4 ? q->name : NULL,
		.ttl_s = 60,
		.ede = choice & 8 ? DNS_EDE_BLOCKED : DNS_EDE_NONE,
		.words = choice & 16 ? "words" : NULL,
	};

	for (unsigned i = 0; i < 100; i++)
		addrs[i] =
			i % 2 ? np_addr_v4(np_net32(0xc6120000)) : (struct np_addr){ .b = { 0xfd, [15] = (uint8_t)i } };
	for (int tcp = 0; tcp < 2; tcp++) {
		size_t limit = dns_answer_limit(q, tcp), len;
		uint8_t *out = malloc(limit);

		check(out && limit >= DNS_UDP_MIN);
		len = dns_answer_write(q, &answer, out, limit);
		check(len <= limit);
		check_answer(out, len, q, answer.rcode);
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q, cut;
	uint8_t choice;
	struct np_addr addr;
	int r;

	if (!size)
		return 0;
	choice = *data++;
	size--;
	memset(&q, 0x5a, sizeof(q));
	r = read_copy(data, size, &q);
	if (r < 0) {
		check(r == -EBADMSG && (size < NS_HFIXEDSZ || data[2] & FLAG_QR));
		for (size_t i = 0; i < sizeof(q); i++)
			check(((unsigned char *)&q)[i] == 0x5a);
		return 0;
	}
	check(r == ns_r_noerror || r == ns_r_formerr || r == ns_r_notimpl || r == ns_r_refused || r == ns_r_badvers);
	check(q.question_len <= DNS_QUESTION_SIZE && q.udp_size >= DNS_UDP_MIN);
	if (r == ns_r_noerror) {
		check(q.question_len > 0);
		check_name(data, size, &q);
		if (dns_reverse_parse(q.name, &addr) == 0)
			check(strstr(q.name, np_addr_is_v4(&addr) ? "." : ".ip6.arpa"));
		for (size_t n = 0; n < size; n++)
			check(read_copy(data, n, &cut) == (n < NS_HFIXEDSZ ? -EBADMSG : ns_r_formerr));
	}
	check_answers(&q, (unsigned)r, choice);
	return 0;
}
