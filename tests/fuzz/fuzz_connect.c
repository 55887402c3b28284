/* SPDX-License-Identifier: MIT */
/*
 * Random bytes as a proxy's answer to CONNECT. However they are cut, they say the same; of an open tunnel exactly the head is
 * taken, and no answer is longer than its bound.
 */
#include "http/connect.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	unsigned status;
	bool open, failed;
	size_t taken;
};

static struct outcome read_in_pieces(const char *data, size_t size, size_t at_a_time)
{
	char out[CONNECT_REQUEST_SIZE];
	struct outcome outcome = { 0 };
	struct connect *connect;

	check(connect_new(&connect) == 0);
	check(connect_write(connect, "a.example:443", "user:password", out) > 0);
	while (outcome.taken < size && !connect_status(connect)) {
		size_t n = size - outcome.taken < at_a_time ? size - outcome.taken : at_a_time;
		ssize_t used = connect_read(connect, data + outcome.taken, n);

		if (used < 0) {
			check(used == -EPROTO || used == -E2BIG);
			check(*connect_problem(connect));
			outcome.failed = true;
			break;
		}
		check(used > 0 && (size_t)used <= n);
		check((size_t)used == n || connect_status(connect));
		outcome.taken += (size_t)used;
	}
	outcome.status = connect_status(connect);
	outcome.open = connect_is_open(connect);
	connect_free(connect);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *data = (const char *)bytes;
	struct outcome whole = read_in_pieces(data, size, SIZE_MAX), single = read_in_pieces(data, size, 1);

	/* Of pieces that are more than the bound the beginning may be enough to say so. */
	if (size > NP_PROXY_ANSWER_BYTES)
		return 0;
	check(whole.failed == single.failed && whole.status == single.status && whole.open == single.open);
	check(!whole.open || (whole.status >= 200 && whole.status < 300 && !whole.failed));
	if (!whole.open)
		return 0;
	check(whole.taken == single.taken && whole.taken >= 4 && !memcmp(data + whole.taken - 4, "\r\n\r\n", 4));
	return 0;
}
