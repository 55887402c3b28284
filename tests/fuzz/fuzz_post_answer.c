/* SPDX-License-Identifier: MIT */
/* Random bytes as the answer of a receiver: whatever is understood is understood of each longer one, too. */
#include "exporter/post_answer.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct post_answer answer = { 0 }, part = { 0 };
	const int r = post_answer_read((const char *)data, size, &answer);

	if (r == 1 && (answer.status < 200 || answer.status > 999 || answer.retry_after_ms > RETRY_S_MAX * 1000u))
		abort();
	for (size_t n = 0; n < size && n < 512; n++) {
		const int before = post_answer_read((const char *)data, n, &part);

		if (before == 1 &&
		    (r != 1 || part.status != answer.status || part.retry_after_ms != answer.retry_after_ms))
			abort();
		if (before < 0 && r >= 0)
			abort();
	}
	return 0;
}
