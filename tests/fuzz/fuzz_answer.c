/* SPDX-License-Identifier: MIT */
/* Random bytes as a DNS answer: addresses that are in them, or an error and nothing else. */
#include "inspect/answer.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static int read_copy(const uint8_t *data, size_t len, enum family family, struct addresses *found, uint32_t *ttl_s)
{
	uint8_t *copy = malloc(len ? len : 1); /* ends where the message ends */
	int e;

	check(copy);
	memcpy(copy, data, len);
	*found = (struct addresses){ .count = 99 };
	*ttl_s = 4711;
	e = answer_read(copy, len, family, found, ttl_s);
	free(copy);
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

/* Half of the inputs get a header and a question, so that all of them is records. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t start[] = { 0, 1, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 1, 'b', 0, 0, ns_t_a, 0, 1 };
	uint8_t *message;
	enum family family;

	if (size < 2 || size > 65000)
		return 0;
	family = data[0] & 1 ? FAMILY_V4 : FAMILY_V6;
	if (data[0] & 2) {
		check_answer(data + 2, size - 2, family);
		return 0;
	}
	message = malloc(sizeof(start) + size - 2);
	check(message);
	memcpy(message, start, sizeof(start));
	memcpy(message + sizeof(start), data + 2, size - 2);
	message[7] = data[1];
	message[sizeof(start) - 3] = family == FAMILY_V4 ? ns_t_a : ns_t_aaaa;
	check_answer(message, sizeof(start) + size - 2, family);
	free(message);
	return 0;
}
