/* SPDX-License-Identifier: MIT */
/* Events of a history that anybody may have written to: words come out, in lines that are ours and of bounded length. */
#include "control/refusals.c"

#include <stdint.h>
#include <stdlib.h>

#include "vocab/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct refusals refusals;
	_buf_ struct buf out = BUF_INIT(96u << 10);
	size_t lines = 0, most;

	refusals_read((const char *)data, size, NP_WHY_MAX, &refusals);
	refusals_text(&refusals, NP_PROXIED, &out);
	if (buf_error(&out))
		abort();
	for (size_t i = 0; i < out.len; i++) {
		if ((unsigned char)out.data[i] < 0x20 && out.data[i] != '\n')
			abort();
		lines += out.data[i] == '\n';
	}
	most = 1 + refusals.count + 3 + refusals.count; /* heading, list, three counts, hints */
	if (lines > most)
		abort();
	for (size_t i = 0; i < refusals.count; i++)
		json_decref(refusal_object(&refusals.items[i], NP_NONE));
	refusals_clear(&refusals);
	return 0;
}
