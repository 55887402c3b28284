/* SPDX-License-Identifier: MIT */
/* Random bytes as a DNS answer: addresses that are in them, or an error and nothing else. */
#include "wire/dns_message.c"
#include "wire/dns_answer.c"

#include <stdlib.h>

#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_copy(const uint8_t *data, size_t len, enum family family, struct addresses *found, uint32_t *ttl_s)
{
	uint8_t *copy = malloc(len ? len : 1); /* ends where the message ends */
	struct alias_names *names = malloc(sizeof(*names));
	size_t at = 0;
	int e;

	check(copy && names);
	memcpy(copy, data, len);
	*found = (struct addresses){ .count = 99 };
	*ttl_s = 4711;
	e = answer_read(copy, len, family, found, names, ttl_s);
	free(copy);
	if (e == 0) { /* names, and an empty one behind them */
		while (names->text[at])
			at += strlen(names->text + at) + 1;
		check(at == names->len && at < sizeof(names->text));
	}
	free(names);
	if (e < 0) {
		check(e == -ENOENT || e == -ENODATA || e == -EREMOTEIO || e == -EBADMSG);
		check(found->count == 99 && *ttl_s == 4711);
	}
	return e;
}

static void check_answer(const uint8_t *data, size_t len, enum family family)
{
	struct addresses found, again;
	uint32_t ttl_s, again_ttl_s;
	int e = read_copy(data, len, family, &found, &ttl_s), e2;

	if (e == 0) {
		check(found.count >= 1 && found.count <= NP_ADDRS_PER_NAME && ttl_s <= INT32_MAX);
		for (unsigned i = 0; i < found.count; i++)
			check(family == FAMILY_V4
				      ? np_addr_is_v4(&found.addrs[i]) && memmem(data, len, found.addrs[i].b + 12, 4)
				      : memmem(data, len, found.addrs[i].b, 16) != NULL);
	}
	if (len == 0)
		return;
	/* Without its last byte it is the same, or none. */
	e2 = read_copy(data, len - 1, family, &again, &again_ttl_s);
	check(e2 == e || e2 == -EBADMSG);
	if (e2 == 0)
		check(again_ttl_s == ttl_s && again.count == found.count &&
		      memcmp(again.addrs, found.addrs, found.count * sizeof(found.addrs[0])) == 0);
}

/* Records that are whole, in the form that dns_answer_write() takes. */
static void check_records(const uint8_t *data, size_t len, uint16_t type)
{
	static struct record_bytes found;
	uint8_t *copy = malloc(len ? len : 1);
	uint32_t ttl_s = 0;
	size_t at = 0;
	int e;

	check(copy);
	memcpy(copy, data, len);
	e = answer_read_records(copy, len, type, &found, &ttl_s);
	free(copy);
	if (e < 0) {
		check(e == -ENOENT || e == -ENODATA || e == -EREMOTEIO || e == -EBADMSG || e == -EMSGSIZE);
		return;
	}
	check(found.count && found.len <= sizeof(found.data) && ttl_s <= INT32_MAX);
	for (unsigned i = 0; i < found.count; i++) {
		size_t n = (size_t)found.data[at] << 8 | found.data[at + 1], p = at + 2, end = p + n;

		check(end <= found.len && n);
		if (type != ns_t_txt)
			for (p += type == ns_t_mx ? 2 : 6; found.data[p];) /* labels, none of them a pointer */
				check(found.data[p] <= NS_MAXLABEL && (p += 1u + found.data[p]) < end);
		else
			while (p < end - 1)
				p += 1u + found.data[p];
		check(type == ns_t_txt ? p == end || (p == end - 1 && !found.data[p]) : p == end - 1);
		at = end;
	}
	check(at == found.len);
}

/* Half of the inputs get a header and a question, so that all of them is records. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t start[] = { 0, 1, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 1, 'b', 0, 0, ns_t_a, 0, 1 };
	static const uint16_t types[] = { ns_t_mx, ns_t_srv, ns_t_txt, ns_t_txt };
	uint8_t *message;
	enum family family;
	uint16_t record;

	if (size < 2 || size > 65000)
		return 0;
	family = data[0] & 1 ? FAMILY_V4 : FAMILY_V6;
	record = types[data[0] >> 2 & 3];
	if (data[0] & 2) {
		check_answer(data + 2, size - 2, family);
		check_records(data + 2, size - 2, record);
		return 0;
	}
	message = malloc(sizeof(start) + size - 2);
	check(message);
	memcpy(message, start, sizeof(start));
	memcpy(message + sizeof(start), data + 2, size - 2);
	message[7] = data[1];
	message[sizeof(start) - 3] = family == FAMILY_V4 ? ns_t_a : ns_t_aaaa;
	check_answer(message, sizeof(start) + size - 2, family);
	message[sizeof(start) - 3] = (uint8_t)record;
	check_records(message, sizeof(start) + size - 2, record);
	free(message);
	return 0;
}
